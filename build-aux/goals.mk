# SPDX-License-Identifier: Apache-2.0
# Included by make, not by automake, which does not support GNU make's conditionals.
#
# `all`, `check` and the like run another make for everything that they build. A second goal on the command line, or a
# prerequisite beside `all`, is built by the first make at the same time, and with -j both write libcore.a at once. In these
# cases goals are made one after the other; the make that `all` runs still uses all jobs.
TN_GOALS_THAT_RUN_MAKE = all check check-am check-TESTS dist distdir distcheck install install-am install-exec install-strip
TN_GOALS_BESIDE_ALL = recheck bench bench-check bench-check-record

ifneq ($(filter $(TN_GOALS_BESIDE_ALL),$(MAKECMDGOALS)),)
.NOTPARALLEL:
else ifneq ($(and $(filter $(TN_GOALS_THAT_RUN_MAKE),$(MAKECMDGOALS)),$(word 2,$(MAKECMDGOALS))),)
.NOTPARALLEL:
endif
