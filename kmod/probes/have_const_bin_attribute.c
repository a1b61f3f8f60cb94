// SPDX-License-Identifier: GPL-2.0
/* Binary attributes, and what their callbacks get of them, are constant. */
#include <linux/sysfs.h>

ssize_t orr_probe(struct file *file, struct kobject *kobj, const struct bin_attribute *attr,
		  char *buf, loff_t offset, size_t count);

const struct bin_attribute orr_probe_attr = {
	.read = orr_probe,
};

const struct bin_attribute *const orr_probe_attrs[] = {
	&orr_probe_attr,
	NULL,
};

const struct attribute_group orr_probe_group = {
	.bin_attrs = orr_probe_attrs,
};
