// SPDX-License-Identifier: GPL-2.0
/* Rings as the driver reads them: memory of processes, which may write to it at any time. */
#include <linux/mm.h>

#include <drm/drm_gem.h>

#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_queue.h"
#include "orr_ring_view.h"
#include "orr_vm.h"

/**
 * orr_bo_read_word - read a word of a BO's memory
 * @bo: the BO
 * @offset: in its origin
 * @value: filled in
 *
 * Return: false: it is not to be read here.
 */
bool orr_bo_read_word(struct orr_bo *bo, u64 offset, u64 *value)
{
	struct orr_bo *origin = orr_bo_origin(bo);
	int idx;

	if (offset % sizeof(u64) || offset >= origin->base.size)
		return false;
	if (origin->kind == ORR_BO_KIND_SYSTEM) {
		const void *page = page_address(origin->pages[offset >> PAGE_SHIFT]);

		*value = READ_ONCE(*(const u64 *)(page + offset_in_page(offset)));
		return true;
	}
	if (origin->kind != ORR_BO_KIND_VRAM || orr_enter(orr_bo_device(origin), &idx))
		return false;
	*value = readq(orr_bo_device(origin)->vram + origin->node.start + offset);
	orr_exit(orr_bo_device(origin), idx);
	return true;
}

/**
 * orr_ring_view_end - let go of what was looked at
 * @view: it
 */
void orr_ring_view_end(struct orr_ring_view *view)
{
	if (view->bo)
		drm_gem_object_put(&view->bo->base);
	view->bo = NULL;
}

/**
 * orr_ring_read - read a word of a ring
 * @view: of its address space
 * @va: of the word
 * @value: filled in
 *
 * A page is looked up once, as words come in a row. What is not mapped reads as zeros: no firmware will
 * carry out what was there.
 *
 * Return: false: only its card can read it.
 */
bool orr_ring_read(struct orr_ring_view *view, u64 va, u64 *value)
{
	u64 epoch;

	if (!view->bo || (va & PAGE_MASK) != view->va) {
		struct orr_bo *bo;

		orr_ring_view_end(view);
		view->va = va & PAGE_MASK;
		bo = orr_vm_lookup(view->vm, view->va, PAGE_SIZE, 0, &view->offset, &epoch);
		*value = 0;
		if (IS_ERR(bo))
			return true;
		view->bo = bo;
	}
	return orr_bo_read_word(view->bo, view->offset + offset_in_page(va), value);
}

/**
 * orr_ring_packet - where a packet of a queue is
 * @queue: the queue
 * @index: of the packet
 *
 * Return: its address.
 */
u64 orr_ring_packet(const struct orr_queue *queue, u64 index)
{
	return queue->ring_va + sizeof(struct orr_ring) +
	       (index & (queue->entries - 1)) * sizeof(struct orr_packet);
}
