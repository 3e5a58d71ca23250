#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts configuration and recipe text before bitbake's own parser.

    driver.py eval   < request.json    values of pieces of configuration text
    driver.py layer  < request.json    one layer, as one machine would see it
    driver.py attach < request.json    which appends its recipes get, beside other layers
    driver.py run    < request.json    a function of a file, run as a task's

They write one JSON document to stdout. What the parser needs from outside the
layer (bitbake.conf, classes, a machine) is replaced by the smallest stand-in
that lets every line be parsed, and the answer names the stand-ins: a value that
comes from a class is therefore not proven here, only by a run of the real build.

eval request:  {"texts": [{"name": "a.conf", "text": "X = \"1\"\n"}, ...]}
eval answer:   {"results": [{"raw": {"X": "1"}, "values": {"X": "1"}, "errors": []}, ...]}

layer request: {"dir": "...", "machine": "...", "overrides": "cuda:tegra:aarch64:tegra234",
                "unpackdir": true, "fragments": true, "enable": true}
layer answer:  see parse_layer.

attach request: a layer request with "series": "scarthgap" and
                "collections": ["tegra-community", ...] and
                "beside": [folders of further layers to enable or not, as the first]
attach answer:  see attach.
"""

import contextlib
import io
import json
import logging
import os
import re
import sys
import tempfile
import types

# The wheel bundles lib/bb but not its siblings, which only a build that talks to
# a hash or package-revision server needs.
STUBBED_MODULES = []
for package, module in (("hashserv", "client"), ("prserv", "serv")):
    try:
        __import__(package)
    except ImportError:
        name = f"{package}.{module}"
        sys.modules[package], sys.modules[name] = types.ModuleType(package), types.ModuleType(name)
        setattr(sys.modules[package], module, sys.modules[name])
        STUBBED_MODULES.append(package)

import bb  # noqa: E402
import bb.codeparser  # noqa: E402
import bb.data  # noqa: E402
import bb.parse  # noqa: E402
from bb.parse import ParseError  # noqa: E402

# Classes a generated layer may inherit. They exist in openembedded-core or
# meta-tegra of every supported series; anything else is reported, so a misspelt
# class is caught here too.
KNOWN_CLASSES = frozenset("""
    allarch base bin_package cmake cuda features_check go go-mod own-mirrors packagegroup
    pkgconfig rm_work systemd update-rc.d useradd
""".split())

STAND_IN_CONF = """
TOPDIR = "/stand-in"
TMPDIR = "${TOPDIR}/tmp"
PN = "${@bb.parse.vars_from_file(d.getVar('FILE', False), d)[0] or 'none'}"
PV = "${@bb.parse.vars_from_file(d.getVar('FILE', False), d)[1] or '1.0'}"
BPN = "${PN}"
BP = "${BPN}-${PV}"
WORKDIR = "${TMPDIR}/work/${PN}/${PV}"
S = "${WORKDIR}/${BP}"
B = "${S}"
D = "${WORKDIR}/image"
FILE_DIRNAME = "${@os.path.dirname(d.getVar('FILE', False) or '')}"
THISDIR = "${@os.path.dirname(d.getVar('FILE') or '')}"
FILESPATH = "${FILE_DIRNAME}/files"
FILESEXTRAPATHS ?= "__default:"
COMMON_LICENSE_DIR = "${TOPDIR}/licenses"
SRC_URI = ""
DEPENDS = ""
PACKAGES = "${PN}"
FILES:${PN} = ""
PACKAGE_ARCH ?= "aarch64"
MACHINE_ARCH = "${@d.getVar('MACHINE').replace('-', '_')}"
prefix = "/usr"
exec_prefix = "/usr"
bindir = "/usr/bin"
sbindir = "/usr/sbin"
libdir = "/usr/lib"
nonarch_libdir = "/usr/lib"
nonarch_base_libdir = "/usr/lib"
includedir = "/usr/include"
datadir = "/usr/share"
sysconfdir = "/etc"
localstatedir = "/var"
systemd_unitdir = "/usr/lib/systemd"
systemd_system_unitdir = "/usr/lib/systemd/system"
DISTRO_FEATURES ?= ""
MACHINE_FEATURES ?= ""
IMAGE_INSTALL ?= ""
IMAGE_FEATURES ?= ""
BB_NUMBER_THREADS ?= "1"
OVERRIDES = "linux:aarch64:pn-${PN}:${MACHINEOVERRIDES}:${DISTROOVERRIDES}:class-target:forcevariable"
DISTROOVERRIDES ?= "nodistro"
MACHINEOVERRIDES = "@OVERRIDES@:${MACHINE}"
MACHINE = "@MACHINE@"
OE_FRAGMENTS_METADATA_VARS ?= "BB_CONF_FRAGMENT_SUMMARY BB_CONF_FRAGMENT_DESCRIPTION"
OE_FRAGMENTS_BUILTIN ?= ""
"""

# What the machine files of the BSP say where a tuning layer has something to
# add; the values only have to be recognisable.
STAND_IN_MACHINE = """
KERNEL_ARGS ?= "stand-in.bsp=1"
UBOOT_EXTLINUX_KERNEL_ARGS ?= "${KERNEL_ARGS}"
NVPMODEL ?= "nvpmodel_stand_in"
NVPMODEL_CONFIG_DEFAULT ??= ""
"""

# A recipe of the BSP that a .bbappend of the layer applies to.
STAND_IN_RECIPE = """
SUMMARY = "stand-in for a recipe of the BSP"
LICENSE = "MIT"
SRC_URI = "file://stand-in"
do_install() {
    :
}
addtask do_install
"""

STAND_IN_FUNCTIONS = {"do_install": "    :\n"}

INLINE_PYTHON = re.compile(r"\$\{@(.*?)\}", re.S)


class Log(logging.Handler):
    """Collects what bitbake would print, warnings and worse."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        kind = "error" if record.levelno >= logging.ERROR else "warning"
        self.lines.append({"level": kind, "message": record.getMessage()})

    def take(self):
        lines, self.lines = self.lines, []
        return lines


class Referee:
    def __init__(self, scratch):
        self.scratch = scratch
        self.log = Log()
        logger = logging.getLogger("BitBake")
        logger.addHandler(self.log)
        logger.propagate = False
        self.errors = []
        self.classes = set()
        # bb.fatal and bb.warn print unless a handler is set.
        bb.event.LogHandler = lambda *a, **k: None

    def report(self, path, exc=None):
        """Turn what was logged, and an exception, into entries of errors."""
        for line in self.log.take():
            self.errors.append(dict(line, file=path, line=0))
        if exc is None or isinstance(exc, bb.BBHandledException):
            if exc is not None and not self.errors:
                self.errors.append({"level": "error", "file": path, "line": 0, "message": "refused by the parser"})
            return
        message, where, line = str(exc), path, 0
        if isinstance(exc, ParseError):
            message, where, line = exc.msg, str(exc.filename), exc.lineno or 0
        elif isinstance(exc, SyntaxError):
            message, line = f"python: {exc.msg}", exc.lineno or 0
        self.errors.append({"level": "error", "file": where, "line": line, "message": f"{type(exc).__name__}: {message}"})

    def guard(self, path):
        return Guard(self, path)

    def classes_of(self, layer):
        """Make an empty class for every known one that the layer's text names."""
        folder = os.path.join(self.scratch, "stand-in", "classes")
        os.makedirs(folder, exist_ok=True)
        wanted = {"base"}
        for path in walk(layer):
            if path.endswith((".bb", ".inc", ".bbappend", ".conf", ".bbclass")):
                with open(path, errors="replace") as f:
                    for line in f:
                        m = re.match(r"\s*inherit(?:_defer)?\s+(.+)", line)
                        if m:
                            wanted.update(m.group(1).split())
                        m = re.match(r'INHERIT\s*\+?=\s*"(.*)"', line)
                        if m:
                            wanted.update(m.group(1).split())
        for name in sorted(wanted & KNOWN_CLASSES):
            self.classes.add(name)
            with open(os.path.join(folder, name + ".bbclass"), "w") as f:
                f.write("# stand-in\n")


class Guard(contextlib.AbstractContextManager):
    def __init__(self, referee, path):
        self.referee, self.path = referee, path

    def __exit__(self, kind, exc, tb):
        if exc is not None and not isinstance(exc, (Exception, SystemExit)):
            return False
        self.referee.report(self.path, exc)
        return True


def walk(folder):
    for root, dirs, files in os.walk(folder):
        dirs.sort()
        for name in sorted(files):
            yield os.path.join(root, name)


def written_by(event, layer):
    return str(event.get("file", "")).startswith(layer + os.sep)


def own_variables(d, layer):
    """Names of the variables that a file below layer sets, without internals."""
    names = set()
    for name in d.keys():
        if not name.startswith("_") and any(written_by(e, layer) for e in d.varhistory.variable(name)):
            names.add(name)
    return names


def inline_python(d, layer):
    """Every ${@...} that a file below layer puts into a variable."""
    found = set()
    for name in d.keys():
        for e in d.varhistory.variable(name):
            if written_by(e, layer) and isinstance(e.get("detail"), str):
                found.update(INLINE_PYTHON.findall(e["detail"]))
    return found


def dump(d, names, referee, path):
    """The expanded values of names; functions are left out."""
    values = {}
    for name in sorted(names):
        if d.getVarFlag(name, "func", False):
            continue
        try:
            value = d.getVar(name)
        except Exception as exc:  # an expansion runs Python of the layer
            referee.report(path, exc)
            continue
        if isinstance(value, str):
            values[name] = value
    referee.report(path)
    return values


def check_functions(d, known, referee, path):
    """Parse the body of each function that the recipe has and known lacks.

    bitbake does this for the signature of a task; a body that its shell parser
    cannot read stops a build. (History names no file for functions, hence the
    comparison.)
    """
    bodies = {}
    for name in sorted(d.keys()):
        if name.startswith("_") or ":" in name or not d.getVarFlag(name, "func", False):
            continue
        try:
            body = d.getVar(name) or ""
        except Exception as exc:
            referee.report(path, exc)
            continue
        if known.get(name) == body:
            continue
        bodies[name] = body
        with referee.guard(f"{path}: {name}"):
            if d.getVarFlag(name, "python", False):
                # A def comes with its own first line.
                head = "" if body.startswith("def ") else "def f(d):\n"
                compile(head + (body or "    pass") + "\n", name, "exec")
            else:
                bb.codeparser.ShellParser(name, logging.getLogger("BitBake")).parse_shell(body)
    return bodies


def base(referee, request):
    """A datastore after layer.conf, as bitbake has it before bitbake.conf."""
    layer = request["dir"]
    d = bb.data.init()
    d.enableTracking()
    d.setVar("__bbclasstype", "global")
    d.setVar("BBPATH", os.path.join(referee.scratch, "stand-in"))
    d.setVar("BBLAYERS", layer)
    d.setVar("BBFILE_COLLECTIONS", "")
    d.setVar("LAYERDIR", layer)
    d.setVar("LAYERDIR_RE", re.escape(layer))
    path = os.path.join(layer, "conf", "layer.conf")
    with referee.guard("conf/layer.conf"):
        bb.parse.handle(path, d, True, baseconfig=True)
        d.expandVarref("LAYERDIR")
        d.expandVarref("LAYERDIR_RE")
    d.delVar("LAYERDIR")
    d.delVar("LAYERDIR_RE")
    return d


def configuration(referee, request):
    """A datastore as recipes are parsed with."""
    layer = request["dir"]
    d = base(referee, request)
    conf = os.path.join(referee.scratch, "stand-in", "conf")
    os.makedirs(conf, exist_ok=True)
    text = STAND_IN_CONF.replace("@OVERRIDES@", request["overrides"]).replace("@MACHINE@", request["machine"])
    if request.get("unpackdir"):
        text += 'UNPACKDIR ??= "${WORKDIR}/sources"\n'
    for name, text in (("bitbake", text), ("machine", STAND_IN_MACHINE), ("fragments",
                       "addfragments conf/fragments OE_FRAGMENTS OE_FRAGMENTS_METADATA_VARS OE_FRAGMENTS_BUILTIN\n")):
        with open(os.path.join(conf, name + ".conf"), "w") as f:
            f.write(text)

    def read(path, label):
        with referee.guard(label):
            bb.parse.handle(path, d, True)

    read(os.path.join(conf, "bitbake.conf"), "stand-in bitbake.conf")
    if request.get("enable"):
        folder = os.path.join(layer, "conf", "fragments" if request.get("fragments") else "yoctune")
        names = sorted(n for n in os.listdir(folder) if n.endswith(".conf")) if os.path.isdir(folder) else []
        if not names:
            referee.errors.append({"level": "error", "file": os.path.relpath(folder, layer), "line": 0,
                                   "message": "holds no .conf file: nothing switches the layer on"})
        if request.get("fragments"):
            collection = (d.getVar("BBFILE_COLLECTIONS") or "").split()
            d.setVar("OE_FRAGMENTS", " ".join(f"{c}/{n[:-5]}" for c in collection for n in names))
            read(os.path.join(conf, "fragments.conf"), "conf/fragments")
            for c in collection:
                for n in names:
                    for var in ("BB_CONF_FRAGMENT_SUMMARY", "BB_CONF_FRAGMENT_DESCRIPTION"):
                        if not d.getVarFlag(var, f"{c}/{n[:-5]}"):
                            referee.errors.append({"level": "error", "file": f"conf/fragments/{n}", "line": 0,
                                                   "message": f"does not set {var}, which bitbake demands"})
        else:
            for n in names:
                read(os.path.join(folder, n), f"conf/yoctune/{n}")
    read(os.path.join(conf, "machine.conf"), "stand-in machine")
    # oe-core's signature handlers are not here, and no signature is asked for.
    handler = d.getVar("BB_SIGNATURE_HANDLER", False)
    d.setVar("BB_SIGNATURE_HANDLER", "noop")
    bb.parse.init_parser(d)
    if handler is not None:
        d.setVar("BB_SIGNATURE_HANDLER", handler)
    else:
        d.delVar("BB_SIGNATURE_HANDLER")
    bb.codeparser.parser_cache_init(os.path.join(referee.scratch, "cache"))
    d.setVar("__bbclasstype", "recipe")
    return d


def parse_recipe(referee, d, path, appends, label, layer):
    copy = bb.data.createCopy(d)
    copy.setVar("FILE_LAYERNAME", "layer")
    if appends:
        copy.setVar("__BBAPPEND", " ".join(appends))
    out = {"file": label, "values": {}, "functions": {}, "python": []}
    with referee.guard(label):
        with contextlib.redirect_stdout(io.StringIO()):
            store = bb.parse.handle(path, copy)[""]
        names = own_variables(store, layer) - own_variables(d, layer) | {"PN", "PV", "S", "SRC_URI", "FILESPATH", "UNPACKDIR"}
        out["values"] = dump(store, names, referee, label)
        out["functions"] = check_functions(store, STAND_IN_FUNCTIONS, referee, label)
        out["python"] = sorted(inline_python(store, layer))
        out["skipped"] = str(store.getVar("__SKIPPED", False) or "")
    return out


def parse_layer(referee, request):
    """Every .conf, .bb, .bbappend and .inc of the layer.

    The answer: "config" (value by variable after conf/layer.conf, the settings
    and the machine), "config_set" (those the layer's files set), "recipes" and
    "appends" (by file: "values", "functions", "python" for the ${@...} it uses),
    "files" (all that were read) and "errors".
    """
    layer = request["dir"] = os.path.realpath(request["dir"])
    referee.classes_of(layer)
    d = configuration(referee, request)
    names = own_variables(d, layer)
    answer = {
        "config": dump(d, names | {"KERNEL_ARGS", "UBOOT_EXTLINUX_KERNEL_ARGS", "DISTRO_FEATURES", "NVPMODEL_CONFIG_DEFAULT", "UNPACKDIR", "OVERRIDES"},
                       referee, "configuration"),
        "config_set": sorted(names),
        "config_python": sorted(inline_python(d, layer)),
        "recipes": {}, "appends": {},
    }
    files = [p for p in walk(layer) if p.endswith((".conf", ".bb", ".bbappend", ".inc")) and f"{os.sep}files{os.sep}" not in p]
    read = {os.path.join(layer, "conf", "layer.conf")}
    with referee.guard("dependencies"):
        read.update(bb.parse.get_file_depends(d).split())
    stand_ins = os.path.join(referee.scratch, "recipes")
    os.makedirs(stand_ins, exist_ok=True)
    for path in files:
        label = os.path.relpath(path, layer)
        if path.endswith(".bb"):
            answer["recipes"][label] = parse_recipe(referee, d, path, [], label, layer)
        elif path.endswith(".bbappend"):
            pn = os.path.basename(path)[:-len(".bbappend")].split("_")[0]
            recipe = os.path.join(stand_ins, f"{pn}_1.0.bb")
            with open(recipe, "w") as f:
                f.write(STAND_IN_RECIPE)
            answer["appends"][label] = parse_recipe(referee, d, recipe, [path], label, layer)
    # A file that nothing includes with these settings must still be readable.
    included = set()
    for group in ("recipes", "appends"):
        included.update(os.path.join(layer, k) for k in answer[group])
    for path in files:
        if path in read | included:
            continue
        label = os.path.relpath(path, layer)
        copy = bb.data.createCopy(d)
        with referee.guard(label):
            bb.parse.handle(path, copy, True)
    answer["files"] = [os.path.relpath(p, layer) for p in files]
    return answer


def attach(referee, request):
    """The recipes of the layer in a build that has layers of other collections.

    bitbake's own reading of bblayers.conf and search for recipes decide which
    appends a recipe gets. The answer: "recipes", by file: "appends" (files) and
    "values".
    """
    from bb.cooker import CookerCollectFiles
    from bb.cookerdata import CookerConfiguration, CookerDataBuilder

    layer = request["dir"] = os.path.realpath(request["dir"])
    generated = [layer] + [os.path.realpath(p) for p in request["beside"]]
    for path in generated:
        referee.classes_of(path)
    build = os.path.join(referee.scratch, "build")
    layers = []
    for name in ["core", "tegra"] + request["collections"]:
        # the stand-in classes and bitbake.conf are core's
        folder = os.path.join(referee.scratch, "stand-in" if name == "core" else "layer-" + name)
        os.makedirs(os.path.join(folder, "conf"), exist_ok=True)
        with open(os.path.join(folder, "conf", "layer.conf"), "w") as f:
            f.write(f'BBPATH .= ":${{LAYERDIR}}"\nBBFILE_COLLECTIONS += "{name}"\nBBFILE_PATTERN_{name} = "^${{LAYERDIR}}/"\n'
                    f'LAYERSERIES_COMPAT_{name} = "{request["series"]}"\n')
            if name == "core":
                f.write(f'LAYERSERIES_CORENAMES = "{request["series"]}"\n')
        layers.append(folder)
    os.makedirs(os.path.join(build, "conf"))
    with open(os.path.join(build, "conf", "bblayers.conf"), "w") as f:
        f.write(f'BBPATH = "${{TOPDIR}}"\nBBFILES = ""\nBBLAYERS = "{" ".join(layers + generated)}"\n')
    with open(os.path.join(layers[0], "conf", "bitbake.conf"), "w") as f:
        f.write(STAND_IN_CONF.replace('TOPDIR = "/stand-in"\n', "").replace("@OVERRIDES@", request["overrides"])
                .replace("@MACHINE@", request["machine"]) + STAND_IN_MACHINE)
        for path in generated if request.get("enable") else []:
            folder = os.path.join(path, "conf", "fragments" if request.get("fragments") else "yoctune")
            for name in sorted(os.listdir(folder)):
                f.write(f"require {os.path.join(folder, name)}\n")
        f.write('BB_SIGNATURE_HANDLER = "noop"\n')
    os.chdir(build)
    answer = {"recipes": {}}
    with referee.guard("configuration"):
        d = CookerDataBuilder(CookerConfiguration()).parseConfigurationFiles([], [])
        bb.parse.init_parser(d)
        d.setVar("__bbclasstype", "recipe")
        found = CookerCollectFiles([])
        for path in found.collect_bbfiles(d, d)[0]:
            label = os.path.relpath(path, layer)
            appends = found.get_file_appends(path)
            store = bb.data.createCopy(d)
            store.setVar("FILE_LAYERNAME", "layer")
            store.setVar("__BBAPPEND", " ".join(appends))
            with referee.guard(label), contextlib.redirect_stdout(io.StringIO()):
                store = bb.parse.handle(path, store)[""]
                names = {n for n in store.keys() if n.startswith(("RDEPENDS", "RRECOMMENDS"))}
                answer["recipes"][label] = {"appends": [os.path.relpath(a, layer) for a in appends],
                                            "values": dump(store, names, referee, label)}
    referee.report("configuration")
    return answer


def evaluate(referee, request):
    results = []
    for n, item in enumerate(request["texts"]):
        name = os.path.basename(item.get("name") or f"{n}.conf")
        path = os.path.join(referee.scratch, name)
        with open(path, "w", newline="") as f:
            f.write(item["text"])
        d = bb.data.init()
        d.setVar("BBPATH", referee.scratch)
        before, referee.errors = referee.errors, []
        raw, values = {}, {}
        with referee.guard(name):
            bb.parse.handle(path, d, True)
            for key in sorted(d.keys()):
                if key.startswith("__") or key in ("BBPATH", "FILE"):
                    continue
                value = d.getVar(key, False)
                if isinstance(value, str):
                    raw[key] = value
        for key in raw:
            try:
                values[key] = str(d.getVar(key))
            except Exception as exc:
                referee.report(name, exc)
        results.append({"raw": raw, "values": values, "errors": referee.errors})
        referee.errors = before
    return {"results": results}


def run_function(referee, request):
    """Run a function of a file as a task of bitbake would, with some variables set.

    The answer: what it warned of and failed with, among "errors".
    """
    import bb.build
    d = bb.data.init()
    d.setVar("BBPATH", referee.scratch)
    d.setVar("T", os.path.join(referee.scratch, "temp"))
    with referee.guard(request["function"]):
        bb.parse.handle(request["file"], d, True)
        for name, value in request["variables"].items():
            d.setVar(name, value)
        with contextlib.redirect_stdout(io.StringIO()):
            bb.build.exec_func(request["function"], d)
    return {}


VERBS = {"eval": evaluate, "layer": parse_layer, "attach": attach, "run": run_function}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in VERBS:
        sys.stderr.write(__doc__)
        return 2
    request = json.load(sys.stdin)
    with tempfile.TemporaryDirectory(prefix="yoctune-bb-") as scratch:
        os.makedirs(os.path.join(scratch, "stand-in", "conf"))
        referee = Referee(os.path.realpath(scratch))
        answer = VERBS[sys.argv[1]](referee, request)
        # Paths of this run mean nothing to a reader.
        text = json.dumps(dict(answer, bitbake=bb.__version__, errors=referee.errors, stubbed_modules=STUBBED_MODULES,
                               stubbed_classes=sorted(referee.classes)), indent=1)
        text = text.replace(json.dumps(referee.scratch)[1:-1], "<stand-in>")
        if "dir" in request:
            text = text.replace(json.dumps(request["dir"])[1:-1], "<layer>")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
