#!/usr/bin/env python3
"""Print the names of packages that bitbake can install, one a line.

Run in a build folder whose layers are those of schema/facts/recipe:

    PYTHONPATH=BITBAKE/lib python3 packages.py > FILE

Recipes that only serve the build, and images, make no package and are left out; so are the
names that rpm derives from files.
"""
import sys

import bb.tinfoil

BUILD_ONLY = ("native", "nativesdk", "cross", "crosssdk", "cross-canadian", "nopackages", "image", "populate_sdk")


def main():
    with bb.tinfoil.Tinfoil(output=sys.stderr, setup_logging=True) as tinfoil:
        tinfoil.prepare(config_only=False)
        cache = tinfoil.cooker.recipecaches[""]
        kept = set()
        for fn in cache.pkg_fn:
            classes = {path.rsplit("/", 1)[-1].removesuffix(".bbclass") for path in cache.inherits.get(fn, [])}
            if not classes.intersection(BUILD_ONLY):
                kept.add(fn)
        names = set()
        for table in (cache.packages, cache.rproviders):
            for name, providers in table.items():
                if kept.intersection(providers) and not set(name) & set("/()"):
                    names.add(name)
    print("\n".join(sorted(names)))


if __name__ == "__main__":
    main()
