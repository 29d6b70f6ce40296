/* SPDX-License-Identifier: Apache-2.0 */
/* The main of a test program that has none of its own. */
#include <tests/support/tap.h>

int main(int argc, char **argv)
{
  const tap_suite *s = tap_suites();
  return tap_main_with(argc, argv, s->file, s->tests, s->n, s->setup, s->teardown);
}
