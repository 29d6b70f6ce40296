# SPDX-License-Identifier: Apache-2.0
"""Train the handwritten-digits classifier with TensorFlow and export it as a frozen GraphDef.

Data: 1,797 8x8 grey images of handwritten digits (UCI "Optical Recognition of Handwritten Digits",
E. Alpaydin, C. Kaynak, CC BY 4.0), as scikit-learn ships them. 300 images, drawn with a fixed seed, are held out.

Writes beside this file:
  digits.pb      frozen graph: image:0 float [?,8,8,1] in 0..1  ->  probabilities:0 float [?,10], class:0 int64 [?]
  images.npy     float32 [300,8,8,1], the held-out images
  labels.npy     int64 [300], their true digits
  expected.npy   float32 [300,10], the probabilities TensorFlow computes for images.npy

Needs tensorflow>=2.12, scikit-learn, numpy.  Usage: python train.py
"""
import pathlib
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).resolve().parent
tf1 = tf.compat.v1
tf1.disable_eager_execution()


def conv(x, name, size, channels_in, channels_out, stride):
    w = tf1.get_variable(f"{name}/weights", [size, size, channels_in, channels_out],
                         initializer=tf1.glorot_uniform_initializer(seed=len(name)))
    b = tf1.get_variable(f"{name}/bias", [channels_out], initializer=tf1.zeros_initializer())
    y = tf.nn.conv2d(x, w, strides=[1, stride, stride, 1], padding="SAME", name=name)
    return tf.nn.relu(tf.nn.bias_add(y, b), name=f"{name}/relu")


def build():
    image = tf1.placeholder(tf.float32, [None, 8, 8, 1], name="image")
    x = conv(image, "conv1", 3, 1, 32, 1)
    x = conv(x, "conv2", 3, 32, 32, 1)
    x = tf.nn.max_pool2d(x, 2, 2, "SAME", name="pool1")
    x = conv(x, "conv3", 3, 32, 64, 1)
    x = tf.nn.max_pool2d(x, 2, 2, "SAME", name="pool2")
    x = tf.reshape(x, [-1, 2 * 2 * 64], name="flatten")
    w = tf1.get_variable("dense/weights", [256, 10], initializer=tf1.glorot_uniform_initializer(seed=7))
    b = tf1.get_variable("dense/bias", [10], initializer=tf1.zeros_initializer())
    logits = tf.nn.bias_add(tf.matmul(x, w), b, name="logits")
    tf.nn.softmax(logits, name="probabilities")
    tf.argmax(logits, axis=1, name="class")
    return image, logits


def main():
    tf1.set_random_seed(20)
    data = load_digits()
    images = (data.images[..., None] / 16.0).astype(np.float32)
    labels = data.target.astype(np.int64)
    shuffled = np.random.default_rng(1).permutation(len(labels))
    train, held_out = shuffled[:-300], shuffled[-300:]
    image, logits = build()
    label = tf1.placeholder(tf.int64, [None])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))
    step = tf1.train.AdamOptimizer(1e-3).minimize(loss)
    order = np.random.default_rng(0)
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        for epoch in range(40):
            index = order.permutation(len(labels[train]))
            for start in range(0, len(index), 64):
                batch = index[start:start + 64]
                session.run(step, {image: images[train][batch], label: labels[train][batch]})
            print(f"\repoch {epoch + 1}/40", end="", flush=True)
        probabilities, classes = session.run(["probabilities:0", "class:0"], {image: images[held_out]})
        print(f"\nheld-out accuracy {np.mean(classes == labels[held_out]):.4f}")
        graph = tf1.graph_util.convert_variables_to_constants(
            session, tf1.get_default_graph().as_graph_def(), ["probabilities", "class"])
    (HERE / "digits.pb").write_bytes(graph.SerializeToString())
    np.save(HERE / "images.npy", images[held_out])
    np.save(HERE / "labels.npy", labels[held_out])
    np.save(HERE / "expected.npy", probabilities)


if __name__ == "__main__":
    main()
