// SPDX-License-Identifier: GPL-2.0
/* The code of the tracepoints, once. */
#include "orr_device.h"

#define CREATE_TRACE_POINTS
#include "orr_trace.h"
