# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: fuzz/fuzz_NAME.c with LLVMFuzzerTestOneInput; here one line in TN_FUZZERS, and below
#   fuzz_fuzz_NAME_LDADD = $(TN_FUZZ_LIBS)
# Built with libFuzzer under --enable-fuzzers (CC=clang). Seeds of a target, when it has any, stand in fuzz/corpus/fuzz_NAME/ (and are listed in
# TN_FUZZ_SEEDS); what a run finds is kept in the build folder.
TN_FUZZERS = \
  fuzz/fuzz_builder \
  fuzz/fuzz_graphdef \
  fuzz/fuzz_manifest \
  fuzz/fuzz_npy \
  fuzz/fuzz_npz \
  fuzz/fuzz_pbtxt
TN_FUZZ_SEEDS = \
  fuzz/corpus/fuzz_graphdef/Assign-000.pb \
  fuzz/corpus/fuzz_graphdef/BatchMatMul-000.pb \
  fuzz/corpus/fuzz_graphdef/Case-000.pb \
  fuzz/corpus/fuzz_graphdef/Concat-007.pb \
  fuzz/corpus/fuzz_graphdef/Cond-000.pb \
  fuzz/corpus/fuzz_graphdef/Const-000.pb \
  fuzz/corpus/fuzz_graphdef/Const-088.pb \
  fuzz/corpus/fuzz_graphdef/Const-097.pb \
  fuzz/corpus/fuzz_graphdef/Const-133.pb \
  fuzz/corpus/fuzz_graphdef/Const-141.pb \
  fuzz/corpus/fuzz_graphdef/Conv2D-000.pb \
  fuzz/corpus/fuzz_graphdef/FIFOQueue-000.pb \
  fuzz/corpus/fuzz_graphdef/TensorArrayCloseV3-000.pb \
  fuzz/corpus/fuzz_graphdef/loop.pb \
  fuzz/corpus/fuzz_manifest/kernels \
  fuzz/corpus/fuzz_manifest/object \
  fuzz/corpus/fuzz_manifest/runtime \
  fuzz/corpus/fuzz_npy/f4.npy \
  fuzz/corpus/fuzz_npy/s3.npy \
  fuzz/corpus/fuzz_npy/u2_fortran.npy \
  fuzz/corpus/fuzz_npz/deflated.npz \
  fuzz/corpus/fuzz_npz/stored.npz \
  fuzz/corpus/fuzz_pbtxt/bytes \
  fuzz/corpus/fuzz_pbtxt/library \
  fuzz/corpus/fuzz_pbtxt/nodes
TN_FUZZ_LIBS = $(TN_FUZZ_LDFLAGS) libtenon_core.la $(TN_CORE_LIBS)

fuzz_fuzz_builder_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_graphdef_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_manifest_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_npy_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_npz_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_pbtxt_LDADD = $(TN_FUZZ_LIBS)

EXTRA_DIST += $(TN_FUZZ_SEEDS) fuzz/seeds.sh
EXTRA_PROGRAMS += $(TN_FUZZERS)

# Those to run and for how long: make fuzz-run FUZZERS=fuzz/fuzz_x FUZZ_SECONDS=600
FUZZERS = $(TN_FUZZERS)
FUZZ_SECONDS = 60
FUZZ_FLAGS = -timeout=20 -rss_limit_mb=2048 -print_final_stats=1

if TN_FUZZERS_ENABLED
fuzz: $(TN_FUZZERS)

fuzz-run: $(FUZZERS)
	@for target in $(FUZZERS); do \
	  name=`basename $$target`; found=fuzz/found/$$name; seeds=; \
	  $(MKDIR_P) $$found || exit 1; \
	  test -d '$(srcdir)/fuzz/corpus/'$$name && seeds='$(srcdir)/fuzz/corpus/'$$name; \
	  echo "$$target, $(FUZZ_SECONDS) s"; \
	  $$target -max_total_time=$(FUZZ_SECONDS) $(FUZZ_FLAGS) -artifact_prefix=fuzz/$$name- $$found $$seeds || exit 1; \
	done
else
fuzz fuzz-run:
	@echo "fuzz targets need: ../configure --enable-fuzzers CC=clang" >&2; exit 1
endif

fuzz-list:
	@echo $(TN_FUZZERS)

.PHONY: fuzz-list
