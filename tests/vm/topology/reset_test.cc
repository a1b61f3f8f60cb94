// What crosses a link that its driver resets, and when: who learns what. One table, in one boot.
#include <orrery/group.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "tests/unit/umd/api_test.h"

namespace orrery {
namespace {

constexpr std::size_t kBytes = 8 << 20;
constexpr std::uint64_t kLongNs = 100'000'000'000;

// The link between cards 0 and 1, as the driver of card 0 shows it.
class Link {
  public:
    Link() {
        for (const auto& port : std::filesystem::directory_iterator("/sys/class/accel/accel0/device/links")) {
            port_ = port.path();
            if (state() == "up") return;
        }
        ADD_FAILURE() << "card 0 has no link that is up";
    }
    std::string state() const { return read("state"); }
    std::uint64_t losses() const { return std::stoull(read("losses")); }
    bool write(const char* text) const {
        std::ofstream file(port_ / "reset");
        file << text << std::flush;
        return file.good();
    }
    void reset() const {
        const std::uint64_t before = losses();
        ASSERT_TRUE(write("1"));
        EXPECT_GT(losses(), before) << "it has gone down when the driver says so";
        // Up here, and there, where it may be a moment later: then there is a way again.
        while (state() != "up" || !reaches(0, 1) || !reaches(1, 0))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

  private:
    static bool reaches(int device, int peer) {
        int can = 0;
        EXPECT_OK(orrDeviceCanAccessPeer(&can, device, peer));
        return can != 0;
    }
    std::string read(const char* name) const {
        std::string line;
        std::ifstream file(port_ / name);
        std::getline(file, line);
        return line;
    }
    std::filesystem::path port_;
};

enum class When { kBefore, kDuring, kAfter };

// What came of it where it begins, on card 0, and where it leads, on card 1.
struct Ends {
    orrError_t here, there;
    bool operator==(const Ends&) const = default;
};

void PrintTo(const Ends& ends, std::ostream* out) {
    *out << orrGetErrorName(ends.here) << " and " << orrGetErrorName(ends.there);
}

class ResetLink : public ::testing::Test {
  protected:
    void SetUp() override {
        for (int i = 1; i >= 0; --i) {
            ASSERT_OK(orrSetDevice(i));
            (void)orrDeviceEnablePeerAccess(1 - i, 0);  // it outlives the test before
            ASSERT_OK(orrStreamCreate(&stream_[i], 0));
            ASSERT_OK(orrMalloc(&memory_[i], kBytes));
            ASSERT_OK(orrSemaphoreCreate(&semaphore_[i], 0));
        }
        ASSERT_OK(orrMalloc(&mark_, sizeof(turn_)));  // on card 0
    }
    void TearDown() override {
        EXPECT_OK(orrFree(mark_));
        for (int i = 0; i < 2; ++i) {
            EXPECT_OK(orrStreamDestroy(stream_[i]));
            EXPECT_OK(orrSemaphoreDestroy(semaphore_[i]));
            EXPECT_OK(orrFree(memory_[i]));
        }
    }
    // Waits for both streams.
    Ends ends() {
        const orrError_t here = orrStreamSynchronize(stream_[0]);
        return {here, orrStreamSynchronize(stream_[1])};
    }
    // Copies to card 1, whose stream waits for a signal behind them.
    Ends copy(When when) {
        if (when == When::kBefore) link_.reset();
        ++turn_;
        EXPECT_OK(orrMemcpy(mark_, &turn_, sizeof(turn_), orrMemcpyHostToDevice));
        EXPECT_OK(orrStreamWaitSemaphore(stream_[1], semaphore_[1], turn_, nullptr));
        // As many as a ring takes: what has not crossed by then is lost, and costs nothing.
        for (int i = 0; i < (when == When::kDuring ? 900 : 1); ++i) {
            EXPECT_OK(orrMemcpyAsync(memory_[1], memory_[0], kBytes, orrMemcpyDeviceToDevice, stream_[0]));
            if (i == 0) EXPECT_OK(orrStreamSignalSemaphore(stream_[0], semaphore_[0], turn_));
        }
        EXPECT_OK(orrMemcpyAsync(memory_[1], mark_, sizeof(turn_), orrMemcpyDeviceToDevice, stream_[0]));
        EXPECT_OK(orrStreamSignalSemaphore(stream_[0], semaphore_[1], turn_));
        EXPECT_OK(orrSemaphoreWait(semaphore_[0], turn_, kLongNs));
        if (when == When::kAfter) (void)ends();
        if (when != When::kBefore) link_.reset();
        const Ends told = ends();
        if (told.here == orrSuccess) {
            std::uint64_t there = 0;
            EXPECT_OK(orrMemcpy(&there, memory_[1], sizeof(there), orrMemcpyDeviceToHost));
            EXPECT_EQ(there, turn_) << "the last of it was lost, and nobody told";
        }
        return told;
    }
    // A signal that is behind a gate of card 0 while the link is down.
    Ends signal(When when, bool declared) {
        if (when == When::kBefore) link_.reset();
        if (declared) EXPECT_OK(orrSemaphoreAddSignaller(semaphore_[1], stream_[0]));
        EXPECT_OK(orrStreamWaitSemaphore(stream_[1], semaphore_[1], 1, nullptr));
        EXPECT_OK(orrStreamWaitSemaphore(stream_[0], semaphore_[0], 1, nullptr));
        EXPECT_OK(orrStreamSignalSemaphore(stream_[0], semaphore_[1], 1));
        return through_gate(when);
    }
    Ends event(When when) {
        orrEvent_t event = nullptr;
        if (when == When::kBefore) link_.reset();
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrEventCreate(&event, orrEventDisableTiming));
        EXPECT_OK(orrStreamWaitSemaphore(stream_[0], semaphore_[0], 1, nullptr));
        EXPECT_OK(orrEventRecord(event, stream_[0]));
        EXPECT_OK(orrStreamWaitEvent(stream_[1], event, nullptr));
        const Ends result = through_gate(when);
        EXPECT_OK(orrEventDestroy(event));
        return result;
    }
    // A barrier of a group to which card 0 comes last.
    Ends barrier(When when, bool older_group = false) {
        orrGroup_t group[2] = {};
        const int devices[] = {0, 1};
        if (when == When::kBefore && !older_group) link_.reset();
        EXPECT_OK(orrGroupCreateAll(group, 2, devices, 0));
        orrGroupInfo info = ORR_INIT(orrGroupInfo);
        EXPECT_OK(orrGroupGetInfo(&info, group[0]));
        EXPECT_EQ(info.by_units, 1);
        if (when == When::kBefore && older_group) link_.reset();
        EXPECT_OK(orrStreamWaitSemaphore(stream_[0], semaphore_[0], 1, nullptr));
        for (int i = 0; i < 2; ++i)
            EXPECT_OK(orrGroupBarrierAsync(group[i], stream_[i], nullptr));
        const Ends result = through_gate(when);
        for (orrGroup_t one : group)
            EXPECT_OK(orrGroupDestroy(one));
        return result;
    }
    const Link& link() const { return link_; }

  private:
    Ends through_gate(When when) {
        if (when == When::kDuring) link_.reset();
        EXPECT_OK(orrSemaphoreSignal(semaphore_[0], 1));
        const Ends result = ends();
        if (when != When::kAfter) return result;
        link_.reset();
        return ends();
    }

    Link link_;
    orrStream_t stream_[2]{};
    void* memory_[2]{};
    void* mark_ = nullptr;
    orrSemaphore_t semaphore_[2]{};
    std::uint64_t turn_ = 0;  // of copy()
};

constexpr Ends kGood{orrSuccess, orrSuccess}, kBothLost{orrErrorPeerAccess, orrErrorPeerAccess};

TEST_F(ResetLink, CopyBefore) {
    EXPECT_EQ(copy(When::kBefore), kGood);
}
// What was on the way is lost: so is all that follows it.
TEST_F(ResetLink, CopyDuring) {
    Ends told = kGood;
    // Where the test stood still until all had crossed, nothing was on the link, and nothing is lost: again.
    for (int tries = 0; tries < 10 && told == kGood; ++tries)
        told = copy(When::kDuring);
    EXPECT_EQ(told, kBothLost) << orrGetLastErrorText();
}
TEST_F(ResetLink, CopyAfter) {
    EXPECT_EQ(copy(When::kAfter), kGood);
}
TEST_F(ResetLink, SignalBefore) {
    EXPECT_EQ(signal(When::kBefore, false), kGood);
}
// It had not been sent: nothing was lost.
TEST_F(ResetLink, SignalDuring) {
    EXPECT_EQ(signal(When::kDuring, false), kGood) << orrGetLastErrorText();
}
TEST_F(ResetLink, SignalAfter) {
    EXPECT_EQ(signal(When::kAfter, false), kGood);
}
TEST_F(ResetLink, DeclaredSignalBefore) {
    EXPECT_EQ(signal(When::kBefore, true), kGood);
}
// A declaration ends with the link, for good.
TEST_F(ResetLink, DeclaredSignalDuring) {
    EXPECT_EQ(signal(When::kDuring, true).there, orrErrorPeerAccess) << orrGetLastErrorText();
}
TEST_F(ResetLink, DeclaredSignalAfter) {
    EXPECT_EQ(signal(When::kAfter, true), kGood);
}
TEST_F(ResetLink, EventBefore) {
    EXPECT_EQ(event(When::kBefore), kGood);
}
TEST_F(ResetLink, EventDuring) {
    EXPECT_EQ(event(When::kDuring), kGood) << orrGetLastErrorText();
}
TEST_F(ResetLink, EventAfter) {
    EXPECT_EQ(event(When::kAfter), kGood);
}
TEST_F(ResetLink, BarrierBefore) {
    EXPECT_EQ(barrier(When::kBefore), kGood);
}
// A card's unit does not know what was on the link that is down, so the barrier has failed, and its group.
TEST_F(ResetLink, BarrierDuring) {
    EXPECT_EQ(barrier(When::kDuring), kBothLost) << orrGetLastErrorText();
}
TEST_F(ResetLink, BarrierOfAGroupThatIsOlder) {
    EXPECT_EQ(barrier(When::kBefore, true), kBothLost) << orrGetLastErrorText();
}
TEST_F(ResetLink, BarrierAfter) {
    EXPECT_EQ(barrier(When::kAfter), kGood);
}

TEST_F(ResetLink, IsAskedForWithAOne) {
    const std::uint64_t losses = link().losses();
    EXPECT_FALSE(link().write("0"));
    EXPECT_FALSE(link().write("soon"));
    EXPECT_EQ(link().losses(), losses);
}

}  // namespace
}  // namespace orrery
