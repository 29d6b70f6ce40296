# SPDX-License-Identifier: Apache-2.0
"""One model on a peer, in a process of its own: the same protocol as bench/model.c.

compare_peer.py tensorflow|onnxruntime FOLDER --tile N --threads N [--onnx FILE]
compare_peer.py convert FOLDER --tile N --onnx FILE     makes the ONNX file
compare_peer.py count FOLDER --tile N                   prints what the products of the graph cost
compare_peer.py tiny FOLDER                             writes a case there: one addition of scalars

Both peers run as their fastest way from Python: TensorFlow a callable made before, on the calling thread when there is one
thread; ONNX Runtime inputs and outputs bound before. The network itself runs in their C++.
"""
import argparse
import array
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def memory_kb(field):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


class Case:
    """case.json with its arrays; the batch repeated `tile` times."""

    def __init__(self, folder, tile):
        import numpy as np
        self.spec = json.loads((folder / "case.json").read_text())
        if self.spec["format"] != "graphdef":
            raise ValueError("not a GraphDef")
        self.model = folder / self.spec["model"]

        def read(entries):
            values = {}
            for entry in entries:
                value = np.load(folder / entry["file"])
                many = (tile,) + (1,) * (value.ndim - 1)
                values[entry["tensor"]] = np.ascontiguousarray(np.tile(value, many)) if value.ndim and tile > 1 else value
            return values
        self.feeds, self.wanted = read(self.spec["feeds"]), read(self.spec["fetches"])
        self.fetches = list(self.wanted)

    def compare(self, got):
        """The largest difference, in tolerances; raises when one is above 1."""
        import numpy as np
        worst = 0.0
        for name, value in zip(self.fetches, got):
            want = self.wanted[name]
            if value.shape != want.shape:
                raise ValueError(f"'{name}' has shape {value.shape}, wanted {want.shape}")
            limit = self.spec["atol"] + self.spec["rtol"] * np.abs(want)
            share = float(np.max(np.abs(value - want) / limit)) if want.size else 0.0
            if not share <= 1:
                raise ValueError(f"'{name}' differs by {share:.3g} tolerances")
            worst = max(worst, share)
        return worst


class TensorFlow:
    def __init__(self):
        import tensorflow
        self.tf1, self.version = tensorflow.compat.v1, tensorflow.__version__

    def load(self, case, args):
        tf1 = self.tf1
        config = tf1.ConfigProto(intra_op_parallelism_threads=args.threads,
                                 inter_op_parallelism_threads=-1 if args.threads == 1 else args.threads)
        graph = tf1.Graph()
        with graph.as_default():
            proto = tf1.GraphDef()
            proto.ParseFromString(case.model.read_bytes())
            tf1.import_graph_def(proto, name="")
        session = tf1.Session(graph=graph, config=config)
        call = session.make_callable(case.fetches, feed_list=list(case.feeds))
        values = list(case.feeds.values())
        return lambda: call(*values)


class OnnxRuntime:
    def __init__(self):
        import onnxruntime
        self.ort, self.version = onnxruntime, onnxruntime.__version__
        self.binding = None

    def load(self, case, args):
        ort = self.ort
        options = ort.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = ort.InferenceSession(str(args.onnx), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        known = {i.name for i in session.get_inputs()}
        for name, value in case.feeds.items():
            if name in known:  # the conversion drops inputs that nothing needs
                binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
        self.outputs = []
        for name in case.fetches:
            want = case.wanted[name]
            self.outputs.append(ort.OrtValue.ortvalue_from_shape_and_type(list(want.shape), want.dtype.type))
            binding.bind_ortvalue_output(name, self.outputs[-1])

        def step():
            session.run_with_iobinding(binding)
            return self.outputs
        return step


def values_of(got):
    return [v.numpy() if hasattr(v, "numpy") else v for v in got]


def say(**line):
    print(json.dumps(line), flush=True)


def run_for(step, seconds):
    clock, times = time.perf_counter, array.array("d")
    now = clock()
    end = now + seconds
    while len(times) < 3 or now < end:
        before = now
        step()
        now = clock()
        times.append(now - before)
    times = sorted(times)
    n = len(times)
    keep = min(n, 1000)
    say(n=n, us=[times[(i * n + n // 2) // keep] * 1e6 for i in range(keep)])


def serve(args):
    peer = TensorFlow() if args.what == "tensorflow" else OnnxRuntime()
    case = Case(args.folder, args.tile)
    before, anonymous = memory_kb("VmRSS"), memory_kb("RssAnon")
    started = time.monotonic()
    step = peer.load(case, args)
    loaded = time.monotonic()
    got = step()
    first = time.monotonic()
    share = case.compare(values_of(got))
    say(at=first, start_s=started, load_s=loaded - started, first_s=first - loaded, before_kb=before,
        before_anon_kb=anonymous, error_share=share, version=peer.version)
    for line in sys.stdin:
        if not line.startswith("run "):
            break
        run_for(step, float(line[4:]))
    share = case.compare(values_of(step()))
    say(anon_kb=memory_kb("RssAnon"), peak_kb=memory_kb("VmHWM"), error_share=share)


def convert(args):
    """With the shapes of the inputs written into the model: what ONNX Runtime likes best."""
    import subprocess
    case = Case(args.folder, args.tile)
    inputs = [name + ("[" + ",".join(map(str, v.shape)) + "]" if v.ndim else "") for name, v in case.feeds.items()]
    made = args.onnx.with_suffix(".part")
    done = subprocess.run([sys.executable, "-m", "tf2onnx.convert", "--graphdef", str(case.model), "--output", str(made),
                           "--inputs", ",".join(inputs), "--outputs", ",".join(case.fetches), "--opset", "17"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False)
    if done.returncode != 0 or not made.exists():
        raise ValueError("tf2onnx: " + (done.stdout.strip().splitlines() or ["failed"])[-1])
    made.rename(args.onnx)
    say(ok=True)


def tiny(args):
    import numpy as np
    tf1 = TensorFlow().tf1
    args.folder.mkdir(parents=True, exist_ok=True)
    with tf1.Graph().as_default() as graph:
        x, y = (tf1.placeholder("float32", [], n) for n in "xy")
        tf1.add(x, y, name="sum")
        (args.folder / "model.pb").write_bytes(graph.as_graph_def().SerializeToString())
    for name, value in (("x", 1), ("y", 0.5), ("sum", 1.5)):
        np.save(args.folder / (name + ".npy"), np.float32(value))
    entry = lambda name: {"tensor": name + ":0", "file": name + ".npy", "dtype": "float32", "shape": []}
    spec = {"name": args.folder.name, "format": "graphdef", "model": "model.pb", "feeds": [entry("x"), entry("y")],
            "fetches": [entry("sum")], "rtol": 0, "atol": 1e-6}
    (args.folder / "case.json").write_text(json.dumps(spec))
    say(ok=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["tensorflow", "onnxruntime", "convert", "count", "tiny"])
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--tile", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--onnx", type=pathlib.Path)
    args = p.parse_args()
    try:
        if args.what == "count":
            import compare_count
            say(**compare_count.count(TensorFlow().tf1, Case(args.folder, args.tile)))
        else:
            {"convert": convert, "tiny": tiny}.get(args.what, serve)(args)
    except Exception as e:  # whatever a peer throws is this row's reason, not our end
        say(error=f"{type(e).__name__}: {e}"[:400])
        sys.exit(1)


if __name__ == "__main__":
    main()
