#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon convert, and models in text form for the other commands. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" convert
digits=$src/examples/digits

# gives STATUS PATTERN COMMAND...: ends with the status and matching output.
gives() {
  wanted=$1 pattern=$2
  shift 2
  "$@" >out 2>err </dev/null
  status=$?
  ! grep -qE 'Sanitizer|runtime error:' err && [ "$status" -eq "$wanted" ] && cat out err | grep -qE -e "$pattern"
}

cat >sum.pbtxt <<'END'
# y = x + 1
node {
  name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } } } }
}
node { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
  attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
node { name: 'y' op: 'AddV2' input: ['x', 'one'] attr { key: 'T' value { type: DT_FLOAT } } }
END

gives 0 '^y:0 ' "$tenon" run sum.pbtxt --feed 'x:0=[1, 2.5]' --fetch y:0 && grep -qF '[2.' out && grep -qF '3.5]' out
is 'a model in text form runs'
gives 0 'y:0' "$tenon" inspect sum.pbtxt
is 'inspect reads the text form'
"$tenon" convert sum.pbtxt -o sum.pb >out 2>err && [ ! -s out ] && [ ! -s err ] && [ -s sum.pb ]
is 'text to bytes, without output'
gives 0 '3\.5\]' "$tenon" run sum.pb --feed 'x:0=[1, 2.5]' --fetch y:0
is 'the bytes run'
"$tenon" convert sum.pb --output=again.pbtxt >out 2>err && "$tenon" convert again.pbtxt -o again.pb >out 2>err && cmp sum.pb again.pb
is 'to text and back gives the same bytes'
"$tenon" convert --text sum.pb -o /dev/stdout >out 2>err && cmp out again.pbtxt
is 'text to standard output'
sed 1d sum.pbtxt >model && gives 0 '3\.5\]' "$tenon" run model --feed 'x:0=[1, 2.5]' --fetch y:0
is 'text that begins with a field is recognised without the suffix'
"$tenon" convert "$digits/digits.pb" -o digits.pb >out 2>err && cmp digits.pb "$digits/digits.pb"
is 'a model written by TensorFlow is unchanged'
"$tenon" convert digits.pb -o digits.pbtxt && "$tenon" run "$digits/digits.pb" --feed image:0="$digits/images.npy" \
  --fetch probabilities:0=one.npy >out 2>err && "$tenon" run digits.pbtxt --feed image:0="$digits/images.npy" \
  --fetch probabilities:0=two.npy >out 2>err && cmp one.npy two.npy
is 'its text form gives the same results'

printf 'node {\n  nam: "x"\n}\n' >bad.pbtxt
gives 1 "^tenon: INVALID_ARGUMENT: bad.pbtxt:2:3: NodeDef has no field 'nam'" "$tenon" convert bad.pbtxt -o bad.pb && [ ! -e bad.pb ]
is 'errors have a line and a column'
gives 1 '^tenon: NOT_FOUND: .*nothing.pb' "$tenon" convert nothing.pb -o x.pb
is 'no such model'
gives 1 '^tenon: NOT_FOUND: .*nowhere' "$tenon" convert sum.pb -o nowhere/x.pb
is 'no such folder'
gives 2 "-o FILE is required" "$tenon" convert sum.pb
is 'no output'
gives 2 'no model file' "$tenon" convert -o x.pb
is 'no model'
gives 2 "'y.pb' is a second one" "$tenon" convert sum.pb y.pb -o x.pb
is 'two models'
gives 2 "unknown option '--fast'" "$tenon" convert sum.pb --fast
is 'unknown option'
gives 2 "option '-o' requires a value" "$tenon" convert sum.pb -o
is 'option without its value'
sed 's/\\-/-/g' "$src/docs/tenon.1" >page && for option in $("$tenon" convert --help | grep -oE '^  (-[a-z], )?--[a-z]+' | grep -oE -e '--[a-z]+$'); do
  grep -q -e "$option" page || exit 1
done && grep -q '^\.SS tenon convert' page
is 'the manual page names it'

echo "1..$n"
