// SPDX-License-Identifier: GPL-2.0
/* struct drm_driver has a date, and DRM_IOCTL_VERSION warns if it is not set. */
#include <drm/drm_drv.h>

const struct drm_driver orr_probe = {
	.date = "20260101",
};
