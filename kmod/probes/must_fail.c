// SPDX-License-Identifier: GPL-2.0
/* Control: no kernel has this member. */
#include <drm/drm_drv.h>

const struct drm_driver orr_probe = {
	.orrery_has_no_such_member = 1,
};
