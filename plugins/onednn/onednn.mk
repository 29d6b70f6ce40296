# SPDX-License-Identifier: Apache-2.0
# Built if libdnnl is available; otherwise the library's own kernels do all the work.
EXTRA_DIST += plugins/onednn/README.md
if HAVE_ONEDNN
TN_PLUGINS += plugins/onednn.la
plugins_onednn_la_SOURCES = \
  plugins/onednn/call.c \
  plugins/onednn/careful.c \
  plugins/onednn/columns.c \
  plugins/onednn/convolution.c \
  plugins/onednn/engine.c \
  plugins/onednn/onednn.h \
  plugins/onednn/parts.c \
  plugins/onednn/plugin.c \
  plugins/onednn/pooling.c \
  plugins/onednn/post_ops.c \
  plugins/onednn/product.c \
  plugins/onednn/rows.c \
  plugins/onednn/weights.c \
  plugins/onednn/window.c \
  plugins/onednn/winograd.c
plugins_onednn_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=onednn
plugins_onednn_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_onednn_la_LIBADD = -ldnnl -lgomp -lm
EXTRA_LTLIBRARIES += plugins/preloaded/onednn.la
plugins_preloaded_onednn_la_SOURCES = $(plugins_onednn_la_SOURCES)
plugins_preloaded_onednn_la_CPPFLAGS = $(plugins_onednn_la_CPPFLAGS)
plugins_preloaded_onednn_la_LDFLAGS = $(TN_PRELOAD_LINK)
endif
