// SPDX-License-Identifier: GPL-2.0
/*
 * dma-buf. SYSTEM BOs go to any importer. VRAM BOs go to cards that are linked to their own, as
 * memory of a peer; to anybody else they are not offered, because nothing but a link reaches them.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/slab.h>

#include <drm/drm_prime.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_route.h"

static int orr_dmabuf_attach(struct dma_buf *dma_buf, struct dma_buf_attachment *attach)
{
	struct orr_bo *bo = to_orr_bo(dma_buf->priv);

	if (bo->kind != ORR_BO_KIND_SYSTEM)
		return -EOPNOTSUPP;
	return drm_gem_map_attach(dma_buf, attach);
}

static int orr_dmabuf_mmap(struct dma_buf *dma_buf, struct vm_area_struct *vma)
{
	struct orr_bo *bo = to_orr_bo(dma_buf->priv);

	/*
	 * Pages of the card have to be taken away when it is lost, and that goes over the mappings
	 * of its node only: import it there and map that.
	 */
	if (bo->kind != ORR_BO_KIND_SYSTEM)
		return -EOPNOTSUPP;
	return drm_gem_dmabuf_mmap(dma_buf, vma);
}

static const struct dma_buf_ops orr_dmabuf_ops = {
	.attach = orr_dmabuf_attach,
	.detach = drm_gem_map_detach,
	.map_dma_buf = drm_gem_map_dma_buf,
	.unmap_dma_buf = drm_gem_unmap_dma_buf,
	.release = drm_gem_dmabuf_release,
	.mmap = orr_dmabuf_mmap,
};

/**
 * orr_bo_export - make a dma-buf of a BO
 * @obj: the BO
 * @flags: of the file
 *
 * Return: the dma-buf or an error pointer.
 */
struct dma_buf *orr_bo_export(struct drm_gem_object *obj, int flags)
{
	struct orr_bo *bo = to_orr_bo(obj);
	struct dma_buf_export_info info = {
		.exp_name = ORR_DRIVER_NAME,
		.owner = obj->dev->driver->fops->owner,
		.ops = &orr_dmabuf_ops,
		.size = obj->size,
		.flags = flags,
		.priv = obj,
		.resv = obj->resv,
	};

	/* What was imported goes out as what it came in; the core does that. */
	if (bo->kind != ORR_BO_KIND_VRAM && bo->kind != ORR_BO_KIND_SYSTEM &&
	    bo->kind != ORR_BO_KIND_BARRIER)
		return ERR_PTR(-EOPNOTSUPP);
	return drm_gem_dmabuf_export(obj->dev, &info);
}

/* The memory is on a linked card. */
static struct orr_bo *orr_bo_import_peer(struct orr_device *odev, struct dma_buf *dma_buf,
					 struct orr_bo *owner)
{
	struct orr_bo *bo;
	int ret;

	ret = orr_peer_join(odev, orr_bo_device(owner));
	if (ret)
		return ERR_PTR(ret);
	bo = orr_bo_alloc(odev, ORR_BO_KIND_PEER);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->owner = owner;
	get_dma_buf(dma_buf);
	bo->dma_buf = dma_buf;
	drm_gem_private_object_init(&odev->drm, &bo->base, owner->base.size);
	return bo;
}

/* The memory is anything that can be mapped for DMA. */
static struct orr_bo *orr_bo_import_any(struct orr_device *odev, struct dma_buf *dma_buf)
{
	struct orr_bo *bo;
	int idx, ret;

	if (!dma_buf->size || !PAGE_ALIGNED(dma_buf->size))
		return ERR_PTR(-EINVAL);
	bo = orr_bo_alloc(odev, ORR_BO_KIND_IMPORT);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	get_dma_buf(dma_buf);
	bo->dma_buf = dma_buf;
	drm_gem_private_object_init(&odev->drm, &bo->base, dma_buf->size);

	/* Outside bo_lock, because the exporter may be a card of ours and takes locks. */
	ret = orr_enter(odev, &idx);
	if (ret)
		goto err_put;
	bo->attach = dma_buf_attach(dma_buf, odev->drm.dev);
	if (IS_ERR(bo->attach)) {
		ret = PTR_ERR(bo->attach);
		bo->attach = NULL;
		goto err_exit;
	}
	bo->sgt = dma_buf_map_attachment_unlocked(bo->attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(bo->sgt)) {
		ret = PTR_ERR(bo->sgt);
		bo->sgt = NULL;
		dma_buf_detach(dma_buf, bo->attach);
		bo->attach = NULL;
		goto err_exit;
	}
	/* An unbind waits for us to exit before it goes over the list. */
	scoped_guard(mutex, &odev->bo_lock)
		list_add_tail(&bo->link, &odev->bos);
	orr_exit(odev, idx);
	return bo;

err_exit:
	orr_exit(odev, idx);
err_put:
	drm_gem_object_put(&bo->base);
	return ERR_PTR(ret);
}

/**
 * orr_bo_of_dma_buf - what one of this driver's stands for
 * @dma_buf: any dma-buf
 *
 * Return: the BO, which lives as long as @dma_buf; NULL: it is another driver's.
 */
struct orr_bo *orr_bo_of_dma_buf(struct dma_buf *dma_buf)
{
	return dma_buf->ops == &orr_dmabuf_ops ? to_orr_bo(dma_buf->priv) : NULL;
}

/**
 * orr_bo_origin - the BO that has the memory
 * @bo: any BO
 *
 * Return: @bo, or of an imported one that of the card which exported it. Lives as long as @bo.
 */
struct orr_bo *orr_bo_origin(struct orr_bo *bo)
{
	if (bo->dma_buf && bo->dma_buf->ops == &orr_dmabuf_ops)
		return to_orr_bo(bo->dma_buf->priv);
	return bo;
}

/**
 * orr_bo_release_import - end the DMA mapping of an imported BO
 * @bo: the BO, under orr_device.bo_lock, or with nobody else who knows it
 */
void orr_bo_release_import(struct orr_bo *bo)
{
	dma_buf_unmap_attachment_unlocked(bo->attach, bo->sgt, DMA_BIDIRECTIONAL);
	dma_buf_detach(bo->dma_buf, bo->attach);
	bo->sgt = NULL;
	bo->attach = NULL;
}

/**
 * orr_bo_import - make a BO of a dma-buf
 * @drm: the card
 * @dma_buf: of this card, another one, or another driver
 *
 * Return: the BO's base, -EXDEV for memory of a card that is not linked to this one, …
 */
struct drm_gem_object *orr_bo_import(struct drm_device *drm, struct dma_buf *dma_buf)
{
	struct orr_device *odev = to_orr_device(drm);
	struct orr_bo *bo;

	if (dma_buf->ops == &orr_dmabuf_ops) {
		struct orr_bo *owner = to_orr_bo(dma_buf->priv);

		if (owner->base.dev == drm) {
			drm_gem_object_get(&owner->base);
			return &owner->base;
		}
		if (owner->kind == ORR_BO_KIND_BARRIER)
			return ERR_PTR(-EXDEV);
		if (owner->kind == ORR_BO_KIND_VRAM) {
			bo = orr_bo_import_peer(odev, dma_buf, owner);
			return IS_ERR(bo) ? ERR_CAST(bo) : &bo->base;
		}
	}
	bo = orr_bo_import_any(odev, dma_buf);
	return IS_ERR(bo) ? ERR_CAST(bo) : &bo->base;
}
