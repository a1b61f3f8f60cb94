// SPDX-License-Identifier: GPL-2.0
/*
 * The VRAM allocator: contiguous ranges out of drm_mm. Page tables come from the top, so that
 * they do not cut the space of the buffers, which come from the bottom.
 */
#include <drm/drm_managed.h>

#include "orr_device.h"

/*
 * Jobs that may have started and not ended at once: the firmware starts none without an area. Two
 * for each port, so that what runs is never all that can; more if they cost no more than an eighth
 * of VRAM, fewer only if they would cost more than half.
 */
#define ORR_SAVE_AREAS_MAX 64ull
#define ORR_SAVE_AREAS_PART 8u
#define ORR_SAVE_AREAS_MOST 2u

/* Cleared between two chances for others to run. */
#define ORR_CLEAR_CHUNK SZ_1M

static void orr_vram_fini(struct drm_device *drm, void *data)
{
	struct orr_device *odev = data;

	if (drm_mm_node_allocated(&odev->save_node))
		drm_mm_remove_node(&odev->save_node);
	drm_mm_takedown(&odev->vram_mm);
}

/**
 * orr_vram_init - make the allocator; lives as long as the DRM device
 * @odev: the card
 *
 * Return: 0 or a negative error.
 */
int orr_vram_init(struct orr_device *odev)
{
	int ret;

	ret = drmm_mutex_init(&odev->drm, &odev->vram_lock);
	if (ret)
		return ret;
	drm_mm_init(&odev->vram_mm, 0, round_down(odev->info.vram_size, ORR_PAGE_SIZE));
	return drmm_add_action_or_reset(&odev->drm, orr_vram_fini, odev);
}

/**
 * orr_vram_reserve_save_areas - set memory aside in which the firmware saves preempted kernels
 * @odev: the card, with an empty allocator
 *
 * No process can reach it, and it counts as no part of the VRAM. Without it kernels are preempted
 * between their work-groups only.
 */
void orr_vram_reserve_save_areas(struct orr_device *odev)
{
	u64 bytes = odev->info.save_bytes;
	u64 ports = odev->info.vector_ports + odev->info.copy_engines;
	u64 areas;

	if (!bytes)
		return;
	areas = min3(2 * ports, odev->info.vram_size / ORR_SAVE_AREAS_MOST / bytes,
		     ORR_SAVE_AREAS_MAX);
	areas = max(areas, min(odev->info.vram_size / ORR_SAVE_AREAS_PART / bytes,
			       ORR_SAVE_AREAS_MAX));
	if (areas <= ports)
		dev_warn(odev->drm.dev,
			 "VRAM has room to save %llu kernels, %llu can run: what runs may keep others waiting; give the card more VRAM\n",
			 areas, ports);
	if (!areas)
		return;
	guard(mutex)(&odev->vram_lock);
	/* At the very end, so that what is left is one range. */
	drm_mm_insert_node_generic(&odev->vram_mm, &odev->save_node, areas * bytes, ORR_PAGE_SIZE,
				   0, DRM_MM_INSERT_HIGH);
}

/**
 * orr_vram_size - how much there is for buffers and page tables
 * @odev: the card
 *
 * Return: bytes.
 */
u64 orr_vram_size(struct orr_device *odev)
{
	return odev->info.vram_size - odev->save_node.size;
}

/**
 * orr_vram_alloc - take a range of VRAM; its contents are what the last owner left
 * @odev: the card
 * @node: zeroed, becomes the range
 * @size: bytes, multiple of a page
 * @align: bytes
 * @mode: from which end
 *
 * Return: 0, or -ENOSPC if there is no free range of that size.
 */
int orr_vram_alloc(struct orr_device *odev, struct drm_mm_node *node, u64 size, u64 align,
		   enum drm_mm_insert_mode mode)
{
	int ret;

	guard(mutex)(&odev->vram_lock);
	ret = drm_mm_insert_node_generic(&odev->vram_mm, node, size, align, 0, mode);
	if (!ret)
		odev->vram_used += size;
	return ret;
}

/**
 * orr_vram_free - give a range back
 * @odev: the card
 * @node: of orr_vram_alloc(); nothing of the card can reach it any more
 */
void orr_vram_free(struct orr_device *odev, struct drm_mm_node *node)
{
	guard(mutex)(&odev->vram_lock);
	odev->vram_used -= node->size;
	drm_mm_remove_node(node);
}

/**
 * orr_vram_clear - zero a range
 * @odev: the card
 * @node: of orr_vram_alloc()
 *
 * Return: 0, -EINTR if the process is being killed, -ENODEV without a card.
 */
int orr_vram_clear(struct orr_device *odev, const struct drm_mm_node *node)
{
	u64 offset = 0;

	while (offset < node->size) {
		u64 bytes = min_t(u64, node->size - offset, ORR_CLEAR_CHUNK);
		int idx, ret;

		ret = orr_enter(odev, &idx);
		if (ret)
			return ret;
		memset_io(odev->vram + node->start + offset, 0, bytes);
		orr_exit(odev, idx);
		offset += bytes;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/**
 * orr_vram_used - how much is allocated
 * @odev: the card
 *
 * Return: bytes, buffers and page tables of all processes.
 */
u64 orr_vram_used(struct orr_device *odev)
{
	guard(mutex)(&odev->vram_lock);
	return odev->vram_used;
}
