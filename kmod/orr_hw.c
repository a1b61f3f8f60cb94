// SPDX-License-Identifier: GPL-2.0
/* BARs, identity and reset of the card. */
#include <linux/ctype.h>
#include <linux/delay.h>
#include <linux/iopoll.h>

#include "orr_device.h"

#define ORR_RESET_TIMEOUT_US (5 * USEC_PER_SEC)

/* Half of BAR 4 that is plain memory. */
#define ORR_DB_MEMORY_SIZE (ORR_DB_PAGES * ORR_DB_PAGE_SIZE)

static_assert(ORR_DB_MEMORY_SIZE == ORR_DB_KICK_OFFSET, "kick pages follow the doorbell pages");

/**
 * orr_hw_map - enable the function, claim and map its BARs
 * @odev: the card
 *
 * Return: 0 or a negative error, which has been explained in the log.
 */
int orr_hw_map(struct orr_device *odev)
{
	struct pci_dev *pdev = odev->pdev;
	struct device *dev = &pdev->dev;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return dev_err_probe(dev, ret, "cannot enable the PCI function\n");

	if (pci_resource_len(pdev, ORR_BAR_REGS) != ORR_BAR_REGS_SIZE ||
	    !pci_resource_len(pdev, ORR_BAR_VRAM) ||
	    pci_resource_len(pdev, ORR_BAR_DOORBELL) != 2 * ORR_DB_MEMORY_SIZE)
		return dev_err_probe(dev, -ENODEV,
				     "BARs 0, 2, 4 have %#llx, %#llx, %#llx bytes, which is no card of version %u: check lspci -v\n",
				     (u64)pci_resource_len(pdev, ORR_BAR_REGS),
				     (u64)pci_resource_len(pdev, ORR_BAR_VRAM),
				     (u64)pci_resource_len(pdev, ORR_BAR_DOORBELL),
				     ORR_HW_VERSION_MAJOR);

	ret = pcim_request_all_regions(pdev, ORR_DRIVER_NAME);
	if (ret)
		return dev_err_probe(dev, ret, "the BARs are claimed: see /proc/iomem\n");

	odev->regs = pcim_iomap(pdev, ORR_BAR_REGS, 0);
	odev->vram = devm_ioremap_wc(dev, pci_resource_start(pdev, ORR_BAR_VRAM),
				     pci_resource_len(pdev, ORR_BAR_VRAM));
	odev->doorbells = devm_ioremap(dev, pci_resource_start(pdev, ORR_BAR_DOORBELL),
				       ORR_DB_MEMORY_SIZE);
	if (!odev->regs || !odev->vram || !odev->doorbells)
		return dev_err_probe(dev, -ENOMEM, "cannot map the BARs\n");

	/* Page table entries hold 52 bits of a bus address. */
	ret = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(52));
	if (ret)
		return dev_err_probe(dev, ret, "the platform offers no DMA for this function\n");
	dma_set_max_seg_size(dev, UINT_MAX);
	pci_set_master(pdev);
	return 0;
}

/*
 * Kernels' atomics on host memory are AtomicOps of PCIe. Root ports of a virtual machine declare that
 * they complete none, while whoever carries out the card's DMA there may well do them; the card
 * knows then.
 */
static void orr_hw_enable_atomics(struct orr_device *odev)
{
	struct pci_dev *pdev = odev->pdev;
	int ret;

	ret = pci_enable_atomic_ops_to_root(pdev, PCI_EXP_DEVCAP2_ATOMIC_COMP32 |
					    PCI_EXP_DEVCAP2_ATOMIC_COMP64);
	if (ret && odev->info.platform & ORR_PLATFORM_ATOMICS)
		ret = pcie_capability_set_word(pdev, PCI_EXP_DEVCTL2,
					       PCI_EXP_DEVCTL2_ATOMIC_REQ);
	odev->info.host_atomics = !ret;
	if (!ret)
		return;
	/* Of whoever had the card before. */
	pcie_capability_clear_word(pdev, PCI_EXP_DEVCTL2, PCI_EXP_DEVCTL2_ATOMIC_REQ);
	dev_info(&pdev->dev, "the platform completes no PCIe AtomicOps: kernels' atomics on host memory fail\n");
}

static void orr_hw_read_text(struct orr_device *odev, u32 reg, char *text, unsigned int size, bool *ones)
{
	unsigned int i;

	for (i = 0; i < size; i += sizeof(u32)) {
		u32 word = orr_read32(odev, reg + i);

		*ones |= word == U32_MAX;
		memcpy(text + i, &word, sizeof(word));
	}
	text[size] = '\0';
}

/**
 * orr_text_sanitise - make a text from the card or a process fit for logs, terminals and traces
 * @text: terminated; what is not printable ASCII becomes '?'
 */
void orr_text_sanitise(char *text)
{
	for (; *text; text++)
		if (!isascii(*text) || !isprint(*text))
			*text = '?';
}

/**
 * orr_hw_answers - is what was just read from the card worth anything?
 * @odev: the card; the caller is inside orr_enter(), or in probe
 * @ones: a register read as all-ones that never holds them
 *
 * A card that is gone reads as all-ones, which is also a value. One of which a single register
 * does is not right either, and is given up: nobody knows what else it did not hear or say.
 *
 * Return: whether it is.
 */
bool orr_hw_answers(struct orr_device *odev, bool ones)
{
	u32 id = ones ? U32_MAX : orr_read32(odev, ORR_R_ID);

	if (id == ORR_ID_MAGIC)
		return true;
	if (id == U32_MAX)
		orr_device_lost(odev, ORR_LOST_GONE);
	else
		orr_health_kick(odev);
	return false;
}

/* Of what a card is nothing is all-ones. */
static u32 orr_hw_constant32(struct orr_device *odev, u32 reg, bool *ones)
{
	u32 value = orr_read32(odev, reg);

	*ones |= value == U32_MAX;
	return value;
}

static u64 orr_hw_constant64(struct orr_device *odev, u32 reg, bool *ones)
{
	u64 value = orr_read64(odev, reg);

	*ones |= value == U64_MAX;
	return value;
}

/**
 * orr_hw_identify - find out what the card is, and whether this driver can drive it
 * @odev: the card
 *
 * Return: 0 or a negative error, which has been explained in the log.
 */
int orr_hw_identify(struct orr_device *odev)
{
	struct device *dev = &odev->pdev->dev;
	struct orr_info *info = &odev->info;
	u32 id = orr_read32(odev, ORR_R_ID);
	bool ones = false;

	if (id == U32_MAX)
		return dev_err_probe(dev, -ENODEV,
				     "the card reads as all-ones: it is gone, without power, or its process has ended; remove it or start it again\n");
	if (id != ORR_ID_MAGIC)
		return dev_err_probe(dev, -ENODEV,
				     "identity register reads %#x, expected %#x: not an Orrery card\n",
				     id, ORR_ID_MAGIC);

	info->hw_version = orr_read32(odev, ORR_R_HW_VERSION);
	if (info->hw_version >> 16 != ORR_HW_VERSION_MAJOR)
		return dev_err_probe(dev, -ENODEV,
				     "the card has hardware version %u.%u, this driver knows %u.x: load the driver that belongs to the card\n",
				     info->hw_version >> 16, info->hw_version & 0xffff,
				     ORR_HW_VERSION_MAJOR);

	info->uid = orr_hw_constant64(odev, ORR_R_UID, &ones);
	info->vram_size = orr_hw_constant64(odev, ORR_R_VRAM_SIZE, &ones);
	info->core_hz = orr_hw_constant64(odev, ORR_R_CORE_HZ, &ones);
	info->vector_hz = orr_hw_constant64(odev, ORR_R_VECTOR_HZ, &ones);
	info->copy_engines = orr_hw_constant32(odev, ORR_R_COPY_ENGINES, &ones);
	info->vector_ports = orr_hw_constant32(odev, ORR_R_VECTOR_PORTS, &ones);
	info->vector_cores = orr_hw_constant32(odev, ORR_R_VECTOR_CORES, &ones);
	info->link_ports = min_t(u32, orr_hw_constant32(odev, ORR_R_LINK_PORTS, &ones),
				 ORR_LINK_MAX_PORTS);
	info->doorbell_pages = min_t(u32, orr_hw_constant32(odev, ORR_R_DOORBELL_PAGES, &ones),
				     ORR_DB_PAGES);
	info->counters = min_t(u32, orr_hw_constant32(odev, ORR_R_COUNTERS, &ones),
			       ORR_COUNTERS_MAX);
	info->save_bytes = orr_hw_constant32(odev, ORR_R_SAVE_BYTES, &ones);
	info->vector_vlen = orr_hw_constant32(odev, ORR_R_VECTOR_VLEN, &ones);
	info->checks = orr_hw_constant32(odev, ORR_R_CHECKS, &ones);
	info->platform = orr_hw_constant32(odev, ORR_R_PLATFORM, &ones);
	if ((info->hw_version & 0xffff) >= 3)
		info->barriers = orr_hw_constant32(odev, ORR_R_BARRIER, &ones);
	if ((info->hw_version & 0xffff) >= 5)
		info->multicasts = orr_hw_constant32(odev, ORR_R_MULTICAST, &ones);
	if ((info->hw_version & 0xffff) >= 6)
		info->sink_bytes = orr_hw_constant32(odev, ORR_R_SINK, &ones);
	orr_hw_read_text(odev, ORR_R_VECTOR_ISA, info->vector_isa, ORR_ISA_BYTES, &ones);
	orr_text_sanitise(info->vector_isa);
	orr_hw_read_text(odev, ORR_R_SKU_NAME, info->sku_name, sizeof(info->sku_name) - 1, &ones);
	orr_text_sanitise(info->sku_name);

	if (ones)
		return dev_err_probe(dev, -ENODEV,
				     "a part of the card's identity reads as all-ones: it is going, or not well; bind the driver again, or start the card again\n");
	orr_hw_enable_atomics(odev);
	if (!IS_ALIGNED(info->save_bytes, ORR_PAGE_SIZE))
		info->save_bytes = 0;
	if (!info->uid || !info->doorbell_pages || !info->vram_size ||
	    info->vram_size > pci_resource_len(odev->pdev, ORR_BAR_VRAM))
		return dev_err_probe(dev, -ENODEV,
				     "impossible identity: uid %#llx, %u doorbell pages, %llu bytes of VRAM behind a BAR of %llu\n",
				     info->uid, info->doorbell_pages, info->vram_size,
				     (u64)pci_resource_len(odev->pdev, ORR_BAR_VRAM));
	return 0;
}

/**
 * orr_hw_reset - stop everything on the card, and all of its DMA with it
 * @odev: the card
 *
 * Return: 0 or -EIO if the card does not come back.
 */
int orr_hw_reset(struct orr_device *odev)
{
	u32 count = orr_read32(odev, ORR_R_RESET_COUNT);
	u32 now;
	int ret;

	orr_write32(odev, ORR_R_RESET, ORR_RESET_MAGIC);
	/* Nobody will know whether it has been reset. */
	if (count == U32_MAX)
		return -EIO;
	ret = read_poll_timeout(orr_read32, now, now != count, 100, ORR_RESET_TIMEOUT_US, false,
				odev, ORR_R_RESET_COUNT);
	if (ret || now == U32_MAX)
		return -EIO;
	return 0;
}
