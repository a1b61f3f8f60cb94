// SPDX-License-Identifier: GPL-2.0
/* Which doorbell pages are given out. A page belongs to one open file. */
#include "orr_device.h"

/**
 * orr_doorbell_page_get - take a doorbell page, with nothing of its last owner left in it
 * @odev: the card; the caller is inside orr_enter()
 *
 * Return: number of the page, or -ENOSPC if all are in use.
 */
int orr_doorbell_page_get(struct orr_device *odev)
{
	unsigned long page;

	scoped_guard(spinlock, &odev->pages_lock) {
		page = find_first_zero_bit(odev->pages, odev->info.doorbell_pages);
		if (page >= odev->info.doorbell_pages)
			return -ENOSPC;
		__set_bit(page, odev->pages);
	}
	/* No queue is bound to it now, so the card does not look at it. */
	memset_io(odev->doorbells + page * ORR_DB_PAGE_SIZE, 0, ORR_DB_PAGE_SIZE);
	return page;
}

/**
 * orr_doorbell_page_put - give a doorbell page back
 * @odev: the card
 * @page: of orr_doorbell_page_get(); no queue and no mapping of it is left
 */
void orr_doorbell_page_put(struct orr_device *odev, unsigned int page)
{
	guard(spinlock)(&odev->pages_lock);
	__clear_bit(page, odev->pages);
}
