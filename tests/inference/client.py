# Drives a server with NVIDIA's client over HTTP: client.py HOST:PORT
import sys

import numpy as np
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

address = sys.argv[1]
client = http.InferenceServerClient(address, concurrency=8)
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("m") and client.is_model_ready("m", "1")
assert not client.is_model_ready("n")
assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
assert client.get_model_metadata("m")["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 4]}]
assert client.get_model_config("m")["max_batch_size"] == 16
assert client.get_model_repository_index()[0]["state"] == "READY"

rng = np.random.default_rng(1)
for binary in (False, True):
    for out_binary in (False, True):
        for coding in (None, "gzip", "deflate"):
            x = rng.standard_normal((3, 4), dtype=np.float32)
            i = http.InferInput("input", x.shape, "FP32")
            i.set_data_from_numpy(x, binary_data=binary)
            outs = [http.InferRequestedOutput("z", binary_data=out_binary), http.InferRequestedOutput("y", binary_data=out_binary)]
            r = client.infer("m", [i], outputs=outs, request_id="q", priority=2, timeout=5_000_000, parameters={"tag": "b"},
                             request_compression_algorithm=coding, response_compression_algorithm=coding)
            assert np.array_equal(r.as_numpy("y"), x) and np.array_equal(r.as_numpy("z"), -x), (binary, out_binary, coding)
            assert r.get_response()["id"] == "q" and r.get_response()["parameters"] == {"tag": "b"}, r.get_response()

i = http.InferInput("input", [1, 4], "FP32")
i.set_data_from_numpy(np.array([[1, 7, 3, 5]], np.float32))
r = client.infer("m", [i], outputs=[http.InferRequestedOutput("y", class_count=2)])
assert r.as_numpy("y").tolist() == [[b"7.000000:1", b"5.000000:3"]], r.as_numpy("y")

# Requests of several callers at once.
pending = []
for n in range(64):
    x = np.full((1 + n % 3, 4), n, np.float32)
    i = http.InferInput("input", x.shape, "FP32")
    i.set_data_from_numpy(x)
    pending.append((x, client.async_infer("m", [i])))
for x, p in pending:
    assert np.array_equal(p.get_result().as_numpy("y"), x)

stats = client.get_inference_statistics("m")["model_stats"][0]
assert stats["inference_count"] == 12 * 3 + 1 + sum(1 + n % 3 for n in range(64)), stats
assert stats["inference_stats"]["success"]["count"] == 12 + 1 + 64, stats

for shape, kind, why in (([1, 5], "FP32", "its shape is [1 5]"), ([99, 4], "FP32", "at most 16"), ([1, 4], "INT32", "the model takes FP32")):
    i = http.InferInput("input", shape, kind)
    i.set_data_from_numpy(np.zeros(shape, np.float32 if kind == "FP32" else np.int32))
    try:
        client.infer("m", [i])
    except InferenceServerException as e:
        assert why in e.message(), e.message()
    else:
        raise AssertionError(shape)
print("ok")
