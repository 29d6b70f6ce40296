#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/plugin-guide/errors.md has every error text of the sources that deal with plugins, and no other; each callback has its
# section in the guide (P-100). Prints TAP.
#
# A text is the format of a call that records an error, or writes a warning to the log. The guide writes words in capitals where the source has conversions, and
# "(s)" for an ending that may be there; spaces beside those do not count. "check-guide-errors.sh --list" shows the texts.
cd "${TENON_SRCDIR:-$(dirname "$0")/../..}" || exit 99
guide=docs/plugin-guide/errors.md
awk=${AWK:-awk}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# texts FILE...: "FILE TAB FORMAT" for each call of those functions: the first literal among the arguments, its pieces joined, or
# two where one of two is taken.
texts() {
  for source; do
    "$awk" -v file="$source" '
      { text = text $0 "\n" }
      function literal(   c) { # the one that begins at i; i is left at its end
        piece = ""
        for (i++; (c = substr(text, i, 1)) != "\""; i++) {
          if (c == "\\") { i++; c = substr(text, i, 1); if (c == "n") c = " " }
          piece = piece c
        }
      }
      function done() { if (inside && said == 1) { if (loud) print file "\t" format; said = 2 } }
      END {
        n = length(text)
        for (i = 1; i <= n; i++) {
          c = substr(text, i, 1)
          if (c == "/" && substr(text, i + 1, 1) == "*") {
            i += 2 + index(substr(text, i + 2), "*/")
          } else if (c == "'\''") {
            for (i++; (c = substr(text, i, 1)) != "'\''"; i++) if (c == "\\") i++
            name = ""
          } else if (c == "\"") {
            literal()
            name = ""
            if (!inside || said == 2) continue
            format = said ? format piece : piece
            said = 1
          } else if (match(c, /[A-Za-z0-9_]/)) {
            match(substr(text, i, 100), /^[A-Za-z0-9_]+/)
            name = substr(text, i, RLENGTH)
            i += RLENGTH - 1
            # A macro between two literals: a conversion of <inttypes.h>, or a text.
            if (inside && said == 1) format = format (name ~ /^PRI/ ? "d" : "%s")
            if (name ~ /^TN_LOG_(WARNING|ERROR)$/) loud = 1
          } else if (c == "(") {
            if (!inside && name ~ calls) { inside = 1; said = 0; base = depth; over = 0; loud = name != "tn_log" }
            depth++
            name = ""
          } else if (c == ")") {
            done()
            depth--
            if (inside && depth == base) inside = 0
            name = ""
          } else if (c !~ /[ \t\n\\]/) {
            done()
            name = ""
            if (c == "," && depth == base + 1 && said) over = 1
            if (c == ":" && depth == base + 1 && said && !over) said = 0 # one of two formats
          }
        }
      }' calls='^(tn_error_set|tn_error_wrap|tn_error_prefix|tn__system_error|NOTE|tn_log|cannot_run|wrong)$' "$source"
  done
}

# plain: texts as they are compared; those of which nothing is left but conversions are dropped.
plain() {
  sed -e 's/%[-+ #0-9.*]*[hlzjt]*[diouxXcsg]/@/g' -e 's/(s)/@/g' -e 's/[A-Z][A-Z0-9_]*/@/g' -e 's/ *@ */@/g' -e 's/@@*/@/g' |
    grep '[a-z]'
}

# All of what has to do with plugins, and of the sessions what speaks of their runtime.
{
  texts core/registry/*.c core/graph/registry.c core/graph/schema_ask.c core/plan/plan.c core/plan/prepare.c core/exec/kit*.c \
    core/exec/call.c core/exec/kernel.c core/exec/resources.c core/exec/wait.c
  texts core/host/*.c | grep -vE 'option (kernel_plugins|max_layouts) is|a live session has'
  texts core/eager/*.c | grep -E "returned OK|gave output|no extension|reset of runtime"
  texts core/session/*.c | grep -E "runtime '|forked|no device of type|a session has at most|device '|device %zu has"
} >"$tmp/found"
if [ "${1:-}" = --list ]; then
  cat "$tmp/found"
  exit 0
fi
echo 1..4
if [ "$(wc -l <"$tmp/found")" -gt 150 ]; then echo 'ok 1 - the texts of the sources are found'; else echo 'not ok 1 - the texts of the sources are found'; fi

cut -f 2- "$tmp/found" | while IFS= read -r text; do
  key=$(printf '%s\n' "$text" | plain) && printf '%s\t%s\n' "$key" "$text"
done | LC_ALL=C sort -u >"$tmp/sources"
sed -n 's/^| `\([^`]*\)` |.*/\1/p' $guide | while IFS= read -r text; do
  key=$(printf '%s\n' "$text" | plain) && printf '%s\t%s\n' "$key" "$text"
done | LC_ALL=C sort -u >"$tmp/guide"
cut -f 1 "$tmp/sources" | LC_ALL=C sort -u >"$tmp/sources.keys"
cut -f 1 "$tmp/guide" | LC_ALL=C sort -u >"$tmp/guide.keys"

# report NUMBER NAME KEYS TEXTS: which texts belong to the keys that only one side has.
report() {
  if [ -s "$3" ]; then
    echo "not ok $1 - $2"
    LC_ALL=C join -t "$(printf '\t')" "$3" "$4" | cut -f 2- | sed 's/^/# /'
  else
    echo "ok $1 - $2"
  fi
}
LC_ALL=C comm -23 "$tmp/sources.keys" "$tmp/guide.keys" >"$tmp/missing"
LC_ALL=C comm -13 "$tmp/sources.keys" "$tmp/guide.keys" >"$tmp/stale"
report 2 "each error text about plugins stands in $guide" "$tmp/missing" "$tmp/sources" # P-100
report 3 "no text of $guide is gone from the sources" "$tmp/stale" "$tmp/guide"

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
[ -z "$lost" ] && echo 'ok 4 - each callback has its section' || echo 'not ok 4 - each callback has its section'
[ -z "$lost" ] || echo "$lost"
