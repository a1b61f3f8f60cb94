/* SPDX-License-Identifier: MIT */
/**
 * What processes of one machine share: memory, semaphores and events of a card, without the host in between.
 *
 * The process that has something exports it as a file descriptor, sends that through a UNIX socket of the
 * program's own (orrIpcSend does so), and the other process imports it. Descriptors are ordinary ones, with
 * close-on-exec: whoever has one may import, so send it to those only who are meant. Both sides close theirs
 * whenever they like; what was imported stays. What is shared lives as long as one process has it or a
 * descriptor of it: who frees it, or is killed, takes nothing from the others, and gives no memory back as
 * long as others hold it. When the card is lost, all lose it.
 *
 * Each process has its own address for what is shared: send offsets, not pointers.
 */
#ifndef ORRERY_IPC_H
#define ORRERY_IPC_H

#include <orrery/base.h>
#include <orrery/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/** As orrMalloc, zeroed, in whole pages that no other allocation has, for orrIpcExportMemory. flags: 0. */
ORR_API orrError_t orrIpcMalloc(void** ptr, size_t bytes, unsigned flags);

/**
 * *fd is a new file descriptor for memory of orrIpcMalloc or orrMallocHost, of orrMalloc from 1 MiB on, or
 * that was imported; smaller pieces of orrMalloc share their pages with others and are refused. ptr: its
 * start. flags: 0.
 */
ORR_API orrError_t orrIpcExportMemory(int* fd, void* ptr, unsigned flags);

/** How the current device reaches imported memory. */
typedef enum orrIpcReach {
    orrIpcReachDirect = 0, /**< its own, or the host's: kernels, copies and fills use it */
    orrIpcReachLink = 1,   /**< a linked device's: copies write to it, after orrDeviceEnablePeerAccess */
    orrIpcReachHost = 2,   /**< no link is up: copies go through the host's memory (orrDeviceGetPeerWay) */
} orrIpcReach;

/** What was imported. */
typedef struct orrIpcMemory {
    size_t size;  /**< see ORR_INIT */
    void* ptr;    /**< in this process; orrFree (orrFreeHost if it is the host's) lets go of it */
    size_t bytes; /**< whole pages: what was exported may end in the last one */
    int device;   /**< that has it; -1: the host */
    orrIpcReach reach;
} orrIpcMemory;
/**
 * Memory behind a descriptor of orrIpcExportMemory; of a device that this process sees, which may be another
 * than the current one. A second time, or in the process that exported it: orrErrorInvalidValue, as it has
 * the memory already. flags: 0.
 */
ORR_API orrError_t orrIpcImportMemory(orrIpcMemory* memory, int fd, unsigned flags);

/** Of a semaphore made with orrSemaphoreInterprocess, or imported. flags: 0. */
ORR_API orrError_t orrIpcExportSemaphore(int* fd, orrSemaphore_t semaphore, unsigned flags);
/**
 * A semaphore of its own handle: streams and the host of each process signal and wait for it.
 *
 * Who waits learns what became of the others. What a stream had to do yet when it stopped, or its process was
 * killed, fails the semaphore for all. Whether anybody signals more than that is not known unless it is said:
 * orrSemaphoreAddSignaller in the process that signals. When the last stream for which any process said so is
 * gone, all waits end with orrErrorAbandoned. A process that is killed before it says so leaves others
 * waiting, up to their limits: have it say so before others wait. flags: 0.
 */
ORR_API orrError_t orrIpcImportSemaphore(orrSemaphore_t* semaphore, int fd, unsigned flags);

/** Of an event made with orrEventInterprocess, or imported. flags: 0. */
ORR_API orrError_t orrIpcExportEvent(int* fd, orrEvent_t event, unsigned flags);
/**
 * An event of its own handle: to wait for what the process that made it recorded last before the call. If
 * that process is killed first, the waits end with orrErrorAborted. flags: 0.
 */
ORR_API orrError_t orrIpcImportEvent(orrEvent_t* event, int fd, unsigned flags);

/** Of one orrIpcSend, at most. */
#define ORR_IPC_MAX_FDS 16u
#define ORR_IPC_MAX_BYTES 4096u
/**
 * Sends `count` descriptors and `bytes` bytes through a connected UNIX socket (stream or seqpacket), whole,
 * within limit_ns of the host's time: orrErrorTimeout then, and the socket is no use any more. One sender at
 * a time.
 */
ORR_API orrError_t orrIpcSend(int socket, const int* fds, size_t count, const void* data, size_t bytes,
                              uint64_t limit_ns);
/**
 * Receives what one orrIpcSend sent. *count and *bytes: room, then what came. What does not fit, or was sent
 * by something else, is orrErrorInvalidValue; the end of the other side orrErrorAborted. Descriptors of a
 * call that fails are closed. The other side is not trusted; limit_ns as above.
 */
ORR_API orrError_t orrIpcReceive(int* fds, size_t* count, size_t* bytes, void* data, int socket,
                                 uint64_t limit_ns);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_IPC_H */
