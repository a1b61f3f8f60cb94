// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs, below the PCI device: routes has a line for each other card of this driver, by which port it is
 * reached, over how many links, in which generation, and if it is not, why; foreign_routes one for each
 * card of another machine with whose driver there is a session.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_route.h"

/* Of one of each file: 16 + 4 + 1 + 3 + 10 + 6 characters, and what is between them. */
#define ORR_ROUTE_LINE 48u
static_assert(ORR_MAP_CARDS * ORR_ROUTE_LINE <= PAGE_SIZE);
static_assert(ORR_FOREIGN_MAX * ORR_ROUTE_LINE <= PAGE_SIZE);

static bool orr_route_is_linked(const struct orr_map_card *card)
{
	unsigned int p;

	for (p = 0; p < ORR_LINK_MAX_PORTS; p++)
		if (orr_link_is_up(&card->port[p].look))
			return true;
	return false;
}

/* How it is with the way from one card of the map to another, which the map has over so many links. */
static const char *orr_route_state(unsigned int from, unsigned int to, const struct orr_pair *pair,
				   unsigned int links)
{
	const struct orr_map_card *card = &orr_map.card[to];

	if (card->lost || orr_is_lost(card->odev))
		return "lost";
	if (pair && pair->way.up)
		return "up";
	if (pair && pair->stuck)
		return "held";
	if (links)
		return pair ? "closed" : "unused";
	if (!orr_route_is_linked(&orr_map.card[from]) || !orr_route_is_linked(card))
		return "down";
	return orr_map.next[from][to] == ORR_MAP_NONE ? "apart" : "far";
}

static int orr_route_show(char *buf, int length, unsigned int from, unsigned int to)
{
	struct orr_device *odev = orr_map.card[from].odev, *other = orr_map.card[to].odev;
	const struct orr_pair *pair = orr_pair_find(odev->node, other->node);
	const char *state;
	u8 ports[ORR_WAY_LINKS];
	unsigned int links;
	u32 port = 0;

	links = orr_map_way(&orr_map, from, to, ports);
	state = orr_route_state(from, to, pair, links);
	if (links) {
		port = ports[0];
		if (orr_map.fabric[from][to].used)
			links = orr_map.fabric[from][to].links;
	}
	/* What is up is as it was made: the map has the same. */
	length += sysfs_emit_at(buf, length, "%016llx %u ", other->info.uid, other->node);
	length += links ? sysfs_emit_at(buf, length, "%u", port) : sysfs_emit_at(buf, length, "-");
	return length + sysfs_emit_at(buf, length, " %u %u %s\n", links, pair ? pair->way.version : 0,
				      state);
}

/* UID NODE PORT LINKS GENERATION STATE */
static ssize_t routes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct orr_device *odev = dev_get_drvdata(dev);
	unsigned int from, to;
	int length = 0;

	if (orr_is_lost(odev))
		return -ENODEV;
	if (mutex_lock_interruptible(&orr_routes_lock))
		return -ERESTARTSYS;
	if (!orr_routes_look(odev)) {
		mutex_unlock(&orr_routes_lock);
		return -ENODEV;
	}
	from = orr_map_index(odev);
	for (to = 0; to < orr_map.count; to++)
		if (to != from)
			length = orr_route_show(buf, length, from, to);
	mutex_unlock(&orr_routes_lock);
	return length;
}
static DEVICE_ATTR_RO(routes);

/* NODE PORT LINKS */
static ssize_t foreign_routes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct orr_device *odev = dev_get_drvdata(dev);
	int length = 0;
	u32 at;

	if (mutex_lock_interruptible(&odev->fabric.lock))
		return -ERESTARTSYS;
	for (at = 0; at < ORR_FOREIGN_MAX; at++) {
		const struct orr_foreign *foreign = &odev->fabric.foreign[at];
		u32 more = foreign->behind ? foreign->how >> ORR_REACH_LINKS_SHIFT & ORR_REACH_LINKS : 0;

		if (foreign->greet.session)
			length += sysfs_emit_at(buf, length, "%u %u %u\n", foreign->node, foreign->port,
						1 + more);
	}
	mutex_unlock(&odev->fabric.lock);
	return length;
}
static DEVICE_ATTR_RO(foreign_routes);

static struct attribute *orr_route_attrs[] = {
	&dev_attr_routes.attr,
	&dev_attr_foreign_routes.attr,
	NULL,
};

const struct attribute_group orr_route_group = {
	.attrs = orr_route_attrs,
};
