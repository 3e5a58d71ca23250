# SPDX-License-Identifier: Apache-2.0
"""Second readers for prove.py: programs that neither yoctune nor this check has parts of.

Augeas' lenses read sysctl.d, units, timers and modprobe.d; Kconfiglib reads fragments and
oelint-parser configuration files of bitbake. What they find in the lines of a file that the
report calls understood is compared with what they find in the layer that yoctune builds.
"""

import collections
import os
import re
import shutil
import subprocess
import tempfile

import kconfiglib
import oelint_parser.cls_item
import oelint_parser.cls_stash

AUGTOOL = shutil.which("augtool")
LENSES = {"sysctl": "Sysctl", "systemd": "Systemd", "modprobe": "Modprobe"}


def augeas(files):
    """The trees of (kind, text) pairs, each a list of (path, value); None for a text that the lens refuses."""
    with tempfile.TemporaryDirectory() as work:
        script = []
        for i, (kind, text) in enumerate(files):
            with open(os.path.join(work, f"f{i}"), "w") as f:
                f.write(text if text.endswith("\n") else text + "\n")
            script.append(f"transform {LENSES[kind]}.lns incl {work}/f{i}")
        script += [f"load-file {work}/f{i}" for i in range(len(files))] + [f"print /files{work}"]
        done = subprocess.run([AUGTOOL, "--noautoload", "--noload"], input="\n".join(script) + "\n", capture_output=True, text=True, errors="replace", timeout=120)
    trees = [None] * len(files)
    for line in done.stdout.splitlines():
        m = re.match(rf'/files{re.escape(work)}/f(\d+)(?:/((?:\\.|[^=\\])*?))?(?: = "(.*)")?$', line)
        if m:
            i = int(m.group(1))
            trees[i] = trees[i] or []
            if m.group(2) and not m.group(2).startswith("#comment"):
                trees[i].append((re.sub(r"\\(.)", r"\1", m.group(2)), m.group(3) and re.sub(r"\\(.)", r"\1", m.group(3))))
    return trees


def sysctls(tree):
    """{name with dots: value} of a tree of Sysctl.lns."""
    values = {}
    for name, value in tree:
        name = name.lstrip("-").strip()
        if (m := re.search(r"[./]", name)) and m.group() == "/":
            name = name.translate(str.maketrans("/.", "./"))
        values[name] = " ".join((value or "").split())
    return values


def units(tree):
    """{(section, directive): words} of a tree of Systemd.lns; of a command its words and prefixes."""
    words = collections.defaultdict(list)
    for path, value in tree:
        parts = path.split("/", 2)
        if len(parts) < 2 or parts[1].startswith("#comment"):
            continue
        key = (re.sub(r"\[\d+\]$", "", parts[0]), re.sub(r"\[\d+\]$", "", parts[1]))
        words[key] += []
        if value is None:
            continue
        rest = re.sub(r"\[\d+\]", "", parts[2]) if len(parts) > 2 else ""
        name = f"{rest}=" if key[1] == "Environment" else ""
        words[key] += [name + w for w in value.replace('"', "").replace("'", "").split()] or [name]
    return words


def options(text):
    """{CONFIG_NAME: value} of a fragment."""
    with tempfile.TemporaryDirectory() as work:
        for name, content in (("Kconfig", "# no options\n"), ("fragment", text)):
            with open(os.path.join(work, name), "w") as f:
                f.write(content)
        k = kconfiglib.Kconfig(os.path.join(work, "Kconfig"), warn=False)
        k.load_config(os.path.join(work, "fragment"))
        return {f"CONFIG_{name}": value for name, value in k.missing_syms}


def variables(text):
    """{name: value} of plain assignments."""
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "local.conf")
        with open(path, "w") as f:
            f.write(text)
        stash = oelint_parser.cls_stash.Stash(quiet=True)
        stash.AddFile(path)
        stash.Finalize()
        return {v.VarName: " ".join(v.VarValue.strip().strip("\"'").replace("\x1b", " ").split())
                for v in stash.GetItemsFor(classifier=oelint_parser.cls_item.Variable.CLASSIFIER) if not v.SubItem and v.VarOp.strip() in ("=", "?=", "??=", ":=")}
