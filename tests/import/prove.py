#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Imports public layers, builds the result, and compares what takes effect before and after.

    prove.py --yoctune PROGRAM --runtime DIR [--checkouts DIR] -o RECORD.json FOLDER...

Each FOLDER is a checkout; each folder below it with a conf/layer.conf is a layer. A layer is
imported as it is, for a stock machine, and for its own first machine. The lines that the report
calls understood are read again by parsers that are not yoctune's: bitbake's own for variables
(ConfHandler's grammar before, its data store after), the expressions of the kernel's
merge_config.sh for options, the grammars of sysctl.d(5), modules-load.d(5) and
systemd.syntax(7), written here, and those of knobs.py for scripts, tuned profiles, .link files,
udev rules, tmpfiles.d, fstab, modprobe.d and power mode files. The programs of foreign.py read
sysctl.d, units, timers, modprobe.d, fragments and local.conf once more. What such a line sets must be in the layer that yoctune builds.
Adjusted and left lines are named in the report and are only counted.

A line that is not found again is a silent loss. So is a file of the layer that the report does
not name, and a line of a file without a verdict.
"""

import argparse
import collections
import json
import logging
import os
import re
import shlex
import subprocess
import sys
import tempfile
import types

for package, module in (("hashserv", "client"), ("prserv", "serv")):
    try:
        __import__(package)
    except ImportError:  # the wheel has lib/bb alone
        name = f"{package}.{module}"
        sys.modules[package], sys.modules[name] = types.ModuleType(package), types.ModuleType(name)
        setattr(sys.modules[package], module, sys.modules[name])

import bb.data  # noqa: E402
import knobs  # noqa: E402
import bb.parse  # noqa: E402
from bb.parse.parse_py import ConfHandler  # noqa: E402

try:
    import foreign
except ImportError:  # the second readers are not installed
    foreign = None

STOCK = ["--board", "orin-nano-8gb", "--release", "scarthgap"]
MACHINE = "jetson-orin-nano-devkit"

# Files of a kind that are imported by name from one checkout.
MOST = 6
# Runs of the real bitbake, which take the longest.
MOST_BITBAKE = 25

# Scripts that may set what yoctune sets.
TUNES = re.compile(r"/sys/(class|block|devices|module|kernel)|/proc/sys|\b(sysctl -w|ethtool -|nvpmodel|blockdev|cpufreq-set|modprobe|ip link set|mount -t tmpfs)")

# merge_config.sh: SED_CONFIG_EXP1 and SED_CONFIG_EXP2.
SET = re.compile(r"^(CONFIG_[a-zA-Z0-9_]*)=(.*)")
UNSET = re.compile(r"^# (CONFIG_[a-zA-Z0-9_]*) is not set")


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


def kernel_options(text):
    options = {}
    for line in text.splitlines():
        if m := SET.match(line):
            value = m.group(2)
            # Kconfig reads the first letter of a bool and the quoted part of a string.
            value = re.sub(r'^([ymn]|"[^"]*")\s+(#.*)?$', r"\1", value)
            options[m.group(1)] = value
        elif m := UNSET.match(line):
            options[m.group(1)] = "n"
    return options


def sysctls(text):
    values = {}
    for line in text.splitlines():
        line = line.strip()
        if not line or line[0] in "#;" or "=" not in line:
            continue
        key, value = line.split("=", 1)
        key = key.strip().lstrip("-").strip()
        first = re.search(r"[./]", key)
        if first and first.group() == "/":
            key = key.translate(str.maketrans("/.", "./"))
        values[key] = " ".join(value.split())
    return values


def directives(text):
    found, section = collections.defaultdict(list), ""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif line and line[0] not in "#;" and "=" in line:
            key, value = line.split("=", 1)
            found[section, key.strip()].append(value.strip())
    return found


def logical(lines, number):
    """The logical line that starts at a line, joined as ConfHandler.handle does."""
    text = lines[number - 1].strip()
    while text.endswith("\\") and number < len(lines):
        text = text[:-1] + lines[number].rstrip()
        number += 1
    return text


class After:
    """What the layer that yoctune wrote has."""

    def __init__(self, layer, machine):
        self.texts = {}
        for root, _, files in os.walk(layer):
            for name in files:
                if not name.endswith((".gz", ".json", ".md")) and "licenses" not in name and "COPYING" not in name:
                    path = os.path.join(root, name)
                    self.texts[path] = read(path)
        self.options, self.sysctls, self.units, words = {}, {}, {}, set()
        for path, text in self.texts.items():
            name = os.path.basename(path)
            words.update(re.split(r"[\s\"'=,:;]+", text))
            words.update(re.split(r"[\s\"']+", text))
            if name.endswith(".cfg"):
                self.options.update(kernel_options(text))
            elif "sysctl" in name or name == "95-yoctune.conf":
                self.sysctls.update(sysctls(text))
            elif re.search(r"^\[(Service|Timer|Unit)\]", text, re.M) and name.endswith((".service", ".timer", ".conf")):
                self.units[name] = directives(text)
        self.words = words
        self.plan = ""
        for root, _, files in os.walk(layer):
            if "plan.json" in files:
                self.plan = read(os.path.join(root, "plan.json"))
        self.knobs = knobs.of_plan(json.loads(self.plan or "{}"))
        self.d = bb.data.init()
        self.d.setVar("MACHINE", machine)
        self.d.setVar("BBPATH", layer)
        self.d.setVar("OVERRIDES", f"tegra:{machine}:yoctune-on-{machine}")
        folder = os.path.join(layer, "conf", "yoctune")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if name.endswith(".conf"):
                bb.parse.handle(os.path.join(folder, name), self.d, True)

    def value(self, name):
        return self.d.getVar(name) or ""

    def has(self, knob, value):
        """Whether a pair of knobs.py is in force; "" where it is, else what is there."""
        if any(knobs.same(value, v) for v in self.knobs.get(knob, [])):
            return ""
        kind, _, name = knob.partition("/")
        if kind == "module":
            lines = {line.strip().replace("-", "_") for text in self.texts.values() for line in text.splitlines()}
            wanted = f"blacklist {name}" if value == "blacklist" else name
            return "" if wanted in lines or name in self.value("KERNEL_MODULE_AUTOLOAD").replace("-", "_").split() else "no such line"
        if kind == "argument" or knob == "zram/comp_algorithm":
            return "" if (f"{name}={value}" if kind == "argument" and value else value or name) in self.words else "no such word"
        return str(self.knobs.get(knob))


class Referee:
    def __init__(self, options):
        self.options = options
        self.total = collections.Counter()
        self.reasons = collections.Counter()
        self.tried, self.no_result = set(), []
        self.lost, self.refused, self.layers = [], collections.Counter(), []
        self.findings = {}

    def run(self, *args):
        return subprocess.run([self.options.yoctune, *args], capture_output=True, text=True, timeout=self.options.timeout, errors="replace")

    def folder(self, top):
        layers = [root for root, dirs, _ in os.walk(top) if os.path.isfile(os.path.join(root, "conf", "layer.conf"))]
        for layer in sorted(layers) or [top]:
            machines = os.path.join(layer, "conf", "machine")
            own = sorted(n[:-5] for n in os.listdir(machines) if n.endswith(".conf")) if os.path.isdir(machines) else []
            runs = [("as it is", []), ("stock machine", [*STOCK, "--machine", MACHINE]),
                    ("own release", [*STOCK[:2], "--machine", MACHINE])]
            if own:
                runs.append(("own machine " + own[0], STOCK[2:] + ["--machine", own[0]]))
            for label, flags in runs:
                self.layer(top, layer, label, flags)
        tried = collections.Counter()
        for root, _, files in os.walk(top):
            for f in sorted(files):
                path = os.path.join(root, f)
                if not os.path.isfile(path) or os.path.getsize(path) > 1 << 20:
                    continue
                if f.startswith("local.conf") or f == "tuned.conf" or f.endswith((".yml", ".yaml")) and "local_conf_header" in read(path):
                    self.layer(top, path, "a file by name", [*STOCK, "--machine", MACHINE])
                elif f.startswith("nvpmodel") and f.endswith(".conf"):
                    self.layer(top, path, "a file by name", [*STOCK, "--machine", MACHINE])
                    self.layer(top, path, "a file by name, older module", ["--board", "xavier-nx", "--release", "scarthgap-l4t-r35.x"])
                elif f.endswith((".rules", ".link", ".network", ".timer")) or f == "fstab" or re.search(r"/(tmpfiles|modprobe|sysctl)\.d/", path) or f.endswith(".sh") and TUNES.search(read(path)):
                    kind = os.path.splitext(f)[1]
                    tried[kind] += 1
                    if tried[kind] > MOST:
                        self.total["files by name beyond the limit of a checkout"] += 1
                        continue
                    self.layer(top, path, "a file by name", [*STOCK, "--machine", MACHINE])

    def layer(self, top, layer, label, flags):
        with tempfile.TemporaryDirectory() as work:
            config, out = os.path.join(work, "config", "config.cue"), os.path.join(work, "layer")
            os.mkdir(os.path.dirname(config))
            name = os.path.relpath(layer, os.path.dirname(top))
            try:
                done = self.run("import", layer, *flags, "--all", "--format", "json", "-o", config)
                if done.returncode == 2 and label.startswith("own"):  # no board is known for it
                    done = self.run("import", layer, *flags, *STOCK[:2], "--all", "--format", "json", "-o", config)
            except subprocess.TimeoutExpired:
                self.lose(name, label, "import hangs", "")
                return
            if "panic:" in done.stderr or "goroutine " in done.stderr:
                self.lose(name, label, "import panics", done.stderr[-400:])
                return
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            if done.returncode != 0:
                self.total["runs without a result"] += 1
                if label != "as it is" and "nothing to import" not in done.stderr:
                    self.no_result.append({"layer": name, "run": label, "text": (done.stderr.strip().splitlines() or [""])[0]})
                return
            summary = rows[-1]
            self.vet(name, label, layer, rows, config)
            built = self.run("build", config, "-o", out, "--runtime", self.options.runtime)
            if built.returncode != 0:
                self.lose(name, label, "build refuses the configuration", (built.stderr or built.stdout).strip()[:400])
                return
            self.total["runs"] += 1
            self.layers.append(dict(layer=name, run=label, **{k: summary.get(k, 0) for k in ("lines", "understood", "adjusted", "left", "comments", "traps", "skipped")}))
            after = After(out, summary["machine"])
            self.compare(name, label, layer, rows, after)
            if foreign and foreign.AUGTOOL:
                self.compare_again(name, label, rows, after)
            if self.options.checkouts and label == "a file by name" and self.total["runs of bitbake -e, before and after"] < MOST_BITBAKE:
                self.real_bitbake(name, label, layer, rows, out)

    def vet(self, name, label, layer, rows, config):
        """Counts what the rules find: the lines that import left for them, and what vet finds after."""
        for r in rows:
            if r.get("type") != "line":
                continue
            where = f"{os.path.relpath(r['file'], os.path.dirname(layer))}:{r['line']}: {r['text']}"
            for m in re.finditer(r"the checks refuse it: (.*?) \[([A-Za-z0-9-]+)\](?=$|; )", r.get("why") or ""):
                self.found("error", m.group(2), name, label, m.group(1), where)
            for remark in r.get("remarks") or []:
                if m := re.fullmatch(r"(warning|error): (.*) \[([A-Za-z0-9-]+)\]", remark, re.S):
                    self.found(m.group(1), m.group(3), name, label, m.group(2), where)
        done = self.run("vet", os.path.dirname(config), "--format", "json")
        for line in done.stdout.splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            if row.get("severity") == "error" or row.get("type") == "diagnostic" and row.get("severity") == "warning":
                self.found(row["severity"], row.get("id", ""), name, label, row.get("message", ""), "the imported configuration")

    def found(self, severity, rule, layer, run, message, where):
        self.findings.setdefault((severity, rule, message), []).append({"layer": layer, "run": run, "where": where})

    def alarms(self):
        """The findings by rule: how many, in how many layers, and each message with one place."""
        rules = {}
        for (severity, rule, message), places in sorted(self.findings.items()):
            of = rules.setdefault(f"{severity} {rule}", {"findings": 0, "layers": set(), "messages": []})
            of["findings"] += len(places)
            of["layers"] |= {p["layer"] for p in places}
            of["messages"].append({"message": message, "layers": len({p["layer"] for p in places}), "first": places[0]})
        for of in rules.values():
            of["layers"] = len(of["layers"])
        return rules

    def real_bitbake(self, name, label, path, rows, layer):
        """The lines that set build, and the layer, each before the release's own bitbake."""
        source = read(path).split("\n")
        lines = [logical(source, r["line"]).strip() for r in rows
                 if r.get("verdict") == "understood" and (r.get("path") or "").startswith("build.") and not r["path"].startswith("build.kas")
                 and not (r.get("why") or "").startswith("continues")]
        lines = [line for line in lines if ConfHandler.__config_regexp__.match(line) and not re.match(r"\w+_(append|prepend|remove)\b|\w+_(append|prepend|remove)_", line)]  # scarthgap refuses the older syntax
        if not lines or tuple(lines) in self.tried:
            return
        self.tried.add(tuple(lines))
        conf = os.path.join(layer, "conf", "yoctune")
        require = [f"require {os.path.join(conf, f)}" for f in os.listdir(conf) if f.endswith(".conf")]
        before, after = self.bitbake_env(lines, None), self.bitbake_env(require, layer)
        if before is None or after is None:
            self.lose(name, label, "bitbake refuses", " ".join(lines))
            return
        self.total["runs of bitbake -e, before and after"] += 1
        for line in lines:
            m = ConfHandler.__config_regexp__.match(line)
            var = m.group("var").split(":")[0]
            old, new = before.get(var, ""), after.get(var, "")
            if var.endswith("MIRRORS"):  # bitbake reads "\\n" as a blank there
                old, new = old.replace("\\n", " "), new.replace("\\n", " ")
            same = old.split() == new.split() or var == "BB_DISKMON_DIRS" and monitors(old) == monitors(new) or {w for w in m.group("value").split() if w in old.split()} <= set(new.split())
            self.total["variables equal in bitbake -e"] += same
            if not same:
                self.lose(name, label, f"bitbake -e: {var} is {new!r}, not {old!r}", line)

    def bitbake_env(self, lines, layer):
        src = self.options.checkouts
        with tempfile.TemporaryDirectory() as work:
            os.mkdir(os.path.join(work, "conf"))
            layers = [os.path.join(src, "openembedded-core", "meta"), os.path.join(src, "meta-tegra")]
            if layer:
                subprocess.run(["cp", "-r", layer, os.path.join(work, "layer")], check=True)
                lines = [line.replace(layer, os.path.join(work, "layer")) for line in lines]
                layers.append(os.path.join(work, "layer"))
            sample = read(os.path.join(src, "openembedded-core", "meta", "conf", "sanity.conf"))
            version = re.search(r'^LOCALCONF_VERSION\s*\??=\s*"(\d+)"', sample, re.M)
            with open(os.path.join(work, "conf", "bblayers.conf"), "w") as f:
                f.write(f'BBPATH = "{work}"\nBBFILES ?= ""\nBBLAYERS = "{" ".join(layers)}"\n')
            with open(os.path.join(work, "conf", "local.conf"), "w") as f:
                f.write(f'MACHINE = "{MACHINE}"\nDISTRO = "nodistro"\nBB_NO_NETWORK ?= "1"\nCONNECTIVITY_CHECK_URIS = ""\n')
                f.write(f'CONF_VERSION = "{version.group(1) if version else 2}"\n' + "\n".join(lines) + "\n")
            subprocess.run(["chmod", "-R", "a+rX", work], check=True)
            command = [os.path.join(src, "bitbake", "bin", "bitbake"), "-e"]
            if os.geteuid() == 0:  # bitbake refuses root
                subprocess.run(["chown", "-R", "nobody", work], check=True)
                command = ["runuser", "-u", "nobody", "--", *command]
            path = f"{src}/bitbake/bin:{src}/openembedded-core/scripts:{os.environ['PATH']}"
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, errors="replace", timeout=600,
                                  env={"PATH": path, "HOME": work, "LANG": "en_US.UTF-8", "BBPATH": work, "BUILDDIR": work, "PYTHONDONTWRITEBYTECODE": "1"})
            if done.returncode != 0:
                print(done.stdout[-1500:], done.stderr[-500:], file=sys.stderr)
                return None
            return dict(re.findall(r'^([A-Z][A-Z0-9_]*)="(.*)"$', done.stdout, re.M))

    def lose(self, layer, run, what, text):
        self.lost.append({"layer": layer, "run": run, "what": what, "text": text})

    def compare(self, name, label, layer, rows, after):
        lines = [r for r in rows if r.get("type") == "line"]
        named = {os.path.realpath(r["file"]) for r in rows if r.get("file")}
        named_as = {os.path.abspath(r["file"]) for r in rows if r.get("file")}
        for root, dirs, files in os.walk(layer):
            dirs[:] = [d for d in dirs if d not in (".git", ".repo", "cue.mod")]
            for f in files:
                path = os.path.join(root, f)
                if os.path.abspath(path) not in named_as and os.path.realpath(path) not in named and os.path.getsize(path) if os.path.exists(path) else False:
                    self.lose(name, label, "a file that the report does not name", os.path.relpath(path, layer))
        by_file = collections.defaultdict(list)
        for r in lines:
            by_file[r["file"]].append(r)
        for path, of in by_file.items():
            text = read(path) if os.path.isfile(path) else ""
            source = text.replace("\r\n", "\n").split("\n")
            numbers = [r["line"] for r in of]
            if len(numbers) > 1 and len(set(numbers)) != len(numbers):
                self.lose(name, label, "a line with two verdicts", path)
            for r in of:
                self.total[r["verdict"]] += 1
                if r["verdict"] == "left":
                    self.refused[reason(r.get("why", ""))] += 1
                if r["verdict"] != "understood":
                    continue
                if not r.get("path"):
                    self.reasons[reason(r.get("why", ""))] += 1
                    continue
                what = self.check(r, source, after)
                if what == "not compared":
                    self.total["understood, not compared"] += 1
                elif what:
                    self.lose(name, label, what, f"{os.path.relpath(path, layer)}:{r['line']}: {r['text']} -> {r['path']}")
                else:
                    self.total["understood, the same after"] += 1

    def compare_again(self, name, label, rows, after):
        """Compares with the readers of foreign.py: of each file the understood lines, and the layer."""
        by_file = collections.defaultdict(list)
        for r in rows:
            if r.get("type") == "line":
                by_file[r["file"]].append(r)
        todo = []  # kind, file, text
        for path, of in by_file.items():
            if not os.path.isfile(path):
                continue
            source = read(path).lstrip("\ufeff").replace("\r\n", "\n").split("\n")
            for kind, prefix in (("sysctl", "sysctl."), ("systemd", "services."), ("modprobe", "modules."), ("options", "kernel.config."), ("variables", "build.")):
                if not fits(kind, path):
                    continue
                lines = [source[r["line"] - 1] for r in of if r["line"] <= len(source) and (
                    r["verdict"] == "understood" and ((r.get("path") or "").startswith(prefix) or "continues line" in (r.get("why") or "")) or kind == "systemd" and r["text"].startswith("["))]
                if any("=" in line or kind in ("modprobe", "options") and line for line in lines):
                    todo.append((kind, path, "\n".join(lines) + "\n"))
        if not todo:
            return
        layer = [("sysctl", f, text) for f, text in after.texts.items() if f.endswith(".conf") and "sysctl" in f or f.endswith("95-yoctune.conf")]
        layer += [("systemd", f, text) for f, text in after.texts.items() if re.search(r"^\[(Service|Timer|Unit)\]", text, re.M) and f.endswith((".service", ".timer", ".conf"))]
        layer += [("modprobe", f, text) for f, text in after.texts.items() if "modprobe" in f]
        texts = [t for t in todo + layer if t[0] in foreign.LENSES]
        trees = dict(zip([t[:2] for t in texts], foreign.augeas([(kind, text) for kind, _, text in texts])))
        have = {"sysctl": {}, "options": {}, "variables": {}, "modprobe": set()}
        for f, text in after.texts.items():
            if f.endswith(".cfg"):
                have["options"].update(foreign.options(text))
            elif "/conf/yoctune/" in f and f.endswith(".conf"):
                have["variables"].update(foreign.variables(text))
        units = collections.defaultdict(list)
        for kind, f, _ in layer:
            tree = trees.get((kind, f))
            if tree is None:
                self.total["files of layers that the second reader refuses"] += 1
            elif kind == "sysctl":
                have["sysctl"].update(foreign.sysctls(tree))
            elif kind == "modprobe":
                have["modprobe"] |= {v.replace("-", "_") for k, v in tree if k.startswith("blacklist")}
            else:
                units[os.path.basename(f)].append(foreign.units(tree))
        for kind, path, text in todo:
            tree = trees.get((kind, path))
            if kind in foreign.LENSES and tree is None:
                self.total["files that the second reader refuses"] += 1
                continue
            if kind == "systemd":
                folder, base = os.path.basename(os.path.dirname(path)), os.path.basename(path)
                stem = os.path.splitext(folder[:-2] if folder.endswith(".d") else base)[0]
                found = [u for n, us in units.items() if n.startswith(stem) for u in us]
                pairs = {f"{section}.{key}": ((section, key), words) for (section, key), words in foreign.units(tree).items()}
                missing = {name: words for name, (key, words) in pairs.items() if not same_words(key, words, found)}
            elif kind == "modprobe":
                pairs = {v.replace("-", "_"): "" for k, v in tree if k.startswith("blacklist")}
                missing = {m: "" for m in pairs if m not in have[kind]}
            else:
                pairs = foreign.sysctls(tree) if kind == "sysctl" else foreign.options(text) if kind == "options" else foreign.variables(text)
                if kind == "variables":  # fields write other variables too, which the first reader compares
                    pairs = {k: v for k, v in pairs.items() if k in have[kind] and k not in ("BB_DISKMON_DIRS", "PACKAGE_CLASSES", "PREMIRRORS", "SSTATE_MIRRORS")}
                missing = {k: v for k, v in pairs.items() if not same_value(have[kind].get(k), v)}
            self.total[f"pairs the same to the second reader, {kind}"] += len(pairs) - len(missing)
            for k, v in missing.items():
                self.lose(name, label, f"the second reader: {k} is {have.get(kind, {}).get(k) if kind != 'modprobe' else 'missing'}, not {v!r}", path)

    def check(self, r, source, after):
        """Why the effect of a line is not in the layer; "" where it is."""
        base, ext = os.path.basename(r["file"]), os.path.splitext(r["file"])[1]
        paths = r["path"]
        if (r.get("why") or "").startswith("continues line"):
            return "not compared"  # the first line stands for it
        if paths.startswith("kernel.config.") and ext not in (".yml", ".yaml"):
            for option, value in kernel_options(source[r["line"] - 1]).items():
                if after.options.get(option) != value:
                    return f"option {option} is {after.options.get(option)}, not {value}"
            return ""
        if paths.startswith("sysctl.") and "," not in paths and ext == ".conf" and base != "tuned.conf":
            for key, value in sysctls(source[r["line"] - 1]).items():
                if after.sysctls.get(key) != value:
                    return f"sysctl {key} is {after.sysctls.get(key)}, not {value}"
            return ""
        if paths.startswith("services.") and ext not in (".sh",):
            return self.check_unit(r, source, base, after)
        found = knobs.pairs(r["file"], "\n".join(source))
        if found is not None:
            return self.check_pairs(r, found.get(r["line"], []), after)
        if ext in (".conf", ".bb", ".bbappend", ".inc", ".sample", ".append", ".yml", ".yaml"):
            m = ConfHandler.__config_regexp__.match(logical(source, r["line"]))
            if m:
                return self.check_variable(m.group("var"), m.group("value"), paths, after)
        if ext == ".conf" and paths.startswith("modules."):
            word = source[r["line"] - 1].split()[-1]
            return "" if word in after.words else f"module {word} is not in the layer"
        return "not compared"

    def check_pairs(self, r, found, after):
        if not found:
            return "not compared"
        for knob, value in found:
            if knob.startswith("mode/"):  # import can rename a mode, and names it
                if not (m := re.match(r'power\.modes\."?([^".]+)"?\.', r["path"])):
                    return "not compared"
                knob = "/".join(["mode", m.group(1), *knob.split("/")[2:]])
                if re.search(r"/CPU_(?!ONLINE)\w+/M", knob):  # other modules name their clusters otherwise
                    arg = knob.rsplit("/", 1)[1]
                    like = [k for k in after.knobs if re.fullmatch(rf"mode/{re.escape(m.group(1))}/CPU_(?!ONLINE)\w+/{arg}", k)]
                    knob = next((k for k in like if not after.has(k, value)), knob)
            if got := after.has(knob, value):
                return f"{knob} is {got}, not {value!r}"
            self.total["pairs of kernel files, arguments and modules the same after"] += 1
        return ""

    def check_variable(self, var, value, paths, after):
        if paths.startswith(("packages.", "modules.", "kernel.args.", "build.image.", "build.rmWork", "build.downloads.hosts")):
            for word in value.split():
                plain = word.strip("\"'")
                if plain not in after.words and plain not in after.plan and plain not in ("rm_work", "read-only-rootfs"):
                    return f"{word} of {var} is not in the layer"
            if "rm_work" in value.split():
                if ":remove" in var or "_remove" in var:
                    return "" if 'INHERIT:remove = "rm_work"' in " ".join(after.texts.values()) else "rm_work is not removed"
                if "rm_work" not in after.value("INHERIT"):
                    return "rm_work is not inherited"
            return ""
        if paths.startswith("build.kas."):
            return ""
        if paths.startswith(("build.sstate.mirrors", "build.downloads.mirrors")):
            for url in re.findall(r"[a-z0-9+]+://[^\s;\"\\*]+", value):
                if url.replace("PATH", "").rstrip("/") not in " ".join(after.texts.values()):
                    return f"{url} of {var} is not in the layer"
            return ""
        if paths.startswith("build.parallel.recipes."):
            m = re.search(r"-j\s*(\d+)", value)
            recipe = paths.split(".", 3)[3].strip('"')
            got = after.value(f"PARALLEL_MAKE:pn-{recipe}")
            return "" if m and m.group(1) in got.split() + got.replace("-j", "").split() else f"PARALLEL_MAKE of {recipe} is {got!r}"
        if paths.startswith("power.") or paths.startswith("kernel.preempt"):
            return "not compared"
        plain, *overrides = re.sub(r"_(append|prepend|remove)(?:_|$)", r":\1:", var).rstrip(":").split(":")
        if set(overrides) & {"append", "remove"}:
            name = ":".join([plain, *sorted(overrides, key=lambda o: o.startswith("pn-"))])
            words = {w for text in after.texts.values() for v, value in re.findall(r'^([A-Z_]+(?::[a-z0-9+.-]+)+)\s*=\s*"([^"]*)"', text, re.M) if v == name for w in value.split()}
            missing = [w for w in value.split() if w not in words and w not in ("systemd", "usrmerge")]
            return f"{name} lacks {missing}" if missing else ""
        if plain == "BB_DISKMON_DIRS":
            return "" if monitors(after.value(plain)) == monitors(value) else f"{plain} is {after.value(plain)!r}, not {value!r}"
        got = after.d.getVar(plain, "${" not in value) if "[" not in var else after.d.getVarFlag("do_fetch", "number_threads")
        want = value.strip()
        if plain == "do_fetch":
            got = after.d.getVarFlag("do_fetch", "number_threads")
        normal = lambda s: re.sub(r"-j\s+", "-j", " ".join((s or "").split())).rstrip("/")  # bitbake keeps the blanks of continued lines
        if plain == "PACKAGE_CLASSES":
            return "" if want.split()[0] in (got or "").split() else f"{plain} is {got!r}, not {want!r}"
        return "" if normal(got) == normal(want) else f"{plain} is {got!r}, not {want!r}"

    def check_unit(self, r, source, base, after):
        folder = os.path.basename(os.path.dirname(r["file"]))
        unit = folder[:-2] if folder.endswith((".service.d", ".timer.d")) else base
        have = [d for n, d in after.units.items() if n.startswith(os.path.splitext(unit)[0])]
        section = ""
        for line in source[: r["line"]]:
            if line.strip().startswith("["):
                section = line.strip().strip("[]")
        text = re.sub(r"\s*\\$", "", logical(source, r["line"]))
        if "=" not in text:
            return "not compared"
        key, value = (part.strip() for part in text.split("=", 1))
        section, key = {"MemoryLimit": (section, "MemoryMax")}.get(key, (section, key))
        got = [v for d in have for v in d.get((section, key), [])]
        flat = " ".join(got).replace('"', "").replace("'", "")
        if (key, value) in (("Restart", "no"), ("Type", "simple"), ("Nice", "0")) and not got:
            return ""  # systemd's default
        if any(plain_value(value) == plain_value(g) for g in got):
            return ""
        for word in value.replace('"', "").replace("'", "").split():
            if word not in flat and not (word.lower() in ("yes", "true", "on", "1") and any(w in flat for w in ("true", "yes"))):
                return f"{section}.{key} of {unit} is {got}, not {value!r}"
        return "" if have else f"{unit} is not in the layer"


def fits(kind, path):
    """Whether a file has the format of a second reader."""
    base, ext = os.path.basename(path), os.path.splitext(path)[1]
    return {"sysctl": ext == ".conf" and base != "tuned.conf", "systemd": ext in (".service", ".timer") or ext == ".conf" and os.path.basename(os.path.dirname(path)).endswith((".service.d", ".timer.d")),
            "modprobe": "modprobe" in path or "blacklist" in base, "options": ext in (".cfg", ".fragment", ".config") or base.endswith("defconfig"),
            "variables": "local.conf" in base}[kind]


def same_value(have, want):
    """Whether two values are the same, a bool by its first letter and -j with or without a blank."""
    if have is None:
        return want == "n"
    have, want = re.sub(r"-j\s+", "-j", have), re.sub(r"-j\s+", "-j", want)
    return have == want or have.rstrip("/") == want.rstrip("/") or re.fullmatch(r"[ymn]\s.*", want) and have == want[0]


def same_words(key, words, found):
    """Whether one of the units has the words of a directive."""
    if (key[1], words) in (("Restart", ["no"]), ("Type", ["simple"]), ("Nice", ["0"])) and not any(u.get(key) for u in found):
        return True
    truth = {"yes": "true", "1": "true", "on": "true", "no": "false", "0": "false", "off": "false"}
    normal = lambda ws: [truth.get(w.lower(), w) for w in ws]
    key = {"MemoryLimit": (key[0], "MemoryMax")}.get(key[1], key)
    for u in found:
        have = u.get(key, [])
        if plain_value(" ".join(words)) == plain_value(" ".join(have)) or set(normal(words)) <= set(normal(have)):
            return True
        if all(any(plain_value(w) == plain_value(h) for h in have) for w in words):
            return True
    return False


def monitors(text):
    """BB_DISKMON_DIRS with numbers written out, as bitbake's monitordisk.py reads them; folders of a build by their names."""
    found = set()
    for word in text.split():
        action, folder, *limits = word.split(",")
        numbers = [str(int(m.group(1)) << 10 * " KMG".index(m.group(2).upper() or " ")) if (m := re.fullmatch(r"(\d+)([kKmMgG]?)", n)) else n for n in limits]
        found.add((action, re.sub(r"^/tmp/tmp\w+", "", folder), *numbers))
    return found


def plain_value(text):
    """A directive's value in one notation: bytes, seconds, and words without quotes."""
    if m := re.fullmatch(r"(\d+)([KMGT])", text):
        return str(float(int(m.group(1)) << 10 * (1 + "KMGT".index(m.group(2)))))
    units = {"ms": 0.001, "": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hr": 3600, "d": 86400}
    spans = re.findall(r"(\d+)\s*([a-z]*)", text)
    if spans and re.fullmatch(r"(\d+\s*[a-z]*\s*)+", text) and all(u in units for _, u in spans):
        return str(float(sum(int(n) * units[u] for n, u in spans)))
    try:
        return " ".join(shlex.split(text))
    except ValueError:
        return text


def reason(why):
    """A reason without names and numbers."""
    why = why.split("; ")[0]
    why = re.sub(r"\S*[/._]\S*|\b[A-Z][A-Z0-9_:]{2,}\S*|\d+|\"[^\"]*\"", "*", why)
    return re.sub(r"\s+", " ", why)[:110]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--yoctune", required=True)
    p.add_argument("--runtime", required=True)
    p.add_argument("--timeout", type=int, default=120)
    p.add_argument("--checkouts", help="folder with bitbake, openembedded-core and meta-tegra of scarthgap: bitbake -e, before and after")
    p.add_argument("--commits", help="file with FOLDER COMMIT lines")
    p.add_argument("-o", "--output", required=True)
    p.add_argument("--alarms", help="file for what the rules find in these layers, each with the line it is about")
    p.add_argument("folders", nargs="+")
    options = p.parse_args()
    logging.getLogger("BitBake").setLevel(logging.CRITICAL)
    referee = Referee(options)
    for folder in options.folders:
        referee.folder(folder.rstrip("/"))
        print(os.path.basename(folder.rstrip("/")), len(referee.lost), file=sys.stderr)
        write(options, referee)
    print(json.dumps({"layers": len({row["layer"] for row in referee.layers}), "lost silently": len(referee.lost), **dict(sorted(referee.total.items()))}))
    return 1 if referee.lost else 0


def write(options, referee):
    """The record, also of a run that is broken off."""
    commits = {}
    if options.commits:
        for line in read(options.commits).splitlines():
            folder, commit = line.split()
            if any(os.path.basename(f.rstrip("/")) == folder for f in options.folders):
                commits[folder.replace("+", "/", 1)] = commit
    record = {
        "real": "bitbake's ConfHandler and data store; import and build of the program" + ("; Augeas, Kconfiglib and oelint-parser as second readers" if foreign and foreign.AUGTOOL else "") + ("; bitbake -e of scarthgap with openembedded-core and meta-tegra" if options.checkouts else ""),
        "stand-in": "the grammars of merge_config.sh, sysctl.d(5), modules-load.d(5), systemd.syntax(7), sh (words, variables, loops over words), tuned.conf, systemd.link(5), udev(7), tmpfiles.d(5), fstab(5), modprobe.d(5) and nvpmodel.conf, written for this check; a stock Jetson machine for layers of other boards",
        "sources": commits,
        "layers": len({row["layer"] for row in referee.layers}),
        "totals": dict(sorted(referee.total.items())),
        "lost silently": referee.lost,
        "import refuses": referee.no_result,
        "left, by reason": dict(referee.refused.most_common(60)),
        "understood without a setting, by reason": dict(referee.reasons.most_common(60)),
        "runs": referee.layers,
    }
    with open(options.output, "w") as f:
        json.dump(record, f, indent=1, ensure_ascii=False)
        f.write("\n")
    if options.alarms:
        with open(options.alarms, "w") as f:
            json.dump(referee.alarms(), f, indent=1, ensure_ascii=False)
            f.write("\n")


if __name__ == "__main__":
    sys.exit(main())
