# SPDX-License-Identifier: Apache-2.0
# Read by make as it is (automake's lines have no conditions of GNU make).
#
# `all`, `check` and the like run a make of their own for everything that they build. A second goal beside them, or a prerequisite
# beside `all`, is built by the first make at the same time: with -j both wrote libcore.a at once. There one goal is made after
# the other; the make that `all` runs still has all jobs.
TN_GOALS_THAT_RUN_MAKE = all check check-am check-TESTS dist distdir distcheck install install-am install-exec install-strip
TN_GOALS_BESIDE_ALL = recheck bench bench-check bench-check-record

ifneq ($(filter $(TN_GOALS_BESIDE_ALL),$(MAKECMDGOALS)),)
.NOTPARALLEL:
else ifneq ($(and $(filter $(TN_GOALS_THAT_RUN_MAKE),$(MAKECMDGOALS)),$(word 2,$(MAKECMDGOALS))),)
.NOTPARALLEL:
endif
