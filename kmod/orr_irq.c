// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts. They work like edges: each message says "look at memory", and no register is read
 * to find out why, because that costs more than the work. With fewer messages than the card has
 * vectors, vector n comes on message n modulo their number, so a handler serves several.
 */
#include <linux/dma-fence.h>
#include <linux/interrupt.h>

#include "orr_device.h"
#include "orr_queue.h"
#include "orr_trace.h"

/* Queues and waiters that are looked after with interrupts off; the rest is left to a thread. */
#define ORR_IRQ_ROOM 64u

static unsigned int max_vectors = ORR_IRQ_MESSAGES;
module_param(max_vectors, uint, 0444);
MODULE_PARM_DESC(max_vectors, "Interrupt messages to ask for, 1 to 4 (default 4)");

static bool orr_irq_serves(const struct orr_irq *irq, unsigned int vector)
{
	return vector % irq->odev->vectors == irq->message;
}

/* In the interrupt: what most of them are about, as far as it is little. */
static irqreturn_t orr_irq_handler(int number, void *data)
{
	struct orr_irq *irq = data;
	struct orr_device *odev = irq->odev;
	struct orr_scan scan = { .room = ORR_IRQ_ROOM };
	bool found = false, more = false;

	/* Messages to a card that is lost or going have nobody to look at them. */
	if (orr_is_lost(odev))
		return IRQ_HANDLED;
	if (orr_irq_serves(irq, ORR_IRQ_MAILBOX))
		more |= orr_mbox_process_replies(odev, &found);
	if (orr_irq_serves(irq, ORR_IRQ_QUEUE)) {
		more |= !orr_queue_scan_some(odev, &scan);
		found |= scan.looked;
		/* A figure for debugfs, for which one too few does not matter. */
		if (scan.fired > READ_ONCE(odev->stats.most_in_irq))
			WRITE_ONCE(odev->stats.most_in_irq, scan.fired);
	}
	if (orr_irq_serves(irq, ORR_IRQ_LINK))
		orr_health_link_kick(odev, !found || odev->vectors > ORR_IRQ_LINK);
	/* Whether the control core halted is in a register: not read here, and not each time. */
	if (orr_irq_serves(irq, ORR_IRQ_FAULT) && !found)
		orr_health_kick(odev);
	trace_orr_interrupt(odev, irq->message, found);
	return more ? IRQ_WAKE_THREAD : IRQ_HANDLED;
}

/* In the interrupt's thread: what is left. A process decides how much that is. */
static irqreturn_t orr_irq_thread(int number, void *data)
{
	struct orr_irq *irq = data;
	struct orr_device *odev = irq->odev;
	bool cookie = dma_fence_begin_signalling();

	if (orr_irq_serves(irq, ORR_IRQ_MAILBOX))
		orr_mbox_process(odev);
	if (orr_irq_serves(irq, ORR_IRQ_QUEUE))
		orr_queue_scan_armed(odev);
	dma_fence_end_signalling(cookie);
	return IRQ_HANDLED;
}

static void orr_irq_free_vectors(void *data)
{
	pci_free_irq_vectors(data);
}

/**
 * orr_irq_init - get messages from the host and be called for them
 * @odev: the card; the mailbox is initialised
 *
 * Return: 0 or a negative error, which has been explained in the log.
 */
int orr_irq_init(struct orr_device *odev)
{
	struct pci_dev *pdev = odev->pdev;
	struct device *dev = &pdev->dev;
	unsigned int i;
	int ret;

	ret = pci_alloc_irq_vectors(pdev, 1, clamp(max_vectors, 1u, ORR_IRQ_MESSAGES),
				    PCI_IRQ_MSIX | PCI_IRQ_MSI);
	if (ret < 0)
		return dev_err_probe(dev, ret,
				     "no interrupts: neither MSI-X nor MSI can be enabled; does the kernel run with pci=nomsi?\n");
	odev->vectors = ret;
	ret = devm_add_action_or_reset(dev, orr_irq_free_vectors, pdev);
	if (ret)
		return ret;

	for (i = 0; i < odev->vectors; i++) {
		struct orr_irq *irq = &odev->irq[i];

		irq->odev = odev;
		irq->message = i;
		ret = devm_request_threaded_irq(dev, pci_irq_vector(pdev, i), orr_irq_handler,
						orr_irq_thread, 0, ORR_DRIVER_NAME, irq);
		if (ret)
			return dev_err_probe(dev, ret, "cannot request interrupt %u\n", i);
		odev->irqs++;
	}
	return 0;
}

/**
 * orr_irq_fini - nobody is called any more when this returns
 * @odev: the card
 */
void orr_irq_fini(struct orr_device *odev)
{
	while (odev->irqs) {
		struct orr_irq *irq = &odev->irq[--odev->irqs];

		devm_free_irq(&odev->pdev->dev, pci_irq_vector(odev->pdev, irq->message), irq);
	}
}
