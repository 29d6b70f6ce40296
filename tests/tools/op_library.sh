#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ops of plugins in the command: found in a folder of plugins, or named by --op-library (P-15,
# P-81). Prints TAP.
. "$(dirname "$0")/tool_kit.sh" op-library
plugins=${TENON_TEST_PLUGINS:-$build/tests/plugins/.libs}
built=$TENON_PLUGIN_PATH
TENON_PLUGIN_PATH_ONLY=1
export TENON_PLUGIN_PATH_ONLY
unset TENON_PLUGIN_DISABLE TENON_PLUGIN_SELECT TENON_PROBE TENON_RANK
mkdir folder elsewhere
cp "$plugins/acme_ops.so" folder/acme_ops.so
cp "$plugins/acme_ops.so" elsewhere/ops.so
cat >scale.pbtxt <<'EOF'
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "half" op: "AcmeScale" input: "x" attr { key: "T" value { type: DT_FLOAT } } attr { key: "factor" value { f: 0.5 } } }
node { name: "y" op: "AcmeRepeat" input: "half" attr { key: "T" value { type: DT_FLOAT } } attr { key: "n" value { i: 3 } } }
EOF

run 1 "$tenon" run scale.pbtxt --feed x='[2, 6]' --fetch y && says "node '(half|y)': op 'Acme(Scale|Repeat)' is not registered$"
is 'without the plugin the op is unknown'
run 0 "$tenon" inspect scale.pbtxt
is 'the model can be inspected'

TENON_PLUGIN_PATH=$tmp/folder:$built
run 0 "$tenon" run scale.pbtxt --feed x='[2, 6]' --fetch y && tr -d ' \n' <out | grep -qF '[[1.3.][1.3.][1.3.]]'
is 'a plugin in a folder is loaded for the op'
run 0 "$tenon" run scale.pbtxt --runtime threaded --feed x='[2, 6]' --fetch y
is 'on another runtime'
run 0 "$tenon" ops AcmeScale && grep -q '^AcmeScale  *CPU  *T: float32 float64' out
is 'ops shows the op of a plugin'
run 0 "$tenon" ops --schema AcmeRepeat && grep -q 'n: int >= 0' out
is 'and its schema'
run 0 "$tenon" ops 'Acme*' && grep -q '^AcmeScale  *CPU' out && grep -q '^AcmeRepeat  *CPU' out && grep -q '^2 ops$' out
is 'a pattern finds the ops of a plugin'
run 0 "$tenon" ops '*Scale' Neg && grep -q '^AcmeScale ' out && grep -q '^Neg ' out && grep -q '^2 ops$' out
is 'together with other ops'
run 1 "$tenon" ops AcmeScaler && says "no known op matches 'AcmeScaler'"
is 'but no other name'
run 0 "$tenon" runtimes list && grep -qE '^acme.example_ops +kernels .* ready ' out
is 'the plugin is listed, and not loaded'
run 0 "$tenon" convert scale.pbtxt -o copy.pb && run 0 "$tenon" run copy.pb --feed x='[2, 6]' --fetch y
is 'the binary form, too'
TENON_PLUGIN_DISABLE='acme.*' run 1 "$tenon" run scale.pbtxt --feed x='[2, 6]' --fetch y &&
  says "is not registered; plugin 'acme.example_ops' \(.*acme_ops.so\) provides it, but: it is disabled: "
is 'the error names a disabled plugin'

TENON_PLUGIN_PATH=$built
run 0 "$tenon" --op-library elsewhere/ops.so run scale.pbtxt --feed x='[2, 6]' --fetch y
is '--op-library'
run 0 "$tenon" --op-library="$tmp/elsewhere/ops.so" ops 'Acme*' && grep -q '^2 ops$' out
is '--op-library=FILE'
run 1 "$tenon" --op-library folder/acme_ops.so --op-library elsewhere/ops.so ops &&
  says "elsewhere/ops.so\): .*op 'AcmeScale' is registered already, by plugin 'acme.example_ops' \(.*folder/acme_ops.so\)"
is 'the error names both plugins of one op'
run 1 "$tenon" --op-library nowhere.so ops && says "'nowhere.so'"
is 'a missing file'
run 1 "$tenon" --op-library "$plugins/minimal.so" ops && says "provides a runtime, wanted ops or kernels: use it with --runtime $plugins/minimal.so" &&
  ! grep -q tn_runtime err
is 'the error for a runtime explains how to use it'
cat >neg.pbtxt <<'EOF'
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
EOF
for command in "run neg.pbtxt --feed x=1 --fetch y" "plan neg.pbtxt --feed x --fetch y" \
  "bench neg.pbtxt --feed x=1 --fetch y --seconds 0.1" "ops Neg" "eager-demo --ops 2 --iterations 2"; do
  # shellcheck disable=SC2086
  case $command in eager-demo*) file=$built/direct.so ;; *) file=$plugins/minimal.so ;; esac
  run 0 "$tenon" $command --runtime "$file"
  is "${command%% *}: a runtime by its path"
done
cp "$built/direct.so" elsewhere/libdirect.so
(cd elsewhere && run 0 "$tenon" runtimes explain libdirect.so && mv out err ..) && grep -q '^chosen: direct$' out
is 'by the name of a file in the current folder'
TENON_PLUGIN_PATH=$tmp/off run 0 "$tenon" run neg.pbtxt --feed x=1 --fetch y --runtime ./elsewhere/libdirect.so && ! TENON_PLUGIN_PATH=$tmp/off run 0 "$tenon" run neg.pbtxt --feed x=1 --fetch y --runtime "./elsewhere/libdirect.so:colour=red" &&
  says "target 'direct:colour=red': .*'colour'"
is 'with a setting'
run 1 "$tenon" run neg.pbtxt --feed x=1 --fetch y --runtime ./none.so && says "runtime './none.so': No such file"
is 'a path without a file'
run 1 "$tenon" run neg.pbtxt --feed x=1 --fetch y --runtime elsewhere/ops.so &&
  says 'provides ops or kernels, wanted a runtime: use it with --op-library elsewhere/ops.so'
is 'the error for an op library explains how to use it'
run 2 "$tenon" --op-library && says "option '--op-library' requires a file"
is 'without a file'
run 2 "$tenon" --op-library elsewhere/ops.so && says 'no command was given'
is 'without a command'
run 2 "$tenon" --op-librarian x ops && says "unknown option '--op-librarian'"
is 'an unknown option'
echo "1..$n"
