// SPDX-License-Identifier: GPL-2.0
/*
 * Cards that others reach. Each has a number, its node. A card reaches another's VRAM only where that
 * one's driver (this one, as the owner) has granted a range to its node; by which way, orr_route.c
 * says.
 *
 * Either card can go at any time. The card that has mapped memory of one that is gone gets no card into
 * its page tables there (orr_peers_cut()), and the mappings stand until their owner takes them away.
 * Until then they name the node that the card had in that life. Each life of a card gets another,
 * which is nobody else's as long as such a mapping may stand, so it leads nowhere either way.
 *
 * Grants (orr_grant.c) are the same on all ports: by which one a node may come is for its route to say.
 *
 * A BO of the owner is kept alive by its dma-buf, and its struct orr_device by the BO; the owner's
 * registers are touched inside its orr_enter() only.
 */
#include <linux/iopoll.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <drm/drm_managed.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_map.h"
#include "orr_route.h"

/* Between two looks whether a card that is waited for is lost. */
#define ORR_CUT_PIECE (HZ / 10)
#define ORR_NODE_TIMEOUT_US (5 * USEC_PER_SEC)
/* How often somebody looks whether a debugger holds cards. */
#define ORR_AWAIT_SLICE_MS 100u

static DEFINE_MUTEX(orr_registry_lock);
static LIST_HEAD(orr_registry);
static u32 orr_last_node; /* how many have been given; orr_registry_lock */
/* Numbers that stand for several cards; orr_registry_lock. */
static DECLARE_BITMAP(orr_numbers, ORR_NODES);

/*
 * Cards of two machines that are joined have numbers of two drivers. They do not know of each other when
 * they give them, so each has to be told which are its own.
 */
static unsigned int first_node = 1;
module_param(first_node, uint, 0444);
MODULE_PARM_DESC(first_node, "Lowest number for a card among those that it reaches; of drivers whose cards are joined each needs its own (default 1)");

static unsigned int nodes = ORR_NODES - 1;
module_param(nodes, uint, 0444);
MODULE_PARM_DESC(nodes, "How many such numbers there are from first_node on (default all, up to 1023)");

static unsigned int unbind_timeout_ms = 10000;
module_param(unbind_timeout_ms, uint, 0644);
MODULE_PARM_DESC(unbind_timeout_ms, "Time for which unbinding a card waits until the others have its memory out of their page tables, in milliseconds (default 10000)");

/**
 * orr_nodes_valid - do first_node and nodes make sense?
 *
 * Return: whether they do.
 */
bool orr_nodes_valid(void)
{
	if (first_node && nodes && first_node < ORR_NODES && nodes <= ORR_NODES - first_node)
		return true;
	pr_err(ORR_DRIVER_NAME ": first_node=%u nodes=%u: they are numbers from 1 to %u\n",
	       first_node, nodes, ORR_NODES - 1);
	return false;
}

/**
 * orr_node_is_own - is it a number that this driver gives?
 * @node: the number
 *
 * Return: whether it is, whoever says that he has it.
 */
bool orr_node_is_own(u32 node)
{
	return node >= first_node && node - first_node < nodes;
}

static void orr_peer_forget(struct drm_device *drm, void *data)
{
	struct orr_device *odev = data;
	unsigned int i;

	guard(mutex)(&orr_registry_lock);
	for (i = 0; i < ORR_MULTICASTS; i++)
		if (odev->multicasts.slots[i].number)
			__clear_bit(odev->multicasts.slots[i].number, orr_numbers);
	list_del_init(&odev->registry_node);
}

/* A number that no card has, in this life or one of which mappings may stand. 0: there is none. */
static u32 orr_node_new(void)
{
	struct orr_device *other;
	u32 tries;

	lockdep_assert_held(&orr_registry_lock);
	for (tries = 0; tries < nodes; tries++) {
		u32 node = first_node + orr_last_node++ % nodes;
		bool taken = test_bit(node, orr_numbers);

		list_for_each_entry(other, &orr_registry, registry_node)
			taken |= other->node == node;
		if (!taken)
			return node;
	}
	return 0;
}

/**
 * orr_number_new - a number as nodes have, that stands for several
 *
 * So many are left that each card can begin another life while somebody holds what is left of this one.
 *
 * Return: the number, which goes with the card in whose orr_multicasts it is; 0: there is none.
 */
u32 orr_number_new(void)
{
	struct orr_device *odev;
	u32 number, wanted;

	guard(mutex)(&orr_registry_lock);
	wanted = bitmap_weight(orr_numbers, ORR_NODES);
	list_for_each_entry(odev, &orr_registry, registry_node)
		wanted += 1 + odev->registered;
	if (wanted >= nodes)
		return 0;
	number = orr_node_new();
	if (number)
		__set_bit(number, orr_numbers);
	return number;
}

/* Return: 0, -EEXIST, -ENOSPC. */
static int orr_registry_add(struct orr_device *odev)
{
	struct device *dev = &odev->pdev->dev;
	struct orr_device *other;

	guard(mutex)(&orr_registry_lock);
	list_for_each_entry(other, &orr_registry, registry_node)
		if (other->registered && other->info.uid == odev->info.uid)
			return dev_err_probe(dev, -EEXIST,
					     "card number %#llx is also that of %s: give each card its own\n",
					     odev->info.uid, pci_name(other->pdev));
	odev->node = orr_node_new();
	if (!odev->node)
		return dev_err_probe(dev, -ENOSPC,
				     "all %u numbers for cards (nodes=) are taken, by cards and by earlier lives of cards whose memory processes hold: end some\n",
				     nodes);
	list_add_tail(&odev->registry_node, &orr_registry);
	odev->registered = true;
	return 0;
}

/**
 * orr_peer_any_held - does a debugger hold some card, by that card's account?
 *
 * Cards that keep step with it stand too, and say nothing.
 *
 * Return: whether one does.
 */
bool orr_peer_any_held(void)
{
	struct orr_device *odev;
	bool held = false;
	int idx;

	guard(mutex)(&orr_registry_lock);
	list_for_each_entry(odev, &orr_registry, registry_node) {
		if (!odev->registered || orr_enter(odev, &idx))
			continue;
		held = orr_restart_held(odev);
		orr_exit(odev, idx);
		if (held)
			break;
	}
	return held;
}

/* Whether a register says so. @counts: it may have gone on from there. */
static bool orr_is_there(u32 now, u32 value, bool counts)
{
	return now == value || (counts && now != U32_MAX && (s32)(now - value) > 0);
}

/* @whose: for that card it is; once it is lost nobody waits any more */
static int orr_await_either(struct orr_device *odev, const struct orr_device *whose, u32 reg,
			    u32 value, bool counts, unsigned int limit_us, unsigned int held_ms)
{
	const unsigned int slice_us = ORR_AWAIT_SLICE_MS * USEC_PER_MSEC;
	u32 now;

	for (;;) {
		read_poll_timeout(orr_read32, now,
				  orr_is_there(now, value, counts) || now == U32_MAX ||
				  orr_is_lost(odev) || orr_is_lost(whose), 20,
				  min(limit_us, slice_us), false, odev, reg);
		if (orr_is_there(now, value, counts))
			return 0;
		if (orr_is_lost(odev) || orr_is_lost(whose) ||
		    (now == U32_MAX && orr_health_gone(odev)))
			return -ENODEV;
		/* A card that is there never reads so: it does not do it. */
		if (now == U32_MAX)
			return -ETIMEDOUT;
		if (orr_restart_held(odev) || orr_peer_any_held()) {
			if (held_ms < ORR_AWAIT_SLICE_MS)
				return -EBUSY;
			held_ms -= ORR_AWAIT_SLICE_MS;
			continue;
		}
		if (limit_us <= slice_us)
			return -ETIMEDOUT;
		limit_us -= slice_us;
	}
}

/**
 * orr_await - wait until a register says that something is in effect
 * @odev: the card, inside orr_enter() or in probe
 * @reg: the register
 * @value: what it reads then
 * @limit_us: time that the card has for it
 * @held_ms: time that a debugger who holds this card or another may take besides
 *
 * Return: 0, -ENODEV: the card is lost, -ETIMEDOUT: it does not do it, -EBUSY: it stands, and a
 * debugger holds a card.
 */
int orr_await(struct orr_device *odev, u32 reg, u32 value, unsigned int limit_us,
	      unsigned int held_ms)
{
	return orr_await_either(odev, odev, reg, value, false, limit_us, held_ms);
}

/**
 * orr_await_count - the same of a register that counts, which may have gone on when somebody looks
 * @odev: the card, inside orr_enter()
 * @whose: for which card it is waited, perhaps another: who leaves that one waits for no third
 * @reg: the register
 * @value: what it has come to then
 * @limit_us: as of orr_await()
 * @held_ms: likewise
 *
 * Return: as orr_await(); -ENODEV also if the other card is lost.
 */
int orr_await_count(struct orr_device *odev, const struct orr_device *whose, u32 reg, u32 value,
		    unsigned int limit_us, unsigned int held_ms)
{
	return orr_await_either(odev, whose, reg, value, true, limit_us, held_ms);
}

/**
 * orr_await_or_lose - the same of what no card refuses: one that does not do it is lost
 * @odev: the card, inside orr_enter()
 * @reg: the register
 * @value: what it reads then
 * @limit_us: time that the card has for it
 * @held_ms: as of orr_await()
 * @why: it is lost, if so
 *
 * Return: 0, -ENODEV: the card is lost, -EBUSY: it stands, and a debugger holds a card.
 */
int orr_await_or_lose(struct orr_device *odev, u32 reg, u32 value, unsigned int limit_us,
		      unsigned int held_ms, const char *why)
{
	int ret = orr_await(odev, reg, value, limit_us, held_ms);

	if (ret != -ETIMEDOUT)
		return ret;
	orr_device_lost(odev, why);
	return -ENODEV;
}

/**
 * orr_peer_register - make a card known to the others, and give it its node
 * @odev: the card
 *
 * Return: 0, -EEXIST if there is another with its number, -ENOSPC without a free node, -EIO if the
 * card does not take it, -ENOMEM.
 */
int orr_peer_register(struct orr_device *odev)
{
	int ret;

	ret = orr_registry_add(odev);
	if (ret)
		return ret;
	/* It stays in the list as long as there can be mappings of its memory. */
	ret = drmm_add_action_or_reset(&odev->drm, orr_peer_forget, odev);
	if (ret)
		return ret;
	orr_write32(odev, ORR_R_NODE, odev->node);
	if (orr_await(odev, ORR_R_NODE, odev->node, ORR_NODE_TIMEOUT_US, orr_boot_timeout_ms))
		return dev_err_probe(&odev->pdev->dev, -EIO,
				     "the card does not take %u for its node: start it again\n",
				     odev->node);
	return 0;
}

/**
 * orr_peer_unregister - a card goes
 * @odev: the card
 */
void orr_peer_unregister(struct orr_device *odev)
{
	guard(mutex)(&orr_registry_lock);
	odev->registered = false;
}

/**
 * orr_peer_is_registered - may others use a card?
 * @odev: the card
 *
 * Return: whether they may.
 */
bool orr_peer_is_registered(struct orr_device *odev)
{
	guard(mutex)(&orr_registry_lock);
	return odev->registered;
}

/**
 * orr_peer_has_uid - is a card one of this driver's?
 * @uid: what the card says that it is
 *
 * Return: whether there is one with that number.
 */
bool orr_peer_has_uid(u64 uid)
{
	struct orr_device *odev;

	guard(mutex)(&orr_registry_lock);
	list_for_each_entry(odev, &orr_registry, registry_node)
		if (odev->registered && odev->info.uid == uid)
			return true;
	return false;
}

/**
 * orr_peer_collect - all cards that others may use
 * @cards: filled in, with a reference each
 * @room: at most so many
 *
 * Return: their number.
 */
unsigned int orr_peer_collect(struct orr_device *cards[], unsigned int room)
{
	struct orr_device *odev;
	unsigned int count = 0;

	guard(mutex)(&orr_registry_lock);
	list_for_each_entry(odev, &orr_registry, registry_node) {
		if (!odev->registered || count == room)
			continue;
		/* The driver is bound, and keeps it. */
		drm_dev_get(&odev->drm);
		cards[count++] = odev;
	}
	return count;
}

static bool orr_peer_has_cut(struct orr_device *card, u32 wanted)
{
	/* What was cut is seen by whoever sees this: pairs with orr_import_cut_work(). */
	if ((s32)(smp_load_acquire(&card->fabric.cuts_done) - wanted) >= 0)
		return true;
	/* Nothing of it goes anywhere then. */
	return orr_is_lost(card) && completion_done(&card->quiesced);
}

/* Return: 0, -ETIMEDOUT: it was not so by @until, -EINTR: the caller is being killed. */
static int orr_peer_wait_cut(struct orr_device *card, u32 wanted, unsigned long until)
{
	long ret = 0;

	/* In pieces: a card that is lost wakes nobody. */
	while (!orr_peer_has_cut(card, wanted) && time_before(jiffies, until) && ret >= 0)
		ret = wait_event_killable_timeout(card->fabric.cut, orr_peer_has_cut(card, wanted),
						  ORR_CUT_PIECE);
	if (orr_peer_has_cut(card, wanted))
		return 0;
	return ret < 0 ? -EINTR : -ETIMEDOUT;
}

/* The cause is as far as is known here, and what to do goes by it: a card that works is to be left alone. */
static void orr_peer_tell_uncut(struct orr_device *owner, struct orr_device *card, int why,
				unsigned int limit_ms)
{
	const char *name = pci_name(card->pdev);
	char cause[192];

	if (why == -EINTR)
		snprintf(cause, sizeof(cause),
			 "who unbinds this one was killed, and so waits no longer for it");
	else if (READ_ONCE(card->restart.held))
		snprintf(cause, sizeof(cause), "a debugger holds it: it does so when it goes on");
	else if (orr_peer_any_held())
		snprintf(cause, sizeof(cause),
			 "a debugger holds another card, for which it may wait: it does so when that goes on");
	else
		snprintf(cause, sizeof(cause),
			 "its driver has not come to it in the %u ms of unbind_timeout_ms: if its log says that its firmware does not answer, unbind and bind its driver",
			 limit_ms);
	drm_warn(&owner->drm,
		 "the driver leaves this card while %s still has its memory in its page tables; what is still sent there goes to number %u, which no card gets before they are clear. %s has not cleared them, because %s\n",
		 name, owner->node, name, cause);
}

/**
 * orr_peers_cut - a card is lost: what the others have mapped of its memory leads nowhere from now on
 * @owner: the card
 * @wait: until their page tables say so, but no longer than unbind_timeout_ms; not where fences end
 *
 * Each of them by a work of its own, so that one which takes long is nothing to the rest. One that takes
 * too long is not waited for: its entries name a node that nobody has as long as they stand.
 */
void orr_peers_cut(struct orr_device *owner, bool wait)
{
	unsigned int limit_ms = READ_ONCE(unbind_timeout_ms);
	unsigned long until = jiffies + msecs_to_jiffies(limit_ms);
	struct orr_device *cards[ORR_MAP_CARDS];
	u32 wanted[ORR_MAP_CARDS];
	unsigned int i, count;

	count = orr_peer_collect(cards, ARRAY_SIZE(cards));
	for (i = 0; i < count; i++) {
		if (cards[i] == owner)
			continue;
		wanted[i] = atomic_inc_return(&cards[i]->fabric.cuts_wanted);
		queue_work(system_long_wq, &cards[i]->fabric.cut_work);
	}
	for (i = 0; i < count; i++) {
		int ret = 0;

		if (wait && cards[i] != owner)
			ret = orr_peer_wait_cut(cards[i], wanted[i], until);
		if (ret)
			orr_peer_tell_uncut(owner, cards[i], ret, limit_ms);
		drm_dev_put(&cards[i]->drm);
	}
}
