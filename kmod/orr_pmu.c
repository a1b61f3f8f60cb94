// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of cards as PMUs of perf: orrery_N for the card with /dev/accel/accelN.
 *
 * They count for the whole card, whoever uses it, so events are of a CPU and not of a process, and perf's
 * own rules say who may have some. Counters have 64 bits and no interrupts: there is no sampling, and
 * nothing to do between two reads. What perf reads, starts or stops together is of one moment.
 *
 * An event outlives its card, and perf looks at a PMU until its last event is gone, later than it tells
 * anybody. So a PMU stays until the module goes, which waits for all events; without a card its events stand
 * still, and the next card of that number takes it over.
 */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include <drm/drm_file.h>

#include <orrery/hw/counters.h>

#include "orr_device.h"
#include "orr_pmu.h"

/**
 * struct orr_pmu - the PMU of a card
 */
struct orr_pmu {
	/** @base: perf's */
	struct pmu base;
	/** @name: of it */
	char name[24];
	/** @link: in orr_pmus */
	struct list_head link;
	/** @cpu_node: for changes of @cpu */
	struct hlist_node cpu_node;
	/** @cpu: that has all events */
	unsigned int cpu;
	/** @odev: the card, or NULL */
	struct orr_device __rcu *odev;
	/** @cards: that have had it so far; changes while @odev is NULL only */
	unsigned long cards;
	/**
	 * @together: brackets that are open: what is in them reads one snapshot. This and what is behind it
	 * belong to @cpu, with interrupts off.
	 */
	unsigned int together;
	/** @taken: it has been asked for since the first was opened */
	bool taken;
	/** @known: how many of @values the card told, 0: none */
	u32 known;
	/** @of: the card that told them, as @cards */
	unsigned long of;
	/** @values: of the last snapshot */
	u64 values[ORR_COUNTERS_MAX];
};

/* Guards orr_pmus, and who has which. */
static DEFINE_MUTEX(orr_pmus_lock);
static LIST_HEAD(orr_pmus);
static enum cpuhp_state orr_pmu_cpus;

static struct orr_pmu *to_orr_pmu(struct pmu *pmu)
{
	return container_of(pmu, struct orr_pmu, base);
}

static struct orr_pmu *orr_pmu_of_dev(struct device *dev)
{
	return to_orr_pmu(dev_get_drvdata(dev));
}

/*
 * --- events ---
 */

static void orr_pmu_take(struct orr_pmu *pmu)
{
	struct orr_device *odev;
	int idx;

	pmu->known = 0;
	guard(rcu)();
	odev = rcu_dereference(pmu->odev);
	if (!odev || orr_enter(odev, &idx))
		return;
	if (!orr_counters_read_atomic(odev, 0, odev->info.counters, pmu->values)) {
		pmu->known = odev->info.counters;
		pmu->of = pmu->cards;
	}
	orr_exit(odev, idx);
}

/* Return: false: nobody can say. */
static bool orr_pmu_look(struct orr_pmu *pmu, u32 number, u64 *value, unsigned long *card)
{
	if (!pmu->together || !pmu->taken)
		orr_pmu_take(pmu);
	pmu->taken = true;
	if (number >= pmu->known)
		return false;
	*value = pmu->values[number];
	*card = pmu->of;
	return true;
}

/*
 * perf brackets what belongs together: groups that are read, and all that starts or stops. It does so on each
 * CPU, with interrupts off; our events are on one.
 */
static void orr_pmu_open(struct pmu *base)
{
	struct orr_pmu *pmu = to_orr_pmu(base);

	if (smp_processor_id() == READ_ONCE(pmu->cpu) && !pmu->together++)
		pmu->taken = false;
}

static void orr_pmu_close(struct pmu *base)
{
	struct orr_pmu *pmu = to_orr_pmu(base);

	if (smp_processor_id() == READ_ONCE(pmu->cpu) && pmu->together)
		pmu->together--;
}

static void orr_pmu_start_txn(struct pmu *base, unsigned int flags)
{
	orr_pmu_open(base);
}

static int orr_pmu_commit_txn(struct pmu *base)
{
	orr_pmu_close(base);
	return 0;
}

/* Called by perf with interrupts off, and by nobody else at the same time. */
static void orr_pmu_read(struct perf_event *event)
{
	struct hw_perf_event *hwc = &event->hw;
	u64 value, before = local64_read(&hwc->prev_count);
	unsigned long card;

	if (!orr_pmu_look(to_orr_pmu(event->pmu), event->attr.config, &value, &card))
		return;
	local64_set(&hwc->prev_count, value);
	/* What another card has counted, or this one before it was switched off, says nothing. */
	if (card == hwc->event_base && value >= before)
		local64_add(value - before, &event->count);
	hwc->event_base = card;
}

static void orr_pmu_start(struct perf_event *event, int flags)
{
	struct hw_perf_event *hwc = &event->hw;
	unsigned long card = 0;
	u64 value = 0;

	/* Without an answer it begins with the first read that gets one. */
	orr_pmu_look(to_orr_pmu(event->pmu), event->attr.config, &value, &card);
	local64_set(&hwc->prev_count, value);
	hwc->event_base = card;
	hwc->state = 0;
}

static void orr_pmu_stop(struct perf_event *event, int flags)
{
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	if (flags & PERF_EF_UPDATE)
		orr_pmu_read(event);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int orr_pmu_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		orr_pmu_start(event, flags);
	return 0;
}

static void orr_pmu_del(struct perf_event *event, int flags)
{
	orr_pmu_stop(event, PERF_EF_UPDATE);
}

static int orr_pmu_event_init(struct perf_event *event)
{
	struct orr_pmu *pmu = to_orr_pmu(event->pmu);
	const struct orr_device *odev;

	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (is_sampling_event(event) || event->cpu < 0 || event->attr.config1 ||
	    event->attr.config2)
		return -EINVAL;
	guard(rcu)();
	odev = rcu_dereference(pmu->odev);
	if (!odev)
		return -ENODEV;
	if (event->attr.config >= odev->info.counters)
		return -EINVAL;
	event->cpu = READ_ONCE(pmu->cpu);
	return 0;
}

/*
 * --- what perf reads in /sys/bus/event_source/devices ---
 */

/**
 * struct orr_pmu_attribute - a file of an event
 */
struct orr_pmu_attribute {
	/** @attr: base */
	struct device_attribute attr;
	/** @number: ORR_CTR_* */
	u32 number;
	/** @name: of the file */
	const char *name;
	/** @unit: of what it counts; NULL: the file says how it is asked for */
	const char *unit;
};

static ssize_t orr_pmu_event_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct orr_pmu_attribute *event =
		container_of(attr, struct orr_pmu_attribute, attr);

	if (event->unit)
		return sysfs_emit(buf, "%s\n", event->unit);
	return sysfs_emit(buf, "event=0x%02x\n", event->number);
}

#define ORR_PMU_EVENT(number_, NAME, name_, ...) \
	[ORR_CTR_##NAME] = { .number = (number_), .name = (name_) },
#define ORR_PMU_UNIT(number_, NAME, name_, unit_, ...) \
	[ORR_CTR_##NAME] = { .number = (number_), .name = name_ ".unit", .unit = (unit_) },

static struct orr_pmu_attribute orr_pmu_files[2][ORR_COUNTER_COUNT] = {
	{ ORR_COUNTER_LIST(ORR_PMU_EVENT) },
	{ ORR_COUNTER_LIST(ORR_PMU_UNIT) },
};

static struct attribute *orr_pmu_event_attrs[2 * ORR_COUNTER_COUNT + 1];

/* A card may have fewer counters than this driver knows. */
static umode_t orr_pmu_event_is_visible(struct kobject *kobj, struct attribute *attr, int index)
{
	const struct orr_pmu_attribute *event =
		container_of(attr, struct orr_pmu_attribute, attr.attr);
	const struct orr_device *odev;

	guard(rcu)();
	odev = rcu_dereference(orr_pmu_of_dev(kobj_to_dev(kobj))->odev);
	return odev && event->number < odev->info.counters ? attr->mode : 0;
}

static const struct attribute_group orr_pmu_event_group = {
	.name = "events",
	.attrs = orr_pmu_event_attrs,
	.is_visible = orr_pmu_event_is_visible,
};

PMU_FORMAT_ATTR(event, "config:0-7");

static struct attribute *orr_pmu_format_attrs[] = {
	&format_attr_event.attr,
	NULL,
};

static const struct attribute_group orr_pmu_format_group = {
	.name = "format",
	.attrs = orr_pmu_format_attrs,
};

static ssize_t cpumask_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(orr_pmu_of_dev(dev)->cpu));
}
static DEVICE_ATTR_RO(cpumask);

static struct attribute *orr_pmu_attrs[] = {
	&dev_attr_cpumask.attr,
	NULL,
};

static const struct attribute_group orr_pmu_group = {
	.attrs = orr_pmu_attrs,
};

static const struct attribute_group *orr_pmu_groups[] = {
	&orr_pmu_event_group,
	&orr_pmu_format_group,
	&orr_pmu_group,
	NULL,
};

/*
 * --- cards and CPUs ---
 */

/* The CPU goes: another has the events from now on. */
static int orr_pmu_cpu_offline(unsigned int cpu, struct hlist_node *node)
{
	struct orr_pmu *pmu = hlist_entry_safe(node, struct orr_pmu, cpu_node);
	unsigned int other;

	if (cpu != pmu->cpu)
		return 0;
	other = cpumask_any_but(cpu_online_mask, cpu);
	if (other >= nr_cpu_ids)
		return 0;
	WRITE_ONCE(pmu->cpu, other);
	perf_pmu_migrate_context(&pmu->base, cpu, other);
	return 0;
}

static struct orr_pmu *orr_pmu_find(const char *name)
{
	struct orr_pmu *pmu;

	lockdep_assert_held(&orr_pmus_lock);
	list_for_each_entry(pmu, &orr_pmus, link)
		if (!strcmp(pmu->name, name))
			return pmu;
	return NULL;
}

static int orr_pmu_make(const char *name, struct orr_device *odev)
{
	struct orr_pmu *pmu __free(kfree) = kzalloc(sizeof(*pmu), GFP_KERNEL);
	int ret;

	lockdep_assert_held(&orr_pmus_lock);
	if (!pmu)
		return -ENOMEM;
	strscpy(pmu->name, name, sizeof(pmu->name));
	pmu->cpu = raw_smp_processor_id();
	pmu->cards = 1;
	/* Which events there are is decided when it is registered. */
	RCU_INIT_POINTER(pmu->odev, odev);
	pmu->base = (struct pmu){
		.module = THIS_MODULE,
		.task_ctx_nr = perf_invalid_context,
		.capabilities = PERF_PMU_CAP_NO_EXCLUDE | PERF_PMU_CAP_NO_INTERRUPT,
		.attr_groups = orr_pmu_groups,
		.pmu_enable = orr_pmu_close,
		.pmu_disable = orr_pmu_open,
		.start_txn = orr_pmu_start_txn,
		.commit_txn = orr_pmu_commit_txn,
		.cancel_txn = orr_pmu_close,
		.event_init = orr_pmu_event_init,
		.add = orr_pmu_add,
		.del = orr_pmu_del,
		.start = orr_pmu_start,
		.stop = orr_pmu_stop,
		.read = orr_pmu_read,
	};
	ret = perf_pmu_register(&pmu->base, pmu->name, -1);
	if (ret)
		return ret;
	ret = cpuhp_state_add_instance(orr_pmu_cpus, &pmu->cpu_node);
	if (ret) {
		perf_pmu_unregister(&pmu->base);
		return ret;
	}
	/* It may have gone before we were told of CPUs that go. */
	scoped_guard(cpus_read_lock)
		if (!cpu_online(pmu->cpu))
			WRITE_ONCE(pmu->cpu, raw_smp_processor_id());
	list_add(&no_free_ptr(pmu)->link, &orr_pmus);
	return 0;
}

/**
 * orr_pmu_attach - the card can be counted
 * @odev: the card, which is registered
 *
 * It works without, too.
 */
void orr_pmu_attach(struct orr_device *odev)
{
	struct orr_pmu *pmu;
	char name[24];
	int ret = 0;

	snprintf(name, sizeof(name), "orrery_%d", odev->drm.accel->index);
	guard(mutex)(&orr_pmus_lock);
	pmu = orr_pmu_find(name);
	if (pmu) {
		pmu->cards++;
		rcu_assign_pointer(pmu->odev, odev);
	} else {
		ret = orr_pmu_make(name, odev);
	}
	if (ret)
		drm_warn(&odev->drm, "perf cannot count what it does (error %d)\n", ret);
}

/**
 * orr_pmu_detach - the card goes
 * @odev: the card
 */
void orr_pmu_detach(struct orr_device *odev)
{
	struct orr_pmu *pmu;

	scoped_guard(mutex, &orr_pmus_lock)
		list_for_each_entry(pmu, &orr_pmus, link)
			if (rcu_access_pointer(pmu->odev) == odev)
				RCU_INIT_POINTER(pmu->odev, NULL);
	/* Nobody reads there any more. */
	synchronize_rcu();
}

/**
 * orr_pmu_init - prepare, before any card
 *
 * Return: 0 or a negative error.
 */
int __init orr_pmu_init(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < 2 * ORR_COUNTER_COUNT; i++) {
		struct orr_pmu_attribute *file =
			&orr_pmu_files[i / ORR_COUNTER_COUNT][i % ORR_COUNTER_COUNT];

		sysfs_attr_init(&file->attr.attr);
		file->attr.attr.name = file->name;
		file->attr.attr.mode = 0444;
		file->attr.show = orr_pmu_event_show;
		orr_pmu_event_attrs[i] = &file->attr.attr;
	}
	ret = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "perf/orrery:online", NULL,
				      orr_pmu_cpu_offline);
	if (ret < 0)
		return ret;
	orr_pmu_cpus = ret;
	return 0;
}

/**
 * orr_pmu_exit - the module goes: there are no events any more
 */
void orr_pmu_exit(void)
{
	struct orr_pmu *pmu, *next;

	list_for_each_entry_safe(pmu, next, &orr_pmus, link) {
		cpuhp_state_remove_instance_nocalls(orr_pmu_cpus, &pmu->cpu_node);
		perf_pmu_unregister(&pmu->base);
		kfree(pmu);
	}
	cpuhp_remove_multi_state(orr_pmu_cpus);
}
