/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The card as the driver sees it.
 *
 * Locks, outermost first. A lock may be taken while those above it are held, never the other
 * way round:
 *
 *   orr_file.lock        mutex     a file's doorbell page and slots
 *   orr_look_lock        mutex     orr_look.c: one look at all queues at a time
 *   orr_routes_lock      mutex     orr_route.c: the map of the links, and routes on the cards
 *   orr_sems_lock        mutex     orr_signal.c, orr_sem.c: who may signal which semaphore
 *   orr_work.lock        mutex     a file's place among the records of work
 *   orr_sample.lock      mutex     and among the samples of counters
 *   orr_sink.lock        mutex     registers of the trace sink, and who wants it on
 *   orr_vm.lock          mutex     an address space: mappings, page tables, queue count
 *   orr_device.sku_lock  mutex     the text of sku_table is being read from the card
 *   orr_device.fabric.lock mutex   orr_foreign.c, orr_fabric.c: what is shared with other machines
 *   orr_device.fabric.route_lock mutex orr_foreign_way.c: routes to cards of other machines; whoever has it
 *                                  waits for no debugger
 *   orr_far_lock         mutex     orr_far.c: what other drivers have asked, and were asked
 *   orr_device.note_lock mutex     registers of notes that are sent
 *   orr_device.grant_lock mutex    grant registers of all link ports, and slots
 *   orr_barriers.lock    mutex     orr_barrier.c: registers of the barrier unit, and its slots
 *   orr_device.key_lock  mutex     keys that this card's requests carry
 *   orr_device.drain_lock mutex    what passes through this card is to be hurried, or a link reset
 *   orr_registry_lock    mutex     orr_peer.c: which cards exist; whether a debugger holds one
 *   mmap_lock (core)               munmap() may free a BO: nothing below may fault in user memory
 *   orr_device.bo_lock   mutex     list of BOs, and the DMA mappings of each
 *   dma_resv (core)                of a dma-buf whose mapping ends
 *   orr_device.vram_lock mutex     the VRAM allocator
 *   dummy_lock           mutex     of a BO or file: what its mappings show after a loss
 *   orr_device.reset_lock rwsem    readers insert PTEs of hardware pages, the writer ends that
 *   orr_device.boot_lock mutex     the core is being started, or the card put to rest; fences wait
 *                                  for it, so nothing is allocated under it
 *   orr_device.pages_lock spinlock doorbell pages
 *   orr_multicasts.lock  spinlock  multicasts of a card
 *   orr_pairs_lock       spinlock  orr_route.c: which ways there are
 *   orr_device.holders_lock spinlock  whose mappings need which grant
 *   orr_device.queue_lock spinlock number -> queue
 *   dma_fence.lock (of a struct orr_fence)
 *   orr_queue.lock       spinlock  waiters of a queue, what it is armed for
 *   orr_mailbox.lock     spinlock  both mailbox rings
 *   orr_restart.pulse_lock spinlock  looks at the heartbeat
 *
 * All spinlocks but pages_lock, orr_multicasts.lock, orr_pairs_lock, holders_lock and pulse_lock are
 * taken in interrupts. Hardware is touched inside orr_enter() and orr_exit() only; nothing sleeps for
 * user space in there, nor for another card, so that unbinding never waits for a process or a
 * debugger. Only an import of another driver's memory waits for that driver in there.
 */
#ifndef _ORR_DEVICE_H_
#define _ORR_DEVICE_H_

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <drm/drm_device.h>
#include <drm/drm_drv.h>
#include <drm/drm_mm.h>
#include <drm/drm_print.h>

#include <orrery/fw/boot_block.h>
#include <orrery/fw/queue.h>
#include <orrery/hw/bar0.h>
#include <orrery/hw/doorbell.h>
#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>
#include <orrery/hw/pci.h>
#include <orrery/hw/switches.h>

#include "orr_barrier.h"
#include "orr_counters.h"
#include "orr_foreign.h"
#include "orr_grant.h"
#include "orr_kernel_api.h"
#include "orr_link_look.h"
#include "orr_mailbox.h"
#include "orr_multicast.h"
#include "orr_restart.h"
#include "orr_sem.h"
#include "orr_work.h"

#define ORR_DRIVER_NAME "orrery"

static_assert(PAGE_SIZE == ORR_PAGE_SIZE, "the card's pages are 4 KiB");
#ifndef CONFIG_64BIT
#error "Page table entries and doorbells are stored with one 64-bit access"
#endif
#ifdef __BIG_ENDIAN
#error "The card is little-endian and so must be the kernel"
#endif

struct orr_queue;
struct vfsmount;

/**
 * struct orr_info - what the card and its firmware said about themselves at probe; constant after
 */
struct orr_info {
	/** @uid: unique card number */
	u64 uid;
	/** @vram_size: bytes */
	u64 vram_size;
	/** @core_hz: model frequency of the control core */
	u64 core_hz;
	/** @vector_hz: model frequency of the vector cores */
	u64 vector_hz;
	/** @hw_version: major << 16 | minor */
	u32 hw_version;
	/** @copy_engines: number */
	u32 copy_engines;
	/** @vector_ports: kernels that can be in flight at once */
	u32 vector_ports;
	/** @vector_cores: number */
	u32 vector_cores;
	/** @link_ports: number, at most ORR_LINK_MAX_PORTS */
	u32 link_ports;
	/** @doorbell_pages: number, at most ORR_DB_PAGES */
	u32 doorbell_pages;
	/** @counters: number of counter registers */
	u32 counters;
	/** @save_bytes: bytes of a save area for preempted kernels, 0: the card has no use for them */
	u32 save_bytes;
	/** @fw_abi: of the firmware, major << 16 | minor */
	u32 fw_abi;
	/** @fw_version: major << 16 | minor << 8 | patch */
	u32 fw_version;
	/** @max_queues: that the firmware serves, at most ORR_FW_QUEUES */
	u32 max_queues;
	/** @max_contexts: that the firmware serves, at most ORR_FW_CONTEXTS */
	u32 max_contexts;
	/** @max_ring_entries: packets of a ring, a power of two */
	u32 max_ring_entries;
	/** @vector_vlen: bits of a vector register, 0: the card has none, or does not say */
	u32 vector_vlen;
	/** @checks: of kernels, ORR_CHECKS_* */
	u32 checks;
	/** @barriers: ORR_R_BARRIER; 0: it has no barrier unit */
	u32 barriers;
	/** @multicasts: ORR_R_MULTICAST; 0: it knows none */
	u32 multicasts;
	/** @sink_bytes: of the largest ring of its trace sink; 0: it has none */
	u32 sink_bytes;
	/** @platform: what the card knows of what is around it, ORR_PLATFORM_* */
	u32 platform;
	/** @host_atomics: kernels may use atomics on host memory */
	bool host_atomics;
	/** @vector_isa: as @sku_name; empty: the card does not say */
	char vector_isa[ORR_ISA_BYTES + 1];
	/** @sku_name: zero-padded, always terminated */
	char sku_name[33];
	/** @fw_build_id: zero-padded, always terminated */
	char fw_build_id[33];
};

/**
 * struct orr_link_port - what the driver keeps about a link port
 */
struct orr_link_port {
	/** @kobj: links/<port> in sysfs, while the driver is bound */
	struct kobject *kobj;
	/** @index: port number */
	u32 index;
	/** @bad_keys: requests with a wrong key that have been told of in the log */
	u32 bad_keys;
	/** @refused: writes and signals of this card that were refused, as of the last look */
	u32 refused;
};

/**
 * struct orr_used_link - a link over which ways go
 */
struct orr_used_link {
	/** @peer: node at the other end; 0: ways do not go here */
	u32 peer;
	/** @peer_port: port there */
	u32 peer_port;
	/** @since: number that says which of two has been used for longer; the same at both ends */
	u32 since;
	/** @refused: the card does not pass on here, although it was told to */
	bool refused;
	/** @refused_jiffies: when that was */
	unsigned long refused_jiffies;
};

/**
 * struct orr_owed_route - a route that a card has been given and has not taken yet
 */
struct orr_owed_route {
	/** @node: to which it leads; 0: there is none */
	u32 node;
	/** @route: value of the register */
	u32 route;
};

/* The card's vectors that mean something to this driver: 0 .. 3. */
#define ORR_IRQ_MESSAGES 4u

/**
 * struct orr_irq - an interrupt message, for its handler
 */
struct orr_irq {
	/** @odev: the card */
	struct orr_device *odev;
	/** @message: its number */
	unsigned int message;
};

/**
 * struct orr_snapshot - where the card writes its counters, all of one moment
 */
struct orr_snapshot {
	/** @readers: those that may sleep come one after the other */
	struct mutex readers;
	/** @lock: of the page and what follows; perf reads with interrupts off */
	raw_spinlock_t lock;
	/** @words: what the card writes, ORR_COUNTERS_MAX; NULL: it cannot. Under @lock */
	__le64 *words;
	/** @dma: their bus address */
	dma_addr_t dma;
	/** @tag: of the last one asked for; @lock */
	u32 tag;
	/** @pending: that has not been seen to be there; @lock */
	bool pending;
	/** @asked: when, in jiffies; @lock */
	unsigned long asked;
};

/**
 * struct orr_stats - what debugfs tells those who look after the driver
 */
struct orr_stats {
	/** @late_wakeups: waiters that no interrupt woke up; health_work found them */
	unsigned int late_wakeups;
	/** @most_in_irq: the most waiters that one interrupt woke up with interrupts off */
	unsigned int most_in_irq;
	/** @left_commands: whose callers were killed before the reply came; mailbox.lock */
	unsigned int left_commands;
	/** @late_snapshots: readings of counters for which perf waited in vain; snapshot.lock */
	unsigned int late_snapshots;
};

/**
 * struct orr_device - a card
 */
struct orr_device {
	/** @drm: base */
	struct drm_device drm;
	/** @pdev: the PCI function */
	struct pci_dev *pdev;
	/** @info: constant after probe */
	struct orr_info info;

	/** @regs: BAR 0 */
	void __iomem *regs;
	/** @vram: BAR 2, write-combined */
	void __iomem *vram;
	/** @doorbells: the doorbell pages, lower half of BAR 4 */
	void __iomem *doorbells;

	/** @image: the firmware, for the boot ROM; kept for restarts, when no file system may be there */
	void *image;
	/** @image_dma: its bus address */
	dma_addr_t image_dma;
	/** @image_size: bytes */
	size_t image_size;
	/** @boot_lock: held while the core is started, and while a lost card is put to rest */
	struct mutex boot_lock;
	/** @boot_block: shared with the firmware */
	struct orr_boot_block *boot_block;
	/** @boot_block_dma: its bus address */
	dma_addr_t boot_block_dma;
	/** @status: lines of all queues; that of a live queue only the firmware writes */
	struct orr_queue_status *status;
	/** @status_dma: its bus address */
	dma_addr_t status_dma;
	/** @usage: engine time of all queues, in the same way */
	struct orr_queue_usage *usage;
	/** @usage_dma: its bus address */
	dma_addr_t usage_dma;
	/** @mailbox: to and from the firmware */
	struct orr_mailbox mailbox;
	/** @snapshot: of the counters */
	struct orr_snapshot snapshot;

	/** @vectors: interrupt messages that the host gave us, 1 .. 4 */
	unsigned int vectors;
	/** @irqs: of them those that have a handler */
	unsigned int irqs;
	/** @irq: by message */
	struct orr_irq irq[ORR_IRQ_MESSAGES];

	/**
	 * @wq: for works that fences and waits depend on; ordered. None of them waits for the
	 * firmware's answer, or for memory
	 */
	struct workqueue_struct *wq;
	/** @ask_wq: the same for those that do wait for the firmware's answer */
	struct workqueue_struct *ask_wq;

	/**
	 * @users: of the hardware; whoever takes it away sets @lost and waits for them. Not
	 * drm_dev_enter(): that is one for all devices, and who waits for one card's firmware in
	 * there would hold up the removal of all others
	 */
	struct srcu_struct users;
	/** @lost: bit 0: the card is not to be used any more, until the driver binds anew */
	unsigned long lost;
	/** @lost_reason: constant text, for sysfs; set before @lost */
	const char *lost_reason;
	/** @unbinding: the loss is an unbind: nothing to warn about */
	bool unbinding;
	/** @lost_work: what has to be done about it; queued by whoever sets @lost */
	struct work_struct lost_work;
	/** @quiesced: completed once a lost card does no DMA any more */
	struct completion quiesced;
	/** @health_work: looks after the card while it has queues; disabled until it is up */
	struct delayed_work health_work;
	/** @health_jiffies: when it did so last */
	unsigned long health_jiffies;
	/** @health_links_jiffies: when it had somebody look at the links last */
	unsigned long health_links_jiffies;
	/** @restart: see orr_restart.c */
	struct orr_restart restart;
	/** @link_work: looks whether a link changed, and tells; disabled until there is links/ */
	struct delayed_work link_work;
	/** @link_looks: as it found them last */
	struct orr_link_look link_looks[ORR_LINK_MAX_PORTS];
	/** @links_told: a bit for each port of which is to be told; of @link_work */
	unsigned long links_told;
	/** @links_told_jiffies: when it told last */
	unsigned long links_told_jiffies;
	/** @reset_lock: see the top of this file */
	struct rw_semaphore reset_lock;

	/** @vram_lock: guards @vram_mm and @vram_used */
	struct mutex vram_lock;
	/** @vram_mm: contiguous ranges; BOs from the bottom, page tables from the top */
	struct drm_mm vram_mm;
	/** @vram_used: bytes allocated */
	u64 vram_used;
	/** @save_node: save areas, which belong to the firmware; constant after probe */
	struct drm_mm_node save_node;

	/** @shmem: where files of BOs lie; NULL: in GEM's own mount; constant after probe */
	struct vfsmount *shmem;
	/** @bo_lock: guards @bos, and the DMA mappings of those in it */
	struct mutex bo_lock;
	/** @bos: all BOs with a DMA mapping, which an unbind has to end */
	struct list_head bos;

	/** @sku_lock: guards the making of @sku_text, @sku_bytes and @sku_refused, which stay then */
	struct mutex sku_lock;
	/** @sku_text: what the card says of its SKU; checked; NULL: nobody has asked yet */
	char *sku_text;
	/** @sku_bytes: of @sku_text; no zero at the end */
	u32 sku_bytes;
	/** @sku_refused: what the card said was no text; it is not asked again */
	bool sku_refused;

	/** @contexts: context numbers (ASIDs), from 1 */
	struct ida contexts;
	/** @vms: struct orr_vm by the same number, while it is open */
	struct xarray vms;
	/** @queue_numbers: the firmware's queue numbers, from 0 */
	struct ida queue_numbers;
	/** @pages_lock: guards @pages */
	spinlock_t pages_lock;
	/** @pages: doorbell pages that are given out */
	DECLARE_BITMAP(pages, ORR_DB_PAGES);

	/** @queue_lock: guards @queues */
	spinlock_t queue_lock;
	/** @queues: by number; a reference each */
	struct orr_queue *queues[ORR_FW_QUEUES];
	/** @queue_count: live queues */
	atomic_t queue_count;
	/** @armed: queues for which somebody waits for an interrupt */
	DECLARE_BITMAP(armed, ORR_FW_QUEUES);

	/** @stopped: queues whose signallers are to be dropped, by @stopped_work */
	DECLARE_BITMAP(stopped, ORR_FW_QUEUES);
	/** @stopped_work: see orr_signal.c */
	struct work_struct stopped_work;
	/** @closer: semaphores in its memory that nobody is left to signal */
	struct orr_closer closer;

	/** @stats: each member has one writer, or does not matter that much */
	struct orr_stats stats;

	/** @registry_node: in the list of all cards, and all their earlier lives, orr_peer.c */
	struct list_head registry_node;
	/** @registered: others may use it; orr_registry_lock */
	bool registered;
	/** @node: its number for other cards, in this life only; constant once it is registered */
	u32 node;
	/** @used_links: by port; orr_routes_lock */
	struct orr_used_link used_links[ORR_LINK_MAX_PORTS];
	/** @switches_seen: by port, ORR_SWITCHES_VERSION of what is known; orr_routes_lock */
	u32 switches_seen[ORR_LINK_MAX_PORTS];
	/** @owed_route: nothing more is written before it is taken; orr_routes_lock */
	struct orr_owed_route owed_route;
	/** @drain_lock: guards @drains and @link_resets; nobody waits for a card in it */
	struct mutex drain_lock;
	/** @drains: by port, commands written since the card's reset */
	u32 drains[ORR_LINK_MAX_PORTS];
	/** @note_lock: guards the registers of notes that are sent, and @notes_sent */
	struct mutex note_lock;
	/** @notes_sent: since the card's reset */
	u32 notes_sent;
	/** @fabric: what is shared with other machines */
	struct orr_fabric fabric;
	/** @barriers: of several cards, of which this is one */
	struct orr_barriers barriers;
	/** @multicasts: to other cards */
	struct orr_multicasts multicasts;
	/** @sink: its trace sink */
	struct orr_sink sink;
	/** @link_resets: likewise those that reset a link */
	u32 link_resets[ORR_LINK_MAX_PORTS];
	/** @key_lock: guards the registers of keys; nobody waits for a card in it */
	struct mutex key_lock;
	/** @keys_set: how many have been written since the card's reset; @key_lock */
	u32 keys_set;
	/** @keys_seen: so many were in effect when somebody looked */
	u32 keys_seen;
	/** @grant_lock: guards the grant registers, @grants and @grant_commands; waits for the card */
	struct mutex grant_lock;
	/** @holders_lock: guards besides who holds which of @grants, and how often */
	spinlock_t holders_lock;
	/** @grants: by slot, the same on all link ports */
	struct orr_grant grants[ORR_LINK_GRANT_SLOTS];
	/** @grant_commands: written since the card's reset */
	u32 grant_commands;
	/** @links_kobj: links/ in sysfs */
	struct kobject *links_kobj;
	/** @links: ports; those below info.link_ports exist, as long as this struct */
	struct orr_link_port *links[ORR_LINK_MAX_PORTS];
};

static inline struct orr_device *to_orr_device(struct drm_device *drm)
{
	return container_of(drm, struct orr_device, drm);
}

/* Whether the firmware knows what its ABI's minor version 1 added. */
static inline bool orr_fw_schedules(struct orr_device *odev)
{
	return (odev->info.fw_abi & 0xffff) >= 1;
}

/* The same of minor version 2. */
static inline bool orr_fw_publishes_usage(struct orr_device *odev)
{
	return (odev->info.fw_abi & 0xffff) >= 2;
}

/* Since the same it shares the card out by users and processes. */
static inline bool orr_fw_has_tenants(struct orr_device *odev)
{
	return (odev->info.fw_abi & 0xffff) >= 2;
}

/* Whether the firmware knows semaphores that fail: minor version 2. */
static inline bool orr_fw_fails(struct orr_device *odev)
{
	return (odev->info.fw_abi & 0xffff) >= 2;
}

static inline bool orr_is_lost(const struct orr_device *odev)
{
	return test_bit(0, &odev->lost);
}

/**
 * orr_left_after_look - what is left of a limit that passes in looks, and not in time
 * @left: what was left, in jiffies
 * @looked: the last look, in jiffies; filled in with this one
 * @most: a look takes no more of it, however long: of a machine or a card that stands there are none
 *
 * Return: what is left.
 */
static inline unsigned long orr_left_after_look(unsigned long left, unsigned long *looked,
						unsigned long most)
{
	unsigned long took = jiffies - *looked;

	*looked += took;
	return left - min3(left, took, most);
}

/**
 * orr_enter - begin to use the hardware
 * @odev: the card
 * @idx: for orr_exit()
 *
 * Return: 0, or -ENODEV if the card is gone or lost, and then there is nothing to exit.
 */
static inline int __must_check orr_enter(struct orr_device *odev, int *idx)
{
	*idx = srcu_read_lock(&odev->users);
	if (!orr_is_lost(odev))
		return 0;
	srcu_read_unlock(&odev->users, *idx);
	return -ENODEV;
}

static inline void orr_exit(struct orr_device *odev, int idx)
{
	srcu_read_unlock(&odev->users, idx);
}

/* orr_hw.c: registers. Inside orr_enter() or during probe and removal. */
static inline u32 orr_read32(struct orr_device *odev, u32 reg)
{
	return readl(odev->regs + reg);
}

static inline u64 orr_read64(struct orr_device *odev, u32 reg)
{
	return readq(odev->regs + reg);
}

static inline void orr_write32(struct orr_device *odev, u32 reg, u32 value)
{
	writel(value, odev->regs + reg);
}

static inline void orr_write64(struct orr_device *odev, u32 reg, u64 value)
{
	writeq(value, odev->regs + reg);
}

int orr_hw_map(struct orr_device *odev);
int orr_hw_identify(struct orr_device *odev);
int orr_hw_reset(struct orr_device *odev);
bool orr_hw_answers(struct orr_device *odev, bool ones);
void orr_text_sanitise(char *text);

/* A look at a port, inside orr_enter(). Return: whether it is worth anything; if not, the card is lost. */
static inline bool orr_link_look(struct orr_device *odev, u32 port, struct orr_link_look *look)
{
	u32 link = ORR_R_LINK(port);

	look->state = orr_read32(odev, link + ORR_R_LINK_STATE);
	look->losses = orr_read32(odev, link + ORR_R_LINK_LOSSES);
	look->control = orr_read32(odev, link + ORR_R_LINK_CONTROL);
	look->reach = 0;
	return (look->state != U32_MAX && look->losses != U32_MAX) || orr_hw_answers(odev, true);
}

/* Drivers of cards behind switches can, too: since 2.11. */
static inline bool orr_has_far_notes(const struct orr_device *odev)
{
	return (odev->info.hw_version & 0xffff) >= 11;
}

/* Of a file of bytes in sysfs. */
#ifdef ORR_HAVE_CONST_BIN_ATTRIBUTE
#define ORR_BIN_CONST const
#else
#define ORR_BIN_CONST
#endif

/* Drivers at both ends of a link can send each other notes. */
static inline bool orr_has_notes(const struct orr_device *odev)
{
	return (odev->info.hw_version & 0xffff) >= 2;
}

/* As many slots as this driver counts on. */
static inline bool orr_has_barriers(const struct orr_device *odev)
{
	u32 unit = odev->info.barriers;

	return (unit & 0xffff) >= ORR_BARRIER_SLOTS && unit >> 16 >= ORR_BARRIER_MEMBERS;
}

/* Likewise. */
static inline bool orr_has_multicasts(const struct orr_device *odev)
{
	u32 unit = odev->info.multicasts;

	return (unit & 0xffff) >= ORR_MULTICASTS && unit >> 16 >= ORR_MULTICAST_MEMBERS;
}

/* And a switch combines what members of one are read: since 2.6. */
static inline bool orr_has_multicast_reads(const struct orr_device *odev)
{
	return orr_has_multicasts(odev) && (odev->info.hw_version & 0xffff) >= 6;
}

/* Whether the card says what its ports do, and counts by them: since 2.1. */
static inline bool orr_link_counts(const struct orr_device *odev)
{
	return (odev->info.hw_version & 0xffff) >= 1;
}

/* Whether it tells all counters as of one moment. */
static inline bool orr_has_snapshots(const struct orr_device *odev)
{
	return (odev->info.hw_version & 0xffff) >= 8;
}

/* Whether its trace sink says what each job did. */
static inline bool orr_counts_jobs(const struct orr_device *odev)
{
	return odev->info.sink_bytes && (odev->info.hw_version & 0xffff) >= 10;
}

/* And where vector cores are. */
static inline bool orr_says_pcs(const struct orr_device *odev)
{
	return odev->info.sink_bytes && (odev->info.hw_version & 0xffff) >= 12;
}

/* Whether cards read each other, as grants say: hardware 2.2. */
static inline bool orr_link_reads(const struct orr_device *odev)
{
	return (odev->info.hw_version & 0xffff) >= 2;
}

/* Whether its requests carry keys, and others' have to: hardware 2.14. */
static inline bool orr_link_keys(const struct orr_device *odev)
{
	return (odev->info.hw_version & 0xffff) >= 14;
}

/* ORR_R_LINK_SWITCH of a port; 0: no switch is there. */
static inline u32 orr_link_switch(struct orr_device *odev, u32 port)
{
	u32 kind = 0;

	if ((odev->info.hw_version & 0xffff) >= 2)
		kind = orr_read32(odev, ORR_R_LINK(port) + ORR_R_LINK_SWITCH);
	return kind == U32_MAX ? 0 : kind;
}

/* Whether there is a switch at the other end. */
static inline bool orr_link_to_switch(struct orr_device *odev, u32 port)
{
	return orr_link_switch(odev, port) & ORR_LINK_IS_SWITCH;
}

/* Whether the card resets a link when it is told to: since 2.2. */
static inline bool orr_link_resets(const struct orr_device *odev)
{
	return (odev->info.hw_version & 0xffff) >= 2;
}

/* Whether a port to a switch is drained without waiting for who takes nothing: since 2.6. */
static inline bool orr_link_drains_forced(const struct orr_device *odev)
{
	return (odev->info.hw_version & 0xffff) >= 6;
}

/* In Gbit/s, by the lanes in use to send; of all lanes, if it is not up or does not say. */
static inline u32 orr_link_gbps(struct orr_device *odev, u32 port)
{
	u32 mbps = 0;

	if (orr_link_counts(odev))
		mbps = orr_read32(odev, ORR_R_LINK(port) + ORR_R_LINK_MBPS);
	if (!mbps || mbps == U32_MAX)
		return orr_read32(odev, ORR_R_LINK(port) + ORR_R_LINK_GBPS);
	return max(mbps / 1000, 1u);
}

static inline bool orr_link_is_up(const struct orr_link_look *look)
{
	return look->state == ORR_LINK_UP || look->state == ORR_LINK_DEGRADED;
}

/* orr_boot.c */
extern unsigned int orr_boot_timeout_ms;
int orr_boot(struct orr_device *odev);
int orr_boot_again(struct orr_device *odev);

/* orr_irq.c */
int orr_irq_init(struct orr_device *odev);
void orr_irq_fini(struct orr_device *odev);

/* orr_debugfs.c */
void orr_debugfs_init(struct orr_device *odev);

/* orr_health.c */
#define ORR_LOST_GONE "it reads as all-ones: removed, or its process has ended"

bool orr_links_look(struct orr_device *odev, struct orr_link_look looks[]);
int orr_health_init(struct orr_device *odev);
void orr_health_enable(struct orr_device *odev);
void orr_health_fini(struct orr_device *odev);
void orr_health_start(struct orr_device *odev);
void orr_health_kick(struct orr_device *odev);
void orr_links_count(struct orr_device *odev, bool tell);
void orr_health_link_kick(struct orr_device *odev, bool now);
bool orr_health_gone(struct orr_device *odev);
void orr_device_lost(struct orr_device *odev, const char *reason);
void orr_device_quiesced(struct orr_device *odev);

/* orr_shmem.c */
int orr_shmem_init(struct orr_device *odev);

/* orr_vram.c */
int orr_vram_init(struct orr_device *odev);
void orr_vram_reserve_save_areas(struct orr_device *odev);
u64 orr_vram_size(struct orr_device *odev);
int orr_vram_alloc(struct orr_device *odev, struct drm_mm_node *node, u64 size, u64 align,
		   enum drm_mm_insert_mode mode);
void orr_vram_free(struct orr_device *odev, struct drm_mm_node *node);
int orr_vram_clear(struct orr_device *odev, const struct drm_mm_node *node);
u64 orr_vram_used(struct orr_device *odev);

/* orr_doorbell.c */
int orr_doorbell_page_get(struct orr_device *odev);
void orr_doorbell_page_put(struct orr_device *odev, unsigned int page);

/* orr_sku.c */
extern const struct attribute_group orr_sku_group;

/* orr_route_sysfs.c */
extern const struct attribute_group orr_route_group;

/* orr_sysfs.c */
extern const struct attribute_group *orr_sysfs_groups[];
void orr_sysfs_init(void);

/* orr_link_sysfs.c */
int orr_sysfs_links_add(struct orr_device *odev);
void orr_sysfs_links_remove(struct orr_device *odev);
void orr_sysfs_links_notify(struct orr_device *odev, unsigned long ports);

#endif /* _ORR_DEVICE_H_ */
