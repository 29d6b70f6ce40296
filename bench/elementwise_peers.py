#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single ops of NumPy and ONNX Runtime on one thread, as bench/cases/elementwise.c measures them: bytes a second.

Run it with the Python of the environment that bench/compare makes:  compare/venv/bin/python bench/elementwise_peers.py
"""
import argparse
import statistics
import time

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

ROW = 256
SIZES = {"1k": 1 << 10, "64k": 1 << 16, "1m": 1 << 20, "16m": 1 << 24}


def numbers(*shape):
    n = int(np.prod(shape))
    return ((np.arange(n) % 2003) / 500 + 0.01).astype(np.float32).reshape(shape)


def gbs(call, nbytes, seconds):
    """GB/s by the median of samples."""
    call()
    inner = max(1, (1 << 22) // max(1, int(nbytes)))
    samples = []
    end = time.perf_counter() + seconds
    while len(samples) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(inner):
            call()
        samples.append((time.perf_counter() - begin) / inner)
    return nbytes / statistics.median(samples) / 1e9


def numpy_cases(n):
    """name: (call, bytes)"""
    x, y, out = numbers(n // ROW, ROW), numbers(n // ROW, ROW), np.empty((n // ROW, ROW), np.float32)
    row, rows, columns = numbers(ROW), np.empty(n // ROW, np.float32), np.empty(ROW, np.float32)
    return {
        "add": (lambda: np.add(x, y, out=out), 12 * n),
        "add_row": (lambda: np.add(x, row, out=out), 8 * n),
        "relu": (lambda: np.maximum(x, np.float32(0), out=out), 8 * n),
        "exp": (lambda: np.exp(x, out=out), 8 * n),
        "tanh": (lambda: np.tanh(x, out=out), 8 * n),
        "sum_rows": (lambda: np.sum(x, axis=1, out=rows), 4 * n),
        "sum_columns": (lambda: np.sum(x, axis=0, out=columns), 4 * n),
        "max_rows": (lambda: np.max(x, axis=1, out=rows), 4 * n),
        "argmax_rows": (lambda: np.argmax(x, axis=1), 4 * n),
    }


def session(node, inputs, shape, dtype, constants):
    """A call of one node with inputs and output bound."""
    infos = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in inputs.items()]
    result = helper.make_tensor_value_info("out", dtype, shape)
    model = helper.make_model(helper.make_graph([node], "one", infos, [result], constants),
                              opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    made = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = made.io_binding()
    kept = {k: ort.OrtValue.ortvalue_from_numpy(v) for k, v in inputs.items()}
    for k, v in kept.items():
        binding.bind_ortvalue_input(k, v)
    element = np.float32 if dtype == TensorProto.FLOAT else np.int64
    binding.bind_ortvalue_output("out", ort.OrtValue.ortvalue_from_shape_and_type(list(shape), element))
    return lambda: (made.run_with_iobinding(binding), kept)


def ort_cases(n):
    x = numbers(n // ROW, ROW)
    image = (1, 64, max(1, n // 512), 8)
    channel = {k: numbers(64) for k in "sbmv"}

    def one(op, extra=None, shape=None, dtype=TensorProto.FLOAT, constants=(), **attributes):
        inputs = {"x": x, **(extra or {})}
        names = list(inputs) + [c.name for c in constants]
        return session(helper.make_node(op, names, ["out"], **attributes), inputs, shape or x.shape, dtype, constants)

    def axis(a):
        return [helper.make_tensor("axis", TensorProto.INT64, [1], [a])]

    norm = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["out"])
    return {
        "add": (one("Add", {"y": numbers(n // ROW, ROW)}), 12 * n),
        "add_row": (one("Add", {"y": numbers(ROW)}), 8 * n),
        "relu": (one("Relu"), 8 * n),
        "exp": (one("Exp"), 8 * n),
        "tanh": (one("Tanh"), 8 * n),
        "sigmoid": (one("Sigmoid"), 8 * n),
        "sum_rows": (one("ReduceSum", shape=(n // ROW,), constants=axis(1), keepdims=0), 4 * n),
        "sum_columns": (one("ReduceSum", shape=(ROW,), constants=axis(0), keepdims=0), 4 * n),
        "max_rows": (one("ReduceMax", shape=(n // ROW,), axes=[1], keepdims=0), 4 * n),
        "argmax_rows": (one("ArgMax", shape=(n // ROW,), dtype=TensorProto.INT64, axis=1, keepdims=0), 4 * n),
        "softmax": (one("Softmax", axis=1), 8 * n),
        "batch_norm": (session(norm, {"x": numbers(*image), **channel}, image, TensorProto.FLOAT, []), 8 * n),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.25)
    seconds = parser.parse_args().seconds
    for suffix, n in SIZES.items():
        peers = {"numpy": numpy_cases(n), "onnxruntime": ort_cases(n)}
        for name in peers["onnxruntime"]:
            line = f"{name + '_' + suffix:24}"
            for peer, cases in peers.items():
                line += f" {peer} {gbs(*cases[name], seconds):8.2f}" if name in cases else f" {peer}        -"
            print(line, flush=True)


if __name__ == "__main__":
    main()
