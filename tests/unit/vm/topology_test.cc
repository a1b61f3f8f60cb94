#include "tools/vm/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tools/vm/cards.h"

namespace orrery::vm {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string error_of(const std::string& text, unsigned cards = 3) {
    const auto links = parse_topology(text, "t.toml", cards);
    return links ? "" : links.error().text;
}

TEST(Topology, TheDefaultIsAChain) {
    EXPECT_TRUE(chain(0).empty());
    EXPECT_TRUE(chain(1).empty());
    const auto two = chain(2);
    ASSERT_EQ(two.size(), 1U);
    EXPECT_EQ(two[0].listener, (PortName{0, 0}));
    EXPECT_EQ(two[0].connector, (PortName{1, 0}));
    std::set<PortName> ends;
    for (const auto& link : chain(5)) {
        EXPECT_LT(link.listener.card, link.connector.card);
        EXPECT_TRUE(ends.insert(link.listener).second);
        EXPECT_TRUE(ends.insert(link.connector).second);
    }
}

TEST(Topology, TheLowerCardListens) {
    const auto links =
        parse_topology(R"(links = [["card2:7", "card0:1"], ["card1:0", "card2:0"]])", "t.toml", 3);
    ASSERT_TRUE(links) << links.error().text;
    ASSERT_EQ(links->size(), 2U);
    EXPECT_EQ((*links)[0].listener, (PortName{0, 1}));
    EXPECT_EQ((*links)[0].connector, (PortName{2, 7}));
}

TEST(Topology, MistakesAreNamed) {
    EXPECT_THAT(error_of("links = ["), HasSubstr("line 1"));
    EXPECT_THAT(error_of("x = 1"), HasSubstr("no array 'links'"));
    EXPECT_THAT(error_of(R"(links = [["card0:0"]])"), HasSubstr("a pair"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", 7]])"), HasSubstr("card and port"));
    EXPECT_THAT(error_of(R"(links = [["card0", "card1:0"]])"), HasSubstr("card and port"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card3:0"]])"), HasSubstr("there are 3 cards"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card1:8"]])"), HasSubstr("ports 0 to 7"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card1:0"], ["card0:0", "card2:0"]])"),
                HasSubstr("two links"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card0:1"]])"), HasSubstr("different cards"));
    EXPECT_THAT(error_of(R"(links = [["card99999999999:0", "card0:1"]])"), HasSubstr("card and port"));
}

TEST(Cards, BothEndsOfALinkShareOneSocket) {
    Options options;
    options.cards = 2;
    options.card_program = "/bin/orrery-card";
    const auto first = card_command(options, chain(2), 0, "/run/x");
    const auto second = card_command(options, chain(2), 1, "/run/x");
    EXPECT_THAT(first, Contains("0:listen:/run/x/link-0.0-1.0.sock"));
    EXPECT_THAT(second, Contains("0:connect:/run/x/link-0.0-1.0.sock"));
    EXPECT_THAT(card_command(options, chain(1), 0, "/run/x"), Not(Contains("--link")));
}

TEST(Cards, EachRecordsToAFileOfItsOwn) {
    Options options;
    options.card_program = "/bin/orrery-card";
    EXPECT_THAT(card_command(options, {}, 1, "/run/x"), Not(Contains("--record")));
    options.record = "/tmp/traces";
    EXPECT_THAT(card_command(options, {}, 1, "/run/x"), Contains("/tmp/traces/card1.otrace"));
}

}  // namespace
}  // namespace orrery::vm
