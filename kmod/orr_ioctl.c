// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls. Everything that a process says is checked here; what it gets wrong is told to it,
 * and to the log with drm.debug only.
 */
#include <linux/uaccess.h>

#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/orrery_accel.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_file.h"
#include "orr_ioctl.h"
#include "orr_route.h"
#include "orr_vm.h"

#define ORR_QUOTA_PERIOD_MIN_US 100u
#define ORR_QUOTA_PERIOD_MAX_US 1000000u

/* What user space was built with stays as it is; structs grow at their end only. */
static_assert(sizeof(struct drm_orr_query_device) == 288);
static_assert(offsetof(struct drm_orr_query_device, features) == 152);
static_assert(sizeof(struct drm_orr_bo_create) == 24);
static_assert(sizeof(struct drm_orr_bo_info) == 32);
static_assert(sizeof(struct drm_orr_vm_create) == 16);
static_assert(sizeof(struct drm_orr_vm_destroy) == 8);
static_assert(sizeof(struct drm_orr_vm_bind) == 40);
static_assert(sizeof(struct drm_orr_queue_create) == 96);
static_assert(offsetof(struct drm_orr_queue_create, firmware_number) == 88);
static_assert(sizeof(struct drm_orr_queue_set) == 16);
static_assert(sizeof(struct drm_orr_queue_stats) == 56);
static_assert(sizeof(struct drm_orr_queue_destroy) == 8);
static_assert(sizeof(struct drm_orr_queue_abort) == 8);
static_assert(sizeof(struct drm_orr_signaller) == 24);
static_assert(sizeof(struct drm_orr_queue_wait) == 72);
static_assert(sizeof(struct drm_orr_queue_fence) == 24);
static_assert(sizeof(struct drm_orr_query_counters) == 16);
static_assert(sizeof(struct drm_orr_query_link) == 112);
static_assert(offsetof(struct drm_orr_query_link, rx_messages) == 40);
static_assert(sizeof(struct drm_orr_query_way) == 64);
static_assert(sizeof(struct drm_orr_wait_edge) == 88);
static_assert(sizeof(struct drm_orr_query_deadlock) == 16);
static_assert(sizeof(struct drm_orr_cycle_edge) == 80);
static_assert(sizeof(struct drm_orr_query_cycle) == 48);

static int orr_query_device(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct orr_info *info = &odev->info;
	struct drm_orr_query_device *args = data;
	bool ones;
	int idx, ret;

	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	*args = (struct drm_orr_query_device) {
		.uid = info->uid,
		.vram_size = orr_vram_size(odev),
		.vram_used = orr_vram_used(odev),
		.core_hz = info->core_hz,
		.vector_hz = info->vector_hz,
		.model_time_ps = orr_read64(odev, ORR_R_MODEL_TIME),
		.hw_version = info->hw_version,
		.fw_abi = info->fw_abi,
		.fw_version = info->fw_version,
		.copy_engines = info->copy_engines,
		.vector_ports = info->vector_ports,
		.vector_cores = info->vector_cores,
		.link_ports = info->link_ports,
		.max_ring_entries = info->max_ring_entries,
		.counters = info->counters,
		.state = orr_read32(odev, ORR_R_STATE),
		.vector_vlen = info->vector_vlen,
		.features = (orr_fw_fails(odev) ? ORR_FEATURE_FAILURE : 0) |
			    (info->checks & ORR_CHECKS_MEMORY ? ORR_FEATURE_TELL : 0) |
			    (info->host_atomics ? ORR_FEATURE_HOST_ATOMICS : 0) |
			    (info->platform & ORR_PLATFORM_IN_STEP ? ORR_FEATURE_IN_STEP : 0) |
			    (orr_link_reads(odev) ? ORR_FEATURE_PEER_READS : 0) |
			    (orr_has_notes(odev) && orr_fw_fails(odev) ?
				     ORR_FEATURE_FABRIC_SEMAPHORES : 0) |
			    (orr_has_barriers(odev) ? ORR_FEATURE_BARRIERS : 0) |
			    (orr_has_multicasts(odev) ? ORR_FEATURE_MULTICASTS : 0) |
			    (orr_has_multicast_reads(odev) ? ORR_FEATURE_MULTICAST_READS : 0) |
			    (orr_has_snapshots(odev) ? ORR_FEATURE_SNAPSHOTS : 0) |
			    (odev->info.sink_bytes ? ORR_FEATURE_WORK | ORR_FEATURE_SIGNALS : 0) |
			    (orr_counts_jobs(odev) ?
				     ORR_FEATURE_WORK_COUNTERS | ORR_FEATURE_SAMPLES : 0) |
			    (orr_says_pcs(odev) ? ORR_FEATURE_PCS : 0),
	};
	memcpy(args->vector_isa, info->vector_isa, sizeof(args->vector_isa));
	memcpy(args->sku_name, info->sku_name, sizeof(args->sku_name));
	memcpy(args->fw_build_id, info->fw_build_id, sizeof(args->fw_build_id));
	ones = args->state == U32_MAX || args->model_time_ps == U64_MAX;
	if (ones && !orr_hw_answers(odev, true))
		ret = -ENODEV;
	orr_exit(odev, idx);
	return ret;
}

static int orr_bo_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct drm_orr_bo_create *args = data;
	enum orr_bo_kind kind;
	struct orr_bo *bo;
	int ret;

	if (orr_is_lost(odev))
		return -ENODEV;
	switch (args->flags) {
	case ORR_BO_VRAM:
		kind = ORR_BO_KIND_VRAM;
		break;
	case ORR_BO_SYSTEM:
		kind = ORR_BO_KIND_SYSTEM;
		break;
	default:
		return -EINVAL;
	}
	/* Nothing larger than the range of addresses could ever be used. */
	if (!args->size || args->size > ORR_VA_END)
		return -EINVAL;
	args->size = PAGE_ALIGN(args->size);

	bo = orr_bo_create(odev, args->size, kind);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	args->mmap_offset = drm_vma_node_offset_addr(&bo->base.vma_node);
	ret = drm_gem_handle_create(drm_file, &bo->base, &args->handle);
	drm_gem_object_put(&bo->base); /* the handle has its own */
	return ret;
}

static int orr_bo_info_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct drm_orr_bo_info *args = data;
	struct drm_gem_object *obj;
	struct orr_bo *bo;

	if (orr_is_lost(odev))
		return -ENODEV;
	obj = drm_gem_object_lookup(drm_file, args->handle);
	if (!obj)
		return -ENOENT;
	bo = to_orr_bo(obj);
	args->size = obj->size;
	args->flags = 0;
	args->mmap_offset = 0;
	args->peer_uid = 0;
	switch (bo->kind) {
	case ORR_BO_KIND_VRAM:
		args->flags = ORR_BO_VRAM;
		args->mmap_offset = drm_vma_node_offset_addr(&obj->vma_node);
		break;
	case ORR_BO_KIND_SYSTEM:
		args->flags = ORR_BO_SYSTEM;
		args->mmap_offset = drm_vma_node_offset_addr(&obj->vma_node);
		break;
	case ORR_BO_KIND_PEER:
		args->peer_uid = orr_bo_device(bo->owner)->info.uid;
		break;
	case ORR_BO_KIND_FOREIGN:
		args->peer_uid = bo->import->uid;
		break;
	case ORR_BO_KIND_IMPORT:
	case ORR_BO_KIND_BARRIER:
	case ORR_BO_KIND_MULTICAST:
		break;
	}
	drm_gem_object_put(obj);
	return 0;
}

/* The file gets its doorbell page with its first address space. */
static int orr_file_get_page(struct orr_file *file)
{
	int idx, ret;

	lockdep_assert_held(&file->lock);
	if (file->page != ORR_NO_PAGE)
		return 0;
	ret = orr_enter(file->odev, &idx);
	if (ret)
		return ret;
	ret = orr_doorbell_page_get(file->odev);
	orr_exit(file->odev, idx);
	if (ret < 0)
		return ret;
	WRITE_ONCE(file->page, ret);
	return 0;
}

/* Return: the quota as the firmware takes it, in @quota, or -EINVAL. */
static int orr_quota(const struct drm_orr_vm_create *args, u64 *quota)
{
	*quota = args->quota_permille | (u64)args->quota_period_us << 32;
	if (!args->quota_permille)
		return args->quota_period_us ? -EINVAL : 0;
	if (args->quota_permille > 1000 || args->quota_period_us < ORR_QUOTA_PERIOD_MIN_US ||
	    args->quota_period_us > ORR_QUOTA_PERIOD_MAX_US)
		return -EINVAL;
	return 0;
}

static int orr_vm_create_locked(struct orr_file *file, struct drm_orr_vm_create *args, u64 quota)
{
	struct orr_vm *vm;
	int ret;

	ret = orr_file_get_page(file);
	if (ret)
		return ret;
	vm = orr_vm_create(file->odev, file, quota);
	if (IS_ERR(vm))
		return PTR_ERR(vm);
	ret = xa_alloc(&file->vms, &args->vm, vm, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (ret) {
		orr_vm_close(vm, true);
		orr_vm_put(vm);
	}
	return ret;
}

static int orr_vm_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_vm_create *args = data;
	u64 quota;
	int ret;

	if (args->flags)
		return -EINVAL;
	ret = orr_quota(args, &quota);
	if (ret)
		return ret;
	if (quota && !orr_fw_schedules(odev))
		return -EOPNOTSUPP;
	ret = orr_file_lock(file);
	if (ret)
		return ret;
	ret = orr_vm_create_locked(file, args, quota);
	mutex_unlock(&file->lock);
	return ret;
}

static int orr_vm_destroy_locked(struct orr_file *file, u32 number)
{
	struct orr_vm *vm;
	int ret;

	vm = xa_load(&file->vms, number);
	if (!vm)
		return -ENOENT;
	ret = orr_vm_close(vm, false);
	if (ret)
		return ret;
	xa_erase(&file->vms, number);
	orr_vm_put(vm);
	return 0;
}

static int orr_vm_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	struct drm_orr_vm_destroy *args = data;
	int ret;

	if (args->pad)
		return -EINVAL;
	ret = orr_file_lock(file);
	if (ret)
		return ret;
	ret = orr_vm_destroy_locked(file, args->vm);
	mutex_unlock(&file->lock);
	return ret;
}

static int orr_vm_bind_map(struct orr_vm *vm, const struct drm_orr_vm_bind *args,
			   struct drm_file *drm_file)
{
	struct drm_gem_object *obj;
	int ret;

	obj = drm_gem_object_lookup(drm_file, args->handle);
	if (!obj)
		return -ENOENT;
	if (args->bo_offset >= obj->size || args->size > obj->size - args->bo_offset)
		ret = -EINVAL;
	else
		ret = orr_vm_map(vm, to_orr_bo(obj), args->bo_offset, args->va, args->size,
				 args->flags);
	drm_gem_object_put(obj);
	return ret;
}

static int orr_vm_bind_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_file *file = to_orr_file(drm_file);
	const struct drm_orr_vm_bind *args = data;
	struct orr_vm *vm;
	int ret;

	if (!PAGE_ALIGNED(args->va | args->size | args->bo_offset) ||
	    !orr_va_range_ok(args->va, args->size))
		return -EINVAL;
	switch (args->op) {
	case ORR_BIND_MAP:
		if (!args->flags ||
		    args->flags & ~(ORR_BIND_READ | ORR_BIND_WRITE | ORR_BIND_EXEC))
			return -EINVAL;
		break;
	case ORR_BIND_UNMAP:
		if (args->handle || args->flags || args->bo_offset)
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	if (orr_is_lost(file->odev))
		return -ENODEV;

	vm = orr_file_get_vm(file, args->vm);
	if (!vm)
		return -ENOENT;
	if (args->op == ORR_BIND_MAP)
		ret = orr_vm_bind_map(vm, args, drm_file);
	else
		ret = orr_vm_unmap(vm, args->va, args->size);
	orr_vm_put(vm);
	return ret;
}

static int orr_query_counters_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct drm_orr_query_counters *args = data;
	u64 __user *values = u64_to_user_ptr(args->values);
	u32 count = min(args->count, odev->info.counters);
	int idx, ret;

	if (args->pad)
		return -EINVAL;

	u64 *copy __free(kvfree) = kvcalloc(count + 1, sizeof(*copy), GFP_KERNEL);

	if (!copy)
		return -ENOMEM;
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	ret = orr_counters_read(odev, 0, count, copy);
	if (ret == -ENODEV)
		orr_hw_answers(odev, true);
	orr_exit(odev, idx);
	if (ret)
		return ret;
	args->count = odev->info.counters;
	if (count && copy_to_user(values, copy, count * sizeof(*copy)))
		return -EFAULT;
	return 0;
}

/* Inside orr_enter(). Return: whether something reads as all-ones. */
static bool orr_query_link_counts(struct orr_device *odev, u32 link, struct drm_orr_query_link *args)
{
	bool ones = false;

	args->known = ORR_LINK_KNOWS_FORGED;
	args->forged = READ_ONCE(odev->fabric.forged[args->port]);
	if (orr_link_counts(odev)) {
		args->known |= ORR_LINK_KNOWS_COUNTS;
		args->rx_messages = orr_read64(odev, link + ORR_R_LINK_RX_MESSAGES);
		args->rx_bytes = orr_read64(odev, link + ORR_R_LINK_RX_BYTES);
		args->tx_messages = orr_read64(odev, link + ORR_R_LINK_TX_MESSAGES);
		args->tx_bytes = orr_read64(odev, link + ORR_R_LINK_TX_BYTES);
		args->crc_errors = orr_read32(odev, link + ORR_R_LINK_CRC_ERRORS);
		args->retries = orr_read32(odev, link + ORR_R_LINK_RETRIES);
		args->retrains = orr_read32(odev, link + ORR_R_LINK_RETRAINS);
		args->changes = orr_read32(odev, link + ORR_R_LINK_CHANGES);
		args->built = orr_read32(odev, link + ORR_R_LINK_BUILT);
		ones = args->rx_messages == U64_MAX || args->rx_bytes == U64_MAX ||
		       args->tx_messages == U64_MAX || args->tx_bytes == U64_MAX ||
		       args->crc_errors == U32_MAX || args->retries == U32_MAX ||
		       args->retrains == U32_MAX || args->changes == U32_MAX ||
		       args->built == U32_MAX;
	}
	if (orr_link_reads(odev)) {
		args->known |= ORR_LINK_KNOWS_DENIALS;
		args->denied = orr_read32(odev, link + ORR_R_LINK_DENIED);
		args->bad_keys = orr_read32(odev, link + ORR_R_LINK_BAD_KEYS);
		args->refused = orr_read32(odev, link + ORR_R_LINK_REFUSED);
		ones |= args->denied == U32_MAX || args->bad_keys == U32_MAX ||
			args->refused == U32_MAX;
	}
	return ones;
}

static int orr_query_link_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct drm_orr_query_link *args = data;
	bool ones;
	u32 link;
	int idx, ret;

	if (args->port >= odev->info.link_ports || args->pad)
		return -EINVAL;
	link = ORR_R_LINK(args->port);
	ret = orr_enter(odev, &idx);
	if (ret)
		return ret;
	*args = (struct drm_orr_query_link){ .port = args->port };
	args->state = orr_read32(odev, link + ORR_R_LINK_STATE);
	args->peer_uid = orr_read64(odev, link + ORR_R_LINK_PEER_UID);
	args->peer_port = orr_read32(odev, link + ORR_R_LINK_PEER_PORT);
	args->lanes = orr_read32(odev, link + ORR_R_LINK_LANES);
	args->gbps = orr_link_gbps(odev, args->port);
	args->latency_ns = orr_read32(odev, link + ORR_R_LINK_LATENCY_NS);
	args->losses = orr_read32(odev, link + ORR_R_LINK_LOSSES);
	ones = args->state == U32_MAX || args->peer_uid == U64_MAX ||
	       args->peer_port == U32_MAX || args->lanes == U32_MAX || args->gbps == U32_MAX ||
	       args->latency_ns == U32_MAX || args->losses == U32_MAX;
	ones |= orr_query_link_counts(odev, link, args);
	if (!orr_hw_answers(odev, ones))
		ret = -ENODEV;
	orr_exit(odev, idx);
	return ret;
}

static int orr_query_way_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct orr_device *odev = to_orr_device(drm);
	struct drm_orr_query_way *args = data;
	struct orr_way way;
	u32 port = 0;
	int ret;

	if (args->node)
		return orr_foreign_query(odev, args);
	ret = orr_way_query(odev, args->peer_uid, &way, &port);
	if (ret)
		return ret;
	args->links = way.links ? way.fabric ?: way.links : 0;
	args->port = way.links ? port : 0;
	args->gbps = way.links ? way.gbps : 0;
	args->latency_ns = way.links ? way.latency_ns : 0;
	args->version = way.version;
	args->lost_uid = way.loss.uid;
	args->lost_peer_uid = way.loss.peer_uid;
	args->lost_port = way.loss.port;
	args->lost_version = way.loss.version;
	args->settled = way.settled;
	args->lost_is = way.loss.is;
	return 0;
}

const struct drm_ioctl_desc orr_ioctls[] = {
	DRM_IOCTL_DEF_DRV(ORR_QUERY_DEVICE, orr_query_device, 0),
	DRM_IOCTL_DEF_DRV(ORR_BO_CREATE, orr_bo_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_BO_INFO, orr_bo_info_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_VM_CREATE, orr_vm_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_VM_DESTROY, orr_vm_destroy_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_VM_BIND, orr_vm_bind_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUEUE_CREATE, orr_queue_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUEUE_DESTROY, orr_queue_destroy_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUEUE_WAIT, orr_queue_wait_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUEUE_FENCE, orr_queue_fence_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUERY_COUNTERS, orr_query_counters_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUERY_LINK, orr_query_link_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUEUE_SET, orr_queue_set_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUEUE_STATS, orr_queue_stats_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUERY_DEADLOCK, orr_query_deadlock_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUEUE_ABORT, orr_queue_abort_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_SIGNALLER_ATTACH, orr_signaller_attach_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_SIGNALLER_DETACH, orr_signaller_detach_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUERY_WAY, orr_query_way_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_QUERY_CYCLE, orr_query_cycle_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_FABRIC_EXPORT, orr_fabric_export_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_FABRIC_IMPORT, orr_fabric_import_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_FABRIC_REVOKE, orr_fabric_revoke_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_BARRIER_CREATE, orr_barrier_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_MULTICAST_CREATE, orr_multicast_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_WORK_READ, orr_work_read_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_SAMPLE_READ, orr_sample_read_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ORR_PC_READ, orr_pc_read_ioctl, 0),
};

const int orr_ioctl_count = ARRAY_SIZE(orr_ioctls);
