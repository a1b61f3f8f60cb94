/* SPDX-License-Identifier: MIT */
/** Memory: addresses are unique over all devices and the host. */
#ifndef ORRERY_MEMORY_H
#define ORRERY_MEMORY_H

#include <orrery/base.h>
#include <orrery/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/** On the current device. */
ORR_API orrError_t orrMalloc(void** ptr, size_t bytes);
/** Waits for the streams of its device and of those that may write to it as peers; null is fine. */
ORR_API orrError_t orrFree(void* ptr);
/** Pinned host memory, which every device and the CPU use at this address. flags: 0. */
ORR_API orrError_t orrMallocHost(void** ptr, size_t bytes, unsigned flags);
/** Waits for the streams of all devices; null is fine. */
ORR_API orrError_t orrFreeHost(void* ptr);
/** Of the current device, over all processes. */
ORR_API orrError_t orrMemGetInfo(size_t* free_bytes, size_t* total_bytes);

typedef enum orrMemcpyKind {
    orrMemcpyHostToHost = 0,
    orrMemcpyHostToDevice = 1,
    orrMemcpyDeviceToHost = 2,
    orrMemcpyDeviceToDevice = 3, /**< on one device, or to a peer (needs orrDeviceEnablePeerAccess) */
    orrMemcpyDefault = 4,        /**< found out from the addresses */
} orrMemcpyKind;

/** Returns when the copy is done. Uses the null stream of the device that is involved. */
ORR_API orrError_t orrMemcpy(void* dst, const void* src, size_t bytes, orrMemcpyKind kind);
/**
 * With memory of orrMallocHost it returns at once; with ordinary host memory it may return only
 * after that memory was read (host to device) or written (device to host).
 */
ORR_API orrError_t orrMemcpyAsync(void* dst, const void* src, size_t bytes, orrMemcpyKind kind,
                                  orrStream_t stream);
/** Each byte becomes the low 8 bits of value. Returns when that is done. */
ORR_API orrError_t orrMemset(void* dst, int value, size_t bytes);
/** The same in the order of a stream. */
ORR_API orrError_t orrMemsetAsync(void* dst, int value, size_t bytes, orrStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_MEMORY_H */
