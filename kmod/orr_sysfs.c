// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs, below the PCI device: uid, node, sku, state, held, checks, firmware_version, vram_size, vram_used,
 * counters/NAME, sku_table (orr_sku.c), routes and foreign_routes (orr_route_sysfs.c), links/PORT/
 * (orr_link_sysfs.c).
 */
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include <drm/drm_managed.h>

#include <orrery/hw/counters.h>

#include "orr_device.h"

static struct orr_device *orr_sysfs_device(struct device *dev)
{
	return dev_get_drvdata(dev);
}

static ssize_t uid_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%016llx\n", orr_sysfs_device(dev)->info.uid);
}
static DEVICE_ATTR_RO(uid);

/* Another one each time the driver is bound. */
static ssize_t node_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", orr_sysfs_device(dev)->node);
}
static DEVICE_ATTR_RO(node);

static ssize_t sku_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", orr_sysfs_device(dev)->info.sku_name);
}
static DEVICE_ATTR_RO(sku);

static ssize_t firmware_version_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct orr_info *info = &orr_sysfs_device(dev)->info;

	return sysfs_emit(buf, "%u.%u.%u %s\n", info->fw_version >> 16,
			  (info->fw_version >> 8) & 0xff, info->fw_version & 0xff,
			  info->fw_build_id);
}
static DEVICE_ATTR_RO(firmware_version);

static ssize_t vram_size_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", orr_vram_size(orr_sysfs_device(dev)));
}
static DEVICE_ATTR_RO(vram_size);

static ssize_t vram_used_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", orr_vram_used(orr_sysfs_device(dev)));
}
static DEVICE_ATTR_RO(vram_used);

static const char *orr_state_name(u32 state)
{
	switch (state) {
	case ORR_STATE_RESET:
		return "reset";
	case ORR_STATE_BOOTING:
		return "booting";
	case ORR_STATE_RUNNING:
		return "running";
	case ORR_STATE_BOOT_FAILED:
		return "boot-failed";
	case ORR_STATE_HALTED:
		return "halted";
	default:
		return "unknown";
	}
}

static ssize_t state_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct orr_device *odev = orr_sysfs_device(dev);
	u32 state;
	int idx;

	if (!orr_enter(odev, &idx)) {
		state = orr_read32(odev, ORR_R_STATE);
		if (state == U32_MAX)
			orr_hw_answers(odev, true);
		orr_exit(odev, idx);
		if (state != U32_MAX)
			return sysfs_emit(buf, "%s\n", orr_state_name(state));
	}
	return sysfs_emit(buf, "lost: %s\n", READ_ONCE(odev->lost_reason) ?: "unbound");
}
static DEVICE_ATTR_RO(state);

static ssize_t orr_flags_show(char *buf, bool one, const char *one_name, bool two,
			      const char *two_name)
{
	if (one && two)
		return sysfs_emit(buf, "%s %s\n", one_name, two_name);
	return sysfs_emit(buf, "%s\n", one ? one_name : two ? two_name : "none");
}

/* What debuggers hold, and all else of the card with it. */
static ssize_t held_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct orr_device *odev = orr_sysfs_device(dev);
	int idx, ret;
	u32 held;

	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	held = orr_read32(odev, ORR_R_HELD);
	if (held == U32_MAX && !orr_hw_answers(odev, true))
		ret = -ENODEV;
	orr_exit(odev, idx);
	return ret ?: orr_flags_show(buf, held & ORR_HELD_FIRMWARE, "firmware",
				     held & ORR_HELD_KERNELS, "kernels");
}
static DEVICE_ATTR_RO(held);

/* What the card checks of kernels. */
static ssize_t checks_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u32 checks = orr_sysfs_device(dev)->info.checks;

	return orr_flags_show(buf, checks & ORR_CHECKS_RACE, "race",
			      checks & ORR_CHECKS_MEMORY, "memory");
}
static DEVICE_ATTR_RO(checks);

static struct attribute *orr_sysfs_attrs[] = {
	&dev_attr_uid.attr,
	&dev_attr_node.attr,
	&dev_attr_sku.attr,
	&dev_attr_state.attr,
	&dev_attr_held.attr,
	&dev_attr_checks.attr,
	&dev_attr_firmware_version.attr,
	&dev_attr_vram_size.attr,
	&dev_attr_vram_used.attr,
	NULL,
};

static const struct attribute_group orr_sysfs_group = {
	.attrs = orr_sysfs_attrs,
};

/**
 * struct orr_counter_attribute - a file in counters/
 */
struct orr_counter_attribute {
	/** @attr: base */
	struct device_attribute attr;
	/** @number: ORR_CTR_* */
	u32 number;
	/** @name: of the file */
	const char *name;
};

static ssize_t orr_counter_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct orr_device *odev = orr_sysfs_device(dev);
	u32 number = container_of(attr, struct orr_counter_attribute, attr)->number;
	u64 value;
	int idx, ret;

	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_counters_read(odev, number, 1, &value);
	if (ret == -ENODEV)
		orr_hw_answers(odev, true);
	orr_exit(odev, idx);
	return ret ?: sysfs_emit(buf, "%llu\n", value);
}

#define ORR_COUNTER_ENTRY(number_, NAME, name_, ...) \
	[ORR_CTR_##NAME] = { .number = (number_), .name = (name_) },

static struct orr_counter_attribute orr_counters[ORR_COUNTER_COUNT] = {
	ORR_COUNTER_LIST(ORR_COUNTER_ENTRY)
};

static struct attribute *orr_counter_attrs[ORR_COUNTER_COUNT + 1];

/* A card may have fewer counters than this driver knows. */
static umode_t orr_counter_is_visible(struct kobject *kobj, struct attribute *attr, int index)
{
	struct orr_device *odev = orr_sysfs_device(kobj_to_dev(kobj));
	struct orr_counter_attribute *counter =
		container_of(attr, struct orr_counter_attribute, attr.attr);

	return counter->number < odev->info.counters ? attr->mode : 0;
}

static const struct attribute_group orr_counter_group = {
	.name = "counters",
	.attrs = orr_counter_attrs,
	.is_visible = orr_counter_is_visible,
};

/**
 * orr_sysfs_init - make the attributes out of the list of counters; once, before any card
 */
void __init orr_sysfs_init(void)
{
	unsigned int i;

	for (i = 0; i < ORR_COUNTER_COUNT; i++) {
		struct orr_counter_attribute *counter = &orr_counters[i];

		sysfs_attr_init(&counter->attr.attr);
		counter->attr.attr.name = counter->name;
		counter->attr.attr.mode = 0444;
		counter->attr.show = orr_counter_show;
		orr_counter_attrs[i] = &counter->attr.attr;
	}
}

const struct attribute_group *orr_sysfs_groups[] = {
	&orr_sysfs_group,
	&orr_counter_group,
	&orr_sku_group,
	&orr_route_group,
	NULL,
};
