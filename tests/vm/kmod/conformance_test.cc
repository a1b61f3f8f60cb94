// Every ioctl with everything wrong that a process can say.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tests/vm/kmod/device.h"
#include "tests/vm/kmod/pci.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kRingVa = 0x10000000;
constexpr std::uint64_t kVa = 0x40000000;
constexpr std::uint32_t kNobody = 0x7fffffff;

class Conformance : public ::testing::Test {
  protected:
    void SetUp() override {
        file_ = open_card();
        ASSERT_TRUE(file_);
        ASSERT_EQ(create_vm(fd(), vm_), 0);
        ASSERT_EQ(create_bo(fd(), 64 * 1024, ORR_BO_VRAM, bo_), 0);
    }
    // Whatever went before, the card and the file still work.
    void TearDown() override {
        Queue queue(fd(), vm_, 0x700000000000);
        ASSERT_EQ(queue.error(), 0);
        EXPECT_EQ(queue.run(std::vector{nop()}), 0);
    }
    int fd() const { return file_.get(); }
    File file_;
    std::uint32_t vm_ = 0;
    drm_orr_bo_create bo_{};
};

TEST_F(Conformance, NumbersOfVmAndQueueAreNeverZero) {
    EXPECT_NE(vm_, 0u);
    EXPECT_EQ(destroy_vm(fd(), 0), ENOENT);
    EXPECT_EQ(destroy_queue(fd(), 0), ENOENT);
}

TEST_F(Conformance, UnknownIoctls) {
    std::array<std::uint64_t, 32> data{};
    for (unsigned n = 0x17; n < 0x60; n++)
        EXPECT_EQ(call(fd(), _IOC(_IOC_READ | _IOC_WRITE, 'd', DRM_COMMAND_BASE + n, 64), data.data()),
                  EINVAL)
            << n;
}

TEST_F(Conformance, ShorterAndLongerStructs) {
    // Older user space: what is missing reads as zero.
    struct {
        std::uint64_t size;
        std::uint32_t flags;
    } small{4096, ORR_BO_VRAM};
    EXPECT_EQ(call(fd(), _IOC(_IOC_READ | _IOC_WRITE, 'd', DRM_COMMAND_BASE + DRM_ORR_BO_CREATE, 12), &small),
              0);
    EXPECT_EQ(small.size, 4096u);
    // Nothing at all: no size.
    EXPECT_EQ(call(fd(), _IOC(_IOC_READ | _IOC_WRITE, 'd', DRM_COMMAND_BASE + DRM_ORR_BO_CREATE, 0), nullptr),
              EINVAL);
    // Newer user space: the rest comes back as it went, or as zeros.
    struct {
        drm_orr_bo_create args;
        std::uint64_t more[4];
    } large{};
    large.args.size = 4096;
    large.args.flags = ORR_BO_SYSTEM;
    EXPECT_EQ(
        call(fd(), _IOC(_IOC_READ | _IOC_WRITE, 'd', DRM_COMMAND_BASE + DRM_ORR_BO_CREATE, sizeof large),
             &large),
        0);
    EXPECT_NE(large.args.handle, 0u);
    drm_orr_query_device whole{};
    EXPECT_EQ(call(fd(), _IOC(_IOC_READ, 'd', DRM_COMMAND_BASE + DRM_ORR_QUERY_DEVICE, 8), &whole), 0);
    EXPECT_NE(whole.uid, 0u);
    EXPECT_EQ(whole.vram_size, 0u);
}

TEST_F(Conformance, PointersThatLeadNowhere) {
    const std::array requests{
        DRM_IOCTL_ORR_QUERY_DEVICE,     DRM_IOCTL_ORR_BO_CREATE,        DRM_IOCTL_ORR_BO_INFO,
        DRM_IOCTL_ORR_VM_CREATE,        DRM_IOCTL_ORR_VM_DESTROY,       DRM_IOCTL_ORR_VM_BIND,
        DRM_IOCTL_ORR_QUEUE_CREATE,     DRM_IOCTL_ORR_QUEUE_DESTROY,    DRM_IOCTL_ORR_QUEUE_WAIT,
        DRM_IOCTL_ORR_QUEUE_FENCE,      DRM_IOCTL_ORR_QUERY_COUNTERS,   DRM_IOCTL_ORR_QUERY_LINK,
        DRM_IOCTL_ORR_QUEUE_SET,        DRM_IOCTL_ORR_QUEUE_STATS,      DRM_IOCTL_ORR_QUERY_DEADLOCK,
        DRM_IOCTL_ORR_QUEUE_ABORT,      DRM_IOCTL_ORR_SIGNALLER_ATTACH, DRM_IOCTL_ORR_SIGNALLER_DETACH,
        DRM_IOCTL_ORR_QUERY_WAY,        DRM_IOCTL_ORR_FABRIC_EXPORT,    DRM_IOCTL_ORR_FABRIC_IMPORT,
        DRM_IOCTL_ORR_FABRIC_REVOKE,    DRM_IOCTL_ORR_QUERY_CYCLE,      DRM_IOCTL_ORR_BARRIER_CREATE,
        DRM_IOCTL_ORR_MULTICAST_CREATE,
    };
    for (const unsigned long request : requests) {
        EXPECT_EQ(call(fd(), request, nullptr), EFAULT);
        EXPECT_EQ(call(fd(), request, reinterpret_cast<void*>(0xffff888000000000)), EFAULT);
    }
    drm_orr_query_cycle cycle{};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_CYCLE, &cycle), EINVAL) << "neither queue nor semaphore";
    cycle.semaphore = 0x10008;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_CYCLE, &cycle), EINVAL) << "not aligned";
    cycle.semaphore = 0x10000;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_CYCLE, &cycle), ENOENT) << "no address space";
    cycle.queue = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_CYCLE, &cycle), EINVAL) << "both";
    cycle.semaphore = 0;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_CYCLE, &cycle), ENOENT) << "no such queue";
    drm_orr_query_counters counters{};
    counters.count = 4;
    counters.values = 8;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters), EFAULT);
    counters.count = 4;
    counters.values = 0xffff888000000000;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters), EFAULT);
    counters.count = 0;
    counters.values = 0;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters), 0);
    EXPECT_GT(counters.count, 0u);
    counters.pad = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters), EINVAL);
}

TEST_F(Conformance, BoCreate) {
    drm_orr_bo_create bo{};
    EXPECT_EQ(create_bo(fd(), 0, ORR_BO_VRAM, bo), EINVAL);
    EXPECT_EQ(create_bo(fd(), 4096, 0, bo), EINVAL);
    EXPECT_EQ(create_bo(fd(), 4096, ORR_BO_VRAM | ORR_BO_SYSTEM, bo), EINVAL);
    EXPECT_EQ(create_bo(fd(), 4096, ORR_BO_VRAM | 1u << 31, bo), EINVAL);
    for (const std::uint64_t size : {~0ull, ~0ull - 4095, 1ull << 63, (1ull << 47) + 1})
        for (const std::uint32_t kind : {ORR_BO_VRAM, ORR_BO_SYSTEM})
            EXPECT_EQ(create_bo(fd(), size, kind, bo), EINVAL) << size;
    EXPECT_EQ(create_bo(fd(), 1ull << 46, ORR_BO_VRAM, bo), ENOMEM);
    EXPECT_EQ(create_bo(fd(), 1ull << 46, ORR_BO_SYSTEM, bo), ENOMEM);
}

TEST_F(Conformance, BoInfo) {
    drm_orr_bo_info info{};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_BO_INFO, &info), ENOENT);
    info.handle = kNobody;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_BO_INFO, &info), ENOENT);
    info.handle = bo_.handle;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_BO_INFO, &info), 0);
    EXPECT_EQ(info.flags, ORR_BO_VRAM);
    EXPECT_EQ(info.size, bo_.size);
    EXPECT_EQ(info.mmap_offset, bo_.mmap_offset);
    EXPECT_EQ(info.peer_uid, 0u);
}

TEST_F(Conformance, VmCreateAndDestroy) {
    drm_orr_vm_create create{};
    create.flags = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_VM_CREATE, &create), EINVAL);
    EXPECT_EQ(destroy_vm(fd(), kNobody), ENOENT);
    drm_orr_vm_destroy destroy{};
    destroy.vm = vm_;
    destroy.pad = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_VM_DESTROY, &destroy), EINVAL);
}

TEST_F(Conformance, VmBind) {
    const auto bind = [&](auto change) {
        drm_orr_vm_bind args{};
        args.vm = vm_;
        args.op = ORR_BIND_MAP;
        args.handle = bo_.handle;
        args.flags = ORR_BIND_READ;
        args.va = kVa;
        args.size = 64 * 1024;
        change(args);
        return call(fd(), DRM_IOCTL_ORR_VM_BIND, &args);
    };
    EXPECT_EQ(bind([](auto& a) { a.vm = 0; }), ENOENT);
    EXPECT_EQ(bind([](auto& a) { a.vm = kNobody; }), ENOENT);
    EXPECT_EQ(bind([](auto& a) { a.op = 2; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.handle = 0; }), ENOENT);
    EXPECT_EQ(bind([](auto& a) { a.handle = kNobody; }), ENOENT);
    EXPECT_EQ(bind([](auto& a) { a.flags = 0; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.flags = 8; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.flags |= 1u << 31; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.size = 0; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.size = 100; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.size += 4096; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.size = ~0ull << 12; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.va = 0; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.va = ORR_VA_START - 4096; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.va = kVa + 8; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.va = ORR_VA_END; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.va = ORR_VA_END - 4096; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.va = ~0ull << 12; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.bo_offset = 4; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.bo_offset = 4096; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.bo_offset = ~0ull << 12; }), EINVAL);
    EXPECT_EQ(bind([](auto& a) { a.bo_offset = 64 * 1024; }), EINVAL);
    // The ends of the range are usable.
    EXPECT_EQ(bind([](auto& a) { a.va = ORR_VA_START; }), 0);
    EXPECT_EQ(bind([](auto& a) { a.va = ORR_VA_END - 64 * 1024; }), 0);
    EXPECT_EQ(bind([](auto& a) { a.va = ORR_VA_END - 64 * 1024; }), EEXIST);
    const auto unbind = [&](auto change) {
        drm_orr_vm_bind args{};
        args.vm = vm_;
        args.op = ORR_BIND_UNMAP;
        args.va = kVa;
        args.size = 4096;
        change(args);
        return call(fd(), DRM_IOCTL_ORR_VM_BIND, &args);
    };
    EXPECT_EQ(unbind([](auto& a) { a.handle = 1; }), EINVAL);
    EXPECT_EQ(unbind([](auto& a) { a.flags = 1; }), EINVAL);
    EXPECT_EQ(unbind([](auto& a) { a.bo_offset = 4096; }), EINVAL);
    EXPECT_EQ(unbind([](auto& a) { a.vm = kNobody; }), ENOENT);
    EXPECT_EQ(unbind([](auto& a) { a.size = ~0ull << 12; }), EINVAL);
    EXPECT_EQ(unbind([](auto&) {}), 0);  // a hole
    EXPECT_EQ(unbind([](auto& a) { a.va = ORR_VA_START, a.size = ORR_VA_END - ORR_VA_START; }), 0);
    EXPECT_EQ(bind([](auto& a) { a.va = ORR_VA_START; }), 0);
}

TEST_F(Conformance, BindWorksAfterTheHandleIsClosed) {
    Buffer data;
    ASSERT_EQ(make_buffer(fd(), vm_, kVa, 4096, ORR_BO_VRAM, data), 0);
    ASSERT_EQ(close_bo(fd(), data.handle), 0);
    EXPECT_EQ(close_bo(fd(), data.handle), EINVAL);
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    EXPECT_EQ(queue.run(std::vector{fill(kVa, 4096, 77)}), 0);
    EXPECT_EQ(data.words()[511], 77u);
}

TEST_F(Conformance, QueueCreate) {
    Buffer ring;
    ASSERT_EQ(make_buffer(fd(), vm_, kRingVa, 64 * 1024, ORR_BO_SYSTEM, ring), 0);
    const auto create = [&](auto change) {
        drm_orr_queue_create args{};
        args.vm = vm_;
        args.entries = 64;
        args.ring_va = kRingVa;
        args.priority = ORR_QUEUE_PRIORITY_NORMAL;
        change(args);
        const int error = call(fd(), DRM_IOCTL_ORR_QUEUE_CREATE, &args);
        if (error == 0) EXPECT_EQ(destroy_queue(fd(), args.queue), 0);
        return error;
    };
    EXPECT_EQ(create([](auto& a) { a.vm = 0; }), ENOENT);
    EXPECT_EQ(create([](auto& a) { a.vm = kNobody; }), ENOENT);
    for (const std::uint32_t entries : {0u, 1u, 3u, 63u, 131072u, 1u << 31, ~0u})
        EXPECT_EQ(create([&](auto& a) { a.entries = entries; }), EINVAL) << entries;
    EXPECT_EQ(create([](auto& a) { a.ring_va += 8; }), EINVAL);
    EXPECT_EQ(create([](auto& a) { a.ring_va = 0; }), EINVAL);
    EXPECT_EQ(create([](auto& a) { a.ring_va = ORR_VA_END - 64; }), EINVAL);
    EXPECT_EQ(create([](auto& a) { a.ring_va = ~63ull; }), EINVAL);
    EXPECT_EQ(create([](auto& a) { a.priority = 4; }), EINVAL);
    // Not mapped, mapped in part, not writable.
    EXPECT_EQ(create([](auto& a) { a.ring_va = kVa; }), EFAULT);
    EXPECT_EQ(create([](auto& a) { a.entries = 1024; }), EFAULT);
    ASSERT_EQ(map(fd(), vm_, ring.handle, kVa, 64 * 1024, ORR_BIND_READ), 0);
    EXPECT_EQ(create([](auto& a) { a.ring_va = kVa; }), EFAULT);
    for (std::uint32_t priority = 0; priority < 3; priority++)
        EXPECT_EQ(create([&](auto& a) { a.priority = priority; }), 0);
    if (::geteuid() == 0) EXPECT_EQ(create([](auto& a) { a.priority = ORR_QUEUE_PRIORITY_REALTIME; }), 0);
    EXPECT_EQ(create([](auto& a) { a.dispatch_limit_us = ORR_QUEUE_LIMIT_MAX_US; }), 0);
    EXPECT_EQ(create([](auto& a) { a.dispatch_limit_us = ~0u; }), ::geteuid() == 0 ? 0 : EACCES);
}

TEST_F(Conformance, VmQuota) {
    const auto create = [&](std::uint32_t permille, std::uint32_t period) {
        drm_orr_vm_create args{};
        args.quota_permille = permille;
        args.quota_period_us = period;
        const int error = call(fd(), DRM_IOCTL_ORR_VM_CREATE, &args);
        if (error == 0) EXPECT_EQ(destroy_vm(fd(), args.vm), 0);
        return error;
    };
    EXPECT_EQ(create(0, 1000), EINVAL);
    EXPECT_EQ(create(1001, 1000), EINVAL);
    EXPECT_EQ(create(500, 0), EINVAL);
    EXPECT_EQ(create(500, 99), EINVAL);
    EXPECT_EQ(create(500, 1000001), EINVAL);
    EXPECT_EQ(create(~0u, ~0u), EINVAL);
}

TEST_F(Conformance, QueueNames) {
    Buffer ring;
    ASSERT_EQ(make_buffer(fd(), vm_, kVa, 64 * 1024, ORR_BO_SYSTEM, ring), 0);
    const auto create = [&](std::string_view name) {
        std::fill_n(ring.words(), sizeof(orr_ring) / 8, 0);
        drm_orr_queue_create args{};
        args.vm = vm_;
        args.entries = 16;
        args.ring_va = kVa;
        args.priority = ORR_QUEUE_PRIORITY_NORMAL;
        name.copy(reinterpret_cast<char*>(args.name), sizeof args.name);
        const int error = call(fd(), DRM_IOCTL_ORR_QUEUE_CREATE, &args);
        if (error == 0) EXPECT_EQ(destroy_queue(fd(), args.queue), 0);
        return error;
    };
    EXPECT_EQ(create(""), 0);
    EXPECT_EQ(create("twenty-three characters"), 0);
    EXPECT_EQ(create("\x1b[2J\xff\n%s%n"), 0);
    EXPECT_EQ(create("twenty-four characters!!"), EINVAL);
    EXPECT_EQ(create(std::string_view("a\0b", 3)), EINVAL);
}

TEST_F(Conformance, QueueSetAndStats) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    drm_orr_queue_set set{queue.number(), 4, 0, 0};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_SET, &set), EINVAL);
    set = {queue.number(), ORR_QUEUE_PRIORITY_LOW, ORR_QUEUE_WEIGHT_MAX + 1, 0};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_SET, &set), EINVAL);
    set = {kNobody, ORR_QUEUE_PRIORITY_LOW, 0, 0};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_SET, &set), ENOENT);
    if (::geteuid() != 0) {
        set = {queue.number(), ORR_QUEUE_PRIORITY_REALTIME, 0, 0};
        EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_SET, &set), EACCES);
        drm_orr_queue_create args = queue.args();
        args.priority = ORR_QUEUE_PRIORITY_REALTIME;
        EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_CREATE, &args), EACCES);
    }
    drm_orr_queue_stats stats{};
    stats.queue = kNobody;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_STATS, &stats), ENOENT);
    stats.queue = queue.number();
    stats.pad = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_STATS, &stats), EINVAL);

    // Nobody waits for anybody.
    drm_orr_query_deadlock deadlock{};
    deadlock.count = 8;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_DEADLOCK, &deadlock), 0);
    EXPECT_EQ(deadlock.count, 0u);
    EXPECT_EQ(deadlock.report, 0u);
}

std::uint64_t fdinfo(int fd, const std::string& wanted) {
    std::ifstream in("/proc/self/fdinfo/" + std::to_string(fd));
    for (std::string key; in >> key;) {
        std::uint64_t value = 0;
        if (key == wanted + ":" && in >> value) return value;
    }
    return ~std::uint64_t{0};
}
std::uint64_t copy_ns(int fd) {
    return fdinfo(fd, "orrery-time-copy");
}

TEST_F(Conformance, FdinfoHasTheEngineTime) {
    EXPECT_EQ(copy_ns(fd()), 0u);
    Buffer buffer;
    ASSERT_EQ(make_buffer(fd(), vm_, kVa, 1 << 20, ORR_BO_VRAM, buffer), 0);
    std::uint64_t used = 0;
    {
        Queue queue(fd(), vm_, kRingVa);
        ASSERT_EQ(queue.error(), 0);
        ASSERT_EQ(queue.run(std::vector{fill(kVa, 1 << 20, 7)}), 0);
        used = copy_ns(fd());
        EXPECT_GT(used, 0u);
        EXPECT_LT(used, 1'000'000'000u);
        // What any tool makes a share of: on the card's clock, both of them.
        const std::uint64_t cycles = fdinfo(fd(), "drm-cycles-copy");
        EXPECT_GT(cycles, 0u);
        EXPECT_LT(cycles, fdinfo(fd(), "drm-total-cycles-copy"));
        EXPECT_EQ(fdinfo(fd(), "drm-engine-copy"), ~std::uint64_t{0}) << "that would be the host's time";
    }
    EXPECT_EQ(copy_ns(fd()), used) << "a queue that is gone has used it all the same";
    if (::geteuid() == 0) {
        // Whoever looks does not disturb the firmware, and a silent one does not disturb him.
        Queue queue(fd(), vm_, kRingVa + (1 << 20));
        const unsigned commands = wait_statistic(0, "commands");
        for (int i = 0; i < 100; i++)
            EXPECT_EQ(copy_ns(fd()), used);
        EXPECT_LE(wait_statistic(0, "commands") - commands, 50u) << "apart from looks after the card";
    }
    const File other = open_card();
    EXPECT_EQ(copy_ns(other.get()), 0u);
}

TEST_F(Conformance, QueueDestroyWaitFence) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    drm_orr_queue_destroy destroy{};
    destroy.queue = queue.number();
    destroy.pad = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_DESTROY, &destroy), EINVAL);
    EXPECT_EQ(destroy_queue(fd(), kNobody), ENOENT);

    drm_orr_queue_wait wait_args{};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_WAIT, &wait_args), ENOENT);
    wait_args.queue = queue.number();
    wait_args.flags = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_WAIT, &wait_args), EINVAL);
    wait_args.flags = 0;
    wait_args.pad = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_WAIT, &wait_args), EINVAL);
    wait_args.pad = 0;
    wait_args.index = ~0ull;
    wait_args.timeout_ns = -1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_WAIT, &wait_args), ETIME);
    wait_args.timeout_ns = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_WAIT, &wait_args), ETIME);
    wait_args.timeout_ns = 1;  // long past
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_WAIT, &wait_args), ETIME);

    drm_orr_queue_fence fence{};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_FENCE, &fence), ENOENT);
    fence.queue = queue.number();
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_FENCE, &fence), ENOENT);
    fence.syncobj = kNobody;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_FENCE, &fence), ENOENT);
}

// Programs from before 1.17 have 40 bytes, and those of later versions more.
TEST_F(Conformance, QueryLinkOfOtherSizes) {
    const auto ask = [&](void* args, std::size_t bytes) {
        return call(fd(), _IOC(_IOC_READ | _IOC_WRITE, 'd', DRM_COMMAND_BASE + DRM_ORR_QUERY_LINK, bytes),
                    args);
    };
    drm_orr_query_link link{};
    std::memset(&link.rx_messages, 0x5a, sizeof(link) - offsetof(drm_orr_query_link, rx_messages));
    const drm_orr_query_link as_it_was = link;
    EXPECT_EQ(ask(&link, offsetof(drm_orr_query_link, rx_messages)), 0);
    EXPECT_EQ(std::memcmp(&link.rx_messages, &as_it_was.rx_messages,
                          sizeof(link) - offsetof(drm_orr_query_link, rx_messages)),
              0);
    drm_orr_query_link whole{};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_LINK, &whole), 0);
    EXPECT_EQ(whole.state, link.state);
    EXPECT_EQ(whole.peer_uid, link.peer_uid);
    EXPECT_EQ(whole.losses, link.losses);
    EXPECT_EQ(whole.known, ORR_LINK_KNOWS_COUNTS | ORR_LINK_KNOWS_DENIALS | ORR_LINK_KNOWS_FORGED);
    struct {
        drm_orr_query_link args;
        std::uint64_t more[3];
    } later{};
    EXPECT_EQ(ask(&later, sizeof(later)), 0);
    EXPECT_EQ(later.args.known, whole.known);
    EXPECT_EQ(later.args.changes, whole.changes);
    EXPECT_EQ(later.more[0] | later.more[1] | later.more[2], 0u);
    link = {};
    link.pad = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_LINK, &link), EINVAL);
}

// What sysfs shows of a port.
std::uint64_t port_file(const std::string& address, std::uint32_t port, const char* name) {
    std::ifstream file("/sys/bus/pci/devices/" + address + "/links/" + std::to_string(port) + "/" + name);
    std::uint64_t value = ~std::uint64_t{0};
    EXPECT_TRUE(file >> value) << name;
    return value;
}

TEST_F(Conformance, QueryLinkCountsAsSysfsDoes) {
    drm_orr_query_device device{};
    ASSERT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &device), 0);
    const std::string address = pci_addresses().at(0);
    for (std::uint32_t port = 0; port < device.link_ports; port++) {
        drm_orr_query_link link{};
        link.port = port;
        ASSERT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_LINK, &link), 0);
        // Drivers may have something to say to each other at any time.
        const std::uint64_t files[] = {
            port_file(address, port, "tx_messages"), port_file(address, port, "tx_bytes"),
            port_file(address, port, "rx_messages"), port_file(address, port, "rx_bytes")};
        drm_orr_query_link later{};
        later.port = port;
        ASSERT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_LINK, &later), 0);
        EXPECT_TRUE(link.tx_messages <= files[0] && files[0] <= later.tx_messages) << files[0];
        EXPECT_TRUE(link.tx_bytes <= files[1] && files[1] <= later.tx_bytes) << files[1];
        EXPECT_TRUE(link.rx_messages <= files[2] && files[2] <= later.rx_messages) << files[2];
        EXPECT_TRUE(link.rx_bytes <= files[3] && files[3] <= later.rx_bytes) << files[3];
        EXPECT_EQ(link.crc_errors, port_file(address, port, "crc_errors"));
        EXPECT_EQ(link.retries, port_file(address, port, "retries"));
        EXPECT_EQ(link.retrains, port_file(address, port, "retrains"));
        EXPECT_EQ(link.changes, port_file(address, port, "changes"));
        EXPECT_EQ(link.denied, port_file(address, port, "denied"));
        EXPECT_EQ(link.bad_keys, port_file(address, port, "bad_keys"));
        EXPECT_EQ(link.refused, port_file(address, port, "refused"));
        EXPECT_EQ(link.forged, port_file(address, port, "forged"));
        if (link.peer_uid == 0) continue;
        EXPECT_GE(link.changes, 2u) << "it has come up";
        EXPECT_EQ(link.built, link.lanes);
    }
}

TEST_F(Conformance, QueryLink) {
    drm_orr_query_device device{};
    ASSERT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &device), 0);
    unsigned links = 0;
    for (std::uint32_t port = 0; port < device.link_ports; port++) {
        drm_orr_query_link link{};
        link.port = port;
        EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_LINK, &link), 0);
        ASSERT_LE(link.state, ORR_LINK_DEGRADED);
        const bool up = link.state == ORR_LINK_UP || link.state == ORR_LINK_DEGRADED;
        EXPECT_EQ(up, link.peer_uid != 0) << port;
        if (!up) continue;
        links++;
        EXPECT_GT(link.lanes, 0u);
        EXPECT_GT(link.gbps, 0u);
        EXPECT_GT(link.latency_ns, 0u);
        // The card at the other end says the same.
        for (unsigned other = 1; other < count_cards(); other++) {
            const File peer = open_card(other);
            drm_orr_query_device its{};
            ASSERT_EQ(call(peer.get(), DRM_IOCTL_ORR_QUERY_DEVICE, &its), 0);
            if (its.uid != link.peer_uid) continue;
            drm_orr_query_link back{};
            back.port = link.peer_port;
            ASSERT_EQ(call(peer.get(), DRM_IOCTL_ORR_QUERY_LINK, &back), 0);
            EXPECT_EQ(back.peer_uid, device.uid);
            EXPECT_EQ(back.peer_port, port);
            EXPECT_EQ(back.gbps, link.gbps);
        }
    }
    EXPECT_EQ(links > 0, count_cards() > 1);
    for (const std::uint32_t port : {device.link_ports, 1000u, ~0u}) {
        drm_orr_query_link link{};
        link.port = port;
        EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_LINK, &link), EINVAL);
    }
}

int map_error(int fd, std::uint64_t offset, std::size_t size, int protection = PROT_READ | PROT_WRITE,
              int flags = MAP_SHARED) {
    return Mapping(fd, offset, size, protection, flags).error();
}

TEST_F(Conformance, Mmap) {
    EXPECT_EQ(map_error(fd(), bo_.mmap_offset, bo_.size), 0);
    EXPECT_EQ(map_error(fd(), bo_.mmap_offset, bo_.size, PROT_READ), 0);
    EXPECT_EQ(map_error(fd(), bo_.mmap_offset, bo_.size, PROT_READ | PROT_WRITE, MAP_PRIVATE), EINVAL);
    EXPECT_EQ(map_error(fd(), bo_.mmap_offset, bo_.size + 4096), EINVAL);
    EXPECT_EQ(map_error(fd(), bo_.mmap_offset + (1ull << 40), 4096), EINVAL);
    EXPECT_EQ(map_error(fd(), 0, 4096), EINVAL);
    EXPECT_EQ(map_error(fd(), 3 * 4096, 4096), EINVAL);
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    for (const std::uint64_t offset : {queue.args().doorbell_offset, queue.args().kick_offset}) {
        EXPECT_EQ(map_error(fd(), offset, 4096), 0);
        EXPECT_EQ(map_error(fd(), offset, 8192), EINVAL);
        EXPECT_EQ(map_error(fd(), offset, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE), EINVAL);
    }
    // A file without an address space has no page yet.
    File fresh = open_card();
    EXPECT_EQ(map_error(fresh.get(), queue.args().doorbell_offset, 4096), EINVAL);
    EXPECT_EQ(map_error(fresh.get(), queue.args().kick_offset, 4096), EINVAL);
}

TEST_F(Conformance, ReadWritePollAndOtherCallsOfTheNode) {
    std::array<char, 64> data{};
    EXPECT_EQ(::write(fd(), data.data(), data.size()), -1);
    // There are no events: nothing to read, now or ever.
    pollfd events{fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&events, 1, 0), 0);
    ASSERT_EQ(::fcntl(fd(), F_SETFL, O_RDWR | O_NONBLOCK), 0);
    EXPECT_EQ(::read(fd(), data.data(), data.size()), -1);
    EXPECT_EQ(errno, EAGAIN);
    drm_version version{};
    std::array<char, 64> name{};
    version.name = name.data();
    version.name_len = name.size() - 1;
    ASSERT_EQ(call(fd(), DRM_IOCTL_VERSION, &version), 0);
    EXPECT_STREQ(name.data(), "orrery");
}

}  // namespace
}  // namespace orrery::kmod_test
