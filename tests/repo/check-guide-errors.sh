#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each error text in docs/plugin-guide/errors.md exists in the sources, and each callback has its section in the guide
# (P-100). Prints TAP. "check-guide-errors.sh --list" prints the string literals of the sources.
#
# The guide writes words in capitals where the source has conversions, and "(s)" for an optional ending. Spaces beside
# either are ignored.
cd "${TENON_SRCDIR:-$(dirname "$0")/../..}" || exit 99
guide=docs/plugin-guide/errors.md
awk=${AWK:-awk}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# literals FILE...: the string literals, one a line. Adjacent ones are joined; a macro between or after them becomes "%s",
# or the end of a conversion if it is one of <inttypes.h>.
literals() {
  LC_ALL=C "$awk" '
    function flush() { if (pending) print text; pending = 0; text = "" }
    FNR == 1 { flush(); comment = 0 }
    {
      for (line = $0; line != ""; ) {
        if (comment) {
          if (!(end = index(line, "*/"))) break
          line = substr(line, end + 2)
          comment = 0
        }
        if (!match(line, /"([^"\\]|\\.)*"|\047([^\047\\]|\\.)+\047|\/\*|\/\/|[A-Za-z0-9_]+|[^ \t\\]/)) break
        token = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (token == "/*") comment = 1
        else if (token == "//") break
        else if (token ~ /^"/) { text = text substr(token, 2, length(token) - 2); pending = 1 }
        else if (token !~ /^[A-Za-z0-9_]/) flush()
        else if (pending) text = text (token ~ /^PRI/ ? "d" : "%s")
      }
    }
    END { flush() }' "$@" | sed -e 's/\\n/ /g' -e 's/\\\(.\)/\1/g'
}

# key: each text as it is compared. Texts that consist of conversions only are dropped.
key() {
  sed -e 's/%[-+ #0-9.*]*[hlzjt]*[diouxXcsg]/@/g' -e 's/(s)/@/g' -e 's/[A-Z][A-Z0-9_]*/@/g' -e 's/ *@ */@/g' \
    -e 's/@@*/@/g' | grep '[a-z]'
}

find core conformance -name "*.[ch]" -exec cat {} + >"$tmp/all"
literals "$tmp/all" >"$tmp/found"
if [ "${1:-}" = --list ]; then
  cat "$tmp/found"
  exit 0
fi
key <"$tmp/found" | LC_ALL=C sort -u >"$tmp/sources"
sed -n 's/^| `\([^`]*\)` |.*/\1/p' $guide >"$tmp/rows"

echo 1..3
if [ "$(wc -l <"$tmp/rows")" -ge 50 ]; then echo 'ok 1 - the rows of the guide are found'; else echo 'not ok 1 - the rows of the guide are found'; fi

stale=$(while IFS= read -r row; do
  printf '%s\n' "$row" | key >"$tmp/key"
  grep -qxF -f "$tmp/key" "$tmp/sources" || printf '# %s\n' "$row"
done <"$tmp/rows")
[ -z "$stale" ] && echo "ok 2 - each text of $guide is in the sources" || echo "not ok 2 - each text of $guide is in the sources" # P-100
[ -z "$stale" ] || printf '%s\n' "$stale"

# slots FILE STRUCT...: the callbacks of those structs.
slots() {
  header=$1
  shift
  for struct; do sed -n "/^struct $struct {/,/^};/p" "$header"; done | grep -o '(\*[a-z_]*)(' | tr -d '(*)'
}
lost=$(
  for slot in $(slots include/tenon/runtime.h tn_session_factory tn_plugin); do
    [ "$slot" = register_kernels ] || grep -qxF "## $slot" docs/plugin-guide/callbacks.md || echo "# callbacks.md: $slot"
  done
  for slot in register_kernels $(slots include/tenon/op.h tn_op_def tn_kernel_def); do
    grep -q "^| \(\`[a-z_]*\`, \)*\`$slot\`" docs/plugin-guide/kernels.md || echo "# kernels.md: $slot"
  done
)
[ -z "$lost" ] && echo 'ok 3 - each callback has its section' || echo 'not ok 3 - each callback has its section'
[ -z "$lost" ] || printf '%s\n' "$lost"
