#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon plan: its output for a plan, and errors of wrong calls. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" plan
digits=$src/examples/digits/digits.pb

# plan STATUS ARGUMENT...
plan() {
  wanted=$1
  shift
  run "$wanted" "$tenon" plan "$@"
}
# has PATTERN: a line of standard output matches.
has() { grep -qE -e "$1" out; }

# ---- output ----

plan 0 "$digits" && has '^digits\.pb: 35 nodes, 34 needed, [0-9]+ left at level 1$'
is 'the first line counts nodes'
has '^  identity +8 ' && has '^  fuse +[0-9]+ +[0-9]+ +.*product_bias 4'
is 'each pass with its changes, and the rewrites by name'
has '^  Conv2D +3 +0$' && has '^  _TnConv2D +0 +3$'
is 'ops before and after'
has '%0 +_TnConv2D +conv1/relu +[a-z0-9_]+.* image, conv1/weights, conv1/bias$' && has '^Gives probabilities:0, class:0$'
is 'instructions with their inputs, and the outputs'
! has 'memory of a step'
is 'without a step memory is unknown'
plan 0 "$digits" --step && has '^memory of a step [0-9.]+ k?B, of which at most [0-9.]+ k?B live at one time'
is '--step shows the memory of a step'
plan 0 "$digits" --fetch class && ! has 'Softmax' && has '^Gives class$'
is '--fetch selects the outputs'
plan 0 "$digits" --feed logits --fetch probabilities && has '^1 instruction in 1 segment' && has 'Softmax +probabilities .* logits$'
is 'intermediate values are fed'
plan 0 "$digits" --feed "logits=[[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]" --fetch probabilities && has '^memory of a step'
is 'a feed with a value runs a step'
plan 0 "$digits" --disable fuse --disable identity && has '^  fuse +0 +[0-9]+ +off$' && has '^  identity +0 +[0-9]+ +off$' && ! has _TnConv2D
is '--disable disables passes'
plan 0 "$digits" --level 0 && has 'left at level 0$' && ! has '^  Pass'
is 'at level 0 no pass runs'
plan 0 --passes && has '^fold +[a-z]' && has '^algebra +[a-z]'
is '--passes lists them'
if command -v jq >/dev/null; then
  plan 0 "$digits" --step --json && [ "$(jq -r '[.instructions[].op] | index("_TnConv2D") != null' out)" = true ] &&
    [ "$(jq '.passes | length > 8' out)" = true ] && [ "$(jq '.arena_bytes >= .live_bytes and .live_bytes > 0' out)" = true ] &&
    [ "$(jq '.instructions[0].kernel == .instructions[0].kernels[0]' out)" = true ] &&
    [ "$(jq '.values[.instructions[0].inputs[0]].kind' out)" = '"feed"' ]
  is '--json'
else
  skip '--json' 'jq is not there'
fi

# ---- long plans ----

{
  printf 'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }\n'
  last=x
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50; do
    printf 'node { name: "n%s" op: "Softmax" input: "%s" attr { key: "T" value { type: DT_FLOAT } } }\n' "$i" "$last"
    last=n$i
  done
} >long.pbtxt
plan 0 long.pbtxt && has '10 more \(--all\)' && has '%0 +Softmax' && has '%49 +Softmax' && ! has '%25 '
is 'the middle of a long plan is omitted'
plan 0 long.pbtxt --all && has '%25 ' && ! has 'more \(--all\)'
is '--all shows it'

# ---- loops ----

cat >loop.pbtxt <<'END'
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "enter" op: "Enter" input: "zero" attr { key: "T" value { type: DT_INT32 } } attr { key: "frame_name" value { s: "loop" } } }
node { name: "merge" op: "Merge" input: "enter" input: "next" attr { key: "T" value { type: DT_INT32 } } attr { key: "N" value { i: 2 } } }
node { name: "ten" op: "Const" input: "^merge" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 10 } } } }
node { name: "less" op: "Less" input: "merge" input: "ten" attr { key: "T" value { type: DT_INT32 } } }
node { name: "cond" op: "LoopCond" input: "less" }
node { name: "switch" op: "Switch" input: "merge" input: "cond" attr { key: "T" value { type: DT_INT32 } } }
node { name: "one" op: "Const" input: "^switch" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "add" op: "Add" input: "switch:1" input: "one" attr { key: "T" value { type: DT_INT32 } } }
node { name: "next" op: "NextIteration" input: "add" attr { key: "T" value { type: DT_INT32 } } }
node { name: "exit" op: "Exit" input: "switch" attr { key: "T" value { type: DT_INT32 } } }
END
plan 0 loop.pbtxt && has '^1 instruction in 1 segment' && has '%0 +\(loop\) +enter +- +zero$' && has '^Gives exit:0$'
is 'a loop is one instruction'
cat >handle.pbtxt <<'END'
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "read" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
END
plan 0 handle.pbtxt && has '%0 +VarHandleOp +v +[a-z_]+ *$' && ! grep -q null out
is 'an instruction without inputs'

# ---- pictures ----

plan 0 "$digits" -o g.dot && grep -q '^digraph' g.dot && grep -q cluster_b g.dot && grep -q cluster_a g.dot && grep -q 'conv1/relu' g.dot
is '-o draws the graph before and after'
grep -qE '"conv1/relu" \[label=.*weights 3x3x1x32.*fillcolor="#fff6d6"' g.dot && grep -qE '"before conv1/relu" ' g.dot &&
  grep -qE '^ *"image" .*fillcolor="#d9f0dd"' g.dot && grep -qE '^ *"class" .*fillcolor="#fde7cf"' g.dot &&
  grep -qE '^  graph \[label=<.*input.*output.*made by the planner' g.dot && grep -qF '"image" -> "conv1/relu" [label=" ?x8x8x1 float32"]' g.dot
is 'it has the colours, labels and legend of tenon graph'
awk 'BEGIN {
  print "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } }"
  for (i = 0; i < 40; i++) for (k = 0; k < 8; k++) {
    from = k > 0 ? "layer" i "/part" k - 1 : i > 0 ? "layer" i - 1 "/part7" : "x"
    printf "node { name: \"layer%d/part%d\" op: \"%s\" input: \"%s\" attr { key: \"T\" value { type: DT_FLOAT } } }\n", i, k,
           k % 2 ? "Tanh" : "Neg", from
  } }' >deep.pbtxt
plan 0 deep.pbtxt --level 0 -o deep.dot && [ "$(grep -c '\[label=<' deep.dot)" -lt 200 ] && grep -q 'folded' deep.dot &&
  plan 0 deep.pbtxt --level 0 --all -o all.dot && [ "$(grep -c '^ .*\[label=<' all.dot)" -gt 600 ]
is 'a large graph is folded, and --all shows every instruction'
if command -v dot >/dev/null; then
  plan 0 "$digits" -o g.svg && grep -q '<svg' g.svg
  is '-o as SVG'
else
  skip '-o as SVG' 'dot is not there'
fi
plan 2 "$digits" -o g.txt && says 'must end in'
is 'an unknown suffix'
plan 1 "$digits" -o none/g.dot && says "none" && [ ! -e none ]
is 'a missing folder'

# ---- wrong calls ----

plan 2 && says 'no model file'
is 'no model'
plan 2 "$digits" "$digits" && says 'a second one'
is 'two models'
plan 2 "$digits" --bogus
is 'an unknown option'
plan 2 "$digits" --passes && says 'does not take a model'
is '--passes with a model'
plan 2 "$digits" --option level && says 'FIELD=VALUE'
is 'an option without a value'
plan 1 nowhere.pb && says 'nowhere.pb'
is 'a missing model'
plan 1 "$digits" --fetch clas && says "did you mean 'class'"
is 'an unknown fetch'
plan 1 "$digits" --disable fusion && says "disable_passes: unknown pass 'fusion'; the passes are: "
is 'an unknown pass'
plan 1 "$digits" --feed 'logits=[[1], [2, 3]]' --fetch class && says "feed 'logits'.*ragged"
is 'an invalid value'
plan 1 long.pbtxt --step && says "feed 'x': its shape is unknown"
is 'a step without the value of a feed of unknown shape'
plan 1 "$digits" --feed 'logits=[1, 2]' --fetch probabilities --level 7 && says 'level'
is 'an invalid level'
"$tenon" plan --help | grep -q '^Usage: tenon plan MODEL' && "$tenon" --help | grep -q '^ *plan '
is 'help'
echo "1..$n"
