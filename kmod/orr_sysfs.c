// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs, below the PCI device: uid, sku, state, held, checks, firmware_version, vram_size, vram_used,
 * counters/NAME, sku_table (orr_sku.c), links/PORT/{state,peer,lanes,rate,latency,losses}.
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
	value = orr_read64(odev, ORR_R_COUNTER(number));
	if (value == U64_MAX && !orr_hw_answers(odev, true))
		ret = -ENODEV;
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
	NULL,
};

/* Reads a register of the port that links/PORT stands for. */
static int orr_link_read(struct kobject *kobj, u32 reg, u64 *value)
{
	struct orr_device *odev = orr_sysfs_device(kobj_to_dev(kobj->parent->parent));
	int idx, ret;
	bool ones;
	u32 port;

	ret = kstrtou32(kobject_name(kobj), 10, &port);
	if (ret)
		return ret;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	if (reg == ORR_R_LINK_PEER_UID) {
		*value = orr_read64(odev, ORR_R_LINK(port) + reg);
		ones = *value == U64_MAX;
	} else {
		*value = orr_read32(odev, ORR_R_LINK(port) + reg);
		ones = *value == U32_MAX;
	}
	if (ones && !orr_hw_answers(odev, true))
		ret = -ENODEV;
	orr_exit(odev, idx);
	return ret;
}

static ssize_t orr_link_show(struct kobject *kobj, char *buf, u32 reg, const char *format)
{
	u64 value;
	int ret;

	ret = orr_link_read(kobj, reg, &value);
	return ret ?: sysfs_emit(buf, format, value);
}

static ssize_t orr_link_state_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	static const char * const names[] = {
		[ORR_LINK_DOWN] = "down",
		[ORR_LINK_TRAINING] = "training",
		[ORR_LINK_UP] = "up",
		[ORR_LINK_DEGRADED] = "degraded",
	};
	u64 state;
	int ret;

	ret = orr_link_read(kobj, ORR_R_LINK_STATE, &state);
	if (ret)
		return ret;
	return sysfs_emit(buf, "%s\n", state < ARRAY_SIZE(names) ? names[state] : "unknown");
}

static ssize_t orr_link_peer_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	u64 uid, port;
	int ret;

	ret = orr_link_read(kobj, ORR_R_LINK_PEER_UID, &uid) ?:
	      orr_link_read(kobj, ORR_R_LINK_PEER_PORT, &port);
	if (ret)
		return ret;
	if (!uid)
		return sysfs_emit(buf, "none\n");
	return sysfs_emit(buf, "%016llx %llu\n", uid, port);
}

static ssize_t orr_link_lanes_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return orr_link_show(kobj, buf, ORR_R_LINK_LANES, "%llu\n");
}

static ssize_t orr_link_rate_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return orr_link_show(kobj, buf, ORR_R_LINK_GBPS, "%llu Gbit/s\n");
}

static ssize_t orr_link_latency_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return orr_link_show(kobj, buf, ORR_R_LINK_LATENCY_NS, "%llu ns\n");
}

/* How often the link has gone down since the card's power-on. */
static ssize_t orr_link_losses_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return orr_link_show(kobj, buf, ORR_R_LINK_LOSSES, "%llu\n");
}

static struct kobj_attribute orr_link_state = __ATTR(state, 0444, orr_link_state_show, NULL);
static struct kobj_attribute orr_link_peer = __ATTR(peer, 0444, orr_link_peer_show, NULL);
static struct kobj_attribute orr_link_lanes = __ATTR(lanes, 0444, orr_link_lanes_show, NULL);
static struct kobj_attribute orr_link_rate = __ATTR(rate, 0444, orr_link_rate_show, NULL);
static struct kobj_attribute orr_link_latency = __ATTR(latency, 0444, orr_link_latency_show, NULL);
static struct kobj_attribute orr_link_losses = __ATTR(losses, 0444, orr_link_losses_show, NULL);

static struct attribute *orr_link_attrs[] = {
	&orr_link_state.attr,
	&orr_link_peer.attr,
	&orr_link_lanes.attr,
	&orr_link_rate.attr,
	&orr_link_latency.attr,
	&orr_link_losses.attr,
	NULL,
};

static const struct attribute_group orr_link_group = {
	.attrs = orr_link_attrs,
};

static int orr_sysfs_link_add(struct orr_link_port *port, struct kobject *links)
{
	char name[8];

	snprintf(name, sizeof(name), "%u", port->index);
	port->kobj = kobject_create_and_add(name, links);
	if (!port->kobj)
		return -ENOMEM;
	return sysfs_create_group(port->kobj, &orr_link_group);
}

/**
 * orr_sysfs_links_add - make links/
 * @odev: the card; its ports exist
 *
 * Return: 0 or a negative error, and then orr_sysfs_links_remove() is due all the same.
 */
int orr_sysfs_links_add(struct orr_device *odev)
{
	u32 i;
	int ret;

	odev->links_kobj = kobject_create_and_add("links", &odev->pdev->dev.kobj);
	if (!odev->links_kobj)
		return -ENOMEM;
	for (i = 0; i < odev->info.link_ports; i++) {
		ret = orr_sysfs_link_add(odev->links[i], odev->links_kobj);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * orr_sysfs_links_remove - remove links/; nobody reads there any more when this returns
 * @odev: the card
 */
void orr_sysfs_links_remove(struct orr_device *odev)
{
	u32 i;

	if (!odev->links_kobj)
		return;
	for (i = 0; i < odev->info.link_ports; i++) {
		kobject_put(odev->links[i]->kobj);
		odev->links[i]->kobj = NULL;
	}
	kobject_put(odev->links_kobj);
	odev->links_kobj = NULL;
}

/**
 * orr_sysfs_links_notify - wake up who polls links/PORT/state
 * @odev: the card
 */
void orr_sysfs_links_notify(struct orr_device *odev)
{
	u32 i;

	for (i = 0; i < odev->info.link_ports; i++)
		if (odev->links[i]->kobj)
			sysfs_notify(odev->links[i]->kobj, NULL, "state");
}
