// SPDX-License-Identifier: GPL-2.0
/*
 * sku_table, below the PCI device in sysfs: what the card says it is made of, for people and for
 * orrery-smi. The driver does not use it, and does not believe it: the length is bounded, and all
 * of it is text. It is read once, when somebody asks first, because each word is a trapped access,
 * which a bad card may answer slowly.
 */
#include <linux/ctype.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sysfs.h>

#include <drm/drm_managed.h>

#include "orr_device.h"

/* Bytes that are read between two looks at whether to go on. */
#define ORR_SKU_LOOK_BYTES 512

static bool orr_sku_is_text(const char *text, u32 bytes)
{
	u32 i;

	for (i = 0; i < bytes; i++)
		if (text[i] != '\t' && text[i] != '\n' &&
		    (!isascii(text[i]) || !isprint(text[i])))
			return false;
	return bytes && text[bytes - 1] == '\n';
}

/* Return: 0; -EINTR if the caller is being killed, -ENODEV if the card is gone or lost. */
static int orr_sku_read(struct orr_device *odev, char *text, u32 bytes)
{
	u32 at;

	for (at = 0; at < bytes; at += sizeof(u64)) {
		u64 word;

		if (at % ORR_SKU_LOOK_BYTES == 0) {
			if (orr_is_lost(odev))
				return -ENODEV;
			if (fatal_signal_pending(current))
				return -EINTR;
			cond_resched();
		}
		word = orr_read64(odev, ORR_R_SKU + at);
		/* They are no text. */
		if (word == U64_MAX) {
			orr_hw_answers(odev, true);
			return -ENODEV;
		}
		memcpy(text + at, &word, sizeof(word));
	}
	return orr_hw_answers(odev, false) ? 0 : -ENODEV;
}

/* Inside orr_enter(). */
static int orr_sku_fetch(struct orr_device *odev)
{
	u32 bytes = orr_read32(odev, ORR_R_SKU_BYTES);
	char *text;
	int ret;

	if (!orr_hw_answers(odev, bytes == U32_MAX))
		return -ENODEV;
	if (!bytes || bytes > ORR_SKU_MAX_BYTES)
		return -EIO;
	text = drmm_kmalloc(&odev->drm, round_up(bytes, sizeof(u64)), GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	ret = orr_sku_read(odev, text, bytes);
	if (!ret && !orr_sku_is_text(text, bytes))
		ret = -EIO;
	if (ret) {
		drmm_kfree(&odev->drm, text);
		return ret;
	}
	odev->sku_text = text;
	odev->sku_bytes = bytes;
	return 0;
}

/* With sku_lock. */
static int orr_sku_ask(struct orr_device *odev)
{
	int idx, ret;

	if (odev->sku_text)
		return 0;
	if (odev->sku_refused)
		return -EIO;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_sku_fetch(odev);
	orr_exit(odev, idx);
	if (ret == -EIO) {
		odev->sku_refused = true;
		dev_warn(&odev->pdev->dev,
			 "the card's text about its SKU is no text of 1 to %u bytes: nobody gets to see it\n",
			 ORR_SKU_MAX_BYTES);
	}
	return ret;
}

static int orr_sku_get(struct orr_device *odev)
{
	int ret;

	ret = mutex_lock_killable(&odev->sku_lock);
	if (ret)
		return ret;
	ret = orr_sku_ask(odev);
	mutex_unlock(&odev->sku_lock);
	return ret;
}

static ssize_t sku_table_read(struct file *file, struct kobject *kobj,
			      ORR_BIN_CONST struct bin_attribute *attr, char *buf, loff_t offset,
			      size_t count)
{
	struct orr_device *odev = dev_get_drvdata(kobj_to_dev(kobj));
	int ret;

	ret = orr_sku_get(odev);
	if (ret)
		return ret;
	return memory_read_from_buffer(buf, count, &offset, odev->sku_text, odev->sku_bytes);
}
static BIN_ATTR_RO(sku_table, 0);

static ORR_BIN_CONST struct bin_attribute *ORR_BIN_CONST orr_sku_attrs[] = {
	&bin_attr_sku_table,
	NULL,
};

const struct attribute_group orr_sku_group = {
	.bin_attrs = orr_sku_attrs,
};
