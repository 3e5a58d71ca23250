# Written by yoctune. Change the configuration and build the layer again.

def yoctune_kernel_values(text):
    # What a fragment or a .config says: the value, as it is written, and the line
    # of each option. The last line of an option counts.
    import re
    values = {}
    for number, line in enumerate(text.split('\n'), 1):
        m = re.match(r'CONFIG_(\w+)=(.*)$', line)
        if m:
            values[m.group(1)] = (m.group(2), number)
            continue
        m = re.match(r'# CONFIG_(\w+) is not set$', line)
        if m:
            values[m.group(1)] = ('n', number)
    return values

def yoctune_kernel_same(wanted, got):
    # Text is compared as it is written, quotes included; numbers by what they
    # are: kconfig keeps the spelling of one that it takes.
    if wanted == got:
        return True
    if wanted.startswith('"') or got.startswith('"'):
        return False
    base = 16 if got[:2].lower() == '0x' else 10
    try:
        return int(wanted, base) == int(got, base)
    except ValueError:
        return False

def yoctune_kernel_differences(fragment, name, config, origins):
    # A line for each option of the fragment that .config does not hold. origins
    # is JSON: where the configuration asks for an option.
    import json
    where = json.loads(origins) if origins else {}
    actual = yoctune_kernel_values(config)
    lines = []
    for symbol, (wanted, number) in sorted(yoctune_kernel_values(fragment).items()):
        got = actual[symbol][0] if symbol in actual else None
        if wanted == 'n' and got is None or got is not None and yoctune_kernel_same(wanted, got):
            continue
        if got is None:
            got = 'not in .config'
        elif got == 'n':
            got = 'n (is not set)'
        at = where.get(symbol, '%s:%d' % (name, number))
        lines.append('%s: CONFIG_%s: wanted %s, actual %s' % (at, symbol, wanted, got))
    return lines

python yoctune_kernel_check() {
    import os
    config = d.expand('${B}/.config')
    lines = []
    for name in d.getVar('YOCTUNE_KERNEL_REQUESTS').split():
        path = os.path.join(d.getVar('UNPACKDIR'), name)
        if not os.path.exists(path) or not os.path.exists(config):
            missing = config if os.path.exists(path) else path
            lines.append('%s: not compared, for want of %s' % (name, missing))
            continue
        with open(path, encoding='utf-8') as f:
            fragment = f.read()
        with open(config, encoding='utf-8', errors='backslashreplace') as f:
            text = f.read()
        # Read from the layer, neither unpacked nor below files/: a line of the
        # configuration that moves must not build the kernel again.
        origins = ''
        for path in (d.getVar('YOCTUNE_KERNEL_ORIGINS') or '').split():
            if os.path.basename(path) == name + '.origins.json' and os.path.exists(path):
                with open(path, encoding='utf-8') as f:
                    origins = f.read()
        lines += yoctune_kernel_differences(fragment, name, text, origins)
    if not lines:
        return
    lines = ['yoctune: this kernel is not what the configuration asks for'] + lines
    if d.getVar('YOCTUNE_KERNEL_CHECK') == 'warn':
        bb.warn('\n  '.join(lines))
        return
    bb.fatal('\n  '.join(lines) + '\n"yoctune kernel index" of this source and "yoctune kernel predict" say why;'
             ' YOCTUNE_KERNEL_CHECK = "warn" builds it all the same.')
}

yoctune_kernel_check[doc] = "Compares the options that the layer asks for with the .config of the kernel"
# Only how strict it is belongs to the signature of do_configure: the options do
# through SRC_URI, and other words in a message are no reason to build a kernel.
yoctune_kernel_check[vardepvalue] = "1"
yoctune_kernel_check[vardeps] += "YOCTUNE_KERNEL_CHECK"

do_configure[postfuncs] += "yoctune_kernel_check"
