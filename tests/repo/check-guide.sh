#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-guide.sh DOCDIR LIBDIR BINDIR [PAGE...]: run by make installcheck (and so by make distcheck). Follows the installed
# plugin guide with nothing but the installed package (P-100). With pages named, such as "kit", follows only these, beside
# the model of the C template (check-guide-build.sh). Prints TAP.
#
# "<!-- run -->" before a block means that its commands are run ("<!-- run TOOL -->": if that tool is installed),
# "<!-- file NAME -->" that it is appended to a file. The blocks of a page run in one shell; those of later pages start in
# the folder to which the first page copied a template.
set -eu
docdir=$(cd "$1" && pwd) libdir=$2 bindir=$3
shift 3
tools='cc make pkg-config autoreconf automake libtoolize'
[ $# -eq 0 ] || tools='cc pkg-config'
if [ -n "${TENON_SANITIZE:-}" ]; then
  echo "1..0 # SKIP the library was built with $TENON_SANITIZE"
  exit 0
fi
for tool in $tools; do
  command -v $tool >/dev/null || { echo "1..0 # SKIP there is no $tool"; exit 0; }
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset TENON_PLUGIN_PATH TENON_PLUGIN_PATH_ONLY TENON_PROBE_PROGRAM MAKEFLAGS MFLAGS MAKELEVEL DESTDIR CC CFLAGS || true
LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
PATH=$bindir:$PATH
TENON_CACHE_DIR=$tmp/cache
export LD_LIBRARY_PATH PKG_CONFIG_PATH PATH TENON_CACHE_DIR
n=0 failed=0

result() { # GOOD NAME
  n=$((n + 1))
  if [ "$1" = yes ]; then
    echo "ok $n - $2"
  else
    echo "not ok $n - $2"
    failed=1
  fi
}

# script PAGE: prints the page's blocks as a shell script, which records each block in $tmp/begun and, if it succeeds, in
# $tmp/done.
script() {
  awk -v page="${1##*/}" -v tmp="$tmp" '
    state == 0 && /^<!-- run( [a-z]+)? -->$/ { state = 1; tool = NF > 3 ? $3 : "sh"; next }
    state == 0 && /^<!-- file [^ ]+ -->$/ { state = 2; file = $3; next }
    state == 1 && /^```sh$/ {
      state = 3; at = page ":" NR; print "echo " at " >>" tmp "/begun"; print "if command -v " tool " >/dev/null; then"; next
    }
    state == 2 && /^```[a-z]*$/ { state = 4; print "cat >>" file " <<\"END OF BLOCK\""; next }
    state == 3 && /^```$/ { state = 0; print "fi"; print "echo " at " >>" tmp "/done"; next }
    state == 4 && /^```$/ { state = 0; print "END OF BLOCK"; next }
    state == 1 || state == 2 { print "echo " page ":" NR ": a block was expected >&2; exit 1"; exit }
    state > 2' "$1"
}

# follow PAGE FOLDER: runs the blocks of the page in the folder.
follow() {
  : >"$tmp/begun"
  : >"$tmp/done"
  script "$1" >"$tmp/script"
  (cd "$2" && set +e && sh -eu "$tmp/script") >"$tmp/log" 2>&1 || :
  while read -r block; do
    if grep -qxF "$block" "$tmp/done"; then
      result yes "the commands of $block"
    else
      result no "the commands of $block"
      { grep -A 5 '^not ok' "$tmp/log"; tail -n 20 "$tmp/log"; } | sed 's/^/# /'
    fi
  done <"$tmp/begun"
  wanted=$(grep -cxE -e '<!-- run( [a-z]+)? -->' "$1" || :)
  result "$([ "$wanted" -gt 0 ] && [ "$(wc -l <"$tmp/done")" -eq "$wanted" ] && echo yes)" "all blocks of ${1##*/} were run"
}

mkdir "$tmp/work"
if [ $# -eq 0 ]; then
  follow "$docdir/plugin-guide.md" "$tmp/work"
  mkdir -p "$tmp/work/mine" # if the first page failed
  set -- callbacks kit kernels packaging
else
  mkdir "$tmp/work/mine"
  cp "$(pkg-config --variable=templatedir tenon)/c/model.pbtxt" "$tmp/work/mine"
fi
for page in "$@"; do
  follow "$docdir/plugin-guide/$page.md" "$tmp/work/mine"
done

# Links between the installed pages have a target; an anchor is a heading of the page.
lost=
for page in $(find "$docdir" -name '*.md'); do
  for link in $({ grep -o ']([^)]*)' "$page"; grep -o 'src="[^"]*"' "$page"; } | sed 's/^](//; s/)$//; s/^src="//; s/"$//' | grep -v '^[a-z]*:'); do
    file=${link%%#*} anchor=
    case $link in *'#'*) anchor=${link#*#} ;; esac
    target=$page
    [ -z "$file" ] || target=$(dirname "$page")/$file
    if [ ! -e "$target" ]; then
      lost="$lost ${page##*/}:$link"
    elif [ -n "$anchor" ]; then
      grep '^##* ' "$target" | sed 's/^#* //' | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-' | grep -qxF -e "$anchor" || lost="$lost ${page##*/}:$link"
    fi
  done
done
result "$([ -z "$lost" ] && echo yes)" "links lead somewhere"
[ -z "$lost" ] || echo "#$lost"
echo "1..$n"
exit $failed
