# SPDX-License-Identifier: Apache-2.0
TN_PLUGINS += plugins/threaded.la
plugins_threaded_la_SOURCES = plugins/threaded/plugin.c plugins/threaded/settings.c plugins/threaded/settings.h
plugins_threaded_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=threaded
plugins_threaded_la_LDFLAGS = $(TN_PLUGIN_LINK)
EXTRA_LTLIBRARIES += plugins/preloaded/threaded.la
plugins_preloaded_threaded_la_SOURCES = $(plugins_threaded_la_SOURCES)
plugins_preloaded_threaded_la_CPPFLAGS = $(plugins_threaded_la_CPPFLAGS)
plugins_preloaded_threaded_la_LDFLAGS = $(TN_PRELOAD_LINK)
EXTRA_DIST += plugins/threaded/README.md
