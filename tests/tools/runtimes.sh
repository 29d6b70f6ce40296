#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon runtimes: list, explain, probe, doctor, conform, cache (P-16, P-66, P-83 to P-88). Prints TAP.
. "$(dirname "$0")/tool_kit.sh" runtimes
plugins=${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}
: "${TENON_PROBE_PROGRAM:=$build/tools/tenon-probe}"
built=$TENON_PLUGIN_PATH
TENON_CACHE_DIR=$tmp/cache TENON_PLUGIN_PATH_ONLY=1 TENON_PROBE_TIMEOUT_MS=60000
export TENON_PROBE_PROGRAM TENON_CACHE_DIR TENON_PLUGIN_PATH_ONLY TENON_PROBE_TIMEOUT_MS
# Sanitizers would turn signals of the probe program into exits.
signals=handle_segv=0:handle_sigbus=0:handle_abort=0
ASAN_OPTIONS=$ASAN_OPTIONS:$signals TSAN_OPTIONS=$TSAN_OPTIONS:$signals UBSAN_OPTIONS=$UBSAN_OPTIONS:$signals
export ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS
unset TENON_PLUGIN_DISABLE TENON_PLUGIN_SELECT TENON_PROBE TENON_RANK

. "$src/tests/tools/tool_plugins.sh"

# ---- list ----

run 0 "$tenon" runtimes && grep -qE '^direct +runtime ' out
is 'without a command it lists'
run 0 "$tenon" runtimes list && grep -qE '^direct +runtime +[^ ]+ +[^ ]+ +500 ' out &&
  grep -qE '^threaded +runtime +[^ ]+ +[^ ]+ +200 ' out
is 'direct has rank 500, threaded 200 (P-58)'
run 0 "$tenon" runtimes list --json && grep -q '"disabled": false' out
is 'list --json'
mkdir off && ender off/a.so t.off none: && echo enabled=no >off/a.conf
TENON_PLUGIN_PATH=$tmp/off run 0 "$tenon" runtimes list && grep -qE '^t.off +runtime .* disabled ' out &&
  grep -qF "  it is disabled: '$tmp/off/a.conf' says enabled=no" out
is 'a disabled plugin is listed as disabled'
mkdir copy1 copy2 && ender copy1/a.so t.copy none: && cp -p copy1/a.so copy2/b.so # P-13
TENON_PLUGIN_PATH=$tmp/copy1:$tmp/copy2 run 0 "$tenon" runtimes list &&
  grep -qE "^t.copy +runtime .* ready +$tmp/copy1/a.so" out && grep -qE "^t.copy +runtime .* shadowed +$tmp/copy2/b.so" out &&
  grep -qF "  another one of this name takes precedence over it: $tmp/copy1/a.so" out
is 'a copy is listed as shadowed, with both paths'
run 2 "$tenon" runtimes lits && says "unknown command 'runtimes lits' \(did you mean 'list'\?\)"
is 'a wrong command has a near one'
run 2 "$tenon" runtimes list x && says "unexpected argument 'x'"
is 'too many arguments'

# ---- explain ----

run 0 "$tenon" runtimes explain && grep -q '^direct .* rank 500: accepted' out && grep -q '^chosen: direct$' out
is 'explain an empty target'
run 0 "$tenon" runtimes explain threaded:threads=2 && grep -q '^chosen: threaded$' out
is 'explain a target'
run 1 "$tenon" runtimes explain direct:colour=red && says 'colour' && grep -q '^none: INVALID_ARGUMENT: ' out
is 'explain a refusal'
run 0 "$tenon" runtimes explain --option runtime_ranks=threaded=900 && grep -q '^chosen: threaded$' out
is 'explain with an option'
run 1 "$tenon" runtimes explain --option nothing=1 && says 'nothing'
is 'explain with an option that there is not'
run 2 "$tenon" runtimes explain --option nothing && says 'expected FIELD=VALUE'
is 'explain with an option without a value'

run 0 "$tenon" runtimes explain threaded --json && grep -q '"chosen": "threaded"' out && grep -q '"lines": \[' out &&
  grep -q '"notes": \[\]' out
is 'explain --json'

# ---- probe ----

run 0 "$tenon" runtimes probe "$built/direct.so" && grep -qE '/direct\.so: OK, [0-9.]+ ms: a session ran a step$' out
is 'probe: well'
mkdir named && cp "$plugins/ender.so" named/my-Plugin.so
run 1 "$tenon" runtimes probe named/my-Plugin.so && grep -q '/my-Plugin.so: error$' out &&
  grep -qF "its name is not a plugin name: expected [a-z][a-z0-9_]*.so (did you mean 'my_plugin.so'?)" out
is 'probe: a name that is never looked at' # P-06
cp "$plugins/kernels_only.so" named/kernels.so && run 0 "$tenon" runtimes probe named/kernels.so &&
  grep -q 'ms: its kernels were registered, and none was run$' out
is 'probe: kernels are not run'
ender named/a.so t.asks session:later && run 1 "$tenon" runtimes probe named/a.so &&
  grep -q '/a.so: error: it loads, but refuses a session in its new_session$' out && grep -q 'no such device here' out
is 'probe: a session is refused'
mkdir bad
ender bad/segv.so t.segv ctor:segv && ender bad/exit.so t.exit init:exit && ender bad/hang.so t.hang init:hang &&
  ender bad/later.so t.later init:later
(cd bad && run 1 "$tenon" runtimes probe segv.so ./exit.so later.so && mv out err ..)
status=$?
[ $status -eq 0 ] && grep -q "/bad/segv.so: signal$" out && grep -q 'signal 11 (SIGSEGV) ended it; the last step reached was opening it' out &&
  grep -q '/bad/./exit.so: exit$' out && grep -q 'with status 0; the last step reached was its init' out &&
  grep -q '/bad/later.so: error$' out && grep -q 'no such device here' out
is 'probe: several files, paths of the current folder, each with its verdict' # P-83, P-84
run 1 "$tenon" runtimes probe --timeout 500 bad/hang.so && grep -q ': timeout$' out && grep -q 'it was not ready after 5[0-9][0-9] ms' out &&
  grep -q 'increase TENON_PROBE_TIMEOUT_MS' out
is 'probe: a time limit' # P-85
run 1 "$tenon" runtimes probe --json bad/segv.so "$built/direct.so" && grep -q '"verdict": "signal"' out && grep -q '"signal": 11' out &&
  grep -q '"verdict": "well"' out && { ! command -v python3 >/dev/null || python3 -m json.tool out >/dev/null; }
is 'probe --json'
run 1 "$tenon" runtimes probe nothing.so && grep -q 'does not exist' out
is 'probe: no such file'
run 2 "$tenon" runtimes probe && says 'no file was given'
is 'probe: no file'
run 2 "$tenon" runtimes probe --timeout soon x.so && says "'soon': expected a number of milliseconds, 1 or more"
is 'probe: a wrong time limit'
TENON_PROBE_PROGRAM=/nowhere/probe run 1 "$tenon" runtimes probe "$built/direct.so" && grep -q "the probe program '/nowhere/probe' cannot run" out &&
  grep -q 'reinstall it' out
is 'probe: without the program' # P-88

# ---- before a load ----

TENON_PLUGIN_PATH=$tmp/bad TENON_PROBE=1 run 0 "$tenon" runtimes list --load && grep -qE '^t.segv +runtime .* unusable ' out &&
  grep -q 'refused by its probe' out && grep -q 'ABORTED: ' out
is 'a load is refused by the probe, and the program goes on' # P-86, P-87

# ---- cache ----

run 0 "$tenon" runtimes cache && [ "$(cat out)" = "$tmp/cache/probes-0" ] && [ -s "$tmp/cache/probes-0" ]
is 'cache: where it is'
run 0 "$tenon" runtimes cache clear && grep -qE '^[1-9][0-9]* probe results deleted$' out && [ ! -e "$tmp/cache/probes-0" ]
is 'cache clear'
run 0 "$tenon" runtimes cache clear && [ "$(cat out)" = '0 probe results deleted' ]
is 'cache clear twice'
run 2 "$tenon" runtimes cache empty && says "unknown command 'runtimes cache empty'"
is 'cache: a wrong command'
(unset TENON_CACHE_DIR HOME; XDG_CACHE_HOME=$tmp/xdg run 0 "$tenon" runtimes cache) && [ "$(cat out)" = "$tmp/xdg/tenon/probes-0" ]
is 'cache: XDG_CACHE_HOME'
(unset TENON_CACHE_DIR XDG_CACHE_HOME HOME; run 0 "$tenon" runtimes cache) && grep -q '^probe results are not cached' out
is 'cache: nowhere'

# ---- doctor ----

run 0 "$tenon" runtimes doctor && grep -qF "  $built" out && grep -q '^  direct (' out && grep -q '^No problems found\.$' out &&
  grep -q '^Working (a session of each ran a step)$' out
is 'doctor: all is well'

# sick NAME PATTERN ADVICE: the plugins of the folder sick/ have this one problem.
sick() {
  name=$1 pattern=$2 advice=$3
  shift 3
  TENON_PLUGIN_PATH=$tmp/sick run 1 env "$@" "$tenon" runtimes doctor && grep -A2 '^PROBLEM ' out | grep -qE "why  .*$pattern" &&
    grep -qE "do    .*$advice" out && grep -qE '^1 problem$' out
  is "doctor: $name" # P-66
  rm -rf sick
  mkdir sick
}
rm -rf sick && mkdir sick
cp "$plugins/no_manifest.so" sick/a.so && sick 'another library' 'no \.tenon\.manifest' 'move it out of the plugin folder'
head -c 5000 "$built/direct.so" >sick/a.so && sick 'a file that was cut' 'cut short' 'copy, install or rebuild it'
echo text >sick/a.so && sick 'a text' 'not a shared object' 'It is not a plugin'
cp "$plugins/minimal.so" sick/a.so && printf '\267' | dd of=sick/a.so bs=1 seek=18 conv=notrunc 2>/dev/null &&
  sick 'another machine' 'made for AArch64' 'different machine type'
cp "$plugins/minimal.so" sick/a.so && change 'abi=0.1' 'abi=9.1' sick/a.so && change 'min_host=0.1' 'min_host=9.1' sick/a.so &&
  sick 'another ABI' 'the library is older' 'Update Tenon'
cp "$plugins/minimal.so" sick/a.so && change 'rank=0' 'rank=x' sick/a.so && sick 'a wrong manifest' "manifest: 'rank' is 'x'" 'correct the arguments of TN_PLUGIN_MANIFEST'
cp "$plugins/minimal.so" sick/a.so && chmod 666 sick/a.so && sick 'rights of everybody' 'mode 0666' 'chmod o-w'
cp "$plugins/undefined.so" sick/a.so && sick 'a missing function' 'tenon_test_missing_function' 'needs a function that none of its libraries provides'
chameleon sick/a.so t.sick none && change 'libc.so.6' 'libq.so.6' sick/a.so &&
  sick 'a missing library' 'libq\.so\.6: cannot open shared object file' 'install the named library'
cp "$plugins/no_entry.so" sick/a.so && sick 'a missing entry' "it has no entry 'no_entry_LTX_tn_plugin_query'" 'TN_PLUGIN_DEFINE'
chameleon sick/a.so t.sick code_name && sick 'a lying manifest' "disagree: 'name' is 't.sick'" 'match the fields of tn_plugin'
chameleon sick/a.so t.sick no_new_session && sick 'a missing callback' "lacks the required callback 'new_session'" 'must set this callback'
chameleon sick/a.so t.sick no_factories && sick 'no factories' 'it provides no session factory' 'list of session factories'
chameleon sick/a.so t.sick other_name && sick 'a factory of another name' "none of its session factories is named 't.sick'" 'the name in the manifest'
chameleon sick/a.so t.sick bad_name && sick 'a bad name' "'No Name' is not a valid runtime name" 'must rename it'
chameleon sick/a.so t.sick two_equal && sick 'a name twice' "runtime 't.sick' exists already" 'one with another name'
chameleon sick/a.so t.sick short_factory && sick 'an old struct' 'struct_size is 32' 'did not set struct_size'
chameleon sick/a.so t.sick init_fails && sick 'an init that fails' 'its tables are damaged' 'copy, install or rebuild'
ender sick/a.so t.sick init:segv && sick 'a crash' 'signal 11 \(SIGSEGV\) ended it; the last step reached was its init' 'Do not use it'
ender sick/a.so t.sick ctor:exit && sick 'an exit' 'with status 0; the last step reached was opening it' 'a plugin must not call exit'
ender sick/a.so t.sick session:segv && sick 'a crash of a session' 'signal 11 \(SIGSEGV\) ended it; the last step reached was its new_session' 'Do not use it'
ender sick/a.so t.sick step:exit && sick 'an exit in a step' 'with status 0; the last step reached was its step' 'a plugin must not call exit'
ender sick/a.so t.sick entry:hang && sick 'a hang' 'it was not ready after' 'would hang your program' TENON_PROBE_TIMEOUT_MS=500
cp "$plugins/minimal.so" sick/a.so && echo enabel=no >sick/a.conf && sick 'a wrong file beside it' "a.conf', line 1: 'enabel'" 'Correct this line'
cp "$plugins/minimal.so" sick/a.so && sick 'no probe program' "'/nowhere/probe' cannot run" 'reinstall it' TENON_PROBE_PROGRAM=/nowhere/probe
sick 'a relative folder' "the element 'here' is refused" 'absolute path' TENON_PLUGIN_PATH=here
sick 'a colon too much' 'has an empty element' 'Remove the extra colon' "TENON_PLUGIN_PATH=$tmp/sick:"
sick 'a wrong rank' "TENON_RANK: the element 'direct' is skipped" 'NAME=RANK' TENON_RANK=direct
ln -s other sick/self && ln -s self sick/other && sick 'links that form a loop' 'symbolic links form a loop' 'Remove the links' "TENON_PLUGIN_PATH=$tmp/sick/self"

TENON_PLUGIN_PATH=$tmp/off:$tmp/none run 0 "$tenon" runtimes doctor && grep -q "^note    runtime 't.off' " out && grep -q "^note    $tmp/none$" out
is 'doctor: deliberate settings are no problem'
chameleon sick/a.so t.sick init_unavailable
TENON_PLUGIN_PATH=$tmp/sick run 0 "$tenon" runtimes doctor && grep -A2 "^note    runtime 't.sick' " out | grep -q 'no such device here' &&
  grep -q 'do .*not on this machine' out && ! grep -q "^  t.sick" out
is 'doctor: a runtime that finds no device is no problem' # P-41
rm -rf sick && mkdir sick
mkdir -p "$tmp/names" && touch "$tmp/names/acme-fast.so" "$tmp/names/Acme.so" "$tmp/names/acme.txt"
TENON_PLUGIN_PATH=$tmp/names run 0 "$tenon" runtimes doctor && grep -A2 "^note    $tmp/names/acme-fast.so" out | grep -q 'do .*acme_fast.so' &&
  grep -q "^note    $tmp/names/Acme.so" out && ! grep -q 'acme.txt' out
is 'doctor: a file that its name hides' # P-06, P-66
cp "$plugins/no_manifest.so" sick/a.so
TENON_PLUGIN_PATH=$tmp/sick:$built run 1 "$tenon" runtimes doctor --json && grep -q '"do": ' out && grep -q '"direct"' out &&
  { ! command -v python3 >/dev/null || python3 -m json.tool out >/dev/null; }
is 'doctor --json'
ender sick/a.so t.sick ctor:segv
TENON_PLUGIN_PATH=$tmp/sick run 0 "$tenon" runtimes doctor --no-probe && grep -q 'according to their manifests' out
is 'doctor --no-probe'

# Every part of a message for which there is advice is in the library, or is a word of the system.
missing=$(sed -n 's/^  { "\([^"]*\)",.*/\1/p' "$src/tools/runtimes/advice.c" | while read -r part; do
  case $part in ".conf', line"* | 'the plugin is older' | 'the library is older' | 'undefined symbol' | 'cannot open shared object file' | UNAVAILABLE | 'more than 40 symbolic links') continue ;; esac
  cat "$src"/core/registry/*.c "$src"/core/registry/probe/*.c "$src/tools/runtimes/doctor.c" | tr -d '\n' | sed 's/"  *"//g' | grep -qF -- "$part" || echo "'$part'"
done)
[ -z "$missing" ] || echo "not in core/registry: $missing" >err
[ -z "$missing" ]
is 'advice is about messages that there are'

# ---- conform ----

run 2 "$tenon" runtimes conform && says 'no file was given'
is 'conform: no file'
mkdir path && printf '#!/bin/sh\necho "conformance of $1"\nexit 7\n' >path/tenon-conformance && chmod 755 path/tenon-conformance
if [ -x "$build/tenon-conformance" ] || [ -x "$build/.libs/tenon-conformance" ]; then
  run 0 "$tenon" runtimes conform --list && [ "$(wc -l <out)" -gt 100 ]
  is 'conform runs tenon-conformance'
else
  PATH=$tmp/path:$PATH run 7 "$tenon" runtimes conform a.so && [ "$(cat out)" = 'conformance of a.so' ]
  is 'conform runs tenon-conformance'
fi

# ---- the manual ----

good=yes
for word in list explain probe doctor conform cache; do grep -q "tenon runtimes $word" "$src/docs/tenon.1" || good="$word is missing"; done
"$tenon" runtimes --help >help
for option in $(grep -oE -e '--[a-z-]+' help | sort -u); do sed 's/\\-/-/g' "$src/docs/tenon.1" | grep -q -e "$option" || good="$option is missing"; done
for name in TENON_PROBE TENON_PROBE_TIMEOUT_MS TENON_PROBE_MEMORY_MB TENON_PROBE_PROGRAM TENON_CACHE_DIR TENON_PLUGIN_DISABLE TENON_PLUGIN_SELECT TENON_DEBUG; do
  grep -q "$name" "$src/docs/tenon.1" || good="$name is missing"
done
echo "$good" >err
[ "$good" = yes ]
is 'the manual page has the commands, options and variables'

echo "1..$n"
