/* SPDX-License-Identifier: MIT */
/** Devices: what they are, how they are linked, what they count. A device is a card, by a number from 0. */
#ifndef ORRERY_DEVICE_H
#define ORRERY_DEVICE_H

#include <orrery/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Cards in the order of their PCI addresses; 0 devices is a success. */
ORR_API orrError_t orrGetDeviceCount(int* count);
/** Makes it the current device of this thread. */
ORR_API orrError_t orrSetDevice(int device);
/** The current device of this thread; 0 at first. */
ORR_API orrError_t orrGetDevice(int* device);
/** Waits for all streams of the current device. */
ORR_API orrError_t orrDeviceSynchronize(void);

typedef enum orrDeviceState {
    orrDeviceStateUnknown = 0, /**< one that this library does not know */
    orrDeviceStateReset = 1,   /**< no firmware runs */
    orrDeviceStateBooting = 2,
    orrDeviceStateRunning = 3,
    orrDeviceStateBootFailed = 4, /**< the kernel log says why */
    orrDeviceStateHalted = 5,     /**< its firmware has crashed */
} orrDeviceState;

/** What a card is. */
typedef struct orrDeviceProp {
    size_t size;          /**< see ORR_INIT */
    char name[32];        /**< of the kind of card (its SKU) */
    char pci_address[16]; /**< "0000:01:00.0" */
    char node[32];        /**< "/dev/accel/accel0" */
    uint64_t uid;         /**< this one card's */
    uint64_t vram_bytes;
    uint64_t vram_used_bytes; /**< by all processes, now */
    uint64_t core_hz;
    uint64_t vector_hz;
    uint32_t copy_engines;
    uint32_t vector_ports; /**< kernels in flight at once */
    uint32_t vector_cores;
    uint32_t link_ports;
    orrDeviceState state; /**< now */
    uint32_t reserved;
    uint64_t vector_vlen; /**< bits of a vector register of the vector cores; 0: they have none */
    char vector_isa[128]; /**< what they run, as compilers write it; empty: an old driver or card does not say
                           */
    uint32_t host_atomics; /**< 1: kernels may use atomics on pinned memory; 0: they fail there, as the
                              platform completes no AtomicOps of PCIe, or as a driver before 1.4 does not
                              switch them on */
    uint32_t reserved2;
} orrDeviceProp;
/** What a card is. */
ORR_API orrError_t orrGetDeviceProperties(orrDeviceProp* prop, int device);

/** What runs below the library: ORR_MAKE_VERSION numbers. */
typedef struct orrDeviceVersion {
    size_t size;             /**< see ORR_INIT */
    char firmware_build[40]; /**< free text of the firmware's maker */
    uint32_t driver;
    uint32_t firmware;
    uint32_t firmware_abi; /**< of the interface between driver and firmware */
    uint32_t hardware;     /**< of the card's registers */
} orrDeviceVersion;
/** Versions of driver, firmware and card. */
ORR_API orrError_t orrDeviceGetVersion(orrDeviceVersion* version, int device);

/**
 * Vector core time that this process may use on a device: permille (1 .. 1000) of all its cores in each
 * period of period_us (100 .. 1000000) microseconds of model time; 0 and 0: no limit. Before the process uses
 * the device; takes precedence over ORR_QUOTA.
 */
ORR_API orrError_t orrDeviceSetQuota(int device, uint32_t permille, uint32_t period_us);

typedef enum orrLinkState {
    orrLinkStateUnknown = 0, /**< one that this library does not know */
    orrLinkStateDown = 1,    /**< no peer */
    orrLinkStateTraining = 2,
    orrLinkStateUp = 3,
    orrLinkStateDegraded = 4, /**< up, with fewer lanes than it has */
} orrLinkState;

/** A link of a device, seen from its port. */
typedef struct orrLinkInfo {
    size_t size; /**< see ORR_INIT */
    orrLinkState state;
    uint32_t peer_port;
    uint64_t peer_uid;   /**< 0 while down */
    int32_t peer_device; /**< device number in this process, or -1 */
    uint32_t lanes;
    uint32_t gbps;
    uint32_t latency_ns;
    /* Since 0.3. All count since the card's power-on; what `known` does not name is 0. */
    uint64_t tx_messages;
    uint64_t tx_bytes; /**< of payload */
    uint64_t rx_messages;
    uint64_t rx_bytes;
    uint32_t crc_errors;  /**< frames that came damaged */
    uint32_t retries;     /**< frames sent again */
    uint32_t retrains;    /**< trainings that the link stayed up for */
    uint32_t changes;     /**< of state or width */
    uint32_t denied;      /**< messages that came and that nothing allowed */
    uint32_t bad_keys;    /**< those of them with a wrong key */
    uint32_t refused;     /**< writes and signals of this device that their owner refused */
    uint32_t forged;      /**< fabric handles with a wrong secret that came from other machines */
    uint32_t losses;      /**< times that the link went down */
    uint32_t built_lanes; /**< lanes that the port has */
    uint32_t known;       /**< orrLinkKnows…: an older card or driver counts less */
    uint32_t reserved;    /**< 0 */
} orrLinkInfo;
#define orrLinkKnowsCounts 0x1u  /**< messages, bytes, crc_errors, retries, retrains, changes, built_lanes */
#define orrLinkKnowsDenials 0x2u /**< denied, bad_keys and refused */
#define orrLinkKnowsDriver 0x4u  /**< forged and losses */
/** port: 0 .. orrDeviceProp.link_ports - 1. */
ORR_API orrError_t orrDeviceGetLink(orrLinkInfo* info, int device, int port);

/** *can is 1 if a way over links that are up joins the two devices, over other cards or switches too. */
ORR_API orrError_t orrDeviceCanAccessPeer(int* can, int device, int peer);
/**
 * Lets copies, signals and kernels of the current device write to memory of `peer`, and copies and kernels
 * read it and use atomics there if both devices do that, also of later allocations. flags: 0.
 * orrErrorPeerAccess: no way over links that are up joins them. Copies need none of it then: see
 * orrDeviceGetPeerWay.
 */
ORR_API orrError_t orrDeviceEnablePeerAccess(int peer, unsigned flags);

/** How copies between memory of two devices go. */
typedef enum orrPeerWayKind {
    orrPeerWaySelf = 0, /**< both are one device */
    orrPeerWayLink = 1, /**< over links */
    orrPeerWayHost = 2, /**< through the host's memory: one card copies there, the other one from there */
} orrPeerWayKind;
/** The way from a device to another one as it is now. */
typedef struct orrPeerWay {
    size_t size; /**< see ORR_INIT */
    orrPeerWayKind kind;
    uint32_t links;       /**< how many are passed one after another; 0 unless over links */
    uint64_t bytes_per_s; /**< of the slowest of them, payload and headers; 0 unless over links */
    uint64_t latency_ps;  /**< one way, with what cards or switches between take; 0 unless over links */
    int32_t enabled;      /**< 1 after orrDeviceEnablePeerAccess; kernels and signals need it in any case */
    uint32_t reserved;    /**< 0 */
    char reason[160];     /**< why it is so, a sentence */
} orrPeerWay;
/**
 * Which way copies between memory of `device` and of `peer` take in streams of `device`, and why. Over links
 * they go after orrDeviceEnablePeerAccess, and are refused (orrErrorPeerAccess) without it where there is
 * one. Where none is up, or the only one went down, orrMemcpy, its like in more dimensions and for streams,
 * orrMemcpyBatchAsync and orrMemcpyReduce go through the host's memory, with peer access or without; the call
 * returns when they are done (see orrMemcpyAsync). If a link comes up, those with peer access go over it;
 * those without stay with the host until it is enabled. A link that goes down under a copy stops its stream;
 * copies go through the host when that is known, at the latest 20 ms later, or at once for who asks here.
 * Memory that came while no way was up is shared with those that may use it by the first call that copies,
 * launches or enables access when there is one again.
 *
 * Kernels, memsets, signals, events and graphs, captured ones too, never do so: orrErrorPeerAccess.
 * (Task graphs have ways of their own through the host's memory, and need nothing enabled.)
 * orrErrorDeviceLost: no way is there as one of the devices is lost. Thread safe.
 */
ORR_API orrError_t orrDeviceGetPeerWay(orrPeerWay* way, int device, int peer);

/** How far the clock of a device was from a reference's, the clock of another device. */
typedef struct orrClockOffset {
    size_t size;        /**< see ORR_INIT */
    int64_t offset_ps;  /**< the device's clock minus the reference's */
    uint64_t error_ps;  /**< the truth was in offset_ps - error_ps .. offset_ps + error_ps: always */
    uint64_t device_ps; /**< when that was so, by the device's clock */
    uint64_t worst_ps;  /**< the error of the exchange that took the most time: a clock jumped, or a card was
                           busy, if it is much more */
} orrClockOffset;
/**
 * Measures it, in eight exchanges of signals over links, of which the one that took the least time counts.
 * Clocks are those of orrEventGetModelTime. error_ps is half of the time from the reference's signal to the
 * answer; it rests on nothing but that clocks do not go back, so also unlike ways, and cards that were busy,
 * are in it. An event that led to another over links has the earlier time without any correction; this is for
 * those that did not. Clocks of cards that do not keep step jump: the answer holds for device_ps, and says
 * nothing of how they went on. docs/synchronisation.md has the whole of it.
 *
 * It takes a queue of normal priority of each card, no engine, and some microseconds. As any signal does, it
 * takes a card that is idle and behind ahead to the time of what it hears. orrErrorInvalidDevice: one device
 * with itself; orrErrorPeerAccess: no way over links that are up, or one went down meanwhile;
 * orrErrorDeviceLost; orrErrorTimeout: not done after 10 s of the host's time. Thread safe.
 */
ORR_API orrError_t orrDeviceGetClockOffset(orrClockOffset* offset, int device, int reference);

/** Names a counter of a device. What it counts never changes; 0 is none. */
typedef uint32_t orrCounter_t;

/** An entry of a device's catalogue of counters. The texts live as long as the library. */
typedef struct orrCounterInfo {
    size_t size;         /**< see ORR_INIT */
    const char* name;    /**< "vector_busy_ps" */
    const char* unit;    /**< "ps", "bytes", "jobs": what it counts, or adds up */
    const char* meaning; /**< a sentence */
    orrCounter_t counter;
    uint32_t reserved;
    const char* engine; /**< "vector": the part of the card that counts it */
} orrCounterInfo;
/** How many counters a device has. */
ORR_API orrError_t orrDeviceGetCounterCount(size_t* count, int device);
/** For going through the catalogue: number 0 .. count - 1. The order may differ between versions. */
ORR_API orrError_t orrDeviceGetCounterInfo(orrCounterInfo* info, int device, size_t number);
/** By its name; orrErrorNotFound if this device has no such counter. */
ORR_API orrError_t orrDeviceFindCounter(orrCounter_t* counter, int device, const char* name);
/** values[i] of counters[i]; all of one moment. They count since the card's power-on. */
ORR_API orrError_t orrDeviceReadCounters(uint64_t* values, int device, const orrCounter_t* counters,
                                         size_t count);

/** Names a metric: what follows from counters by a formula. What it says never changes; 0 is none. */
typedef uint32_t orrMetric_t;

/** An entry of the catalogue of metrics. The texts live as long as the library. */
typedef struct orrMetricInfo {
    size_t size;         /**< see ORR_INIT */
    const char* name;    /**< "vector_utilisation" */
    const char* unit;    /**< "%", "GB/s" */
    const char* formula; /**< of how much counters have gone up: "100 * CORE_BUSY_PS / TIME_PS" */
    const char* meaning; /**< a sentence */
    const char* high;    /**< what a high value means */
    const char* low;     /**< and a low one */
    orrMetric_t metric;
    uint32_t reserved;
} orrMetricInfo;
/** How many metrics there are. A device that lacks counters of one has no value for it. */
ORR_API orrError_t orrGetMetricCount(size_t* count);
/** For going through the catalogue: number 0 .. count - 1. The order may differ between versions. */
ORR_API orrError_t orrGetMetricInfo(orrMetricInfo* info, size_t number);
/** By its name; orrErrorNotFound if there is no such metric. */
ORR_API orrError_t orrFindMetric(orrMetric_t* metric, const char* name);
/**
 * values[i] of metrics[i], from two readings of counters of the device: before[j] and after[j] of
 * counters[j]. before may be null: since power-on. A value is NaN if a counter of its formula is not among
 * them or has gone down, or if nothing happened of which it is a share. It asks the device for nothing.
 */
ORR_API orrError_t orrDeviceComputeMetrics(double* values, int device, const orrMetric_t* metrics,
                                           size_t count, const orrCounter_t* counters, const uint64_t* before,
                                           const uint64_t* after, size_t counter_count);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_DEVICE_H */
