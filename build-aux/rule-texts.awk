# SPDX-License-Identifier: Apache-2.0
# awk -f rule-texts.awk docs/spec/FILE.md...: writes the C table of the rules' texts, for tenon-conformance, without reasons
# (*...*), anchors ([...]) and tests ("T: ...").
BEGIN {
  print "/* SPDX-License-Identifier: Apache-2.0 */"
  print "/* Made by build-aux/rule-texts.awk from docs/spec/; do not edit. */"
  print "#include <conformance/conformance.h>"
  print ""
  print "const cf_rule cf_rules[] = {"
}

/^- (\*\*)?[SP]-[A-Z0-9-]*[0-9] / {
  text = $0
  sub(/^- (\*\*)?/, "", text)
  rule = text
  sub(/ .*/, "", rule)
  sub(/^[^ ]* /, "", text)
  sub(/^[A-C]\*\* /, "", text)
  sub(/ T: .*/, "", text)
  sub(/ \*[A-Z].*/, "", text)
  while (sub(/ ?\[[^\]]*\]$/, "", text));
  gsub(/\*\*|`/, "", text)
  gsub(/\\/, "&&", text)
  gsub(/"/, "\\\"", text)
  printf "  { \"%s\", \"%s\" },\n", rule, text
}

END {
  print "  { NULL, NULL },"
  print "};"
}
