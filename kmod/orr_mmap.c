// SPDX-License-Identifier: GPL-2.0
/*
 * What processes map: BOs, and their file's doorbell and kick page.
 *
 * Pages of the card are entered by page faults only, under reset_lock, and taken away when the
 * card is lost. From then on faults give private zeroed pages, so that a process can finish its
 * stores and learn of the loss from its next system call, instead of dying of SIGBUS.
 */
#include <linux/mm.h>

#include <drm/drm_gem.h>
#include <drm/drm_vma_manager.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_file.h"

/* Below the offsets of BOs. The same numbers lead each file to its own pages. */
#define ORR_MMAP_DOORBELL_PGOFF 1ul
#define ORR_MMAP_KICK_PGOFF 2ul

/* Pages entered by a fault in VRAM. */
#define ORR_FAULT_AROUND 64ul

static_assert(ORR_MMAP_KICK_PGOFF < DRM_FILE_PAGE_OFFSET_START, "BOs have the offsets above");

/**
 * orr_mmap_doorbell_offset - of a file's doorbell page
 *
 * Return: offset for mmap().
 */
u64 orr_mmap_doorbell_offset(void)
{
	return (u64)ORR_MMAP_DOORBELL_PGOFF << PAGE_SHIFT;
}

/**
 * orr_mmap_kick_offset - of a file's kick page
 *
 * Return: offset for mmap().
 */
u64 orr_mmap_kick_offset(void)
{
	return (u64)ORR_MMAP_KICK_PGOFF << PAGE_SHIFT;
}

/**
 * orr_mmap_zap - take all pages of the card away from all processes
 * @odev: the card, which is lost
 */
void orr_mmap_zap(struct orr_device *odev)
{
	/* Faults from here on see that the card is lost; those before have entered their pages. */
	down_write(&odev->reset_lock);
	up_write(&odev->reset_lock);
	unmap_mapping_range(odev->drm.anon_inode->i_mapping, 0, 0, 1);
}

static vm_fault_t orr_fault_dummy(struct vm_fault *vmf, struct page **dummy)
{
	struct vm_area_struct *vma = vmf->vma;

	if (!*dummy)
		*dummy = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!*dummy)
		return VM_FAULT_OOM;
	return vmf_insert_pfn_prot(vma, vmf->address, page_to_pfn(*dummy),
				   vm_get_page_prot(vma->vm_flags));
}

/* Enters a page of the card. Return: VM_FAULT_RETRY: no, because the card is lost. */
static vm_fault_t orr_fault_card(struct orr_device *odev, struct vm_area_struct *vma,
				 unsigned long address, phys_addr_t start, unsigned long pages,
				 pgprot_t prot)
{
	vm_fault_t ret = VM_FAULT_RETRY;
	unsigned long i;
	int idx;

	guard(rwsem_read)(&odev->reset_lock);
	if (orr_enter(odev, &idx))
		return VM_FAULT_RETRY;
	for (i = 0; i < pages; i++) {
		ret = vmf_insert_pfn_prot(vma, address + i * PAGE_SIZE, PHYS_PFN(start) + i, prot);
		if (ret & VM_FAULT_ERROR) {
			/* The first is the one that was asked for. */
			if (i)
				ret = VM_FAULT_NOPAGE;
			break;
		}
	}
	orr_exit(odev, idx);
	return ret;
}

static vm_fault_t orr_bo_fault_vram(struct vm_fault *vmf, struct orr_bo *bo, unsigned long page)
{
	struct orr_device *odev = orr_bo_device(bo);
	struct vm_area_struct *vma = vmf->vma;
	unsigned long pages, left;
	phys_addr_t start;
	vm_fault_t ret;

	left = (bo->base.size >> PAGE_SHIFT) - page;
	pages = min3(ORR_FAULT_AROUND, left, (vma->vm_end - vmf->address) >> PAGE_SHIFT);
	/* The resource is gone with the device, but then it is not looked at. */
	start = pci_resource_start(odev->pdev, ORR_BAR_VRAM) + bo->node.start +
		((phys_addr_t)page << PAGE_SHIFT);
	ret = orr_fault_card(odev, vma, vmf->address, start, pages,
			     pgprot_writecombine(vm_get_page_prot(vma->vm_flags)));
	if (ret != VM_FAULT_RETRY)
		return ret;
	guard(mutex)(&bo->dummy_lock);
	return orr_fault_dummy(vmf, &bo->dummy);
}

static vm_fault_t orr_bo_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct orr_bo *bo = to_orr_bo(vma->vm_private_data);
	unsigned long page = vmf->pgoff - drm_vma_node_start(&bo->base.vma_node);

	if (page >= bo->base.size >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	if (bo->kind == ORR_BO_KIND_SYSTEM)
		return vmf_insert_pfn_prot(vma, vmf->address, page_to_pfn(bo->pages[page]),
					   vm_get_page_prot(vma->vm_flags));
	return orr_bo_fault_vram(vmf, bo, page);
}

const struct vm_operations_struct orr_bo_vm_ops = {
	.fault = orr_bo_fault,
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
};

static bool orr_mmap_is_cow(struct vm_area_struct *vma)
{
#ifdef ORR_HAVE_VMA_IS_COW_MAPPING
	return vma_is_cow_mapping(vma);
#else
	return is_cow_mapping(vma->vm_flags);
#endif
}

/* Shared mappings only: a private copy of what the card writes to is no use to anybody. */
static int orr_mmap_prepare(struct vm_area_struct *vma)
{
	if (orr_mmap_is_cow(vma))
		return -EINVAL;
	vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	return 0;
}

/**
 * orr_bo_mmap - map a BO
 * @obj: the BO
 * @vma: where
 *
 * Return: 0 or a negative error.
 */
int orr_bo_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct orr_bo *bo = to_orr_bo(obj);
	int ret;

	if (bo->kind != ORR_BO_KIND_VRAM && bo->kind != ORR_BO_KIND_SYSTEM)
		return -EINVAL;
	ret = orr_mmap_prepare(vma);
	if (ret)
		return ret;
	if (bo->kind == ORR_BO_KIND_VRAM) {
		vm_flags_set(vma, VM_IO);
		vma->vm_page_prot = pgprot_writecombine(vm_get_page_prot(vma->vm_flags));
	} else {
		vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);
	}
	return 0;
}

static vm_fault_t orr_doorbell_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct orr_file *file = vma->vm_private_data;
	struct orr_device *odev = file->odev;
	bool kick = vma->vm_pgoff == ORR_MMAP_KICK_PGOFF;
	phys_addr_t start;
	vm_fault_t ret;

	start = pci_resource_start(odev->pdev, ORR_BAR_DOORBELL) +
		(kick ? ORR_DB_KICK_OFFSET : 0) + (phys_addr_t)file->page * ORR_DB_PAGE_SIZE;
	ret = orr_fault_card(odev, vma, vmf->address, start, 1,
			     pgprot_noncached(vm_get_page_prot(vma->vm_flags)));
	if (ret != VM_FAULT_RETRY)
		return ret;
	guard(mutex)(&file->dummy_lock);
	return orr_fault_dummy(vmf, &file->dummy[kick]);
}

static const struct vm_operations_struct orr_doorbell_vm_ops = {
	.fault = orr_doorbell_fault,
};

static int orr_doorbell_mmap(struct orr_file *file, struct vm_area_struct *vma)
{
	int ret;

	/* It has one from its first address space on, and keeps it. */
	if (READ_ONCE(file->page) == ORR_NO_PAGE)
		return -EINVAL;
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	ret = orr_mmap_prepare(vma);
	if (ret)
		return ret;
	/* A child process has no business on its parent's queues. */
	vm_flags_set(vma, VM_IO | VM_DONTCOPY);
	vma->vm_page_prot = pgprot_noncached(vm_get_page_prot(vma->vm_flags));
	vma->vm_private_data = file; /* the mapping keeps the file open */
	vma->vm_ops = &orr_doorbell_vm_ops;
	return 0;
}

/**
 * orr_mmap - mmap() of the node
 * @filp: an open file
 * @vma: where and what
 *
 * Return: 0 or a negative error.
 */
int orr_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct drm_file *drm_file = filp->private_data;
	struct orr_file *file = to_orr_file(drm_file);

	if (vma->vm_pgoff == ORR_MMAP_DOORBELL_PGOFF || vma->vm_pgoff == ORR_MMAP_KICK_PGOFF) {
		if (orr_is_lost(file->odev))
			return -ENODEV;
		return orr_doorbell_mmap(file, vma);
	}
	return drm_gem_mmap(filp, vma);
}
