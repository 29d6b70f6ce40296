# SPDX-License-Identifier: Apache-2.0
"""Makes the checkpoint types with TensorFlow 2.21: a tensor of each type, in the order of the keys, and slices.

Usage: python make.py
"""
import pathlib

import numpy as np
import tensorflow as tf

TYPES = ["bfloat16", "bool", "complex128", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8",
         "uint16", "uint32", "uint64", "uint8"]
tensors = {f"type/{name}": tf.cast(np.arange(6).reshape(2, 3) % 2 if name == "bool" else np.arange(6).reshape(2, 3), name)
           for name in TYPES}
tensors["empty"] = tf.zeros([0, 4])
tensors["scalar"] = tf.constant(2.5)
tensors["strings"] = tf.constant([["", "two words"], ["\0zero", "long " * 60]])
tensors["no strings"] = tf.constant([], tf.string)
prefix = str(pathlib.Path(__file__).resolve().parent / "types")
names = sorted(tensors)
tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
                  tensors=[tensors[name] for name in names])
