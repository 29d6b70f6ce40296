# SPDX-License-Identifier: Apache-2.0
# Included by make, not by automake, which does not support variables of targets.
#
# tests/plugins/NAME.c becomes a module of its own: a plugin NAME that sees public headers only.
tests/plugins/%.lo: AM_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=$(*F)
