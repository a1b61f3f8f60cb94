// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts. They work like edges: each message says "look at memory", and no register is read
 * to find out why, because that costs more than the work. With fewer messages than the card has
 * vectors, vector n comes on message n modulo their number, so a handler serves several.
 */
#include <linux/interrupt.h>

#include "orr_device.h"
#include "orr_queue.h"

/* Vectors that mean something to this driver: 0 .. 3. */
#define ORR_IRQ_USED 4

static unsigned int max_vectors = ORR_IRQ_USED;
module_param(max_vectors, uint, 0444);
MODULE_PARM_DESC(max_vectors, "Interrupt messages to ask for, 1 to 4 (default 4)");

static bool orr_irq_serves(struct orr_device *odev, unsigned int message, unsigned int vector)
{
	return vector % odev->vectors == message;
}

static irqreturn_t orr_irq_handler(struct orr_device *odev, unsigned int message)
{
	bool found = false;

	/* Messages to a card that is lost or going have nobody to look at them. */
	if (orr_is_lost(odev))
		return IRQ_HANDLED;
	if (orr_irq_serves(odev, message, ORR_IRQ_MAILBOX))
		found |= orr_mbox_process(odev);
	if (orr_irq_serves(odev, message, ORR_IRQ_QUEUE))
		found |= orr_queue_scan_armed(odev);
	if (orr_irq_serves(odev, message, ORR_IRQ_LINK) && (!found || odev->vectors > ORR_IRQ_LINK))
		schedule_work(&odev->link_work);
	/* Whether the control core halted is in a register: not read here, and not each time. */
	if (orr_irq_serves(odev, message, ORR_IRQ_FAULT) && !found)
		orr_health_kick(odev);
	return IRQ_HANDLED;
}

#define ORR_IRQ_HANDLER(message) \
	static irqreturn_t orr_irq_handler_##message(int irq, void *data) \
	{ \
		return orr_irq_handler(data, message); \
	}

ORR_IRQ_HANDLER(0)
ORR_IRQ_HANDLER(1)
ORR_IRQ_HANDLER(2)
ORR_IRQ_HANDLER(3)

static const irq_handler_t orr_irq_handlers[ORR_IRQ_USED] = {
	orr_irq_handler_0,
	orr_irq_handler_1,
	orr_irq_handler_2,
	orr_irq_handler_3,
};

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

	ret = pci_alloc_irq_vectors(pdev, 1, clamp(max_vectors, 1u, (unsigned int)ORR_IRQ_USED),
				    PCI_IRQ_MSIX | PCI_IRQ_MSI);
	if (ret < 0)
		return dev_err_probe(dev, ret,
				     "no interrupts: neither MSI-X nor MSI can be enabled; does the kernel run with pci=nomsi?\n");
	odev->vectors = ret;
	ret = devm_add_action_or_reset(dev, orr_irq_free_vectors, pdev);
	if (ret)
		return ret;

	for (i = 0; i < odev->vectors; i++) {
		ret = devm_request_irq(dev, pci_irq_vector(pdev, i), orr_irq_handlers[i], 0,
				       ORR_DRIVER_NAME, odev);
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
	while (odev->irqs)
		devm_free_irq(&odev->pdev->dev, pci_irq_vector(odev->pdev, --odev->irqs), odev);
}
