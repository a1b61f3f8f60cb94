// A card that two others signal while it sleeps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emulator/card/card_thread.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint32_t kAsid = 2, kOwner = 1;
constexpr std::uint64_t kPeerVa = 0x20000, kGranted = 0x100000;
constexpr std::uint64_t kMs = 1'000'000'000;  // of model time

class TwoPeers : public testing::Test {
  protected:
    static constexpr unsigned kPeers = 2;

    void SetUp() override {
        char name[] = "/tmp/orrery-two-peers-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        folder_ = name;
        std::vector<std::string> here;
        for (unsigned n = 0; n < kPeers; ++n)
            here.push_back(link(n, std::to_string(n) + ":listen:"));
        owner_ = make(kOwner, here);
        for (unsigned n = 0; n < kPeers; ++n)
            peers_.push_back(make(node(n), {link(n, "0:connect:")}));
        for (int i = 0; i < 20'000 && !up(); ++i) {
            step();
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        ASSERT_TRUE(up());
        for (unsigned n = 0; n < kPeers; ++n) {
            owner_->join(kOwner, n, node(n));
            owner_->grant(n, 3, kGranted + n * ORR_PAGE_SIZE, ORR_PAGE_SIZE, node(n));
            peers_[n]->join(node(n), 0, kOwner);
            peers_[n]->boot_script();
            peers_[n]->map_page(kAsid, kPeerVa, kGranted + n * ORR_PAGE_SIZE, kRw | of_node(kOwner));
            peers_[n]->run(peers_[n]->set_root(kAsid));
        }
        owner_->boot_script();
        step();
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    static std::uint32_t node(unsigned peer) { return kOwner + 1 + peer; }
    std::string link(unsigned number, const std::string& role) const {
        return role + (folder_ / ("link" + std::to_string(number))).string();
    }
    static std::unique_ptr<CardRig> make(std::uint64_t uid, const std::vector<std::string>& links) {
        CardConfig config = CardRig::config();
        config.uid = uid;
        for (const std::string& link : links)
            config.links.push_back(*LinkConfig::parse(link));
        return std::make_unique<CardRig>(std::move(config));
    }
    bool up() {
        for (unsigned n = 0; n < kPeers; ++n)
            if (owner_->read32(ORR_R_LINK(n)) != ORR_LINK_UP) return false;
        return true;
    }
    void step() {
        owner_->card().step();
        for (const auto& peer : peers_)
            peer->card().step();
    }
    void signal_after(unsigned peer, std::uint64_t ps) {
        peers_[peer]->run({{OP_SLEEP, 0, ps, 0}});
        ASSERT_EQ(peers_[peer]->run(CardRig::signal(kAsid, kPeerVa, 1)).back().result, ORR_FAULT_NONE);
    }

    std::filesystem::path folder_;
    std::unique_ptr<CardRig> owner_;
    std::vector<std::unique_ptr<CardRig>> peers_;
};

// It waits for a timer, and its clock rather goes on to a message: to the earlier one first, by whichever
// port that came.
TEST_F(TwoPeers, AreHeardInTheOrderOfTheirTimes) {
    const std::vector<script_op> script = {
        CardRig::write(SOC_TIMER, 200 * kMs), {OP_WAIT, 0, 1u << SOC_LINE_POKE, 0},
        CardRig::read(SOC_POKE_POP),          CardRig::read(SOC_SYSTEM_TIME),
        {OP_WAIT, 0, 1u << SOC_LINE_POKE, 0}, CardRig::read(SOC_POKE_POP),
        CardRig::read(SOC_SYSTEM_TIME)};
    const std::uint64_t before = owner_->word(CardRig::kScript);
    owner_->start(script);
    // It sleeps then, and its timer is not due.
    for (int i = 0; i < 5'000; ++i)
        owner_->card().step(false);
    signal_after(0, 500 * kMs);
    signal_after(1, 300 * kMs);
    CardThread thread(owner_->card());
    for (int i = 0; i < 20'000 && owner_->word(CardRig::kScript) == before; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    thread.stop();
    const std::vector<script_op> ops = owner_->results(script.size());
    EXPECT_EQ(ops[2].result, kGranted + ORR_PAGE_SIZE);
    EXPECT_EQ(ops[5].result, kGranted);
    EXPECT_LT(ops[3].result, 400 * kMs);
    EXPECT_GT(ops[6].result, 500 * kMs);
    EXPECT_EQ(owner_->counter(ORR_CTR_LINK_STRAGGLERS), 0u);
}

}  // namespace
}  // namespace orrery::emu
