// Two cards with a link, each with a fault plan of its own, and what they have written and signalled.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {

class FaultyPair {
  public:
    FaultyPair(const std::string& plan_a, const std::string& plan_b, std::uint32_t lanes_a = 4,
               std::uint32_t lanes_b = 4)
        : a(0xa, true, folder_.file("link"), 2), b(0xb, false, folder_.file("link"), 5) {
        fault(a, faults_a_, plan_a, lanes_a);
        fault(b, faults_b_, plan_b, lanes_b);
    }
    bool up() {
        return settle(a, b, [&] { return a.port->up() && b.port->up(); }) &&
               b.port->set_grant(0, 0, 8 << 20, kA) && a.port->set_grant(0, 0, 8 << 20, kB);
    }
    void deliver() {
        while (b.idle_round() || a.idle_round()) {
        }
    }
    // From a to b, of one message. When it has left.
    ModelTime write(std::uint64_t offset, std::uint64_t bytes, unsigned value) {
        const std::vector<std::byte> data(bytes, static_cast<std::byte>(value));
        const LinkSend sent = a.port->write(kB, offset, data);
        EXPECT_EQ(sent.fault, ORR_FAULT_NONE);
        EXPECT_EQ(sent.bytes, bytes);
        return sent.sent_ps;
    }

  private:
    static void fault(LinkCard& card, std::unique_ptr<Faults>& faults, const std::string& plan,
                      std::uint32_t lanes) {
        card.port.reset();
        if (!plan.empty()) {
            auto parsed = FaultPlan::parse(plan);
            EXPECT_TRUE(parsed) << parsed.error();
            Faults::Hooks hooks{.die = [] {}, .struck = {}};
            faults = std::make_unique<Faults>(*std::move(parsed), card.events, std::move(hooks));
        }
        card.config.faults = faults.get();
        card.config.lanes = lanes;
        card.config.gbps = 100 * lanes;
        card.open();
    }
    TempFolder folder_;
    std::unique_ptr<Faults> faults_a_, faults_b_;

  public:
    LinkCard a, b;
};

}  // namespace orrery::emu::test
