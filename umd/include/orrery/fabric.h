/* SPDX-License-Identifier: MIT */
/**
 * Memory and semaphores between machines (VMs) whose cards are joined by a link, or by switches: a stream of
 * one writes to memory of the other and signals a semaphore there, with no host in between.
 *
 * The process that has something makes a *handle* of it, which its program sends by any means: plain bytes,
 * good for as long as they are not revoked. Whoever has them may write there, so they are to be given to
 * those only who are meant. Processes of one machine share by orrery/ipc.h.
 *
 * A link carries writes and signals and nothing back. So a stream that is done with a copy has put it on the
 * link, where a signal follows it; who has to know that it has arrived waits for an answer, a signal of the
 * other side.
 *
 * Failure: who writes where nothing is shared any more (link down, the owner revoked it, or ended) has his
 * stream stop with orrErrorPeerAccess; who waits for a semaphore is told as below. Both know the other
 * machine by what the program says (orrSemaphoreSetName) and by its card's uid only.
 */
#ifndef ORRERY_FABRIC_H
#define ORRERY_FABRIC_H

#include <orrery/base.h>
#include <orrery/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque, and the same for all machines and versions that know it. Its bits include 128 random ones. */
typedef struct orrFabricHandle {
    uint64_t opaque[8];
} orrFabricHandle;

/**
 * Lets who has the handle write to this memory: of orrIpcMalloc, or of orrMalloc from 1 MiB on, as smaller
 * pieces share their pages with others. ptr: its start. Until orrFabricRevoke, orrFree or the end of the
 * process. Each call makes another handle. flags: 0. orrErrorNotSupported: the card or its driver is older.
 */
ORR_API orrError_t orrFabricExportMemory(orrFabricHandle* handle, void* ptr, unsigned flags);
/**
 * *ptr is where streams of the current device, which a link or switches join to the owner, copy to and fill
 * *bytes bytes of it, whole pages; nobody else reaches it, and nobody reads it. orrFree lets go of it. flags:
 * 0.
 *
 * Of what is said to be a handle: orrErrorInvalidValue, it is none, or of something else, or of this machine;
 * orrErrorInvalidHandle, its owner does not know it (any more), which he is told of;
 * orrErrorPeerAccess, nothing leads there, or it went (links with cards between do not);
 * orrErrorTimeout, the driver there does not answer, or memory that was freed there and is lent again is
 * still being taken away from who had it here; orrErrorOutOfMemory, it has no grants left, or the handle is
 * imported 64 times already.
 */
ORR_API orrError_t orrFabricImportMemory(void** ptr, size_t* bytes, const orrFabricHandle* handle,
                                         unsigned flags);

/**
 * Lets who has the handle signal this semaphore, made with orrSemaphoreInterprocess, for which no stream was
 * added as a signaller: all who import it are signallers. When the last of them has let go of it (he
 * destroyed it, and his device's streams were done with what they had; he ended or was killed), or the link
 * to him went, or his machine, streams that wait for more than its value stop with orrErrorAbandoned, or with
 * orrErrorPeerAccess in the latter cases; orrSemaphoreWait gives orrErrorAbandoned. It stays so: make a new
 * one then. Nobody is missed who has not imported it yet: give waits a limit until he says that he has.
 * A semaphore may have several handles, whose importers count together; when the last handle is taken back
 * and nobody has one imported, it is closed, too. flags: 0.
 */
ORR_API orrError_t orrFabricExportSemaphore(orrFabricHandle* handle, orrSemaphore_t semaphore,
                                            unsigned flags);
/**
 * A semaphore of its own handle that streams of the current device, and the host, may signal, behind what
 * they have written there. What a stream had to do yet when it stopped, or its process was killed, fails it
 * for those who wait. Nobody here waits for it or asks for its value: orrErrorNotSupported. Errors as of
 * orrFabricImportMemory, and orrErrorAbandoned: it is closed. flags: 0.
 */
ORR_API orrError_t orrFabricImportSemaphore(orrSemaphore_t* semaphore, const orrFabricHandle* handle,
                                            unsigned flags);

/**
 * Takes a handle back that this process made. When it returns, what was sent before has been carried out, and
 * nothing that follows is. orrErrorInvalidHandle: it was none of this process, or was taken back before.
 */
ORR_API orrError_t orrFabricRevoke(const orrFabricHandle* handle);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_FABRIC_H */
