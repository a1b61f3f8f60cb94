// SPDX-License-Identifier: GPL-2.0
/*
 * sku_table, below the PCI device in sysfs: what the card says it is made of, for people and for
 * orrery-smi. The driver does not use it, and does not believe it: the length is bounded, and all
 * of it is text. It is read once, when somebody asks first, because each word is a trapped access.
 */
#include <linux/cleanup.h>
#include <linux/ctype.h>
#include <linux/sysfs.h>

#include <drm/drm_managed.h>

#include "orr_device.h"

/* The first hardware version that has the text, as a minor one. */
#define ORR_SKU_SINCE_MINOR 3

static bool orr_sku_is_text(const char *text, u32 bytes)
{
	u32 i;

	for (i = 0; i < bytes; i++)
		if (text[i] != '\t' && text[i] != '\n' &&
		    (!isascii(text[i]) || !isprint(text[i])))
			return false;
	return bytes && text[bytes - 1] == '\n';
}

/* Inside orr_enter(). */
static int orr_sku_fetch(struct orr_device *odev)
{
	u32 bytes = orr_read32(odev, ORR_R_SKU_BYTES);
	bool ones = bytes == U32_MAX;
	char *text;
	u32 at;

	if (!orr_hw_answers(odev, ones))
		return -ENODEV;
	if (!bytes || bytes > ORR_SKU_MAX_BYTES)
		return -EIO;
	text = drmm_kmalloc(&odev->drm, round_up(bytes, sizeof(u64)), GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	for (at = 0; at < bytes; at += sizeof(u64)) {
		u64 word = orr_read64(odev, ORR_R_SKU + at);

		ones |= word == U64_MAX;
		memcpy(text + at, &word, sizeof(word));
	}
	if (!orr_sku_is_text(text, bytes)) {
		drmm_kfree(&odev->drm, text);
		/* All-ones are no text. */
		return orr_hw_answers(odev, ones) ? -EIO : -ENODEV;
	}
	odev->sku_text = text;
	odev->sku_bytes = bytes;
	return 0;
}

static int orr_sku_get(struct orr_device *odev)
{
	int idx, ret;

	if ((odev->info.hw_version & 0xffff) < ORR_SKU_SINCE_MINOR)
		return -EOPNOTSUPP;
	guard(mutex)(&odev->sku_lock);
	if (odev->sku_text)
		return 0;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_sku_fetch(odev);
	orr_exit(odev, idx);
	if (ret == -EIO)
		dev_warn_ratelimited(&odev->pdev->dev,
				     "the card's text about its SKU is no text of 1 to %u bytes: nobody gets to see it\n",
				     ORR_SKU_MAX_BYTES);
	return ret;
}

#ifdef ORR_HAVE_CONST_BIN_ATTRIBUTE
#define ORR_BIN_CONST const
#else
#define ORR_BIN_CONST
#endif

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
