# SPDX-License-Identifier: Apache-2.0
# Writes a C file with the declarations of an ABI table, for tools that read debug information: `-v what=all` with types and
# structs, `-v what=functions` with the functions alone, for a file that includes the headers.

function rest(from,    s, i) {
  for (i = from; i <= NF; i++) s = s (s == "" ? "" : " ") $i
  return s
}

# A declaration of `name` with a type in the form of the table.
function declare(type, name,    at) {
  if ((at = index(type, "(*)")) > 0) return substr(type, 1, at + 1) name substr(type, at + 2)
  if (type ~ /}$/) return type " " name
  if ((at = index(type, " [")) > 0) return substr(type, 1, at) name substr(type, at + 1)
  return type " " name
}

function end_struct() {
  if (struct != "") print "};"
  if (struct != "") structs[++n_structs] = struct
  struct = ""
}

BEGIN { if (what == "all") print "#include <stddef.h>\n#include <stdint.h>" }

# Struct names first: functions and fields have pointers to them.
what == "all" && FNR == NR && $1 == "type" && $3 == "struct" { print "typedef struct " $4 " " $2 ";" }
FNR == NR { next }
what == "all" && $1 == "type" && $3 != "struct" { end_struct(); print "typedef " declare(rest(3), $2) ";" }
what == "all" && $1 == "struct" { end_struct(); struct = $2; print "struct " $2 " {" }
what == "all" && $1 == "field" { print "  " declare(rest(6), $3) ";" }
$1 == "enum" { end_struct(); enums[++n_enums] = $2; numbers[n_enums] = what == "all" ? $3 : $2 }
what != "all" && $1 == "struct" { structs[++n_structs] = $2 }
$1 == "function" {
  end_struct()
  at = index($0, " (")
  head = substr($0, 1, at - 1)
  sub(/^function [a-z0-9_]+ /, "", head)
  functions[++n_functions] = head " " $2 substr($0, at + 1) " { __builtin_trap(); }"
}

# Each struct and enumerator gets a function that uses it, as the library's functions need not mention it. Each enumerator
# has an enum of its own: a tool may not report two enumerators of one enum that exchange their numbers.
END {
  end_struct()
  for (i = 1; i <= n_enums; i++)
    print "enum of_" enums[i] " { abi_" enums[i] " = " numbers[i] " }; void have_" enums[i] "(enum of_" enums[i] " e) {}"
  for (i = 1; i <= n_structs; i++) print "void have_" structs[i] "(struct " structs[i] " *s) {}"
  for (i = 1; i <= n_functions; i++) print functions[i]
}
