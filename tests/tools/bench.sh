#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon bench: its measurements and output, and errors of wrong calls. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" bench
digits=$src/examples/digits

# bench STATUS ARGUMENT...
bench() {
  wanted=$1
  shift
  run "$wanted" "$tenon" bench "$@"
}
# has PATTERN: a line of standard output matches. told PATTERN: a line of standard error. quiet:
# nothing was printed.
has() { grep -qE -e "$1" out; }
told() { grep -qE -e "$1" err; }
quiet() { [ ! -s out ]; }
# holds FILTER: the JSON on standard output passes the filter.
holds() { [ "$(jq -c "$1" out 2>&1)" = true ]; }

# ---- graphs ----

# node NAME OP [ATTRIBUTE...]: a node with a type, and inputs separated by commas in $in.
node() {
  printf 'node { name: "%s" op: "%s" ' "$1" "$2"
  shift 2
  for input in $in; do printf 'input: "%s" ' "$input"; done
  for attr; do printf 'attr { key: "%s" value { %s } } ' "${attr%%=*}" "${attr#*=}"; done
  printf '}\n'
}
dims() { printf 'shape=shape {'; for d; do printf ' dim { size: %s }' "$d"; done; printf ' }'; }

{
  in='' node x Placeholder dtype='type: DT_FLOAT' "$(dims -1 3)"
  in='' node n Placeholder dtype='type: DT_INT32' "$(dims 2)"
  in='' node s Placeholder dtype='type: DT_STRING' "$(dims -1 -1)"
  in='' node b Placeholder dtype='type: DT_BOOL' "$(dims 4)"
  in='' node h Placeholder dtype='type: DT_HALF' "$(dims 5)"
  in='' node c Placeholder dtype='type: DT_COMPLEX64' "$(dims 2)"
  in='' node q Placeholder dtype='type: DT_QUINT8' "$(dims 2)"
  in='' node huge Placeholder dtype='type: DT_FLOAT' "$(dims -1 1099511627776)"
  in='' node vague Placeholder dtype='type: DT_FLOAT'
  in='' node handle Placeholder dtype='type: DT_RESOURCE' "$(dims)"
  in='' node one Const dtype='type: DT_INT32' 'value=tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 }'
  in='' node zero Const dtype='type: DT_INT32' 'value=tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 }'
  for name in x:FLOAT n:INT32 s:STRING b:BOOL h:HALF c:COMPLEX64 q:QUINT8 huge:FLOAT vague:FLOAT handle:RESOURCE; do
    in=${name%%:*} node "${name%%:*}_out" Identity T="type: DT_${name##*:}"
  done
  in='n one' node equal Equal T='type: DT_INT32'
  in='equal zero' node all All Tidx='type: DT_INT32'
  in='all n' node ones Assert T='list { type: DT_INT32 }'
} >inputs.pbtxt
{
  in='' node zero Const dtype='type: DT_FLOAT' 'value=tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 }'
  in='' node one Const dtype='type: DT_FLOAT' 'value=tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 }'
  in='' node v VariableV2 dtype='type: DT_FLOAT' "$(dims)"
  in='v zero' node init Assign T='type: DT_FLOAT'
  in='v one' node add AssignAdd T='type: DT_FLOAT'
  in='^add' node more NoOp
} >count.pbtxt
{
  in='' node one Const dtype='type: DT_FLOAT' 'value=tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 }'
  in='^one' node nothing NoOp
} >nothing.pbtxt
{
  in='' node queue FIFOQueueV2 component_types='list { type: DT_FLOAT }'
  in=queue node get QueueDequeueV2 component_types='list { type: DT_FLOAT }'
} >blocked.pbtxt
# A queue of 40 elements: step 41 waits, until its time limit.
{
  in='' node queue FIFOQueueV2 component_types='list { type: DT_FLOAT }'
  in='' node many Const dtype='type: DT_FLOAT' \
    'value=tensor { dtype: DT_FLOAT tensor_shape { dim { size: 40 } } float_val: 0 }'
  in='queue many' node fill QueueEnqueueManyV2 Tcomponents='list { type: DT_FLOAT }'
  in=queue node get QueueDequeueV2 component_types='list { type: DT_FLOAT }'
} >forty.pbtxt

# ---- measurements ----

bench 0 "$digits/digits.pb" --seconds 0.05 && has '^RUNTIME +P50 +P90 +P99 +P99.9 +STEPS/S$' &&
  has '^direct( +[0-9.]+ [num]?s){4} +[0-9.]+$' && has '^RUNTIME +STEPS +MEAN +MIN +MAX +SESSION +PREPARE +FIRST STEP +WARM-UP$' &&
  has 'digits.pb: read in .*peak memory [0-9.]+ MB$'
is 'a table with latencies, throughput, and the times before'
has '^ +[0-9.]+ [num]?s  #+ .* %.*  p50' && has '  p90' && has '  p99.9$' && [ "$(tr -d '\n -~' <out | wc -c)" = 0 ]
is 'a histogram; to a file in ASCII'
told "^input 'image' is generated: float32 \[1, 8, 8, 1\], numbers from 0 to 1$"
is 'generated inputs are reported on standard error'
bench 0 "$digits/digits.pb" --seconds 0.02 --no-histogram && ! has 'p50' && has '^direct'
is '--no-histogram'
bench 0 "$digits/digits.pb" --seconds 0.02 --runtime direct --runtime direct && has '^RUNTIME.* RATIO$' && has '^direct.* 1\.00$' &&
  [ "$(grep -c '^direct' out)" = 4 ]
is 'two runtimes have a ratio, 1 for the first'
if command -v jq >/dev/null; then
  jq=true
  bench 0 "$digits/digits.pb" --seconds 0.05 --json && holds '.runs[0] | .runtime == "direct" and .steps > 0 and .turns > 0
    and .first_step_ns > 0 and .session_ns > 0 and .prepare_ns > 0 and .seconds >= 0.05 and .items_per_second == null' &&
    holds '.model | endswith("digits.pb")' && holds '.load_ns > 0 and .peak_memory_bytes > 1000000 and .interrupted == false'
  is '--json: the figures'
  # Without timeout, as its fork would start a new peak.
  (limit= && big=$(head -c 200000000 /dev/zero | tr '\0' x) && [ ${#big} = 200000000 ] && bench 0 "$digits/digits.pb" --seconds 0.02 --json &&
    holds '.peak_memory_bytes < 150000000')
  is 'the peak memory is that of the command, not of the program that started it'
  holds '.runs[0].latency_ns | .min > 0 and .min <= .p50 and .p50 <= .p90 and .p90 <= .p99 and .p99 <= .p999 and .p999 <= .max
    and .min <= .mean and .mean <= .max'
  is '--json: latencies are in order'
  holds '.runs[0] | .steps == ([.histogram[][2]] | add) and ([.histogram[] | .[0] <= .[1]] | all)
    and .histogram[0][0] <= .latency_ns.min and .histogram[-1][1] >= .latency_ns.max'
  is '--json: the histogram has every step'
  holds '.runs[0] | .steps_per_second * .seconds - .steps | fabs < 0.01'
  is '--json: steps a second are steps by seconds'
  holds '.inputs == [{"tensor":"image","type":"float32","shape":[1,8,8,1],"made":true}] and .batch == null
    and .fetches == ["probabilities:0","class:0"] and .targets == [] and (.notes[0] | startswith("input"))'
  is '--json: feeds and fetches'
  cp "$digits/digits.pb" 'a"b\
.pb' && bench 0 'a"b\
.pb' --seconds 0.01 --json && [ "$(jq -j .model out)" = 'a"b\
.pb' ]
  is '--json: texts are escaped'
  bench 0 "$digits/digits.pb" --seconds 0.05 --json --batch 8 && holds '.batch == 8 and .inputs[0].shape == [8,8,8,1]' &&
    holds '.runs[0] | .items_per_second / .steps_per_second - 8 | fabs < 1e-9'
  is '--batch: the first size, and items a second'
  bench 0 "$digits/digits.pb" --seconds 0.05 --concurrency 3 --json --option kernel_plugins=never && holds '.concurrency == 3 and .runs[0].steps >= 3'
  is '--concurrency: clients on one session'
  bench 0 "$digits/digits.pb" --seconds 0.05 --json --feed image="$digits/images.npy" --fetch class --reuse --batch 300 &&
    holds '.inputs[0] | .made == false and .shape == [300,8,8,1]' && holds '.fetches == ["class"]' && ! told 'is generated'
  is 'given feeds and fetches, --batch for given feeds, --reuse'
  bench 0 count.pbtxt --init init --target more --seconds 0.05 --json --runtime direct --runtime direct &&
    holds '.targets == ["more"] and .fetches == [] and (.runs | length) == 2'
  is 'targets and initialisers'
  bench 0 inputs.pbtxt --seconds 0.01 --json --batch 2 --target ones --fetch x_out --fetch n_out --fetch s_out --fetch b_out \
    --fetch h_out --fetch c_out --fetch q_out && holds '[.inputs[] | [.tensor, .type, .shape, .made]] ==
    [["x","float32",[2,3],true],["n","int32",[2],true],["s","string",[2,1],true],["b","bool",[4],true],["h","half",[5],true],
    ["c","complex64",[2],true],["q","quint8",[2],true]]'
  is 'inputs of every type are generated, integers are ones'
else
  jq=false
  skip '--json' 'jq is not there'
fi
bench 0 inputs.pbtxt --seconds 0.01 --fetch x_out && ! told vague && told "input 'x' is generated" && ! told "input 'n'"
is 'only inputs needed by the fetches are generated'

# ---- threads ----

bench 0 "$digits/digits.pb" --seconds 0.02 --threads 1,2 --no-histogram && [ "$(grep -c '^direct' out)" = 2 ] && ! has THREADS &&
  told "runtime 'direct' runs each step on the calling thread: measured once"
is '--threads: direct is measured once, and the command says so'
taker=chameleon_________________
test_plugins=${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}
if [ -r "$test_plugins/chameleon.so" ] && [ -r "$test_plugins/minimal.so" ] && $jq; then
  mkdir plugins && cp "$test_plugins/chameleon.so" "$test_plugins/minimal.so" plugins
  TENON_PLUGIN_PATH=$TENON_PLUGIN_PATH:$tmp/plugins
  bench 0 "$digits/digits.pb" --seconds 0.02 --threads 1,2 --runtime $taker --runtime direct --json &&
    holds "[.runs[] | [.target, .threads]] == [[\"$taker:threads=1\", 1], [\"$taker:threads=2\", 2], [\"direct\", null]]"
  is '--threads becomes the setting threads= of a runtime that has it'
  bench 0 "$digits/digits.pb" --seconds 0.02 --threads 2 --runtime $taker:a=b --json &&
    holds "[.runs[].target] == [\"$taker:a=b,threads=2\"]"
  is 'other settings are kept'
  bench 1 "$digits/digits.pb" --seconds 0.02 --threads 2 --runtime $taker:threads=3 && says 'set both here and by --threads'
  is 'threads= and --threads exclude each other'
  bench 0 "$digits/digits.pb" --seconds 0.02 --threads 3 --runtime test.minimal --json &&
    holds '[.runs[] | [.target, .threads]] == [["test.minimal", 3]]' && told "runtime 'test.minimal' has no setting 'threads'"
  is 'other runtimes get it as an option of the session'
  bench 0 "$digits/digits.pb" --seconds 0.02 --threads 3 --runtime direct --runtime test.minimal --no-histogram &&
    has '^RUNTIME +THREADS ' && has '^direct +- ' && has '^test.minimal +3 '
  is 'the table shows the numbers of threads'
else
  skip '--threads becomes the setting threads= of a runtime that has it' 'no plugins of the tests, or no jq'
fi

# ---- results on a device ----

# An OpenCL whose devices have memory of their own.
faults=$test_plugins/opencl_faults.so
loader=$(ldconfig -p 2>/dev/null | sed -n 's/.*libOpenCL\.so\.1 .*=> //p' | head -n 1)
if [ -r "$faults" ] && [ -n "$loader" ] && "$tenon" runtimes explain gpu >/dev/null 2>&1; then
  mkdir apart && cp "$faults" apart/libOpenCL.so.1
  (LD_LIBRARY_PATH=$tmp/apart${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} TENON_TEST_OPENCL=$loader TENON_TEST_OPENCL_TYPES=gpu
   export LD_LIBRARY_PATH TENON_TEST_OPENCL TENON_TEST_OPENCL_TYPES
   bench 0 "$digits/digits.pb" --seconds 0.02 --runtime gpu:fetch=device,placement=device --reuse --no-histogram &&
     has '^gpu:' && told "^runtime 'gpu:.*': fetch 'class:0' .*--reuse does not apply to it$" &&
     bench 0 "$digits/digits.pb" --seconds 0.02 --runtime gpu:placement=device --reuse --no-histogram && ! told 'does not apply')
  is '--reuse skips tensors on a device, and reports that'
else
  skip '--reuse skips tensors on a device, and reports that' 'no device for gpu, or no plugins of the tests'
fi

# ---- errors ----

bench 2 && says 'no model file was given' && bench 2 a b && says "expected one model, but 'b' is a second one"
is 'one model'
bench 2 x --nothing && says "unknown option '--nothing'" && bench 2 x --seconds && says "option '--seconds' requires a value"
is 'unknown options, or options without a value'
good=true
for value in 0 -1 +1 x 1,0 1, ,1 1,,2 1.5 4097 99999999999999999999 '' ' 1' 1,2,x; do
  bench 2 x --threads "$value" && quiet && grep -qF -e "--threads '$value': expected numbers from 1 to 4096, separated by commas" err || good=false
done
$good && bench 2 x --threads 2,3,2 && says "--threads '2,3,2': 2 occurs twice"
is '--threads takes a list of numbers from 1 on'
good=true
for value in 0 -1 -0.5 +1 x 1e3 inf nan 0x1p3 '' ' 1' 1.2.3 . 0.0001 86401 99999999999999999999999999999; do
  bench 2 x --seconds "$value" && quiet && grep -qF -e "--seconds '$value': expected a number from 0.001 to 86400" err || good=false
done
$good
is '--seconds takes a number above zero'
good=true
for option in batch:2147483647 concurrency:1024; do
  for value in 0 -1 +1 1.5 1e3 many '' ' 1' 9999999999; do
    bench 2 x "--${option%:*}" "$value" && grep -qF -e "--${option%:*} '$value': expected a number from 1 to ${option#*:}" err || good=false
  done
done
$good
is '--batch and --concurrency take a number from 1 on'
good=true
for value in 0 -1 1.5 many '' 9999999999999; do
  bench 2 x --timeout "$value" && quiet && says "--timeout '$value': expected a number from 1 to 999999999999" || good=false
done
$good
is '--timeout takes a number from 1 on'
list=1
i=1
while [ $i -lt 65 ]; do i=$((i + 1)); list=$list,$i; done
bench 2 x --threads $list && says '1 runtimes? with 65 thread counts each: at most 64 rows are supported' &&
  bench 2 x --threads "${list%,65}" --runtime a --runtime b && says 'at most 64 rows'
is 'the number of rows is limited'
bench 2 x --option level && says "--option 'level': expected FIELD=VALUE"
is '--option requires a value'
bench 1 missing.pb && says "missing.pb" && quiet
is 'a missing model'
bench 1 "$digits/digits.pb" --runtime nowhere && told '^tenon: NOT_FOUND: .*nowhere.*direct' && quiet
is 'a missing runtime'
bench 1 "$digits/digits.pb" --runtime direct:threads=2 && says "there is no setting 'threads'"
is 'an unknown setting'
bench 1 "$digits/digits.pb" --option levl=1 && says levl
is 'an unknown option of the session'
bench 1 nothing.pbtxt && says 'the model has no output that can run: select one with --fetch or --target' &&
  bench 0 nothing.pbtxt --target nothing --seconds 0.01
is 'a model without outputs'
bench 1 "$digits/digits.pb" --fetch clas && says "fetch 'clas': .*did you mean 'class'"
is 'an unknown fetch'
bench 1 "$digits/digits.pb" --feed image && says "feed 'image': expected TENSOR=VALUE" &&
  bench 1 "$digits/digits.pb" --feed image=1 --feed image:0=1 && says 'fed more than once' &&
  bench 1 "$digits/digits.pb" --feed image=word && says "feed 'image': "
is 'wrong feeds'
bench 1 inputs.pbtxt --fetch vague_out && says "input 'vague': its shape is unknown, so no value can be generated" &&
  bench 0 inputs.pbtxt --fetch vague_out --feed vague='[1, 2]' --seconds 0.01
is 'an input of unknown shape must be fed'
bench 1 inputs.pbtxt --fetch handle_out && says "'handle'"
is 'a handle cannot be generated'
bench 1 inputs.pbtxt --fetch n_out --batch 7 && says "--batch 7: no input has this first dimension: 'n' is \[2\]" &&
  bench 1 nothing.pbtxt --target nothing --batch 7 && says '--batch 7: .*the step has no inputs'
is '--batch for inputs of a fixed size'
bench 1 inputs.pbtxt --fetch huge_out --batch 2147483647 && says "input 'huge': " && quiet
is '--batch beyond the memory'
bench 1 count.pbtxt --target more --seconds 0.01 && says "runtime 'direct': step 1: .*'v'.*before it was initialised" && quiet
is 'a step that fails: the message names the runtime and the step'
bench 1 count.pbtxt --init nothing --target more && says "init 'nothing': the model has no node"
is 'an unknown initialiser'
bench 1 forty.pbtxt --init fill --fetch get --option operation_timeout_ms=50 --seconds 60 &&
  told "^tenon: DEADLINE_EXCEEDED: runtime 'direct': step 41: " && quiet
is 'a later step that fails'
bench 1 forty.pbtxt --init fill --fetch get --option operation_timeout_ms=50 --seconds 60 --concurrency 4 &&
  told "^tenon: DEADLINE_EXCEEDED: runtime 'direct': " && quiet
is 'a failure of one client ends all clients'
bench 1 forty.pbtxt --init fill --fetch get --timeout 50 --seconds 60 && quiet &&
  told "^tenon: DEADLINE_EXCEEDED: runtime 'direct': step 41: the step exceeded its time limit at node 'get' (.*)$"
is '--timeout is a limit for each step'
bench 1 blocked.pbtxt --fetch get --timeout 50 && quiet && told "^tenon: DEADLINE_EXCEEDED: runtime 'direct': step 1: "
is '--timeout applies to the first step, too'
bench 1 forty.pbtxt --init fill --fetch get --timeout 50 --seconds 60 --concurrency 4 && quiet &&
  told "^tenon: DEADLINE_EXCEEDED: runtime 'direct': "
is '--timeout with several clients'
bench 0 "$digits/digits.pb" --timeout 60000 --warm-up --seconds 0.02
is 'steps within the time limit are measured'

# ---- terminals ----

if script -qec true /dev/null >/dev/null 2>&1 </dev/null && locale -a 2>/dev/null | grep -qix 'c.utf-\?8'; then
  # on_terminal ENVIRONMENT...: writes the contents of the terminal to out.
  on_terminal() {
    env TERM=xterm LC_ALL=C.UTF-8 "$@" SHELL=/bin/sh $limit script -qec "stty cols 100; '$tenon' bench '$digits/digits.pb' --seconds 1.2" /dev/null \
      >out 2>err </dev/null
  }
  escape=$(printf '\033')
  on_terminal NO_COLOR= && has "$(printf '\342\226\210')" && has "${escape}\[36m"
  is 'on a terminal: blocks of Unicode, in colour'
  has 'measuring \[#*\.*\] [0-9]+/100  direct [0-9.e-]+ ms'
  is 'on a terminal: a progress line'
  on_terminal NO_COLOR=1 && has "$(printf '\342\226\210')" && ! has "${escape}\[36m"
  is 'NO_COLOR'
  on_terminal LC_ALL=C && ! has "$(printf '\342\226\210')" && has '###'
  is 'ASCII if the locale is not UTF-8'
else
  skip 'on a terminal: blocks of Unicode, in colour' 'script does not work here, or there is no C.UTF-8'
fi

# ---- Ctrl-C ----

# interrupted SIGNAL STATUS SECONDS ARGUMENT...: sends the signal after some seconds.
interrupted() {
  name=$1 wanted=$2 after=$3
  shift 3
  rm -f pid
  (
    i=0
    until [ -s pid ] || [ $i -ge 1000 ]; do i=$((i + 1)); sleep 0.05; done
    sleep "$after"
    kill -s "$name" "$(cat pid)"
  ) 2>/dev/null &
  # shellcheck disable=SC2016
  run "$wanted" sh -c 'echo $$ >pid; exec "$@"' sh "$tenon" bench "$@"
  good=$?
  wait
  return $good
}
caught=yes
case $(sed -n 's/^SigIgn:.*\(.\)$/\1/p' /proc/self/status 2>/dev/null) in
2 | 3 | 6 | 7 | a | b | e | f) caught=ignored ;;
esac
if [ $caught = ignored ]; then
  skip 'Ctrl-C' 'the tests run with SIGINT ignored'
else
  interrupted INT 130 4 "$digits/digits.pb" --seconds 3600 && has '^direct( +[0-9.]+ [num]?s){4}' && has p50 &&
    told '^tenon: CANCELLED: interrupted after [0-9.]+ of 3600 s$'
  is 'Ctrl-C shows the results so far: status 130'
fi
run 0 "$tenon" bench "$digits/digits.pb" --seconds 0.1 --warm-up --json && { ! $jq || holds '.runs[0].first_step_ns > 0'; }
is '--warm-up runs before the first step'
interrupted TERM 143 0.5 blocked.pbtxt --fetch get && quiet && told '^tenon: CANCELLED: interrupted while warming up$'
is 'a step that waits is cancelled, and nothing is shown'
interrupted TERM 143 4 "$digits/digits.pb" --seconds 3600 --concurrency 2 --runtime direct --runtime direct --json --option kernel_plugins=never &&
  { ! $jq || holds '.interrupted == true and (.runs | length) == 2 and .runs[0].steps > 0'; }
is 'SIGTERM works, too; --json reports the interruption'

run 0 "$tenon" bench "$digits/digits.pb" --seconds 0.2 --json && grep -q '^  "seconds": 0\.2,$' out
is 'numbers of --json have no insignificant digits'

echo "1..$n"
