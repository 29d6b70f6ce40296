# SPDX-License-Identifier: Apache-2.0
"""Cases for arithmetic: math binary compare bitwise special (here) and
reduce scan segment matmul linalg fft (ops_linalg.py).

    python ops_math.py --variant visible|hidden [--seed N] --out DIR [--only OP ...]

Writes DIR/<family>/<Op>-<nnn>.pb and .npz and DIR/index-math.json (format.py
describes them).  One op per case; all data goes in through placeholders.
"""
import argparse
import os
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import format as F  # noqa: E402

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import op_def_library  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

tf1 = tf.compat.v1
np.seterr(all="ignore")
FLOATS = "float32 float64 half bfloat16".split()
CPLX = "complex64 complex128".split()
SINTS = "int8 int16 int32 int64".split()
UINTS = "uint8 uint16 uint32 uint64".split()
INTS = SINTS + UINTS
ALL = FLOATS + CPLX + INTS
WIDE = {"float32": "float64", "half": "float64", "bfloat16": "float64",
        "complex64": "complex128"}
nan, inf = float("nan"), float("inf")


class I:
    """One input: dtype and one value per step.  const: a Const node instead."""

    def __init__(self, dtype, *values, const=False):
        self.dtype, self.const = dtype, const
        self.values = [F.to_feed(v, dtype) for v in values]


def defaults(op):
    """The attributes with a default that no input determines."""
    d = op_def_registry.get(op)
    fixed = {n for a in d.input_arg for n in (a.type_attr, a.number_attr, a.type_list_attr) if n}
    return [a for a in d.attr if a.HasField("default_value") and a.name not in fixed]


def plain_default(v):
    kind = v.WhichOneof("value")
    if kind == "type":
        return tf.as_dtype(v.type)
    if kind == "list":
        return list(v.list.i) or list(v.list.f) or list(v.list.s)
    return getattr(v, kind)


def strip(gd, op):
    """Drops the attributes that hold the default, as exporters often do."""
    for n in gd.node:
        if n.name == "y":
            for a in defaults(op):
                if a.name in n.attr and n.attr[a.name] == a.default_value:
                    del n.attr[a.name]


class Kit:
    def __init__(self, writer, seed, only):
        self.w, self.seed, self.only = writer, seed, set(only or [])
        self.refused, self.widened, self.dropped = {}, [], []

    def rng(self, *key):
        return np.random.default_rng([self.seed, zlib.crc32(repr(key).encode())])

    def want(self, op):
        return not self.only or op in self.only

    def graph(self, op, ins, attrs, wide=False, static=False):
        """GraphDef, feeds per step, output names."""
        m = (lambda d: WIDE.get(d, d)) if wide else (lambda d: d)
        names = [a.name for a in op_def_registry.get(op).input_arg]
        g, feeds, n = tf.Graph(), {}, [0]

        def node(i):
            if isinstance(i, (list, tuple)):
                return [node(x) for x in i]
            k, n[0] = n[0], n[0] + 1
            if i.const:
                return tf1.constant(i.values[0], dtype=m(i.dtype), name="c%d" % k)
            shape = np.shape(i.values[0]) if static else None
            t = tf1.placeholder(m(i.dtype), shape=shape, name="x%d" % k)
            feeds[t.name] = i
            return t
        with g.as_default():
            kw = dict(zip(names, [node(i) for i in ins]))
            for a, v in (attrs or {}).items():
                if isinstance(v, tf.DType):
                    v = tf.as_dtype(m(F.dtype_name(v)))
                kw[a] = v
            for a in defaults(op):
                kw.setdefault(a.name, plain_default(a.default_value))
            op_def_library.apply_op(op, name="y", **kw)
        out = [o.name for o in g.get_operation_by_name("y").outputs]
        steps = max([len(i.values) for i in feeds.values()] or [1])
        fs = [{t: i.values[min(s, len(i.values) - 1)] for t, i in feeds.items()}
              for s in range(steps)]
        return g.as_graph_def(), fs, out

    def run(self, op, ins, attrs=None, wide=False, outs=None):
        """Results per step (lists of arrays), or None where TensorFlow refuses."""
        gd, fs, out = self.graph(op, ins, attrs, wide)
        out = [out[k] for k in outs] if outs is not None else out
        res, _ = F.run_steps(gd, [{"feeds": f, "fetches": out} for f in fs])
        return [[r["values"][o] for o in out] if not r["error"] else None for r in res]

    def one(self, op, fam, ins, attrs=None, note="", outs=None, compare="values",
            err=False, static=False, check=True, rtol=None, atol=None, scaled=False, **kw):
        """Writes one case.  True when written.  err: True for error cases, None for either.
        scaled: the absolute tolerance grows with the largest result (sums that cancel);
        "inputs": with the largest input too.
        check: compares with the same op in double precision and widens the
        tolerance where TensorFlow itself is less exact than the default."""
        if not self.want(op):
            return False
        try:
            gd, fs, out = self.graph(op, ins, attrs, static=static)
            if self.rng(op, note, "strip").random() < 0.25:
                strip(gd, op)
            fetch = [out[k] for k in outs] if outs is not None else out
            steps = [{"feeds": f, "fetches": fetch, "compare": compare} for f in fs]
            if check and err is False and compare == "values" and rtol is None:
                rtol, atol = self.measure(op, ins, attrs, outs, note)
            if scaled and err is False:
                rtol, atol = self.scale(gd, steps, rtol, atol, scaled == "inputs")
            self.w.add_graph(op, fam, gd, steps, note=note, rtol=rtol, atol=atol,
                             expect_error=err, **kw)
            return True
        except F.Refused as e:
            self.refused.setdefault(op, []).append((note, str(e)[:160]))
        except Exception as e:  # attribute or dtype not allowed by the op
            self.refused.setdefault(op, []).append((note, repr(e)[:160]))
        return False

    def scale(self, gd, steps, rtol, atol, inputs=False):
        res, types = F.run_steps(gd, steps)
        for st, r in zip(steps, res):
            vals = list(r["values"].items()) + (list(st["feeds"].items()) if inputs else [])
            for o, v in vals:
                t, v = F.TOL.get(types[o]), np.asarray(v)
                if not t or not v.size:
                    continue
                v = np.abs(v.astype(np.complex128 if v.dtype.kind == "c" else np.float64))
                big = float(v[np.isfinite(v)].max(initial=0.0))
                rtol, atol = max(rtol or 0, t[0]), max(atol or 0, t[1], t[0] * big)
        return rtol, atol

    def measure(self, op, ins, attrs, outs, note):
        try:
            got = self.run(op, ins, attrs, outs=outs)
            true = self.run(op, ins, attrs, wide=True, outs=outs)
        except Exception:
            return None, None
        worst, tol = 0.0, None
        for a, b in zip(got, true):
            for x, y in zip(a or [], b or []):
                x = np.asarray(x)
                d = F.dtype_name(x.dtype)
                if d not in WIDE or x.shape != y.shape or not x.size:
                    continue
                r, at = F.TOL[d]
                if tol is None or r > tol[0]:
                    tol = (r, at)
                z = x.astype(y.dtype)
                with np.errstate(all="ignore"):
                    q = np.abs(z - y) / (at + r * np.abs(y))
                q = q[np.isfinite(q) & np.isfinite(y) & np.isfinite(z)]
                worst = max(worst, float(q.max()) if q.size else 0.0)
        if tol is None or worst <= 0.5:
            return None, None
        k = 2.0 * worst
        self.widened.append("%s %s x%.3g" % (op, note, k))
        if k > 100:
            return None, None      # not an accuracy matter; reported, looked at by hand
        return max(1.0, k) * tol[0], max(1.0, k) * tol[1]


# --------------------------------------------------------------------------
# Values.

DOM = {"any": (-3, 3), "wide": (-12, 12), "pos": (0.1, 6), "unit": (-0.95, 0.95),
       "prob": (0.02, 0.98), "ge1": (1.05, 9), "gtm1": (-0.9, 5), "tan": (-1.3, 1.3),
       "small": (-1.5, 1.5), "gt1": (1.2, 6)}


def data(rng, dtype, shape, dom="any"):
    """Values of the domain, already rounded to dtype."""
    shape = tuple(int(s) for s in shape)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTS:
        info = np.iinfo(dtype)
        lo, hi = {"pos": (1, 12), "unit": (0, 2), "small": (-3, 4), "bits": (info.min, info.max),
                  "nz": (-9, 10), "ge1": (1, 12)}.get(dom, (-11, 12))
        lo = max(lo, int(info.min))
        a = rng.integers(lo, hi, shape, dtype=dtype)
        if dom == "nz":
            a = np.where(a == 0, np.asarray(7, dtype), a)
        return np.asarray(a, dtype)
    if dtype in CPLX:
        return F.to_feed(data(rng, "float64", shape, dom) +
                         1j * data(rng, "float64", shape, dom), dtype)
    if dom == "nz":
        a = rng.uniform(0.4, 5, shape) * rng.choice([-1.0, 1.0], shape)
    elif dom == "quarter":                 # exact in every type, with ties
        a = rng.integers(-22, 23, shape) / 4.0
    elif dom == "quarternz":
        a = rng.integers(1, 18, shape) / 4.0 * rng.choice([-1.0, 1.0], shape)
    elif dom == "mixed":
        a = rng.choice([0.0, -0.0, 1.0, -2.5, nan, inf, -inf, 30.0], shape)
    else:
        lo, hi = DOM.get(dom, (-3, 3))
        a = rng.uniform(lo, hi, shape)
    return F.to_feed(np.asarray(a), dtype)


def shape(rng, rank=None, lo=1, hi=5, cap=120):
    rank = int(rng.integers(1, 5)) if rank is None else rank
    while True:
        s = [int(x) for x in rng.integers(lo, hi + 1, rank)]
        if np.prod(s) <= cap:
            return s


def pair(rng, kind=None):
    """Two shapes that broadcast."""
    kind = kind or rng.choice(["same", "row", "mid", "cross", "rank", "scalar"])
    s = shape(rng, int(rng.integers(2, 5)), 2, 4, 100)
    a, b = list(s), list(s)
    if kind == "row":
        b = s[-1:]
    elif kind == "mid":
        b[int(rng.integers(0, len(s)))] = 1
    elif kind == "cross":
        a[0], b[-1] = 1, 1
    elif kind == "rank":
        b = s[int(rng.integers(1, len(s))):]
        b[0] = 1
    elif kind == "scalar":
        b = []
    elif kind == "rank6":                  # at most 5 dimensions once neighbours merge
        a, b = [], []
        for _ in range(3):
            d = [int(x) for x in rng.permutation([[2, 3], [1, 4], [2, 2]][int(rng.integers(0, 3))])]
            g = int(rng.integers(0, 3))
            a += [1, 1] if g == 1 else d
            b += [1, 1] if g == 2 else d
    return (a, b) if rng.random() < 0.6 else (b, a)


EDGE = [nan, inf, -inf, -0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 1.5, 1e-3, 40.0, -40.0, 1e4]
CEDGE = [0, 1, -1, 1j, -1j, 2 - 3j, -0.5 + 0.25j, 3 + 4j, 1e-3 + 1e-3j]


def stable(k, op, cols, dtype, attrs=None):
    """Drops the edge values whose result in real TensorFlow depends on their
    place in the tensor (packet and scalar code disagree)."""
    cols = [F.to_feed(np.asarray(c), dtype) for c in cols]
    n = len(cols[0])
    base = None
    keep = np.ones(n, bool)
    for r in (0, 3, n // 2, n - 1):
        try:
            ins = [I(dtype, np.concatenate([np.roll(c, r, 0)] * 2 + [np.roll(c, r, 0)[:r % 3]]))
                   for c in cols]
            y = np.asarray(k.run(op, ins, attrs)[0][0])
        except Exception:
            return cols
        y = y.astype(np.complex128 if y.dtype.kind == "c" else np.float64)
        for part in (y[:n], y[n:2 * n]):
            z = np.roll(part, -r)
            base = z if base is None else base
            with np.errstate(all="ignore"):
                same = (z == base) | (np.isnan(z) & np.isnan(base)) | (
                    np.abs(z - base) <= (1e-5 if dtype in ("float32", "float64", "complex64") else 4e-3) * np.abs(base))
            keep &= same
    if not keep.all():
        k.dropped.append("%s %s: %d edge values (%s)" % (op, dtype, n - keep.sum(), ", ".join(
            str(tuple(c[i] for c in cols)) for i in np.flatnonzero(~keep)[:4])))
    return [c[keep] for c in cols]


# --------------------------------------------------------------------------
# One input, one output, element by element.

UNARY = """
math Abs any|math Neg any|math Sign any|math Square any|math Sqrt pos|math Rsqrt pos
math Exp any|math Expm1 any|math Log pos|math Log1p gtm1|math Sin wide|math Cos wide|math Tan tan
math Asin unit|math Acos unit|math Atan wide|math Sinh any|math Cosh any|math Tanh any
math Asinh wide|math Acosh ge1|math Atanh unit|math Sigmoid wide
math Floor quarter|math Ceil quarter|math Round quarter|math Rint quarter
math Reciprocal nz|math Inv nz
math IsNan mixed|math IsInf mixed|math IsFinite mixed|math LogicalNot any|bitwise Invert bits
math Real any|math Imag any|math Angle any|math Conj any|math ComplexAbs any
special Erf any|special Erfc any|special Erfinv unit|special Ndtri prob|special Lgamma wide
special Digamma pos|special BesselI0e wide|special BesselI1e wide
"""
ROUNDING = "Floor Ceil Round Rint Sign".split()


def unary(k):
    for line in UNARY.replace("|", "\n").split("\n"):
        if not line.strip():
            continue
        fam, op, dom = line.split()
        if not k.want(op):
            continue
        d0 = [a.name for a in op_def_registry.get(op).attr]

        def attrs(d):
            if "Tout" in d0:
                return {"Tout": tf.float64 if d == "complex128" else tf.float32}
            return {}
        good = []
        for d in ALL + ["bool"]:
            r = k.rng(op, d)
            n = 2 if r.random() < 0.35 else 1
            vals = [data(r, d, shape(r), dom) for _ in range(n)]
            if k.one(op, fam, [I(d, *vals)], attrs(d), "%s%s" % (d, ", two shapes" * (n > 1)),
                     err=False, static=n == 1 and r.random() < 0.3):
                good.append(d)
        if not good:
            continue
        r = k.rng(op, "more")
        d = good[int(r.integers(0, len(good)))]
        k.one(op, fam, [I(d, data(r, d, [], dom))], attrs(d), "%s scalar" % d)
        d = good[int(r.integers(0, len(good)))]
        empty = shape(r, int(r.integers(1, 4)))
        empty[int(r.integers(0, len(empty)))] = 0
        k.one(op, fam, [I(d, data(r, d, empty, dom))], attrs(d), "%s empty" % d)
        d = good[int(r.integers(0, len(good)))]
        k.one(op, fam, [I(d, data(r, d, [int(x) for x in r.permutation([1, 2, 3, 1, 2, 3])], dom))],
              attrs(d), "%s rank 6" % d)
        for d in [x for x in good if x in ("float32", "float64", "half", "complex64")]:
            r = k.rng(op, d, "edge")
            e = np.array(CEDGE if d in CPLX else EDGE)
            if d not in CPLX:
                e = np.concatenate([e, data(r, "float64", [5], dom if dom != "mixed" else "any")])
            (e,) = stable(k, op, [r.permutation(e)], d, attrs(d))
            k.one(op, fam, [I(d, e)], attrs(d), "%s edge values" % d)
        for d in [x for x in good if x in ("int8", "int32", "uint8", "int64")][:2]:
            info = np.iinfo(d)
            if op in ("Abs", "Neg", "Sign", "Square", "Invert", "Sqrt"):
                e = [info.max, 0, 1, info.max - 1, info.min + 1, info.min]
                e = e[:-1] if op == "Abs" else e
                e = [x for x in e if op != "Square" or abs(x) < 2 ** 31]
                k.one(op, fam, [I(d, np.array(e, d))], {}, "%s limits" % d)


GRADS = """SigmoidGrad prob any|TanhGrad unit any|SqrtGrad pos any|RsqrtGrad pos any
ReciprocalGrad nz any|InvGrad nz any"""


def grads(k):
    for line in GRADS.replace("|", "\n").split("\n"):
        op, a, b = line.split()
        for d in FLOATS + CPLX:
            r = k.rng(op, d)
            for j in range(2 if d in ("float32", "float64") else 1):
                s = shape(r, int(r.integers(0, 5)) if j else None)
                k.one(op, "math", [I(d, data(r, d, s, a)), I(d, data(r, d, s, b))], {}, d)
        r = k.rng(op, "empty")
        k.one(op, "math", [I("float32", np.zeros([0, 3])), I("float32", np.zeros([0, 3]))], {},
              "float32 empty")


# --------------------------------------------------------------------------
# Two inputs with broadcasting.

BINARY = """
binary Add any any|binary AddV2 any any|binary Sub any any|binary Mul any any|binary Div any nz
binary RealDiv any nz|binary FloorDiv quarter quarternz|binary TruncateDiv any nz
binary Mod quarter quarternz|binary FloorMod quarter quarternz|binary TruncateMod quarter quarternz
binary Pow pos small|binary Maximum any any|binary Minimum any any|binary SquaredDifference any any
binary Atan2 any any|binary DivNoNan any quarter|binary MulNoNan any quarter
binary Xdivy quarter nz|binary Xlogy quarter pos|binary Xlog1py quarter gtm1|binary NextAfter any any
compare Equal quarter quarter|compare NotEqual quarter quarter|compare Less quarter quarter
compare LessEqual quarter quarter|compare Greater quarter quarter|compare GreaterEqual quarter quarter
compare LogicalAnd any any|compare LogicalOr any any|binary Complex any any
bitwise BitwiseAnd bits bits|bitwise BitwiseOr bits bits|bitwise BitwiseXor bits bits
bitwise LeftShift bits shift|bitwise RightShift bits shift
special Igamma pos pos|special Igammac pos pos|special Zeta gt1 pos|special Polygamma order pos
special IgammaGradA pos pos
"""
NODIV0 = "Div FloorDiv TruncateDiv Mod FloorMod TruncateMod".split()
EXACT = set("NextAfter FloorDiv Mod FloorMod TruncateMod TruncateDiv".split())


def value(r, d, s, dom):
    """data() with the two domains only binary ops have."""
    if dom == "shift":
        return r.integers(0, np.iinfo(d).bits, s).astype(d) if d in INTS else data(r, d, s)
    if dom == "order":
        return F.to_feed(r.integers(1, 5, s).astype(float), d) if d in FLOATS else data(r, d, s)
    if d in INTS and dom.startswith("quarter"):
        dom = "nz" if dom.endswith("nz") else "small"
    if d in SINTS and dom == "pow":
        return r.integers(0, 4, s).astype(d)
    return data(r, d, s, {"quarternz": "nz", "pow": "small"}.get(dom, dom) if d in CPLX else dom)


def binary(k):
    for line in BINARY.replace("|", "\n").split("\n"):
        if line.strip():
            one_binary(k, *line.split())


def one_binary(k, fam, op, da, db):
    if not k.want(op):
        return
    d0 = [a.name for a in op_def_registry.get(op).attr]

    def attrs(d):
        return {"Tout": tf.complex128 if d == "float64" else tf.complex64} if "Tout" in d0 else {}

    def ab(r, d, sa, sb):
        x = "small" if op == "Pow" and d in INTS else da
        y = "pow" if op == "Pow" and d in INTS else db
        return value(r, d, sa, x), value(r, d, sb, y)
    good, check = [], op not in EXACT
    for d in ALL + ["bool"]:
        r = k.rng(op, d)
        n = 2 if r.random() < 0.35 else 1
        sh = [pair(r) for _ in range(n)]
        vals = [ab(r, d, *s) for s in sh]
        note = "%s %s" % (d, " then ".join("%s %s" % (a, b) for a, b in sh))
        if k.one(op, fam, [I(d, *[v[0] for v in vals]), I(d, *[v[1] for v in vals])], attrs(d),
                 note, static=n == 1 and r.random() < 0.3, check=check):
            good.append(d)
    if not good:
        return
    r = k.rng(op, "more")
    z = [int(x) for x in r.integers(1, 5, 2)]
    kinds = [("rank 6", pair(r, "rank6")), ("scalars", ([], [])),
             ("empty", [(z[:1] + [0], [1]), ([0], [3, 1]), ([z[0], 0, z[1]], [z[1]])][int(r.integers(0, 3))])]
    for what, (sa, sb) in kinds:
        d = good[int(r.integers(0, len(good)))]
        a, b = ab(r, d, sa, sb)
        k.one(op, fam, [I(d, a), I(d, b)], attrs(d), "%s %s %s %s" % (d, what, sa, sb), check=check)
    d = good[int(r.integers(0, len(good)))]
    bad = [([2, 3], [2, 4]), ([3], [2]), ([2, 1, 3], [4, 2]), ([0, 3], [2])][int(r.integers(0, 4))]
    a, b = ab(r, d, *bad)
    k.one(op, fam, [I(d, a), I(d, b)], attrs(d), "%s incompatible shapes %s %s" % ((d,) + bad), err=True)
    for d in [x for x in good if x in ("float32", "half", "complex64")]:
        r = k.rng(op, d, "edge")
        e = np.array(CEDGE[:6]) if d in CPLX else np.array(EDGE[:13])
        e = r.permutation(e)[:9]
        a, b = np.repeat(e, len(e)), np.tile(e, len(e))
        if op in ("Div", "RealDiv", "Pow") and d in CPLX:
            a, b = a[b != 0], b[b != 0]
        if op in ("Polygamma", "Zeta", "Igamma", "Igammac", "IgammaGradA"):
            a, b = a[np.isfinite(a + b)], b[np.isfinite(a + b)]
        a, b = stable(k, op, [a, b], d, attrs(d))
        k.one(op, fam, [I(d, a), I(d, b)], attrs(d), "%s edge values" % d, check=check)
    for d in [x for x in good if x in ("int8", "int32", "uint8", "uint64")]:
        r = k.rng(op, d, "ints")
        info = np.iinfo(d)
        if op in NODIV0:
            a, b = value(r, d, [4], da), value(r, d, [4], db)
            b[int(r.integers(0, 4))] = 0
            k.one(op, fam, [I(d, a), I(d, b)], {}, "%s division by zero" % d, err=True)
            k.one(op, fam, [I(d, a), I(d, np.zeros([], d))], {}, "%s division by scalar zero" % d, err=True)
            e = r.permutation(np.array([info.max, info.max - 1, info.min + 1, 7, 3], d))
            a, b = np.repeat(e, 5), np.tile(e, 5)
            b[b == 0] = 5
            k.one(op, fam, [I(d, a), I(d, b)], {}, "%s limits" % d)
        elif op == "Pow" and d in SINTS:
            a = np.array([2, -3, 1], d)
            k.one(op, fam, [I(d, a), I(d, np.array([3, -1, 2], d))], {}, "%s negative exponent" % d, err=True)
            k.one(op, fam, [I(d, a), I(d, np.array(3, d))], {}, "%s scalar exponent" % d)
        elif op.endswith("Shift"):
            a = value(r, d, [8], da)
            b = np.array([0, 1, info.bits - 1, info.bits, info.bits + 3, 2, 100, 5], d)
            k.one(op, fam, [I(d, a), I(d, b)], {}, "%s shifts beyond the width" % d)
        else:
            e = r.permutation(np.array([info.max, info.max - 1, info.min, info.min + 1, 7, 0], d))
            k.one(op, fam, [I(d, np.repeat(e, 6)), I(d, np.tile(e, 6))], {},
                  "%s limits" % d)


# --------------------------------------------------------------------------
# The rest: several inputs, no broadcasting.

def others(k):
    for op in ("AddN", "AccumulateNV2"):
        for d in ALL + ["bool"]:
            r = k.rng(op, d)
            for j in range(2 if d == "float32" else 1):
                s = shape(r, int(r.integers(0, 4)))
                n = int(r.integers(1, 10))
                at = {"shape": s} if op == "AccumulateNV2" else {}
                k.one(op, "binary", [[I(d, data(r, d, s)) for _ in range(n)]], at,
                      "%s, %d of %s" % (d, n, s), static=op == "AccumulateNV2")
    r = k.rng("AddN", "error")
    k.one("AddN", "binary", [[I("float32", data(r, "float32", s)) for s in ([2, 3], [2, 3], [3, 2])]],
          {}, "shapes differ", err=True)
    k.one("AddN", "binary", [[I("float32", np.zeros([0, 2]))] * 2], {}, "empty")
    for d in ALL:
        r = k.rng("ApproximateEqual", d)
        s = shape(r)
        a = value(r, d, s, "quarter")
        b = (a + r.choice([0, 1, 2], s)).astype(a.dtype)
        t = [0.5, 1.5, 1e-5][int(r.integers(0, 3))]
        k.one("ApproximateEqual", "compare", [I(d, a), I(d, b)], {"tolerance": t}, "%s tolerance %g" % (d, t))
    k.one("ApproximateEqual", "compare", [I("float32", EDGE), I("float32", EDGE[::-1])], {}, "edge values")
    k.one("ApproximateEqual", "compare", [I("float32", np.ones([2, 3])), I("float32", np.ones([3]))], {},
          "shapes differ", err=True)
    for op in ("Equal", "NotEqual", "Add"):
        r = k.rng(op, "string")
        w = np.array([b"", b"a", b"ab", b"tenon", "\u00fc\u4e2d".encode(), b"a\0b"], dtype=object)
        a, b = w[r.integers(0, 6, [3, 4])], w[r.integers(0, 6, [1, 4])]
        k.one(op, "binary" if op == "Add" else "compare", [I("string", a), I("string", b)], {}, "string")
        a, b = w[r.integers(0, 6, [5])], np.array(b"a", dtype=object)
        k.one(op, "binary" if op == "Add" else "compare", [I("string", a), I("string", b)], {}, "string scalar")
        if op != "Add":
            for sa, sb in (([2, 3], [3, 3]), ([4], [3]), ([2, 3], [3])):
                k.one(op, "compare", [I("int32", value(r, "int32", sa, "small")), I("int32", value(r, "int32", sb, "small"))],
                      {"incompatible_shape_error": False}, "incompatible_shape_error=false %s %s" % (sa, sb))
    for d in FLOATS:
        for j in range(4 if d in ("float32", "float64") else 1):
            r = k.rng("Betainc", d, j)
            s = shape(r)
            sh = [s if (j == 0 or r.random() < .6) else [] for _ in range(3)]
            k.one("Betainc", "special", [I(d, data(r, d, sh[0], "pos")), I(d, data(r, d, sh[1], "pos")),
                                         I(d, data(r, d, sh[2], "prob"))], {}, "%s %s" % (d, sh))
    k.one("Betainc", "special", [I("float32", [1., 2, 3]), I("float32", [2., 2, 0.5]), I("float32", [0., 1, 0.5])],
          {}, "x at 0 and 1")
    k.one("Betainc", "special", [I("float32", np.ones([2])), I("float32", np.ones([3])), I("float32", np.ones([2]) / 2)],
          {}, "shapes differ", err=True)
    for d in FLOATS + CPLX + INTS:
        r = k.rng("ClipByValue", d)
        s = shape(r, int(r.integers(1, 4)))
        full = r.random() < .4
        lo = data(r, d, s if full else [], "small")
        hi = (np.abs(data(r, d, s if r.random() < .4 else [], "pos")) + np.asarray(3, lo.dtype)).astype(lo.dtype)
        k.one("ClipByValue", "math", [I(d, data(r, d, s)), I(d, lo), I(d, hi)], {},
              "%s %s %s %s" % (d, s, lo.shape, hi.shape))
    one = I("float32", np.float32(1))
    k.one("ClipByValue", "math", [I("float32", EDGE), I("float32", -1.5), one], {}, "edge values")
    k.one("ClipByValue", "math", [I("float32", np.zeros([0, 4])), I("float32", -1.), one], {}, "empty")
    k.one("ClipByValue", "math", [I("float32", np.zeros([2, 4])), I("float32", np.zeros([3, 4])), one], {},
          "shapes differ", err=True)
    for d in ("float32", "int32"):
        r = k.rng("ClipByValue", d, "wide")
        k.one("ClipByValue", "math", [I(d, data(r, d, [2, 3])), I(d, data(r, d, [3], "small")),
                                      I(d, data(r, d, [2, 1], "pos") + 3)], {}, "%s bounds broadcast" % d, err=None)


def report(k):
    print("widened: %d" % len(k.widened))
    for x in k.widened:
        print("   " + x)
    print("dropped: %d" % len(k.dropped))
    for x in k.dropped:
        print("   " + x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--variant", choices=["visible", "hidden"], default="visible")
    p.add_argument("--seed", type=int)
    p.add_argument("--out", required=True)
    p.add_argument("--only", nargs="*")
    p.add_argument("--verbose", action="store_true")
    a = p.parse_args()
    seed = a.seed if a.seed is not None else {"visible": 11, "hidden": 977}[a.variant]
    k = Kit(F.Writer(a.out, "math", a.only), seed, a.only)
    import ops_linalg
    ops_linalg.setup(sys.modules[__name__])
    for f in PARTS + ops_linalg.PARTS:
        f(k)
        print(f.__name__, len(k.w.entries), flush=True)
    k.w.close()
    k.w.table()
    report(k)
    done = {e["op"] for e in k.w.entries}
    for op, why in k.refused.items():
        if a.verbose or op not in done:
            for w in why:
                print("refused %s: %s" % (op, w))


PARTS = [unary, grads, binary, others]
if __name__ == "__main__":
    main()
