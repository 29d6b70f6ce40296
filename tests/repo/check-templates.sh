#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-templates.sh SRCDIR LIBDIR BINDIR: run by make installcheck (and so by make distcheck). Each template of templates/
# is copied, built against the installed package by pkg-config alone, checked, installed into a separate folder, and then
# used like any runtime (P-95). Their checks throw and panic in callbacks (P-94). TENON_TEMPLATES selects some of them
# ("c cpp rust"); one whose tools are missing is skipped with a message.
set -eu
srcdir=$(cd "$1" && pwd) libdir=$2 bindir=$3
if [ -n "${TENON_SANITIZE:-}" ]; then
  echo "templates: left out: the library was built with $TENON_SANITIZE"
  exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
VERBOSE=1 # automake prints the output of failed tests
export VERBOSE
unset TENON_PLUGIN_PATH TENON_PLUGIN_PATH_ONLY MAKEFLAGS MFLAGS MAKELEVEL DESTDIR || true
LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
[ -n "${CXX:-}" ] || unset CXX
TENON=$bindir/tenon
export LD_LIBRARY_PATH PKG_CONFIG_PATH TENON
log=$tmp/log

# Ends the check of this template, which runs in a subshell.
fail() {
  echo "templates: $name: $*" >&2
  exit 1
}

# step WORDS COMMAND...: runs a command; shows its output only if it fails.
step() {
  words=$1
  shift
  "$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; fail "$words"; }
}

have() { command -v "$1" >/dev/null 2>&1; }

conforms() {
  [ -x "$bindir/tenon-conformance" ] || { echo "templates: $name: tenon-conformance is missing"; return 0; }
  "$bindir/tenon-conformance" "$1" --jobs 2 --timeout 180 >"$tmp/conformance" 2>&1 || :
  tail -n 1 "$tmp/conformance" | grep -q '^# .* passed, ' ||
    { tail -n 20 "$tmp/conformance" >&2; fail "the suites do not end"; }
  broken=$(awk '/^not ok / { print $5 }' "$tmp/conformance")
  [ -z "$broken" ] || { grep -A 8 '^not ok ' "$tmp/conformance" >&2; fail "does not conform: $(echo $broken)"; }
}

# used RUNTIME FILE: uses the installed file as a user does.
used() {
  runtime=$1 so=$2
  TENON_PLUGIN_PATH=$(dirname "$so")
  export TENON_PLUGIN_PATH
  nm -D --defined-only "$so" >"$log"
  [ "$(wc -l <"$log")" -eq 1 ] || { cat "$log" >&2; fail "shows more than its entry (P-93)"; }
  step "tenon runtimes" "$bindir/tenon" runtimes
  grep -F "$so" "$log" | grep -q "^$runtime .* ready " || { cat "$log" >&2; fail "tenon runtimes does not list it"; }
  for on in direct "$runtime"; do
    step "the digits on $on" "$bindir/tenon" run "$srcdir/examples/digits/digits.pb" --runtime "$on" \
      --feed "image:0=$srcdir/examples/digits/images.npy" --fetch "class:0=$tmp/class.$on.npy" \
      --fetch "probabilities:0=$tmp/probabilities.$on.npy"
  done
  cmp "$tmp/class.direct.npy" "$tmp/class.$runtime.npy" || fail "the digits differ from those on direct"
  cmp "$tmp/probabilities.direct.npy" "$tmp/probabilities.$runtime.npy" ||
    fail "the probabilities differ from those on direct"
  conforms "$so"
  unset TENON_PLUGIN_PATH
}

# autotools RUNTIME MODULE: distcheck includes make check and a build outside the source folder.
autotools() {
  cd "$tmp/$name"
  step "autoreconf -i" autoreconf -i
  mkdir build
  cd build
  step "configure" ../configure --with-plugindir="$tmp/installed/$name"
  step "make" make
  step "make install" make install
  step "make distcheck" make distcheck
  used "$1" "$tmp/installed/$name/$2.so"
}

check_c() {
  autotools acme.longest acme_longest
}

check_cpp() {
  autotools acme.executor acme_executor
  if have clang++ && have clang; then
    mkdir "$tmp/$name/build-clang"
    cd "$tmp/$name/build-clang"
    step "configure with clang" ../configure CC=clang CXX=clang++
    step "make check with clang" make check
  fi
}

check_rust() {
  cd "$tmp/$name"
  step "cargo test" "$cargo" test --offline
  step "cargo build" "$cargo" build --offline --release
  step "installing" install -D target/release/libacme_watch.so "$tmp/installed/$name/libacme_watch.so"
  used acme.watch "$tmp/installed/$name/libacme_watch.so"
}

check() {
  case $1 in
  c) check_c ;;
  cpp) check_cpp ;;
  rust) check_rust ;;
  *) fail "there is no such template" ;;
  esac
}

# missing TEMPLATE: prints the name of a required tool that is not installed.
missing() {
  case $1 in
  rust)
    have "$cargo" || echo cargo
    ;;
  *)
    for tool in autoreconf automake libtoolize make; do have $tool || echo $tool; done
    # shellcheck disable=SC2086 # its first word
    [ "$1" = c ] || have ${CXX:-g++} || echo "${CXX:-g++}"
    ;;
  esac
}

status=0
for name in ${TENON_TEMPLATES:-c cpp rust}; do
  cargo=${CARGO:-$(command -v cargo || echo "$HOME/.cargo/bin/cargo")}
  tool=$(missing "$name" | head -n 1)
  if [ -n "$tool" ]; then
    echo "templates: $name is left out: there is no $tool"
    continue
  fi
  cp -R "$srcdir/templates/$name" "$tmp/$name"
  cp "$srcdir"/templates/common/* "$tmp/$name"
  chmod -R u+w "$tmp/$name"
  if (check "$name"); then echo "templates: $name works"; else status=1; fi
done
exit $status
