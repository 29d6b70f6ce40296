# SPDX-License-Identifier: Apache-2.0
"""Tenon, TensorFlow and ONNX Runtime on the same models, inputs and thread counts, in turns: noise hits all alike.

Each runs in a process of its own: Tenon by bench/model.c, the peers by compare_peer.py, which speak one protocol. Every
result is compared with what the case expects. Only the standard library is used here.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import compare_report
import compare_setup

SOURCE = pathlib.Path(__file__).resolve().parent.parent
CASES = ["mobilenet-v2", "mobilenet-v3-small", "densenet121", "densenet121:8", "kws-dscnn-mfcc", "superres-espcn-x2",
         "lstm-unrolled", "har-lstm", "digits", "cifar-frozen", "kws-dnn-mfcc", "mlp-autoencoder"]
PEERS = ["tenon", "onnxruntime", "tensorflow"]


class Process:
    """A model loaded in a process: `ready` is what it said of its loading, an error if it came to nothing."""

    def __init__(self, command, environment):
        self.started = time.monotonic()
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      text=True, env=environment)
        self.ready = self.line()

    def line(self):
        """The next line of JSON. What libraries print while they are loaded stands before it."""
        for text in self.child.stdout:
            if text.startswith("{"):
                return json.loads(text)
        return {"error": f"ended with status {self.child.wait()}"}

    def ask(self, text):
        try:
            self.child.stdin.write(text + "\n")
            self.child.stdin.flush()
        except OSError as e:
            return {"error": str(e)}
        return self.line()

    def end(self):
        said = {} if "error" in self.ready else self.ask("end")
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()
        return said


class Bench:
    def __init__(self, args):
        self.args = args
        self.build = args.build.resolve()
        self.work = args.out or self.build / "compare"
        self.work.mkdir(parents=True, exist_ok=True)
        self.model = self.build / "bench" / "model"
        if not args.no_build:
            compare_setup.build(SOURCE, self.build)
        if not self.model.exists():
            raise SystemExit(f"compare: {self.model} is not there; without --no-build it is made")
        self.peers = ["tenon"] + (["tenon1"] if args.direct else []) + (["tenon0"] if args.passes_off else [])
        self.python, self.missing = None, {}
        wanted = [p for p in PEERS[1:] if p in args.peers]
        if wanted or not args.no_setup:
            venv = args.venv or self.build / "compare" / "venv"
            self.python, self.missing = compare_setup.environment(venv.absolute())
        self.peers += wanted
        self.environment = dict(os.environ, TENON_PLUGIN_PATH=str(self.build / "plugins" / ".libs"),
                                TENON_PLUGIN_PATH_ONLY="1", PYTHONDONTWRITEBYTECODE="1")
        self.versions = {}

    def progress(self, text):
        if not self.args.quiet:
            print(f"  {text}", file=sys.stderr, flush=True)

    def peer_script(self, *arguments):
        """One answer of compare_peer.py."""
        if self.python is None:
            return {"error": "no peers: --no-setup"}
        process = Process([self.python, str(SOURCE / "bench" / "compare_peer.py"), *map(str, arguments)], self.environment)
        process.child.stdin.close()
        process.child.stdout.close()
        process.child.wait()
        return process.ready

    def onnx(self, folder, tile):
        """The converted model, made once; raises with the reason."""
        for package in ("tf2onnx", "tensorflow"):
            if package in self.missing:
                raise ValueError(f"{package}: {self.missing[package]}")
        path = self.work / f"{folder.name}-{tile}.onnx"
        spec = json.loads((folder / "case.json").read_text())
        source = folder / spec["model"]
        if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
            self.progress(f"{folder.name}: converting for ONNX Runtime")
            said = self.peer_script("convert", folder, "--tile", tile, "--onnx", path)
            if "error" in said:
                raise ValueError(said["error"])
        return path

    def command(self, peer, folder, tile):
        common = ["--tile", str(tile), "--threads", str(self.args.threads)]
        if peer == "tenon1":
            common[-1] = "1"
        if peer.startswith("tenon"):
            options = [f"{o}" for o in self.args.option] + (["level=0"] if peer == "tenon0" else [])
            target = "direct" if peer == "tenon1" else self.args.target
            target = ["--target", target] if target else []
            return [str(self.model), "--case", str(folder), *common, *target, *(x for o in options for x in ("--option", o))]
        if peer in self.missing:
            raise ValueError(f"{peer}: {self.missing[peer]}")
        command = [self.python, str(SOURCE / "bench" / "compare_peer.py"), peer, str(folder), *common]
        return command + (["--onnx", str(self.onnx(folder, tile))] if peer == "onnxruntime" else [])

    def load(self, commands, row):
        """Fresh processes, in turns; the last of each stays for the steps. TensorFlow, which takes seconds, loads once."""
        processes, seen = {}, {p: [] for p in commands}
        for turn in range(self.args.loads):
            for peer, command in commands.items():
                if "error" in row["peers"].get(peer, {}) or peer == "tensorflow" and turn + 1 < self.args.loads:
                    continue
                process = Process(command, self.environment)
                ready = process.ready
                if "error" in ready:
                    row["peers"][peer] = {"error": ready["error"]}
                    process.end()
                    continue
                self.versions[peer] = ready["version"]
                seen[peer].append((ready["load_s"] + ready["first_s"], ready["first_s"], ready["at"] - process.started))
                if turn + 1 < self.args.loads:
                    process.end()
                else:
                    processes[peer] = process
        for peer in processes:
            columns = [statistics.median(c) for c in zip(*seen[peer])]
            row["peers"][peer] = dict(zip(("load_to_first", "first_step", "process"), columns))
        return processes

    def steps(self, processes, row):
        rounds = max(3, round(self.args.seconds / 0.25))
        samples, counts, order = {p: [] for p in processes}, dict.fromkeys(processes, 0), list(processes)
        for turn in range(rounds + 1):  # the first one warms up
            for peer in order:
                if "error" in row["peers"][peer]:
                    continue
                said = processes[peer].ask(f"run {self.args.seconds / rounds}")
                if "error" in said:
                    row["peers"][peer] = {"error": said["error"]}
                elif turn > 0:
                    samples[peer].append(said["us"])
                    counts[peer] += said["n"]
            order = order[1:] + order[:1]
        for peer, process in processes.items():
            end = process.end()
            it = row["peers"][peer]
            if "error" in end:
                row["peers"][peer] = it = {"error": end["error"]}
            if "error" in it:
                continue
            merged = sorted(v for s in samples[peer] for v in s)
            before = process.ready["before_kb"]
            it.update(median=statistics.median(merged) * 1e-6, p99=merged[int((len(merged) - 1) * 0.99)] * 1e-6,
                      best=merged[0] * 1e-6, steps=counts[peer], rounds=[statistics.median(s) * 1e-6 for s in samples[peer]],
                      peak=end["peak_kb"] * 1024, peak_own=(end["peak_kb"] - before) * 1024,
                      steady_own=(end["anon_kb"] - process.ready["before_anon_kb"]) * 1024, error_share=end["error_share"])

    def roofline(self, row, folder, tile):
        if "tensorflow" in self.missing or self.python is None:
            row["count_error"] = self.missing.get("tensorflow", "TensorFlow is not there to tell the shapes")
            return
        kept = self.work / f"{folder.name}-{tile}.count"
        counter = SOURCE / "bench" / "compare_count.py"
        if kept.exists() and kept.stat().st_mtime > counter.stat().st_mtime:
            count = json.loads(kept.read_text())
        else:
            count = self.peer_script("count", folder, "--tile", tile)
            if "error" in count:
                row["count_error"] = count["error"]
                return
            kept.write_text(json.dumps(count))
        row["count"] = {k: v for k, v in count.items() if k != "rows"}
        if count["flops"] == 0:
            return
        size = max(count["weights"] + count["largest"], 1 << 16)
        said = subprocess.run([str(self.model), "--machine", str(size), "--threads", str(self.args.threads)],
                              stdout=subprocess.PIPE, text=True, check=True, env=self.environment)
        most = json.loads(said.stdout)
        parts = [(f / most["flops"], b / most["bandwidth"]) for _, f, b in count["rows"]]
        computing = sum(f for f, b in parts if f >= b)
        seconds = sum(max(p) for p in parts)
        row["roofline"] = {"flops": count["flops"], "bytes": count["bytes"], "peak_flops": most["flops"],
                           "peak_bandwidth": most["bandwidth"], "seconds": seconds,
                           "bound": "FLOPs" if computing * 2 >= seconds else "bytes"}
        self.isa = most["isa"]

    isa = "-"

    def case(self, name, folder, tile):
        row = {"case": name.replace(":", " x "), "threads": self.args.threads, "peers": {}}
        commands = {}
        for peer in self.peers:
            try:
                commands[peer] = self.command(peer, folder, tile)
            except ValueError as e:
                row["peers"][peer] = {"error": str(e)}
        self.progress(f"{name}: loading")
        processes = self.load(commands, row)
        self.progress(f"{name}: steps")
        self.steps(processes, row)
        self.roofline(row, folder, tile)
        shown = {p: compare_report.number(row["peers"][p].get("median"), 1e3) for p in self.peers}
        told = [f"{compare_report.NAMES[p]} {ms} ms" for p, ms in shown.items()]
        self.progress(f"{name}: " + ", ".join(told))
        return row


def cpu():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown CPU"


def arguments():
    p = argparse.ArgumentParser(prog="bench/compare", description=__doc__.split("\n", maxsplit=1)[0],
                                epilog="The first run installs the peers, later ones find them. Nothing is written outside "
                                "of the build folder and DIR.")
    p.add_argument("--models", type=pathlib.Path, metavar="DIR",
                   help="folder of model cases (TENON_MODELS, else ../shared/models)")
    p.add_argument("--case", nargs="+", metavar="NAME", 
                   help=f"models; NAME:8 repeats the batch 8 times (default: tiny {' '.join(CASES)})")
    p.add_argument("--threads", type=int, default=1, help="threads of each (default 1)")
    p.add_argument("--seconds", type=float, default=2, help="time for the steps of one model on one peer (default 2)")
    p.add_argument("--loads", type=int, default=3,
                   help="fresh processes to take the load time from (default 3; TensorFlow 1)")
    p.add_argument("--peers", nargs="*", default=PEERS[1:], choices=PEERS[1:], help="against whom (default both)")
    p.add_argument("--passes-off", action="store_true",
                   help="a column for Tenon without the passes of its planner, too")
    p.add_argument("--direct", action="store_true", help="a column for Tenon on one thread, by the runtime 'direct', too")
    p.add_argument("--option", action="append", default=[], metavar="FIELD=VALUE",
                   help="session option of Tenon, as disable_passes=fuse")
    p.add_argument("--target", default="", help="runtime of Tenon")
    p.add_argument("--out", type=pathlib.Path, metavar="DIR",
                   help="folder of what is written, converted models, too (default BUILD/compare)")
    p.add_argument("--json", type=pathlib.Path, metavar="FILE", help="(default DIR/compare.json)")
    p.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="the table (default DIR/compare.md)")
    p.add_argument("--svg", type=pathlib.Path, metavar="FILE", help="the picture (default DIR/compare.svg)")
    p.add_argument("--build", type=pathlib.Path, default=SOURCE / "build", metavar="DIR",
                   help="build folder (default build/, made when absent)")
    p.add_argument("--venv", type=pathlib.Path, metavar="DIR",
                   help="virtual environment of the peers (default BUILD/compare/venv)")
    p.add_argument("--no-setup", action="store_true",
                   help="with --peers and nothing behind it: Tenon alone, nothing is installed")
    p.add_argument("--no-build", action="store_true", help="take the build as it is")
    p.add_argument("--quiet", action="store_true", help="no lines of progress")
    args = p.parse_args()
    if args.threads < 1 or args.seconds <= 0 or args.loads < 1:
        p.error("--threads, --seconds and --loads want numbers above 0")
    return args


def find_cases(args, bench):
    """(name, folder, tile) of what is asked for; `tiny` is made, since its step is what a call costs."""
    models = args.models or pathlib.Path(os.environ.get("TENON_MODELS") or SOURCE.parent / "shared" / "models")
    found, absent = [], []
    for name in args.case or ["tiny"] + CASES:
        base, _, tile = name.partition(":")
        folder = models.resolve() / base
        if base == "tiny" and not folder.exists():
            folder = bench.work / "tiny"
            if not (folder / "case.json").exists() and "error" in bench.peer_script("tiny", folder):
                continue
        if not (folder / "case.json").exists() or tile and not tile.isdigit():
            absent.append(name)
        else:
            found.append((name, folder, int(tile or 1)))
    if absent:
        print(f"compare: not found in {models}: {' '.join(absent)}", file=sys.stderr)
    if not found:
        raise SystemExit(f"compare: no models; --models DIR tells where the case.json folders are")
    return found


def main():
    args = arguments()
    bench = Bench(args)
    cases = find_cases(args, bench)
    before = os.getloadavg()[0]
    rows = [bench.case(*case) for case in cases]
    data = {"threads": args.threads, "seconds": args.seconds, "peers": bench.peers, "versions": bench.versions,
            "machine": {"cpu": cpu(), "cores": os.cpu_count(), "isa": bench.isa, "load_before": f"{before:.1f}",
                        "load_after": f"{os.getloadavg()[0]:.1f}"}, "rows": rows}
    out = {kind: getattr(args, kind) or bench.work / f"compare.{end}" for kind, end in
           (("json", "json"), ("markdown", "md"), ("svg", "svg"))}
    out["json"].write_text(json.dumps(data, indent=1) + "\n")
    text = compare_report.markdown(data)
    out["markdown"].write_text(text)
    print(text)
    if bench.python is None or "matplotlib" in bench.missing:
        print("compare: without matplotlib there is no picture", file=sys.stderr)
    else:
        script = str(SOURCE / "bench" / "compare_report.py")
        subprocess.run([bench.python, script, str(out["json"]), str(out["svg"])], check=True, env=bench.environment)
    print("written: " + ", ".join(str(p) for p in out.values() if p.exists()), file=sys.stderr)
    wrong = [r["case"] for r in rows if "error" in r["peers"]["tenon"]]
    if wrong:
        raise SystemExit(f"compare: Tenon failed on {' '.join(wrong)}")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
