#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The plugin half of tenon-conformance: plugins with one fault each (tests/plugins/faults.c,
# kernel_faults.c, throws.cc, and files modified here) fail, and a failed test names the rule that
# they break; without a fault they pass (P-97). Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" conformance-faults
conformance=$build/tenon-conformance
plugins=${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}
TMPDIR=$tmp
export TMPDIR
# Deliberate leaks are not for sanitizers to report, and the kit reports signals itself.
ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:handle_segv=0:handle_abort=0:allocator_may_return_null=1"
export ASAN_OPTIONS
if [ ! -e "$plugins/faults.so" ] || [ ! -e "$plugins/kernel_faults.so" ]; then
  echo '1..0 # SKIP the test plugins were not built'
  exit 0
fi

# breaks RULE FILTER FILE [ARGUMENT...]: a failed test names the rule, and the run ends normally.
breaks() {
  rule=$1 filter=$2 file=$3
  shift 3
  run 1 "$conformance" "$file" --filter "$filter" --timeout 20 "$@" && grep -q "^not ok .*[( ]$rule[ )]" out && grep -q '^1\.\.' out
}

passes() {
  run 0 "$conformance" "$1" --filter 'plugin_*' --filter runtime_works && ! grep -q '^not ok' out
}

# ---- without a fault ----

TENON_TEST_FAULT=none
export TENON_TEST_FAULT
passes "$plugins/faults.so" && [ "$(grep -c '^ok .*(P-' out)" -gt 40 ]
is 'a runtime without a fault passes'
passes "$plugins/kernel_faults.so" && grep -q '^ok .*plugin_kernels__run_on_several_threads (P-69)$' out
is 'a kernel plugin without a fault passes'
passes direct && grep -q '^ok .*plugin_file__exports_one_symbol (P-93)$' out
is 'direct passes, found by its name'
for name in minimal executor offload scheduler unloads own_heap; do
  passes "$plugins/$name.so"
  is "$name passes"
done
# A runtime that is unusable for lack of a device is not a failure.
TENON_TEST_FAULT=init_unavailable run 77 "$conformance" "$plugins/faults.so" && grep -q '^1\.\.0 # SKIP UNAVAILABLE: no such device here$' out
is 'init says UNAVAILABLE: the run is skipped'
TENON_TEST_FAULT=no_reset run 0 "$conformance" "$plugins/faults.so" --filter plugin_reset && grep -q '# SKIP UNIMPLEMENTED' out
is 'a missing reset is skipped'
TENON_TEST_FAULT=shutdown_refuses run 0 "$conformance" "$plugins/faults.so" --filter 'plugin_life__shutdown*' && grep -q '^# note: its shutdown refuses: ' out
is 'a shutdown that refuses, with a reason, is allowed'
TENON_TEST_FAULT=copy_right run 0 "$conformance" "$plugins/faults.so" --filter 'plugin_eager' --filter 'eager_*' && grep -q '^ok .*plugin_eager__copies[a-z_]* (' out
is 'a runtime whose operations run on another device than a CPU passes'

# ---- faults of its code ----

# A fault, the rule that it breaks, the tests to run besides the gates, the seconds for each test.
while read -r fault rule filter seconds; do
  case $fault in '' | '#'*) continue ;; esac
  TENON_TEST_FAULT=$fault
  breaks "$rule" "$filter" "$plugins/faults.so" --timeout "${seconds:-20}"
  is "$fault breaks $rule"
done <<'EOF'
# loading, the entry
open_crash          P-83  plugin_load
open_abort          P-87  plugin_load
open_exit           P-84  plugin_load
open__exit          P-84  plugin_load
open_hang           P-85  plugin_load 1
entry_crash         P-83  plugin_load
entry_abort         P-94  plugin_load
entry_exit          P-83  plugin_load
entry_hang          P-87  plugin_load 1
entry_silent        P-61  plugin_load
entry_refuses       P-23  plugin_load
# its description of itself
short_plugin        P-26  plugin_load
huge_plugin         P-24  plugin_load
short_factory       P-26  plugin_load
code_newer          P-28  plugin_load
code_older          P-30  plugin_load
code_minor          P-19  plugin_load
code_name           P-19  plugin_load
code_no_name        P-19  plugin_load
code_types          P-19  plugin_load
code_kind           P-19  plugin_load
no_factories        P-37  plugin_load
many_factories      P-37  plugin_load
null_factory        P-37  plugin_load
no_name             P-37  plugin_load
no_new_session      P-37  plugin_load
no_accepts_options  P-37  plugin_load
no_destroy_session  P-37  plugin_load
two_equal           P-48  plugin_load
bad_factory_name    P-52  plugin_load
# init
init_crash          P-83  plugin_load
init_abort          P-94  plugin_load
init_exit           P-87  plugin_load
init_hang           P-83  plugin_load 1
init_fails          P-40  plugin_load
init_silent         P-61  plugin_load
init_nonsense       P-61  plugin_load
# new_session
new_session_crash   P-83  plugin_load
new_session_abort   P-94  plugin_load
new_session_exit    P-87  plugin_load
new_session_hang    P-83  plugin_load 1
null_session        P-37  plugin_load
not_ready           P-39  plugin_load
refusal_silent      P-61  plugin_options
refusal_nonsense    P-61  plugin_options
refusal_leaks       P-49  plugin_memory
oom_silent          P-61  plugin_memory
oom_leaks           P-49  plugin_memory
oom_crash           P-46  plugin_memory
# accepts_options and related callbacks
accepts_crash       P-39  plugin_load
accepts_hang        P-39  plugin_load 1
accepts_slow        P-39  plugin_options__accepting_is_quick
accepts_leaks       P-39  plugin_options__accepting_leaves_nothing
accepts_leaks_host  P-39  plugin_options__accepting_leaves_nothing
accepts_opens       P-39  plugin_options__accepting_leaves_nothing
accepts_threads     P-39  plugin_options__accepting_leaves_nothing
accepts_state       P-39  plugin_options__accepting_keeps_no_state
accepts_all         P-55  plugin_options__accepted_ones_are_taken
accepts_none        P-55  plugin_options__accepted_ones_are_taken
explain_silent      P-44  plugin_options
rank_raises         P-58  plugin_options
rank_below          P-58  plugin_options
health_silent       P-61  plugin_options
stale_target        P-47  plugin_options
stale_step          P-47  plugin_options
stale_names         P-47  plugin_options
# sessions
destroy_crash       P-83  plugin_load
destroy_exit        P-87  plugin_load
session_leaks       P-46  plugin_memory
session_leaks_own   P-46  plugin_memory
session_leaks_file  P-46  plugin_memory
session_threads     P-46  plugin_memory
session_outlives    P-45  plugin_memory
frees_twice         P-46  plugin_memory
wrong_heap          P-46  plugin_memory
one_at_a_time       P-69  plugin_memory
# lifetime
thread_left         P-71  plugin_life
key_abort           P-73  plugin_life
shutdown_silent     P-75  plugin_memory
shutdown_half       P-75  plugin_life
shutdown_crash      P-75  plugin_life
shutdown_exit       P-71  plugin_life
shutdown_hang       P-75  plugin_life__shutdown_succeeds_or_gives_a_reason 1
exit_abort          P-76  plugin_life
buffer_unheld       P-45  plugin_life
# steps
step_crash          S-RUN-01  plugin_steps
step_exit           S-RUN-01  plugin_steps
step_scribbles      S-RUN-28  plugin_steps
step_loses          S-RUN-01  plugin_steps
step_other_type     S-RUN-01  plugin_steps
step_silent         P-61      plugin_steps
step_hides          S-RUN-08  plugin_steps
step_one_at_a_time  P-69      plugin_steps
# single operations
extension_short        P-26      plugin_eager__sets*
extension_huge         P-26      plugin_eager__sets*
extension_any_name     P-34      plugin_eager__returns_null*
extension_prefix       P-34      plugin_eager__returns_null*
extension_any_version  P-34      plugin_eager__returns_null*
extension_crash        P-34      plugin_eager__returns_null*
extension_new          P-47      plugin_eager__returns_the_same*
copy_nothing           S-EAG-26  plugin_eager__copies*
copy_wrong             S-EAG-26  plugin_eager__copies*
copy_silent            P-61      plugin_eager__copies*
copy_alone             S-EAG-26  plugin_eager__copies*
eager_crash            S-EAG-01  plugin_eager
eager_empty            S-EAG-01  plugin_eager
eager_loses            S-EAG-01  plugin_eager
eager_other_type       S-EAG-01  plugin_eager
eager_scribbles        S-RUN-28  plugin_eager
eager_silent           P-61      plugin_eager__errors*
eager_hides            S-RUN-08  plugin_eager__errors*
eager_one_at_a_time    P-69      plugin_eager__operations*
eager_deaf             S-EAG-18  plugin_eager__close* 1
eager_deaf             P-43      plugin_eager__reset* 1
# resets
reset_crash         P-42  plugin_reset
reset_hang          P-43  plugin_reset__does_not_wait_for_steps 1
reset_waits         P-43  plugin_reset__does_not_wait_for_steps
reset_nothing       P-43  plugin_reset
reset_fails         P-42  plugin_reset
reset_unknown_fatal P-42  plugin_reset__unknown_names_are_no_error
reset_clears        P-42  plugin_reset__detaches_no_other
reset_forgets       P-42  plugin_reset__detaches_all_that_are_named
reset_default_too   P-42  plugin_reset__detaches_no_other
reset_empty_is_all  P-42  plugin_reset__without_names_detaches_the_default
reset_knows_no_flags P-42 plugin_reset__detaches_all_with_the_flag
EOF

# Reports.
TENON_TEST_FAULT=init_crash
breaks P-87 plugin_load "$plugins/faults.so" && grep -q '^# its process was ended by signal 11 (.*) in the test; the last step was its init$' out
is 'a crash is reported with its signal and the last step'
TENON_TEST_FAULT=init_exit
breaks P-87 plugin_load "$plugins/faults.so" && grep -q '^# its process ended with status 0 in the test; the last step was its init$' out
is 'exit(0) in init does not pass for success'
TENON_TEST_FAULT=init_hang
breaks P-87 plugin_load "$plugins/faults.so" --timeout 1 && grep -q '^# it did not end in 1 s, in the test; the last step was its init$' out &&
  [ "$(grep -c '^not ok' out)" -eq 1 ]
is 'a hang is reported with the last step, and ends the run'

# ---- side effects ----

# CALLBACK__EFFECT, the test that detects it, its report: the call, and the change (P-101).
while read -r fault test words; do
  case $fault in '' | '#'*) continue ;; esac
  TENON_TEST_FAULT=$fault
  breaks P-101 "plugin_effects__$test" "$plugins/faults.so" && grep -qE "^# .*$words" out
  is "$fault breaks P-101"
done <<'EOF'
# every effect, in init
init__handler        of_being_loaded  its init changed what happens on signal 15 \(Terminated\)$
init__ignores        of_being_loaded  its init changed what happens on signal 10 \(User defined signal 1\)$
init__blocks         of_being_loaded  its init left signal 2 \(Interrupt\) blocked on its caller's thread$
init__locale         of_being_loaded  its init changed the locale of the process from 'C' to '.*C.UTF-8
init__folder         of_being_loaded  its init changed the working directory from '/.*' to '/'$
init__umask          of_being_loaded  its init changed the umask from [0-7]* to 000$
init__adds           of_being_loaded  its init added the environment variable ACME_WAS_HERE$
init__removes        of_being_loaded  its init removed the environment variable TENON_TEST_FAULT$
init__limit          of_being_loaded  its init changed the resource limit RLIMIT_
init__timer          of_being_loaded  its init changed the timer ITIMER_REAL$
init__nice           of_being_loaded  its init changed the priority from
init__child          of_being_loaded  its init left a child process$
init__rounds         of_being_loaded  its init changed how its caller's thread rounds
init__prints         of_being_loaded  its init wrote to standard output: "Acme 1.0 greets you"$
init__complains      of_being_loaded  its init wrote to standard error: "Acme 1.0 has no licence"$
init__closes         of_being_loaded  its init closed or replaced standard input$
# every callback
open__prints         of_being_loaded              opening it \(its constructors\) wrote to standard output
open__handler        of_being_loaded              opening it \(its constructors\) changed what happens on signal 15
entry__handler       of_being_loaded              its entry changed what happens on signal 15
accepts__handler     of_opening_a_session         its accepts_options changed what happens on signal 15
explain__locale      of_opening_a_session         its explain_options changed the locale
rank__umask          of_opening_a_session         its rank_for_options changed the umask
health__adds         of_opening_a_session         its health added the environment variable
new_session__handler of_opening_a_session         its new_session changed what happens on signal 15
devices__prints      of_opening_a_session         its list_devices wrote to standard output
destroy__blocks      of_opening_a_session         its destroy_session left signal 2
shutdown__handler    of_its_end                   its shutdown changed what happens on signal 15
prepare__handler     of_steps                     its prepare changed what happens on signal 15
step__handler        of_steps                     its step changed what happens on signal 15
step__blocks         of_steps                     its step left signal 2
step__rounds         of_steps                     its step changed how its caller's thread rounds
step__folder         of_steps                     its step changed the working directory
step__prints         of_steps                     its step wrote to standard output
release__umask       of_steps                     its release changed the umask
cancel__handler      of_a_step_that_is_cancelled  its cancel changed what happens on signal 15
reset__locale        of_a_reset                   its reset changed the locale
execute__handler     of_single_operations         its execute changed what happens on signal 15
step_open_thread     its_threads*                 a thread that it made does not block signal 1
EOF
# Not supported by every system.
while read -r fault words; do
  TENON_TEST_FAULT=$fault
  case $fault in
  init__denormals) [ "$(uname -m)" = x86_64 ] || { skip "$fault" 'another processor'; continue; } ;;
  init__pins) [ "$(nproc 2>/dev/null || echo 1)" -gt 1 ] || { skip "$fault" 'there is one CPU'; continue; } ;;
  esac
  breaks P-101 plugin_effects__of_being_loaded "$plugins/faults.so" && grep -q "its init $words" out
  is "$fault breaks P-101"
done <<'EOF'
init__denormals changed whether its caller's thread takes denormal numbers for 0
init__pins changed the CPUs that its caller's thread may run on
init__stack changed the stack for signals of its caller's thread
EOF

# ---- faults of the file ----

TENON_TEST_FAULT=none
abi=$("$conformance" --version | sed -n 's/^plugin ABI //p')

# changed FROM TO: a copy with a text of the manifest overwritten by one of equal length.
changed() {
  LC_ALL=C sed "s/$1/$2/" "$plugins/faults.so" >faults.so
  [ "$(wc -c <faults.so)" -eq "$(wc -c <"$plugins/faults.so")" ] && ! cmp -s faults.so "$plugins/faults.so"
}
while read -r from to rule what; do
  changed "$from" "$to" && breaks "$rule" plugin_file ./faults.so
  is "$what breaks $rule"
done <<EOF
format=1 format=2 P-15 a_manifest_of_another_form
kind=runtime kind=kernels P-19 a_manifest_that_says_kernels
kind=runtime kind=routine P-15 a_manifest_of_no_kind
name=test.faults name=Test.faults P-52 a_name_with_a_capital
name=test.faults name=test.fuulta P-19 another_name_than_that_of_the_code
types=CPU types=GPU P-19 other_types_than_those_of_the_code
types=CPU tipes=CPU P-15 a_manifest_without_types
rank=0 rank=x P-18 a_rank_that_is_no_number
spare=__ types=__ P-18 a_key_that_stands_there_twice
spare=__ Spare=__ P-18 a_key_with_a_capital
abi=$(echo "$abi" | sed 's/\./\\./') abi=9.${abi#*.} P-28 a_major_that_is_too_new
min_host=$(echo "$abi" | sed 's/\./\\./') min_host=${abi%.*}.9 P-28 a_min_host_that_is_too_high
min_host=$(echo "$abi" | sed 's/\./\\./') min_host=8.${abi#*.} P-28 a_min_host_of_another_major
entry=faults_LTX entry=faults_LTY P-23 an_entry_that_is_none
entry=faults_LTX entry=fouled_LTX P-23 an_entry_that_it_does_not_have
EOF

head -c 3000 "$plugins/faults.so" >faults.so
breaks P-17 plugin_file ./faults.so
is 'a truncated file breaks P-17'
echo 'no plugin' >faults.so
breaks P-17 plugin_file ./faults.so
is 'a text file breaks P-17'
cp "$plugins/faults.so" faults.so
chmod o+w faults.so
breaks P-78 plugin_file ./faults.so
is 'a world-writable file breaks P-78'
cp "$plugins/faults.so" Faults-1.so
breaks P-06 plugin_file ./Faults-1.so
is 'a file name that is never searched breaks P-06'
for line in 'no_manifest P-20' 'no_entry P-23' 'two_symbols P-93' 'aborts P-83' 'undefined P-35'; do
  breaks "${line#* }" 'plugin_file*' "$plugins/${line% *}.so"
  is "$line"
done
breaks P-35 plugin_load "$plugins/undefined.so" && grep -q 'undefined symbol' out
is 'an undefined symbol is named'

# ---- kernels ----

while read -r fault rule filter seconds; do
  case $fault in '' | '#'*) continue ;; esac
  TENON_TEST_FAULT=$fault
  breaks "$rule" "plugin_kernels$filter" "$plugins/kernel_faults.so" --timeout "${seconds:-20}"
  is "$fault breaks $rule"
done <<'EOF'
no_register_kernels   P-37
register_crash        P-83      __are_registered
register_exit         P-87      __are_registered
register_hang         P-83      __are_registered 1
register_silent       P-61      __are_registered
register_fails        P-37      __are_registered
register_nothing      P-15      __are_those_of_its_manifest
other_op              P-15      __are_those_of_its_manifest
other_type            P-19      __are_those_of_its_manifest
other_device          P-19      __are_those_of_its_manifest
flags                 P-26      __are_well_described
kernel_crash          S-RUN-01  __give_the_results_of_the_librarys_own
kernel_wrong          S-RUN-01  __give_the_results_of_the_librarys_own
kernel_scribbles      S-RUN-28  __give_the_results_of_the_librarys_own
kernel_needs_elements P-58      __take_values_without_elements
kernel_not_reentrant  P-69      __run_on_several_threads
kernel_leaks          P-46      __leave_nothing
kernel__handler       P-101     __change_nothing_else
kernel__denormals     P-101     __change_nothing_else
kernel__prints        P-101     __change_nothing_else
create__locale        P-101     __change_nothing_else
register__umask       P-101     __change_nothing_else_when_loaded
EOF
for fault in kernel_crash prepare_crash; do
  TENON_TEST_FAULT=$fault
  breaks S-RUN-01 plugin_kernels__give_the_results_of_the_librarys_own "$plugins/kernel_faults.so" &&
    grep -Eq "^# its process (was ended by signal 11 \(.*\)|ended with status [0-9]+) in the test; the last step was its kernel 'neg_of_faults' of Neg \(float32\), inputs \[3, 8\]$" out # a sanitizer exits
  is "$fault: the kernel, its op, type and shapes are named"
done
TENON_TEST_FAULT=kernel_exits
breaks S-RUN-01 plugin_kernels__give_the_results_of_the_librarys_own "$plugins/kernel_faults.so" &&
  grep -q "^# its process ended with status 0 in the test; the last step was its kernel 'neg_of_faults' of Neg (float32), inputs \[3, 8\]$" out
is 'kernel_exits: the kernel is named'
TENON_TEST_FAULT=kernel__handler
breaks P-101 plugin_kernels__change_nothing_else "$plugins/kernel_faults.so" &&
  grep -q "its kernel 'neg_of_faults' of Neg (float32), inputs \[3, 8\] changed what happens on signal 15" out
is 'a kernel that changes the process is named'

# A plugin with ops of its own, whose faults are selected by its manifest.
if [ -e "$plugins/acme_ops.so" ]; then
  TENON_TEST_FAULT=none
  passes "$plugins/acme_ops.so" && grep -q 'its kernels computed [1-9]' out
  is 'a plugin with ops of its own passes'
  LC_ALL=C sed 's/fault=none__/fault=misses/' "$plugins/acme_ops.so" >acme_ops.so
  breaks P-19 plugin_kernels__ops_are_those_of_its_manifest ./acme_ops.so
  is 'an op that is not registered breaks P-19'
  LC_ALL=C sed 's/fault=none__/fault=schema/' "$plugins/acme_ops.so" >acme_ops.so
  breaks P-37 plugin_kernels__are_registered ./acme_ops.so
  is 'a malformed schema breaks P-37'
else
  skip 'a plugin with ops of its own' 'not built'
fi

# ---- exceptions ----

# The library's compiler without its sanitizers: a host with sanitizers can run a plugin without.
if ${CXX:-c++} -std=c++11 -shared -fPIC -fvisibility=hidden -DTN_PLUGIN=throws -I"$build/include" -I"$src/include" \
  "$src/tests/plugins/throws.cc" -o throws.so 2>err; then
  TENON_TEST_FAULT=none
  passes ./throws.so
  is 'a runtime in C++ passes'
  for where in entry init new_session accepts_options destroy_session; do
    TENON_TEST_FAULT=throw_$where
    breaks P-94 'plugin_load*' ./throws.so && grep -q "signal 6 .*its $where .*P-94" out
    is "an exception that leaves $where breaks P-94"
  done
else
  skip 'exceptions' 'no C++ compiler'
fi
[ -z "$(ls -d "$tmp"/tenon-* 2>/dev/null)" ]
is 'the temporary folder is empty'
echo "1..$n"
