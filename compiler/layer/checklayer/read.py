#!/usr/bin/env python3
# Parses, and asks for what bitbake-layers show-appends and a bitbake -e for each
# recipe would say, in one run of bitbake through its own interface for programs. It takes a request and a file for the answer, both JSON.
import json
import sys

import bb.providers
import bb.tinfoil


def values(data, names):
    found = {}
    for name in names:
        value = data.getVar(name)
        if value is not None:
            found[name] = str(value)
    return found


def appends(tinfoil):
    collection = tinfoil.cooker.collections['']
    files = [(f, False) for f in tinfoil.cooker_data.pkg_fn] + [(f, True) for f in tinfoil.get_skipped_recipes()]
    found = {}
    for name, skipped in files:
        if name.startswith('virtual:'):
            continue
        recipe = name.rsplit('/', 1)[-1]
        for append in collection.get_file_appends(recipe):
            found.setdefault(append, []).append({'recipe': recipe.removesuffix('.bb'), 'skipped': skipped})
    return found


def recipe(tinfoil, pn, names):
    try:
        return {'values': values(tinfoil.parse_recipe(pn), names)}
    except bb.providers.NoProvider as why:
        return {'unavailable': ' '.join(str(why).split())}


def main(request, answer):
    with open(request, encoding='utf-8') as f:
        wanted = json.load(f)
    with bb.tinfoil.Tinfoil() as tinfoil:
        tinfoil.prepare()
        said = {
            'appends': appends(tinfoil),
            'recipes': {pn: recipe(tinfoil, pn, names) for pn, names in wanted.items()},
        }
    with open(answer, 'w', encoding='utf-8') as f:
        json.dump(said, f)


main(*sys.argv[1:])
