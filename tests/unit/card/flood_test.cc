// A peer that signals without end: what others signal still arrives, and so does everything of its own.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/unit/card/card_rig.h"
#include "tests/unit/link/two_cards.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kGranted = 0x100000, kGrantBytes = 0x200000;
constexpr std::uint64_t kOthers = kGranted + kGrantBytes;  // where the third card signals

class Flood : public testing::Test {
  protected:
    Flood() {
        CardConfig config = CardRig::config();
        config.links.push_back(*LinkConfig::parse("0:listen:" + folder_.file("link")));
        config.links.push_back(*LinkConfig::parse("1:listen:" + other_folder_.file("link")));
        rig_ = std::make_unique<CardRig>(std::move(config));
        flooder_ = std::make_unique<test::LinkCard>(7, false, folder_.file("link"));
        third_ = std::make_unique<test::LinkCard>(8, false, other_folder_.file("link"));
        for (int i = 0; i < 2000 && (!up(*flooder_) || !up(*third_)); ++i) {
            flooder_->wait(1);
            third_->wait(1);
            rig_->steps(2000);
        }
        rig_->join(1, 0, 7);
        rig_->join(1, 1, 8);
        rig_->grant(0, 0, kGranted, kGrantBytes, 7);
        rig_->grant(1, 0, kOthers, 0x1000, 8);
        rig_->boot_script();
        rig_->start({{OP_SPIN, 0, 0, 0}});  // firmware that looks at no poke
        rig_->steps(100);
    }
    static bool up(const test::LinkCard& card) { return card.port->state() == ORR_LINK_UP; }
    std::uint64_t pop() {
        ModelTime wait = 0;
        return rig_->card().soc().read(SOC_POKE_POP, wait);
    }

    test::TempFolder folder_, other_folder_;
    std::unique_ptr<CardRig> rig_;
    std::unique_ptr<test::LinkCard> flooder_, third_;
};

TEST_F(Flood, LosesNoWakeUpOfAnybody) {
    ASSERT_TRUE(up(*flooder_) && up(*third_));
    // More than any queue of the card could hold: 512 Ki signals to 128 Ki semaphores.
    constexpr std::uint64_t kSignals = 4 * (kGrantBytes / 16);
    std::uint64_t sent = 0;
    unsigned without_room = 0;
    const auto flood = [&] {
        // As much as the link takes; what it does not take now waits for the card.
        for (unsigned i = 0; i < 512 && sent < kSignals; ++i, ++sent) {
            flooder_->events.advance_to(flooder_->events.now() + 2'000);
            ASSERT_EQ(flooder_->port->signal(1, kGranted + 16 * (sent % (kGrantBytes / 16)), 1 + sent),
                      ORR_FAULT_NONE);
        }
    };
    // A sender minds its credits: so many of its signals may be on the way.
    constexpr std::uint64_t kOnTheWay = 8192;
    std::vector<std::uint64_t> popped;
    for (unsigned round = 0; round < 400'000 && without_room < 200 && sent < kSignals; ++round) {
        const std::uint64_t before = rig_->counter(ORR_CTR_LINK_RX_MESSAGES);
        if (sent < before + kOnTheWay) flood();
        if (HasFatalFailure()) return;
        flooder_->port->poll();
        rig_->steps(16);
        without_room = rig_->counter(ORR_CTR_LINK_RX_MESSAGES) == before && sent >= before + kOnTheWay
                           ? without_room + 1
                           : 0;
    }
    // Now the third card's signal comes, and only then does firmware look.
    ASSERT_EQ(third_->port->signal(1, kOthers, 1), ORR_FAULT_NONE);
    const ModelTime late = rig_->card().events().now();
    for (int i = 0; i < 2000; ++i)
        rig_->steps(16);
    EXPECT_GT(rig_->card().events().now(), late);  // the core has not stopped either
    std::set<std::uint64_t> semaphores;
    std::size_t third_at = 0;
    std::size_t pops = 0;
    for (unsigned quiet = 0; quiet < 50;) {
        const std::uint64_t memory = pop();
        if (memory == Pokes::kNone) {
            rig_->steps(16);
            flooder_->port->poll();
            ++quiet;
            continue;
        }
        quiet = 0;
        ++pops;
        if (memory == kOthers) third_at = pops;
        semaphores.insert(memory);
    }
    EXPECT_EQ(rig_->counter(ORR_CTR_LINK_RX_MESSAGES), sent + 1);
    EXPECT_EQ(rig_->read32(ORR_R_LINK(0)), ORR_LINK_UP);
    EXPECT_GT(third_at, 0u);
    EXPECT_LE(third_at, 2u);  // no queue of the flooder's is before it
    EXPECT_EQ(semaphores.size(), std::min(sent, kGrantBytes / 16) + 1);
}

}  // namespace
}  // namespace orrery::emu
