/* SPDX-License-Identifier: MIT */
/**
 * liborrery: the runtime's C API, in the shape that users of CUDA and HIP know.
 *
 * Threads: every function may be called from any thread at any time; see also orrery/handles.h. The current
 * device is a property of the thread (device 0 at first). Errors: every function returns orrSuccess or a
 * code; what went wrong and what to do about it is in orrGetLastErrorText() of the same thread. A failure of
 * the card or of a kernel shows at the next call that waits for that stream (sticky for the stream until it
 * is destroyed); other streams and processes go on. Only orrErrorDeadlock does not stop a stream: the text
 * shows who waits for whom, and a later wait may succeed.
 *
 * Beside this: orrery/graph.h (work described once and launched many times) and orrery/task.h (work described
 * by its data); orrery/orrery.hpp has owners of all this for C++. Environment: docs/runtime.md.
 */
#ifndef ORRERY_ORRERY_H
#define ORRERY_ORRERY_H

#include <orrery/base.h>
#include <orrery/device.h>
#include <orrery/fabric.h>
#include <orrery/function.h>
#include <orrery/gang.h>
#include <orrery/ipc.h>
#include <orrery/library.h>
#include <orrery/memory.h>
#include <orrery/module.h>
#include <orrery/multicast.h>
#include <orrery/semaphore.h>
#include <orrery/stream.h>

#endif /* ORRERY_ORRERY_H */
