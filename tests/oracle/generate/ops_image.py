# SPDX-License-Identifier: Apache-2.0
"""Cases for the families image, quant, random and audio.

    python ops_image.py --variant visible|hidden [--seed N] --out DIR [--only OP]...

Writes DIR/index-image.json; ops_kit.py has the builder.
"""
import numpy as np

from ops_kit import FLOATS, main, op, ops

TOL4 = dict(rtol=1e-4, atol=1e-4)


# ---- resizing ---------------------------------------------------------------------
@ops("image", "ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea")
def resize(g, name):
    area = name == "ResizeArea"
    modes = [(False, False), (True, False)] + ([] if area else [(False, True)])
    for k, dt in enumerate(["float32", "uint8", "float32", "half", "float32", "int32", "float32", "float64", "uint8",
                            "float32", "bfloat16", "int8"]):
        al, hp = modes[k % len(modes)] if k < 6 else g.pick(modes)
        x = (g.i(1, 2), g.i(1, 8), g.i(1, 8), g.i(1, 4))
        to = [g.i(1, 12), g.i(1, 12)]
        at = dict(align_corners=al) if area else dict(align_corners=al, half_pixel_centers=hp)
        # a tolerance for float results; what is stored in whole numbers stays exact
        tol = None if name == "ResizeNearestNeighbor" else dict(wkw=dict(rtol=1e-4, atol=1e-3 if dt[0] in "ui" else 1e-5))
        g.c(dict(images=g.d(dt, x, *([0, 200] if dt in ("float32", "int32") and g.coin() else [])), size=g.a(to)),
            "%s %s to %s align %d half %d" % (dt, x, to, al, hp), **(tol or {}), **at)
    for x, to, w in [((1, 4, 4, 3), [8, 8], "twice"), ((1, 8, 8, 3), [4, 4], "half"), ((1, 5, 5, 2), [5, 5], "same size"),
                     ((2, 1, 1, 2), [3, 4], "from one"), ((1, 6, 7, 1), [1, 1], "to one")]:
        for al, hp in modes:
            if g.i(0, 2) < 2:
                at = dict(align_corners=al) if area else dict(align_corners=al, half_pixel_centers=hp)
                g.c(dict(images=g.d("float32", x), size=g.a(to)), "%s align %d half %d" % (w, al, hp), wkw=dict(rtol=1e-4, atol=1e-5), **at)
    x = g.d("float32", (1, 4, 4, 2))
    g.c(dict(images=g.d("float32", (0, 4, 4, 2)), size=g.a([2, 3])), "empty batch") if name != "ResizeArea" else None
    g.e(dict(images=x, size=g.a([0, 3])), "size 0")
    g.e(dict(images=x, size=g.a([-1, 3])), "negative size")
    g.e(dict(images=x, size=g.a([3])), "one size")
    g.e(dict(images=g.d("float32", (4, 4, 2)), size=g.a([2, 2])), "rank")
    g.e(dict(images=g.d("float32", (1, 0, 4, 2)), size=g.a([2, 2])), "no rows")
    if not area:
        g.e(dict(images=x, size=g.a([2, 2])), "both modes", align_corners=True, half_pixel_centers=True)


@ops("image", "ResizeBilinearGrad ResizeNearestNeighborGrad ResizeBicubicGrad")
def resize_grad(g, name):
    nearest = "Nearest" in name
    for k, dt in enumerate(["float32"] * 5 + ["float64", "half", "bfloat16"]):
        al, hp = [(False, False), (True, False), (False, True)][k % 3]
        x = (g.i(1, 2), g.i(1, 6), g.i(1, 6), g.i(1, 3))
        y = (x[0], g.i(1, 8), g.i(1, 8), x[3])
        gr = g.n(dt, y)
        kw = dict(grads=gr, size=g.a(list(x[1:3]))) if nearest else dict(grads=g.n("float32", y), original_image=g.d(dt, x))
        g.c(kw, "%s %s to %s align %d half %d" % (dt, x, y, al, hp), align_corners=al, half_pixel_centers=hp,
            wkw=dict(rtol=1e-4, atol=2e-5) if dt in ("float32", "float64") else dict(rtol=5e-2, atol=5e-2))
    if nearest:
        g.e(dict(grads=g.n("float32", (1, 2, 2, 1)), size=g.a([0, 2])), "size 0")
        g.e(dict(grads=g.n("float32", (2, 2, 1)), size=g.a([2, 2])), "rank")
        g.e(dict(grads=g.n("float32", (1, 2, 2, 1)), size=g.a([2])), "one size")
    else:
        g.e(dict(grads=g.n("float32", (2, 2, 1)), original_image=g.d("float32", (1, 2, 2, 1))), "rank")


KERNELS = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]


@ops("image", "ScaleAndTranslate ScaleAndTranslateGrad")
def scale_translate(g, name):
    for k in range(8):
        dt = "float32" if k % 4 or name.endswith("Grad") else g.pick(["uint8", "int32", "float32"])
        x = (g.i(1, 2), g.i(2, 6), g.i(2, 6), g.i(1, 3))
        to = [g.i(1, 8), g.i(1, 8)]
        sc, tr = g.r.uniform(0.4, 2, 2).round(2), g.r.uniform(-1, 1, 2).round(2)
        at = dict(kernel_type=KERNELS[k] if k < 4 else g.pick(KERNELS), antialias=g.coin())
        s = dict(scale=g.D(sc), translation=g.D(tr))
        kw = dict(images=g.d(dt, x), size=g.a(to), **s) if not name.endswith("Grad") else \
            dict(grads=g.n("float32", (x[0], *to, x[3])), original_image=g.d("float32", x), **s)
        g.c(kw, "%s %s to %s %s %s %s" % (dt, x, to, sc, tr, at), wkw=dict(rtol=1e-4, atol=2e-4), **at)
    if name == "ScaleAndTranslate":
        s = dict(scale=g.D([1.0, 1]), translation=g.D([0.0, 0]))
        x = g.d("float32", (1, 3, 3, 1))
        g.e(dict(images=x, size=g.a([0, 2]), **s), "size 0")
        g.e(dict(images=x, size=g.a([2, 2]), scale=g.D([-1.0, 1]), translation=g.D([0.0, 0])), "negative scale")
        g.e(dict(images=x, size=g.a([2, 2]), **s), "kernel", kernel_type="nothing")
        g.e(dict(images=g.d("float32", (3, 3, 1)), size=g.a([2, 2]), **s), "rank")


@ops("image", "CropAndResize CropAndResizeGradImage CropAndResizeGradBoxes")
def crop_resize(g, name):
    def put(dt, x, n, to, box=None, ind=None):
        box = g.D(g.r.uniform(-0.2, 1.2, (n, 4)).round(3) if box is None else box)
        ind = g.D(g.x("int32", (n,), 0, max(x[0] - 1, 0)) if ind is None else ind, "int32")
        if name == "CropAndResize":
            return dict(image=g.d(dt, x), boxes=box, box_ind=ind, crop_size=g.a(to))
        gr = g.n("float32", (n, *to, x[3]))
        if name.endswith("Image"):
            return dict(grads=gr, boxes=box, box_ind=ind, image_size=g.a(list(x)))
        return dict(grads=gr, image=g.d(dt, x), boxes=box, box_ind=ind)
    methods = ["bilinear"] if name.endswith("Boxes") else ["bilinear", "nearest"]
    for dt in ["float32", "float32", "uint8", "float64", "half", "float32", "int32"]:
        x = (g.i(1, 3), g.i(2, 7), g.i(2, 7), g.i(1, 3))
        at = dict(method=g.pick(methods))
        if name == "CropAndResize":
            at["extrapolation_value"] = g.pick([0.0, -1.5])
        if name.endswith("Image"):
            if dt in ("uint8", "int32"):
                continue
            at["T"] = dt
        n, to = g.i(1, 4), [g.i(1, 5), g.i(1, 5)]
        g.c(put(dt, x, n, to), "%s %s %d boxes to %s %s" % (dt, x, n, to, at),
            wkw=dict(rtol=1e-4, atol=1e-3) if dt != "half" else dict(rtol=2e-2, atol=2e-2), **at)
    T = dict(T="float32") if name.endswith("Image") else {}
    g.c(put("float32", (1, 4, 4, 1), 2, [3, 3], [[1, 1, 0, 0], [0, 0.9, 1, 0.1]]), "flipped", method="bilinear", wkw=TOL4, **T)
    g.c(put("float32", (1, 4, 4, 1), 0, [2, 2]), "no boxes", method="bilinear", **T)
    x = (2, 3, 3, 1)
    g.e(put("float32", x, 1, [2, 2], ind=[2]), "box_ind", **T)
    g.e(put("float32", x, 2, [2, 2], ind=[0]), "number of box_ind", **T)
    g.e(put("float32", x, 1, [2, 2], box=[[0, 0, 1]]), "boxes", **T)
    if name == "CropAndResize":
        g.e(put("float32", x, 1, [0, 2]), "size 0")
        g.e(put("float32", x, 1, [2]), "one size")


# ---- boxes -------------------------------------------------------------------------
def boxes(g, n):
    a = g.r.uniform(0, 1, (n, 2))
    b = a + g.r.uniform(0.1, 0.6, (n, 2))
    x = np.concatenate([a, b], 1)
    flip = g.r.integers(0, 4, n) == 0
    x[flip] = x[flip][:, [2, 3, 0, 1]]          # corners may come in either order
    return x.round(4)


def scores(g, n):
    return ((g.r.permutation(n) + 1) / (n + 1)).round(4)


@ops("image", "NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 "
     "NonMaxSuppressionWithOverlaps")
def nms(g, name):
    v = 9 if name.endswith("Overlaps") else int(name[-1]) if name[-1].isdigit() else 1

    def put(n, out, dt="float32", iou=0.5, th=-np.inf, sigma=0.0, b=None, s=None):
        s = g.D(scores(g, n) if s is None else s, dt)
        if v == 9:
            x = boxes(g, n)
            lo, hi = np.minimum(x[:, :2], x[:, 2:]), np.maximum(x[:, :2], x[:, 2:])
            wh = np.clip(np.minimum(hi[:, None], hi) - np.maximum(lo[:, None], lo), 0, None).prod(-1)
            ar = (hi - lo).prod(-1)
            ov = wh / (ar[:, None] + ar - wh) if b is None else b
            return dict(overlaps=g.D(ov), scores=s, max_output_size=g.a(out), overlap_threshold=g.a(iou, "float32"),
                        score_threshold=g.a(th, "float32"))
        kw = dict(boxes=g.D(boxes(g, n) if b is None else b, dt), scores=s, max_output_size=g.a(out))
        if v > 1:
            kw["iou_threshold"] = g.a(iou, dt)
        if v > 2:
            kw["score_threshold"] = g.a(th, dt)
        if v > 4:
            kw["soft_nms_sigma"] = g.a(sigma, dt)
        return kw
    for k in range(7):
        n = g.i(3, 20)
        dt = "half" if k == 3 and v in (2, 3, 4, 5) else "float32"
        at = dict(iou_threshold=g.pick([0.3, 0.5])) if v == 1 else {}
        if v in (4, 5):
            at["pad_to_max_output_size"] = g.coin()
        g.c(put(n, g.i(1, n + 2), dt, g.pick([0.2, 0.4, 0.6]), g.pick([-np.inf, 0.3, 0.5]), g.pick([0.0, 0.0, 0.5])),
            "%s %d boxes" % (dt, n), **at)
    g.c(put(5, 0), "max_output_size 0")
    g.c(put(0, 3), "no boxes")
    if v != 9:
        g.c(put(4, 4, b=np.tile([[0, 0, 1, 1.0]], (4, 1)), s=[0.5, 0.5, 0.9, 0.5]), "equal boxes")
        g.c(put(3, 3, b=[[0, 0, 1, 1], [0.2, 0.2, 0.2, 0.6], [2, 2, 3, 3.0]], s=[0.5, 0.5, 0.5]), "tied scores, no area")
        g.e(put(2, 2, b=np.zeros((2, 3))), "box size")
    g.e({**put(3, 2), "scores": g.D([0.1, 0.2])}, "number of scores")
    g.e(put(3, -1), "negative max_output_size")
    if 2 <= v < 9:
        g.e(put(3, 2, iou=1.5), "iou_threshold")
        g.e({**put(3, 2), "max_output_size": g.a([2])}, "max_output_size is a vector")


@op("image", "CombinedNonMaxSuppression")
def combined_nms(g):
    def put(b, n, q, c, per, tot, iou=0.5, th=0.2):
        bx = np.stack([[boxes(g, n) for _ in range(q)] for _ in range(b)]).transpose(0, 2, 1, 3)
        sc = g.r.permutation(b * n * c).reshape(b, n, c) / (b * n * c)
        return dict(boxes=g.D(bx), scores=g.D(sc), max_output_size_per_class=g.a(per), max_total_size=g.a(tot),
                    iou_threshold=g.a(iou, "float32"), score_threshold=g.a(th, "float32"))
    for _ in range(7):
        b, n, c = g.i(1, 2), g.i(2, 8), g.i(1, 4)
        per = g.i(1, 4)
        g.c(put(b, n, g.pick([1, c]), c, per, g.i(1, 8), g.pick([0.3, 0.6]), g.pick([0.0, 0.2, 0.6])), "%d %d %d" % (b, n, c),
            pad_per_class=g.coin(), clip_boxes=g.coin())
    g.e(put(1, 3, 2, 3, 2, 4), "boxes for two classes of three")
    g.e(put(1, 3, 1, 3, 0, 4), "max_output_size_per_class 0")
    g.e(put(1, 3, 1, 3, 2, 0), "max_total_size 0")
    g.e(put(1, 3, 1, 3, 2, 4, iou=1.5), "iou_threshold")


@ops("image", "DrawBoundingBoxes DrawBoundingBoxesV2")
def draw_boxes(g, name):
    v2 = name.endswith("V2")
    for dt in ["float32", "float32", "half", "float32"]:
        c, b, n = g.pick([1, 3, 4]), g.i(1, 2), g.i(1, 4)
        kw = dict(images=g.d(dt, (b, g.i(5, 10), g.i(5, 10), c), 0, 1), boxes=g.D(np.stack([boxes(g, n).clip(0, 1) for _ in range(b)])))
        if v2:
            kw["colors"] = g.d("float32", (g.i(1, 3), c), 0, 1)
        g.c(kw, "%s %d boxes, %d channels" % (dt, n, c))
    kw = dict(images=g.d("float32", (1, 5, 5, 3), 0, 1), boxes=g.D([[[0.2, 0.2, 0.8, 0.8]]]))
    if v2:
        kw["colors"] = g.d("float32", (1, 3))
    g.e({**kw, "boxes": g.D([[0.2, 0.2, 0.8, 0.8]])}, "boxes rank")
    g.e({**kw, "images": g.d("float32", (1, 5, 5, 2), 0, 1)}, "two channels")
    g.e({**kw, "images": g.d("float32", (2, 5, 5, 3), 0, 1)}, "batch")


# ---- colours ---------------------------------------------------------------------------
@ops("image", "AdjustContrastv2 AdjustHue AdjustSaturation")
def adjust(g, name):
    arg = dict(AdjustContrastv2="contrast_factor", AdjustHue="delta", AdjustSaturation="scale")[name]
    for k, dt in enumerate(["float32"] * 5):
        sh = g.shape(g.i(0, 2), 1, 3) + (g.i(1, 4), g.i(1, 4), 3)
        val = round(float(g.r.uniform(-0.6, 0.6) if arg == "delta" else g.r.uniform(0, 3)), 3)
        g.c({"images": g.d(dt, sh, 0, 1), arg: g.a(val, "float32")}, "%s %s %g" % (dt, sh, val),
            wkw=dict(rtol=1e-4, atol=2e-5) if dt == "float32" else dict(rtol=1e-2, atol=1e-2))
    g.c({"images": g.D([[[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0], [0, 1, 0], [0, 0, 1]]]), arg: g.a(0.5, "float32")},
        "greys and pure colours", wkw=dict(rtol=1e-4, atol=2e-5))
    g.c({"images": g.d("float32", (0, 2, 3)), arg: g.a(0.5, "float32")}, "empty")
    g.e({"images": g.d("float32", (2, 3)), arg: g.a(0.5, "float32")}, "rank")
    g.e({"images": g.d("float32", (2, 2, 3)), arg: g.a([0.5], "float32")}, "argument is a vector")
    if name != "AdjustContrastv2":
        g.e({"images": g.d("float32", (2, 2, 4)), arg: g.a(0.5, "float32")}, "channels")


@ops("image", "RGBToHSV HSVToRGB")
def hsv(g, name):
    for dt in ["float32", "float64", "half", "bfloat16", "float32"]:
        sh = g.shape(g.i(0, 4), 1, 4) + (3,)
        g.c(dict(images=g.d(dt, sh, 0, 1)), "%s %s" % (dt, sh), wkw=dict(rtol=1e-5, atol=2e-6) if dt[0] == "f" else
            dict(rtol=2e-2, atol=2e-2))
    g.c(dict(images=g.D([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.2, 0.1]])), "corners")
    g.c(dict(images=g.d("float32", (0, 3))), "empty")
    g.e(dict(images=g.d("float32", (2, 4))), "channels")
    g.e(dict(images=g.d("float32", ())), "scalar")


# ---- quantisation -----------------------------------------------------------------------
def fq_attrs(g):
    return dict(num_bits=g.pick([8, 8, 8, 4, 2, 16]), narrow_range=g.coin())


def fq_range(g):
    """min <= 0 <= max mostly; sometimes 0 has to be nudged in."""
    k = g.i(0, 3)
    lo, hi = -g.r.uniform(0.1, 6), g.r.uniform(0.1, 6)
    return [(lo, hi), (0.0, hi), (lo, hi), (hi, hi + 2) if k else (lo, hi)][k]


@ops("quant", "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars "
     "FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient", acc=True)
def fake_quant(g, name):
    grad, args, per = name.endswith("Gradient"), "Args" in name, "PerChannel" in name

    def put(sh, lo, hi, bad=None):
        kw = dict(gradients=g.d("float32", sh)) if grad else {}
        kw["inputs"] = g.d("float32", sh, -7, 7)
        at = {}
        if args:
            at = dict(min=float(lo), max=float(hi))
        else:
            kw.update(min=g.D(lo, "float32"), max=g.D(hi, "float32"))
        return kw, at
    for _ in range(8):
        sh = g.shape(g.i(1, 4), 1, 6)
        if per:
            lh = [fq_range(g) for _ in range(sh[-1])]
            kw, at = put(sh, [x[0] for x in lh], [x[1] for x in lh])
        else:
            kw, at = put(sh, *fq_range(g))
        at.update(fq_attrs(g))
        g.c(kw, "%s %s" % (sh, at), **at)
    zero = ([0.0] * 3, [1.0] * 3) if per else (-1.0, 1.0)
    kw, at = put((0, 3), *zero)
    g.c(kw, "empty", **at)
    kw, at = put((2, 3), *zero)
    if grad:
        g.e({**kw, "gradients": g.d("float32", (2, 2))}, "sizes", **at)
    if not args:
        g.e({**kw, "min": g.D([0.0, 0.0])}, "min shape", **at)
        kw, at = put((2, 3), *(([0.0] * 3, [0.0] * 3) if per else (0.0, 0.0)))
        g.c(kw, "min and max 0", **at)


QMODES = ["MIN_COMBINED", "MIN_FIRST", "SCALED"]


@op("quant", "QuantizeV2")
def quantize(g):
    for k in range(12):
        t = g.pick(["quint8", "qint8", "quint8", "qint8", "qint16", "quint16"])
        mode = QMODES[k % 3]
        rm = g.pick(["HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"]) if mode == "SCALED" else "HALF_AWAY_FROM_ZERO"
        sh = g.shape(g.i(1, 4), 1, 5)
        at = dict(T=t, mode=mode, round_mode=rm)
        if mode == "SCALED":
            at["narrow_range"] = g.coin()
        lo, hi = -g.r.uniform(0.1, 3), g.r.uniform(0.1, 3)
        if g.i(0, 2) == 0:
            at["axis"] = ax = g.i(0, len(sh) - 1)
            lo, hi = -g.r.uniform(0.1, 3, sh[ax]), g.r.uniform(0.1, 3, sh[ax])
        g.c(dict(input=g.d("float32", sh, -4, 4), min_range=g.D(lo, "float32"), max_range=g.D(hi, "float32")), "%s %s" % (sh, at),
            wkw=dict(int_atol=1), **at)
    m = dict(min_range=g.D(-1.0, "float32"), max_range=g.D(1.0, "float32"))
    g.c(dict(input=g.d("float32", (0, 2)), **m), "empty", T="quint8")
    g.c(dict(input=g.d("float32", (5,)), min_range=g.D(0.5, "float32"), max_range=g.D(0.5, "float32")), "no range", T="quint8",
        wkw=dict(int_atol=1))
    g.e(dict(input=g.d("float32", (5,)), min_range=g.D(1.0, "float32"), max_range=g.D(-1.0, "float32")), "min above max", T="quint8")
    g.e(dict(input=g.d("float32", (5,)), min_range=g.D([1.0, 2], "float32"), max_range=g.D(3.0, "float32")), "min is a vector", T="quint8")


@op("quant", "Dequantize", acc=True)
def dequantize(g):
    for k in range(10):
        t, mode, sh = g.pick(["quint8", "qint8", "quint8", "qint16", "quint16"]), QMODES[k % 3], g.shape(g.i(1, 4), 1, 5)
        at = dict(mode=mode)
        if mode == "SCALED":
            at["narrow_range"] = g.coin()
        lo, hi = -g.r.uniform(0.1, 3), g.r.uniform(0.1, 3)
        if g.i(0, 2) == 0:
            at["axis"] = ax = g.i(0, len(sh) - 1)
            lo, hi = -g.r.uniform(0.1, 3, sh[ax]), g.r.uniform(0.1, 3, sh[ax])
        if k % 5 == 4:
            at = dict(mode="MIN_COMBINED", dtype="bfloat16")
            lo, hi = -1.5, 2.0
        g.c(dict(input=g.d(t, sh), min_range=g.D(lo, "float32"), max_range=g.D(hi, "float32")), "%s %s %s" % (t, sh, at),
            wkw=dict(rtol=1e-2, atol=2e-2) if "dtype" in at else None, **at)
    g.c(dict(input=g.d("qint8", (0,)), min_range=g.D(-1.0, "float32"), max_range=g.D(1.0, "float32")), "empty")
    g.e(dict(input=g.d("qint8", (3,)), min_range=g.D([1.0, 2], "float32"), max_range=g.D(3.0, "float32")), "min is a vector")


@op("quant", "QuantizeAndDequantize", acc=True, producer=21)
def qdq1(g):
    qdq(g, "QuantizeAndDequantize")


@ops("quant", "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4", acc=True)
def qdq(g, name):
    v = int(name[-1]) if name[-1].isdigit() else 1
    for dt in ["float32", "float32", "float64", "half", "float32", "float32", "float32", "float32"]:
        sh = g.shape(g.i(1, 4), 1, 5)
        given, signed = g.coin(), g.coin()
        lo, hi = (-g.r.uniform(0.5, 3) if signed else 0.0), g.r.uniform(0.5, 3)
        at = dict(signed_input=signed, range_given=given)
        bits = g.pick([8, 8, 4, 7])
        kw = dict(input=g.d(dt, sh))
        if v > 1:
            at["narrow_range"] = g.coin()
            if v != 3:
                at["round_mode"] = g.pick(["HALF_TO_EVEN", "HALF_UP"])
            if g.i(0, 2) == 0:
                at["axis"] = ax = g.i(0, len(sh) - 1)
                lo, hi = np.full(sh[ax], lo), g.r.uniform(0.5, 3, sh[ax])
            kw.update(input_min=g.D(lo, dt), input_max=g.D(hi, dt))
        if v == 3:
            kw["num_bits"] = g.a(bits)
        else:
            at["num_bits"] = bits
        if v == 1:
            at.update(input_min=float(lo), input_max=float(hi))
        g.c(kw, "%s %s %s" % (dt, sh, at), **at)
    if v > 1:
        kw = dict(input=g.d("float32", (2, 3)), input_min=g.D(1.0, "float32"), input_max=g.D(-1.0, "float32"))
        if v == 3:
            kw["num_bits"] = g.a(8)
        g.e(kw, "min above max", range_given=True)
        if v != 3:                 # there real TensorFlow aborts
            g.e({**kw, "input_min": g.D([0.0, 0.0], "float32")}, "min shape", range_given=True)
        else:
            g.e({**kw, "num_bits": g.a(0)}, "num_bits 0", range_given=False)


def mm(g, *names):
    """{name: a scalar for min or max}"""
    return {n: g.D(-g.r.uniform(0.2, 3) if "min" in n else g.r.uniform(0.2, 3), "float32") for n in names}


def q32(g, sh):
    return g.d("qint32", sh, -200000, 200000)


@op("quant", "QuantizedConv2D")
def q_conv(g):
    for k in range(6):
        b, n, m, kh, kw, c, o, s = g.i(1, 2), g.i(3, 6), g.i(3, 6), g.i(1, 3), g.i(1, 3), g.i(1, 4), g.i(1, 4), g.i(1, 2)
        g.c(dict(input=g.d("quint8", (b, n, m, c)), filter=g.d("quint8", (kh, kw, c, o)),
                 **mm(g, "min_input", "max_input", "min_filter", "max_filter")), "%s" % [b, n, m, c, kh, kw, o, s],
            out_type="qint32", strides=[1, s, s, 1], padding=g.pick(["SAME", "VALID"]))
    r = mm(g, "min_input", "max_input", "min_filter", "max_filter")
    at = dict(strides=[1, 1, 1, 1], padding="VALID")
    g.e(dict(input=g.d("quint8", (1, 3, 3, 2)), filter=g.d("quint8", (2, 2, 3, 1)), **r), "channels", **at)
    g.e(dict(input=g.d("quint8", (1, 3, 3, 2)), filter=g.d("quint8", (2, 2, 2, 1)), **{**r, "min_filter": g.D([0.0, 0])}),
        "min_filter", **at)


@op("quant", "QuantizedMatMul")
def q_matmul(g):
    names = "min_a", "max_a", "min_b", "max_b"
    for _ in range(6):
        m, k, n = g.i(1, 5), g.i(1, 9), g.i(1, 5)
        ta, tb = g.coin(), g.coin()
        g.c(dict(a=g.d("quint8", (k, m) if ta else (m, k)), b=g.d("quint8", (n, k) if tb else (k, n)), **mm(g, *names)),
            "%d %d %d" % (m, k, n), transpose_a=ta, transpose_b=tb)
    g.e(dict(a=g.d("quint8", (2, 3)), b=g.d("quint8", (4, 2)), **mm(g, *names)), "sizes")
    g.e(dict(a=g.d("quint8", (2, 3)), b=g.d("quint8", (3,)), **mm(g, *names)), "rank")


@ops("quant", "QuantizedRelu QuantizedRelu6")
def q_relu(g, name):
    for k in range(4):
        sh, dt = g.shape(g.i(1, 4), 1, 5), "quint8" if k < 2 else "qint32"
        g.c(dict(features=g.d(dt, sh) if dt == "quint8" else q32(g, sh), **mm(g, "min_features", "max_features")), "%s %s" % (dt, sh),
            out_type=dt)


@op("quant", "QuantizedBiasAdd")
def q_bias(g):
    names = "min_input", "max_input", "min_bias", "max_bias"
    for k in range(5):
        sh = g.shape(g.i(2, 4), 1, 4)
        bdt = dt = "quint8" if k < 4 else "qint8"
        g.c(dict(input=g.d(dt, sh), bias=g.d(bdt, (sh[-1],)), **mm(g, *names)), "%s %s" % (dt, sh), out_type="qint32",
            wkw=dict(int_atol=64))
    g.e(dict(input=g.d("quint8", (2, 3)), bias=g.d("quint8", (2,)), **mm(g, *names)), "length", out_type="qint32")


@ops("quant", "QuantizedMaxPool QuantizedAvgPool")
def q_pool(g, name):
    for k in range(5):
        x = (g.i(1, 2), g.i(3, 6), g.i(3, 6), g.i(1, 4))
        g.c(dict(input=g.d("quint8", x), **mm(g, "min_input", "max_input")), "%s" % (x,), ksize=[1, g.i(1, 3), g.i(1, 3), 1],
            strides=[1] + [g.i(1, 2)] * 2 + [1], padding=g.pick(["SAME", "VALID"]))
    g.e(dict(input=g.d("quint8", (3, 3, 2)), **mm(g, "min_input", "max_input")), "rank", ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1],
        padding="VALID")


@op("quant", "QuantizedReshape")
def q_reshape(g):
    for dt in ["quint8", "qint8", "qint32", "quint8"]:
        a, b = g.i(1, 4), g.i(1, 5)
        g.c(dict(tensor=g.d(dt, (a, b)), shape=g.a([b, -1, 1], g.it()), **mm(g, "input_min", "input_max")), dt)
    g.e(dict(tensor=g.d("quint8", (2, 3)), shape=g.a([4, 2]), **mm(g, "input_min", "input_max")), "sizes")


@op("quant", "QuantizedConcat")
def q_concat(g):
    for k in range(5):
        n, r = g.i(2, 4), g.i(1, 3)
        ax, sh = g.i(0, r - 1), list(g.shape(r, 1, 4))
        vs = []
        for _ in range(n):
            sh[ax] = g.i(1, 3)
            vs.append(g.d("quint8", sh))
        lo, hi = mm(g, *["min%d" % i for i in range(n)]), mm(g, *["max%d" % i for i in range(n)])
        g.c(dict(concat_dim=g.a(ax), values=vs, input_mins=list(lo.values()), input_maxes=list(hi.values())), "%d on %d" % (n, ax),
            wkw=dict(int_atol=1))
    two = dict(input_mins=[g.D(-1.0), g.D(-1.0)], input_maxes=[g.D(1.0), g.D(1.0)])
    g.c(dict(concat_dim=g.a(0), values=[g.d("quint8", (2, 2)), g.d("quint8", (1, 2))], **two), "same ranges")
    g.e(dict(concat_dim=g.a(0), values=[g.d("quint8", (2, 2)), g.d("quint8", (1, 3))], **two), "sizes")
    g.e(dict(concat_dim=g.a(2), values=[g.d("quint8", (2, 2)), g.d("quint8", (1, 2))], **two), "axis")


@op("quant", "Requantize")
def requantize(g):
    for k in range(5):
        r = mm(g, "input_min", "input_max")
        for v in r.values():
            v.value = v.value * 1000
        g.c(dict(input=g.d("qint32", g.shape(g.i(1, 4), 1, 4), -2 ** 30, 2 ** 30), **r,
                 requested_output_min=g.D(0.0 if k % 2 else -g.r.uniform(100, 900)), requested_output_max=g.D(g.r.uniform(100, 900))),
            "", out_type="quint8" if k < 4 else "qint8", wkw=dict(int_atol=1))
    x = dict(input=q32(g, (3,)), **mm(g, "input_min", "input_max"))
    g.e(dict(x, requested_output_min=g.D(0.5), requested_output_max=g.D(1.0)), "requested min above 0", out_type="quint8")
    g.e(dict(x, requested_output_min=g.D(-0.5), requested_output_max=g.D(-1.0)), "requested max below min", out_type="quint8")


@op("quant", "RequantizationRange")
def requant_range(g):
    for _ in range(4):
        g.c(dict(input=q32(g, g.shape(g.i(1, 3), 1, 5)), **mm(g, "input_min", "input_max")), "")


@op("quant", "QuantizeDownAndShrinkRange")
def shrink_range(g):
    for k in range(5):
        g.c(dict(input=g.d("qint32", g.shape(g.i(1, 3), 1, 5), -2 ** (12 + 4 * k), 2 ** (12 + 4 * k)), **mm(g, "input_min", "input_max")), "%d" % k,
            out_type="quint8", wkw=dict(int_atol=1))


# ---- random numbers ------------------------------------------------------------------------
SEEDS = [(0, 0), (1, 2), (87654321, 7), (5, 0)]


@ops("random", "RandomUniform RandomStandardNormal TruncatedNormal")
def random_float(g, name):
    how = dict(RandomUniform=("range", (0, 1)), RandomStandardNormal=("shape", None), TruncatedNormal=("range", (-2, 2)))[name]
    for k, dt in enumerate(["float32", "float64", "half", "bfloat16", "float32", "float32"]):
        s = g.pick(SEEDS)
        sh = list(g.shape(g.i(1, 4), 1, 6)) if k < 5 else [0, 3]
        g.c(dict(shape=g.a(sh, g.it())), "%s %s" % (dt, sh), compare=how[0], ranges=how[1], dtype=dt, seed=s[0], seed2=s[1])
    g.c(dict(shape=g.a(np.zeros(0, int))), "scalar", compare=how[0], ranges=how[1], dtype="float32", seed=0, seed2=0)
    g.e(dict(shape=g.a([2, -1])), "negative", dtype="float32", seed=1, seed2=1)
    g.e(dict(shape=g.a([[2, 1]])), "matrix", dtype="float32", seed=1, seed2=1)


@op("random", "RandomUniformInt")
def random_int(g):
    for dt in ["int32", "int64", "int32"]:
        lo, n = g.i(-50, 50), g.i(1, 30)
        s = g.pick(SEEDS)
        g.c(dict(shape=g.a(list(g.shape(g.i(1, 3), 1, 8)), g.it()), minval=g.a(lo, dt), maxval=g.a(lo + n, dt)), dt,
            compare="range", ranges=(lo, lo + n - 1), seed=s[0], seed2=s[1])
    g.e(dict(shape=g.a([2]), minval=g.a(3), maxval=g.a(3)), "no range", seed=1, seed2=1)
    g.e(dict(shape=g.a([2]), minval=g.a([3]), maxval=g.a(4)), "minval is a vector", seed=1, seed2=1)


@op("random", "RandomShuffle")
def shuffle(g):
    for dt in ["float32", "int32", "string", "int64"]:
        g.c(dict(value=g.d(dt, g.shape(g.i(1, 3), 2, 5))), dt, compare="shape", seed=g.i(0, 3), seed2=g.i(0, 3))
    g.c(dict(value=g.d("float32", (0, 2))), "empty", compare="values", seed=1, seed2=1)
    g.c(dict(value=g.d("float32", (1, 2))), "one row", compare="values", seed=1, seed2=1)
    g.c(dict(value=g.d("float32", ())), "scalar", compare="values", seed=1, seed2=1)
    g.c(dict(value=g.D(np.full((6, 2), g.i(1, 9)), "int32")), "equal rows", compare="values", seed=0, seed2=0)


@op("random", "Multinomial")
def multinomial(g):
    for dt in ["float32", "float64", "half"]:
        b, c = g.i(1, 3), g.i(1, 6)
        g.c(dict(logits=g.d(dt, (b, c)), num_samples=g.a(g.i(1, 9))), dt, compare="range", ranges=(0, c - 1), seed=g.i(0, 5), seed2=g.i(0, 5),
            output_dtype=g.it())
    g.c(dict(logits=g.D([[-1e9, 0.0, -1e9]]), num_samples=g.a(5)), "one sure class", compare="values", seed=1, seed2=1)
    g.c(dict(logits=g.d("float32", (2, 3)), num_samples=g.a(0)), "no samples", compare="shape", seed=1, seed2=1)
    g.e(dict(logits=g.d("float32", (3,)), num_samples=g.a(2)), "rank", seed=1, seed2=1)
    g.e(dict(logits=g.d("float32", (2, 3)), num_samples=g.a(-1)), "negative", seed=1, seed2=1)
    g.e(dict(logits=g.d("float32", (2, 0)), num_samples=g.a(1)), "no classes", seed=1, seed2=1)


@ops("random", "RandomGamma RandomPoissonV2")
def random_rate(g, name):
    arg = "alpha" if name == "RandomGamma" else "rate"
    for dt in ["float32", "float64", "float32", "half"]:
        g.c({"shape": g.a(list(g.shape(g.i(0, 2), 1, 4)) or np.zeros(0, int)), arg: g.d(dt, g.shape(g.i(0, 2), 1, 3), 0.2, 12)}, dt,
            compare="range", ranges=(0, 1e4), seed=g.i(1, 9), seed2=g.i(1, 9))
    g.e({"shape": g.a([-1]), arg: g.d("float32", (2,), 1, 2)}, "negative", seed=1, seed2=1)


# Stateless numbers are a function of the seed: the values count.
@ops("random", "StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal "
     "StatelessRandomUniformV2 StatelessRandomNormalV2 StatelessTruncatedNormalV2")
def stateless(g, name):
    v2 = name.endswith("V2")

    def put(sh, t="int64", s=None):
        s = [g.i(0, 2 ** 31 - 1), g.i(0, 2 ** 31 - 1)] if s is None else s
        a = dict(shape=g.a(sh, g.it()))
        if not v2:
            return dict(a, seed=g.a(s, t)), {}
        return dict(a, key=g.D([s[0]], "uint64"), counter=g.D([s[1], s[0] // 3], "uint64"), alg=g.a(1)), {}
    tol = {"float32": (1e-4, 1e-5), "float64": (1e-9, 1e-10), "half": (4e-3, 4e-3), "bfloat16": (2e-2, 2e-2)}
    for k, dt in enumerate(FLOATS + FLOATS + ["float32"] * 4):
        sh = list(g.shape(g.i(1, 4), 1, 6)) if k not in (8, 9) else [g.i(200, 1500)]
        kw, at = put(sh, g.it())
        g.c(kw, "%s %s" % (dt, sh), dtype=dt, wkw=dict(rtol=tol[dt][0], atol=tol[dt][1]), **at)
    for s in ([0, 0], [1, 2], [2 ** 31 - 1, 5]):
        kw, at = put([7], s=s)
        g.c(kw, "seed %s" % s, dtype="float32", wkw=dict(rtol=1e-4, atol=1e-5))
    if not v2:
        kw, at = put([5], s=[-1, -7])
        g.c(kw, "negative seed", dtype="float32", wkw=dict(rtol=1e-4, atol=1e-5))
    kw, at = put([0, 2])
    g.c(kw, "empty", dtype="float32")
    g.e(put([2, -1])[0], "negative shape", dtype="float32")
    kw, at = put([3])
    if v2:
        # a counter that is too short is read past its end by real TensorFlow: no case
        g.e({**kw, "alg": g.a(9)}, "algorithm", dtype="float32")
    else:
        g.e({**kw, "seed": g.a([1, 2, 3])}, "three seeds", dtype="float32")


@ops("random", "StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2")
def stateless_int(g, name):
    v2, full = name.endswith("V2"), "Full" in name

    def put(sh, dt, lo=0, hi=10):
        s = [g.i(0, 2 ** 31 - 1), g.i(0, 2 ** 31 - 1)]
        kw = dict(shape=g.a(sh, g.it()))
        kw.update(dict(key=g.D([s[0]], "uint64"), counter=g.D([s[1], 3], "uint64"), alg=g.a(1)) if v2 else dict(seed=g.a(s, g.it())))
        if not full:
            kw.update(minval=g.a(lo, dt), maxval=g.a(hi, dt))
        return kw
    for k, dt in enumerate(["int32", "int64", "uint32", "uint64", "int32", "int64"]):
        lo = g.i(0, 50) if dt[0] == "u" else g.i(-90, 50)
        hi = lo + g.pick([1, 7, 100, 2 ** 30])
        sh = list(g.shape(g.i(1, 3), 1, 7)) if k else [g.i(300, 900)]
        g.c(put(sh, dt, lo, hi), "%s %s [%d, %d)" % (dt, sh, lo, hi), **(dict(dtype=dt) if full else {}))
    at = dict(dtype="int32") if full else {}
    g.e(put([-1], "int32"), "negative shape", **at)
    if not full:
        g.e(put([3], "int32", 5, 5), "no range")
        g.e({**put([3], "int32"), "minval": g.a([1, 2])}, "minval is a vector")


@op("random", "StatelessRandomGetKeyCounter")
def key_counter(g):
    for s in ([0, 0], [1, 2], [g.i(0, 2 ** 31 - 1), g.i(0, 2 ** 31 - 1)], [-1, -5]):
        g.c(dict(seed=g.a(s, g.it())), "%s" % s)
    g.e(dict(seed=g.a([1, 2, 3])), "three seeds")


@op("random", "StatelessMultinomial")
def stateless_multinomial(g):
    for dt in ["float32", "float64", "float32", "half"]:
        b, c = g.i(1, 3), g.i(1, 6)
        g.c(dict(logits=g.d(dt, (b, c)), num_samples=g.a(g.i(1, 12)), seed=g.a([g.i(0, 9999), g.i(0, 9999)], g.it())), dt, output_dtype=g.it())
    g.e(dict(logits=g.d("float32", (3,)), num_samples=g.a(2), seed=g.a([1, 2])), "rank")
    g.e(dict(logits=g.d("float32", (1, 3)), num_samples=g.a(-2), seed=g.a([1, 2])), "negative")


# ---- sound -----------------------------------------------------------------------------------
def wave(g, n, c):
    t = np.arange(n)[:, None]
    return np.sin(t * g.r.uniform(0.05, 1.5, (1, c))) + 0.3 * g.r.standard_normal((n, c))


@op("audio", "AudioSpectrogram")
def spectrogram(g):
    for _ in range(6):
        win = g.pick([16, 20, 32, 50, 64, 33])
        n, c, st = g.i(win, 4 * win), g.i(1, 3), g.i(win // 4, win)
        sq = g.coin()
        g.c(dict(input=g.D(wave(g, n, c))), "%d samples, %d channels, window %d stride %d" % (n, c, win, st), window_size=win, stride=st,
            magnitude_squared=sq, wkw=dict(rtol=1e-4, atol=2e-4))
    g.c(dict(input=g.D(wave(g, 8, 1))), "shorter than the window", window_size=16, stride=8)
    g.e(dict(input=g.d("float32", (16,))), "rank", window_size=8, stride=8)
    g.e(dict(input=g.d("float32", (16, 1))), "window 1", window_size=1, stride=8)
    g.e(dict(input=g.d("float32", (16, 1))), "stride 0", window_size=8, stride=0)


@op("audio", "Mfcc")
def mfcc(g):
    for _ in range(6):
        c, n, bins = g.i(1, 2), g.i(1, 5), g.pick([33, 65, 129])
        ch = g.i(8, 40) if bins > 33 else g.i(5, 10)
        at = dict(upper_frequency_limit=g.pick([4000.0, 3000.0, 7000.0]), lower_frequency_limit=g.pick([20.0, 100.0]),
                  filterbank_channel_count=ch, dct_coefficient_count=g.i(2, min(ch, 13)))
        rate = g.pick([16000, 22050])
        g.c(dict(spectrogram=g.d("float32", (c, n, bins), 0, 20), sample_rate=g.a(rate)), "%s %d %s" % ((c, n, bins), rate, at),
            wkw=dict(rtol=1e-4, atol=1e-4), **at)
    x = g.d("float32", (1, 2, 33), 0, 5)
    g.c(dict(spectrogram=g.D(np.zeros((1, 2, 33))), sample_rate=g.a(16000)), "silence", wkw=dict(rtol=1e-4, atol=1e-4))
    g.e(dict(spectrogram=g.d("float32", (2, 33), 0, 5), sample_rate=g.a(16000)), "rank")
    g.e(dict(spectrogram=x, sample_rate=g.a([16000])), "rate is a vector")
    g.e(dict(spectrogram=x, sample_rate=g.a(16000)), "more coefficients than channels", filterbank_channel_count=5, dct_coefficient_count=9)


if __name__ == "__main__":
    main("image")
