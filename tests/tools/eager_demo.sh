#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon eager-demo: the memory use of each strategy, the text and picture of it, errors of wrong
# calls; and the example of eager sessions in README.md. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" eager-demo

# demo STATUS ARGUMENT...
demo() {
  wanted=$1
  shift
  run "$wanted" "$tenon" eager-demo "$@"
}
# has PATTERN: a line of standard output matches. told PATTERN: a line of standard error. quiet:
# nothing was printed.
has() { grep -qE -e "$1" out; }
told() { grep -qE -e "$1" err; }
quiet() { [ ! -s out ]; }
# holds FILTER: the JSON on standard output passes the filter.
holds() { [ "$(jq -c "$1" out 2>&1)" = true ]; }
# is_svg FILE: the file is a picture in well-formed XML.
if command -v xmllint >/dev/null; then
  is_svg() { [ "$(xmllint --nonet --xpath 'local-name(/*)' "$1" 2>&1 | head -n 1)" = svg ]; }
else
  is_svg() { grep -q '<svg ' "$1" && [ "$(tail -n 1 "$1")" = '</svg>' ]; }
fi
sanitized=no
grep -qE '__(asan|tsan|ubsan)_' "$build/.libs/tenon" "$tenon" 2>/dev/null && sanitized=yes

# ---- memory ----

if command -v jq >/dev/null; then
  jq=true
  demo 0 --ops 100 --iterations 60 --bytes 1000 --json && [ ! -s err ] && holds '[.runs[].strategy] ==
    ["IN_BACKGROUND","ON_SAFE_POINTS","ON_SESSION_CLOSE"] and .ops == 100 and .iterations == 60 and .bytes == 1000
    and .interrupted == false and .notes == [] and .plain == [] and (.runtime | length) > 0'
  is '--json: all strategies'
  # S-EAG-02, S-EAG-16
  holds '[.runs[] | .iterations == 60 and .allocated == 6000 and .deleted == 6000] | all'
  is 'each strategy has deleted everything when its session is closed'
  holds '[.runs[0, 1] | .peak_bytes >= 100000 and .peak_bytes <= 300000] | all'
  is 'the deleting strategies hold at most three iterations'
  # S-EAG-15
  holds '.runs[2] | .peak_bytes == 6000000 and .peak_iterations == 60 and .deleted_before_close == 0'
  is 'ON_SESSION_CLOSE holds n times m, and deletes nothing before'
  # S-EAG-07, S-EAG-14
  holds '.runs[1].deleted_before_close == 6000 and .runs[1].pauses > 0 and .runs[1].longest_pause_ns > 0
    and .runs[1].pause_ns >= .runs[1].longest_pause_ns and .runs[0].pauses == 0 and .runs[2].pauses == 0'
  is 'only safe points delete everything, and only they pause'
  holds '[.runs[] | .loop_ns > 0 and .close_ns > 0 and .deletions_per_second > 0] | all'
  is 'times and rates'
  holds '[.runs[] | .peak_bytes as $peak | ([.memory[][2]] | max) as $most | $most <= $peak and $most >= $peak * 0.9
    and .memory[-1][1] == 0 and ([.memory[] | .[1] <= .[2]] | all)] | all'
  is 'memory over time ends at zero and contains the peak'
  holds '.runs[2].memory | [.[][2]] | .[:-2] | . == sort'
  is 'ON_SESSION_CLOSE only grows before it is closed'
  demo 0 --ops 3 --iterations 2 --bytes 5 --strategy on_session_close --plain --json &&
    holds '(.runs | length) == 1 and .runs[0].peak_bytes == 30 and .plain[0].at_end and .plain[0].tensors == 6'
  is '--strategy in lower case, an odd size, --plain'
  demo 0 --ops 10 --iterations 20 --strategy ON_SAFE_POINTS --strategy IN_BACKGROUND --plain --json &&
    holds '[.runs[].strategy] == ["ON_SAFE_POINTS","IN_BACKGROUND"] and (.plain | length) == 1 and .plain[0].at_end == false
      and .plain[0].tensors == 200 and .plain[0].deletions_per_second > 0'
  is 'strategies in the order of the command line'
  demo 0 --ops 1 --iterations 1 --bytes 1 --json && holds '[.runs[] | .peak_bytes == 1 and .deleted == 1] | all'
  is 'a single byte'
  demo 0 --ops 50 --iterations 300 --strategy IN_BACKGROUND --runtime threaded:threads=2 --json &&
    holds '.runtime == "threaded" and .runs[0].deleted == 15000 and .runs[0].peak_iterations <= 3'
  is '--runtime with settings'
  demo 0 --ops 10 --iterations 5 --bytes 10001 --svg m.svg --json && holds '.runs[0].iterations == 5' && is_svg m.svg
  is '--json and --svg'
else
  jq=false
  skip '--json' 'jq is not there'
fi

# ---- text ----

demo 0 --ops 100 --iterations 20 && has '^100 additions in each of 20 iterations, of 4\.1 kB each; runtime direct ' &&
  has '^IN_BACKGROUND: at most ' && has '^ON_SESSION_CLOSE: at most 8\.2 MB, 20\.00 times the bytes of an iteration$' && has '^   8\.2 MB \|.*#'
is 'a plot of each strategy'
has '^STRATEGY +ALLOCATED +DELETED +BEFORE CLOSE +PEAK +IN ITERATIONS$' &&
  has '^ON_SESSION_CLOSE +2000 +2000 +0 +8\.2 MB +20\.00$' && has '^ON_SAFE_POINTS +2000 +2000 +2000 +409\.6 kB +1\.00$' &&
  has '^STRATEGY +LOOP +ADDITION +PAUSES +LONGEST +CLOSE +DELETED/S$' && has '^IN_BACKGROUND( +[0-9.]+ [num]?s){2} +0 +- +[0-9.]+ [num]?s +[0-9.]+( [kM])?$'
is 'tables of memory and times'
[ "$(tr -d '\n -~' <out | wc -c)" = 0 ] && [ "$(awk 'length($0) > 80' out | wc -l)" = 0 ] && ! grep -q ' $' out
is 'to a file in ASCII, 80 columns wide, no blanks at ends of lines'
demo 0 --ops 10 --iterations 5 --no-plot && ! has '\|' && has '^STRATEGY'
is '--no-plot'
demo 0 --ops 10 --iterations 5 --plain --no-plot && has '^without, each iteration( +-){5} +[0-9.]+' && has '^without, at the end( +-){5} +[0-9.]+'
is '--plain: rows of tensors without a session'
if script -qec true /dev/null >/dev/null 2>&1 </dev/null && locale -a 2>/dev/null | grep -qix 'c.utf-\?8'; then
  # on_terminal COLUMNS ENVIRONMENT... -- ARGUMENT...: writes the contents of the terminal to out.
  on_terminal() {
    columns=$1
    shift
    set_here=
    while [ "$1" != -- ]; do
      set_here="$set_here $1"
      shift
    done
    shift
    # shellcheck disable=SC2086
    env TERM=xterm LC_ALL=C.UTF-8 $set_here SHELL=/bin/sh $limit script -qec "stty cols $columns; '$tenon' eager-demo $*" /dev/null \
      >out 2>err </dev/null
  }
  escape=$(printf '\033')
  on_terminal 100 NO_COLOR= -- --ops 100 --iterations 20 && has "$(printf '\342\226\210')" && has "${escape}\[34m" && has "^ +0 \+-{88}.?$"
  is 'on a terminal: its full width, blocks of Unicode, in colour'
  on_terminal 50 NO_COLOR=1 -- --ops 100 --iterations 20 && has "$(printf '\342\226\210')" && ! has "$escape" && has "^ +0 \+-{38}.?$"
  is 'on a narrow one, with NO_COLOR'
  on_terminal 80 LC_ALL=C -- --ops 100 --iterations 20 && ! has "$(printf '\342\226\210')" && has '###'
  is 'ASCII if the locale is not UTF-8'
  on_terminal 80 LC_ALL=C -- --ops 1000 --iterations 3000 --strategy IN_BACKGROUND && has 'IN_BACKGROUND \[#*\.*\] [0-9]+/3000'
  is 'a progress line if it takes long'
else
  skip 'on a terminal' 'script does not work here, or there is no C.UTF-8'
fi

# ---- the picture ----

demo 0 --ops 100 --iterations 40 --svg memory.svg && has '^STRATEGY' && is_svg memory.svg && [ "$(grep -c '<path fill="#' memory.svg)" = 5 ] &&
  [ "$(grep -c '>enlarged<' memory.svg)" = 2 ] && ! grep -qE 'nan|inf[^o]' memory.svg
is '--svg: three curves, and two of them enlarged'
for name in IN_BACKGROUND ON_SAFE_POINTS ON_SESSION_CLOSE; do grep -q ">$name<tspan" memory.svg || false; done && grep -qE '>[0-9.]+ [kM]B<' memory.svg &&
  grep -q '>1 iteration<' memory.svg
is '--svg: names at curves, units at axes'
demo 0 --ops 10 --iterations 2 --strategy ON_SAFE_POINTS --svg one.svg && is_svg one.svg && ! grep -q enlarged one.svg &&
  demo 0 --ops 1 --iterations 1 --bytes 1 --svg least.svg && is_svg least.svg
is '--svg: of one strategy, of one addition'
demo 0 --ops 10 --iterations 5 --svg /dev/stdout && is_svg out && ! has STRATEGY
is '--svg /dev/stdout writes only the picture'
"$tenon" eager-demo --ops 10 --iterations 5 --svg /dev/stdout 2>err | cat >piped && is_svg piped
is '... to a pipe, too'
echo kept >there.svg
demo 1 --ops 10 --iterations 5 --svg nowhere/x.svg && says "cannot write 'nowhere/x.svg'" && quiet &&
  demo 1 --ops 10 --iterations 5 --svg "$tmp" && says 'it exists and is a directory' && quiet
is 'an unusable path is an error before the loop runs'
demo 0 --ops 10 --iterations 5 --svg there.svg && is_svg there.svg && demo 2 --svg '' && says "--svg '': expected a file name"
is 'an existing file is replaced'
if [ -w /dev/full ]; then
  demo 1 --ops 10 --iterations 5 --svg /dev/full && told "^tenon: RESOURCE_EXHAUSTED: cannot write '/dev/full': " && has '^STRATEGY'
  is 'a full disk: the picture'
  "$tenon" eager-demo --ops 10 --iterations 5 >/dev/full 2>err
  [ $? -eq 1 ] && says 'standard output: '
  is 'a full disk: the text'
else
  skip 'a full disk' 'there is no /dev/full'
fi
if ! env --default-signal=PIPE true 2>/dev/null; then
  skip 'a closed pipe' 'env cannot set signals here'
else
  { env --default-signal=PIPE "$tenon" eager-demo --ops 10 --iterations 5 2>err; echo $? >code; } | exec true
  [ "$(cat code)" = 141 ] && [ ! -s err ]
  is 'a closed pipe ends it like any program'
fi

# ---- errors ----

good=true
for option in ops:10000000 iterations:1000000000 bytes:1073741824; do
  for value in 0 -1 +1 1.5 1e3 4k many '' ' 1' 9999999999 99999999999999999999; do
    demo 2 "--${option%:*}" "$value" && quiet && grep -qF -e "--${option%:*} '$value': expected a number from 1 to ${option#*:}" err || good=false
  done
done
$good
is '--ops, --iterations and --bytes take a number from 1 on'
demo 2 --strategy ON_SAVE_POINTS && says "--strategy 'ON_SAVE_POINTS': expected .*ON_SESSION_CLOSE \(did you mean 'ON_SAFE_POINTS'\?\)" &&
  demo 2 --strategy '' && demo 2 --strategy IN_BACKGROUND --strategy in_background && says "'IN_BACKGROUND' was given twice"
is '--strategy takes one of three, each once'
demo 2 --nothing && says "unknown option '--nothing'" && demo 2 --ops && says "option '--ops' requires a value" && demo 2 model.pb &&
  says "unexpected argument 'model.pb'" && demo 2 --option level && says "--option 'level': expected FIELD=VALUE"
is 'unknown options, or options without a value'
demo 2 --json --svg /dev/stdout && says 'both be written to standard output'
is '--json and the picture on standard output exclude each other'
demo 1 --runtime nowhere && told '^tenon: NOT_FOUND: IN_BACKGROUND: .*nowhere.*direct' && quiet && demo 1 --option levl=1 && says levl && quiet
is 'an unknown runtime or option'
demo 1 --ops 10000000 --bytes 1073741824 && says 'IN_BACKGROUND: 10000000 operations of 1073741824 bytes need about .*reduce --ops or --bytes' && quiet
is 'an iteration beyond the memory'
demo 1 --iterations 1000000000 --strategy ON_SESSION_CLOSE && quiet &&
  says 'ON_SESSION_CLOSE: --iterations 1000000000 hold about .* until the session is closed, .*: --iterations [0-9]+ would fit$'
is 'a named strategy that needs too much memory is an error that suggests another'
demo 1 --ops 10 --iterations 10 --bytes 100000 --option memory_limit_bytes=250000 --strategy ON_SESSION_CLOSE
if told '^tenon: RESOURCE_EXHAUSTED: ON_SESSION_CLOSE: iteration 1: operation [0-9]+: ' && quiet; then true; else false; fi
is 'the error for a failed addition names strategy, iteration and number'
if [ $sanitized = yes ] || ! (ulimit -v 1000000) 2>/dev/null; then
  skip 'fewer iterations if memory is short' 'sanitizers need more addresses'
else
  # shellcheck disable=SC2016
  run 0 sh -c 'ulimit -v 1000000; exec "$@"' sh "$tenon" eager-demo --ops 50 --iterations 2000 --bytes 16384 --no-plot &&
    told '^ON_SESSION_CLOSE runs [0-9]+ iterations, not 2000: it would hold about 1\.7 GB, but [0-9.]+ [MG]B are free' && has '^STRATEGY +ITERATIONS ' &&
    has '^IN_BACKGROUND +2000 +100000 +100000' && has '^ON_SESSION_CLOSE +[0-9]{2,3} ' && ! says .
  is 'fewer iterations if memory is short, with a note'
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
  run "$wanted" sh -c 'echo $$ >pid; exec "$@"' sh "$tenon" eager-demo "$@"
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
  interrupted INT 130 1 --iterations 1000000000 --strategy ON_SAFE_POINTS --svg not.svg && has '^ON_SAFE_POINTS +[0-9]+ ' && [ ! -e not.svg ] &&
    told '^tenon: CANCELLED: interrupted after [0-9]+ of 1000000000 iterations with ON_SAFE_POINTS$'
  is 'Ctrl-C shows the results so far, and writes no file: status 130'
fi
interrupted TERM 143 1 --iterations 1000000000 --strategy IN_BACKGROUND --json && { ! $jq || holds '.interrupted == true and .runs[0].iterations > 0
  and .runs[0].peak_iterations <= 3'; }
is 'SIGTERM works, too; --json reports the interruption'

# ---- documentation ----

run 0 "$tenon" eager-demo --help && cp out help && has '^Usage: tenon eager-demo' &&
  for option in $(grep -oE '^  --[a-z-]+' help); do sed 's/\\-/-/g' "$src/docs/tenon.1" | grep -q -e "$option" || exit 1; done &&
  grep -q '^\.SS tenon eager-demo' "$src/docs/tenon.1" && [ "$(awk 'length($0) > 110' help | wc -l)" = 0 ]
is '--help, and the manual page has its options'
{
  printf '#include <stdio.h>\n#include <tenon/tenon.h>\nint main(void)\n{\n  tn_error err = TN_ERROR_INIT;\n'
  awk '/^## / { there = /^## Operations at once/ } /^```c$/ && there { on = 1; next } /^```$/ { on = 0 } on' "$src/README.md"
  printf 'tn_eager_session_destroy(session);\nint code = (int)tn_error_code(&err);\ntn_error_clear(&err);\nreturn code;\n}\n'
} >readme.c
lib=$build/.libs
if [ ! -e "$lib/libtenon.so" ] || [ $sanitized = yes ]; then
  skip 'the example of README.md' 'no shared library, or one with sanitizers'
else
  ${CC:-cc} -std=c99 -Wall -Wextra -Werror -pedantic-errors -I"$build/include" -I"$src/include" readme.c -o readme -L"$lib" -ltenon >out 2>err &&
    run 0 env LD_LIBRARY_PATH="$lib" ./readme && [ "$(cat out)" = '4 6' ]
  is 'the example of README.md'
fi

echo "1..$n"
