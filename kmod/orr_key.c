// SPDX-License-Identifier: GPL-2.0
/*
 * Keys. A card's requests say from which node they are, and who passes them on could let another card say
 * the same. So they carry a key, too, which the owner's grants want: 64 random bits for each direction
 * between two cards. It is made by the driver of the owner, and known to nobody but the drivers of both,
 * both cards, and what is on the way between them.
 *
 * Between two cards of this driver a key is as old as their struct orr_pair: it ends with the life of one
 * of both cards, and the next life has another node and other keys. With a card of another machine it is of
 * one session (orr_foreign.c), and told with the answer to who has shown the secret of a handle. So no
 * key changes while something is on the way that may be carried out: what was sent under an older one is of
 * an epoch that has ended, or for a range that nobody grants any more.
 *
 * The key of a number that stands for several (orr_multicast.c) is none: the switch puts in each member's,
 * as the card has it when it tells of the member.
 */
#include <linux/mutex.h>
#include <linux/random.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_key.h"
#include "orr_restart.h"

#define ORR_KEY_TIMEOUT_US (5 * USEC_PER_SEC)

/**
 * orr_key_make - a key for what one card sends another
 * @odev: one of both
 * @other: the other; NULL: another machine's
 *
 * Return: the key, which nobody had before; 0: one of both knows none, and grants to it want none.
 */
u64 orr_key_make(const struct orr_device *odev, const struct orr_device *other)
{
	u64 key;

	if (!orr_link_keys(odev) || (other && !orr_link_keys(other)))
		return 0;
	do
		key = get_random_u64();
	while (!key);
	return key;
}

/**
 * orr_key_set - say what a card's requests to another carry from now on
 * @odev: the card that sends them
 * @node: the other's
 * @key: the key; 0: none
 *
 * Waits for nobody: it is in effect after orr_keys_await() only.
 *
 * Return: 0, -ENODEV: the card is gone.
 */
int orr_key_set(struct orr_device *odev, u32 node, u64 key)
{
	int idx, ret;

	if (!orr_link_keys(odev))
		return 0;
	guard(mutex)(&odev->key_lock);
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	orr_write64(odev, ORR_R_ROUTE_KEY(node), key);
	WRITE_ONCE(odev->keys_set, odev->keys_set + 1);
	orr_exit(odev, idx);
	return 0;
}

/**
 * orr_keys_await - wait until a card's requests carry what was set so far
 * @odev: the card; without locks in which nobody waits for debuggers
 *
 * Return: 0, -ENODEV: the card is gone.
 */
int orr_keys_await(struct orr_device *odev)
{
	u32 set = READ_ONCE(odev->keys_set);
	int idx, ret;

	if (set == READ_ONCE(odev->keys_seen))
		return 0;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_await_count(odev, odev, ORR_R_ROUTE_KEYS, set, ORR_KEY_TIMEOUT_US,
			      orr_restart_held_ms(odev));
	orr_exit(odev, idx);
	if (ret == -ETIMEDOUT)
		orr_device_lost(odev, "it does not take keys for other cards");
	if (ret == -EBUSY)
		orr_device_lost(odev, "a debugger has held some card for longer than held_timeout_ms");
	if (ret)
		return -ENODEV;
	/* Of two at once the later may write the lower number: then somebody looks once more. */
	WRITE_ONCE(odev->keys_seen, set);
	return 0;
}
