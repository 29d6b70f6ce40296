# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of the command after tool_kit.sh, with $plugins set: test plugins with other
# names and faults.

# change FROM TO FILE...: replaces the longer text FROM by TO and NULs, in copies of binary files.
change() {
  from=$1 to=$2 file=$3
  at=$(LC_ALL=C grep -abo -F -- "$from" "$file" | head -n 1 | cut -d: -f1)
  [ -n "$at" ] || return 1
  { printf '%s' "$to"; head -c $((${#from} - ${#to})) /dev/zero; } | dd of="$file" bs=1 seek="$at" conv=notrunc 2>/dev/null
}
# ender FILE NAME FAULT: a copy of tests/plugins/ender.c
ender() {
  cp "$plugins/ender.so" "$1.new" && change 'ender_____________________' "$2" "$1.new" &&
    change 'none:________________' "$3" "$1.new" && chmod 755 "$1.new" && mv "$1.new" "$1"
}
chameleon() {
  cp "$plugins/chameleon.so" "$1.new" && change 'chameleon_________________' "$2" "$1.new" &&
    change 'none________________' "$3" "$1.new" && chmod 755 "$1.new" && mv "$1.new" "$1"
}
