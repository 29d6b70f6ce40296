# SPDX-License-Identifier: Apache-2.0
"""Cases with state, control flow, functions, strings and files.

    python generate_state.py --variant visible|hidden [--seed N] --out DIR [--family F ...] [--verify]

Writes DIR/<family>/<Name>-<nnn>.pb and .npz and DIR/index-state.json (format.py
describes them).  Everything is computed by real TensorFlow in graph mode.  Each
`family` is one function below: it builds small graphs, and says with
`t.step(...)` what each step feeds, fetches and runs.

A string feed may hold `@SCRATCH@`: whoever runs the case replaces it by an empty
folder that may be written to, the same one for all steps of the case, and
replaces that folder by `@SCRATCH@` in fetched strings.
"""
import argparse
import os
import shutil
import struct
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import format as F  # noqa: E402

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import attr_value_pb2, tensor_pb2, types_pb2  # noqa: E402
from tensorflow.python.framework import function as defun  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402
from tensorflow.python.ops import functional_ops  # noqa: E402
from tensorflow.python.ops import gen_control_flow_ops as cf  # noqa: E402
from tensorflow.python.ops import gen_data_flow_ops as df  # noqa: E402
from tensorflow.python.ops import gen_state_ops as so  # noqa: E402
from tensorflow.python.ops import gen_training_ops as tr  # noqa: E402

tf1 = tf.compat.v1
R = tf.raw_ops
tf1.disable_control_flow_v2()
tf1.disable_resource_variables()
f32, f64, i32, i64 = tf.float32, tf.float64, tf.int32, tf.int64
SCRATCH = b"@SCRATCH@"


# --------------------------------------------------------------------------
# Running, with the scratch folder.

_plain_run = F.run_steps


def _swap(value, old, new):
    if isinstance(value, bytes):  # numpy's own byte strings lose trailing zeros
        return value.replace(old, new)
    a = np.asarray(value)
    if a.dtype.kind not in "OSU":
        return value
    a = a.astype(object)
    fix = lambda x: (x if isinstance(x, bytes) else str(x).encode()).replace(old, new)
    return np.frompyfunc(fix, 1, 1)(a) if a.shape else fix(a.item())


def run_steps(graph_def, steps, session_config=None):
    folder = tempfile.mkdtemp(prefix="case-")
    try:
        real = folder.encode()
        swapped = [dict(s, feeds={k: _swap(v, SCRATCH, real) for k, v in s.get("feeds", {}).items()})
                   for s in steps]
        results, dtypes = _plain_run(graph_def, swapped, session_config)
        for r in results:
            r["values"] = {k: _swap(v, real, SCRATCH) if dtypes[k] == "string" else v
                           for k, v in r["values"].items()}
        return results, dtypes
    finally:
        shutil.rmtree(folder, ignore_errors=True)


F.run_steps = run_steps


def strip_defaults(graph_def):
    """Drops attributes that hold the default, as exporters often do."""
    def nodes():
        yield from graph_def.node
        for f in graph_def.library.function:
            yield from f.node_def
    for n in nodes():
        d = op_def_registry.get(n.op)
        for a in d.attr if d else ():
            if a.HasField("default_value") and a.name in n.attr and n.attr[a.name] == a.default_value:
                del n.attr[a.name]


class Cases:
    def __init__(self, args):
        self.hidden = args.variant == "hidden"
        self.rng = np.random.default_rng(args.seed)
        self.w = F.Writer(args.out, "state")
        self.family, self.made = "", 0

    def pick(self, visible, hidden):
        return hidden if self.hidden else visible

    def normal(self, *shape, dtype=np.float32, scale=1.0):
        return np.asarray(self.rng.standard_normal(shape) * scale).astype(dtype)

    def ints(self, lo, hi, *shape, dtype=np.int32):
        return np.asarray(self.rng.integers(lo, hi, shape)).astype(dtype)

    def words(self, n, letters="abcdefgh XYZ0129_-", longest=9):
        return np.array(["".join(self.rng.choice(list(letters), self.rng.integers(0, longest + 1)))
                         for _ in range(n)], dtype=object)

    @staticmethod
    def step(fetch=(), feed=None, target=(), compare="values", **more):
        one = lambda x: x if isinstance(x, (list, tuple)) else [x]
        name = lambda x: x if isinstance(x, str) else x.name
        return dict(fetches=[name(x) for x in one(fetch)],
                    feeds={name(k): v for k, v in (feed or {}).items()},
                    targets=[name(x) if isinstance(x, (str, tf.Operation)) else x.op.name
                             for x in one(target)], compare=compare, **more)

    def case(self, op, note="", v2=False, rename=None, strip=None, **kw):
        """Decorator: runs the function in a fresh graph; it returns the steps."""
        def build(fn):
            (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
            try:
                with tf.Graph().as_default() as g:
                    tf1.set_random_seed(7)
                    steps = fn()
                    gd = g.as_graph_def()
                    if callable(rename):
                        gd = rename(gd) or gd
                    if strip if strip is not None else self.made % 4 == 3:
                        strip_defaults(gd)
                steps = steps if isinstance(steps, list) else [steps]
                if os.environ.get("SHOW_CASES"):
                    print("case", self.family, op, note, flush=True)
                self.w.add_graph(op, self.family, gd, steps, note=note, **kw)
                self.made += 1
            except Exception as e:  # noqa: BLE001  (counted and shown at the end)
                where = traceback.extract_tb(e.__traceback__)
                line = [x.lineno for x in where if x.filename == __file__][-1:]
                self.w.skip("%s/%s" % (self.family, op),
                            "line %s, %s: %s" % (line, note, str(e)[:200].replace("\n", " ")))
            finally:
                tf1.disable_control_flow_v2()
        return build


# --------------------------------------------------------------------------
# Control flow with Switch, Merge and frames.

def raw_while(frame, inits, constants, cond, body, parallel=10):
    """A loop from single nodes; constants enter with is_constant."""
    enter = [cf.enter(x, frame, False, parallel) for x in inits]
    fixed = [cf.enter(x, frame, True, parallel) for x in constants]
    merge = [cf.merge([e, e]).output for e in enter]
    go = cf.loop_cond(cond(merge, fixed))
    parts = [cf.switch(m, go) for m in merge]
    for m, x in zip(merge, body([p.output_true for p in parts], fixed)):
        m.op._update_input(1, cf.next_iteration(x))
    return [leave(p.output_false) for p in parts]


leave = getattr(cf, "exit", None) or getattr(cf, "_exit")


def control_flow(t):
    ph = tf1.placeholder
    for dt, val in [(f32, np.float32([1.5, -2])), (tf.string, np.array([b"yes", b""], object)), (i64, np.int64(7)),
             (tf.bool, np.array([[True], [False]]))]:
        @t.case("Switch", "live and dead outputs of %s" % dt.name)
        def _():
            x, p = ph(dt, name="x"), ph(tf.bool, name="p")
            s = cf.switch(x, p, name="s")
            a, b = tf.identity(s[0], "f"), tf.identity(s[1], "t")
            return [t.step(a, {x: val, p: False}), t.step(b, {x: val, p: False}), t.step(b, {x: val, p: True}),
                    t.step([a, b], {x: val, p: True}), t.step([], {x: val, p: True}, target=[a, b]),
                    t.step([a, b], {x: val, p: True, s[0]: val})]

        @t.case("Merge", "value_index, %s" % dt.name)
        def _():
            x, p = ph(dt, name="x"), ph(tf.bool, name="p")
            s = cf.switch(x, p)
            a = tf.identity(s[0])
            b = tf.stack([s[1], s[1]])
            m, i = cf.merge([a, b], name="m")
            return [t.step([m, i], {x: val, p: False}), t.step([m, i], {x: val, p: True}), t.step(i, {x: val, p: True})]

    @t.case("Merge", "three inputs, one live")
    def _():
        k = ph(i32, [])
        x = ph(f32)
        live = [cf.switch(x, tf.equal(k, j))[1] * (10.0 ** j) for j in range(3)]
        m, i = cf.merge(live)
        v = t.normal(*(3,))
        return [t.step([m, i], {k: j, x: v}) for j in (2, 0, 1)] + [t.step([m, i], {k: 5, x: v})]

    @t.case("Merge", "all inputs dead, as target and as fetch")
    def _():
        p = ph(tf.bool)
        s = cf.switch(tf.constant(2.0), p)
        m, i = cf.merge([s[0] + 1.0, s[0] * 3.0])
        after = tf.identity(m * 2.0)
        return [t.step([], {p: True}, target=after), t.step(after, {p: True}), t.step(after, {p: True, m: np.float32(4)})]

    @t.case("Switch", "two levels")
    def _():
        p, q, x = ph(tf.bool), ph(tf.bool), ph(f32)
        a = cf.switch(x, p)
        qq = cf.switch(q, p)
        b = cf.switch(a[1] * 2.0, qq[1])
        inner, ii = cf.merge([b[0] - 1.0, b[1] + 100.0])
        outer, oi = cf.merge([tf.square(a[0]), inner])
        v = t.normal(4)
        return [t.step([outer, oi], {p: y, q: z, x: v}) for y in (False, True) for z in (True, False)]

    @t.case("ControlTrigger", "fires after dead control inputs")
    def _():
        p = ph(tf.bool)
        s = cf.switch(tf.constant([1, 2]), p)
        with tf.control_dependencies([tf.identity(s[0]), tf.identity(s[1])]):
            c = cf.control_trigger(name="go")
        with tf.control_dependencies([c]):
            out = tf.constant([5.0, 6.0]) * 2.0
        with tf.control_dependencies([tf.identity(s[0])]):
            dead = tf.constant(1)
        return [t.step(out, {p: True}), t.step(out, {p: False}), t.step(dead, {p: True}), t.step(dead, {p: False})]

    # Loops from single nodes.
    for par in (1, 10, 32):
        for const in (True, False):
            @t.case("Enter", "parallel_iterations=%d, limit %s" % (par, "constant" if const else "carried"))
            def _():
                n, step = ph(i32, []), ph(f32)
                if const:
                    out = raw_while("loop", [tf.constant(0), tf.zeros_like(step)], [n, step, tf.constant(1)],
                                    lambda v, k: tf.less(v[0], k[0]),
                                    lambda v, k: [v[0] + k[2], v[1] + k[1]], par)
                else:
                    def body(v, k):
                        with tf.control_dependencies([v[0]]):
                            one = tf.constant(1)
                        return [v[0] + one, v[1] + v[3] * tf.cast(v[0], f32), v[2], v[3]]
                    out = raw_while("frame/%d" % par, [tf.constant(0), tf.zeros_like(step), n, step], [],
                                    lambda v, k: tf.less(v[0], v[2]), body, par)
                v = t.normal(*(2, 3))
                return [t.step(out, {n: c, step: v}) for c in (5, 0, 1, 40)]

    @t.case("NextIteration", "hand-made Fibonacci, string grows along")
    def _():
        n = ph(i32, [])
        out = raw_while("fib", [tf.constant(0), tf.constant(0, i64), tf.constant(1, i64), tf.constant("")],
                        [n, tf.constant(1), tf.constant("ab")], lambda v, k: v[0] < k[0],
                        lambda v, k: [v[0] + k[1], v[2], v[1] + v[2], tf1.strings.join([v[3], k[2]])])
        return [t.step(out, {n: c}) for c in (10, 0, 50)]

    # Loops as client libraries write them.
    for par in (1, 10):
        @t.case("While", "several loop variables, parallel_iterations=%d" % par)
        def _():
            n, x = ph(i32, []), ph(f32, [None])
            r = tf1.while_loop(lambda i, a, b, c: i < n,
                               lambda i, a, b, c: (i + 1, a * 0.5 + b, tf.tanh(b + x), tf.concat([c[1:], a[:1]], 0)),
                               [0, x, tf.ones_like(x), x * 2.0], parallel_iterations=par)
            v = t.normal(4)
            return [t.step(r, {n: k, x: v}) for k in (6, 0, 1)]

        @t.case("While", "nested 3 deep, parallel_iterations=%d" % par)
        def _():
            a, b, c = ph(i32, []), ph(i32, []), ph(i32, [])

            def inner(i, j, s):
                return tf1.while_loop(lambda k, s: k < c + j, lambda k, s: (k + 1, s + i * 100 + j * 10 + k), [0, s],
                                      parallel_iterations=par)[1]

            def middle(i, s):
                return tf1.while_loop(lambda j, s: j < b, lambda j, s: (j + 1, inner(i, j, s) % 100003), [0, s],
                                      parallel_iterations=par)[1]
            r = tf1.while_loop(lambda i, s: i < a, lambda i, s: (i + 1, middle(i, s)), [0, 1], parallel_iterations=par)
            return [t.step(r, {a: x, b: y, c: z}) for x, y, z in [(3, 4, 2), (0, 3, 3), (2, 0, 1), (5, 5, 5)]]

    @t.case("While", "nested, two loops in one body, outer invariants")
    def _():
        n, m = ph(i32, []), ph(f32, [2, 2])

        def body(i, acc):
            p = tf1.while_loop(lambda j, v: j < i, lambda j, v: (j + 1, tf.matmul(v, m)), [0, acc])[1]
            q = tf1.while_loop(lambda j, v: tf.reduce_sum(tf.abs(v)) > 1.0, lambda j, v: (j + 1, v * 0.5), [0, p])
            return i + 1, q[1] + tf.eye(2) * tf.cast(q[0], f32)
        r = tf1.while_loop(lambda i, acc: i < n, body, [0, m])
        v = t.normal(2, 2)
        return [t.step(r, {n: k, m: v}) for k in (4, 0)]

    @t.case("While", "cond inside (Collatz)")
    def _():
        n = ph(i64, [])
        r = tf1.while_loop(lambda x, k: tf.not_equal(x, 1),
                           lambda x, k: (tf1.cond(tf.equal(x % 2, 0), lambda: x // 2, lambda: 3 * x + 1), k + 1), [n, 0])
        return [t.step(r, {n: k}) for k in (27, 1, 16)]

    @t.case("While", "inside cond, both branches")
    def _():
        p, x = ph(tf.bool), ph(f32, [None])

        def loop(f):
            return lambda: tf1.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, f(v)), [0, x])[1]
        r = tf1.cond(p, loop(lambda v: v * 1.5), loop(lambda v: tf.sin(v) + 0.1))
        return [t.step(r, {p: y, x: t.normal(3)}) for y in (True, False)]

    @t.case("While", "cond in while in cond in while")
    def _():
        n = ph(i32, [])

        def low(i, s):
            return tf1.while_loop(lambda j, s: j < i, lambda j, s: (
                j + 1, tf1.cond(tf.equal(j % 3, 0), lambda: s + j, lambda: s * 2 - j)), [0, s])[1]
        r = tf1.while_loop(lambda i, s: i < n, lambda i, s: (
            i + 1, tf1.cond(tf.equal(i % 2, 0), lambda: low(i, s) % 9973, lambda: s + 1)), [0, 1])
        return [t.step(r, {n: k}) for k in (9, 0, 3)]

    @t.case("While", "shape invariant, a growing tensor")
    def _():
        n = ph(i32, [])
        r = tf1.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.concat([v, [tf.cast(i * i, f32)]], 0)),
                           [0, tf.zeros([0])], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
        return [t.step(r, {n: k}) for k in (5, 0)]

    @t.case("While", "string and bool loop variables")
    def _():
        s = ph(tf.string, [])
        r = tf1.while_loop(lambda x, ok, n: tf.logical_and(ok, n < 20),
                           lambda x, ok, n: (tf1.strings.join([x, "+"]), tf1.strings.length(x) < 6, n + 1),
                           [s, True, 0])
        return [t.step(r, {s: k}) for k in (b"", b"abc", b"longer than nine")]

    @t.case("While", "an assertion fails in iteration 3, then a good run")
    def _():
        n = ph(i32, [])

        def body(i, s):
            with tf.control_dependencies([tf1.Assert(s < 10, [s])]):
                return i + 1, s + i * 2
        r = tf1.while_loop(lambda i, s: i < n, body, [0, 0])
        return [t.step(r, {n: k}) for k in (2, 9, 3)]

    @t.case("While", "a variable counts the iterations")
    def _():
        n = ph(i32, [])
        v = tf1.Variable(0, name="v", use_resource=False)

        def body(i):
            with tf.control_dependencies([tf1.assign_add(v, 2)]):
                return tf.identity(i) + 1
        r = tf1.while_loop(lambda i: i < n, body, [0], parallel_iterations=1)
        return [t.step(target=v.initializer), t.step(r, {n: 4}), t.step(v), t.step(r, {n: 0}), t.step(v), t.step(r, {n: 3}), t.step(v)]

    @t.case("While", "map_fn over rows, and a second loop over the result")
    def _():
        x = ph(f32, [None, None])
        y = tf1.map_fn(lambda row: tf.reduce_sum(row) * row, x)
        z = tf1.foldl(lambda a, r: a * 0.5 + r, y)
        w = tf1.scan(lambda a, r: a + r, y)
        return [t.step([y, z, w], {x: t.normal(*(3, 4))}), t.step([y, w], {x: t.normal(1, 1)})]

    @t.case("While", "error: two frames meet without Enter", expect_error=True)
    def _():
        n = ph(i32, [])
        out = raw_while("a", [tf.constant(0)], [n, tf.constant(1)], lambda v, k: v[0] < k[0],
                        lambda v, k: [v[0] + k[1]])
        m = [o for o in tf1.get_default_graph().get_operations() if o.type == "Merge"][0]
        return [t.step(out[0], {n: 3}), t.step(m.outputs[0] + n, {n: 2})]

    # Cond.
    @t.case("Cond", "several outputs of different types")
    def _():
        p, x = ph(tf.bool), ph(f32)
        r = tf1.cond(p, lambda: (x + 1.0, tf.constant("yes"), tf.shape(x)),
                     lambda: (x * x, tf.constant("no"), tf.shape(x)[::-1]))
        return [t.step(list(r), {p: y, x: t.normal(*(2, 3))}) for y in (True, False)]

    @t.case("Cond", "control dependencies: only the taken branch writes")
    def _():
        p = ph(tf.bool)
        a, b = [tf1.Variable(np.float32(k), use_resource=False) for k in (1, 2)]

        def take(v, d):
            with tf.control_dependencies([tf1.assign_add(v, d)]):
                return tf.constant(d)
        r = tf1.cond(p, lambda: take(a, 10.0), lambda: take(b, 20.0))
        return [t.step(target=[a.initializer, b.initializer])] + [
            s for y in (True, False, False) for s in (t.step(r, {p: y}), t.step([a, b]))]

    @t.case("Cond", "nested cond with captured outer branch values")
    def _():
        p, q, x = ph(tf.bool), ph(tf.bool), ph(f32)

        def yes():
            y = x * 3.0
            return tf1.cond(q, lambda: y + x, lambda: y - tf.exp(x))
        r = tf1.cond(p, yes, lambda: tf1.cond(q, lambda: -x, lambda: x))
        v = t.normal(2)
        return [t.step(r, {p: y, q: z, x: v}) for y in (True, False) for z in (True, False)]

    @t.case("Cond", "case with default, four ways")
    def _():
        k = ph(i32, [])
        x = ph(f32)
        r = tf1.case([(k < 0, lambda: x - 1.0), (tf.equal(k, 0), lambda: x * 0.0), (k > 100, lambda: tf.sqrt(tf.abs(x)))],
                     default=lambda: x * tf.cast(k, f32), exclusive=True)
        return [t.step(r, {k: j, x: t.normal(3)}) for j in (-5, 0, 200, 7)]

    @t.case("Cond", "assertion only in the taken branch")
    def _():
        p, x = ph(tf.bool), ph(f32)

        def yes():
            with tf.control_dependencies([tf1.Assert(tf.reduce_all(x > 0), [x, "positive"])]):
                return tf.math.log(x)
        r = tf1.cond(p, yes, lambda: tf.zeros_like(x))
        return [t.step(r, {p: True, x: np.float32([1, 2])}), t.step(r, {p: True, x: np.float32([1, -2])}),
                t.step(r, {p: False, x: np.float32([1, -2])})]

    @t.case("Cond", "predicate fed, then computed")
    def _():
        x = ph(f32)
        pred = tf.reduce_sum(x) > 0.0
        r = tf1.cond(pred, lambda: tf.reduce_max(x), lambda: tf.reduce_min(x))
        v = np.float32([3, -1, 2])
        return [t.step(r, {x: v}), t.step(r, {x: v, pred: False}), t.step([r, pred], {x: -v})]

    @t.case("LoopCond", "loop ends by a computed condition (Newton)")
    def _():
        a = ph(f64, [])
        r = tf1.while_loop(lambda x, n: tf.logical_and(tf.abs(x * x - a) > 1e-10, n < 100),
                           lambda x, n: (0.5 * (x + a / x), n + 1), [tf.constant(1.0, f64), 0])
        return [t.step(r, {a: k}) for k in (2.0, 1.0, 1e6)]

    @t.case("Exit", "only one of several exits is fetched")
    def _():
        n = ph(i32, [])
        r = tf1.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, a + tf.cast(i, f32), b * 2.0), [0, 0.0, 1.0])
        return [t.step(r[1], {n: 5}), t.step(r[2], {n: 5}), t.step([r[2], r[0]], {n: 0})]

    @t.case("While", "two independent loops in one step, and one feeding the next")
    def _():
        n = ph(i32, [])
        one = tf1.while_loop(lambda i: i < n, lambda i: i + 3, [0])
        two = tf1.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + 0.5), [0, 0.0])
        three = tf1.while_loop(lambda i: i > 0, lambda i: i - 2, [one])
        return [t.step([one, two[1], three], {n: k}) for k in (10, 0, 31)]


# --------------------------------------------------------------------------
def tensor_arrays(t):
    ph = tf1.placeholder

    def array(n, dt=f32, **kw):
        return R.TensorArrayV3(size=n, dtype=dt, **kw)

    for dt in (f32, i64, tf.string):
        vals = (np.array([b"x", b"yy", b""], object) if dt == tf.string else
                np.array([True, False, True]) if dt == tf.bool else t.normal(3, scale=5).astype(dt.as_numpy_dtype))

        @t.case("TensorArrayV3", "write, read, size, gather, %s" % dt.name)
        def _():
            x = ph(dt, [3])
            h, fl = array(3, dt, clear_after_read=False)
            for i in (2, 0, 1):
                fl = R.TensorArrayWriteV3(handle=h, index=i, value=x[i], flow_in=fl)
            r = [R.TensorArrayReadV3(handle=h, index=i, flow_in=fl, dtype=dt) for i in range(3)]
            g = R.TensorArrayGatherV3(handle=h, indices=[2, 0], flow_in=fl, dtype=dt)
            n = R.TensorArraySizeV3(handle=h, flow_in=fl)
            return [t.step(r + [g, n], {x: vals}), t.step(g, {x: vals})]

        @t.case("TensorArrayScatterV3", "scatter, concat, %s" % dt.name)
        def _():
            x = ph(dt, [3, None])
            h, fl = array(4, dt, dynamic_size=True, clear_after_read=False)
            fl = R.TensorArrayScatterV3(handle=h, indices=[3, 1, 0], value=x, flow_in=fl)
            fl = R.TensorArrayWriteV3(handle=h, index=2, value=x[1], flow_in=fl)
            c, ln = R.TensorArrayConcatV3(handle=h, flow_in=fl, dtype=dt)
            g = R.TensorArrayGatherV3(handle=h, indices=[0, 1, 2, 3], flow_in=fl, dtype=dt)
            return t.step([c, ln, g, R.TensorArraySizeV3(handle=h, flow_in=fl)], {x: np.stack([vals, vals[::-1], vals])})

    @t.case("TensorArraySplitV3", "split into rows of different length")
    def _():
        x = ph(f32, [None, 2])
        h, fl = array(3)
        fl = R.TensorArraySplitV3(handle=h, value=x, lengths=np.int64([1, 0, 3]), flow_in=fl)
        r = [R.TensorArrayReadV3(handle=h, index=i, flow_in=fl, dtype=f32) for i in (2, 0, 1)]
        return [t.step(r, {x: t.normal(4, 2)}), t.step(r, {x: t.normal(5, 2)})]

    for what, kw, do in [
            ("read twice with clear_after_read", {}, lambda h, fl: (0, 0)),
            ("index out of range", {}, lambda h, fl: (7,)),
            ("negative index", {}, lambda h, fl: (-1,)),
            ("element never written", dict(element_shape=None), lambda h, fl: (2,))]:
        @t.case("TensorArrayReadV3", "error: " + what)
        def _():
            h, fl = array(3, f32)
            fl = R.TensorArrayWriteV3(handle=h, index=0, value=[1.0, 2.0], flow_in=fl)
            outs = []
            for i in do(h, fl):
                with tf.control_dependencies(outs):
                    outs.append(R.TensorArrayReadV3(handle=h, index=i, flow_in=fl, dtype=f32))
            return t.step(outs)

    @t.case("TensorArrayWriteV3", "error: written twice, wrong shape, beyond a fixed size")
    def _():
        h, fl = array(2, element_shape=[2])
        fl = R.TensorArrayWriteV3(handle=h, index=0, value=[1.0, 2.0], flow_in=fl)
        x, i = ph(f32), ph(i32, [])
        w = R.TensorArrayWriteV3(handle=h, index=i, value=x, flow_in=fl)
        r = R.TensorArrayReadV3(handle=h, index=i, flow_in=w, dtype=f32)
        v = np.float32([3, 4])
        return [t.step(r, {x: v, i: k}) for k in (0, 2, 1)] + [t.step(r, {x: np.float32([1]), i: 1})]

    @t.case("TensorArrayV3", "unwritten elements with a known shape read as zeros; dynamic growth")
    def _():
        i = ph(i32, [])
        h, fl = array(1, dynamic_size=True, element_shape=[3])
        fl = R.TensorArrayWriteV3(handle=h, index=i, value=t.normal(3), flow_in=fl)
        n = R.TensorArraySizeV3(handle=h, flow_in=fl)
        z = R.TensorArrayReadV3(handle=h, index=0, flow_in=fl, dtype=f32)
        return [t.step([n, z], {i: k}) for k in (4, 0)]

    @t.case("TensorArrayCloseV3", "close, then size fails")
    def _():
        h, fl = array(2)
        c = R.TensorArrayCloseV3(handle=h)
        with tf.control_dependencies([c]):
            n = R.TensorArraySizeV3(handle=h, flow_in=fl)
        return [t.step(target=c), t.step(n)]

    @t.case("TensorArrayGradV3", "writes to a gradient array add up")
    def _():
        x = ph(f32, [2])
        h, fl = array(2, clear_after_read=False)
        fl = R.TensorArrayWriteV3(handle=h, index=0, value=x, flow_in=fl)
        gh, gf = R.TensorArrayGradV3(handle=h, flow_in=fl, source="gradients")
        g1 = R.TensorArrayWriteV3(handle=gh, index=0, value=x * 2.0, flow_in=gf)
        g2 = R.TensorArrayWriteV3(handle=gh, index=0, value=x + 1.0, flow_in=g1)
        gh2, gf2 = R.TensorArrayGradV3(handle=h, flow_in=g2, source="gradients")
        r = R.TensorArrayReadV3(handle=gh2, index=0, flow_in=gf2, dtype=f32)
        return t.step(r, {x: t.normal(2)})

    for par in (1, 10):
        @t.case("TensorArrayV3", "written and read in a while loop, gathered, with gradient; parallel_iterations=%d" % par)
        def _():
            x = ph(f32, [None, 3])
            n = tf.shape(x)[0]
            src = tf1.TensorArray(f32, n).unstack(x)
            out = tf1.TensorArray(f32, n)
            _, last, out = tf1.while_loop(lambda i, s, o: i < n, lambda i, s, o: (
                i + 1, tf.tanh(s * 0.5 + src.read(i)), o.write(i, s * 2.0)), [0, tf.zeros([3]), out], parallel_iterations=par)
            y = out.stack()
            gx, = tf1.gradients([tf.reduce_sum(y * y), tf.reduce_sum(last)], [x])
            return [t.step([y, last, gx], {x: t.normal(k, 3)}) for k in (4, 1)]

        @t.case("TensorArrayConcatV3", "concat after a loop, lengths differ; parallel_iterations=%d" % par)
        def _():
            n = ph(i32, [])
            out = tf1.TensorArray(i32, n, infer_shape=False)
            _, out = tf1.while_loop(lambda i, o: i < n, lambda i, o: (i + 1, o.write(i, tf.range(i) * 1)), [0, out],
                                    parallel_iterations=par)
            c = out.concat()
            return [t.step([c, out.size()], {n: k}) for k in (4, 1)]

    @t.case("TensorArraySplitV3", "split and concat with gradient")
    def _():
        x = ph(f32, [6, 2])
        ta = tf1.TensorArray(f32, 3, clear_after_read=False, infer_shape=False).split(x, [1, 2, 3])
        y = tf.reduce_sum(ta.read(1) ** 2) + 3.0 * tf.reduce_sum(ta.read(2))
        g, = tf1.gradients(y, [x])
        return t.step([y, g], {x: t.normal(6, 2)})


# --------------------------------------------------------------------------
def functions(t):
    ph = tf1.placeholder
    shape = (3,)

    for lower in (True, False):
        def lowered(gd, lower=lower):
            if not lower:
                for n in list(gd.node) + [n for f in gd.library.function for n in f.node_def]:
                    n.attr.pop("_lower_using_switch_merge", None)
            return gd
        tag = "lowering allowed" if lower else "not lowered"

        @t.case("StatelessIf", tag, v2=True, rename=lowered)
        def _():
            p, x = ph(tf.bool, []), ph(f32)
            r = tf.cond(p, lambda: (x + 1.0, tf.shape(x)), lambda: (tf.exp(x), tf.shape(x) * 2))
            return [t.step(list(r), {p: y, x: t.normal(*shape)}) for y in (True, False)]

        @t.case("If", "a resource variable is written in one branch; " + tag, v2=True, rename=lowered)
        def _():
            p = ph(tf.bool, [])
            v = tf1.get_variable("v", initializer=np.float32([1, 2]), use_resource=True)

            def yes():
                with tf.control_dependencies([v.assign_add([10.0, 20.0])]):
                    return v.read_value() * 1.0
            r = tf.cond(p, yes, lambda: v.read_value() - 1.0)
            return [t.step(target=v.initializer)] + [s for y in (False, True, True) for s in
                                                     (t.step(r, {p: y}), t.step(v.read_value()))]

        @t.case("StatelessWhile", "several loop variables; " + tag, v2=True, rename=lowered)
        def _():
            n, x = ph(i32, []), ph(f32, [None])
            r = tf.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, a * 0.5 + x, tf.concat([b[1:], a[:1]], 0)), [0, x, x * 2.0])
            return [t.step(list(r), {n: k, x: t.normal(3)}) for k in (0, 1, 7)]

        @t.case("StatelessWhile", "nested 3 deep with cond; " + tag, v2=True, rename=lowered)
        def _():
            a, b = ph(i32, []), ph(i32, [])

            def inner(i, s):
                return tf.while_loop(lambda j, s: j < b, lambda j, s: (j + 1, tf.while_loop(
                    lambda k, s: k < j, lambda k, s: (k + 1, tf.cond(tf.equal(k % 2, 0), lambda: s + i, lambda: s * 3 % 1009)),
                    [0, s])[1]), [0, s])[1]
            r = tf.while_loop(lambda i, s: i < a, lambda i, s: (i + 1, inner(i, s)), [0, 1])
            return [t.step(list(r), {a: x, b: y}) for x, y in [(3, 4), (0, 2), (2, 0)]]

        @t.case("While", "body writes a resource variable; " + tag, v2=True, rename=lowered)
        def _():
            n = ph(i32, [])
            v = tf1.get_variable("v", initializer=0.0, use_resource=True)

            def body(i):
                with tf.control_dependencies([v.assign_add(tf.cast(i, f32) + 0.5)]):
                    return tf.identity(i) + 1
            r = tf.while_loop(lambda i: i < n, body, [0])
            return [t.step(target=v.initializer), t.step(r, {n: 4}), t.step(v.read_value()), t.step(r, {n: 0}), t.step(v.read_value())]

        @t.case("Case", "index in and out of range; " + tag, v2=True, rename=lowered)
        def _():
            k, x = ph(i32, []), ph(f32)
            r = tf.switch_case(k, {0: lambda: x, 1: lambda: x * 10.0, 2: lambda: tf.cumsum(x)},
                               default=lambda: -x)
            return [t.step(r, {k: j, x: t.normal(4)}) for j in (0, 1, 2, 3, -1, 99)]

        @t.case("StatelessWhile", "gradient through loop and cond; " + tag, v2=True, rename=lowered)
        def _():
            n, x = ph(i32, []), ph(f32, [2])
            y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.cond(
                tf.reduce_sum(a) > 0.0, lambda: a * x, lambda: tf.sin(a) + 1.0)), [0, x])[1]
            g, = tf1.gradients(y, [x])
            return [t.step([y, g], {n: k, x: np.float32([0.7, 1.3])}) for k in (0, 1, 5)]

        @t.case("StatelessWhile", "assertion fails inside; " + tag, v2=True, rename=lowered)
        def _():
            n = ph(i32, [])

            def body(i, s):
                with tf.control_dependencies([tf1.Assert(s < 20, [s])]):
                    return i + 1, s + i
            r = tf.while_loop(lambda i, s: i < n, body, [0, 0])
            return [t.step(list(r), {n: k}) for k in (3, 50, 4)]

        @t.case("Case", "stateful branches; " + tag, v2=True, rename=lowered)
        def _():
            k = ph(i32, [])
            v = tf1.get_variable("v", initializer=1.0, use_resource=True)

            def add(d):
                def go():
                    with tf.control_dependencies([v.assign_add(d)]):
                        return v.read_value()
                return go
            r = tf.switch_case(k, [add(1.0), add(10.0), add(100.0)])
            return [t.step(target=v.initializer)] + [t.step(r, {k: j}) for j in (1, 0, 2, 5)]

    # Calls.
    def jit(f):
        return tf.function(f, autograph=False)

    @t.case("PartitionedCall", "nested functions with captures")
    def _():
        x, y = ph(f32), ph(f32)
        inner = jit(lambda a: a * y + 1.0)
        outer = jit(lambda a: (inner(a) - inner(a * 2.0), tf.reduce_sum(a)))
        r = outer(x)
        return [t.step(list(r), {x: t.normal(*shape), y: t.normal(*shape)}), t.step(r[1], {x: t.normal(2), y: np.float32(1)})]

    @t.case("PartitionedCall", "one function called many times, several outputs, none used twice")
    def _():
        x = ph(f32)
        f = jit(lambda a, b: (a + b, a - b, tf.stack([a, b])))
        v = x
        for i in range(4):
            p, q, s = f(v, x * float(i))
            v = p * 0.5 + q
        return t.step([v, s], {x: t.normal(*shape)})

    @t.case("PartitionedCall", "types other than float, unused and passed-through arguments")
    def _():
        s, k = ph(tf.string, [None]), ph(i64, [])
        f = jit(lambda a, b, c: (tf1.strings.join([a, a], "-"), c, tf.constant([7, 8], i32)))
        return t.step(list(f(s, k, k + 1)), {s: t.words(3), k: 41})

    @t.case("StatefulPartitionedCall", "variable read and written in a function")
    def _():
        x = ph(f32, [2])
        v = tf1.get_variable("v", initializer=np.float32([1, 2]), use_resource=True)

        def bump(a):
            v.assign_add(a)
            v.assign_sub([0.5, 0.5])
            return v.read_value() * 2.0
        f = jit(bump)
        r = f(x)
        return [t.step(r, {x: [1, 1]}), t.step(target=v.initializer), t.step(r, {x: [1, 1]}), t.step(v.read_value()),
                t.step(r, {x: [0, -1]}), t.step(v.read_value())]

    @t.case("StatefulPartitionedCall", "side effects run even when the output is not used")
    def _():
        v = tf1.get_variable("v", initializer=0, use_resource=True)
        w = tf1.get_variable("w", initializer=5, use_resource=True)

        def g():
            w.assign_add(1)
            return tf.constant(3)

        def f(a):
            g2()
            v.assign_add(a)
            return a
        g2 = jit(g)
        r = jit(f)(tf.constant(2))
        return [t.step(target=[v.initializer, w.initializer]), t.step(r), t.step([v.read_value(), w.read_value()]),
                t.step(target=r), t.step([v.read_value(), w.read_value()])]

    @t.case("StatefulPartitionedCall", "an error inside a nested function, then recovery")
    def _():
        x = ph(f32)

        def low(a):
            with tf.control_dependencies([tf1.Assert(tf.reduce_all(a > 0), [a])]):
                return tf.sqrt(a)
        r = jit(lambda a: jit(low)(a) + 1.0)(x)
        return [t.step(r, {x: np.float32([4])}), t.step(r, {x: np.float32([-4])}), t.step(r, {x: np.float32([9, 16])})]

    @t.case("PartitionedCall", "gradient of a function (forward and backward functions)")
    def _():
        x, w = ph(f32, [2, 3]), ph(f32, [3, 2])
        f = jit(lambda a, b: tf.tanh(tf.matmul(a, b)) ** 2)
        y = f(x, w)
        g = tf1.gradients(y, [x, w])
        return t.step([y] + g, {x: t.normal(2, 3), w: t.normal(3, 2)})

    @t.case("PartitionedCall", "loop inside a function inside a loop", v2=True)
    def _():
        x, n = ph(f32, [2]), ph(i32, [])
        f = jit(lambda a, k: tf.while_loop(lambda i, v: i < k, lambda i, v: (i + 1, v * 0.9 + x), [0, a])[1])
        r = tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, f(v, i)), [0, x])
        return [t.step(list(r), {x: t.normal(2), n: k}) for k in (4, 0)]

    @t.case("StatefulPartitionedCall", "old control flow (Switch, Merge, frames) inside a function")
    def _():
        x, n = ph(f32, [2]), ph(i32, [])

        @defun.Defun(f32, i32)
        def f(a, k):
            tf1.disable_control_flow_v2()
            v = tf1.while_loop(lambda i, v: i < k, lambda i, v: (i + 1, tf1.cond(v[0] > 1.0, lambda: v * 0.5, lambda: v + 1.0)), [0, a])[1]
            return v
        r = tf1.identity(f(x, n))
        return [t.step(r, {x: t.normal(2), n: k}) for k in (0, 5)]

    # Functions as an older client writes them: the op type of the node is the function.
    @t.case("FunctionOp", "a node whose type is a function of the library")
    def _():
        x = ph(f32)

        @defun.Defun(f32, func_name="Twice")
        def twice(a):
            return a * 2.0

        @defun.Defun(f32, f32, func_name="Mix")
        def mix(a, b):
            return twice(a) + b, twice(twice(b))
        r = mix(x, x + 1.0)
        return t.step(list(r), {x: t.normal(*shape)})

    @t.case("SymbolicGradient", "gradient of a library function")
    def _():
        x = ph(f32)

        @defun.Defun(f32, func_name="Poly")
        def poly(a):
            return a * a * a + 2.0 * a
        y = poly(x)
        y.set_shape([3])
        x2 = tf.reshape(x, [3])
        g = functional_ops.symbolic_gradient(input=[x2, tf.ones([3])], Tout=[f32], f=poly) if hasattr(functional_ops, "symbolic_gradient") else R.SymbolicGradient(input=[x2, tf.ones([3])], Tout=[f32], f=poly)
        return t.step([y, g[0]], {x: t.normal(3)})

    @t.case("If", "functional ops written by hand, function names in attributes")
    def _():
        x, p = ph(f32), ph(f32, [])

        @defun.Defun(f32, f32, func_name="Add2")
        def add(a, b):
            return a + b

        @defun.Defun(f32, f32, func_name="Sub2")
        def sub(a, b):
            return a - b
        r = functional_ops.If(p, [x, x * 0.5 + 1.0], add, sub)
        return [t.step(r[0], {x: t.normal(3), p: c}) for c in (0.0, 2.0, -1.0)]

    for dt, good, bad in [(tf.string, b"x", b""), (i32, 3, 0), (f64, 0.1, 0.0)]:
        @t.case("If", "condition of type %s" % dt.name)
        def _():
            p = ph(dt)

            @defun.Defun(f32, func_name="Yes")
            def yes(a):
                return a + 100.0

            @defun.Defun(f32, func_name="No")
            def no(a):
                return a - 100.0
            r = functional_ops.If(p, [tf.constant(1.0)], yes, no)
            some = np.array([good] * 2, object if dt == tf.string else dt.as_numpy_dtype)
            return [t.step(r[0], {p: v}) for v in (good, bad, some, some[:0])]

    @t.case("While", "functional While written by hand")
    def _():
        n = ph(i32, [])

        @defun.Defun(i32, i32, f32, func_name="Cond")
        def cond(i, n, a):
            return i < n

        @defun.Defun(i32, i32, f32, func_name="Body")
        def body(i, n, a):
            return i + 1, n, a * 1.5 + 1.0
        r = functional_ops.While([tf.constant(0), n, tf.constant([1.0, 2.0])], cond, body)
        return [t.step([r[0], r[2]], {n: k}) for k in (5, 0)]

    @t.case("For", "functional For")
    def _():
        n = ph(i32, [])

        @defun.Defun(i32, f32, func_name="Body")
        def body(i, a):
            return a + tf.cast(i, f32) * 2.0
        r = functional_ops.For(1, n, 2, [tf.constant(0.5)], body)
        return [t.step(r[0], {n: k}) for k in (9, 1)]

    # TensorFlow itself crashes on a function that calls itself, so depth comes from a chain.
    @t.case("PartitionedCall", "a chain of functions, each calls the next one twice", v2=True)
    def _():
        x, n = ph(f32, [2]), ph(i32, [])

        def level(k):
            if k == 0:
                return jit(lambda a, m: a * 0.5 + tf.cast(m, f32))
            nxt = level(k - 1)
            return jit(lambda a, m: nxt(a + 1.0, m) - tf.cond(m > k, lambda: nxt(a, m - 1), lambda: a))
        r = level(6)(x, n)
        return [t.step(r, {x: t.normal(2), n: k}) for k in (0, 4, 20)]


# --------------------------------------------------------------------------
def tensor_lists(t):
    ph = tf1.placeholder
    spec = dict(element_dtype=f32)
    any_, two = -1, [2]

    def lst(x, shape=(2,)):
        return R.TensorListFromTensor(tensor=x, element_shape=tf.constant(list(shape), i32))

    for dt in (f32, i32, tf.string):
        vals = (t.words(6).reshape(3, 2) if dt == tf.string else t.ints(0, 2, 3, 2).astype(bool) if dt == tf.bool
                else (t.normal(3, 2) * 9).astype(dt.as_numpy_dtype))

        @t.case("TensorListFromTensor", "length, get, stack, gather, %s" % dt.name)
        def _():
            x = ph(dt, [None, 2])
            h = lst(x)
            g = dict(input_handle=h, element_dtype=dt, element_shape=two)
            i = ph(i32, [])
            item = R.TensorListGetItem(index=i, **g)
            outs = [R.TensorListLength(input_handle=h), R.TensorListStack(**g),
                    R.TensorListGather(indices=[2, 0, 2], **g), item,
                    R.TensorListElementShape(input_handle=h, shape_type=i64)]
            return [t.step(outs, {x: vals, i: k}) for k in (1, 3, -1)]

        @t.case("TensorListSetItem", "reserve, set, stack, %s" % dt.name)
        def _():
            x = ph(dt, [None, 2])
            h = R.TensorListReserve(element_shape=two, num_elements=4, element_dtype=dt)
            h = R.TensorListSetItem(input_handle=h, index=2, item=x[0])
            h2 = R.TensorListSetItem(input_handle=h, index=0, item=x[1])
            g = dict(element_dtype=dt, element_shape=two)
            if dt == tf.string:
                return t.step([R.TensorListGetItem(input_handle=h2, index=0, **g), R.TensorListLength(input_handle=h2)], {x: vals})
            return t.step([R.TensorListStack(input_handle=h, **g), R.TensorListStack(input_handle=h2, **g)], {x: vals})

    @t.case("TensorListPushBack", "push and pop; the older handle keeps its value; pop of an empty list fails")
    def _():
        x = ph(f32)
        h0 = R.EmptyTensorList(element_shape=any_, max_num_elements=-1, element_dtype=f32)
        h1 = R.TensorListPushBack(input_handle=h0, tensor=x)
        h2 = R.TensorListPushBack(input_handle=h1, tensor=x * 2.0)
        p2, v2 = R.TensorListPopBack(input_handle=h2, element_shape=any_, element_dtype=f32)
        p1, v1 = R.TensorListPopBack(input_handle=p2, element_shape=any_, element_dtype=f32)
        p0, v0 = R.TensorListPopBack(input_handle=p1, element_shape=any_, element_dtype=f32)
        n = [R.TensorListLength(input_handle=h) for h in (h0, h1, h2, p2, p1)]
        return [t.step(n + [v2, v1], {x: t.normal(*(2,))}), t.step(v0, {x: t.normal(2)})]

    @t.case("TensorListPushBack", "max_num_elements and a wrong element shape")
    def _():
        x = ph(f32)
        h = R.EmptyTensorList(element_shape=two, max_num_elements=1, element_dtype=f32)
        a = R.TensorListPushBack(input_handle=h, tensor=x)
        b = R.TensorListPushBack(input_handle=a, tensor=x)
        na, nb = R.TensorListLength(input_handle=a), R.TensorListLength(input_handle=b)
        return [t.step(na, {x: t.normal(2)}), t.step(nb, {x: t.normal(2)}), t.step(na, {x: t.normal(3)})]

    @t.case("TensorListPushBackBatch", "a batch of lists")
    def _():
        x = ph(f32, [2, 3])
        h = [R.TensorListFromTensor(tensor=x * float(k + 1), element_shape=[3]) for k in range(2)]
        hs = tf.stack(h)
        b = R.TensorListPushBackBatch(input_handles=hs, tensor=x)
        outs = [R.TensorListStack(input_handle=u, element_shape=[3], element_dtype=f32) for u in tf.unstack(b, 2)]
        return t.step(outs, {x: t.normal(2, 3)})

    @t.case("TensorListConcatV2", "concat of rows with different length, and split back")
    def _():
        x = ph(f32, [None, 2])
        h = R.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=np.int64([2, 0, 1]))
        c, ln = R.TensorListConcatV2(input_handle=h, element_shape=[-1, 2], leading_dims=np.zeros(0, np.int64), element_dtype=f32)
        it = R.TensorListGetItem(input_handle=h, index=0, element_shape=[-1, 2], element_dtype=f32)
        k = 3
        return [t.step([c, ln, it], {x: t.normal(k, 2)}), t.step([c], {x: t.normal(k + 1, 2)})]

    @t.case("TensorListConcat", "with uninitialised items and leading_dims")
    def _():
        x = ph(f32, [2, 2])
        h = R.TensorListReserve(element_shape=[2, 2], num_elements=3, element_dtype=f32)
        h = R.TensorListSetItem(input_handle=h, index=1, item=x)
        c, ln = R.TensorListConcatV2(input_handle=h, element_shape=[2, 2], leading_dims=np.zeros(0, np.int64), element_dtype=f32)
        return t.step([c, ln], {x: t.normal(2, 2)})

    @t.case("TensorListScatterV2", "scatter to indices, with num_elements")
    def _():
        x = ph(f32, [3, 2])
        idx = [4, 0, 2]
        h = R.TensorListScatterV2(tensor=x, indices=idx, element_shape=two, num_elements=-1)
        h2 = R.TensorListScatterIntoExistingList(input_handle=h, tensor=x * 10.0, indices=[1, 0, 3])
        g = dict(element_dtype=f32, element_shape=two)
        return t.step([R.TensorListStack(input_handle=h, **g), R.TensorListStack(input_handle=h2, **g),
                       R.TensorListLength(input_handle=h)], {x: t.normal(3, 2)})

    @t.case("TensorListScatter", "first version")
    def _():
        x = ph(f32, [2, 2])
        h = R.TensorListScatter(tensor=x, indices=[1, 0], element_shape=two)
        return t.step(R.TensorListStack(input_handle=h, element_dtype=f32, element_shape=two), {x: t.normal(2, 2)})

    @t.case("TensorListResize", "grow, shrink, negative size fails")
    def _():
        x, n = ph(f32, [3, 2]), ph(i32, [])
        h = R.TensorListResize(input_handle=lst(x), size=n)
        s = R.TensorListStack(input_handle=h, element_dtype=f32, element_shape=two)
        return [t.step([s, R.TensorListLength(input_handle=h)], {x: t.normal(3, 2), n: k}) for k in (5, 1, 0, -1)]

    @t.case("TensorListElementShape", "known, partly known, unknown")
    def _():
        outs = [R.TensorListElementShape(input_handle=R.TensorListReserve(element_shape=s, num_elements=1, element_dtype=f32), shape_type=ty)
                for s in (tf.constant([2, 3]), tf.constant([-1, 4]), tf.constant(-1)) for ty in (i32, i64)]
        return t.step(outs)

    @t.case("TensorListConcatLists", "two lists")
    def _():
        x = ph(f32, [2, 2])
        h = R.TensorListConcatLists(input_a=lst(x), input_b=lst(x * 3.0), element_dtype=f32)
        return t.step(R.TensorListStack(input_handle=h, element_dtype=f32, element_shape=two), {x: t.normal(2, 2)})

    @t.case("TensorListStack", "errors: num_elements, shapes that differ, unknown shape of an empty list")
    def _():
        x, y = ph(f32), ph(f32)
        h = R.EmptyTensorList(element_shape=any_, max_num_elements=-1, element_dtype=f32)
        e = R.TensorListStack(input_handle=h, element_shape=any_, element_dtype=f32)
        h = R.TensorListPushBack(input_handle=R.TensorListPushBack(input_handle=h, tensor=x), tensor=y)
        s = R.TensorListStack(input_handle=h, element_shape=any_, element_dtype=f32)
        s3 = R.TensorListStack(input_handle=h, element_shape=any_, element_dtype=f32, num_elements=3)
        a, b = t.normal(2), t.normal(3)
        return [t.step(s, {x: a, y: a}), t.step(s, {x: a, y: b}), t.step(s3, {x: a, y: a}), t.step(e), t.step(s, {x: b, y: b})]

    for v2 in (True, False):
        @t.case("TensorListStack", "lists carried through a %s loop" % ("functional" if v2 else "frame"), v2=v2)
        def _():
            x = ph(f32, [None, 2])
            src = lst(x)
            n = tf.shape(x)[0]
            out = R.TensorListReserve(element_shape=two, num_elements=n, element_dtype=f32)
            loop = tf.while_loop if v2 else tf1.while_loop
            _, s, out = loop(lambda i, s, o: i < n, lambda i, s, o: (
                i + 1, s + R.TensorListGetItem(input_handle=src, index=i, element_shape=two, element_dtype=f32),
                R.TensorListSetItem(input_handle=o, index=n - 1 - i, item=s * 2.0)), [0, tf.zeros([2]), out])
            return [t.step([s, R.TensorListStack(input_handle=out, element_shape=two, element_dtype=f32)], {x: t.normal(k, 2)})
                    for k in (3, 1)]


# --------------------------------------------------------------------------
def variables(t):
    ph = tf1.placeholder

    def refvar(dt, shape, **kw):
        return so.variable_v2(shape=shape, dtype=dt, **kw)

    for dt in (f32, i64, tf.string):
        num = dt not in (tf.string, tf.bool)
        vals = (t.words(2) if dt == tf.string else np.array([True, False]) if dt == tf.bool
                else (t.normal(2) * 9).astype(dt.as_numpy_dtype))

        @t.case("VariableV2", "uninitialised read, assign, read, IsVariableInitialized, %s" % dt.name)
        def _():
            v, x = refvar(dt, [2]), ph(dt, [2])
            a, r = so.assign(v, x), tf.identity(v)
            i = so.is_variable_initialized(v)
            return [t.step(i), t.step(r), t.step(a, {x: vals}), t.step([i, r]), t.step(target=so.assign(v, x[::-1]), feed={x: vals}), t.step(r)]

        @t.case("VarHandleOp", "uninitialised read, assign, read, VarIsInitializedOp, destroy, %s" % dt.name)
        def _():
            h, x = R.VarHandleOp(dtype=dt, shape=[2], shared_name="var", container=""), ph(dt, [2])
            a, r = R.AssignVariableOp(resource=h, value=x), R.ReadVariableOp(resource=h, dtype=dt)
            i = R.VarIsInitializedOp(resource=h)
            d = R.DestroyResourceOp(resource=h, ignore_lookup_error=False)
            d2 = R.DestroyResourceOp(resource=h, ignore_lookup_error=True)
            return [t.step(i), t.step(r), t.step(target=a, feed={x: vals}), t.step([i, r, R.VariableShape(input=h)]),
                    t.step(target=d), t.step(r), t.step(target=d), t.step(target=d2), t.step(target=a, feed={x: vals}), t.step(r)]

        if num:
            @t.case("AssignAdd", "AssignAdd, AssignSub in steps, %s" % dt.name)
            def _():
                v, x = tf1.Variable(vals, use_resource=False), ph(dt, [2])
                a, s = tf1.assign_add(v, x), tf1.assign_sub(v, x * 2)
                return [t.step(a, {x: vals}), t.step(target=v.initializer), t.step(a, {x: vals}), t.step(s, {x: vals}), t.step(v)]

            @t.case("AssignAddVariableOp", "AssignAdd, AssignSub on a resource, %s" % dt.name)
            def _():
                h, x = R.VarHandleOp(dtype=dt, shape=[2], shared_name="v"), ph(dt, [2])
                init = R.AssignVariableOp(resource=h, value=vals)
                a, s = R.AssignAddVariableOp(resource=h, value=x), R.AssignSubVariableOp(resource=h, value=x * 2)
                r = R.ReadVariableOp(resource=h, dtype=dt)
                return [t.step(target=a, feed={x: vals}), t.step(target=init), t.step(target=a, feed={x: vals}), t.step(r),
                        t.step(target=s, feed={x: vals}), t.step(r)]

    for kind, names in (("ref", "Update Add Sub Mul Div Min Max".split()), ("resource", "Update Add Sub Mul Div Min Max".split())):
        for n in names:
            for dt, it, scalar in [(f32, i32, False), (i32, i64, False), (f32, i64, True)]:
                @t.case(("Scatter" if kind == "ref" else "ResourceScatter") + n,
                        "%s, indices %s%s, repeated indices, then one out of range" % (dt.name, it.name, ", scalar update" if scalar else ""))
                def _():
                    shape = (4, 2)
                    init = (t.normal(*shape) * 8).astype(dt.as_numpy_dtype)
                    idx, up = ph(it, [None]), ph(dt)
                    rep = [1, 3, 1] if n != "Update" else [1, 3, 0]
                    val = lambda k: (np.asarray(3, dt.as_numpy_dtype) if scalar else
                                     (t.rng.uniform(1, 5, (k,) + shape[1:])).astype(dt.as_numpy_dtype))
                    if kind == "ref":
                        v = tf1.Variable(init, use_resource=False)
                        op = getattr(so, "scatter_" + n.lower())(v._ref(), idx, up)
                        steps = [t.step(target=v.initializer), t.step(op, {idx: rep, up: val(3)}), t.step(op, {idx: [2], up: val(1)}),
                                 t.step(op, {idx: [0, 99], up: val(2)}), t.step(op, {idx: [], up: val(0)})]
                    else:
                        h = R.VarHandleOp(dtype=dt, shape=shape, shared_name="v")
                        ini = R.AssignVariableOp(resource=h, value=init)
                        op = getattr(R, "ResourceScatter" + n)(resource=h, indices=idx, updates=up)
                        r = R.ReadVariableOp(resource=h, dtype=dt)
                        steps = [t.step(target=ini), t.step(target=op, feed={idx: rep, up: val(3)}), t.step(r),
                                 t.step(target=op, feed={idx: [0, 99], up: val(2)}), t.step(target=op, feed={idx: [2], up: val(1)})]
                    return steps

    for n in ("Update", "Add", "Sub"):
        @t.case("ScatterNd" + n, "ref variable")
        def _():
            v = tf1.Variable(t.normal(3, 4), use_resource=False)
            idx, up = ph(i32, [None, None]), ph(f32)
            op = getattr(so, "scatter_nd_" + n.lower())(v._ref(), idx, up)
            return [t.step(target=v.initializer), t.step(op, {idx: [[0, 1], [2, 3]], up: t.normal(2)}),
                    t.step(op, {idx: [[2], [0]], up: t.normal(2, 4)}), t.step(op, {idx: [[3]], up: t.normal(1, 4)}), t.step(v)]

        @t.case("ResourceScatterNd" + n, "resource variable")
        def _():
            h = R.VarHandleOp(dtype=f32, shape=[3, 4], shared_name="v")
            ini, r = R.AssignVariableOp(resource=h, value=t.normal(3, 4)), R.ReadVariableOp(resource=h, dtype=f32)
            idx, up = ph(i64, [None, None]), ph(f32)
            op = getattr(R, "ResourceScatterNd" + n)(ref=h, indices=idx, updates=up)
            return [t.step(target=ini), t.step(target=op, feed={idx: [[0, 1], [2, 3]], up: t.normal(2)}), t.step(r),
                    t.step(target=op, feed={idx: [[2], [0]], up: t.normal(2, 4)}), t.step(r), t.step(target=op, feed={idx: [[0, 4]], up: t.normal(1)})]

    @t.case("ResourceGather", "batch_dims 0 and 1, index out of range")
    def _():
        h = R.VarHandleOp(dtype=f32, shape=[3, 4], shared_name="v")
        ini = R.AssignVariableOp(resource=h, value=t.normal(3, 4))
        i = ph(i32)
        a = R.ResourceGather(resource=h, indices=i, dtype=f32)
        b = R.ResourceGather(resource=h, indices=[[1, 0], [3, 3], [2, 0]], dtype=f32, batch_dims=1)
        c = R.ResourceGatherNd(resource=h, indices=[[0, 3], [2, 2]], dtype=f32)
        return [t.step(a, {i: [0]}), t.step(target=ini), t.step([a, b, c], {i: t.ints(0, 3, *(2, 2))}), t.step(a, {i: [5]}), t.step(a, {i: 2})]

    @t.case("ResourceStridedSliceAssign", "slice assignment with masks, ref and resource")
    def _():
        h = R.VarHandleOp(dtype=f32, shape=[4, 5], shared_name="v")
        init = t.normal(4, 5)
        ini, r = R.AssignVariableOp(resource=h, value=init), R.ReadVariableOp(resource=h, dtype=f32)
        x = ph(f32)
        a = R.ResourceStridedSliceAssign(ref=h, begin=[1, 0], end=[3, -1], strides=[1, 2], value=x)
        v = tf1.Variable(init, use_resource=False)
        b = tf1.assign(v[1:3, ::-1], x) if t.hidden else tf1.assign(v[:2, 1:3], x)
        w = (2, 2)
        w2 = (2, 2)
        return [t.step(target=[ini, v.initializer]), t.step(target=a, feed={x: t.normal(*w)}), t.step(r), t.step(b, {x: t.normal(*w2)}), t.step(v)]

    @t.case("CountUpTo", "counts, then OUT_OF_RANGE, then again after assign")
    def _():
        v = tf1.Variable(0, use_resource=False)
        c = so.count_up_to(v._ref(), 3)
        z = tf1.assign(v, 1)
        return [t.step(target=v.initializer)] + [t.step(c) for _ in range(4)] + [t.step(z), t.step(c), t.step(v)]

    @t.case("ResourceCountUpTo", "on a resource variable")
    def _():
        h = R.VarHandleOp(dtype=i64, shape=[], shared_name="v")
        ini = R.AssignVariableOp(resource=h, value=tf.constant(0, i64))
        c = R.ResourceCountUpTo(resource=h, limit=2, T=i64)
        return [t.step(target=ini)] + [t.step(c) for _ in range(4)]

    @t.case("Variable", "first version of the op")
    def _():
        v = so.variable(shape=[2], dtype=f32)
        x = ph(f32, [2])
        a = so.assign(v, x)
        return [t.step(tf.identity(v)), t.step(a, {x: t.normal(2)}), t.step(tf.identity(v))]

    @t.case("Assign", "validate_shape true and false, use_locking")
    def _():
        v = refvar(f32, [2])
        x = ph(f32)
        a = so.assign(v, x, validate_shape=True)
        b = so.assign(v, x, validate_shape=False, use_locking=True)
        r = tf.identity(v)
        return [t.step(a, {x: t.normal(2)}), t.step(a, {x: t.normal(3)}), t.step(r), t.step(b, {x: t.normal(2, 2)}), t.step(tf.shape(r))]

    for shared, cont in [("same", ""), ("same", "box"), ("", "")]:
        @t.case("VariableV2", "shared_name=%r container=%r" % (shared, cont))
        def _():
            a = refvar(f32, [2], shared_name=shared, container=cont, name="a")
            b = refvar(f32, [2], shared_name=shared, container=cont, name="b")
            c = refvar(f32, [2], shared_name=shared, container="elsewhere", name="c")
            s = so.assign(a, t.normal(2))
            i = [so.is_variable_initialized(k) for k in (a, b, c)]
            return [t.step(i), t.step(s), t.step(i), t.step(tf.identity(b)), t.step(tf.identity(c))]

        @t.case("VarHandleOp", "shared_name=%r container=%r" % (shared, cont))
        def _():
            a = R.VarHandleOp(dtype=f32, shape=[2], shared_name=shared, container=cont, name="a")
            b = R.VarHandleOp(dtype=f32, shape=[2], shared_name=shared, container=cont, name="b")
            c = R.VarHandleOp(dtype=f32, shape=[2], shared_name=shared, container="elsewhere", name="c")
            s = R.AssignVariableOp(resource=a, value=t.normal(2))
            i = [R.VarIsInitializedOp(resource=k) for k in (a, b, c)]
            return [t.step(i), t.step(target=s), t.step(i), t.step(R.ReadVariableOp(resource=b, dtype=f32)), t.step(R.ReadVariableOp(resource=c, dtype=f32))]

    @t.case("AssignVariableOp", "wrong type, wrong shape with validate_shape, shape change without")
    def _():
        h = R.VarHandleOp(dtype=f32, shape=tf.TensorShape(None), shared_name="v")
        a = R.AssignVariableOp(resource=h, value=t.normal(2))
        b = R.AssignVariableOp(resource=h, value=t.normal(3, 1), validate_shape=False)
        c = R.AssignVariableOp(resource=h, value=t.normal(2, 2), validate_shape=True)
        add = R.AssignAddVariableOp(resource=h, value=t.normal(5))
        r = R.ReadVariableOp(resource=h, dtype=f32)
        return [t.step(target=a), t.step(r), t.step(target=b), t.step(r), t.step(target=c), t.step(r), t.step(target=add), t.step(r)]

    @t.case("ReadVariableOp", "read before and after a write in one step, ordered by control edges")
    def _():
        h = R.VarHandleOp(dtype=f32, shape=[2], shared_name="v")
        ini = R.AssignVariableOp(resource=h, value=t.normal(2))
        before = R.ReadVariableOp(resource=h, dtype=f32)
        with tf.control_dependencies([before]):
            w = R.AssignAddVariableOp(resource=h, value=[1.0, 2.0])
        with tf.control_dependencies([w]):
            after = R.ReadVariableOp(resource=h, dtype=f32)
        with tf.control_dependencies([after]):
            w2 = R.AssignVariableOp(resource=h, value=after * after)
        with tf.control_dependencies([w2]):
            last = R.ReadVariableOp(resource=h, dtype=f32)
        return [t.step(target=ini), t.step([before, after, last]), t.step([last, before]), t.step(after)]

    @t.case("TemporaryVariable", "made, added to, destroyed; value comes out")
    def _():
        v = so.temporary_variable([2], f32, var_name="tmp")
        a = so.assign(v, t.normal(2))
        b = so.assign_add(a, [10.0, 20.0])
        r = so.destroy_temporary_variable(b, "tmp")
        return [t.step(r), t.step(r + 1.0)]

    @t.case("VariableV2", "tf.Variable graph with dependent initialisers")
    def _():
        a = tf1.Variable(t.normal(2, 3), use_resource=False)
        b = tf1.Variable(tf.reduce_sum(a.initialized_value(), 0), use_resource=False)
        c = tf1.Variable(tf.zeros([2]), use_resource=False)
        rep = tf1.report_uninitialized_variables([a, b, c])
        init = tf1.global_variables_initializer()
        return [t.step(rep), t.step(target=a.initializer), t.step(rep), t.step(b), t.step(target=init), t.step([a, b, c, rep])]


# --------------------------------------------------------------------------
HYPER = dict(lr=0.1, alpha=0.2, l1=0.01, l2=0.02, l2_shrinkage=0.03, lr_power=-0.5, momentum=0.9, rho=0.95, epsilon=1e-3,
             beta1=0.9, beta2=0.99, beta1_power=0.81, beta2_power=0.97, logbase=1.1, sign_decay=0.5, beta=0.9, decay=0.9)
HIDDEN_HYPER = dict(HYPER, lr=0.03, alpha=0.5, l1=0.1, l2=0.3, momentum=0.5, rho=0.8, epsilon=1e-2, beta1=0.7, beta2=0.9,
                    beta1_power=0.49, beta2_power=0.81, lr_power=-0.7, logbase=2.0)


def training(t):
    ph = tf1.placeholder
    hyper = HYPER
    names = sorted(n for n in op_def_registry.get_registered_ops() if n.startswith(
        ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply"))) if hasattr(op_def_registry, "get_registered_ops") else [
        p + b for b in ("GradientDescent ProximalGradientDescent Momentum KerasMomentum Adam AdamWithAmsgrad AdaMax Adagrad AdagradV2 AdagradDA "
                        "ProximalAdagrad Adadelta RMSProp CenteredRMSProp Ftrl FtrlV2 AddSign PowerSign").split()
        for p in ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply")]
    snake = {n.replace("_", "").lower(): n for n in dir(tr)}
    for op in names:
        d = op_def_registry.get(op)
        if d is None:
            continue
        flags = [a.name for a in d.attr if a.type == "bool" and a.name != "use_locking"]
        variants = [({}, f32)] + [({f: v}, f32) for f in flags for v in (True, False)][:2]
        if op in ("ApplyMomentum", "ResourceApplyAdam", "ResourceApplyGradientDescent", "ApplyAdam", "ApplyAdagrad"):
            variants += [({}, tf.half), ({}, tf.bfloat16)] if not t.hidden else [({}, tf.half)]
        for flag, dt in variants:
            @t.case(op, "three steps, %s%s" % (dt.name, "".join(", %s=%s" % x for x in flag.items())),
                    rtol={f32: 2e-5, f64: 1e-9}.get(dt), strip=False)
            def _():
                npdt, shape = dt.as_numpy_dtype, (3, 2)
                kw, slots, feeds = dict(flag), [], {}
                resource = op.startswith("Resource")
                if "use_locking" in [a.name for a in d.attr]:
                    kw["use_locking"] = bool(len(flag))
                inits = []
                for a in d.input_arg:
                    if a.is_ref or a.type == types_pb2.DT_RESOURCE:
                        val = np.abs(t.normal(*shape)) + 0.1
                        if a.name == "mg":
                            val = val * 0.1
                        if a.name == "ms":
                            val = val + 1.0
                        val = (val if slots else t.normal(*shape)).astype(npdt)
                        if resource:
                            h = R.VarHandleOp(dtype=dt, shape=shape, shared_name=a.name)
                            inits.append(R.AssignVariableOp(resource=h, value=tf.constant(val, dt)))
                            slots.append(h)
                        else:
                            h = so.variable_v2(shape=shape, dtype=dt, name=a.name)
                            inits.append(so.assign(h, tf.constant(val, dt)).op)
                            slots.append(h)
                        kw[a.name] = h
                    elif a.name in ("grad", "delta"):
                        kw[a.name] = feeds["g"] = ph(dt, name="grad")
                    elif a.name == "indices":
                        kw[a.name] = feeds["i"] = ph(i32, name="indices")
                    elif a.name == "global_step":
                        kw[a.name] = tf.constant(3, i64)
                    else:
                        kw[a.name] = tf.constant(hyper[a.name], dt)
                fn = getattr(tr, snake[op.lower()])
                up = fn(**kw)
                up = up if isinstance(up, tf.Operation) else up.op
                with tf.control_dependencies([up]):
                    reads = [R.ReadVariableOp(resource=s, dtype=dt) if resource else tf.identity(s) for s in slots]
                steps = [t.step(target=up, feed=({feeds["g"]: np.zeros(((1,) if "i" in feeds else ()) + (shape[1:] if "i" in feeds else shape)).astype(npdt)} | ({feeds["i"]: [0]} if "i" in feeds else {}))),
                         t.step(target=inits)]
                for k in range(3):
                    g = t.normal(*((2,) + shape[1:] if "i" in feeds else shape)).astype(npdt)
                    f = {feeds["g"]: g}
                    if "i" in feeds:
                        f[feeds["i"]] = [[0, 2], [1, 0], [2, 1]][k]
                    steps.append(t.step(reads, f))
                if "i" in feeds:
                    steps.append(t.step(reads, {feeds["g"]: t.normal(1, *shape[1:]).astype(npdt), feeds["i"]: [50]}))
                return steps

    @t.case("ApplyAdam", "error: gradient of another shape, then a good step")
    def _():
        v, m, u = [tf1.Variable(t.normal(2, 2), use_resource=False) for _ in range(3)]
        g = ph(f32)
        a = tr.apply_adam(v._ref(), m._ref(), u._ref(), 0.9, 0.99, 0.1, 0.9, 0.99, 1e-4, g)
        return [t.step(target=[v.initializer, m.initializer, tf1.assign(u, [[1.0, 2], [3, 4]]).op]), t.step(a, {g: t.normal(3)}), t.step(a, {g: t.normal(2, 2)})]


# --------------------------------------------------------------------------
def queues(t):
    ph = tf1.placeholder
    fl = lambda q: R.QueueSizeV2(handle=q)

    def ops(q, types):
        return dict(size=R.QueueSizeV2(handle=q), closed=R.QueueIsClosedV2(handle=q),
                    get=R.QueueDequeueV2(handle=q, component_types=types),
                    close=R.QueueCloseV2(handle=q), cancel=R.QueueCloseV2(handle=q, cancel_pending_enqueues=True))

    for dts in [(f32,), (i64, tf.string)]:
        tag = ", ".join(d.name for d in dts)

        def value(d, *shape):
            return t.words(int(np.prod(shape))).reshape(shape) if d == tf.string else (t.normal(*shape) * 9).astype(d.as_numpy_dtype)

        @t.case("FIFOQueueV2", "enqueue, size, dequeue, close, OUT_OF_RANGE; " + tag)
        def _():
            q = R.FIFOQueueV2(component_types=list(dts), shapes=[[2]] * len(dts), capacity=10)
            xs = [ph(d) for d in dts]
            put = R.QueueEnqueueV2(handle=q, components=xs)
            o = ops(q, list(dts))
            return [t.step(o["size"])] + [t.step(target=put, feed={x: value(d, 2) for x, d in zip(xs, dts)}) for _ in range(3)] + [
                t.step(o["size"]), t.step(list(o["get"])), t.step([o["closed"]]), t.step(target=o["close"]),
                t.step([o["closed"]]), t.step(list(o["get"])), t.step(target=put, feed={x: value(d, 2) for x, d in zip(xs, dts)}),
                t.step(list(o["get"])), t.step(list(o["get"])), t.step(o["size"])]

        @t.case("QueueEnqueueManyV2", "many in, many out, up to; " + tag)
        def _():
            q = R.FIFOQueueV2(component_types=list(dts), shapes=[[], [2]][:len(dts)], capacity=-1)
            xs = [ph(d) for d in dts]
            put = R.QueueEnqueueManyV2(handle=q, components=xs)
            k = ph(i32, [])
            many = R.QueueDequeueManyV2(handle=q, n=k, component_types=list(dts))
            upto = R.QueueDequeueUpToV2(handle=q, n=k, component_types=list(dts))
            o = ops(q, list(dts))
            feed = lambda n: {x: value(d, *((n,) + s)) for x, d, s in zip(xs, dts, [(), (2,)])}
            return [t.step(target=put, feed=feed(5)), t.step(list(many), {k: 2}), t.step(o["size"]), t.step(list(many), {k: 0}),
                    t.step(target=put, feed=feed(2)), t.step(target=o["close"]), t.step(list(many), {k: 100}),
                    t.step(list(upto), {k: 3}), t.step(list(upto), {k: 100}), t.step(list(upto), {k: 1})]

    @t.case("FIFOQueueV2", "dequeue waits for an enqueue of the same step")
    def _():
        q = R.FIFOQueueV2(component_types=[f32], capacity=2)
        put = R.QueueEnqueueV2(handle=q, components=[tf.constant(t.normal(2))])
        get = R.QueueDequeueV2(handle=q, component_types=[f32])
        return [t.step(get[0] * 2.0, target=put), t.step(fl(q)), t.step(get[0], target=put)]

    @t.case("FIFOQueueV2", "capacity full: enqueue_many waits for dequeues of the same step")
    def _():
        q = R.FIFOQueueV2(component_types=[i32], shapes=[[]], capacity=2)
        put = R.QueueEnqueueManyV2(handle=q, components=[tf.range(5)])
        get = R.QueueDequeueManyV2(handle=q, n=5, component_types=[i32]) if t.hidden else R.QueueDequeueManyV2(handle=q, n=4, component_types=[i32])
        return [t.step(get[0], target=put), t.step(fl(q))]

    @t.case("FIFOQueueV2", "errors: wrong shape, many from a queue without shapes, negative n")
    def _():
        q = R.FIFOQueueV2(component_types=[f32], shapes=[[2]], capacity=4)
        p = R.FIFOQueueV2(component_types=[f32], capacity=4)
        x, k = ph(f32), ph(i32, [])
        a, b = R.QueueEnqueueV2(handle=q, components=[x]), R.QueueEnqueueV2(handle=p, components=[x])
        m = R.QueueDequeueManyV2(handle=q, n=k, component_types=[f32])
        return [t.step(target=a, feed={x: t.normal(3)}), t.step(target=a, feed={x: t.normal(2)}), t.step(target=b, feed={x: t.normal(3)}),
                t.step(m, {k: -1}), t.step(m, {k: 1}), t.step([fl(q), fl(p)])]

    for shared, cont in [("q", ""), ("q", "box")]:
        @t.case("FIFOQueueV2", "two handles, shared_name=%r container=%r" % (shared, cont))
        def _():
            q, r = [R.FIFOQueueV2(component_types=[i32], capacity=4, shared_name=shared, container=cont) for _ in range(2)]
            put = R.QueueEnqueueV2(handle=q, components=[tf.constant(5)])
            return [t.step(target=put), t.step([fl(q), fl(r)]), t.step(target=put), t.step([fl(q), fl(r)])]

    @t.case("FIFOQueueV2", "close twice; cancel_pending_enqueues")
    def _():
        q = R.FIFOQueueV2(component_types=[i32], capacity=4)
        put = R.QueueEnqueueV2(handle=q, components=[tf.constant(5)])
        o = ops(q, [i32])
        return [t.step(target=put), t.step(target=o["cancel"]), t.step(target=o["close"]), t.step(target=put), t.step(o["get"]), t.step(o["get"])]

    for n, least in [(6, 0), (9, 3)]:
        @t.case("RandomShuffleQueueV2", "min_after_dequeue=%d: all elements come out once" % least)
        def _():
            q = R.RandomShuffleQueueV2(component_types=[i32], shapes=[[]], capacity=20, min_after_dequeue=least, seed=3, seed2=4)
            put = R.QueueEnqueueManyV2(handle=q, components=[tf.range(n)])
            o = ops(q, [i32])
            k = ph(i32, [])
            many = R.QueueDequeueManyV2(handle=q, n=k, component_types=[i32])[0]
            return [t.step(target=put), t.step(o["size"]), t.step(o["get"], compare="shape"), t.step(o["size"]), t.step(target=o["close"]),
                    t.step([many], {k: n - 1}, compare="shape"), t.step(o["size"]), t.step(o["get"])]

        @t.case("RandomShuffleQueueV2", "sorted after dequeue, min_after_dequeue=%d" % least)
        def _():
            q = R.RandomShuffleQueueV2(component_types=[i32, tf.string], shapes=[[], []], capacity=20, min_after_dequeue=least)
            x = ph(i32, [None])
            put = R.QueueEnqueueManyV2(handle=q, components=[x, tf1.as_string(x * 7)])
            o = ops(q, [i32])
            a, b = R.QueueDequeueUpToV2(handle=q, n=50, component_types=[i32, tf.string])
            order = tf.argsort(a)
            return [t.step(target=put, feed={x: t.rng.permutation(n).astype(np.int32)}), t.step(target=o["close"]),
                    t.step([tf.gather(a, order), tf.gather(b, order)])]

    @t.case("PaddingFIFOQueueV2", "rows of different length are padded")
    def _():
        q = R.PaddingFIFOQueueV2(component_types=[f32, tf.string], shapes=[[None], [2, None]], capacity=10)
        x, s = ph(f32), ph(tf.string)
        put = R.QueueEnqueueV2(handle=q, components=[x, s])
        k = ph(i32, [])
        many = R.QueueDequeueManyV2(handle=q, n=k, component_types=[f32, tf.string])
        upto = R.QueueDequeueUpToV2(handle=q, n=k, component_types=[f32, tf.string])
        o = ops(q, [f32, tf.string])
        feeds = [{x: t.normal(n), s: t.words(2 * m).reshape(2, m)} for n, m in [(1, 2), (3, 0), (0, 1), (4, 4), (2, 2)]]
        return [t.step(target=put, feed=f) for f in feeds] + [t.step(list(many), {k: 3}), t.step(list(o["get"])), t.step(target=o["close"]),
                                                             t.step(list(upto), {k: 5}), t.step(list(upto), {k: 5})]

    @t.case("PriorityQueueV2", "smallest priority first")
    def _():
        q = R.PriorityQueueV2(component_types=[tf.string], shapes=[[]], capacity=20)
        p, s = ph(i64), ph(tf.string)
        put = R.QueueEnqueueManyV2(handle=q, components=[p, s])
        one = R.QueueDequeueV2(handle=q, component_types=[i64, tf.string])
        many = R.QueueDequeueManyV2(handle=q, n=3, component_types=[i64, tf.string])
        pr = np.int64([5, 1, 9, -3, 7])
        return [t.step(target=put, feed={p: pr, s: np.array([b"a%d" % v for v in pr], object)}), t.step(list(one)), t.step(list(many)),
                t.step(target=put, feed={p: np.int64([2]), s: np.array([b"new"], object)}), t.step(list(one)), t.step(fl(q))]

    @t.case("FIFOQueue", "client classes: FIFOQueue with names")
    def _():
        q = tf1.FIFOQueue(5, [f32, i32], shapes=[[], [2]], names=["x", "y"])
        e = q.enqueue({"x": 1.5, "y": [3, 4]})
        d = q.dequeue()
        return [t.step(target=e), t.step(target=e), t.step([d["x"], d["y"]]), t.step(q.size())]

    # Staging areas and stacks.
    for dts in [(f32,), (i32, tf.string)]:
        @t.case("Stage", "stage, size, peek, unstage, clear; " + ", ".join(d.name for d in dts))
        def _():
            xs = [ph(d) for d in dts]
            at = dict(capacity=4, shared_name="area")
            put = R.Stage(values=xs, **at)
            get = R.Unstage(dtypes=list(dts), **at)
            size, clear = R.StageSize(dtypes=list(dts), **at), R.StageClear(dtypes=list(dts), **at)
            peek = R.StagePeek(index=1, dtypes=list(dts), **at)
            val = lambda d: t.words(2) if d == tf.string else (t.normal(3) * 9).astype(d.as_numpy_dtype)
            put3 = [t.step(target=put, feed={x: val(d) for x, d in zip(xs, dts)}) for _ in range(3)]
            return put3 + [t.step(size), t.step(list(peek)), t.step(list(get)), t.step(list(get)), t.step(size), t.step(target=clear), t.step(size)]

    @t.case("Unstage", "unstage waits for the stage of the same step (software pipeline)")
    def _():
        x = ph(f32, [2])
        put, get = R.Stage(values=[x], shared_name="a"), R.Unstage(dtypes=[f32], shared_name="a")
        return [t.step(get[0] * 2.0, {x: t.normal(2)}, target=put) for _ in range(3)]

    @t.case("MapStage", "keys, partial values")
    def _():
        k, x = ph(i64, []), ph(f32)
        put = R.MapStage(key=k, indices=[0], values=[x], dtypes=[f32], shared_name="map")
        get = R.MapUnstage(key=k, indices=[0], dtypes=[f32], shared_name="map")
        n = R.MapSize(dtypes=[f32], shared_name="map")
        return [t.step(target=put, feed={k: 3, x: t.normal(2)}), t.step(target=put, feed={k: 1, x: t.normal(1)}), t.step(n), t.step(get, {k: 1}), t.step(n)]

    for dt in (f32, tf.string):
        @t.case("StackV2", "push, pop, close, %s" % dt.name)
        def _():
            x = ph(dt)
            h = R.StackV2(max_size=-1, elem_type=dt, stack_name="st")
            a = R.StackPushV2(handle=h, elem=x[0])
            with tf.control_dependencies([a]):
                b = R.StackPushV2(handle=h, elem=x[1:])
            with tf.control_dependencies([b]):
                p = R.StackPopV2(handle=h, elem_type=dt)
            with tf.control_dependencies([p]):
                r = R.StackPopV2(handle=h, elem_type=dt)
            with tf.control_dependencies([r]):
                c = R.StackCloseV2(handle=h)
                e = R.StackPopV2(handle=h, elem_type=dt)
            v = t.words(3) if dt == tf.string else (t.normal(3) * 3).astype(dt.as_numpy_dtype)
            return [t.step([a, b, p, r], {x: v}), t.step([r], {x: v}, target=c), t.step(e, {x: v}), t.step(p, {x: v})]

    @t.case("StackPushV2", "error: max_size")
    def _():
        h = R.StackV2(max_size=1, elem_type=f32)
        a = R.StackPushV2(handle=h, elem=1.0)
        with tf.control_dependencies([a]):
            b = R.StackPushV2(handle=h, elem=2.0)
        return [t.step(a), t.step(b), t.step(a)]


# --------------------------------------------------------------------------
def tables(t):
    ph = tf1.placeholder
    kinds = [(tf.string, i64), (i64, f32), (i64, tf.string), (i32, i32)]
    for kt, vt in kinds:
        def keys(n):
            return np.array([b"key%d" % (7 * i) for i in range(n)], object) if kt == tf.string else (np.arange(n) * 7 - 5).astype(kt.as_numpy_dtype)

        def vals(n, *more):
            return t.words(int(n * np.prod(more))).reshape((n,) + more) if vt == tf.string else (t.normal(n, *more) * 50).astype(vt.as_numpy_dtype)
        default = b"?" if vt == tf.string else vt.as_numpy_dtype(-1)
        absent = np.array([b"nokey"], object) if kt == tf.string else np.array([999], kt.as_numpy_dtype)

        @t.case("HashTableV2", "find before and after initialisation, size, %s to %s" % (kt.name, vt.name))
        def _():
            h = R.HashTableV2(key_dtype=kt, value_dtype=vt)
            k, v, q = ph(kt), ph(vt), ph(kt)
            ini = R.InitializeTableV2(table_handle=h, keys=k, values=v)
            find = R.LookupTableFindV2(table_handle=h, keys=q, default_value=tf.constant(default, vt))
            n = R.LookupTableSizeV2(table_handle=h)
            some = np.concatenate([keys(4)[::2], absent])
            data = {k: keys(4), v: vals(4)}
            return [t.step(find, {q: some}), t.step(target=ini, feed=data), t.step([find, n], {q: some}),
                    t.step(find, {q: np.stack([some, some[::-1]])}), t.step(target=ini, feed=data), t.step(find, {q: some[:0]})]

        @t.case("HashTableV2", "duplicate keys with different values, %s to %s" % (kt.name, vt.name))
        def _():
            h = R.HashTableV2(key_dtype=kt, value_dtype=vt, use_node_name_sharing=True)
            k, v = ph(kt), ph(vt)
            ini = R.InitializeTableV2(table_handle=h, keys=k, values=v)
            kk = keys(3)
            kk[2] = kk[0]
            return [t.step(target=ini, feed={k: kk, v: vals(3)}), t.step(target=ini, feed={k: keys(3), v: vals(2)})]

        if kt == i32:
            continue

        @t.case("MutableHashTableV2", "insert, find, overwrite, remove, export, import, %s to %s" % (kt.name, vt.name))
        def _():
            h = R.MutableHashTableV2(key_dtype=kt, value_dtype=vt, shared_name="tab")
            k, v, q = ph(kt), ph(vt), ph(kt)
            put = R.LookupTableInsertV2(table_handle=h, keys=k, values=v)
            imp = R.LookupTableImportV2(table_handle=h, keys=k, values=v)
            rem = R.LookupTableRemoveV2(table_handle=h, keys=q)
            find = R.LookupTableFindV2(table_handle=h, keys=q, default_value=tf.constant(default, vt))
            n = R.LookupTableSizeV2(table_handle=h)
            ek, ev = R.LookupTableExportV2(table_handle=h, Tkeys=kt, Tvalues=vt)
            some = np.concatenate([keys(4), absent])
            last = keys(2)[1:]
            steps = [t.step(n), t.step(find, {q: some}), t.step(target=put, feed={k: keys(4), v: vals(4)}), t.step([find, n], {q: some}),
                     t.step(target=put, feed={k: last, v: vals(1)}), t.step(find, {q: some}), t.step(target=rem, feed={q: some[2:]}),
                     t.step([find, n], {q: some}), t.step([ek, ev], compare="shape"),
                     t.step(target=imp, feed={k: keys(1), v: vals(1)}), t.step([n, find], {q: some}), t.step([ek, ev])]
            if kt != tf.string:
                order = tf.argsort(ek)
                steps += [t.step(target=put, feed={k: keys(5), v: vals(5)}), t.step([tf.gather(ek, order), tf.gather(ev, order)])]
            return steps + [t.step(target=put, feed={k: keys(3), v: vals(2)})]

        @t.case("MutableHashTableOfTensorsV2", "vector values, %s to %s" % (kt.name, vt.name))
        def _():
            h = R.MutableHashTableOfTensorsV2(key_dtype=kt, value_dtype=vt, value_shape=[2])
            k, v, q = ph(kt), ph(vt), ph(kt)
            put = R.LookupTableInsertV2(table_handle=h, keys=k, values=v)
            find = R.LookupTableFindV2(table_handle=h, keys=q, default_value=tf.constant([default, default], vt))
            return [t.step(target=put, feed={k: keys(3), v: vals(3, 2)}), t.step([find, R.LookupTableSizeV2(table_handle=h)], {q: np.concatenate([keys(2), absent])}),
                    t.step(target=put, feed={k: keys(3), v: vals(3, 3)})]

    @t.case("MutableDenseHashTableV2", "empty and deleted keys")
    def _():
        h = R.MutableDenseHashTableV2(empty_key=tf.constant(-1, i64), deleted_key=tf.constant(-2, i64), value_dtype=f32, initial_num_buckets=8)
        k, v = ph(i64), ph(f32)
        put, rem = R.LookupTableInsertV2(table_handle=h, keys=k, values=v), R.LookupTableRemoveV2(table_handle=h, keys=k)
        find = R.LookupTableFindV2(table_handle=h, keys=k, default_value=-1.0)
        n = R.LookupTableSizeV2(table_handle=h)
        kk = np.arange(9, dtype=np.int64) * 3
        return [t.step(target=put, feed={k: kk, v: t.normal(len(kk))}), t.step([find, n], {k: kk[::-1] + 3}), t.step(target=rem, feed={k: kk[:4]}),
                t.step([n, find], {k: kk}), t.step(target=put, feed={k: np.int64([-1]), v: t.normal(1)})]

    @t.case("HashTableV2", "client classes: static vocabulary table with out-of-vocabulary buckets")
    def _():
        x = ph(tf.string)
        ini = tf.lookup.KeyValueTensorInitializer(tf.constant(["ant", "bee", "cat"]), tf.constant([0, 1, 2], i64))
        tab = tf.lookup.StaticVocabularyTable(ini, 3)
        st = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2], i64), tf.constant(["one", "two"])), "none")
        r = st.lookup(tf.constant([2, 5], i64))
        return [t.step(target=tf1.tables_initializer()), t.step([tab.lookup(x), r], {x: np.array([b"cat", b"dog", b"", b"ant", b"zebra"], object)})]

    @t.case("HashTableV2", "two handles of one shared_name; wrong types in a find")
    def _():
        a, b = [R.HashTableV2(key_dtype=i64, value_dtype=i64, shared_name="one") for _ in range(2)]
        ini = R.InitializeTableV2(table_handle=a, keys=tf.constant([1, 2], i64), values=tf.constant([10, 20], i64))
        f = R.LookupTableFindV2(table_handle=b, keys=tf.constant([2, 3], i64), default_value=tf.constant(-1, i64))
        return [t.step(f), t.step(target=ini), t.step(f), t.step([R.LookupTableSizeV2(table_handle=b)])]

    @t.case("InitializeTableFromTextFileV2", "needs scratch dir: a vocabulary file is missing", strip=False)
    def _():
        p = ph(tf.string, [])
        h = R.HashTableV2(key_dtype=tf.string, value_dtype=i64)
        ini = R.InitializeTableFromTextFileV2(table_handle=h, filename=p, key_index=-2, value_index=-1, vocab_size=-1)
        w = R.WriteFile(filename=p, contents="apple\npear\nplum\n")
        f = R.LookupTableFindV2(table_handle=h, keys=tf.constant(["plum", "fig"]), default_value=tf.constant(-1, i64))
        v = np.array(SCRATCH + b"/vocab.txt", object)
        return [t.step(target=ini, feed={p: v}), t.step(target=w, feed={p: v}), t.step(target=ini, feed={p: v}), t.step([f, R.LookupTableSizeV2(table_handle=h)])]


# --------------------------------------------------------------------------
def datasets(t):
    D = tf.data.Dataset

    def run(op, note, make, extra=2, compare="values", twice=True, one_shot=False, **kw):
        @t.case(op, note, **kw)
        def _():
            feeds = {}
            ds = make(feeds)
            it = tf1.data.make_one_shot_iterator(ds) if one_shot else tf1.data.make_initializable_iterator(ds)
            nxt = tf.nest.flatten(it.get_next())
            if one_shot:
                return [t.step(nxt, compare=compare) for _ in range(extra)]
            steps = [t.step(nxt)] + [t.step(target=it.initializer, feed=feeds)] + [t.step(nxt, compare=compare) for _ in range(extra)]
            return steps + ([t.step(target=it.initializer, feed=feeds), t.step(nxt, compare=compare)] if twice else [])

    rows = 4

    def fed(feeds, dt, val):
        x = tf1.placeholder(dt, np.shape(val))
        feeds[x.name] = val
        return x
    run("TensorSliceDataset", "one component", lambda f: D.from_tensor_slices(t.normal(rows, 2)), rows + 2)
    run("TensorSliceDataset", "three components of different types", lambda f: D.from_tensor_slices(
        (t.normal(3, 2), t.words(3), np.arange(3))), 5)
    run("TensorSliceDataset", "fed components", lambda f: D.from_tensor_slices(fed(f, f32, t.normal(3, 2))), 4)
    run("TensorDataset", "one element", lambda f: D.from_tensors((t.normal(2, 2), np.int64(3))), 2)
    for a in [(5,), (2, 11, 3), (5, 0, -2), (3, 3)]:
        run("RangeDataset", "range%r" % (a,), lambda f: D.range(*a), 6)
    for n, k, drop in [(7, 3, False), (7, 3, True), (4, 4, True)]:
        run("BatchDatasetV2", "%d by %d, drop_remainder=%s" % (n, k, drop), lambda f: D.range(n).batch(k, drop), 4)
    run("BatchDatasetV2", "rows of different shape", lambda f: D.range(1, 4).map(lambda i: tf.range(i)).batch(2), 3)
    run("PaddedBatchDataset", "padding", lambda f: D.range(1, 6).map(lambda i: tf.range(i)).padded_batch(
        2, padded_shapes=[None], padding_values=tf.constant(-1, i64)), 4)
    run("MapDataset", "arithmetic", lambda f: D.range(5).map(lambda i: (i * 2, tf.cast(i, f32) + 0.5)), 6)
    run("MapDataset", "captured inputs and strings", lambda f: (lambda c: D.from_tensor_slices(t.words(3)).map(
        lambda s: tf1.strings.join([s, tf1.as_string(c)], "|")))(tf.constant(7)), 4)
    run("MapDataset", "an element fails, the next works", lambda f: D.range(4).map(
        lambda i: tf.debugging.check_numerics(tf.cast(6 // (i + 1), f32) / tf.cast(tf.abs(i - 1), f32), "x")), 5)
    run("ParallelMapDatasetV2", "two calls at once", lambda f: D.range(6).map(lambda i: i * i, num_parallel_calls=2), 7)
    run("FilterDataset", "predicate", lambda f: D.range(10).filter(lambda i: tf.equal(i % 3, 1)), 5)
    run("FlatMapDataset", "nested", lambda f: D.range(1, 4).flat_map(lambda i: D.range(i)), 7)
    run("InterleaveDataset", "cycle 2, block 2", lambda f: D.range(1, 5).interleave(
        lambda i: D.from_tensors(i).repeat(3), cycle_length=2, block_length=2), 13)
    run("RepeatDataset", "twice", lambda f: D.range(3).repeat(2), 7)
    run("RepeatDataset", "for ever, then take", lambda f: D.range(2).repeat().take(5), 6)
    run("TakeDataset", "take and skip", lambda f: D.range(10).skip(4).take(3), 4)
    run("ShuffleDataset", "fixed seed, shapes only", lambda f: D.range(6).shuffle(4, seed=5), 7, compare="shape")
    run("ShuffleDataset", "sorted in one batch", lambda f: D.range(8).shuffle(8, seed=3).batch(8).map(lambda v: tf.sort(v)), 2)
    run("PrefetchDataset", "prefetch 2", lambda f: D.range(4).prefetch(2), 5)
    run("ZipDataset", "zip, shorter wins", lambda f: D.zip((D.range(4), D.from_tensor_slices(t.words(3)))), 4)
    run("ZipDataset", "nested structure", lambda f: D.zip((D.range(3), (D.range(3, 6), D.from_tensors(1.0).repeat()))), 4)
    run("ConcatenateDataset", "two ranges", lambda f: D.range(2).concatenate(D.range(10, 12 + 0)), 6)
    run("CacheDatasetV2", "in memory, twice through", lambda f: D.range(3).map(lambda i: i + 1).cache().repeat(2), 7)
    run("ScanDataset", "running sum", lambda f: D.range(6).scan(tf.constant(0, i64), lambda s, i: (s + i, s + i)), 7)
    run("WindowDataset", "windows, batched", lambda f: D.range(7).window(3, 2).flat_map(lambda w: w.batch(3)), 5)
    run("TakeWhileDataset", "take while", lambda f: D.range(9).take_while(lambda i: i < 3), 5)
    run("SparseTensorSliceDataset", "enumerate and unbatch", lambda f: D.from_tensor_slices(t.normal(3, 2)).batch(2).unbatch().enumerate(5), 4)
    run("MapDataset", "a training input: shuffle off, map, batch, repeat, prefetch", lambda f: D.from_tensor_slices(
        (t.normal(6, 3), t.ints(0, 3, 6))).map(lambda x, y: (x * 2.0, tf.one_hot(y, 3))).batch(4).repeat(2).prefetch(1), 6)
    run("OneShotIterator", "range", lambda f: D.range(3), 5, one_shot=True)
    run("OneShotIterator", "slices, map, batch", lambda f: D.from_tensor_slices(np.arange(5, dtype=np.float32)).map(lambda v: v * 2.0).batch(2), 5, one_shot=True)

    @t.case("IteratorV2", "single ops, shared_name, a dataset of another type is refused")
    def _():
        sh = dict(output_types=[f32], output_shapes=[[2]])
        it = R.IteratorV2(shared_name="it", container="", **sh)
        a = R.MakeIterator(dataset=R.TensorSliceDataset(components=[t.normal(2, 2)], output_shapes=[[2]]), iterator=it)
        b = R.MakeIterator(dataset=R.TensorSliceDataset(components=[np.arange(4).reshape(2, 2)], output_shapes=[[2]]), iterator=it)
        n, s = R.IteratorGetNext(iterator=it, **sh), R.IteratorGetNextSync(iterator=it, **sh)
        return [t.step(n), t.step(target=a), t.step(n), t.step(target=b), t.step(s), t.step(n), t.step(target=a), t.step([n[0] * 2.0, n[0]])]

    @t.case("IteratorGetNextAsOptional", "has value, get value, end")
    def _():
        it = tf1.data.make_initializable_iterator(D.range(1))
        o = it.get_next_as_optional() if hasattr(it, "get_next_as_optional") else tf.data.experimental.get_next_as_optional(it)
        h = o.has_value()
        v = tf1.cond(h, lambda: o.get_value(), lambda: tf.constant(-1, i64))
        return [t.step(target=it.initializer)] + [t.step([h, v]) for _ in range(3)]

    @t.case("IteratorV2", "reinitialisable: one structure, two datasets")
    def _():
        a, b = D.range(3), D.range(10, 13).map(lambda i: i * 2)
        it = tf1.data.Iterator.from_structure(tf1.data.get_output_types(a), tf1.data.get_output_shapes(a))
        ia, ib, n = it.make_initializer(a), it.make_initializer(b), it.get_next()
        return [t.step(target=ia), t.step(n), t.step(target=ib), t.step(n), t.step(n), t.step(n), t.step(n), t.step(target=ia), t.step(n)]

    @t.case("ReduceDataset", "reduce to a value")
    def _():
        n = tf1.placeholder(i64, [])
        r = D.range(n).reduce(tf.constant(1, i64), lambda s, i: s * 2 + i)
        return [t.step(r, {n: k}) for k in (5, 0)]


# --------------------------------------------------------------------------
def strings(t):
    ph = tf1.placeholder
    obj = lambda *x: np.array([v if isinstance(v, bytes) else v.encode() for v in x], object)
    uni = obj("naïve", "日本語 text", "", "ÀÉ ß", "a\tb\n", "ẞ İ", "plain")
    asc = obj(*["hello world", "", "  pad  ", "A-b_C", "x"])

    def unary(op, values, note="", **kw):
        @t.case(op, note or ", ".join("%s=%r" % x for x in kw.items()))
        def _():
            x = ph(tf.string)
            out = getattr(R, op)(input=x, **kw)
            return [t.step(out, {x: values}), t.step(out, {x: values[:0]}), t.step(out, {x: values[0]}), t.step(out, {x: values[:4].reshape(2, 2)})]

    for enc in ("", "utf-8"):
        for op in ("StringLower", "StringUpper"):
            unary(op, uni if enc else asc, encoding=enc)
    for unit in ("BYTE", "UTF8_CHAR"):
        unary("StringLength", uni, unit=unit)
    unary("StringStrip", asc)
    unary("StringToHashBucketFast", np.concatenate([asc, uni]), num_buckets=10)
    unary("StringToHashBucketStrong", np.concatenate([asc, uni]), num_buckets=64, key=[1, 2])

    @t.case("StringToHashBucket", "first version")
    def _():
        x = ph(tf.string)
        return t.step(R.StringToHashBucket(string_tensor=x, num_buckets=50), {x: np.concatenate([asc, uni])})

    for sep in ("", ", "):
        @t.case("StringJoin", "separator %r, scalar broadcast" % sep)
        def _():
            a, b, c = ph(tf.string), ph(tf.string), ph(tf.string)
            r = R.StringJoin(inputs=[a, b, c], separator=sep)
            w = t.words(4).reshape(2, 2)
            return [t.step(r, {a: w, b: b"mid", c: w[::-1]}), t.step(r, {a: b"x", b: b"", c: b"z"}), t.step(r, {a: w, b: w[0], c: w})]

    for pat, rep, glob in [("[aeiou]", "*", True), ("(\\w+) (\\w+)", "\\2 \\1", False), ("^ +| +$", "", True), ("[", "x", True)]:
        @t.case("RegexReplace", "%r to %r, global %s" % (pat, rep, glob))
        def _():
            x, p, r = ph(tf.string), ph(tf.string, []), ph(tf.string, [])
            return [t.step(R.RegexReplace(input=x, pattern=p, rewrite=r, replace_global=glob), {x: asc, p: pat, r: rep})]

        @t.case("StaticRegexReplace", "%r to %r, global %s" % (pat, rep, glob))
        def _():
            x = ph(tf.string)
            return [t.step(R.StaticRegexReplace(input=x, pattern=pat, rewrite=rep, replace_global=glob), {x: uni})]

        @t.case("RegexFullMatch", "%r" % pat)
        def _():
            x, p = ph(tf.string), ph(tf.string, [])
            a = R.RegexFullMatch(input=x, pattern=p)
            b = R.StaticRegexFullMatch(input=x, pattern="[a-z ]*")
            return [t.step([a, b], {x: asc, p: pat}), t.step(a, {x: asc, p: ".*[a-z]"})]

    for unit in ("BYTE", "UTF8_CHAR"):
        @t.case("Substr", "unit %s, negative positions, out of range" % unit)
        def _():
            x, p, n = ph(tf.string), ph(i32), ph(i32)
            r = R.Substr(input=x, pos=p, len=n, unit=unit)
            w = obj("abcdef", "日本語テキスト", "xyz")
            return [t.step(r, {x: w, p: 1, n: 2}), t.step(r, {x: w, p: [0, 2, -3], n: [3, 100, 2]}), t.step(r, {x: w, p: -2, n: 5}),
                    t.step(r, {x: w, p: 50, n: 1}), t.step(r, {x: w, p: [1, 2], n: [1, 1]}), t.step(r, {x: w[:2].reshape(2, 1), p: [[0], [1]], n: [[1], [1]]})]

    for dt, good in [(f32, ["1.5", " -2e3 ", "inf", "nan", "0x10", ".5"]), (f64, ["3.141592653589793", "1e-310"]), (i32, ["12", "-2147483648", " 7"]), (i64, ["9223372036854775807", "0"])]:
        @t.case("StringToNumber", dt.name)
        def _():
            x = ph(tf.string)
            r = R.StringToNumber(string_tensor=x, out_type=dt)
            g = [v for v in good if v != "0x10"]
            return [t.step(r, {x: obj(*g)}), t.step(r, {x: obj("12", "abc")}), t.step(r, {x: obj("")}), t.step(r, {x: obj("99999999999999999999999")}), t.step(r, {x: obj(g[0])})]

    for dt, val, kw in [(f32, np.float32([1.5, -2.25, 1e10, np.inf, np.nan]), {}), (f32, np.float32([1.23456, -7]), dict(precision=2)), (i32, np.int32([5, -12]), dict(width=6, fill="0")),
             (f64, np.float64([1e-7, 123456.789]), dict(scientific=True)), (tf.bool, np.array([True, False]), {}), (f32, np.float32([0.1, 100]), dict(shortest=True)),
             (tf.complex64, np.complex64([1 + 2j]), {}), (i64, np.int64([7]), dict(width=4, fill="-")), (f32, np.float32([1]), dict(width=3, fill="ab"))]:
        @t.case("AsString", "%s %s" % (dt.name, kw))
        def _():
            x = ph(dt)
            return t.step(R.AsString(input=x, **kw), {x: val})

    for axes, keep, sep in [([0], False, ""), ([1], True, "-"), ([0, 1], False, ","), ([], False, ""), ([-1], False, "|")]:
        @t.case("ReduceJoin", "axes %s keep_dims %s separator %r" % (axes, keep, sep))
        def _():
            x, a = ph(tf.string), ph(i32, [None])
            return [t.step(R.ReduceJoin(inputs=x, reduction_indices=a, keep_dims=keep, separator=sep), {x: t.words(6).reshape(2, 3), a: axes})]

    @t.case("UnsortedSegmentJoin", "segments")
    def _():
        x, s = ph(tf.string), ph(i32)
        return t.step(R.UnsortedSegmentJoin(inputs=x, segment_ids=s, num_segments=4, separator="/"), {x: t.words(5), s: [2, 0, 2, 3, 0]})

    for delim, skip in [(" ", True), ("", True), (",;", False)]:
        @t.case("StringSplit", "delimiter %r skip_empty %s" % (delim, skip))
        def _():
            x = ph(tf.string, [None])
            return [t.step(list(R.StringSplit(input=x, delimiter=delim, skip_empty=skip)), {x: np.concatenate([asc, obj("a,b;;c", "日 本")])}),
                    t.step(list(R.StringSplit(input=x, delimiter=delim, skip_empty=skip)), {x: obj()})]
    for sep, mx in [("", -1), (" ", -1), ("--", 1)]:
        @t.case("StringSplitV2", "separator %r maxsplit %d" % (sep, mx))
        def _():
            x = ph(tf.string, [None])
            return [t.step(list(R.StringSplitV2(input=x, sep=sep, maxsplit=mx)), {x: np.concatenate([asc, obj("a--b--c", " lead  two ", "p,q,,r")])})]

    @t.case("StringFormat", "tensors in a template, summarised")
    def _():
        a, b = ph(f32), ph(tf.string)
        r = R.StringFormat(inputs=[a, b], template="a={} b={}!", placeholder="{}", summarize=2)
        return [t.step(r, {a: np.float32([1, 2.5, 3, 4, 5, 6, 7, 8]), b: obj("x", "y")}), t.step(r, {a: np.float32([[1, 2], [3, 4]]), b: b"scalar"})]

    for pad in (True, False):
        @t.case("EncodeBase64", "pad %s, and back; bad input" % pad)
        def _():
            x = ph(tf.string)
            e = R.EncodeBase64(input=x, pad=pad)
            w = np.array([bytes(t.ints(0, 256, n).astype(np.uint8)) for n in range(7)], object)
            y = ph(tf.string)
            return [t.step([e, R.DecodeBase64(input=e)], {x: w}), t.step(R.DecodeBase64(input=y), {y: obj("_-8", "YWI=")}), t.step(R.DecodeBase64(input=y), {y: obj("a*b")}),
                    t.step(R.DecodeBase64(input=y), {y: obj("abcde")})]

    for dt in (tf.uint8, tf.int16, f32, i64):
        for little in (True, False):
            @t.case("DecodeRaw", "%s little_endian %s" % (dt.name, little))
            def _():
                x = ph(tf.string)
                r = R.DecodeRaw(bytes=x, out_type=dt, little_endian=little)
                n = dt.size
                w = np.array([(np.arange(3 * n) + 1).astype(np.uint8).tobytes(), np.zeros(3 * n, np.uint8).tobytes()], object)
                return [t.step(r, {x: w}), t.step(r, {x: w[0]}), t.step(r, {x: np.array([w[0], w[1][:n]], object)}), t.step(r, {x: obj("abc")} if n > 1 else {x: obj("abc", "d")})]

    @t.case("DecodePaddedRaw", "fixed length")
    def _():
        x = ph(tf.string)
        return t.step(R.DecodePaddedRaw(input_bytes=x, fixed_length=4, out_type=tf.uint16), {x: obj("ab", "abcdefghij", "")})

    for delim, quote, na in [(",", True, ""), ("\t", True, "NA")]:
        @t.case("DecodeCSV", "delimiter %r quotes %s na %r" % (delim, quote, na))
        def _():
            x = ph(tf.string)
            r = R.DecodeCSV(records=x, record_defaults=[tf.constant([1.5]), tf.constant([7], i64), tf.constant(["d"]), tf.constant([], i32)],
                            field_delim=delim, use_quote_delim=quote, na_value=na)
            j = lambda *a: delim.join(a)
            return [t.step(list(r), {x: obj(j("1", "2", "abc", "4"), j("", na or "3", '"q ""x"""' if quote else "plain", "5"))}), t.step(list(r), {x: obj(j("1", "2", "x", ""))}),
                    t.step(list(r), {x: obj(j("1", "2"))}), t.step(list(r), {x: obj(j("1", "x", "x", "1"))}), t.step(r[2], {x: obj(j("1.25", "-3", "", "0"))})]

    for dt in (f32, tf.string, tf.bool):
        @t.case("SerializeTensor", "and ParseTensor, %s" % dt.name)
        def _():
            x = ph(dt)
            v = t.words(4).reshape(2, 2) if dt == tf.string else (t.normal(2, 3) * 9).astype(dt.as_numpy_dtype)
            s = R.SerializeTensor(tensor=x)
            y = ph(tf.string, [])
            p = R.ParseTensor(serialized=y, out_type=dt)
            return [t.step(R.ParseTensor(serialized=s, out_type=dt), {x: v}), t.step(p, {y: tf1.make_tensor_proto(v, dt).SerializeToString()}),
                    t.step(p, {y: b"\xff\xffnot a proto"}), t.step(p, {y: tf1.make_tensor_proto(1, tf.uint16).SerializeToString()})]

    @t.case("UnicodeDecode", "code points and offsets")
    def _():
        x = ph(tf.string, [None])
        r = R.UnicodeDecodeWithOffsets(input=x, input_encoding="UTF-8", errors="replace")
        return t.step(list(r), {x: np.concatenate([uni, obj(b"bad \xff\xc3 x")])})

    @t.case("StringNGrams", "of ragged rows")
    def _():
        x = ph(tf.string, [None])
        r = R.StringNGrams(data=x, data_splits=np.int64([0, 3, 4, 4, 7]), separator=" ", ngram_widths=[2], left_pad="<", right_pad=">", pad_width=1, preserve_short_sequences=False)
        return t.step(list(r), {x: obj(*"abcdefg")})

    # Examples.
    def example(**kw):
        ex = tf.train.Example()
        for k, v in kw.items():
            f = ex.features.feature[k]
            v = list(v)
            if v and isinstance(v[0], float):
                f.float_list.value.extend(v)
            elif v and isinstance(v[0], (bytes, str)):
                f.bytes_list.value.extend([x if isinstance(x, bytes) else x.encode() for x in v])
            else:
                f.int64_list.value.extend([int(x) for x in v])
        return ex.SerializeToString()
    exs = obj(example(a=[1.5, 2.5], b=[3], s=["x", "y"], v=[9, 8, 7]), example(a=[0.5, -1.0], b=[4], s=["z"]),
              example(a=[7.0, 8.0], s=["p", "q", "r"], v=[1]))
    lacking = obj(example(b=[4]))
    shapes = dict(a=tf1.FixedLenFeature([2], f32), b=tf1.FixedLenFeature([], i64, default_value=(-1)), s=tf1.VarLenFeature(tf.string), v=tf1.VarLenFeature(i64))

    @t.case("ParseExampleV2", "dense with default, sparse")
    def _():
        x = ph(tf.string, [None])
        r = tf.nest.flatten(tf.io.parse_example(x, shapes), expand_composites=True)
        return [t.step(r, {x: exs}), t.step(r, {x: exs[1:2]}), t.step(r, {x: lacking}), t.step(r, {x: obj("garbage\xff")}), t.step(r, {x: exs[:0]})]

    @t.case("ParseExampleV2", "ragged, missing keys of a sequence feature, names in the error")
    def _():
        x = ph(tf.string, [None])
        r = tf.nest.flatten(tf.io.parse_example(x, dict(v=tf.io.RaggedFeature(i64), a=tf.io.FixedLenSequenceFeature([2], f32, allow_missing=True), s=tf.io.RaggedFeature(tf.string))), expand_composites=True)
        return [t.step(r, {x: exs}), t.step(r, {x: lacking})]

    @t.case("ParseExample", "first version of the op")
    def _():
        x = ph(tf.string, [None])
        r = R.ParseExample(serialized=x, names=tf.constant([], tf.string), sparse_keys=["s", "v"], dense_keys=["a", "b"], dense_defaults=[tf.constant([], f32), tf.constant([5], i64)],
                           sparse_types=[tf.string, i64], dense_shapes=[[2], [1]])
        return [t.step(tf.nest.flatten(list(r)), {x: exs}), t.step(tf.nest.flatten(list(r)), {x: lacking})]

    @t.case("ParseSingleExample", "one example")
    def _():
        x = ph(tf.string, [])
        r = tf.nest.flatten(tf.io.parse_single_example(x, shapes), expand_composites=True)
        return [t.step(r, {x: exs[0]}), t.step(r, {x: exs[2]}), t.step(r, {x: lacking[0]}), t.step(r, {x: example(a=[1.0, 2.0], b=["wrong type"])})]

    @t.case("ParseSequenceExample", "context and feature lists")
    def _():
        x = ph(tf.string, [])
        se = tf.train.SequenceExample()
        se.context.feature["id"].int64_list.value.append(5)
        for k in range(3):
            se.feature_lists.feature_list["f"].feature.add().float_list.value.extend([k + 0.5, k - 0.5])
        c, s = tf1.io.parse_single_sequence_example(x, dict(id=tf1.FixedLenFeature([], i64)), dict(f=tf1.FixedLenSequenceFeature([2], f32)))
        return [t.step([c["id"], s["f"]], {x: se.SerializeToString()}), t.step([c["id"]], {x: b"\x0a\xff"})]

    for op, val in [("SerializeSparse", None)]:
        @t.case(op, "and DeserializeSparse, SerializeManySparse and DeserializeManySparse")
        def _():
            i, v, s = ph(i64, [None, 2]), ph(f32, [None]), ph(i64, [2])
            a = R.SerializeSparse(sparse_indices=i, sparse_values=v, sparse_shape=s, out_type=tf.string)
            r = R.DeserializeSparse(serialized_sparse=tf.expand_dims(a, 0), dtype=f32)
            m = R.DeserializeManySparse(serialized_sparse=R.SerializeManySparse(sparse_indices=i, sparse_values=v, sparse_shape=s, out_type=tf.string), dtype=f32)
            return t.step(list(r) + list(m), {i: [[0, 1], [2, 0]], v: t.normal(2), s: [3, 4]})


# --------------------------------------------------------------------------
def _gif(frames, palette):
    """A GIF whose LZW stream only has literals, with a clear code before the table grows."""
    h, w = frames[0].shape
    out = b"GIF89a" + struct.pack("<HHBBB", w, h, 0xF1, 0, 0) + bytes(palette)
    for f in frames:
        bits, n, since = 0, 0, 0
        codes = [4]
        for px in f.ravel():
            if since == 2:
                codes.append(4)
                since = 0
            codes.append(int(px))
            since += 1
        codes.append(5)
        for c in codes:
            bits |= c << n
            n += 3
        data = bits.to_bytes((n + 7) // 8, "little")
        out += b"," + struct.pack("<HHHHB", 0, 0, w, h, 0) + b"\x02"
        for i in range(0, len(data), 255):
            out += bytes([len(data[i:i + 255])]) + data[i:i + 255]
        out += b"\0"
    return out + b";"


def _bmp(img, flip=False):
    h, w, c = img.shape
    row = (w * c + 3) // 4 * 4
    rows = img if flip else img[::-1]
    px = b"".join(r[:, ([2, 1, 0] + [3][:c - 3])[:c]].tobytes().ljust(row, b"\0") for r in rows)
    return b"BM" + struct.pack("<IHHI", 54 + len(px), 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, w, -h if flip else h, 1, 8 * c, 0, len(px), 2835, 2835, 0, 0) + px


def codecs(t):
    ph = tf1.placeholder

    def evaluate(fn):
        with tf.Graph().as_default(), tf1.Session() as s:
            return s.run(fn())
    h, w = (5, 7)
    smooth = lambda c: np.clip(np.add.outer(np.arange(16)[:, None] * 9, np.arange(24)[:, None] * 5).reshape(16, 24, 1) + np.arange(c) * 30, 0, 255).astype(np.uint8)

    for c in (1, 2, 3, 4):
        for dt in (tf.uint8, tf.uint16):
            @t.case("DecodePng", "%d channels, %s; to other channel counts" % (c, dt.name))
            def _():
                img = t.ints(0, 256 if dt == tf.uint8 else 65536, h, w, c).astype(dt.as_numpy_dtype)
                png = evaluate(lambda: R.EncodePng(image=tf.constant(img)))
                x = ph(tf.string, [])
                outs = [R.DecodePng(contents=x, channels=k, dtype=dt) for k in ((0, 1, 3, 4) if c != 2 else (0,))]
                return [t.step(outs, {x: png}), t.step(outs[0], {x: png[:30]}), t.step(outs[0], {x: b""})]

            @t.case("EncodePng", "%d channels, %s, decoded again in the graph" % (c, dt.name))
            def _():
                x = ph(dt, [None, None, None])
                e = R.EncodePng(image=x, compression=(-1))
                return [t.step(R.DecodePng(contents=e, dtype=dt), {x: t.ints(0, 256, h, w, c).astype(dt.as_numpy_dtype)}), t.step(e, {x: np.zeros((2, 2, 5), dt.as_numpy_dtype)})]

    for c, q in [(3, 90), (1, 75), (3, 30)]:
        @t.case("DecodeJpeg", "%d channels, quality %d" % (c, q), int_atol=2)
        def _():
            jpg = evaluate(lambda: R.EncodeJpeg(image=tf.constant(smooth(c)), quality=q, chroma_downsampling=False))
            x = ph(tf.string, [])
            outs = [R.DecodeJpeg(contents=x, dct_method="INTEGER_ACCURATE", **kw) for kw in (dict(), dict(channels=1), dict(channels=3), dict(fancy_upscaling=False))]
            shp = R.ExtractJpegShape(contents=x)
            return [t.step(outs + [shp], {x: jpg}), t.step(outs[0], {x: b"\xff\xd8\xffnot a jpeg"})]

        @t.case("DecodeJpeg", "ratio 2, %d channels" % c, int_atol=3)
        def _():
            jpg = evaluate(lambda: R.EncodeJpeg(image=tf.constant(smooth(c)), quality=q))
            x = ph(tf.string, [])
            return t.step(R.DecodeJpeg(contents=x, ratio=2, dct_method="INTEGER_ACCURATE"), {x: jpg})

    @t.case("EncodeJpeg", "decoded again in the graph; size of the result only", int_atol=4)
    def _():
        x = ph(tf.uint8, [None, None, 3])
        e = R.EncodeJpeg(image=x, quality=95, chroma_downsampling=False)
        return [t.step(R.DecodeJpeg(contents=e, dct_method="INTEGER_ACCURATE"), {x: smooth(3)}), t.step(e, {x: smooth(3)}, compare="shape")]

    for c in (3, 4):
        for flip in (False, True):
            @t.case("DecodeBmp", "%d channels, %s" % (c, "top down" if flip else "bottom up"))
            def _():
                x = ph(tf.string, [])
                b = _bmp(t.ints(0, 256, h, w, c).astype(np.uint8), flip)
                return [t.step(R.DecodeBmp(contents=x), {x: b}), t.step(R.DecodeBmp(contents=x, channels=c), {x: b}), t.step(R.DecodeBmp(contents=x), {x: b[:20]}), t.step(R.DecodeBmp(contents=x), {x: b"XX" + b[2:]})]

    for n in (1, 3):
        @t.case("DecodeGif", "%d frames" % n)
        def _():
            x = ph(tf.string, [])
            g = _gif([t.ints(0, 4, h, w) for _ in range(n)], t.ints(0, 256, 12).tolist())
            return [t.step(R.DecodeGif(contents=x), {x: g}), t.step(R.DecodeGif(contents=x), {x: g[:14]})]

    @t.case("DecodeImage", "PNG, BMP, GIF, JPEG; type and animation", int_atol=2)
    def _():
        x = ph(tf.string, [])
        img = t.ints(0, 256, h, w, 3).astype(np.uint8)
        png = evaluate(lambda: R.EncodePng(image=tf.constant(img)))
        jpg = evaluate(lambda: R.EncodeJpeg(image=tf.constant(smooth(3))))
        gif = _gif([t.ints(0, 4, h, w) for _ in range(2)], t.ints(0, 256, 12).tolist())
        a = R.DecodeImage(contents=x, channels=3)
        b = R.DecodeImage(contents=x, channels=3, dtype=f32, expand_animations=False)
        return [t.step(a, {x: v}) for v in (png, _bmp(img), gif, jpg, b"nothing")] + [t.step(b, {x: v}) for v in (png, gif)]

    for ch, rate in [(1, 16000), (2, 8000)]:
        @t.case("DecodeWav", "%d channels, %d Hz; fewer and more samples asked" % (ch, rate))
        def _():
            n = 20
            pcm = t.ints(-32768, 32767, n, ch, dtype=np.int16)
            wav = b"RIFF" + struct.pack("<I", 36 + pcm.nbytes) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, ch, rate, rate * 2 * ch, 2 * ch, 16) + b"data" + struct.pack("<I", pcm.nbytes) + pcm.tobytes()
            x = ph(tf.string, [])
            outs = []
            for kw in (dict(), dict(desired_channels=1), dict(desired_channels=2, desired_samples=n + 5), dict(desired_samples=n - 7)):
                outs += list(R.DecodeWav(contents=x, **kw))
            return [t.step(outs, {x: wav}), t.step(outs[0], {x: wav[:40]}), t.step(outs[0], {x: b"RIFX" + wav[4:]})]

        @t.case("EncodeWav", "%d channels, %d Hz, exact bytes, values beyond the range" % (ch, rate))
        def _():
            x, r = ph(f32, [None, None]), ph(i32, [])
            e = R.EncodeWav(audio=x, sample_rate=r)
            a = t.normal(12, ch) * 0.6
            return [t.step([e, R.DecodeWav(contents=e)[0]], {x: a, r: rate}), t.step(e, {x: np.float32([[1.5] * ch, [-1.5] * ch]), r: rate})]

    @t.case("DecodeCompressed", "GZIP and ZLIB")
    def _():
        import gzip
        import zlib
        x = ph(tf.string)
        raw = b"tensor " * 20
        z, g = R.DecodeCompressed(bytes=x, compression_type="ZLIB"), R.DecodeCompressed(bytes=x, compression_type="GZIP")
        return [t.step(z, {x: np.array([zlib.compress(raw), zlib.compress(b"")], object)}), t.step(g, {x: np.array([gzip.compress(raw, mtime=0)], object)}),
                t.step(z, {x: np.array([b"not compressed"], object)})]


# --------------------------------------------------------------------------
def checkpoints(t):
    ph = tf1.placeholder
    scratch = "needs scratch dir: "
    at = lambda name: np.array(SCRATCH + b"/" + name, object)

    def names(*x):
        return tf.constant([v.encode() for v in x])
    mix = [(f32, (2, 3)), (i64, (4,)), (tf.string, (3,)), (tf.bool, (2,))]

    def value(d, s):
        return t.words(int(np.prod(s))).reshape(s) if d == tf.string else (np.asarray(t.normal(*s)) * 9).astype(d.as_numpy_dtype)

    @t.case("SaveV2", scratch + "many types, RestoreV2 in another order, then a missing name")
    def _():
        p, xs = ph(tf.string, []), [ph(d, s) for d, s in mix]
        keys = ["w/%d/%s" % (i, d.name) for i, (d, _) in enumerate(mix)]
        sv = R.SaveV2(prefix=p, tensor_names=names(*keys), shape_and_slices=names(*[""] * len(keys)), tensors=xs)
        rs = R.RestoreV2(prefix=p, tensor_names=names(*keys[::-1]), shape_and_slices=names(*[""] * len(keys)), dtypes=[d for d, _ in mix[::-1]])
        miss = R.RestoreV2(prefix=p, tensor_names=names("absent"), shape_and_slices=names(""), dtypes=[f32])
        wrong = R.RestoreV2(prefix=p, tensor_names=names(keys[0]), shape_and_slices=names(""), dtypes=[i32])
        pp = {p: at(b"model")}
        return [t.step(list(rs), pp), t.step(target=sv, feed=pp | {x: value(*m) for x, m in zip(xs, mix)}), t.step(list(rs), pp), t.step(miss, pp), t.step(wrong, pp),
                t.step(target=sv, feed=pp | {x: value(*m) for x, m in zip(xs, mix)}), t.step(list(rs), pp)]

    @t.case("SaveV2", scratch + "slices of a partitioned variable, read whole and by slice")
    def _():
        p, a, b = ph(tf.string, []), ph(f32, [2, 3]), ph(f32, [2, 3])
        sv = R.SaveV2(prefix=p, tensor_names=names("v", "v"), shape_and_slices=names("4 3 0,2:0,3", "4 3 2,2:0,3"), tensors=[a, b])
        q = ph(tf.string, [1])
        r = lambda s: R.RestoreV2(prefix=p, tensor_names=names("v"), shape_and_slices=names(s), dtypes=[f32])[0]
        any_slice = R.RestoreV2(prefix=p, tensor_names=names("v"), shape_and_slices=q, dtypes=[f32])[0]
        pp = {p: at(b"dir/part")}
        return [t.step(target=sv, feed=pp | {a: t.normal(2, 3), b: t.normal(2, 3)}), t.step([r(""), r("4 3 1,2:0,3"), r("4 3 -:1,1")], pp), t.step(any_slice, pp | {q: ["4 3 3,2:0,3"]}), t.step(any_slice, pp | {q: ["4 3 1,1:1,2"]})]

    @t.case("MergeV2Checkpoints", scratch + "two shards made one, then restored")
    def _():
        p = ph(tf.string, [])
        shard = [R.ShardedFilename(basename=p, shard=k, num_shards=2) for k in range(2)]
        spec = R.ShardedFilespec(basename=p, num_shards=2)
        vals = [t.normal(3), t.ints(0, 9, 2, 2)]
        sv = [R.SaveV2(prefix=s, tensor_names=names("t%d" % k), shape_and_slices=names(""), tensors=[vals[k]]) for k, s in enumerate(shard)]
        with tf.control_dependencies(sv):
            m = R.MergeV2Checkpoints(checkpoint_prefixes=tf.stack(shard), destination_prefix=p, delete_old_dirs=True)
        rs = R.RestoreV2(prefix=p, tensor_names=names("t1", "t0"), shape_and_slices=names("", ""), dtypes=[i32, f32])
        pp = {p: at(b"ckpt")}
        return [t.step([spec] + shard, pp), t.step(target=m, feed=pp), t.step(list(rs), pp)]

    for resource in (False, True):
        for sharded in (False, True):
            @t.case("Saver", scratch + "a client's saver, %s variables%s" % ("resource" if resource else "reference", ", sharded" if sharded else ""))
            def _():
                a = tf1.get_variable("layer/w", initializer=t.normal(*(2, 2)), use_resource=resource)
                b = tf1.get_variable("step", initializer=np.int64(7), use_resource=resource)
                s = tf1.train.Saver([a, b], sharded=sharded).saver_def
                ups = [tf1.assign(a, a * 2.0).op, tf1.assign_add(b, 1).op]
                init = [a.initializer, b.initializer]
                rd = [tf1.identity(a), tf1.identity(b)]
                pp = {s.filename_tensor_name: at(b"model.ckpt")}
                return [t.step(target=s.restore_op_name, feed=pp), t.step(target=init), t.step(s.save_tensor_name, pp), t.step(target=ups), t.step(rd),
                        t.step(target=s.restore_op_name, feed=pp), t.step(rd)]

    @t.case("Save", scratch + "first version of the file format: Save, SaveSlices, Restore, RestoreSlice", strip=False)
    def _():
        p, x = ph(tf.string, []), ph(f32, [2, 2])
        sv = R.Save(filename=p, tensor_names=names("x", "y"), data=[x, x * 2.0])
        r = [R.Restore(file_pattern=p, tensor_name=n, dt=f32) for n in ("y", "x")]
        pp = {p: at(b"old.ckpt")}
        return [t.step(target=sv, feed=pp | {x: t.normal(2, 2)}), t.step(r, pp), t.step(R.Restore(file_pattern=p, tensor_name="no", dt=f32), pp)]

    @t.case("RestoreV2", scratch + "old file read by RestoreV2", strip=False)
    def _():
        p, x = ph(tf.string, []), ph(f32, [2])
        sv = R.Save(filename=p, tensor_names=names("x"), data=[x])
        r = R.RestoreV2(prefix=p, tensor_names=names("x"), shape_and_slices=names(""), dtypes=[f32])
        pp = {p: at(b"old.ckpt")}
        return [t.step(target=sv, feed=pp | {x: t.normal(2)}), t.step(r, pp)]

    @t.case("SaveV2", scratch + "no tensors, empty tensors, a long string")
    def _():
        p = ph(tf.string, [])
        sv = R.SaveV2(prefix=p, tensor_names=names("e", "s"), shape_and_slices=names("", ""), tensors=[tf.zeros([0, 3]), tf.constant([b"x" * 300, b""])])
        r = R.RestoreV2(prefix=p, tensor_names=names("s", "e"), shape_and_slices=names("", ""), dtypes=[tf.string, f32])
        pp = {p: at(b"m")}
        return [t.step(target=sv, feed=pp), t.step(list(r), pp)]


# --------------------------------------------------------------------------
def sparse(t):
    ph = tf1.placeholder
    for dt in (f32, i64):
        npdt = dt.as_numpy_dtype
        v = lambda n: (t.normal(n) * 9).astype(npdt)

        @t.case("SparseToDense", "indices of rank 0, 1, 2; out of order; out of range; " + dt.name)
        def _():
            i, s, x = ph(i64), ph(i64), ph(dt)
            r = R.SparseToDense(sparse_indices=i, output_shape=s, sparse_values=x, default_value=tf.constant(-1, dt))
            r2 = R.SparseToDense(sparse_indices=i, output_shape=s, sparse_values=x, default_value=tf.constant(0, dt), validate_indices=False)
            return [t.step(r, {i: [[0, 1], [1, 2]], s: [2, 3], x: v(2)}), t.step(r, {i: [1, 3], s: [5], x: v(2)}), t.step(r, {i: 2, s: [4], x: npdt(5)}),
                    t.step(r, {i: [3, 1], s: [5], x: v(2)}), t.step(r2, {i: [3, 1], s: [5], x: v(2)}), t.step(r, {i: [7], s: [5], x: v(1)}), t.step(r, {i: [1, 2], s: [4], x: npdt(8)})]

        @t.case("SparseReorder", dt.name)
        def _():
            i, x, s = ph(i64), ph(dt), ph(i64)
            return t.step(list(R.SparseReorder(input_indices=i, input_values=x, input_shape=s)), {i: [[1, 0], [0, 2], [0, 0]], x: v(3), s: [2, 3]})

        @t.case("SparseConcat", "along both axes, " + dt.name)
        def _():
            a, b, x, y = ph(i64, [None, 2]), ph(i64, [None, 2]), ph(dt, [None]), ph(dt, [None])
            outs = sum([list(R.SparseConcat(indices=[a, b], values=[x, y], shapes=[np.int64([2, 3])] * 2, concat_dim=k)) for k in (0, 1)], [])
            return t.step(outs, {a: [[0, 1], [1, 2]], b: [[0, 0]], x: v(2), y: v(1)})

        @t.case("SparseReduceSum", "and its sparse form, " + dt.name)
        def _():
            i, x = ph(i64, [None, 3]), ph(dt, [None])
            kw = dict(input_indices=i, input_values=x, input_shape=np.int64([2, 3, 2]))
            outs = [R.SparseReduceSum(reduction_axes=ax, keep_dims=k, **kw) for ax in ([0], [1, 2], [-1]) for k in (True, False)]
            return t.step(outs + list(R.SparseReduceSumSparse(reduction_axes=[1], **kw)) + [R.SparseReduceMax(reduction_axes=[1], **kw)], {i: [[0, 0, 1], [0, 2, 0], [1, 1, 1]], x: v(3)})

        @t.case("SparseAdd", "with threshold, " + dt.name)
        def _():
            a, b, x, y, th = ph(i64, [None, 2]), ph(i64, [None, 2]), ph(dt, [None]), ph(dt, [None]), ph(dt, [])
            r = R.SparseAdd(a_indices=a, a_values=x, a_shape=np.int64([3, 3]), b_indices=b, b_values=y, b_shape=np.int64([3, 3]), thresh=th)
            dn = R.SparseTensorDenseAdd(a_indices=a, a_values=x, a_shape=np.int64([3, 3]), b=tf.ones([3, 3], dt))
            f = {a: [[0, 1], [2, 2]], b: [[0, 1], [1, 0]], x: npdt([2, 5]), y: npdt([-2, 4])}
            return [t.step(list(r), f | {th: npdt(0)}), t.step(list(r), f | {th: npdt(3)}), t.step(dn, f)]

        for ta in (False, True):
            @t.case("SparseTensorDenseMatMul", "adjoint_a=%s, %s" % (ta, f64.name if dt == i64 else dt.name))
            def _(dt_=dt):
                dt, npdt = (f64, np.float64) if dt_ == i64 else (dt_, dt_.as_numpy_dtype)
                v = lambda n: (t.normal(n) * 9).astype(npdt)
                i, x, b = ph(i64, [None, 2]), ph(dt, [None]), ph(dt, [None, None])
                r = R.SparseTensorDenseMatMul(a_indices=i, a_values=x, a_shape=np.int64([3, 4]), b=b, adjoint_a=ta, adjoint_b=False)
                k = 3 if ta else 4
                bb = (t.normal(k, 2) * 4).astype(npdt)
                bb = bb.T.copy() if t.hidden else bb
                return [t.step(r, {i: [[0, 1], [2, 3], [2, 0]], x: v(3), b: bb}), t.step(r, {i: np.zeros((0, 2)), x: v(0), b: bb}), t.step(r, {i: [[5, 0]], x: v(1), b: bb})]

        @t.case("SparseSplit", "and SparseSlice, SparseReshape, " + dt.name)
        def _():
            i, x = ph(i64, [None, 2]), ph(dt, [None])
            s = np.int64([3, 4])
            outs = tf.nest.flatten(list(R.SparseSplit(split_dim=np.int64(1), indices=i, values=x, shape=s, num_split=2)))
            outs += list(R.SparseSlice(indices=i, values=x, shape=s, start=np.int64([1, 0]), size=np.int64([2, 3])))
            outs += list(R.SparseReshape(input_indices=i, input_shape=s, new_shape=np.int64([2, -1])))
            return t.step(outs, {i: [[0, 1], [1, 3], [2, 0]], x: v(3)})

        @t.case("SparseFillEmptyRows", "and SparseDenseCwiseMul, " + dt.name)
        def _():
            i, x = ph(i64, [None, 2]), ph(dt, [None])
            s = np.int64([4, 2])
            outs = list(R.SparseFillEmptyRows(indices=i, values=x, dense_shape=s, default_value=tf.constant(7, dt)))
            outs.append(R.SparseDenseCwiseMul(sp_indices=i, sp_values=x, sp_shape=s, dense=tf.constant([[2], [3], [4], [5]], dt)))
            return t.step(outs, {i: [[0, 1], [2, 0]], x: v(2)})

    @t.case("SparseSoftmax", "and SparseMaximum")
    def _():
        i, x = ph(i64, [None, 2]), ph(f32, [None])
        s = np.int64([2, 3])
        return t.step([R.SparseSoftmax(sp_indices=i, sp_values=x, sp_shape=s)] + list(R.SparseSparseMaximum(
            a_indices=i, a_values=x, a_shape=s, b_indices=np.int64([[0, 0], [1, 1]]), b_values=np.float32([0.5, 2]), b_shape=s)), {i: [[0, 0], [0, 2], [1, 1]], x: t.normal(3)})

    @t.case("SparseSegmentSum", "mean, sqrt_n and with empty segments")
    def _():
        x, i, s = ph(f32), ph(i32), ph(i32)
        outs = [getattr(R, "SparseSegment" + n)(data=x, indices=i, segment_ids=s) for n in ("Sum", "Mean", "SqrtN")]
        outs += [getattr(R, "SparseSegment" + n + "WithNumSegments")(data=x, indices=i, segment_ids=s, num_segments=5) for n in ("Sum", "Mean", "SqrtN")]
        return [t.step(outs, {x: t.normal(4, 2), i: [0, 3, 1], s: [0, 0, 2]}), t.step(outs[0], {x: t.normal(4, 2), i: [9], s: [0]})]


# --------------------------------------------------------------------------
def constants(t):
    P = tf1.make_tensor_proto

    def const(dt, note, proto):
        @t.case("Const", note)
        def _():
            g = tf1.get_default_graph()
            p = attr_value_pb2.AttrValue()
            p.tensor.CopyFrom(proto() if callable(proto) else proto)
            a = attr_value_pb2.AttrValue(type=dt.as_datatype_enum)
            o = g.create_op("Const", [], [dt], attrs={"value": p, "dtype": a}, name="value")
            return t.step([o.outputs[0], tf.shape(o.outputs[0])])

    def proto(dt, shape, **fields):
        p = tensor_pb2.TensorProto(dtype=dt.as_datatype_enum)
        for s in shape:
            p.tensor_shape.dim.add(size=s)
        for k, v in fields.items():
            if k == "tensor_content":
                p.tensor_content = v
            else:
                getattr(p, k).extend(v)
        return p
    field = {f32: "float_val", f64: "double_val", i32: "int_val", tf.int16: "int_val", tf.int8: "int_val", tf.uint8: "int_val", tf.uint16: "int_val", i64: "int64_val",
             tf.bool: "bool_val", tf.uint32: "uint32_val", tf.uint64: "uint64_val", tf.half: "half_val", tf.bfloat16: "half_val", tf.complex64: "scomplex_val", tf.complex128: "dcomplex_val",
             tf.qint8: "int_val", tf.quint8: "int_val", tf.qint32: "int_val", tf.qint16: "int_val", tf.quint16: "int_val"}
    shape = [2, 3]
    n = int(np.prod(shape))
    for dt, f in field.items():
        signed = dt in (f32, f64, i32, i64, tf.int16, tf.int8, tf.complex64, tf.complex128)
        vals = lambda k: ([0x3c00 + 37 * i for i in range(k)] if f == "half_val" else [bool(i % 3) for i in range(k)] if f == "bool_val" else
                          [(-1 if signed and i % 2 else 1) * (i * 7 + 1) for i in range(k)])
        c = 2 if "complex" in f else 1
        const(dt, "%s, %s with all values" % (dt.name, f), proto(dt, shape, **{f: vals(n * c)}))
        const(dt, "%s, %s with one value for all" % (dt.name, f), proto(dt, shape, **{f: vals(c)}))
        const(dt, "%s, %s with fewer values, the last repeats" % (dt.name, f), proto(dt, shape, **{f: vals(3 * c)}))
        const(dt, "%s, no values at all: zeros" % dt.name, proto(dt, shape))
        if c == 1 and dt not in (tf.qint8, tf.quint8, tf.qint32, tf.qint16, tf.quint16):
            raw = (np.arange(n * dt.size) * 11 % 120).astype(np.uint8)
            raw = (raw % 2).tobytes() if dt == tf.bool else raw.tobytes()
            const(dt, "%s, tensor_content" % dt.name, proto(dt, shape, tensor_content=raw))
        const(dt, "%s, scalar" % dt.name, proto(dt, [], **{f: vals(c)}))
        const(dt, "%s, empty" % dt.name, proto(dt, [0, 3]))
    const(tf.string, "string, all values", proto(tf.string, [3], string_val=[b"a", b"", b"\0\xff long enough to leave the inline buffer of a string"]))
    const(tf.string, "string, one value for all", proto(tf.string, [2, 2], string_val=[b"same"]))
    const(tf.string, "string, fewer values", proto(tf.string, [4], string_val=[b"a", b"b"]))
    const(tf.string, "string, scalar", proto(tf.string, [], string_val=[b"one"]))
    const(tf.string, "string, no values", proto(tf.string, [2]))
    const(tf.string, "string, empty", proto(tf.string, [0]))
    for dt in (tf.dtypes.experimental.float8_e5m2, tf.dtypes.experimental.float8_e4m3fn):
        const(dt, dt.name + ", float8_val", lambda dt=dt: P(np.array([0.5, 1, -2]).astype(dt.as_numpy_dtype)))
    for dt in (tf.dtypes.experimental.int4, tf.dtypes.experimental.uint4):
        const(dt, dt.name, lambda dt=dt: P(np.array([1, 2, 7]).astype(dt.as_numpy_dtype)))
    for v in [np.float32(np.nan), np.float64([np.inf, -0.0]), np.full((50, 20), 7, np.int32)]:
        const(tf.as_dtype(v.dtype), "as make_tensor_proto writes it, %s %s" % (v.dtype, v.shape), P(v))

    for bad, p in [("tensor_content too short", proto(f32, [3], tensor_content=b"\0" * 8)), ("more values than elements", proto(i32, [2], int_val=[1, 2, 3]))]:
        const(f32 if p.dtype == 1 else i32, "odd: " + bad, p)


# --------------------------------------------------------------------------
def sessions(t):
    ph = tf1.placeholder
    for dt in (f32, tf.string, tf.bool, i64):
        @t.case("Placeholder", "fed, not fed, fed again, %s" % dt.name)
        def _():
            x = ph(dt)
            y = tf.stack([x, x])
            v = t.words(3) if dt == tf.string else np.array([True, False]) if dt == tf.bool else np.asarray(t.normal(2, 2) * 5).astype(dt.as_numpy_dtype)
            return [t.step(y, {x: v}), t.step(y), t.step(x), t.step([y, x], {x: v[:1]}), t.step(x, {x: v})]

        @t.case("PlaceholderWithDefault", "with and without a feed, %s" % dt.name)
        def _():
            v = t.words(2) if dt == tf.string else np.array([True, False]) if dt == tf.bool else np.asarray(t.normal(2) * 5).astype(dt.as_numpy_dtype)
            x = tf1.placeholder_with_default(tf.constant(v, dt), [None])
            y = tf.concat([x, x], 0)
            return [t.step(y), t.step(y, {x: v[::-1]}), t.step([y, x])]

    def old_producer(gd):
        gd.versions.producer = 21
        for n in gd.node:
            n.op = "PlaceholderV2" if n.op == "Placeholder" else n.op

    @t.case("PlaceholderV2", "with a shape, in a graph of an old producer", rename=old_producer, strip=False)
    def _():
        x = ph(f32, [2])
        return [t.step(x * 2.0, {x: t.normal(2)}), t.step(x * 2.0)]

    @t.case("NoOp", "targets and control dependencies")
    def _():
        v = tf1.Variable(0, use_resource=False)
        a = tf1.assign_add(v, 1)
        with tf.control_dependencies([a]):
            n = tf.no_op()
        with tf.control_dependencies([n]):
            m = tf.group(tf.no_op(), tf.identity(v))
        return [t.step(target=v.initializer), t.step(target=n), t.step(v), t.step(target=[m, n]), t.step(v)]

    @t.case("Assert", "true, false, several data, summarize")
    def _():
        c, x, s = ph(tf.bool, []), ph(f32), ph(tf.string)
        a = R.Assert(condition=c, data=[x, s, tf.constant("why")], summarize=2)
        with tf.control_dependencies([a]):
            y = x * 2.0
        f = {x: t.normal(4), s: t.words(2)}
        return [t.step(y, f | {c: True}), t.step(y, f | {c: False}), t.step(target=a, feed=f | {c: False}), t.step(y, f | {c: True})]

    @t.case("Print", "passes its input through")
    def _():
        x = ph(f32)
        return [t.step(R.Print(input=x, data=[x, tf.constant("label")], message="value ", first_n=2, summarize=3), {x: t.normal(4)})]

    @t.case("PrintV2", "as target and as control dependency")
    def _():
        x = ph(tf.string, [])
        p = R.PrintV2(input=x, output_stream="stderr", end="\n")
        with tf.control_dependencies([p]):
            y = tf.identity(x)
        return [t.step(y, {x: b"hello"}), t.step(target=p, feed={x: b"again"})]

    @t.case("Feed", "constants, inner tensors, variables, and what is below them")
    def _():
        a, b = tf.constant([1.0, 2.0], name="a"), tf.constant(t.normal(2), name="b")
        c = a + b
        d = c * c
        never = ph(f32)
        e = d + tf.reduce_sum(c) + never
        v = t.normal(2)
        return [t.step([c, d]), t.step([c, d], {a: v}), t.step([d], {c: v}), t.step([c, d], {c: v}), t.step(e, {d: v, c: v}), t.step(e, {e: v}), t.step([a, d], {a: v, b: v})]

    @t.case("Fetch", "the same twice, order, node and output, several outputs of one node")
    def _():
        x = ph(f32, [6])
        parts = tf.split(x, 3)
        val, idx = tf.nn.top_k(x, 2)
        return [t.step([parts[2], parts[0], parts[2], idx], {x: t.normal(6)}), t.step([idx, val, x], {x: t.normal(6)}), t.step(parts[1], {x: t.normal(6)})]

    @t.case("Error", "several kinds in turn, values of variables afterwards")
    def _():
        x, k = ph(f32), ph(i32)
        v = tf1.Variable(t.normal(3), use_resource=False)
        r = tf1.get_variable("r", initializer=np.float32([1, 2]), use_resource=True)
        m = tf.matmul(x, tf.ones([2, 3]))
        g = tf.gather(v, k)
        up = tf1.assign(v, x)
        d = tf.constant(12) // k
        return [t.step(v), t.step(target=[v.initializer, r.initializer]), t.step(m, {x: t.normal(2, 3)}), t.step(g, {k: [9]}), t.step(up, {x: t.normal(4)}), t.step(d, {k: [0]}),
                t.step([v, r.read_value()]), t.step([m, g, d], {x: t.normal(1, 2), k: [1, 2]}), t.step([m, g], {x: t.normal(1, 2), k: [5]}), t.step(v)]

    @t.case("Error", "a write that comes before a failing op stays; one after it does not happen")
    def _():
        v = tf1.get_variable("v", initializer=np.float32(1), use_resource=True)
        w = tf1.get_variable("w", initializer=np.float32(0), use_resource=True)
        c = ph(tf.bool, [])
        with tf.control_dependencies([v.assign_add(1.0)]):
            a = tf1.Assert(c, ["stop"])
        with tf.control_dependencies([a]):
            b = w.assign_add(10.0)
        rd = [v.read_value(), w.read_value()]
        tgt = b.op if hasattr(b, "op") else b
        return [t.step(target=[v.initializer, w.initializer])] + [s for y in (True, False, True) for s in (t.step(target=tgt, feed={c: y}), t.step(rd))]

    @t.case("Prune", "an unneeded failing node, unneeded placeholder, unneeded variable")
    def _():
        x, never = ph(f32, [2]), ph(f32)
        bad = tf.gather(tf.constant([1.0]), 7)
        v = tf1.Variable(1.0, use_resource=False)
        y = x + 1.0
        z = y + bad + never + v
        return [t.step(y, {x: t.normal(2)}), t.step(target=v.initializer), t.step(z, {x: t.normal(2), never: np.float32(1)}), t.step(y, {x: t.normal(2)})]

    @t.case("ControlDependency", "a chain of writes in order")
    def _():
        v = tf1.get_variable("v", initializer=np.float32(1), use_resource=True)
        last = None
        for k in (2, 3, 4, 5):
            with tf.control_dependencies([last] if last is not None else []):
                last = v.assign(v.read_value() * float(k) + 1.0)
        with tf.control_dependencies([last]):
            r = v.read_value()
        return [t.step(target=v.initializer), t.step(r), t.step(r)]

    @t.case("Identity", "IdentityN, Snapshot, StopGradient, PreventGradient, CheckNumerics, a long chain")
    def _():
        x = ph(f32)
        a, b = R.IdentityN(input=[x, tf.constant(["s"])])
        y = R.PreventGradient(input=R.StopGradient(input=R.Snapshot(input=a)))
        for _ in range(200):
            y = tf.identity(y)
        c = R.CheckNumerics(tensor=y, message="m")
        return [t.step([c, b], {x: t.normal(3)}), t.step(c, {x: np.float32([1, np.nan])}), t.step([y], {x: np.float32([np.inf])})]

    @t.case("Device", "device strings, colocation and unknown attributes that begin with _")
    def _():
        x = ph(f32)
        with tf1.device("/cpu:0"):
            a = x * 2.0
        with tf1.device("/job:localhost/replica:0/task:0/device:CPU:0"):
            b = a + 1.0
        with tf1.colocate_with(a):
            c = b - x
        c.op._set_attr("_mark", attr_value_pb2.AttrValue(s=b"note"))
        return t.step([a, b, c], {x: t.normal(2)})

    @t.case("Random", "seeded and unseeded sources: shape and range only")
    def _():
        n = ph(i32, [None])
        u = tf1.random_uniform(n, 2.0, 5.0, seed=3)
        g = tf1.random_normal(n, seed=4)
        k = tf1.random_uniform(n, 0, 7, i32)
        s = tf1.random_shuffle(tf.range(5), seed=2)
        return [t.step(u, {n: [3, 4]}, compare="range", range=[2.0, 5.0]), t.step(k, {n: [5]}, compare="range", range=[0, 6]), t.step(g, {n: [2]}, compare="shape"),
                t.step(tf.sort(s)), t.step(u, {n: [0]}, compare="range", range=[2.0, 5.0]), t.step(tf1.truncated_normal([20], seed=1), compare="range", range=[-2.0, 2.0])]

    @t.case("Steps", "many signatures in one session, alternating")
    def _():
        x = ph(f32, [None])
        v = tf1.Variable(np.float32(0), use_resource=False)
        add = tf1.assign_add(v, tf.reduce_sum(x))
        a, b, c = tf.sin(x), tf.cos(x) + v, tf.reduce_max(x)
        st = [t.step(target=v.initializer)]
        for k in range(8):
            f = {x: t.normal(1 + k % 3)}
            st.append([t.step(a, f), t.step([b, c], f), t.step(add, f), t.step([c, b, a], f)][k % 4])
        return st


# --------------------------------------------------------------------------
def gradients(t):
    ph = tf1.placeholder

    def train(name, note, model, optimizer, count, v2=False, resource=False, rtol=1e-4, atol=1e-5):
        @t.case(name, note, v2=v2, rtol=rtol, atol=atol)
        def _():
            (tf1.enable_resource_variables if resource else tf1.disable_resource_variables)()
            try:
                loss, feed = model()
                params = tf1.trainable_variables()
                grads = tf1.gradients(loss, params, gate_gradients=True)  # no update before the last read
                dense = [tf.convert_to_tensor(g) for g in grads]
                op = optimizer().apply_gradients(zip(grads, params))
                init = tf1.global_variables_initializer()
                upd = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
                if upd:
                    with tf.control_dependencies(upd):
                        op = tf.group(op)
                reads = [tf1.identity(p) for p in params]
                steps = [t.step(target=init), t.step([loss] + dense, feed())]
                steps += [t.step(loss, feed(), target=op) for _ in range(count)]
                return steps + [t.step(reads), t.step([loss] + dense, feed())]
            finally:
                tf1.disable_resource_variables()

    def var(name, *shape, scale=0.5):
        return tf1.get_variable(name, initializer=t.normal(*shape, scale=scale))

    def mlp():
        x, y = ph(f32, [None, 4]), ph(i32, [None])
        h = tf.nn.relu(tf1.nn.xw_plus_b(x, var("w1", 4, 6), var("b1", 6)))
        h = tf.tanh(tf.matmul(h, var("w2", 6, 5)) + var("b2", 5))
        lo = tf.matmul(h, var("w3", 5, 3))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=lo)) + 0.01 * tf.nn.l2_loss(h)
        return loss, lambda: {x: t.normal(5, 4), y: t.ints(0, 3, 5)}

    def cnn():
        x, y = ph(f32, [None, 8, 8, 2]), ph(f32, [None, 3])
        h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, var("k1", 3, 3, 2, 4), [1, 1], "SAME"), var("b1", 4)))
        h = tf.nn.max_pool2d(h, 2, 2, "VALID")
        h = tf.nn.elu(tf.nn.depthwise_conv2d(h, var("k2", 2, 2, 4, 1), [1, 1, 1, 1], "SAME"))
        h = tf.nn.avg_pool2d(h, 2, 1, "SAME")
        lo = tf.matmul(tf.reduce_mean(h, [1, 2]), var("w", 4, 3))
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=tf.stop_gradient(y), logits=lo))
        return loss, lambda: {x: t.normal(2, 8, 8, 2), y: np.eye(3, dtype=np.float32)[t.ints(0, 3, 2)]}

    def lstm(loop):
        def make():
            n = 3
            x, y = ph(f32, [None, n, 2]), ph(f32, [None, 4])
            w, b = var("kernel", 6, 16), var("bias", 16)

            def cell(xt, h, c):
                i, j, f, o = tf.split(tf.matmul(tf.concat([xt, h], 1), w) + b, 4, 1)
                c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
                return tf.tanh(c) * tf.sigmoid(o), c
            z = tf.zeros([tf.shape(x)[0], 4])
            if loop:
                xs = tf1.TensorArray(f32, n).unstack(tf.transpose(x, [1, 0, 2])) if loop == 1 else tf.TensorArray(f32, n).unstack(tf.transpose(x, [1, 0, 2]))
                wl = tf1.while_loop if loop == 1 else tf.while_loop

                def body(k, h, c):
                    h, c = cell(xs.read(k), h, c)
                    return k + 1, h, c
                _, h, c = wl(lambda k, h, c: k < n, body, [0, z, z])
            else:
                h, c = z, z
                for k in range(n):
                    h, c = cell(x[:, k], h, c)
            return tf.reduce_mean(tf.square(h - y)) + 0.1 * tf.reduce_sum(tf.abs(c)), lambda: {x: t.normal(2, n, 2), y: t.normal(2, 4)}
        return make

    def loop():
        x, n = ph(f32, [3, 3]), ph(i32, [])
        w = var("w", 3, 3)
        _, r = tf1.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.tanh(tf.matmul(v, w)) + x), [0, x])
        return tf.reduce_sum(r * r) * 0.1, lambda: {x: t.normal(3, 3, scale=0.3), n: int(t.rng.integers(0, 5))}

    def nested():
        x, n = ph(f32, [2]), ph(i32, [])
        w = var("w", 2)

        def outer(i, v):
            u = tf1.while_loop(lambda j, u: j <= i, lambda j, u: (j + 1, tf.sin(u * w) + v), [0, v])[1]
            return i + 1, tf1.cond(tf.reduce_sum(u) > 0.0, lambda: u * w, lambda: u - w)
        r = tf1.while_loop(lambda i, v: i < n, outer, [0, x])[1]
        return tf.reduce_sum(r * r), lambda: {x: t.normal(2), n: int(t.rng.integers(0, 4))}

    def cond():
        x, p = ph(f32, [None, 3]), ph(tf.bool, [])
        w, u = var("w", 3, 2), var("u", 3, 2)
        c = tf1.cond if not t.hidden else tf.cond
        r = c(p, lambda: tf.matmul(x, w), lambda: tf.nn.softplus(tf.matmul(x, u) * 2.0))
        return tf.reduce_sum(tf.square(r)) + 0.0 * tf.reduce_sum(w * u), lambda: {x: t.normal(4, 3), p: bool(t.rng.integers(0, 2))}

    def embedding():
        ids, y = ph(i32, [None, 3]), ph(f32, [None])
        e = tf.nn.embedding_lookup(var("table", 7, 4), ids)
        s = tf.reduce_sum(tf.reduce_mean(e, 1) * var("w", 4), 1)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=s)), lambda: {ids: t.ints(0, 7, 4, 3), y: np.float32(t.ints(0, 2, 4))}

    def batch_norm():
        x, y = ph(f32, [None, 4, 4, 3]), ph(f32, [None])
        h = tf.nn.conv2d(x, var("k", 3, 3, 3, 4), 1, "SAME")
        h, mean, v = tf1.nn.fused_batch_norm(h, var("gamma", 4), var("beta", 4), epsilon=1e-3)
        mm = tf1.get_variable("moving", initializer=np.zeros(4, np.float32), trainable=False)
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign(mm, mm * 0.9 + mean * 0.1).op)
        return tf.reduce_mean(tf.square(tf.reduce_mean(tf.nn.relu(h), [1, 2, 3]) - y)), lambda: {x: t.normal(3, 4, 4, 3), y: t.normal(3)}

    def moments():
        x = ph(f32, [None, 5])
        h = tf.matmul(x, var("w", 5, 4))
        m, v = tf.nn.moments(h, [0], keepdims=True)
        h = tf.nn.batch_normalization(h, m, v, var("b", 4), var("g", 4), 1e-3)
        return tf.reduce_mean(tf.pow(tf.abs(h), 1.5)), lambda: {x: t.normal(6, 5)}

    def attention():
        x = ph(f32, [None, 3, 4])
        q, k, v = [tf.einsum("btd,de->bte", x, var(n, 4, 4)) for n in "qkv"]
        a = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 2.0)
        return tf.reduce_mean(tf.square(tf.matmul(a, v) - x)), lambda: {x: t.normal(2, 3, 4)}

    def functional_loop():
        x, n = ph(f32, [3]), ph(i32, [])
        w = var("w", 3)
        _, r = tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.cond(v[0] > 0.0, lambda: v * w, lambda: tf.sin(v) + x)), [0, x])
        return tf.reduce_sum(r * r), lambda: {x: t.normal(3), n: int(t.rng.integers(0, 6))}

    T = tf1.train
    sgd, mom, adam = lambda: T.GradientDescentOptimizer(0.1), lambda: T.MomentumOptimizer(0.05, 0.9, use_nesterov=False), lambda: T.AdamOptimizer(0.01)
    count = 5
    for resource in (False, True):
        r = "resource variables" if resource else "reference variables"
        train("TrainMlp", "SGD, " + r, mlp, sgd, count, resource=resource)
        train("TrainMlp", "Adam, " + r, mlp, adam, count, resource=resource)
        train("TrainMlp", "RMSProp, " + r, mlp, lambda: T.RMSPropOptimizer(0.01), count, resource=resource)
        train("TrainMlp", "Ftrl, " + r, mlp, lambda: T.FtrlOptimizer(0.05, l1_regularization_strength=0.01), count, resource=resource)
        train("TrainCnn", "Momentum, " + r, cnn, mom, count, resource=resource)
        train("TrainLstm", "unrolled, Adam, " + r, lstm(0), adam, count, resource=resource)
        train("TrainEmbedding", "SGD, sparse gradients, " + r, embedding, sgd, count, resource=resource)
        train("TrainEmbedding", "Adagrad, sparse gradients, " + r, embedding, lambda: T.AdagradOptimizer(0.1), count, resource=resource)
        train("TrainEmbedding", "Adam, sparse gradients, " + r, embedding, adam, count, resource=resource)
        train("TrainEmbedding", "Momentum, sparse gradients, " + r, embedding, mom, count, resource=resource)
        train("TrainBatchNorm", "fused, moving mean, SGD, " + r, batch_norm, sgd, count, resource=resource)
        train("TrainLoop", "gradient of a while loop (stacks), SGD, " + r, loop, lambda: T.GradientDescentOptimizer(0.01), count, resource=resource)
        train("TrainCond", "cond, Adam, " + r, cond, adam, count, resource=resource)
    train("TrainLstm", "while loop with TensorArray, Adam", lstm(1), adam, count)
    train("TrainLstm", "functional loop with tensor lists, Adam", lstm(2), adam, count, v2=True, resource=True)
    train("TrainLoop", "nested loops and cond, SGD", nested, lambda: T.GradientDescentOptimizer(0.01), count)
    train("TrainLoop", "functional while and cond, SGD", functional_loop, lambda: T.GradientDescentOptimizer(0.01), count, v2=True, resource=True)
    train("TrainMoments", "batch normalisation from moments, Adadelta", moments, lambda: T.AdadeltaOptimizer(0.5), count)
    train("TrainAttention", "einsum and softmax, Momentum", attention, mom, count)

    @t.case("SecondOrder", "gradients of gradients", rtol=1e-4, atol=1e-5)
    def _():
        x = ph(f32, [3])
        y = tf.reduce_sum(tf.pow(x, 3.0) * tf.sin(x))
        g, = tf1.gradients(y, [x])
        hess, = tf1.hessians(y, [x])
        gg, = tf1.gradients(tf.reduce_sum(g * g), [x])
        return [t.step([y, g, hess, gg], {x: np.abs(t.normal(3)) + 0.1})]


FAMILIES = {"control-flow": control_flow, "tensor-arrays": tensor_arrays, "functions": functions, "tensor-lists": tensor_lists, "variables": variables, "training": training,
            "queues": queues, "tables": tables, "datasets": datasets, "strings": strings, "codecs": codecs, "checkpoints": checkpoints, "sparse": sparse, "constants": constants,
            "sessions": sessions, "gradients": gradients}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--variant", choices=("visible", "hidden"), default="visible")
    ap.add_argument("--seed", type=int, default=41)
    ap.add_argument("--out", required=True)
    ap.add_argument("--family", nargs="*", default=list(FAMILIES))
    ap.add_argument("--verify", action="store_true", help="run every case of these families again from its file")
    args = ap.parse_args()
    args.out = os.path.abspath(args.out)
    if not args.verify:
        t = Cases(args)
        for k in args.family:
            t.family = k
            FAMILIES[k](t)
            print("%s: %d cases so far" % (k, t.made), flush=True)
        t.w.close()
        for op, why in sorted(t.w.skipped.items()):
            for x in why:
                print("not made: %s: %s" % (op, x))
        return 0
    return 1 if F.verify(args.out, {k for k in args.family}) else 0


if __name__ == "__main__":
    sys.exit(main())
