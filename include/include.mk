# SPDX-License-Identifier: Apache-2.0
# Public headers, one a line. Each must compile alone; make check tries it.
tenoninclude_HEADERS = \
  include/tenon/default.h \
  include/tenon/dlpack.h \
  include/tenon/eager.h \
  include/tenon/graph.h \
  include/tenon/host.h \
  include/tenon/kit.h \
  include/tenon/metadata.h \
  include/tenon/op.h \
  include/tenon/options.h \
  include/tenon/plan.h \
  include/tenon/plugins.h \
  include/tenon/process.h \
  include/tenon/resource.h \
  include/tenon/rewrite.h \
  include/tenon/runtime.h \
  include/tenon/session.h \
  include/tenon/status.h \
  include/tenon/tenon.h \
  include/tenon/tensor.h \
  include/tenon/types.h

# Made by configure from version.h.in.
nodist_tenoninclude_HEADERS = include/tenon/version.h
