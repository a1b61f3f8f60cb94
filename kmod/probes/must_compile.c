// SPDX-License-Identifier: GPL-2.0
/* Control: what the driver cannot do without. */
#include <drm/drm_accel.h>
#include <drm/drm_drv.h>
#include <linux/pci.h>

const struct drm_driver orr_probe = {
	.driver_features = DRIVER_GEM | DRIVER_COMPUTE_ACCEL,
};
