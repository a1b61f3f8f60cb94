// SPDX-License-Identifier: GPL-2.0
/*
 * A module that makes the mistake it is told to, so that a test sees the debug kernel find it.
 * insmod faulty.ko mistake=NAME ends with an error if there is no such mistake.
 */
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

static char *mistake = "";
module_param(mistake, charp, 0);
MODULE_PARM_DESC(mistake, "which one");

static DEFINE_MUTEX(faulty_a);
static DEFINE_MUTEX(faulty_b);

/* Reads that the compiler cannot foresee. */
static int faulty_read(const char *from)
{
	return READ_ONCE(*from);
}

static int faulty_use_after_free(void)
{
	char *memory = kzalloc(64, GFP_KERNEL);

	if (!memory)
		return -ENOMEM;
	kfree(memory);
	return faulty_read(memory) & 0;
}

static int faulty_out_of_bounds(void)
{
	char *memory = kzalloc(60, GFP_KERNEL);
	int value;

	if (!memory)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(memory);
	value = faulty_read(memory + 61);
	kfree(memory);
	return value & 0;
}

static int faulty_leak(void)
{
	unsigned int i;

	/* Several, because a stale register may still point to the last. */
	for (i = 0; i < 10; i++)
		if (!kzalloc(1000, GFP_KERNEL))
			return -ENOMEM;
	return 0;
}

static int faulty_lock_order(void)
{
	mutex_lock(&faulty_a);
	mutex_lock(&faulty_b);
	mutex_unlock(&faulty_b);
	mutex_unlock(&faulty_a);
	mutex_lock(&faulty_b);
	mutex_lock(&faulty_a);
	mutex_unlock(&faulty_a);
	mutex_unlock(&faulty_b);
	return 0;
}

static int faulty_sleep(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	might_sleep();
	spin_unlock(&lock);
	return 0;
}

static int faulty_lock_of_no_class(void)
{
	spinlock_t *lock = kzalloc(sizeof(*lock), GFP_KERNEL);

	if (!lock)
		return -ENOMEM;
	spin_lock(lock);
	spin_unlock(lock);
	kfree(lock);
	return 0;
}

static void faulty_nothing(struct work_struct *work)
{
}

static int faulty_free_pending_work(void)
{
	struct delayed_work *work = kzalloc(sizeof(*work), GFP_KERNEL);

	if (!work)
		return -ENOMEM;
	INIT_DELAYED_WORK(work, faulty_nothing);
	schedule_delayed_work(work, HZ * 1000);
	kfree(work);
	return 0;
}

static int faulty_dma(void)
{
	struct pci_dev *pdev = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, NULL);

	if (!pdev)
		return -ENODEV;
	dma_unmap_page(&pdev->dev, 0x1000, 4096, DMA_TO_DEVICE);
	pci_dev_put(pdev);
	return 0;
}

static int faulty_shift(void)
{
	unsigned int by = 40;

	OPTIMIZER_HIDE_VAR(by);
	return (1u << by) & 0;
}

/* What signals a fence must not wait for memory, for that may wait for the fence. */
static int faulty_memory_to_signal(void)
{
	bool cookie = dma_fence_begin_signalling();
	void *memory = kmalloc(64, GFP_KERNEL);

	dma_fence_end_signalling(cookie);
	kfree(memory);
	return 0;
}

static const struct {
	const char *name;
	int (*make)(void);
} faulty_mistakes[] = {
	{ "use_after_free", faulty_use_after_free },
	{ "out_of_bounds", faulty_out_of_bounds },
	{ "leak", faulty_leak },
	{ "lock_order", faulty_lock_order },
	{ "sleep", faulty_sleep },
	{ "lock_of_no_class", faulty_lock_of_no_class },
	{ "free_pending_work", faulty_free_pending_work },
	{ "dma", faulty_dma },
	{ "shift", faulty_shift },
	{ "memory_to_signal", faulty_memory_to_signal },
};

static int __init faulty_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(faulty_mistakes); i++)
		if (!strcmp(mistake, faulty_mistakes[i].name))
			return faulty_mistakes[i].make();
	return -EINVAL;
}
module_init(faulty_init);

static void __exit faulty_exit(void)
{
}
module_exit(faulty_exit);

MODULE_DESCRIPTION("Mistakes for the debug kernel to find");
MODULE_LICENSE("GPL");
