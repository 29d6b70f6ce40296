# SPDX-License-Identifier: Apache-2.0
# Sourced by check-gpu.sh and check-gpu-sample.sh after tool_kit.sh: ends the test if gpu has no
# device, and defines the shared parts.
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

# PoCL's compiler leaks memory, and so do its threads; the address sanitizer is not meant to report that.
ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
export ASAN_OPTIONS

n=0
result() { # STATUS NAME
  n=$((n + 1))
  if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; sed 's/^/#   /' out; fi
}

models=${TENON_MODELS:-$src/../shared/models}

# A model gives its recorded results, and its largest plan is completely on the device. For a model
# that trains this is at least half: it reads and writes variables on the CPU.
run_model() { # NAME
  if [ ! -d "$models/$1" ]; then
    n=$((n + 1))
    echo "ok $n - $1 # SKIP not in TENON_MODELS"
    return
  fi
  TENON_LOG=info "$build/tests/oracle/run/oracle_run" --runtime gpu:placement=device --only "models/$1" "$models" >out 2>&1
  grep -q '^1 passed, 0 failed' out
  result $? "$1 gives its recorded results"
  awk -v trains="$(case $1 in train-*) echo 1 ;; *) echo 0 ;; esac)" '
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
  result $status "$1: $(cat share)"
}

# At level 0, one case for each type of each op that kernels of the device claim: it passes, and
# the node is on the device. --few: two types of each op. --within N: the cases that can be started
# in N seconds. Excused are cases that feed values which must be known when the node is planned,
# and views of feeds.
run_sample() { # [OPTION]...
  "$tenon" ops --runtime gpu --json >ops 2>out
  result $? 'the claims of gpu can be listed'
  "$build/tests/oracle/run/oracle_run" --runtime gpu:placement=device --level 0 "$@" --sample ops "$src/tests/oracle" >out 2>&1
  grep -q '^[1-9][0-9]* passed, 0 failed' out
  result $? "one case for each op and type${1+ ($*)}: $(grep '^[0-9]* types of ops' out)"
  : >told
  sed -n 's/^UNTRIED /# /p' out
  awk '
    /^ELSEWHERE / {
      if (/it needs an input that is known only in the step$/ || $2 ~ /^Squeeze:?$/) print "# " $0 >"told"
      else print
    }' out >elsewhere
  cat told
  mv elsewhere out
  [ ! -s out ]
  result $? 'their nodes are on the device'
}
