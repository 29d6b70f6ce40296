#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon run, inspect, freeze, plan and bench with SavedModels: keys, signatures, tags, checkpoints, training. The model
# is tests/data/saved/half_plus_two: y = a * x + b, and a signature that trains a and b. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" saved_model
half=$src/tests/data/saved/half_plus_two
models=${TENON_MODELS:-/nowhere}

# has PATTERN: a line of standard output matches. told PATTERN: a line of standard error. quiet: nothing was printed.
has() { grep -qE -e "$1" out; }
told() { grep -qE -e "$1" err; }
quiet() { [ ! -s out ]; }
cp -R "$half" half && chmod -R u+w half

# ---- calls by key ----

run 0 "$tenon" run half --feed x='[1, 2, 5]' --fetch y && has '^y  float32 \[3\]$' && has '^\[2\.5 3\.  4\.5\]$'
is 'the default signature is called by its keys'
run 0 "$tenon" run half --signature serving_default --tags serve --feed x='[1, 2, 5]' --fetch y && has '^\[2\.5 3\.  4\.5\]$'
is '--signature and --tags name it'
run 0 "$tenon" run half/saved_model.pb --feed x='[8]' --fetch y && has '^\[6\.\]$'
is 'the path may be that of saved_model.pb'
(cd half && run 0 "$tenon" run . --feed x='[8]' --fetch y && has '^\[6\.\]$') && cp half/out half/err . && rm half/out half/err
is 'the path may be the current folder'
run 0 "$tenon" inspect half --json && tensor=$(sed -n '/"name": "serving_default"/,/"outputs"/s/.*"tensor": "\(.*\)".*/\1/p' out) &&
  [ -n "$tensor" ] && run 0 "$tenon" run half --feed "$tensor=[8]" --fetch y && has '^\[6\.\]$' &&
  run 0 "$tenon" run half --feed x='[8]' --fetch y=y.npy --fetch "$tensor" && has '^y  float32 \[1\]  saved in y.npy$' && has '^\[8\.\]$'
is 'names of tensors work, too, also beside keys'
run 0 "$tenon" run half --feed x=y.npy --fetch y && has '^\[5\.\]$'
is 'files are fed by key'

# ---- what there is ----

run 2 "$tenon" run half && has "^half: [0-9]+ nodes, tags {serve}, made by TensorFlow 2" && has '^Signature serving_default \(tensorflow/serving/predict\)$' &&
  has '^    x +float32 \[\?\] +serving_default_x:0$' && has '^    y +float32 \[\?\] +StatefulPartitionedCall' && has '^Signature train ' &&
  has '^  tenon run half --feed x=FILE.npy --fetch y$' && says 'nothing to run'
is 'without fetches the signatures are shown, with an example'
run 2 "$tenon" run half --signature train && ! has 'serving_default ' && has '^    loss ' && has '^  tenon run half --signature train --feed t=FILE.npy --fetch loss$'
is 'with --signature only that one'
run 1 "$tenon" run half --feed x='[1]' --fetch z=z.npy && says "fetch 'z': signature 'serving_default' has no such output: it has y; .*did you mean 'y'" &&
  quiet && [ ! -e z.npy ]
is 'the error for a wrong key lists the keys'
run 1 "$tenon" run half --feed X='[1]' --fetch y && says "feed 'X': signature 'serving_default' has no such input: it has x; .*did you mean 'x'"
is 'so does that for a wrong input'
run 1 "$tenon" run half --signature predict --feed x='[1]' --fetch y && told '^tenon: NOT_FOUND: ' && says 'serving_default' && says 'train'
is 'the error for a wrong signature lists the signatures'
run 1 "$tenon" run half --tags serve,gpu --feed x='[1]' --fetch y && told '^tenon: NOT_FOUND: ' && says 'serve'
is 'the error for wrong tags lists the tag sets'
run 1 "$tenon" run half --fetch y && says "input 'x' of signature 'serving_default' is needed: add --feed x=VALUE" && told 'caused by: .*serving_default_x'
is 'the error for a missing input names its key'
run 1 "$tenon" run half --feed x='["a"]' --fetch y && says "feed 'x': .*float32"
is 'the key determines the type of a literal'
run 1 "$tenon" run half --feed x='[1]' --feed serving_default_x:0='[2]' --fetch y && says 'this tensor is fed more than once'
is 'a tensor is not fed twice under two names'
mkdir empty
run 1 "$tenon" run empty --fetch y && told '^tenon: NOT_FOUND: .*saved_model.pb'
is 'a folder without a SavedModel'

# ---- training ----

# x is 0 to 3, t is 3x + 1.
cat >train <<'END'
#!/bin/sh
exec "$TENON" run half --signature train --feed x='[0, 1, 2, 3]' --feed t='[1, 4, 7, 10]' --fetch loss "$@"
END
chmod +x train
TENON=$tenon
export TENON
value() { sed -n '/^loss /{n;p;}' out; }

run 0 ./train --steps 40 --every 20 --save ckpt --save-every 10 && grep -qE '^step 20  loss ' out && [ -f ckpt.index ] && [ -f checkpoint ] && last=$(value)
is 'training by a signature, with checkpoints'
run 0 ./train --steps 20 --save first && run 0 ./train --steps 20 --checkpoint first && [ "$(value)" = "$last" ]
is 'a run that resumes from a checkpoint continues it exactly'
mkdir in && run 0 ./train --steps 20 --save in/model --save-every 7 && run 0 ./train --steps 20 --checkpoint in && [ "$(value)" = "$last" ]
is '--checkpoint FOLDER is the newest checkpoint in the folder'
run 0 "$tenon" run half --checkpoint ckpt --feed x='[0]' --fetch y=a.npy && run 0 "$tenon" run half --feed x='[0]' --fetch y=b.npy && ! cmp -s a.npy b.npy
is 'other signatures use the trained variables'
run 0 ./train --steps 40 --after-signature serving_default --after y=c.npy --feed serving_default_x:0='[0]' && cmp -s a.npy c.npy
is '--after-signature: a key of another signature after the steps'
run 0 "$tenon" run half --signature train --after-signature serving_default --feed t='[1]' --feed x='[1]' --feed serving_default_x:0='[5]' \
  --fetch loss --after y && has '^y  float32 \[1\]$'
is 'the keys of the steps have precedence over those of --after-signature'
run 2 ./train --steps 4 --save-every 2 && says '--save-every requires --save PREFIX' && run 2 ./train --save-every 0 --save x &&
  says "--save-every '0': expected a number" && run 1 ./train --save nowhere/x && says 'nowhere' && run 1 ./train --save in/ && says 'expected a prefix'
is 'wrong --save and --save-every'
run 1 "$tenon" run half --checkpoint none --feed x='[1]' --fetch y && told '^tenon: NOT_FOUND: .*none'
is 'a checkpoint that does not exist'

if run 0 ./train --steps 40 --save-model trained; then
  run 0 "$tenon" run trained --feed x='[0]' --fetch y=d.npy && cmp -s a.npy d.npy
  is '--save-model writes a SavedModel with the trained variables'
  run 1 ./train --save-model trained && told '^tenon: ALREADY_EXISTS: '
  is '--save-model does not replace a folder'
else
  good=false
  $good
  is '--save-model writes a SavedModel with the trained variables'
fi

cat >double.pbtxt <<'END'
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
END
run 0 "$tenon" run double.pbtxt --feed x=1 --fetch y:0 --save-model double && run 0 "$tenon" run double --feed x='[1, 2]' --fetch y && has '^\[2\. 4\.\]$'
is '--save-model gives a graph without signatures one'

# Whenever a signal arrives, the checkpoint is one that was completed.
mkdir any
bad='' i=0
while [ $i -lt 12 ]; do
  rm -rf any/* pid
  ( sleep "0.$((i / 10 + 1))$((i % 10))"; kill -s TERM "$(cat pid)" ) 2>/dev/null &
  # shellcheck disable=SC2016
  sh -c 'echo $$ >pid; exec "$@"' sh "$tenon" run half --signature train --feed x='[0, 1]' --feed t='[1, 4]' --fetch loss \
    --steps 100000000 --save any/model --save-every 1 >out 2>err </dev/null
  status=$?
  wait
  [ "$status" -eq 143 ] || bad="$bad status $status;"
  if [ -e any/model.index ]; then
    "$tenon" checkpoint show any/model a/.ATTRIBUTES/VARIABLE_VALUE >shown 2>&1 || "$tenon" checkpoint show any/model a >shown 2>&1 || bad="$bad $(head -n 1 shown);"
  fi
  # shellcheck disable=SC2012
  [ "$(ls -A any | grep -cvE '^(checkpoint|model\.index|model\.data-[0-9]{5}-of-[0-9]{5})$')" -eq 0 ] || bad="$bad left: $(ls -A any | tr '\n' ' ');"
  i=$((i + 1))
done
[ -z "$bad" ] || echo "# $bad"
[ -z "$bad" ]
is 'a signal at any time leaves a complete checkpoint and nothing else'

# ---- inspect ----

run 0 "$tenon" inspect half && has '^half, SavedModel, [0-9.]+ kB$' && has '^  tags +{serve}$' && has '^  made by +TensorFlow 2\.[0-9.]+' &&
  has '^  variables +2 tensors with 8 B in variables/variables \(object-based, version 2\)$' && has '^Signature train ' &&
  has '^    x +float32 \[\?\] +train_x:0$' && has '^Functions ' && has '^Ops in functions$'
is 'inspect shows tags, maker, variables, signatures and functions'
run 0 "$tenon" inspect half && has '^All ops and types are supported\.$'
is 'inspect: everything in it is supported'
if command -v python3 >/dev/null; then
  run 0 "$tenon" inspect half --json && python3 - <<'END' >py 2>&1
import json
m = json.load(open("out"))
s = {x["name"]: x for x in m["signatures"]}
assert m["kind"] == "SavedModel" and m["tags"] == ["serve"] and m["tag_sets"] == [["serve"]], m["kind"]
assert [i["key"] for i in s["train"]["inputs"]] == ["t", "x"]
assert s["serving_default"]["outputs"][0]["dtype"] == "float32" and s["serving_default"]["outputs"][0]["shape"] == [None]
assert m["checkpoint"]["tensors"] == 2 and m["checkpoint"]["bytes"] == 8 and m["assets"] == []
END
  is 'inspect --json'
else
  skip 'inspect --json' 'python3 is not here'
fi
rm half/variables/variables.index
run 0 "$tenon" inspect half && has '^  variables +cannot be read: ' && run 1 "$tenon" run half --feed x='[1]' --fetch y && told '^tenon: NOT_FOUND: .*variables'
is 'inspect shows a model whose variables are missing; it does not run'
cp "$half/variables/variables.index" half/variables/

# ---- freeze, and other commands ----

if run 0 "$tenon" freeze half -o half.pb; then
  has '^half.pb: [0-9]+ nodes?, ' && has '^Signature serving_default ' && run 0 "$tenon" run half.pb --feed serving_default_x:0='[8]' \
    --fetch "$("$tenon" inspect half --json | sed -n '/"name": "serving_default"/,/^    }/s/.*"tensor": "\(Stateful.*\)".*/\1/p')" && has '^\[6\.\]$'
  is 'freeze writes a graph that gives the same'
  run 0 "$tenon" freeze half -o trained.pb --checkpoint ckpt --inline && run 0 "$tenon" inspect trained.pb && ! has 'VarHandleOp' && ! has '^Functions'
  is 'freeze --checkpoint --inline: no variables, no functions'
else
  good=false
  $good
  is 'freeze writes a graph that gives the same'
fi
run 2 "$tenon" freeze half && says '-o FILE is required' && run 1 "$tenon" freeze half -o x.pb --signature predict && told '^tenon: NOT_FOUND: ' && [ ! -e x.pb ]
is 'freeze: wrong arguments'
run 0 "$tenon" bench half --feed x='[1, 2]' --fetch y --seconds 0.02 && run 0 "$tenon" bench half --seconds 0.02 --batch 4 && told "input 'serving_default_x' is generated|input 'serving_default_x:0' is generated"
is 'bench measures a signature'
run 0 "$tenon" plan half && run 0 "$tenon" plan half --feed x='[1, 2]' --fetch y
is 'plan shows that of a signature'
run 0 "$tenon" graph half -o half.dot && [ -s half.dot ] && run 0 "$tenon" convert half -o graph.pbtxt && grep -q VarHandleOp graph.pbtxt
is 'graph and convert take the graph'

# ---- cases of others ----

if [ -d "$models/savedmodel-two-inputs" ]; then
  run 2 "$tenon" run "$models/savedmodel-two-inputs/$(sed -n 's/.*"model": "\(.*\)".*/\1/p' "$models/savedmodel-two-inputs/case.json")" && has '^Signature serving_default'
  is 'a model of another maker is shown'
else
  skip 'a model of another maker is shown' 'TENON_MODELS does not lead to it'
fi

echo "1..$n"
