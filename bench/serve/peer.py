"""The peer: MLServer with a runtime that runs an ONNX model with ONNX Runtime.

    peer.py start FOLDER        as mlserver start

A model's settings name the class peer.ONNX; parameters.uri is the model, parameters.extra.threads
the threads inside an operator. perf_analyzer asks for a model's configuration and statistics,
which are extensions of Triton that MLServer lacks: the peer answers them with constants.
"""
import sys

import grpc
import mlserver.grpc.server as over_grpc
import numpy as np
import onnxruntime as ort
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.handlers.custom import CustomHandler, register_custom_handler
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput


def describe(name, inputs, outputs):
    def tensor(t):
        return {"name": t["name"], "data_type": "TYPE_" + t["datatype"], "dims": t["shape"][1:]}

    return {"name": name, "platform": "onnx", "backend": "", "max_batch_size": 8, "input": [tensor(t) for t in inputs], "output": [tensor(t) for t in outputs]}


def nothing(name):
    none = {k: {"count": 0, "ns": 0} for k in ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")}
    return {"model_stats": [{"name": name, "version": "1", "last_inference": 0, "inference_count": 0, "execution_count": 0, "inference_stats": none, "batch_stats": []}]}


class ONNX(MLModel):
    def __init__(self, settings):
        super().__init__(settings)
        inputs, outputs = ([{"name": t.name, "datatype": str(getattr(t.datatype, "value", t.datatype)), "shape": list(t.shape)} for t in all] for all in (settings.inputs, settings.outputs))
        CONFIGS[settings.name] = (inputs, outputs)
        self.answers = [
            _route(self, f"/v2/models/{settings.name}{version}/{path}", answer)
            for path, answer in {"config": lambda: describe(settings.name, inputs, outputs), "stats": lambda: nothing(settings.name)}.items()
            for version in ("", "/versions/1")
        ]

    async def load(self) -> bool:
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.settings.parameters.extra["threads"]
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = ort.InferenceSession(self.settings.parameters.uri, options, providers=["CPUExecutionProvider"])
        self.takes, self.gives = self.session.get_inputs()[0].name, self.session.get_outputs()[0].name
        return True

    async def predict(self, request: InferenceRequest) -> InferenceResponse:
        x = NumpyCodec.decode_input(request.inputs[0])
        y = self.session.run([self.gives], {self.takes: np.ascontiguousarray(x)})[0]
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=[ResponseOutput(name=self.gives, datatype="FP32", shape=list(y.shape), data=y.ravel().tolist())])


CONFIGS = globals().get("CONFIGS", {})  # by model: its inputs and outputs; MLServer loads this module once for each model


def _route(model, path, answer):
    async def handler():
        return answer()

    register_custom_handler(CustomHandler(rest_path=path, rest_method="GET"), handler)
    setattr(model, "answer" + path.replace("/", "_"), handler)  # MLServer finds it there
    return handler


# The messages of the two calls, encoded by hand: the definitions of MLServer and those of Triton have the
# same names, so that one process cannot load both.
def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def name_in(message):
    """The first field of a request, the name of the model."""
    return message[2 : 2 + message[1]].decode() if message[:1] == b"\x0a" else ""


def config(message):
    name = name_in(message)
    inputs, outputs = sys.modules["peer"].CONFIGS[name]  # the module that MLServer loads

    def tensors(number, dims, all):
        kinds = {"FP32": 11}
        return b"".join(field(number, field(1, t["name"]) + field(2, kinds[t["datatype"]]) + field(dims, b"".join(map(varint, t["shape"][1:])))) for t in all)

    return field(1, field(1, name) + field(4, 8) + tensors(5, 4, inputs) + tensors(6, 3, outputs))


def statistics(message):
    none = b"".join(field(number, b"") for number in (1, 2, 3, 4, 5, 6))
    return field(1, field(1, name_in(message)) + field(2, "1") + field(6, none))


class Extensions(grpc.GenericRpcHandler):
    def service(self, details):
        answers = {"ModelConfig": config, "ModelStatistics": statistics}
        answer = answers.get(details.method.rsplit("/", 1)[-1])
        if answer is None:
            return None

        async def call(request, context):
            return answer(request)

        return grpc.unary_unary_rpc_method_handler(call)


def extend():
    create = over_grpc.GRPCServer._create_server

    def extended(self):
        server = create(self)
        server.add_generic_rpc_handlers((Extensions(),))
        return server

    over_grpc.GRPCServer._create_server = extended


if __name__ == "__main__":
    extend()
    from mlserver.cli import main

    sys.argv[0] = "mlserver"
    main()
