"""Rows for the gRPC transport and for shared memory, with NVIDIA's client.

Usage: client.py ADDRESS UNIX_SOCKET SLOW_ADDRESS [ROW...]
"""
import concurrent.futures
import os
import queue
import sys
import time

import grpc
import numpy as np
import tritonclient.grpc as tc
import tritonclient.http as th
import tritonclient.utils.shared_memory as shm
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

address, unix, slow_address = sys.argv[1:4]
client = tc.InferenceServerClient(address)
FAILED = []
ROWS = []


def row(f):
    ROWS.append(f)
    return f


def check(ok, what):
    if not ok:
        raise AssertionError(what)


def refused(f, code, text):
    try:
        f()
    except InferenceServerException as e:
        check(e.status() == f"StatusCode.{code}" and text in e.message(), f"{e.status()}: {e.message()}; want {code}, {text!r}")
        return
    except grpc.RpcError as e:
        check(e.code().name == code and text in e.details(), f"{e.code()}: {e.details()}; want {code}, {text!r}")
        return
    raise AssertionError(f"it was not refused: {text!r}")


def tensor(name, values, datatype="FP32"):
    t = tc.InferInput(name, list(values.shape), datatype)
    t.set_data_from_numpy(values)
    return t


def four(rows=1, start=0.0):
    return np.arange(rows * 4, dtype=np.float32).reshape(rows, 4) + np.float32(start)


def infer(values, **more):
    return client.infer("id4", [tensor("x", values)], **more).as_numpy("y")


@row
def health_and_metadata():
    check(client.is_server_live() and client.is_server_ready() and client.is_model_ready("id4"), "not ready")
    m = client.get_server_metadata()
    check(m.name == "yoctune" and "system_shared_memory" in m.extensions and "cuda_shared_memory" not in m.extensions, m)
    m = client.get_model_metadata("id4")
    check(list(m.inputs[0].shape) == [-1, 4] and m.inputs[0].datatype == "FP32" and m.inputs[0].name == "x", m)
    c = client.get_model_config("id4").config
    check(c.max_batch_size >= 8 and c.input[0].data_type == model_config_pb2.TYPE_FP32 and list(c.input[0].dims) == [4], c)
    check(list(c.dynamic_batching.preferred_batch_size) == [1, 2, 4, 8] and c.backend == "yoctune", c)
    i = client.get_model_repository_index()
    check(i.models[0].name == "id4" and i.models[0].state == "READY", i)
    refused(lambda: client.get_model_metadata("none"), "NOT_FOUND", 'model "none" does not exist')
    refused(lambda: client.is_model_ready("id4", "7"), "NOT_FOUND", "has no version")
    refused(lambda: client.load_model("id4"), "UNIMPLEMENTED", "part of the device's plan")


@row
def values_come_back():
    for rows in (1, 3, 8):
        check(np.array_equal(infer(four(rows, 0.5)), four(rows, 0.5)), rows)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        wrong = [n for n, y in pool.map(lambda n: (n, infer(four(1 + n % 3, n))), range(400)) if not np.array_equal(y, four(1 + n % 3, n))]
    check(not wrong, f"values of others: {wrong}")


@row
def ids_parameters_outputs():
    r = client.infer("id4", [tensor("x", four())], request_id="r-1", parameters={"tag": "b", "n": 3}, outputs=[tc.InferRequestedOutput("y")])
    m = r.get_response()
    check(m.id == "r-1" and m.parameters["tag"].string_param == "b" and m.parameters["n"].int64_param == 3 and m.model_version == "1", m)
    top = client.infer("id4", [tensor("x", four())], outputs=[tc.InferRequestedOutput("y", class_count=2)]).as_numpy("y")
    check(top.tolist() == [[b"3.000000:3", b"2.000000:2"]], top)
    for algorithm in ("gzip",):
        check(np.array_equal(client.infer("id4", [tensor("x", four(8))], compression_algorithm=algorithm).as_numpy("y"), four(8)), algorithm)


@row
def every_datatype():
    types = {"i8": ("INT8", np.int8, [-128, 0, 127]), "u8": ("UINT8", np.uint8, [0, 1, 255]), "i32": ("INT32", np.int32, [-(2**31), 0, 2**31 - 1]),
             "i64": ("INT64", np.int64, [-(2**63), 0, 2**63 - 1]), "bool": ("BOOL", np.bool_, [True, False, True]), "f16": ("FP16", np.float16, [0.5, -1, 65504])}
    values = {k: np.array([v], dtype=d) for k, (_, d, v) in types.items()}
    types_client = tc.InferenceServerClient(types_address())
    r = types_client.infer("types", [tensor(k, values[k], types[k][0]) for k in types])
    for k in types:
        check(np.array_equal(r.as_numpy(k + "_out"), values[k]), (k, r.as_numpy(k + "_out")))
    # The same in the fields of the types; FP16 has none.
    q = request("types")
    fields = {"i8": "int_contents", "u8": "uint_contents", "i32": "int_contents", "i64": "int64_contents", "bool": "bool_contents"}
    for k, (name, _, v) in types.items():
        t = q.inputs.add(name=k, datatype=name, shape=[1, 3])
        if k in fields:
            getattr(t.contents, fields[k]).extend(v)
    stub = stub_of(types_address())
    refused(lambda: stub.ModelInfer(q), "INVALID_ARGUMENT", "FP16 has no field for its elements: use raw_input_contents")


def types_address():
    return os.environ["TYPES_ADDRESS"]


def stub_of(where):
    return service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(where, options=[("grpc.max_send_message_length", -1)]))


stub = stub_of(address)


def request(model="id4", raw=None, shape=(1, 4), datatype="FP32", name="x", contents=None):
    q = service_pb2.ModelInferRequest(model_name=model)
    if raw is None and contents is None:
        return q
    t = q.inputs.add(name=name, datatype=datatype, shape=list(shape))
    if raw is not None:
        q.raw_input_contents.append(raw)
    if contents:
        for field, v in contents.items():
            getattr(t.contents, field).extend(v)
    return q


@row
def typed_contents():
    r = stub.ModelInfer(request(contents={"fp32_contents": [1, 2, 3, 4]}))
    check(np.frombuffer(r.raw_output_contents[0], np.float32).tolist() == [1, 2, 3, 4], r)


@row
def hostile_requests():
    raw = four().tobytes()
    types = stub_of(types_address())
    for q, code, text in [
        (request("../../etc/passwd", raw), "NOT_FOUND", 'model "../../etc/passwd" does not exist; this server has id4'),
        (request("id4\x00", raw), "NOT_FOUND", "does not exist"),
        (request("x" * 100_000, raw), "NOT_FOUND", "does not exist"),
        (request("", raw), "NOT_FOUND", "does not exist"),
        (request(), "INVALID_ARGUMENT", "input x is missing"),
        (request(raw=raw[:-1]), "INVALID_ARGUMENT", "15 bytes of data, and shape [1 4] of FP32 has 16"),
        (request(raw=raw + b"\0"), "INVALID_ARGUMENT", "17 bytes"),
        (request(raw=raw, shape=[-1, 4]), "INVALID_ARGUMENT", "negative size -1"),
        (request(raw=raw, shape=[2**62, 4]), "INVALID_ARGUMENT", "more elements than a request can have"),
        (request(raw=raw, shape=[0, 4]), "INVALID_ARGUMENT", "no rows"),
        (request(raw=raw, shape=[4]), "INVALID_ARGUMENT", "the model takes [1 4]"),
        (request(raw=raw, shape=[1, 2, 2]), "INVALID_ARGUMENT", "the model takes"),
        (request(raw=raw, shape=[1] * 1000), "INVALID_ARGUMENT", "the model takes"),
        (request(raw=raw, shape=[4, 1]), "INVALID_ARGUMENT", "the model takes"),
        (request(raw=four(17).tobytes(), shape=[17, 4]), "INVALID_ARGUMENT", "17 rows, and a request has at most 16"),
        (request(raw=raw, datatype="INT32"), "INVALID_ARGUMENT", 'datatype is "INT32", and the model takes FP32'),
        (request(raw=raw, datatype="FP64"), "INVALID_ARGUMENT", 'datatype is "FP64"'),
        (request(raw=raw, datatype=""), "INVALID_ARGUMENT", "datatype"),
        (request(raw=raw, name="../x"), "INVALID_ARGUMENT", 'input "../x" does not exist; the model takes x'),
        (request(contents={"int64_contents": [1, 2, 3, 4]}), "INVALID_ARGUMENT", "4 elements are in other fields than fp32_contents"),
        (request(contents={"fp32_contents": [1, 2]}), "INVALID_ARGUMENT", "8 bytes of data"),
        (request(contents={}), "INVALID_ARGUMENT", "0 bytes of data"),
        (request("types", contents={"int_contents": [1, 2, 300]}, datatype="INT8", name="i8", shape=[1, 3]), "INVALID_ARGUMENT", "element 2 is 300, and INT8 has"),
    ]:
        to = types if q.model_name == "types" else stub
        refused(lambda: to.ModelInfer(q), code, text)
    both = request(raw=raw)
    both.inputs[0].contents.fp32_contents.extend([1, 2, 3, 4])
    refused(lambda: stub.ModelInfer(both), "INVALID_ARGUMENT", "has contents, and its data is in raw_input_contents")
    many = request(raw=raw)
    many.raw_input_contents.append(raw)
    refused(lambda: stub.ModelInfer(many), "INVALID_ARGUMENT", "1 of them too many")
    twice = request(raw=raw)
    twice.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    refused(lambda: stub.ModelInfer(twice), "INVALID_ARGUMENT", "too few")
    twice.raw_input_contents.append(raw)
    refused(lambda: stub.ModelInfer(twice), "INVALID_ARGUMENT", "input x is given twice")
    thousands = request(raw=raw)
    for n in range(5000):
        thousands.inputs.add(name=f"x{n}", datatype="FP32", shape=[1, 4])
    refused(lambda: stub.ModelInfer(thousands), "INVALID_ARGUMENT", "no model has more than")
    parameters = request(raw=raw)
    for n in range(1000):
        parameters.parameters[f"p{n}"].int64_param = n
    refused(lambda: stub.ModelInfer(parameters), "INVALID_ARGUMENT", "1000 parameters")
    odd = request(raw=raw)
    odd.parameters["timeout"].string_param = "soon"
    refused(lambda: stub.ModelInfer(odd), "INVALID_ARGUMENT", "must be a number of microseconds")
    nothing = request(raw=raw)
    nothing.parameters["a"].SetInParent()
    refused(lambda: stub.ModelInfer(nothing), "INVALID_ARGUMENT", "parameter \"a\" has no value")
    sequence = request(raw=raw)
    sequence.parameters["sequence_id"].int64_param = 3
    refused(lambda: stub.ModelInfer(sequence), "UNIMPLEMENTED", "has no sequences")
    unknown = request(raw=raw)
    unknown.outputs.add(name="z")
    refused(lambda: stub.ModelInfer(unknown), "INVALID_ARGUMENT", 'output "z" does not exist; the model gives y')
    refused(lambda: stub.ModelInfer(request(raw=bytes(8 << 20))), "RESOURCE_EXHAUSTED", "larger than max")
    # gzip of zeros: a small message that would become a large one.
    refused(lambda: stub.ModelInfer(request(raw=bytes(64 << 20)), compression=grpc.Compression.Gzip), "RESOURCE_EXHAUSTED", "larger than max")
    # A header that is too long ends the connection of its caller, and not that of others.
    other = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]))
    for size in (20_000, 200_000):
        try:
            other.ModelInfer(request(raw=raw), metadata=[("x", "y" * size)])
        except grpc.RpcError as e:
            check(e.code().name in ("RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL"), e)
        else:
            check(False, f"a header of {size} bytes is taken")
        check(np.array_equal(infer(four()), four()), "another caller is answered")
    refused(lambda: grpc.insecure_channel(address).unary_unary("/inference.GRPCInferenceService/TraceSetting")(b""), "UNIMPLEMENTED", "unknown method TraceSetting")
    refused(lambda: grpc.insecure_channel(address).unary_unary("/inference.GRPCInferenceService/ModelInfer")(b"\xff\xff\xff"), "INTERNAL", "unmarshal")
    check(np.array_equal(infer(four()), four()), "the server answers afterwards")


@row
def deadlines_and_cancels():
    slow = stub_of(slow_address)
    q = request("slow", four().tobytes())
    refused(lambda: slow.ModelInfer(q, timeout=0.05), "DEADLINE_EXCEEDED", "")
    q.parameters["timeout"].int64_param = 50_000
    running = slow.ModelInfer.future(request("slow", four().tobytes()))
    time.sleep(0.01)
    refused(lambda: slow.ModelInfer(q), "DEADLINE_EXCEEDED", "")
    check(not running.done(), "a request that waits is answered when its time is over, not when the one before it ends")
    running.result()
    f = slow.ModelInfer.future(request("slow", four().tobytes()))
    time.sleep(0.05)
    f.cancel()
    s = slow.ModelStatistics(service_pb2.ModelStatisticsRequest(name="slow")).model_stats[0]
    check(s.inference_stats.success.count >= 1 and s.inference_stats.fail.count >= 1, s)


@row
def overload_is_refused_at_once():
    slow = stub_of(slow_address)
    time.sleep(0.5)
    answers = []

    def one(_):
        try:
            slow.ModelInfer(request("slow", four().tobytes()))
            answers.append("done")
        except grpc.RpcError as e:
            answers.append(e.code().name)

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        list(pool.map(one, range(20)))
    # Those that are refused have their answer before the first one that runs.
    check(answers == ["RESOURCE_EXHAUSTED"] * 15 + ["done"] * 5, answers)


@row
def streams():
    got = queue.Queue()
    with tc.InferenceServerClient(address) as c:
        c.start_stream(lambda result, error: got.put((result, error)))
        for n in range(50):
            c.async_stream_infer("id4", [tensor("x", four(1, n))], request_id=str(n))
        c.async_stream_infer("id4", [tensor("x", four(1).reshape(4, 1))], request_id="bad")
        c.async_stream_infer("id4", [tensor("x", four(2, 7))], request_id="last")
        for n in range(50):
            result, error = got.get(timeout=20)
            check(error is None and result.get_response().id == str(n) and np.array_equal(result.as_numpy("y"), four(1, n)), (n, error))
        result, error = got.get(timeout=20)
        check(error is not None and "the model takes" in error.message(), error)
        result, error = got.get(timeout=20)
        check(error is None and np.array_equal(result.as_numpy("y"), four(2, 7)), error)
        c.stop_stream()


@row
def unix_socket():
    with tc.InferenceServerClient("unix:" + unix) as c:
        check(np.array_equal(c.infer("id4", [tensor("x", four(3))]).as_numpy("y"), four(3)), "unix")


def with_region(make, kind):
    data = four(2, 5)
    size = data.nbytes
    region = shm.create_shared_memory_region("io", f"/yoctune-test-{os.getpid()}-{kind.__name__}", 2 * size + 64)
    key = f"/yoctune-test-{os.getpid()}-{kind.__name__}"
    try:
        shm.set_shared_memory_region(region, [data], offset=64)
        c = make()
        c.register_system_shared_memory("io", key, 2 * size, offset=64)
        status = c.get_system_shared_memory_status()
        check("io" in str(status) and key in str(status), status)
        x = kind.InferInput("x", [2, 4], "FP32")
        x.set_shared_memory("io", size)
        y = kind.InferRequestedOutput("y")
        y.set_shared_memory("io", size, offset=size)
        r = c.infer("id4", [x], outputs=[y])
        check(np.array_equal(shm.get_contents_as_numpy(region, np.float32, [2, 4], offset=64 + size), data), "the output is not in shared memory")
        y2 = kind.InferRequestedOutput("y")
        r = c.infer("id4", [x], outputs=[y2])
        check(np.array_equal(r.as_numpy("y"), data), "input from shared memory, output in the message")
        y.set_shared_memory("io", size - 4)
        fails(lambda: c.infer("id4", [x], outputs=[y]), "it has 32 bytes, and 28 bytes of shared memory are given")
        x.set_shared_memory("io", 2 * size + 1)
        fails(lambda: c.infer("id4", [x]), "are beyond shared memory region io")
        x.set_shared_memory("none", size)
        fails(lambda: c.infer("id4", [x]), 'shared memory region "none" is not registered')
        fails(lambda: c.register_system_shared_memory("io", key, size), "registered already")
        for bad in ("/../etc/passwd", "/a/b", "..", "/", "", "/nul\x00", "/" + "x" * 300):
            fails(lambda: c.register_system_shared_memory("bad", bad, 16), "must be")
        fails(lambda: c.register_system_shared_memory("bad", "/yoctune-test-absent", 16), "does not exist")
        fails(lambda: c.register_system_shared_memory("bad", key, 1 << 40), "end beyond shared memory")
        fails(lambda: c.register_system_shared_memory("bad", key, 16, offset=2 * size + 64), "end beyond shared memory")
        fails(lambda: c.register_system_shared_memory("bad", key, 0), "at least 1")
        os.symlink("/etc/passwd", "/dev/shm/yoctune-test-link")
        try:
            fails(lambda: c.register_system_shared_memory("bad", "/yoctune-test-link", 16), "open shared memory")
        finally:
            os.unlink("/dev/shm/yoctune-test-link")
        # The memory becomes shorter: an error, and the server lives.
        x.set_shared_memory("io", size)
        with open("/dev/shm" + key, "r+b") as f:
            f.truncate(70)
            fails(lambda: c.infer("id4", [x]), "has become shorter")
            f.truncate(2 * size + 64)
        y.set_shared_memory("io", size, offset=size)
        with open("/dev/shm" + key, "r+b") as f:
            f.truncate(64 + size)
            fails(lambda: c.infer("id4", [x], outputs=[y]), "has become shorter")
        fails(lambda: c.register_cuda_shared_memory("g", b"x" * 64, 0, 64), "no CUDA shared memory")
        c.unregister_system_shared_memory("io")
        check("io" not in str(c.get_system_shared_memory_status()).replace("regions", ""), c.get_system_shared_memory_status())
    finally:
        shm.destroy_shared_memory_region(region)


def fails(f, text):
    try:
        f()
    except InferenceServerException as e:
        check(text in e.message(), f"{e.message()}; want {text!r}")
        return
    raise AssertionError(f"it was not refused: {text!r}")


@row
def shared_memory_over_grpc():
    with_region(lambda: tc.InferenceServerClient(address), tc)


@row
def shared_memory_over_the_unix_socket():
    with_region(lambda: tc.InferenceServerClient("unix:" + unix), tc)


@row
def shared_memory_over_http():
    with_region(lambda: th.InferenceServerClient(address), th)


@row
def shared_memory_of_tcp_must_be_declared():
    c = tc.InferenceServerClient(slow_address)
    fails(lambda: c.register_system_shared_memory("io", "/yoctune-test-x", 16), "sharedMemory: true of the source admits those on TCP")


@row
def regions_are_bounded():
    c = tc.InferenceServerClient(address)
    region = shm.create_shared_memory_region("many", "/yoctune-test-many", 64)
    try:
        for n in range(64):
            c.register_system_shared_memory(f"r{n}", "/yoctune-test-many", 64)
        refused(lambda: c.register_system_shared_memory("more", "/yoctune-test-many", 64), "RESOURCE_EXHAUSTED", "64 regions are registered")
    finally:
        c.unregister_system_shared_memory()
        shm.destroy_shared_memory_region(region)


@row
def definitions_are_compatible():
    """Each field that our definitions have is in NVIDIA's with the same number and type on the wire."""
    from google.protobuf import descriptor_pb2
    proto = os.environ.get("INFERENCE_PROTO_SET")
    files = descriptor_pb2.FileDescriptorSet.FromString(open(proto, "rb").read())
    ours = files.file[0]
    theirs = {m.name: m for m in service_pb2.DESCRIPTOR.message_types_by_name.values()}
    theirs.update({m.name: m for m in model_config_pb2.DESCRIPTOR.message_types_by_name.values()})
    methods = {m.name: m for m in service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods}
    mine = {m.name: m for m in ours.message_type}
    count = 0

    def compare(a, b, where):
        nonlocal count
        for f in a.field:
            g = b.fields_by_number.get(f.number)
            check(g is not None and g.name == f.name and g.type == f.type and (f.label == f.LABEL_REPEATED) == g.is_repeated, f"{where}.{f.name}")
            count += 1
        for n in a.nested_type:
            compare(n, b.nested_types_by_name[n.name], f"{where}.{n.name}")
        if a.name in theirs:
            for f in a.field:
                if f.type == f.TYPE_MESSAGE and f.type_name.count(".") == 2:
                    compare(mine[f.type_name.split(".")[-1]], b.fields_by_number[f.number].message_type, f"{where}.{f.name}")

    for s in ours.service[0].method:
        check(s.name in methods and s.client_streaming == (s.name == "ModelStreamInfer"), s)
        compare(mine[s.input_type.split(".")[-1]], methods[s.name].input_type, s.name)
        compare(mine[s.output_type.split(".")[-1]], methods[s.name].output_type, s.name)
    check(count > 100, count)


wanted = sys.argv[4:]
for f in ROWS:
    if wanted and f.__name__ not in wanted:
        continue
    began = time.monotonic()
    try:
        f()
    except Exception as e:  # every row is tried
        FAILED.append(f.__name__)
        print(f"FAIL {f.__name__}: {type(e).__name__}: {str(e)[:600]}")
    else:
        print(f"ok   {f.__name__} {time.monotonic() - began:.2f} s")
sys.exit(len(FAILED) > 0)
