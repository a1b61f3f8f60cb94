// A card goes whose memory another one has mapped, and that one's firmware does not answer: its mailbox is
// dropped by a fault plan, while it works on. For registers.sh, which has a hand for the first card. Takes a
// card away: run it alone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/system/runtime/hand.h"
#include "tests/vm/kmod/pci.h"
#include "tests/vm/kmod/place.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr const char* kLimit = "/sys/module/orrery/parameters/unbind_timeout_ms";

// Without the driver, which might have to ask the firmware.
void run_and_look(Place& place, const orr_packet& packet) {
    const std::uint64_t index = place.queue->submit(packet);
    const volatile orr_ring& ring = place.queue->ring();
    while (ring.consumer < index && ring.error == 0)
        std::this_thread::yield();
}

class SilentRemoval : public ::testing::Test {
  protected:
    void SetUp() override {
        cards_ = pci_addresses();
        if (std::getenv("ORRERY_SILENCE") == nullptr || cards_.size() < 2)
            GTEST_SKIP() << "nobody on the host makes a card silent";
        limit_ = read_file(kLimit);
    }
    void TearDown() override {
        if (!limit_.empty()) EXPECT_TRUE(write_file(kLimit, limit_));
    }
    unsigned node(std::size_t card) const { return static_cast<unsigned>(node_of(cards_[card])); }
    static void lie(const std::string& order) {
        ASSERT_EQ(ask_host("lie", order, std::chrono::minutes(1)), "ok\n");
    }
    // Of what another process has of the second card's memory, mapped on the first.
    unsigned dead() const {
        std::ifstream in(debugfs(node(0)) + "mappings");
        unsigned number = 0;
        for (std::string line; std::getline(in, line);)
            number += line.ends_with(" dead");
        return number;
    }
    // Why the first card has not cleared its page tables, as the driver has said last.
    std::string told() const {
        const std::string log = kernel_log(), what = cards_[0] + " has not cleared them, because ";
        const std::size_t at = log.rfind(what);
        if (at == std::string::npos) return "nothing";
        return log.substr(at + what.size(), log.find('\n', at) - at - what.size());
    }
    // A process that waits in there for the first card.
    static void unbind_and_be_killed(const std::string& address) {
        const int file = ::open("/sys/bus/pci/drivers/orrery/unbind", O_WRONLY | O_CLOEXEC);
        ASSERT_GE(file, 0);
        const pid_t child = ::fork();
        if (child == 0) {
            std::ignore = ::write(file, address.data(), address.size());
            ::_exit(0);
        }
        ::close(file);
        const std::string stack = "/proc/" + std::to_string(child) + "/stack";
        bool waits = false;
        for (int tries = 0; tries < 6000 && !waits; ++tries) {
            ::usleep(5'000);
            std::ifstream in(stack);
            waits = std::string(std::istreambuf_iterator<char>(in), {}).find("orr_peers_cut") !=
                    std::string::npos;
        }
        EXPECT_TRUE(waits) << "it is not where it waits";
        EXPECT_EQ(::kill(child, SIGKILL), 0);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFSIGNALED(status)) << "it has not waited";
    }
    std::vector<std::string> cards_;
    std::string limit_;
};

TEST_F(SilentRemoval, UnbindingDoesNotWaitForAnotherCardsFirmware) {
    Place writer(node(0)), busy(node(0));
    {
        Place owner(node(1));
        owner.make_memory(kMiB);
        writer.share(owner, ORR_BIND_WRITE);
    }
    ASSERT_EQ(writer.queue->run(std::vector{fill(kVa, kMiB, 5)}), 0);
    // As long as it moves nobody takes it for dead before mailbox_timeout_ms, which are two minutes.
    std::jthread worker([&](const std::stop_token& stop) {
        while (!stop.stop_requested())
            run_and_look(busy, nop());
    });
    ASSERT_TRUE(write_file(kLimit, "300"));
    ASSERT_NO_FATAL_FAILURE(lie("add mailbox count=all drop"));
    ASSERT_TRUE(unbind_driver(cards_[1]));
    const std::string late = "its driver has not come to it in the ";
    EXPECT_TRUE(told().starts_with(late + "300 ms of unbind_timeout_ms: if its log says ")) << told();
    // Who has not waited for it, or not long, does not know what its firmware does.
    ASSERT_TRUE(bind_driver(cards_[1]));
    ASSERT_TRUE(write_file(kLimit, "0"));
    ASSERT_TRUE(unbind_driver(cards_[1]));
    EXPECT_TRUE(told().starts_with(late + "0 ms of unbind_timeout_ms: if its log says ")) << told();
    ASSERT_TRUE(bind_driver(cards_[1]));
    ASSERT_TRUE(write_file(kLimit, "3600000"));
    ASSERT_NO_FATAL_FAILURE(unbind_and_be_killed(cards_[1]));
    EXPECT_EQ(told(), "who unbinds this one was killed, and so waits no longer for it");
    ASSERT_TRUE(write_file(kLimit, "300"));

    // In its next life the card has other memory there, which nobody reaches by what was mapped.
    ASSERT_TRUE(bind_driver(cards_[1]));
    Place owner(node(1));
    owner.make_memory(kMiB);
    ASSERT_EQ(owner.queue->run(std::vector{fill(kVa, kMiB, 6)}), 0);
    run_and_look(writer, fill(kVa, kMiB, 0xbad));
    EXPECT_EQ(writer.queue->ring().error, ORR_QERR_FAULT);
    for (std::uint64_t word = 0; word < kMiB / 8; word += 512)
        ASSERT_EQ(owner.memory.words()[word], 6u) << word;

    // When the firmware hears again it does what it was asked.
    ASSERT_NO_FATAL_FAILURE(lie("clear"));
    Place later(node(0));
    worker.request_stop();
    worker.join();
    while (dead() != 1)
        ::usleep(5'000);
    EXPECT_EQ(unmap(writer.fd(), writer.vm, kVa, kMiB), 0);
    EXPECT_EQ(read_file("/sys/bus/pci/devices/" + cards_[0] + "/state"), "running");
    later.share(owner, ORR_BIND_WRITE);
    EXPECT_EQ(later.queue->run(std::vector{fill(kVa, kMiB, 7)}), 0);
    EXPECT_EQ(unmap(later.fd(), later.vm, kVa, kMiB), 0);
    EXPECT_EQ(owner.memory.words()[0], 7u);
}

}  // namespace
}  // namespace orrery::kmod_test
