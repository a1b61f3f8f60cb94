// SPDX-License-Identifier: GPL-2.0
/*
 * Barriers of several cards, in their barrier units. A card's part is a BO of one page: whoever maps it has
 * queues that arrive by signalling it, and when nobody has it any more the part ends, and the barrier fails
 * for all others. Its release is a semaphore in memory that the maker named, which is kept until then.
 *
 * Slots are few, so a user gets three quarters of a card's at most.
 *
 * Words of failure say what happened and at which card. What comes first of several causes is for the cards
 * to say.
 */
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <drm/drm_managed.h>
#include <drm/drm_prime.h>

#include <orrery/fw/failure.h>

#include "orr_barrier.h"
#include "orr_bo.h"
#include "orr_device.h"
#include "orr_ioctl.h"
#include "orr_route.h"

#define ORR_BARRIER_TIMEOUT_US (5 * USEC_PER_SEC)
#define ORR_BARRIERS_OF_USER (ORR_BARRIER_SLOTS / 4 * 3)

/* Guards orr_bo.releases of all BOs. */
static DEFINE_SPINLOCK(orr_releases_lock);

static_assert(ORR_BARRIER_MEMBERS == ORR_BARRIER_MEMBERS_MAX);
static_assert(sizeof(struct drm_orr_barrier_member) == 16);
static_assert(sizeof(struct drm_orr_barrier_create) == 16);

/* Not of a queue. */
static u64 orr_barrier_word(const struct orr_device *odev, u32 code)
{
	return ORR_FAILURE_WORD(code, odev->info.uid, ORR_FAILURE_NO_QUEUE, 0);
}

/* Inside orr_enter(). Return: ORR_FAULT_*, or -ENODEV: the card does not do it, and is lost. */
static int orr_barrier_command(struct orr_device *odev, u32 command)
{
	int ret;

	lockdep_assert_held(&odev->barriers.lock);
	orr_write32(odev, ORR_R_BARRIER_CMD, command);
	ret = orr_await_or_lose(odev, ORR_R_BARRIER_DONE, ++odev->barriers.commands,
				ORR_BARRIER_TIMEOUT_US, orr_restart_held_ms(odev),
				"its barrier unit does not carry out commands");
	if (ret == -EBUSY)
		orr_device_lost(odev, "a debugger has held some card for longer than held_timeout_ms");
	return ret ? -ENODEV : orr_read32(odev, ORR_R_BARRIER_FAULT) & 0xffff;
}

/*
 * --- the end ---
 */

/* What a card that is lost had is no matter any more. */
static void orr_barrier_clear(struct orr_device *odev, const struct orr_barrier_end *end)
{
	int idx;

	guard(mutex)(&odev->barriers.lock);
	if (!orr_enter(odev, &idx)) {
		orr_write64(odev, ORR_R_BARRIER_WORD,
			    end->made ? orr_barrier_word(odev, ORR_QERR_ABANDONED) : 0);
		orr_barrier_command(odev, end->slot | ORR_BARRIER_CLEAR);
		orr_exit(odev, idx);
	}
	memset(&odev->barriers.slots[end->slot], 0, sizeof(odev->barriers.slots[end->slot]));
}

static void orr_barrier_end_free(struct orr_barrier_end *end)
{
	if (end->release) {
		scoped_guard(spinlock, &orr_releases_lock)
			list_del(&end->of_release);
		drm_gem_object_put(&end->release->base);
	}
	kfree(end);
}

/**
 * orr_barrier_of_release - which barrier raises a semaphore?
 * @bo: that has it
 * @offset: of it
 *
 * Return: the barrier's key, 0: none does.
 */
u64 orr_barrier_of_release(struct orr_bo *bo, u64 offset)
{
	const struct orr_barrier_end *end;

	guard(spinlock)(&orr_releases_lock);
	list_for_each_entry(end, &bo->releases, of_release)
		if (end->offset == offset && end->key)
			return end->key;
	return 0;
}

static void orr_barrier_work(struct work_struct *work)
{
	struct orr_device *odev = container_of(work, struct orr_device, barriers.work);
	struct orr_barrier_end *end, *next;
	LIST_HEAD(ended);

	scoped_guard(spinlock, &odev->barriers.ended_lock)
		list_splice_init(&odev->barriers.ended, &ended);
	list_for_each_entry_safe(end, next, &ended, link) {
		orr_barrier_clear(odev, end);
		orr_barrier_end_free(end);
		scoped_guard(spinlock, &odev->barriers.ended_lock)
			odev->barriers.cleared_count++;
		wake_up_all(&odev->barriers.cleared);
	}
}

static bool orr_barrier_are_cleared(struct orr_device *odev, u32 ended)
{
	guard(spinlock)(&odev->barriers.ended_lock);
	return (s32)(odev->barriers.cleared_count - ended) >= 0;
}

/* Those that have ended by now; a card that a debugger holds takes its time. Return: 0, -ERESTARTSYS. */
static int orr_barrier_wait_cleared(struct orr_device *odev)
{
	u32 ended;

	scoped_guard(spinlock, &odev->barriers.ended_lock)
		ended = odev->barriers.ended_count;
	return wait_event_interruptible(odev->barriers.cleared, orr_barrier_are_cleared(odev, ended));
}

/**
 * orr_barrier_forget - the BO of a card's part is gone
 * @odev: the card
 * @end: that part
 *
 * Who frees must not wait for a card, so a work does. An unbind waits for it. It is on no queue of the
 * card's: it waits for memory, and for cards that a debugger holds, for which fences must not wait.
 */
void orr_barrier_forget(struct orr_device *odev, struct orr_barrier_end *end)
{
	int idx;

	if (orr_enter(odev, &idx)) {
		orr_barrier_end_free(end);
		return;
	}
	scoped_guard(spinlock, &odev->barriers.ended_lock) {
		list_add_tail(&end->link, &odev->barriers.ended);
		odev->barriers.ended_count++;
	}
	queue_work(system_long_wq, &odev->barriers.work);
	orr_exit(odev, idx);
}

/*
 * --- the beginning ---
 */

/* A member, while the barrier is made. */
struct orr_barrier_seat {
	struct dma_buf *memory;
	struct orr_device *odev;
	struct orr_barrier_end *end;
	struct dma_buf *page;
	int fd;
};

struct orr_barrier_table {
	unsigned int count;
	/* Of the ways between two seats, as they were before the first was armed. */
	u32 versions[ORR_BARRIER_MEMBERS][ORR_BARRIER_MEMBERS];
	struct orr_barrier_seat seat[ORR_BARRIER_MEMBERS];
};

static int orr_barrier_take_slot_locked(struct orr_device *odev, u32 *slot)
{
	unsigned int i, own = 0, free = ORR_BARRIER_SLOTS;
	u64 states;
	int idx, ret;

	lockdep_assert_held(&odev->barriers.lock);
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	states = orr_read64(odev, ORR_R_BARRIER_STATES);
	orr_exit(odev, idx);
	for (i = 0; i < ORR_BARRIER_SLOTS; i++) {
		const struct orr_barrier_slot *one = &odev->barriers.slots[i];

		own += one->taken && uid_eq(one->uid, current_euid());
		/* One that was cleared may still have something to say. */
		if (!one->taken && (states >> (4 * i) & 0xf) == ORR_BARRIER_FREE &&
		    free == ORR_BARRIER_SLOTS)
			free = i;
	}
	if (own >= ORR_BARRIERS_OF_USER)
		return -EDQUOT;
	if (free == ORR_BARRIER_SLOTS)
		return -EBUSY;
	odev->barriers.slots[free].taken = true;
	odev->barriers.slots[free].uid = current_euid();
	*slot = free;
	return 0;
}

/* Return: 0, -EBUSY: all slots are taken, -EDQUOT: the user has too many, -ENODEV, -ERESTARTSYS. */
static int orr_barrier_take_slot(struct orr_device *odev, u32 *slot)
{
	int ret;

	if (mutex_lock_interruptible(&odev->barriers.lock))
		return -ERESTARTSYS;
	ret = orr_barrier_take_slot_locked(odev, slot);
	mutex_unlock(&odev->barriers.lock);
	return ret;
}

/* The BO of a member's part; from now on its end clears the slot. */
static struct orr_bo *orr_barrier_bo(struct orr_barrier_seat *seat, u64 offset)
{
	struct orr_device *odev = seat->odev;
	struct orr_barrier_end *end __free(kfree) = kzalloc(sizeof(*end), GFP_KERNEL_ACCOUNT);
	struct orr_bo *bo;
	int ret;

	if (!end)
		return ERR_PTR(-ENOMEM);
	bo = orr_bo_alloc(odev, ORR_BO_KIND_BARRIER);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	drm_gem_private_object_init(&odev->drm, &bo->base, PAGE_SIZE);
	ret = orr_barrier_take_slot(odev, &end->slot);
	/* Those that have just ended are not to count. */
	if (ret == -EBUSY || ret == -EDQUOT)
		ret = orr_barrier_wait_cleared(odev) ?: orr_barrier_take_slot(odev, &end->slot);
	if (ret) {
		drm_gem_object_put(&bo->base);
		return ERR_PTR(ret);
	}
	end->release = to_orr_bo(seat->memory->priv);
	end->offset = offset;
	drm_gem_object_get(&end->release->base);
	scoped_guard(spinlock, &orr_releases_lock)
		list_add(&end->of_release, &end->release->releases);
	seat->end = end;
	bo->barrier = no_free_ptr(end);
	return bo;
}

/* Return: 0, -EINVAL: that is no place for a semaphore on a card, or on one that is a member already. */
static int orr_barrier_seat_init(struct orr_barrier_table *table,
				 const struct drm_orr_barrier_member *member)
{
	struct orr_barrier_seat *seat = &table->seat[table->count];
	struct orr_bo *bo, *release;
	unsigned int i;

	if (member->page)
		return -EINVAL;
	seat->fd = -1;
	seat->memory = dma_buf_get(member->memory);
	if (IS_ERR(seat->memory)) {
		int ret = PTR_ERR(seat->memory);

		seat->memory = NULL;
		return ret;
	}
	table->count++;
	release = orr_bo_of_dma_buf(seat->memory);
	if (!release || release->kind != ORR_BO_KIND_VRAM ||
	    !IS_ALIGNED(member->offset, sizeof(struct orr_semaphore)) ||
	    member->offset >= release->base.size)
		return -EINVAL;
	seat->odev = orr_bo_device(release);
	if (!orr_has_barriers(seat->odev))
		return -EOPNOTSUPP;
	for (i = 0; i + 1 < table->count; i++)
		if (table->seat[i].odev == seat->odev)
			return -EINVAL;
	bo = orr_barrier_bo(seat, member->offset);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	/* It has the BO. */
	seat->page = orr_bo_export(&bo->base, O_CLOEXEC | O_RDWR);
	drm_gem_object_put(&bo->base);
	if (IS_ERR(seat->page)) {
		int ret = PTR_ERR(seat->page);

		seat->page = NULL;
		seat->end = NULL;
		return ret;
	}
	return 0;
}

/* Ends with the last reference to each page. */
static void orr_barrier_table_free(struct orr_barrier_table *table)
{
	unsigned int i;

	if (!table)
		return;
	for (i = 0; i < table->count; i++) {
		if (table->seat[i].fd >= 0)
			put_unused_fd(table->seat[i].fd);
		if (table->seat[i].page)
			dma_buf_put(table->seat[i].page);
		dma_buf_put(table->seat[i].memory);
	}
	kfree(table);
}

DEFINE_FREE(orr_barrier_table, struct orr_barrier_table *, orr_barrier_table_free(_T))

/* All members have a way to each other. */
static int orr_barrier_join(struct orr_barrier_table *table)
{
	unsigned int i, j;
	int ret;

	for (i = 0; i < table->count; i++) {
		for (j = i + 1; j < table->count; j++) {
			struct orr_device *odev = table->seat[i].odev, *other = table->seat[j].odev;
			struct orr_way way;

			ret = orr_peer_join(odev, other);
			if (ret)
				return ret;
			if (!orr_way_get(odev->node, other->node, &way))
				return -ENODEV;
			table->versions[i][j] = way.version;
			orr_way_put(&way);
		}
	}
	return 0;
}

/*
 * All members were armed with the same ways. Who was armed after another, with a way that is newer, would
 * not hear of the other's failure.
 */
static int orr_barrier_stands(const struct orr_barrier_table *table)
{
	unsigned int i, j;
	bool up;

	for (i = 0; i < table->count; i++)
		for (j = i + 1; j < table->count; j++)
			if (orr_way_look(table->seat[i].odev, table->seat[j].odev, &up) !=
				    table->versions[i][j] ||
			    !up)
				return -EXDEV;
	return 0;
}

static int orr_barrier_fault(int fault)
{
	switch (fault) {
	case ORR_FAULT_NONE:
		return 0;
	case ORR_FAULT_NO_ROUTE:
	case ORR_FAULT_PEER_DOWN:
		return -EXDEV;
	case ORR_FAULT_PEER_BUSY:
		return -EBUSY;
	default:
		return fault < 0 ? fault : -EIO;
	}
}

/* Inside orr_enter() of the member. */
static int orr_barrier_arm_locked(const struct orr_barrier_table *table, unsigned int at, u64 key)
{
	const struct orr_barrier_seat *seat = &table->seat[at];
	struct orr_device *odev = seat->odev;
	struct orr_barrier_slot *slot = &odev->barriers.slots[seat->end->slot];
	unsigned int i, nodes = 0;
	int ret;

	for (i = 0; i < table->count; i++) {
		const struct orr_barrier_seat *other = &table->seat[i];

		if (i == at)
			continue;
		/* Each command waits for a card that a debugger holds. */
		if (fatal_signal_pending(current))
			return -EINTR;
		WRITE_ONCE(slot->nodes[nodes++], other->odev->node);
		orr_write32(odev, ORR_R_BARRIER_MEMBER,
			    other->odev->node | other->end->slot << ORR_BARRIER_SLOT_SHIFT);
		orr_write64(odev, ORR_R_BARRIER_WORD,
			    orr_barrier_word(other->odev, ORR_QERR_PEER_LOST));
		ret = orr_barrier_command(odev, seat->end->slot | ORR_BARRIER_ADD);
		if (ret)
			return ret;
	}
	orr_write64(odev, ORR_R_BARRIER_KEY, key);
	orr_write64(odev, ORR_R_BARRIER_RELEASE, seat->end->release->node.start + seat->end->offset);
	orr_write64(odev, ORR_R_BARRIER_WORD, orr_barrier_word(odev, ORR_QERR_PEER_LOST));
	ret = orr_barrier_command(odev, seat->end->slot | ORR_BARRIER_ARM);
	/* It is nobody's to read. */
	orr_write64(odev, ORR_R_BARRIER_KEY, 0);
	return ret;
}

static int orr_barrier_arm(const struct orr_barrier_table *table, unsigned int at, u64 key)
{
	struct orr_device *odev = table->seat[at].odev;
	int idx, ret;

	if (mutex_lock_interruptible(&odev->barriers.lock))
		return -ERESTARTSYS;
	ret = orr_enter(odev, &idx);
	if (!ret) {
		ret = orr_barrier_fault(orr_barrier_arm_locked(table, at, key));
		orr_exit(odev, idx);
	}
	mutex_unlock(&odev->barriers.lock);
	return ret;
}

/* For those who look for a cycle of waits. */
static void orr_barrier_name_parts(const struct orr_barrier_table *table, u64 key)
{
	unsigned int i;

	guard(spinlock)(&orr_releases_lock);
	for (i = 0; i < table->count; i++) {
		table->seat[i].end->member = i;
		table->seat[i].end->key = key;
	}
}

/**
 * orr_barrier_create_ioctl - DRM_IOCTL_ORR_BARRIER_CREATE
 * @drm: the card
 * @data: arguments
 * @drm_file: the file
 *
 * Return: 0, -EINVAL, -EBADF, -EOPNOTSUPP: a card has no barrier unit, -EBUSY: all slots of one are taken,
 * -EDQUOT: by this user, -EXDEV: two cards have no way to each other, or it was made anew meanwhile,
 * -ENODEV, -ENOMEM, -EINTR, -ERESTARTSYS, …
 */
int orr_barrier_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_barrier_table *table __free(orr_barrier_table) = NULL;
	struct drm_orr_barrier_member members[ORR_BARRIER_MEMBERS];
	struct drm_orr_barrier_create *args = data;
	unsigned int i;
	int ret = 0;

	if (args->flags || args->count < 2 || args->count > ORR_BARRIER_MEMBERS)
		return -EINVAL;
	if (copy_from_user(members, u64_to_user_ptr(args->members), args->count * sizeof(members[0])))
		return -EFAULT;
	table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);
	if (!table)
		return -ENOMEM;
	for (i = 0; i < args->count && !ret; i++)
		ret = orr_barrier_seat_init(table, &members[i]);
	ret = ret ?: orr_barrier_join(table);
	if (!ret) {
		u64 key = get_random_u64();

		orr_barrier_name_parts(table, key);
		for (i = 0; i < table->count && !ret; i++)
			ret = orr_barrier_arm(table, i, key);
		ret = ret ?: orr_barrier_stands(table);
	}
	for (i = 0; i < table->count && !ret; i++) {
		ret = get_unused_fd_flags(O_CLOEXEC);
		if (ret < 0)
			return ret;
		table->seat[i].fd = ret;
		members[i].page = ret;
		ret = 0;
	}
	if (ret)
		return ret;
	if (copy_to_user(u64_to_user_ptr(args->members), members, args->count * sizeof(members[0])))
		return -EFAULT;
	for (i = 0; i < table->count; i++)
		table->seat[i].end->made = true;
	for (i = 0; i < table->count; i++) {
		fd_install(table->seat[i].fd, table->seat[i].page->file);
		table->seat[i].fd = -1;
		table->seat[i].page = NULL;
	}
	return 0;
}

static bool orr_barrier_has(const struct orr_device *odev, u32 node)
{
	unsigned int i, j;

	for (i = 0; i < ORR_BARRIER_SLOTS; i++)
		for (j = 0; j < ORR_BARRIER_MEMBERS - 1; j++)
			if (READ_ONCE(odev->barriers.slots[i].nodes[j]) == node)
				return true;
	return false;
}

/**
 * orr_barrier_joins - are two cards in a barrier, or is one half made?
 * @odev: a card
 * @other: the other
 *
 * Return: whether they are, at about this time.
 */
bool orr_barrier_joins(const struct orr_device *odev, const struct orr_device *other)
{
	return orr_barrier_has(odev, other->node) || orr_barrier_has(other, odev->node);
}

/**
 * orr_barriers_init - prepare
 * @odev: the card
 *
 * Return: 0 or -ENOMEM.
 */
int orr_barriers_init(struct orr_device *odev)
{
	spin_lock_init(&odev->barriers.ended_lock);
	INIT_LIST_HEAD(&odev->barriers.ended);
	init_waitqueue_head(&odev->barriers.cleared);
	INIT_WORK(&odev->barriers.work, orr_barrier_work);
	return drmm_mutex_init(&odev->drm, &odev->barriers.lock);
}
