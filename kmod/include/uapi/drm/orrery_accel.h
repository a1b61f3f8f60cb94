/* SPDX-License-Identifier: MIT */
/*
 * ioctls of /dev/accel/accelN as served by orrery.ko.
 *
 * Rules:
 *  - Structs grow at their end only; a shorter one from older user space reads as if padded with
 *    zeros (the DRM core does this). Unknown flags and non-zero padding: -EINVAL.
 *  - Handles, VMs and queues belong to the open file; another file's numbers are -ENOENT.
 *  - Virtual addresses are chosen by user space: [ORR_VA_START, ORR_VA_END), 4 KiB granules.
 *  - Submission needs no ioctl: write packets (orrery/fw/packet.h) to the ring, then ring the
 *    doorbell as orrery/hw/doorbell.h says.
 *  - After a reset or removal of the card ioctls give -ENODEV, mapped doorbells and VRAM become
 *    private zero pages that lead nowhere (no SIGBUS), and waits end with -ENODEV.
 *  - dma-buf: DRM_IOCTL_PRIME_*. A VRAM BO of a card can be imported on a card that is linked to it;
 *    binding it makes peer entries (write and signal; since 1.7 copies read, too) and grants the range
 *    to that card. A mapping of what a card held before its driver was bound anew leads nowhere.
 *    Importing it on a card without a link: -EXDEV.
 */
#ifndef _UAPI_DRM_ORRERY_ACCEL_H_
#define _UAPI_DRM_ORRERY_ACCEL_H_

#include "drm.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define DRM_ORR_QUERY_DEVICE 0x00
#define DRM_ORR_BO_CREATE 0x01
#define DRM_ORR_BO_INFO 0x02
#define DRM_ORR_VM_CREATE 0x03
#define DRM_ORR_VM_DESTROY 0x04
#define DRM_ORR_VM_BIND 0x05
#define DRM_ORR_QUEUE_CREATE 0x06
#define DRM_ORR_QUEUE_DESTROY 0x07
#define DRM_ORR_QUEUE_WAIT 0x08
#define DRM_ORR_QUEUE_FENCE 0x09
#define DRM_ORR_QUERY_COUNTERS 0x0a
#define DRM_ORR_QUERY_LINK 0x0b
#define DRM_ORR_QUEUE_SET 0x0c
#define DRM_ORR_QUEUE_STATS 0x0d
#define DRM_ORR_QUERY_DEADLOCK 0x0e
#define DRM_ORR_QUEUE_ABORT 0x0f
#define DRM_ORR_SIGNALLER_ATTACH 0x10
#define DRM_ORR_SIGNALLER_DETACH 0x11
#define DRM_ORR_QUERY_WAY 0x12
#define DRM_ORR_QUERY_CYCLE 0x13
#define DRM_ORR_FABRIC_EXPORT 0x14
#define DRM_ORR_FABRIC_IMPORT 0x15
#define DRM_ORR_FABRIC_REVOKE 0x16
#define DRM_ORR_BARRIER_CREATE 0x17
#define DRM_ORR_MULTICAST_CREATE 0x18
#define DRM_ORR_WORK_READ 0x19
#define DRM_ORR_SAMPLE_READ 0x1a
#define DRM_ORR_PC_READ 0x1b

#define ORR_VA_START 0x10000ull
#define ORR_VA_END 0x800000000000ull /* 2^47: above belongs to the vector cores */

/* What the card and its driver are. */
struct drm_orr_query_device {
	__u64 uid; /* unique card number */
	__u64 vram_size; /* bytes, without those in which the firmware saves preempted kernels */
	__u64 vram_used; /* bytes allocated at this moment, by all processes */
	__u64 core_hz;
	__u64 vector_hz;
	__u64 model_time_ps; /* read now; costs a trapped access */
	__u32 hw_version; /* major << 16 | minor */
	__u32 fw_abi; /* major << 16 | minor */
	__u32 fw_version; /* major << 16 | minor << 8 | patch */
	__u32 copy_engines;
	__u32 vector_ports;
	__u32 vector_cores;
	__u32 link_ports;
	__u32 max_ring_entries;
	__u32 counters; /* number of counters */
	__u32 state; /* ORR_STATE_* of orrery/hw/bar0.h; read now */
	__u8 sku_name[32]; /* zero-padded */
	__u8 fw_build_id[32];
	__u32 features; /* ORR_FEATURE_*: what this driver and firmware can do; 0 from a driver before 1.1 */
	__u32 vector_vlen; /* bits of a vector register, 0: none; 0 from a driver before 1.3 */
	__u8 vector_isa[128]; /* what they run, as compilers write it, zero-padded; empty: nobody has said */
};

/* Queues fail what they would have signalled: QUEUE_ABORT, SIGNALLER_*, queue_create's firmware_number. */
#define ORR_FEATURE_FAILURE (1u << 0)
/* The card checks kernels' use of memory and wants to be told of heaps: ORR_CHECKS_MEMORY. */
#define ORR_FEATURE_TELL (1u << 1)
/* Kernels may use atomics on guest RAM, else ORR_FAULT_ATOMIC. A driver before 1.4 does not say. */
#define ORR_FEATURE_HOST_ATOMICS (1u << 2)
/* Its model time keeps step with that of the cards that it is linked to. A driver before 1.6 does not say. */
#define ORR_FEATURE_IN_STEP (1u << 3)
/*
 * Copies read memory of other cards that say so too, where it is mapped with ORR_BIND_READ. A driver
 * before 1.7 does not say.
 */
#define ORR_FEATURE_PEER_READS (1u << 4)
/* FABRIC_EXPORT takes ORR_FABRIC_SEMAPHORE. A driver before 1.8 does not say. */
#define ORR_FEATURE_FABRIC_SEMAPHORES (1u << 5)
/* The card can be a member of barriers (BARRIER_CREATE). A driver before 1.8 does not say. */
#define ORR_FEATURE_BARRIERS (1u << 6)
/*
 * The card writes to several at once, over a switch (MULTICAST_CREATE). A driver before
 * 1.9 does not say.
 */
#define ORR_FEATURE_MULTICASTS (1u << 7)
/*
 * It reads them too, combined by the switch (ORR_MULTICAST_READ). A driver before 1.10 does not say.
 */
#define ORR_FEATURE_MULTICAST_READS (1u << 8)
/* QUERY_COUNTERS tells all of one moment of model time. A driver before 1.10 does not say. */
#define ORR_FEATURE_SNAPSHOTS (1u << 9)
/* The card says when it began and ended work (WORK_READ). A driver before 1.10 does not say. */
#define ORR_FEATURE_WORK (1u << 10)
/* It says what each job did (ORR_WORK_COUNTERS). A driver before 1.12 does not say. */
#define ORR_FEATURE_WORK_COUNTERS (1u << 11)
/* It samples its counters (SAMPLE_READ). A driver before 1.12 does not say. */
#define ORR_FEATURE_SAMPLES (1u << 12)
/* It says where its vector cores are (PC_READ). A driver before 1.13 does not say. */
#define ORR_FEATURE_PCS (1u << 13)
/* It says when queues have signalled (ORR_WORK_SIGNALS). A driver before 1.15 does not say. */
#define ORR_FEATURE_SIGNALS (1u << 14)

#define ORR_BO_VRAM (1u << 0) /* in the card's memory */
#define ORR_BO_SYSTEM (1u << 1) /* in guest RAM, pinned, cached */

struct drm_orr_bo_create {
	__u64 size; /* in: bytes, > 0; out: rounded up to pages */
	__u32 flags; /* in: exactly one of ORR_BO_VRAM, ORR_BO_SYSTEM */
	__u32 handle; /* out: close with DRM_IOCTL_GEM_CLOSE */
	__u64 mmap_offset; /* out: for mmap() of the device file */
};

struct drm_orr_bo_info {
	__u32 handle; /* in */
	__u32 flags; /* out: ORR_BO_*; 0: imported */
	__u64 size; /* out */
	__u64 mmap_offset; /* out; 0: cannot be mapped (a linked card's memory) */
	__u64 peer_uid; /* out: card that holds the memory, 0: this card or guest RAM */
};

struct drm_orr_vm_create {
	__u32 flags; /* in: 0 */
	__u32 vm; /* out: never 0 */
	/*
	 * in: vector core time in 1/1000 of the card's that the VM's queues may use in a period, 1 .. 1000;
	 * 0: no limit. A VM over its quota waits for the next period.
	 */
	__u32 quota_permille;
	__u32 quota_period_us; /* in: model time, 100 .. 1000000; 0 with no quota */
};

struct drm_orr_vm_destroy {
	__u32 vm; /* in; -EBUSY while it has queues */
	__u32 pad;
};

#define ORR_BIND_MAP 0u
#define ORR_BIND_UNMAP 1u /* any part of earlier maps; holes are fine */

#define ORR_BIND_READ (1u << 0)
#define ORR_BIND_WRITE (1u << 1)
#define ORR_BIND_EXEC (1u << 2)

/*
 * Synchronous: when it returns, the card sees the new mapping and, for an unmap, nothing of the
 * card can reach the old one. A map over an existing mapping: -EEXIST.
 */
struct drm_orr_vm_bind {
	__u32 vm;
	__u32 op; /* ORR_BIND_MAP or _UNMAP */
	__u32 handle; /* map: BO; unmap: 0 */
	__u32 flags; /* map: ORR_BIND_READ | ...; at least one; unmap: 0 */
	__u64 bo_offset; /* map: 4 KiB aligned; unmap: 0 */
	__u64 va; /* 4 KiB aligned */
	__u64 size; /* bytes, multiple of 4 KiB, > 0 */
};

#define ORR_QUEUE_PRIORITY_LOW 0u
#define ORR_QUEUE_PRIORITY_NORMAL 1u
#define ORR_QUEUE_PRIORITY_HIGH 2u
#define ORR_QUEUE_PRIORITY_REALTIME 3u /* CAP_SYS_NICE, else -EACCES */

struct drm_orr_queue_create {
	__u32 vm; /* in */
	__u32 entries; /* in: power of two, 2 .. max_ring_entries */
	__u64 ring_va; /* in: struct orr_ring, 64-byte aligned, mapped readable and writable, header zeroed */
	__u32 priority; /* in */
	/*
	 * in: model time a dispatch may take; 0: the firmware's default, 1 s; above ORR_QUEUE_LIMIT_MAX_US
	 * with CAP_SYS_NICE, else -EACCES
	 */
	__u32 dispatch_limit_us;
	__u32 queue; /* out: never 0 */
	__u32 doorbell_slot; /* out: in the doorbell page */
	__u64 doorbell_offset; /* out: mmap offset of the file's doorbell page, one page, read and write */
	__u64 kick_offset; /* out: mmap offset of the file's kick page, one page, write */
	__u64 generation; /* out: for ORR_DB_VALUE() */
	/* in: share of engine time inside its priority, 1 .. ORR_QUEUE_WEIGHT_MAX; 0: the default, 64 */
	__u32 weight;
	/*
	 * in: model time before another of its priority may take the engine; 0: the firmware's default, which
	 * is ORR_QUEUE_SLICE_MAX_US; above that with CAP_SYS_NICE, else -EACCES; below 50 as 50
	 */
	__u32 slice_us;
	/*
	 * in: for traces and reports, zero-padded with at least one zero; what is not printable ASCII
	 * becomes '?'; empty: the kernel makes one of command and number
	 */
	__u8 name[24];
	__u32 firmware_number; /* out: as failure words (orrery/fw/failure.h) and traces have it */
	__u32 pad; /* out: 0 */
};

#define ORR_QUEUE_WEIGHT_MAX 1024u
#define ORR_QUEUE_SLICE_MAX_US 1000u /* without CAP_SYS_NICE */
#define ORR_QUEUE_LIMIT_MAX_US 10000000u /* without CAP_SYS_NICE: 10 s */

struct drm_orr_queue_set {
	__u32 queue;
	__u32 priority; /* as in queue_create, REALTIME with CAP_SYS_NICE */
	__u32 weight; /* as in queue_create */
	__u32 slice_us; /* as in queue_create */
};

/* What the firmware counts for a queue; model time. */
struct drm_orr_queue_stats {
	__u32 queue; /* in */
	__u32 pad;
	__u64 vector_ps; /* out: vector core time used */
	__u64 copy_ps; /* out: copy engine time used */
	__u64 jobs; /* out: dispatches and copies that have finished */
	__u64 preemptions; /* out */
	__u64 waited_ps; /* out: time ready but not running */
	__u64 longest_wait_ps; /* out */
};

struct drm_orr_queue_destroy {
	__u32 queue; /* in: what is in flight is aborted; its fences end with -ECANCELED */
	__u32 pad;
};

/*
 * Stops a queue now, with ORR_QERR_ABORTED unless it has stopped already: when it returns, nothing of it
 * runs, and the semaphores that its packets would have signalled have failed (orrery/fw/failure.h). The
 * queue stays and can be asked what became of it; its waits and fences end as of any queue that stops.
 * -EINTR: the caller was killed before; the queue stops all the same.
 */
struct drm_orr_queue_abort {
	__u32 queue; /* in */
	__u32 flags; /* in: 0 */
};

#define ORR_SIGNALLERS_MAX 65536u /* semaphores to which one queue can be attached */
#define ORR_SIGNALLERS_AT_ONCE 256u /* of one call */

/*
 * Declares that a queue may signal semaphores, or (DETACH) that it will not any more. When the last queue
 * that was attached to a semaphore, of whatever process and card, has stopped, is destroyed, is detached or
 * cannot be reached any more, the semaphore is closed (ORR_SEM_CLOSED): waits for more than its value stop
 * with ORR_QERR_POISON, the failure word says ORR_QERR_ABANDONED, or ORR_QERR_PEER_LOST. A semaphore to
 * which no queue was ever attached is never closed. To use the memory of a closed or failed semaphore
 * again, detach all, write zeros to it, and attach anew. A queue is attached to a semaphore once or not at
 * all: a second ATTACH changes nothing. What is attached belongs to the address of the first: when that is
 * unmapped, it is detached. Over a link it ends when the link goes down, and does not come back with it.
 *
 * ATTACH does it for all or for none: -EIO if the queue has stopped, -ENOSPC beyond ORR_SIGNALLERS_MAX,
 * -EFAULT if they are not in one mapping, -EACCES if that is not ORR_BIND_WRITE, -EINTR if the caller is
 * killed while one of them is being closed. Over a link that is down the semaphore is closed at once.
 * DETACH: -EFAULT as above. It, QUEUE_DESTROY, QUEUE_ABORT and an unmap return when what they leave alone
 * has been closed, so that its memory can be used for something else, unless the caller is killed.
 */
struct drm_orr_signaller {
	__u32 queue; /* in */
	__u32 flags; /* in: 0 */
	__u64 semaphore; /* in: VA in the queue's VM of the first struct orr_semaphore, 16-byte aligned */
	__u32 count; /* in: semaphores, one after the other, 1 .. ORR_SIGNALLERS_AT_ONCE, in one mapping */
	__u32 pad; /* in: 0 */
};

/*
 * Sleeps until the queue has completed `index` packets, or stopped, or the time is up. -EDEADLK: the queue
 * is in a cycle of waits that the firmware has found (DRM_IOCTL_ORR_QUERY_DEADLOCK shows it); it still runs,
 * and a signal from outside the cycle lets it go on.
 */
struct drm_orr_queue_wait {
	__u32 queue;
	__u32 flags; /* 0 */
	__u64 index;
	__s64 timeout_ns; /* absolute CLOCK_MONOTONIC; <= 0: only look. Over: -ETIME */
	__u64 completed; /* out */
	__u64 time_ps; /* out: model time of the last completion */
	__u32 error; /* out: ORR_QERR_*; a stopped queue ends the wait with 0 and this set */
	__u32 pad;
	__u64 error_index; /* out */
	__u64 error_address; /* out */
	__u64 error_detail; /* out */
};

/* Puts a fence that signals when the queue completes `index` packets into a syncobj. */
struct drm_orr_queue_fence {
	__u32 queue;
	__u32 syncobj;
	__u64 index; /* a queue that stops or goes away before signals it with an error */
	__u64 point; /* timeline point; 0: binary syncobj */
};

/* -ETIMEDOUT: the card was late with its counters, try again; -EIO: it does not reach its driver's memory. */
struct drm_orr_query_counters {
	__u64 values; /* in: user pointer to __u64[count] */
	__u32 count; /* in: room; out: counters that the card has */
	__u32 pad;
};

struct drm_orr_query_link {
	__u32 port; /* in */
	__u32 state; /* out: ORR_LINK_* of orrery/hw/link.h */
	__u64 peer_uid; /* out: 0 while down */
	__u32 peer_port; /* out */
	__u32 lanes; /* out */
	__u32 gbps; /* out */
	__u32 latency_ns; /* out */
	__u32 losses; /* out: how often it has gone down; a driver before 1.2 leaves it as it was */
	__u32 pad; /* 0 */
	/* Since 1.17: what the port has counted since the card's power-on, as far as `known` says. */
	__u64 rx_messages; /* out */
	__u64 rx_bytes; /* out: of payload */
	__u64 tx_messages; /* out */
	__u64 tx_bytes; /* out */
	__u32 crc_errors; /* out: frames that came damaged */
	__u32 retries; /* out: frames sent again */
	__u32 retrains; /* out: trainings that it stayed up for */
	__u32 changes; /* out: of state or width */
	__u32 denied; /* out: messages that no grant allowed */
	__u32 bad_keys; /* out: those of them with a wrong key */
	__u32 refused; /* out: writes and signals of this card that their owner refused */
	__u32 forged; /* out: other machines' handles with a wrong secret, as the driver counts them */
	__u32 built; /* out: lanes that the port has */
	__u32 known; /* out: ORR_LINK_KNOWS_*; a driver before 1.17 leaves all of these as they were */
};

/* The messages, bytes, crc_errors, retries, retrains, changes and built (hardware 2.1); else they are 0. */
#define ORR_LINK_KNOWS_COUNTS 0x1u
/* denied, bad_keys and refused (hardware 2.2); else they are 0. */
#define ORR_LINK_KNOWS_DENIALS 0x2u
/* forged: from 1.17 on. */
#define ORR_LINK_KNOWS_FORGED 0x4u

/*
 * How memory of another card is reached: over one link or several. What is under way when one of them goes
 * down may be lost; version is another one then, also if the way is there again. Since 1.5.
 *
 * With node (1.11), a number of a card of another machine as FABRIC_EXPORT there tells it: how that one would
 * be reached, with version 0. One at the other end of a link only once its driver has greeted.
 *
 * The lost_* (1.16) name the last link of a way between the two that has gone down and so ended it. A version
 * that has ended though lost_version is older than it (as the difference of both, signed, says) was ended by
 * something else: what goes over other links now, or what a switch has lost while all links were up.
 * Of links between switches (1.18) they say what switches say. Once one of the two cards is lost they name a
 * link only if it went down before that (1.19).
 *
 * What was sent by a version before settled (1.17; as the difference, signed, says) has arrived by the time
 * of the call or never will: the cards at both ends deny it, or the link between them that was up again
 * has dropped it. It is version as soon as both have been told, which waits for those that a debugger holds.
 */
struct drm_orr_query_way {
	__u64 peer_uid; /* in: the other card; 0 with node */
	__u32 links; /* out: 0: there is no way */
	__u32 port; /* out: of this card, by which it begins */
	__u32 gbps; /* out: of the slowest link */
	__u32 latency_ns; /* out: one way, with what cards between take to pass on */
	__u32 version; /* out: 0: nothing has been imported between the two cards yet */
	__u32 node; /* in: 0, or of another machine's card; before 1.11: 0 */
	__u64 lost_uid; /* out: card with one end of that link, see lost_is; 0: none has gone down */
	__u64 lost_peer_uid; /* out: card with the other; 0: a switch has it */
	__u32 lost_port; /* out: of the card lost_uid */
	__u32 lost_version; /* out: of the way that ended with it */
	__u32 settled; /* out: a version, of all before which nothing is on its way; 0: not known (1.17) */
	__u32 lost_is; /* out: ORR_LOST_*; a driver before 1.18: 0 */
};

/* lost_uid is no card, but a switch: a link between two of them. */
#define ORR_LOST_AT_SWITCH 0x1u
/* lost_peer_uid is no card, but a switch, or 0. */
#define ORR_LOST_TO_SWITCH 0x2u

struct drm_orr_wait_edge {
	__u32 queue; /* waits; this file's number, or 0: another file's */
	__u32 signaller; /* whose packets hold the signal; this file's number, or 0: another file's */
	__u64 semaphore; /* VA in the waiting queue's VM; 0 with queue 0 */
	__u64 wanted;
	__u64 value; /* when it was found */
	__u64 index; /* of the waiting packet */
	__u8 queue_name[24];
	__u8 signaller_name[24];
};

/*
 * The last cycle of waits that still stands and in which a queue of this file takes part. Of another file's
 * queues the index is 0 too; if that file belongs to another user, so are the values, and the name is empty.
 */
struct drm_orr_query_deadlock {
	__u64 edges; /* in: user pointer to struct drm_orr_wait_edge[count] */
	__u32 count; /* in: room; out: edges of the cycle; 0: none stands */
	__u32 report; /* out: its number, counts up */
};

/*
 * A wait of drm_orr_query_cycle. What belongs to another user is 0. The next edge's queue holds the signal.
 * Of a wait on another machine (1.14) there are node, name and wanted: its user is told who has lent the
 * memory, or has borrowed it there. Between two of them there may be more.
 */
struct drm_orr_cycle_edge {
	__u64 device_uid; /* card of the queue that waits */
	__u64 semaphore; /* VA in that queue's VM; 0: another process's */
	__u64 signal; /* VA in the signaller's VM, as its packet has it; 0: another process's */
	__u64 wanted;
	__u64 index; /* of the waiting packet */
	__u32 queue; /* the firmware's number, see queue_create */
	__u32 known; /* 1: queue, card, name, wanted and index are told; 0: another user's, or no queue */
	__u32 pid; /* of the process that opened the file; 0: not of the caller's namespace */
	__u32 node; /* of a wait on another machine its card's number; 0: on this one. Before 1.14: 0 */
	__u8 name[24];
};

/*
 * The cycle of waits over cards, processes and machines that a queue cannot leave, or somebody who waits for
 * a semaphore without a queue. The rings of all queues are read now: each wait on the way can be ended only
 * by what stands in the packets of others who wait likewise. That is no error yet: a process can still
 * signal.
 * Drivers of other machines are asked if they matter, for 250 ms at most; no answer: no cycle.
 * What has been signalled may be under way: believe it when it is told twice with one stamp. Since 1.6.
 * -ENOENT: no such queue or VM; -EFAULT: no semaphore is mapped there.
 */
struct drm_orr_query_cycle {
	__u64 edges; /* in: user pointer to struct drm_orr_cycle_edge[count] */
	__u64 semaphore; /* in: VA, 16-byte aligned; 0 with a queue */
	__u64 value; /* in: that is waited for; 0 with a queue */
	__u64 stamp; /* out: the same while the same queues wait with the same packets; 0: no cycle */
	__u32 queue; /* in: of this file, or 0 */
	__u32 vm; /* in: of this file, with a semaphore; else 0 */
	__u32 count; /* in: room; out: edges from the caller on, 0: there is no cycle */
	__u32 lead; /* out: of them those before the cycle; if a node's alone is in it, it is elsewhere */
};

/*
 * Memory for cards of other machines (1.6; hardware 2.2). What comes out is a handle: whoever has it, on a
 * machine with a card at the other end of a link of this one, or (1.11, hardware 2.11) behind a switch that
 * both reach, may write there, so it is to be given to those only who are meant. Until FABRIC_REVOKE, or the
 * end of the file.
 *
 * ORR_FABRIC_SEMAPHORE: the memory begins with a struct orr_semaphore that who imports it may signal. When
 * the last of them has let go of it or cannot reach it any more, and with the last handle, the semaphore is
 * closed (who imports it then: -EOWNERDEAD), unless queues of this machine are attached to it. Needs
 * ORR_FEATURE_FABRIC_SEMAPHORES.
 */
#define ORR_FABRIC_SEMAPHORE (1u << 0)

struct drm_orr_fabric_export {
	__u32 handle; /* of a VRAM BO of this card */
	__u32 flags; /* 0 or ORR_FABRIC_SEMAPHORE */
	__u64 object; /* out: the handle's number */
	__u64 size; /* out: bytes */
	__u32 node; /* out: the card's number among those that it reaches */
	__u32 pad; /* out: 0 */
	__u8 secret[16]; /* out: random */
};

/*
 * A BO of such memory, to be bound for writing; -EINVAL if it is this machine's. What was shared and is not
 * any more can be bound no more (-ENOTCONN), and what is bound leads nowhere.
 */
struct drm_orr_fabric_import {
	__u64 object; /* as they came out */
	__u64 size;
	__u32 node;
	__u32 flags; /* 0 */
	__u8 secret[16];
	__u32 handle; /* out */
	__u32 pad; /* 0 */
};

/*
 * 0: nobody can write there by that handle any more; what was sent before has been carried out, but for what
 * had not come as far as the switches that the owner's own switch asks, over more than one.
 */
struct drm_orr_fabric_revoke {
	__u64 object; /* of this file */
	__u64 pad; /* 0 */
};

#define ORR_BARRIER_MEMBERS_MAX 16u

/* A card that is a member of a barrier. */
struct drm_orr_barrier_member {
	__s32 memory; /* in: dma-buf of a VRAM BO of that card, which says which card it is */
	/*
	 * in: 0; out: dma-buf of a BO of one page of that card, O_CLOEXEC, to be imported on it and bound
	 * with ORR_BIND_WRITE alone
	 */
	__s32 page;
	__u64 offset; /* in: of a struct orr_semaphore in the memory, 16-byte aligned, which is 0 */
};

/*
 * A barrier of several cards of this driver in their barrier units (1.8; hardware 2.3). A queue of a
 * member arrives at round n by signalling the first semaphore of its page with n, and waits for n at the
 * member's semaphore, which the cards raise when all have arrived, each at its own. Rounds begin with 1 and
 * count up. A member that is ahead may arrive further.
 *
 * It fails for good when a queue fails the page as any other semaphore that it would have signalled, when
 * nobody has a member's page any more (ORR_QERR_ABANDONED), and when a card or the way between two is lost
 * (ORR_QERR_PEER_LOST); the failure word names the card. The semaphores of all members fail that are at a
 * later round than the last that ended well at whoever left, or come to one. So a member that is ahead may
 * get the failure while it waits for a round that ended well for others, and the semaphore of one that does
 * not arrive stays as it is. There is no other end: close all dma-bufs and handles, and unbind. The
 * members' memory is kept until then.
 *
 * -EOPNOTSUPP: a card has no unit, or one for fewer; -EBUSY: all slots of one are taken, or a debugger holds
 * one of the cards, or a card on their ways, or the firmware of one has not looked yet at too many that have
 * ended; -EDQUOT: too many slots by this user; -EXDEV: two of the cards have no way to each other, or it was
 * made anew meanwhile; -EINVAL: two members are of one card, or a memory is not of a card of this driver;
 * -EBADF: it is no descriptor; -EMFILE: too many of those; -ENODEV: a card is lost; -EIO: its unit refuses
 * what no unit should; -ENOMEM; -EINTR, -ERESTARTSYS: by a signal.
 */
struct drm_orr_barrier_create {
	__u64 members; /* in: user pointer to struct drm_orr_barrier_member[count], filled in */
	__u32 count; /* in: 2 .. ORR_BARRIER_MEMBERS_MAX */
	__u32 flags; /* in: 0 */
};

#define ORR_MULTICAST_MEMBERS_MAX 31u

/*
 * drm_orr_multicast_create.flags: it may be bound with ORR_BIND_READ, too, and then members grant
 * reads. A copy with reduction whose source is there gets each element combined, by the copy's own
 * function and in the order of the members, in one answer; other reads end with
 * ORR_FAULT_NO_ROUTE. (1.10, ORR_FEATURE_MULTICAST_READS)
 */
#define ORR_MULTICAST_READ (1u << 0)

struct drm_orr_multicast_member {
	__s32 memory; /* in: dma-buf of a VRAM BO of another card of this driver */
	__u32 pad; /* 0 */
	__u64 offset; /* in: where the multicast begins in it, 4 KiB aligned */
};

/*
 * Memory of several cards as one BO of this card, to be bound with ORR_BIND_WRITE alone, unless it
 * has ORR_MULTICAST_READ (1.9; hardware 2.5). What copies and signals of this card write there
 * leaves it once; a switch copies it to each member, where it comes in order with what this card
 * writes there otherwise. Queues cannot be attached to semaphores in it. While it is bound each
 * member grants as for an import. When something of the way to a member may have been lost, the
 * multicast is cut, for good and for all: who writes there stops with ORR_FAULT_PEER_DOWN. What a
 * member refuses its link counts.
 *
 * -EOPNOTSUPP: the card knows none, or reads none; -EXDEV: a member is not reached by a switch, or
 * not by the same port as the others; -EBUSY: too many stores wait at the port, or a debugger holds
 * a card (before 1.10 also: as -ENOSPC); -EDQUOT: this user has too many; -ENOSPC: the card has as
 * many as it can, or all numbers of cards are taken; -EINVAL: two members are of one card, or one
 * is of this card, or it is no memory of a card, or too short; -EBADF: it is no descriptor;
 * -ENODEV: a card is lost; -EIO: it refuses what no card should; -ENOMEM; -ERESTARTSYS: by a
 * signal.
 */
struct drm_orr_multicast_create {
	__u64 members; /* in: user pointer to struct drm_orr_multicast_member[count] */
	__u64 size; /* in: bytes, whole pages, that each member has from its offset on */
	__u32 count; /* in: 1 .. ORR_MULTICAST_MEMBERS_MAX */
	__u32 flags; /* in: ORR_MULTICAST_*; before 1.10: 0 */
	__u32 handle; /* out */
	__u32 pad; /* 0 */
};

#define ORR_WORK_START (1u << 0) /* in: records are wanted, from now on */
#define ORR_WORK_STOP (1u << 1) /* in: and no more; without START before it nothing happens */
#define ORR_WORK_LOST (1u << 2) /* out: read too late: some are lost, behind those that are given */
#define ORR_WORK_MORE (1u << 3) /* out: there are more */
#define ORR_WORK_COUNTERS (1u << 4) /* in, beside START: also what jobs did that begin from now on (1.12) */
#define ORR_WORK_SIGNALS (1u << 5) /* in, beside START: also what queues signal from now on (1.15) */

/* Kinds of records. */
#define ORR_WORK_JOB 1u /* a packet has ended on its engine; one that was preempted has one for each part */
#define ORR_WORK_WAIT 2u /* a WAIT begins to wait */
#define ORR_WORK_WAKE 3u /* the WAIT for which the queue has waited is over */
#define ORR_WORK_SIGNAL 4u /* a SIGNAL was carried out, or what it would have signalled has failed (1.15) */

struct drm_orr_work_record {
	__u64 time_ps; /* when the firmware said so; all times are model time of the card */
	__u64 index; /* of the packet in its ring; 0 of WAKE and SIGNAL */
	union {
		__u64 start_ps; /* of JOB: when the engine began, as the next two; else 0 */
		__u64 value; /* of SIGNAL: what the semaphore was given; ORR_SEM_FAILED and more: it failed */
	};
	union {
		__u64 end_ps;
		__u64 va; /* of SIGNAL: where the queue has the semaphore */
	};
	__u64 used_ps; /* engine time, summed over vector cores */
	__u32 queue; /* firmware_number of QUEUE_CREATE */
	__u16 kind; /* ORR_WORK_* */
	/*
	 * JOB: ORR_DONE_* of orrery/hw/engine.h; WAKE: ORR_WAKE_* of orrery/fw/trace.h; SIGNAL: queues of
	 * this card that it woke at once, 65535 also where there were more
	 */
	__u16 status;
};

/* What a JOB did, numbered as ORR_JOB_* of orrery/hw/trace_sink.h. */
struct drm_orr_work_counters {
	__u64 known; /* bit n: the card counts number n; 0: nothing was counted */
	__u64 value[47]; /* 0 what is not known */
};

/*
 * What the card has done for this file's queues since the last call, in the order in which it did
 * it (1.10; hardware 2.6). Records of a queue are to be read before it is destroyed. The card keeps
 * the last 43,000 or so, of all processes together, and waits for nobody; some 6,000 of jobs while
 * somebody wants to know what they did. Its model time is the same with and without.
 *
 * With a flag: records, counters and count 0, nothing is read. START again adds ORR_WORK_COUNTERS
 * and ORR_WORK_SIGNALS or takes them back. Where records were wanted before, the first jobs after that
 * may have none yet.
 * -EOPNOTSUPP: the card has no trace sink, or does not count jobs (ORR_FEATURE_WORK_COUNTERS);
 * -EINVAL: no START before, or flags that are not known or do not go together; -ENOMEM: also no 2 MiB
 * in one piece for the card; -EIO: the card refuses it; -EFAULT; -EBUSY: a debugger holds a card;
 * -ENODEV: it is lost.
 */
struct drm_orr_work_read {
	__u64 records; /* in: user pointer to struct drm_orr_work_record[count] */
	__u32 count; /* in: room; out: how many there are now */
	__u32 flags; /* in: 0, ORR_WORK_START or _STOP; out: ORR_WORK_LOST, ORR_WORK_MORE */
	__u64 counters; /* in: 0 or user pointer to struct drm_orr_work_counters[count] (1.12) */
};

/*
 * Samples of counters of the whole card at a period of its model time, since the last call (1.12;
 * hardware 2.10). One file of a card has them at a time. A sample is 2 words and its counters in the
 * order of their numbers: its time in ps, its number, from 1 since START, then they. It is taken when
 * the card comes to the first thing that happens at or behind a multiple of the period; while nothing
 * happens there are none. They come by the way that records of work come by (WORK_READ), and leave
 * these less room. Model time is the same with and without. What others do shows in them, and when:
 * START needs CAP_PERFMON, as perf wants it for a machine's counters.
 *
 * With a flag: values and count 0, nothing is read. START again changes period and set; samples from
 * before end with it, also where it fails. -EOPNOTSUPP: the card takes none; -EACCES: no CAP_PERFMON;
 * -EBUSY: another file has them; -EINVAL: no START before, a period below 1,000 ns or below 50 ns for
 * each word of a sample in the ring (4 and its counters), no counters or such as the card has not,
 * flags that are not known, or pad; -ETIMEDOUT: the card was late; else as WORK_READ.
 */
struct drm_orr_sample_read {
	__u64 values; /* in: user pointer to __u64[count] */
	__u32 count; /* in: room, for one sample at least; out: words of the samples that there are now */
	__u32 flags; /* in: 0, ORR_WORK_START or _STOP; out: ORR_WORK_LOST, ORR_WORK_MORE */
	__u64 set[2]; /* in, with START: bit n % 64 of word n / 64: counter number n; else 0 */
	__u32 period_ns; /* in, with START; else 0 */
	__u32 pad; /* 0 */
};

/* Kinds of records of where vector cores were. */
#define ORR_PC_AT 0u /* a core was there */
#define ORR_PC_STEP 2u /* as AT, of one instruction: count is cycles from time_ps on */
#define ORR_PC_JOB 1u /* the job that such records are of has ended, or a part of it that was preempted */

/* A job is known by its port and start_ps. STEP has what AT has, from time_ps on, as said above. */
struct drm_orr_pc_record {
	__u64 time_ps; /* of AT: the first multiple of the period; of JOB: when it ended */
	__u64 start_ps; /* of the job */
	__u64 pc; /* of AT: the instruction's virtual address; else 0 */
	__u64 group; /* of AT: linear number of the work-group; of JOB: index of the packet in its ring */
	__u32 count; /* of AT: of multiples of the period in a row; else 0 */
	__u32 queue; /* of JOB: firmware_number of QUEUE_CREATE; else 0 */
	__u16 port;
	__u16 core; /* of AT; else 0 */
	__u16 kind; /* ORR_PC_AT, _STEP or _JOB */
	__u16 cause; /* of AT: what it was at, ORR_PC_* of orrery/hw/trace_sink.h; else 0 */
};

/*
 * Where the card's vector cores were in kernels of this file, at a period of model time, since the last call
 * (1.13; hardware 2.12): a job's records, those of a core in the order of time, then its JOB. One file of a
 * card has them at a time, and only what runs in its own address spaces. They come by the way that records of
 * work come by (WORK_READ), and leave these less room, also those of others' kernels. Model time and results
 * are the same with and without.
 *
 * With a flag: records and count 0, nothing is read; START again changes the period, and what was not read
 * is gone. -EOPNOTSUPP: the card does not say (ORR_FEATURE_PCS); -EBUSY: another file has them; -EACCES: a
 * core's instructions, and periods below 300 ns for each of the card's vector cores, need CAP_PERFMON;
 * -ETIMEDOUT: the card does not take it (then there are none); -EINVAL: no START before, a period below 100
 * ns, neither period nor core, no such core, or flags that are not known; else as WORK_READ.
 */
struct drm_orr_pc_read {
	__u64 records; /* in: user pointer to struct drm_orr_pc_record[count] */
	__u32 count; /* in: room; out: how many there are now */
	__u32 flags; /* in: 0, ORR_WORK_START or _STOP; out: ORR_WORK_LOST, ORR_WORK_MORE */
	__u32 period_ns; /* in, with START: 100 or more, or 0: no AT; else 0 */
	/* In, with START: 1 + number of a core, of whose instructions each has a STEP; 0: none. Else 0. */
	__u32 core;
	__u64 from_ps; /* in, with core: of those that begin then or later, */
	__u64 until_ps; /* and before that */
};

#define DRM_IOCTL_ORR_QUERY_DEVICE \
	DRM_IOR(DRM_COMMAND_BASE + DRM_ORR_QUERY_DEVICE, struct drm_orr_query_device)
#define DRM_IOCTL_ORR_BO_CREATE DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_BO_CREATE, struct drm_orr_bo_create)
#define DRM_IOCTL_ORR_BO_INFO DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_BO_INFO, struct drm_orr_bo_info)
#define DRM_IOCTL_ORR_VM_CREATE DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_VM_CREATE, struct drm_orr_vm_create)
#define DRM_IOCTL_ORR_VM_DESTROY DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_VM_DESTROY, struct drm_orr_vm_destroy)
#define DRM_IOCTL_ORR_VM_BIND DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_VM_BIND, struct drm_orr_vm_bind)
#define DRM_IOCTL_ORR_QUEUE_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_QUEUE_CREATE, struct drm_orr_queue_create)
#define DRM_IOCTL_ORR_QUEUE_DESTROY \
	DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_QUEUE_DESTROY, struct drm_orr_queue_destroy)
#define DRM_IOCTL_ORR_QUEUE_WAIT DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_QUEUE_WAIT, struct drm_orr_queue_wait)
#define DRM_IOCTL_ORR_QUEUE_FENCE DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_QUEUE_FENCE, struct drm_orr_queue_fence)
#define DRM_IOCTL_ORR_QUERY_COUNTERS \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_QUERY_COUNTERS, struct drm_orr_query_counters)
#define DRM_IOCTL_ORR_QUEUE_SET DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_QUEUE_SET, struct drm_orr_queue_set)
#define DRM_IOCTL_ORR_QUEUE_STATS DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_QUEUE_STATS, struct drm_orr_queue_stats)
#define DRM_IOCTL_ORR_QUERY_DEADLOCK \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_QUERY_DEADLOCK, struct drm_orr_query_deadlock)
#define DRM_IOCTL_ORR_QUEUE_ABORT DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_QUEUE_ABORT, struct drm_orr_queue_abort)
#define DRM_IOCTL_ORR_SIGNALLER_ATTACH \
	DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_SIGNALLER_ATTACH, struct drm_orr_signaller)
#define DRM_IOCTL_ORR_SIGNALLER_DETACH \
	DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_SIGNALLER_DETACH, struct drm_orr_signaller)
#define DRM_IOCTL_ORR_QUERY_LINK DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_QUERY_LINK, struct drm_orr_query_link)
#define DRM_IOCTL_ORR_QUERY_WAY DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_QUERY_WAY, struct drm_orr_query_way)
#define DRM_IOCTL_ORR_QUERY_CYCLE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_QUERY_CYCLE, struct drm_orr_query_cycle)
#define DRM_IOCTL_ORR_FABRIC_EXPORT \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_FABRIC_EXPORT, struct drm_orr_fabric_export)
#define DRM_IOCTL_ORR_FABRIC_IMPORT \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_FABRIC_IMPORT, struct drm_orr_fabric_import)
#define DRM_IOCTL_ORR_FABRIC_REVOKE \
	DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_FABRIC_REVOKE, struct drm_orr_fabric_revoke)
#define DRM_IOCTL_ORR_BARRIER_CREATE \
	DRM_IOW(DRM_COMMAND_BASE + DRM_ORR_BARRIER_CREATE, struct drm_orr_barrier_create)
#define DRM_IOCTL_ORR_MULTICAST_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_MULTICAST_CREATE, struct drm_orr_multicast_create)
#define DRM_IOCTL_ORR_SAMPLE_READ \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_SAMPLE_READ, struct drm_orr_sample_read)
#define DRM_IOCTL_ORR_PC_READ DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_PC_READ, struct drm_orr_pc_read)
#define DRM_IOCTL_ORR_WORK_READ DRM_IOWR(DRM_COMMAND_BASE + DRM_ORR_WORK_READ, struct drm_orr_work_read)

#if defined(__cplusplus)
}
#endif

#endif /* _UAPI_DRM_ORRERY_ACCEL_H_ */
