#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon run --trace, --timeline, --profile: output, whether readers of such files accept it, and
# errors. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" trace
digits=$src/examples/digits

# has PATTERN: a line of standard output matches. told PATTERN: a line of standard error. digits
# ARGUMENT...: steps of that model.
has() { grep -qE -e "$1" out; }
told() { grep -qE -e "$1" err; }
digits() {
  wanted=$1
  shift
  run "$wanted" "$tenon" run "$digits/digits.pb" --feed image:0="$digits/images.npy" --fetch class:0 "$@"
}

# Node names need no escaping, but file names may.
cat >'a "b" <c>&.pbtxt' <<'END'
node { name: "q" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_INT32 } } } }
node { name: "get" op: "QueueDequeueV2" input: "q" attr { key: "component_types" value { list { type: DT_INT32 } } } }
node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "call" op: "StatefulPartitionedCall" input: "n" attr { key: "Tin" value { list { type: DT_INT32 } } }
  attr { key: "Tout" value { list { type: DT_INT32 } } } attr { key: "f" value { func { name: "Twice" } } } }
node { name: "put" op: "QueueEnqueueV2" input: "q" input: "call" attr { key: "Tcomponents" value { list { type: DT_INT32 } } } }
library { function { signature { name: "Twice" input_arg { name: "x" type: DT_INT32 } output_arg { name: "y" type: DT_INT32 } }
  node_def { name: "s" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_INT32 } } }
  ret { key: "y" value: "s:z:0" } } }
END
queue() { run 0 "$tenon" run 'a "b" <c>&.pbtxt' --level 0 --feed n=3 --fetch get --target put "$@"; }

# ---- Chrome's format ----

# Requirements of the format's readers: a list of events, each with a phase; slices with times that
# nest on their thread; asynchronous slices that begin and end; named threads.
cat >check.py <<'END'
import json, sys
trace = json.load(open(sys.argv[1]))
events = trace["traceEvents"]
assert isinstance(events, list) and events
named, used, open_slices, stacks = set(), set(), {}, {}
for e in events:
    assert e["ph"] in "XMbe", e
    assert isinstance(e["pid"], int) and isinstance(e["tid"], int), e
    assert isinstance(e["name"], str), e
    where = (e["pid"], e["tid"])
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name") and isinstance(e["args"]["name"], str), e
        if e["name"] == "thread_name":
            named.add(where)
        continue
    used.add(where)
    assert isinstance(e["ts"], (int, float)) and e["ts"] >= 0 and isinstance(e["cat"], str), e
    key = (e["cat"], e["name"], e.get("id"))
    if e["ph"] == "b":
        assert key not in open_slices
        open_slices[key] = e["ts"]
    elif e["ph"] == "e":
        assert open_slices.pop(key) <= e["ts"]
    else:
        assert isinstance(e["dur"], (int, float)) and e["dur"] >= 0 and isinstance(e["args"], dict), e
        stacks.setdefault(where, []).append((e["ts"], e["ts"] + e["dur"]))
assert not open_slices and used <= named
for slices in stacks.values():
    open_ends = []
    for begin, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while open_ends and open_ends[-1] <= begin + 0.0015:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1] + 0.0015, (begin, end, open_ends)
        open_ends.append(end)
print(len(events))
END
if command -v python3 >/dev/null; then
  digits 0 --steps 3 --trace d.json && run 0 python3 check.py d.json
  is 'a trace of several steps is accepted by readers'
  queue --trace q.json && run 0 python3 check.py q.json
  is 'also with nodes that wait, and functions'
  digits 0 --steps 2 --runtime threaded --trace p.json && run 0 python3 check.py p.json
  is 'also with workers'
else
  skip 'a trace of several steps is accepted by readers' 'python3 is not there'
  skip 'also with nodes that wait, and functions' 'python3 is not there'
  skip 'also with workers' 'python3 is not there'
fi
if command -v jq >/dev/null; then
  digits 0 --steps 3 --trace d.json && run 0 jq -e '[.traceEvents[] | select(.name == "step 3")] | length == 1' d.json &&
    run 0 jq -e '[.traceEvents[] | select(.name == "logits" and .args.step == 2)] | length == 1' d.json &&
    run 0 jq -e '.traceEvents[] | select(.name == "class" and .args.step == 1) |
      .ph == "X" and .cat == "ArgMax" and .args.outputs == "int64 [300]" and .args.bytes == 2400' d.json
  is 'nodes with their steps, ops, shapes and bytes'
  queue --trace q.json && run 0 jq -e '[.traceEvents[] | select(.name == "call/s")] | length == 1' q.json &&
    run 0 jq -e '[.traceEvents[] | select(.name == "get") | .ph] == ["b", "e"]' q.json &&
    run 0 jq -e '.otherData.model == "a \"b\" <c>&.pbtxt"' q.json
  is 'nodes of functions, waiting nodes, and original names'
else
  skip 'nodes with their steps, ops, shapes and bytes' 'jq is not there'
  skip 'nodes of functions, waiting nodes, and original names' 'jq is not there'
fi

# ---- RunMetadata ----

digits 0 --steps 2 --trace d.pb && [ "$(head -c 1 d.pb | od -An -tx1 | tr -d ' ')" = 0a ] &&
  grep -aq '/job:localhost/replica:0/task:0/device:CPU:0' d.pb && grep -aq 'conv1/relu = _TnConv2D(' d.pb && grep -aq _retval_class_0_0 d.pb
is 'a file that ends in .pb is a RunMetadata'
if [ -n "${TENON_TENSORFLOW_PYTHON:-}" ]; then
  cat >read.py <<'END'
from tensorflow.core.protobuf import config_pb2
m = config_pb2.RunMetadata.FromString(open("d.pb", "rb").read())
nodes = {n.node_name: n for d in m.step_stats.dev_stats for n in d.node_stats}
assert nodes["class"].output[0].tensor_description.shape.dim[0].size == 300
assert nodes["class"].all_start_nanos > 0 and len(m.partition_graphs) == 1
END
  run 0 "$TENON_TENSORFLOW_PYTHON" read.py
  is 'which TensorFlow reads'
else
  skip 'which TensorFlow reads' 'TENON_TENSORFLOW_PYTHON names no Python with TensorFlow'
fi

# ---- pictures ----

digits 0 --steps 3 --timeline d.svg && grep -q '<svg' d.svg && grep -q 'digits.pb: steps 2 to 3 of 3' d.svg && grep -q '<title>conv2/relu' d.svg &&
  grep -q '</svg>' d.svg && ! grep -q '<script' d.svg
is '--timeline draws the steps'
# In a font as wide as DejaVu Sans a letter of the legend is at most 7.4 units wide.
awk '/height="11"/ { split($0, part, "\""); x = part[2]; y = part[4]; if (y == row && x < end) bad = 1
  text = $0; sub(/.*<text x="/, "", text); at = text + 0; sub(/^[^>]*>/, "", text); sub(/<.*/, "", text)
  row = y; end = at + 7.4 * length(text); n++; lowest = y + 11 }
  /<svg / { height = $0; sub(/.*viewBox="0 0 [0-9]* /, "", height) }
  END { exit bad || n < 3 || lowest > height + 0 }' d.svg
is 'the legend is in the picture, and no text touches the next swatch'
queue --timeline q.svg && grep -q 'a &quot;b&quot; &lt;c&gt;&amp;.pbtxt: step 1<' q.svg
is 'special characters of SVG are escaped'
if command -v python3 >/dev/null; then
  run 0 python3 -c 'import sys, xml.dom.minidom as x; [x.parse(f) for f in sys.argv[1:]]' d.svg q.svg
  is 'pictures are well-formed'
else
  skip 'pictures are well-formed' 'python3 is not there'
fi
if "$tenon" runtimes explain gpu >/dev/null 2>&1; then
  asan=${ASAN_OPTIONS:-} # PoCL's compiler keeps memory of its own
  ASAN_OPTIONS=$asan:detect_leaks=0
  export ASAN_OPTIONS
  digits 0 --runtime gpu:placement=device --timeline g.svg && grep -q '>step</text>' g.svg && grep -q '>GPU:0</text>' g.svg
  is 'a device has a row of its own'
  ASAN_OPTIONS=$asan
else
  skip 'a device has a row of its own' 'gpu has no device here'
fi
digits 0 --steps 40 --timeline d.svg && grep -q 'steps 31 to 40 of 40' d.svg
is 'the last of many steps are drawn'

# ---- the profile ----

digits 0 --steps 5 --profile && told '^4 steps after the first, [0-9.]+ (us|ms|s) each, of which nodes took [0-9.]+ %$' &&
  told '^ +[0-9.]+ (us|ms) +[0-9.]+ % +1  conv2/relu +_TnConv2D +[a-z0-9_]+$' && told '^ +[0-9.]+ (us|ms) +[0-9.]+ % +3  _TnConv2D +3$' && has '^class:0'
is '--profile lists nodes and ops'
[ "$(sed -n '/cost most/,/^Ops/p' err | grep -c ' %')" -le 11 ]
is 'at most ten nodes'

# ---- errors ----

digits 2 --trace d.txt && says 'must end in'
is 'an unknown suffix'
digits 2 --timeline d.png && says 'must end in'
is 'a suffix that is not one of a picture'
run 2 "$tenon" run "$digits/digits.pb" --init image --profile && says 'add --fetch'
is 'tracing needs steps'
digits 1 --trace none/d.json && says "none/d\\.json" && [ ! -s out ]
is 'a missing folder is an error before anything runs'
mkdir folder.json && digits 1 --trace folder.json && says 'a directory'
is 'a folder in place of the file'
echo before >kept.json && run 1 "$tenon" run "$digits/digits.pb" --feed image:0=1 --fetch class:0 --trace kept.json && [ "$(cat kept.json)" = before ]
is 'a failed step leaves the file unchanged'
(
  ulimit -f 2 && trap '' XFSZ && digits 1 --steps 40 --trace kept.json
) && [ "$(cat kept.json)" = before ] && ! ls -a | grep -q '^\.tenon-'
is 'a full disk leaves no partial file'
chmod 500 folder.json
if [ "$(id -u)" -ne 0 ]; then
  digits 1 --timeline folder.json/d.svg && says 'folder.json/d.svg'
  is 'a folder that is not writable'
else
  skip 'a folder that is not writable' 'the superuser may write everywhere'
fi
chmod 700 folder.json
echo "1..$n"
