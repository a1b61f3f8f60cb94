/* SPDX-License-Identifier: MIT */
/*
 * The boot block: one 4 KiB page of host memory, given to the firmware by bus address. The
 * driver fills the host part before it starts the boot ROM; the firmware checks it, fills its own part,
 * and then sets ORR_PROGRESS_READY in ORR_R_PROGRESS, or ORR_PROGRESS_FAILED | ORR_BB_FAIL_*.
 *
 * Versions: the major changes when an old peer would misunderstand, the minor when something is
 * added. Driver and firmware must have the same major; each side may use what the lower minor has.
 */
#ifndef ORRERY_FW_BOOT_BLOCK_H
#define ORRERY_FW_BOOT_BLOCK_H

#include <orrery/hw/base.h>

#define ORR_FW_ABI_MAJOR 1u
#define ORR_FW_ABI_MINOR 3u /* 2: semaphores that fail, QUEUE_ABORT, SEM_CLOSE; 3: gangs that leave and resume */
#define ORR_FW_ABI (ORR_FW_ABI_MAJOR << 16 | ORR_FW_ABI_MINOR)

#define ORR_BB_HOST_MAGIC 0x5453484252524f00ull
#define ORR_BB_FW_MAGIC 0x5746424252524f00ull

#define ORR_FW_QUEUES 1024u /* queue numbers 0 .. 1023 */
#define ORR_FW_CONTEXTS 1024u /* context number = ASID, 1 .. 1023 */

struct orr_boot_block {
	/* written by the driver */
	uint64_t host_magic; /* ORR_BB_HOST_MAGIC */
	uint32_t host_abi; /* ORR_FW_ABI of the driver */
	uint32_t host_features; /* bits that the driver understands; none defined, 0 */
	uint64_t command_ring; /* bus address of struct orr_mbox_ring, host to firmware */
	uint64_t message_ring; /* bus address of struct orr_mbox_ring, firmware to host */
	uint64_t queue_status; /* bus address of struct orr_queue_status[ORR_FW_QUEUES] */
	uint32_t host_page_size; /* bytes */
	uint32_t save_areas; /* ABI 1.1: save areas of SOC_SAVE_BYTES each, one after the other; 0: no preemption inside kernels */
	uint64_t save_base; /* ABI 1.1: VRAM offset of the first, 4 KiB aligned */
	uint64_t queue_usage; /* ABI 1.2: bus address of struct orr_queue_usage[ORR_FW_QUEUES]; 0: nobody wants it */
	uint64_t reserved1[8];

	/* written by the firmware */
	uint64_t fw_magic; /* ORR_BB_FW_MAGIC */
	uint32_t fw_abi; /* ORR_FW_ABI of the firmware */
	uint32_t fw_features; /* subset of host_features that is in use */
	uint32_t fw_version; /* major << 16 | minor << 8 | patch */
	uint32_t max_queues;
	uint32_t max_contexts;
	uint32_t max_ring_entries;
	uint8_t build_id[32]; /* free text, zero-padded */
	uint32_t start_kind; /* ABI 1.1: ORR_BB_START_* */
	uint32_t resumed_queues; /* ABI 1.1: after a warm start: that go on */
	uint64_t reserved2[7];
	uint8_t reserved3[4096 - 256];
};
ORR_ASSERT_OFFSET(struct orr_boot_block, fw_magic, 128);
ORR_ASSERT_SIZE(struct orr_boot_block, 4096);

#define ORR_BB_START_COLD 0u /* no contexts, no queues */
#define ORR_BB_START_WARM 1u /* after ORR_R_CORE_RESTART: contexts and queues are as they were */

/* Low bits of the progress code: how far the firmware came, or why it gave up. */
#define ORR_BB_STEP_START 1u
#define ORR_BB_STEP_BOOT_BLOCK 2u /* boot block read */
#define ORR_BB_STEP_RINGS 3u /* rings found */
#define ORR_BB_FAIL_READ 0x10u /* boot block is not readable */
#define ORR_BB_FAIL_MAGIC 0x11u
#define ORR_BB_FAIL_ABI 0x12u /* major differs; fw_abi tells the firmware's */
#define ORR_BB_FAIL_RINGS 0x13u /* a ring or the status table is not reachable */

#endif /* ORRERY_FW_BOOT_BLOCK_H */
