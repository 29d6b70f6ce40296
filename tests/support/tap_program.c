/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of test programs without their own. */
#include <tenon/process.h>
#include <conformance/support/tap.h>

int main(int argc, char **argv)
{
  const tap_suite *s = tap_suites();
  int status = tap_main_with(argc, argv, s->file, s->tests, s->n, s->setup, s->teardown);
  tn_join_workers(NULL); /* the leak checker crashes if a thread is about to exit */
  return status;
}
