// Four cards in a ring, one of whose cables is pulled and put in again: what two neighbours send each other
// goes the other way round meanwhile, byte for byte, as the ports of the cards on the way count them. For a
// VM under cable.sh, which pulls the cable between card 0, port 0, and card 1, port 1.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/system/runtime/hand.h"
#include "tests/unit/umd/api_test.h"

namespace orrery::umd::test {
namespace {

constexpr int kCards = 4;
constexpr std::size_t kBytes = 4 << 20;
// Messages that say what is sent, and what the driver and the library say to each other.
constexpr std::uint64_t kBeside = kBytes / 16;

// Port 0 of each card leads to the next one's port 1.
constexpr unsigned kOnward = 0, kBack = 1;

std::uint64_t sent(int card, unsigned port) {
    const std::string path = "/sys/class/accel/accel" + std::to_string(card) + "/device/links/" +
                             std::to_string(port) + "/tx_bytes";
    std::ifstream file(path);
    std::uint64_t bytes = 0;
    EXPECT_TRUE(file >> bytes) << path;
    return bytes;
}

// By card and port.
using Sent = std::array<std::array<std::uint64_t, 2>, kCards>;
Sent all_sent() {
    Sent all{};
    for (int card = 0; card < kCards; ++card)
        for (const unsigned port : {kOnward, kBack})
            all[static_cast<std::size_t>(card)][port] = sent(card, port);
    return all;
}

class Detour : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::access("/share/cables", F_OK) != 0) GTEST_SKIP() << "nobody on the host pulls a cable";
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        ASSERT_EQ(count, kCards);
        for (int device : {0, 1}) {
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrMalloc(&memory_[device], kBytes));
            ASSERT_OK(orrDeviceEnablePeerAccess(1 - device, 0));
        }
    }
    void TearDown() override {
        if (out_) EXPECT_EQ(ask_host("cable", "plug", std::chrono::seconds(60)), "ok\n");
        for (void* const memory : memory_)
            EXPECT_OK(orrFree(memory));
    }

    // What each port sends more while card 0 sends to card 1.
    Sent copy(std::uint32_t seed) {
        const auto data = random_bytes(kBytes, seed);
        EXPECT_OK(orrMemcpy(memory_[0], data.data(), kBytes, orrMemcpyHostToDevice));
        const Sent before = all_sent();
        EXPECT_OK(orrMemcpy(memory_[1], memory_[0], kBytes, orrMemcpyDeviceToDevice));
        std::vector<std::uint8_t> back(kBytes);
        EXPECT_OK(orrMemcpy(back.data(), memory_[1], kBytes, orrMemcpyDeviceToHost));
        EXPECT_TRUE(back == data);
        Sent after = all_sent();
        for (std::size_t card = 0; card < kCards; ++card)
            for (const unsigned port : {kOnward, kBack})
                after[card][port] -= before[card][port];
        return after;
    }
    // Of that, the bytes are what went over these ports, once each, and over no other.
    static void expect_only(const Sent& sent, const std::vector<std::pair<std::size_t, unsigned>>& ways) {
        for (std::size_t card = 0; card < kCards; ++card) {
            for (const unsigned port : {kOnward, kBack}) {
                const bool on_the_way = std::ranges::find(ways, std::pair(card, port)) != ways.end();
                const std::uint64_t bytes = on_the_way ? kBytes : 0;
                EXPECT_GE(sent[card][port], bytes) << "card " << card << ", port " << port;
                EXPECT_LT(sent[card][port], bytes + kBeside) << "card " << card << ", port " << port;
            }
        }
    }
    static void wait_until(const char* what, const std::function<bool()>& so) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!so()) {
            ASSERT_LT(std::chrono::steady_clock::now(), end) << what;
            ::usleep(5'000);
        }
    }
    static std::uint32_t links_between(int device, int peer) {
        orrPeerWay way = ORR_INIT(orrPeerWay);
        EXPECT_OK(orrDeviceGetPeerWay(&way, device, peer));
        return way.links;
    }
    static void wait_for_links(std::uint32_t links) {
        wait_until("the way", [&] { return links_between(0, 1) == links && links_between(1, 0) == links; });
    }
    static bool is_up(const char* port) {
        std::string state;
        std::ifstream(std::string("/sys/class/accel/") + port + "/state") >> state;
        return state == "up";
    }

    void* memory_[2] = {};
    bool out_ = false;
};

TEST_F(Detour, BytesGoTheOtherWayRound) {
    const std::vector<std::pair<std::size_t, unsigned>> straight{{0, kOnward}},
        round{{0, kBack}, {3, kBack}, {2, kBack}};
    ASSERT_NO_FATAL_FAILURE(wait_for_links(1));
    expect_only(copy(1), straight);

    out_ = true;
    ASSERT_EQ(ask_host("cable", "unplug", std::chrono::seconds(60)), "ok\n");
    ASSERT_NO_FATAL_FAILURE(wait_for_links(3));
    expect_only(copy(2), round);

    // What is in use keeps its way as long as its links are up.
    ASSERT_EQ(ask_host("cable", "plug", std::chrono::seconds(60)), "ok\n");
    out_ = false;
    ASSERT_NO_FATAL_FAILURE(wait_until(
        "the link", [] { return is_up("accel0/device/links/0") && is_up("accel1/device/links/1"); }));
    EXPECT_EQ(links_between(0, 1), 3u);
    expect_only(copy(3), round);
}

}  // namespace
}  // namespace orrery::umd::test
