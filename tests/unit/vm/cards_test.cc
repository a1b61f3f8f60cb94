#include "tools/vm/cards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::vm {
namespace {

using testing::Contains;
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

TEST(Cards, EachRecordsToAFileOfItsOwn) {
    Options options = with_chain(2);
    EXPECT_THAT(card_command(options, 1, "/run/x"), Not(Contains("--record")));
    options.record = "/tmp/traces";
    EXPECT_THAT(card_command(options, 1, "/run/x"), Contains("/tmp/traces/card1.otrace"));
}

}  // namespace
}  // namespace orrery::vm
