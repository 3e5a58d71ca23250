#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what `yoctune vet` says about the names that public layers use.

    alarms.py --yoctune PROGRAM --board-file FILE [--layers DIR] [--tegra CLONE --core CLONE] -o RECORD.json

Three kinds of configurations are written, in batches of one kind of name, and vetted:

* layers: the packages, bitbake variables, recipes, modules, kernel arguments, kernel options and
  sysctls of each folder below --layers, for a Jetson and the release that the layers of the
  folder name in LAYERSERIES_COMPAT, and for a board file with a kernel that is not NVIDIA's;
* machines: each machine of meta-tegra at the commits of `yoctune facts list`, with the variables
  of conf/machine/MACHINE.conf and what it requires, as bitbake's own parser reads them;
* core: the same for openembedded-core's machines, with the board file.

Names come from the files by bitbake's ConfHandler grammar, which is not yoctune's. A finding
about where a line stands (in the settings of a layer, instead of a machine or a recipe) follows
from the move, and is counted apart.
"""

import argparse
import collections
import json
import logging
import os
import re
import subprocess
import sys
import tempfile

from prove import kernel_options, logical, read, sysctls
from realconf import RealConf, judge

import bb.data
import bb.parse
from bb.parse.parse_py import ConfHandler

PACKAGES = re.compile(r"^(IMAGE_INSTALL|CORE_IMAGE_\w*INSTALL|PACKAGE_INSTALL|MACHINE_\w*R(DEPENDS|RECOMMENDS)|R(DEPENDS|RECOMMENDS))$")
MODULES = re.compile(r"^KERNEL_MODULE_(AUTOLOAD|PROBECONF)$")
ARGS = re.compile(r"^(KERNEL_ARGS\w*|UBOOT_EXTLINUX_KERNEL_ARGS|KERNEL_ROOTSPEC|APPEND|CMDLINE\w*|QB_KERNEL_CMDLINE_APPEND|SYSLINUX_OPTS|GRUB_OPTS|LINUX_KERNEL_ARGS)$")
# What is wrong with these is the place of the line, or that a field has it.
PLACE = {"build-variable-field", "build-variable-reserved", "build-variable-recipe", "build-variable-machine", "build-variable-lost", "build-variable-list", "build-variable-cuda"}
KCONFIG = {"kconfig-lost", "kconfig-changed"}
PLAIN = re.compile(r"[a-z0-9][a-z0-9+.\-]*\Z")


class Vet:
    def __init__(self, options):
        self.options = options
        # By version: the kernel's own Kconfig, where its source is given.
        self.kernels = {}
        for text in options.kernel:
            version, _, folder = text.partition("=")
            folder, _, defconfig = folder.partition(":")
            self.kernels[version] = RealConf(folder, defconfig or "defconfig")
        self.judged = {"agrees": collections.Counter(), "disputed": [], "no source of the kernel": collections.Counter()}
        self.findings, self.names, self.batches, self.unread = {}, collections.Counter(), 0, []

    def vet(self, source, target, names, build=None, boards=None):
        """names are the settings of the target."""
        config = {"layer": {"name": "alarms", "maintainer": "A <a@example.com>", "description": "names of others", "priority": 50},
                  "targets": {"t": {**target, **names}}}
        config.update({k: v for k, v in (("build", build), ("boards", boards)) if v})
        with tempfile.TemporaryDirectory() as folder:
            if boards:
                with open(os.path.join(folder, "board.json"), "w") as f:
                    f.write(read(self.options.board_file))
            with open(os.path.join(folder, "config.cue"), "w") as f:
                f.write('package alarms\n\nimport "github.com/yoctune/yoctune/schema"\n\nschema.#Config & ' + json.dumps(config, indent=1) + "\n")
            done = subprocess.run([self.options.yoctune, "vet", folder, "--format", "json"], capture_output=True, text=True, errors="replace", timeout=300)
        self.batches += 1
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        # A value that the language refuses hides the rest: it is taken out, and the rest is tried.
        wrong = [r for r in rows if r.get("id", "").startswith("YT")]
        for r in wrong:
            if r["severity"] == "error" and self.drop(r.get("path", ""), names, build, source, r):
                return self.vet(source, target, names, build, boards)
        lost = []
        for r in rows:
            if r.get("type") == "diagnostic" and r["severity"] != "info":
                key = r["severity"], r["id"], r["message"]
                if r["severity"] == "error" and r["id"] in KCONFIG:
                    lost.append(r)
                self.findings.setdefault(key, []).append({"in": source, "for": f"{target['release']}/{target.get('machine', target['board'])}", "at": r.get("path", ""), "help": r.get("help", "")})
        self.judge(source, target, names, lost)
        return rows

    def judge(self, source, target, names, lost):
        """Lets the kernel's own Kconfig judge what the rules claim about options."""
        version = self.options.versions.get(target["release"], "")
        if version not in self.kernels:
            self.judged["no source of the kernel"][version] += len(lost)
            return
        for symbol, wanted, got, agrees in judge(self.kernels[version], names["kernel"]["config"], lost) if lost else ():
            if agrees:
                self.judged["agrees"][version] += 1
            else:
                self.judged["disputed"].append(f"{source}, {version}: {symbol}={wanted} is {got}")

    def drop(self, path, names, build, source, r):
        parts = [p.strip('"') for p in re.findall(r'"[^"]*"|[^.]+', path)]
        temporary = {"t": names}
        node = top = {"build": build, "targets": temporary}
        while len(parts) > 1 and isinstance(node, dict) and parts[0] in node and isinstance(node[parts[0]], dict) and parts[1] in node[parts[0]]:
            node = node[parts[0]]
            parts = parts[1:]
        if isinstance(node, dict) and parts[0] in node and all(node is not n for n in (names, temporary, top)):
            del node[parts[0]]
            self.unread.append(f"{source}: {path}: {r['message']}")
            return True
        return False


def assignments(path):
    """Variable and value of each assignment of a file, as ConfHandler's grammar reads it."""
    lines = read(path).split("\n")
    number = 0
    while number < len(lines):
        text = logical(lines, number + 1)
        used = 1
        while number + used - 1 < len(lines) - 1 and lines[number + used - 1].rstrip().endswith("\\"):
            used += 1
        number += used
        if text.startswith("#"):
            continue
        if m := ConfHandler.__config_regexp__.match(text.strip()):
            yield m.group("var"), m.group("value"), m.group("flag")


def words(value):
    value = re.sub(r"\$\{@.*?\}|\([^)]*\)", " ", value)
    return [w for w in value.split() if "$" not in w and "{" not in w and "}" not in w]


def harvest(folder):
    found = collections.defaultdict(dict)
    series = collections.Counter()
    for root, dirs, files in os.walk(folder):
        dirs[:] = sorted(d for d in dirs if d not in (".git", "tests", "lib"))
        for name in sorted(files):
            path = os.path.join(root, name)
            if not os.path.isfile(path) or os.path.getsize(path) > 1 << 20:
                continue
            if name.endswith((".bb", ".bbappend", ".inc", ".bbclass")) or name.endswith(".conf") and "/conf/" in path or name.startswith("local.conf"):
                conf = "/conf/" in path and "/conf/machine/" not in path and not name.endswith((".bbclass", ".bb")) or name.startswith("local.conf")
                for var, value, flag in assignments(path):
                    plain = var.split(":")[0].split("_append")[0].split("_${")[0]
                    if plain == "LAYERSERIES_COMPAT":
                        continue
                    if var.startswith("LAYERSERIES_COMPAT"):
                        series.update(value.split())
                        continue
                    base = re.sub(r"_(append|prepend|remove|class|pn|\$|[a-z]).*", "", plain)
                    if PACKAGES.match(base):
                        for w in words(value):
                            if PLAIN.match(w) and not w.endswith("-native") and len(w) < 80 and len(w) > 1:
                                found["packages"][w] = "install"
                    elif MODULES.match(base):
                        for w in words(value):
                            if re.fullmatch(r"[A-Za-z0-9_\-]+", w):
                                found["modules"][w] = "load"
                    elif ARGS.match(base):
                        for w in words(value):
                            key, eq, v = w.partition("=")
                            if re.fullmatch(r"[A-Za-z0-9_.\-]+", key):
                                found["args"][key] = v.strip('"') if eq else True
                    elif conf and not flag and re.fullmatch(r"[A-Z][A-Z0-9_]*", base) and base == plain:
                        found["variables"].setdefault(base, value)
                if name.endswith(".bbappend"):
                    found["recipes"][re.split(r"_|%|\.bbappend", name)[0]] = 2
            elif name.endswith(".cfg") and ("linux" in path or "kernel" in path) and not re.search(r"u-boot|busybox|xen", path):
                found["options"].update({k[7:]: v for k, v in kernel_options(read(path)).items()})
            elif name.endswith(".conf") and "sysctl" in path:
                found["sysctls"].update({k: v for k, v in sysctls(read(path)).items() if re.fullmatch(r"[a-z0-9_.\-/]+", k)})
            elif name.endswith(".conf") and "modules-load" in path:
                for line in read(path).splitlines():
                    if re.fullmatch(r"[A-Za-z0-9_\-]+", line.strip()):
                        found["modules"][line.strip()] = "load"
    return found, series


def settings(found):
    """The settings of a target for each kind of name."""
    value = lambda v: v.strip('"') if isinstance(v, str) else v
    yield "packages", {"packages": found["packages"]}
    # Together: a sysctl can need a module, and a module an option.
    yield "kernel", {
        "modules": found["modules"],
        "kernel": {"args": found["args"], "config": {k: value(v.rstrip()) for k, v in found["options"].items()}},
        "sysctl": {k: int(v) if re.fullmatch(r"-?\d{1,15}", v) else v for k, v in found["sysctls"].items()},
    }


KINDS = {"packages": "packages", "modules": "modules", "args": "kernel arguments", "options": "kernel options",
         "sysctls": "sysctls", "variables": "bitbake variables", "recipes": "recipes"}


def tally(vet, found, of):
    for key, kind in KINDS.items():
        vet.names[f"{kind} of {of}"] += len(found[key])


def layers(vet, releases):
    for name in sorted(os.listdir(vet.options.layers)):
        folder = os.path.join(vet.options.layers, name)
        if not os.path.isdir(folder):
            continue
        found, series = harvest(folder)
        own = [r for r in releases if r in series] or ["scarthgap"]
        release = own[0] if "scarthgap" not in own else "scarthgap"
        jetson = {"board": "orin-nano-8gb", "release": release}
        if release.endswith("r32.7.x"):
            jetson["board"] = "xavier-nx"
        other = {"board": "virt", "release": "wrynose", "machine": "qemuarm64"}
        boards = {"virt": {"facts": "./board.json", "description": "virtual machine", "machines": {"wrynose": ["qemuarm64"]}}}
        tally(vet, found, "layers")
        for _, of in settings(found):
            vet.vet(name, jetson, of)
            kernel = {**of.get("kernel", {}), "recipe": "linux-vendor", "version": "6.18"}
            vet.vet(name, other, {**of, "kernel": kernel}, boards=boards)
        for key in ("variables", "recipes"):
            if found[key]:
                build = {"parallel": {"recipes": found[key]}} if key == "recipes" else {"variables": {k: {"value": v} for k, v in found[key].items()}}
                vet.vet(name, jetson, {}, build=build)
        print(name, release, {k: len(v) for k, v in found.items()}, file=sys.stderr)


def machine_names(layers, machine):
    """What the configuration of a machine sets: variable to value, as bitbake reads it."""
    d = bb.data.init()
    d.setVar("MACHINE", machine)
    d.setVar("BBPATH", ":".join(layers))
    d.setVar("OVERRIDES", f"{machine}")
    before = set(d.keys())
    bb.parse.handle(f"conf/machine/{machine}.conf", d, True)
    found = collections.defaultdict(dict)
    for var in set(d.keys()) - before:
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", var):
            continue
        try:
            value = d.getVar(var) or ""
        except Exception:  # it calls a function of a class that is not inherited here
            value = d.getVar(var, False) or ""
        found["variables"][var] = " ".join(value.split())
        if PACKAGES.match(var):
            found["packages"].update({w: "install" for w in words(value) if PLAIN.match(w)})
        elif MODULES.match(var):
            found["modules"].update({w: "load" for w in words(value)})
        elif ARGS.match(var):
            for w in words(value):
                key, eq, v = w.partition("=")
                found["args"][key] = v if eq else True
    return found


def checkout(clone, commit, folder):
    os.mkdir(folder)
    tar = subprocess.run(["git", "-C", clone, "archive", commit, "conf"], capture_output=True)
    if tar.returncode != 0:
        tar = subprocess.run(["git", "-C", clone, "archive", commit, "meta/conf", "meta/lib"], check=True, capture_output=True)
    subprocess.run(["tar", "x", "-C", folder], input=tar.stdout, check=True)


def machines(vet, facts):
    for release, text in facts["releases"].items():
        # The older L4T branches have the openembedded-core of their series.
        of_core = "-l4t-" not in release
        commits = dict(re.findall(r"(meta-tegra|oe-core|bitbake) ([0-9a-f]+)", text))
        with tempfile.TemporaryDirectory() as work:
            core, tegra = os.path.join(work, "core"), os.path.join(work, "tegra")
            checkout(vet.options.core, commits["oe-core"], core)
            checkout(vet.options.tegra, commits["meta-tegra"], tegra)
            core = os.path.join(core, "meta")
            for folder, own in ((tegra, False), (core, True))[: 1 + of_core]:
                for conf in sorted(os.listdir(os.path.join(folder, "conf", "machine"))):
                    if conf.endswith(".conf"):
                        machine(vet, facts, release, conf[:-5], [tegra, core] if not own else [core], own)


def machine(vet, facts, release, name, folders, own):
    source = ("openembedded-core" if own else "meta-tegra") + f" {release} {name}"
    try:
        found = machine_names(folders, name)
    except Exception as e:
        vet.unread.append(f"{source}: {e}")
        return
    boards = None
    if own:
        target = {"board": "virt", "release": release, "machine": name}
        boards = {"virt": {"facts": "./board.json", "description": "a machine of openembedded-core", "machines": {release: [name]}}}
    else:
        board = facts["boards"].get((release, name))
        if not board:
            vet.unread.append(f"{source}: no board of the facts has this machine")
            return
        target = {"board": board, "release": release, "machine": name}
    vet.names["machines"] += 1
    tally(vet, found, "machines")
    for _, of in settings(found):
        if own:
            of = {**of, "kernel": {**of.get("kernel", {}), "recipe": "linux-yocto", "version": "6.6" if release != "wrynose" else "6.18"}}
        vet.vet(source, target, of, boards=boards)
    vet.vet(source, target, {} if not own else {"kernel": {"recipe": "linux-yocto", "version": "6.6"}},
            build={"variables": {k: {"value": v} for k, v in found["variables"].items()}}, boards=boards)


def known(program):
    listed = subprocess.run([program, "facts", "list"], capture_output=True, text=True, check=True).stdout
    releases = dict(re.findall(r"^(\S+) +(L4T .*)$", listed, re.M))
    boards = {}
    for board in re.findall(r"^(\S+) +Jetson ", listed, re.M):
        shown = json.loads(subprocess.run([program, "facts", "show", board, "--format", "json"], capture_output=True, text=True, check=True).stdout.splitlines()[0])
        for release, of in (shown.get("releases") or {}).items():
            for m in of.get("machines", []):
                boards.setdefault((release, m), board)
    return {"releases": releases, "boards": boards}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--yoctune", required=True)
    p.add_argument("--board-file", required=True)
    p.add_argument("--layers")
    p.add_argument("--tegra")
    p.add_argument("--core")
    p.add_argument("--imported", help="what prove.py --alarms wrote", action="append", default=[])
    p.add_argument("--kernel", metavar="VERSION=DIR[:DEFCONFIG]", action="append", default=[], help="source of a kernel, whose own Kconfig judges the findings about options")
    p.add_argument("-o", "--output", required=True)
    options = p.parse_args()
    logging.getLogger("BitBake").setLevel(logging.CRITICAL)
    facts = known(options.yoctune)
    options.versions = {name: re.search(r"kernel (\d+\.\d+)", text).group(1) for name, text in facts["releases"].items()}
    vet = Vet(options)
    if options.layers:
        layers(vet, list(facts["releases"]))
    if options.tegra:
        machines(vet, facts)
    rules = {}
    for (severity, rule, message), places in sorted(vet.findings.items()):
        of = rules.setdefault(f"{severity} {rule}", {"findings": 0, "names": 0, "messages": []})
        of["findings"] += len(places)
        of["names"] += 1
        of["messages"].append({"message": message, "places": len(places), "first": places[0]})
    record = {
        "command": "scripts/prove.sh import",
        "real": "names of public layers and machines, read by bitbake's ConfHandler and data store; vet of the program",
        "stand-in": "a Jetson, and a virtual machine with a kernel recipe of a vendor, for layers of other boards",
        "errors about kernel options, judged by the kernel's own conf": {**vet.judged, "agrees": dict(vet.judged["agrees"]), "no source of the kernel": dict(vet.judged["no source of the kernel"])},
        "names": dict(vet.names), "configurations": vet.batches,
        "about the place of a line": {r: rules[r]["names"] for r in rules if r.split()[1] in PLACE},
        "findings": {r: of for r, of in rules.items() if r.split()[1] not in PLACE},
        "not tried": sorted(set(vet.unread)),
        "imported": [json.loads(read(f)) for f in options.imported],
    }
    with open(options.output, "w") as f:
        json.dump(record, f, indent=1, ensure_ascii=False)
        f.write("\n")
    print(json.dumps({"names": record["names"], "findings": {r: of["names"] for r, of in rules.items()}, "not tried": len(record["not tried"])}, indent=1))


if __name__ == "__main__":
    main()
