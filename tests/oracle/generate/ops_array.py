# SPDX-License-Identifier: Apache-2.0
"""Cases for the families array, gather and layout.

    python ops_array.py --variant visible|hidden [--seed N] --out DIR [--only OP]...

Writes DIR/index-array.json; ops_kit.py has the builder.
"""
import numpy as np

from ops_kit import (ALL, CPLX, FLOATS, INTS, NUM, QUANT, main, op, ops)

S = "string"


def split_dim(g, n):
    """Two factors of n."""
    f = [k for k in range(1, n + 1) if n % k == 0]
    k = g.pick(f)
    return k, n // k


# ---- shape and copies --------------------------------------------------------
@op("array", "Reshape")
def reshape(g):
    for dt in ["float32", "int64", S, "bool", "half", "complex64", "uint8", "qint8"]:
        sh = g.shape(g.i(1, 5), 1, 4)
        n = int(np.prod(sh))
        a, b = split_dim(g, n)
        to = [a, b] if g.coin() else [a, -1, 1]
        t = g.it()
        g.c(dict(tensor=g.d(dt, sh), shape=g.a(to, t)), "%s %s to %s" % (dt, sh, to))
    g.c(dict(tensor=g.d("float32", ()), shape=g.a([1] * g.i(1, 6))), "scalar up")
    g.c(dict(tensor=g.d("int32", (1, 1, 1)), shape=g.a(np.zeros(0, np.int32))), "to scalar")
    g.c(dict(tensor=g.d("float32", (0, g.i(2, 5))), shape=g.a([g.i(2, 5), 0])), "empty")
    g.c(dict(tensor=g.d("float32", (0, 3)), shape=g.a([-1, 3])), "empty, -1")
    g.e(dict(tensor=g.d("float32", (5,)), shape=g.a([2, 3])), "element count")
    g.e(dict(tensor=g.d("float32", (6,)), shape=g.a([-1, -1])), "two -1")
    g.e(dict(tensor=g.d("float32", (7,)), shape=g.a([-1, 2])), "not divisible")
    g.e(dict(tensor=g.d("float32", (6,)), shape=g.a([[2, 3]])), "shape is a matrix")
    g.e(dict(tensor=g.d("float32", (6,)), shape=g.a([-2, -3])), "negative size")
    g.e(dict(tensor=g.d("float32", (0, 3)), shape=g.a([-1, 0])), "empty, -1 beside 0")


@ops("array", "Identity StopGradient Snapshot ZerosLike OnesLike Rank Size Shape PreventGradient")
def same(g, name):
    many = name in ("Identity", "ZerosLike", "OnesLike")
    dts = ALL if many else g.picks(ALL, 4)
    if name == "OnesLike":
        dts = [d for d in dts if d != S]
    arg = "x" if name in ("ZerosLike", "OnesLike") else "input"
    for dt in dts:
        kw = dict(out_type=g.it()) if name in ("Size", "Shape") else {}
        g.c({arg: g.d(dt, g.shape(g.i(0, 4)))}, dt, **kw)
    g.c({arg: g.d("float32", (g.i(1, 3), 0, 2))}, "empty")
    g.c({arg: g.d("float32", g.shape(6, 1, 3))}, "rank 6")
    if name != "OnesLike":
        g.c({arg: g.d(S, ())}, "string scalar")
    g.c({arg: g.D([np.nan, np.inf, -np.inf, -0.0])}, "nan and inf")


@op("array", "ShapeN")
def shape_n(g):
    for n in (1, 2, 4):
        dt = g.pick(["float32", S, "int64"])
        g.c(dict(input=[g.d(dt, g.shape(g.i(0, 5), 0, 4)) for _ in range(n)]), "%d inputs" % n,
            out_type=g.it())


@op("array", "IdentityN")
def identity_n(g):
    for n in (1, 3, 5):
        g.c(dict(input=[g.d(g.pick(ALL), g.shape(g.i(0, 3))) for _ in range(n)]), "%d inputs" % n)


@op("array", "EnsureShape")
def ensure_shape(g):
    for dt in g.picks(ALL, 3):
        sh = g.shape(3)
        g.c(dict(input=g.d(dt, sh)), "full", shape=list(sh))
        g.c(dict(input=g.d(dt, sh)), "partial", shape=[None, sh[1], None])
    g.c(dict(input=g.d("float32", (2, 2))), "only the rank", shape=[None, None])
    g.e(dict(input=g.d("float32", (2, 3))), "size", shape=[None, 4])
    g.e(dict(input=g.d("float32", (2, 3))), "rank", shape=[None])


@op("array", "Squeeze")
def squeeze(g):
    for dt in g.picks(ALL, 4):
        sh = list(g.shape(g.i(2, 5), 2, 3))
        k = g.i(0, len(sh))
        sh.insert(k, 1)
        g.c(dict(input=g.d(dt, sh)), "%s, axis %d" % (dt, k),
            axis=[k if g.coin() else k - len(sh)])
        sh.insert(g.i(0, len(sh)), 1)
        g.c(dict(input=g.d(dt, sh)), "%s, all" % dt, axis=[])
    g.c(dict(input=g.d("float32", (1, 1))), "to scalar", axis=[0, 1])
    g.c(dict(input=g.d("float32", ())), "scalar", axis=[])
    g.c(dict(input=g.d("float32", (1, 0, 1))), "empty", axis=[0])
    g.e(dict(input=g.d("float32", (1, 2))), "dim is not 1", axis=[1])
    g.e(dict(input=g.d("float32", (1, 2))), "axis out of range", axis=[2])


@op("array", "ExpandDims")
def expand(g):
    for dt in g.picks(ALL, 5):
        r = g.i(0, 5)
        ax = g.i(-r - 1, r)
        g.c(dict(input=g.d(dt, g.shape(r, 1, 3)), axis=g.a(ax, g.it())), "%s axis %d" % (dt, ax))
    g.c(dict(input=g.d("float32", (2, 3)), axis=g.a([g.i(-3, 2)])), "axis is a vector of one")
    g.c(dict(input=g.d("float32", (0, 3)), axis=g.a(0)), "empty")
    g.e(dict(input=g.d("float32", (2, 3)), axis=g.a(3)), "axis too large")
    g.e(dict(input=g.d("float32", (2, 3)), axis=g.a(-4)), "axis too small")
    g.e(dict(input=g.d("float32", (2, 3)), axis=g.a([0, 1])), "two axes")


# ---- joining and splitting ---------------------------------------------------
@ops("array", "Concat ConcatV2")
def concat(g, name):
    v2 = name == "ConcatV2"

    def both(ts, ax):
        t = g.it() if v2 else "int32"
        return dict(values=ts, axis=g.a(ax, t)) if v2 else dict(concat_dim=g.a(ax), values=ts)
    for dt in (ALL if v2 else g.picks(ALL, 5)) + (["qint8", "quint8"] if v2 else []):
        r, n = g.i(1, 5), g.i(2, 4)
        ax = g.i(-r, r - 1)
        base = list(g.shape(r, 1, 3))
        ts = []
        for _ in range(n):
            b = list(base)
            b[ax] = g.i(0, 3)
            ts.append(g.d(dt, b))
        g.c(both(ts, ax), "%s rank %d axis %d" % (dt, r, ax))
    g.c(both([g.d("float32", (0, 3)), g.d("float32", (2, 3)), g.d("float32", (0, 3))], 0), "empty parts")
    g.c(both([g.d("float32", (2, 0)), g.d("float32", (2, 0))], 1), "all empty")
    g.e(both([g.d("float32", (2, 3)), g.d("float32", (3, 2))], 0), "shapes differ")
    g.e(both([g.d("float32", (2, 3)), g.d("float32", (2, 3))], 2), "axis out of range")
    g.e(both([g.d("float32", (2, 3)), g.d("float32", (2, 3, 1))], 0), "ranks differ")
    g.e(both([g.d("float32", ()), g.d("float32", ())], 0), "scalars")
    if v2:
        g.e(dict(values=[g.d("float32", (2,)), g.d("float32", (2,))], axis=g.a([0, 0])), "axis is a vector")


@op("array", "ConcatOffset")
def concat_offset(g):
    for _ in range(3):
        r, n = g.i(1, 4), g.i(2, 4)
        ax, base = g.i(0, r - 1), list(g.shape(r))
        sh = []
        for _ in range(n):
            b = list(base)
            b[ax] = g.i(0, 5)
            sh.append(g.a(b))
        g.c(dict(concat_dim=g.a(ax), shape=sh), "axis %d of %d" % (ax, r))
    g.e(dict(concat_dim=g.a(0), shape=[g.a([2, 3]), g.a([2, 4])]), "other sizes differ")
    g.e(dict(concat_dim=g.a(3), shape=[g.a([2, 3]), g.a([2, 3])]), "axis")


@op("array", "Split")
def split(g):
    for dt in ["float32", S, "int64", "half", "bool", "complex128"] + g.picks(ALL, 3):
        r, n = g.i(1, 5), g.i(1, 4)
        ax = g.i(-r, r - 1)
        sh = list(g.shape(r, 1, 3))
        sh[ax] = n * g.i(1, 3)
        g.c(dict(axis=g.a(ax), value=g.d(dt, sh)), "%s in %d on axis %d" % (dt, n, ax), num_split=n)
    g.c(dict(axis=g.a(1), value=g.d("float32", (2, 0))), "empty", num_split=2)
    g.e(dict(axis=g.a(0), value=g.d("float32", (5, 2))), "not divisible", num_split=2)
    g.e(dict(axis=g.a(2), value=g.d("float32", (4, 2))), "axis", num_split=2)
    g.e(dict(axis=g.a([0, 1]), value=g.d("float32", (4, 2))), "axis is a vector", num_split=2)


@op("array", "SplitV")
def split_v(g):
    for dt in ["float32", S, "int32", "bool", "bfloat16"] + g.picks(ALL, 2):
        r, n, t = g.i(1, 4), g.i(1, 4), g.it()
        ax = g.i(-r, r - 1)
        sizes = [g.i(0, 3) for _ in range(n)]
        sh = list(g.shape(r, 1, 3))
        sh[ax] = sum(sizes)
        if n > 1 and g.coin():
            sizes[g.i(0, n - 1)] = -1
        g.c(dict(value=g.d(dt, sh), size_splits=g.a(sizes, t), axis=g.a(ax)),
            "%s %s on axis %d" % (dt, sizes, ax), num_split=n)
    g.e(dict(value=g.d("float32", (5, 2)), size_splits=g.a([2, 2]), axis=g.a(0)), "sum", num_split=2)
    g.e(dict(value=g.d("float32", (5, 2)), size_splits=g.a([-1, -1]), axis=g.a(0)), "two -1", num_split=2)
    g.e(dict(value=g.d("float32", (5, 2)), size_splits=g.a([2, 3]), axis=g.a(2)), "axis", num_split=2)
    g.e(dict(value=g.d("float32", (5, 2)), size_splits=g.a([7, -2]), axis=g.a(0)), "negative", num_split=2)
    g.e(dict(value=g.d("float32", (5, 2)), size_splits=g.a([2, 2, 1]), axis=g.a(0)), "length", num_split=2)


@op("array", "Pack")
def pack(g):
    for dt in ALL:
        r, n = g.i(0, 4), g.i(1, 4)
        ax, sh = g.i(-r - 1, r), g.shape(r, 1, 3)
        g.c(dict(values=[g.d(dt, sh) for _ in range(n)]), "%s %d of rank %d axis %d" % (dt, n, r, ax), axis=ax)
    g.c(dict(values=[g.d("float32", (0, 2))] * 2), "empty", axis=1)
    g.e(dict(values=[g.d("float32", (2,)), g.d("float32", (3,))]), "shapes differ", axis=0)
    g.e(dict(values=[g.d("float32", (2,)), g.d("float32", (2,))]), "axis", axis=2)


@op("array", "Unpack")
def unpack(g):
    for dt in ["float32", S, "int64", "bool", "half"] + g.picks(ALL, 3):
        r = g.i(1, 5)
        ax, sh = g.i(-r, r - 1), g.shape(r, 1, 4)
        g.c(dict(value=g.d(dt, sh)), "%s rank %d axis %d" % (dt, r, ax), num=sh[ax], axis=ax)
    g.c(dict(value=g.d("float32", (2, 0))), "empty", num=2, axis=0)
    g.e(dict(value=g.d("float32", (3, 2))), "num", num=2, axis=0)
    g.e(dict(value=g.d("float32", (3, 2))), "axis", num=2, axis=2)
    g.e(dict(value=g.d("float32", ())), "scalar", num=1, axis=0)


# ---- slices ------------------------------------------------------------------
@op("array", "Slice")
def slice_(g):
    for dt in ["float32", S, "int64", "bool", "half"] + g.picks(ALL, 4):
        r, t = g.i(1, 5), g.it()
        sh = g.shape(r, 1, 4)
        b = [g.i(0, n) for n in sh]
        z = [-1 if g.i(0, 2) == 0 else g.i(0, n - k) for n, k in zip(sh, b)]
        g.c(dict(input=g.d(dt, sh), begin=g.a(b, t), size=g.a(z, t)), "%s %s begin %s size %s" % (dt, sh, b, z))
    sh = g.shape(6, 2, 3)
    g.c(dict(input=g.d("float32", sh), begin=g.a([1] * 6), size=g.a([-1] * 6)), "rank 6")
    g.c(dict(input=g.d("float32", ()), begin=g.a(np.zeros(0, int)), size=g.a(np.zeros(0, int))), "scalar")
    for b, z, w in [([0, 4], [1, 1], "begin past the end"), ([0, 0], [3, 1], "size past the end"),
                    ([-1, 0], [1, 1], "negative begin"), ([0, 0], [1, -2], "size -2"), ([0], [1], "length")]:
        g.e(dict(input=g.d("float32", (2, 3)), begin=g.a(b), size=g.a(z)), w)


def strided(g, r=None):
    """A random legal slicing: (shape, begin, end, strides, masks)."""
    r = r or g.i(1, 4)
    sh = list(g.shape(r, 2, 5))
    b, e, s, bm, em, ell, na, sk = [], [], [], 0, 0, 0, 0, 0
    d, k, used_ell = 0, 0, False
    while d < r:
        c = g.i(0, 9)
        if c == 0 and not used_ell:
            used_ell, ell = True, 1 << k
            b.append(0), e.append(0), s.append(1)
            d += g.i(0, r - d)
        elif c == 1 and na.bit_count() < 2:
            na |= 1 << k
            b.append(g.i(0, 3)), e.append(g.i(0, 3)), s.append(1)
        elif c == 2:
            sk |= 1 << k
            x = g.i(-sh[d], sh[d] - 1)
            b.append(x), e.append(x + 1), s.append(1)
            d += 1
        else:
            n, st = sh[d], g.pick([1, 1, 2, 3, -1, -1, -2])
            x, y = g.i(-n - 1, n + 1), g.i(-n - 1, n + 1)
            if c > 4:      # mostly something is left
                x, y = (g.i(0, n // 2), g.i(n // 2 + 1, n)) if st > 0 else (g.i(n // 2, n), g.i(-n - 1, -n + 1))
            b.append(x), e.append(y), s.append(st)
            bm |= (g.i(0, 3) == 0) << k
            em |= (g.i(0, 3) == 0) << k
            d += 1
        k += 1
        if g.i(0, 6) == 0 and not used_ell:
            break
    return sh, b, e, s, dict(begin_mask=int(bm), end_mask=int(em), ellipsis_mask=ell, new_axis_mask=na,
                             shrink_axis_mask=sk)


@op("array", "StridedSlice")
def strided_slice(g):
    for dt in ALL + ["float32"] * 14 + ["int64", S] * 3:
        sh, b, e, s, m = strided(g)
        t = g.pick(["int32", "int32", "int64"])
        g.c(dict(input=g.d(dt, sh), begin=g.a(b, t), end=g.a(e, t), strides=g.a(s, t)),
            "%s %s [%s:%s:%s] %s" % (dt, sh, b, e, s, list(m.values())), **m)
    big = 2 ** 31 - 1
    for b, e, s, w in [([0], [big], [1], "end int max"), ([-1], [-big - 1], [-1], "reversed to int min"),
                       ([9], [20], [1], "past the end"), ([3], [1], [1], "empty")]:
        g.c(dict(input=g.d("float32", (g.i(4, 6), 2)), begin=g.a(b), end=g.a(e), strides=g.a(s)), w)
    g.c(dict(input=g.d("float32", (0, 3)), begin=g.a([0, 1]), end=g.a([5, 3]), strides=g.a([1, 1])), "empty input")
    g.c(dict(input=g.d("int32", (g.i(3, 5),)), begin=g.a([1]), end=g.a([2]), strides=g.a([1])), "shrink a shape",
        shrink_axis_mask=1)
    for sh, b, e, s, m, w in [((4,), [0], [3], [0], {}, "zero stride"),
                              ((4,), [4], [5], [1], dict(shrink_axis_mask=1), "shrink out of range"),
                              ((4,), [-5], [0], [1], dict(shrink_axis_mask=1), "shrink below"),
                              ((4,), [0, 0], [1, 1], [1, 1], {}, "too many indices"),
                              ((4, 4), [0, 0], [1, 1], [1, 1], dict(ellipsis_mask=3), "two ellipses"),
                              ((4, 4), [0, 0], [1], [1, 1], {}, "lengths differ"),
                              ((4,), [2], [0], [-1], dict(shrink_axis_mask=1), "negative stride on shrink")]:
        g.e(dict(input=g.d("float32", sh), begin=g.a(b), end=g.a(e), strides=g.a(s)), w, **m)


def sliced_shape(sh, b, e, s, m):
    ix, d = [], 0
    for k in range(len(b)):
        bit = 1 << k
        if m["ellipsis_mask"] & bit:
            ix.append(Ellipsis)
        elif m["new_axis_mask"] & bit:
            ix.append(None)
        elif m["shrink_axis_mask"] & bit:
            ix.append(b[k])
        else:
            ix.append(slice(None if m["begin_mask"] & bit else b[k], None if m["end_mask"] & bit else e[k], s[k]))
    return np.zeros(sh)[tuple(ix)].shape


@ops("array", "StridedSliceGrad TensorStridedSliceUpdate")
def strided_grad(g, name):
    grad = name == "StridedSliceGrad"
    for dt in ["float32", "int64", "bool", "float64", "half", "int32", "complex64"] + [g.pick(NUM) for _ in range(5)] \
            + ([S] if not grad else []):
        sh, b, e, s, m = strided(g)
        t = g.it()
        out = sliced_shape(sh, b, e, s, m)
        ix = dict(begin=g.a(b, t), end=g.a(e, t), strides=g.a(s, t))
        if grad:
            kw = dict(shape=g.a(sh, t), dy=g.d(dt, out), **ix)
        else:
            kw = dict(input=g.d(dt, sh), value=g.d(dt, out), **ix)
        g.c(kw, "%s %s [%s:%s:%s] %s" % (dt, sh, b, e, s, list(m.values())), **m)
    ix = dict(begin=g.a([0]), end=g.a([2]), strides=g.a([1]))
    bad = g.d("float32", (3, 4))
    g.e(dict(shape=g.a([4, 4]), dy=bad, **ix) if grad else dict(input=g.d("float32", (4, 4)), value=bad, **ix), "shape")
    ix = dict(begin=g.a([0]), end=g.a([3]), strides=g.a([0]))
    g.e(dict(shape=g.a([4, 4]), dy=bad, **ix) if grad else dict(input=g.d("float32", (4, 4)), value=bad, **ix), "stride 0")


# ---- padding and repeating -----------------------------------------------------
@ops("array", "Pad PadV2 MirrorPad MirrorPadGrad")
def pad(g, name):
    mirror = name.startswith("Mirror")
    dts = ["float32", "int32", "half", "complex64", S, "bool", "uint8", "float64"] + g.picks(NUM, 4)
    for dt in dts:
        r, t = g.i(1, 4), g.it()
        sh = g.shape(r, 2, 4)
        mode = g.pick(["REFLECT", "SYMMETRIC"])
        top = [n - (mode == "REFLECT") for n in sh] if mirror else [3] * r
        p = [[g.i(0, k), g.i(0, k)] for k in top]
        kw = dict(input=g.d(dt, sh), paddings=g.a(np.array(p), t))
        at = dict(mode=mode) if mirror else {}
        if name == "PadV2":
            kw["constant_values"] = g.d(dt, ())
        if name == "MirrorPadGrad":
            kw["input"] = g.d(dt, [n + a + b for n, (a, b) in zip(sh, p)])
        g.c(kw, "%s %s %s %s" % (dt, sh, p, at.get("mode", "")), **at)
    f = dict(constant_values=g.d("float32", ())) if name == "PadV2" else {}
    at = dict(mode="REFLECT") if mirror else {}
    g.c(dict(input=g.d("float32", (2, 3)), paddings=g.a([[0, 0], [0, 0]]), **f), "nothing", **at)
    if not mirror:
        g.c(dict(input=g.d("float32", (0, 3)), paddings=g.a([[1, 2], [0, 1]]), **f), "empty")
        g.c(dict(input=g.d("float32", g.shape(6, 1, 2)), paddings=g.a([[0, 1], [1, 0]] * 3), **f), "rank 6")
        g.c(dict(input=g.d("float32", ()), paddings=g.a(np.zeros((0, 2), int)), **f), "scalar")
    g.e(dict(input=g.d("float32", (3, 3)), paddings=g.a([[1, 1]]), **f), "rows", **at)
    g.e(dict(input=g.d("float32", (3, 3)), paddings=g.a([[1, 1, 1], [0, 0, 0]]), **f), "columns", **at)
    g.e(dict(input=g.d("float32", (3, 3)), paddings=g.a([[-1, 1], [0, 0]]), **f), "negative", **at)
    if mirror:
        g.e(dict(input=g.d("float32", (3, 3)), paddings=g.a([[3, 0], [0, 0]])), "too much for REFLECT", **at)
        g.e(dict(input=g.d("float32", (3, 3)), paddings=g.a([[4, 0], [0, 0]])), "too much", mode="SYMMETRIC")


@op("array", "Tile")
def tile(g):
    for dt in ["float32", S, "int32", "bool", "half", "complex64"] + g.picks(ALL, 4):
        r, t = g.i(1, 5), g.it()
        m = [g.i(1, 3) for _ in range(r)]
        g.c(dict(input=g.d(dt, g.shape(r, 1, 3)), multiples=g.a(m, t)), "%s %s" % (dt, m))
    g.c(dict(input=g.d("float32", (2, 3)), multiples=g.a([0, 2])), "zero times")
    g.c(dict(input=g.d("float32", ()), multiples=g.a(np.zeros(0, int))), "scalar")
    g.c(dict(input=g.d("float32", (1, 2, 1, 2, 1, 2)), multiples=g.a([2, 1, 2, 1, 2, 1])), "rank 6")
    g.e(dict(input=g.d("float32", (2, 3)), multiples=g.a([2])), "length")
    g.e(dict(input=g.d("float32", (2, 3)), multiples=g.a([2, -1])), "negative")


@op("array", "Fill")
def fill(g):
    for dt in ALL + ["qint8"]:
        d = list(g.shape(g.i(0, 4), 0 if g.i(0, 4) == 0 else 1, 4))
        g.c(dict(dims=g.a(np.array(d, int), g.it()), value=g.d(dt, ())), "%s %s" % (dt, d))
    g.e(dict(dims=g.a([2, -1]), value=g.d("float32", ())), "negative")
    g.e(dict(dims=g.a([2, 2]), value=g.d("float32", (2,))), "value is a vector")
    g.e(dict(dims=g.a([[2, 2]]), value=g.d("float32", ())), "dims is a matrix")


# ---- making, choosing, converting ---------------------------------------------
@op("array", "Range")
def range_(g):
    for dt in ["int32", "int64", "float32", "float64", "int32", "half", "bfloat16", "int16", "float32"]:
        s, n, d = g.i(-5, 5), g.i(0, 12), g.pick([1, 2, 3, -1, -2])
        if dt.startswith("float"):
            d = d * g.pick([0.25, 0.5, 0.1])
        g.c({k: g.a(v, dt) for k, v in dict(start=s, limit=s + n * d, delta=d).items()},
            "%s from %g by %g" % (dt, s, d))
    g.c(dict(start=g.a(3), limit=g.a(3), delta=g.a(1)), "empty")
    g.c(dict(start=g.a(0), limit=g.a(10), delta=g.a(g.i(3, 4))), "limit not hit")
    g.e(dict(start=g.a(0), limit=g.a(10), delta=g.a(0)), "delta 0")
    g.e(dict(start=g.a(10), limit=g.a(0), delta=g.a(1)), "wrong way")
    g.e(dict(start=g.a(0), limit=g.a(10), delta=g.a(-1)), "wrong way, negative")
    g.e(dict(start=g.a([0, 1]), limit=g.a(10), delta=g.a(1)), "start is a vector")


@op("array", "LinSpace")
def linspace(g):
    for dt in ["float32", "float64", "float32", "bfloat16", "half"]:
        g.c(dict(start=g.d(dt, ()), stop=g.d(dt, ()), num=g.a(g.i(2, 9), g.it())), dt)
    g.c(dict(start=g.d("float32", ()), stop=g.d("float32", ()), num=g.a(1)), "one")
    g.e(dict(start=g.d("float32", ()), stop=g.d("float32", ()), num=g.a(0)), "num 0")
    g.e(dict(start=g.d("float32", (2,)), stop=g.d("float32", ()), num=g.a(3)), "start is a vector")


@op("array", "Cast")
def cast(g):
    dts = NUM + ["bool"]
    for src in dts:
        n = g.i(10, 16)
        if src in FLOATS + CPLX:
            x = np.concatenate([np.round(g.r.uniform(0, 100, n), 1), [0, 1, 0.5, 1.5, 2.5, 126.99]])
            x = x + (1j * g.r.standard_normal(len(x)) if src in CPLX else 0)
        else:
            x = g.x(src, (n,))
        g.c(dict(x=g.D(x, src)), "%s to all" % src, many=[dict(DstT=d) for d in dts])
    for src in ["float32", "float64", "half", "bfloat16"]:
        x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-8, -70000.0, 65519, 65520, 1e-40, -1.5, 3.4e38])
        with np.errstate(all="ignore"):
            g.c(dict(x=g.D(x.astype(np.float32), src)), "%s, special values" % src,
                many=[dict(DstT=d) for d in FLOATS + CPLX + ["bool"]])
        y = np.round(g.r.uniform(-100, 100, 12), 1)
        g.c(dict(x=g.D(y, src)), "%s, negative" % src, many=[dict(DstT=d) for d in ["int8", "int16", "int32", "int64"]])
    for t in (True, False):
        g.c(dict(x=g.d("float32", (20,))), "truncate %s" % t, many=[dict(DstT=d, Truncate=t) for d in ["bfloat16", "half"]])
    g.c(dict(x=g.d("float64", (12,))), "float64 to small, truncate", many=[dict(DstT=d, Truncate=True)
                                                                        for d in ["float32", "bfloat16", "half"]])
    for d in ["float8_e5m2", "float8_e4m3fn"]:
        g.c(dict(x=g.d("float32", (16,))), "float32 to " + d, DstT=d)
        g.c(dict(x=g.d(d, (16,))), d + " to float32", DstT="float32")
    g.c(dict(x=g.d("int32", g.shape(g.pick([3, 6]), 1, 3))), "high rank", DstT="float32")
    g.c(dict(x=g.d("int32", (0, 2))), "empty", DstT="int64")
    g.c(dict(x=g.d("bool", ())), "scalar", DstT="int8")


@op("array", "Where")
def where(g):
    for dt in ["bool", "float32", "int32", "half", "complex64", "uint8", "bool", "int64"]:
        sh = g.shape(g.i(1, 5), 1, 4)
        x = g.x(dt, sh)
        if dt != "bool":
            x = np.where(g.r.integers(0, 2, sh).astype(bool), x, np.zeros_like(x))
        g.c(dict(condition=g.D(x, dt)), "%s %s" % (dt, sh))
    g.c(dict(condition=g.D(np.zeros((3, 2), bool), "bool")), "none")
    g.c(dict(condition=g.D(np.zeros((0, 2), bool), "bool")), "empty")
    g.c(dict(condition=g.D([np.nan, 0.0, -0.0, np.inf])), "nan")
    g.c(dict(condition=g.d("bool", g.shape(6, 1, 3))), "rank 6")
    g.c(dict(condition=g.D(np.bool_(True), "bool")), "scalar")


@ops("array", "Select SelectV2")
def select(g, name):
    v2 = name == "SelectV2"
    T, E = ("t", "e") if v2 else ("x", "y")

    def kw(c, t, e, dt="float32"):
        return {"condition": g.d("bool", c), T: g.d(dt, t), E: g.d(dt, e)}
    for dt in ALL:
        r = g.i(0, 4)
        sh = list(g.shape(r, 1, 4))
        if v2:
            def part():
                return [1 if g.i(0, 3) == 0 else n for n in sh[g.i(0, r):]]
            s3 = part(), part(), part()
        else:
            s3 = g.pick([sh, sh[:1]] if r > 1 else [sh]), sh, sh
        g.c(kw(*s3, dt), "%s %s" % (dt, list(s3)))
    g.c(kw((0, 2), (0, 2), (0, 2)), "empty")
    g.c(kw((), (2, 3), (2, 3)), "scalar condition")
    if v2:
        g.c(kw((2, 1, 1, 2, 1), (1, 2, 1, 1, 3), (1, 1, 3, 1, 1)), "rank 5")
    two = (2, 3) if not v2 else (2,)
    g.e(kw((3,), two, two), "condition")
    g.e(kw((2,), (2, 3), (2, 4)), "t and e")


# TopK: TensorFlow 2.21 has no kernel for it any more (index_type is asked of it).
@ops("array", "TopKV2")
def top_k(g, name):
    v2 = name == "TopKV2"
    for dt in ["float32", "int32", "float64", "half", "uint8", "int64", "bfloat16", "int8"]:
        sh = g.shape(g.i(1, 4), 1, 4)[:-1] + (g.i(3, 9),)
        k = g.i(1, sh[-1])
        x = g.d(dt, sh, *([0, 4] if g.coin() else []))
        g.c(dict(input=x, **(dict(k=g.a(k)) if v2 else {})), "%s %s k %d" % (dt, sh, k), sorted=True,
            **({} if v2 else dict(k=k)))
    
    def kk(k):
        return (dict(k=g.a(k)), {}) if v2 else ({}, dict(k=k))
    for sh, k, w in [((3, 4), 0, "k 0"), ((0, 4), 2, "empty"), ((6,), 6, "all"), ((2, 5), 1, "k 1")]:
        i, at = kk(k)
        g.c(dict(input=g.d("float32", sh), **i), w, **at)
    i, at = kk(g.i(3, 5))
    g.c(dict(input=g.D([1.0, np.inf, -np.inf, 1.0, 2.0, 1.0]), **i), "inf and ties", **at)
    if v2:
        for t in ("int16", "int64"):
            g.c(dict(input=g.d("float32", (3, 5)), k=g.a(3, t)), "k " + t, index_type="int64")
        g.c(dict(input=g.d("float32", (4, 5)), k=g.a(3)), "index int16", index_type="int16")
        g.e(dict(input=g.d("float32", (2, 3)), k=g.a(-1)), "negative k")
        g.e(dict(input=g.d("float32", (2, 3)), k=g.a([1])), "k is a vector")
    i, at = kk(5)
    g.e(dict(input=g.d("float32", (2, 3)), **i), "k too large", **at)
    g.e(dict(input=g.d("float32", ()), **kk(1)[0]), "scalar", **kk(1)[1])


# ---- gather and scatter --------------------------------------------------------
@ops("gather", "Gather GatherV2")
def gather(g, name):
    v2 = name == "GatherV2"
    for dt in ["float32", S, "int64", "bool", "half", "bfloat16", "int8", "complex64"] + g.picks(ALL, 3 + 4 * v2):
        r, t = g.i(1, 4), g.it()
        sh = g.shape(r, 2, 4)
        if not v2:
            g.c(dict(params=g.d(dt, sh), indices=g.D(g.x(t, g.shape(g.i(0, 3), 1, 4), 0, sh[0] - 1), t)),
                "%s %s" % (dt, sh))
            continue
        ax = g.i(0, r - 1)
        b = g.i(0, ax)
        ix = sh[:b] + g.shape(g.i(0, 2), 1, 4)
        neg, nb = g.coin(), g.coin() and len(ix) > 0 and b > 0
        g.c(dict(params=g.d(dt, sh), indices=g.D(g.x(t, ix, 0, sh[ax] - 1), t), axis=g.a(ax - r if neg else ax, g.it())),
            "%s %s axis %d batch_dims %d indices %s" % (dt, sh, ax, b, list(ix)), batch_dims=b - len(ix) if nb else b)
    ax = dict(axis=g.a(0)) if v2 else {}
    g.c(dict(params=g.d("float32", (3, 2)), indices=g.D(np.zeros((0,)), "int32"), **ax), "no indices")
    g.c(dict(params=g.d("float32", (3, 0)), indices=g.D([2, 0], "int32"), **ax), "empty rows")
    g.c(dict(params=g.d("float32", (2, 2, 1, 2, 1)), indices=g.D([[1, 0]], "int64"), **ax), "rank 6 result")
    g.e(dict(params=g.d("float32", (3, 2)), indices=g.D([0, 3], "int32"), **ax), "index too large")
    g.e(dict(params=g.d("float32", (3, 2)), indices=g.D([-1], "int64"), **ax), "negative index")
    g.e(dict(params=g.d("float32", (0, 2)), indices=g.D([0], "int32"), **ax), "empty params")
    g.e(dict(params=g.d("float32", ()), indices=g.D([0], "int32"), **ax), "scalar params")
    if v2:
        i = g.D([[0, 1], [1, 0]], "int32")
        g.e(dict(params=g.d("float32", (3, 2)), indices=i, axis=g.a(2)), "axis")
        g.e(dict(params=g.d("float32", (3, 2)), indices=i, axis=g.a(1)), "batch sizes", batch_dims=1)
        g.e(dict(params=g.d("float32", (2, 2)), indices=i, axis=g.a(0)), "batch_dims above axis", batch_dims=1)
        g.e(dict(params=g.d("float32", (2, 2)), indices=g.D(0, "int32"), axis=g.a(0)), "batch_dims above rank", batch_dims=1)


@op("gather", "GatherNd")
def gather_nd(g):
    for dt in ["float32", S, "int64", "bool", "half", "complex64"] + g.picks(ALL, 4):
        r, t = g.i(1, 5), g.it()
        sh = g.shape(r, 2, 4)
        k, n = g.i(1, r), g.shape(g.i(0, 2), 1, 3)
        ix = np.stack([g.x(t, n, 0, sh[j] - 1) for j in range(k)], -1)
        g.c(dict(params=g.d(dt, sh), indices=g.D(ix, t)), "%s %s by %s" % (dt, sh, list(ix.shape)))
    g.c(dict(params=g.d("float32", (2, 3)), indices=g.D(np.zeros((2, 0)), "int32")), "depth 0")
    g.c(dict(params=g.d("float32", (2, 3)), indices=g.D(np.zeros((0, 2)), "int32")), "no indices")
    g.e(dict(params=g.d("float32", (2, 3)), indices=g.D([[0, 3]], "int32")), "index too large")
    g.e(dict(params=g.d("float32", (2, 3)), indices=g.D([[-1, 0]], "int64")), "negative")
    g.e(dict(params=g.d("float32", (2, 3)), indices=g.D([[0, 0, 0]], "int32")), "depth")
    g.e(dict(params=g.d("float32", (0, 3)), indices=g.D([[0, 0]], "int32")), "empty params")
    g.e(dict(params=g.d("float32", (2, 3)), indices=g.D(0, "int32")), "scalar indices")


def nd_indices(g, sh, k, n, t, unique):
    """n (a shape) indices of depth k into sh."""
    m = int(np.prod(n, dtype=int))
    size = int(np.prod(sh[:k]))
    flat = g.r.permutation(size)[:m] if unique else g.r.integers(0, size, m)
    return np.stack(np.unravel_index(flat, sh[:k]), -1).reshape(tuple(n) + (k,)).astype(t)


@ops("gather", "ScatterNd ScatterNdNonAliasingAdd TensorScatterUpdate TensorScatterAdd TensorScatterSub "
     "TensorScatterMax TensorScatterMin")
def scatter(g, name):
    first = dict(ScatterNd="shape", ScatterNdNonAliasingAdd="input").get(name, "tensor")

    def put(dt, sh, ix, up, t="int32"):
        a = g.a(sh, t) if first == "shape" else g.d(dt, sh)
        return {first: a, "indices": g.D(ix, t), "updates": g.d(dt, up)}
    dts = ["float32", "int32", "half", "float64", "int64", "bfloat16", "complex64", "uint8"] + g.picks(NUM, 2)
    if name.endswith("Update") or name == "ScatterNd":
        dts += [S, "bool"]
    for dt in dts:
        r, t = g.i(1, 4), g.it()
        sh = g.shape(r, 2, 4)
        k = g.i(1, r)
        n = (g.i(1, min(5, int(np.prod(sh[:k])))),)
        dup = dt not in (S, "bool", "half", "bfloat16") and not name.endswith("Update") and g.coin()
        ix = nd_indices(g, sh, k, n, t, not dup)
        if g.coin():
            ix = ix.reshape((1,) + ix.shape)
        g.c(put(dt, sh, ix, ix.shape[:-1] + sh[k:], t), "%s %s indices %s%s" % (dt, sh, list(ix.shape), " repeated" * dup))
    g.c(put("float32", (3, 2), np.zeros((0, 1)), (0, 2)), "no updates")
    g.c(put("float32", (2, 2, 1, 2, 1, 2), nd_indices(g, (2, 2, 1, 2, 1, 2), 2, (3,), "int32", True), (3, 1, 2, 1, 2)), "rank 6")
    g.e(put("float32", (3, 2), [[3]], (1, 2)), "index too large")
    g.e(put("float32", (3, 2), [[-1]], (1, 2)), "negative index")
    g.e(put("float32", (3, 2), [[0], [1]], (1, 2)), "updates, first size")
    g.e(put("float32", (3, 2), [[0], [1]], (2, 3)), "updates, row size")
    g.e(put("float32", (3, 2), [[0, 0, 0]], (1,)), "depth")
    g.e(put("float32", (0, 2), [[0]], (1, 2)), "empty tensor")
    if first == "shape":
        g.e(put("float32", (-1, 2), [[0]], (1, 2)), "negative shape")


@op("gather", "OneHot")
def one_hot(g):
    for dt in ["float32", "int32", "bool", S, "half", "uint8", "int64", "complex64"] + g.picks(ALL, 2):
        t, r, n = g.pick(["int32", "int64", "uint8", "int8"]), g.i(0, 4), g.i(2, 5)
        ix = g.x(t, g.shape(r, 1, 4), 0 if t == "uint8" else -1, n)
        g.c(dict(indices=g.D(ix, t), depth=g.a(n), on_value=g.d(dt, ()), off_value=g.d(dt, ())),
            "%s depth %d axis" % (dt, n), axis=g.i(-1, r))
    on = dict(on_value=g.d("float32", ()), off_value=g.d("float32", ()))
    g.c(dict(indices=g.D([0, 1], "int32"), depth=g.a(0), **on), "depth 0")
    g.c(dict(indices=g.D(np.zeros((2, 0)), "int32"), depth=g.a(3), **on), "empty")
    g.e(dict(indices=g.D([0, 1], "int32"), depth=g.a(-1), **on), "negative depth")
    g.e(dict(indices=g.D([0, 1], "int32"), depth=g.a([2]), **on), "depth is a vector")
    g.e(dict(indices=g.D([0, 1], "int32"), depth=g.a(3), **on), "axis", axis=3)
    g.e(dict(indices=g.D([0, 1], "int32"), depth=g.a(3), on_value=g.d("float32", (2,)), off_value=g.d("float32", ())), "on_value")


# ---- layout ----------------------------------------------------------------------
@ops("layout", "Transpose ConjugateTranspose")
def transpose(g, name):
    dts = ALL + ["float32"] * 3 if name == "Transpose" else ["float32", "int32"] + CPLX * 3
    for dt in dts:
        r = g.i(1, 6) if dt in ("float32", "int32", "half") else g.i(0, 4)
        sh, p = g.shape(r, 1, 3 if r > 4 else 4), g.perm(r)
        g.c(dict(x=g.d(dt, sh), perm=g.a(np.array(p, int), g.it())), "%s %s by %s" % (dt, sh, p))
    if name == "Transpose":
        for sh, p in [((2, 3, 4, 5), [0, 3, 1, 2]), ((2, 3, 4, 5), [0, 2, 3, 1]), ((2, 1, 3), [1, 0, 2]), ((5, 7), [1, 0])]:
            sh = tuple(n + g.i(0, 2) for n in sh)
            g.c(dict(x=g.d("float32", sh), perm=g.a(p)), "%s by %s" % (sh, p))
        g.c(dict(x=g.d("int64", g.shape(8, 1, 2)), perm=g.a(g.perm(8))), "rank 8")
    g.c(dict(x=g.d("float32", (0, 3)), perm=g.a([1, 0])), "empty")
    for p, w in [([0, 0], "repeated"), ([0, 2], "out of range"), ([0], "length"), ([-1, 0], "negative")]:
        g.e(dict(x=g.d("float32", (2, 3)), perm=g.a(p)), w)


@ops("layout", "Reverse ReverseV2")
def reverse(g, name):
    v2 = name == "ReverseV2"
    for dt in ["float32", S, "int32", "bool", "half", "uint8", "complex64", "int64"] + g.picks(NUM, 2):
        r, t = g.i(1, 5), g.it()
        sh = g.shape(r, 1, 4)
        dims = g.r.integers(0, 2, r).astype(bool)
        if v2:
            ax = [int(k) - r * g.coin() for k in np.flatnonzero(dims)]
            g.c(dict(tensor=g.d(dt, sh), axis=g.a(np.array(ax, int), t)), "%s %s %s" % (dt, sh, ax))
        else:
            g.c(dict(tensor=g.d(dt, sh), dims=g.a(dims, "bool")), "%s %s %s" % (dt, sh, dims.tolist()))
    x = g.d("float32", (2, 3))
    if v2:
        g.c(dict(tensor=g.d("float32", (0, 3)), axis=g.a([1])), "empty")
        g.c(dict(tensor=g.d("float32", (2, 3, 3)), axis=g.a([2])), "inner 3")
        for ax, w in [([2], "axis"), ([0, 0], "repeated"), ([0, -2], "repeated, negative"), ([-3], "axis below")]:
            g.e(dict(tensor=x, axis=g.a(ax)), w)
    else:
        g.e(dict(tensor=x, dims=g.a([True], "bool")), "length")


@op("layout", "ReverseSequence")
def reverse_sequence(g):
    for dt in ["float32", S, "int32", "bool", "half", "int64", "uint8", "complex64"]:
        r, t = g.i(2, 4), g.it()
        sh = g.shape(r, 2, 4)
        b, s = g.r.permutation(r)[:2].tolist()
        g.c(dict(input=g.d(dt, sh), seq_lengths=g.D(g.x(t, (sh[b],), 0, sh[s]), t)),
            "%s %s batch %d seq %d" % (dt, sh, b, s), seq_dim=s, batch_dim=b)
    x = g.d("float32", (2, 3))
    g.c(dict(input=g.d("float32", (0, 3)), seq_lengths=g.D(np.zeros(0), "int32")), "empty", seq_dim=1, batch_dim=0)
    for n, s, b, w in [([1, 4], 1, 0, "too long"), ([1, -1], 1, 0, "negative"), ([1], 1, 0, "number of lengths"),
                       ([1, 1], 0, 0, "same dims"), ([1, 1], 2, 0, "seq_dim")]:
        g.e(dict(input=x, seq_lengths=g.D(n, "int32")), w, seq_dim=s, batch_dim=b)


@ops("layout", "SpaceToDepth DepthToSpace")
def space_depth(g, name):
    for dt in ["float32", "int32", "half", "uint8", "bfloat16", "int64", "bool", S]:
        b = g.i(2, 3)
        n, h, w, c = g.i(1, 2), g.i(1, 3), g.i(1, 3), g.i(1, 3)
        sh = (n, h * b, w * b, c) if name == "SpaceToDepth" else (n, h, w, c * b * b)
        g.c(dict(input=g.d(dt, sh)), "%s %s block %d" % (dt, sh, b), block_size=b, data_format="NHWC")
    sh = (2, 4, 6, 4)
    for f, sh in [("NCHW", (2, 4, 4, 6)), ("NCHW_VECT_C", (1, 1, 4, 4, 4))]:
        g.c(dict(input=g.d("float32" if f == "NCHW" else "qint8", sh)), f, block_size=2, data_format=f)
    g.e(dict(input=g.d("float32", (1, 3, 3, 3))), "not divisible", block_size=2)
    g.e(dict(input=g.d("float32", (2, 2, 4))), "rank", block_size=2)
    g.e(dict(input=g.d("float32", (1, 2, 2, 4))), "block 3", block_size=3)


@ops("layout", "SpaceToBatch BatchToSpace SpaceToBatchND BatchToSpaceND")
def space_batch(g, name):
    nd, to_batch = name.endswith("ND"), name.startswith("Space")
    pad = "paddings" if to_batch else "crops"
    for dt in ["float32", "int32", "half", "uint8", "float64", "int64", "float32", "bfloat16"]:
        t = g.it()
        m = g.i(1, 3) if nd else 2
        bs = [g.i(1, 3) for _ in range(m)] if nd else [g.i(2, 3)] * 2
        k = [g.i(2, 3) for _ in range(m)]           # blocks in each dim
        p = [[g.i(0, 1), g.i(0, 1)] for _ in range(m)]
        tail = list(g.shape(g.i(0, 2) if nd else 1, 1, 3))
        b = g.i(1, 2)
        if to_batch:
            p = [[q[0] if x * y - sum(q) > 0 else 0, q[1]] for q, x, y in zip(p, bs, k)]
            sh = [b] + [x * y - sum(q) for x, y, q in zip(bs, k, p)] + tail
        else:
            sh = [b * int(np.prod(bs))] + k + tail
        kw = {"input": g.d(dt, sh), pad: g.a(p, t)}
        if nd:
            kw["block_shape"] = g.a(bs, g.it(), 0)
        g.c(kw, "%s %s blocks %s %s %s" % (dt, sh, bs, pad, p), **({} if nd else dict(block_size=bs[0])))

    def bad(sh, bs, p, w):
        kw = {"input": g.d("float32", sh), pad: g.a(p)}
        if nd:
            kw["block_shape"] = g.a(bs, static=0)
        g.e(kw, w, **({} if nd else dict(block_size=bs[0])))
    bad((4, 3, 4, 1), [2, 2], [[0, 0], [0, 0]] if to_batch else [[5, 5], [0, 0]], "sizes")
    bad((3, 4, 4, 1), [2, 2], [[-1, 1], [0, 0]] if to_batch else [[0, 0], [0, 0]], "negative padding or batch")
    bad((4, 4, 4, 1), [2, 2], [[0, 0]], "rows")
    bad((4, 4, 4, 1), [2, 2], [[0, 0], [-1, 0]], "negative")
    bad((4,), [2, 2], [[0, 0], [0, 0]], "rank")
    if nd:
        bad((4, 4, 4, 1), [0, 2], [[0, 0], [0, 0]], "block 0")


@op("layout", "Roll")
def roll(g):
    for dt in ["float32", "int32", S, "half", "bool", "int64", "complex64"] + g.picks(ALL, 2):
        r, t, n = g.i(1, 5), g.it(), g.i(1, 3)
        ax = [g.i(-r, r - 1) for _ in range(n)]
        s = [g.i(-7, 7) for _ in range(n)]
        one = n == 1 and g.coin()
        g.c(dict(input=g.d(dt, g.shape(r, 1, 4)), shift=g.a(s[0] if one else s, t), axis=g.a(ax[0] if one else ax, g.it())),
            "%s shift %s axis %s" % (dt, s, ax))
    g.c(dict(input=g.d("float32", (0, 3)), shift=g.a([1]), axis=g.a([1])), "empty")
    x = g.d("float32", (2, 3))
    g.e(dict(input=x, shift=g.a([1, 2]), axis=g.a([1])), "lengths")
    g.e(dict(input=x, shift=g.a([1]), axis=g.a([2])), "axis")
    g.e(dict(input=g.d("float32", ()), shift=g.a([1]), axis=g.a([0])), "scalar")


@op("layout", "ExtractImagePatches")
def patches(g):
    for dt in ["float32", "int32", "float64", "uint8", "half", "float32", "int64"]:
        k, s, d = g.shape(2, 1, 3), g.shape(2, 1, 3), g.shape(2, 1, 2)
        sh = (g.i(1, 2), g.i(6, 8), g.i(6, 8), g.i(1, 3))
        p = g.pick(["SAME", "VALID"])
        g.c(dict(images=g.d(dt, sh)), "%s %s k %s s %s rate %s %s" % (dt, sh, k, s, d, p), ksizes=[1, *k, 1],
            strides=[1, *s, 1], rates=[1, *d, 1], padding=p)
    one = dict(strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID")
    g.c(dict(images=g.d("float32", (0, 4, 4, 2))), "empty", ksizes=[1, 2, 2, 1], **one)
    g.e(dict(images=g.d("float32", (1, 2, 2, 1))), "window larger than the image", ksizes=[1, 3, 3, 1], **one)
    g.e(dict(images=g.d("float32", (4, 4, 1))), "rank", ksizes=[1, 2, 2, 1], **one)
    g.e(dict(images=g.d("float32", (1, 4, 4, 1))), "batch ksize", ksizes=[2, 2, 2, 1], **one)


# ---- matrices: bands and diagonals -------------------------------------------------
@op("layout", "MatrixBandPart")
def band_part(g):
    for dt in ["float32", "int32", "half", "complex64", "bool", "float64"]:
        sh, t = g.shape(g.i(2, 4), 2, 5), g.it()
        lo, up = g.i(-1, sh[-2]), g.i(-1, sh[-1])
        g.c(dict(input=g.d(dt, sh), num_lower=g.a(lo, t), num_upper=g.a(up, t)), "%s %s %d %d" % (dt, sh, lo, up))
    g.c(dict(input=g.d("float32", (0, 3)), num_lower=g.a(0), num_upper=g.a(0)), "empty")
    g.e(dict(input=g.d("float32", (3, 3)), num_lower=g.a(4), num_upper=g.a(0)), "num_lower")
    g.e(dict(input=g.d("float32", (3,)), num_lower=g.a(0), num_upper=g.a(0)), "rank")


@ops("layout", "Diag DiagPart MatrixDiag MatrixDiagPart MatrixSetDiag")
def diag(g, name):
    for dt in ["float32", "int32", "complex64", "float64", "half", "int64"]:
        r = g.i(1, 3)
        sh = g.shape(r, 1, 3)
        if name == "Diag":
            kw = dict(diagonal=g.d(dt, sh))
        elif name == "DiagPart":
            kw = dict(input=g.d(dt, sh * 2))
        elif name == "MatrixDiag":
            kw = dict(diagonal=g.d(dt, sh))
        else:
            sh = g.shape(g.i(2, 4), 1, 4)
            kw = dict(input=g.d(dt, sh))
            if name == "MatrixSetDiag":
                kw["diagonal"] = g.d(dt, sh[:-2] + (min(sh[-2:]),))
        g.c(kw, "%s %s" % (dt, sh))
    first = next(iter(kw))
    e = dict(kw)
    e[first] = g.d("float32", ())
    if name == "MatrixSetDiag":
        e["diagonal"] = g.d("float32", (2,))
    g.e(e, "scalar")
    if name == "DiagPart":
        g.e(dict(input=g.d("float32", (2, 3))), "not square")
        g.e(dict(input=g.d("float32", (2, 2, 2))), "odd rank")
    if name == "MatrixSetDiag":
        g.e(dict(input=g.d("float32", (3, 4)), diagonal=g.d("float32", (4,))), "length")
    if name in ("MatrixDiag", "MatrixDiagPart", "MatrixSetDiag"):
        z = {first: g.d("float32", (0, 3, 3) if name != "MatrixDiag" else (0, 3))}
        if name == "MatrixSetDiag":
            z["diagonal"] = g.d("float32", (0, 3))
        g.c(z, "empty")


ALIGN = ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]


def diag_shape(sh, k0, k1):
    """The shape of diagonals k0..k1 of a matrix."""
    m, n = sh[-2:]
    length = min(m + min(k1, 0), n - max(k0, 0))
    return tuple(sh[:-2]) + ((k1 - k0 + 1,) if k0 != k1 else ()) + (length,)


@ops("layout", "MatrixDiagV2 MatrixDiagV3 MatrixDiagPartV2 MatrixDiagPartV3 MatrixSetDiagV2 MatrixSetDiagV3")
def diag3(g, name):
    v3 = name.endswith("V3")
    for dt in ["float32", "int32", "float64", "complex64", "half", "float32", "int64", "uint8"][:8 if v3 else 4]:
        sh = g.shape(g.i(2, 3), 2, 5)
        m, n = sh[-2:]
        k0, k1 = sorted([g.i(-m + 1, n - 1), g.i(-m + 1, n - 1)])
        if g.i(0, 2) == 0:
            k1 = k0
        at = dict(align=g.pick(ALIGN)) if v3 else {}
        k = g.a(k0 if k0 == k1 and g.coin() else [k0, k1])
        ds = diag_shape(sh, k0, k1)
        if "Part" in name:
            kw = dict(input=g.d(dt, sh), k=k, padding_value=g.d(dt, ()))
        elif "Set" in name:
            kw = dict(input=g.d(dt, sh), diagonal=g.d(dt, ds), k=k)
        else:
            rc = g.pick([(m, n), (-1, n) if k0 > -m + 1 else (m, n), (m, -1) if k1 < n - 1 else (m, n)])
            length = ds[-1]
            lo_m, lo_n = length - min(k1, 0), length + max(k0, 0)
            if rc[0] == -1 and lo_m != m or rc[1] == -1 and lo_n != n:
                rc = (m, n)
            kw = dict(diagonal=g.d(dt, ds), k=k, num_rows=g.a(rc[0]), num_cols=g.a(rc[1]), padding_value=g.d(dt, ()))
        g.c(kw, "%s %s k %d..%d %s" % (dt, sh, k0, k1, at.get("align", "")), **at)
    x, v = g.d("float32", (3, 4)), g.d("float32", ())
    for k, w in [([2, 1], "k order"), ([5, 6], "k out of range"), ([0, 1, 2], "three ks")]:
        if "Part" in name:
            g.e(dict(input=x, k=g.a(k), padding_value=v), w)
        elif "Set" in name:
            g.e(dict(input=x, diagonal=g.d("float32", (2, 3)), k=g.a(k)), w)
        else:
            g.e(dict(diagonal=g.d("float32", (2, 3)), k=g.a(k), num_rows=g.a(3), num_cols=g.a(4), padding_value=v), w)
    if "Set" in name:
        g.e(dict(input=x, diagonal=g.d("float32", (2, 2)), k=g.a([0, 1])), "diagonal shape")
    if name == "MatrixDiagV3":
        g.e(dict(diagonal=g.d("float32", (3,)), k=g.a(0), num_rows=g.a(2), num_cols=g.a(2), padding_value=v), "too small")
        for k in (-2, 0, 1):
            g.c(dict(diagonal=g.d("float32", (g.i(1, 2), 3)), k=g.a(k), num_rows=g.a(-1), num_cols=g.a(-1),
                     padding_value=v), "size not given, k %d" % k)


# ---- broadcasting -------------------------------------------------------------------
def broad(g, r=None):
    """(small, full): small broadcasts to full."""
    full = g.shape(g.i(1, 5) if r is None else r, 1, 4)
    k = g.i(0, len(full))
    return tuple(1 if g.i(0, 2) == 0 else n for n in full[k:]), full


@op("array", "BroadcastTo")
def broadcast_to(g):
    for dt in ["float32", S, "int32", "bool", "half", "complex64", "int64", "uint8"]:
        a, b = broad(g)
        g.c(dict(input=g.d(dt, a), shape=g.a(list(b), g.it())), "%s %s to %s" % (dt, a, b))
    g.c(dict(input=g.d("float32", (1, 3)), shape=g.a([0, 3])), "to empty")
    g.c(dict(input=g.d("float32", ()), shape=g.a(np.zeros(0, int))), "scalar")
    g.c(dict(input=g.d("float32", (2, 1, 1, 1, 2, 2)), shape=g.a([2, 2, 2, 2, 2, 2])), "rank 6")
    g.e(dict(input=g.d("float32", (2, 3)), shape=g.a([2, 4])), "sizes")
    g.e(dict(input=g.d("float32", (2, 3)), shape=g.a([3])), "rank")
    g.e(dict(input=g.d("float32", (1, 3)), shape=g.a([-1, 3])), "negative")


@ops("array", "BroadcastArgs BroadcastGradientArgs")
def broadcast_args(g, name):
    for _ in range(6):
        t = g.it()
        a, b = broad(g)
        a, b = (a, b) if g.coin() else (b, a)
        g.c(dict(s0=g.a(np.array(a, int), t), s1=g.a(np.array(b, int), t)), "%s %s" % (a, b))
    g.c(dict(s0=g.a([2, 1, 3]), s1=g.a([1, 4, 1])), "both ways")
    g.c(dict(s0=g.a([0, 1]), s1=g.a([1, 3])), "empty")
    g.c(dict(s0=g.a(np.zeros(0, int)), s1=g.a(np.zeros(0, int))), "scalars")
    g.e(dict(s0=g.a([2, 3]), s1=g.a([2, 4])), "sizes")
    g.e(dict(s0=g.a([[2, 3]]), s1=g.a([2, 3])), "matrix")


# ---- sets, searching, partitions ------------------------------------------------------
@ops("array", "Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2")
def unique(g, name):
    v2 = name.endswith("V2")
    for dt in ["int32", "float32", S, "int64", "bool", "uint8", "half", "float64", "int8"]:
        n = g.i(4, 12)
        r = g.i(1, 3) if v2 else 1
        sh = (n,) if r == 1 else tuple(g.i(2, 3) for _ in range(r))
        x = g.x(dt, sh) if dt in (S, "bool") else np.asarray(g.x(dt, sh, 0, 3)).astype("float32").round().astype("int64")
        kw = dict(x=g.D(x, dt))
        if v2:
            ax = [] if r == 1 and g.coin() else [g.i(-r, r - 1)]
            kw["axis"] = g.a(np.array(ax, int), g.it())
        g.c(kw, "%s %s" % (dt, sh), out_idx=g.it())
    ax = dict(axis=g.a(np.zeros(0, int), "int64")) if v2 else {}
    g.c(dict(x=g.D(np.zeros(0), "float32"), **ax), "empty")
    g.c(dict(x=g.D([0.0, -0.0, 1.0, np.inf, np.inf]), **ax), "zeros and inf")
    g.e(dict(x=g.d("float32", ()), **ax), "scalar")
    if not v2:
        g.e(dict(x=g.d("float32", (2, 2))), "matrix")
    else:
        g.c(dict(x=g.D(np.repeat(g.x("int32", (3, 2), 0, 2), 2, 0), "int32"), axis=g.a([0], "int64")), "equal rows")
        g.e(dict(x=g.d("float32", (2, 2)), axis=g.a([2])), "axis")
        g.e(dict(x=g.d("float32", (2, 2)), axis=g.a([0, 1])), "two axes")


@op("array", "ListDiff")
def list_diff(g):
    for dt in ["int32", "float32", S, "int64", "uint8", "float64"]:
        n, m = g.i(3, 10), g.i(1, 6)
        a, b = (g.x(dt, (n,)), g.x(dt, (m,))) if dt == S else (g.x("int64", (n,), 0, 6), g.x("int64", (m,), 0, 6))
        g.c(dict(x=g.D(a, dt), y=g.D(b, dt)), dt, out_idx=g.it())
    g.c(dict(x=g.D(np.zeros(0), "int32"), y=g.D([1], "int32")), "empty")
    g.c(dict(x=g.D([3, 1], "int32"), y=g.D([1, 3, 2], "int32")), "nothing left")
    g.e(dict(x=g.D([[3, 1]], "int32"), y=g.D([1], "int32")), "matrix")


@ops("array", "LowerBound UpperBound")
def bound(g, name):
    for dt in ["float32", "int32", "float64", "int64", "half", "uint8"]:
        b, n, m = g.i(1, 3), g.i(1, 6), g.i(1, 6)
        x = np.sort(g.x("int64", (b, n), 0, 6), -1)
        g.c(dict(sorted_inputs=g.D(x, dt), values=g.D(g.x("int64", (b, m), 0, 7), dt)), dt, out_type=g.it())
    g.c(dict(sorted_inputs=g.D(np.zeros((2, 0))), values=g.D(np.zeros((2, 1)))), "no inputs")
    g.e(dict(sorted_inputs=g.D(np.zeros((2, 3))), values=g.D(np.zeros((1, 1)))), "rows")
    g.e(dict(sorted_inputs=g.D(np.zeros(3)), values=g.D(np.zeros(1))), "rank")


@op("array", "InvertPermutation")
def invert(g):
    for n in (1, 4, g.i(5, 9), 0):
        t = g.it()
        g.c(dict(x=g.D(np.array(g.perm(n), int), t)), "%d %s" % (n, t))
    for x, w in [([0, 0], "repeated"), ([0, 2], "out of range"), ([-1, 0], "negative"), ([[0, 1]], "matrix")]:
        g.e(dict(x=g.D(x, "int32")), w)


@op("array", "Bitcast")
def bitcast(g):
    pairs = [("float32", "int32"), ("float64", "int64"), ("half", "uint16"), ("bfloat16", "int16"), ("int8", "uint8"),
             ("float32", "uint8"), ("uint8", "float32"), ("complex64", "float32"), ("float32", "complex64"),
             ("int64", "int32"), ("int32", "int64"), ("complex64", "float64"), ("uint32", "float32"), ("qint8", "uint8"),
             ("uint8", "bfloat16")]
    size = dict(zip(NUM + ["qint8"], [4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 8, 16, 1]))
    for a, b in pairs:
        sh = g.shape(g.i(0, 3), 1, 4)
        if size[b] > size[a]:
            sh = sh + (size[b] // size[a],)
        src = g.d(a, sh)
        if b in FLOATS and a in INTS:      # no NaNs with odd payloads, no subnormals
            src = g.D(np.ascontiguousarray(g.x(b, sh[:-1] if size[b] > size[a] else sh))[..., None].view(
                np.dtype(a)).reshape(sh), a)
        g.c(dict(input=src), "%s %s to %s" % (a, sh, b), type=b)
    g.c(dict(input=g.d("float32", (0, 3))), "empty", type="int32")
    g.e(dict(input=g.d("uint8", (2, 3))), "last size", type="float32")
    g.e(dict(input=g.d("uint8", ())), "scalar up", type="float32")


@op("array", "CheckNumerics")
def check_numerics(g):
    for dt in FLOATS:
        g.c(dict(tensor=g.d(dt, g.shape(g.i(0, 3)))), dt, message="m")
    g.c(dict(tensor=g.d("float32", (0,))), "empty", message="m")
    for x, w in [([1.0, np.nan], "nan"), ([np.inf, 0], "inf"), ([-np.inf, np.nan], "both")]:
        for op_dt in g.picks(["float32", "float64", "half"], 2):
            g.e(dict(tensor=g.D(x, op_dt)), w, message="bad numbers")


@op("array", "CheckNumericsV2")
def check_numerics2(g):
    for dt in FLOATS:
        g.c(dict(tensor=g.d(dt, g.shape(g.i(0, 3)))), dt, message="m")
    g.e(dict(tensor=g.D([1.0, np.nan])), "nan", message="m")
    g.e(dict(tensor=g.D([-np.inf, 2])), "-inf", message="m")


@op("gather", "DynamicPartition")
def dynamic_partition(g):
    for dt in ["float32", S, "int32", "bool", "half", "int64", "complex64"] + g.picks(NUM, 2):
        sh, n = g.shape(g.i(1, 3), 1, 5), g.i(1, 4)
        k = g.i(1, len(sh))
        g.c(dict(data=g.d(dt, sh), partitions=g.D(g.x("int32", sh[:k], 0, n - 1), "int32")), "%s %s in %d" % (dt, sh, n),
            num_partitions=n)
    g.c(dict(data=g.d("float32", ()), partitions=g.D(1, "int32")), "scalar", num_partitions=2)
    g.c(dict(data=g.d("float32", (0, 2)), partitions=g.D(np.zeros(0), "int32")), "empty", num_partitions=2)
    g.e(dict(data=g.d("float32", (2,)), partitions=g.D([0, 2], "int32")), "too large", num_partitions=2)
    g.e(dict(data=g.d("float32", (2,)), partitions=g.D([0, -1], "int32")), "negative", num_partitions=2)
    g.e(dict(data=g.d("float32", (2,)), partitions=g.D([0, 1, 1], "int32")), "shape", num_partitions=2)


@ops("gather", "DynamicStitch ParallelDynamicStitch")
def stitch(g, name):
    for dt in ["float32", S, "int32", "bool", "half", "int64", "complex64", "uint8"]:
        n, row = g.i(1, 3), g.shape(g.i(0, 2), 1, 3)
        shs = [g.shape(g.i(0, 2), 1, 3) for _ in range(n)]
        total = sum(int(np.prod(s)) for s in shs)
        p, at, ix = g.perm(total), 0, []
        if name == "DynamicStitch" and total > 2 and g.coin():
            p = [min(x, total - 2) for x in p]             # a repeated index: the last one stays
        for s in shs:
            m = int(np.prod(s))
            ix.append(g.D(np.array(p[at:at + m]).reshape(s), "int32"))
            at += m
        g.c(dict(indices=ix, data=[g.d(dt, s + row) for s in shs]), "%s rows %s from %s" % (dt, row, shs))
    g.c(dict(indices=[g.D(np.zeros(0), "int32")], data=[g.d("float32", (0, 2))]), "empty")
    g.e(dict(indices=[g.D([0, -1], "int32")], data=[g.d("float32", (2, 2))]), "negative")
    g.e(dict(indices=[g.D([0, 1], "int32")], data=[g.d("float32", (3, 2))]), "shape")
    g.e(dict(indices=[g.D([0], "int32"), g.D([1], "int32")], data=[g.d("float32", (1, 2)), g.d("float32", (1, 3))]), "rows")


if __name__ == "__main__":
    main("array")
