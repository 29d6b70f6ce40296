#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rooms use each other one way only (docs/design.md, "Rooms"): greps the #include lines. Prints TAP.
cd "${TENON_SRCDIR:-$(dirname "$0")/..}" || exit 99
n=0

# Rooms that each room may use, besides itself and <tenon/...>.
allowed() {
  case $1 in
  core/base) ;;
  core/tensor) echo core/base ;;
  core/graph) echo core/base core/tensor ;;
  core/formats) echo core/base core/tensor core/graph ;;
  core/resource) echo core/base core/tensor ;;
  ops) echo core/base core/tensor core/graph core/resource ;;
  core/plan) echo core/base core/tensor core/graph ;;
  core/exec) echo core/base core/tensor core/graph core/resource core/plan ;;
  core/registry) echo core/base ;;
  core/host)
    echo core/base core/tensor core/graph core/formats core/resource ops core/plan core/exec core/registry ;;
  core/session | core/eager)
    echo core/base core/tensor core/graph core/formats core/resource core/plan core/exec core/registry core/host ;;
  *) ;;
  esac
}

# includes FOLDER: "file:line:name" of each #include "name" below it, and of each <name> that is a file of ours and not a
# public header.
includes() {
  find "$1" \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.cpp' -o -name '*.hpp' \) -print | sort | while read -r file; do
    awk -v file="$file" '
      /^[ \t]*#[ \t]*include[ \t]*("|<(core|ops|plugins|tools|tests|bench|examples|compat|include)\/)/ {
        name = $0; sub(/^[^"<]*["<]/, "", name); sub(/[">].*$/, "", name)
        print file ":" FNR ":" name
      }' "$file"
  done
}

report() {
  n=$((n + 1))
  if [ -z "$2" ]; then
    echo "ok $n - $1"
  else
    echo "not ok $n - $1"
    printf '%s\n' "$2" | sed 's/^/# /'
  fi
}

# check ROOM ALLOWED: every quoted include of ROOM is of ROOM itself or of ALLOWED. A name is taken from the including
# file's folder first, then from the room's and from the top, as the compiler does.
check() {
  room=$1
  shift
  bad=$(includes "$room" | while IFS=: read -r file line name; do
    if [ -e "$(dirname "$file")/$name" ]; then
      path=$(dirname "$file")/$name
      case $path in */../*) path=$(realpath --relative-to=. "$path" 2>/dev/null || echo "$path") ;; esac
    elif [ -e "$room/$name" ]; then
      path=$room/$name
    else
      path=$name
    fi
    ok=no
    case $path in
    config.h) ok=yes ;;
    esac
    for may in "$room" "$@"; do
      case $path in "$may"/*) ok=yes ;; esac
    done
    [ $ok = yes ] || echo "$file:$line: \"$name\" is not allowed in $room/ (it may use:${*:+ $*} and <tenon/...>)"
  done)
  report "$room includes what its room may use" "$bad"
}

for room in core/base core/tensor core/graph core/formats core/resource ops core/plan core/exec core/registry core/host \
            core/session core/eager; do
  [ -d "$room" ] && check "$room" $(allowed "$room")
done

# Rooms on public headers only: each plugin, the command, the examples, the doors for other APIs. The bench, too, but it
# may look inside.
for room in plugins/* tools examples compat/*; do
  [ -d "$room" ] && check "$room"
done

[ ! -d conformance ] || check conformance tests

bad=$(includes include | sed 's/$/ (public headers include <tenon\/...> and the system only)/')
report 'public headers include public headers only' "$bad"

# A path with .. would go around all of the above.
bad=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]*/)?\.\./' core ops plugins tools include examples \
  --include='*.[ch]' 2>/dev/null)
report 'no include goes through ..' "$bad"

# A room of core that the table above does not know would not be checked.
bad=$(for dir in core/*/; do
  room=${dir%/}
  case $room in
  core/base | core/tensor | core/graph | core/formats | core/resource | core/plan | core/exec | core/registry | core/host | \
    core/session | core/eager) ;;
  *) [ -n "$(find "$room" -name '*.[ch]' 2>/dev/null)" ] && echo "$room is not in the table of tests/check-includes.sh" ;;
  esac
done)
report 'every room of core is in the table' "$bad"
echo "1..$n"
