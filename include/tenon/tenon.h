/* SPDX-License-Identifier: Apache-2.0 */
/* All headers that a program needs. Since 0.1 */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/checkpoint.h>
#include <tenon/default.h>
#include <tenon/dlpack.h>
#include <tenon/eager.h>
#include <tenon/graph.h>
#include <tenon/metadata.h>
#include <tenon/model.h>
#include <tenon/options.h>
#include <tenon/plan.h>
#include <tenon/plugins.h>
#include <tenon/process.h>
#include <tenon/session.h>
#include <tenon/status.h>
#include <tenon/tensor.h>

#endif
