# SPDX-License-Identifier: Apache-2.0
"""What ops_array.py, ops_nn.py and ops_image.py share: a table of op functions, one
small graph for each case.

    @op("array", "Reshape")
    def reshape(g):
        g.c(dict(tensor=g.d("float32", (2, 3)), shape=g.a([3, 2])), "note")

g.d / D(...)   data: always a placeholder, with a full, partial or unknown static shape
g.a / A(...)   shapes, axes, sizes: a placeholder in about half the cases, else a Const
K(...)         always a Const
g.c(inputs, note, err, **attrs) builds the op with tf.raw_ops and records the case;
an input that is a list of specs becomes a list input.  err=True: an error case (only
unknown static shapes, so that the kernel and not the importer says no).
"""
import argparse
import sys
import time
import traceback
import zlib

import numpy as np

import format as F
from tensorflow.python.framework import op_def_library
from format import tf, tf1, Refused, Writer, to_feed, dtype_name  # noqa: F401

FLOATS = ["float32", "float64", "half", "bfloat16"]
INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
CPLX = ["complex64", "complex128"]
QUANT = ["qint8", "quint8", "qint32"]
NUM = FLOATS + INTS + CPLX
ALL = NUM + ["bool", "string"]
WORDS = ["", "a", "tenon", "mortise", "\u00e9t\u00e9", "\u65e5\u672c", "x" * 40,
         "two words", "tab\there"]
# For ops that add many products, in an order that is not given: (rtol, atol).
ACC = {"bfloat16": (5e-2, 5e-2), "half": (1e-2, 1e-2), "float32": (2e-5, 1e-5), "float64": (1e-9, 1e-10)}
REG = []
op_def_library._CheckOpDeprecation = lambda *a: None   # the importer still checks


def op(family, name, **kw):
    def put(f):
        REG.append((family, name, f, kw))
        return f
    return put


def ops(family, names, **kw):
    """The same function for several ops: f(g, name)."""
    def put(f):
        for n in names.split() if isinstance(names, str) else names:
            REG.append((family, n, (lambda g, n=n: f(g, n)), kw))
        return f
    return put


class Spec:
    def __init__(self, value, dtype, kind, static=None):
        self.value, self.dtype, self.kind, self.static = value, dtype, kind, static


def shape_of(s):
    return tuple(np.shape(s.value)) if s.dtype != "string" else np.asarray(s.value, dtype=object).shape


class Gen:
    def __init__(self, variant, seed, writer):
        self.variant, self.seed, self.w = variant, seed, writer
        self.r, self.op, self.fam, self.kw = None, "", "", {}
        self.refused, self.made, self.producer, self.acc = [], 0, 0, False

    # ---- choosing -----------------------------------------------------------
    def i(self, lo, hi):
        """An int in [lo, hi]."""
        return int(self.r.integers(lo, hi + 1))

    def pick(self, xs):
        return xs[int(self.r.integers(len(xs)))]

    def picks(self, xs, n):
        """n different ones, in the order of xs."""
        xs = list(xs)
        k = sorted(self.r.permutation(len(xs))[:n].tolist())
        return [xs[i] for i in k]

    def coin(self):
        return bool(self.r.integers(2))

    def shape(self, rank, lo=1, hi=4):
        return tuple(self.i(lo, hi) for _ in range(rank))

    def perm(self, n):
        return [int(x) for x in self.r.permutation(n)]

    # ---- values -------------------------------------------------------------
    def x(self, dtype, shape=(), lo=None, hi=None):
        r, shape = self.r, tuple(shape)
        if dtype == "string":
            n = int(np.prod(shape, dtype=int))
            a = np.empty(n, dtype=object)
            for k in range(n):
                a[k] = WORDS[int(r.integers(len(WORDS)))].encode("utf-8")
                if r.integers(6) == 0:
                    a[k] = bytes(r.integers(0, 256, 5).astype(np.uint8))
            return a.reshape(shape)
        if dtype == "bool":
            return r.integers(0, 2, shape).astype(bool)
        if dtype in ("complex64", "complex128"):
            return (r.standard_normal(shape) + 1j * r.standard_normal(shape)).astype(dtype)
        if dtype in ("float32", "float64", "half", "bfloat16", "float8_e5m2", "float8_e4m3fn"):
            if lo is None:
                a = r.standard_normal(shape) * 2
            else:
                a = r.uniform(lo, hi, shape)
            return np.asarray(a).astype(tf.as_dtype(dtype).as_numpy_dtype)
        base = dtype.lstrip("q") if not dtype.startswith("quint") else dtype[1:]
        wide = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-3000, 3000),
                "uint16": (0, 60000), "int4": (-8, 7), "uint4": (0, 15)}.get(
                    base, (0, 100000) if base.startswith("u") else (-100000, 100000))
        lo, hi = wide[0] if lo is None else lo, wide[1] if hi is None else hi
        if base in ("int4", "uint4"):
            base = "int8"
        return np.asarray(r.integers(lo, hi + 1, shape)).astype(base)

    def d(self, dtype, shape=(), lo=None, hi=None, static=None):
        return Spec(self.x(dtype, shape, lo, hi), dtype, "data", static)

    def D(self, value, dtype="float32", static=None):
        return Spec(np.asarray(value, dtype=object) if dtype == "string" else np.asarray(value),
                    dtype, "data", static)

    def a(self, value, dtype="int32", static=None):
        return Spec(np.asarray(value, dtype=object) if dtype == "string" else np.asarray(value),
                    dtype, "aux", static)

    def K(self, value, dtype="int32"):
        return Spec(np.asarray(value, dtype=object) if dtype == "string" else np.asarray(value),
                    dtype, "const")

    def it(self):
        return self.pick(["int32", "int64"])

    def n(self, dtype, shape=()):
        """Data in [-1, 1], for sums of products (small ints for an int type)."""
        return self.d(dtype, shape, -1, 1) if dtype in FLOATS else self.d(dtype, shape, 0 if dtype[0] == "u" else -9, 9)

    def value(self, name, inputs, **attrs):
        """The outputs of an op for these inputs, to feed to a gradient op."""
        gr = tf.Graph()
        with gr.as_default():
            kw = {k: tf.constant(to_feed(v.value, v.dtype), dtype=tf.as_dtype(v.dtype)) for k, v in inputs.items()}
            out = tf.nest.flatten(getattr(tf.raw_ops, name)(**kw, **attrs))
        with tf1.Session(graph=gr, config=F.config()) as s:
            return s.run(out)

    # ---- one case -----------------------------------------------------------
    def c(self, inputs, note="", err=None, steps=1, compare="values", ranges=None,
          wkw=None, fetch=None, many=None, **attrs):
        """many: a list of attribute dicts, one node of the op for each."""
        feeds, graph, no = {}, tf.Graph(), [0]

        def tensor(s, name):
            if isinstance(s, list):
                return [tensor(x, "%s_%d" % (name, k)) for k, x in enumerate(s)]
            const = s.kind == "const" or (s.kind == "aux" and not err and self.coin())
            if const:
                if s.dtype == "string":
                    return tf.constant(s.value.tolist(), dtype=tf.string,
                                       shape=shape_of(s), name=name)
                return tf.constant(to_feed(s.value, s.dtype), dtype=tf.as_dtype(s.dtype), name=name)
            shp = list(shape_of(s))
            m = s.static if s.static is not None else (2 if err else self.i(0, 2))
            if m == 0:
                st = shp
            elif m == 1:
                st = [None if self.coin() else n for n in shp]
            else:
                st = None
            p = tf1.placeholder(tf.as_dtype(s.dtype), st, name=name)
            feeds[p.name] = s.value
            no[0] += 1
            return p

        try:
            with graph.as_default():
                if self.producer:      # for an op that newer graphs may not use
                    old = tf1.GraphDef()
                    old.versions.producer = self.producer
                    tf.import_graph_def(old)
                kw = {k: tensor(v, k) for k, v in inputs.items() if v is not None}
                fn = getattr(tf.raw_ops, self.op)
                out = [fn(name=self.op, **kw, **attrs, **m) for m in many or [{}]]
                flat = [t for t in tf.nest.flatten(out) if isinstance(t, tf.Tensor)]
                fetches = [t.name for t in flat]
                if fetch is not None:
                    fetches = [fetches[k] for k in fetch]
                gd = graph.as_graph_def()
            st = {"feeds": feeds, "fetches": fetches, "compare": compare}
            if ranges:
                st["range"] = list(ranges)
            k = dict(self.kw)
            if self.acc:
                used = {s.dtype for v in inputs.values() for s in (v if isinstance(v, list) else [v]) if s is not None}
                for d, ra in ACC.items():
                    if d in used:
                        k["rtol"], k["atol"] = ra
                        break
            k.update(wkw or {})
            run = [dict(st) for _ in range(steps)]
            try:
                self.w.add_graph(self.op, self.fam, gd, run, note=note,
                                 expect_error=bool(err), **k)
            except Refused as e:      # what looks wrong but is allowed is a case as well
                if not (err and "gave none" in str(e)):
                    raise
                self.w.add_graph(self.op, self.fam, gd, run, expect_error=False,
                                 note=note.replace("error:", "allowed:"), **k)
            self.made += 1
            return True
        except (Refused, ValueError, TypeError, KeyError, tf.errors.OpError) as e:
            why = str(e).replace("\n", " ")[:200]
            self.refused.append((self.op, note, why))
            self.w.skip(self.op, note + ": " + why)
            return False

    def e(self, inputs, note="", **attrs):
        """An error case."""
        return self.c(inputs, "error: " + note, err=True, **attrs)


def main(part):
    p = argparse.ArgumentParser()
    p.add_argument("--variant", choices=["visible", "hidden"], default="visible")
    p.add_argument("--seed", type=int)
    p.add_argument("--out", required=True)
    p.add_argument("--only", action="append", default=[])
    p.add_argument("--verbose", action="store_true")
    a = p.parse_args()
    seed = a.seed if a.seed is not None else (1 if a.variant == "visible" else 977)
    only = set(x for o in a.only for x in o.split(","))
    w = Writer(a.out, part, only=only or None)
    g = Gen(a.variant, seed, w)
    t0 = time.time()
    seen = {}
    for fam, name, f, kw in REG:
        if only and name not in only:
            continue
        k = seen[name] = seen.get(name, -1) + 1
        g.r = np.random.default_rng([seed, zlib.crc32(name.encode()), k])
        kw = dict(kw)
        g.acc = kw.pop("acc", False)
        g.producer = kw.pop("producer", 0)
        g.op, g.fam, g.kw = name, fam, kw
        n0 = g.made
        if a.verbose:
            print(name, flush=True)
        try:
            f(g)
        except Exception:
            print("in the function for %s:" % name)
            traceback.print_exc(file=sys.stdout)
        if g.made == n0:
            print("NO CASES for %s: %s" % (name, [r for r in g.refused if r[0] == name][:2]))
    w.close()
    w.table()
    print("refused %d, %.0f s" % (len(g.refused), time.time() - t0))
    if a.verbose:
        for r in g.refused:
            print("  refused %s | %s | %s" % r)
