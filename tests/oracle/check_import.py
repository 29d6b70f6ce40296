#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the options of an import against TensorFlow.

    python3 check_import.py build/.libs/libtenon.so FOLDER_OR_FILE...

Each GraphDef (*.pb) is imported by both with a prefix, twice with unique names, and with an input mapped to a placeholder
that is there already; what Tenon then exports is, read by TensorFlow, the graph that TensorFlow made.
Needs TensorFlow; not part of `make check`.
"""
import argparse
import ctypes
import pathlib
import sys

from check_roundtrip import Failed, Output, Tenon, parse, tf

UNIQUIFY_NAMES = 4


class Mapping(ctypes.Structure):
    _fields_ = [("source", ctypes.c_char_p), ("target", Output)]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("flags", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("file", ctypes.c_char_p), ("prefix", ctypes.c_char_p), ("default_device", ctypes.c_char_p),
                ("input_map", ctypes.POINTER(Mapping)), ("n_input_map", ctypes.c_size_t)]


def add(tenon, graph, data, flags=0, prefix=None, input_map=()):
    mappings = (Mapping * len(input_map))()
    for mapping, (source, node) in zip(mappings, input_map):
        mapping.source = source.encode()
        mapping.target = Output(tenon.lib.tn_graph_find(graph, node.encode()), 0)
    options = Options(ctypes.sizeof(Options), flags, 0, None, prefix and prefix.encode(), None, mappings, len(mappings))
    tenon.check(tenon.lib.tn_graph_import(graph, data, ctypes.c_size_t(len(data)), ctypes.byref(options), tenon.error))


def nodes(graph):
    return {node.name: node.SerializeToString(deterministic=True) for node in graph.as_graph_def().node}


def compare(tenon, theirs, imports, what):
    """theirs: a tf.Graph; imports: arguments of add."""
    graph = tenon.graph()
    try:
        for arguments in imports:
            add(tenon, graph, **arguments)
        ours = tf.Graph()
        with ours.as_default():
            tf.import_graph_def(parse(tenon.export(graph, 0)), name="")
    finally:
        tenon.lib.tn_graph_unref(graph)
    found, wanted = nodes(ours), nodes(theirs)
    if found == wanted:
        return
    for name in sorted(set(found) | set(wanted)):
        if found.get(name) != wanted.get(name):
            raise Failed("%s: node '%s' is not equal" % (what, name))


def check_prefix(tenon, data, graph):
    with tf.Graph().as_default() as theirs:
        tf.import_graph_def(graph, name="net")
    compare(tenon, theirs, [dict(data=data, prefix="net")], "prefix")


def check_unique(tenon, data, graph):
    with tf.Graph().as_default() as theirs:
        tf.import_graph_def(graph, name="")
        tf.import_graph_def(graph, name="")
    compare(tenon, theirs, [dict(data=data), dict(data=data, flags=UNIQUIFY_NAMES)], "unique names")


def check_map(tenon, data, graph):
    node = next((node for node in graph.node if node.op == "Placeholder"), None)
    if node is None:
        return
    with tf.Graph().as_default() as base:
        tf.compat.v1.placeholder(tf.DType(node.attr["dtype"].type), tf.TensorShape(node.attr["shape"].shape), name="there")
    with tf.Graph().as_default() as theirs:
        there, = tf.import_graph_def(base.as_graph_def(), name="", return_elements=["there:0"])
        tf.import_graph_def(graph, name="net", input_map={node.name + ":0": there})
    compare(tenon, theirs, [dict(data=base.as_graph_def().SerializeToString()),
                            dict(data=data, prefix="net", input_map=[(node.name, "there")])], "input map")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("library")
    arguments.add_argument("paths", nargs="+", type=pathlib.Path)
    given = arguments.parse_args()
    tenon = Tenon(given.library)
    failed = checked = refused = 0
    for path in given.paths:
        for file in sorted(path.rglob("*.pb")) if path.is_dir() else [path]:
            data = file.read_bytes()
            try:
                tenon.convert(data, 0)
                graph = parse(data)
                with tf.Graph().as_default():
                    tf.import_graph_def(graph, name="")
            except Exception as e:
                refused += 1
                print("not read: %s: %s" % (file, str(e)[:200]))
                continue
            try:
                for check in (check_prefix, check_unique, check_map):
                    check(tenon, data, graph)
                checked += 1
            except Exception as e:
                failed += 1
                print("FAILED: %s: %s" % (file, e))
    print("%d files are equal, %d failed, %d are not read by both" % (checked, failed, refused))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
