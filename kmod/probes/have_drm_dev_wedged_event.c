// SPDX-License-Identifier: GPL-2.0
/* drm_dev_wedged_event() tells user space that a device is lost and how to get it back. */
#include <drm/drm_device.h>
#include <drm/drm_drv.h>

int orr_probe(struct drm_device *drm);

int orr_probe(struct drm_device *drm)
{
	return drm_dev_wedged_event(drm, DRM_WEDGE_RECOVERY_REBIND, NULL);
}
