/* SPDX-License-Identifier: MIT */
/* The PCIe function: identity, BARs, interrupt vectors. */
#ifndef ORRERY_HW_PCI_H
#define ORRERY_HW_PCI_H

#include "base.h"

/* The range that QEMU sets aside for experiments (its docs/specs/pci-ids). */
#define ORR_PCI_VENDOR_ID 0x1af4
#define ORR_PCI_DEVICE_ID 0x10f0
#define ORR_PCI_CLASS 0x120000 /* processing accelerator */

#define ORR_BAR_REGS 0 /* 1 MiB, trapped: see bar0.h */
#define ORR_BAR_VRAM 2 /* VRAM size, 64-bit prefetchable, mapped */
#define ORR_BAR_DOORBELL 4 /* 4 MiB, lower half mapped, upper half trapped: see doorbell.h */

#define ORR_BAR_REGS_SIZE 0x100000u
#define ORR_MSIX_TABLE_OFFSET 0xf0000u /* in BAR 0 */
#define ORR_MSIX_PBA_OFFSET 0xf8000u /* in BAR 0 */

/*
 * Interrupt vectors. Vector n is delivered on message n modulo the number of messages that
 * the host has enabled, so a driver with one message gets them all on it.
 */
#define ORR_IRQ_MAILBOX 0u /* a message is in the firmware-to-host ring */
#define ORR_IRQ_QUEUE 1u /* a queue reached an armed index or stopped */
#define ORR_IRQ_FAULT 2u /* the control core halted */
#define ORR_IRQ_LINK 3u /* a link changed its state */
#define ORR_IRQ_VECTORS 8u

#endif /* ORRERY_HW_PCI_H */
