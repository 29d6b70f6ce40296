# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: fuzz/fuzz_NAME.c with LLVMFuzzerTestOneInput, one line in TN_FUZZERS, and below
#   fuzz_fuzz_NAME_LDADD = $(TN_FUZZ_LIBS)
# Those that read the bytes of one file format are fuzz/formats/fuzz_NAME.c: fuzz_formats_fuzz_NAME_LDADD.
# Built with libFuzzer under --enable-fuzzers (CC=clang). Seeds of a target, and inputs that once found a bug, are in
# fuzz/corpus/fuzz_NAME/ and listed in TN_FUZZ_SEEDS; fuzz/seeds.sh makes more. Inputs found by a run are kept in the build
# folder.
TN_FUZZERS = \
  fuzz/fuzz_builder \
  fuzz/fuzz_config \
  fuzz/fuzz_control \
  fuzz/fuzz_dlpack \
  fuzz/fuzz_eager \
  fuzz/fuzz_example \
  fuzz/fuzz_graphtext \
  fuzz/fuzz_literal \
  fuzz/fuzz_manifest \
  fuzz/fuzz_probe_cache \
  fuzz/fuzz_regex \
  fuzz/fuzz_session \
  fuzz/fuzz_shapes \
  fuzz/fuzz_sidecar \
  fuzz/fuzz_texts \
  fuzz/fuzz_threads \
  fuzz/formats/fuzz_bundle \
  fuzz/formats/fuzz_checkpoint_v1 \
  fuzz/formats/fuzz_graphdef \
  fuzz/formats/fuzz_npy \
  fuzz/formats/fuzz_npz \
  fuzz/formats/fuzz_objectgraph \
  fuzz/formats/fuzz_pbtxt \
  fuzz/formats/fuzz_savedmodel \
  fuzz/formats/fuzz_table
TN_FUZZ_SEEDS = \
  fuzz/corpus/fuzz_builder/conv \
  fuzz/corpus/fuzz_builder/kinds \
  fuzz/corpus/fuzz_builder/lists \
  fuzz/corpus/fuzz_builder/matmul \
  fuzz/corpus/fuzz_builder/reshape \
  fuzz/corpus/fuzz_bundle/file \
  fuzz/corpus/fuzz_bundle/slices \
  fuzz/corpus/fuzz_bundle/state \
  fuzz/corpus/fuzz_bundle/strings \
  fuzz/corpus/fuzz_bundle/types \
  fuzz/corpus/fuzz_checkpoint_v1/bad_consumer \
  fuzz/corpus/fuzz_checkpoint_v1/file \
  fuzz/corpus/fuzz_checkpoint_v1/shard \
  fuzz/corpus/fuzz_checkpoint_v1/slices \
  fuzz/corpus/fuzz_checkpoint_v1/types \
  fuzz/corpus/fuzz_config/level \
  fuzz/corpus/fuzz_config/whole \
  fuzz/corpus/fuzz_control/branches \
  fuzz/corpus/fuzz_control/dead_result \
  fuzz/corpus/fuzz_control/half_a_frame \
  fuzz/corpus/fuzz_control/kinds \
  fuzz/corpus/fuzz_control/loops \
  fuzz/corpus/fuzz_control/state \
  fuzz/corpus/fuzz_dlpack/bools \
  fuzz/corpus/fuzz_dlpack/floats \
  fuzz/corpus/fuzz_dlpack/other_device \
  fuzz/corpus/fuzz_dlpack/read_only \
  fuzz/corpus/fuzz_dlpack/small_types \
  fuzz/corpus/fuzz_dlpack/strided \
  fuzz/corpus/fuzz_dlpack/versioned \
  fuzz/corpus/fuzz_eager/add \
  fuzz/corpus/fuzz_eager/async \
  fuzz/corpus/fuzz_eager/functions \
  fuzz/corpus/fuzz_eager/kept_op \
  fuzz/corpus/fuzz_eager/limit \
  fuzz/corpus/fuzz_eager/scopes \
  fuzz/corpus/fuzz_eager/variables \
  fuzz/corpus/fuzz_example/batch \
  fuzz/corpus/fuzz_example/batch_ragged \
  fuzz/corpus/fuzz_example/json \
  fuzz/corpus/fuzz_example/scalar \
  fuzz/corpus/fuzz_example/sequence \
  fuzz/corpus/fuzz_example/sequences \
  fuzz/corpus/fuzz_example/single \
  fuzz/corpus/fuzz_example/single_sequence \
  fuzz/corpus/fuzz_example/sparse_rows \
  fuzz/corpus/fuzz_example/sparse_strings \
  fuzz/corpus/fuzz_example/unpacked \
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
  fuzz/corpus/fuzz_graphtext/arithmetic \
  fuzz/corpus/fuzz_graphtext/branches \
  fuzz/corpus/fuzz_graphtext/functions \
  fuzz/corpus/fuzz_graphtext/loop \
  fuzz/corpus/fuzz_graphtext/state \
  fuzz/corpus/fuzz_literal/bools \
  fuzz/corpus/fuzz_literal/byte \
  fuzz/corpus/fuzz_literal/complex \
  fuzz/corpus/fuzz_literal/double \
  fuzz/corpus/fuzz_literal/empty \
  fuzz/corpus/fuzz_literal/float \
  fuzz/corpus/fuzz_literal/half \
  fuzz/corpus/fuzz_literal/long \
  fuzz/corpus/fuzz_literal/nested \
  fuzz/corpus/fuzz_literal/texts \
  fuzz/corpus/fuzz_manifest/kernels \
  fuzz/corpus/fuzz_manifest/object \
  fuzz/corpus/fuzz_manifest/runtime \
  fuzz/corpus/fuzz_npy/f4.npy \
  fuzz/corpus/fuzz_npy/s3.npy \
  fuzz/corpus/fuzz_npy/u2_fortran.npy \
  fuzz/corpus/fuzz_npz/deflated.npz \
  fuzz/corpus/fuzz_npz/stored.npz \
  fuzz/corpus/fuzz_objectgraph/cycles \
  fuzz/corpus/fuzz_objectgraph/slots \
  fuzz/corpus/fuzz_objectgraph/small \
  fuzz/corpus/fuzz_objectgraph/table \
  fuzz/corpus/fuzz_pbtxt/bytes \
  fuzz/corpus/fuzz_pbtxt/library \
  fuzz/corpus/fuzz_pbtxt/library_cut \
  fuzz/corpus/fuzz_pbtxt/nodes \
  fuzz/corpus/fuzz_pbtxt/signature_twice \
  fuzz/corpus/fuzz_pbtxt/versions_twice \
  fuzz/corpus/fuzz_probe_cache/large \
  fuzz/corpus/fuzz_probe_cache/no_head \
  fuzz/corpus/fuzz_probe_cache/no_words \
  fuzz/corpus/fuzz_probe_cache/others \
  fuzz/corpus/fuzz_probe_cache/signal \
  fuzz/corpus/fuzz_probe_cache/well \
  fuzz/corpus/fuzz_regex/bad_count \
  fuzz/corpus/fuzz_regex/bytes \
  fuzz/corpus/fuzz_regex/empty \
  fuzz/corpus/fuzz_regex/flags \
  fuzz/corpus/fuzz_regex/groups \
  fuzz/corpus/fuzz_regex/lines \
  fuzz/corpus/fuzz_regex/open \
  fuzz/corpus/fuzz_regex/sets \
  fuzz/corpus/fuzz_savedmodel/collections \
  fuzz/corpus/fuzz_savedmodel/composite \
  fuzz/corpus/fuzz_savedmodel/meta \
  fuzz/corpus/fuzz_savedmodel/meta_text \
  fuzz/corpus/fuzz_savedmodel/text \
  fuzz/corpus/fuzz_session/callables \
  fuzz/corpus/fuzz_session/little_memory \
  fuzz/corpus/fuzz_session/no_second_plan \
  fuzz/corpus/fuzz_session/partial_runs \
  fuzz/corpus/fuzz_session/runs \
  fuzz/corpus/fuzz_shapes/AddN \
  fuzz/corpus/fuzz_shapes/ArgMax \
  fuzz/corpus/fuzz_shapes/AvgPool \
  fuzz/corpus/fuzz_shapes/AvgPoolGrad \
  fuzz/corpus/fuzz_shapes/BatchToSpaceND \
  fuzz/corpus/fuzz_shapes/Bitcast \
  fuzz/corpus/fuzz_shapes/BroadcastTo \
  fuzz/corpus/fuzz_shapes/Cast \
  fuzz/corpus/fuzz_shapes/ClipByValue \
  fuzz/corpus/fuzz_shapes/ConcatV2 \
  fuzz/corpus/fuzz_shapes/Conv2D \
  fuzz/corpus/fuzz_shapes/Conv2DBackpropFilter \
  fuzz/corpus/fuzz_shapes/Conv2DBackpropInput \
  fuzz/corpus/fuzz_shapes/Conv3D \
  fuzz/corpus/fuzz_shapes/Cumsum \
  fuzz/corpus/fuzz_shapes/DepthwiseConv2dNative \
  fuzz/corpus/fuzz_shapes/Dilation2D \
  fuzz/corpus/fuzz_shapes/DynamicStitch \
  fuzz/corpus/fuzz_shapes/Einsum \
  fuzz/corpus/fuzz_shapes/EnsureShape \
  fuzz/corpus/fuzz_shapes/ExpandDims \
  fuzz/corpus/fuzz_shapes/ExtractImagePatches \
  fuzz/corpus/fuzz_shapes/Fill \
  fuzz/corpus/fuzz_shapes/FusedBatchNorm \
  fuzz/corpus/fuzz_shapes/FusedBatchNormV3 \
  fuzz/corpus/fuzz_shapes/GRUBlockCell \
  fuzz/corpus/fuzz_shapes/Gather \
  fuzz/corpus/fuzz_shapes/GatherNd \
  fuzz/corpus/fuzz_shapes/GatherV2 \
  fuzz/corpus/fuzz_shapes/MatMul \
  fuzz/corpus/fuzz_shapes/MatrixDiagPartV3 \
  fuzz/corpus/fuzz_shapes/MatrixDiagV3 \
  fuzz/corpus/fuzz_shapes/MaxPool \
  fuzz/corpus/fuzz_shapes/MaxPool3D \
  fuzz/corpus/fuzz_shapes/MaxPoolGrad \
  fuzz/corpus/fuzz_shapes/MaxPoolWithArgmax \
  fuzz/corpus/fuzz_shapes/NthElement \
  fuzz/corpus/fuzz_shapes/OneHot \
  fuzz/corpus/fuzz_shapes/Pack \
  fuzz/corpus/fuzz_shapes/Pad \
  fuzz/corpus/fuzz_shapes/PadV2 \
  fuzz/corpus/fuzz_shapes/Range \
  fuzz/corpus/fuzz_shapes/Reshape \
  fuzz/corpus/fuzz_shapes/ReverseV2 \
  fuzz/corpus/fuzz_shapes/Roll \
  fuzz/corpus/fuzz_shapes/ScatterNd \
  fuzz/corpus/fuzz_shapes/SelectV2 \
  fuzz/corpus/fuzz_shapes/Shape \
  fuzz/corpus/fuzz_shapes/Slice \
  fuzz/corpus/fuzz_shapes/SpaceToBatchND \
  fuzz/corpus/fuzz_shapes/SpaceToDepth \
  fuzz/corpus/fuzz_shapes/Split \
  fuzz/corpus/fuzz_shapes/SplitV \
  fuzz/corpus/fuzz_shapes/StridedSlice \
  fuzz/corpus/fuzz_shapes/Sum \
  fuzz/corpus/fuzz_shapes/TensorScatterUpdate \
  fuzz/corpus/fuzz_shapes/Tile \
  fuzz/corpus/fuzz_shapes/TopKV2 \
  fuzz/corpus/fuzz_shapes/Transpose \
  fuzz/corpus/fuzz_shapes/Unique \
  fuzz/corpus/fuzz_shapes/Unpack \
  fuzz/corpus/fuzz_shapes/Where \
  fuzz/corpus/fuzz_shapes/cast_of_nothing \
  fuzz/corpus/fuzz_shapes/enter_of_constant \
  fuzz/corpus/fuzz_shapes/linspace_of_any_floats \
  fuzz/corpus/fuzz_shapes/matmul_of_nothing \
  fuzz/corpus/fuzz_shapes/noop_alone \
  fuzz/corpus/fuzz_shapes/pool3d_without_scratch \
  fuzz/corpus/fuzz_shapes/range_of_any_floats \
  fuzz/corpus/fuzz_shapes/real_div_of_integers \
  fuzz/corpus/fuzz_shapes/reshape_by_feed \
  fuzz/corpus/fuzz_shapes/split_axis \
  fuzz/corpus/fuzz_shapes/stitch_of_scalars \
  fuzz/corpus/fuzz_sidecar/disabled \
  fuzz/corpus/fuzz_sidecar/key_twice \
  fuzz/corpus/fuzz_sidecar/rank_too_high \
  fuzz/corpus/fuzz_sidecar/whole \
  fuzz/corpus/fuzz_table/block \
  fuzz/corpus/fuzz_table/block_packed \
  fuzz/corpus/fuzz_table/bundle.index \
  fuzz/corpus/fuzz_table/index \
  fuzz/corpus/fuzz_table/packed.index \
  fuzz/corpus/fuzz_table/restarts \
  fuzz/corpus/fuzz_texts/base64 \
  fuzz/corpus/fuzz_texts/csv \
  fuzz/corpus/fuzz_texts/csv_columns \
  fuzz/corpus/fuzz_texts/format \
  fuzz/corpus/fuzz_texts/numbers \
  fuzz/corpus/fuzz_texts/parse_tensor \
  fuzz/corpus/fuzz_texts/parts \
  fuzz/corpus/fuzz_texts/raw \
  fuzz/corpus/fuzz_texts/split \
  fuzz/corpus/fuzz_texts/table \
  fuzz/corpus/fuzz_texts/table_empty \
  fuzz/corpus/fuzz_texts/table_lines \
  fuzz/corpus/fuzz_texts/table_numbers \
  fuzz/corpus/fuzz_texts/unicode \
  fuzz/corpus/fuzz_texts/unicode_16 \
  fuzz/corpus/fuzz_texts/wav \
  fuzz/corpus/fuzz_texts/wav_stereo \
  fuzz/corpus/fuzz_threads/callables \
  fuzz/corpus/fuzz_threads/cancel \
  fuzz/corpus/fuzz_threads/close \
  fuzz/corpus/fuzz_threads/eager \
  fuzz/corpus/fuzz_threads/partial \
  fuzz/corpus/fuzz_threads/reset \
  fuzz/corpus/fuzz_threads/runs
TN_FUZZ_LIBS = $(TN_FUZZ_LDFLAGS) $(TN_CORE_LIBS)

fuzz_fuzz_builder_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_config_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_control_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_dlpack_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_eager_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_example_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_graphtext_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_literal_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_manifest_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_probe_cache_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_regex_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_session_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_shapes_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_sidecar_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_texts_LDADD = $(TN_FUZZ_LIBS)
fuzz_fuzz_threads_LDADD = $(TN_FUZZ_LIBS)
fuzz_formats_fuzz_bundle_LDADD = $(TN_FUZZ_LIBS)
fuzz_formats_fuzz_checkpoint_v1_LDADD = $(TN_FUZZ_LIBS)
fuzz_formats_fuzz_graphdef_LDADD = $(TN_FUZZ_LIBS)
fuzz_formats_fuzz_npy_LDADD = $(TN_FUZZ_LIBS)
fuzz_formats_fuzz_npz_LDADD = $(TN_FUZZ_LIBS)
fuzz_formats_fuzz_objectgraph_LDADD = $(TN_FUZZ_LIBS)
fuzz_formats_fuzz_pbtxt_LDADD = $(TN_FUZZ_LIBS)
fuzz_formats_fuzz_savedmodel_LDADD = $(TN_FUZZ_LIBS)
fuzz_formats_fuzz_table_LDADD = $(TN_FUZZ_LIBS)
# The command's literals.
fuzz_fuzz_literal_SOURCES = fuzz/fuzz_literal.c tools/common/literal.c tools/common/number.c tools/common/print.c tools/common/text.c

EXTRA_DIST += $(TN_FUZZ_SEEDS) fuzz/bytes.h fuzz/memory.h fuzz/runtime.h fuzz/seeds.sh fuzz/table.h
EXTRA_PROGRAMS += $(TN_FUZZERS)

# Targets to run, seconds for each, and the seed (0: random): make fuzz-run FUZZERS=fuzz/fuzz_x FUZZ_SECONDS=600 FUZZ_SEED=7
FUZZERS = $(TN_FUZZERS)
FUZZ_SECONDS = 30
FUZZ_SEED = 0
FUZZ_FLAGS = -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 -seed=$(FUZZ_SEED)

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
