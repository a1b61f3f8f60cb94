// SPDX-License-Identifier: GPL-2.0
/* Buffer objects: creation, what the card sees of them, their end. */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <drm/drm_prime.h>
#include <drm/orrery_accel.h>

#include "orr_bo.h"
#include "orr_device.h"

/* Pages that SYSTEM BOs of all cards pin. */
static atomic_long_t orr_pinned_pages;

/* As much as other users of the machine's memory can bear. */
static bool orr_bo_account(long pages)
{
	long limit = totalram_pages() / 2;
	long pinned = atomic_long_read(&orr_pinned_pages);

	/* What is refused is never counted, so that it does not stand in others' way. */
	do {
		if (pages > limit - pinned)
			return false;
	} while (!atomic_long_try_cmpxchg(&orr_pinned_pages, &pinned, pinned + pages));
	return true;
}

static void orr_bo_unaccount(long pages)
{
	atomic_long_sub(pages, &orr_pinned_pages);
}

static void orr_bo_unmap_dma(struct orr_bo *bo)
{
	struct device *dev = bo->base.dev->dev;

	dma_unmap_sgtable(dev, bo->sgt, DMA_BIDIRECTIONAL, 0);
	sg_free_table(bo->sgt);
	kfree(bo->sgt);
	bo->sgt = NULL;
}

/* Ends the DMA mapping, if there still is one. */
static void orr_bo_detach_locked(struct orr_bo *bo)
{
	lockdep_assert_held(&orr_bo_device(bo)->bo_lock);
	if (list_empty(&bo->link))
		return;
	list_del_init(&bo->link);
	if (bo->kind == ORR_BO_KIND_IMPORT)
		orr_bo_release_import(bo);
	else
		orr_bo_unmap_dma(bo);
}

/**
 * orr_bo_unbind_all - the driver leaves the device: end all DMA mappings of BOs
 * @odev: the card, which does no DMA any more
 *
 * The BOs live on for those who have them mapped or exported.
 */
void orr_bo_unbind_all(struct orr_device *odev)
{
	struct orr_bo *bo, *next;

	guard(mutex)(&odev->bo_lock);
	list_for_each_entry_safe(bo, next, &odev->bos, link)
		orr_bo_detach_locked(bo);
}

static void orr_bo_free(struct drm_gem_object *obj)
{
	struct orr_bo *bo = to_orr_bo(obj);
	struct orr_device *odev = orr_bo_device(bo);

	scoped_guard(mutex, &odev->bo_lock)
		orr_bo_detach_locked(bo);
	if (drm_mm_node_allocated(&bo->node))
		orr_vram_free(odev, &bo->node);
	if (bo->pages) {
		drm_gem_put_pages(obj, bo->pages, true, true);
		orr_bo_unaccount(obj->size >> PAGE_SHIFT);
	}
	if (bo->import)
		orr_import_forget(odev, bo->import);
	if (bo->barrier)
		orr_barrier_forget(odev, bo->barrier);
	if (bo->multicast)
		orr_multicast_free(odev, bo->multicast);
	if (bo->dma_buf)
		dma_buf_put(bo->dma_buf);
	if (bo->dummy)
		__free_page(bo->dummy);
	drm_gem_object_release(obj);
	mutex_destroy(&bo->dummy_lock);
	kfree(bo);
}

static struct sg_table *orr_bo_get_sg_table(struct drm_gem_object *obj)
{
	struct orr_bo *bo = to_orr_bo(obj);

	if (bo->kind != ORR_BO_KIND_SYSTEM)
		return ERR_PTR(-EOPNOTSUPP);
	return drm_prime_pages_to_sg(obj->dev, bo->pages, obj->size >> PAGE_SHIFT);
}

static enum drm_gem_object_status orr_bo_status(struct drm_gem_object *obj)
{
	return DRM_GEM_OBJECT_RESIDENT;
}

static const struct drm_gem_object_funcs orr_bo_funcs = {
	.free = orr_bo_free,
	.export = orr_bo_export,
	.get_sg_table = orr_bo_get_sg_table,
	.mmap = orr_bo_mmap,
	.status = orr_bo_status,
	.vm_ops = &orr_bo_vm_ops,
};

/**
 * orr_bo_alloc - allocate a BO without memory
 * @odev: the card
 * @kind: what it will be
 *
 * Return: the BO, whose base is still to be initialised, or NULL.
 */
struct orr_bo *orr_bo_alloc(struct orr_device *odev, enum orr_bo_kind kind)
{
	struct orr_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);

	if (!bo)
		return NULL;
	bo->kind = kind;
	bo->base.funcs = &orr_bo_funcs;
	INIT_LIST_HEAD(&bo->link);
	INIT_LIST_HEAD(&bo->releases);
	mutex_init(&bo->dummy_lock);
	return bo;
}

static int orr_bo_init_vram(struct orr_device *odev, struct orr_bo *bo, u64 size)
{
	u64 align = size >= ORR_HUGE_PAGE_SIZE ? ORR_HUGE_PAGE_SIZE : ORR_PAGE_SIZE;
	int ret;

	drm_gem_private_object_init(&odev->drm, &bo->base, size);
	ret = orr_vram_alloc(odev, &bo->node, size, align, DRM_MM_INSERT_LOW);
	if (ret)
		return ret == -ENOSPC ? -ENOMEM : ret;
	return orr_vram_clear(odev, &bo->node);
}

static int orr_bo_map_sgt(struct orr_device *odev, struct orr_bo *bo, struct sg_table *sgt)
{
	int idx, ret;

	/* Not after an unbind has gone over the list. */
	guard(mutex)(&odev->bo_lock);
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = dma_map_sgtable(odev->drm.dev, sgt, DMA_BIDIRECTIONAL, 0);
	if (!ret) {
		bo->sgt = sgt;
		list_add_tail(&bo->link, &odev->bos);
	}
	orr_exit(odev, idx);
	return ret;
}

static int orr_bo_map_dma(struct orr_device *odev, struct orr_bo *bo)
{
	struct sg_table *sgt;
	int ret;

	sgt = drm_prime_pages_to_sg(&odev->drm, bo->pages, bo->base.size >> PAGE_SHIFT);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	ret = orr_bo_map_sgt(odev, bo, sgt);
	if (ret) {
		sg_free_table(sgt);
		kfree(sgt);
	}
	return ret;
}

static int orr_bo_init_system(struct orr_device *odev, struct orr_bo *bo, u64 size)
{
	struct page **pages;
	int ret;

	/* Ends like any other BO if it fails. Without memory for the inode shmem says -ENOSPC. */
	ret = orr_shmem_object_init(odev, &bo->base, size);
	if (ret)
		return ret == -ENOSPC ? -ENOMEM : ret;
	mapping_set_gfp_mask(bo->base.filp->f_mapping,
			     GFP_HIGHUSER | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!orr_bo_account(size >> PAGE_SHIFT))
		return -ENOMEM;
	pages = drm_gem_get_pages(&bo->base);
	if (IS_ERR(pages)) {
		orr_bo_unaccount(size >> PAGE_SHIFT);
		return PTR_ERR(pages);
	}
	bo->pages = pages;
	return orr_bo_map_dma(odev, bo);
}

/**
 * orr_bo_create - make a BO with zeroed memory
 * @odev: the card
 * @size: bytes, whole pages
 * @kind: ORR_BO_KIND_VRAM or _SYSTEM
 *
 * Return: the BO with a reference, or an error pointer; -ENOMEM if there is no such range of
 * VRAM free, or no memory.
 */
struct orr_bo *orr_bo_create(struct orr_device *odev, u64 size, enum orr_bo_kind kind)
{
	struct orr_bo *bo;
	int ret;

	bo = orr_bo_alloc(odev, kind);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	if (kind == ORR_BO_KIND_VRAM)
		ret = orr_bo_init_vram(odev, bo, size);
	else
		ret = orr_bo_init_system(odev, bo, size);
	if (!ret)
		ret = drm_gem_create_mmap_offset(&bo->base);
	if (ret) {
		drm_gem_object_put(&bo->base);
		return ERR_PTR(ret);
	}
	return bo;
}

/**
 * orr_bo_use - a mapping of the BO is about to be made
 * @bo: the BO
 * @flags: ORR_BIND_*
 * @tenant: who pays
 *
 * Return: 0; for memory of a linked card what orr_peer_grant() says; -ENOTCONN if it is that of another
 * machine, and not shared any more; -EINVAL for anything but writing to a barrier's page or
 * a multicast.
 */
int orr_bo_use(struct orr_bo *bo, u32 flags, const struct orr_tenant *tenant)
{
	u32 rights = 0;

	if (flags & ORR_BIND_READ)
		rights |= ORR_LINK_RIGHT_READ;
	if (flags & ORR_BIND_WRITE)
		rights |= ORR_LINK_RIGHT_WRITE | ORR_LINK_RIGHT_SIGNAL;
	if ((flags & ORR_BIND_READ) && (flags & ORR_BIND_WRITE))
		rights |= ORR_LINK_RIGHT_ATOMIC;
	if (bo->kind == ORR_BO_KIND_FOREIGN && READ_ONCE(bo->import->dead))
		return -ENOTCONN;
	/* There is nothing to read, unless a switch makes something of it. */
	if ((bo->kind == ORR_BO_KIND_BARRIER ||
	     (bo->kind == ORR_BO_KIND_MULTICAST && !bo->multicast->reads)) &&
	    flags != ORR_BIND_WRITE)
		return -EINVAL;
	if (bo->kind == ORR_BO_KIND_MULTICAST)
		return orr_multicast_use(bo, rights & ~ORR_LINK_RIGHT_ATOMIC, tenant);
	if (bo->kind != ORR_BO_KIND_PEER)
		return 0;
	return orr_peer_grant_own(orr_bo_device(bo->owner), orr_bo_device(bo),
				  bo->owner->node.start, bo->base.size, rights, tenant);
}

/**
 * orr_bo_use_again - a mapping of the BO became two
 * @bo: the BO
 * @tenant: of orr_bo_use()
 */
void orr_bo_use_again(struct orr_bo *bo, const struct orr_tenant *tenant)
{
	if (bo->kind == ORR_BO_KIND_PEER)
		orr_peer_grant_again(orr_bo_device(bo->owner), orr_bo_device(bo)->node,
				     bo->owner->node.start, tenant);
	if (bo->kind == ORR_BO_KIND_MULTICAST)
		orr_multicast_use_again(bo, tenant);
}

/**
 * orr_bo_unuse - a mapping of the BO is gone, and the card has forgotten it
 * @bo: the BO
 * @tenant: of orr_bo_use()
 */
void orr_bo_unuse(struct orr_bo *bo, const struct orr_tenant *tenant)
{
	if (bo->kind == ORR_BO_KIND_PEER)
		orr_peer_revoke(orr_bo_device(bo->owner), orr_bo_device(bo)->node,
				bo->owner->node.start, tenant, NULL);
	if (bo->kind == ORR_BO_KIND_MULTICAST)
		orr_multicast_unuse(bo, tenant);
}

/**
 * orr_bo_is_dead - does nobody have its memory any more?
 * @bo: the BO
 *
 * It stays so: what was mapped of it leads nowhere then, once orr_vms_cut_dead() has seen to that.
 *
 * Return: whether its card is lost, or the other machine does not share it any more.
 */
bool orr_bo_is_dead(const struct orr_bo *bo)
{
	if (bo->kind == ORR_BO_KIND_FOREIGN)
		return READ_ONCE(bo->import->dead);
	return bo->kind == ORR_BO_KIND_PEER && orr_is_lost(orr_bo_device(bo->owner));
}

/* The card that has memory of a PEER or FOREIGN BO, as bits of a page table entry. Node 0 is none. */
static u64 orr_bo_target(const struct orr_bo *bo, u32 node)
{
	u64 target = (u64)ORR_TARGET_PEER << ORR_PTE_TARGET_SHIFT;

	return orr_bo_is_dead(bo) ? target : target | (u64)node << ORR_PTE_NODE_SHIFT;
}

/* Whole pages only: what does not fill one cannot be mapped. */
static void orr_bo_cursor_load(struct orr_bo_cursor *cursor)
{
	cursor->address = cursor->left ? sg_dma_address(cursor->sg) : 0;
	cursor->bytes = cursor->left ? sg_dma_len(cursor->sg) : 0;
	if (!PAGE_ALIGNED(cursor->address | cursor->bytes) ||
	    (cursor->address + cursor->bytes) & ~(ORR_PTE_ADDR_MASK | ~PAGE_MASK))
		cursor->bytes = 0;
}

/**
 * orr_bo_cursor_init - begin to walk over a BO
 * @cursor: the cursor
 * @bo: the BO; the caller holds its orr_device.bo_lock as long as the cursor is used
 * @offset: where to begin, inside the BO
 */
void orr_bo_cursor_init(struct orr_bo_cursor *cursor, struct orr_bo *bo, u64 offset)
{
	lockdep_assert_held(&orr_bo_device(bo)->bo_lock);
	memset(cursor, 0, sizeof(*cursor));
	switch (bo->kind) {
	case ORR_BO_KIND_VRAM:
		cursor->target = (u64)ORR_TARGET_VRAM << ORR_PTE_TARGET_SHIFT;
		cursor->address = bo->node.start;
		cursor->bytes = bo->node.size;
		break;
	case ORR_BO_KIND_PEER:
		cursor->target = orr_bo_target(bo, orr_bo_device(bo->owner)->node);
		cursor->address = bo->owner->node.start;
		cursor->bytes = bo->owner->node.size;
		break;
	case ORR_BO_KIND_FOREIGN:
		cursor->target = orr_bo_target(bo, bo->import->node);
		cursor->address = bo->import->base;
		cursor->bytes = bo->import->size;
		break;
	case ORR_BO_KIND_BARRIER:
		cursor->target = (u64)ORR_TARGET_BARRIER << ORR_PTE_TARGET_SHIFT;
		cursor->address = (u64)bo->barrier->slot << PAGE_SHIFT;
		cursor->bytes = PAGE_SIZE;
		break;
	case ORR_BO_KIND_MULTICAST:
		cursor->target = (u64)ORR_TARGET_PEER << ORR_PTE_TARGET_SHIFT |
				 (u64)bo->multicast->slot->number << ORR_PTE_NODE_SHIFT;
		cursor->bytes = bo->base.size;
		break;
	default:
		cursor->target = (u64)ORR_TARGET_HOST << ORR_PTE_TARGET_SHIFT;
		if (bo->sgt) {
			cursor->sg = bo->sgt->sgl;
			cursor->left = bo->sgt->nents;
		}
		orr_bo_cursor_load(cursor);
	}
	while (offset && cursor->bytes) {
		u64 step = min(offset, cursor->bytes);

		orr_bo_cursor_advance(cursor, step);
		offset -= step;
	}
}

/**
 * orr_bo_cursor_advance - go on
 * @cursor: the cursor
 * @bytes: at most what is left of the piece
 */
void orr_bo_cursor_advance(struct orr_bo_cursor *cursor, u64 bytes)
{
	cursor->address += bytes;
	cursor->bytes -= bytes;
	if (cursor->bytes || !cursor->left)
		return;
	cursor->left--;
	cursor->sg = sg_next(cursor->sg);
	orr_bo_cursor_load(cursor);
}
