// SPDX-License-Identifier: GPL-2.0
/* Whether a mapping is copy on write is asked of the vma, not of its flags (is_cow_mapping()). */
#include <linux/mm.h>

bool orr_probe(const struct vm_area_struct *vma);
bool orr_probe(const struct vm_area_struct *vma)
{
	return vma_is_cow_mapping(vma);
}
