// What orrery-smi links --watch tells between two looks at the cards.
#include "tools/smi/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::smi {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

LinkPort up(std::optional<std::uint64_t> losses = 0) {
    LinkPort port{ORR_INIT(orrLinkInfo), losses};
    port.link.state = orrLinkStateUp;
    port.link.peer_device = 1;
    port.link.lanes = 4;
    port.link.gbps = 400;
    return port;
}

LinkPort down(std::optional<std::uint64_t> losses = 0) {
    LinkPort port{ORR_INIT(orrLinkInfo), losses};
    port.link.state = orrLinkStateDown;
    port.link.peer_device = -1;
    return port;
}

LinkedCard card(int device, const char* address, std::vector<LinkPort> ports = {}) {
    LinkedCard made;
    made.device = device;
    made.name = fmt::format("card {}", device);
    made.address = address;
    made.ports = std::move(ports);
    return made;
}

std::vector<std::string> port_changes(const LinkPort& before, const LinkPort& now) {
    return changes({card(0, "a", {before})}, {card(0, "a", {now})});
}

TEST(Changes, OneLineForEach) {
    EXPECT_THAT(port_changes(up(), up()), IsEmpty());
    EXPECT_THAT(port_changes(up(), down(1)),
                ElementsAre("card 0 port 0: up to card 1 port 0 -> down, lost once since"));
    EXPECT_THAT(port_changes(down(1), up(1)), ElementsAre("card 0 port 0: down -> up to card 1 port 0"));
    EXPECT_THAT(port_changes(up(1), up(3)),
                ElementsAre("card 0 port 0: up to card 1 port 0, lost twice since"));
    LinkPort narrow = up();
    narrow.link.lanes = 2;
    narrow.link.gbps = 200;
    EXPECT_THAT(port_changes(up(), narrow),
                ElementsAre("card 0 port 0: 4 lanes, 400 Gbit/s -> 2 lanes, 200 Gbit/s"));
}

TEST(Changes, LossesThatAreNotKnownOrBeginAnewAreNone) {
    EXPECT_THAT(port_changes(up(1), up(0)), IsEmpty());
    EXPECT_THAT(port_changes(up(1), up(std::nullopt)), IsEmpty());
    EXPECT_THAT(port_changes(up(std::nullopt), up(1)), IsEmpty());
    EXPECT_THAT(port_changes(up(1), down(0)), ElementsAre("card 0 port 0: up to card 1 port 0 -> down"));
}

TEST(Changes, WhatIsRefusedIsTold) {
    LinkPort before = up(), now = up();
    before.link.known = now.link.known = orrLinkKnowsDenials | orrLinkKnowsDriver;
    now.link.denied = 3;
    now.link.bad_keys = 2;
    now.link.forged = 1;
    EXPECT_THAT(port_changes(before, now),
                ElementsAre("card 0 port 0: 3 denied, 2 with a wrong key, 1 forged handles"));
    before.counts.emplace();
    now.counts.emplace();
    (*now.counts)[kPortRetries] = 7;
    now.link.bad_keys = now.link.forged = 0;
    EXPECT_THAT(port_changes(before, now), ElementsAre("card 0 port 0: 7 sent again, 3 denied"));
    EXPECT_THAT(port_changes(now, before), IsEmpty()) << "they began anew";
    // Of a card or driver that does not say there is nothing.
    before.link.known = 0;
    now.counts.reset();
    EXPECT_THAT(port_changes(before, now), IsEmpty());
}

TEST(Changes, ACardIsKnownByItsAddress) {
    const std::vector<LinkedCard> before{card(0, "a", {up()}), card(1, "b", {down()}), card(2, "c", {up()})};
    EXPECT_THAT(changes(before, {card(0, "a", {up()}), card(1, "c", {up()})}),
                ElementsAre("card 1: is gone"));
    // Who says nothing has no address either.
    LinkedCard silent = card(1, "");
    silent.trouble = "lost";
    EXPECT_THAT(changes({card(1, "b")}, {silent}), ElementsAre("card 1: lost"));
    EXPECT_THAT(changes({silent}, {card(1, "b")}), ElementsAre("card 1: answers again"));
}

TEST(Links, ShowWhatIsRefused) {
    LinkPort silent = up(), denying = up();
    denying.link.known = orrLinkKnowsDenials;
    EXPECT_THAT(links_text({card(0, "a", {silent, denying})}), testing::Not(testing::HasSubstr("bad keys")));
    denying.link.bad_keys = 41;
    denying.link.denied = 42;
    EXPECT_THAT(links_text({card(0, "a", {silent, denying})}),
                testing::ContainsRegex("card 0 +1 +. +. +. +. +42 +41 +0 +.\n"));
}

// Lanes that fail later are one end's, which sends by fewer.
TEST(Topology, HasARateForEachDirection) {
    const auto joined = [](int device, int peer, unsigned lanes, unsigned gbps) {
        LinkPort port = up();
        port.link.peer_device = peer;
        port.link.lanes = lanes;
        port.link.gbps = gbps;
        return card(device, device == 0 ? "a" : "b", {port});
    };
    const auto shown = [](const std::vector<LinkedCard>& cards, auto show) {
        testing::internal::CaptureStdout();
        show(cards);
        return testing::internal::GetCapturedStdout();
    };
    const auto matrix = [](const std::vector<LinkedCard>& cards) { show_topology(cards, {}); };
    const auto json = [](const std::vector<LinkedCard>& cards) { show_topology_json(cards, {}, {}); };
    const std::vector<LinkedCard> even{joined(0, 1, 4, 400), joined(1, 0, 4, 400)},
        narrow{joined(0, 1, 4, 400), joined(1, 0, 1, 100)};
    EXPECT_THAT(shown(even, matrix), testing::HasSubstr("a link: 400 Gbit/s each way on 4 lanes"));
    const std::string text = shown(narrow, matrix);
    EXPECT_THAT(text, testing::ContainsRegex("card 0 +X +400G x4 +a"));
    EXPECT_THAT(text, testing::ContainsRegex("card 1 +100G x1 +X +b"));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("each way")));
    EXPECT_THAT(text, testing::HasSubstr("100 Gbit/s from the card on the left to the one above, on 1 lane"));
    const auto all = nlohmann::json::parse(shown(narrow, json));
    const auto& link = all.at("links").at(0);
    EXPECT_EQ(link.at("gbps"), 400);
    EXPECT_EQ(link.at("gbps_back"), 100);
    EXPECT_EQ(link.at("lanes"), 4);
    EXPECT_EQ(link.at("lanes_back"), 1);
    EXPECT_EQ(all.at("pairs").at(0).at("gbps"), 400);
    EXPECT_EQ(all.at("pairs").at(1).at("gbps"), 100);
}

TEST(Counters, AreThoseOfTheSameCard) {
    const auto counted = [](int device, const char* address, std::uint64_t bytes) {
        LinkedCard made = card(device, address);
        made.counters[kSentBytes] = bytes;
        return made;
    };
    std::vector<LinkedCard> before{counted(0, "a", 5), counted(1, "b", 10), counted(2, "c", 100)};
    EXPECT_EQ(counted_since(before, counted(1, "c", 130), kSentBytes), 30U) << "card b has gone";
    EXPECT_EQ(counted_since(before, counted(2, "c", 100), kSentBytes), 0U);
    EXPECT_EQ(counted_since(before, counted(1, "b", 9), kSentBytes), std::nullopt) << "it began anew";
    EXPECT_EQ(counted_since(before, counted(3, "d", 9), kSentBytes), std::nullopt);
    before[1] = counted(1, "", 0);
    before[1].trouble = "lost";
    EXPECT_EQ(counted_since(before, counted(1, "b", 1000), kSentBytes), std::nullopt) << "it was not read";
}

}  // namespace
}  // namespace orrery::smi
