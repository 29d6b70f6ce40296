# SPDX-License-Identifier: Apache-2.0
"""Makes half_plus_two with TensorFlow 2.21: y = a * x + b with a = 0.5 and b = 2, and a signature that trains both.

Usage: python make.py
"""
import pathlib
import shutil

import tensorflow as tf


class HalfPlusTwo(tf.Module):
    def __init__(self):
        self.a = tf.Variable(0.5, name="a")
        self.b = tf.Variable(2.0, name="b")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serve(self, x):
        return {"y": self.a * x + self.b}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x"),
                                  tf.TensorSpec([None], tf.float32, name="t")])
    def train(self, x, t):
        e = self.a * x + self.b - t
        self.a.assign_sub(0.02 * tf.reduce_mean(2 * e * x))
        self.b.assign_sub(0.02 * tf.reduce_mean(2 * e))
        return {"loss": tf.reduce_mean(e * e)}


folder = pathlib.Path(__file__).resolve().parent / "half_plus_two"
shutil.rmtree(folder, ignore_errors=True)
model = HalfPlusTwo()
tf.saved_model.save(model, str(folder), signatures={"serving_default": model.serve, "train": model.train})
(folder / "fingerprint.pb").unlink()
(folder / "assets").rmdir()
