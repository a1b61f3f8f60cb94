/* SPDX-License-Identifier: MIT */
/**
 * Streams and events. Work of one stream runs in the order of the calls; work of different streams is not
 * ordered unless by events or semaphores. The null stream (stream 0) is an ordinary stream of each device and
 * does not synchronise with others.
 */
#ifndef ORRERY_STREAM_H
#define ORRERY_STREAM_H

#include <orrery/base.h>
#include <orrery/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Streams do not synchronise with the null stream, so both flags mean the same. */
#define orrStreamDefault 0x0u
#define orrStreamNonBlocking 0x1u

/** A stream of the current device. flags: orrStream*. */
ORR_API orrError_t orrStreamCreate(orrStream_t* stream, unsigned flags);
/**
 * A lower number is served first: 1 low, 0 normal (as orrStreamCreate), -1 high, -2 real-time, which is
 * strict and needs CAP_SYS_NICE. Numbers outside of this are taken as the nearest that exists.
 */
ORR_API orrError_t orrStreamCreateWithPriority(orrStream_t* stream, unsigned flags, int priority);
/** The range that this process may use on the current device: *least is 1, *greatest -1 or -2. */
ORR_API orrError_t orrDeviceGetStreamPriorityRange(int* least, int* greatest);

/** How a stream is scheduled. */
typedef struct orrStreamAttributes {
    size_t size;       /**< see ORR_INIT */
    uint32_t flags;    /**< orrStream* */
    int32_t priority;  /**< as of orrStreamCreateWithPriority */
    uint32_t weight;   /**< share of engine time among streams of one priority, 1 .. 1024; 0: 64 */
    uint32_t slice_us; /**< model time before another stream of this priority may take the engine; 0: the
                          firmware's */
    uint32_t limit_us; /**< model time that a kernel may take before it is stopped; 0: 1 s */
    uint32_t reserved; /**< 0 */
    const char* name;  /**< at most 23 printable ASCII characters, for reports and traces; null: made up */
} orrStreamAttributes;
/** attributes: null for all defaults. */
ORR_API orrError_t orrStreamCreateWithAttributes(orrStream_t* stream, const orrStreamAttributes* attributes);
/** Changes priority, weight and slice; attributes->name must be null, limit_us and flags 0. */
ORR_API orrError_t orrStreamSetAttributes(orrStream_t stream, const orrStreamAttributes* attributes);
/** As it was asked for, or the nearest that exists. */
ORR_API orrError_t orrStreamGetPriority(int* priority, orrStream_t stream);

/** What the card has counted for a stream; times are model time in picoseconds. */
typedef struct orrStreamStats {
    size_t size;        /**< see ORR_INIT */
    uint64_t vector_ps; /**< time on vector cores, the sum over the cores */
    uint64_t copy_ps;   /**< time on copy engines */
    uint64_t jobs;      /**< kernels and copies that have finished */
    uint64_t preemptions;
    uint64_t waited_ps; /**< ready, but another stream had the engine */
    uint64_t longest_wait_ps;
} orrStreamStats;
/** What the card has counted for a stream. */
ORR_API orrError_t orrStreamGetStats(orrStreamStats* stats, orrStream_t stream);

/** Waits for its work. A failure of that was told at each wait; it is no failure of this call. */
ORR_API orrError_t orrStreamDestroy(orrStream_t stream);
/**
 * Stops the stream now: when this returns nothing of it runs, its waits end with orrErrorAborted, and so do
 * streams that wait for what it would have signalled. It can be asked, and must be destroyed.
 */
ORR_API orrError_t orrStreamAbort(orrStream_t stream);
/** Waits for all work of the stream; gives the failure that stopped it, if one did. */
ORR_API orrError_t orrStreamSynchronize(orrStream_t stream);
/** orrSuccess: all is done; orrErrorNotReady: not yet; else the failure that stopped it. */
ORR_API orrError_t orrStreamQuery(orrStream_t stream);

#define orrEventDefault 0x0u
/** It is for ordering only: its times cannot be asked. */
#define orrEventDisableTiming 0x2u

/**
 * Other processes can have it too (see orrery/ipc.h): they wait, and the one that made it records, in streams
 * of the device that was current then. Needs orrEventDisableTiming.
 */
#define orrEventInterprocess 0x4u

/** flags: orrEvent*. */
ORR_API orrError_t orrEventCreate(orrEvent_t* event, unsigned flags);
/** Does not wait; who waits for its last record still does. */
ORR_API orrError_t orrEventDestroy(orrEvent_t event);
/** Behind the stream's earlier work. */
ORR_API orrError_t orrEventRecord(orrEvent_t event, orrStream_t stream);
/** Waits for the last record; returns at once if there is none. */
ORR_API orrError_t orrEventSynchronize(orrEvent_t event);
/** orrSuccess: the last record is done, or there is none; orrErrorNotReady: not yet. */
ORR_API orrError_t orrEventQuery(orrEvent_t event);

/** How a stream waits. */
typedef struct orrWaitOptions {
    size_t size;       /**< see ORR_INIT */
    uint32_t flags;    /**< 0 */
    uint32_t reserved; /**< 0 */
    /**
     * The stream stops with orrErrorTimeout when it has waited so long in model time of its card; exact to
     * 100 us, at most 10^15; 0: it waits for ever. While the card has nothing else to do its time runs no
     * faster than the host's.
     */
    uint64_t limit_ns;
} orrWaitOptions;
/** Later work of the stream waits for the event's last record; devices must be the same or linked. options:
 * null for all defaults. */
ORR_API orrError_t orrStreamWaitEvent(orrStream_t stream, orrEvent_t event, const orrWaitOptions* options);

/**
 * Model time between two finished records on one device, in ns with fraction: exact. It is the same in each
 * run if all work between them, and the records, were queued before any of it could begin, as behind a wait
 * for one semaphore, and the card's caches have the same in them; else it also depends on when the host's
 * doorbells arrive, for a launch of microseconds by some tenths.
 * Of records on two devices: orrErrorInvalidValue. What their clocks were apart then nobody knows later;
 * orrDeviceGetClockOffset before and after, and orrEventGetModelTime, say how well they can be compared.
 */
ORR_API orrError_t orrEventElapsedModelTime(double* ns, orrEvent_t start, orrEvent_t end);
/**
 * Host time in ns from the orrEventRecord of `start` to the moment at which a call on `end`
 * (orrEventSynchronize, orrEventQuery, or else this one) first saw that it was finished. Not negative if
 * `end` was recorded after `start`. Earlier work of the stream that was not done yet counts as well.
 */
ORR_API orrError_t orrEventElapsedHostTime(double* ns, orrEvent_t start, orrEvent_t end);
/** Model time of the record in picoseconds since the card's power-on. */
ORR_API orrError_t orrEventGetModelTime(uint64_t* ps, orrEvent_t event);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_STREAM_H */
