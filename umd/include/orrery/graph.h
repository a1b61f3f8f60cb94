/* SPDX-License-Identifier: MIT */
/**
 * Graphs: work that is described once and launched many times, in the shape that users of CUDA and HIP know.
 *
 * A graph is a set of nodes and the order between them. Instantiating lays its chains of nodes onto hardware
 * queues, as many as there are branches that can run side by side, and finds out which waits are needed:
 * order inside a queue needs none, and what another wait implies needs none. A launch then writes the
 * prepared packets and rings each queue once. A graph may span several linked devices.
 *
 * Threads and errors as in orrery.h. Launches of one
 * orrGraphExec_t run one after the other, in the order of the calls. When a node fails, its dependents do not
 * run, the streams of that launch end with the failure, and the orrGraphExec_t cannot be launched again.
 */
#ifndef ORRERY_GRAPH_H
#define ORRERY_GRAPH_H

#include <orrery/orrery.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orrGraph_st* orrGraph_t;
typedef struct orrGraphNode_st* orrGraphNode_t; /**< belongs to its graph and ends with it */
typedef struct orrGraphExec_st* orrGraphExec_t;

/** Without nodes. flags: 0. */
ORR_API orrError_t orrGraphCreate(orrGraph_t* graph, unsigned flags);
/** What was instantiated from it lives on. */
ORR_API orrError_t orrGraphDestroy(orrGraph_t graph);

/**
 * As orrLaunchKernel: the arguments are copied now. The node runs on the device of the function's module,
 * that of a library on the current device. */
typedef struct orrKernelNodeParams {
    size_t size; /**< see ORR_INIT */
    orrFunction_t function;
    orrDim3 grid;
    orrDim3 block;
    const void* args;
    size_t bytes;       /**< of args, at most 4,096 */
    size_t local_bytes; /**< of work-group memory */
    uint64_t flags;     /**< orrLaunch*, as orrLaunchParams has them */
} orrKernelNodeParams;

/**
 * All that add a node: it starts when the `count` nodes of `dependencies` (of the same graph; may be null if
 * count is 0) are done. `node` may be null if nobody needs the handle.
 */
ORR_API orrError_t orrGraphAddKernelNode(orrGraphNode_t* node, orrGraph_t graph,
                                         const orrGraphNode_t* dependencies, size_t count,
                                         const orrKernelNodeParams* params);
/** Memory of orrMalloc or orrMallocHost only; between devices, over links. Runs on the source's device, else
 * the destination's. */
ORR_API orrError_t orrGraphAddMemcpyNode(orrGraphNode_t* node, orrGraph_t graph,
                                         const orrGraphNode_t* dependencies, size_t count, void* dst,
                                         const void* src, size_t bytes, orrMemcpyKind kind);
/** As orrMemsetAsync, for memory of orrMalloc or orrMallocHost. */
ORR_API orrError_t orrGraphAddMemsetNode(orrGraphNode_t* node, orrGraph_t graph,
                                         const orrGraphNode_t* dependencies, size_t count, void* dst,
                                         int value, size_t bytes);
/** As orrMemcpy3DAsync, with memory and device as orrGraphAddMemcpyNode; depth 1 for rows only. */
ORR_API orrError_t orrGraphAddMemcpy3DNode(orrGraphNode_t* node, orrGraph_t graph,
                                           const orrGraphNode_t* dependencies, size_t count,
                                           const orrMemcpy3DParams* params);
/** As orrMemcpyNDAsync, on the device of orrGraphAddMemcpyNode. */
ORR_API orrError_t orrGraphAddMemcpyNDNode(orrGraphNode_t* node, orrGraph_t graph,
                                           const orrGraphNode_t* dependencies, size_t count,
                                           const orrMemcpyNDParams* params);
/** Rows of a value of 1, 2, 4 or 8 bytes; pitch: unused for one row. */
typedef struct orrMemsetNodeParams {
    size_t size; /**< see ORR_INIT */
    void* dst;
    size_t pitch;
    uint64_t value; /**< its low `value_bytes` */
    size_t value_bytes;
    size_t width; /**< bytes a row */
    size_t height;
} orrMemsetNodeParams;
/** As orrGraphAddMemsetNode, of rows and larger values. */
ORR_API orrError_t orrGraphAddMemset2DNode(orrGraphNode_t* node, orrGraph_t graph,
                                           const orrGraphNode_t* dependencies, size_t count,
                                           const orrMemsetNodeParams* params);
/** As orrMemcpyReduce, and over links only. flags: 0. */
ORR_API orrError_t orrGraphAddReduceNode(orrGraphNode_t* node, orrGraph_t graph,
                                         const orrGraphNode_t* dependencies, size_t count, void* dst,
                                         const void* src, size_t elements, orrDataType type, orrReduceOp op,
                                         unsigned flags);
/** Called on a thread of the library; it must not call orr* functions that wait for this launch. */
typedef void (*orrHostFn_t)(void* user);
/** A call of `function` with `user`. */
ORR_API orrError_t orrGraphAddHostNode(orrGraphNode_t* node, orrGraph_t graph,
                                       const orrGraphNode_t* dependencies, size_t count, orrHostFn_t function,
                                       void* user);
/** Does nothing: joins many nodes to many others. */
ORR_API orrError_t orrGraphAddEmptyNode(orrGraphNode_t* node, orrGraph_t graph,
                                        const orrGraphNode_t* dependencies, size_t count);
/** Records the event at each launch, on the device of the first dependency (else the current device). */
ORR_API orrError_t orrGraphAddEventRecordNode(orrGraphNode_t* node, orrGraph_t graph,
                                              const orrGraphNode_t* dependencies, size_t count,
                                              orrEvent_t event);
/** Waits for the event's last record before the launch, on the same device as a record node would. */
ORR_API orrError_t orrGraphAddEventWaitNode(orrGraphNode_t* node, orrGraph_t graph,
                                            const orrGraphNode_t* dependencies, size_t count,
                                            orrEvent_t event);
/** A copy of all that `child` holds now; `node` is done when all of it is. */
ORR_API orrError_t orrGraphAddChildGraphNode(orrGraphNode_t* node, orrGraph_t graph,
                                             const orrGraphNode_t* dependencies, size_t count,
                                             orrGraph_t child);
/** to[i] starts after from[i]. A cycle is found when the graph is instantiated. */
ORR_API orrError_t orrGraphAddDependencies(orrGraph_t graph, const orrGraphNode_t* from,
                                           const orrGraphNode_t* to, size_t count);
/** How many nodes it has, also those of child graphs. */
ORR_API orrError_t orrGraphGetNodeCount(size_t* nodes, orrGraph_t graph);

/** Copies the graph as it is now. Needs links between devices that depend on each other. flags: 0. */
ORR_API orrError_t orrGraphInstantiate(orrGraphExec_t* exec, orrGraph_t graph, unsigned flags);
/**
 * Behind the stream's earlier work; the stream's later work comes after the whole graph. Launches of one
 * graph come one after the other. orrErrorNotReady: host nodes of the last launch, whose stream was aborted,
 * still run. orrErrorInvalidHandle: the module or library of one of its kernels was unloaded.
 */
ORR_API orrError_t orrGraphLaunch(orrGraphExec_t exec, orrStream_t stream);
/** Waits for its launches. */
ORR_API orrError_t orrGraphExecDestroy(orrGraphExec_t exec);

/** What instantiating came to. */
typedef struct orrGraphExecInfo {
    size_t size;     /**< see ORR_INIT */
    uint32_t nodes;  /**< that do something */
    uint32_t edges;  /**< as given, without duplicates */
    uint32_t queues; /**< hardware queues; 1: a launch goes straight into its stream, if of the same device */
    uint32_t waits;  /**< wait packets a launch, inside the graph */
    uint32_t signals;   /**< signal packets a launch, inside the graph */
    uint32_t packets;   /**< all packets a launch, without those that join it to its stream */
    uint64_t launches;  /**< until now */
    uint64_t doorbells; /**< rung by all launches, also those of the launch's stream */
    uint64_t by_host;   /**< copies a launch that go through the host's memory, as no way over links joined
                             their two devices when the graph was instantiated; since 0.3 */
} orrGraphExecInfo;
/** What instantiating came to. */
ORR_API orrError_t orrGraphExecGetInfo(orrGraphExecInfo* info, orrGraphExec_t exec);

/**
 * From now until orrStreamEndCapture, work given to the stream is not run but becomes nodes of a new graph.
 * Another stream joins the capture when it waits for an event that was recorded in it, and must be joined
 * back the same way before the end. Synchronous calls, semaphores, ordinary host memory and queries fail
 * meanwhile with orrErrorStreamCapture. The null stream cannot be captured. Calls on other streams are as
 * ever. flags: 0.
 */
ORR_API orrError_t orrStreamBeginCapture(orrStream_t stream, unsigned flags);
/**
 * The graph is the caller's. After a failed call during the capture it fails, and names that call's error.
 * Only of a call whose struct cannot be read, because its size is none, nobody knows that it was for this
 * stream; and orrLaunchGang tells the streams up to its first bad part.
 */
ORR_API orrError_t orrStreamEndCapture(orrGraph_t* graph, orrStream_t stream);
/** *capturing is 1 or 0. */
ORR_API orrError_t orrStreamIsCapturing(int* capturing, orrStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_GRAPH_H */
