// SPDX-License-Identifier: GPL-2.0
/*
 * The way to a card of another machine: over one link, or over the switches behind one of this card's ports.
 * Each driver sets its own card's route, and both agree about the epoch of the two.
 *
 * A port to a switch sends only with ORR_LINK_FORWARD, and loses that when it may have lost something.
 * Whoever sets it again has all routes to other machines by that port put on hold before that: so nothing
 * goes on behind a gap, and those sessions end.
 */
#include <drm/orrery_accel.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_foreign.h"
#include "orr_key.h"
#include "orr_route.h"

#define ORR_FOREIGN_ROUTE_US (2 * USEC_PER_SEC)

static int orr_foreign_write(struct orr_device *odev, u32 node, u32 route)
{
	int idx, ret;

	lockdep_assert_held(&odev->fabric.route_lock);
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	orr_write32(odev, ORR_R_ROUTE(node), route);
	ret = orr_await(odev, ORR_R_ROUTE(node), route, ORR_FOREIGN_ROUTE_US, 0);
	orr_exit(odev, idx);
	return ret;
}

static u32 orr_foreign_value(const struct orr_foreign *foreign)
{
	return ORR_ROUTE_VALID | foreign->port | (u32)foreign->greet.epoch << ORR_ROUTE_EPOCH_SHIFT;
}

/**
 * orr_foreign_route - a session begins: the card gets a route
 * @odev: the card
 * @foreign: the other, with the session's epoch
 * @node: its number
 *
 * Return: 0, -EBUSY: a debugger holds a card, -ENODEV, -ETIMEDOUT.
 */
int orr_foreign_route(struct orr_device *odev, struct orr_foreign *foreign, u32 node)
{
	int ret;

	lockdep_assert_held(&odev->fabric.lock);
	guard(mutex)(&odev->fabric.route_lock);
	ret = orr_foreign_write(odev, node, orr_foreign_value(foreign));
	if (ret)
		return ret;
	foreign->node = node;
	foreign->routed = true;
	foreign->held = false;
	return 0;
}

/**
 * orr_foreign_unroute - it ends
 * @odev: the card
 * @foreign: the other
 */
void orr_foreign_unroute(struct orr_device *odev, struct orr_foreign *foreign)
{
	guard(mutex)(&odev->fabric.route_lock);
	orr_foreign_write(odev, foreign->node, 0);
	/* A key is of one session. */
	orr_key_set(odev, foreign->node, 0);
	foreign->node = 0;
	foreign->routed = false;
	foreign->held = false;
}

/**
 * orr_foreign_hold - nothing goes to cards of other machines behind the switch at a port any more
 * @odev: the card
 * @port: the port
 *
 * Until new sessions begin. The caller may hold orr_routes_lock.
 *
 * Return: 0, -EBUSY: a debugger holds a card, -ENODEV, -ETIMEDOUT.
 */
int orr_foreign_hold(struct orr_device *odev, u32 port)
{
	struct orr_foreign *foreign;
	u32 at;
	int ret;

	guard(mutex)(&odev->fabric.route_lock);
	for (at = ORR_LINK_MAX_PORTS; at < ORR_FOREIGN_MAX; at++) {
		foreign = &odev->fabric.foreign[at];
		if (!foreign->routed || foreign->held || foreign->port != port)
			continue;
		ret = orr_foreign_write(odev, foreign->node,
					orr_foreign_value(foreign) | ORR_ROUTE_HOLD);
		if (ret)
			return ret;
		foreign->held = true;
	}
	return 0;
}

/**
 * orr_foreign_is_held - has that been done with a card?
 * @odev: the card
 * @foreign: the other
 *
 * Return: whether it has, since the session began.
 */
bool orr_foreign_is_held(struct orr_device *odev, const struct orr_foreign *foreign)
{
	guard(mutex)(&odev->fabric.route_lock);
	return foreign->held;
}

static bool orr_foreign_wants_port(struct orr_device *odev, u32 port)
{
	u32 at;

	guard(mutex)(&odev->fabric.lock);
	for (at = ORR_LINK_MAX_PORTS; odev->fabric.open && at < ORR_FOREIGN_MAX; at++)
		if (odev->fabric.foreign[at].behind && odev->fabric.foreign[at].port == port)
			return true;
	return false;
}

/**
 * orr_foreign_forward_work - look again at ports that did not pass on
 * @work: orr_fabric.forward_work
 */
void orr_foreign_forward_work(struct work_struct *work)
{
	struct orr_fabric *fabric = container_of(to_delayed_work(work), struct orr_fabric, forward_work);

	orr_health_link_kick(container_of(fabric, struct orr_device, fabric), true);
}

/* Return: jiffies until the port is asked again, 0: it is not. */
static unsigned long orr_foreign_open_port(struct orr_device *odev, u32 port)
{
	struct orr_link_look *look = &odev->link_looks[port];
	unsigned long *next = &odev->fabric.forward_next[port];
	unsigned long now = jiffies;
	int ret;

	if (!orr_link_is_up(look) || look->control & ORR_LINK_FORWARD ||
	    !orr_foreign_wants_port(odev, port))
		return 0;
	if (time_before(now, *next))
		return *next - now;
	ret = orr_routes_forward(odev, port);
	if (!ret)
		look->control |= ORR_LINK_FORWARD;
	if (!ret || ret == -ENODEV)
		return 0;
	*next = now + (ret == -EBUSY ? ORR_HEALTH_STUCK : ORR_FORWARD_AGAIN);
	return *next - now;
}

/**
 * orr_foreign_open_ports - have ports to switches pass on that others are to be reached by
 * @odev: the card; by its worker, without orr_fabric.lock
 */
void orr_foreign_open_ports(struct orr_device *odev)
{
	unsigned long wait, least = 0;
	u32 port;

	for (port = 0; port < odev->info.link_ports; port++) {
		wait = orr_foreign_open_port(odev, port);
		if (wait && (!least || wait < least))
			least = wait;
	}
	if (least)
		mod_delayed_work(system_long_wq, &odev->fabric.forward_work, least);
}

/**
 * orr_foreign_reach - which of the switches at a card's ports reaches a node?
 * @odev: the card
 * @node: of another machine
 * @first: the port that is asked first
 * @port: filled in; ORR_LINK_MAX_PORTS: none
 *
 * Return: what that says of it, as ORR_R_REACH; 0: none does.
 */
u32 orr_foreign_reach(struct orr_device *odev, u32 node, u32 first, u32 *port)
{
	struct orr_link_look look;
	u32 i, how = 0;
	int idx;

	*port = ORR_LINK_MAX_PORTS;
	if (!orr_has_far_notes(odev) || orr_enter(odev, &idx))
		return 0;
	for (i = 0; i < odev->info.link_ports && !how; i++) {
		u32 p = (first + i) % odev->info.link_ports;

		if (!orr_link_look(odev, p, &look))
			break;
		if (!orr_link_is_up(&look) || !orr_link_to_switch(odev, p))
			continue;
		how = orr_reach_look(odev, p, node);
		if (how)
			*port = p;
	}
	orr_exit(odev, idx);
	return how;
}

/* A link of this card to another machine's. Return: its port, or ORR_LINK_MAX_PORTS. */
static u32 orr_foreign_neighbour(struct orr_device *odev, u32 node)
{
	u32 port;

	lockdep_assert_held(&odev->fabric.lock);
	for (port = 0; port < ORR_LINK_MAX_PORTS; port++)
		if (odev->fabric.foreign[port].greet.session && odev->fabric.foreign[port].node == node)
			break;
	return port;
}

/**
 * orr_foreign_query - QUERY_WAY of a card of another machine
 * @odev: the card that asks
 * @args: filled in but for what was asked
 *
 * Return: 0, -EINVAL, -ENODEV, -ERESTARTSYS.
 */
int orr_foreign_query(struct orr_device *odev, struct drm_orr_query_way *args)
{
	u32 port, reach, link, how = 0;
	int idx, ret;

	if (args->peer_uid || args->node >= ORR_NODES || orr_node_is_own(args->node))
		return -EINVAL;
	*args = (struct drm_orr_query_way){ .node = args->node };
	if (mutex_lock_interruptible(&odev->fabric.lock))
		return -ERESTARTSYS;
	port = orr_foreign_neighbour(odev, args->node);
	mutex_unlock(&odev->fabric.lock);
	if (port == ORR_LINK_MAX_PORTS)
		how = orr_foreign_reach(odev, args->node, 0, &port);
	if (port == ORR_LINK_MAX_PORTS)
		return orr_is_lost(odev) ? -ENODEV : 0;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	link = ORR_R_LINK(port);
	args->links = 1;
	args->port = port;
	args->gbps = orr_link_gbps(odev, port);
	args->latency_ns = orr_read32(odev, link + ORR_R_LINK_LATENCY_NS);
	if (how) {
		reach = ORR_R_REACH(port, args->node);
		args->links += how >> ORR_REACH_LINKS_SHIFT & ORR_REACH_LINKS;
		args->latency_ns += orr_read32(odev, reach + ORR_REACH_LATENCY_NS);
		args->gbps = min(args->gbps,
				 max(orr_read32(odev, reach + ORR_REACH_MBPS) / 1000, 1u));
	}
	orr_exit(odev, idx);
	return 0;
}

/**
 * orr_foreign_unheard - it seems that what is said here does not get through
 * @odev: the card
 * @at: to whom, in orr_fabric.foreign
 *
 * What goes by one port stays in its order. If the first is for a card that takes nothing, that is lost to
 * it, and what is for others passes.
 */
void orr_foreign_unheard(struct orr_device *odev, u32 at)
{
	const struct orr_foreign *foreign = &odev->fabric.foreign[at];
	struct orr_fabric *fabric = &odev->fabric;

	lockdep_assert_held(&fabric->lock);
	if (!foreign->behind ||
	    time_before(jiffies, fabric->cleared[foreign->port] + ORR_CLEAR_AGAIN))
		return;
	fabric->cleared[foreign->port] = jiffies;
	__set_bit(foreign->port, &fabric->clogged);
	queue_work(system_long_wq, &fabric->clear_work);
}

/**
 * orr_foreign_clear_work - have what is in the way at switches taken away
 * @work: orr_fabric.clear_work
 */
void orr_foreign_clear_work(struct work_struct *work)
{
	struct orr_fabric *fabric = container_of(work, struct orr_fabric, clear_work);
	struct orr_device *odev = container_of(fabric, struct orr_device, fabric);
	unsigned long ports;
	u32 port;

	scoped_guard(mutex, &fabric->lock) {
		ports = fabric->clogged;
		fabric->clogged = 0;
	}
	for_each_set_bit(port, &ports, ORR_LINK_MAX_PORTS) {
		enum orr_drain drain = ORR_DRAIN_PATIENT;

		orr_port_drain_sender(odev, odev, port, &drain);
	}
}
