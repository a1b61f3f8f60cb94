// SPDX-License-Identifier: GPL-2.0
/* Registration: PCI driver, DRM accel device, file operations. */
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/time64.h>

#include <drm/drm_accel.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_managed.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_far.h"
#include "orr_file.h"
#include "orr_ioctl.h"
#include "orr_pmu.h"
#include "orr_queue.h"
#include "orr_route.h"

static u64 orr_cycles(u64 ps, u64 hz)
{
	return mul_u64_u64_div_u64(ps, hz, PSEC_PER_SEC);
}

/* All of it is model time: a share is to be had from these cycles and those, not from the host's clock. */
static void orr_show_engine(struct drm_printer *p, const char *name, unsigned int capacity, u64 hz,
			    u64 used_ps, u64 total_ps)
{
	drm_printf(p, "drm-cycles-%s:\t%llu\n", name, orr_cycles(used_ps, hz));
	/* Not of a card that is gone. */
	if (total_ps && total_ps != U64_MAX)
		drm_printf(p, "drm-total-cycles-%s:\t%llu\n", name, orr_cycles(total_ps, hz));
	drm_printf(p, "drm-engine-capacity-%s:\t%u\n", name, capacity);
	drm_printf(p, ORR_DRIVER_NAME "-time-%s:\t%llu ns\n", name, used_ps / 1000);
}

static void orr_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	struct orr_file *orr_file = to_orr_file(file);
	struct orr_device *odev = orr_file->odev;
	struct orr_info *info = &odev->info;
	u64 vector_ps, copy_ps, total_ps = 0;
	int idx;

	drm_show_memory_stats(p, file);
	if (!orr_fw_publishes_usage(odev))
		return;
	if (!orr_enter(odev, &idx)) {
		total_ps = orr_read64(odev, ORR_R_MODEL_TIME);
		orr_exit(odev, idx);
	}
	orr_file_engine_time(orr_file, &vector_ps, &copy_ps);
	orr_show_engine(p, "vector", info->vector_cores, info->vector_hz, vector_ps, total_ps);
	orr_show_engine(p, "copy", info->copy_engines, info->core_hz, copy_ps, total_ps);
}

static const struct file_operations orr_fops = {
	.owner = THIS_MODULE,
	.open = accel_open,
	.release = drm_release,
	.unlocked_ioctl = drm_ioctl,
	.compat_ioctl = drm_compat_ioctl,
	.poll = drm_poll,
	.read = drm_read,
	.llseek = noop_llseek,
	.mmap = orr_mmap,
	.show_fdinfo = drm_show_fdinfo,
	.fop_flags = FOP_UNSIGNED_OFFSET,
};

static struct drm_driver orr_drm_driver = {
	.driver_features = DRIVER_GEM | DRIVER_COMPUTE_ACCEL | DRIVER_SYNCOBJ |
			   DRIVER_SYNCOBJ_TIMELINE,
	.open = orr_file_open,
	.postclose = orr_file_close,
	.gem_prime_import = orr_bo_import,
	.show_fdinfo = orr_show_fdinfo,
	.ioctls = orr_ioctls,
	.fops = &orr_fops,
	.name = ORR_DRIVER_NAME,
	.desc = "Orrery accelerator",
#ifdef ORR_HAVE_DRM_DRIVER_DATE
	.date = "20261121",
#endif
	.major = 1,
	/*
	 * 1: failures, and the feature word of QUERY_DEVICE; 2: losses of QUERY_LINK; 3: ISA and VLEN of
	 * QUERY_DEVICE; 4: ORR_FEATURE_HOST_ATOMICS; 5: QUERY_WAY;
	 * 6: ORR_FEATURE_IN_STEP, QUERY_CYCLE, FABRIC_*; 7: ORR_FEATURE_PEER_READS;
	 * 8: ORR_FEATURE_FABRIC_SEMAPHORES, BARRIER_CREATE; 9: MULTICAST_CREATE;
	 * 10: ORR_MULTICAST_READ; 11: QUERY_WAY and FABRIC_EXPORT of nodes;
	 * 12: ORR_WORK_COUNTERS, SAMPLE_READ; 13: PC_READ;
	 * 14: QUERY_CYCLE over machines; 15: ORR_WORK_SIGNALS; 16: lost links of QUERY_WAY;
	 * 17: counters of QUERY_LINK, and what is settled of QUERY_WAY;
	 * 18: lost links between switches of QUERY_WAY; 19: none that followed the loss of a card
	 */
	.minor = 19,
};

static void orr_device_fini(struct drm_device *drm, void *data)
{
	struct orr_device *odev = data;

	orr_foreign_fini(odev);
	ida_destroy(&odev->contexts);
	xa_destroy(&odev->vms);
	ida_destroy(&odev->queue_numbers);
	cleanup_srcu_struct(&odev->users);
}

static int orr_device_init(struct orr_device *odev)
{
	int ret;

	ret = init_srcu_struct(&odev->users);
	if (ret)
		return ret;
	orr_mbox_init(odev);
	orr_counters_init(odev);
	INIT_LIST_HEAD(&odev->registry_node);
	orr_grants_init(odev);
	INIT_LIST_HEAD(&odev->bos);
	spin_lock_init(&odev->pages_lock);
	spin_lock_init(&odev->queue_lock);
	ida_init(&odev->contexts);
	xa_init(&odev->vms);
	ida_init(&odev->queue_numbers);
	ret = drmm_add_action_or_reset(&odev->drm, orr_device_fini, odev);
	if (ret)
		return ret;
	ret = orr_foreign_init(odev);
	if (ret)
		return ret;
	orr_multicasts_init(odev);
	ret = drmm_mutex_init(&odev->drm, &odev->sink.lock);
	if (ret)
		return ret;
	ret = orr_barriers_init(odev);
	if (ret)
		return ret;
	ret = orr_health_init(odev);
	if (ret)
		return ret;
	ret = drmm_mutex_init(&odev->drm, &odev->boot_lock);
	if (ret)
		return ret;
	ret = drmm_mutex_init(&odev->drm, &odev->sku_lock);
	if (ret)
		return ret;
	ret = drmm_mutex_init(&odev->drm, &odev->bo_lock);
	if (ret)
		return ret;
	ret = drmm_mutex_init(&odev->drm, &odev->key_lock);
	if (ret)
		return ret;
	ret = drmm_mutex_init(&odev->drm, &odev->drain_lock);
	if (ret)
		return ret;
	return drmm_mutex_init(&odev->drm, &odev->grant_lock);
}

static int orr_links_init(struct orr_device *odev)
{
	u32 i;

	for (i = 0; i < odev->info.link_ports; i++) {
		struct orr_link_port *port;

		port = drmm_kzalloc(&odev->drm, sizeof(*port), GFP_KERNEL);
		if (!port)
			return -ENOMEM;
		port->index = i;
		odev->links[i] = port;
	}
	return 0;
}

/* Ends what the hardware does and what waits for it; what user space holds lives on without it. */
static void orr_device_stop(struct orr_device *odev)
{
	odev->unbinding = true;
	orr_device_lost(odev, "the driver is unbound");
	orr_device_quiesced(odev);
}

/* After orr_device_stop(): nobody of ours comes to the card by himself any more. */
static void orr_device_calm(struct orr_device *odev)
{
	/* Nobody is in the middle of something. */
	synchronize_srcu(&odev->users);
	flush_work(&odev->barriers.work);
	/* Interrupts first, for they ask for works. */
	orr_irq_fini(odev);
	orr_health_fini(odev);
	orr_mbox_fini(odev);
	/* The works told those who polled there. */
	orr_sysfs_links_remove(odev);
}

static int orr_probe_boot(struct orr_device *odev)
{
	struct device *dev = &odev->pdev->dev;
	int ret;

	/* Whatever ran before us: nothing of it is left. */
	ret = orr_hw_reset(odev);
	if (ret)
		return dev_err_probe(dev, ret, "the card does not reset: start it again\n");
	ret = orr_vram_init(odev);
	if (ret)
		return ret;
	ret = orr_shmem_init(odev);
	if (ret)
		return ret;
	ret = orr_links_init(odev);
	if (ret)
		return ret;
	ret = orr_mbox_alloc(odev);
	if (ret)
		return ret;
	ret = orr_counters_alloc(odev);
	if (ret)
		return ret;
	ret = orr_irq_init(odev);
	if (ret)
		return ret;
	ret = orr_boot(odev);
	if (ret)
		return ret;
	orr_health_enable(odev);
	return 0;
}

static int orr_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct orr_device *odev;
	int ret;

	odev = devm_drm_dev_alloc(&pdev->dev, &orr_drm_driver, struct orr_device, drm);
	if (IS_ERR(odev))
		return PTR_ERR(odev);
	odev->pdev = pdev;
	pci_set_drvdata(pdev, odev);

	ret = orr_device_init(odev);
	if (ret)
		return ret;
	ret = orr_hw_map(odev);
	if (ret)
		return ret;
	ret = orr_hw_identify(odev);
	if (ret)
		goto err_master;
	ret = orr_probe_boot(odev);
	if (ret)
		goto err_stop;
	ret = orr_sysfs_links_add(odev);
	if (ret)
		goto err_stop;
	orr_links_count(odev, false);
	enable_delayed_work(&odev->link_work);
	ret = orr_peer_register(odev);
	if (ret)
		goto err_peer;
	ret = drm_dev_register(&odev->drm, 0);
	if (ret)
		goto err_peer;
	orr_debugfs_init(odev);
	orr_pmu_attach(odev);
	orr_foreign_open(odev);

	drm_info(&odev->drm, "card %016llx (%s): %llu MiB of VRAM, firmware %u.%u.%u, %u interrupt message%s\n",
		 odev->info.uid, odev->info.sku_name, odev->info.vram_size >> 20,
		 odev->info.fw_version >> 16, (odev->info.fw_version >> 8) & 0xff,
		 odev->info.fw_version & 0xff, odev->vectors, odev->vectors == 1 ? "" : "s");
	return 0;

err_peer:
	orr_peer_unregister(odev);
err_stop:
	orr_device_stop(odev);
	orr_routes_update();
	orr_device_calm(odev);
err_master:
	pci_clear_master(pdev);
	return ret;
}

static void orr_remove(struct pci_dev *pdev)
{
	struct orr_device *odev = pci_get_drvdata(pdev);

	orr_pmu_detach(odev);
	orr_foreign_goodbye(odev);
	orr_peer_unregister(odev);
	orr_device_stop(odev);
	/* Ways to it, and those that went through it, end or are made anew. */
	orr_routes_update();
	drm_dev_unplug(&odev->drm);
	orr_device_calm(odev);
	/* Before its next life. */
	orr_peers_cut(odev, true);
	orr_bo_unbind_all(odev);
}

static void orr_shutdown(struct pci_dev *pdev)
{
	orr_foreign_goodbye(pci_get_drvdata(pdev));
	orr_device_stop(pci_get_drvdata(pdev));
}

static pci_ers_result_t orr_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	orr_device_lost(pci_get_drvdata(pdev), "its PCI link reports an error");
	return PCI_ERS_RESULT_DISCONNECT;
}

static void orr_reset_prepare(struct pci_dev *pdev)
{
	struct orr_device *odev = pci_get_drvdata(pdev);

	orr_device_lost(odev, "somebody resets it");
	orr_device_quiesced(odev);
}

static void orr_reset_done(struct pci_dev *pdev)
{
	dev_info(&pdev->dev, "reset done; unbind and bind the driver to use the card again\n");
}

static const struct pci_error_handlers orr_error_handlers = {
	.error_detected = orr_error_detected,
	.reset_prepare = orr_reset_prepare,
	.reset_done = orr_reset_done,
};

static const struct pci_device_id orr_pci_ids[] = {
	{ PCI_DEVICE(ORR_PCI_VENDOR_ID, ORR_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, orr_pci_ids);

static struct pci_driver orr_pci_driver = {
	.name = ORR_DRIVER_NAME,
	.id_table = orr_pci_ids,
	.probe = orr_probe,
	.remove = orr_remove,
	.shutdown = orr_shutdown,
	.err_handler = &orr_error_handlers,
	.dev_groups = orr_sysfs_groups,
};

static int __init orr_init(void)
{
	int ret;

	if (!orr_nodes_valid())
		return -EINVAL;
	orr_sysfs_init();
	orr_drm_driver.num_ioctls = orr_ioctl_count;
	ret = orr_pmu_init();
	if (ret)
		return ret;
	ret = pci_register_driver(&orr_pci_driver);
	if (ret)
		orr_pmu_exit();
	return ret;
}
module_init(orr_init);

static void __exit orr_exit_module(void)
{
	pci_unregister_driver(&orr_pci_driver);
	orr_far_exit();
	orr_pmu_exit();
	orr_fence_exit();
}
module_exit(orr_exit_module);

MODULE_DESCRIPTION("Orrery accelerator");
MODULE_AUTHOR("The Orrery authors");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "DMA_BUF");
