/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/threads/stop.h>

_Thread_local const tn__stop *tn__stop_now TN__THREAD_WORD;
