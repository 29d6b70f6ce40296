# SPDX-License-Identifier: Apache-2.0
# Reads the public headers as preprocessed by `cc -E` (without attributes) and writes a C program that prints the table of
# the ABI: each type, enumerator, struct with the offsets of its fields, and function. tests/repo/check-abi.sh explains the
# lines. Unknown syntax is an error, so that nothing is left out silently.

function fail(why,    i, text) {
  for (i = 1; i <= n && i < 30; i++) text = text " " tokens[i]
  print "abi-scan.awk: " why ":" text >"/dev/stderr"
  failed = 1
  exit 1
}

function is_word(t) { return t ~ /^[A-Za-z_]/ }

# The C text of tokens from..to.
function text_of(from, to,    i, s, before, t) {
  s = before = ""
  for (i = from; i <= to; i++) {
    t = tokens[i]
    if (before != "" && before != "(" && before != "[" && before != "*" && t !~ /^[,;)\]\[]$/ && !(t == "(" && before == ")"))
      s = s " "
    s = s t
    before = t
  }
  return s
}

# The token that closes the bracket at `from`.
function closing(from,    i, depth) {
  for (i = from; i <= n; i++) {
    if (tokens[i] ~ /^[({\[]$/) depth++
    if (tokens[i] ~ /^[)}\]]$/ && --depth == 0) return i
  }
  fail("a bracket is not closed")
}

# The types of the parameters in from..to, without their names.
function parameters(from, to,    i, start, s, depth) {
  start = from
  for (i = from; i <= to + 1; i++) {
    if (i <= to && tokens[i] == "(") depth++
    if (i <= to && tokens[i] == ")") depth--
    if (i == to + 1 || (depth == 0 && tokens[i] == ",")) {
      s = s (s == "" ? "" : ", ") type_of(start, i - 1, 0)
      start = i + 1
    }
  }
  return s
}

# The type that from..to declares; stores the name in `declared`. A parameter (`named` 0) may have no name.
function type_of(from, to, named,    i, words, end, s) {
  declared = ""
  for (i = from; i < to; i++)
    if (tokens[i] == "(" && tokens[i + 1] == "*") {
      end = closing(i)
      if (end - i > 3 || tokens[end + 1] != "(" || closing(end + 1) != to) fail("a declaration that is not understood")
      s = text_of(from, i - 1) " (*)(" parameters(end + 2, to - 1) ")"
      declared = end - i == 3 ? tokens[i + 2] : ""
      return s
    } else if (tokens[i] == "(") {
      s = text_of(from, i - 2) " (" parameters(i + 1, to - 1) ")"
      declared = tokens[i - 1]
      return s
    }
  for (end = to; tokens[end] == "]"; ) while (tokens[end--] != "[") if (end < from) fail("an array that is not understood")
  for (i = from; i <= end; i++) {
    if (tokens[i] == ",") fail("more than one name in a declaration")
    if (is_word(tokens[i]) && tokens[i] !~ /^(const|struct|union)$/) words++
  }
  if (!is_word(tokens[end]) || words < 2) {
    if (named) fail("a declaration without a name")
    return text_of(from, to)
  }
  declared = tokens[end]
  return text_of(from, end - 1) (end < to ? " " text_of(end + 1, to) : "")
}

function field(struct, name, type) {
  printf "  printf(\"field %s %s %%zu %%zu %%s\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s), \"%s\");\n",
    struct, name, struct, name, struct, name, type
}

# "type a, b": the names after the first one, in from..to with their commas.
function more_fields(struct, type, from, to,    i) {
  if (type ~ /[*\[(]/) fail("several names of a type that is not plain")
  for (i = from; i <= to; i += 2) {
    if (tokens[i] != "," || !is_word(tokens[i + 1])) fail("several names that are not plain")
    field(struct, tokens[i + 1], type)
  }
}

# The fields in from..to. A union, or a struct in a struct, is one field whose type is its whole text.
function fields(struct, from, to,    i, start, depth, type, comma) {
  start = from
  for (i = from; i <= to; i++) {
    if (tokens[i] ~ /^[({]$/) depth++
    if (tokens[i] ~ /^[)}]$/) depth--
    if (depth == 0 && tokens[i] == "," && !comma) comma = i
    if (depth > 0 || tokens[i] != ";") continue
    if (tokens[i - 2] == "}") {
      type = text_of(start, i - 2)
      declared = tokens[i - 1]
    } else {
      type = type_of(start, (comma ? comma : i) - 1, 1)
    }
    field(struct, declared, type)
    if (comma) more_fields(struct, type, comma, i - 1)
    comma = 0
    start = i + 1
  }
  if (start <= to) fail("a field without its end")
}

function enumerators(from, to,    i, depth, first) {
  first = 1
  for (i = from; i <= to; i++) {
    if (first && is_word(tokens[i])) {
      printf "  printf(\"enum %s %%lld\\n\", (long long)(%s));\n", tokens[i], tokens[i]
      first = 0
    }
    if (tokens[i] == "(") depth++
    if (tokens[i] == ")") depth--
    if (tokens[i] == "," && depth == 0) first = 1
  }
}

# A struct or an enum that begins at `at`; the caller handles what follows its body.
function body(at,    open) {
  open = is_word(tokens[at + 1]) ? at + 2 : at + 1
  if (tokens[at] == "enum") {
    enumerators(open + 1, closing(open) - 1)
  } else if (tokens[at] == "struct" && open == at + 2) {
    printf "  printf(\"struct %s %%zu\\n\", sizeof(struct %s));\n", tokens[at + 1], tokens[at + 1]
    fields(tokens[at + 1], open + 1, closing(open) - 1)
  } else {
    fail("a union, or a struct without a name")
  }
  return closing(open)
}

function statement(    end, type, has_body, i) {
  for (i = 1; i <= n && !has_body; i++) has_body = tokens[i] == "{"
  if (tokens[1] == "extern") {
    type = type_of(2, n, 1)
    printf "  puts(\"function %s %s\");\n", declared, type
  } else if (tokens[1] == "typedef" && has_body) {
    end = body(2)
    if (tokens[2] != "struct" || end + 1 != n || tokens[n] != tokens[3]) fail("a typedef with another name")
    printf "  puts(\"type %s struct %s\");\n", tokens[n], tokens[3]
  } else if (tokens[1] == "typedef") {
    type = type_of(2, n, 1)
    printf "  puts(\"type %s %s\");\n", declared, type
  } else if (has_body) {
    if (body(1) != n) fail("a variable")
  } else if (tokens[1] != "struct" || n != 2) {
    fail("a statement that is not understood")
  }
}

function take(t) {
  if (inside_function) {
    if (t == "{") inside_function++
    if (t == "}" && --inside_function == 1) inside_function = n = 0
    return
  }
  if (t == "{" && depth == 0 && tokens[n] == ")") {
    if (tokens[1] != "static") fail("a function that is not static")
    inside_function = 2
    return
  }
  if (t == "{") depth++
  if (t == "}") depth--
  if (t == ";" && depth == 0) {
    if (n > 0) statement()
    n = 0
    return
  }
  tokens[++n] = t
}

BEGIN {
  print "#include <stdio.h>"
  for (i = 1; i < ARGC; i++) if (ARGV[i] ~ /^header=/) print "#include <tenon/" substr(ARGV[i], 8) ">"
  print "int main(void)\n{"
  print "  printf(\"abi %d %d\\n\", TN_ABI_MAJOR, TN_ABI_MINOR);"
  print "  printf(\"model %d %d %d\\n\", (int)sizeof(void *), (int)sizeof(size_t), (int)_Alignof(int64_t));"
}

/^#/ { wanted = $0 ~ /tenon\/[a-z_]+\.h"/; next }
wanted {
  gsub(/\.\.\./, " ... ")
  gsub(/[^A-Za-z0-9_. \t]/, " & ")
  for (i = 1; i <= NF; i++) take($i)
}

END {
  if (!failed) {
    if (n > 0) fail("the end is missing")
    # Macros with a number or a string.
    while ((getline line <constants) > 0) print line
    print "  return 0;\n}"
  }
}
