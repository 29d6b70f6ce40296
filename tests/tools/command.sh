#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tenon command end to end, as a user sees it: output, files, errors of bad input. Prints TAP.
# The shell writes its graphs node by node; digits is the model of examples/.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
tenon=$build/tenon
: "${TENON_PLUGIN_PATH:=$build/plugins/.libs}"
export TENON_PLUGIN_PATH
digits=$src/examples/digits
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tenon-tool.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
cd "$tmp" || exit 99
n=0

ok() { n=$((n + 1)); echo "ok $n - $1"; }
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }
not_ok() {
  n=$((n + 1))
  echo "not ok $n - $1"
  shift
  for line; do echo "# $line"; done
  { echo "status $status, standard output:"; head -n 12 out; echo "standard error:"; head -n 12 err; } 2>/dev/null | sed 's/^/#   /'
}

# run COMMAND...: sets status, and writes out and err. A program that hangs is killed after a minute.
limit=
command -v timeout >/dev/null && limit='timeout 60'
run() {
  $limit "$@" >out 2>err </dev/null
  status=$?
}

# gives NAME STATUS PATTERN COMMAND...: the command ends with the status, and its output matches
# the pattern. An error is written to standard error and begins with its code; a crash or a report
# of a sanitizer never matches.
gives() {
  name=$1 wanted=$2 pattern=$3
  shift 3
  run "$@"
  stream=out
  [ "$wanted" -ne 0 ] && stream=err
  if [ "$status" -ne "$wanted" ]; then
    not_ok "$name" "status $wanted was wanted: $*"
  elif grep -qE 'Sanitizer|runtime error:' err; then
    not_ok "$name" "a sanitizer has something to say: $*"
  elif [ "$wanted" -ne 0 ] && ! grep -qE '^tenon: [A-Z_]+: ' err; then
    not_ok "$name" "standard error names no code: $*"
  elif ! grep -qE -e "$pattern" $stream; then
    not_ok "$name" "no line fits: $pattern" "$*"
  else
    ok "$name"
  fi
}

# same NAME FILE: standard output of the last run is FILE.
same() {
  if [ "$status" -eq 0 ] && cmp -s out "$2"; then
    ok "$1"
  else
    diff out "$2" >difference
    not_ok "$1" "$(head -n 5 difference)"
  fi
}

# nothing_left NAME FOLDER: the folder contains no file, of any name.
nothing_left() {
  left=$(find "$2" ! -type d)
  if [ -z "$left" ]; then ok "$1"; else not_ok "$1" "left behind: $left"; fi
}

# ---- graphs and arrays, byte for byte ----

# byte N...: bytes of these values.
byte() { for b; do printf "\\$(printf '%03o' "$b")"; done; }
# field NUMBER TEXT: a length-delimited field of a protobuf message; below 128 bytes.
field() { byte $(($1 * 8 + 2)) ${#2}; printf '%s' "$2"; }
# node NAME OP [INPUT...]; with type=N an attribute T, with dtype=N an attribute dtype.
node() {
  name=$1 op=$2 size=$((4 + ${#1} + ${#2})) attr=
  shift 2
  for i; do size=$((size + 2 + ${#i})); done
  [ -n "$dtype" ] && { attr=dtype value=$dtype; }
  [ -n "$type" ] && { attr=T value=$type; }
  [ -n "$attr" ] && size=$((size + 8 + ${#attr}))
  byte 10 $size
  field 1 "$name"
  field 2 "$op"
  for i; do field 3 "$i"; done
  [ -n "$attr" ] || return 0
  byte 42 $((6 + ${#attr}))
  field 1 "$attr"
  byte 18 2 48 "$value"
}
# varint N, and wrap NUMBER: standard input as a length-delimited field.
varint() {
  v=$1
  while [ "$v" -ge 128 ]; do byte $((v % 128 + 128)); v=$((v / 128)); done
  byte "$v"
}
wrap() {
  part=$(mktemp part.XXXXXX)
  cat >"$part"
  varint $(($1 * 8 + 2))
  varint "$(($(wc -c <"$part")))"
  cat "$part"
  rm -f "$part"
}
# constant NAME DIM...: a float32 Const of that shape with the four bytes of 1.0.
constant() {
  name=$1
  shift
  {
    field 1 "$name"
    field 2 Const
    { field 1 dtype; byte 18 2 48 1; } | wrap 5
    {
      field 1 value
      {
        byte 8 1
        for dim; do { byte 8; varint "$dim"; } | wrap 2; done | wrap 2
        byte 34 4 0 0 128 63
      } | wrap 8 | wrap 2
    } | wrap 5
  } | wrap 1
}
dtype= type=
placeholder() { dtype=$2 node "$1" Placeholder; dtype=; }

# npy HEADER BYTE...: a file of NumPy's format 1.0.
npy() {
  header=$1
  shift
  byte 147; printf NUMPY; byte 1 0 118 0
  printf '%-117s\n' "$header"
  byte "$@"
}

placeholder x 1 >float.pb
{ placeholder f 1; placeholder d 2; placeholder i32 3; placeholder u8 4; placeholder i8 6; placeholder s 7; placeholder c 8
  placeholder i64 9; placeholder b 10; placeholder q 11; placeholder bf 14; placeholder h 19; placeholder r 20
  placeholder u64 23; placeholder f8 25; placeholder u4 30; } >types.pb
{ placeholder x 1; node odd Frobnicate x; type=1 node after Identity odd; type=1 node good Identity x; type=; } >unknown.pb

# ---- help and usage ----

gives 'version' 0 '^tenon [0-9]+\.[0-9]+\.[0-9]+$' "$tenon" --version
gives 'help lists every command' 0 '^  runtimes ' "$tenon" --help
for command in run inspect checkpoint freeze runtimes ops; do
  gives "help $command" 0 "^Usage: tenon $command" "$tenon" help $command
  cp out help.$command
  run "$tenon" $command --help
  same "$command --help is help $command" help.$command
done
run "$tenon"
if [ $status -eq 2 ] && grep -q '^Usage: tenon COMMAND' err && [ ! -s out ]; then ok 'no command shows help, status 2'; else not_ok 'no command shows help, status 2'; fi
gives 'unknown command, with a suggestion' 2 "unknown command 'runn' \(did you mean 'run'\?\)" "$tenon" runn
gives 'unknown option' 2 "unknown option '--fast'" "$tenon" run float.pb --fast
gives 'unknown short option' 2 "unknown option '-x'" "$tenon" inspect -x float.pb
gives 'unknown option of tenon itself' 2 "unknown option '--fast'" "$tenon" --fast
gives 'option without its value' 2 "option '--fetch' requires a value" "$tenon" run float.pb --fetch
gives 'unexpected value of an option' 2 "option '--json=1' does not take a value" "$tenon" inspect --json=1 float.pb
gives 'two models' 2 "'types.pb' is a second one" "$tenon" run float.pb types.pb
gives 'no model' 2 'no model file' "$tenon" inspect
gives 'help of an unknown command' 2 "unknown command 'nothing'" "$tenon" help nothing
gives 'feed without a value' 2 "expected TENSOR=VALUE" "$tenon" run float.pb --feed x:0 --fetch x:0
gives 'number of steps that is not a number' 2 "'--?steps|--steps 'many'" "$tenon" run float.pb --feed x:0=1 --fetch x:0 --steps many
gives 'steps 0' 2 "from 1 to" "$tenon" run float.pb --feed x:0=1 --fetch x:0 --steps 0
gives 'option without a field' 2 "expected FIELD=VALUE" "$tenon" run float.pb --feed x:0=1 --fetch x:0 --option level
gives 'unknown session option: the error lists the options' 1 'operation_timeout_ms' "$tenon" run float.pb --feed x:0=1 --fetch x:0 --option colour=red
gives 'level that is not a number' 1 'level' "$tenon" run float.pb --feed x:0=1 --fetch x:0 --level high
gives 'unknown runtime: the error lists the runtimes' 1 'NOT_FOUND: .*direct' "$tenon" run float.pb --feed x:0=1 --fetch x:0 --runtime nowhere
gives 'malformed runtime' 1 'INVALID_ARGUMENT' "$tenon" run float.pb --feed x:0=1 --fetch x:0 --runtime 'NO SUCH'

# ---- digits: end to end ----

gives 'needs of a model: inputs' 2 'nothing to run' "$tenon" run "$digits/digits.pb"
gives 'needs of a model: outputs' 2 'nothing to run' "$tenon" run "$digits/digits.pb" --feed image:0="$digits/images.npy"
if grep -qF 'image:0' out && grep -qF 'float32 [?, 8, 8, 1]' out && grep -qF 'probabilities:0' out && grep -qF 'class:0' out; then
  ok 'it names inputs with type and shape, and outputs'
else
  not_ok 'it names inputs with type and shape, and outputs'
fi

gives 'digits: header of the value' 0 '^class:0  int64 \[300\]$' "$tenon" run "$digits/digits.pb" \
  --feed image:0="$digits/images.npy" --fetch class:0
gives 'digits: saved file' 0 '^class:0  int64 \[300\]  saved in class.npy$' "$tenon" run "$digits/digits.pb" \
  --feed image="$digits/images.npy" --fetch class:0=class.npy --fetch probabilities=probabilities.npy --runtime direct --level 0
tail -c 2400 class.npy >found 2>/dev/null
tail -c 2400 "$digits/labels.npy" >wanted
wrong=$(cmp -l found wanted 2>&1 | wc -l)
if [ -s found ] && [ "$wrong" -le 3 ]; then ok "digits: at least 297 of 300 are as labelled"; else not_ok "digits: at least 297 of 300 are as labelled" "$wrong are not"; fi
if cmp -s -n 8 probabilities.npy "$digits/expected.npy"; then ok 'the saved file begins as NumPy writes it'; else not_ok 'the saved file begins as NumPy writes it'; fi
gives 'a saved file can be fed again' 0 '^probabilities:0  float32 \[300, 10\]' "$tenon" run "$digits/digits.pb" \
  --fetch probabilities:0 --feed probabilities:0=probabilities.npy
gives 'feeding an intermediate value' 0 '^\[9\]$' "$tenon" run "$digits/digits.pb" --fetch class:0 \
  --feed logits:0='[[0,1,2,3,4,5,6,7,8,9]]'

run "$tenon" run "$digits/digits.pb" --feed image:0="$digits/images.npy" --fetch class:0 --steps 20
if [ $status -eq 0 ] && grep -qE '^20 steps in .*; the first .*, median .*, 99 % within ' err; then ok '--steps shows their times'; else not_ok '--steps shows their times'; fi
run "$tenon" run "$digits/digits.pb" --feed image:0="$digits/images.npy" --fetch class:0 --verbose
if [ $status -eq 0 ] && grep -qE '^runtime direct .*direct\.so' err; then ok '--verbose names the runtime and its file'; else not_ok '--verbose names the runtime and its file'; fi
LC_ALL=de_DE.UTF-8 run "$tenon" run types.pb --feed d:0=1.5 --fetch d:0
printf 'd:0  float64 []\n1.5\n' >wanted
same 'numbers do not depend on the locale' wanted

# ---- names ----

gives 'unknown tensor to feed, with a suggestion' 1 "NOT_FOUND: feed 'imagee': .*did you mean 'image'" "$tenon" run "$digits/digits.pb" \
  --feed imagee:0=1 --fetch class:0
gives 'unknown tensor to fetch, with a suggestion' 1 "NOT_FOUND: fetch 'Class': .*did you mean 'class'" "$tenon" run "$digits/digits.pb" \
  --feed image:0="$digits/images.npy" --fetch Class
gives 'unknown target' 1 "NOT_FOUND: target 'init'" "$tenon" run "$digits/digits.pb" --target init
gives 'unknown initialiser' 1 "NOT_FOUND: init 'start'" "$tenon" run "$digits/digits.pb" --init start --fetch class
gives 'output that the node lacks' 1 "OUT_OF_RANGE: fetch 'class:1': node 'class' \(ArgMax\) has 1 output" "$tenon" run "$digits/digits.pb" \
  --feed image:0="$digits/images.npy" --fetch class:1
gives 'control name' 1 "OUT_OF_RANGE: .*\^class" "$tenon" run "$digits/digits.pb" --feed image:0="$digits/images.npy" --fetch ^class
gives 'colon without a number' 1 "INVALID_ARGUMENT: fetch 'class:x'" "$tenon" run "$digits/digits.pb" --fetch class:x
gives 'empty name' 1 'INVALID_ARGUMENT: fetch: the .*name is empty' "$tenon" run "$digits/digits.pb" --fetch ''
gives 'tensor fed twice, in two spellings' 1 'INVALID_ARGUMENT: .*fed more than once' "$tenon" run float.pb --feed x=1 --feed x:0=2 --fetch x
gives 'placeholder that is not fed' 1 "INVALID_ARGUMENT: .*image" "$tenon" run "$digits/digits.pb" --fetch class:0
gives 'the same tensor fetched twice' 0 '^x  float32 \[\]$' "$tenon" run float.pb --feed x=1 --fetch x --fetch x:0

# ---- literals ----

value() { # value TENSOR LITERAL EXPECTED-LINES: what is fed is fetched
  run "$tenon" run types.pb --feed "$1:0=$2" --fetch "$1:0"
  printf '%b\n' "$3" >wanted
  same "$1 = $(printf %.40s "$2")" wanted
}
value f '[[1, 2], [3, 4.5]]' 'f:0  float32 [2, 2]\n[[1.  2. ]\n [3.  4.5]]'
value f '[nan, inf, -inf, 1e-3]' 'f:0  float32 [4]\n[  nan   inf  -inf 0.001]'
value d '0.1' 'd:0  float64 []\n0.1'
value d '[1e300, -2.5]' 'd:0  float64 [2]\n[ 1.0e+300 -2.5e+000]'
value i32 '[-1, 0x10]' 'i32:0  int32 [2]\n[-1 16]'
value u8 255 'u8:0  uint8 []\n255'
value i8 '[[-128], [127]]' 'i8:0  int8 [2, 1]\n[[-128]\n [ 127]]'
value i64 -9223372036854775808 'i64:0  int64 []\n-9223372036854775808'
value u64 18446744073709551615 'u64:0  uint64 []\n18446744073709551615'
value b '[true, false]' 'b:0  bool [2]\n[ True False]'
value c '[1+2j, -1j]' 'c:0  complex64 [2]\n[1.+2.j 0.-1.j]'
value h '[0.1, -2]' 'h:0  half [2]\n[ 0.1 -2. ]'
value bf 3.140625 'bf:0  bfloat16 []\n3.14'
value f8 448 'f8:0  float8_e4m3fn []\n448.0'
value q '[-128, 127]' 'q:0  qint8 [2]\n[-128  127]'
value u4 15 'u4:0  uint4 []\n15'
value s 'hello world' "s:0  string []\nb'hello world'"
value s '["a", "it'"'"'s"]' "s:0  string [2]\n[b'a' b\"it's\"]"
value i32 '[]' 'i32:0  int32 [0]\n[]'
value i32 '[[], []]' 'i32:0  int32 [2, 0]\n[]'
value s '' "s:0  string []\nb''"
i=0 long=
while [ $i -lt 1200 ]; do long="$long,$i"; i=$((i + 1)); done
value i32 "[${long#,}]" 'i32:0  int32 [1200]\n[   0    1    2 ... 1197 1198 1199]'

refuse() { gives "$1 = $2 is refused" 1 "INVALID_ARGUMENT: feed '$1:0': .*$3" "$tenon" run types.pb --feed "$1:0=$2" --fetch "$1:0"; }
refuse u8 300 '300 is outside the range of uint8, 0 to 255'
refuse u8 -1 '-1 is outside the range of uint8'
refuse i8 '[1, 128]' '128 is outside the range of int8.*\[1\]'
refuse u64 18446744073709551616 'outside the range of uint64'
refuse i64 99999999999999999999 'outside the range of int64'
refuse u4 16 'outside the range of uint4'
refuse f 1e39 '1e39 is outside the range of float32'
refuse h 70000 '70000 is outside the range of half'
refuse f8 inf 'inf is outside the range of float8_e4m3fn'
refuse i32 1.5 "'1.5' is not a valid int32"
refuse i32 true "'true' is not a valid int32"
refuse b 2 "'2' is not a valid bool"
refuse f abc "'abc' is not a valid float32"
refuse f '' 'expected a value of type float32'
refuse c 1+2 "'1\\+2' is not a valid complex64"
refuse i32 '[[1, 2], [3]]' 'ragged list: 1 element here, 2 .*\[1\]'
refuse i32 '[[1], 2]' 'ragged list: found a value, but its neighbours are lists.*\[1\]'
refuse i32 '[1, [2]]' 'ragged list: found a list, but its neighbours are values.*\[1\]'
refuse i32 '[[], [1]]' 'ragged list'
refuse i32 '[1, 2' "missing '\\]'"
refuse i32 '[1 2]' "expected ',' or '\\]'"
refuse i32 '1]' 'unexpected text after'
refuse s '["a]' 'no closing quote'
refuse s '[a]' 'must be quoted'
refuse r 1 'values of type resource have no text form'
refuse i32 "$(printf '%0300d' 0 | tr 0 '[')" 'nest deeper than 254'

# ---- fed files ----

npy "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" 0 0 128 63 0 0 0 64 >good.npy
npy "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }" 0 0 128 63 0 0 0 64 0 0 64 64 0 0 128 64 >fortran.npy
npy "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }" 63 128 0 0 64 0 0 0 >big.npy
npy "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }" 128 2 93 113 0 75 1 97 46 >object.npy
npy "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }" 0 0 0 0 0 0 240 63 >double.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }" 0 0 128 63 0 0 0 64 >short.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }" 0 0 128 63 0 0 0 64 >extra.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }" >overflow.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }" 0 0 128 63 >lie.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }" >negative.npy
npy "{'descr': '<f4', 'shape': (1,), }" 0 0 128 63 >nokey.npy
npy "print('hello')" >nodict.npy
npy "{'descr': '<x9', 'fortran_order': False, 'shape': (1,), }" 0 >notype.npy
{ byte 147; printf NUMPY; byte 2 0 255 255 255 255; printf '{'; } >hugeheader.npy
{ byte 147; printf NUMPY; byte 1 0 255 255; printf '{'; } >cutheader.npy
{ byte 147; printf NUMPY; byte 9 0 4 0; printf '{} \n'; } >version.npy
printf 'PK\003\004 no array' >magic.npy
: >empty.npy
head -c 60 good.npy >cut.npy
mkdir folder.npy
npy "{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }" 128 63 >bfloat.npy

fed() { # fed FILE EXPECTED-LINES
  run "$tenon" run float.pb --feed "x:0=$1" --fetch x:0
  printf '%b\n' "$2" >wanted
  same "$1 is read" wanted
}
fed good.npy 'x:0  float32 [2]\n[1. 2.]'
fed fortran.npy 'x:0  float32 [2, 2]\n[[1. 3.]\n [2. 4.]]'
fed big.npy 'x:0  float32 [2]\n[1. 2.]'
gives 'bfloat16 from its two bytes' 0 '^1\.0$|^\[1\.\]$' "$tenon" run types.pb --feed bf:0=bfloat.npy --fetch bf:0

bad_npy() { gives "$1 is refused" 1 "(INVALID_ARGUMENT|DATA_LOSS|UNIMPLEMENTED|RESOURCE_EXHAUSTED): feed 'x:0': .*$1.*$2" "$tenon" run float.pb --feed "x:0=$1" --fetch x:0; }
bad_npy object.npy 'Python objects'
bad_npy double.npy 'float64.*wanted float32'
bad_npy short.npy 'cut short.*needs 3 times 4 bytes.*ends at byte 136'
bad_npy extra.npy 'float.*|bytes'
bad_npy overflow.npy 'shape'
bad_npy lie.npy 'cut short'
bad_npy negative.npy 'dimension 0 is -1'
bad_npy nokey.npy "no 'fortran_order'"
bad_npy nodict.npy "byte 10: .*wanted '\{'"
bad_npy notype.npy 'x9'
bad_npy hugeheader.npy 'header of 4294967295 bytes'
bad_npy cutheader.npy 'header of 65535 bytes'
bad_npy version.npy 'format 9.0'
bad_npy magic.npy 'not an .npy file'
bad_npy empty.npy 'empty'
bad_npy cut.npy 'ends at byte 60'
bad_npy folder.npy 'is a directory'
bad_npy bfloat.npy 'V2.*wanted float32'
gives 'a missing file' 1 "NOT_FOUND: feed 'x:0': .*none.npy" "$tenon" run float.pb --feed x:0=none.npy --fetch x:0
gives 'a file without the suffix .npy' 1 'must end in .npy' "$tenon" run float.pb --feed x:0=float.pb --fetch x:0

printf 'a\000b' >bytes
gives '@FILE feeds bytes' 0 "^b'a.x00b'$" "$tenon" run types.pb --feed s:0=@bytes --fetch s:0
gives '@FILE for a number' 1 '@FILE feeds a string, but the model expects float32' "$tenon" run float.pb --feed x:0=@bytes --fetch x:0
gives '@FILE that is missing' 1 "NOT_FOUND: feed 's:0': 'none'" "$tenon" run types.pb --feed s:0=@none --fetch s:0
gives '@FILE that is a folder' 1 "'folder.npy' is a directory, wanted a regular file" "$tenon" run types.pb --feed s:0=@folder.npy --fetch s:0
: >nothing
gives '@FILE that is empty' 0 "^b''$" "$tenon" run types.pb --feed s:0=@nothing --fetch s:0
if mkfifo pipe pipe.npy 2>/dev/null; then
  gives '@FILE that is a FIFO' 1 "'pipe' is a FIFO, wanted a regular file" "$tenon" run types.pb --feed s:0=@pipe --fetch s:0
  gives '.npy that is a FIFO' 1 'INVALID_ARGUMENT: .*pipe.npy. is a FIFO' "$tenon" run float.pb --feed x:0=pipe.npy --fetch x:0
  gives 'model that is a FIFO' 1 'INVALID_ARGUMENT: .*pipe. is a FIFO' "$tenon" inspect pipe
else
  skip 'a FIFO as file' 'mkfifo does not work here'
fi

# ---- invalid models ----

echo '{ "node": [] }' >a.json
mkdir saved
: >saved/saved_model.pb

gives 'missing model' 1 'NOT_FOUND: .*none.pb' "$tenon" run none.pb --fetch x
gives 'model that is a folder' 1 'NOT_FOUND: .*folder.npy. is no SavedModel: it has neither' "$tenon" inspect folder.npy
printf 'this is no graph at all, but text' >text.pb
gives 'model that is a text' 1 'INVALID_ARGUMENT: text.pb: this is text, wanted a GraphDef' "$tenon" inspect text.pb
for line in 'run --fetch x' inspect graph 'convert -o converted.pb' 'bench --seconds 0.01' plan; do
  # shellcheck disable=SC2086
  set -- $line
  command=$1
  shift
  gives "$command: empty file" 1 "INVALID_ARGUMENT: 'nothing' is empty, wanted a GraphDef" "$tenon" "$command" nothing "$@"
  gives "$command: NumPy array" 1 'class.npy: this is a NumPy array .*, wanted a GraphDef' "$tenon" "$command" class.npy "$@"
  gives "$command: JSON" 1 'a.json: this is JSON, wanted a GraphDef' "$tenon" "$command" a.json "$@"
  gives "$command: SavedModel that is empty" 1 'NOT_FOUND: .*saved/saved_model.pb: the file is empty' "$tenon" "$command" saved "$@"
done
if [ ! -e converted.pb ]; then ok 'nothing was converted'; else not_ok 'nothing was converted'; fi
{ placeholder x 1; placeholder x 1; } >twice.pb
gives 'two nodes of one name' 1 "INVALID_ARGUMENT: twice.pb: node 'x'" "$tenon" inspect twice.pb
{ type=1 node a Identity b; type=1 node b Identity a; } >cycle.pb; type=
gives 'cycle' 1 "INVALID_ARGUMENT: .*cycle.pb.*cycle" "$tenon" inspect cycle.pb
{ type=1 node a Identity missing; } >missing.pb; type=
gives 'missing input' 1 "INVALID_ARGUMENT: .*missing.pb.*missing" "$tenon" inspect missing.pb
placeholder 'a b' 1 >name.pb
node "$(printf 'a\033[2Jb')" NoOp >escape.pb
gives 'texts of a file are escaped before they are printed' 1 'a.x1b.2Jb' "$tenon" inspect escape.pb
gives 'invalid name' 1 "INVALID_ARGUMENT: .*name.pb.*a b" "$tenon" inspect name.pb
{ placeholder x 1; type=3 node y Identity x; } >wrong.pb; type=
gives 'input of another type' 1 "INVALID_ARGUMENT: wrong.pb: node 'y': .*float32, wanted int32" "$tenon" inspect wrong.pb
constant one 1 >constant.pb
gives 'constant' 0 '^\[1\.\]$' "$tenon" run constant.pb --fetch one
constant big 1099511627776 >dims.pb
gives 'false dimension' 1 "INVALID_ARGUMENT: .*node 'big': .*has 4 bytes, wanted 4398046511104" "$tenon" run dims.pb --fetch big
constant huge 4611686018427387904 4611686018427387904 >product.pb
gives 'product of dimensions that overflows' 1 "INVALID_ARGUMENT: .*node 'huge': .*too large" "$tenon" run product.pb --fetch huge
{ { field 1 x; field 2 Placeholder; { field 1 dtype; byte 18 2 40 1; } | wrap 5; } | wrap 1; } >kind.pb
gives 'attribute of a wrong kind' 1 "INVALID_ARGUMENT: kind.pb: node 'x'.*dtype" "$tenon" inspect kind.pb
{ { field 1 x; field 2 Placeholder; } | wrap 1; } >noattr.pb
gives 'missing attribute' 1 "INVALID_ARGUMENT: noattr.pb: node 'x'.*dtype" "$tenon" inspect noattr.pb
{ type=1 node y Identity; } >noinput.pb; type=
gives 'input without a value' 1 "INVALID_ARGUMENT: noinput.pb: node 'y'.*input" "$tenon" inspect noinput.pb
# A function as an attribute of a function and so on, 100,000 messages deep; lengths from the innermost out.
LC_ALL=C awk 'BEGIN {
  n = 100000; size = 2
  for (i = n; i > 0; i--) {
    before[i] = i == 1 ? "\n\001x\022\004NoOp" : i % 3 == 2 ? "\n\001f" : ""
    lengths[i] = size + length(before[i])
    size = lengths[i] + 2
    for (v = lengths[i]; v >= 128; v = int(v / 128)) size++
  }
  for (i = 1; i <= n; i++) {
    printf "%c", i == 1 ? 10 : i == 2 ? 42 : i % 3 == 1 ? 82 : 18
    for (v = lengths[i]; v >= 128; v = int(v / 128)) printf "%c", v % 128 + 128
    printf "%c%s", v, before[i]
  }
  printf "%c%c", 24, 1 }' >nested.pb
gives 'messages nested 100,000 deep' 1 'INVALID_ARGUMENT: nested.pb: .*(deep|nest)' "$tenon" inspect nested.pb
{ byte 10 200 1; printf 'short'; } >length.pb
gives 'false length' 1 '(INVALID_ARGUMENT|DATA_LOSS): .*length.pb: byte 0' "$tenon" inspect length.pb

gives 'unknown op is kept' 0 'Frobnicate' "$tenon" inspect unknown.pb
gives 'unknown op that is not needed' 0 '^good:0  float32' "$tenon" run unknown.pb --feed x=1 --fetch good:0
gives 'unknown op that is needed' 1 "NOT_FOUND: .*(Frobnicate.*odd|odd.*Frobnicate)" "$tenon" run unknown.pb --feed x=1 --fetch after:0
gives 'output of an unknown op can be fed' 0 '^after:0  float32' "$tenon" run unknown.pb --feed odd:0=1 --fetch after:0

# A prefix of a model may be a model; otherwise the status is 1 and the error names the file.
# Nothing may crash or hang.
size=$(wc -c <"$digits/digits.pb")
sweep=good
i=0
while [ $i -lt 24 ]; do
  head -c $((size * i / 24 + i * 7 % 5)) "$digits/digits.pb" >prefix.pb
  run "$tenon" run prefix.pb --feed image:0="$digits/images.npy" --fetch class:0
  if [ $status -ne 1 ] || ! grep -qE '^tenon: [A-Z_]+: ' err || grep -q Sanitizer err; then sweep="cut at $((size * i / 24 + i * 7 % 5)) bytes"; break; fi
  i=$((i + 1))
done
if [ "$sweep" = good ]; then ok 'a truncated model is an error'; else not_ok 'a truncated model is an error' "$sweep"; fi

# Bytes of the first nodes and of the last, changed one at a time.
sweep=good
i=0
while [ $i -lt 60 ]; do
  at=$((i < 30 ? i * 5 : size - 1 - (i - 30) * 17))
  cp "$digits/digits.pb" mutant.pb
  byte $(((i * 37 + 129) % 256)) | dd of=mutant.pb bs=1 seek=$at conv=notrunc 2>/dev/null
  run "$tenon" run mutant.pb --feed image:0="$digits/images.npy" --fetch class:0
  if [ $status -gt 1 ] || { [ $status -eq 1 ] && ! grep -qE '^tenon: [A-Z_]+: ' err; } || grep -q Sanitizer err; then sweep="byte $at changed"; break; fi
  i=$((i + 1))
done
if [ "$sweep" = good ]; then ok 'a model with a changed byte runs or gives an error'; else not_ok 'a model with a changed byte runs or gives an error' "$sweep"; fi

# ---- several arrays in a file ----

mkdir arrays
run "$tenon" run types.pb --feed f=1 --fetch f=arrays/probe.npz:f
if grep -qE '^tenon: (UNIMPLEMENTED|UNAVAILABLE): ' err; then
  skip 'several arrays in a file' 'libzip cannot be used'
else
  gives 'two fetches into one .npz file' 0 '^i32:0  int32 \[\]  saved in ./arrays/a.npz:n$' "$tenon" run types.pb --feed f='[1, 2]' --feed i32=7 \
    --fetch f=arrays/a.npz:f --fetch i32:0=./arrays/a.npz:n
  gives 'an array by its key' 0 '^\[1\. 2\.\]$' "$tenon" run types.pb --feed f=arrays/a.npz:f --fetch f
  gives 'an array by its name in the archive' 0 '^7$' "$tenon" run types.pb --feed i32=arrays/a.npz:n.npy --fetch i32
  gives 'a missing key' 1 "NOT_FOUND: feed 'f': 'arrays/a.npz' has no array 'g'; it has 'f', 'n'" "$tenon" run types.pb --feed f=arrays/a.npz:g --fetch f
  gives 'no key, and two arrays' 1 "INVALID_ARGUMENT: feed 'f': 'arrays/a.npz' contains 2 arrays; select one, as in arrays/a.npz:f: the keys are f, n" "$tenon" run types.pb --feed f=arrays/a.npz --fetch f
  gives 'the array has another type' 1 "INVALID_ARGUMENT: feed 'f': 'arrays/a.npz:n': .*int32.*wanted float32" "$tenon" run types.pb --feed f=arrays/a.npz:n --fetch f
  gives 'existing files are replaced' 0 'saved in arrays/a.npz:b' "$tenon" run types.pb --feed b=true --fetch b=arrays/a.npz:b
  gives 'no key, and one array' 0 '^True$' "$tenon" run types.pb --feed b=arrays/a.npz --fetch b
  head -c 100 arrays/a.npz >arrays/cut.npz
  gives 'a truncated archive' 1 "DATA_LOSS: feed 'b': 'arrays/cut.npz' is cut short" "$tenon" run types.pb --feed b=arrays/cut.npz:b --fetch b
  gives 'a text that looks like an archive, in quotes' 0 'a.npz:b' "$tenon" run types.pb --feed s='"a.npz:b"' --fetch s
fi

# ---- writing ----

mkdir results
gives 'two fetches into one file' 2 'both be written' "$tenon" run float.pb --feed x=1 --fetch x=results/a.npy --fetch x:0=results/../results/a.npy
gives 'two fetches under one key' 2 "both be written to .* under the key 'a'" "$tenon" run float.pb --feed x=1 --fetch x=results/a.npz:a --fetch x:0=./results/a.npz:a
gives 'an .npz file without a key' 2 'the array needs a key' "$tenon" run float.pb --feed x=1 --fetch x=results/a.npz
gives 'a file with another suffix' 2 'must end in .npy' "$tenon" run float.pb --feed x=1 --fetch x=results/a.txt
gives 'a missing folder' 1 "NOT_FOUND: cannot write 'nowhere/a.npy'" "$tenon" run float.pb --feed x=1 --fetch x=nowhere/a.npy
gives 'a folder in the place of the file' 1 'it exists and is not a regular file' "$tenon" run float.pb --feed x=1 --fetch x=folder.npy
gives 'a failed run writes nothing' 1 'NOT_FOUND' "$tenon" run unknown.pb --feed x=1 --fetch good=results/a.npy --fetch after=results/b.npy
nothing_left 'failed runs leave no files' results
(ulimit -f 1 && exec "$tenon" run "$digits/digits.pb" --feed image:0="$digits/images.npy" --fetch probabilities:0=results/p.npy) >out 2>err </dev/null
status=$?
if [ $status -eq 1 ] && grep -qE '^tenon: [A-Z_]+: .*p\.npy' err; then
  ok 'a file that cannot be written completely is an error'
else
  not_ok 'a file that cannot be written completely is an error'
fi
nothing_left 'and no partial file is left' results
printf old >results/keep.npy
(ulimit -f 1 && exec "$tenon" run "$digits/digits.pb" --feed image:0="$digits/images.npy" --fetch probabilities:0=results/keep.npy) >out 2>err </dev/null
if [ "$(cat results/keep.npy)" = old ]; then ok 'the existing file is kept'; else not_ok 'the existing file is kept'; fi
if [ -w /dev/full ]; then
  "$tenon" ops >/dev/full 2>err </dev/null
  status=$?
  if [ $status -eq 1 ] && grep -q '^tenon: RESOURCE_EXHAUSTED: standard output: ' err; then
    ok 'a full disk under standard output is an error'
  else
    not_ok 'a full disk under standard output is an error'
  fi
  "$tenon" run float.pb --feed x=1 --fetch x >/dev/full 2>err </dev/null
  status=$?
  if [ $status -eq 1 ]; then ok 'for values, too'; else not_ok 'for values, too'; fi
else
  skip 'a full disk under standard output is an error' 'there is no /dev/full'
fi
{ "$tenon" ops; echo $? >pipe_status; } 2>err </dev/null | head -n 1 >out
status=$(cat pipe_status)
if [ ! -s err ] && { [ "$status" -eq 0 ] || [ "$status" -gt 128 ]; }; then ok 'a closed pipe is not an error'; else not_ok 'a closed pipe is not an error'; fi
if [ "$(id -u)" -eq 0 ]; then
  skip 'files without permission' 'root may read and write everything'
else
  cp float.pb secret.pb && chmod 000 secret.pb
  cp good.npy secret.npy && chmod 000 secret.npy
  mkdir locked && chmod 500 locked
  gives 'model without permission' 1 'PERMISSION_DENIED: .*secret.pb' "$tenon" inspect secret.pb
  gives '.npy without permission' 1 'PERMISSION_DENIED: .*secret.npy' "$tenon" run float.pb --feed x=secret.npy --fetch x
  gives 'folder without permission' 1 'PERMISSION_DENIED: .*locked/a.npy' "$tenon" run float.pb --feed x=1 --fetch x=locked/a.npy
fi

# ---- inspect, runtimes, ops ----

gives 'inspect: size and nodes' 0 '^35 nodes of [0-9]+ ops; [0-9]+ constants with ' "$tenon" inspect "$digits/digits.pb"
if grep -qE '^ *[0-9]+  Conv2D$' out && grep -qE '^  image:0 +float32 \[\?, 8, 8, 1\]$' out && grep -q 'All ops and types are supported' out; then
  ok 'inspect: ops with counts, inputs, all supported'
else
  not_ok 'inspect: ops with counts, inputs, all supported'
fi
gives 'inspect: unsupported ops' 0 'Frobnicate +unknown op' "$tenon" inspect unknown.pb
gives 'inspect: affected outputs' 0 "after:0 .*needs Frobnicate, which is not supported" "$tenon" inspect unknown.pb
printf 'node { name: "a" op: "Frobnicate" }\n' >alone.pbtxt
gives 'inspect: an unsupported output' 0 '^  a:0 .*  Frobnicate is not supported$' "$tenon" inspect alone.pbtxt
printf 'node { name: "a" op: "Frobnicate" } node { name: "go" op: "NoOp" input: "^a" }\n' >target.pbtxt
gives 'inspect: a target that needs unsupported ops' 0 "^  go  NoOp  needs Frobnicate, which is not supported .node 'a'.$" "$tenon" inspect target.pbtxt
gives 'inspect: no constants' 0 '^1 node of 1 op; no constants$' "$tenon" inspect alone.pbtxt
printf 'library { function { signature { name: "F" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } } ret { key: "y" value: "x" } } }\n' >function.pbtxt
gives 'inspect: functions' 0 '^  0  F\(x: float32\) -> \(y: float32\)$' "$tenon" inspect function.pbtxt
gives 'inspect --json: functions' 0 '"signature": "F\(x: float32\) -> ' "$tenon" inspect --json function.pbtxt
cat >calls.pbtxt <<'END'
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "good" op: "Good" input: "x" }
node { name: "bad" op: "Outer" input: "x" }
node { name: "case" op: "PartitionedCall" input: "x" attr { key: "f" value { func { name: "Outer" } } } attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }
library {
  function { signature { name: "Good" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } } ret { key: "y" value: "n:y:0" }
    node_def { name: "n" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } } }
  function { signature { name: "Outer" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } } ret { key: "y" value: "n:y:0" }
    node_def { name: "n" op: "Inner" input: "x" } }
  function { signature { name: "Inner" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } } ret { key: "y" value: "x" }
    node_def { name: "n" op: "NobodyKnowsThis" input: "x" } }
}
END
gives 'inspect: a call of a function that runs' 0 '^  good:0 +float32' "$tenon" inspect calls.pbtxt
gives 'inspect: an op that a function needs' 0 "^  1  PartitionedCall  calls a function that needs NobodyKnowsThis, which is not supported  as node 'case'$" "$tenon" inspect calls.pbtxt
gives 'inspect --json: an op that a function needs' 0 '"reason": "calls a function that needs NobodyKnowsThis' "$tenon" inspect --json calls.pbtxt
gives 'inspect --json' 0 '"blocked_nodes": 2' "$tenon" inspect --json unknown.pb
gives 'runtimes' 0 '^direct +runtime .*direct\.so$' "$tenon" runtimes
gives 'runtimes --load' 0 '^direct +runtime .* loaded ' "$tenon" runtimes --load
gives 'runtimes --json' 0 '"name": "direct"' "$tenon" runtimes --json
mkdir plugins && printf 'no shared object' >plugins/broken.so
TENON_PLUGIN_PATH=$tmp/plugins${TENON_PLUGIN_PATH:+:$TENON_PLUGIN_PATH} run "$tenon" runtimes
if [ $status -eq 0 ] && grep -q '^direct ' out; then ok 'a broken file does not hide the others'; else not_ok 'a broken file does not hide the others'; fi
gives 'ops' 0 '^Conv2D +CPU +' "$tenon" ops
gives 'ops PATTERN' 0 '^1 op$' "$tenon" ops MatMul
gives 'ops --schema' 0 'MatMul\(a: T, b: T\)' "$tenon" ops --schema 'MatM*'
gives 'ops --runtime' 0 '^1 op$' "$tenon" ops --runtime direct MatMul
gives 'ops --runtime with a missing runtime' 1 "NOT_FOUND: .*no runtime 'nowhere'" "$tenon" ops --runtime nowhere
gives 'ops --json' 0 '"name": "MatMul"' "$tenon" ops --json MatMul
gives 'unknown ops, with a suggestion' 1 "NOT_FOUND: .*'MatMull' \(did you mean 'MatMul'\?\)" "$tenon" ops MatMull
if command -v python3 >/dev/null; then
  good=yes
  for command in "inspect --json $digits/digits.pb" "inspect --json unknown.pb" 'runtimes --json' 'ops --json'; do
    run "$tenon" $command
    python3 -m json.tool out >/dev/null 2>err || good="$command"
  done
  if [ "$good" = yes ]; then ok 'JSON is well formed'; else not_ok 'JSON is well formed' "$good"; fi
else
  skip 'JSON is well formed' 'python3 is not here'
fi

# ---- examples and pages ----

run "$build/examples/digits_demo" --data "$digits"
if [ $status -eq 0 ] && grep -qE 'recognised +29[789] of 300' out && grep -qE 'images a second' out && grep -qF 'direct.so' out; then
  ok 'the demo recognises the digits and names the runtime'
else
  not_ok 'the demo recognises the digits and names the runtime'
fi
run "$build/examples/onednn_demo" direct
if [ $status -eq 0 ] && grep -qE '^  oneDNN      ([0-9.]+ times as fast as without it: [0-9.]+ and [0-9.]+ ms|gains nothing|is not installed)' out; then
  ok 'the demo shows the speedup by oneDNN'
else
  not_ok 'the demo shows the speedup by oneDNN'
fi
TENON_PLUGIN_DISABLE=onednn run "$build/examples/onednn_demo"
if [ $status -eq 0 ] && grep -q '^  oneDNN      is not installed.*libdnnl-dev' out; then
  ok 'without oneDNN the demo explains how to get it'
else
  not_ok 'without oneDNN the demo explains how to get it'
fi
LC_ALL=C run "$build/examples/digits_demo" --runtime direct --data "$digits"
if [ $status -eq 0 ] && ! LC_ALL=C grep -q '[^ -~]' out; then ok 'the demo writes ASCII if the locale requires it'; else not_ok 'the demo writes ASCII if the locale requires it'; fi
run "$build/examples/digits_demo" --runtime nowhere --data "$digits"
if [ $status -eq 1 ] && grep -q 'NOT_FOUND' err; then ok 'the demo reports a missing runtime'; else not_ok 'the demo reports a missing runtime'; fi

(cd "$digits" && "$build/examples/minimal_demo") >out 2>err
status=$?
echo "the first digit is a $(od -An -tu1 -j128 -N1 "$digits/labels.npy" | tr -d ' ')" >wanted
same 'the program of README.md runs' wanted
sed '1d' "$src/examples/minimal/minimal.c" >wanted
awk '/^## / { there = /^## Use it from C/ } /^```c$/ && there { on = 1; next } /^```$/ { on = 0 } on' "$src/README.md" >out
status=0
same 'the program in README.md is examples/minimal/minimal.c' wanted
sed '1d' "$src/examples/saved_model/saved_model.c" >wanted
awk '/^## / { there = /^## Run a SavedModel/ } /^```c$/ && there { on = 1; next } /^```$/ { on = 0 } on' "$src/README.md" >out
status=0
same 'the program in README.md is examples/saved_model/saved_model.c' wanted
# The runtime of docs/plugin-guide.md, built as its readers do.
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$src/docs/plugin-guide.md" >timer.c
mkdir timer
if ${CC:-cc} -shared -fPIC -fvisibility=hidden -DTN_PLUGIN=timer -I"$build/include" -I"$src/include" timer.c -o timer/timer.so >out 2>err; then
  TENON_PLUGIN_PATH=$tmp/timer TENON_LOG=info run "$tenon" run float.pb --runtime acme.timer --feed x=2 --fetch x
  if [ $status -eq 0 ] && grep -qE 'step id [0-9]+: [0-9.]+ us' err; then ok 'the runtime of docs/plugin-guide.md works'; else not_ok 'the runtime of docs/plugin-guide.md works'; fi
else
  status=1
  not_ok 'the runtime of docs/plugin-guide.md compiles'
fi
good=yes
for word in run inspect checkpoint freeze runtimes ops; do grep -q "^\.SS tenon $word" "$src/docs/tenon.1" || good="$word is missing"; done
for command in run inspect checkpoint freeze runtimes ops; do
  for option in $(grep -oE '^  (-[a-z], )?--[a-z]+' help.$command | grep -oE -e '--[a-z]+$' | sort -u); do
    sed 's/\\-/-/g' "$src/docs/tenon.1" | grep -q -e "$option" || good="$option is missing"
  done
done
if [ "$good" = yes ]; then ok 'the manual page names every command and option'; else not_ok 'the manual page names every command and option' "$good"; fi

echo "1..$n"
