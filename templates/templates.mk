# SPDX-License-Identifier: Apache-2.0
# Projects for authors of runtimes to copy, installed with the package. tests/repo/check-templates.sh builds them
# against the installed package.
tenondatadir = $(datadir)/tenon
TN_TEMPLATE_FILES = \
  templates/README.md \
  templates/c/Makefile.am \
  templates/c/README.md \
  templates/c/check.sh \
  templates/c/configure.ac \
  templates/c/crew.c \
  templates/c/crew.h \
  templates/c/model.pbtxt \
  templates/c/plugin.c \
  templates/c/plugin.map \
  templates/c/run.c \
  templates/cpp/Makefile.am \
  templates/cpp/README.md \
  templates/cpp/check.sh \
  templates/cpp/check_callbacks.cpp \
  templates/cpp/configure.ac \
  templates/cpp/executor.cpp \
  templates/cpp/model.pbtxt \
  templates/cpp/plugin.map \
  templates/cpp/run.c \
  templates/cpp/tenon.hpp \
  templates/cpp/values.hpp \
  templates/rust/Cargo.toml \
  templates/rust/README.md \
  templates/rust/build.rs \
  templates/rust/examples/panics.rs \
  templates/rust/model.pbtxt \
  templates/rust/run.c \
  templates/rust/rustfmt.toml \
  templates/rust/src/lib.rs \
  templates/rust/src/tenon.rs \
  templates/rust/tests/abi.rs \
  templates/rust/tests/runtime.rs

nobase_dist_tenondata_DATA = $(TN_TEMPLATE_FILES)
EXTRA_DIST += tests/repo/check-templates.sh
