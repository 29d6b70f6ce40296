#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A sample of what check-gpu.sh runs, for make check: of the cases recorded from TensorFlow one for each op that gpu claims, with two
# of its types, and small models. TENON_TEST_SAMPLE=all: with each of its types, which takes seconds where programs are in the
# compilers' caches, and a quarter of an hour where they are not. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/.." && pwd)}/tests/tool_kit.sh" gpu-sample
. "$src/tests/gpu_runs.sh"

if [ "${TENON_TEST_SAMPLE:-}" = all ]; then run_sample; else run_sample --few; fi
for model in digits har-lstm; do run_model $model; done
echo "1..$n"
