# SPDX-License-Identifier: Apache-2.0
# abi-compare.awk RECORDED TREE: compares a recorded ABI with the tree's and prints a line for each difference: "broken: ..."
# if it breaks plugins or programs built earlier, "new: ..." for additions. tests/repo/check-abi.sh explains the lines of a
# table. If the data models differ, only order and types are compared.

function rest(from,    s, i) {
  for (i = from; i <= NF; i++) s = s (s == "" ? "" : " ") $i
  return s
}

# Whether a struct may grow at its end: one with a size field, or one that only the host creates and passes by pointer.
function may_grow(struct) { return growing[struct] || struct == "tn_view" }

function broken(why) { print "broken: " why }

# Compares an item that has one line in each table: KIND NAME TEXT.
function compare(kind, name, old, now) {
  if (now == "") broken(kind " " name " is gone")
  else if (old != now) broken(kind " " name " was '" old "', is '" now "'")
}

# The recorded fields must come first, in the same order and at the same offsets.
function compare_struct(struct,    i, old, now) {
  if (!((struct) in size_now)) {
    broken("struct " struct " is gone")
    return
  }
  for (i = 1; i <= n_old[struct]; i++) {
    old = fields_old[struct, i]
    now = fields_now[struct, i]
    if (old != now) {
      broken("struct " struct ": field " i " was '" old "', is " (now == "" ? "gone" : "'" now "'"))
      return
    }
  }
  if (!may_grow(struct) && (n_old[struct] != n_now[struct] || (numbers && size_old[struct] != size_now[struct])))
    broken("struct " struct " says no size, so it must not grow: it had " n_old[struct] " fields and " size_old[struct] \
           " bytes, has " n_now[struct] " and " size_now[struct])
  else
    for (; i <= n_now[struct]; i++) print "new: struct " struct ": field '" fields_now[struct, i] "'"
}

function field_text() {
  return numbers ? $3 " at " $4 ", " $5 " bytes: " rest(6) : $3 ": " rest(6)
}

BEGIN {
  numbers = 1
  while ((getline line <ARGV[1]) > 0) if (line ~ /^model /) model_old = line
  while ((getline line <ARGV[2]) > 0) if (line ~ /^model /) model_now = line
  numbers = model_old == model_now
}

/^#/ || NF == 0 || $1 == "model" { next }
FNR == NR && $1 == "abi" { major_old = $2; next }
$1 == "abi" { major_now = $2; next }
FNR == NR && $1 == "struct" { order[++n_items] = $1 " " $2; size_old[$2] = $3; next }
FNR == NR && $1 == "field" {
  if (n_old[$2] == 0) growing[$2] = $3 == "struct_size"
  fields_old[$2, ++n_old[$2]] = field_text()
  next
}
FNR == NR { order[++n_items] = $1 " " $2; old[$1 " " $2] = rest(3); next }
$1 == "struct" { size_now[$2] = $3; if (!(($2) in size_old)) print "new: struct " $2; next }
$1 == "field" { fields_now[$2, ++n_now[$2]] = field_text(); next }
{ now[$1 " " $2] = rest(3); if (!(($1 " " $2) in old)) print "new: " $1 " " $2 " '" rest(3) "'" }

END {
  if (n_items == 0) broken("nothing was recorded")
  if (major_old != major_now) {
    print "new: ABI major " major_now ", recorded is " major_old ": everything may have changed"
    exit
  }
  for (i = 1; i <= n_items; i++) {
    split(order[i], item, " ")
    if (item[1] == "struct") compare_struct(item[2])
    else compare(item[1], item[2], old[order[i]], now[order[i]])
  }
}
