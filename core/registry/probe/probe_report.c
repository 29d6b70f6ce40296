/* SPDX-License-Identifier: Apache-2.0 */
/* Reports from a probe process to its parent. The loader calls tn__probe_reached in every process; it does nothing
 * outside a probe. The two variables are set once, before the plugin is opened, and so need no lock. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <core/registry/probe/probe.h>

static bool probing;
static char nonce[TN_PROBE_NONCE + 1];

bool tn__in_probe(void) { return probing; }

const char *tn__probe_nonce(void) { return nonce; }

void tn__probe_started(const char *text)
{
  memcpy(nonce, text, sizeof(nonce));
  probing = true;
}

void tn__probe_write(const char *data, size_t size)
{
  while (size > 0) {
    ssize_t n = write(TN_PROBE_FD, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return; /* the parent has ended */
    data += n;
    size -= (size_t)n;
  }
}

void tn__probe_reached(tn__step step)
{
  char line[TN_PROBE_NONCE + 20];
  if (!probing) return;
  int n = tn__snprintf(line, sizeof(line), "%s S %d\n", nonce, (int)step);
  tn__probe_write(line, (size_t)n);
}
