#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Folders use each other in one direction only (docs/design.md, "Rooms"): reads the #include lines. Prints TAP.
cd "${TENON_SRCDIR:-$(dirname "$0")/../..}" || exit 99
awk=${AWK:-awk}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# A row for each folder: the folders that its files may include besides their own and <tenon/...>. A name that ends in /...
# means a folder and all below it. @NAME is a list defined by its own row.
cat >"$tmp/table" <<'END'
core/base         | core/base/threads
core/base/threads |
core/tensor      | @base
core/graph       | @base core/tensor
@formats         | @base core/tensor core/graph core/formats
core/formats     | @base core/tensor core/graph
core/formats/pbtxt    | @formats core/formats/graphdef
core/formats/graphdef | @formats
core/formats/npy | @formats
core/formats/npz | @formats core/formats/npy
core/formats/table       | @formats
core/formats/checkpoint  | @formats core/formats/table
core/formats/bundle      | @formats core/formats/table core/formats/checkpoint
core/formats/checkpoint_v1 | @formats core/formats/table core/formats/checkpoint core/formats/graphdef
core/formats/objectgraph | @formats
core/formats/savedmodel  | @formats core/formats/graphdef core/formats/pbtxt
core/resource    | @base core/tensor
core/pool        | @base core/tensor
core/plan        | @planned
core/layout      | @planned core/plan
core/compile/ir      | @planned core/plan
core/compile/import  | @planned core/plan core/compile/ir
core/compile/lower   | @planned core/plan core/compile/ir
core/compile         | @planned core/plan core/layout core/compile/...
core/exec/step   | @planned core/resource core/pool core/plan core/layout
core/exec        | @planned core/resource core/pool core/plan core/layout core/compile core/exec/step
core/kit         | @planned core/resource core/pool core/plan core/layout core/exec core/exec/step
core/registry    | @base core/registry/probe
core/registry/probe | @base core/registry
core/host        | @session core/kit ops core/compile/ir
@in_session      | @session core/kit core/pool core/compile core/host
core/session     | @in_session core/registry/probe core/session/metadata core/session/placement
core/session/metadata  | @in_session core/session
core/session/partial   | @in_session core/session core/session/metadata
core/session/placement | @in_session core/session
core/model       | @in_session core/session
core/model/freeze | @in_session core/session core/model
core/eager       | @session core/compile core/host

@base            | core/base core/base/threads
@planned         | @base core/tensor core/graph
@session         | @planned core/formats core/formats/... core/resource core/plan core/exec core/exec/step core/registry

@below           | @base core/tensor core/graph core/resource
@kernel          | @below ops/kernel ops/kernel/elements ops/kernel/functions
ops/kernel           | @below
ops/kernel/elements  | @below ops/kernel
ops/kernel/functions | @below ops/kernel/elements
ops/kernel/window    | @kernel
ops/kernel/move      | @kernel
ops/kernel/fourier   | @kernel
ops/kernel/product   | @kernel ops/kernel/window ops/kernel/move
ops/kernel/reduce    | @kernel
ops/array            | @kernel ops/kernel/move
ops/array/index      | @kernel ops/kernel/move
ops/audio            | @kernel
ops/checkpoint       | @kernel ops/string ops/state/table core/formats core/formats/checkpoint core/formats/bundle core/formats/checkpoint_v1
ops/cost             | @kernel ops/kernel/window ops/math
ops/example          | @kernel ops/string ops/string/unicode core/formats
ops/image            | @kernel ops/random
ops/image/codec      | @kernel
ops/linalg           | @kernel ops/kernel/fourier ops/kernel/product ops/kernel/window
ops/math             | @kernel ops/kernel/move ops/kernel/product ops/kernel/reduce
ops/nn               | @kernel ops/kernel/window ops/kernel/reduce
ops/nn/attention     | @kernel ops/kernel/product
ops/nn/conv          | @kernel ops/kernel/window ops/kernel/product
ops/nn/ctc           | @kernel
ops/nn/pool          | @kernel ops/kernel/window
ops/quantized        | @kernel ops/kernel/window ops/kernel/product core/formats
ops/ragged           | @kernel ops/kernel/move ops/sparse
ops/random           | @kernel
ops/rewrite          | @kernel ops/kernel/move ops/kernel/product
ops/rnn              | @kernel ops/kernel/window ops/kernel/product
ops/segment          | @kernel
ops/sparse           | @kernel ops/kernel/move ops/segment ops/string/hash
ops/string           | @kernel ops/string/unicode
ops/string/hash      | @kernel
ops/string/regex     | @kernel ops/string/unicode
ops/string/unicode   | @kernel
ops/control          | @kernel ops/kernel/move ops/string
ops/state/list       | @kernel ops/kernel/move
ops/state/queue      | @kernel ops/random
ops/state/table      | @kernel ops/string ops/string/hash
ops/state/variable   | @kernel ops/kernel/move

# Using public headers only: each plugin, the command, the examples, the compatibility layers for other APIs.
plugins/*        |

# The runtime gpu, whose files name their headers from plugins/gpu.
@node                | plugins/gpu/device plugins/gpu/node
@schedule            | @node plugins/gpu/session
@step                | @schedule plugins/gpu/schedule
plugins/gpu/device   |
plugins/gpu/node     | plugins/gpu/device
plugins/gpu/ops/kernel      | @node
plugins/gpu/ops/elementwise | @node plugins/gpu/ops/kernel
plugins/gpu/ops/array       | @node plugins/gpu/ops/kernel plugins/gpu/ops/elementwise
plugins/gpu/ops/image       | @node plugins/gpu/ops/kernel
plugins/gpu/ops/math        | @node plugins/gpu/ops/kernel plugins/gpu/ops/elementwise
plugins/gpu/ops/nn          | @node plugins/gpu/ops/kernel
plugins/gpu/ops/rnn         | @node plugins/gpu/ops/kernel
plugins/gpu/session  | @node
plugins/gpu/schedule | @schedule
plugins/gpu/step     | @step
plugins/gpu          | @step plugins/gpu/step

tools            | tools/picture tools/run
tools/common     | tools
tools/picture    | tools
tools/bench      | tools tools/common tools/picture tools/bench/roofline
tools/bench/roofline | tools tools/common tools/picture tools/bench
tools/checkpoint | tools
tools/eager_demo | tools tools/picture
tools/inspect    | tools
tools/plan       | tools tools/picture
tools/run        | tools tools/common tools/picture
tools/runtimes   | tools
examples         |
compat/*         |
conformance      |
include          |
END

# Each include of a project file other than a public header: FILE:LINE:NAME.
find core ops plugins tools examples compat conformance include \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.cpp' -o \
  -name '*.hpp' \) -print 2>/dev/null | sort >"$tmp/files"
xargs "$awk" '
  /^[ \t]*#[ \t]*include[ \t]*("|<(core|ops|plugins|tools|tests|bench|examples|compat|include|conformance)\/)/ {
    name = $0; sub(/^[^"<]*["<]/, "", name); sub(/[">].*$/, "", name)
    print FILENAME ":" FNR ":" name
  }' <"$tmp/files" >"$tmp/includes"

# FOLDER FOUND: a row applies to its folder; a pattern, the examples and the like apply to all folders below.
"$awk" -F'[ \t]*[|][ \t]*' -v files="$tmp/files" -v includes="$tmp/includes" '
  function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
  function expand(list,   n, i, words, out) {
    n = split(list, words, " ")
    for (i = 1; i <= n; i++) out = out " " (words[i] in lists ? expand(lists[words[i]]) : words[i])
    return out
  }
  function deep(row) { return row ~ /\*$/ || row ~ /^(examples|conformance|include)$/ }
  # The row of a folder: its own, or the deep row above it; "" if there is none.
  function row_of(folder,   up) {
    if (folder in rows) return folder
    for (up = folder; up != ""; up = up ~ /\// ? folder_of(up) : "") {
      if (up in rows && deep(up)) return up
      if (up ~ /\// && (folder_of(up) "/*") in rows) return folder_of(up) "/*"
    }
    return ""
  }
  # The folder up to which a deep row is one room.
  function room_of(folder, row,   parts, base) {
    if (row !~ /\*$/) return deep(row) ? row : folder
    base = row; sub(/\*$/, "", base)
    parts = substr(folder, length(base) + 1); sub(/\/.*/, "", parts)
    return base parts
  }
  function may(path, list,   n, i, words, base) {
    n = split(list, words, " ")
    for (i = 1; i <= n; i++) {
      base = words[i]
      if (sub(/\/\.\.\.$/, "", base)) { if (index(path, base "/") == 1) return 1 }
      else if (folder_of(path) == base) return 1
    }
    return 0
  }
  function exists(path) { return path in known }
  # The file that NAME means in FOLDER: one there, or in a folder above it, or from the top.
  function resolve(folder, name) {
    for (; folder != ""; folder = folder ~ /\// ? folder_of(folder) : "")
      if (exists(folder "/" name)) return folder "/" name
    return name
  }
  /^[ \t]*(#|$)/ { next }
  { sub(/[ \t]+$/, "", $1); if ($1 ~ /^@/) lists[$1] = $2; else { rows[$1] = $2; order[++n] = $1 } }
  END {
    while ((getline file < files) > 0) { known[file] = 1; seen[folder_of(file)] = 1 }
    for (folder in seen) if (row_of(folder) == "") print "table\t" folder " has no row in tests/repo/check-includes.sh"
    while ((getline line < includes) > 0) {
      split(line, part, ":")
      file = part[1]; name = part[3]; folder = folder_of(file); row = row_of(folder); room = room_of(folder, row)
      if (row == "") continue
      if (name ~ /(^|\/)\.\.\//) { print "dots\t" file ":" part[2] ": \"" name "\""; continue }
      path = resolve(folder, name)
      if (path == "config.h") continue
      if (deep(row) ? index(path, room "/") == 1 : folder_of(path) == folder) continue
      if (may(path, expand(rows[row]))) continue
      print row "\t" file ":" part[2] ": \"" name "\" is not allowed in " room "/ (it may use:" expand(rows[row]) " and <tenon/...>)"
    }
    for (i = 1; i <= n; i++) print "row\t" order[i]
  }' "$tmp/table" >"$tmp/found"

n=0
report() { # TITLE KEY
  n=$((n + 1))
  if "$awk" -F'\t' -v key="$2" '$1 == key { print "# " $2; bad = 1 } END { exit !bad }' "$tmp/found" >"$tmp/bad"; then
    echo "not ok $n - $1"
    cat "$tmp/bad"
  else
    echo "ok $n - $1"
  fi
}
for row in $(sed -n 's/^row	//p' "$tmp/found" | sed 's/\*/%/'); do
  report "$(echo "$row" | sed 's/%/*/') includes what its row allows" "$(echo "$row" | sed 's/%/*/')"
done
report 'no include goes through ..' dots
report 'every folder has a row' table
echo "1..$n"
