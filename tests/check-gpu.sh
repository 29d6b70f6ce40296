#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the cases recorded from TensorFlow on gpu, with all on the device that has a kernel for it, and the models that must run there
# wholly. Takes minutes where nothing is compiled yet: make check-long runs it. TENON_TEST_CASES names cases ("*/*-000": one of each
# op; all unless it is set). Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/.." && pwd)}/tests/tool_kit.sh" gpu

if ! "$tenon" runtimes explain gpu >probed 2>&1; then
  if [ "${TENON_TEST_GPU:-}" = required ]; then
    echo 'not ok 1 - there is a device'
    sed 's/^/# /' probed
    echo 1..1
  else
    echo "1..0 # SKIP $(tail -n 1 probed)"
  fi
  exit 0
fi

n=0
result() { # STATUS NAME
  n=$((n + 1))
  if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; sed 's/^/#   /' out; fi
}

for level in 0 1; do
  "$build/tests/oracle_run" --runtime gpu:placement=device --level $level --only "${TENON_TEST_CASES:-*}" "$src/tests/oracle" 2>&1 |
    grep -v '^SKIP' >out
  grep -q '^[1-9][0-9]* passed, 0 failed' out
  result $? "recorded cases at level $level"
done

models=${TENON_MODELS:-$src/../shared/models}
for model in digits mobilenet-v2 mobilenet-v3-small densenet121 har-lstm train-mlp; do
  if [ ! -d "$models/$model" ]; then
    n=$((n + 1))
    echo "ok $n - $model # SKIP it is not in TENON_MODELS"
    continue
  fi
  TENON_LOG=info "$build/tests/oracle_run" --runtime gpu:placement=device --only "models/$model" "$models" >out 2>&1
  grep -q '^1 passed, 0 failed' out
  result $? "$model has its answers"
  # Of its largest plan: nodes on the device, and on the CPU. What trains reads and writes variables there.
  awk -v trains="$(case $model in train-*) echo 1 ;; *) echo 0 ;; esac)" '
    match($0, /: [0-9]+ nodes on the device, [0-9]+ on the CPU/) {
      split(substr($0, RSTART + 2, RLENGTH), word, " ")
      if (word[1] + 0 >= most) { most = word[1] + 0; cpu = word[6] + 0 }
    }
    END {
      print most + 0 " nodes on the device, " cpu + 0 " on the CPU"
      exit !(most > 0 && (trains ? cpu <= most : cpu == 0))
    }' out >share
  status=$?
  cat share >>out
  result $status "$model: $(cat share)"
done
echo "1..$n"
