# SPDX-License-Identifier: Apache-2.0
"""Asks the kernel's own Kconfig what becomes of a fragment.

    RealConf("DIR", "defconfig").values(["CONFIG_PSI=y"])

DIR is a kernel source, of which the Kconfig files, scripts/kconfig and the arm64 configurations
are needed. The fragment is appended to the defconfig as merge_config.sh -m does, and `make
alldefconfig` computes the result, as the recipes of meta-tegra do.
"""

import os
import re
import subprocess
import tempfile

from prove import kernel_options, read


class RealConf:
    def __init__(self, folder, defconfig):
        self.folder = os.path.abspath(folder)
        with open(os.path.join(folder, "arch", "arm64", "configs", defconfig)) as f:
            self.base = f.read()
        self.cache = {}
        self.work = tempfile.TemporaryDirectory()  # conf is built once

    def values(self, lines):
        """Every option of the result; an option that is off or absent is not in it."""
        key = tuple(lines)
        if key not in self.cache:
            # merge_config.sh drops the lines of the base that a fragment sets again.
            names = {re.match(r"(?:# )?(CONFIG_\w+)", line).group(1) for line in lines}
            kept = [line for line in self.base.splitlines() if not (m := re.match(r"(?:# )?(CONFIG_\w+)[ =]", line)) or m.group(1) not in names]
            merged, out = (os.path.join(self.work.name, name) for name in ("merged", "out"))
            with open(merged, "w") as f:
                f.write("\n".join(kept + list(lines)) + "\n")
            if os.path.exists(os.path.join(out, ".config")):
                os.remove(os.path.join(out, ".config"))
            done = subprocess.run(["make", "-s", "-C", self.folder, f"O={out}", "ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-", f"KCONFIG_ALLCONFIG={merged}", "alldefconfig"],
                                  capture_output=True, text=True, errors="replace", env={**os.environ, "MAKEFLAGS": ""})
            if done.returncode != 0:
                raise RuntimeError(done.stderr[-500:])
            self.cache[key] = {k[7:]: v for k, v in kernel_options(read(os.path.join(out, ".config"))).items() if v != "n"}
        return self.cache[key]


def line(symbol, value):
    """A line of a fragment as yoctune writes it."""
    text = str(value)
    if text == "n":
        return f"# CONFIG_{symbol} is not set"
    if text in ("y", "m") or re.fullmatch(r"-?\d+|0[xX][0-9a-fA-F]+", text):
        return f"CONFIG_{symbol}={text}"
    return f'CONFIG_{symbol}="' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def judge(conf, options, findings):
    """Whether the kernel's Kconfig does what each finding claims: (symbol, claim, real, agrees)."""
    real = conf.values([line(k, v) for k, v in sorted(options.items())])
    for f in findings:
        symbol = f["path"].rsplit(".", 1)[1].strip('"')
        wanted = f["expected"].partition("=")[2].strip('"') if "=" in f["expected"] else "n"
        got = real.get(symbol, "n").strip('"')
        # Without the line the value may be the same: then the line has no effect, which is no error.
        yield symbol, wanted, got, got != wanted
