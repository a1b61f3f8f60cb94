// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs, below the PCI device: links/PORT/{state,peer,owner,foreign_node,forged,lanes,width,rate,latency,
 * losses}, and what the port counts: {rx,tx}_{messages,bytes}, crc_errors, retries, retrains, changes, and
 * denied, bad_keys, refused. All but what is foreign are read from the card at that moment.
 * links/PORT/switches is what the switch at the other end tells of itself and of others, as the card has it
 * (orrery/hw/switches.h).
 * Who writes 1 to links/PORT/reset has the link taken down and trained anew.
 * A port that goes down or comes up wakes up who polls its state, and is an event of udev.
 */
#include <linux/kobject.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sysfs.h>

#include "orr_bo.h"
#include "orr_device.h"

/* A card takes it between two events, if it gets any CPU. */
#define ORR_LINK_RESET_TIMEOUT_US (5 * USEC_PER_SEC)
/* Words of links/PORT/switches that are read between two looks at whether to go on. */
#define ORR_SWITCHES_LOOK_WORDS 64

static struct orr_device *orr_link_device(struct kobject *kobj)
{
	return dev_get_drvdata(kobj_to_dev(kobj->parent->parent));
}

/* Reads a register of the port that links/PORT stands for. */
static int orr_link_read(struct kobject *kobj, u32 reg, bool wide, u64 *value)
{
	struct orr_device *odev = orr_link_device(kobj);
	int idx, ret;
	bool ones;
	u32 port;

	ret = kstrtou32(kobject_name(kobj), 10, &port);
	if (ret)
		return ret;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	if (wide) {
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

static const char *orr_link_state_name(u32 state)
{
	static const char * const names[] = {
		[ORR_LINK_DOWN] = "down",
		[ORR_LINK_TRAINING] = "training",
		[ORR_LINK_UP] = "up",
		[ORR_LINK_DEGRADED] = "degraded",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

static ssize_t state_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	u64 state;
	int ret;

	ret = orr_link_read(kobj, ORR_R_LINK_STATE, false, &state);
	return ret ?: sysfs_emit(buf, "%s\n", orr_link_state_name(state));
}

static ssize_t peer_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	u64 uid, port, kind = 0;
	int ret;

	if ((orr_link_device(kobj)->info.hw_version & 0xffff) >= 2) {
		ret = orr_link_read(kobj, ORR_R_LINK_SWITCH, false, &kind);
		if (ret)
			return ret;
	}
	ret = orr_link_read(kobj, ORR_R_LINK_PEER_UID, true, &uid) ?:
	      orr_link_read(kobj, ORR_R_LINK_PEER_PORT, false, &port);
	if (ret)
		return ret;
	if (!uid)
		return sysfs_emit(buf, "none\n");
	return sysfs_emit(buf, "%016llx %llu%s\n", uid, port,
			  kind & ORR_LINK_IS_SWITCH ? " switch" : "");
}

/*
 * Whose the card at the other end is. One that is not this driver's has what it says of itself from
 * nobody who is known here, so nothing of this machine is ever open to it.
 */
static ssize_t owner_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	u64 uid;
	int ret;

	ret = orr_link_read(kobj, ORR_R_LINK_PEER_UID, true, &uid);
	if (ret)
		return ret;
	return sysfs_emit(buf, "%s\n", !uid ? "none" : orr_peer_has_uid(uid) ? "own" : "foreign");
}

/* Lanes in use, and those that the port has. */
static ssize_t width_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	u64 lanes, built;
	int ret;

	ret = orr_link_read(kobj, ORR_R_LINK_LANES, false, &lanes) ?:
	      orr_link_read(kobj, ORR_R_LINK_BUILT, false, &built);
	return ret ?: sysfs_emit(buf, "%llu/%llu\n", lanes, built);
}

/* Of the lanes in use; while it is not up, and of a card that does not say, of all. */
static ssize_t rate_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	u64 gbps, mbps = 0;
	int ret;

	ret = orr_link_read(kobj, ORR_R_LINK_GBPS, false, &gbps);
	if (!ret && orr_link_counts(orr_link_device(kobj)))
		ret = orr_link_read(kobj, ORR_R_LINK_MBPS, false, &mbps);
	if (ret)
		return ret;
	if (!mbps)
		mbps = gbps * 1000;
	if (mbps % 1000)
		return sysfs_emit(buf, "%llu.%03llu Gbit/s\n", mbps / 1000, mbps % 1000);
	return sysfs_emit(buf, "%llu Gbit/s\n", mbps / 1000);
}

/*
 * Returns when the link has gone down; it comes up by itself, as far as the peer does its part. The
 * caller is inside orr_enter().
 */
static int orr_link_reset(struct orr_device *odev, u32 port)
{
	u32 link = ORR_R_LINK(port);
	u32 state, wanted;

	state = orr_read32(odev, link + ORR_R_LINK_STATE);
	if (state == U32_MAX && !orr_hw_answers(odev, true))
		return -ENODEV;
	if (state != ORR_LINK_UP && state != ORR_LINK_DEGRADED)
		return -ENOLINK;
	scoped_guard(mutex, &odev->drain_lock) {
		orr_write32(odev, link + ORR_R_LINK_RESET, 1);
		wanted = ++odev->link_resets[port];
	}
	return orr_await_count(odev, odev, link + ORR_R_LINK_RESETS, wanted,
			       ORR_LINK_RESET_TIMEOUT_US, orr_restart_held_ms(odev));
}

static ssize_t reset_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			   size_t count)
{
	struct orr_device *odev = orr_link_device(kobj);
	int idx, ret;
	bool reset;
	u32 port;

	ret = kstrtobool(buf, &reset) ?: kstrtou32(kobject_name(kobj), 10, &port);
	if (ret)
		return ret;
	if (!reset)
		return -EINVAL;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_link_reset(odev, port);
	orr_exit(odev, idx);
	if (ret)
		return ret;
	drm_info(&odev->drm, "link %u has been reset, as process %d asked for it\n", port,
		 task_tgid_nr(current));
	return count;
}

static struct kobj_attribute orr_link_reset_attr = __ATTR(reset, 0200, NULL, reset_store);
static struct kobj_attribute orr_link_state = __ATTR_RO(state);
static struct kobj_attribute orr_link_peer = __ATTR_RO(peer);
/* Handles with a wrong secret with which cards of other machines came by that port. */
static ssize_t forged_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct orr_device *odev = orr_link_device(kobj);
	u32 port;
	int ret;

	ret = kstrtou32(kobject_name(kobj), 10, &port);
	return ret ?: sysfs_emit(buf, "%u\n", READ_ONCE(odev->fabric.forged[port]));
}

/* The numbers of cards of other machines whose drivers have answered: one at a link; 0: none. */
static ssize_t foreign_node_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct orr_device *odev = orr_link_device(kobj);
	int ret, length = 0;
	u32 port, at;

	ret = kstrtou32(kobject_name(kobj), 10, &port);
	if (ret)
		return ret;
	guard(mutex)(&odev->fabric.lock);
	for (at = 0; at < ORR_FOREIGN_MAX; at++)
		if (odev->fabric.foreign[at].greet.session && odev->fabric.foreign[at].port == port)
			length += sysfs_emit_at(buf, length, "%s%u", length ? " " : "",
						odev->fabric.foreign[at].node);
	return length + sysfs_emit_at(buf, length, length ? "\n" : "0\n");
}

static struct kobj_attribute orr_link_forged = __ATTR_RO(forged);
static struct kobj_attribute orr_link_foreign_node = __ATTR_RO(foreign_node);
static struct kobj_attribute orr_link_owner = __ATTR_RO(owner);
static struct kobj_attribute orr_link_width = __ATTR_RO(width);
static struct kobj_attribute orr_link_rate = __ATTR_RO(rate);

/**
 * struct orr_link_number - a file that shows a register as a number
 */
struct orr_link_number {
	/** @attr: base */
	struct kobj_attribute attr;
	/** @reg: ORR_R_LINK_* */
	u32 reg;
	/** @wide: it has 64 bits */
	bool wide;
	/** @unit: behind the number */
	const char *unit;
};

static ssize_t orr_link_number_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct orr_link_number *number = container_of(attr, struct orr_link_number, attr);
	u64 value;
	int ret;

	ret = orr_link_read(kobj, number->reg, number->wide, &value);
	return ret ?: sysfs_emit(buf, "%llu%s\n", value, number->unit);
}

#define ORR_LINK_NUMBER(name_, reg_, wide_, unit_)				\
	static struct orr_link_number orr_link_##name_ = {			\
		.attr = __ATTR(name_, 0444, orr_link_number_show, NULL),	\
		.reg = (reg_),							\
		.wide = (wide_),						\
		.unit = (unit_),						\
	}

ORR_LINK_NUMBER(lanes, ORR_R_LINK_LANES, false, "");
ORR_LINK_NUMBER(latency, ORR_R_LINK_LATENCY_NS, false, " ns");
ORR_LINK_NUMBER(losses, ORR_R_LINK_LOSSES, false, "");
ORR_LINK_NUMBER(rx_messages, ORR_R_LINK_RX_MESSAGES, true, "");
ORR_LINK_NUMBER(rx_bytes, ORR_R_LINK_RX_BYTES, true, "");
ORR_LINK_NUMBER(tx_messages, ORR_R_LINK_TX_MESSAGES, true, "");
ORR_LINK_NUMBER(tx_bytes, ORR_R_LINK_TX_BYTES, true, "");
ORR_LINK_NUMBER(crc_errors, ORR_R_LINK_CRC_ERRORS, false, "");
ORR_LINK_NUMBER(retries, ORR_R_LINK_RETRIES, false, "");
ORR_LINK_NUMBER(retrains, ORR_R_LINK_RETRAINS, false, "");
ORR_LINK_NUMBER(changes, ORR_R_LINK_CHANGES, false, "");
ORR_LINK_NUMBER(denied, ORR_R_LINK_DENIED, false, "");
ORR_LINK_NUMBER(bad_keys, ORR_R_LINK_BAD_KEYS, false, "");
ORR_LINK_NUMBER(refused, ORR_R_LINK_REFUSED, false, "");

static struct attribute *orr_link_attrs[] = {
	&orr_link_state.attr,
	&orr_link_peer.attr,
	&orr_link_owner.attr,
	&orr_link_foreign_node.attr,
	&orr_link_forged.attr,
	&orr_link_lanes.attr.attr,
	&orr_link_rate.attr,
	&orr_link_latency.attr.attr,
	&orr_link_losses.attr.attr,
	NULL,
};

static const struct attribute_group orr_link_group = {
	.attrs = orr_link_attrs,
};

static struct attribute *orr_link_newer_attrs[] = {
	&orr_link_width.attr,
	&orr_link_rx_messages.attr.attr,
	&orr_link_rx_bytes.attr.attr,
	&orr_link_tx_messages.attr.attr,
	&orr_link_tx_bytes.attr.attr,
	&orr_link_crc_errors.attr.attr,
	&orr_link_retries.attr.attr,
	&orr_link_retrains.attr.attr,
	&orr_link_changes.attr.attr,
	&orr_link_reset_attr.attr,
	NULL,
};

/* By the card's version. */
static umode_t orr_link_newer_is_visible(struct kobject *kobj, struct attribute *attr, int index)
{
	struct orr_device *odev = orr_link_device(kobj);
	bool has = attr == &orr_link_reset_attr.attr ? orr_link_resets(odev) : orr_link_counts(odev);

	return has ? attr->mode : 0;
}

static const struct attribute_group orr_link_newer_group = {
	.attrs = orr_link_newer_attrs,
	.is_visible = orr_link_newer_is_visible,
};

static struct attribute *orr_link_denial_attrs[] = {
	&orr_link_denied.attr.attr,
	&orr_link_bad_keys.attr.attr,
	&orr_link_refused.attr.attr,
	NULL,
};

static umode_t orr_link_denial_is_visible(struct kobject *kobj, struct attribute *attr, int index)
{
	return orr_link_reads(orr_link_device(kobj)) ? attr->mode : 0;
}

static const struct attribute_group orr_link_denial_group = {
	.attrs = orr_link_denial_attrs,
	.is_visible = orr_link_denial_is_visible,
};

/* Inside orr_enter(). Return: 0; -EINTR: the caller is being killed; -ENODEV: the card is gone or lost. */
static int orr_link_read_switches(struct orr_device *odev, u32 port, loff_t at, u32 words[], size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (i % ORR_SWITCHES_LOOK_WORDS == 0) {
			if (orr_is_lost(odev))
				return -ENODEV;
			if (fatal_signal_pending(current))
				return -EINTR;
			cond_resched();
		}
		words[i] = orr_read32(odev, ORR_R_SWITCHES(port) + at + 4 * i);
		/* A peer's words may be all-ones: it is for the card's ID to tell whether it is there. */
		if (words[i] == U32_MAX && !orr_hw_answers(odev, false))
			return -ENODEV;
	}
	return 0;
}

/* In words; of a port at which no switch tells anything there are none. */
static ssize_t switches_read(struct file *file, struct kobject *kobj,
			     ORR_BIN_CONST struct bin_attribute *attr, char *buf, loff_t offset,
			     size_t count)
{
	struct orr_device *odev = orr_link_device(kobj);
	u64 kind = 0;
	int idx, ret;
	u32 port;

	ret = kstrtou32(kobject_name(kobj), 10, &port);
	if (ret)
		return ret;
	if (offset >= ORR_SWITCHES_BYTES)
		return 0;
	if (offset % 4 || count < 4)
		return -EINVAL;
	if ((odev->info.hw_version & 0xffff) >= 2) {
		ret = orr_link_read(kobj, ORR_R_LINK_SWITCH, false, &kind);
		if (ret)
			return ret;
	}
	if (!(kind & ORR_LINK_TELLS_SWITCHES))
		return 0;
	count = min_t(size_t, count, ORR_SWITCHES_BYTES - offset) & ~3;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_link_read_switches(odev, port, offset, (u32 *)buf, count / 4);
	orr_exit(odev, idx);
	return ret ?: count;
}

static ORR_BIN_CONST struct bin_attribute orr_link_switches = __BIN_ATTR_RO(switches, 0);

static ORR_BIN_CONST struct bin_attribute *ORR_BIN_CONST orr_link_switches_attrs[] = {
	&orr_link_switches,
	NULL,
};

static const struct attribute_group orr_link_switches_group = {
	.bin_attrs = orr_link_switches_attrs,
};

static int orr_sysfs_link_add(struct orr_link_port *port, struct kobject *links)
{
	char name[8];

	snprintf(name, sizeof(name), "%u", port->index);
	port->kobj = kobject_create_and_add(name, links);
	if (!port->kobj)
		return -ENOMEM;
	return sysfs_create_group(port->kobj, &orr_link_group) ?:
	       sysfs_create_group(port->kobj, &orr_link_newer_group) ?:
	       sysfs_create_group(port->kobj, &orr_link_denial_group) ?:
	       sysfs_create_group(port->kobj, &orr_link_switches_group);
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
 * orr_sysfs_links_notify - tell of links that have changed: who polls links/PORT/state, and udev
 * @odev: the card, with links/
 * @ports: a bit for each that has
 */
void orr_sysfs_links_notify(struct orr_device *odev, unsigned long ports)
{
	unsigned int i;

	for_each_set_bit(i, &ports, odev->info.link_ports) {
		char port[24], state[32];
		char *env[3] = { port, state, NULL };

		if (!odev->links[i]->kobj)
			continue;
		sysfs_notify(odev->links[i]->kobj, NULL, "state");
		snprintf(port, sizeof(port), "ORRERY_LINK=%u", i);
		snprintf(state, sizeof(state), "ORRERY_LINK_STATE=%s",
			 orr_link_state_name(odev->link_looks[i].state));
		kobject_uevent_env(&odev->pdev->dev.kobj, KOBJ_CHANGE, env);
	}
}
