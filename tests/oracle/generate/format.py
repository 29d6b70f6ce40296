# SPDX-License-Identifier: Apache-2.0
"""Case files: how they are written, read and compared.

A case is a GraphDef (`<Op>-<nnn>.pb`), its arrays (`<Op>-<nnn>.npz`) and one
entry of index.json.  README.md has the full description.

As a library:

    w = Writer(out_dir, part="ops", only=None)     # part names index-<part>.json
    w.add_graph(op, family, graph_def, steps, note="...")
    w.close()

`steps` is a list of dicts, run in order in ONE session:
    {"feeds": {tensor_name: array}, "fetches": [tensor_name...],
     "targets": [node_name...], "compare": "values"|"shape"|"range"}
add_graph runs them in real TensorFlow, records results or the canonical error
code, and writes the files.

As a program:
    python format.py index DIR     merges DIR/index-*.json to DIR/index.json
    python format.py verify DIR    re-runs every case and compares
    python format.py table DIR     counts per family and op
"""
import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import glob
import json
import sys

import numpy as np
import tensorflow as tf

try:
    import ml_dtypes
except ImportError:  # pragma: no cover
    ml_dtypes = None

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.logging.set_verbosity(tf1.logging.ERROR)
try:
    tf.config.set_visible_devices([], "GPU")
except Exception:
    pass

CODES = {
    1: "CANCELLED", 2: "UNKNOWN", 3: "INVALID_ARGUMENT", 4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND", 6: "ALREADY_EXISTS", 7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED", 9: "FAILED_PRECONDITION", 10: "ABORTED",
    11: "OUT_OF_RANGE", 12: "UNIMPLEMENTED", 13: "INTERNAL", 14: "UNAVAILABLE",
    15: "DATA_LOSS", 16: "UNAUTHENTICATED",
}

# dtype name -> (stored numpy type); the TensorFlow dtype has the same name.
_QUANT = {"qint8": np.int8, "quint8": np.uint8, "qint16": np.int16,
          "quint16": np.uint16, "qint32": np.int32}
_BITS = {"bfloat16": np.uint16, "float8_e5m2": np.uint8, "float8_e4m3fn": np.uint8}
_SMALL = {"int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8}
# (rtol, atol) by the lowest-precision floating type among the fetches.
TOL = {"float64": (1e-9, 1e-11), "complex128": (1e-9, 1e-11),
       "float32": (1e-5, 1e-6), "complex64": (1e-5, 1e-6),
       "half": (2e-3, 1e-3), "float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2),
       "float8_e5m2": (0.26, 1e-2), "float8_e4m3fn": (0.13, 1e-2)}


def dtype_name(t):
    """float32, float64, half, bfloat16, int8, ..., string, qint8, resource"""
    n = tf.as_dtype(t).base_dtype.name
    return "half" if n == "float16" else n


def encode(store, key, value, dtype):
    """Puts one array in `store` under the stored encoding of its dtype."""
    d = dtype_name(dtype)
    if d == "string":
        a = np.asarray(value, dtype=object)
        flat = [x if isinstance(x, bytes) else str(x).encode("utf-8")
                for x in a.ravel().tolist()]
        store[key] = np.frombuffer(b"".join(flat), dtype=np.uint8).copy()
        store[key + "#lengths"] = np.array([len(x) for x in flat],
                                           dtype=np.int64).reshape(a.shape)
        return
    a = np.asarray(value)
    shape = a.shape
    a = np.ascontiguousarray(a).reshape(shape)
    if d in _BITS:
        nt = tf.as_dtype(d).as_numpy_dtype
        a = a.astype(nt) if a.dtype != nt else a
        a = a.view(_BITS[d])
    elif d in _QUANT:
        a = a.view(_QUANT[d]) if a.dtype.names else a.astype(_QUANT[d])
    elif d in _SMALL:
        a = a.astype(_SMALL[d])
    else:
        a = a.astype(tf.as_dtype(d).as_numpy_dtype, copy=False)
    store[key] = a.reshape(shape)


def decode(store, key, dtype):
    """The inverse of encode: an array that session.run accepts."""
    d = dtype_name(dtype)
    if d == "string":
        raw = store[key].tobytes()
        lengths = store[key + "#lengths"]
        out, p = np.empty(lengths.shape, dtype=object), 0
        flat = out.reshape(-1) if lengths.shape else None
        for i, n in enumerate(lengths.ravel().tolist()):
            if flat is None:
                out[()] = raw[p:p + n]
            else:
                flat[i] = raw[p:p + n]
            p += n
        return out
    a = store[key]
    nt = tf.as_dtype(d).as_numpy_dtype
    if d in _BITS:
        return a.view(nt)
    if d in _QUANT:
        return np.ascontiguousarray(a).reshape(a.shape).view(nt)
    return a.astype(nt, copy=False)


def plain(store, key, dtype):
    """Values for comparing: numbers as float64/complex128/int, strings as objects."""
    d = dtype_name(dtype)
    if d == "string":
        return decode(store, key, d)
    if d in _QUANT:
        return store[key]
    if d in _BITS:
        return decode(store, key, d).astype(np.float64)
    return store[key]


def to_feed(value, dtype):
    """Any array in the form session.run takes for this dtype."""
    s = {}
    encode(s, "x", value, dtype)
    return decode(s, "x", dtype)


def config():
    c = tf1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=False,
                        intra_op_parallelism_threads=1,
                        inter_op_parallelism_threads=2)
    c.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    c.graph_options.optimizer_options.global_jit_level = tf1.OptimizerOptions.OFF
    c.graph_options.rewrite_options.disable_meta_optimizer = True
    return c


def graph_ops(graph_def):
    ops = {n.op for n in graph_def.node}
    for f in graph_def.library.function:
        ops |= {n.op for n in f.node_def}
    return sorted(ops)


def run_steps(graph_def, steps, session_config=None):
    """Runs the steps in one fresh session.

    Returns (results, dtypes): one result per step, {"error": None or code,
    "message": text, "values": {tensor: array}}.  Raises when the graph itself
    cannot be imported.
    """
    g = tf.Graph()
    results, dtypes = [], {}
    with g.as_default():
        tf.import_graph_def(graph_def, name="")
        with tf1.Session(graph=g, config=session_config or config()) as sess:
            for st in steps:
                feeds = {}
                for name, v in st.get("feeds", {}).items():
                    t = g.get_tensor_by_name(name)
                    dtypes[name] = dtype_name(t.dtype)
                    feeds[t] = to_feed(v, t.dtype)
                fetches = [g.get_tensor_by_name(n) for n in st.get("fetches", [])]
                for t in fetches:
                    dtypes[t.name] = dtype_name(t.dtype)
                targets = [g.get_operation_by_name(n) for n in st.get("targets", [])]
                try:
                    vals = sess.run((fetches, targets), feed_dict=feeds)[0]
                    results.append({"error": None, "message": "",
                                    "values": dict(zip([t.name for t in fetches], vals))})
                except tf.errors.OpError as e:
                    results.append({"error": CODES.get(e.error_code, "UNKNOWN"),
                                    "message": str(e.message)[:300], "values": {}})
    return results, dtypes


def tolerance(dtypes, fetches):
    r, a = 0.0, 0.0
    for f in fetches:
        t = TOL.get(dtypes.get(f), (0.0, 0.0))
        r, a = max(r, t[0]), max(a, t[1])
    return r, a


class Refused(Exception):
    """Real TensorFlow does not accept this graph (not a case)."""


class Writer:
    def __init__(self, out, part, only=None, quiet=False):
        self.out, self.part, self.quiet = out, part, quiet
        self.entries, self.counts, self.skipped = [], {}, {}
        os.makedirs(out, exist_ok=True)
        path = self._path()
        only = set(only or [])
        old = json.load(open(path)) if os.path.exists(path) else []
        for e in old:                      # this part's earlier files go
            if only and e["op"] not in only:
                self.entries.append(e)
                k = (e["family"], e["op"])
                continue
            for ext in (".pb", ".npz"):
                try:
                    os.remove(os.path.join(out, e["id"] + ext))
                except FileNotFoundError:
                    pass

    def _path(self):
        return os.path.join(self.out, "index-%s.json" % self.part)

    def add_graph(self, op, family, graph_def, steps, note="", rtol=None, atol=None,
                  int_atol=None, expect_error=None, session_config=None, extra=None):
        """Runs and writes one case; returns its id.

        expect_error: True keeps the case only if some step fails, False only if
        none does, None keeps either.  Raises Refused otherwise, and for graphs
        that cannot be imported.  An UNIMPLEMENTED or "no OpKernel" answer (an op
        without a CPU kernel for the type) is always Refused.
        """
        try:
            results, dtypes = run_steps(graph_def, steps, session_config)
        except (ValueError, TypeError, KeyError, tf.errors.OpError) as e:
            raise Refused(str(e)[:300])
        failed = [r for r in results if r["error"]]
        for r in failed:
            if "OpKernel" in r["message"] or "Could not find device" in r["message"]:
                raise Refused(r["message"])
            if expect_error is not True and r["error"] == "UNIMPLEMENTED":
                raise Refused(r["message"])
        if expect_error is True and not failed:
            raise Refused("expected an error, TensorFlow gave none")
        if expect_error is False and failed:
            raise Refused(failed[0]["error"] + ": " + failed[0]["message"])
        store, out_steps, fetched = {}, [], []
        for k, (st, r) in enumerate(zip(steps, results)):
            for name, v in st.get("feeds", {}).items():
                encode(store, "s%d/feed/%s" % (k, name), v, dtypes[name])
            for name, v in r["values"].items():
                encode(store, "s%d/fetch/%s" % (k, name), v, dtypes[name])
                fetched.append(name)
            o = {"feeds": list(st.get("feeds", {})),
                 "fetches": list(st.get("fetches", [])),
                 "targets": list(st.get("targets", [])),
                 "error": r["error"], "compare": st.get("compare", "values")}
            if "range" in st:
                o["range"] = [float(x) for x in st["range"]]
            out_steps.append(o)
        r0, a0 = tolerance(dtypes, fetched)
        n = self.counts.get((family, op), 0)
        self.counts[(family, op)] = n + 1
        cid = "%s/%s-%03d" % (family, op, n)
        base = os.path.join(self.out, cid)
        os.makedirs(os.path.dirname(base), exist_ok=True)
        with open(base + ".pb", "wb") as f:
            f.write(graph_def.SerializeToString(deterministic=True))
        np.savez(base + ".npz", **store)
        e = {"id": cid, "op": op, "family": family, "note": note,
             "ops": graph_ops(graph_def), "steps": out_steps, "dtypes": dtypes,
             "rtol": r0 if rtol is None else rtol,
             "atol": a0 if atol is None else atol}
        if int_atol:
            e["int_atol"] = int(int_atol)
        if extra:
            e.update(extra)
        self.entries.append(e)
        return cid

    def skip(self, op, why):
        self.skipped.setdefault(op, []).append(why)

    def close(self):
        self.entries.sort(key=lambda e: e["id"])
        with open(self._path(), "w") as f:
            f.write("[\n" + ",\n".join(json.dumps(e) for e in self.entries) + "\n]\n")
        merge(self.out)
        return len(self.entries)

    def table(self):
        c = {}
        for e in self.entries:
            c.setdefault(e["family"], {}).setdefault(e["op"], 0)
            c[e["family"]][e["op"]] += 1
        for fam in sorted(c):
            print("%s: %d ops, %d cases" % (fam, len(c[fam]), sum(c[fam].values())))
            row = ["%s %d" % kv for kv in sorted(c[fam].items())]
            for i in range(0, len(row), 6):
                print("   " + "  ".join(row[i:i + 6]))
        print("total %d cases" % len(self.entries))


def merge(out):
    entries = []
    for p in sorted(glob.glob(os.path.join(out, "index-*.json"))):
        entries += json.load(open(p))
    entries.sort(key=lambda e: e["id"])
    ids = [e["id"] for e in entries]
    dup = sorted({i for i in ids if ids.count(i) > 1}) if len(set(ids)) != len(ids) else []
    if dup:
        print("duplicate ids: " + " ".join(dup[:20]))
    tmp = os.path.join(out, "index.json.tmp")
    with open(tmp, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(e) for e in entries) + "\n]\n")
    os.replace(tmp, os.path.join(out, "index.json"))
    return len(entries)


def differ(want, got, dtype, rtol, atol, int_atol=0):
    """None when equal within tolerance, else a short reason.  NaN equals NaN,
    infinities must have the same sign, -0 equals 0."""
    if want.shape != got.shape:
        return "shape %s, wanted %s" % (got.shape, want.shape)
    d = dtype_name(dtype)
    if want.size == 0:
        return None
    if d == "string":
        same = [a == b for a, b in zip(want.ravel().tolist(), got.ravel().tolist())]
        return None if all(same) else "strings differ at %d" % same.index(False)
    if want.dtype.kind in "biu":
        if want.dtype.kind == "b" or not int_atol:
            bad = want != got
        else:
            bad = np.abs(want.astype(np.float64) - got.astype(np.float64)) > int_atol
    else:
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        w, g = want.astype(wide), got.astype(wide)

        def close(x, y):
            with np.errstate(all="ignore"):
                ok = np.abs(x - y) <= atol + rtol * np.abs(x)
            return ok | (x == y) | (np.isnan(x) & np.isnan(y))
        if wide is np.complex128:
            with np.errstate(all="ignore"):
                ok = np.abs(w - g) <= atol + rtol * np.abs(w)
            bad = ~(ok | (close(w.real, g.real) & close(w.imag, g.imag)))
        else:
            bad = ~close(w, g)
    if not np.any(bad):
        return None
    i = int(np.flatnonzero(np.asarray(bad).ravel())[0])
    return "%d of %d differ; at %d: %r, wanted %r" % (
        int(np.sum(bad)), want.size, i, got.ravel()[i], want.ravel()[i])


def load_case(out, entry):
    base = os.path.join(out, entry["id"])
    gd = tf1.GraphDef()
    with open(base + ".pb", "rb") as f:
        gd.ParseFromString(f.read())
    with np.load(base + ".npz") as z:
        store = {k: z[k] for k in z.files}
    return gd, store


def verify(out, only=None, verbose=False):
    entries = json.load(open(os.path.join(out, "index.json")))
    if only:
        entries = [e for e in entries if e["op"] in only or e["family"] in only]
    bad = 0
    for n, e in enumerate(entries):
        why = []
        try:
            gd, store = load_case(out, e)
            steps = []
            for k, st in enumerate(e["steps"]):
                s = dict(st)
                s["feeds"] = {f: decode(store, "s%d/feed/%s" % (k, f), e["dtypes"][f])
                              for f in st["feeds"]}
                steps.append(s)
            results, dtypes = run_steps(gd, steps)
            for k, (st, r) in enumerate(zip(e["steps"], results)):
                if r["error"] != st["error"]:
                    why.append("step %d error %s, wanted %s (%s)" % (
                        k, r["error"], st["error"], r["message"][:80]))
                    continue
                for name, v in r["values"].items():
                    got = {}
                    encode(got, "x", v, dtypes[name])
                    key = "s%d/fetch/%s" % (k, name)
                    w, g = plain(store, key, dtypes[name]), plain(got, "x", dtypes[name])
                    if st["compare"] == "shape":
                        x = None if w.shape == g.shape else "shape %s, wanted %s" % (g.shape, w.shape)
                    elif st["compare"] == "range":
                        lo, hi = st.get("range", (-np.inf, np.inf))
                        x = None
                        if w.shape != g.shape:
                            x = "shape %s, wanted %s" % (g.shape, w.shape)
                        elif g.size and (g.min() < lo or g.max() > hi):
                            x = "outside [%g, %g]" % (lo, hi)
                    else:
                        x = differ(w, g, dtypes[name], e["rtol"], e["atol"], e.get("int_atol", 0))
                    if x:
                        why.append("step %d %s %s" % (k, name, x))
        except Exception as x:  # a case that cannot even be run is a bad case
            why.append(repr(x)[:200])
        if why:
            bad += 1
            print("BAD %s (%s): %s" % (e["id"], e["note"], "; ".join(why)))
        elif verbose:
            print("ok  %s" % e["id"])
        if n % 500 == 499:
            print("... %d of %d" % (n + 1, len(entries)), flush=True)
    print("%d cases, %d bad" % (len(entries), bad))
    return bad


def main(argv):
    if len(argv) < 3:
        print(__doc__)
        return 2
    if argv[1] == "index":
        print("%d cases" % merge(argv[2]))
        return 0
    if argv[1] == "verify":
        return 1 if verify(argv[2], set(argv[3:]) or None) else 0
    if argv[1] == "table":
        w = Writer.__new__(Writer)
        w.entries = json.load(open(os.path.join(argv[2], "index.json")))
        w.table()
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
