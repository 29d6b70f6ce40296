# SPDX-License-Identifier: Apache-2.0
# Goals for people who work on the sources. `make help` lists every goal that has a line "#: GOAL: what it does" in a makefile.
#: help: this list
#: all: the library, the runtimes and the commands
#: check: all tests; TESTS='tests/base/error ...' runs some
#: check-long: tests that take hours
#: test-modules: the plugins that tests load
#: check-abi: compares the public headers with the recorded ABI
#: update-abi: records the ABI
#: bench: measures this build; bench/compare measures it beside TensorFlow and ONNX Runtime
#: bench-check: compares the instructions of fixed steps with the recorded ones
#: fuzz: builds the fuzz targets (configure --enable-fuzzers)
#: fuzz-run: runs them
#: install: installs; installcheck tests what was installed
#: distcheck: builds and tests the tarball
#: format: formats the changed lines with clang-format
#: compile_commands.json: the compilation database for editors, written by bear
#: hooks: checks each commit of this clone (build-aux/hooks)
TN_MAKEFILES = $(srcdir)/Makefile.am $(srcdir)/build-aux/developer.mk
help:
	@sed -n 's/^#: \([^:]*\): /\1|/p' $(TN_MAKEFILES) | $(AWK) -F'|' '{ printf "  %-22s %s\n", $$1, $$2 }'

format:
	@cd $(srcdir) && tool=`command -v clang-format-14 || command -v clang-format` || \
	  { echo 'make format needs clang-format: apt-get install clang-format-14' >&2; exit 1; }; \
	  git=`command -v git-clang-format-14 || command -v git-clang-format` || \
	  { echo 'make format needs git-clang-format, which comes with clang-format' >&2; exit 1; }; \
	  $$git --binary "$$tool" --extensions c,h,cc,cpp,hpp HEAD

compile_commands.json:
	@command -v bear >/dev/null || { echo 'compile_commands.json needs bear: apt-get install bear' >&2; exit 1; }
	$(MAKE) clean
	bear --output $@ -- $(MAKE) all

hooks:
	cd $(srcdir) && git config core.hooksPath build-aux/hooks

CLEANFILES += compile_commands.json
.PHONY: help format hooks
EXTRA_DIST += .editorconfig build-aux/developer.mk build-aux/hooks/commit-msg build-aux/hooks/pre-commit
