// The firmware crashes: it is started again, the queue that it worked for fails, all others go on.
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/vm/kmod/device.h"
#include "tests/vm/sched/bench.h"

namespace orrery::sched_test {
namespace {

class Restart : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "needs debugfs";
        ::mount("debugfs", "/sys/kernel/debug", "debugfs", 0, nullptr);
        orrDeviceProp prop = ORR_INIT(orrDeviceProp);
        ASSERT_OK(orrGetDeviceProperties(&prop, 0));
        state_ = std::string("/sys/bus/pci/devices/") + prop.pci_address + "/state";
        debugfs_ = std::string("/sys/kernel/debug/accel/") + prop.pci_address + "/";
        ASSERT_EQ(::access((debugfs_ + "crash_firmware").c_str(), F_OK), 0) << debugfs_;
    }
    std::string read(const char* file) const {
        std::ifstream in(debugfs_ + file);
        std::stringstream text;
        text << in.rdbuf();
        return text.str();
    }
    int restarts() const { return std::stoi(read("restarts")); }
    // The firmware's number of a queue of this name.
    int number_of(const std::string& name) const {
        std::istringstream lines(read("queues"));
        for (std::string line; std::getline(lines, line);) {
            if (line.find(' ' + name + ' ') != std::string::npos) return std::stoi(line);
        }
        ADD_FAILURE() << "no queue '" << name << "'";
        return -1;
    }
    // While the firmware starts, it cannot be told to crash.
    void send_crash(const std::string& guilty) const {
        for (int i = 0; i < 6000; ++i) {
            std::ofstream file(debugfs_ + "crash_firmware");
            if (file << guilty << std::flush) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        ADD_FAILURE() << "the firmware cannot be crashed";
    }
    void crash(const std::string& guilty) const {
        const int before = restarts();
        send_crash(guilty);
        for (int i = 0; i < 6000 && restarts() == before; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_EQ(restarts(), before + 1);
    }
    std::string debugfs_;
    std::string state_;
};

TEST_F(Restart, OtherQueuesGoOn) {
    const Card card(0);
    const Stream one("one"), two("two"), guilty("guilty"), parked("parked");
    const Semaphore gate("gate"), later("later");
    std::vector<std::unique_ptr<Count>> counts;
    later.wait_on(parked);
    later.wait_on(guilty);
    for (unsigned i = 0; i < 20; ++i) {
        counts.push_back(std::make_unique<Count>(card, 8, 50));
        counts.back()->launch(i % 2 == 0 ? one : two);
    }
    counts.push_back(std::make_unique<Count>(card, 8, 50));
    counts.back()->launch(parked);
    crash(std::to_string(number_of("guilty")));
    EXPECT_FAIL(orrStreamSynchronize(guilty.get()), orrErrorFirmware, "firmware crashed while it worked for");
    // The kernels that ran, those that stood in the rings, and a wait that was parked.
    EXPECT_OK(orrStreamSynchronize(one.get()));
    EXPECT_OK(orrStreamSynchronize(two.get()));
    EXPECT_EQ(orrStreamQuery(parked.get()), orrErrorNotReady);
    later.signal();
    EXPECT_OK(orrStreamSynchronize(parked.get()));
    for (const auto& count : counts)
        EXPECT_TRUE(count->right());
    const Stream fresh("fresh");
    const Count more(card, 8, 10);
    more.launch(fresh);
    EXPECT_OK(orrStreamSynchronize(fresh.get()));
    EXPECT_TRUE(more.right());
}

// One crash for both: four within a minute lose the card.
TEST_F(Restart, GenerationsOfQueuesAndQuotasSurvive) {
    const kmod_test::File file = kmod_test::open_card();
    std::uint32_t vm = 0;
    ASSERT_EQ(kmod_test::create_vm(file.get(), vm), 0);
    const auto make = [&] {
        auto queue = std::make_unique<kmod_test::Queue>(file.get(), vm, 0x10000000);
        EXPECT_EQ(queue->error(), 0);
        return queue;
    };
    ::unlink("/tmp/quota-runs");
    ::unlink("/tmp/quota-stop");
    ::setenv("ORR_QUOTA", "250/1000", 1);
    const pid_t worker = umd::vm::start_worker("long-quota");
    ::unsetenv("ORR_QUOTA");
    while (::access("/tmp/quota-runs", F_OK) != 0) {
        ASSERT_EQ(::waitpid(worker, nullptr, WNOHANG), 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    drm_orr_queue_create dead{};
    for (int i = 0; i < 3; ++i) {
        auto queue = make();
        dead = queue->args();
        EXPECT_EQ(queue->run(std::vector{kmod_test::nop()}), 0);
        queue.reset();
        ASSERT_EQ(kmod_test::unmap(file.get(), vm, 0x10000000, 1 << 20), 0);
    }
    crash("none");
    EXPECT_EQ(::waitpid(worker, nullptr, WNOHANG), 0) << "it ended by itself";
    {
        auto queue = make();
        EXPECT_EQ(queue->args().doorbell_slot, dead.doorbell_slot) << "another row says nothing about it";
        EXPECT_GT(queue->args().generation, dead.generation);
        // A doorbell of the dead queue, which was on its way all the time.
        queue->write(std::vector{kmod_test::nop(), kmod_test::nop()});
        queue->page().doorbell[dead.doorbell_slot] = ORR_DB_VALUE(dead.generation, 1);
        kmod_test::Queue other(file.get(), vm, 0x20000000);
        ASSERT_EQ(other.error(), 0);
        EXPECT_EQ(other.run(std::vector{kmod_test::nop()}), 0);
        EXPECT_EQ(queue->ring().consumer, 0u);
        EXPECT_EQ(queue->run(std::vector{kmod_test::nop()}), 0);
        drm_orr_queue_wait state{};
        EXPECT_EQ(kmod_test::wait(file.get(), queue->number(), 3, kmod_test::kLong, state), 0);
        EXPECT_EQ(state.error, 0u);
    }
    std::ofstream("/tmp/quota-stop") << "1\n";
    EXPECT_EQ(umd::vm::wait_for(worker), 0);
}

TEST_F(Restart, CommandsAreRepeated) {
    const kmod_test::File file = kmod_test::open_card();
    std::uint32_t vm = 0;
    ASSERT_EQ(kmod_test::create_vm(file.get(), vm), 0);
    std::atomic<bool> stop{false};
    std::atomic<unsigned> rounds{0};
    // Each round makes and destroys an address space and a queue, maps, works and unmaps.
    std::thread worker([&] {
        while (!stop.load()) {
            std::uint32_t other = 0;
            ASSERT_EQ(kmod_test::create_vm(file.get(), other), 0);
            {
                kmod_test::Queue queue(file.get(), other, 0x10000000);
                ASSERT_EQ(queue.error(), 0);
                const orr_packet packets[] = {kmod_test::nop(), kmod_test::nop()};
                ASSERT_EQ(queue.run(packets), 0);
            }
            ASSERT_EQ(kmod_test::destroy_vm(file.get(), other), 0);
            rounds.fetch_add(1);
        }
    });
    const auto wait_for_rounds = [&](unsigned more) {
        const unsigned until = rounds.load() + more;
        for (int i = 0; i < 6000 && rounds.load() < until; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_GE(rounds.load(), until);
    };
    wait_for_rounds(5);
    crash("none");
    wait_for_rounds(5);
    stop.store(true);
    worker.join();
}

// The last one: the card is lost after it.
TEST_F(Restart, TooManyLoseTheCard) {
    const kmod_test::File file = kmod_test::open_card();
    for (int i = 0; i < 4; ++i) {
        const int before = restarts();
        send_crash("none");
        for (int n = 0; n < 6000 && restarts() == before; ++n) {
            drm_orr_query_device query{};
            if (kmod_test::call(file.get(), DRM_IOCTL_ORR_QUERY_DEVICE, &query) == ENODEV) {
                // Not one too early, and for this reason; the tests before this one count too.
                EXPECT_GE(restarts(), 3);
                std::ifstream state(state_);
                std::string reason;
                std::getline(state, reason);
                EXPECT_EQ(reason, "lost: its firmware had to be restarted too often");
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
    FAIL() << "four crashes within a minute, and the card is still there";
}

}  // namespace
}  // namespace orrery::sched_test
