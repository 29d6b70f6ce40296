# SPDX-License-Identifier: Apache-2.0
# Manual pages, which are installed, and the pages of docs/, which a release carries.
dist_man_MANS = \
  docs/tenon-conformance.1 \
  docs/tenon.1

TN_DOC_FILES = \
  docs/README.md \
  docs/design.md \
  docs/formats.md \
  docs/images/compare.svg \
  docs/images/digits.svg \
  docs/images/timeline.svg \
  docs/internals/base.md \
  docs/internals/exec.md \
  docs/internals/formats.md \
  docs/internals/graph.md \
  docs/internals/host.md \
  docs/internals/ops.md \
  docs/internals/plan.md \
  docs/internals/registry.md \
  docs/internals/resource.md \
  docs/internals/session.md \
  docs/internals/tensor.md \
  docs/numerics.md \
  docs/performance.md \
  docs/plugins.md \
  docs/spec/plugin-abi.md \
  docs/spec/session-semantics.md \
  docs/tenon.md

EXTRA_DIST += $(TN_DOC_FILES)
