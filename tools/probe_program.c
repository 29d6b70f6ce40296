/* SPDX-License-Identifier: Apache-2.0 */
/* tenon-probe: probes one plugin for the library that started it. Exits without running the plugin's exit handlers. */
#include <unistd.h>

#include <tenon/plugins.h>

int main(void) { _exit(tn_probe_serve()); }
