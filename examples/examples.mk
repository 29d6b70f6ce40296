# SPDX-License-Identifier: Apache-2.0
# Examples: programs that use public headers and link libtenon as a user's program does. `examples/minimal` is the program
# of README.md; tests/tools/command.sh checks that the two are equal. tests/tools/examples.sh runs `examples/sessions`.
TN_DIGITS_FILES = \
  examples/digits/README.md \
  examples/digits/case.json \
  examples/digits/digits.pb \
  examples/digits/expected.npy \
  examples/digits/images.npy \
  examples/digits/labels.npy \
  examples/digits/train.py

noinst_PROGRAMS += examples/digits_demo examples/minimal_demo

examples_digits_demo_SOURCES = examples/digits/digits_demo.c
examples_digits_demo_CPPFLAGS = $(AM_CPPFLAGS) -DDIGITS_DATA='"$(abs_top_srcdir)/examples/digits"'
examples_digits_demo_LDADD = libtenon.la $(TN_MATH_LIBS)

examples_minimal_demo_SOURCES = examples/minimal/minimal.c
examples_minimal_demo_LDADD = libtenon.la

# Prints what quickstart reports about oneDNN.
noinst_PROGRAMS += examples/onednn_demo
examples_onednn_demo_SOURCES = examples/onednn/gain.c
examples_onednn_demo_LDADD = libtenon.la $(TN_MATH_LIBS)

# Three ways to open a session.
noinst_PROGRAMS += examples/plain_demo examples/scoped_demo examples/interactive_demo

examples_plain_demo_SOURCES = examples/sessions/plain.c examples/sessions/sum.h
examples_plain_demo_LDADD = libtenon.la
examples_scoped_demo_SOURCES = examples/sessions/scoped.c examples/sessions/sum.h
examples_scoped_demo_LDADD = libtenon.la
examples_interactive_demo_SOURCES = examples/sessions/interactive.c examples/sessions/sum.h
examples_interactive_demo_LDADD = libtenon.la

# SavedModels: the program of README.md, and those that docs/models.md quotes.
noinst_PROGRAMS += examples/saved_model_demo examples/signatures_demo examples/train_demo examples/build_demo

examples_saved_model_demo_SOURCES = examples/saved_model/saved_model.c
examples_saved_model_demo_LDADD = libtenon.la
examples_signatures_demo_SOURCES = examples/saved_model/signatures.c
examples_signatures_demo_LDADD = libtenon.la
examples_train_demo_SOURCES = examples/saved_model/train.c
examples_train_demo_LDADD = libtenon.la
examples_build_demo_SOURCES = examples/saved_model/build.c
examples_build_demo_LDADD = libtenon.la

# Installed beside the pages that refer to them. The program in examples/static is fully statically linked:
# tests/repo/check-static.sh builds it.
exampledir = $(docdir)/examples
exampledigitsdir = $(exampledir)/digits
dist_exampledigits_DATA = $(TN_DIGITS_FILES) examples/digits/digits_demo.c
exampleminimaldir = $(exampledir)/minimal
dist_exampleminimal_DATA = examples/minimal/minimal.c
examplesavedmodeldir = $(exampledir)/saved_model
dist_examplesavedmodel_DATA = examples/saved_model/README.md examples/saved_model/build.c \
  examples/saved_model/saved_model.c examples/saved_model/signatures.c examples/saved_model/train.c
examplesessionsdir = $(exampledir)/sessions
dist_examplesessions_DATA = examples/sessions/README.md examples/sessions/interactive.c examples/sessions/plain.c \
  examples/sessions/scoped.c examples/sessions/sum.h
examplestaticdir = $(exampledir)/static
dist_examplestatic_DATA = examples/static/README.md examples/static/classify.c
