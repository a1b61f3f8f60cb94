// SPDX-License-Identifier: GPL-2.0
/*
 * A mount of tmpfs of the card's own, for the memory of BOs that lie in the system's: only there
 * shmem gives pages of 2 MiB, which the card maps by one entry and moves in large pieces. Without
 * it, or without free memory of that shape, the pages are small ones. No page is larger than what
 * is left of its BO, so none takes more memory than its size; unless an administrator sets
 * shmem_enabled to "force", which is for tests of shmem.
 */
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/shmem_fs.h>

#include <drm/drm_gem.h>
#include <drm/drm_managed.h>

#include "orr_bo.h"
#include "orr_device.h"

#ifdef ORR_HAVE_DRM_GEM_HUGE_MNT

int orr_shmem_init(struct orr_device *odev)
{
	int ret = drm_gem_huge_mnt_create(&odev->drm, "within_size");

	if (ret)
		drm_dbg_driver(&odev->drm, "no mount for large pages: %d\n", ret);
	return 0;
}

int orr_shmem_object_init(struct orr_device *odev, struct drm_gem_object *obj, u64 size)
{
	return drm_gem_object_init(&odev->drm, obj, size);
}

#else

static void orr_shmem_fini(struct drm_device *drm, void *data)
{
	struct vfsmount *mount = data;

	kern_unmount(mount);
}

/**
 * orr_shmem_init - make the mount; lives as long as the DRM device
 * @odev: the card
 *
 * Return: 0, also without a mount, or a negative error.
 */
int orr_shmem_init(struct orr_device *odev)
{
	/* It is taken apart where it is read. */
	char options[] = "huge=within_size";
	struct file_system_type *type;
	struct vfsmount *mount;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		return 0;
	type = get_fs_type("tmpfs");
	if (!type)
		return 0;
	mount = vfs_kern_mount(type, SB_KERNMOUNT, type->name, options);
	if (IS_ERR(mount)) {
		drm_dbg_driver(&odev->drm, "no mount for large pages: %pe\n", mount);
		return 0;
	}
	odev->shmem = mount;
	return drmm_add_action_or_reset(&odev->drm, orr_shmem_fini, mount);
}

/**
 * orr_shmem_object_init - a GEM object with a file of shmem behind it
 * @odev: the card
 * @obj: the object, zeroed but for its functions; to be released also after an error
 * @size: bytes, whole pages
 *
 * Return: 0 or a negative error.
 */
int orr_shmem_object_init(struct orr_device *odev, struct drm_gem_object *obj, u64 size)
{
	struct file *filp;

	if (!odev->shmem)
		return drm_gem_object_init(&odev->drm, obj, size);
	drm_gem_private_object_init(&odev->drm, obj, size);
	filp = shmem_file_setup_with_mnt(odev->shmem, "orrery bo", size, VM_NORESERVE);
	if (IS_ERR(filp))
		return PTR_ERR(filp);
	obj->filp = filp;
	return 0;
}

#endif
