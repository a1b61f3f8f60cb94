// What the driver does by itself, in works and interrupts: fences end there, so it needs no memory, and it
// says so to lockdep, which then looks after all that is called. For each such function what it does is
// provoked with every allocation in it failing, and there is none: so no point remains that could fail alone.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "tests/vm/debug/injector.h"
#include "tests/vm/debug/lock_chains.h"
#include "tests/vm/kmod/device.h"
#include "tests/vm/kmod/pci.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kRingVa = 0x10000000;
constexpr std::uint64_t kNowhere = 0x60000000;
constexpr std::uint64_t kMemoryVa = 0x40000000;

std::string card() {
    return pci_addresses().at(0);
}
unsigned node() {
    return static_cast<unsigned>(node_of(card()));
}
std::string state() {
    return read_file("/sys/bus/pci/devices/" + card() + "/state");
}

struct User {
    User() : file(open_card(node())) {
        EXPECT_EQ(create_vm(fd(), vm), 0);
        queue = std::make_unique<Queue>(fd(), vm, kRingVa);
        EXPECT_EQ(queue->error(), 0);
    }
    int fd() const { return file.get(); }
    File file;
    std::uint32_t vm = 0;
    std::unique_ptr<Queue> queue;
};

void expect_works() {
    User user;
    EXPECT_EQ(user.queue->run(std::vector{nop()}), 0);
}

// Fences in a timeline that somebody waits for, more than an interrupt takes.
void fences(User& user) {
    constexpr unsigned kFences = 200;
    const std::uint32_t timeline = make_syncobj(user.fd());
    Queue many(user.fd(), user.vm, kRingVa + (1 << 20), 256);
    Buffer gate;
    ASSERT_EQ(make_buffer(user.fd(), user.vm, kMemoryVa, 4096, ORR_BO_SYSTEM, gate), 0);
    many.submit(wait_for(gate.va, 1));
    for (unsigned i = 1; i <= kFences; i++)
        ASSERT_EQ(put_fence(user.fd(), many.number(), i, timeline, i), 0);
    many.submit(std::vector<orr_packet>(kFences - 1, nop()));
    user.queue->submit(signal(gate.va, 1));
    EXPECT_EQ(wait_point(user.fd(), timeline, kFences, kLong), 0);
}

// A wait with nothing behind it, for longer than the driver waits before it asks the firmware how it is.
void idle_wait(User& user) {
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(user.fd(), user.queue->number(), 1'000'000, 3.5, out), ETIME);
}

void stop_with_signallers(User& user) {
    Buffer memory;
    ASSERT_EQ(make_buffer(user.fd(), user.vm, kMemoryVa, 4096, ORR_BO_SYSTEM, memory), 0);
    drm_orr_signaller args{};
    args.queue = user.queue->number();
    args.semaphore = kMemoryVa;
    args.count = 8;
    ASSERT_EQ(call(user.fd(), DRM_IOCTL_ORR_SIGNALLER_ATTACH, &args), 0);
    user.queue->run(std::vector{timestamp(kNowhere)});
    for (int i = 0; i < 500 && (memory.words()[1] & ORR_SEM_CLOSED) == 0; i++)
        ::usleep(10'000);
    EXPECT_NE(memory.words()[1] & ORR_SEM_CLOSED, 0u) << "nobody closed the semaphore";
}

void crash_firmware(User& user) {
    ASSERT_TRUE(write_file(debugfs(node()) + "crash_firmware", "none"));
    EXPECT_EQ(user.queue->run(std::vector{nop()}), 0);
}

void lose(User& user) {
    std::thread sleeper([&] {
        drm_orr_queue_wait out{};
        EXPECT_EQ(wait(user.fd(), user.queue->number(), 1'000'000, kLong, out), ENODEV);
    });
    const std::uint32_t timeline = make_syncobj(user.fd());
    EXPECT_EQ(put_fence(user.fd(), user.queue->number(), 1'000'000, timeline, 1), 0);
    orr_mbox_message reply{};
    reply.sequence = 1;
    reply.opcode = ORR_MBOX_QUEUE_DESTROY;
    EXPECT_TRUE(inject(reply, node()));
    sleeper.join();
    EXPECT_EQ(wait_point(user.fd(), timeline, 1, kLong), 0);
    EXPECT_TRUE(state().starts_with("lost"));
}

// Killed while the firmware works on their questions.
void leave_questions(User&) {
    const unsigned left = wait_statistic(node(), "left_commands");
    for (int round = 0; round < 40 && wait_statistic(node(), "left_commands") == left; ++round) {
        const int end = killed_while_asking(2'000 * static_cast<unsigned>(round), [](const auto& tell) {
            User mine;
            drm_orr_queue_stats stats{};
            stats.queue = mine.queue->number();
            tell();
            while (call(mine.fd(), DRM_IOCTL_ORR_QUEUE_STATS, &stats) == 0) {
            }
        });
        ASSERT_GE(end, 0) << "it never asked";
    }
    EXPECT_GT(wait_statistic(node(), "left_commands"), left) << "nobody was killed at the right moment";
    ::usleep(300'000);
}

struct Case {
    const char* function;  // of the driver
    const char* work;      // what lockdep calls it; "": an interrupt's thread
    void (*provoke)(User& user);
    bool signals;       // it is what fences wait for
    bool more = false;  // it does something else after that
};

constexpr Case kCases[] = {
    {"orr_irq_handler", nullptr, fences, false},
    {"orr_irq_thread", "", fences, true},
    {"orr_health_work", "health_work", idle_wait, true},
    {"orr_restart_work", "restart.work", crash_firmware, true},
    {"orr_restart_recheck_work", "recheck_work", crash_firmware, true},
    {"orr_mbox_orphan_work", "orphan_work", leave_questions, true},
    {"orr_signaller_work", "stopped_work", stop_with_signallers, false},
    {"orr_closer_work", "closer", stop_with_signallers, false},
    {"orr_link_work", "link_work", idle_wait, false},
    {"orr_lost_work", "lost_work", lose, true, true},
};

class Works : public ::testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        ASSERT_FALSE(pci_addresses().empty());
        if (node_of(card()) >= 0 && state() == "running") return;
        unbind_driver(card());
        ASSERT_TRUE(bind_driver(card()));
    }
};

// That nothing fails in those functions would say nothing, if nothing could.
TEST(Injection, ReachesTheDriver) {
    ASSERT_GE(node_of(card()), 0);
    const std::string path = fmt::format("/dev/accel/accel{}", node());
    Injector injector;
    injector.fail_all_in("orr_file_open");
    const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    const int error = errno;
    EXPECT_GT(injector.stop_all(), 0u);
    EXPECT_FALSE(file);
    EXPECT_EQ(error, ENOMEM);
}

TEST_P(Works, NeedNoMemory) {
    Injector injector;
    {
        User user;
        injector.fail_all_in(GetParam().function);
        GetParam().provoke(user);
        const unsigned failed = injector.stop_all();
        EXPECT_EQ(failed, 0u) << "it allocates: that has to go, or each of these points has to fail in turn";
    }
    if (state() != "running") {
        ASSERT_TRUE(unbind_driver(card()));
        ASSERT_TRUE(bind_driver(card()));
    }
    expect_works();
}

// With begin and end of signalling around all that they do: then lockdep complains of whatever waits for
// memory in there, or for somebody who does.
TEST_P(Works, SayThatFencesDependOnThem) {
    const Case& test = GetParam();
    if (!test.signals) GTEST_SKIP() << "fences do not wait for it";
    {
        User user;
        test.provoke(user);
    }
    const std::string work = test.work;
    unsigned with = 0, without = 0;
    for (const auto& chain : lock_chains()) {
        for (std::size_t i = 0; i < chain.size(); i++) {
            if (work.empty()
                    ? i == 0 && chain[0] == "dma_fence_map"
                    : chain[i].starts_with("(work_completion)") && chain[i].find(work) != std::string::npos) {
                const std::size_t next = work.empty() ? i : i + 1;
                if (next < chain.size()) (chain[next] == "dma_fence_map" ? with : without)++;
            }
        }
    }
    fmt::print("{}: {} chains of locks inside, {} outside\n", test.function, with, without);
    EXPECT_GT(with, 0u) << "it was not seen at work, or does not say so";
    if (!test.more) {
        EXPECT_EQ(without, 0u) << "locks that are taken before or after";
    }
}

INSTANTIATE_TEST_SUITE_P(Of, Works, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.function); });

}  // namespace
}  // namespace orrery::kmod_test
