/* SPDX-License-Identifier: MIT */
/**
 * liborrery: the runtime's C API, in the shape that users of CUDA and HIP know.
 *
 * Threads: every function may be called from any thread at any time; an object must not be
 * used while another thread destroys it. The current device is a property of the thread
 * (device 0 at first). Errors: every function returns orrSuccess or a code; what went wrong and
 * what to do about it is in orrGetLastErrorText() of the same thread. A failure of the card
 * or of a kernel shows at the next call that waits for that stream (sticky for the stream until it
 * is destroyed); other streams and processes go on. Only orrErrorDeadlock does not stop a stream: the
 * text shows who waits for whom, and a later wait may succeed.
 *
 * Order: work of one stream runs in the order of the calls. Work of different streams is not
 * ordered unless by events or semaphores. The null stream (stream 0) is an ordinary stream of
 * each device and does not synchronise with others.
 */
#ifndef ORRERY_ORRERY_H
#define ORRERY_ORRERY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORR_API __attribute__((visibility("default")))

/** Codes are stable: numbers never change, new ones are added at the end. */
typedef enum orrError {
    orrSuccess = 0,
    orrErrorInvalidValue = 1,        /**< an argument is out of range or null */
    orrErrorOutOfMemory = 2,         /**< of the card or of the host */
    orrErrorNoDevice = 3,            /**< no card, or its node may not be opened */
    orrErrorInvalidDevice = 4,       /**< no such device number */
    orrErrorInvalidHandle = 5,       /**< not a live stream, event, module, function or semaphore */
    orrErrorNotReady = 6,            /**< asked for the state: still running */
    orrErrorInvalidImage = 7,        /**< a module that is not what orrery-cc makes */
    orrErrorNotFound = 8,            /**< no such function in the module */
    orrErrorIllegalAddress = 9,      /**< a kernel or copy touched unmapped or protected memory */
    orrErrorIllegalInstruction = 10, /**< a kernel trapped */
    orrErrorLaunchTimeout = 11,      /**< a kernel ran over its limit of model time */
    orrErrorDeviceLost = 12,         /**< the card was reset or removed */
    orrErrorPeerAccess = 13,         /**< no link to that card, or peer access not enabled */
    orrErrorNotSupported = 14,       /**< the card, driver or firmware cannot do it */
    orrErrorVersion = 15,            /**< driver or firmware too old or too new for this library */
    orrErrorSystem = 16,             /**< a system call failed; the text has its name and reason */
    orrErrorTimeout = 17,            /**< a wait of limited time ended */
    orrErrorInternal = 18,           /**< a fault of the library, please report */
    orrErrorCancelled = 19,          /**< a task that was cancelled, or depends on one that was */
    orrErrorStreamCapture = 20,      /**< the call does not go together with the capture of a stream */
    orrErrorDeadlock = 21, /**< streams wait for each other in a circle; they go on when somebody signals */
    orrErrorFirmware = 22, /**< the card's firmware crashed while it worked for the stream */
    orrErrorAborted = 23,  /**< somebody aborted the stream, or one that it waited for */
    orrErrorAbandoned = 24 /**< nobody is left who may signal what the stream waited for */
} orrError_t;

ORR_API const char* orrGetErrorName(orrError_t error);   /**< "orrErrorInvalidValue"; never null */
ORR_API const char* orrGetErrorString(orrError_t error); /**< one sentence; never null */
/** Text of this thread's last failure: cause and next step. Valid until the thread's next failure. */
ORR_API const char* orrGetLastErrorText(void);

/** Version of the library: major * 10000 + minor * 100 + patch. */
ORR_API orrError_t orrRuntimeGetVersion(int* version);

/* --- devices --- */

typedef struct orrDeviceProp {
    char name[32];           /**< SKU */
    char pci_address[16];    /**< "0000:01:00.0" */
    char node[32];           /**< "/dev/accel/accel0" */
    char firmware_build[33]; /**< free text of the firmware's maker */
    uint64_t uid;
    uint64_t vram_bytes;
    uint64_t vram_used_bytes;
    uint64_t core_hz;
    uint64_t vector_hz;
    uint32_t firmware_version; /**< major << 16 | minor << 8 | patch */
    uint32_t firmware_abi;     /**< major << 16 | minor */
    uint32_t hardware_version; /**< major << 16 | minor */
    uint32_t copy_engines;
    uint32_t vector_ports; /**< kernels in flight at once */
    uint32_t vector_cores;
    uint32_t link_ports;
    uint32_t state; /**< ORR_STATE_* of orrery/hw/bar0.h */
} orrDeviceProp;

ORR_API orrError_t orrGetDeviceCount(int* count); /**< 0 devices is a success */
ORR_API orrError_t orrSetDevice(int device);      /**< for this thread */
ORR_API orrError_t orrGetDevice(int* device);
ORR_API orrError_t orrGetDeviceProperties(orrDeviceProp* prop, int device);
ORR_API orrError_t orrDeviceSynchronize(void); /**< all streams of the current device */
/**
 * Vector core time that this process may use on a device: permille (1 .. 1000) of all its cores in each
 * period of period_us (100 .. 1000000) microseconds of model time; 0 and 0: no limit. Before the process uses
 * the device; takes precedence over ORRERY_QUOTA.
 */
ORR_API orrError_t orrDeviceSetQuota(int device, uint32_t permille, uint32_t period_us);
ORR_API orrError_t orrMemGetInfo(size_t* free_bytes, size_t* total_bytes);

typedef struct orrLinkInfo {
    uint32_t state; /**< ORR_LINK_* of orrery/hw/link.h */
    uint32_t peer_port;
    uint64_t peer_uid; /**< 0 while down */
    int peer_device;   /**< device number in this process, or -1 */
    uint32_t lanes;
    uint32_t gbps;
    uint32_t latency_ns;
} orrLinkInfo;
ORR_API orrError_t orrDeviceGetLink(orrLinkInfo* info, int device, int port);

/** Counters in the order of orrery/hw/counters.h. In: room in *count; out: counters written. */
ORR_API orrError_t orrDeviceGetCounters(uint64_t* values, size_t* count, int device);

/* --- memory: addresses are unique over all devices and the host --- */

ORR_API orrError_t orrMalloc(void** ptr, size_t bytes); /**< on the current device */
ORR_API orrError_t orrFree(void* ptr);                  /**< waits for the device's streams; null is fine */
ORR_API orrError_t
orrMallocHost(void** ptr, size_t bytes); /**< pinned; every device and the CPU use it at this address */
ORR_API orrError_t orrFreeHost(void* ptr);

typedef enum orrMemcpyKind {
    orrMemcpyHostToHost = 0,
    orrMemcpyHostToDevice = 1,
    orrMemcpyDeviceToHost = 2,
    orrMemcpyDeviceToDevice = 3, /**< on one device, or to a peer (needs orrDeviceEnablePeerAccess) */
    orrMemcpyDefault = 4         /**< found out from the addresses */
} orrMemcpyKind;

typedef struct orrStream_st* orrStream_t;
typedef struct orrEvent_st* orrEvent_t;
typedef struct orrSemaphore_st* orrSemaphore_t;
typedef struct orrModule_st* orrModule_t;
typedef struct orrFunction_st* orrFunction_t;

/** Returns when the copy is done. Uses the null stream of the device that is involved. */
ORR_API orrError_t orrMemcpy(void* dst, const void* src, size_t bytes, orrMemcpyKind kind);
/**
 * With memory of orrMallocHost it returns at once; with ordinary host memory it may return only
 * after that memory was read (host to device) or written (device to host).
 */
ORR_API orrError_t orrMemcpyAsync(void* dst, const void* src, size_t bytes, orrMemcpyKind kind,
                                  orrStream_t stream);
ORR_API orrError_t orrMemset(void* dst, int value, size_t bytes);
ORR_API orrError_t orrMemsetAsync(void* dst, int value, size_t bytes, orrStream_t stream);

/** *can is 1 if a link joins the two devices. */
ORR_API orrError_t orrDeviceCanAccessPeer(int* can, int device, int peer);
/** Lets copies and signals of the current device write to memory of `peer`, also of later allocations. */
ORR_API orrError_t orrDeviceEnablePeerAccess(int peer);

/* --- streams, events, semaphores --- */

ORR_API orrError_t orrStreamCreate(orrStream_t* stream); /**< on the current device */

/** Streams do not synchronise with the null stream, so both mean the same. */
#define orrStreamDefault 0x0u
#define orrStreamNonBlocking 0x1u

/**
 * A lower number is served first: 1 low, 0 normal (as orrStreamCreate), -1 high, -2 real-time, which is
 * strict and needs CAP_SYS_NICE. Numbers outside of this are taken as the nearest that exists.
 */
ORR_API orrError_t orrStreamCreateWithPriority(orrStream_t* stream, unsigned flags, int priority);
/** The range that this process may use on the current device: *least is 1, *greatest -1 or -2. */
ORR_API orrError_t orrDeviceGetStreamPriorityRange(int* least, int* greatest);

typedef struct orrStreamAttributes {
    int priority;    /**< as above */
    uint32_t weight; /**< share of engine time among streams of one priority, 1 .. 1024; 0: the default, 64 */
    uint32_t
        slice_us; /**< model time before another stream of this priority may take the engine; 0: default */
    uint32_t limit_us;    /**< model time that a kernel may take before it is stopped; 0: the default, 1 s */
    const char* name;     /**< at most 23 printable ASCII characters, for reports and traces; null: made up */
    uint64_t reserved[4]; /**< 0 */
} orrStreamAttributes;
ORR_API orrError_t orrStreamCreateWithAttributes(orrStream_t* stream, const orrStreamAttributes* attributes);
/** Changes priority, weight and slice; attributes->name must be null, and attributes->limit_us 0. */
ORR_API orrError_t orrStreamSetAttributes(orrStream_t stream, const orrStreamAttributes* attributes);
ORR_API orrError_t orrStreamGetPriority(int* priority, orrStream_t stream);

/** What the card has counted for a stream; times are model time in picoseconds. */
typedef struct orrStreamStats {
    uint64_t vector_ps; /**< time on vector cores, the sum over the cores */
    uint64_t copy_ps;   /**< time on copy engines */
    uint64_t jobs;      /**< kernels and copies that have finished */
    uint64_t preemptions;
    uint64_t waited_ps; /**< ready, but another stream had the engine */
    uint64_t longest_wait_ps;
} orrStreamStats;
ORR_API orrError_t orrStreamGetStats(orrStreamStats* stats, orrStream_t stream);
ORR_API orrError_t orrStreamDestroy(orrStream_t stream); /**< waits for its work */
/**
 * Stops the stream now: when this returns nothing of it runs, its waits end with orrErrorAborted, and so do
 * streams that wait for what it would have signalled. It can be asked, and must be destroyed.
 */
ORR_API orrError_t orrStreamAbort(orrStream_t stream);
ORR_API orrError_t orrStreamSynchronize(orrStream_t stream);
ORR_API orrError_t orrStreamQuery(orrStream_t stream); /**< orrSuccess: done; orrErrorNotReady: not yet */

ORR_API orrError_t orrEventCreate(orrEvent_t* event);
ORR_API orrError_t orrEventDestroy(orrEvent_t event);
ORR_API orrError_t orrEventRecord(orrEvent_t event, orrStream_t stream);
ORR_API orrError_t orrEventSynchronize(orrEvent_t event);
ORR_API orrError_t orrEventQuery(orrEvent_t event);
/** Later work of the stream waits for the event's last record; devices must be the same or linked. */
ORR_API orrError_t orrStreamWaitEvent(orrStream_t stream, orrEvent_t event);

/** How a stream waits. All but size may be 0; later versions add members at the end. */
typedef struct orrWaitOptions {
    size_t size;       /**< sizeof(orrWaitOptions) */
    uint32_t flags;    /**< 0 */
    uint32_t reserved; /**< 0 */
    /**
     * The stream stops with orrErrorTimeout when it has waited so long in model time of its card; exact to
     * 100 us, at most 10^15. While the card has nothing else to do its time runs no faster than the host's.
     */
    uint64_t limit_ns;
} orrWaitOptions;
/** The same with options; null: none. */
ORR_API orrError_t orrStreamWaitEventWithOptions(orrStream_t stream, orrEvent_t event,
                                                 const orrWaitOptions* options);

/** Model time between two finished records on one device, in nanoseconds with fraction: exact and repeatable.
 */
ORR_API orrError_t orrEventElapsedModelTime(double* ns, orrEvent_t start, orrEvent_t end);
/** Host time between the moments at which the two records were seen to be finished, in ns. */
ORR_API orrError_t orrEventElapsedHostTime(double* ns, orrEvent_t start, orrEvent_t end);
/** Model time of the record in picoseconds since the card's power-on. */
ORR_API orrError_t orrEventGetModelTime(uint64_t* ps, orrEvent_t event);

/** A 64-bit timeline that lives in the current device's memory; starts at 0 and only grows. */
ORR_API orrError_t orrSemaphoreCreate(orrSemaphore_t* semaphore);
/** For error texts: at most 63 characters; null or empty takes the name away. */
ORR_API orrError_t orrSemaphoreSetName(orrSemaphore_t semaphore, const char* name);
/** Streams that wait for more than somebody was told to signal stop with orrErrorAbandoned. */
ORR_API orrError_t orrSemaphoreDestroy(orrSemaphore_t semaphore);
/** When all earlier work of the stream is done. From a stream of a linked device it crosses the link behind
 * that work. */
ORR_API orrError_t orrStreamSignalSemaphore(orrStream_t stream, orrSemaphore_t semaphore, uint64_t value);
/** Stream and semaphore must be of one device. */
ORR_API orrError_t orrStreamWaitSemaphore(orrStream_t stream, orrSemaphore_t semaphore, uint64_t value);
ORR_API orrError_t orrStreamWaitSemaphoreWithOptions(orrStream_t stream, orrSemaphore_t semaphore,
                                                     uint64_t value, const orrWaitOptions* options);
/**
 * Says that the stream may signal the semaphore. When the last stream for which that was said has stopped, is
 * destroyed or removed, nobody is left: streams that wait for more than the value stop with
 * orrErrorAbandoned, or with what the last stream stopped with. Without this a semaphore waits for ever, as
 * the host, or a stream to come, may signal it. What a stream has yet to do fails its semaphores in any case
 * when it stops.
 */
ORR_API orrError_t orrSemaphoreAddSignaller(orrSemaphore_t semaphore, orrStream_t stream);
ORR_API orrError_t orrSemaphoreRemoveSignaller(orrSemaphore_t semaphore, orrStream_t stream);
/** orrErrorAbandoned if nobody is left who may signal it (see above); *value is valid then too. */
ORR_API orrError_t orrSemaphoreGetValue(uint64_t* value, orrSemaphore_t semaphore);
ORR_API orrError_t orrSemaphoreSignal(orrSemaphore_t semaphore, uint64_t value); /**< from the host */

/* --- modules and kernels --- */

typedef struct orrDim3 {
    uint32_t x, y, z;
} orrDim3;

/** An image made by orrery-cc, loaded on the current device. */
ORR_API orrError_t orrModuleLoad(orrModule_t* module, const char* path);
ORR_API orrError_t orrModuleLoadData(orrModule_t* module, const void* image, size_t bytes);
/** Whether orrModuleLoadData would take the image; needs no device. */
ORR_API orrError_t orrModuleCheckData(const void* image, size_t bytes);
ORR_API orrError_t orrModuleUnload(orrModule_t module);
ORR_API orrError_t orrModuleGetFunction(orrFunction_t* function, orrModule_t module, const char* name);
/**
 * Runs grid.x*y*z work-groups of block.x*y*z work-items; each item is one call of the kernel with
 * a pointer to a copy of the `bytes` bytes at args (at most 4,096; taken before this returns).
 * local_bytes of zeroed memory are shared by the items of a group. The function's module
 * and the stream must be of one device.
 */
ORR_API orrError_t orrLaunchKernel(orrFunction_t function, orrDim3 grid, orrDim3 block, const void* args,
                                   size_t bytes, size_t local_bytes, orrStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_ORRERY_H */
