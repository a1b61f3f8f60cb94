// SPDX-License-Identifier: GPL-2.0
/*
 * Booting the firmware: the image goes to the boot ROM, which checks it, and the firmware then
 * finds the boot block. Every way in which this can fail says what is wrong and what to do.
 */
#include <linux/delay.h>
#include <linux/firmware.h>
#include <linux/module.h>
#include <linux/string.h>

#include <orrery/fw/boot_block.h>
#include <orrery/hw/boot.h>

#include "orr_device.h"

#define ORR_FIRMWARE "orrery/orrery-fw.bin"

unsigned int orr_boot_timeout_ms = 20000;
module_param_named(boot_timeout_ms, orr_boot_timeout_ms, uint, 0644);
MODULE_PARM_DESC(boot_timeout_ms, "Time the firmware has to boot, in milliseconds (default 20000)");

/* The image is there and has been checked once, and others wait. */
#define ORR_BOOT_AGAIN_MS 5000u
/* See orr_left_after_look(). */
#define ORR_BOOT_LOOK_MS 50u
/* But nobody waits longer than so many times the limit for a card that takes its time for each look. */
#define ORR_BOOT_PATIENCE 12u

/* What can be said about an image before it is handed to the boot ROM, which checks it for real. */
static int orr_boot_check_image(struct device *dev, const struct firmware *fw)
{
	struct orr_image_header header;

	if (fw->size < sizeof(header))
		return dev_err_probe(dev, -EINVAL,
				     "firmware %s is truncated: %zu bytes, its header alone has %zu; copy it anew\n",
				     ORR_FIRMWARE,
				     fw->size, sizeof(header));
	memcpy(&header, fw->data, sizeof(header));
	if (header.magic != ORR_IMAGE_MAGIC)
		return dev_err_probe(dev, -EINVAL,
				     "firmware %s is not an Orrery image: magic %#llx; install an image that was built for this card\n",
				     ORR_FIRMWARE,
				     header.magic);
	if (fw->size > ORR_IMAGE_MAX_SIZE)
		return dev_err_probe(dev, -EINVAL,
				     "firmware %s is too large: %zu bytes, the boot ROM takes %u; install an image that was built for this card\n",
				     ORR_FIRMWARE,
				     fw->size, ORR_IMAGE_MAX_SIZE);
	if (header.image_size > fw->size)
		return dev_err_probe(dev, -EINVAL,
				     "firmware %s is truncated: %zu bytes of %u; copy it anew\n",
				     ORR_FIRMWARE,
				     fw->size, header.image_size);
	if (header.fw_abi >> 16 != ORR_FW_ABI_MAJOR)
		return dev_err_probe(dev, -EINVAL,
				     "firmware %s speaks ABI %u.%u, this driver speaks %u.%u: install the driver and the firmware of one release\n",
				     ORR_FIRMWARE,
				     header.fw_abi >> 16, header.fw_abi & 0xffff,
				     ORR_FW_ABI_MAJOR, ORR_FW_ABI_MINOR);
	return 0;
}

/* Why the boot ROM refused an image. */
static int orr_boot_explain_rom(struct orr_device *odev)
{
	struct device *dev = &odev->pdev->dev;
	u32 status = orr_read32(odev, ORR_R_BOOT_STATUS);
	u32 detail = orr_read32(odev, ORR_R_BOOT_DETAIL);

	switch (status) {
	case ORR_BOOT_BAD_ADDRESS:
		return dev_err_probe(dev, -EIO,
				     "no DMA: the card cannot read the firmware image from RAM; give the VM shared memory (memory-backend-memfd,share=on), or set the IOMMU to pass through\n");
	case ORR_BOOT_TOO_SMALL:
		return dev_err_probe(dev, -EINVAL,
				     "the boot ROM refused the firmware: truncated, it wants %u bytes; copy it anew\n",
				     detail);
	case ORR_BOOT_BAD_MAGIC:
	case ORR_BOOT_BAD_HEADER:
		return dev_err_probe(dev, -EINVAL,
				     "the boot ROM refused the firmware: its header is not valid (status %u); install an image that was built for this card\n",
				     status);
	case ORR_BOOT_HW_VERSION:
		return dev_err_probe(dev, -EINVAL,
				     "the boot ROM refused the firmware: built for hardware version %u.%u, the card has %u.%u; install an image that was built for this card\n",
				     detail >> 16, detail & 0xffff, odev->info.hw_version >> 16,
				     odev->info.hw_version & 0xffff);
	case ORR_BOOT_BAD_HASH:
		return dev_err_probe(dev, -EINVAL,
				     "the boot ROM refused the firmware: corrupted, its SHA-256 does not match; copy it anew\n");
	case ORR_BOOT_UNSIGNED:
		return dev_err_probe(dev, -EINVAL,
				     "the boot ROM refused the firmware: it is not signed; sign it with the key that belongs to the card\n");
	case ORR_BOOT_BAD_SIGNATURE:
		return dev_err_probe(dev, -EINVAL,
				     "the boot ROM refused the firmware: it is signed with another key than the one in the card's fuses, or changed after signing; sign it with the key that belongs to the card\n");
	case ORR_BOOT_BAD_ELF:
	case ORR_BOOT_ELF_RANGE:
		return dev_err_probe(dev, -EINVAL,
				     "the boot ROM refused the firmware: its ELF cannot be loaded (status %u, segment %u); build it for this card\n",
				     status, detail);
	case ORR_BOOT_NO_KEY:
		return dev_err_probe(dev, -EINVAL,
				     "the boot ROM refused the firmware: the card has no key in its fuses; give it one\n");
	default:
		return dev_err_probe(dev, -EIO, "boot failed: status %u, detail %#x\n", status,
				     detail);
	}
}

/* Why the firmware gave up. */
static int orr_boot_explain_firmware(struct orr_device *odev, u32 progress)
{
	struct device *dev = &odev->pdev->dev;
	u32 abi = READ_ONCE(odev->boot_block->fw_abi);

	switch (progress & ~ORR_PROGRESS_FAILED) {
	case ORR_BB_FAIL_READ:
	case ORR_BB_FAIL_RINGS:
		return dev_err_probe(dev, -EIO,
				     "no DMA: the firmware cannot reach the memory that the driver gave it (code %#x); give the VM shared memory (memory-backend-memfd,share=on), or set the IOMMU to pass through\n",
				     progress);
	case ORR_BB_FAIL_ABI:
		return dev_err_probe(dev, -EINVAL,
				     "the firmware speaks ABI %u.%u, this driver speaks %u.%u: install the driver and the firmware of one release\n",
				     abi >> 16, abi & 0xffff, ORR_FW_ABI_MAJOR, ORR_FW_ABI_MINOR);
	default:
		return dev_err_probe(dev, -EIO, "the firmware gave up with progress code %#x\n",
				     progress);
	}
}

/* Return: 0 when the firmware runs, -EAGAIN while it does not yet, else explained. */
static int orr_boot_poll(struct orr_device *odev)
{
	struct device *dev = &odev->pdev->dev;
	u32 state = orr_read32(odev, ORR_R_STATE);
	u32 progress;

	switch (state) {
	case ORR_STATE_RUNNING:
		return 0;
	case ORR_STATE_BOOT_FAILED:
		return orr_boot_explain_rom(odev);
	case ORR_STATE_HALTED:
		progress = orr_read32(odev, ORR_R_PROGRESS);
		if (progress & ORR_PROGRESS_FAILED)
			return orr_boot_explain_firmware(odev, progress);
		return dev_err_probe(dev, -EIO,
				     "the firmware crashed while booting: progress %#x, cause %#llx, pc %#llx, address %#llx; see the card's log\n",
				     progress, orr_read64(odev, ORR_R_HALT_CAUSE),
				     orr_read64(odev, ORR_R_HALT_PC),
				     orr_read64(odev, ORR_R_HALT_TVAL));
	case U32_MAX:
		return dev_err_probe(dev, -ENODEV,
				     "the card went away while booting: it reads as all-ones; see the card's log\n");
	default:
		progress = orr_read32(odev, ORR_R_PROGRESS);
		if (progress & ORR_PROGRESS_FAILED && !(progress & ORR_PROGRESS_READY))
			return orr_boot_explain_firmware(odev, progress);
		return -EAGAIN;
	}
}

static int orr_boot_overdue(struct orr_device *odev, unsigned int timeout_ms)
{
	return dev_err_probe(&odev->pdev->dev, -ETIMEDOUT,
			     "the firmware did not boot within %u ms%s: state %u, boot status %u, progress %#x; see the card's log, or load with a longer boot_timeout_ms\n",
			     timeout_ms, orr_restart_held(odev) ? ", as a debugger holds the card" : "",
			     orr_read32(odev, ORR_R_STATE), orr_read32(odev, ORR_R_BOOT_STATUS),
			     orr_read32(odev, ORR_R_PROGRESS));
}

static int orr_boot_wait(struct orr_device *odev, unsigned int timeout_ms)
{
	unsigned long held_end = jiffies + msecs_to_jiffies(timeout_ms) +
				 msecs_to_jiffies(orr_restart_held_ms(odev));
	unsigned long guard_end = jiffies + ORR_BOOT_PATIENCE * msecs_to_jiffies(timeout_ms);
	unsigned long looked = jiffies, left = msecs_to_jiffies(timeout_ms);
	bool last;
	int ret;

	do {
		left = orr_left_after_look(left, &looked, msecs_to_jiffies(ORR_BOOT_LOOK_MS));
		last = !left || time_after(jiffies, guard_end);
		ret = orr_boot_poll(odev);
		if (ret != -EAGAIN)
			return ret;
		/* In a restart: nobody will put the card to rest before we leave. */
		if (orr_is_lost(odev))
			return -ENODEV;
		/* A debugger holds its time: it gets the same again, but not for ever. */
		if (last && time_before(jiffies, held_end) && orr_restart_held(odev)) {
			left = msecs_to_jiffies(timeout_ms);
			guard_end = jiffies + ORR_BOOT_PATIENCE * left;
			last = false;
		}
		usleep_range(200, 1000);
	} while (!last);
	return orr_boot_overdue(odev, timeout_ms);
}

/* The driver's half; the firmware's is empty until the firmware fills it. */
static void orr_boot_fill_block(struct orr_device *odev)
{
	struct orr_boot_block *block = odev->boot_block;

	memset(block, 0, sizeof(*block));
	block->host_magic = ORR_BB_HOST_MAGIC;
	block->host_abi = ORR_FW_ABI;
	block->command_ring = odev->mailbox.command_dma;
	block->message_ring = odev->mailbox.message_dma;
	block->queue_status = odev->status_dma;
	block->queue_usage = odev->usage_dma;
	block->host_page_size = PAGE_SIZE;
	if (drm_mm_node_allocated(&odev->save_node)) {
		block->save_areas = odev->save_node.size / odev->info.save_bytes;
		block->save_base = odev->save_node.start;
	}
}

static int orr_boot_alloc(struct orr_device *odev)
{
	struct device *dev = &odev->pdev->dev;

	odev->boot_block = dmam_alloc_coherent(dev, sizeof(*odev->boot_block),
					       &odev->boot_block_dma, GFP_KERNEL);
	odev->status = dmam_alloc_coherent(dev, sizeof(*odev->status) * ORR_FW_QUEUES,
					   &odev->status_dma, GFP_KERNEL);
	odev->usage = dmam_alloc_coherent(dev, sizeof(*odev->usage) * ORR_FW_QUEUES,
					  &odev->usage_dma, GFP_KERNEL);
	if (!odev->boot_block || !odev->status || !odev->usage)
		return -ENOMEM;
	orr_boot_fill_block(odev);
	return 0;
}

/* What the firmware wrote about itself; none of it is believed without a look. */
static int orr_boot_read_block(struct orr_device *odev)
{
	struct device *dev = &odev->pdev->dev;
	struct orr_info *info = &odev->info;
	struct orr_boot_block *block __free(kfree) = kmemdup(odev->boot_block, sizeof(*block),
							     GFP_KERNEL);

	if (!block)
		return -ENOMEM;
	if (block->fw_magic != ORR_BB_FW_MAGIC)
		return dev_err_probe(dev, -EIO,
				     "no DMA: the firmware runs, but its half of the boot block did not arrive; give the VM shared memory (memory-backend-memfd,share=on)\n");
	info->fw_abi = block->fw_abi;
	info->fw_version = block->fw_version;
	info->max_queues = min(block->max_queues, ORR_FW_QUEUES);
	info->max_contexts = min(block->max_contexts, ORR_FW_CONTEXTS);
	info->max_ring_entries = min(block->max_ring_entries, ORR_RING_MAX_ENTRIES);
	memcpy(info->fw_build_id, block->build_id, sizeof(block->build_id));
	orr_text_sanitise(info->fw_build_id);

	if (info->fw_abi >> 16 != ORR_FW_ABI_MAJOR)
		return dev_err_probe(dev, -EINVAL,
				     "the firmware speaks ABI %u.%u, this driver speaks %u.%u: install the driver and the firmware of one release\n",
				     info->fw_abi >> 16, info->fw_abi & 0xffff, ORR_FW_ABI_MAJOR,
				     ORR_FW_ABI_MINOR);
	if (!info->max_queues || info->max_contexts < 2 || info->max_ring_entries < 2)
		return dev_err_probe(dev, -EIO,
				     "the firmware offers %u queues, %u contexts, rings of %u: install an image that was built for this card\n",
				     info->max_queues, info->max_contexts, info->max_ring_entries);
	return 0;
}

/* Starts the core, which waits for it, and waits until the firmware runs. */
static int orr_boot_start(struct orr_device *odev, unsigned int timeout_ms)
{
	orr_write64(odev, ORR_R_BOOT_IMAGE, odev->image_dma);
	orr_write32(odev, ORR_R_BOOT_SIZE, odev->image_size);
	orr_write64(odev, ORR_R_BOOT_ARG, odev->boot_block_dma);
	orr_write32(odev, ORR_R_BOOT_START, 1);
	return orr_boot_wait(odev, timeout_ms);
}

static int orr_boot_image(struct orr_device *odev, const struct firmware *fw)
{
	struct device *dev = &odev->pdev->dev;
	int ret;

	odev->image = dmam_alloc_coherent(dev, fw->size, &odev->image_dma, GFP_KERNEL);
	if (!odev->image)
		return -ENOMEM;
	odev->image_size = fw->size;
	memcpy(odev->image, fw->data, fw->size);

	guard(mutex)(&odev->boot_lock);
	ret = orr_boot_start(odev, READ_ONCE(orr_boot_timeout_ms));
	/* The ROM may still be reading it, and the firmware must not write to what is freed. */
	if (ret && orr_hw_reset(odev)) {
		dev_err(dev, "the card does not reset either\n");
		pci_clear_master(odev->pdev);
	}
	return ret;
}

static int orr_boot_hello(struct orr_device *odev)
{
	const u64 ping[] = { odev->info.uid };
	u64 reply[ORR_MBOX_ARGS];
	int ret;

	ret = orr_mbox_command(odev, ORR_MBOX_PING, ping, ARRAY_SIZE(ping), reply);
	if (!ret && reply[0] != ping[0])
		ret = -EPROTO;
	if (ret)
		return dev_err_probe(&odev->pdev->dev, ret,
				     "the firmware runs, but its mailbox does not; see the card's log\n");
	return 0;
}

/**
 * orr_boot - load the firmware and start it
 * @odev: the card, in reset, with mailbox and interrupts ready
 *
 * Return: 0 or a negative error, which has been explained in the log.
 */
int orr_boot(struct orr_device *odev)
{
	struct device *dev = &odev->pdev->dev;
	const struct firmware *fw;
	int ret;

	orr_vram_reserve_save_areas(odev);
	ret = orr_boot_alloc(odev);
	if (ret)
		return ret;
	ret = firmware_request_nowarn(&fw, ORR_FIRMWARE, dev);
	if (ret == -ENOENT)
		return dev_err_probe(dev, -ENODATA,
				     "firmware %s is missing: put it below /lib/firmware\n",
				     ORR_FIRMWARE);
	if (ret)
		return dev_err_probe(dev, ret,
				     "firmware %s cannot be read: empty or damaged; copy it anew\n",
				     ORR_FIRMWARE);
	ret = orr_boot_check_image(dev, fw);
	if (!ret)
		ret = orr_boot_image(odev, fw);
	release_firmware(fw);
	if (!ret)
		ret = orr_boot_read_block(odev);
	if (!ret)
		ret = orr_boot_hello(odev);
	if (!ret)
		orr_restart_enable(odev);
	return ret;
}

/**
 * orr_boot_again - start the same firmware anew
 * @odev: the card, whose core waits for its start, with empty mailbox rings; boot_lock is held
 *
 * Return: 0 or a negative error, which has been explained in the log.
 */
int orr_boot_again(struct orr_device *odev)
{
	int ret;

	lockdep_assert_held(&odev->boot_lock);
	orr_boot_fill_block(odev);
	ret = orr_boot_start(odev, min(READ_ONCE(orr_boot_timeout_ms), ORR_BOOT_AGAIN_MS));
	if (ret)
		return ret;
	if (READ_ONCE(odev->boot_block->fw_magic) != ORR_BB_FW_MAGIC ||
	    READ_ONCE(odev->boot_block->fw_abi) != odev->info.fw_abi)
		return dev_err_probe(&odev->pdev->dev, -EIO,
				     "the firmware runs again, but its half of the boot block is not what it was\n");
	return 0;
}

MODULE_FIRMWARE(ORR_FIRMWARE);
