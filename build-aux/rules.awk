# SPDX-License-Identifier: Apache-2.0
# Finds the rules that each test cites: awk -f rules.awk FILE.c... prints "FILE TEST RULE..." for each test, and with
# -v table=1 the C table of tenon-conformance. With -v plain=1 it reads other files (fuzz targets, benchmarks, scripts) and
# prints "FILE - RULE..." with all the rules that each cites, in scripts only in comments.
#
# A test's rules are in comments: right above it, on its first line, in its body, and those of the functions of the file
# that it uses. "S-EXE-05, 07 and 09" and "S-NAM-04 to 08" are expanded.

function add(rule) {
  if (index(" " rules " ", " " rule " ") == 0) rules = rules (rules == "" ? "" : " ") rule
}

# Adds the rules that a text cites to `rules`.
function cite(text,    prefix, number, width, n, range) {
  while (match(text, /(^|[^A-Za-z0-9-])(S-[A-Z]+-[0-9]+|P-[0-9]+)/)) {
    prefix = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH)
    sub(/^[^SP]/, "", prefix)
    number = prefix
    sub(/.*-/, "", number)
    width = length(number)
    prefix = substr(prefix, 1, length(prefix) - width)
    add(prefix number)
    while (match(text, "^(,| and| to) +(" prefix ")?[0-9]+([^0-9.]|$)")) {
      range = text ~ /^ to/
      sub("^(,| and| to) +(" prefix ")?", "", text)
      n = text
      sub(/[^0-9].*/, "", n)
      if (range) for (number++; number + 0 < n + 0; number++) add(prefix sprintf("%0" width "d", number))
      number = n
      add(prefix n)
      sub(/^[0-9]+/, "", text)
    }
  }
}

# Adds the rules of the file's functions that a text uses.
function use(text,    word) {
  gsub(/"([^"\\]|\\.)*"/, "", text)
  while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
    word = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH)
    if (word in helpers) cite(helpers[word])
  }
}

function finish() {
  if (name ~ /__/ && is_test) {
    if (table) printf "  { \"%s\", \"%s\", \"%s\" },\n", suite, name, rules
    else print FILENAME (" " name) (rules == "" ? "" : " " rules)
  } else if (rules != "") {
    helpers[name] = rules
  }
  name = rules = ""
}

BEGIN {
  if (table) {
    print "/* SPDX-License-Identifier: Apache-2.0 */"
    print "/* Made by build-aux/rules.awk from the suites; do not edit. */"
    print "#include <conformance/conformance.h>"
    print ""
    print "const cf_citation cf_citations[] = {"
  }
}

function finish_file() {
  if (rules != "") print file " - " rules
  rules = ""
}

plain && FNR == 1 { finish_file(); file = FILENAME }
plain { cite(FILENAME ~ /\.sh$/ ? substr($0, match($0, /#|$/)) : $0); next }

FNR == 1 {
  split("", helpers)
  name = rules = ""
  macro = 0
  suite = FILENAME
  sub(/.*\//, "", suite)
  sub(/\..*/, "", suite)
}

macro || /^#/ { macro = /\\$/; next }

name == "" && /^$/ { rules = ""; next }

# Outside of functions: comments, and the first lines of functions.
name == "" {
  cite($0)
  head = $0
  if (head ~ /^[A-Za-z]/ && match(head, /[A-Za-z_][A-Za-z0-9_]*\(/) && substr(head, 1, RSTART) !~ /[=;]/) {
    name = substr(head, RSTART, RLENGTH - 1)
    is_test = head ~ /^static void [a-z0-9_]+\(void\)/
    sub(/\/\*.*/, "", head)
    if (head ~ /;[ ]*$/ && head !~ /\{/) { name = rules = ""; next }
    if (head ~ /\{.*\}[ ]*$/) { use(substr(head, index(head, "{"))); finish() }
  } else if (head ~ /^[A-Za-z}]/ && head !~ /\*\/$/) {
    rules = ""
  }
  next
}

/^}/ { finish(); next }

{ cite($0); use($0) }

END {
  if (plain) finish_file()
  if (table) {
    print "  { NULL, NULL, NULL },"
    print "};"
  }
}
