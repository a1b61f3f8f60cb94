/* SPDX-License-Identifier: MIT */
/*
 * The switches behind a link port, as they tell it themselves: each of them that can be reached by that port going up
 * and then down (docs/switch.md), and what is at each of its ports. For pictures, and people who look for a cable: a
 * peer's words, of a moment ago, on which nothing depends. Read-only; what is not in use reads as 0. Any word may
 * be all-ones. What was read is of one moment if the version was the same even number before and behind it.
 *
 * There if ORR_R_LINK_SWITCH (bar0.h) has ORR_LINK_TELLS_SWITCHES.
 */
#ifndef ORRERY_HW_SWITCHES_H
#define ORRERY_HW_SWITCHES_H

#include "base.h"

#define ORR_LINK_TELLS_SWITCHES 2u /* in ORR_R_LINK_SWITCH, beside ORR_LINK_IS_SWITCH */

#define ORR_R_SWITCHES(p) (0x60000 + 0x8000 * (p)) /* of port p */
#define ORR_SWITCHES_BYTES 0x8000u
#define ORR_SWITCHES_VERSION 0x00 /* odd: what is below is being changed; then another one */
#define ORR_SWITCHES_PLACES 31u   /* the first in which ORR_SWITCH_UID is 0 is behind the last switch */
#define ORR_SWITCHES_PLACE(n) (0x400 * ((n) + 1))

/* Of a place. */
#define ORR_SWITCH_UID 0x00   /* 64 */
#define ORR_SWITCH_LEVEL 0x08 /* 0: it has cards; those of a higher one join those of lower ones */
#define ORR_SWITCH_MAX_LEVEL 0xffu
#define ORR_SWITCH_PORTS 0x0c /* that it has, ORR_SWITCH_MAX_PORTS at most */
#define ORR_SWITCH_MAX_PORTS 32u
#define ORR_SWITCH_PORT(q) (0x20 + 0x18 * (q))

/* Of a port of it. */
#define ORR_SWITCH_PORT_STATE 0x00 /* ORR_LINK_*, and below; of a port without a link 0, as of one that is down */
#define ORR_SWITCH_PORT_LINK 0xffu
#define ORR_SWITCH_PORT_TO_SWITCH 0x100u
#define ORR_SWITCH_PORT_LANES_SHIFT 16u     /* 8 bits, in use */
#define ORR_SWITCH_PORT_PEER_PORT_SHIFT 24u /* 8 bits */
#define ORR_SWITCH_PORT_MBPS 0x04           /* of the lanes in use, sending */
#define ORR_SWITCH_PORT_PEER 0x08           /* 64: uid of what is there; 0: nothing */
#define ORR_SWITCH_PORT_LATENCY_NS 0x10     /* one way */
#define ORR_SWITCH_PORT_LOSSES 0x14         /* how often the link has gone down */

#endif /* ORRERY_HW_SWITCHES_H */
