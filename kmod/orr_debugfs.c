// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs, for those who debug the firmware: queues shows all queues as the firmware sees them,
 * mappings all that is mapped and its page table entries, crash_firmware takes the number of a queue
 * that is to look guilty, or "none", inject_message a struct orr_mbox_message that the driver is to
 * believe the firmware has sent.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include <drm/drm_file.h>
#include <drm/orrery_accel.h>

#include "orr_device.h"
#include "orr_file.h"
#include "orr_queue.h"
#include "orr_vm.h"

static const char *orr_queue_state_name(u64 state)
{
	static const char * const names[] = {
		[ORR_QUEUE_IDLE] = "idle",
		[ORR_QUEUE_RUNNING] = "running",
		[ORR_QUEUE_WAITING] = "waiting",
		[ORR_QUEUE_STOPPED] = "stopped",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

static void orr_debugfs_queue(struct seq_file *m, struct orr_queue *queue)
{
	static const char * const priorities[] = { "low", "normal", "high", "realtime" };
	struct orr_device *odev = queue->odev;
	struct drm_orr_queue_stats stats = {};
	struct orr_queue_status status;
	u64 state = U64_MAX, completed;
	pid_t pid = 0;

	scoped_guard(spinlock_irqsave, &odev->queue_lock)
		if (odev->queues[queue->number] == queue)
			pid = queue->file->pid;
	orr_queue_read(queue, &status);
	orr_queue_info(queue, &state, &completed);
	orr_queue_stats(queue, &stats);
	seq_printf(m, "%5u %-23s %7d %-8s %6u %8u %-8s %10llu %5llu %14llu %14llu %8llu %8llu %14llu %14llu\n",
		   queue->number, queue->name, pid, priorities[queue->priority & 3],
		   queue->weight ?: ORR_WEIGHT_DEFAULT, queue->slice_us,
		   orr_queue_state_name(state), status.completed, status.error, stats.vector_ps,
		   stats.copy_ps, stats.jobs, stats.preemptions, stats.waited_ps,
		   stats.longest_wait_ps);
}

static int orr_debugfs_queues_show(struct seq_file *m, void *data)
{
	struct orr_device *odev = m->private;
	unsigned int number;

	seq_printf(m, "%5s %-23s %7s %-8s %6s %8s %-8s %10s %5s %14s %14s %8s %8s %14s %14s\n",
		   "queue", "name", "pid", "priority", "weight", "slice_us", "state", "completed",
		   "error", "vector_ps", "copy_ps", "jobs", "preempts", "waited_ps", "longest_ps");
	for (number = 0; number < ORR_FW_QUEUES; number++) {
		struct orr_queue *queue = orr_queue_by_number(odev, number);

		if (!queue)
			continue;
		orr_debugfs_queue(m, queue);
		orr_queue_put(queue);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(orr_debugfs_queues);

static int orr_debugfs_restarts_show(struct seq_file *m, void *data)
{
	struct orr_device *odev = m->private;

	seq_printf(m, "%u\n", READ_ONCE(odev->restart.count));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(orr_debugfs_restarts);

static int orr_debugfs_waits_show(struct seq_file *m, void *data)
{
	struct orr_device *odev = m->private;

	seq_printf(m, "late_wakeups %u\n", READ_ONCE(odev->stats.late_wakeups));
	seq_printf(m, "most_in_interrupt %u\n", READ_ONCE(odev->stats.most_in_irq));
	seq_printf(m, "commands %u\n", READ_ONCE(odev->mailbox.calls));
	seq_printf(m, "left_commands %u\n", READ_ONCE(odev->stats.left_commands));
	seq_printf(m, "late_snapshots %u\n", READ_ONCE(odev->stats.late_snapshots));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(orr_debugfs_waits);

static int orr_debugfs_records_show(struct seq_file *m, void *data)
{
	struct orr_device *odev = m->private;
	struct orr_sink *sink = &odev->sink;

	guard(mutex)(&sink->lock);
	seq_printf(m, "users %u\n", sink->users);
	seq_printf(m, "counting %u\n", sink->counting);
	seq_printf(m, "sampler_pid %d\n", sink->sampler ? sink->sampler->pid : 0);
	seq_printf(m, "pc_sampler_pid %d\n", sink->pc_sampler ? sink->pc_sampler->pid : 0);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(orr_debugfs_records);

static int orr_debugfs_mappings_show(struct seq_file *m, void *data)
{
	orr_vms_show(m->private, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(orr_debugfs_mappings);

static ssize_t orr_debugfs_crash_write(struct file *file, const char __user *user, size_t bytes,
				       loff_t *offset)
{
	struct orr_device *odev = file->private_data;
	char text[16];
	u64 guilty;
	int idx, ret;

	if (bytes >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, bytes))
		return -EFAULT;
	text[bytes] = '\0';
	if (sysfs_streq(text, "none"))
		guilty = U64_MAX;
	else if (kstrtou64(strim(text), 10, &guilty) || guilty >= ORR_FW_QUEUES)
		return -EINVAL;
	if (!orr_fw_schedules(odev))
		return -EOPNOTSUPP;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_mbox_send(odev, ORR_MBOX_CRASH, &guilty, 1) ? 0 : -EBUSY;
	orr_exit(odev, idx);
	return ret ?: bytes;
}

static const struct file_operations orr_debugfs_crash_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = orr_debugfs_crash_write,
	.llseek = noop_llseek,
};

static ssize_t orr_debugfs_inject_write(struct file *file, const char __user *user, size_t bytes,
					loff_t *offset)
{
	struct orr_device *odev = file->private_data;
	struct orr_mbox_message message;
	int idx, ret;

	if (bytes != sizeof(message))
		return -EINVAL;
	if (copy_from_user(&message, user, bytes))
		return -EFAULT;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	orr_mbox_inject(odev, &message);
	orr_exit(odev, idx);
	return bytes;
}

static const struct file_operations orr_debugfs_inject_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = orr_debugfs_inject_write,
	.llseek = noop_llseek,
};

/**
 * orr_debugfs_init - make the files below accel/<PCI address>
 * @odev: the card, registered; the core removes them with the directory
 *
 * The core does not call drm_driver.debugfs_init for a device that has an accel node only.
 */
void orr_debugfs_init(struct orr_device *odev)
{
	struct dentry *root = odev->drm.debugfs_root;

	debugfs_create_file("queues", 0400, root, odev, &orr_debugfs_queues_fops);
	debugfs_create_file("restarts", 0400, root, odev, &orr_debugfs_restarts_fops);
	debugfs_create_file("waits", 0400, root, odev, &orr_debugfs_waits_fops);
	debugfs_create_file("records", 0400, root, odev, &orr_debugfs_records_fops);
	debugfs_create_file("mappings", 0400, root, odev, &orr_debugfs_mappings_fops);
	if (!IS_ENABLED(CONFIG_ORR_FAULTS))
		return;
	debugfs_create_file("inject_message", 0200, root, odev, &orr_debugfs_inject_fops);
	debugfs_create_file("crash_firmware", 0200, root, odev, &orr_debugfs_crash_fops);
}
