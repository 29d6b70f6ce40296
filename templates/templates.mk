# SPDX-License-Identifier: Apache-2.0
# Projects for authors of runtimes to copy, installed with the package. tests/repo/check-templates.sh builds them
# against the installed package.
tenondatadir = $(datadir)/tenon
TN_TEMPLATE_FILES = \
  templates/README.md \
  templates/c/Makefile.am \
  templates/c/README.md \
  templates/c/configure.ac \
  templates/c/crew.c \
  templates/c/crew.h \
  templates/c/plugin.c \
  templates/cpp/Makefile.am \
  templates/cpp/README.md \
  templates/cpp/check_callbacks.cpp \
  templates/cpp/configure.ac \
  templates/cpp/executor.cpp \
  templates/cpp/tenon.hpp \
  templates/cpp/values.hpp \
  templates/rust/Cargo.toml \
  templates/rust/README.md \
  templates/rust/build.rs \
  templates/rust/examples/panics.rs \
  templates/rust/rustfmt.toml \
  templates/rust/src/lib.rs \
  templates/rust/src/tenon.rs \
  templates/rust/tests/abi.rs \
  templates/rust/tests/runtime.rs

nobase_dist_tenondata_DATA = $(TN_TEMPLATE_FILES)

# Files of several templates. They are installed into each, so that a template is a project of its own.
TN_TEMPLATE_COMMON = templates/common/model.pbtxt templates/common/run.c
TN_TEMPLATE_AUTOTOOLS = $(TN_TEMPLATE_COMMON) templates/common/check.sh templates/common/plugin.map
templates_cdir = $(tenondatadir)/templates/c
dist_templates_c_DATA = $(TN_TEMPLATE_AUTOTOOLS)
templates_cppdir = $(tenondatadir)/templates/cpp
dist_templates_cpp_DATA = $(TN_TEMPLATE_AUTOTOOLS)
templates_rustdir = $(tenondatadir)/templates/rust
dist_templates_rust_DATA = $(TN_TEMPLATE_COMMON)
EXTRA_DIST += tests/repo/check-templates.sh
