#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gen-table.sh ops|formats|gpu|tools FILE...: write to standard output the C table that a list of source files stands for.
# Each file defines one const object (for gpu: one array) named after it, so a new file needs a line in its list and no other change.
set -eu
kind=$1 address='&' suffix='' array=''
shift
case $kind in
ops) header='<tenon/op.h>' type='tn_op_family' prefix=tn__ops_ table=tn__op_families count=tn__n_op_families ;;
formats) header='<core/formats/format.h>' type='tn__format' prefix=tn__format_ table=tn__formats count=tn__n_formats ;;
gpu) header='"node/table.h"' type='gpu_op' prefix=gpu_ suffix=_ops address='' array='[]' table=gpu_op_tables count=gpu_n_op_tables ;;
tools) header='<tools/tool.h>' type='tool_command' prefix=tool_cmd_ table=tool_commands count=n_tool_commands ;;
*) echo "gen-table.sh: unknown kind '$kind'" >&2; exit 2 ;;
esac

names=
for file; do
  name=${file##*/}
  names="$names ${name%.c}"
done

echo "/* SPDX-License-Identifier: Apache-2.0 */"
echo "/* Made by build-aux/gen-table.sh from the list of $kind; do not edit. */"
echo "#include <stddef.h>"
echo
echo "#include $header"
echo
for name in $names; do echo "extern const $type $prefix$name$suffix$array;"; done
echo "extern const $type *const $table[];"
echo "extern const size_t $count;"
echo
echo "const $type *const $table[] = {"
for name in $names; do echo "  $address$prefix$name$suffix,"; done
echo "  NULL,"
echo "};"
echo "const size_t $count = sizeof($table) / sizeof($table[0]) - 1;"
