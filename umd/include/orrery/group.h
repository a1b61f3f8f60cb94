/* SPDX-License-Identifier: MIT */
/**
 * Groups: members that do something together, each with a rank from 0 and a device. A member is a thread of a
 * program or a process of its own, on one machine or several (VMs). They meet in barriers, of the host or in
 * streams, where card waits for card with no host in between, and tell each other small values.
 *
 * All members make the same calls on a group in the same order, with the same sizes and roots. Nobody waits
 * for ever for one who does not: a group fails as a whole, with its first cause (orrGroupGetCause), when a
 * member dies, leaves or aborts, does something else than the others, does not come within somebody's limit,
 * or when its device is lost. Then every call of every member on it ends with that cause, and so do the
 * barriers in streams. A group that has failed stays so: destroy it and make a new one.
 */
#ifndef ORRERY_GROUP_H
#define ORRERY_GROUP_H

#include <orrery/base.h>
#include <orrery/handles.h>
#include <orrery/semaphore.h>
#include <orrery/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORR_GROUP_MAX_MEMBERS 64u
/** Of one orrGroupBroadcast, and of each member's part of one orrGroupAllGather. */
#define ORR_GROUP_MAX_BYTES 4096u
#define ORR_GROUP_TOKEN_CHARS 128u

/**
 * Where the processes of a group meet, and the secret by which they know each other: printable text without
 * blanks, which ends in a zero. Whoever has it may join, so give it to the members only, by whatever means:
 * an environment variable, a file that others may not read, a pipe.
 */
typedef struct orrGroupToken {
    char text[ORR_GROUP_TOKEN_CHARS];
} orrGroupToken;
/** A new one, for one group. Any process may make it, also one that does not join. Needs no card. flags: 0.
 */
ORR_API orrError_t orrGroupMakeToken(orrGroupToken* token, unsigned flags);
/**
 * The same for processes on several machines (VMs), whose cards are joined by links: they find each other by
 * files in this folder, which all machines see at this path, as /share of orrery-vm, and nobody else may read
 * or write. A path from the root, of printable characters without blanks, at most 51 of them. flags: 0.
 */
ORR_API orrError_t orrGroupMakeFolderToken(orrGroupToken* token, const char* folder, unsigned flags);

typedef struct orrGroup_st* orrGroup_t;

/** How a process joins. */
typedef struct orrGroupJoinParams {
    size_t size;       /**< see ORR_INIT */
    int32_t rank;      /**< below `members` */
    int32_t members;   /**< the same for all; 0: 1 */
    uint64_t limit_ns; /**< of the host's time; 0: a minute */
    uint32_t flags;    /**< 0 */
    uint32_t reserved; /**< 0 */
} orrGroupJoinParams;
/**
 * Joins with the current device, and returns when all have: processes of one user, one member a process, on
 * one machine unless the token has a folder. All of them, or none: who says something else than rank 0, or
 * dies meanwhile, fails it for all that are there. orrErrorTimeout after the limit: the text says who has not
 * come. Members' devices are the same, or joined by links, if need be over devices of other members; and each
 * process sees all of them (ORR_VISIBLE_DEVICES). Of several machines that holds within each; and machines
 * are joined by a link from a card of one to a card of the other, if need be over machines of other members.
 */
ORR_API orrError_t orrGroupJoin(orrGroup_t* group, const orrGroupToken* token,
                                const orrGroupJoinParams* params);

/**
 * Members in this process: groups[i] is that of rank i, on devices[i]; null: all on the current device. For a
 * thread each, or one that uses barriers in streams only. flags: 0.
 */
ORR_API orrError_t orrGroupCreateAll(orrGroup_t* groups, size_t members, const int* devices, unsigned flags);

/**
 * Leaves. To be called when all that the member takes part in is done: a barrier of its own in a stream that
 * is not fails the group. Others who go on without it are told.
 */
ORR_API orrError_t orrGroupDestroy(orrGroup_t group);

/** Of a group as one member has it. */
typedef struct orrGroupInfo {
    size_t size; /**< see ORR_INIT */
    int32_t rank, members;
    int32_t device;   /**< of this member */
    int32_t by_units; /**< 1: cards meet in barriers in streams by their barrier units; 0: by semaphores */
} orrGroupInfo;
/** Of the member whose handle it is. */
ORR_API orrError_t orrGroupGetInfo(orrGroupInfo* info, orrGroup_t group);

/**
 * Returns when all members have called it. limit_ns of the host's time; ORR_NO_LIMIT: as long as all live.
 * When it has passed the group fails (orrErrorTimeout), as nobody knows who has gone on.
 */
ORR_API orrError_t orrGroupBarrier(orrGroup_t group, uint64_t limit_ns);
/**
 * The same in a stream of the member's device: its later work waits until the earlier work of all members'
 * streams in which they called this is done. options: null for all defaults; a limit is one of the stream's
 * device, and stops the stream. Not in a capture. It is counted apart from the other calls.
 */
ORR_API orrError_t orrGroupBarrierAsync(orrGroup_t group, orrStream_t stream, const orrWaitOptions* options);

/** *data of the root goes to all others'. As a barrier of the host, also for the root. */
ORR_API orrError_t orrGroupBroadcast(orrGroup_t group, void* data, size_t bytes, int root, uint64_t limit_ns);
/** all + rank * bytes: what the member of that rank gave as `own`. As a barrier of the host. */
ORR_API orrError_t orrGroupAllGather(orrGroup_t group, void* all, const void* own, size_t bytes,
                                     uint64_t limit_ns);

/** Fails the group for all; nothing if it has failed. why: for the others' error texts, or null. */
ORR_API orrError_t orrGroupAbort(orrGroup_t group, const char* why);

/** Why a group has failed. */
typedef struct orrGroupCause {
    size_t size;     /**< see ORR_INIT */
    orrError_t code; /**< orrSuccess: it has not */
    int32_t rank;    /**< of whom it was; -1: nobody */
    int32_t device;  /**< his, as this process numbers them; -1: on another machine */
    int32_t reserved;
    char text[160]; /**< what it was, in one line */
} orrGroupCause;
/** The first cause; the same for all members. Looks at once how all are. */
ORR_API orrError_t orrGroupGetCause(orrGroupCause* cause, orrGroup_t group);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_GROUP_H */
