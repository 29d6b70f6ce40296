# SPDX-License-Identifier: Apache-2.0
"""SavedModels: from the folder to the first result, Tenon against TensorFlow.

Usage: python bench/saved_models.py TENON CASES... [--times N] [--csv FILE]

TENON is the command, CASES are folders of model cases (case.json); run it with a Python that has TensorFlow. For TensorFlow the
time is that of tf.saved_model.load and the first call of the signature, in a fresh process after `import tensorflow`. For Tenon
it is what `tenon run --verbose` says for reading the model, opening its session, preparing the signature and the first step,
also in a fresh process; the whole process takes a few milliseconds more, which have a column. Both take turns; the table has
medians.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time


def items_of(case, entry):
    import numpy as np
    value = np.load(case / entry["file"])
    if entry["dtype"] == "string":
        ends = np.load(case / entry["offsets"])
        data = value.tobytes()
        texts = [data[ends[i]:ends[i + 1]] for i in range(len(ends) - 1)]
        return np.array(texts, dtype=object).reshape(entry["shape"])
    if entry["dtype"] == "bfloat16":
        import tensorflow as tf
        return value.view(tf.bfloat16.as_numpy_dtype)
    return value


def run_tensorflow(case):
    """Prints the seconds of one load and first call."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    case = pathlib.Path(case)
    spec = json.loads((case / "case.json").read_text())
    feeds = {e["tensor"]: items_of(case, e) for e in spec["feeds"]}
    tf.constant(1.0) + 1.0  # what TensorFlow initialises at its first op
    start = time.perf_counter()
    model = tf.saved_model.load(str(case / spec["model"]), tags=spec["tags"])
    function = model.signatures[spec["signature"]]
    keys = {}
    for key, tensor in function.structured_input_signature[1].items():
        entry = next((e for e in spec["feeds"] if e.get("key") == key), None)
        value = feeds[entry["tensor"]] if entry else next(iter(feeds.values()))
        keys[key] = tf.constant(value, dtype=tensor.dtype)
    result = function(**keys)
    for value in result.values():
        getattr(value, "numpy", lambda: None)()
    print(time.perf_counter() - start)


def feed_file(case, entry, folder, i):
    import numpy as np
    value = items_of(case, entry)
    if entry["dtype"] != "string":
        return case / entry["file"]
    if any(text.endswith(b"\0") for text in value.reshape(-1)):
        raise ValueError("a string ends in a zero byte")
    file = folder / f"feed{i}.npy"
    size = max([1] + [len(text) for text in value.reshape(-1)])
    np.save(file, np.array(value.reshape(-1), dtype=f"S{size}").reshape(entry["shape"]))
    return file


def program_of(tenon):
    """The program itself: in a build folder, libtool's script in front of it takes longer than the model."""
    tenon = pathlib.Path(tenon).resolve()
    real = tenon.parent / ".libs" / tenon.name
    if not real.exists():
        return tenon
    os.environ["LD_LIBRARY_PATH"] = str(real.parent)
    os.environ["TENON_PLUGIN_PATH"] = str(tenon.parent / "plugins" / ".libs")
    return real


def tenon_command(tenon, case, spec, folder):
    command = [program_of(tenon), "run", case / spec["model"], "--tags", ",".join(spec["tags"]), "--signature", spec["signature"]]
    if spec.get("soft_placement"):
        command.append("--soft-placement")
    command.append("--verbose")
    for i, entry in enumerate(spec["feeds"]):
        command += ["--feed", f'{entry["tensor"]}={feed_file(case, entry, folder, i)}']
    for i, entry in enumerate(spec["fetches"]):
        command += ["--fetch", f'{entry["tensor"]}={folder / f"out{i}.npy"}']
    return [str(part) for part in command]


def seconds_of(command):
    start = time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True)
    end = time.perf_counter()
    if result.returncode != 0:
        raise ValueError((result.stderr.strip().splitlines() or ["failed"])[-1][:120])
    return end - start, result.stdout, result.stderr


PHASE = re.compile(r"^(?:model read|session opened|signature prepared|1 step) in ([0-9.]+) (ns|us|ms|s)", re.MULTILINE)
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def phases_of(text):
    """The seconds of the phases that `tenon run --verbose` reports."""
    return sum(float(number) * UNITS[unit] for number, unit in PHASE.findall(text))


def measure(tenon, case, times):
    spec = json.loads((case / "case.json").read_text())
    ours, whole, theirs = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        command = tenon_command(tenon, case, spec, pathlib.Path(folder))
        for _ in range(times):
            seconds, _, said = seconds_of(command)
            whole.append(seconds)
            ours.append(phases_of(said))
            theirs.append(float(seconds_of([sys.executable, __file__, "--tensorflow", str(case)])[1].split()[-1]))
    return statistics.median(ours), statistics.median(whole), statistics.median(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", nargs="?")
    parser.add_argument("cases", nargs="*", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--tensorflow", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.tensorflow:
        run_tensorflow(arguments.tensorflow)
        return 0
    rows = []
    print(f'{"model":34} {"Tenon":>9} {"process":>9} {"TensorFlow":>11} {"ratio":>7}')
    for case in sorted(c.parent for folder in arguments.cases for c in folder.glob("savedmodel-*/case.json")):
        try:
            ours, whole, theirs = measure(arguments.tenon, case, arguments.times)
        except (ValueError, KeyError, StopIteration) as error:
            print(f"{case.name:34} not measured: {error}", flush=True)
            continue
        rows.append([case.name, f"{ours * 1e3:.2f}", f"{whole * 1e3:.2f}", f"{theirs * 1e3:.1f}", f"{theirs / ours:.1f}"])
        print(f"{case.name:34} {ours * 1e3:6.2f} ms {whole * 1e3:6.1f} ms {theirs * 1e3:8.0f} ms {theirs / ours:6.1f}x", flush=True)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["model", "tenon_ms", "tenon_process_ms", "tensorflow_ms", "ratio"], *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
