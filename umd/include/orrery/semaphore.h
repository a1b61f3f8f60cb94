/* SPDX-License-Identifier: MIT */
/** Timeline semaphores: 64-bit values that only grow, which streams and the host signal and wait for. */
#ifndef ORRERY_SEMAPHORE_H
#define ORRERY_SEMAPHORE_H

#include <orrery/base.h>
#include <orrery/handles.h>
#include <orrery/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Values are below 2^63: the others say that a semaphore has failed. */
#define ORR_SEMAPHORE_VALUE_MAX 0x7fffffffffffffffull

/** Other processes can have it too: see orrery/ipc.h. */
#define orrSemaphoreInterprocess 0x1u
/** In the current device's memory; its value is 0. flags: 0 or orrSemaphoreInterprocess. */
ORR_API orrError_t orrSemaphoreCreate(orrSemaphore_t* semaphore, unsigned flags);
/** For error texts: at most 63 characters; null or empty takes the name away. */
ORR_API orrError_t orrSemaphoreSetName(orrSemaphore_t semaphore, const char* name);
/**
 * Streams that wait for more than somebody was told to signal stop with orrErrorAbandoned; but not those of a
 * semaphore that other processes have too, as these may signal it yet.
 */
ORR_API orrError_t orrSemaphoreDestroy(orrSemaphore_t semaphore);

/** When all earlier work of the stream is done. From a stream of a linked device it crosses the link behind
 * that work. */
ORR_API orrError_t orrStreamSignalSemaphore(orrStream_t stream, orrSemaphore_t semaphore, uint64_t value);
/** Later work of the stream waits for the value. Both must be of one device. options: null for all defaults.
 */
ORR_API orrError_t orrStreamWaitSemaphore(orrStream_t stream, orrSemaphore_t semaphore, uint64_t value,
                                          const orrWaitOptions* options);

/** From the host. */
ORR_API orrError_t orrSemaphoreSignal(orrSemaphore_t semaphore, uint64_t value);
/** For orrSemaphoreWait: as long as it takes. */
#define ORR_NO_LIMIT 0xffffffffffffffffull
/**
 * The calling thread waits until the semaphore has the value, at most limit_ns of the host's time:
 * orrErrorTimeout then, also at once with 0. orrErrorAbandoned when nobody is left who may signal it; the
 * cause when it has failed. orrErrorDeadlock when only streams would that wait in a circle, of whichever
 * processes, if this one shares a semaphore: nothing is stopped, and another thread may signal it yet.
 */
ORR_API orrError_t orrSemaphoreWait(orrSemaphore_t semaphore, uint64_t value, uint64_t limit_ns);
/** orrErrorAbandoned if nobody is left who may signal it (see below); *value is valid then too. */
ORR_API orrError_t orrSemaphoreGetValue(uint64_t* value, orrSemaphore_t semaphore);

/**
 * Says that the stream may signal the semaphore. When the last stream for which that was said has stopped, is
 * destroyed or removed, nobody is left: streams that wait for more than the value stop with
 * orrErrorAbandoned, or with what the last stream stopped with. Without this a semaphore waits for ever, as
 * the host, or a stream to come, may signal it. What a stream has yet to do fails its semaphores in any case
 * when it stops.
 */
ORR_API orrError_t orrSemaphoreAddSignaller(orrSemaphore_t semaphore, orrStream_t stream);
/** Takes back what orrSemaphoreAddSignaller said. */
ORR_API orrError_t orrSemaphoreRemoveSignaller(orrSemaphore_t semaphore, orrStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_SEMAPHORE_H */
