#!/usr/bin/env python3
"""Compares `yoctune tasks` with networkx and with openembedded-core's own reader of
buildstats, on the same files.

    prove.py YOCTUNE OE-CORE GRAPH [BUILDSTATS] [-o RECORD]

GRAPH is task-depends.dot of a real `bitbake -g`, BUILDSTATS the folder of one build.
Times are CPU seconds of the whole program; memory is its peak. Exit status: 0 the
same, 3 a difference, 1 it could not be run. Needs networkx and pydot.
"""
import argparse
import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys


def yoctune(program, graph, stats):
    argv = [program, "tasks", graph, "--threads", "2", "--steps", "0", "--format", "json"]
    if stats:
        argv += ["--buildstats", stats]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [json.loads(line) for line in out.splitlines()]
    return lines, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss


def reference(graph):
    """The graph as networkx reads it; an edge goes from a task to what it waits for."""
    import networkx
    import pydot

    (dot,) = pydot.graph_from_dot_file(graph)
    found = networkx.DiGraph()
    for node in dot.get_nodes():
        name = node.get_name().strip('"')
        if name not in ("node", "edge", "graph", "\\n"):
            found.add_node(name, label=node.get("label"))
    for edge in dot.get_edges():
        found.add_edge(edge.get_source().strip('"'), edge.get_destination().strip('"'))
    return networkx, found.reverse(copy=True)


def measured(oecore, folder, found):
    """Seconds of each task of the graph, read by openembedded-core's buildstats.py."""
    sys.path.insert(0, os.path.join(oecore, "scripts", "lib"))
    import buildstats

    stats = buildstats.BuildStats.from_dir(folder)
    took, cpu = {}, {}
    for node in found:
        recipe, _, task = node.rpartition(".")
        for name in (task, task + "_setscene"):
            entry = stats.get(recipe)
            # A task that did not come to an end has no figures but those of the build.
            if entry and name in entry.tasks and entry.tasks[name]["status"]:
                took[node], cpu[node] = entry.tasks[name].walltime, entry.tasks[name].cputime
                break
    return took, cpu


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("yoctune")
    p.add_argument("oecore")
    p.add_argument("graph")
    p.add_argument("buildstats", nargs="?", help="folder of one build")
    p.add_argument("-o", dest="record")
    a = p.parse_args()

    lines, ours_cpu, ours_kib = yoctune(a.yoctune, a.graph, a.buildstats)
    summary = lines[-1]
    began = resource.getrusage(resource.RUSAGE_SELF)
    networkx, found = reference(a.graph)
    longest = networkx.dag_longest_path(found)
    levels = [len(level) for level in networkx.topological_generations(found)]
    ended = resource.getrusage(resource.RUSAGE_SELF)

    slack = 0
    rows = [
        ("tasks", summary["tasks"], found.number_of_nodes()),
        ("edges", summary["edges"], found.number_of_edges()),
        ("longest path, tasks", summary["path_tasks"], len(longest)),
        ("levels", summary["levels"], len(levels)),
        ("widest level", summary["widest"], max(levels)),
    ]
    if a.buildstats:
        took, cpu = measured(a.oecore, a.buildstats, found)
        # A weight lies on an edge for networkx: that of the task it leads to, behind
        # one root before all.
        found.add_edges_from([("", node) for node in list(found)])
        for _, node, data in found.edges(data=True):
            data["weight"] = took.get(node, 0)
        length = networkx.dag_longest_path_length(found)
        # Times are written to a hundredth of a second.
        slack = 0.01 * len(took) + 0.1
        rows += [
            ("measured tasks", summary["ran"] + summary["restored"], len(took)),
            ("seconds of work", round(summary["work_seconds"], 1), round(sum(took.values()), 1)),
            ("CPU seconds of work", round(summary["cpu_seconds"], 1), round(sum(cpu.values()), 1)),
            ("longest path, seconds", round(summary["path"], 1), round(length, 1)),
        ]
    record = {
        "graph": pathlib.Path(a.graph).name,
        "date": datetime.date.today().isoformat(),
        "python": sys.version.split()[0],
        "networkx": networkx.__version__,
        "load": os.getloadavg()[0],
        "rows": [{"what": w, "yoctune": y, "reference": r} for w, y, r in rows],
        "cpu_seconds": {"yoctune": round(ours_cpu, 2), "networkx_script": round(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime, 2)},
        "peak_kib": {"yoctune": ours_kib, "networkx_script": ended.ru_maxrss},
    }
    text = json.dumps(record, indent=1)
    print(text)
    if a.record:
        done = json.loads(pathlib.Path(a.record).read_text()) if os.path.exists(a.record) else []
        done = [d for d in done if d["graph"] != record["graph"]] + [record]
        pathlib.Path(a.record).write_text(json.dumps(done, indent=1) + "\n")
    return 3 if any(abs(y - r) > (slack if "seconds" in w.lower() else 0) for w, y, r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
