# SPDX-License-Identifier: Apache-2.0
"""Cases for reduce scan segment matmul linalg fft: used by ops_math.py."""
import numpy as np
import tensorflow as tf

np.seterr(all="ignore")


def setup(m):
    """Takes the shared names of ops_math.py (which may run as __main__)."""
    for n in "F I data shape value FLOATS CPLX SINTS UINTS INTS ALL EDGE nan inf".split():
        globals()[n] = getattr(m, n)


REDUCE = {"Sum": "any", "Mean": "any", "Prod": "small", "Max": "any", "Min": "any",
          "EuclideanNorm": "any", "All": "any", "Any": "any"}


def axes(r, rank, kind):
    ax = [int(x) for x in r.permutation(rank)[:int(r.integers(1, rank + 1))]]
    if kind == "neg":
        ax = [a - rank for a in ax]
    elif kind == "mixed":
        ax = [a - rank if r.random() < .5 else a for a in ax]
    return ax


def reduce(k):
    for op, dom in REDUCE.items():
        logic = op in ("All", "Any")
        for d in (["bool"] if logic else ALL):
            for j in range(6 if logic or d == "float32" else 1):
                r = k.rng(op, d, j)
                s = shape(r, int(r.integers(1, 7)), 1, 4, 150)
                n = 2 if r.random() < .25 else 1
                ax = axes(r, len(s), r.choice(["pos", "neg", "mixed"]))
                ax = ax[0] if r.random() < .25 else ax
                vals = [data(r, d, s if t == 0 else s[::-1], dom) for t in range(n)]
                if logic:
                    vals = [r.random(v.shape) < (.85 if op == "All" else .15) for v in vals]
                kd = bool(r.random() < .4)
                c = bool(r.random() < .5)
                t = "int64" if r.random() < .3 else "int32"
                k.one(op, "reduce", [I(d, *vals), I(t, ax, const=c)], {"keep_dims": kd},
                      "%s %s axes %s keep_dims=%s" % (d, s, ax, kd), static=n == 1 and r.random() < .3,
                      scaled=op in ("Sum", "Mean") and "inputs")
        r = k.rng(op, "more")
        d = "bool" if logic else str(r.choice(["float32", "float64", "int32"]))
        s = shape(r, 3)
        zero = list(s)
        zero[int(r.integers(0, 3))] = 0
        for what, sh, ax in [("empty axes", s, []), ("scalar", [], []), ("all axes", s, [0, 1, 2]),
                             ("empty tensor", zero, [int(r.integers(0, 3))]),
                             ("empty tensor", zero, [0, -1]), ("empty tensor", [0], 0)]:
            dd = "float32" if what == "empty tensor" and not logic else d
            kd = bool(r.random() < .4)
            k.one(op, "reduce", [I(dd, data(r, dd, sh, dom)), I("int32", np.array(ax, "int32"))],
                  {"keep_dims": kd}, "%s %s %s axes %s keep_dims=%s" % (dd, what, sh, ax, kd))
        for ax in ([3], [-4], [0, 0], [1, -2]):
            k.one(op, "reduce", [I(d, data(r, d, s, dom)), I("int32", ax)], {}, "bad axis %s of %s" % (ax, s),
                  err=True)
        if logic:
            continue
        for d in ("float32", "half"):
            e = r.permutation(np.array([1.0, -2.0, 0.5, 3.0, inf, -0.0, 2.0]))
            rows = np.stack([e, np.where(np.isinf(e), -inf, e), np.where(np.isinf(e), 4, e)])
            k.one(op, "reduce", [I(d, rows), I("int32", 1)], {}, "%s infinities" % d, check=False)
            m = data(r, d, [9, 19], dom)
            for q in range(9):
                m[q, 2 * q] = nan
            for ax in (0, 1):
                y = k.run(op, [I(d, m), I("int32", ax)])[0]
                good = y and np.isnan(np.asarray(y[0], float)[np.isnan(np.asarray(m, float)).any(ax)]).all()
                if good:
                    k.one(op, "reduce", [I(d, m), I("int32", ax)], {}, "%s NaN, axis %d" % (d, ax), check=False)
                else:
                    k.dropped.append("%s %s NaN axis %d is not NaN everywhere" % (op, d, ax))
    for op in ("ArgMax", "ArgMin"):
        for d in ALL + ["bool"]:
            for j in range(4 if d == "float32" else 1):
                r = k.rng(op, d, j)
                s = shape(r, int(r.integers(1, 5)))
                a = r.permutation(int(np.prod(s))).reshape(s)
                a = np.asarray(a if d in UINTS else a - 20).astype("bool" if d == "bool" else "float64")
                a = a if d not in CPLX else a + 1j * a
                ax = int(r.integers(-len(s), len(s)))
                o = [tf.int64, tf.int32, tf.int16, tf.uint16][int(r.integers(0, 4 if op == "ArgMax" else 2))]
                t = ["int32", "int64"][int(r.integers(0, 2))]  # int16 reads stray memory in TensorFlow
                ins = [I(d, a), I(t, ax, const=bool(r.random() < .5))]
                if d == "bool":
                    continue
                k.one(op, "reduce", ins, {"output_type": o}, "%s %s axis %d %s to %s" % (d, s, ax, t, o.name))
        r = k.rng(op, "more")
        a = r.integers(0, 3, [4, 6])
        first = (np.argmax if op == "ArgMax" else np.argmin)(a, 1)
        for d in ("int32", "float32"):
            y = k.run(op, [I(d, a), I("int32", 1)])[0]
            if y and (y[0] == first).all():
                k.one(op, "reduce", [I(d, a), I("int32", 1)], {}, "%s ties" % d)
        k.one(op, "reduce", [I("float32", data(r, "float32", [0, 3])), I("int32", 1)], {}, "empty result")
        k.one(op, "reduce", [I("float32", data(r, "float32", [3, 0])), I("int32", 1)], {}, "empty axis", err=True)
        k.one(op, "reduce", [I("float32", data(r, "float32", [3, 2])), I("int32", 2)], {}, "bad axis", err=True)
        k.one(op, "reduce", [I("float32", data(r, "float32", [3, 2])), I("int32", [0, 1])], {}, "axis is a vector",
              err=True)


def scan(k):
    for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
        for d in ALL:
            for j in range(5 if d == "float32" else 2 if d in ("float64", "int32") else 1):
                r = k.rng(op, d, j)
                s = shape(r, int(r.integers(1, 5)), 1, 6)
                ax = int(r.integers(-len(s), len(s)))
                at = {"exclusive": bool(r.random() < .5), "reverse": bool(r.random() < .5)}
                t = "int64" if r.random() < .3 else "int32"
                k.one(op, "scan", [I(d, data(r, d, s, "small" if op == "Cumprod" else "any")),
                                   I(t, ax, const=bool(r.random() < .5))], at,
                      "%s %s axis %d %s" % (d, s, ax, "+".join(x for x in at if at[x])),
                      scaled=op == "Cumsum" and "inputs")
        r = k.rng(op, "more")
        for s, ax in (([0, 3], 0), ([3, 0], -1)):
            k.one(op, "scan", [I("float32", np.zeros(s)), I("int32", ax)], {"exclusive": bool(r.random() < .5)},
                  "empty %s axis %d" % (s, ax))
        e = np.array([1.0, inf, 2.0, -1.0, nan, 3.0])
        k.one(op, "scan", [I("float32", np.stack([e, r.permutation(e), e[:1] * np.arange(6)])), I("int32", 1)],
              {"reverse": bool(r.random() < .5)}, "NaN and infinity", check=False)
        for ax in (2, -3, [0, 1]):
            k.one(op, "scan", [I("float32", data(r, "float32", [2, 3])), I("int32", ax)], {}, "bad axis %s" % ax, err=True)
        k.one(op, "scan", [I("float32", data(r, "float32", [])), I("int32", 0)], {}, "scalar", err=None)



def ids(r, n, top, gaps=True):
    """Sorted segment ids, some of 0..top-1 missing."""
    return np.sort(r.integers(0, top, n)) if gaps else np.arange(n) * top // n


def segment(k):
    for what in ("Sum", "Mean", "Prod", "Max", "Min"):
        for un in (False, True):
            op = ("UnsortedSegment" if un else "Segment") + what
            if op == "UnsortedSegmentMean":
                continue
            dom = "small" if what == "Prod" else "any"
            for d in ALL:
                for j in range(4 if d == "float32" else 1):
                    r = k.rng(op, d, j)
                    s = shape(r, int(r.integers(1, 4)), 2, 6)
                    t = "int64" if r.random() < .4 else "int32"
                    top = int(r.integers(1, 7))
                    if un:
                        sid = r.integers(-1, top, s[:int(r.integers(1, len(s) + 1))])
                        tail = [I("int64" if r.random() < .3 else "int32", top, const=bool(r.random() < .4))]
                    else:
                        sid, tail = ids(r, s[0], top), []
                    k.one(op, "segment", [I(d, data(r, d, s, dom)), I(t, sid)] + tail, {},
                          "%s %s ids %s" % (d, s, sid.ravel().tolist()[:8]), scaled=what in ("Sum", "Mean") and "inputs",
                          check=what not in ("Max", "Min"))
            r = k.rng(op, "more")
            x = I("float32", data(r, "float32", [4, 3], dom))
            for sid, top, why in [([0, 0, 2, 1], None, "not sorted"), ([0, 1, 1], 3, "too few ids"),
                                  ([-1, 0, 1, 1], None, "negative"), ([0, 3, 1, 1], 2, "beyond the last segment"),
                                  ([[0, 1], [1, 2]], 4, "ids of rank 2"), ([0, 1, 1, 0], -1, "negative count")]:
                if (top is None) == un:
                    continue
                k.one(op, "segment", [x, I("int32", sid)] + ([I("int32", top)] if un else []), {}, why, err=True)
            k.one(op, "segment", [I("float32", np.zeros([0, 3])), I("int32", np.zeros([0]))] +
                  ([I("int32", 3)] if un else []), {}, "empty", check=False)
            k.one(op, "segment", [x, I("int32", [1, 1, 4, 4])] + ([I("int32", 7)] if un else []), {}, "gaps", check=False)
    for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
        for d in FLOATS + ["int32", "int64", "uint8"]:
            for j in range(5 if d == "float32" else 1):
                r = k.rng(op, d, j)
                s = shape(r, int(r.integers(1, 4)), 2, 7)
                n = int(r.integers(1, 10))
                t, u = ["int64" if r.random() < .4 else "int32" for _ in range(2)]
                k.one(op, "segment", [I(d, data(r, d, s)), I(t, r.integers(0, s[0], n)), I(u, ids(r, n, 6))], {},
                      "%s %s %d indices" % (d, s, n), scaled="inputs")
        x = I("float32", data(k.rng(op, "more"), "float32", [4, 3]))
        for ind, sid, why in [([0, 4], [0, 1], "index out of range"), ([0, -1], [0, 1], "negative index"),
                              ([0, 1], [1, 0], "not sorted"), ([0, 1, 2], [0, 1], "lengths differ")]:
            k.one(op, "segment", [x, I("int32", ind), I("int32", sid)], {}, why, err=True)
        k.one(op, "segment", [x, I("int32", []), I("int32", [])], {}, "no indices")
        k.one(op, "segment", [x, I("int32", [3, 0, 3]), I("int32", [1, 1, 4])], {}, "gaps")
    for d in ("int32", "int64", "float32", "float64"):
        for j in range(2):
            r = k.rng("Bincount", d, j)
            n, size = int(r.integers(3, 20)), int(r.integers(3, 12))
            a = r.integers(0, 12, [n] if j else shape(r, 2))
            k.one("Bincount", "segment", [I("int32", a), I("int32", size), I(d, data(r, d, a.shape) if j else [])],
                  {}, "%s size %d %s" % (d, size, "weights" if j else "no weights"))
    w = I("float32", [])
    k.one("Bincount", "segment", [I("int32", [1, -1, 2]), I("int32", 3), w], {}, "negative value", err=True)
    k.one("Bincount", "segment", [I("int32", [1, 1, 2]), I("int32", -3), w], {}, "negative size", err=True)
    k.one("Bincount", "segment", [I("int32", [1, 1, 2]), I("int32", 3), I("float32", [1., 2.])], {},
          "weights of another shape", err=True)
    k.one("Bincount", "segment", [I("int32", []), I("int32", 4), w], {}, "empty")
    op = "HistogramFixedWidth"
    for d in ("float32", "float64", "int32", "int64"):
        for j in range(2):
            r = k.rng(op, d, j)
            o = tf.int64 if r.random() < .5 else tf.int32
            lo, hi = (-2, 3) if r.random() < .5 else (0, 8)
            k.one(op, "segment", [I(d, data(r, d, shape(r), "wide")), I(d, [lo, hi]), I("int32", int(r.integers(1, 9)))],
                  {"dtype": o}, "%s [%d, %d] to %s" % (d, lo, hi, o.name))
    v = I("float32", [0., 1.5, 3.])
    k.one(op, "segment", [v, I("float32", [3., 1.]), I("int32", 4)], {}, "range reversed", err=True)
    k.one(op, "segment", [v, I("float32", [0., 1.]), I("int32", 0)], {}, "no bins", err=True)
    k.one(op, "segment", [v, I("float32", [0., 1., 2.]), I("int32", 2)], {}, "range of three", err=True)
    k.one(op, "segment", [I("float32", np.zeros([0])), I("float32", [0., 1.]), I("int32", 3)], {}, "empty")



def flip(s, yes):
    return list(s[:-2]) + [s[-1], s[-2]] if yes else list(s)


def matmul(k):
    for d in ALL:
        for j in range(5 if d == "float32" else 2 if d in ("float64", "complex64", "bfloat16") else 1):
            r = k.rng("MatMul", d, j)
            m, n, p = [int(x) for x in r.integers(1, 14, 3)]
            ta, tb = bool(r.random() < .5), bool(r.random() < .5)
            k.one("MatMul", "matmul", [I(d, data(r, d, flip([m, n], ta))), I(d, data(r, d, flip([n, p], tb)))],
                  {"transpose_a": ta, "transpose_b": tb}, "%s %dx%dx%d ta=%s tb=%s" % (d, m, n, p, ta, tb),
                  scaled=True, static=r.random() < .3)
    r = k.rng("MatMul", "more")
    m, n = [int(x) for x in r.integers(2, 6, 2)]
    for a, b in (([m, 0], [0, n]), ([0, n], [n, m]), ([m, n], [n, 0]), ([1, n], [n, m]), ([m, n], [n, 1])):
        k.one("MatMul", "matmul", [I("float32", data(r, "float32", a)), I("float32", data(r, "float32", b))], {},
              "%s by %s" % (a, b), scaled=True)
    for a, b, at in (([2, 3], [2, 3], {}), ([2, 3], [3, 4], {"transpose_a": True}), ([3], [3, 2], {}),
                     ([2, 2, 3], [3, 2], {})):
        k.one("MatMul", "matmul", [I("float32", data(r, "float32", a)), I("float32", data(r, "float32", b))], at,
              "%s by %s %s" % (a, b, at), err=True)
    a = data(r, "float32", [3, 4])
    a[1, 2], a[2, 0] = nan, inf
    k.one("MatMul", "matmul", [I("float32", a), I("float32", np.abs(data(r, "float32", [4, 2])) + 1)], {},
          "NaN and infinity", check=False)
    for op in ("BatchMatMul", "BatchMatMulV2"):
        for d in ALL:
            for j in range(5 if d == "float32" else 2 if d in ("complex64", "float64") else 1):
                r = k.rng(op, d, j)
                m, n, p = [int(x) for x in r.integers(1, 6, 3)]
                b = [int(x) for x in r.integers(1, 4, int(r.integers(0 if d == "float32" else 1, 4)))]
                ba, bb = list(b), list(b)
                if op != "BatchMatMul" and b:
                    kind = int(r.integers(0, 4))
                    if kind == 0:
                        ba[0] = 1
                    elif kind == 1:
                        bb = bb[1:]
                    elif kind == 2:
                        ba, bb[-1] = ba[len(ba) // 2:], 1
                x, y = bool(r.random() < .5), bool(r.random() < .5)
                sa, sb = flip(ba + [m, n], x), flip(bb + [n, p], y)
                k.one(op, "matmul", [I(d, data(r, d, sa)), I(d, data(r, d, sb))], {"adj_x": x, "adj_y": y},
                      "%s %s by %s adj_x=%s adj_y=%s" % (d, sa, sb, x, y), scaled=True)
        r = k.rng(op, "more")
        for sa, sb, e in (([2, 3, 0], [2, 0, 2], False), ([0, 3, 2], [0, 2, 2], False), ([2, 2, 3], [2, 2, 3], True),
                          ([2, 2, 3], [3, 3, 2], True), ([3], [3, 2], True)):
            k.one(op, "matmul", [I("float32", data(r, "float32", sa)), I("float32", data(r, "float32", sb))], {},
                  "%s by %s" % (sa, sb), err=e)
    types = [("float32",) * 3, ("float64",) * 3, ("half",) * 3, ("bfloat16",) * 3, ("int32",) * 3, ("complex64",) * 3,
             ("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("int8", "uint8", "int32"),
             ("uint8", "uint8", "int32"), ("bfloat16", "bfloat16", "float32"), ("int64",) * 3,
             ("half", "half", "float32"), ("bfloat16", "int8", "bfloat16")]
    for ts in types:
        op = "BatchMatMulV3"
        r = k.rng(op, ts)
        m, n, p = [int(x) for x in r.integers(1, 6, 3)]
        b = [int(x) for x in r.integers(1, 4, 2)]
        x, y = bool(r.random() < .5), bool(r.random() < .5)
        sa, sb = flip(b[int(r.integers(0, 2)):] + [m, n], x), flip(b + [n, p], y)
        k.one(op, "matmul", [I(ts[0], data(r, ts[0], sa)), I(ts[1], data(r, ts[1], sb))],
              {"adj_x": x, "adj_y": y, "Tout": tf.as_dtype(ts[2])},
              "%s to %s %s by %s adj_x=%s adj_y=%s" % (ts[:2], ts[2], sa, sb, x, y), scaled=True)
    k.one("BatchMatMulV3", "matmul", [I("float32", np.ones([2, 2, 3])), I("float32", np.ones([2, 2, 3]))],
          {"Tout": tf.float32}, "inner mismatch", err=True)
    einsum(k)


EINSUM = """ij,jk->ik|ij,kj->ki|bij,bjk->bik|abc,cd->abd|bhqd,bhkd->bhqk|i,j->ij|ij->ji|ij->|ii->i|ii->
ijk->kj|ij,ij->i|...ij,...jk->...ik|...i->...|a...b->b...a|bij,bj->bi|abcd,cb->ad|i,i->|iij,jk->ik|b...d,d->b...
ij,ij->ij|...,...->..."""


def einsum(k):
    eqs = EINSUM.replace("|", "\n").split("\n")
    every = ["float32", "float64", "complex64", "half", "bfloat16", "int32", "int64", "complex128"]
    for n, eq in enumerate(eqs):
        for d in ["float32"] + ([every[1 + n % 7]] if n % 2 else []):
            r = k.rng("Einsum", eq, d)
            size = {c: int(r.integers(1, 5)) for c in "abcdhijkq"}
            ell = [int(x) for x in r.integers(1, 4, int(r.integers(0, 3)))]
            ins = []
            for t, part in enumerate(eq.split("->")[0].split(",")):
                e = list(ell)
                if t and len(e) > 1 and r.random() < .6:
                    e[0] = 1
                left, _, right = part.partition("...")
                s = [size[c] for c in left] + (e if "..." in part else []) + [size[c] for c in right]
                ins.append(I(d, data(r, d, s)))
            k.one("Einsum", "matmul", [ins], {"equation": eq},
                  "%s %s %s" % (eq, d, [list(i.values[0].shape) for i in ins]), scaled=True)
    for eq, sh in (("ij,jk->ik", ([2, 3], [4, 2])), ("ij,jk->ik", ([2, 3, 1], [3, 2])), ("ii->i", ([2, 3],)),
                   ("ij->ik", ([2, 3],)), ("ij,jk", ([2, 3], [3, 2]))):
        k.one("Einsum", "matmul", [[I("float32", np.ones(s)) for s in sh]], {"equation": eq},
              "%s with %s" % (eq, list(sh)), err=True)
    k.one("Einsum", "matmul", [[I("float32", np.ones(s)) for s in ([0, 3], [3, 2])]], {"equation": "ij,jk->ik"}, "empty")
    k.one("Einsum", "matmul", [[I("float32", np.ones(s)) for s in ([2, 0], [0, 2])]], {"equation": "ij,jk->ik"},
          "empty inner")



# --------------------------------------------------------------------------
# Linear algebra: matrices of small condition number.

LIN = ["float32", "float64", "complex64", "complex128", "half", "bfloat16"]


def square(r, d, b, n, kind="general"):
    wide = "complex128" if d in CPLX else "float64"
    a = data(r, wide, list(b) + [n, n], "small")
    if kind == "spd":
        a = a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)
    elif kind == "hermitian":
        a = a + np.conj(np.swapaxes(a, -1, -2)) + np.diag(3.0 * np.arange(n))
    else:
        a = a + (2.0 + n) * np.eye(n)[r.permutation(n)] * r.choice([-1, 1])
    return F.to_feed(a, d)


def batch(r, most=2):
    return [int(x) for x in r.integers(1, 4, int(r.integers(0, most + 1)))]


def linalg(k):
    for op, kind, at in (("Cholesky", "spd", None), ("MatrixInverse", "general", "adjoint"),
                         ("MatrixDeterminant", "general", None), ("LogMatrixDeterminant", "general", None)):
        for d in LIN:
            for j in range(4 if d == "float32" else 2 if d in ("float64", "complex64") else 1):
                r = k.rng(op, d, j)
                b, n = batch(r), int(r.integers(1, 7))
                kw = {at: bool(r.random() < .5)} if at else {}
                k.one(op, "linalg", [I(d, square(r, d, b, n, kind))], kw, "%s %s %dx%d %s" % (d, b, n, n, kw or ""),
                      scaled="Determinant" not in op, static=r.random() < .3)
        for s in ([0, 0], [0, 3, 3], [2, 0, 0]):
            k.one(op, "linalg", [I("float64", np.zeros(s))], {}, "empty %s" % s)
        k.one(op, "linalg", [I("float32", np.ones([2, 3]))], {}, "not square", err=True)
        k.one(op, "linalg", [I("float32", np.ones([3]))], {}, "a vector", err=True)
        z = np.array([[1.0, 2.0], [2.0, 4.0]])
        if op != "Cholesky":
            k.one(op, "linalg", [I("float64", z)], {}, "singular", err=True if op == "MatrixInverse" else None)
    k.one("MatrixInverse", "linalg", [I("float32", np.zeros([2, 3, 3]))], {}, "zeros", err=True)
    for d in LIN:
        for j in range(4 if d == "float32" else 2 if d in ("float64", "complex64") else 1):
            r = k.rng("solve", d, j)
            b, n, m = batch(r), int(r.integers(1, 7)), int(r.integers(1, 5))
            rhs = data(r, d, b + [n, m])
            for op in ("MatrixSolve", "MatrixTriangularSolve"):
                kw = {"adjoint": bool(r.random() < .5)}
                bb = b
                if op == "MatrixTriangularSolve":
                    kw["lower"] = bool(r.random() < .5)
                    bb = [1] * len(b) if r.random() < .4 else b
                k.one(op, "linalg", [I(d, square(r, d, bb, n) if op == "MatrixSolve" else square(r, d, bb, n, "spd")),
                                     I(d, rhs)], kw, "%s %s %dx%d, %d columns %s" % (d, b, n, n, m, kw), scaled=True)
            rows = n + int(r.integers(-2, 4)) if n > 3 else n + int(r.integers(0, 4))
            a = data(r, "complex128" if d in CPLX else "float64", b + [rows, n], "small")
            a = a + 4 * np.eye(rows, n)
            fast = bool(r.random() < .6)
            l2 = 0.0 if r.random() < .5 else 0.25
            k.one("MatrixSolveLs", "linalg", [I(d, a), I(d, data(r, d, b + [rows, m])), I("float64", l2)], {"fast": fast},
                  "%s %s %dx%d l2 %g fast=%s" % (d, b, rows, n, l2, fast), scaled=True)
    for op in ("MatrixSolve", "MatrixTriangularSolve", "MatrixSolveLs"):
        tail = [I("float64", 0.0)] if op == "MatrixSolveLs" else []
        eye = np.eye(3)
        for a, b, why in ((np.ones([2, 3]), np.ones([2, 2]), "not square"), (eye, np.ones([4, 2]), "rows differ"),
                          (np.array([[1., 2], [2, 4]]), np.ones([2, 1]), "singular"),
                          (np.array([[0., 0], [1, 0]]), np.ones([2, 1]), "zero diagonal"),
                          (eye, np.ones([3]), "right side is a vector")):
            if op == "MatrixSolveLs" and why in ("not square", "singular", "zero diagonal"):
                continue
            k.one(op, "linalg", [I("float32", a), I("float32", b)] + tail, {}, why, err=True)
        k.one(op, "linalg", [I("float32", np.zeros([0, 0])), I("float32", np.zeros([0, 2]))] + tail, {}, "empty", err=None)
        k.one(op, "linalg", [I("float32", np.zeros([3, 3]) + eye), I("float32", np.zeros([3, 0]))] + tail, {}, "no columns", err=None)



def rebuilt(k, op, d, a, at, note):
    try:
        rebuilt_graph(k, op, d, a, at, note)
    except F.Refused as e:
        k.refused.setdefault(op, []).append((note, str(e)[:160]))
    except Exception as e:
        k.refused.setdefault(op, []).append((note, repr(e)[:160]))


def rebuilt_graph(k, op, d, a, at, note):
    """Factors are not unique: the case multiplies them back together."""
    if not k.want(op):
        return
    g = tf.Graph()
    R = tf.raw_ops
    with g.as_default():
        x = tf.compat.v1.placeholder(d, name="x0")

        def mul(p, q, adj_x=False, adj_y=False, name=None):
            return R.BatchMatMulV2(x=p, y=q, adj_x=adj_x, adj_y=adj_y, name=name)
        if op == "Qr":
            u, v = R.Qr(input=x, name="y", **at)
            mul(u, v, name="back")
        elif op == "Svd":
            sv, u, v = R.Svd(input=x, name="y", **at)
            c = R.Cast(x=R.ExpandDims(input=sv, axis=tf.constant(-2)), DstT=tf.as_dtype(d))
            mul(R.Mul(x=u, y=c), v, adj_y=True, name="back")
        else:
            e, u = R.SelfAdjointEigV2(input=x, compute_v=True, name="y")
            c = R.ExpandDims(input=e, axis=tf.constant(-2))
            mul(R.Mul(x=u, y=c), u, adj_y=True, name="back")
        mul(u, u, adj_x=True, name="unit")
    first = g.get_operation_by_name("y").outputs
    same = [first[0].name] if op != "Qr" else []
    other = [t.name for t in first if t.name not in same]
    gd, feed = g.as_graph_def(), {"x0:0": a}
    steps = [{"feeds": feed, "fetches": ["back:0", "unit:0"] + same},
             {"feeds": feed, "fetches": other, "compare": "shape"}]
    rtol, atol = k.scale(gd, steps[:1], None, None)
    k.w.add_graph(op, "linalg", gd, steps, note=note, rtol=rtol, atol=4 * atol, expect_error=False)


def factor(k):
    for d in LIN:
        many = d in ("float32", "float64")
        for j in range(2 if many else 1):
            r = k.rng("eig", d, j)
            b, n = batch(r), int(r.integers(2, 7))
            a = square(r, d, b, n, "hermitian")
            for v in (False, True):
                k.one("SelfAdjointEigV2", "linalg", [I(d, a)], {"compute_v": v}, outs=[0], scaled=True,
                      note="%s %s %dx%d eigenvalues, compute_v=%s" % (d, b, n, n, v))
            rebuilt(k, "SelfAdjointEigV2", d, a, {}, "%s %s %dx%d rebuilt" % (d, b, n, n))
            m, n = int(r.integers(1, 7)), int(r.integers(1, 7))
            a = data(r, d, b + [m, n])
            full = bool(r.random() < .5)
            k.one("Svd", "linalg", [I(d, a)], {"compute_uv": False, "full_matrices": full}, outs=[0], scaled=True,
                  note="%s %s %dx%d singular values" % (d, b, m, n))
            k.one("Svd", "linalg", [I(d, a)], {"full_matrices": full}, compare="shape",
                  note="%s %s %dx%d full=%s shapes" % (d, b, m, n, full))
            rebuilt(k, "Svd", d, a, {"full_matrices": False}, "%s %s %dx%d rebuilt" % (d, b, m, n))
            for full in (False, True):
                rebuilt(k, "Qr", d, a, {"full_matrices": full}, "%s %s %dx%d full=%s rebuilt" % (d, b, m, n, full))
    for op in ("SelfAdjointEigV2", "Svd", "Qr"):
        for s in ([0, 0], [2, 0, 0]) + (() if op == "SelfAdjointEigV2" else ([0, 3], [3, 0])):
            k.one(op, "linalg", [I("float32", np.zeros(s))], {}, "empty %s" % s, compare="shape")
        k.one(op, "linalg", [I("float32", np.ones([3]))], {}, "a vector", err=True)
    k.one("SelfAdjointEigV2", "linalg", [I("float32", np.ones([2, 3]))], {}, "not square", err=True)
    r = k.rng("cholesky", "upper")
    a = square(r, "float64", [2], 4, "spd")
    k.one("Cholesky", "linalg", [I("float64", a + np.triu(data(r, "float64", [4, 4]), 1))], {}, "the upper half is not read")
    for a, why in (([[-1.0, 0], [0, 3]], "negative"), ([[4.0, 2], [2, -5]], "indefinite")):
        k.one("Cholesky", "linalg", [I("float64", a)], {}, why + ": not an error", compare="shape")
    for d in ALL:
        r = k.rng("Cross", d)
        s = batch(r) + [3]
        k.one("Cross", "linalg", [I(d, data(r, d, s)), I(d, data(r, d, s))], {}, "%s %s" % (d, s))
    for a, b in (([2, 2], [2, 2]), ([2, 3], [1, 3]), ([], [])):
        k.one("Cross", "linalg", [I("float32", np.ones(a)), I("float32", np.ones(b))], {}, "%s by %s" % (a, b), err=True)
    k.one("Cross", "linalg", [I("float32", np.ones([0, 3])), I("float32", np.ones([0, 3]))], {}, "empty")



LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 30, 32]


def fft(k):
    for op, n in (("FFT", 1), ("IFFT", 1), ("FFT2D", 2), ("IFFT2D", 2), ("FFT3D", 3)):
        for j in range(8):
            d = CPLX[j % 2] if j < 4 else CPLX[0]
            r = k.rng(op, j)
            top = {1: 16, 2: 12, 3: 6}[n]
            s = batch(r, 2 if n == 1 else 1) + [LENGTHS[int(x)] for x in r.integers(0, top, n)]
            k.one(op, "fft", [I(d, data(r, d, s))], {}, "%s %s" % (d, s), scaled=True, static=r.random() < .3)
        k.one(op, "fft", [I("complex64", np.zeros([0] + [4] * n))], {}, "empty batch")
        k.one(op, "fft", [I("complex64", np.ones([3] * (n - 1)))], {}, "rank too low", err=True)
    real = {"complex64": "float32", "complex128": "float64"}
    for op, n in (("RFFT", 1), ("RFFT2D", 2), ("IRFFT", 1)):
        inv = op[0] == "I"
        for j in range(10):
            c = CPLX[j % 3 == 2]
            d = c if inv else real[c]
            r = k.rng(op, j)
            ln = [LENGTHS[int(x)] for x in r.integers(0, 16 if n == 1 else 11, n)]
            s = batch(r, 1) + ln
            how = ["equal", "shorter", "equal", "longer", "equal", "shorter"][j % 6]
            if inv:
                s[-1] = ln[-1] // 2 + 1
            if how == "shorter":               # the input is cut
                s[-1] += int(r.integers(1, 4))
            elif how == "longer":              # refused: the kernel does not fill with zeros
                ln[-1] += 2 * int(r.integers(1, 4))
            at = {"Treal": tf.as_dtype(real[c])} if inv else {"Tcomplex": tf.as_dtype(c)}
            k.one(op, "fft", [I(d, data(r, d, s)), I("int32", ln, const=bool(r.random() < .4))], at,
                  "%s %s fft_length %s" % (d, s, ln), scaled=True, err=how == "longer")
        d = "complex64" if inv else "float32"
        for s, ln, why in (([4] * (n - 1), [4] * n, "rank too low"), ([4] * n, [4] * (n + 1), "too many lengths"),
                           ([4] * n, [-2] * n, "negative length"), ([4] * n, 4, "length is a scalar")):
            k.one(op, "fft", [I(d, np.ones(s)), I("int32", ln)], {}, why, err=True)
        k.one(op, "fft", [I(d, np.zeros([0] + [5] * n)), I("int32", [8 if inv else 5] * n)], {}, "empty batch")


PARTS = [reduce, scan, segment, matmul, linalg, factor, fft]
