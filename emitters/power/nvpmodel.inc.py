def yoctune_nvpmodel_sections(text, name):
    # The sections of an nvpmodel.conf, in order. Stock files write both
    # "< PARAM" and "<PARAM", and some lines end in CRLF.
    import re
    sections = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith('#'):
            continue
        if line.startswith('<'):
            head = re.fullmatch(r'<\s*(\w+)\s*((?:\w+=\w+\s*)*)>', line)
            if not head:
                raise ValueError('%s:%d: cannot parse the section line %r' % (name, number, line))
            fields = dict(f.split('=', 1) for f in head.group(2).split())
            sections.append({'kind': head.group(1), 'line': number, 'fields': fields, 'rows': []})
        elif sections:
            sections[-1]['rows'].append((number, line.split()))
        else:
            raise ValueError('%s:%d: %r precedes the first section' % (name, number, line))
    return sections

def yoctune_nvpmodel_merge(stock, blocks, default, stock_name, blocks_name, fan=''):
    # Returns stock with the POWER_MODEL blocks before its PM_CONFIG line, the mode
    # named default as its default, and the fan profile that L4T R32 reads. Raises
    # ValueError where nvpmodel would reject or misread the result on the device.
    import re
    declared, ids, names, config = {}, {}, {}, []
    for s in yoctune_nvpmodel_sections(stock, stock_name):
        if s['kind'] == 'PARAM':
            declared.setdefault(s['fields'].get('NAME', ''), set()).update(row[0] for _, row in s['rows'])
        elif s['kind'] == 'POWER_MODEL':
            ids[s['fields'].get('ID', '')] = s['fields'].get('NAME', '')
            names[s['fields'].get('NAME', '')] = s['fields'].get('ID', '')
        elif s['kind'] == 'PM_CONFIG':
            config.append(s['line'])
    if len(config) != 1:
        raise ValueError('%s: found %d PM_CONFIG lines, want one' % (stock_name, len(config)))

    for s in yoctune_nvpmodel_sections(blocks, blocks_name):
        at = '%s:%d' % (blocks_name, s['line'])
        ident, mode = s['fields'].get('ID', ''), s['fields'].get('NAME', '')
        if s['kind'] != 'POWER_MODEL' or not ident.isdigit() or not mode:
            raise ValueError('%s: only POWER_MODEL blocks with ID and NAME can be added' % at)
        if ident in ids:
            raise ValueError('%s: mode id %s of %s is already used by %s; the modes of this BSP differ from the facts of yoctune'
                             % (at, ident, mode, ids[ident]))
        if mode in names:
            raise ValueError('%s: a mode named %s already exists, with id %s; choose another name'
                             % (at, mode, names[mode]))
        for number, row in s['rows']:
            at = '%s:%d' % (blocks_name, number)
            if len(row) != 3:
                raise ValueError('%s: want PARAM ARG value, got %r' % (at, ' '.join(row)))
            if row[0] not in declared:
                raise ValueError('%s: %s is not declared in %s; this board or L4T version lacks it'
                                 % (at, row[0], stock_name))
            if row[1] not in declared[row[0]]:
                raise ValueError('%s: %s has no argument %s in %s; it has %s'
                                 % (at, row[0], row[1], stock_name, ', '.join(sorted(declared[row[0]]))))
        ids[ident], names[mode] = mode, ident

    if default and default not in names:
        raise ValueError('%s: no mode named %s; the file has %s' % (stock_name, default, ', '.join(sorted(names))))

    ending = '\r\n' if '\r\n' in stock else '\n'
    lines = stock.splitlines()
    where = config[0] - 1
    if default:
        lines[where], changed = re.subn(r'DEFAULT=\w+', 'DEFAULT=' + names[default], lines[where])
        if changed != 1:
            raise ValueError('%s:%d: PM_CONFIG has no DEFAULT' % (stock_name, where + 1))
    if fan:
        # One FAN_CONFIG, after PM_CONFIG.
        lines = [line for line in lines if not re.match(r'\s*<\s*FAN_CONFIG\b', line)]
        where = next(i for i, line in enumerate(lines) if re.match(r'\s*<\s*PM_CONFIG\b', line))
        lines.insert(where + 1, '< FAN_CONFIG DEFAULT=%s >' % fan)
    # The comment right above PM_CONFIG belongs to it.
    while where > 0 and lines[where - 1].lstrip().startswith('#'):
        where -= 1
    added = blocks.splitlines()
    if added:
        added.append('')
    return ending.join(lines[:where] + added + lines[where:]) + ending

python yoctune_power_modes() {
    import os
    default = d.getVar('YOCTUNE_POWER_DEFAULT')
    modes = d.getVar('YOCTUNE_POWER_MODES')
    fan = d.getVar('YOCTUNE_FAN_PROFILE')
    if not default and not modes and not fan:
        return
    path = d.expand('${D}${sysconfdir}/nvpmodel.conf')
    blocks = ''
    if modes:
        with open(os.path.join(d.getVar('UNPACKDIR'), modes), newline='') as f:
            blocks = f.read()
    with open(path, newline='') as f:
        stock = f.read()
    try:
        merged = yoctune_nvpmodel_merge(stock, blocks, default, d.expand('${NVPMODEL}.conf'), modes, fan)
    except ValueError as e:
        bb.fatal('yoctune: %s' % e)
    with open(path, 'w', newline='') as f:
        f.write(merged)
}

yoctune_power_modes[doc] = "Adds the power modes of the layer to the installed nvpmodel.conf"
do_install[postfuncs] += "yoctune_power_modes"
