#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs of examples/sessions and examples/saved_model, run as a reader would, and the same calls from C++. Prints TAP.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" examples
echo '[3. 5.]' >sum

for way in plain scoped interactive; do
  run 0 "$build/examples/${way}_demo" && cmp -s out sum && [ ! -s err ]
  is "$way.c adds [1,2] and [2,3]"
  run 0 "$build/examples/${way}_demo" direct && cmp -s out sum
  is "$way.c runs on the named runtime"
  run 1 "$build/examples/${way}_demo" nowhere && [ ! -s out ] && grep -q "'nowhere'" err
  is "$way.c reports a missing runtime"
done

# Models: a folder is run, trained and saved; a graph that was built becomes a folder.
model=$src/tests/data/saved/half_plus_two
printf '1 -> 2.5\n2 -> 3\n5 -> 4.5\n' >wanted
run 0 "$build/examples/saved_model_demo" "$model" && cmp -s out wanted && [ ! -s err ]
is 'saved_model.c calls a SavedModel'
run 1 "$build/examples/saved_model_demo" nowhere && grep -q "'nowhere'" err
is 'saved_model.c names the folder that is missing'
run 0 "$build/examples/signatures_demo" "$model" && grep -q serving_default out
is 'signatures.c lists the signatures'
run 0 "$build/examples/train_demo" "$model" && [ -s out ]
is 'train.c trains a SavedModel'
run 0 "$build/examples/build_demo" && [ -s scale/saved_model.pb ] && [ -s scale/variables/variables.index ]
is 'build.c saves a graph of its own'

# A reader's compiler may be stricter, or one for C++; the library may be built in a way that it
# cannot link.
cat >exception.cc <<'END'
#include <cstdio>
#include <stdexcept>
#include <tenon/tenon.h>
static void scope(tn_graph *graph, const tn_session_options *options, tn_error *err)
{
  TN_SCOPED_SESSION(session, options, graph, err);
  if (session == NULL || tn_session_default() != session) throw 1;
  tn_tensor *value = NULL;
  if (tn_eval_name(NULL, "missing", NULL, NULL, 0, &value, err)) throw std::runtime_error(tn_error_message(err));
}
int main()
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  int good = 0;
  tn_graph_create(&graph, &err);
  tn_session_options_create(&options, &err);
  tn_session_options_set_string(options, "session_name", "once", &err); /* the name can be used again only after the first session has ended */
  for (int i = 0; i < 3; i++) {
    try {
      scope(graph, options, &err);
    } catch (const std::exception &e) {
      good += tn_session_default() == NULL && tn_error_code(&err) == TN_NOT_FOUND;
    } catch (int) {
      std::puts(tn_error_message(&err));
    }
  }
  std::printf("%d\n", good);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return 0;
}
END
flags="-I$build/include -I$src/include -Wall -Wextra -Werror -pedantic-errors"
lib=$build/.libs
if [ -z "${CXX:-}" ]; then
  skip 'an exception ends a scope' 'no C++ compiler'
elif [ ! -e "$lib/libtenon.so" ] || nm -D "$lib/libtenon.so" 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_'; then
  skip 'an exception ends a scope' 'no shared library, or one with sanitizers'
else
  # shellcheck disable=SC2086
  $CXX -std=c++11 $flags exception.cc -o exception -L"$lib" -ltenon >out 2>err &&
    run 0 env LD_LIBRARY_PATH="$lib" ./exception && [ "$(cat out)" = 3 ]
  is 'an exception ends a scope'
fi
for way in plain scoped interactive; do
  # shellcheck disable=SC2086
  ${CC:-cc} -std=c99 $flags -fsyntax-only "$src/examples/sessions/$way.c" >out 2>err
  is "$way.c is C99"
done
echo "1..$n"
