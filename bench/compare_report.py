# SPDX-License-Identifier: Apache-2.0
"""The table of bench/compare, and its picture (run as a program by a Python that has matplotlib: JSON in, SVG out)."""
import json
import math
import pathlib
import statistics
import sys

NAMES = {"tenon": "Tenon", "tenon1": "Tenon, one thread", "tenon0": "Tenon, level 0", "onnxruntime": "ONNX Runtime",
         "tensorflow": "TensorFlow"}


def number(value, scale=1.0):
    """Three figures, '-' for what is not there."""
    if value is None:
        return "-"
    value *= scale
    if value == 0:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def get(row, peer, key):
    return row["peers"].get(peer, {}).get(key)


def ratio(row, peer, key):
    """How much longer the peer takes than Tenon."""
    mine, its = get(row, "tenon", key), get(row, peer, key)
    return its / mine if mine and its else None


def table(head, rows):
    out = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] + ["---:"] * (len(head) - 1)) + " |"]
    return out + ["| " + " | ".join(r) + " |" for r in rows]


def geomean(values):
    values = [v for v in values if v]
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def cell(row, peer, keys, scale):
    """The first figure, with the others behind it in brackets."""
    first, *others = (number(get(row, peer, k), scale) for k in keys)
    return "-" if first == "-" else f"{first} ({', '.join(others)})"


def steps(rows, peers):
    others = [p for p in peers if p != "tenon"]
    head = ["model"] + [f"{NAMES[p]}, ms (best, p99)" for p in peers] + [f"{NAMES[p]} ÷ Tenon" for p in others]
    lines = []
    for row in rows:
        cells = [row["case"]] + [cell(row, p, ("median", "best", "p99"), 1e3) for p in peers]
        lines.append(cells + [number(ratio(row, p, "median")) for p in others])
    models = [r for r in rows if r["case"] != "tiny"]
    lines.append(["geometric mean, without tiny"] + [""] * len(peers) +
                 [number(geomean(ratio(r, p, "median") for r in models)) for p in others])
    return table(head, lines)


def loads(rows, peers):
    others = [p for p in peers if p != "tenon"]
    head = ["model"] + [f"{NAMES[p]}, ms (first step, process)" for p in peers] + [f"{NAMES[p]} ÷ Tenon" for p in others]
    keys = ("load_to_first", "first_step", "process")
    return table(head, [[row["case"]] + [cell(row, p, keys, 1e3) for p in peers] +
                        [number(ratio(row, p, "load_to_first")) for p in others] for row in rows])


def memory(rows, peers):
    head = ["model", "weights + activations, MB"] + [f"{NAMES[p]}, MB (while loading, process)" for p in peers]
    lines = []
    for row in rows:
        count = row.get("count")
        base = [number(count["weights"], 1e-6) + " + " + number(count["largest"], 1e-6) if count else "-"]
        lines.append([row["case"]] + base + [cell(row, p, ("steady_own", "peak_own", "peak"), 1e-6) for p in peers])
    return table(head, lines)


def rooflines(rows, peers):
    head = ["model", "MFLOP", "MB moved", "GFLOP/s and GB/s at most", "at best, ms", "bound by"]
    head += [f"{NAMES[p]} reaches" for p in peers]
    lines = []
    for row in rows:
        roof = row.get("roofline")
        if roof is None:
            continue  # no products, or nobody to tell the shapes
        share = [get(row, p, "median") for p in peers]
        lines.append([row["case"], number(roof["flops"], 1e-6), number(roof["bytes"], 1e-6),
                      f"{number(roof['peak_flops'], 1e-9)}, {number(roof['peak_bandwidth'], 1e-9)}",
                      number(roof["seconds"], 1e3), roof["bound"]] +
                     [f"{100 * roof['seconds'] / s:.0f} %" if s else "-" for s in share])
    return table(head, lines) if lines else []


def goals(rows):
    """Each figure that the project wants, and whether this run has it."""
    out = []
    models = [r for r in rows if r["case"] != "tiny"]

    def goal(text, values, limit):
        values = {k: v for k, v in values.items() if v is not None}
        if not values:
            out.append(f"- {text}: not measured")
            return
        bad = {k: v for k, v in values.items() if v < limit}
        short = ", ".join(f"{k} {v:.3f}" for k, v in sorted(bad.items(), key=lambda i: i[1]))
        out.append(f"- {text}: " + (f"not met by {short}" if bad else "met"))

    def mean(text, peer, limit):
        value = geomean(ratio(r, peer, "median") for r in models)
        goal(text, {"the mean, which is": value} if value else {}, limit)

    against = lambda peer, key: {r["case"]: ratio(r, peer, key) for r in models}
    goal("no model slower than ONNX Runtime", against("onnxruntime", "median"), 1)
    mean("geometric mean 1.3 times as fast as ONNX Runtime", "onnxruntime", 1.3)
    goal("each model 1.5 times as fast as TensorFlow", against("tensorflow", "median"), 1.5)
    mean("geometric mean 2.5 times as fast as TensorFlow", "tensorflow", 2.5)
    goal("load to first result 1.5 times as fast as ONNX Runtime", against("onnxruntime", "load_to_first"), 1.5)
    dense = {r["case"]: r["roofline"]["seconds"] / get(r, "tenon", "median") for r in models
             if r["case"].startswith("densenet121 x") and r.get("roofline") and get(r, "tenon", "median")}
    goal("densenet121, batch 8: 70 % of its roofline", dense, 0.7)
    steady, peak = {}, {}
    for r in models:
        if r.get("count") and get(r, "tenon", "steady_own"):
            base = r["count"]["weights"] + r["count"]["largest"]
            steady[r["case"]] = (1.3 * base + 10e6) / get(r, "tenon", "steady_own")
            peak[r["case"]] = (2.2 * base + 10e6) / get(r, "tenon", "peak_own")
    goal("steady memory at most 1.3 × (weights + largest activations) + 10 MB (limit ÷ use)", steady, 1)
    goal("memory while loading at most 2.2 × that + 10 MB (limit ÷ use)", peak, 1)
    return out


def notes(rows):
    out = []
    for row in rows:
        for peer, it in row["peers"].items():
            if "error" in it:
                out.append(f"- {row['case']}, {NAMES[peer]}: {it['error']}")
        if "count_error" in row:
            out.append(f"- {row['case']}, roofline: {row['count_error']}")
    return out


def markdown(data):
    rows, peers = data["rows"], data["peers"]
    versions = ", ".join(f"{NAMES[p]} {v}" for p, v in data["versions"].items())
    text = [f"{versions}. {data['machine']['cpu']}, {data['threads']} thread(s), {data['machine']['isa']}, "
            f"load of the machine {data['machine']['load_before']} before and {data['machine']['load_after']} after.", ""]
    parts = [("One step", steps(rows, peers)), ("From loading to the first result", loads(rows, peers)),
             ("Memory", memory(rows, peers)), ("Roofline", rooflines(rows, peers)), ("Goals", goals(rows)),
             ("What is missing", notes(rows))]
    for title, lines in parts:
        if lines:
            text += [f"### {title}", ""] + lines + [""]
    return "\n".join(text)


COLOURS = {"tenon": "#1b6ca8", "tenon1": "#4d8fc4", "tenon0": "#7fb2d6", "onnxruntime": "#8c8c8c", "tensorflow": "#e08a1e"}


def picture(data, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.hashsalt": "tenon", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    peers, rows = data["peers"], [r for r in data["rows"] if get(r, "tenon", "median")]
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.2 * len(rows) * (len(peers) + 0.7)))
    thick = 0.85 / len(peers)
    for k, peer in enumerate(peers):
        values = [get(r, peer, "median") / get(r, "tenon", "median") if get(r, peer, "median") else math.nan for r in rows]
        at = [i + (k - (len(peers) - 1) / 2) * thick for i in range(len(rows))]
        axes.barh(at, values, thick, label=NAMES[peer], color=COLOURS[peer])
        for y, value, row in zip(at, values, rows):
            if not math.isnan(value):
                axes.text(value * 1.04, y, f"{number(get(row, peer, 'median'), 1e3)} ms", va="center", fontsize=7)
    axes.set_xscale("log")
    axes.set_xlim(right=axes.get_xlim()[1] * 2)
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if axes.get_xlim()[0] <= t <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [r["case"] for r in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"time of a step, Tenon = 1 (shorter is faster); {data['threads']} thread(s)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="upper center", ncols=len(peers), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / figure.get_figheight()))
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    picture(json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2])
