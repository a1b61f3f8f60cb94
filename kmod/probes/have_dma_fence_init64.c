// SPDX-License-Identifier: GPL-2.0
/* That a fence's number has 64 bits is said when it is made, not in its functions. */
#include <linux/dma-fence.h>

void orr_probe(struct dma_fence *fence, const struct dma_fence_ops *ops, spinlock_t *lock);
void orr_probe(struct dma_fence *fence, const struct dma_fence_ops *ops, spinlock_t *lock)
{
	dma_fence_init64(fence, ops, lock, 1, 1);
}
