#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Abnormal ends of the command: a plugin that calls exit or crashes is named, and no signal leaves
# an unfinished file. Prints TAP.
. "$(dirname "$0")/tool_kit.sh" ending
plugins=${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}
. "$src/tests/tools/tool_plugins.sh"
built=$TENON_PLUGIN_PATH
TENON_PLUGIN_PATH_ONLY=1 TENON_PLUGIN_PATH=$tmp/folder:$built
export TENON_PLUGIN_PATH_ONLY TENON_PLUGIN_PATH
# Sanitizers would turn signals into exits.
signals=handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0
ASAN_OPTIONS=$ASAN_OPTIONS:$signals TSAN_OPTIONS=$TSAN_OPTIONS:$signals UBSAN_OPTIONS=$UBSAN_OPTIONS:$signals
export ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS
unset TENON_PLUGIN_DISABLE TENON_PLUGIN_SELECT TENON_PROBE TENON_RANK
told() { grep -qE -e "$1" err; }
ulimit -c 0
mkdir folder results
cat >neg.pbtxt <<'EOF'
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
EOF

# ends FAULT STATUS PATTERN: `tenon run` on a runtime with this fault ends with the status and one
# matching line, and saves nothing.
ends() {
  ender folder/a.so t.end "$1"
  run "$2" "$tenon" run neg.pbtxt --runtime t.end --feed x='[1, -2]' --fetch y=results/y.npy
  good=$?
  [ $good -eq 0 ] && [ "$(grep -c tenon: err)" -eq 1 ] && grep -qE "^tenon: ABORTED: $3$" err && [ -z "$(ls -A results)" ]
  is "$1"
}
culprit="plugin 't.end' \($tmp/folder/a.so\) ended the process in"
ends ctor:exit 1 "$culprit one of its constructors: it called exit"
ends entry:exit 1 "$culprit its entry: it called exit"
ends init:exit 1 "$culprit its init: it called exit"
ends accept:exit 1 "$culprit its accepts_options: it called exit"
ends session:exit 1 "$culprit its new_session: it called exit"
ends prepare:exit 1 "$culprit its prepare: it called exit"
ends step:exit 1 "$culprit its step: it called exit"
ends step:quick 1 "$culprit its step: it called exit"
ends release:exit 1 "$culprit its release: it called exit"
ends destroy:exit 1 "$culprit its destroy_session: it called exit"
ends step:aside 1 'exit was called before the command finished, outside any plugin call: possibly by a thread of a plugin'
ends ctor:segv 139 "$culprit one of its constructors: signal 11 \(SIGSEGV\)"
ends init:abort 134 "$culprit its init: signal 6 \(SIGABRT\)"
ends session:null 139 "$culprit its new_session: signal 11 \(SIGSEGV\)"
ends step:null 139 "$culprit its step: signal 11 \(SIGSEGV\)"
ends step:bus 135 "$culprit its step: signal 7 \(SIGBUS\)"
ends destroy:abort 134 "$culprit its destroy_session: signal 6 \(SIGABRT\)"
ender folder/a.so t.end step:quit
run 0 "$tenon" run neg.pbtxt --runtime t.end --feed x='[1, -2]' --fetch y=results/y.npy && [ -z "$(ls -A results)" ]
is '_exit cannot be caught, and leaves no file'

# Other commands, other callbacks.
ender folder/a.so t.end init:exit
run 1 "$tenon" runtimes list --load && told "^tenon: ABORTED: $culprit its init: it called exit$"
is 'runtimes list --load'
ender folder/a.so t.end session:exit
run 1 "$tenon" runtimes explain t.end && told "^tenon: ABORTED: $culprit its new_session: it called exit$"
is 'runtimes explain'
run 1 "$tenon" bench neg.pbtxt --feed x=1 --runtime t.end && told "$culprit its new_session: it called exit$"
is 'bench'
ender folder/a.so t.end prepare:abort
run 134 "$tenon" plan neg.pbtxt --runtime t.end --feed x --fetch y && told "$culprit its prepare: signal 6"
is 'plan'
rm folder/a.so

# A plugin's kernel: the error names it and its node; also on a helper thread, on any runtime.
cp "$plugins/kernel_faults.so" folder/k.so
kernel="plugin 'test.kernel_faults' \($tmp/folder/k.so\) ended the process in compute of a kernel, 'neg_of_faults' of node 'y'"
for runtime in direct threaded; do
  for how in "kernel_exits 1 it called exit" "kernel_crash 139 signal 11 \(SIGSEGV\)"; do
    # shellcheck disable=SC2086
    set -- $how
    fault=$1 status_wanted=$2
    shift 2
    TENON_TEST_FAULT=$fault run "$status_wanted" "$tenon" run neg.pbtxt --runtime "$runtime" --option kernel_plugins=always \
      --feed x='[1, -2]' --fetch y=results/y.npy && told "^tenon: ABORTED: $kernel: $*$" && [ -z "$(ls -A results)" ]
    is "$fault on $runtime"
  done
done
rm folder/k.so

# ---- signals while files are written ----

if grep -q '^TN_SANITIZE = .*-fsanitize' "$(dirname "$tenon")/Makefile" 2>/dev/null; then
  skip "no signal leaves an unfinished file" "a sanitizer takes signals for itself"
  echo "1..$n"
  exit 0
fi

cat >big.pbtxt <<'EOF'
node { name: "dims" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 4000000 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
node { name: "big" op: "Fill" input: "dims" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
EOF
run 0 "$tenon" run big.pbtxt --fetch big=whole.npy
good=$?
mkdir files
worst=none rounds=0
# A signal may reach the forked shell before it has become the command; with the traps of
# tool_kit.sh it would remove this folder.
trap - HUP INT TERM
# Sends each signal several times, at different moments; the file is missing or completely replaced.
for name in HUP INT QUIT USR1 USR2 ALRM TERM XCPU VTALRM PROF IO ABRT SEGV KILL; do
  for after in 0 0.005 0.01 0.015 0.02 0.03; do
    for old in no yes; do
      rm -rf files/* files/.tenon-*
      [ $old = no ] || cp whole.npy files/big.npy || worst="no old file"
      "$tenon" run big.pbtxt --fetch big=files/big.npy >/dev/null 2>&1 &
      pid=$!
      sleep $after
      kill -s $name $pid 2>/dev/null
      wait $pid 2>/dev/null
      rounds=$((rounds + 1))
      left=$(ls -A files | grep -vx 'big\.npy')
      # SIGKILL cannot be caught: it may leave the temporary file.
      [ -z "$left" ] || [ "$name $old" = 'KILL yes' ] || worst="$name left $left"
      [ $old = no ] || [ -e files/big.npy ] || [ $name = KILL ] || worst="$name removed the old file: $(ls -lA files)"
      [ ! -e files/big.npy ] || cmp -s whole.npy files/big.npy || worst="$name left a part"
    done
  done
done
echo "# $worst of $rounds, first $good"
[ $good -eq 0 ] && [ "$worst" = none ]
is "no signal leaves an unfinished file"

echo "1..$n"
