// The driver with a card that lies, by a fault plan of orrery-vm (docs/faults.md). LYING_CARD says what is to
// be expected:
//   right   messages come late and twice: all work is right all the same
//   ends    registers and memory read as something else for a while: whatever becomes of the work, each call
//   ends, and when
//           the card has told its last lie, it works again
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/vm/kmod/device.h"
#include "tests/vm/kmod/pci.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kRingVa = 0x10000000;
constexpr std::uint64_t kVa = 0x40000000;
constexpr std::uint64_t kMiB = 1 << 20;

// All waits and calls of a round of work, with the time-outs and restarts that a lie may bring about.
constexpr unsigned kHang = 90;
constexpr int kRounds = 12;
// The plans tell so many lies at most that a few new starts get past them.
constexpr int kStarts = 40;

// Work as a process has it: 0 if all of it was right, else where it ended.
int work(unsigned node) {
    ::alarm(kHang);
    const File file = open_card(node);
    std::uint32_t vm = 0;
    if (!file || create_vm(file.get(), vm) != 0) return 1;
    Buffer vram, system;
    if (make_buffer(file.get(), vm, kVa, 2 * kMiB, ORR_BO_VRAM, vram) != 0) return 2;
    if (make_buffer(file.get(), vm, kVa + 0x10000000, kMiB, ORR_BO_SYSTEM, system) != 0) return 3;
    Queue first(file.get(), vm, kRingVa), second(file.get(), vm, kRingVa + kMiB);
    if (first.error() != 0 || second.error() != 0) return 4;
    const std::uint32_t timeline = make_syncobj(file.get());
    for (std::uint64_t i = 1; i <= 8; i++) {
        if (put_fence(file.get(), first.number(), i, timeline, i) != 0) return 5;
        first.submit(fill(vram.va, kMiB, i));
        drm_orr_queue_wait out{};
        // Longer than the driver looks before it asks the firmware whether it is there.
        if (wait(file.get(), first.number(), i, 20, out) != 0 || out.error != 0) return 6;
        drm_orr_queue_stats stats{};
        stats.queue = second.number();
        if (call(file.get(), DRM_IOCTL_ORR_QUEUE_STATS, &stats) != 0) return 7;
    }
    if (wait_point(file.get(), timeline, 8, 20) != 0) return 8;
    if (second.run(std::vector{copy(vram.va, system.va, kMiB)}) != 0) return 9;
    if (system.words()[1000] != 8) return 10;
    if (unmap(file.get(), vm, system.va, kMiB) != 0) return 11;
    drm_orr_query_device device{};
    if (call(file.get(), DRM_IOCTL_ORR_QUERY_DEVICE, &device) != 0) return 12;
    std::vector<std::uint64_t> values(device.counters);
    drm_orr_query_counters counters{};
    counters.values = reinterpret_cast<std::uintptr_t>(values.data());
    counters.count = device.counters;
    return call(file.get(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters) == 0 ? 0 : 13;
}

class LyingCard : public ::testing::Test {
  protected:
    bool running() const {
        return node_of(card_) >= 0 && read_file("/sys/bus/pci/devices/" + card_ + "/state") == "running";
    }
    // The card is given up, or its probe fails: it gets the next chance.
    void start() const {
        bool unbound = false, bound = false;
        for (int i = 0; i < kStarts && !running(); i++) {
            unbound = unbind_driver(card_);
            bound = bind_driver(card_);
        }
        ASSERT_TRUE(running()) << "it did not come up again: at last unbound " << unbound << ", bound "
                               << bound << ", node " << node_of(card_) << ", state "
                               << read_file("/sys/bus/pci/devices/" + card_ + "/state");
    }
    int work_in_child() const {
        return in_child([this] { return work(static_cast<unsigned>(node_of(card_))); });
    }
    const std::string card_ = pci_addresses().at(0);
};

TEST_F(LyingCard, CannotHangOrCrashTheDriver) {
    const char* const how = std::getenv("LYING_CARD");
    ASSERT_NE(how, nullptr) << "LYING_CARD is not set";
    const bool right = std::string_view(how) == "right";
    std::string ends;
    for (int round = 0; round < kRounds; round++) {
        ASSERT_NO_FATAL_FAILURE(start());
        const int end = work_in_child();
        ends += std::to_string(end) + " ";
        EXPECT_LT(end, 1000) << "round " << round << ": it hung, or was killed";
        if (right) {
            EXPECT_EQ(end, 0) << "round " << round;
        }
    }
    std::printf("where the rounds ended: %s\n", ends.c_str());
    if (right) return;
    for (int i = 0; i < kStarts; i++) {
        ASSERT_NO_FATAL_FAILURE(start());
        if (work_in_child() == 0) return;
    }
    ADD_FAILURE() << "the card does not work any more";
}

}  // namespace
}  // namespace orrery::kmod_test
