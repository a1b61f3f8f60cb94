/* SPDX-License-Identifier: MIT */
/**
 * Task graphs: work described by the data that it reads and writes. The order follows from the accesses; the
 * library decides which device runs what when, moves the data there, and keeps copies where they are useful.
 *
 *   orrTaskGraphCreate(&graph, NULL);
 *   orrTaskDataCreate(&x, graph, host_x, bytes); ...
 *   orrTaskKernelCreate(&kernel, graph, image, image_bytes, "saxpy");
 *   orrTaskSubmit(&task, graph, &desc); ...
 *   orrTaskGraphWait(graph);
 *   orrTaskDataRead(host_y, y, bytes);
 *
 * Not to be taken for the graphs of graph.h, whose nodes, places and order the program says itself.
 *
 * Nothing starts before orrTaskGraphStart or a wait, so that a whole graph can be planned at once; after that
 * tasks may be added while others run, also from host tasks. Threads and errors as in orrery.h; everything
 * may be called from any thread, but only orrTaskSubmit, orrTaskCancel and orrTaskGetInfo from a host task.
 *
 * When a task fails, what needs its results is cancelled and names the first cause; everything else goes on.
 */
#ifndef ORRERY_TASK_H
#define ORRERY_TASK_H

#include <orrery/orrery.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orrTaskGraph_st* orrTaskGraph_t;
typedef struct orrTaskData_st* orrTaskData_t;
typedef struct orrTaskKernel_st* orrTaskKernel_t;
typedef uint32_t orrTask_t; /**< a number in its graph; the library's own tasks (merges) have numbers too */

typedef struct orrTaskGraphOptions {
    size_t size;           /**< see ORR_INIT */
    const int* devices;    /**< to use; null: all */
    size_t device_count;   /**< at most 8 */
    const char* cost_file; /**< costs, measured by SKU, are read from it and written back at the end; null:
                              neither */
    uint32_t issue_ahead;  /**< tasks that are handed out before others are done, as long as each takes a
                              whole device; 0: 32 for one device and for several whose clocks keep
                              step, else 3; at most 32 */
    uint32_t flags;        /**< 0 */
    uint32_t limit_us;     /**< model time that the kernel of a task may take before it is stopped; 0: 1 s */
    uint32_t reserved;     /**< 0 */
} orrTaskGraphOptions;

/** options: null for all defaults. */
ORR_API orrError_t orrTaskGraphCreate(orrTaskGraph_t* graph, const orrTaskGraphOptions* options);
/** Waits for what runs (after a failure: stops it), cancels what does not, and frees all data and kernels of
 * the graph. */
ORR_API orrError_t orrTaskGraphDestroy(orrTaskGraph_t graph);

/**
 * A datum of `bytes` bytes. `host`: its first contents; memory of orrMallocHost is used in place, other
 * memory is copied now; null: the contents are undefined until a task writes them. Lives until the graph is
 * destroyed.
 */
ORR_API orrError_t orrTaskDataCreate(orrTaskData_t* data, orrTaskGraph_t graph, void* host, size_t bytes);
/** The contents behind all tasks that were submitted until now; waits for them. Fails as the task that wrote
 * it failed. */
ORR_API orrError_t orrTaskDataRead(void* dst, orrTaskData_t data, size_t bytes);

/** A kernel of a module of orrery-cc, loaded on every device of the graph. Lives until the graph is
 * destroyed. */
ORR_API orrError_t orrTaskKernelCreate(orrTaskKernel_t* kernel, orrTaskGraph_t graph, const void* image,
                                       size_t bytes, const char* name);
/**
 * The same of a function, which is a library's unless the graph has one device: loaded now on every device of
 * the graph that has not loaded it. The library may be unloaded before the graph is destroyed.
 */
ORR_API orrError_t orrTaskKernelFromFunction(orrTaskKernel_t* kernel, orrTaskGraph_t graph,
                                             orrFunction_t function);

/** What a merge kernel gets: it adds `part` to `into`. */
typedef struct orrTaskMergeArgs {
    void* into;
    const void* part;
    uint64_t bytes;
} orrTaskMergeArgs;
/**
 * How parts of a reduction come together. Tasks that reduce may run on all devices at once, each device into
 * a part of its own that starts as zeros; the next other access adds all parts to the datum with this kernel.
 */
ORR_API orrError_t orrTaskDataSetMerge(orrTaskData_t data, orrTaskKernel_t kernel, orrDim3 grid,
                                       orrDim3 block);

typedef enum orrTaskAccessMode {
    orrTaskAccessRead = 1,
    orrTaskAccessWrite = 2, /**< all of it: what was there before is not brought */
    orrTaskAccessReadWrite = 3,
    orrTaskAccessReduce = 4, /**< adds to it, in any order; needs orrTaskDataSetMerge */
} orrTaskAccessMode;

/** The address of the datum is not put into the arguments. */
#define orrTaskAccessNoArgument 0x1u

/** An element of a list, so it never grows. */
typedef struct orrTaskAccess {
    orrTaskData_t data; /**< each at most once a task */
    orrTaskAccessMode mode;
    uint32_t flags;      /**< orrTaskAccessNoArgument; not asked of host tasks */
    uint32_t arg_offset; /**< where in args the address of the datum on the device is put */
    uint32_t reserved;   /**< 0 */
} orrTaskAccess;

/** data[i]: address in host memory of the i-th access. */
typedef void (*orrTaskHostFn_t)(void* user, void* const* data, size_t count);

/** Run it on orrTaskDesc.device only. */
#define orrTaskOnDevice 0x1u

/** A task: a kernel or a function of the host, and its data. */
typedef struct orrTaskDesc {
    size_t size;            /**< see ORR_INIT */
    const char* name;       /**< for error texts; copied; null: the kernel's */
    orrTaskKernel_t kernel; /**< or a host task: */
    orrTaskHostFn_t function;
    void* user;
    orrDim3 grid, block;
    size_t local_bytes;
    const void* args; /**< copied now; at most 4,096 bytes */
    size_t bytes;
    const orrTaskAccess* accesses;
    size_t access_count; /**< at most 64 */
    const orrTask_t* after;
    size_t after_count; /**< beside what follows from the accesses */
    double cost_ns; /**< expected model time; 0: from measurements of the same kernel, grid and data sizes */
    double deadline_ns; /**< model time since the start of the graph; 0: none. Earlier ones go first */
    int32_t priority;   /**< higher first */
    uint32_t flags;     /**< orrTaskOnDevice */
    int32_t device;     /**< with orrTaskOnDevice: a device number of the graph */
    uint32_t reserved;  /**< 0 */
} orrTaskDesc;
/** task: may be null if nobody needs its number. */
ORR_API orrError_t orrTaskSubmit(orrTask_t* task, orrTaskGraph_t graph, const orrTaskDesc* desc);

/** Lets tasks run that were submitted, and those to come. */
ORR_API orrError_t orrTaskGraphStart(orrTaskGraph_t graph);
/** All tasks submitted until it returns. The first failure's code, whose text names the task. */
ORR_API orrError_t orrTaskGraphWait(orrTaskGraph_t graph);
/** One task: its own failure, or the first cause of its cancelling. */
ORR_API orrError_t orrTaskWait(orrTaskGraph_t graph, orrTask_t task);
/** With all that needs its results. orrErrorNotReady if it is too late: it runs, or is over. */
ORR_API orrError_t orrTaskCancel(orrTaskGraph_t graph, orrTask_t task);

typedef enum orrTaskState {
    orrTaskStateWaiting = 0,
    orrTaskStateIssued = 1, /**< handed to a device */
    orrTaskStateDone = 2,
    orrTaskStateFailed = 3,
    orrTaskStateCancelled = 4,
} orrTaskState;

/** What became of a task. */
typedef struct orrTaskInfo {
    size_t size; /**< see ORR_INIT */
    orrTaskState state;
    int32_t device; /**< that runs or ran it; -1: the host, or none yet */
    uint32_t cause; /**< failed or cancelled: the task that failed or was cancelled first */
    orrError_t error;
    double start_ns; /**< done: model time of that device since the start of the graph */
    double end_ns;
} orrTaskInfo;
/** What became of a task. */
ORR_API orrError_t orrTaskGetInfo(orrTaskInfo* info, orrTaskGraph_t graph, orrTask_t task);

/** Of all tasks until now. */
typedef struct orrTaskStats {
    size_t size; /**< see ORR_INIT */
    uint64_t tasks, done, failed, cancelled;
    uint64_t transfers, transfer_bytes;
    uint64_t plans_changed; /**< how often the rest was planned anew because times were not as expected */
    uint64_t packets, waits, doorbells;
    double end_ns; /**< latest end of a task */
} orrTaskStats;
/** Of all tasks until now. */
ORR_API orrError_t orrTaskGraphGetStats(orrTaskStats* stats, orrTaskGraph_t graph);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_TASK_H */
