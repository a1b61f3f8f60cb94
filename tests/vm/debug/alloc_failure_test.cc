// Each allocation of each call fails once, and each copy from or to the caller's memory: the call says so,
// takes nothing along and works the next time. The kernel's own detectors judge the rest: what is used after
// it was freed, what is left behind, which lock stays held.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/vm/debug/injector.h"
#include "tests/vm/kmod/device.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
// Of system memory: each page of it can fail, and each failure begins anew.
constexpr std::uint64_t kSystem = 64 << 10;
constexpr std::uint64_t kRingVa = 0x10000000;
constexpr std::uint64_t kVa = 0x40000000;

// What a process has before it makes the call in question. Made without failures.
struct Process {
    Process() : file(open_card()) { EXPECT_EQ(create_vm(fd(), vm), 0); }
    int fd() const { return file.get(); }

    Buffer buffer(std::uint64_t size, std::uint32_t flags, std::uint64_t va = kVa) const {
        Buffer made;
        EXPECT_EQ(make_buffer(fd(), vm, va, size, flags, made), 0);
        return made;
    }
    std::uint32_t bo(std::uint64_t size, std::uint32_t flags) const {
        drm_orr_bo_create made{};
        EXPECT_EQ(create_bo(fd(), size, flags, made), 0);
        return made.handle;
    }

    File file;
    std::uint32_t vm = 0;
};

// Copies and fills memory of both kinds with a queue: the card and the driver are as they should be.
void expect_works() {
    const Process process;
    const Buffer vram = process.buffer(2 * kMiB, ORR_BO_VRAM);
    const Buffer system = process.buffer(kMiB, ORR_BO_SYSTEM, kVa + 0x10000000);
    Queue queue(process.fd(), process.vm, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    ASSERT_EQ(queue.run(std::vector{fill(vram.va, kMiB, 5), copy(vram.va, system.va, kMiB)}), 0);
    EXPECT_EQ(system.words()[1000], 5u);
}

class AllocationFailures : public ::testing::Test {
  protected:
    // Nothing is left of the processes before: no memory of the card is used.
    void TearDown() override {
        {
            const File file = open_card();
            EXPECT_EQ(vram_used(file.get()), 0u);
        }
        expect_works();
    }

    // Makes `call` once without a failure and then with each. For each, `prepare` makes what it needs, and
    // what that returned goes away after it. `call` returns an errno.
    template <typename Prepare, typename Call>
    void each_point(const Prepare& prepare, const Call& call) {
        {
            auto state = prepare();
            ASSERT_EQ(call(state), 0);
        }
        unsigned failures = 0;
        unsigned n = 1;
        for (;; n++) {
            auto state = prepare();
            int error = -1;
            if (!injector_.fail_nth(n, [&] { error = call(state); })) break;
            failures += error != 0;
            EXPECT_TRUE(error == 0 || error == ENOMEM || error == EFAULT)
                << "point " << n << ": " << std::strerror(error);
            if (HasFailure()) return;
        }
        fmt::print("{} points, {} of them failed the call\n", n - 1, failures);
        // A call that has no points to fail would pass whatever the driver does.
        EXPECT_GT(n, 1u);
    }

    // The same for something that is part of Process.
    template <typename Call>
    void each_point(const Call& call) {
        each_point([] { return Process(); }, call);
    }

    Injector injector_;
};

TEST_F(AllocationFailures, Open) {
    each_point([] { return File(); },
               [](File& file) {
                   file = File(::open("/dev/accel/accel0", O_RDWR | O_CLOEXEC));
                   return file ? 0 : errno;
               });
}

TEST_F(AllocationFailures, Close) {
    struct Full : Process {
        Buffer vram = buffer(4 * kMiB, ORR_BO_VRAM);
        Buffer system = buffer(kSystem, ORR_BO_SYSTEM, kVa + 0x10000000);
        Queue queue{fd(), vm, kRingVa};
    };
    each_point([] { return std::make_unique<Full>(); },
               [](std::unique_ptr<Full>& full) {
                   full->queue.forget();
                   full.reset();
                   return 0;
               });
}

TEST_F(AllocationFailures, CreateBuffers) {
    for (const std::uint32_t flags : {ORR_BO_VRAM, ORR_BO_SYSTEM})
        each_point([flags](Process& process) {
            drm_orr_bo_create bo{};
            return create_bo(process.fd(), flags == ORR_BO_VRAM ? 3 * kMiB : kSystem, flags, bo);
        });
}

TEST_F(AllocationFailures, LookAtABufferAndCloseIt) {
    struct WithBuffer : Process {
        std::uint32_t handle = bo(kMiB, ORR_BO_VRAM);
    };
    each_point([] { return WithBuffer(); },
               [](WithBuffer& process) {
                   drm_orr_bo_info info{};
                   info.handle = process.handle;
                   const int error = call(process.fd(), DRM_IOCTL_ORR_BO_INFO, &info);
                   return error != 0 ? error : close_bo(process.fd(), process.handle);
               });
}

TEST_F(AllocationFailures, MapABufferIntoTheProcess) {
    struct WithBuffer : Process {
        Mapping mapping;
    };
    for (const std::uint32_t flags : {ORR_BO_VRAM, ORR_BO_SYSTEM})
        each_point([] { return WithBuffer(); },
                   [flags](WithBuffer& process) {
                       drm_orr_bo_create bo{};
                       if (const int error = create_bo(process.fd(), kSystem, flags, bo)) return error;
                       process.mapping = Mapping(process.fd(), bo.mmap_offset, kSystem,
                                                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE);
                       return process.mapping.error();
                   });
}

TEST_F(AllocationFailures, CreateAndDestroyAddressSpaces) {
    each_point([](Process& process) {
        std::uint32_t vm = 0;
        const int error = create_vm(process.fd(), vm);
        return error != 0 ? error : destroy_vm(process.fd(), vm);
    });
}

// A queue that has used the mapping: what is mapped, and what is not, is so for the card too.
bool card_reaches(Process& process, std::uint64_t va, std::uint64_t ring_va) {
    Queue queue(process.fd(), process.vm, ring_va);
    EXPECT_EQ(queue.error(), 0);
    return queue.run(std::vector{fill(va, 4096, 1)}) == 0;
}

TEST_F(AllocationFailures, BindAndUnbind) {
    struct WithBuffer : Process {
        std::uint32_t vram = bo(4 * kMiB, ORR_BO_VRAM);
        std::uint32_t system = bo(kSystem, ORR_BO_SYSTEM);
    };
    for (const bool in_vram : {true, false})
        each_point([] { return WithBuffer(); },
                   [in_vram](WithBuffer& process) {
                       return map(process.fd(), process.vm, in_vram ? process.vram : process.system, kVa,
                                  in_vram ? 4 * kMiB : kSystem);
                   });
    // A page out of the middle of a large entry: the entry is split, and the page is gone or all is as
    // before.
    struct Mapped : WithBuffer {
        Mapped() { EXPECT_EQ(map(fd(), vm, vram, kVa, 4 * kMiB), 0); }
    };
    unsigned unmapped = 0;
    for (unsigned n = 1;; n++) {
        Mapped process;
        int error = -1;
        const bool failed =
            injector_.fail_nth(n, [&] { error = unmap(process.fd(), process.vm, kVa + kMiB, 4096); });
        EXPECT_TRUE(error == 0 || error == ENOMEM || error == EFAULT) << std::strerror(error);
        EXPECT_EQ(card_reaches(process, kVa + kMiB, kRingVa), error != 0) << "point " << n;
        EXPECT_TRUE(card_reaches(process, kVa + kMiB + 4096, kRingVa + kMiB)) << "point " << n;
        unmapped += error == 0;
        if (!failed || HasFailure()) break;
    }
    EXPECT_GT(unmapped, 0u);
}

TEST_F(AllocationFailures, CreateQueues) {
    struct WithRing : Process {
        Buffer ring = buffer(64 * 1024, ORR_BO_SYSTEM, kRingVa);
        drm_orr_queue_create queue{};
    };
    each_point([] { return WithRing(); },
               [](WithRing& process) {
                   process.queue.vm = process.vm;
                   process.queue.entries = 64;
                   process.queue.ring_va = kRingVa;
                   process.queue.priority = ORR_QUEUE_PRIORITY_NORMAL;
                   return call(process.fd(), DRM_IOCTL_ORR_QUEUE_CREATE, &process.queue);
               });
}

struct WithQueue : Process {
    WithQueue() { EXPECT_EQ(queue->error(), 0); }
    std::unique_ptr<Queue> queue = std::make_unique<Queue>(fd(), vm, kRingVa);
};

TEST_F(AllocationFailures, DestroyQueues) {
    each_point([] { return WithQueue(); },
               [](WithQueue& process) {
                   const int error = destroy_queue(process.fd(), process.queue->number());
                   if (error == 0) process.queue->forget();
                   return error;
               });
}

TEST_F(AllocationFailures, MapTheDoorbell) {
    struct State : WithQueue {
        Mapping doorbell;
    };
    each_point([] { return State(); },
               [](State& process) {
                   process.doorbell =
                       Mapping(process.fd(), process.queue->args().doorbell_offset, ORR_DB_PAGE_SIZE,
                               PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE);
                   return process.doorbell.error();
               });
}

TEST_F(AllocationFailures, WaitForAQueue) {
    each_point([] { return WithQueue(); },
               [](WithQueue& process) {
                   drm_orr_queue_wait out{};
                   return wait(process.fd(), process.queue->number(), process.queue->submit(nop()), kLong,
                               out);
               });
}

TEST_F(AllocationFailures, SetAndAskAQueue) {
    each_point([] { return WithQueue(); },
               [](WithQueue& process) {
                   drm_orr_queue_set set{};
                   set.queue = process.queue->number();
                   set.priority = ORR_QUEUE_PRIORITY_LOW;
                   set.weight = 3;
                   if (const int error = call(process.fd(), DRM_IOCTL_ORR_QUEUE_SET, &set)) return error;
                   drm_orr_queue_stats stats{};
                   stats.queue = process.queue->number();
                   if (const int error = call(process.fd(), DRM_IOCTL_ORR_QUEUE_STATS, &stats)) return error;
                   std::vector<drm_orr_wait_edge> edges(8);
                   drm_orr_query_deadlock deadlock{};
                   deadlock.edges = reinterpret_cast<std::uintptr_t>(edges.data());
                   deadlock.count = static_cast<std::uint32_t>(edges.size());
                   return call(process.fd(), DRM_IOCTL_ORR_QUERY_DEADLOCK, &deadlock);
               });
}

TEST_F(AllocationFailures, Fences) {
    struct State : WithQueue {
        State() {
            drm_syncobj_create create{};
            EXPECT_EQ(call(fd(), DRM_IOCTL_SYNCOBJ_CREATE, &create), 0);
            syncobj = create.handle;
        }
        std::uint32_t syncobj = 0;
    };
    for (const std::uint64_t point : {0u, 7u})
        each_point([] { return State(); },
                   [point](State& process) {
                       drm_orr_queue_fence fence{};
                       fence.queue = process.queue->number();
                       fence.syncobj = process.syncobj;
                       fence.index = process.queue->submit(nop());
                       fence.point = point;
                       if (const int error = call(process.fd(), DRM_IOCTL_ORR_QUEUE_FENCE, &fence))
                           return error;
                       std::uint64_t points = point;
                       std::uint32_t handle = process.syncobj;
                       drm_syncobj_timeline_wait wait{};
                       wait.handles = reinterpret_cast<std::uintptr_t>(&handle);
                       wait.points = reinterpret_cast<std::uintptr_t>(&points);
                       wait.count_handles = 1;
                       wait.timeout_nsec = INT64_MAX;
                       return call(process.fd(), DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &wait);
                   });
}

// Attached, used, detached; and with the queue aborted while it is attached.
TEST_F(AllocationFailures, SignallersAndAborts) {
    struct State : WithQueue {
        Buffer memory = buffer(kSystem, ORR_BO_SYSTEM);
    };
    for (const bool abort : {false, true})
        each_point([] { return State(); },
                   [abort](State& process) {
                       drm_orr_signaller args{};
                       args.queue = process.queue->number();
                       args.semaphore = kVa;
                       args.count = 8;
                       if (const int error = call(process.fd(), DRM_IOCTL_ORR_SIGNALLER_ATTACH, &args))
                           return error;
                       if (!abort) return call(process.fd(), DRM_IOCTL_ORR_SIGNALLER_DETACH, &args);
                       drm_orr_queue_abort stop{};
                       stop.queue = args.queue;
                       return call(process.fd(), DRM_IOCTL_ORR_QUEUE_ABORT, &stop);
                   });
}

TEST_F(AllocationFailures, AskTheCard) {
    each_point([](Process& process) {
        drm_orr_query_device device{};
        if (const int error = call(process.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &device)) return error;
        std::vector<std::uint64_t> values(device.counters);
        drm_orr_query_counters counters{};
        counters.values = reinterpret_cast<std::uintptr_t>(values.data());
        counters.count = device.counters;
        if (const int error = call(process.fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters)) return error;
        drm_orr_query_link link{};
        return call(process.fd(), DRM_IOCTL_ORR_QUERY_LINK, &link);
    });
}

TEST_F(AllocationFailures, ShareABuffer) {
    struct Sharing : Process {
        std::uint32_t vram = bo(kMiB, ORR_BO_VRAM);
        File other = open_card();
    };
    each_point([] { return Sharing(); },
               [](Sharing& process) {
                   // The descriptor stays if only its number could not be told: that is the DRM core's way.
                   const int next = ::dup(process.fd());
                   ::close(next);
                   File dma_buf;
                   const int error = export_bo(process.fd(), process.vram, dma_buf);
                   if (error == EFAULT) ::close(next);
                   if (error != 0) return error;
                   std::uint32_t handle = 0;
                   return import_bo(process.other.get(), dma_buf.get(), handle);
               });
}

TEST_F(AllocationFailures, ShareABufferWithALinkedCard) {
    if (count_cards() < 2) GTEST_SKIP() << "needs two linked cards";
    struct Peers : Process {
        Peers() : owner(open_card(1)) {
            drm_orr_bo_create made{};
            EXPECT_EQ(create_bo(owner.get(), kMiB, ORR_BO_VRAM, made), 0);
            EXPECT_EQ(export_bo(owner.get(), made.handle, dma_buf), 0);
        }
        File owner;
        File dma_buf;
    };
    each_point([] { return Peers(); },
               [](Peers& process) {
                   std::uint32_t handle = 0;
                   if (const int error = import_bo(process.fd(), process.dma_buf.get(), handle)) return error;
                   return map(process.fd(), process.vm, handle, kVa, kMiB, ORR_BIND_WRITE);
               });
}

TEST_F(AllocationFailures, ReadWhatAFileUses) {
    each_point([] { return WithQueue(); },
               [](WithQueue& process) {
                   char text[4096];
                   const File info(::open(fmt::format("/proc/self/fdinfo/{}", process.fd()).c_str(),
                                          O_RDONLY | O_CLOEXEC));
                   if (!info) return errno;
                   return ::read(info.get(), text, sizeof text) > 0 ? 0 : errno;
               });
}

}  // namespace
}  // namespace orrery::kmod_test
