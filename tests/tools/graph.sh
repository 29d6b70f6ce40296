#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon graph: what is drawn, what is folded, and failures of dot or the disk. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" graph
digits=$src/examples/digits/digits.pb

# graph STATUS ARGUMENT...
graph() {
  wanted=$1
  shift
  run "$wanted" "$tenon" graph "$@"
}
# box NAME [TEXT]: the box exists, with the text in its line; arrow FROM TO [TEXT]: the arrow exists.
box() { grep -F "\"$1\" [label=<" out | grep -qF -e "${2-}"; }
arrow() { grep -F "\"$1\" -> \"$2\"" out | grep -qF -e "${3-}"; }
boxes() { grep -c ' \[label=<<' out; }

# node NAME OP [INPUT...]; with T=float an attribute T.
node() {
  printf 'node { name: "%s" op: "%s"' "$1" "$2"
  shift 2
  for i; do printf ' input: "%s"' "$i"; done
  [ -z "$T" ] || printf ' attr { key: "T" value { type: DT_%s } }' "$T"
  printf ' }\n'
}
placeholder() { printf 'node { name: "%s" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } dim { size: 8 } } } } }\n' "$1"; }
T=

# ---- the command line ----

run 0 "$tenon" help graph && grep -q '^Usage: tenon graph MODEL' out
is 'help graph'
cp out help
graph 0 --help && cmp -s out help
is 'graph --help is the same'
graph 2 && says 'no model file'
is 'no model'
graph 2 a.pb b.pb && says "'b.pb' is a second one"
is 'two models'
graph 2 "$digits" -o picture.jpg && says "'picture.jpg'.*\.svg, \.png, \.pdf, \.dot or \.gv" && [ ! -e picture.jpg ]
is 'the error for an unknown suffix lists the suffixes'
graph 2 "$digits" -o picture && says '\.svg'
is 'no suffix'
graph 2 "$digits" -o .svg && says '\.svg'
is 'only a suffix'
graph 2 "$digits" --depth 2 && says 'requires --around'
is '--depth without --around'
graph 2 "$digits" --fold 0 && says "--fold '0': expected a number from 1" && graph 2 "$digits" --fold x && graph 2 "$digits" --fold 2x &&
  graph 2 "$digits" --fold -1 && graph 2 "$digits" --around conv1 --depth 99999999999999999999
is 'invalid numbers'
graph 2 "$digits" --fast && says "unknown option '--fast'"
is 'unknown option'
graph 1 none.pb && says 'none.pb'
is 'a missing model'
good=yes
for option in $(grep -oE -e '--[a-z-]+' help | sort -u); do
  sed 's/\\-/-/g' "$src/docs/tenon.1" | grep -q -e "$option" || good=no
done
grep -q '^\.SS tenon graph' "$src/docs/tenon.1" && [ $good = yes ]
is 'the manual page has every option'

# ---- what is drawn ----

graph 0 "$digits" && cp out digits.dot && [ "$(boxes)" -eq 17 ]
is 'digits: 17 boxes for 35 nodes'
box image '<b>Placeholder</b>' && box image 'color="#2f8f4a"'
is 'a placeholder is marked'
box probabilities '?x10 float32' && box probabilities 'color="#c9741a"'
is 'an output is marked, with its shape'
arrow image conv1 '?x8x8x1 float32'
is 'shape and type are beside the arrow'
box conv1 'weights 3x3x1x32' && ! box conv1/weights && ! box conv1/ReadVariableOp
is 'weights read through an Identity are a line in the box of their user'
box flatten 'shape [-1 256]' && box class 'dimension 1'
is 'small constants are shown as values'
box conv1 'strides = [1, 1, 1, 1]'
is 'attributes are in the tooltip'
graph 0 "$digits" --constants && [ "$(boxes)" -eq 35 ] && box conv1/weights '#f3f4f6' &&
  arrow conv1/weights conv1/ReadVariableOp '3x3x1x32 float32'
is '--constants draws them, in grey'
graph 0 "$digits" && cmp -s out digits.dot && "$tenon" graph "$digits" -o again.dot >said && cmp -s again.dot digits.dot &&
  grep -qF 'again.dot: 17 boxes and 16 arrows for 35 nodes' said && "$tenon" graph "$digits" --output=again.gv >said && cmp -s again.gv digits.dot
is 'the same text every time, and in a file'

{ placeholder x; T=FLOAT; node a/b/y Identity x; node a/b/z Relu a/b/y; node a/w Neg a/b/z ^x; node a/v Neg a/w; node end NoOp ^a/v; node dense/MatMul Relu x
  node dense Neg dense/MatMul; node a/b/twice AddV2 a/b/z a/b/z; T=; } | sed 's/\(NoOp".*\) attr.*/\1 }/' >scopes.pbtxt
graph 0 scopes.pbtxt && grep -qF 'subgraph "cluster a" {' out && grep -qF '    subgraph "cluster a/b" {' out
is 'name scopes are nested frames'
sed -n '/cluster dense"/,/^  }/p' out | grep -qF '"dense" [label' && grep -A1 -F '"cluster a/b"' out | grep -qF 'label=<b>'
is 'a node belongs to the scope of its name if it feeds that scope'
arrow a/v end 'style=dashed' && arrow x a/w 'style=dashed' && ! arrow x a/b/y dashed
is 'control edges are dashed'
[ "$(grep -cF '"a/b/z" -> "a/b/twice"' out)" -eq 1 ] && arrow a/b/z a/b/twice '" ?x8 float32"'
is 'a tensor that is used twice is one arrow'
box a/w '>w</font>'
is 'names are relative to the frame'
graph 0 scopes.pbtxt --names && box a/b/z '>a/b/z</font>'
is '--names shows full names'

long=$(printf '%0200d' 7)
{ placeholder x; T=FLOAT; node "b$long" Relu x; T=; } >long.pbtxt
graph 0 long.pbtxt && grep -qF '…' out && box "b$long" 'b000' && box "b$long" '0007</font>'
is 'a long name is shortened in the middle'
{ printf 'node { name: "s" op: "Const" attr { key: "dtype" value { type: DT_STRING } } attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { } string_val: "<i>\\"&\\\\\\n\\001\\377]>" } } } }\n'
  printf 'node { name: "q" op: "Odd" input: "s" attr { key: "\\"a\\\\" value { s: "<\\"\\\\\\000\\377\\342\\202\\254>" } } }\n'; } >odd.pbtxt
graph 0 odd.pbtxt && box q '&lt;i&gt;&quot;&amp;' && box q '\"a\\ = <\"\\?�€>'
is 'special characters of Graphviz are quoted'
printf '\042\002\010\033' >empty.pb # versions alone
graph 0 empty.pb && grep -q '^digraph "empty.pb" {$' out
is 'a graph without nodes'
{ T=FLOAT; placeholder x; node enter Enter x; node merge Merge enter next; node next NextIteration merge; T=; } |
  sed '/Enter/s/ }$/ attr { key: "frame_name" value { s: "f" } } }/; /Merge/s/ }$/ attr { key: "N" value { i: 2 } } }/' >loop.pbtxt
graph 0 loop.pbtxt && arrow merge next && arrow next merge constraint=false && ! arrow merge next constraint
is 'a loop: the back edge does not reverse the order'
sed -n '4p;3p;2p;1p' loop.pbtxt >reversed.pbtxt && graph 0 reversed.pbtxt && arrow next merge constraint=false && ! arrow merge next constraint
is 'a loop in a file in reverse order'
func='value { func { name: "body" attr { key: "T" value { type: DT_FLOAT } } attr { key: "in" value { func { name: "deep" } } } } }'
{ placeholder x; printf 'node { name: "call" op: "Frob" input: "x" attr { key: "f" %s } attr { key: "all" value { list { func { name: "a<b" } func { name: "c" } } } } }\n' "$func"
  T=FLOAT; node two Relu call:1; T=; } >calls.pbtxt
graph 0 calls.pbtxt && box call '>f: body</font>' && box call '>all: a&lt;b</font>' && box call '>all: c</font>'
is 'functions called by a node are in its box'
box call 'f = body[T = float32, in = deep]' && box call 'all = [a<b, c]'
is 'functions with their attributes are in the tooltip'
arrow call two '" :1"'
is 'outputs of an unknown op after the first have numbers'
printf 'node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } tensor_content: "1234" } } } }\n' >broken.pbtxt
graph 0 broken.pbtxt && box c '>unreadable</font>' && ! grep -qF '></font>' out
is 'a constant that cannot be read'
run 0 "$tenon" inspect broken.pbtxt && grep -qF '1 constant cannot be read' out && grep -qF "node 'c': attribute 'value': tensor_content has 4 bytes" out &&
  run 0 "$tenon" inspect --json broken.pbtxt && grep -qF '"first_not_readable": "c"' out
is 'inspect names a constant that cannot be read'
deep=$(awk 'BEGIN { for (i = 0; i < 3000; i++) printf "d/"; print "x" }')
{ placeholder x; T=FLOAT; node "$deep" Relu x; node "${deep}y" Relu "$deep"; T=; } >deep.pbtxt
graph 0 deep.pbtxt && [ "$(grep -c subgraph out)" -eq 1 ]
is 'scopes 3,000 deep'

# ---- folding ----

# A chain of 40 layers with 10 nodes each, one of which has a nested scope.
{
  placeholder x
  last=x
  T=FLOAT
  step=0
  while [ $step -lt 40 ]; do
    for name in a b c d e f g inner/h inner/i j; do node "net/layer_$step/$name" Relu $last; last=net/layer_$step/$name; done
    step=$((step + 1))
  done
  T=
} >layers.pbtxt
graph 0 layers.pbtxt && [ "$(boxes)" -le 150 ] && [ "$(boxes)" -ge 20 ]
is '401 nodes are folded into at most 150 boxes'
box 'net/layer_7/*' '10 nodes' && box 'net/layer_7/*' '10 Relu' && arrow 'net/layer_7/*' 'net/layer_8/*' '?x8 float32'
is 'a folded scope lists its contents'
head -n 3 out | grep -qF '400 in 40 folded boxes'
is 'the title counts folded nodes'
graph 0 layers.pbtxt --no-fold && [ "$(boxes)" -eq 401 ]
is '--no-fold folds nothing'
graph 0 layers.pbtxt --fold 5 && [ "$(boxes)" -le 5 ]
is '--fold 5'
graph 0 layers.pbtxt --fold 1000 && [ "$(boxes)" -eq 401 ]
is '--fold with enough boxes'
graph 0 layers.pbtxt --around net/layer_9/ && box net/layer_9/inner/h && arrow net/layer_8/j net/layer_9/a && [ "$(boxes)" -eq 12 ] &&
  grep -qF '[label="1 more"' out
is '--around SCOPE opens it, with its neighbours'
# An unrolled loop: names do not help, only the order.
{
  placeholder x
  T=FLOAT
  last=x
  step=0
  while [ $step -lt 90 ]; do
    if [ $step -eq 0 ]; then end=; else end=_$step; fi
    node "cell/MatMul$end" MatMul "$last" "$last"; node "cell/Relu$end" Relu "cell/MatMul$end"; node "cell/Tanh$end" Tanh "cell/Relu$end"
    last=cell/Tanh$end
    step=$((step + 1))
  done
  T=
} >unrolled.pbtxt
graph 0 unrolled.pbtxt --fold 40 && [ "$(boxes)" -le 40 ] && box 'cell/MatMul…Tanh_9/*' '10 × 3 nodes'
is 'repeated parts of a scope are folded as repetitions'

# ---- around ----

graph 0 "$digits" --around conv2 && [ "$(boxes)" -eq 5 ] && box conv2 'penwidth=3' && box conv2/relu && ! box pool1
is '--around NODE: two steps'
graph 0 "$digits" --around conv2:0 --depth 1 && [ "$(boxes)" -eq 3 ] && arrow conv1/relu conv2 && arrow conv2 BiasAdd_1
is '--depth 1'
graph 0 "$digits" --around conv2 --depth 0 && [ "$(boxes)" -eq 1 ]
is '--depth 0'
graph 0 "$digits" --around conv2/weights --depth 1 && box conv2/weights && arrow conv2/weights conv2/ReadVariableOp
is '--around a constant draws it'
graph 1 "$digits" --around conv22 && says "around 'conv22': .*did you mean 'conv2'"
is 'the error for an unknown name has suggestions'
graph 1 "$digits" --around '' && says 'empty'
is 'an empty name'

# ---- files ----

graph 1 "$digits" -o nowhere/a.dot && says "cannot write 'nowhere/a.dot': No such file"
is 'a missing folder'
mkdir folder.dot results
graph 1 "$digits" -o folder.dot && says "cannot write 'folder.dot': it exists and is a directory"
is 'a folder in the place of the file'
printf old >results/keep.dot
chmod 640 results/keep.dot
(ulimit -f 1 && exec "$tenon" graph layers.pbtxt --no-fold -o results/keep.dot) >out 2>err </dev/null
status=$?
[ $status -eq 1 ] && says "cannot write 'results/keep.dot'" && [ "$(cat results/keep.dot)" = old ] && [ "$(ls -A results)" = keep.dot ]
is 'a file that cannot be written completely: the old one is kept, and no other is left'
graph 0 "$digits" -o results/keep.dot && cmp -s results/keep.dot digits.dot && case $(ls -l results/keep.dot) in -rw-r-----*) ;; *) false ;; esac
is 'a replaced file keeps its permissions'
ln -s results/keep.dot link.dot
graph 0 scopes.pbtxt -o link.dot && [ -h link.dot ] && grep -q 'digraph "scopes.pbtxt"' results/keep.dot
is 'a symbolic link is kept'
if [ -w /dev/full ]; then
  "$tenon" graph "$digits" >/dev/full 2>err </dev/null
  [ $? -eq 1 ] && grep -q '^tenon: RESOURCE_EXHAUSTED: standard output: ' err
  is 'a full disk under standard output'
else
  skip 'a full disk under standard output' 'there is no /dev/full'
fi
{ sleep 1; "$tenon" graph "$digits" 2>err; echo $? >code; } </dev/null | :
[ "$(cat code)" -gt 128 ] && [ ! -s err ]
is 'a closed pipe ends it quietly'

# ---- dot, replaced by scripts ----

# A folder with all programs except dot.
mkdir bin fake
(IFS=:; for folder in $PATH; do [ -d "$folder" ] && ln -s "$folder"/* bin/ 2>/dev/null; done)
rm -f bin/dot
PATH=$tmp/bin run 1 "$tenon" graph "$digits" -o none.svg && says "'dot' is not in PATH: install the package graphviz.*-o FILE.dot"
is 'without dot, the message names the package and the formats that work'
[ ! -e none.svg ] && PATH=$tmp/bin run 0 "$tenon" graph "$digits" -o none.dot
is 'DOT text needs no dot'
# play NAME STATUS PATTERN, with the script on standard input.
play() {
  { echo '#!/bin/sh'; cat; } >fake/dot
  chmod 755 fake/dot
  PATH=$tmp/fake:$PATH run "$2" "$tenon" graph "${model:-$digits}" -o "results/$1.svg" && { [ "$2" -eq 0 ] || { says "$3" && [ ! -e "results/$1.svg" ]; }; }
}
play fails 1 'dot ended with status 3: Error: <stdin>: syntax error' <<'END'
cat >/dev/null; echo 'Error: <stdin>: syntax error' >&2; exit 3
END
is 'dot fails'
play killed 1 'dot was ended by signal 9' <<'END'
kill -9 $$
END
is 'dot is killed'
play silent 1 'dot produced no output' <<'END'
cat >/dev/null
END
is 'dot writes nothing'
model=layers.pbtxt
play deaf 1 'dot ended with status 1' <<'END'
exec <&-; exit 1
END
is 'dot does not read'
play loud 0 '' <<'END'
i=0; while [ $i -lt 4000 ]; do echo 'a warning of forty characters, or a few more'; i=$((i + 1)); done >&2; cat; cat /dev/null
END
grep -q '^digraph' results/loud.svg && grep -q '^dot: a warning' err && [ "$(wc -l <err)" -le 4 ]
is 'dot writes much before it reads: neither blocks the other, and the first lines are passed on'
play argument 0 '' <<'END'
cat >/dev/null; echo "$@"
END
[ "$(cat results/argument.svg)" = -Tsvg ]
is 'the arguments of dot'
model=

# ---- the real one ----

if ! command -v dot >/dev/null; then
  skip 'pictures by Graphviz' 'dot is not installed'
else
  graph 0 "$digits" -o d.svg && grep -q '<svg ' d.svg && grep -qF '<title>conv1&#45;&gt;BiasAdd</title>' d.svg && [ ! -s err ]
  is 'SVG'
  graph 0 "$digits" -o d.png && [ "$(head -c 4 d.png | tail -c 3)" = PNG ]
  is 'PNG'
  graph 0 "$digits" -o d.PDF && [ "$(head -c 4 d.PDF)" = %PDF ]
  is 'PDF, with a suffix in upper or lower case'
  graph 0 odd.pbtxt -o odd.svg && [ ! -s err ] && grep -q '&lt;i&gt;&quot;&amp;' odd.svg
  is 'unusual texts are drawn without warnings'
  for model in scopes loop deep long unrolled layers; do graph 0 $model.pbtxt -o $model.svg && [ ! -s err ] || break; done
  is 'every model of this test'
  sum=$(cksum <d.svg)
  graph 0 "$digits" -o d.svg && [ "$(cksum <d.svg)" = "$sum" ]
  is 'the same picture every time'
  if [ -d "$TENON_MODELS" ]; then
    good=yes
    for model in "$TENON_MODELS"/*/model.pb; do graph 0 "$model" -o model.svg && [ ! -s err ] || { good=$model; break; }; done
    [ "$good" = yes ] || echo "# $good"
    [ "$good" = yes ]
    is 'large models'
  else
    skip 'large models' 'TENON_MODELS names no folder'
  fi
fi

# ---- the title ----

graph 0 "$digits" && grep -qE '^  graph \[label=<digits.pb: 35 nodes(&#160;){5,}<br align="left"/>18 constants are shown in the boxes of their users(&#160;){9,}<br align="left"/>' out
is 'each part of the title is a line, with room for a wider font'
grep -qE '^  graph .*<font color="#2f8f4a">.</font> input.*<font color="#c9741a">.</font> output' out && ! grep -qE '^  graph .*state' out
is 'the legend has the colours in use'

# ---- columns ----

{ T=FLOAT; placeholder x; before=x
  for k in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 \
    45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60; do node "n$k" Relu "$before"; before=n$k; done; T=; } >chain.pbtxt
graph 0 chain.pbtxt --no-fold && grep -qF '"*1 out" [label="1", shape=circle' out && grep -qF '"*1 in" [label="1", shape=circle' out &&
  [ "$(grep -cE '"n[0-9]+" -> "\*[0-9]+ out"' out)" = "$(grep -cE '"\*[1-9] in" -> "n[0-9]+"' out)" ]
is 'a long chain continues in other columns, at numbered circles'
{ sed -nE 's/^  "(n[0-9]+)" -> "(\*[0-9]+) out".*/\2 \1/p' out | sort >from; sed -nE 's/^  "(\*[1-9]) in" -> "(n[0-9]+)";.*/\1 \2/p' out | sort >to; }
join from to | awk '{ sub(/n/, "", $2); sub(/n/, "", $3); if ($3 != $2 + 1) bad = 1; n++ } END { exit bad || n < 1 }'
is 'each circle that ends an arrow has one that continues it'
graph 0 chain.pbtxt --no-fold --columns 1 && ! grep -q 'circle' out && arrow n29 n30 && graph 0 chain.pbtxt --no-fold --columns 4 &&
  [ "$(grep -c 'shape=circle' out)" -eq 6 ] && graph 2 chain.pbtxt --columns 0 && says "'0': expected a number from 1"
is '--columns N sets the number'
graph 0 "$digits" && ! grep -q circle out
is 'a short chain is one column'
if command -v dot >/dev/null; then
  graph 0 chain.pbtxt --no-fold -o chain.svg && sed -nE 's/^<svg width="([0-9]+)pt" height="([0-9]+)pt".*/\1 \2/p' chain.svg |
    awk '{ n++; bad = $2 > 6 * $1 } END { exit bad || n == 0 }'
  is 'the picture is not a ribbon'
fi

echo "1..$n"
