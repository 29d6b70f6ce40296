#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the cases recorded from TensorFlow on gpu, with every op that has a kernel on the device,
# and the models that must run there completely. Takes minutes if nothing has been compiled yet:
# make check-long runs it, make check a sample (check-gpu-sample.sh). TENON_TEST_CASES selects
# cases ("*/*-000": one of each op; default: all). Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" gpu
. "$src/tests/gpu/gpu_runs.sh"

for level in 0 1; do
  "$build/tests/oracle/run/oracle_run" --runtime gpu:placement=device --level $level --only "${TENON_TEST_CASES:-*}" "$src/tests/oracle" 2>&1 |
    grep -v '^SKIP' >out
  grep -q '^[1-9][0-9]* passed, 0 failed' out
  result $? "recorded cases at level $level"
done
run_sample
"$build/tests/oracle/run/oracle_run" --runtime gpu --eager-on /device:GPU:0 --only "${TENON_TEST_CASES:-*}" "$src/tests/oracle" 2>&1 |
  grep -v '^SKIP' >out
grep -q '^[1-9][0-9]* passed, 0 failed' out
result $? "recorded cases, each operation by itself on the device"

# Products, and ops that become one, once more by CLBlast, if it is used.
"$tenon" runtimes explain gpu:blas=clblast >probed 2>&1
if grep -q 'products on .* are computed by libclblast' probed; then
  "$build/tests/oracle/run/oracle_run" --runtime gpu:placement=device,blas=clblast --timeout 300 --only 'conv/*' --only 'matmul/*' "$src/tests/oracle" >out 2>&1
  grep -q '^[1-9][0-9]* passed, 0 failed' out
  result $? 'recorded products by CLBlast'
else
  n=$((n + 1))
  echo "ok $n - recorded products by CLBlast # SKIP CLBlast is not used here"
fi

for model in digits mobilenet-v2 mobilenet-v3-small densenet121 har-lstm kws-lstm train-mlp; do run_model $model; done
echo "1..$n"
