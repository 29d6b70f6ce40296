#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the schemas of Tenon's ops with TensorFlow's.

    python3 check_opdefs.py build/.libs/libtenon.so [OP...]

For each op (all of them when none is named): names, types and lists of inputs and outputs; names, kinds, defaults, minima
and allowed values of attributes; whether it is stateful or commutative. The order of attributes does not count. Prints
what differs, "-" for what TensorFlow says and "+" for what Tenon says, and ends with 1 if anything does.
Needs TensorFlow; not part of `make check`.
"""
import argparse
import ctypes
import difflib
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import op_def_registry


class Tenon:
    """What of the library is needed here."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.tn_n_op_schemas.restype = ctypes.c_size_t
        for name in ("tn_op_schema_at", "tn_op_schema_find"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.tn_op_schema_at.argtypes = [ctypes.c_size_t]
        self.lib.tn_op_schema_find.argtypes = [ctypes.c_char_p]
        self.lib.tn_op_schema_op_def.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self.lib.tn_free.argtypes = [ctypes.c_void_p]

    def op_def(self, schema):
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        status = self.lib.tn_op_schema_op_def(schema, ctypes.byref(data), ctypes.byref(size), None)
        if status != 0:
            sys.exit(f"tn_op_schema_op_def: status {status}")
        op = op_def_pb2.OpDef.FromString(ctypes.string_at(data, size.value))
        self.lib.tn_free(data)
        return op

    def op_defs(self, names):
        if names:
            schemas = [self.lib.tn_op_schema_find(name.encode()) for name in names]
        else:
            schemas = [self.lib.tn_op_schema_at(i) for i in range(self.lib.tn_n_op_schemas())]
        for name, schema in zip(names or schemas, schemas):
            if schema is None:
                sys.exit(f"{name}: Tenon has no such op")
            yield self.op_def(schema)


def attributes(op):
    """Sorted, and without what has no order."""
    out = []
    for attr in sorted(op.attr, key=lambda a: a.name):
        copy = op_def_pb2.OpDef.AttrDef()
        copy.CopyFrom(attr)
        copy.description = ""
        for values in (copy.allowed_values.list.type, copy.allowed_values.list.s):
            values[:] = sorted(set(values))
        if not attr.HasField("allowed_values"):
            copy.ClearField("allowed_values")
        out.append(copy)
    return out


def comparable(op):
    """Without what only TensorFlow has a use for."""
    out = op_def_pb2.OpDef(name=op.name, is_stateful=op.is_stateful, is_commutative=op.is_commutative)
    for field in ("input_arg", "output_arg"):
        for arg in getattr(op, field):
            copy = getattr(out, field).add()
            copy.CopyFrom(arg)
            copy.description = ""
            copy.ClearField("experimental_full_type")
            copy.ClearField("handle_data")
    out.attr.extend(attributes(op))
    return str(out).splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("ops", nargs="*")
    args = parser.parse_args()
    seen = different = unknown = 0
    for ours in Tenon(args.library).op_defs(args.ops):
        if ours.name.startswith("_Tn"):
            continue  # the planner's own
        theirs = op_def_registry.get(ours.name)
        seen += 1
        if theirs is None:
            print(f"{ours.name}: TensorFlow has no such op")
            unknown += 1
            continue
        lines = [line for line in difflib.unified_diff(comparable(theirs), comparable(ours), n=2, lineterm="")
                 if not line.startswith(("---", "+++", "@@"))]
        if lines:
            different += 1
            print(f"{ours.name}:", *lines, sep="\n    ")
    print(f"{seen} ops, {different} differ, {unknown} are not TensorFlow's")
    return 1 if different or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
