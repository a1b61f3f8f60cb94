// SPDX-License-Identifier: GPL-2.0
/*
 * Notes: 64 bytes from driver to driver, over one link or over switches. The cards carry them and say from
 * where they came; who wrote them is not known, so nothing in them is believed.
 */
#include "orr_bo.h"
#include "orr_device.h"
#include "orr_foreign.h"

#define ORR_NOTE_TIMEOUT_US (2 * USEC_PER_SEC)

static int orr_note_send_locked(struct orr_device *odev, u32 to, const u32 words[])
{
	unsigned int i;
	int ret;

	for (i = 0; i < ORR_NOTE_BYTES / 4; i++)
		orr_write32(odev, ORR_R_NOTE_OUT + 4 * i, words[i]);
	orr_write32(odev, ORR_R_NOTE_SEND, to);
	ret = orr_await(odev, ORR_R_NOTE_SENT, ++odev->notes_sent, ORR_NOTE_TIMEOUT_US, 0);
	if (ret)
		return ret;
	switch (orr_read32(odev, ORR_R_NOTE_FAULT)) {
	case ORR_FAULT_NONE:
		return 0;
	case ORR_FAULT_PEER_BUSY:
		return -EAGAIN;
	default:
		return -ENOTCONN;
	}
}

/**
 * orr_note_send - send a note to the driver of another card
 * @odev: this end's card
 * @port: the link
 * @node: for whom it is; 0: for the card at the other end of the link
 * @note: what to say
 *
 * That it was sent does not mean that it arrives: who wants an answer asks again.
 *
 * Return: 0, -EAGAIN without room, -ENOTCONN: there is nobody, -EOPNOTSUPP, -ENODEV, -ETIMEDOUT, -EBUSY: a
 * debugger holds a card.
 */
int orr_note_send(struct orr_device *odev, u32 port, u32 node, const struct orr_note *note)
{
	u32 words[ORR_NOTE_BYTES / 4];
	int idx, ret;

	if (!orr_has_notes(odev))
		return -EOPNOTSUPP;
	memcpy(words, note, sizeof(words));
	guard(mutex)(&odev->note_lock);
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_note_send_locked(odev, port | node << ORR_NOTE_NODE_SHIFT, words);
	orr_exit(odev, idx);
	return ret;
}

/**
 * orr_note_take - the next note that has come
 * @odev: the card; one caller at a time
 * @port: filled in: by which it came
 * @node: filled in: of the sender
 * @passed: filled in: whether others have passed it on
 * @note: filled in
 *
 * Return: whether there was one.
 */
bool orr_note_take(struct orr_device *odev, u32 *port, u32 *node, bool *passed, struct orr_note *note)
{
	u32 words[ORR_NOTE_BYTES / 4], waiting, from = 0;
	unsigned int i;
	int idx;

	if (orr_enter(odev, &idx))
		return false;
	waiting = orr_read32(odev, ORR_R_NOTE_WAITING);
	if (waiting && waiting <= ORR_NOTE_SLOTS) {
		from = orr_read32(odev, ORR_R_NOTE_FROM);
		for (i = 0; i < ARRAY_SIZE(words); i++)
			words[i] = orr_read32(odev, ORR_R_NOTE_IN + 4 * i);
		orr_write32(odev, ORR_R_NOTE_TAKE, 1);
		memcpy(note, words, sizeof(*note));
	}
	orr_exit(odev, idx);
	*port = from >> ORR_NOTE_PORT_SHIFT;
	*node = from & (ORR_NODES - 1);
	*passed = from & ORR_NOTE_PASSED;
	return waiting && waiting <= ORR_NOTE_SLOTS && *port < odev->info.link_ports;
}
