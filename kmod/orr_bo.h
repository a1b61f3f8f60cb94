/* SPDX-License-Identifier: GPL-2.0 */
/* Buffer objects. */
#ifndef _ORR_BO_H_
#define _ORR_BO_H_

#include <linux/list.h>
#include <linux/mutex.h>

#include <drm/drm_gem.h>
#include <drm/drm_mm.h>

#include "orr_device.h"

struct dma_buf;
struct dma_buf_attachment;

struct page;
struct scatterlist;
struct sg_table;

/**
 * enum orr_bo_kind - where the memory of a BO is
 * @ORR_BO_KIND_VRAM: in this card's memory, one contiguous range
 * @ORR_BO_KIND_SYSTEM: in guest RAM, pinned and mapped for DMA from creation to the end
 * @ORR_BO_KIND_IMPORT: in memory of another driver, or guest RAM of another card's BO
 * @ORR_BO_KIND_PEER: in the memory of a card that is linked to this one
 * @ORR_BO_KIND_FOREIGN: the same of a card of another machine
 * @ORR_BO_KIND_BARRIER: nowhere: a page of this card's barrier unit
 * @ORR_BO_KIND_MULTICAST: in the memory of several cards, which this one writes at once
 */
enum orr_bo_kind {
	ORR_BO_KIND_VRAM,
	ORR_BO_KIND_SYSTEM,
	ORR_BO_KIND_IMPORT,
	ORR_BO_KIND_PEER,
	ORR_BO_KIND_FOREIGN,
	ORR_BO_KIND_BARRIER,
	ORR_BO_KIND_MULTICAST,
};

/**
 * struct orr_bo - a buffer object
 */
struct orr_bo {
	/** @base: base */
	struct drm_gem_object base;
	/** @kind: constant */
	enum orr_bo_kind kind;

	/** @node: VRAM: the range */
	struct drm_mm_node node;
	/** @lent: VRAM: to other machines, as a semaphore */
	struct orr_lent lent;

	/** @link: SYSTEM, IMPORT: in orr_device.bos while mapped for DMA; orr_device.bo_lock */
	struct list_head link;
	/** @pages: SYSTEM: all pages, pinned; constant */
	struct page **pages;
	/** @sgt: SYSTEM, IMPORT: DMA mapping, NULL once unbound; orr_device.bo_lock */
	struct sg_table *sgt;

	/** @dma_buf: IMPORT, PEER: a reference; constant */
	struct dma_buf *dma_buf;
	/** @attach: IMPORT: NULL once the driver is unbound; orr_device.bo_lock */
	struct dma_buf_attachment *attach;

	/** @owner: PEER: the BO on the linked card, kept by @dma_buf; constant */
	struct orr_bo *owner;

	/** @import: FOREIGN: what it stands for; constant */
	struct orr_import *import;

	/** @barrier: BARRIER: what it stands for; constant; NULL: it has not been made */
	struct orr_barrier_end *barrier;
	/** @multicast: MULTICAST: what it stands for; constant */
	struct orr_multicast *multicast;
	/** @releases: VRAM: the parts of barriers whose releases are in it; orr_releases_lock */
	struct list_head releases;

	/** @dummy_lock: guards @dummy; taken under mmap_lock */
	struct mutex dummy_lock;
	/** @dummy: VRAM: what mappings show once the card is lost */
	struct page *dummy;
};

static inline struct orr_bo *to_orr_bo(struct drm_gem_object *obj)
{
	return container_of(obj, struct orr_bo, base);
}

static inline struct orr_device *orr_bo_device(struct orr_bo *bo)
{
	return container_of(bo->base.dev, struct orr_device, drm);
}

/**
 * struct orr_bo_cursor - walks over the contiguous pieces of a BO, as the card sees it
 */
struct orr_bo_cursor {
	/** @address: bus address or VRAM offset of the piece */
	u64 address;
	/** @bytes: its size; 0: there is no more */
	u64 bytes;
	/** @target: ORR_TARGET_* and node, as bits of a page table entry */
	u64 target;
	/** @sg: SYSTEM, IMPORT: segment */
	struct scatterlist *sg;
	/** @left: SYSTEM, IMPORT: segments from @sg on */
	unsigned int left;
};

struct orr_bo *orr_bo_alloc(struct orr_device *odev, enum orr_bo_kind kind);
struct orr_bo *orr_bo_create(struct orr_device *odev, u64 size, enum orr_bo_kind kind);
void orr_bo_unbind_all(struct orr_device *odev);

int orr_bo_use(struct orr_bo *bo, u32 flags, const struct orr_tenant *tenant);
void orr_bo_use_again(struct orr_bo *bo, const struct orr_tenant *tenant);
void orr_bo_unuse(struct orr_bo *bo, const struct orr_tenant *tenant);

bool orr_bo_is_dead(const struct orr_bo *bo);

void orr_bo_cursor_init(struct orr_bo_cursor *cursor, struct orr_bo *bo, u64 offset);
void orr_bo_cursor_advance(struct orr_bo_cursor *cursor, u64 bytes);

/* orr_shmem.c */
int orr_shmem_object_init(struct orr_device *odev, struct drm_gem_object *obj, u64 size);

/* orr_mmap.c */
extern const struct vm_operations_struct orr_bo_vm_ops;
int orr_bo_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma);
int orr_mmap(struct file *filp, struct vm_area_struct *vma);
u64 orr_mmap_doorbell_offset(void);
u64 orr_mmap_kick_offset(void);
void orr_mmap_zap(struct orr_device *odev);

/* orr_prime.c */
struct dma_buf *orr_bo_export(struct drm_gem_object *obj, int flags);
struct drm_gem_object *orr_bo_import(struct drm_device *drm, struct dma_buf *dma_buf);
struct orr_bo *orr_bo_of_dma_buf(struct dma_buf *dma_buf);
struct orr_bo *orr_bo_origin(struct orr_bo *bo);
void orr_bo_release_import(struct orr_bo *bo);

/* orr_peer.c */
int orr_peer_register(struct orr_device *odev);
void orr_peer_unregister(struct orr_device *odev);
bool orr_peer_is_registered(struct orr_device *odev);
bool orr_peer_has_uid(u64 uid);
bool orr_nodes_valid(void);
bool orr_node_is_own(u32 node);
bool orr_peer_any_held(void);
u32 orr_number_new(void);
int orr_await(struct orr_device *odev, u32 reg, u32 value, unsigned int limit_us,
	      unsigned int held_ms);
int orr_await_count(struct orr_device *odev, const struct orr_device *whose, u32 reg, u32 value,
		    unsigned int limit_us, unsigned int held_ms);
int orr_await_or_lose(struct orr_device *odev, u32 reg, u32 value, unsigned int limit_us,
		      unsigned int held_ms, const char *why);
unsigned int orr_peer_collect(struct orr_device *cards[], unsigned int room);
void orr_peers_cut(struct orr_device *owner, bool wait);

#endif /* _ORR_BO_H_ */
