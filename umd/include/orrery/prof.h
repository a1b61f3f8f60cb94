/* SPDX-License-Identifier: MIT */
/**
 * Profiling: who subscribes is told of each call of this API, with its parameters and result, and of the
 * ranges and markers of the program. A tool in a library of its own is loaded by the environment
 * (ORR_PROF_TOOL), so that no program has to be built for it. docs/profiling-api.md shows how one is written.
 *
 * Nothing is told of the functions of this header. When nobody has subscribed a call costs one load more.
 *
 * Threads: callbacks come on the thread that makes the call, from many threads at a time. A callback may call
 * the API: of what its thread does meanwhile its own subscription is told nothing, and others are. It ends
 * in a return: an exception or longjmp() out of it ends the process or worse. While it runs its thread's call
 * waits, and nobody else; but StepDone of a host node or host task comes on a thread of the library's before
 * what comes behind it goes on, so it must not wait for work, and what it takes the graph takes.
 *
 * After fork() the subscriptions are in the child as well.
 *
 * Enumerations get values, and structures fields at their ends, with new versions: a tool passes over values
 * that it does not know, and looks at `size` before it reads a field that its oldest library may not have.
 */
#ifndef ORRERY_PROF_H
#define ORRERY_PROF_H

#include <orrery/base.h>
#include <orrery/device.h>
#include <orrery/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orrProfSubscription_st* orrProfSubscription_t;
/** Whose ranges and markers they are; null: the program's own. It lives as long as the process. */
typedef struct orrProfDomain_st* orrProfDomain_t;

/** What happened. */
typedef enum orrProfKind {
    orrProfEnter = 1,      /**< a call begins */
    orrProfLeave = 2,      /**< it ends; told to those who were told of its beginning */
    orrProfRangeBegin = 3, /**< orrProfRangePush */
    orrProfRangeEnd = 4,   /**< orrProfRangePop */
    orrProfMarker = 5,     /**< orrProfMark */
    orrProfWorkDone = 6,   /**< a card has done something for a stream: params is an orrProfWork */
    orrProfWorkLost = 7,  /**< there was more of that card than could be told: an orrProfWork says how much */
    orrProfSampled = 8,   /**< a card's counters at a moment: params is an orrProfSample */
    orrProfPcSampled = 9, /**< where a vector core was in a kernel: params is an orrProfPcSample */
    orrProfStepDone = 10, /**< a part of what one call does has been done: params is an orrProfStep */
    orrProfSignalDone = 11,   /**< a card has signalled a semaphore: params is an orrProfSignal */
    orrProfStreamMarker = 12, /**< a stream has come to a marker: params is an orrProfStreamMark */
    orrProfRangeDone = 13,    /**< all that was submitted in a range is over: params is an orrProfRangeWork */
} orrProfKind;

/** What a subscriber wants: a sum of these. */
#define orrProfWantCalls 1u /* orrProfEnter, orrProfLeave */
/* orrProfRangeBegin, orrProfRangeEnd, orrProfMarker; beside orrProfWantWork also orrProfStreamMarker */
#define orrProfWantRanges 2u
#define orrProfWantWork 4u     /* orrProfWorkDone, orrProfWorkLost: of what is submitted from now on */
#define orrProfWantCounters 8u /* beside orrProfWantWork: with what kernels, copies and fills did */
#define orrProfWantSamples 16u /* orrProfSampled, which orrProfStartSamples asks for */
/* beside orrProfWantWork: orrProfPcSampled, which orrProfStartPcSampling asks for */
#define orrProfWantPcs 32u
/* orrProfStepDone of what is submitted from now on; steps of cards only beside orrProfWantWork */
#define orrProfWantSteps 64u
/* beside orrProfWantWork: orrProfSignalDone of what is submitted from now on */
#define orrProfWantSignals 128u
/* beside orrProfWantWork: orrProfRangeDone of ranges that begin from now on; beside orrProfWantCounters with
 * what was counted */
#define orrProfWantRangeWork 256u

/** What a packet of a stream was. */
typedef enum orrProfOperation {
    orrProfOperationOther = 0,
    orrProfOperationCopy = 1,
    orrProfOperationFill = 2,
    orrProfOperationKernel = 3, /**< the record's name is the kernel's */
    orrProfOperationWait = 4,   /**< for a semaphore or an event; one that found it there is not told */
} orrProfOperation;

typedef enum orrProfOutcome {
    orrProfOutcomeDone = 0,
    orrProfOutcomePreempted = 1, /**< a part of it: another part follows */
    orrProfOutcomeFailed = 2,    /**< or was aborted */
} orrProfOutcome;

/** Whose memory a copy reads or writes, if it is no device of this process. */
typedef enum orrProfPlace {
    orrProfPlaceHost = -1,      /**< pinned memory, the library's own too */
    orrProfPlaceElsewhere = -2, /**< another machine's, or a multicast */
    orrProfPlaceUnknown = -3,   /**< of a list with several, or not a copy */
} orrProfPlace;

/** Who ended a wait. */
typedef enum orrProfFrom {
    orrProfFromUnknown = 0,
    orrProfFromStream = 1,  /**< a stream of this process, also of another device */
    orrProfFromHost = 2,    /**< this process: orrSemaphoreSignal */
    orrProfFromOutside = 3, /**< nobody of this process: another one, or another machine */
} orrProfFrom;

/**
 * What the hardware counted of a kernel, a copy or a fill, or of a part of one that was preempted, and of
 * nothing else that ran beside it. docs/counters.md has what each means, under vector_... or copy_...; of
 * copies and fills all that is not said to be theirs is 0. `size` ends in front of the first that the card,
 * or its driver, does not count.
 */
typedef struct orrProfWorkCounters {
    size_t size;        /**< see ORR_INIT */
    uint64_t cores;     /**< different vector cores that ran it */
    uint64_t busy_ps;   /**< vector cores' time, summed over them; the copy engine's, of copies and fills */
    uint64_t vram_read; /**< bytes of the card's memory, whole lines of 64, also of copies and fills */
    uint64_t vram_written; /**< also of copies and fills */
    uint64_t host_read;    /**< bytes of host memory, also of copies and fills */
    uint64_t host_written; /**< also of copies and fills */
    uint64_t link_read;    /**< bytes of other cards' memory, also of copies and fills */
    uint64_t link_written; /**< also of copies and fills */
    uint64_t moved;        /**< bytes that a copy or fill moved; 0 of kernels */
    uint64_t queued_ps;    /**< from its descriptor at the engine to its first work-group on a core */
    uint64_t groups;
    uint64_t items;
    uint64_t instructions;
    uint64_t latency_ps; /**< of busy_ps, as the next three */
    uint64_t bandwidth_ps;
    uint64_t link_ps;
    uint64_t launch_ps;
    uint64_t barriers;
    uint64_t simd_int;
    uint64_t simd_fp;
    uint64_t simd_moves;
    uint64_t simd_loads;
    uint64_t simd_stores;
    uint64_t simd_config;
    uint64_t lanes_active;
    uint64_t lanes;
    uint64_t flops_f16;
    uint64_t flops_f32;
    uint64_t flops_f64;
    uint64_t tlb_lookups;
    uint64_t tlb_misses;
    uint64_t tlb_walked;
    uint64_t copy_setup_ps; /**< of a copy's or fill's busy_ps, as the next eight; the rest: moving */
    uint64_t copy_rows_ps;
    uint64_t copy_vram_ps;
    uint64_t copy_pcie_ps;
    uint64_t copy_latency_ps;
    uint64_t copy_translation_ps;
    uint64_t copy_link_ps;
    uint64_t copy_credit_ps;
    uint64_t copy_peer_ps;
    uint64_t link_ports; /**< of copies: bit n: bytes of it went through link port n */
    uint64_t pause_ps;   /**< of busy_ps: pauses between looks whether others have come (orr::grid_barrier) */
} orrProfWorkCounters;

/**
 * What a card has done, and when, in its own model time, which is the same as if nobody wanted to know. It is
 * told some milliseconds later, by a thread of the library's or one that destroys the stream or calls
 * orrProfFlush(), in the order in which it ended. Of WorkLost only device and lost are set.
 */
typedef struct orrProfWork {
    size_t size; /**< see ORR_INIT */
    int device;
    uint32_t operation;      /**< an orrProfOperation */
    uint64_t stream;         /**< a number of the stream that no other one of the process has */
    const char* stream_name; /**< for people; lives until the callback returns */
    uint64_t index;          /**< of the packet in its stream; parts of one have the same */
    uint64_t begin_ps;       /**< the engine began, or the wait */
    uint64_t end_ps;
    uint64_t used_ps; /**< engine time, summed over vector cores; 0 of waits */
    /** When the library gave it to the stream, CLOCK_MONOTONIC in nanoseconds. */
    uint64_t submitted_ns;
    uint64_t outcome;    /**< an orrProfOutcome */
    uint64_t bytes;      /**< of copies and fills: how many; 0 of others */
    int32_t source;      /**< of copies: the device whose memory is read, or an orrProfPlace */
    int32_t destination; /**< of copies and fills: the device whose memory is written, or an orrProfPlace */
    uint64_t groups;     /**< of kernels: work-groups; 0 of others */
    uint32_t items;      /**< of kernels: work-items of each group */
    uint32_t from;       /**< of waits: an orrProfFrom */
    /** Of waits, FromStream: whose packets below from_index had to be done, which is a `stream` of others. */
    uint64_t from_stream;
    uint64_t from_index;
    const char* from_name; /**< of waits: what orrSemaphoreSetName says, or null; lives as stream_name */
    /**
     * What it did; lives until the callback returns. Null: a wait, nobody wants counters
     * (orrProfWantCounters) or wanted them when it began, the card cannot count, or so much has happened
     * since that it was lost.
     */
    const orrProfWorkCounters* counters;
    /**
     * Of WorkLost: how many kernels, copies and fills, and signals that somebody wanted, since the last one
     * are never told, or not to their end; 0 of others. 0 of WorkLost: nobody knows of any, but of waits or
     * of parts that were preempted.
     */
    uint64_t lost;
    uint64_t semaphore; /**< of waits: which one, as orrProfSignal has it; 0: not known */
    uint64_t value;     /**< of waits: what was waited for */
    uint32_t reduces;   /**< of copies: 1: it combines what it reads with what its destination has, which it
                             reads as well (orrMemcpyReduce) */
    uint32_t reserved;  /**< 0 */
    /**
     * CLOCK_MONOTONIC: it had ended by then, and nobody knows of an earlier moment: a call that waits for
     * the stream found it done, or the library read the card's record of it.
     */
    uint64_t ended_by_ns;
} orrProfWork;

/**
 * A semaphore was signalled on a card, by a stream (orrStreamSignalSemaphore, an event, what the library
 * orders streams, graphs and ranks by) or by the host (orrSemaphoreSignal). Told among the card's work, in
 * the order in which it happened; the record's name is "signal". An orrProfWork that waits for it has the
 * same semaphore and, as from_stream and from_index, the same stream and index.
 */
typedef struct orrProfSignal {
    size_t size; /**< see ORR_INIT */
    int device;
    uint32_t outcome; /**< orrProfOutcomeDone, or Failed: the stream stopped, and the semaphore failed */
    uint64_t stream;  /**< as orrProfWork has it; 0: the host */
    const char* stream_name; /**< lives until the callback returns */
    uint64_t index;          /**< of the packet in its stream */
    uint64_t time_ps; /**< when the card carried it out; another card's semaphore has it a link later */
    uint64_t submitted_ns;
    uint64_t
        semaphore; /**< a number that no other one of this process has; an event has several in its life */
    uint64_t value;
    int32_t memory;   /**< the device in whose memory the semaphore is, or an orrProfPlace: others' are over
                         links */
    uint32_t waiters; /**< how many streams' waits of this card it ended at once */
    const char* semaphore_name; /**< what orrSemaphoreSetName says, or null; lives as stream_name */
} orrProfSignal;

/**
 * A stream has come to where orrProfMarkStream was called: the record has name and domain as the program gave
 * them, and correlation, external and thread as they were there. Told when the card has done all that the
 * stream was given before, behind that work. One that the stream does not come to, as it stops before, is not
 * told.
 */
typedef struct orrProfStreamMark {
    size_t size; /**< see ORR_INIT */
    int device;
    uint32_t reserved; /**< 0 */
    uint64_t stream;   /**< as orrProfWork has it */
    const char* stream_name;
    uint64_t index; /**< of the packet behind it */
    /**
     * Model time at which the last of what was before it in the stream had ended: kernels, copies, fills,
     * waits that waited, and signals. 0: nothing was, or the card's records of it were lost.
     */
    uint64_t time_ps;
    uint64_t submitted_ns; /**< when it was marked, CLOCK_MONOTONIC */
} orrProfStreamMark;

/**
 * What cards did for a range (orrProfRangePush): for the kernels, copies and fills that its thread submitted
 * while it was open, with those in ranges of the same domain within it. It is told once, when the range has
 * ended and all of that has been told as orrProfWork, or will never be; behind that work, on any thread. The
 * sums are exactly those of these records. The record has the range's name (its first 1,023 bytes), number,
 * domain and depth, and the correlation, external number and thread that it began with.
 *
 * Not told: ranges that began before anybody wanted it (a second subscriber is told of those that are open
 * for the first one, with work that ended before he came) or before a fork(). Those that the main thread has
 * open end with it, those of other threads when they end; the process may end before. At most 65,536 are open
 * or not told yet at a time: `untold` counts those beyond, and their work is in the ranges around.
 */
typedef struct orrProfRangeWork {
    size_t size;       /**< see ORR_INIT */
    uint64_t around;   /**< number of the range of the same domain around it; 0: none that is told */
    uint64_t begin_ns; /**< of orrProfRangePush, CLOCK_MONOTONIC */
    uint64_t end_ns;   /**< of orrProfRangePop, or of the thread's end */
    uint32_t ended;    /**< 1: by orrProfRangePop; 0: its thread ended while it was open */
    uint32_t reserved; /**< 0 */
    uint64_t kernels;  /**< that ended; one that was preempted is one */
    uint64_t copies;
    uint64_t fills;
    uint64_t failed;    /**< of these three: as their orrProfOutcome says */
    uint64_t missing;   /**< kernels, copies and fills whose end is not among these, as its record was lost,
                             or their stream stopped before. Where records were lost, parts of one
                             that was preempted may be missing as well, and nobody knows */
    uint64_t kernel_ps; /**< model time of kernels from begin to end, summed */
    uint64_t copy_ps;   /**< likewise of copies and fills */
    uint64_t used_ps;   /**< engine time, as orrProfWork has it */
    uint64_t records;   /**< how many orrProfWork these were: one that was preempted has several */
    uint64_t counted;   /**< how many of them had counters: what others did is in no counter */
    uint64_t untold;    /**< ranges that began since the one told before and are told to nobody */
    /**
     * Sums, and how far all of them were known (`size`); but `cores` is the most that one of them had, and
     * link_ports those of any. Null: counted is 0. Lives until the callback returns.
     */
    const orrProfWorkCounters* counters;
} orrProfRangeWork;

/** What a step is of. */
typedef enum orrProfOwner {
    orrProfOwnerGraph = 1, /**< an orrGraphExec_t */
    orrProfOwnerTasks = 2, /**< an orrTaskGraph_t */
    orrProfOwnerGroup = 3,
} orrProfOwner;

typedef enum orrProfStepKind {
    orrProfStepKernel = 1,
    orrProfStepCopy = 2, /**< of a task graph: of data that the task needs there */
    orrProfStepFill = 3,
    orrProfStepHost = 4,  /**< a host node or a host task */
    orrProfStepMerge = 5, /**< of a reduction of a task graph */
    orrProfStepBarrier = 6,
    orrProfStepBroadcast = 7,
    orrProfStepGather = 8,
    orrProfStepReduction = 9, /**< a copy that combines (orrMemcpyReduce) */
} orrProfStepKind;

/**
 * A node of a graph that was launched, a task or a transfer of a task graph, a member's part in a barrier, a
 * broadcast or a gather of a group. The record's name is the kernel's, the task's (of a transfer: of the task
 * that needs it), or "copy", "reduction", "fill", "host node", "barrier", "broadcast", "gather"; its
 * correlation, external and thread are those of the call that asked for it: orrGraphLaunch, orrTaskSubmit,
 * orrGroupBarrier. Those of cards are told behind the orrProfWork of their packets. Not told: steps that fail
 * or are not reached, nodes without work, what only orders others.
 */
typedef struct orrProfStep {
    size_t size;       /**< see ORR_INIT */
    uint32_t kind;     /**< an orrProfStepKind */
    uint32_t of;       /**< an orrProfOwner */
    uint64_t owner;    /**< no other of the process has it; of a group: all its members have the same */
    uint64_t round;    /**< of graphs: which launch, from 1; of groups: which barrier in streams, or which
                            other call, from 1; of task graphs 0 */
    uint64_t number;   /**< of graphs: of the node, in the order in which they were added; of task graphs: the
                            task; of groups: the rank */
    int32_t device;    /**< that did it; -1: the host */
    uint32_t lane;     /**< of graphs: those of one lane come one after the other; of task graphs: likewise on
                            one device; of groups 0 */
    uint32_t members;  /**< of groups; else 0 */
    uint32_t reserved; /**< 0 */
    uint64_t stream;   /**< of cards: as orrProfWork has it; of the host: 0, as the next four */
    uint64_t first_index, end_index; /**< its packets, without the last */
    /**
     * Model time in which the card did these packets. Of a barrier: from its first wait to the end of its
     * last one; both are 0 if it did not wait, as all others were there. Also 0: lost.
     */
    uint64_t begin_ps, end_ps;
    uint64_t begin_ns, end_ns; /**< of the host: CLOCK_MONOTONIC; of cards 0 */
} orrProfStep;

/**
 * One of these; all that it points to lives until the callback returns. Calls have numbers, and a struct of
 * parameters each, in <orrery/prof_calls.h>, which is made from the headers: orrProfCall_orrMalloc and
 * orrMalloc_params. A number is never given to another call.
 */
typedef struct orrProfRecord {
    size_t size;   /**< see ORR_INIT */
    uint32_t kind; /**< an orrProfKind */
    uint32_t call; /**< of Enter and Leave: an orrProfCall_... */
    /** Of the call, "orrMalloc", of the kernel or "copy", "reduction" (a copy that combines,
     * orrMemcpyReduce), "fill", "wait" of work, or as the program gave it to the range or marker; null: the
     * end of a range.
     */
    const char* name;
    /** Of Enter and Leave: its orr..._params, null if it has none. What those point to is the program's. */
    const void* params;
    /** Of Leave: what it gives back, an orrError_t, or a const char* where the call gives a text. */
    const void* result;
    /** Of Enter and Leave: the call's number in this process, from 1. Of others: of the call around them, of
     * work: the one that submitted it. 0: there is none. */
    uint64_t correlation;
    uint64_t external; /**< the thread's innermost orrProfExternalPush; 0: none */
    uint64_t thread;   /**< as the system names it: gettid(); of work: that submitted it */
    uint64_t host_ns;  /**< CLOCK_MONOTONIC; of work: when the library read it from the card */
    /** Of Enter and Leave: a word of the subscriber's, 0 at first, the same one in both. Null in others. */
    uint64_t* data;
    const char* domain; /**< of ranges and markers: the domain's name; null: the program's own */
    uint64_t depth;     /**< of ranges: how many of the domain the thread has open around it */
    uint64_t range;     /**< of ranges: a number, from 1; 0: there is no orrProfRangeWork of it */
} orrProfRecord;

typedef void (*orrProfCallback)(void* user, const orrProfRecord* record);

/** How many subscriptions there can be at a time. */
#define orrProfMaxSubscriptions 8u

typedef struct orrProfOptions {
    size_t size; /**< see ORR_INIT */
    /** orrProfWant...; 0: all but orrProfWantCounters, which cost others' records room, and
     * orrProfWantRangeWork. */
    uint64_t want;
} orrProfOptions;
/**
 * options may be null. Of work that had ended before it is told nothing, as long as no callback that is told
 * of work keeps others waiting. orrErrorOutOfMemory: there are orrProfMaxSubscriptions already.
 */
ORR_API orrError_t orrProfSubscribe(orrProfSubscription_t* subscription, orrProfCallback callback, void* user,
                                    const orrProfOptions* options);
/**
 * When it returns orrSuccess none of its callbacks runs any more, but the one that made this call. It waits
 * for those that run, 10 s at most: orrErrorTimeout says that one still runs. No other begins then, and the
 * call can be made again.
 */
ORR_API orrError_t orrProfUnsubscribe(orrProfSubscription_t subscription);

/**
 * All that cards have done until now has been told when it returns. orrErrorNotSupported: a card, or its
 * driver, tells nothing; others do. orrErrorTimeout: another thread's callback has kept it waiting for
 * 10 s. In a callback that is told of work it does nothing; in another, all is told a little later.
 */
ORR_API orrError_t orrProfFlush(void);

/**
 * A card's counters at a moment of its model time, which count since its power-on: of the whole card, whoever
 * uses it. All that it points to lives until the callback returns.
 */
typedef struct orrProfSample {
    size_t size; /**< see ORR_INIT */
    int device;
    uint32_t count;               /**< of counters; 0: no sample, but the last ones were lost */
    uint64_t period_ns;           /**< as it was asked for */
    uint64_t time_ps;             /**< when it was taken */
    uint64_t lost;                /**< how many since the one before were lost; count 0: 1 or more */
    const orrCounter_t* counters; /**< in the order of the card's catalogue */
    const uint64_t* values;       /**< values[i] of counters[i] */
} orrProfSample;

/**
 * Who wants samples is told one whenever something happens on the card at or behind the next multiple of this
 * period of its model time, 1,000 ns or more, and 50 ns or more for each counter and four; while nothing
 * happens there are none. Model time is the same with and without. counters may be null and count 0: all that
 * the device has.
 *
 * A card takes one kind at a time, which is for this subscription, until it stops them or ends, and told to
 * all who want samples. It replaces what the same one has started there before. Where another one has some,
 * just those (period and counters) are for both, until the last one stops them. orrErrorSystem: it has
 * others, and the text says who, and which; or another process has the card's; or the process has not
 * CAP_PERFMON, as other processes' work shows in them. orrErrorNotSupported: the card or its driver takes
 * none; orrErrorInvalidValue: the subscription has ended, or does not want samples.
 */
ORR_API orrError_t orrProfStartSamples(orrProfSubscription_t subscription, int device, uint64_t period_ns,
                                       const orrCounter_t* counters, size_t count);
/** What there is until now has been told then. If the subscription has started none it does nothing. */
ORR_API orrError_t orrProfStopSamples(orrProfSubscription_t subscription, int device);

/** What a vector core is at. docs/counters.md has what each means, under vector_..._ps. */
typedef enum orrProfStall {
    orrProfStallComputing = 0, /**< executes instructions, or waits for vector instructions before */
    orrProfStallLatency = 1,   /**< waits for the answer to a scalar load or an atomic */
    orrProfStallBandwidth = 2, /**< waits for memory, which this instruction has asked */
    orrProfStallLink = 3,      /**< waits for other cards' memory */
    orrProfStallLaunch = 4,    /**< starts a work-item */
    orrProfStallBarrier = 5,   /**< comes to a barrier */
    orrProfStallPause = 6,     /**< pauses between looks whether others have come (orr::grid_barrier) */
} orrProfStall;

/**
 * Where a vector core was in a kernel of this process, at one or more moments in a row, a period of model
 * time apart. The record's name is the kernel's. It is told when the kernel has ended, or a part of it that
 * was preempted; those of a core in the order of time. Of one whose count is 0 only device and lost are set.
 */
typedef struct orrProfPcSample {
    size_t size; /**< see ORR_INIT */
    int device;
    uint32_t core;      /**< number of the vector core */
    uint64_t time_ps;   /**< model time of the first moment */
    uint64_t count;     /**< of moments */
    uint64_t period_ns; /**< as it was asked for; 0: an instruction of a trace, and count is its cycles */
    uint64_t lost;      /**< how many moments, at least, before this one could not be told */
    uint64_t stream;    /**< as orrProfWork has it, and the next two */
    uint64_t index;
    uint64_t begin_ps;
    uint64_t group;       /**< linear number of the work-group */
    uint64_t offset;      /**< of the instruction in its module, from where that is loaded */
    uint32_t stall;       /**< an orrProfStall */
    uint32_t reserved;    /**< 0 */
    const char* function; /**< exported, in which it is; null: not known. Lives until the callback returns */
    const char* source; /**< "gemm.cc:42", of modules with line tables (orrery-cc -g); else null. Likewise */
} orrProfPcSample;

/**
 * Who wants it (orrProfWantPcs and orrProfWantWork) is told where each vector core that runs a kernel of this
 * process is at each multiple of this period of the card's model time, 100 ns or more. Model time and results
 * are the same with and without; the host may take longer for kernels. Whose they are, and what another
 * subscription may have, is as for samples (orrProfStartSamples), this and an instruction trace together.
 * orrErrorNotSupported: the card or its driver does not say; orrErrorSystem: another subscription has others,
 * another process has those of this card, or the period is below 300 ns for each vector core of the card and
 * the process has not CAP_PERFMON, as such records leave other processes' less room.
 */
ORR_API orrError_t orrProfStartPcSampling(orrProfSubscription_t subscription, int device, uint64_t period_ns);
/**
 * Likewise each instruction of one vector core that begins in that time, which counts from the card's model
 * time as it is now: an orrProfPcSample whose period_ns is 0 for its cycles, and one before it for those in
 * which it waits for memory. The core has no other samples then. 40 us fill what the card keeps. It ends with
 * orrProfStopPcSampling. It needs CAP_PERFMON. orrErrorInvalidValue: no such core, or nothing between the
 * two.
 */
ORR_API orrError_t orrProfStartInstructionTrace(orrProfSubscription_t subscription, int device, uint32_t core,
                                                uint64_t from_ps, uint64_t until_ps);
/**
 * The subscription has neither samples nor a trace then, and what there is until now has been told; inside of
 * a callback it is told a little later.
 * orrErrorTimeout: another thread has been told for 10 s; it has them still, and the call can be made
 * again.
 */
ORR_API orrError_t orrProfStopPcSampling(orrProfSubscription_t subscription, int device);

/**
 * The host's clock and a device's, read one within the other: the device's had not passed device_ps when the
 * host's was before_ns, and had come to it when that was after_ns. Nothing more is known, as an idle card's
 * model time hardly goes on. device_ps is the system time of docs/links.md, which is that of orrProfWork
 * unless the device has links and does not keep step with its peers.
 */
typedef struct orrProfClock {
    size_t size; /**< see ORR_INIT */
    int device;
    uint32_t in_step;   /**< 1: model time is one for all cards that are linked to it */
    uint64_t before_ns; /**< CLOCK_MONOTONIC */
    uint64_t device_ps;
    uint64_t after_ns;
} orrProfClock;
/** Two reads of the card's registers: some 100 us in a VM. No model time passes. */
ORR_API orrError_t orrProfReadClock(orrProfClock* clock, int device);

/** The same name gives the same one again. At most 1,024, each with a name of at most 255 bytes. */
ORR_API orrError_t orrProfDomainCreate(orrProfDomain_t* domain, const char* name);
/** Begins a range of this thread, within those of the same domain that are open. What cards do for it:
 * orrProfRangeWork. */
ORR_API orrError_t orrProfRangePush(orrProfDomain_t domain, const char* text);
/** Ends the innermost one. orrErrorInvalidValue: there is none. */
ORR_API orrError_t orrProfRangePop(orrProfDomain_t domain);
/** A moment with a name. */
ORR_API orrError_t orrProfMark(orrProfDomain_t domain, const char* text);

/**
 * The same in the order of a stream: when all is done that it was given until now. Nothing is added to the
 * stream, so its times are what they are without it. orrErrorStreamCapture: the stream is captured. null: the
 * null stream.
 */
ORR_API orrError_t orrProfMarkStream(orrStream_t stream, orrProfDomain_t domain, const char* text);

/** Records of this thread have this number until orrProfExternalPop: the step of a framework, say. Not 0. */
ORR_API orrError_t orrProfExternalPush(uint64_t id);
/** id: which one it was; may be null. orrErrorInvalidValue: there is none. */
ORR_API orrError_t orrProfExternalPop(uint64_t* id);

/** What a tool's library exports under the name orrery_prof_tool, as a constant. */
#define orrProfToolVersion 1u
typedef struct orrProfTool {
    size_t size;      /**< see ORR_INIT */
    uint64_t version; /**< orrProfToolVersion: a library of another one does not load the tool */
    const char* name; /**< for messages */
    /**
     * Before the first call of the process that is told of; it subscribes. Anything but orrSuccess: the tool
     * does not want to, and is called no more. Other threads' first calls wait for it, for 10 s at most.
     */
    orrError_t (*start)(void); /* NOLINT(modernize-redundant-void-arg): C */
    /** When the process ends by exit(). Other threads may still make calls. May be null. */
    void (*stop)(void); /* NOLINT(modernize-redundant-void-arg): C */
} orrProfTool;

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_PROF_H */
