/* SPDX-License-Identifier: Apache-2.0 */
/* The main of a test program that has none of its own. */
#include <tenon/process.h>
#include <conformance/support/tap.h>

int main(int argc, char **argv)
{
  const tap_suite *s = tap_suites();
  int status = tap_main_with(argc, argv, s->file, s->tests, s->n, s->setup, s->teardown);
  tn_join_workers(NULL); /* a thread that is about to end makes the search for leaks crash */
  return status;
}
