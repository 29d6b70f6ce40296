/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a session, and the order in which they run instructions. */
#ifndef CREW_H
#define CREW_H

#include <tenon/runtime.h>

enum { MOST_THREADS = 64 };

typedef struct crew crew;

/* Opens a crew of `threads` threads, including the one that calls Run. TN_RESOURCE_EXHAUSTED. */
tn_status crew_open(int threads, crew **out, tn_error *err);
void crew_close(crew *c); /* joins its threads; no step runs */

/* Callbacks for tn_kit_scheduler; `user` is the crew. */
void crew_ready(void *user, tn_step *step, const uint32_t *instructions, const float *costs, size_t n);
void crew_wait(void *user, tn_step *step);

#endif
