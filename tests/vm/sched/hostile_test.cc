// What a process could try with the scheduler's ioctls: privilege, buffers that are none, races.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

#include "tests/vm/kmod/device.h"
#include "tests/vm/sched/bench.h"

namespace orrery::sched_test {
namespace {

using kmod_test::Buffer;
using kmod_test::call;
using kmod_test::File;
using kmod_test::kLong;
using kmod_test::Queue;

constexpr std::uint64_t kWords = 0x40000000, kRings = 0x10000000;

// Two queues that wait for each other.
struct Cycle {
    explicit Cycle(int file) : fd(file) {
        EXPECT_EQ(kmod_test::create_vm(fd, vm), 0);
        EXPECT_EQ(kmod_test::make_buffer(fd, vm, kWords, 4096, ORR_BO_SYSTEM, words), 0);
        for (std::uint64_t n = 0; n < 2; ++n)
            queues[n] = std::make_unique<Queue>(fd, vm, kRings + (n << 20));
    }
    bool good() const { return queues[0]->error() == 0 && queues[1]->error() == 0; }
    void close() const {
        for (std::uint64_t n = 0; n < 2; ++n) {
            const orr_packet packets[] = {kmod_test::wait_for(kWords + 16 * n, 1),
                                          kmod_test::signal(kWords + 16 * (1 - n), 1)};
            queues[n]->submit(packets);
        }
    }
    int wait() const {
        drm_orr_queue_wait state{};
        return kmod_test::wait(fd, queues[0]->number(), 2, kLong, state);
    }
    int query(void* edges, std::uint32_t& count) const {
        drm_orr_query_deadlock query{};
        query.edges = reinterpret_cast<std::uintptr_t>(edges);
        query.count = count;
        const int error = call(fd, DRM_IOCTL_ORR_QUERY_DEADLOCK, &query);
        count = query.count;
        return error;
    }
    int fd;
    std::uint32_t vm = 0;
    Buffer words;
    std::unique_ptr<Queue> queues[2];
};

// A user who is root in a namespace of its own has no right to keep others off the card.
TEST(Hostile, RealTimeInAUserNamespace) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
        const File file = kmod_test::open_card();
        std::uint32_t vm = 0;
        if (!file || kmod_test::create_vm(file.get(), vm) != 0) ::_exit(2);
        Queue queue(file.get(), vm, kRings);
        if (queue.error() != 0) ::_exit(3);
        drm_orr_queue_set set{queue.number(), ORR_QUEUE_PRIORITY_REALTIME, 0, 0};
        if (call(file.get(), DRM_IOCTL_ORR_QUEUE_SET, &set) != EACCES) ::_exit(4);
        drm_orr_queue_create create = queue.args();
        create.priority = ORR_QUEUE_PRIORITY_REALTIME;
        if (call(file.get(), DRM_IOCTL_ORR_QUEUE_CREATE, &create) != EACCES) ::_exit(5);
        // Nor to hold what others wait for longer than anybody.
        set = {queue.number(), ORR_QUEUE_PRIORITY_HIGH, 0, ORR_QUEUE_SLICE_MAX_US};
        if (call(file.get(), DRM_IOCTL_ORR_QUEUE_SET, &set) != 0) ::_exit(6);
        ++set.slice_us;
        if (call(file.get(), DRM_IOCTL_ORR_QUEUE_SET, &set) != EACCES) ::_exit(7);
        create = queue.args();
        create.dispatch_limit_us = ORR_QUEUE_LIMIT_MAX_US + 1;
        if (call(file.get(), DRM_IOCTL_ORR_QUEUE_CREATE, &create) != EACCES) ::_exit(8);
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespaces";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Hostile, ReportsIntoBuffersThatAreNone) {
    const File file = kmod_test::open_card();
    Cycle cycle(file.get());
    ASSERT_TRUE(cycle.good());
    cycle.close();
    ASSERT_EQ(cycle.wait(), EDEADLK);
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const memory =
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* const bytes = static_cast<std::byte*>(memory);
    ASSERT_EQ(::mprotect(bytes + page, page, PROT_READ), 0);
    // No page, the kernel's half, what no address can be, read-only, and the second edge in a page that is.
    const std::uint64_t bad[] = {0,
                                 8,
                                 0xffff888000000000,
                                 ~std::uint64_t{0} - 7,
                                 0x8000000000000000,
                                 reinterpret_cast<std::uintptr_t>(bytes + page),
                                 reinterpret_cast<std::uintptr_t>(bytes + page) - sizeof(drm_orr_wait_edge)};
    for (const std::uint64_t address : bad) {
        std::uint32_t count = 8;
        EXPECT_EQ(cycle.query(reinterpret_cast<void*>(address), count), EFAULT) << std::hex << address;
    }
    // More room than anybody has: two edges are written, and nothing behind them.
    std::memset(memory, 0x5a, 3 * sizeof(drm_orr_wait_edge));
    std::uint32_t count = ~0u;
    EXPECT_EQ(cycle.query(memory, count), 0);
    EXPECT_EQ(count, 2u);
    for (std::size_t n = 2 * sizeof(drm_orr_wait_edge); n < 3 * sizeof(drm_orr_wait_edge); ++n)
        ASSERT_EQ(bytes[n], std::byte{0x5a}) << n;
    ::munmap(memory, 2 * page);
}

// Cycles come and go while others ask about them, wait for their queues and change them.
TEST(Hostile, CyclesThatVanishUnderTheirReaders) {
    const File file = kmod_test::open_card();
    std::atomic<bool> stop{false};
    std::atomic<std::uint32_t> numbers[2] = {};
    std::vector<std::thread> meddlers;
    for (unsigned seed = 0; seed < 3; ++seed) {
        meddlers.emplace_back([&, seed] {
            std::mt19937 generator(seed);
            const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
            std::vector<drm_orr_wait_edge> edges(4);
            while (!stop.load()) {
                drm_orr_query_deadlock query{};
                query.edges = reinterpret_cast<std::uintptr_t>(edges.data());
                query.count = random() % 5;
                EXPECT_EQ(call(file.get(), DRM_IOCTL_ORR_QUERY_DEADLOCK, &query), 0);
                const std::uint32_t number = numbers[random() % 2].load();
                drm_orr_queue_set set{number, random() % 3, random() % 1025,
                                      random() % (ORR_QUEUE_SLICE_MAX_US + 1)};
                const int error = call(file.get(), DRM_IOCTL_ORR_QUEUE_SET, &set);
                // A long slice takes a privilege.
                EXPECT_TRUE(error == 0 || error == ENOENT || (error == EACCES && ::geteuid() != 0)) << error;
                drm_orr_queue_wait state{};
                (void)kmod_test::wait(file.get(), number, 2, 0.001, state);
            }
        });
    }
    unsigned found = 0;
    for (unsigned round = 0; round < 30; ++round) {
        Cycle cycle(file.get());
        ASSERT_TRUE(cycle.good());
        numbers[0].store(cycle.queues[0]->number());
        numbers[1].store(cycle.queues[1]->number());
        cycle.close();
        // Every other one is destroyed at once, whatever has been told of it by then.
        if (round % 2 == 0 && cycle.wait() == EDEADLK) ++found;
        for (auto& queue : cycle.queues)
            queue.reset();
        EXPECT_EQ(kmod_test::destroy_vm(file.get(), cycle.vm), 0);
    }
    stop.store(true);
    for (std::thread& meddler : meddlers)
        meddler.join();
    EXPECT_EQ(found, 15u);
    std::uint32_t vm = 0;
    ASSERT_EQ(kmod_test::create_vm(file.get(), vm), 0);
    Queue queue(file.get(), vm, kRings);
    EXPECT_EQ(queue.run(std::vector{kmod_test::nop()}), 0);
}

}  // namespace
}  // namespace orrery::sched_test
