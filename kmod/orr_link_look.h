/* SPDX-License-Identifier: GPL-2.0 */
/* What is read of a link port: for who looks, and for the map of all cards. */
#ifndef _ORR_LINK_LOOK_H_
#define _ORR_LINK_LOOK_H_

#include <linux/types.h>

/**
 * struct orr_link_look - a look at a link port
 */
struct orr_link_look {
	/** @state: ORR_LINK_* */
	u32 state;
	/** @losses: how often it has gone down, with what was on the way */
	u32 losses;
	/** @control: ORR_LINK_FORWARD */
	u32 control;
	/** @reach: of a port to a switch, by orr_links_look(): changes with what that reaches; else 0 */
	u32 reach;
};

#endif /* _ORR_LINK_LOOK_H_ */
