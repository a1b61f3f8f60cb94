// SPDX-License-Identifier: GPL-2.0
/* GEM keeps a mount of tmpfs with large pages for a device that asks for it. */
#include <drm/drm_gem.h>

int orr_probe(struct drm_device *drm);
int orr_probe(struct drm_device *drm)
{
	return drm_gem_huge_mnt_create(drm, "within_size");
}
