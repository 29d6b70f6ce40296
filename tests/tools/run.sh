#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon run with state: training, time limits, Ctrl-C. Feeds, fetches and files are tested in
# command.sh. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" run
digits=$src/examples/digits
models=${TENON_MODELS:-/nowhere}

# has PATTERN: a line of standard output matches. told PATTERN: a line of standard error. quiet:
# nothing was printed.
has() { grep -qE -e "$1" out; }
told() { grep -qE -e "$1" err; }
quiet() { [ ! -s out ]; }

# ---- graphs ----

cat >count.pbtxt <<'END'
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "init" op: "Assign" input: "v" input: "zero" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "add" op: "AssignAdd" input: "v" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "more" op: "NoOp" input: "^add" }
node { name: "seen" op: "Identity" input: "v" input: "^add" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "pair" op: "Pack" input: "seen" input: "seen" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "N" value { i: 2 } } }
END
# A step that waits forever, one that never ends, and one that takes long in a single kernel.
cat >blocked.pbtxt <<'END'
node { name: "queue" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
node { name: "get" op: "QueueDequeueV2" input: "queue" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
END
cat >endless.pbtxt <<'END'
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "enter" op: "Enter" input: "zero" attr { key: "T" value { type: DT_INT32 } }
  attr { key: "frame_name" value { s: "loop" } } }
node { name: "merge" op: "Merge" input: "enter" input: "next" attr { key: "T" value { type: DT_INT32 } }
  attr { key: "N" value { i: 2 } } }
node { name: "yes" op: "Const" input: "^merge" attr { key: "dtype" value { type: DT_BOOL } }
  attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { } bool_val: true } } } }
node { name: "go" op: "LoopCond" input: "yes" }
node { name: "switch" op: "Switch" input: "merge" input: "go" attr { key: "T" value { type: DT_INT32 } } }
node { name: "double" op: "AddV2" input: "switch:1" input: "switch:1" attr { key: "T" value { type: DT_INT32 } } }
node { name: "next" op: "NextIteration" input: "double" attr { key: "T" value { type: DT_INT32 } } }
node { name: "exit" op: "Exit" input: "switch" attr { key: "T" value { type: DT_INT32 } } }
END
cat >long.pbtxt <<'END'
node { name: "image" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "largest" op: "MaxPool" input: "image" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "ksize" value { list { i: 1 i: 1000 i: 1000 i: 1 } } }
  attr { key: "strides" value { list { i: 1 i: 1 i: 1 i: 1 } } } attr { key: "padding" value { s: "VALID" } } }
END
{
  printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2000, 2000, 1), }"
  head -c 16000000 /dev/zero
} >image.npy
cat >array.pbtxt <<'END'
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
END

# ---- steps with state ----

run 0 "$tenon" run count.pbtxt --init init --target more --fetch seen --steps 7 && has '^7\.0$' && told '^7 steps in '
is 'targets are run in each step, the initialiser once'
run 0 "$tenon" run count.pbtxt --init init --init more --init add --target more --fetch seen && has '^3\.0$'
is 'initialisers are run in the order given, also without --steps'
run 0 "$tenon" run count.pbtxt --init init && quiet
is 'an initialiser alone'
run 0 "$tenon" run count.pbtxt --init init --fetch seen --fetch pair --steps 6 --every 2 && head -n 3 out >first
printf 'step %s  seen %s.0  pair float32 [2]\n' 2 2 4 4 6 6 >wanted
cmp -s first wanted && has '^\[6\. 6\.\]$'
is '--every shows scalars during the run, and the shapes of other tensors'
run 0 "$tenon" run count.pbtxt --init init --fetch seen=seen.npy --steps 3 --every 3 && has '^step 3  seen 3\.0$' &&
  has 'saved in seen.npy$' && run 0 "$tenon" run array.pbtxt --feed x=seen.npy --fetch x && has '^3\.0$'
is 'fetches written to a file are shown, too'
run 0 "$tenon" run count.pbtxt --init init --target more --steps 5 --after v:0=v.npy --after zero &&
  has '^v:0  float32 .*saved in v.npy$' && has '^0\.0$' && ! has seen && run 0 "$tenon" run array.pbtxt --feed x=v.npy --fetch x &&
  has '^5\.0$'
is '--after fetches once, when the steps have ended'
run 0 "$tenon" run count.pbtxt --init init --fetch seen --every 1 --steps 2 --after v && ! has 'step.* v ' &&
  [ "$(grep -c '^2\.0$' out)" = 2 ] && run 0 "$tenon" run count.pbtxt --init init --after v && has '^0\.0$'
is '--after together with --fetch, and without steps'
run 1 "$tenon" run count.pbtxt --init init --target more --after w && says "fetch 'w': the model has no node"
is '--after of an unknown tensor'
run 1 "$tenon" run count.pbtxt --fetch zero --after v && says "after the steps: .*before it was initialised"
is 'an error after the steps is reported as such'
run 1 "$tenon" run count.pbtxt --target more --steps 3 && says "step 1 of 3: .*'v'.*before it was initialised"
is 'without the initialiser the error names step and variable'
run 1 "$tenon" run count.pbtxt --init nothing --target more && says "init 'nothing': the model has no node"
is 'an unknown initialiser'
run 1 "$tenon" run count.pbtxt --init init --target mor --steps 2 && says "target 'mor': .*did you mean 'more'"
is 'an unknown target'

# close MODEL: whether the losses of --every equal those of the file, to 2 in 1,000.
close() {
  m=$models/$1
  run 0 "$tenon" run array.pbtxt --feed x="$m/losses.npy" --fetch x && sed -n '2,$p' out | tr -d '[]' | tr ' ' '\n' | grep . >wanted
  run 0 "$tenon" run "$m/model.pb" --feed x="$m/in0.npy" --feed y="$m/in1.npy" --init init --target train --fetch loss \
    --steps "$(grep -c . wanted)" --every 1 && sed -n 's/^step [0-9]*  loss //p' out >found
  paste found wanted | awk 'NF != 2 || ($1 - $2) ^ 2 > (2e-4 + 2e-3 * $2) ^ 2 { bad = 1 } END { exit bad || NR < 5 }'
}
# predicted MODEL: the same for the predictions after the training; `wanted` has the losses.
predicted() {
  m=$models/$1
  steps=$(grep -c . wanted)
  run 0 "$tenon" run "$m/model.pb" --feed x="$m/in0.npy" --feed y="$m/in1.npy" --init init --target train \
    --steps "$steps" --after predictions=p.npy || return 1
  for file in "$m/out0.npy" p.npy; do
    run 0 "$tenon" run array.pbtxt --feed x="$file" --fetch x && sed -n '2,$p' out | tr -d '[]' | tr ' ' '\n' | grep . >"${file##*/}.txt"
  done
  paste out0.npy.txt p.npy.txt | awk 'NF != 2 || ($1 - $2) ^ 2 > (2e-4 + 2e-3 * $2) ^ 2 { bad = 1 } END { exit bad || NR < 5 }'
}
for model in train-mlp train-cnn; do
  if [ -f "$models/$model/model.pb" ]; then
    close $model
    is "$model: loss of every step"
    predicted $model
    is "$model: predictions after the last step"
  else
    skip "$model: loss of every step" 'TENON_MODELS does not lead to it'
  fi
done

# ---- wrong numbers ----

for option in steps every timeout; do
  good=true
  for value in 0 -1 +1 1.5 1e3 many '' ' 1' 1000000000000; do
    run 2 "$tenon" run count.pbtxt --fetch seen "--$option" "$value" &&
      grep -qF -e "--$option '$value': expected a number from 1 to 999999999999" err || good=false
  done
  run 2 "$tenon" run count.pbtxt --fetch seen "--$option" && says "option '--$option' requires a value" && $good
  is "--$option takes a number from 1 on"
done
run 2 "$tenon" run count.pbtxt --init init --target more --every 2 && says '--every prints fetched values'
is '--every requires a fetch'

# ---- time limits ----

run 1 "$tenon" run blocked.pbtxt --fetch get=late.npy --timeout 50 && says "node 'get'" && told DEADLINE_EXCEEDED &&
  quiet && [ ! -e late.npy ]
is '--timeout ends a step that waits, names the node and writes nothing'
run 1 "$tenon" run endless.pbtxt --fetch exit --timeout 50 && told '^tenon: DEADLINE_EXCEEDED: '
is '--timeout ends a loop'
run 1 "$tenon" run blocked.pbtxt --target get --steps 3 --timeout 50 && says "step 1 of 3: .*'get'"
is 'the error says which step exceeded its limit'
run 1 "$tenon" run blocked.pbtxt --init get --timeout 50 && told "^tenon: DEADLINE_EXCEEDED: init 'get': "
is 'it applies to an initialiser, too'
run 1 "$tenon" run blocked.pbtxt --fetch get --timeout 50 --option operation_timeout_ms=1000000 && told DEADLINE_EXCEEDED
is "it takes precedence over the session's"
run 0 "$tenon" run "$digits/digits.pb" --feed image="$digits/images.npy" --fetch class=class.npy --steps 2 --warm-up -v &&
  grep -qE '^warmed up in [0-9.]+ ms$' err
is '--warm-up runs a step before the timed ones'
run 0 "$tenon" run count.pbtxt --init init --target more --fetch seen --steps 7 --warm-up -v && has '^7\.0$' &&
  grep -qE '^warmed up in [0-9.]+ ms, without running a step, because it has side effects$' err
is '--warm-up does not run steps with effects'
run 1 "$tenon" run count.pbtxt --fetch v --warm-up && says "warming up: .*'v'"
is 'an error during warm-up fails the command'
run 0 "$tenon" run count.pbtxt --init init --target more --fetch seen --steps 50 --timeout 60000 && has '^50\.0$'
is 'it limits each step, and has no other effect'

run 1 "$tenon" run blocked.pbtxt --init get --target get --timeout 50 &&
  says "the step exceeded its time limit at node 'get' \\(QueueDequeueV2\\)$"
is 'the error for a late step has no number that looks like a count'

# ---- feeds of other shapes than the model declares ----

cat >shaped.pbtxt <<'END'
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
END
run 0 "$tenon" run shaped.pbtxt --feed x='[[1, 2], [3, 4], [5, 6]]' --fetch y && has '^y  float32 \[3, 2\]$'
is 'an unknown dimension of the model is taken from the feed'
run 1 "$tenon" run shaped.pbtxt --feed x='[[1, 2, 3]]' --fetch y=y.npy && quiet && [ ! -e y.npy ] &&
  says "feed 'x:0' has shape \\[1,3\\], its declared shape is \\[\\?,2\\]"
is 'the error for a contradicting dimension names the feed, its shape and the declared one'
run 1 "$tenon" run shaped.pbtxt --feed x='[1, 2]' --fetch y && says "feed 'x:0' has shape \\[2\\], its declared shape is \\[\\?,2\\]" &&
  run 1 "$tenon" run shaped.pbtxt --feed x=1 --init y && says "init 'y': feed 'x:0' has shape \\[\\], its declared"
is 'so is one of another rank'
run 1 "$tenon" bench shaped.pbtxt --feed x='[[1]]' --fetch y --seconds 0.01 && says "feed 'x:0' has shape \\[1,1\\]" &&
  run 1 "$tenon" plan shaped.pbtxt --feed x='[[1]]' --fetch y && says "feed 'x:0' has shape \\[1,1\\]"
is 'bench and plan check shapes, too'
run 0 "$tenon" run shaped.pbtxt --feed x='[[1, 2, 3]]' --fetch y --option strict_shapes=false && has '^y  float32 \[1, 3\]$' &&
  run 0 "$tenon" bench shaped.pbtxt --feed x='[[1]]' --fetch y --seconds 0.01 --option strict_shapes=false &&
  run 0 "$tenon" plan shaped.pbtxt --feed x='[[1]]' --fetch y --option strict_shapes=false
is '--option strict_shapes=false feeds it nevertheless'
run 1 "$tenon" run shaped.pbtxt --fetch y && says "placeholder 'x' of type float32 and shape \\[\\?,2\\] is needed and was not fed"
is 'the error for an input that is not fed names it with its type and shape'

# ---- typos ----

run 2 "$tenon" run shaped.pbtxt --stpes 3 && says "unknown option '--stpes' \\(did you mean '--steps'\\?\\)" &&
  run 2 "$tenon" run shaped.pbtxt --ftech=y && says "unknown option '--ftech=y' \\(did you mean '--fetch'\\?\\)" &&
  run 2 "$tenon" bench shaped.pbtxt --second 1 --xyzzy && says "unknown option '--xyzzy'$" &&
  run 2 "$tenon" runtimes --josn && says "unknown option '--josn' \\(did you mean '--json'\\?\\)"
is 'the error for a misspelt option suggests a similar one'
run 1 "$tenon" run shaped.pbtxt --fetch y --feed x='[[1, 2]]' --runtime dircet && says "no runtime 'dircet' \\(did you mean 'direct'\\?\\)" &&
  run 1 "$tenon" run shaped.pbtxt --fetch y --option lvel=0 && says "no option 'lvel' \\(did you mean 'level'\\?\\); available: "
is 'so is a misspelt runtime, and an option of the session'
run 1 env TENON_RANK=direct=0,threaded=0,gpu=0 "$tenon" run shaped.pbtxt --fetch y --feed x='[[1, 2]]' &&
  says "all runtimes have rank 0, which means selection by name only: direct, .*threaded; name one"
is 'if all ranks are 0, the message says so and lists the runtimes'

# ---- configuration and placement ----

cat >placed.pbtxt <<'END'
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
node { name: "two" op: "AddV2" input: "one" input: "one" device: "/gpu:0" attr { key: "T" value { type: DT_FLOAT } } }
END
cpu=/job:localhost/replica:0/task:0/device:CPU
run 1 "$tenon" run placed.pbtxt --fetch two && says "node 'two' asks for device '/gpu:0': .*it has $cpu:0" && quiet
is 'the error for a missing device names the node'
run 0 "$tenon" run placed.pbtxt --fetch two --soft-placement && has '^2\.0$' && [ ! -s err ]
is '--soft-placement runs it on the CPU'
run 0 "$tenon" run placed.pbtxt --fetch two --soft-placement --log-placement && has '^2\.0$' &&
  printf 'one: (Const): %s:0\ntwo: (AddV2): %s:0\n' $cpu $cpu | cmp -s - err
is '--log-placement shows the device of each node'
echo 'allow_soft_placement: true log_device_placement: true device_count { key: "CPU" value: 3 }' >config.txt
run 0 "$tenon" run placed.pbtxt --fetch two --config config.txt && told "^two: \(AddV2\): $cpu:0"
is '--config reads text'
printf '\070\001' >config.pb
run 0 "$tenon" run placed.pbtxt --fetch two --config config.pb && has '^2\.0$'
is '--config reads bytes'
run 1 "$tenon" run placed.pbtxt --fetch two --config config.pb --option allow_soft_placement=no && says "node 'two'"
is 'command-line options override it'
echo 'device_count { key: "CPU" valve: 3 }' >wrong.txt
run 1 "$tenon" run placed.pbtxt --fetch two --config wrong.txt &&
  says "wrong.txt:1:27: ConfigProto.DeviceCountEntry has no field 'valve'"
is 'errors in it have a line number'
run 1 "$tenon" run placed.pbtxt --fetch two --option device_count=CPU=0 && says 'device_count asks for 0 devices'
is 'a session has a CPU'

# ---- Ctrl-C ----

# when PATTERN SIGNAL...: sends signals to the next command: the first when standard error has a
# matching line and the step had time to begin, further ones after it had time to end. The command
# writes its number to the file pid.
when() {
  pattern=$1
  shift
  rm -f err pid
  (
    i=0
    until [ -s pid ] && grep -qE -e "$pattern" err 2>/dev/null; do
      i=$((i + 1))
      [ $i -lt 1000 ] || exit
      sleep 0.05
    done
    for name; do
      sleep 0.4
      kill -s "$name" "$(cat pid)"
    done
  ) 2>/dev/null &
}
# interrupted STATUS ARGUMENT...; `before` is evaluated in the process that becomes the command.
before=:
interrupted() {
  wanted=$1
  shift
  # shellcheck disable=SC2016
  run "$wanted" sh -c "$before"'; echo $$ >pid; exec "$@"' sh "$tenon" run --verbose "$@"
  good=$?
  wait
  return $good
}
# If signals are ignored from the start, as in the background of a script, the command keeps ignoring them.
caught=yes
case $(sed -n 's/^SigIgn:.*\(.\)$/\1/p' /proc/self/status 2>/dev/null) in
2 | 3 | 6 | 7 | a | b | e | f) caught=ignored ;;
esac

if [ "$caught" = ignored ]; then
  skip 'Ctrl-C' 'the tests run with SIGINT ignored'
else
  mkdir keep
  printf old >keep/out.npy
  when '^signature prepared' INT
  interrupted 130 blocked.pbtxt --fetch get=keep/out.npy && told "^tenon: CANCELLED: interrupted(:| after 0 of 1)" && quiet
  is 'Ctrl-C ends a step that waits: status 130'
  [ "$(cat keep/out.npy)" = old ] && [ "$(ls -A keep)" = out.npy ]
  is 'the existing file is unchanged'
  when '^signature prepared' INT
  interrupted 130 endless.pbtxt --fetch exit && told '^tenon: CANCELLED: interrupted'
  is 'Ctrl-C ends a loop'
  when '^session opened' INT
  interrupted 130 blocked.pbtxt --init get --target get && told "^tenon: CANCELLED: interrupted in init 'get': "
  is 'Ctrl-C ends an initialiser'
  when '^signature prepared' INT
  interrupted 130 count.pbtxt --init init --fetch seen=keep/new.npy --steps 999999999999 &&
    told '^tenon: CANCELLED: interrupted after [0-9]+ of 999999999999 steps' && [ ! -e keep/new.npy ] && quiet
  is 'Ctrl-C between steps: reports the number of completed steps'
  when '^signature prepared' INT INT
  interrupted 130 long.pbtxt --feed image=image.npy --target largest
  is 'two signals at once: the kernel ends, or the command does not wait for it'
fi

when '^signature prepared' TERM
interrupted 143 blocked.pbtxt --fetch get && told "^tenon: CANCELLED: interrupted(:| after 0 of 1)"
is 'SIGTERM works, too: status 143'
when '^signature prepared' TERM TERM
interrupted 143 long.pbtxt --feed image=image.npy --target largest
is 'SIGTERM twice, too'
before="trap '' INT"
when '^signature prepared' INT TERM
interrupted 143 blocked.pbtxt --fetch get && told '^tenon: CANCELLED: interrupted'
is 'SIGINT that was ignored at the start stays so'

# Whenever the signal arrives, the file is complete or missing afterwards. The last rounds end
# before the signal.
run 0 "$tenon" run "$digits/digits.pb" --feed image="$digits/images.npy" --fetch probabilities=whole.npy
mkdir any
bad= i=0
while [ $i -lt 30 ]; do
  rm -f any/* pid
  ( sleep "0.0$((i / 10))$((i % 10))"; kill -s TERM "$(cat pid)" ) 2>/dev/null &
  # shellcheck disable=SC2016
  sh -c 'echo $$ >pid; exec "$@"' sh "$tenon" run "$digits/digits.pb" --feed image="$digits/images.npy" \
    --fetch probabilities=any/p.npy >out 2>err </dev/null
  status=$?
  wait
  case $status in 0|143) ;; *) bad="$bad status $status after $i ms;" ;; esac
  if [ -e any/p.npy ]; then cmp -s any/p.npy whole.npy || bad="$bad file of another content after $i ms;"; fi
  [ "$status" -ne 0 ] || [ -e any/p.npy ] || bad="$bad no file after $i ms;"
  if grep -qvE '^tenon: CANCELLED: interrupted|^Terminated' err; then bad="$bad $(head -n 1 err)"; fi
  i=$((i + 1))
done
[ -z "$bad" ] || echo "# $bad"
[ -z "$bad" ]
is 'a signal at any time leaves a complete file or none'

# Printing blocks on a reader that exists but does not read.
if mkfifo slow 2>/dev/null; then
  set --
  i=0
  while [ $i -lt 60 ]; do set -- "$@" --fetch x; i=$((i + 1)); done
  row=0 i=0
  while [ $i -lt 400 ]; do row="$row,$i"; i=$((i + 1)); done
  rm -f pid err
  ( i=0; until grep -qs '1 step in' err || [ $i -ge 1000 ]; do sleep 0.05; i=$((i + 1)); done; sleep 0.3; kill -s TERM "$(cat pid)" ) 2>/dev/null &
  # shellcheck disable=SC2016
  $limit sh -c 'exec 3<>slow; echo $$ >pid; exec "$@" >slow' sh "$tenon" run array.pbtxt --verbose --feed x="[$row]" "$@" \
    2>err </dev/null
  status=$?
  wait
  [ $status -eq 143 ] && says 'interrupted while the values were printed'
  is 'Ctrl-C works while printing is blocked'
else
  skip 'Ctrl-C works while printing is blocked' 'mkfifo does not work here'
fi

echo "1..$n"
