#include "tools/vm/cards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::vm {
namespace {

using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;

Options with_chain(unsigned cards) {
    Options options;
    options.cards = cards;
    options.card_program = "/bin/orrery-card";
    options.joined = topology::make(topology::Shape::kChain, cards).value();
    return options;
}

TEST(Cards, BothEndsOfALinkShareOneSocket) {
    EXPECT_THAT(card_command(with_chain(2), 0, "/run/x"), Contains("0:listen:/run/x/link-0.0-1.0.sock"));
    EXPECT_THAT(card_command(with_chain(2), 1, "/run/x"), Contains("0:connect:/run/x/link-0.0-1.0.sock"));
    EXPECT_THAT(card_command(with_chain(1), 0, "/run/x"), Not(Contains("--link")));
}

TEST(Cards, ThoseOfSeveralVmsMeetInASharedDirectory) {
    Options options = with_chain(2);
    options.cards = 1;
    options.vms = 2;
    options.vm = 1;
    options.shared = "/run/all";
    options.sync = "lockstep";
    const auto command = card_command(options, 1, "/run/x");
    EXPECT_THAT(command, Contains("/run/x/card1.sock"));
    EXPECT_THAT(command, Contains("0:connect:/run/all/link-0.0-1.0.sock"));
    EXPECT_THAT(command, Contains("/run/all/lockstep"));
}

TEST(Cards, EachHasAFlightRecorderUnlessItRecords) {
    Options options = with_chain(2);
    EXPECT_THAT(card_command(options, 1, "/run/x"), IsSupersetOf({"--flight", "64"}));
    options.flight_mib = 0;
    EXPECT_THAT(card_command(options, 1, "/run/x"), Not(Contains("--flight")));
    options.flight_mib = 16;
    options.record = "/tmp/traces";
    EXPECT_THAT(card_command(options, 1, "/run/x"), Not(Contains("--flight")));
}

TEST(Cards, EachRecordsToAFileOfItsOwn) {
    Options options = with_chain(2);
    EXPECT_THAT(card_command(options, 1, "/run/x"), Not(Contains("--record")));
    options.record = "/tmp/traces";
    EXPECT_THAT(card_command(options, 1, "/run/x"), Contains("/tmp/traces/card1.otrace"));
}

}  // namespace
}  // namespace orrery::vm
