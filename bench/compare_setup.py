# SPDX-License-Identifier: Apache-2.0
"""What bench/compare needs before it can measure: a build of bench/model, and the peers in a virtual environment."""
import json
import pathlib
import subprocess
import sys

# The package to install, and the module that shows that it is there.
PACKAGES = {"numpy": "numpy", "tensorflow-cpu": "tensorflow", "onnxruntime": "onnxruntime", "tf2onnx": "tf2onnx",
            "matplotlib": "matplotlib"}


def run(what, command, **more):
    """Runs a command silently; gives the end of what it said when it fails, else None."""
    print(f"  {what}", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    return None if done.returncode == 0 else (done.stdout.strip().splitlines() or ["it failed"])[-1]


def build(source, folder):
    """Brings bench/model up to date."""
    if not (folder / "Makefile").exists():
        if folder != source / "build":
            raise SystemExit(f"compare: {folder} is no build folder; without --build it is made")
        why = run("building Tenon (./quickstart)", [str(source / "quickstart")], cwd=source)
        if why:
            raise SystemExit(f"compare: ./quickstart: {why}")
    why = run("building bench/model", ["make", "-s", "-C", str(folder), "all", "bench/model"])
    if why:
        raise SystemExit(f"compare: make: {why}")


def missing(python):
    """Those of PACKAGES that this Python does not find."""
    text = ("import importlib.util as u, json, sys; "
            "print(json.dumps([p for p, m in json.loads(sys.argv[1]).items() if u.find_spec(m) is None]))")
    done = subprocess.run([python, "-c", text, json.dumps(PACKAGES)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def environment(folder):
    """A Python with the peers, and why each package that is missing could not be had."""
    python = str(folder / "bin" / "python")
    if not pathlib.Path(python).exists():
        why = run(f"making a virtual environment in {folder}", [sys.executable, "-m", "venv", str(folder)])
        if why:
            raise SystemExit(f"compare: python3 -m venv: {why}")
    wanted, reasons = missing(python), {}
    if wanted:
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if run(f"installing {', '.join(wanted)} (once; up to 1.3 GB)", pip + wanted):
            for package in wanted:  # together they cannot be had: each that can
                why = run(f"installing {package}", pip + [package])
                if why:
                    reasons[PACKAGES[package]] = why
        for package in missing(python):
            reasons.setdefault(PACKAGES[package], "not installed")
    return python, reasons
