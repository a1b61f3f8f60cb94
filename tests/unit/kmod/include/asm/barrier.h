/* Between what a device writes and what is read of it. */
#pragma once

#define dma_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
