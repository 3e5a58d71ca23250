# SPDX-License-Identifier: Apache-2.0
"""Reads what lines of scripts, tuned profiles, .link files, udev rules and tables set, as pairs.

A pair is a kernel file, an argument or a module, with its value, in one notation for all
formats: /proc/sys/net/core/rmem_max, /sys/class/net/eth0/mtu, net/eth0/features/rx-gro,
module/NAME, mode/NAME/PARAM/ARG. Grammars are those of sh (words, simple variables and loops
over words), tuned.conf, systemd.link(5), udev(7), tmpfiles.d(5), fstab(5), modprobe.d(5) and
nvpmodel.conf, written for this check. A line that is not read gives no pairs.
"""

import configparser
import itertools
import re
import shlex

SWITCH = {"on": "1", "off": "0", "yes": "1", "no": "0", "true": "1", "false": "0", "enabled": "1", "disabled": "0"}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text):
    m = re.fullmatch(r"(\d+)([KMG]?)B?", text.strip().upper())
    return str(int(m.group(1)) * UNITS[m.group(2)]) if m else text


def same(a, b):
    a, b = (" ".join(str(v).strip().strip("\"'").split()) for v in (a, b))
    if a == b or SWITCH.get(a.lower(), a) == SWITCH.get(b.lower(), b):
        return True
    try:
        return float(a) == float(b)
    except ValueError:
        return False


def glob(name):
    return re.sub(r"\[[^\]]*\]", "?", name)


def kernel_file(path, value):
    """One name for the files that the plan selects by class."""
    path = glob(re.sub(r"/+", "/", path))
    if m := re.fullmatch(r"/sys/devices/system/cpu/(?:cpu[^/]*/cpufreq|cpufreq/[^/]*)/([a-z_]+)", path):
        return "cpufreq/" + m.group(1), value
    if m := re.fullmatch(r"/sys/(?:class/)?block/([^/]+)/(.*)", path):
        if m.group(1) == "zram0":
            return "zram/" + m.group(2), size(value)
        return f"block/{m.group(1)}/{m.group(2)}", value
    if m := re.fullmatch(r"/sys/class/net/([^/]+)/(.*)", path):
        return f"net/{m.group(1)}/" + re.sub(r"rx-[^/]*", "rx-*", m.group(2)), value.lstrip("0") or "0" if "cpus" in path else value
    if m := re.search(r"/devfreq/[^/]+/([a-z_]+)$", path):
        return "devfreq/" + m.group(1), value
    return path, value


def sysctl(key, value):
    first = re.search(r"[./]", key)
    if first and first.group() == ".":
        key = key.translate(str.maketrans("./", "/."))
    return "/proc/sys/" + key, value


ETHTOOL = {"-K": "features", "--features": "features", "--offload": "features", "-G": "ring", "--set-ring": "ring",
           "-L": "channels", "--set-channels": "channels", "-C": "coalesce", "--coalesce": "coalesce"}
# ethtool's common.h: names of flags that stand for one feature of the kernel.
LEGACY = {"rx": "rx-checksum", "gro": "rx-gro", "lro": "rx-lro", "gso": "tx-generic-segmentation", "rxhash": "rx-hashing",
          "ntuple": "rx-ntuple-filter", "rxvlan": "rx-vlan-hw-parse", "txvlan": "tx-vlan-hw-insert"}


def ethtool(device, group, words):
    for name, value in zip(words[::2], words[1::2]):
        if group == "features":
            name = LEGACY.get(name, name)
        yield f"net/{glob(device)}/{group}/{name}", SWITCH.get(value, value)


class Shell:
    """Pairs of the simple commands of a script, by line."""

    def __init__(self, text):
        self.variables, self.pairs = {}, {}
        logical, start = "", 1
        for number, line in enumerate(text.replace("\r", "").split("\n"), 1):
            if not logical:
                start = number
            if line.endswith("\\"):
                logical += line[:-1]
                continue
            try:
                self.line(start, logical + line)
            except ValueError:  # a quote that goes on over lines
                pass
            logical = ""

    def line(self, number, text):
        lexer = shlex.shlex(text, posix=True, punctuation_chars="();|&<>")
        lexer.whitespace_split, lexer.commenters = True, "#"
        command = []
        for word in [*lexer, ";"]:
            if set(word) <= set(";&") and word or word in ("do", "then", "else", "{", "}", "done", "fi", "if"):
                if command:
                    self.command(number, command)
                command = []
            else:
                command.append(word)

    def expand(self, word):
        """Every text of a word; nothing where a variable is not known."""
        names = re.findall(r"\$\{?(\w+)\}?", word)
        known = [self.variables.get(n, []) for n in names]
        for values in itertools.product(*known):
            out = word
            for n, v in zip(names, values):
                out = re.sub(r"\$(\{%s\}|%s\b)" % (n, n), lambda _: v, out, count=1)
            if "$" not in out and "`" not in out:
                yield out

    def command(self, number, words):
        if m := re.fullmatch(r"(\w+)=(.*)", words[0], re.S):
            self.variables[m.group(1)] = list(self.expand(m.group(2)))
            return
        if words[0] == "for" and len(words) > 3 and words[2] == "in":
            self.variables[words[1]] = [v for w in words[3:] for v in self.expand(w) for v in v.split()]
            return
        for name in ("local", "export", "readonly"):
            if words[0] == name:
                return
        lists = [list(self.expand(w)) for w in words]
        for args in itertools.islice(itertools.product(*lists), 4096):
            for knob, value in self.effect(list(args)):
                self.pairs.setdefault(number, []).append((knob, value))

    def effect(self, args):
        while args and args[0] in ("sudo", "exec", "command"):
            args = args[1:]
        if not args:
            return
        name, rest = args[0].rsplit("/", 1)[-1], args[1:]
        if name in ("echo", "printf") and (">" in rest or ">>" in rest or "|" in rest):
            at = next(i for i, w in enumerate(rest) if w in (">", ">>", "|"))
            value = [w for w in rest[:at] if w not in ("-n", "-e", "-ne")]
            if value and value[-1] in ("1", "2") and rest[at] != "|" and len(value) > 1:
                value = value[:-1]  # the descriptor
            files = [w for w in rest[at + 1:] if w.startswith("/")][:1] if rest[at] != "|" else [w for w in rest[at + 1:] if w.startswith("/") and not w.endswith("/tee")]
            for f in files:
                if f.startswith(("/sys/", "/proc/sys/")):
                    yield kernel_file(f, " ".join(value))
        elif name == "sysctl":
            for w in rest:
                if "=" in w and not w.startswith("-"):
                    yield sysctl(*(p.strip() for p in w.split("=", 1)))
        elif name in ("ip", "ifconfig"):
            if name == "ip":
                if rest[:2] != ["link", "set"]:
                    return
                rest = rest[3:] if rest[2:3] == ["dev"] else rest[2:]
            for key, value in zip(rest[1:], rest[2:]):
                attr = {"mtu": "mtu", "txqueuelen": "tx_queue_len", "txqlen": "tx_queue_len", "qlen": "tx_queue_len"}.get(key)
                if attr:
                    yield f"net/{glob(rest[0])}/{attr}", value
        elif name == "ethtool" and len(rest) > 2 and rest[0] in ETHTOOL:
            yield from ethtool(rest[1], ETHTOOL[rest[0]], rest[2:])
        elif name == "modprobe":
            words = [w for w in rest if not w.startswith(("-", ">", "2"))]
            if "-r" not in rest and words:
                yield "module/" + words[0].replace("-", "_"), "load"
        elif name == "blockdev" and rest[:1] == ["--setra"] and len(rest) > 2:
            yield f"block/{glob(rest[2].rsplit('/', 1)[-1])}/queue/read_ahead_kb", str(int(rest[1]) // 2)
        elif name in ("cpufreq-set", "cpupower"):
            for flag, value in zip(rest, rest[1:]):
                if flag in ("-g", "--governor"):
                    yield "cpufreq/scaling_governor", value
        elif name == "mount" and "tmpfs" in rest:
            words = [w for w in rest if w.startswith("/")]
            yield from tmpfs(words[-1] if words else "", ",".join(rest))


def tmpfs(folder, options):
    if m := re.search(r"(?:^|,)size=(\d+[kKmMgG]?)", options):
        yield "mount/" + folder, size(m.group(1))


def tuned(text):
    pairs, section, kind, devices, variables = {}, "", "", [], {}
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=",), interpolation=None)
    parser.optionxform = str
    parser.read_string(text)
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if m := re.fullmatch(r"\[(.*)\]", line):
            section = m.group(1)
            kind = parser.get(section, "type", fallback=section)
            devices = re.split(r"[\s,]+", parser.get(section, "devices", fallback="") or "")
        elif line and line[0] not in "#;" and "=" in line:
            name, value = (p.strip() for p in line.split("=", 1))
            if section == "variables":
                variables[name] = value
                continue
            value = re.sub(r"\$\{(\w+)\}", lambda m: variables.get(m.group(1), m.group()), value)
            if len(value) > 1 and value[0] == value[-1] == '"':
                value = value[1:-1]
            if "${" not in value:
                pairs[number] = list(tuned_option(kind, [d for d in devices if d], name, value))
    return pairs


def tuned_option(kind, devices, name, value):
    if kind == "sysctl":
        yield sysctl(name, value)
    elif kind == "sysfs":
        yield kernel_file(name, value)
    elif kind == "vm" and name in ("transparent_hugepages", "transparent_hugepage"):
        yield "/sys/kernel/mm/transparent_hugepage/enabled", value
    elif kind == "vm" and name.startswith("dirty_"):
        if value.endswith("%"):
            name, value = name.replace("_bytes", "_ratio"), value[:-1]
        yield "/proc/sys/vm/" + name, value
    elif kind == "cpu" and name == "governor":
        yield "cpufreq/scaling_governor", value
    elif kind == "disk" and name in ("elevator", "readahead"):
        for d in devices:
            if name == "readahead" and value.endswith("s"):
                value = str(int(value[:-1]) // 2)
            yield f"block/{glob(d)}/queue/" + ("scheduler" if name == "elevator" else "read_ahead_kb"), value
    elif kind == "net":
        for d in devices:
            if name in ("ring", "channels", "coalesce", "features"):
                yield from ethtool(d, name, re.split(r"[\s,]+", value))
            elif name in ("mtu", "txqueuelen"):
                yield f"net/{glob(d)}/" + {"mtu": "mtu", "txqueuelen": "tx_queue_len"}[name], value
    elif kind == "bootloader" and name.startswith("cmdline"):
        for word in shlex.split(value.lstrip("+")):
            yield "argument/" + word.split("=")[0], word.partition("=")[2]


# systemd.link(5), and the names of ethtool's features in systemd's ethtool-util.c.
LINK = {"TransmitQueueLength": "tx_queue_len", "MTUBytes": "mtu", "RxBufferSize": "ring/rx", "TxBufferSize": "ring/tx", "RxChannels": "channels/rx",
        "TxChannels": "channels/tx", "CombinedChannels": "channels/combined", "RxMaxCoalescedFrames": "coalesce/rx-frames", "TxMaxCoalescedFrames": "coalesce/tx-frames",
        "GenericReceiveOffload": "features/rx-gro", "LargeReceiveOffload": "features/rx-lro", "GenericSegmentationOffload": "features/tx-generic-segmentation",
        "TCPSegmentationOffload": "features/tx-tcp-segmentation", "TCP6SegmentationOffload": "features/tx-tcp6-segmentation", "ReceiveChecksumOffload": "features/rx-checksum"}


def link(text):
    pairs, section, devices = {}, "", []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif line and line[0] not in "#;" and "=" in line:
            name, value = (p.strip() for p in line.split("=", 1))
            if section == "Match" and name in ("OriginalName", "Name"):
                devices += value.split()
            elif section == "Link" and name in LINK:
                pairs[number] = [(f"net/{glob(d)}/{LINK[name]}", size(value) if name == "MTUBytes" else SWITCH.get(value.lower(), value)) for d in devices]
    return pairs


def udev(text):
    pairs, logical, start = {}, "", 1
    for number, line in enumerate(text.split("\n"), 1):
        if not logical:
            start = number
        logical += line.rstrip("\\")
        if line.endswith("\\"):
            continue
        rule, logical = logical, ""
        if rule.lstrip().startswith("#"):
            continue
        found = re.findall(r'([A-Z_]+)(?:\{([^}]*)\})?\s*(==|:=|=)\s*"((?:[^"\\]|\\.)*)"', rule)
        match = {(k, a): v for k, a, op, v in found if op == "=="}
        vendor, product = match.get(("ATTR", "idVendor")), match.get(("ATTR", "idProduct"))
        for key, attr, op, value in found:
            if key != "ATTR" or op == "==":
                continue
            if vendor and product:
                pairs.setdefault(start, []).append((f"usb/{vendor.lower()}:{product.lower()}/{attr}", value))
            for device in match.get(("KERNEL", ""), "").split("|"):
                if device:
                    kind = "net" if match.get(("SUBSYSTEM", "")) == "net" else "block"
                    pairs.setdefault(start, []).append((f"{kind}/{glob(device)}/" + attr.replace("bdi/", "queue/"), value))
    return pairs


def tmpfiles(text):
    pairs = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if len(words) > 6 and words[0][0] == "w":
            pairs[number] = [kernel_file(words[1], " ".join(words[6:]))]
    return pairs


def fstab(text):
    pairs = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if len(words) > 3 and words[2] == "tmpfs" and not line.startswith("#"):
            pairs[number] = list(tmpfs(words[1], words[3]))
    return pairs


def modprobe(text):
    pairs = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if len(words) == 2 and words[0] == "blacklist":
            pairs[number] = [("module/" + words[1].replace("-", "_"), "blacklist")]
        elif len(words) > 2 and words[0] == "options":
            pairs[number] = [("argument/" + words[1] + "." + w.split("=")[0], w.partition("=")[2]) for w in words[2:]]
    return pairs


def nvpmodel(text):
    pairs, mode = {}, ""
    for number, line in enumerate(text.split("\n"), 1):
        if m := re.match(r"<\s*POWER_MODEL\s+ID=\d+\s+NAME=(\S+?)\s*>", line.strip()):
            mode = m.group(1)
        elif line.strip().startswith("<"):
            mode = ""
        elif mode and len(words := line.split()) == 3 and words[0][0] != "#":
            pairs[number] = [(f"mode/{mode}/{words[0]}/{words[1]}", words[2])]
    return pairs


READERS = (
    (lambda path, text: path.endswith("tuned.conf"), tuned),
    (lambda path, text: path.endswith((".link", ".network")), link),
    (lambda path, text: path.endswith(".rules"), udev),
    (lambda path, text: "/tmpfiles" in path, tmpfiles),
    (lambda path, text: path.endswith("/fstab"), fstab),
    (lambda path, text: "modprobe" in path or "blacklist" in path, modprobe),
    (lambda path, text: "POWER_MODEL" in text and "PARAM" in text, nvpmodel),
    (lambda path, text: path.endswith(".sh") or text.startswith("#!"), lambda text: Shell(text).pairs),
)


def pairs(path, text):
    """Pairs by line, or None where no grammar is for the file."""
    for takes, reader in READERS:
        if takes(path, text):
            try:
                return reader(text)
            except (configparser.Error, ValueError):
                return {}
    return None


def of_plan(plan):
    """The pairs of a plan; a thing can have several values, such as a mode's."""
    found = {}
    for s in plan.get("settings", []):
        select, want = s.get("select", {}), s.get("want", "")
        cls, name, attr = (select.get(k, "") for k in ("class", "name", "attr"))
        if "path" in select:
            knob, want = kernel_file(select["path"], want)
        elif cls in ("cpufreq", "devfreq"):
            knob = f"{cls}/{attr}"
        elif cls == "block" and name == "zram0":
            knob = "zram/" + attr
        elif cls == "cmdline":
            knob = "argument/" + name
        elif cls in ("module", "modules"):
            knob = "module/" + name.replace("-", "_")
        else:
            knob = "/".join(p for p in (cls, name, attr.replace("ethtool/", "")) if p)
        found.setdefault(knob, []).append(want)
    for mode in (plan.get("power") or {}).get("modes") or []:
        for p in mode.get("params") or []:
            found.setdefault(f"mode/{mode['name']}/{p['param']}/{p['arg']}", []).append(p["value"])
    return found
