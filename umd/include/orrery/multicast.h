/* SPDX-License-Identifier: MIT */
/**
 * Multicasts: memory of several devices that one other writes at once. What a stream copies or fills there
 * leaves its card once; the switch to which the card is joined copies it to each member. A copy with
 * reduction reads it: the switch asks all members, combines what they have, and one answer comes back.
 */
#ifndef ORRERY_MULTICAST_H
#define ORRERY_MULTICAST_H

#include <orrery/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Of orrMulticastCreate: its memory can be the source of copies with reduction. */
#define orrMulticastReadable 0x1u

/**
 * *ptr is where streams of the current device copy to and fill the first bytes bytes of each member; nobody
 * else reaches it, and nobody reads it but as below. members: count, 1 to 31, starts of memory of other
 * devices, one of each: of orrIpcMalloc, or of orrMalloc from 1 MiB on, as smaller pieces share their pages
 * with others. Peer access need not be enabled. flags: 0 or orrMulticastReadable. orrFree lets go of it, and
 * members that are freed before are kept until then.
 *
 * A stream is done with a copy when it has arrived at all members, and what comes behind it in the stream
 * comes behind it at each of them, as of copies to one.
 *
 * With orrMulticastReadable orrMemcpyReduce, its like for streams, and nodes of graphs take it for their
 * source: dst[i] = dst[i] op (members[0][i] op members[1][i] ..), with the op of the call, in the order of
 * `members`, so that the bits are the same each time; dst is memory of this device or of orrMallocHost. What
 * members are written meanwhile is for the caller to keep apart, as of any copy. A member that does not
 * answer fails it.
 *
 * Failure: when a device is lost, or something on the way to one may have been, streams that write there stop
 * with orrErrorPeerAccess, or as a lost device has it, and so does each that writes there later, also for the
 * sake of the other members: free it and make another.
 *
 * orrErrorTimeout: the device's link takes nothing more for now, or a debugger holds a card: try again.
 * orrErrorNotSupported: the card or its driver is older. orrErrorPeerAccess: not all members are reached over
 * a switch at one port. orrErrorOutOfMemory: the device has 16 already, or this user 12, or a member no
 * grants left.
 */
ORR_API orrError_t orrMulticastCreate(void** ptr, void* const* members, int count, size_t bytes,
                                      unsigned flags);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_MULTICAST_H */
