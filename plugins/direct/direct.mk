# SPDX-License-Identifier: Apache-2.0
TN_PLUGINS += plugins/direct.la
plugins_direct_la_SOURCES = plugins/direct/plugin.c
plugins_direct_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=direct
plugins_direct_la_LDFLAGS = $(TN_PLUGIN_LINK)
EXTRA_LTLIBRARIES += plugins/preloaded/direct.la
plugins_preloaded_direct_la_SOURCES = $(plugins_direct_la_SOURCES)
plugins_preloaded_direct_la_CPPFLAGS = $(plugins_direct_la_CPPFLAGS)
plugins_preloaded_direct_la_LDFLAGS = $(TN_PRELOAD_LINK)
EXTRA_DIST += plugins/direct/README.md
