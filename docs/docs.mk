# SPDX-License-Identifier: Apache-2.0
# Manual pages, which are installed, and the pages of docs/, which a release contains.
dist_man_MANS = \
  docs/tenon-conformance.1 \
  docs/tenon-plugin.7 \
  docs/tenon.1

# Pages for users and plugin authors without the sources, installed with the rules that the texts cite.
dist_doc_DATA = \
  docs/eager.md \
  docs/formats.md \
  docs/models.md \
  docs/numerics.md \
  docs/performance.md \
  docs/plugin-guide.md \
  docs/plugins.md \
  docs/tenon.md
docguidedir = $(docdir)/plugin-guide
dist_docguide_DATA = \
  docs/plugin-guide/callbacks.md \
  docs/plugin-guide/errors.md \
  docs/plugin-guide/kernels.md \
  docs/plugin-guide/kit.md \
  docs/plugin-guide/packaging.md
docimagesdir = $(docdir)/images
dist_docimages_DATA = \
  docs/images/compare.svg \
  docs/images/networks.svg \
  docs/images/digits.svg \
  docs/images/eager.svg \
  docs/images/plugin-life.svg \
  docs/images/roofline.svg \
  docs/images/timeline.svg
docspecdir = $(docdir)/spec
dist_docspec_DATA = \
  docs/spec/plugin-abi.md \
  docs/spec/session-semantics.md

TN_DOC_FILES = \
  docs/README.md \
  docs/design.md \
  docs/internals/README.md \
  docs/internals/base.md \
  docs/internals/compile.md \
  docs/internals/eager.md \
  docs/internals/exec.md \
  docs/internals/formats.md \
  docs/internals/graph.md \
  docs/internals/host.md \
  docs/internals/kit.md \
  docs/internals/layout.md \
  docs/internals/model.md \
  docs/internals/ops.md \
  docs/internals/plan.md \
  docs/internals/pool.md \
  docs/internals/registry.md \
  docs/internals/resource.md \
  docs/internals/session.md \
  docs/internals/tensor.md

EXTRA_DIST += $(TN_DOC_FILES)
