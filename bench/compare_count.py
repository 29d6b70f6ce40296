# SPDX-License-Identifier: Apache-2.0
"""What a graph costs at least: operations and bytes of its products, from the shapes that a real step has.

Counted are convolutions and matrix products (2 FLOPs a multiply-add; each reads its input and weights and writes its output
once) and poolings (bytes). Taps that fall on padding are not counted, since nobody has to compute them. All else is taken as
fused and free. So the bound is low: a share above 100 % would mean that something is counted wrong.
"""

PRODUCTS = {"Conv2D", "DepthwiseConv2dNative", "MatMul", "BatchMatMul", "BatchMatMulV2"}
POOLS = {"MaxPool", "AvgPool", "Mean"}


def needed(graph, case):
    """Operations that the fetches need, feeds not gone behind."""
    fed, seen = set(case.feeds), {}
    stack = [graph.get_tensor_by_name(name).op for name in case.fetches]
    while stack:
        op = stack.pop()
        if op.name in seen:
            continue
        seen[op.name] = op
        stack += [t.op for t in op.inputs if t.name not in fed]
    return list(seen.values())


def elements(shape):
    n = 1
    for d in shape:
        n *= int(d)
    return n


def taps(size, out, kernel, stride, dilation, before):
    """Along one side: how many taps of all outputs lie inside the input. Those on the padding need no work."""
    return sum(0 <= o * stride - before + k * dilation < size for o in range(out) for k in range(kernel))


def taps_of(op, image, kernel, out):
    """The product of both sides' taps."""
    at = 2 if op.get_attr("data_format") == b"NCHW" else 1
    padding, total = op.get_attr("padding"), 1
    for i in range(2):
        size, result, k = int(image[at + i]), int(out[at + i]), int(kernel[i])
        stride, dilation = op.get_attr("strides")[at + i], op.get_attr("dilations")[at + i]
        before = 0
        if padding == b"SAME":
            before = max((result - 1) * stride + (k - 1) * dilation + 1 - size, 0) // 2
        elif padding == b"EXPLICIT":
            before = op.get_attr("explicit_paddings")[2 * (at + i)]
        total *= taps(size, result, k, stride, dilation, before)
    return total


def flops(op, inputs, out):
    if op.type in ("Conv2D", "DepthwiseConv2dNative"):
        image, kernel = inputs
        channels = int(kernel[2]) * int(kernel[3])  # in times out; depthwise: in times multiplier
        return 2 * int(image[0]) * channels * taps_of(op, image, kernel, out)
    if op.type in PRODUCTS:
        left = op.get_attr("transpose_a") if op.type == "MatMul" else op.get_attr("adj_x")
        return 2 * elements(out) * int(inputs[0][-2 if left else -1])
    return 0


def count(tf1, case):
    """FLOPs, bytes, bytes of weights, the largest input and output of one op, and each product as [type, FLOPs, bytes]."""
    proto = tf1.GraphDef()
    proto.ParseFromString(case.model.read_bytes())
    with tf1.Graph().as_default() as graph:
        tf1.import_graph_def(proto, name="")
        ops = needed(graph, case)
        picked = [op for op in ops if op.type in PRODUCTS | POOLS]
        tensors = {t.name: t for op in picked for t in list(op.inputs) + list(op.outputs)}
        shapes = {name: tf1.shape(t) for name, t in tensors.items()}
        weights = 0
        for op in ops:
            if op.type == "Const":
                tensor = op.outputs[0]
                size = tensor.dtype.size or 0
                weights += elements(tensor.shape.as_list()) * size
        with tf1.Session(graph=graph) as session:
            shapes = session.run(shapes, feed_dict=case.feeds)
    rows, largest = [], 0
    for op in picked:
        inputs = [shapes[t.name] for t in op.inputs]
        out = shapes[op.outputs[0].name]
        moved = [elements(s) * (t.dtype.size or 4) for t, s in zip(op.inputs, inputs)]
        result = elements(out) * 4
        largest = max(largest, moved[0] + result)
        rows.append([op.type, flops(op, inputs, out), sum(moved) + result])
    return {"flops": sum(r[1] for r in rows), "bytes": sum(r[2] for r in rows), "weights": weights, "largest": largest,
            "rows": rows}
