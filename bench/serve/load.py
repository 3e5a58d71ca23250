"""Load by NVIDIA's tritonclient: as many callers as asked for, each with one request at a time.

    load.py http|json|grpc ADDRESS MODEL INPUT OUTPUT SHAPE CALLERS SECONDS

json is HTTP without binary tensors.

Prints requests, seconds, and the 50th and 99th percentile of a request in microseconds.
"""
import sys
import threading
import time

import numpy as np

kind, address, model, takes, gives, shape, callers, seconds = sys.argv[1:]
shape, callers, seconds = [int(n) for n in shape.split(",")], int(callers), float(seconds)
if kind == "grpc":
    import tritonclient.grpc as tc
else:
    import tritonclient.http as tc

binary = {} if kind == "grpc" else {"binary_data": kind == "http"}
x = np.random.default_rng(1).random(shape, np.float32)
# gevent's hub is one per thread, so that every thread has a client of its own.
times, failed, lock = [], [], threading.Lock()
begin = threading.Barrier(callers + 1)


def call():
    own = []
    try:
        client = tc.InferenceServerClient(address)
        given = tc.InferInput(takes, shape, "FP32")
        given.set_data_from_numpy(x, **binary)
        wanted = [tc.InferRequestedOutput(gives, **binary)]
        client.infer(model, [given], outputs=wanted)
    except Exception as e:  # the barrier waits for every caller
        failed.append(e)
    begin.wait()
    end = time.monotonic() + seconds
    try:
        while not failed and time.monotonic() < end:
            began = time.perf_counter_ns()
            client.infer(model, [given], outputs=wanted)
            own.append(time.perf_counter_ns() - began)
    except Exception as e:
        failed.append(e)
    with lock:
        times.extend(own)


threads = [threading.Thread(target=call) for _ in range(callers)]
for t in threads:
    t.start()
begin.wait()
began = time.monotonic()
for t in threads:
    t.join()
took = time.monotonic() - began
if failed:
    sys.exit(f"{len(failed)} callers failed: {failed[0]}")
times.sort()
print(len(times), took, times[len(times) // 2] // 1000, times[len(times) * 99 // 100] // 1000)
