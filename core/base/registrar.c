/* SPDX-License-Identifier: Apache-2.0 */
/* See registrar.h. */
#include <core/base/registrar.h>

_Thread_local tn__registrar *tn__registrar_now;
