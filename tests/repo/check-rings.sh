#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Source files call each other in one direction only: no file needs, directly or through others, a
# file that needs it back, except for the rings listed in tests/repo/rings.txt. Reads the symbols
# of the objects of this build: a file needs another one if it has an undefined function that the
# other one defines. Prints TAP. "check-rings.sh --list" lists the existing rings.
src=${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${TENON_BUILDDIR:-$src/build}
awk=${AWK:-awk}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
command -v "${NM:-nm}" >/dev/null || { echo '1..0 # SKIP nm is not installed'; exit 0; }

# Objects of existing sources only, as a build folder may have older ones. Tables of families and
# embedded texts name everything.
(cd "$build" && find core ops plugins -name '*.o' 2>/dev/null | sort) | while read -r object; do
  source=$(printf '%s\n' "$object" | sed 's#/\.libs/#/#; s#/\([a-z0-9_]*_\)*la-\([^/]*\)\.o$#/\2.c#; s#\.o$#.c#')
  if [ -e "$src/$source" ]; then printf '%s\t%s\n' "$source" "$object"; fi
done | $awk -F'\t' '!seen[$1]++' >"$tmp/objects"
[ -s "$tmp/objects" ] || { echo '1..0 # SKIP this build has no objects'; exit 0; }

cut -f2 "$tmp/objects" | (cd "$build" && xargs "${NM:-nm}" -A) 2>/dev/null >"$tmp/symbols"

# Strongly connected components by Tarjan, without recursion. One line per ring, with sorted files.
$awk -v objects="$tmp/objects" '
  function push(v) { index_of[v] = low[v] = ++clock; stack[++depth] = v; on[v] = 1; work[++top] = v; next_edge[v] = 1 }
  function component(v,   n, i, w, line) {
    n = 0
    do { w = stack[depth--]; delete on[w]; names[++n] = w } while (w != v)
    if (n < 2) return
    for (i = 2; i <= n; i++) { # few: sort by insertion
      w = names[i]
      for (j = i - 1; j >= 1 && names[j] > w; j--) names[j + 1] = names[j]
      names[j + 1] = w
    }
    line = names[1]
    for (i = 2; i <= n; i++) line = line " " names[i]
    print line
  }
  BEGIN { while ((getline line < objects) > 0) { split(line, part, "\t"); source_of[part[2]] = part[1]; files[++n_files] = part[1] } }
  {
    colon = index($0, ".o:")
    object = substr($0, 1, colon + 1)
    n = split(substr($0, colon + 3), word, " ")
    source = source_of[object]
    if (n == 2 && word[1] == "U") wanted[source] = wanted[source] " " word[2]
    else if (n == 3 && word[2] ~ /^[TW]$/ && !(word[3] in home)) home[word[3]] = source
  }
  END {
    for (f = 1; f <= n_files; f++) {
      split("", to)
      n = split(wanted[files[f]], word, " ")
      for (i = 1; i <= n; i++)
        if (word[i] in home && home[word[i]] != files[f] && !(home[word[i]] in to)) {
          to[home[word[i]]] = 1
          edge[files[f], ++n_edges[files[f]]] = home[word[i]]
        }
    }
    for (f = 1; f <= n_files; f++) {
      if (files[f] in index_of) continue
      push(files[f])
      while (top > 0) {
        v = work[top]
        if (next_edge[v] <= n_edges[v]) {
          w = edge[v, next_edge[v]++]
          if (!(w in index_of)) push(w)
          else if (w in on && index_of[w] < low[v]) low[v] = index_of[w]
        } else {
          top--
          if (top > 0 && low[v] < low[work[top]]) low[work[top]] = low[v]
          if (low[v] == index_of[v]) component(v)
        }
      }
    }
  }' "$tmp/symbols" | sort >"$tmp/found"
if [ "${1:-}" = --list ]; then cat "$tmp/found"; exit 0; fi

# A ring is allowed if one line of the list contains all its files.
grep -v '^#' "$src/tests/repo/rings.txt" >"$tmp/allowed"
$awk -v found="$tmp/found" '
  { lines[++n] = " " $0 " " }
  END {
    while ((getline ring < found) > 0) {
      count = split(ring, file, " "); ok = 0
      for (k = 1; k <= n && !ok; k++) {
        ok = 1
        for (i = 1; i <= count; i++) if (!index(lines[k], " " file[i] " ")) { ok = 0; break }
      }
      if (!ok) print "# a ring of " count " files: " ring
    }
  }' "$tmp/allowed" >"$tmp/new"
while read -r line; do
  for file in $line; do [ -e "$src/$file" ] || echo "# tests/repo/rings.txt names $file, which does not exist"; done
done <"$tmp/allowed" >"$tmp/gone"
n=0
report() {
  n=$((n + 1))
  if [ -s "$2" ]; then echo "not ok $n - $1"; cat "$2"; else echo "ok $n - $1"; fi
}
report 'files form no rings except the listed ones' "$tmp/new"
report 'the list of rings names existing files' "$tmp/gone"
echo "1..$n"
