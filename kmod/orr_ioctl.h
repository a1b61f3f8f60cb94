/* SPDX-License-Identifier: GPL-2.0 */
/* The ioctls of drm/orrery_accel.h. */
#ifndef _ORR_IOCTL_H_
#define _ORR_IOCTL_H_

#include <drm/drm_ioctl.h>

extern const struct drm_ioctl_desc orr_ioctls[];
extern const int orr_ioctl_count;

#endif /* _ORR_IOCTL_H_ */
