"""Checks traces of yoctuned: Chrome trace JSON against the fields that each phase needs and the
nesting that Perfetto demands, and Perfetto's encoding with Perfetto's own protobuf definitions.

Usage: referee.py FILE.json FILE.pftrace
Prints what both files have in common; they must describe the same events.
"""
import collections
import json
import math
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

# Fields of each phase besides name, ph, ts, pid: "Trace Event Format" of the Chromium project.
NEEDS = {
    "X": {"dur", "tid"}, "b": {"id", "cat"}, "e": {"id", "cat"}, "s": {"id", "cat", "tid"}, "t": {"id", "cat", "tid"},
    "f": {"id", "cat", "tid"}, "C": {"args"}, "i": {"s"}, "M": {"args"},
}
KNOWN = {"name", "cat", "ph", "ts", "dur", "pid", "tid", "id", "bp", "s", "args"}
METADATA = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}


def fail(text):
    sys.exit(text)


def nested(slices, where):
    """Slices of one track are nested or apart. Times are in whole nanoseconds."""
    stack = []
    for start, end, name in sorted(slices, key=lambda s: (s[0], -s[1])):
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack and end > stack[-1][0]:
            fail(f"{where}: {name} [{start}, {end}] overlaps {stack[-1][1]}, which ends at {stack[-1][0]}")
        stack.append((end, name))


def ns(us):
    return round(us * 1000)


def chrome(path):
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    if set(document) - {"traceEvents", "displayTimeUnit", "otherData"} or document["displayTimeUnit"] not in ("ms", "ns"):
        fail(f"{path}: unknown parts of the document")
    slices, counters, instants, open_, flows = collections.defaultdict(list), collections.defaultdict(list), [], {}, collections.defaultdict(list)
    frames, tracks = [], {}
    for e in document["traceEvents"]:
        ph = e.get("ph")
        lacks = ({"name", "ph", "ts", "pid"} | NEEDS.get(ph, {"a phase that the format has"})) - set(e)
        if lacks or set(e) - KNOWN:
            fail(f"{path}: {e} lacks {lacks}, has {set(e) - KNOWN}")
        if not all(isinstance(e[k], (int, float)) and math.isfinite(e[k]) and e[k] >= 0 for k in ("ts", "dur") if k in e):
            fail(f"{path}: {e}: times must be numbers from 0")
        if ph == "M" and METADATA[e["name"]] not in e["args"]:
            fail(f"{path}: {e}")
        if ph == "M" and e["name"] == "thread_name":
            tracks[e["tid"]] = e["args"]["name"]
        elif ph == "X":
            slices[e["tid"]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["name"]))
        elif ph == "b":
            if (e["cat"], e["id"]) in open_:
                fail(f"{path}: {e['cat']} {e['id']} begins twice")
            open_[e["cat"], e["id"]] = e
        elif ph == "e":
            begin = open_.pop((e["cat"], e["id"]), None) or fail(f"{path}: {e} ends before it begins")
            if begin["name"] != e["name"] or begin["ts"] > e["ts"]:
                fail(f"{path}: {begin} and {e}")
            frames += [(ns(begin["ts"]), ns(e["ts"]), e["name"])]
        elif ph in "stf":
            flows[e["id"]].append((e["ts"], ph))
        elif ph == "C":
            if not all(isinstance(v, (int, float)) for v in e["args"].values()):
                fail(f"{path}: {e}: values of counters are numbers")
            counters[e["name"]].append((ns(e["ts"]), float(e["args"]["value"])))
        elif ph == "i":
            if e["s"] not in "gpt":
                fail(f"{path}: {e}: scope")
            instants.append((ns(e["ts"]), e["name"]))
    if open_:
        fail(f"{path}: never end: {list(open_)[:3]}")
    for tid, list_ in slices.items():
        if tid not in tracks:
            fail(f"{path}: track {tid} has no name")
        nested(list_, f"{path}, track {tid}")
    for id_, steps in flows.items():
        if "".join(p for _, p in steps) != "s" + "t" * (len(steps) - 2) + "f" or steps != sorted(steps, key=lambda s: s[0]):
            fail(f"{path}: flow {id_}: {steps}")
    return summary([s for v in slices.values() for s in v] + frames, counters, instants)


def perfetto(path):
    trace = pb.Trace()
    with open(path, "rb") as f:
        trace.ParseFromString(f.read())
    if trace.SerializeToString() == b"" or trace.FindInitializationErrors():
        fail(f"{path}: incomplete")
    tracks, stacks, slices, counters, instants = {}, collections.defaultdict(list), collections.defaultdict(list), collections.defaultdict(list), []
    for p in trace.packet:
        if unknown(p):
            fail(f"{path}: unknown fields in {p}")
        if not p.trusted_packet_sequence_id:
            fail(f"{path}: a packet without a sequence")
        if p.HasField("track_descriptor"):
            d = p.track_descriptor
            if d.uuid in tracks or d.HasField("parent_uuid") and d.parent_uuid not in tracks:
                fail(f"{path}: track {d}")
            tracks[d.uuid] = d
            continue
        e = p.track_event
        if not p.HasField("timestamp") or e.track_uuid not in tracks:
            fail(f"{path}: {p}")
        kind = tracks[e.track_uuid]
        if (e.type == pb.TrackEvent.TYPE_COUNTER) != kind.HasField("counter"):
            fail(f"{path}: {p} on {kind}")
        if e.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            stacks[e.track_uuid].append((p.timestamp, e.name))
        elif e.type == pb.TrackEvent.TYPE_SLICE_END:
            start, name = stacks[e.track_uuid].pop()
            slices[e.track_uuid].append((start, p.timestamp, name))
        elif e.type == pb.TrackEvent.TYPE_COUNTER:
            counters[kind.name].append((p.timestamp, e.double_counter_value))
        elif e.type == pb.TrackEvent.TYPE_INSTANT:
            instants.append((p.timestamp, e.name))
        else:
            fail(f"{path}: {p}")
    if any(stacks.values()):
        fail(f"{path}: slices that never end")
    for uuid, list_ in slices.items():
        nested(list_, f"{path}, track {uuid}")
    return summary([s for v in slices.values() for s in v], counters, instants)


def unknown(message):
    """Fields that the definitions do not have survive parsing as unknown fields."""
    copy = type(message)()
    copy.CopyFrom(message)
    copy.DiscardUnknownFields()
    return copy.SerializeToString() != message.SerializeToString()


def summary(slices, counters, instants):
    names = collections.Counter(s[2] for s in slices)
    return {
        "slices": sorted(slices), "counters": {k: sorted(v) for k, v in counters.items()}, "instants": sorted(instants),
        "text": f"{len(slices)} slices of {len(names)} names, {sum(map(len, counters.values()))} values, {len(instants)} instants",
    }


a, b = chrome(sys.argv[1]), perfetto(sys.argv[2])
for part in ("slices", "counters", "instants"):
    if a[part] != b[part]:
        only = [x for x in a[part] if x not in b[part]][:3], [x for x in b[part] if x not in a[part]][:3]
        fail(f"{part} differ: only Chrome {only[0]}, only Perfetto {only[1]}")
print(a["text"])
