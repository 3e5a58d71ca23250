"""Reads a stream as a client that knows nothing of yoctune, and prints what it holds as JSON.

Usage: reader.py URL STREAM [CA CERTIFICATE KEY]
"""

import asyncio
import json
import ssl
import sys

import nats
import zstandard


async def main():
    url, stream = sys.argv[1:3]
    options = {}
    if len(sys.argv) > 3:
        context = ssl.create_default_context(cafile=sys.argv[3])
        context.load_cert_chain(sys.argv[4], sys.argv[5])
        options["tls"] = context
    client = await nats.connect(url, connect_timeout=5, **options)
    js = client.jetstream()
    state = (await js.stream_info(stream)).state
    found = {"messages": state.messages, "results": 0, "first": 0, "last": 0, "doubled": 0, "missing": 0, "reversed": 0,
             "dropped": 0, "encodings": {}, "subjects": [], "ids": 0, "bytes": 0}
    ids, subjects, numbers = set(), set(), {}
    expected, frame = None, None
    sequence = state.first_seq
    while state.messages and sequence <= state.last_seq:
        try:
            message = await js.get_msg(stream, sequence)
        except nats.js.errors.NotFoundError:
            sequence += 1
            continue
        sequence += 1
        header = message.headers
        data = message.data
        how = header.get("Content-Encoding", "")
        found["encodings"][how] = found["encodings"].get(how, 0) + 1
        found["bytes"] += len(data)
        if how == "zstd":
            data = zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 24)
        ids.add(header["Nats-Msg-Id"])
        subjects.add(message.subject)
        first, last = int(header["Yoctune-First"]), int(header["Yoctune-Last"])
        found["dropped"] += int(header.get("Yoctune-Dropped", 0))
        if how != "s2":
            lines = [json.loads(line) for line in data.splitlines()]
            if len(lines) != last - first + 1 or any(line["type"] != "result" for line in lines):
                raise SystemExit(f"message {sequence - 1} has {len(lines)} results, and its header {first} to {last}")
            for line in lines:
                # A pipeline that starts again counts its frames from 0.
                if frame is not None and line["frame"] <= frame and line["frame"] != 0:
                    found["reversed"] += 1
                frame = line["frame"]
        if expected is None:
            found["first"] = first
        elif first < expected:
            found["doubled"] += expected - first
        elif first > expected:
            found["missing"] += first - expected
        expected = last + 1
        found["results"] += last - first + 1
        found["last"] = last
    found["ids"] = len(ids)
    found["subjects"] = sorted(subjects)
    print(json.dumps(found))
    await client.close()


asyncio.run(main())
