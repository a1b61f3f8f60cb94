// SPDX-License-Identifier: GPL-2.0
/*
 * Page tables in VRAM, with a shadow in kernel memory, so that the driver never reads a table
 * back. A table with no entry left is taken out at once and freed after the TLB flush.
 */
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "orr_device.h"
#include "orr_pt.h"

#define ORR_PT_ENTRIES 512u
#define ORR_PT_ROOT_LEVEL (ORR_MMU_LEVELS - 1)
#define ORR_PT_HUGE_LEVEL 1u

/**
 * struct orr_pt - a table
 */
struct orr_pt {
	/** @node: where it is in VRAM */
	struct drm_mm_node node;
	/** @link: in a list of tables to free */
	struct list_head link;
	/** @shadow: its entries */
	u64 *shadow;
	/** @child: tables of the next level by entry; NULL at level 0 */
	struct orr_pt **child;
	/** @used: valid entries */
	unsigned int used;
	/** @level: 0: 4 KiB pages, ORR_PT_ROOT_LEVEL: root */
	unsigned int level;
};

static u64 orr_pt_span(unsigned int level)
{
	return 1ull << (PAGE_SHIFT + 9 * level);
}

static unsigned int orr_pt_index(u64 va, unsigned int level)
{
	return (va >> (PAGE_SHIFT + 9 * level)) % ORR_PT_ENTRIES;
}

/**
 * orr_pt_address - where a table is
 * @pt: the table
 *
 * Return: VRAM offset.
 */
u64 orr_pt_address(const struct orr_pt *pt)
{
	return pt->node.start;
}

/**
 * orr_pt_entry - what leads on from an address
 * @root: root table
 * @va: the address
 *
 * Return: the leaf entry, 0: there is none.
 */
u64 orr_pt_entry(const struct orr_pt *root, u64 va)
{
	const struct orr_pt *pt = root;

	while (pt->child && pt->child[orr_pt_index(va, pt->level)])
		pt = pt->child[orr_pt_index(va, pt->level)];
	return pt->shadow[orr_pt_index(va, pt->level)];
}

static void orr_pt_free(struct orr_device *odev, struct orr_pt *pt)
{
	if (drm_mm_node_allocated(&pt->node))
		orr_vram_free(odev, &pt->node);
	free_page((unsigned long)pt->shadow);
	kvfree(pt->child);
	kfree(pt);
}

static struct orr_pt *orr_pt_create(struct orr_device *odev, unsigned int level)
{
	struct orr_pt *pt;
	int ret = -ENOMEM;

	pt = kzalloc(sizeof(*pt), GFP_KERNEL_ACCOUNT);
	if (!pt)
		return ERR_PTR(ret);
	pt->level = level;
	pt->shadow = (u64 *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (level)
		pt->child = kvcalloc(ORR_PT_ENTRIES, sizeof(*pt->child), GFP_KERNEL_ACCOUNT);
	if (!pt->shadow || (level && !pt->child))
		goto err;
	ret = orr_vram_alloc(odev, &pt->node, ORR_PAGE_SIZE, ORR_PAGE_SIZE, DRM_MM_INSERT_HIGH);
	if (ret)
		goto err;
	ret = orr_vram_clear(odev, &pt->node);
	if (ret)
		goto err;
	return pt;
err:
	orr_pt_free(odev, pt);
	return ERR_PTR(ret);
}

/**
 * orr_pt_create_root - make an empty address space
 * @odev: the card
 *
 * Return: its root table or an error pointer.
 */
struct orr_pt *orr_pt_create_root(struct orr_device *odev)
{
	return orr_pt_create(odev, ORR_PT_ROOT_LEVEL);
}

/* The caller is inside orr_enter(). */
static void orr_pt_write(struct orr_device *odev, struct orr_pt *pt, unsigned int index, u64 entry)
{
	if (!(pt->shadow[index] & ORR_PTE_VALID) && (entry & ORR_PTE_VALID))
		pt->used++;
	if ((pt->shadow[index] & ORR_PTE_VALID) && !(entry & ORR_PTE_VALID))
		pt->used--;
	pt->shadow[index] = entry;
	/* 8 bytes at once: the card sees the old entry or the new one. */
	writeq(entry, odev->vram + pt->node.start + index * sizeof(u64));
}

/* What was written through the write-combined mapping has reached VRAM when this returns. */
static void orr_pt_sync(struct orr_device *odev, struct orr_pt *pt)
{
	wmb(); /* empties the write-combining buffers */
	readl(odev->vram + pt->node.start);
}

static struct orr_pt *orr_pt_next(struct orr_device *odev, struct orr_pt *pt, unsigned int index)
{
	struct orr_pt *child = pt->child[index];

	if (child)
		return child;
	child = orr_pt_create(odev, pt->level - 1);
	if (IS_ERR(child))
		return child;
	/* Empty tables are in VRAM before anything names them. */
	orr_pt_sync(odev, child);
	pt->child[index] = child;
	orr_pt_write(odev, pt, index, child->node.start | ORR_PTE_VALID);
	return child;
}

/**
 * orr_pt_map - enter a contiguous range
 * @odev: the card; the caller is inside orr_enter()
 * @root: root table
 * @va: start, whole pages
 * @address: what it leads to
 * @size: bytes, whole pages; nothing of the range is mapped
 * @flags: of the entries, with VALID and LEAF
 *
 * 2 MiB entries are used where both addresses are aligned to that.
 *
 * Return: 0 or a negative error; a part may then be mapped, and is to be cleared.
 */
int orr_pt_map(struct orr_device *odev, struct orr_pt *root, u64 va, u64 address, u64 size,
	       u64 flags)
{
	struct orr_pt *pt = root;

	while (size) {
		unsigned int last = 0, index;
		u64 step;

		if (IS_ALIGNED(va | address, ORR_HUGE_PAGE_SIZE) && size >= ORR_HUGE_PAGE_SIZE)
			last = ORR_PT_HUGE_LEVEL;
		for (pt = root; pt->level > last;) {
			pt = orr_pt_next(odev, pt, orr_pt_index(va, pt->level));
			if (IS_ERR(pt))
				return PTR_ERR(pt);
		}
		step = orr_pt_span(last);
		/* As far as this table reaches. */
		for (index = orr_pt_index(va, last); index < ORR_PT_ENTRIES && size >= step;
		     index++) {
			orr_pt_write(odev, pt, index, address | flags);
			va += step;
			address += step;
			size -= step;
		}
		cond_resched();
	}
	orr_pt_sync(odev, pt);
	return 0;
}

/**
 * orr_pt_to_no_card - have what leads to memory of another card lead to none
 * @odev: the card; the caller is inside orr_enter()
 * @root: root table
 * @va: start, whole pages
 * @size: bytes, whole pages, all mapped, to memory of another card; no 2 MiB entry crosses either end
 *
 * Whoever comes there hears what it was, at any time: there is no moment at which nothing is mapped.
 * Nothing is allocated. A TLB flush is due after it.
 */
void orr_pt_to_no_card(struct orr_device *odev, struct orr_pt *root, u64 va, u64 size)
{
	u64 end = va + size;

	while (va < end) {
		struct orr_pt *pt = root;
		unsigned int index;

		while (pt->child && pt->child[orr_pt_index(va, pt->level)])
			pt = pt->child[orr_pt_index(va, pt->level)];
		/* As far as this table reaches. */
		for (index = orr_pt_index(va, pt->level); index < ORR_PT_ENTRIES && va < end; index++) {
			/* Node 0 is none. */
			orr_pt_write(odev, pt, index, pt->shadow[index] & ~ORR_PTE_NODE_MASK);
			va += orr_pt_span(pt->level);
			if (pt->child && index + 1 < ORR_PT_ENTRIES && pt->child[index + 1])
				break;
		}
		cond_resched();
	}
	orr_pt_sync(odev, root);
}

/**
 * orr_pt_split - make sure that no 2 MiB entry crosses an address
 * @odev: the card; the caller is inside orr_enter()
 * @root: root table
 * @va: the address
 *
 * The translation stays the same, so this needs no flush by itself.
 *
 * Return: 0 or a negative error with nothing changed.
 */
int orr_pt_split(struct orr_device *odev, struct orr_pt *root, u64 va)
{
	struct orr_pt *pt = root, *child;
	unsigned int index, i;
	u64 entry;

	if (IS_ALIGNED(va, ORR_HUGE_PAGE_SIZE))
		return 0;
	while (pt->level > ORR_PT_HUGE_LEVEL) {
		pt = pt->child[orr_pt_index(va, pt->level)];
		if (!pt)
			return 0;
	}
	index = orr_pt_index(va, ORR_PT_HUGE_LEVEL);
	entry = pt->shadow[index];
	if (!(entry & ORR_PTE_VALID) || !(entry & ORR_PTE_LEAF))
		return 0;

	child = orr_pt_create(odev, 0);
	if (IS_ERR(child))
		return PTR_ERR(child);
	for (i = 0; i < ORR_PT_ENTRIES; i++)
		orr_pt_write(odev, child, i, entry + (u64)i * ORR_PAGE_SIZE);
	orr_pt_sync(odev, child);
	pt->child[index] = child;
	orr_pt_write(odev, pt, index, child->node.start | ORR_PTE_VALID);
	orr_pt_sync(odev, pt);
	return 0;
}

static void orr_pt_clear_level(struct orr_device *odev, struct orr_pt *pt, u64 va, u64 end,
			       struct list_head *unused)
{
	u64 span = orr_pt_span(pt->level);
	u64 next;

	for (; va < end; va = next) {
		unsigned int index = orr_pt_index(va, pt->level);
		u64 entry = pt->shadow[index];

		next = min(end, round_down(va, span) + span);
		if (!(entry & ORR_PTE_VALID))
			continue;
		if (!(entry & ORR_PTE_LEAF)) {
			struct orr_pt *child = pt->child[index];

			orr_pt_clear_level(odev, child, va, next, unused);
			cond_resched();
			if (child->used)
				continue;
			pt->child[index] = NULL;
			list_add_tail(&child->link, unused);
		}
		orr_pt_write(odev, pt, index, 0);
	}
}

/**
 * orr_pt_clear - remove a range
 * @odev: the card; the caller is inside orr_enter()
 * @root: root table
 * @va: start, whole pages; no 2 MiB entry crosses it, nor the end
 * @size: bytes, whole pages; holes are fine
 * @unused: gets the tables that became empty, for orr_pt_free_list() after the TLB flush
 */
void orr_pt_clear(struct orr_device *odev, struct orr_pt *root, u64 va, u64 size,
		  struct list_head *unused)
{
	orr_pt_clear_level(odev, root, va, va + size, unused);
	orr_pt_sync(odev, root);
}

/**
 * orr_pt_free_list - free tables
 * @odev: the card
 * @unused: of orr_pt_clear(); the card's TLB has been flushed
 */
void orr_pt_free_list(struct orr_device *odev, struct list_head *unused)
{
	struct orr_pt *pt, *next;

	list_for_each_entry_safe(pt, next, unused, link)
		orr_pt_free(odev, pt);
	INIT_LIST_HEAD(unused);
}

/**
 * orr_pt_free_all - free an address space with all of its tables
 * @odev: the card, which does not use it any more
 * @root: root table
 */
void orr_pt_free_all(struct orr_device *odev, struct orr_pt *root)
{
	unsigned int i;

	for (i = 0; root->child && i < ORR_PT_ENTRIES; i++)
		if (root->child[i])
			orr_pt_free_all(odev, root->child[i]);
	orr_pt_free(odev, root);
	cond_resched();
}
