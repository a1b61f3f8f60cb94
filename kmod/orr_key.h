/* SPDX-License-Identifier: GPL-2.0 */
/* Keys: what requests of a card have to carry so that another takes them. */
#ifndef _ORR_KEY_H_
#define _ORR_KEY_H_

#include <linux/types.h>

struct orr_device;

u64 orr_key_make(const struct orr_device *odev, const struct orr_device *other);
int orr_key_set(struct orr_device *odev, u32 node, u64 key);
int orr_keys_await(struct orr_device *odev);

#endif /* _ORR_KEY_H_ */
