/* SPDX-License-Identifier: Apache-2.0 */
#include <bench/model.h>
#include <stdio.h>
#include <tools/common/machine.h>

void model_machine(size_t bytes, int threads)
{
  machine_limits most = { 0 };
  if (!machine_measure(bytes, threads, &most)) model_fail("no memory, or no thread");
  printf("{\"flops\": %.6g, \"bandwidth\": %.6g, \"isa\": \"%s\"}\n", most.flops, most.bandwidth, most.isa);
}
