#!/usr/bin/env python3
"""The stage of brightness.c as a program: the whole protocol in one page.

Messages arrive on standard input and are sent on standard output, so log to standard
error. Descriptor 3 is the memory with the frame. Needs only Python's standard library.
"""
import json
import mmap
import struct
import sys
import time

OPEN, READY, RUN, DONE, METRIC, EVENT = 1, 2, 3, 4, 5, 7
FRAME, RESULTS = 1, 3
LUMA_FIRST = {0, 1, 6}  # nv12, i420, grey
HEADER = struct.Struct("=4sIQII")  # magic, type, frame, status, bytes of the payload
PORT = struct.Struct("=6I8qQ")  # kind, format, width, height, rank, 0, shape, bytes

requests, answers = sys.stdin.buffer, sys.stdout.buffer


def receive():
    head = requests.read(HEADER.size)
    if len(head) < HEADER.size:
        sys.exit(0)  # the pipeline has ended
    magic, kind, frame, _, size = HEADER.unpack(head)
    assert magic == b"YTS1"
    return kind, frame, requests.read(size)


def send(kind, frame=0, payload=b"", error=None):
    if error is not None:
        payload = error.encode()
    answers.write(HEADER.pack(b"YTS1", kind, frame, 1 if error else 0, len(payload)) + payload)
    answers.flush()


def metric(name, value, counter=False):
    send(METRIC, 0, struct.pack("=IId", counter, 0, value) + name.encode())


def event(name, value=None, start=None):
    """Records a value, or the span since start, in traces."""
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if takes_events:
        send(EVENT, 0, struct.pack("=IIqqd", start is not None, 0, start or now, now, value or 0) + name.encode())


_, _, opened = receive()
version, flags = struct.unpack_from("=II", opened)
takes_events = flags & 1
taken = PORT.unpack_from(opened, 8)
given = PORT.unpack_from(opened, 8 + PORT.size)
at, out_at, size = struct.unpack_from("=3Q", opened, 8 + 2 * PORT.size)
options = opened[8 + 2 * PORT.size + 24:].decode()
width, height = taken[2], taken[3]
if version != 1 or taken[0] != FRAME or taken[1] not in LUMA_FIRST or given[0] != RESULTS:
    send(READY, error="it takes frames of nv12, i420 or grey, and gives results")
    sys.exit(1)
memory = mmap.mmap(3, size)
dark = int(options or 40)
send(READY)

while True:
    kind, frame, payload = receive()
    if kind != RUN:
        continue
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    mean = sum(memory[at:at + width * height]) // (width * height)
    event("sum", start=began)
    event("brightness", mean)
    metric("brightness", mean)
    if mean < dark:
        metric("dark_frames", 1, counter=True)
    answer = json.dumps([{"brightness": mean, "dark": mean < dark}]).encode()
    memory[out_at:out_at + len(answer)] = answer
    send(DONE, frame, struct.pack("=Q", len(answer)))
