/* SPDX-License-Identifier: Apache-2.0 */
/* Undoes the side effects of an OpenCL driver on the process (P-101). */
#ifndef GPU_DEVICE_DRIVER_H
#define GPU_DEVICE_DRIVER_H

#include <signal.h>

/* Signals are blocked on this thread, so that threads which the driver makes block them, too. */
void gpu_signals_block(sigset_t *before);
void gpu_signals_restore(const sigset_t *before);

/* Around the calls of init, which runs alone: also restores signal handlers, the signal stack and the
 * environment. Drivers with a compiler handle the signals that end a process, to report where the compiler
 * was. */
typedef struct gpu_process gpu_process;
gpu_process *gpu_process_keep(void); /* NULL without memory: then nothing is undone */
void gpu_process_restore(gpu_process *kept);

#endif
