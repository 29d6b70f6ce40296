#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks export and the text form against TensorFlow.

    python3 check_roundtrip.py build/.libs/libtenon.so FOLDER_OR_FILE...

For each GraphDef (*.pb): what Tenon exports is equal to it for TensorFlow, in both forms; what TensorFlow prints as text,
Tenon reads; importing and exporting again gives the same bytes. Then a graph is built with Tenon, which TensorFlow runs.
Needs TensorFlow; not part of `make check`.
"""
import argparse
import ctypes
import os
import pathlib
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import graph_pb2

IMPORT_TEXT = 2
EXPORT_TEXT = 1


class Failed(Exception):
    pass


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("flags", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("file", ctypes.c_char_p)]


class Output(ctypes.Structure):
    _fields_ = [("op", ctypes.c_void_p), ("index", ctypes.c_int32)]


class Tenon:
    """What of the library is needed here."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        for name in ("tn_operation_begin", "tn_graph_find"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.tn_error_message.restype = ctypes.c_char_p
        self.error = ctypes.create_string_buffer(8192)  # more than a tn_error
        self.lib.tn_error_init(self.error)

    def check(self, status):
        if status != 0:
            raise Failed(self.lib.tn_error_message(self.error).decode(errors="replace"))

    def graph(self):
        graph = ctypes.c_void_p()
        self.check(self.lib.tn_graph_create(ctypes.byref(graph), self.error))
        return graph

    def export(self, graph, flags):
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.check(self.lib.tn_graph_export(graph, ctypes.c_uint32(flags), ctypes.byref(data), ctypes.byref(size),
                                            self.error))
        result = ctypes.string_at(data, size.value)
        self.lib.tn_free(data)
        return result

    def convert(self, data, import_flags, *export_flags):
        graph = self.graph()
        try:
            options = Options(ctypes.sizeof(Options), import_flags, 0, None)
            self.check(self.lib.tn_graph_import(graph, data, ctypes.c_size_t(len(data)), ctypes.byref(options),
                                                self.error))
            return [self.export(graph, flags) for flags in export_flags]
        finally:
            self.lib.tn_graph_unref(graph)


def parse(data):
    graph = graph_pb2.GraphDef()
    graph.ParseFromString(data)
    return graph


def same(found, wanted, what):
    """Equal as messages; NaN compares by bytes."""
    if found == wanted or found.SerializeToString(deterministic=True) == wanted.SerializeToString(deterministic=True):
        return
    raise Failed(what + " is not equal")


def check_file(tenon, data):
    original = parse(data)
    binary, text = tenon.convert(data, 0, 0, EXPORT_TEXT)
    same(parse(binary), original, "the export")
    if tenon.convert(binary, 0, 0)[0] != binary:
        raise Failed("a second export has other bytes")
    same(text_format.Parse(text.decode("ascii"), graph_pb2.GraphDef()), original, "the text")
    again, = tenon.convert(text, IMPORT_TEXT, 0)
    same(parse(again), original, "the text, read again,")
    if tenon.convert(again, 0, EXPORT_TEXT)[0] != text:
        raise Failed("a second text is not the first one")
    for printed in (text_format.MessageToString(original), text_format.MessageToString(original, as_one_line=True)):
        same(parse(tenon.convert(printed.encode(), IMPORT_TEXT, 0)[0]), original, "TensorFlow's text")


def check_built(tenon):
    lib = tenon.lib
    graph = tenon.graph()

    def node(op, name, inputs=(), flags=0, **attrs):
        b = ctypes.c_void_p(lib.tn_operation_begin(graph, op.encode(), name.encode(), ctypes.c_uint32(flags)))
        for at in inputs:
            lib.tn_operation_add_input(b, at)
        for key, (setter, *values) in attrs.items():
            getattr(lib, "tn_operation_set_" + setter)(b, key.encode(), *values)
        made = ctypes.c_void_p()
        tenon.check(lib.tn_operation_finish(b, ctypes.byref(made), tenon.error))
        return Output(made.value, 0)

    def constant(name, dtype, shape, values):
        tensor = ctypes.c_void_p()
        dims = (ctypes.c_int64 * len(shape))(*shape)
        data = (ctypes.c_float * len(values))(*values)
        tenon.check(lib.tn_tensor_from_data(dtype, dims, len(shape), data, ctypes.c_size_t(ctypes.sizeof(data)),
                                            ctypes.byref(tensor), tenon.error))
        out = node("Const", name, dtype=("type", dtype), value=("tensor", tensor))
        lib.tn_tensor_unref(tensor)
        return out

    dims = (ctypes.c_int64 * 2)(-1, 3)
    x = node("Placeholder", "x", dtype=("type", 1), shape=("shape", dims, 2))
    w = constant("w", 1, [3, 2], [1, 2, 3, 4, 5, 6])
    product = node("MatMul", "product", [x, w], transpose_a=("bool", 0))
    node("AddV2", "y", [product, constant("b", 1, [2], [0.5, -0.5])])
    for flags, read in ((0, parse), (EXPORT_TEXT, lambda t: text_format.Parse(t.decode(), graph_pb2.GraphDef()))):
        exported = read(tenon.export(graph, flags))
        with tf.Graph().as_default() as g:
            tf.import_graph_def(exported, name="")
            with tf.compat.v1.Session(graph=g) as session:
                y = session.run("y:0", {"x:0": [[1.0, 1.0, 1.0]]})
        if y.tolist() != [[9.5, 11.5]]:
            raise Failed("a graph that was built gives %s" % y)
    lib.tn_graph_unref(graph)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("library")
    arguments.add_argument("paths", nargs="+", type=pathlib.Path)
    given = arguments.parse_args()
    tenon = Tenon(given.library)
    failed = checked = refused = 0
    start = time.monotonic()
    try:
        check_built(tenon)
    except Failed as e:
        failed += 1
        print("FAILED: built graph:", e)
    for path in given.paths:
        for file in sorted(path.rglob("*.pb")) if path.is_dir() else [path]:
            data = file.read_bytes()
            try:
                tenon.convert(data, 0)
            except Failed as e:
                refused += 1
                print("not read: %s: %s" % (file, e))
                continue
            try:
                check_file(tenon, data)
                checked += 1
            except (Failed, text_format.ParseError, UnicodeError) as e:
                failed += 1
                print("FAILED: %s: %s" % (file, e))
    print("%d files are equal, %d failed, %d are not read (%.0f s)" % (checked, failed, refused,
                                                                      time.monotonic() - start))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
