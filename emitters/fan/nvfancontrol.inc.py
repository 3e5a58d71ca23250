def yoctune_fan_points(rows, margin, limit, full, name):
    # Returns the rows of one table of nvfancontrol.conf for points (degrees, fall,
    # pwm, rpm or None). The table covers 0 to the limit. With TMARGIN its first
    # column is the margin below the limit.
    points = sorted(rows)
    if points[-1][0] > limit:
        raise ValueError('%s: the point at %d C exceeds the limit of %d C' % (name, points[-1][0], limit))
    if points[0][0] > 0:
        points.insert(0, (0,) + points[0][1:])
    if points[-1][0] < limit:
        points.append((limit,) + points[-1][1:])
    table = []
    for degrees, fall, pwm, rpm in points:
        if rpm is None:
            rpm = (full * pwm + 127) // 255
        table.append((limit - degrees if margin else degrees, fall, pwm, rpm))
    return sorted(table)

def yoctune_nvfancontrol_profiles(text, name):
    # Parses the layer's profiles: a line "FAN_PROFILE name", then lines
    # "degrees fall pwm rpm".
    profiles = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith('#'):
            continue
        if words[0] == 'FAN_PROFILE' and len(words) == 2:
            profiles.append((words[1], []))
        elif len(words) == 4 and profiles:
            rpm = None if words[3] == '-' else int(words[3])
            profiles[-1][1].append((int(words[0]), int(words[1]), int(words[2]), rpm))
        else:
            raise ValueError('%s:%d: %r is not a point of a fan profile' % (name, number, line))
    return profiles

def yoctune_nvfancontrol_merge(stock, ours, wanted, stock_name, ours_name):
    # Returns stock with the layer's profiles in each of its fans, and the wanted
    # defaults (PROFILE, GOVERNOR, CONTROL). Raises ValueError where nvfancontrol
    # would not find a default.
    import re
    profiles = yoctune_nvfancontrol_profiles(ours, ours_name)
    ending = '\r\n' if '\r\n' in stock else '\n'
    lines = stock.splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(r'\s*<\s*FAN\s+\d+\s*>', line)]
    if not starts:
        raise ValueError('%s: no <FAN n> section' % stock_name)
    out = lines[:starts[0]]
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        section = lines[start:end]
        at = '%s:%d' % (stock_name, start + 1)
        margin, limit, known, governors, full = False, 0, {}, set(), 0
        opened = None
        for i, line in enumerate(section):
            words = line.split('#')[0].split()
            if not words:
                continue
            if opened and words[0] != '}':
                if len(words) != 4 or not all(re.fullmatch('[0-9]{1,6}', w) and int(w) <= 100000 for w in words):
                    raise ValueError('%s:%d: a point of profile %s is TEMP HYST PWM RPM' % (stock_name, start + i + 1, opened))
                full = max(full, int(words[3]))
            elif words[0] == 'TMARGIN' and len(words) > 1:
                margin = words[1] == 'ENABLED'
            elif words[0] == 'GROUP_MAX_TEMP' and len(words) > 1:
                limit = max(limit, int(words[1]))
            elif words[0] == 'FAN_GOVERNOR' and len(words) > 1:
                governors.add(words[1])
            elif words[0] == 'FAN_PROFILE' and len(words) > 1:
                opened = words[1]
                known[opened] = [i, None]
            elif words[0] == '}' and opened:
                known[opened][1], opened = i, None
        if profiles and not limit:
            raise ValueError('%s: the fan lacks GROUP_MAX_TEMP' % at)
        for name, span in known.items():
            if span[1] is None:
                raise ValueError('%s: the profile %s is not closed' % (at, name))
        names = set(known) | {name for name, _ in profiles}
        if wanted.get('PROFILE') and wanted['PROFILE'] not in names:
            raise ValueError('%s: the fan has no profile %s; it has %s' % (at, wanted['PROFILE'], ', '.join(sorted(names))))
        if wanted.get('GOVERNOR') and wanted['GOVERNOR'] not in governors:
            raise ValueError('%s: the fan has no governor %s; it has %s' % (at, wanted['GOVERNOR'], ', '.join(sorted(governors))))
        drop, put = set(), {}
        first = min([i for i, line in enumerate(section) if re.match(r'\s*(THERMAL_GROUP|FAN_DEFAULT_\w+)\b', line)] or [len(section)])
        for name, rows in profiles:
            block = ['\tFAN_PROFILE %s {' % name, '\t\t#TEMP\tHYST\tPWM\tRPM']
            block += ['\t\t%d\t%d\t%d\t%d' % row for row in yoctune_fan_points(rows, margin, limit, full, '%s: profile %s' % (ours_name, name))]
            block.append('\t}')
            where = first
            if name in known:
                where = known[name][0]
                drop.update(range(known[name][0], known[name][1] + 1))
            put.setdefault(where, []).extend(block)
        seen = set()
        result = []
        for i, line in enumerate(section):
            result += put.pop(i, [])
            if i in drop:
                continue
            default = re.match(r'(\s*FAN_DEFAULT_(PROFILE|GOVERNOR|CONTROL)\s+)\w+', line)
            if default and wanted.get(default.group(2)):
                seen.add(default.group(2))
                line = default.group(1) + wanted[default.group(2)]
            result.append(line)
        for block in put.values():
            result += block
        missing = ['\tFAN_DEFAULT_%s %s' % (key, wanted[key]) for key in ('CONTROL', 'PROFILE', 'GOVERNOR') if wanted.get(key) and key not in seen]
        if missing:
            tail = len(result)
            while tail > 1 and (not result[tail - 1].strip() or result[tail - 1].lstrip().startswith('</')):
                tail -= 1
            result[tail:tail] = missing
        out += result
    return ending.join(out) + ending

python yoctune_fan() {
    import os
    wanted = {key: d.getVar('YOCTUNE_FAN_' + key) for key in ('PROFILE', 'GOVERNOR', 'CONTROL')}
    profiles = d.getVar('YOCTUNE_FAN_PROFILES')
    if not profiles and not any(wanted.values()):
        return
    path = d.expand('${D}${sysconfdir}/nvfancontrol.conf')
    ours = ''
    if profiles:
        with open(os.path.join(d.getVar('UNPACKDIR'), profiles), newline='') as f:
            ours = f.read()
    with open(path, newline='') as f:
        stock = f.read()
    try:
        merged = yoctune_nvfancontrol_merge(stock, ours, wanted, d.expand('${NVFANCONTROL}.conf'), profiles)
    except ValueError as e:
        bb.fatal('yoctune: %s' % e)
    with open(path, 'w', newline='') as f:
        f.write(merged)
}

yoctune_fan[doc] = "Adds the fan profiles of the layer to the installed nvfancontrol.conf"
do_install[postfuncs] += "yoctune_fan"
