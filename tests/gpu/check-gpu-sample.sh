#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A sample of check-gpu.sh for make check: first, of the cases recorded from TensorFlow, one for
# each op that gpu claims, with two of its types, and small models; then one case for each of its
# types, as many as can be started in TENON_TEST_SAMPLE seconds (45; 0: all). With programs in the
# compilers' caches these are all of them; without, they take a quarter of an hour. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" gpu-sample
. "$src/tests/gpu/gpu_runs.sh"

run_sample --few
for model in digits har-lstm; do run_model $model; done
if [ "${TENON_TEST_SAMPLE:-45}" -eq 0 ]; then run_sample; else run_sample --within "${TENON_TEST_SAMPLE:-45}"; fi
echo "1..$n"
