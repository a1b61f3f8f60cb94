// A card, or a switch, is stopped for good by the host's hand (stop.sh) while all that crosses links is under
// way to it: who waits is told, without a limit of his own, and by name.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <orrery/group.h>
#include <orrery/multicast.h>
#include <orrery/embedded_kernel.hpp>

#include "tests/system/runtime/hand.h"
#include "tests/vm/umd/helpers.h"

ORR_EMBEDDED_KERNEL(umd_test_kernels);

namespace orrery::umd::vm {
namespace {

using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr std::size_t kBytes = 16 << 20;
constexpr int kCopies = 100;  // each time the gate opens
// Of the host's time; a card that does not look for 10 s is given up, and with the rest of a guest it may
// stand.
constexpr auto kLongest = std::chrono::minutes(3);

class Stopped : public ::testing::Test {
  protected:
    // Somebody who waits for what crosses.
    struct Cell {
        std::string name;
        std::unique_ptr<Card> card;
        std::atomic_ref<std::uint64_t> word(unsigned n) const { return std::atomic_ref(words[n]); }
        std::uint64_t* words = nullptr;  // the host's
        orrEvent_t begun = nullptr;      // of copies, when one is over
        orrError_t told = orrErrorNotReady;
        std::string text{};
        double after_s = 0;
    };

    void SetUp() override {
        if (::access("/share/stopper", F_OK) != 0) GTEST_SKIP() << "nobody on the host stops anything";
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        ASSERT_GE(count, 3);
        last_ = count - 1;
        ASSERT_OK(orrSetDevice(last_));
        ASSERT_OK(orrDeviceEnablePeerAccess(0, 0));
        ASSERT_OK(orrMalloc(&remote_, kBytes));
        ASSERT_OK(orrMemset(remote_, 0, kBytes));
        ASSERT_OK(orrSetDevice(0));
        ASSERT_OK(orrDeviceEnablePeerAccess(last_, 0));
        ASSERT_OK(orrMalloc(&local_, kBytes));
        ASSERT_OK(orrMemset(local_, 1, kBytes));
        ASSERT_OK(orrSemaphoreCreate(&gate_, 0));
    }

    Cell& add(const std::string& name) {
        Cell& cell = *cells_.emplace_back(std::make_unique<Cell>());
        cell.name = name;
        cell.card = std::make_unique<Card>(0, kNoLimitUs);
        void* words = nullptr;
        EXPECT_OK(orrMallocHost(&words, 4096, 0));
        std::memset(words, 0, 4096);
        cell.words = static_cast<std::uint64_t*>(words);
        return cell;
    }
    // Copies, some that begin when the gate first opens and some when it does once more.
    void copy(const std::string& name, void* to, const void* from) {
        Cell& cell = add(name);
        ASSERT_OK(orrEventCreate(&cell.begun, 0));
        for (const std::uint64_t opening : {kBefore, kAfter}) {
            ASSERT_OK(orrStreamWaitSemaphore(cell.card->stream, gate_, opening, nullptr));
            for (int copy = 0; copy < kCopies; ++copy) {
                ASSERT_OK(orrMemcpyAsync(to, from, kBytes, orrMemcpyDefault, cell.card->stream));
                if (opening == kBefore && copy == 0) ASSERT_OK(orrEventRecord(cell.begun, cell.card->stream));
            }
        }
    }
    // A kernel that goes there all the time.
    void cross(const std::string& name, std::uint64_t how) {
        const Cell& cell = add(name);
        ASSERT_OK(
            cell.card->launch("cross_there", {cell.words, how, reinterpret_cast<std::uintptr_t>(remote_)}));
        while (cell.word(1).load() == 0)
            ::usleep(1000);
    }
    // Who is there waits for the last card's.
    void wait_at_barrier() {
        const int devices[] = {0, last_};
        groups_.resize(2);
        ASSERT_OK(orrGroupCreateAll(groups_.data(), 2, devices, 0));
        const Cell& cell = add("barrier");
        ASSERT_OK(orrGroupBarrierAsync(groups_[0], cell.card->stream, nullptr));
        EXPECT_EQ(orrStreamQuery(cell.card->stream), orrErrorNotReady);
    }
    void begin_all(bool to_many) {
        ASSERT_NO_FATAL_FAILURE(cross("a kernel's loads", kCrossLoad));
        ASSERT_NO_FATAL_FAILURE(cross("a kernel's atomics", kCrossAtomic));
        ASSERT_NO_FATAL_FAILURE(wait_at_barrier());
        if (to_many) ASSERT_NO_FATAL_FAILURE(multicast());
        ASSERT_NO_FATAL_FAILURE(copy("copies from there", local_, remote_));
        ASSERT_NO_FATAL_FAILURE(copy("copies there", remote_, local_));
        ASSERT_OK(orrSemaphoreSignal(gate_, kBefore));
        for (const auto& cell : cells_)
            if (cell->begun != nullptr) ASSERT_OK(orrEventSynchronize(cell->begun));
    }
    void multicast() {
        std::vector<void*> members;
        for (int device = 1; device <= last_; ++device) {
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrIpcMalloc(&members.emplace_back(), kBytes, 0));
            ASSERT_OK(orrMemset(members.back(), 0, kBytes));
        }
        ASSERT_OK(orrSetDevice(0));
        void* all = nullptr;
        ASSERT_OK(orrMulticastCreate(&all, members.data(), last_, kBytes, 0));
        ASSERT_NO_FATAL_FAILURE(copy("a multicast", all, local_));
    }

    // how: `process` or `threads` (stop.sh)
    void stop(const std::string& how, int which) {
        ASSERT_EQ(ask(how, which), "ok\n");
        stopped_ = Clock::now();
        which_ = which;
        // However fast the copies are, some are left.
        ASSERT_OK(orrSemaphoreSignal(gate_, kAfter));
    }
    static std::string ask(const std::string& how, int which) {
        return ask_host("stop", how + ' ' + std::to_string(which), std::chrono::seconds(60));
    }
    // It could not end.
    void TearDown() override {
        if (which_ >= 0) EXPECT_EQ(ask("continue", which_), "ok\n");
    }
    // What each is told in the end.
    void learn() {
        std::size_t open = cells_.size();
        while (open != 0 && Clock::now() - stopped_ < kLongest) {
            ::usleep(5'000);
            for (auto& cell : cells_) {
                if (cell->told != orrErrorNotReady) continue;
                cell->told = orrStreamQuery(cell->card->stream);
                if (cell->told == orrErrorNotReady) continue;
                cell->text = orrGetLastErrorText();
                cell->after_s = std::chrono::duration<double>(Clock::now() - stopped_).count();
                --open;
            }
        }
        for (const auto& cell : cells_)
            std::printf("%-20s after %5.1f s: %s: %s\n", cell->name.c_str(), cell->after_s,
                        orrGetErrorName(cell->told), cell->text.c_str());
        std::fflush(stdout);
    }

    // The gate's values: before and after something is stopped.
    static constexpr std::uint64_t kBefore = 1, kAfter = 2;
    int last_ = 0, which_ = -1;  // the last card, and what is stopped
    orrSemaphore_t gate_ = nullptr;
    void *remote_ = nullptr, *local_ = nullptr;
    std::vector<std::unique_ptr<Cell>> cells_;
    std::vector<orrGroup_t> groups_;
    Clock::time_point stopped_{};
};

TEST_F(Stopped, Card) {
    ASSERT_NO_FATAL_FAILURE(begin_all(false));
    ASSERT_NO_FATAL_FAILURE(stop("threads", last_));
    learn();
    // The driver may give the card up before somebody asks, which is not what came first.
    const std::string link =
        fmt::format("the link from port 1 of device {} to device {} went down", last_ - 1, last_);
    for (const auto& cell : cells_) {
        EXPECT_THAT(cell->told, ::testing::AnyOf(orrErrorPeerAccess, orrErrorDeviceLost)) << cell->name;
        EXPECT_THAT(cell->text, HasSubstr(link)) << cell->name;
    }
}

TEST_F(Stopped, Switch) {
    ASSERT_NO_FATAL_FAILURE(begin_all(true));
    ASSERT_NO_FATAL_FAILURE(stop("process", last_ + 1));
    learn();
    for (const auto& cell : cells_) {
        EXPECT_EQ(cell->told, orrErrorPeerAccess) << cell->name;
        EXPECT_THAT(cell->text, HasSubstr("the link from port 0 of device 0 to a switch")) << cell->name;
    }
}

}  // namespace
}  // namespace orrery::umd::vm
