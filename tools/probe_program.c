/* SPDX-License-Identifier: Apache-2.0 */
/* tenon-probe: tries one plugin for the library that started it, and ends without running what the plugin left for the end. */
#include <unistd.h>

#include <tenon/plugins.h>

int main(void) { _exit(tn_probe_serve()); }
