// What orrery-smi topo shows of switches: what they tell, and nothing that is not there any more.
#include "tools/smi/switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/hw/switches.h>

#include <algorithm>
#include <cstring>

#include "tools/smi/links.h"

namespace orrery::smi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kLeaf0 = 0x50, kLeaf1 = 0x51, kSpine0 = 0x60, kSpine1 = 0x61;

LinkedCard card_at(int device, std::uint64_t leaf, unsigned port) {
    LinkedCard card;
    card.device = device;
    card.name = fmt::format("card {}", device);
    card.address = fmt::format("0000:0{}:00.0", device + 1);
    card.uid = 0x10 + static_cast<std::uint64_t>(device);
    LinkPort leads{ORR_INIT(orrLinkInfo), 0};
    leads.link.state = orrLinkStateUp;
    leads.link.peer_device = -1;
    leads.link.peer_uid = leaf;
    leads.link.peer_port = port;
    leads.link.lanes = 4;
    leads.link.gbps = 400;
    leads.link.latency_ns = 500;
    leads.to_switch = true;
    card.ports = {leads};
    return card;
}

SwitchPort to(unsigned number, bool to_switch, std::uint64_t peer, unsigned peer_port) {
    return {.number = number,
            .state = orrLinkStateUp,
            .to_switch = to_switch,
            .peer_uid = peer,
            .peer_port = peer_port,
            .lanes = 4,
            .gbps = 400,
            .latency_ns = 500,
            .losses = 0};
}

SwitchPort lost(unsigned number) {
    SwitchPort port;
    port.number = number;
    port.state = orrLinkStateDown;
    port.losses = 1;
    return port;
}

// One card at each of two leaves, which two spines join.
std::vector<LinkedCard> two_cards() {
    return {card_at(0, kLeaf0, 0), card_at(1, kLeaf1, 0)};
}
std::vector<Switch> tree() {
    return {{kLeaf0, 0, 32, {to(0, false, 0x10, 0), to(2, true, kSpine0, 0), to(3, true, kSpine1, 0)}},
            {kLeaf1, 0, 32, {to(0, false, 0x11, 0), to(2, true, kSpine0, 1), to(3, true, kSpine1, 1)}},
            {kSpine0, 1, 32, {to(0, true, kLeaf0, 2), to(1, true, kLeaf1, 2)}},
            {kSpine1, 1, 32, {to(0, true, kLeaf0, 3), to(1, true, kLeaf1, 3)}}};
}

std::vector<std::string> notes(const topology::Picture& picture) {
    std::vector<std::string> all;
    for (const topology::PicturePort& port : picture.ports)
        if (!port.note.empty())
            all.push_back(fmt::format("{} {}: {}", port.port.card, port.port.port, port.note));
    return all;
}

TEST(SwitchPicture, HasAllLevelsAndEachLinkOnce) {
    const topology::Picture picture = picture_of(two_cards(), tree());
    ASSERT_EQ(picture.cards.size(), 6u);
    EXPECT_EQ(picture.cards[2].kind, "0000000000000050");
    EXPECT_EQ(picture.cards[3].level, 0);
    EXPECT_EQ(picture.cards[4].level, 1);
    EXPECT_EQ(picture.cards[5].level, 1);
    EXPECT_EQ(picture.links.size(), 6u);
    EXPECT_THAT(notes(picture), IsEmpty());
    const auto joins = [&](topology::Port one, topology::Port other) {
        return std::ranges::any_of(picture.links, [&](const topology::PictureLink& link) {
            return link.edge.first == one && link.edge.second == other;
        });
    };
    EXPECT_TRUE(joins({0, 0}, {2, 0}));
    EXPECT_TRUE(joins({2, 2}, {4, 0}));
    EXPECT_TRUE(joins({3, 3}, {5, 1}));
    EXPECT_THAT(topology::svg_of(picture), HasSubstr("<title>2 cards on 4 switches</title>"));
}

TEST(SwitchPicture, ASwitchThatNobodyTellsOfIsNotThere) {
    auto switches = tree();
    switches.erase(switches.begin() + 2);  // the first spine has died
    switches[0].ports[1] = lost(2);
    switches[1].ports[1] = lost(2);
    const topology::Picture picture = picture_of(two_cards(), switches);
    EXPECT_EQ(picture.cards.size(), 5u);
    EXPECT_EQ(picture.links.size(), 4u);
    EXPECT_THAT(notes(picture), ElementsAre("2 2: down, lost once", "3 2: down, lost once"));
    const std::string svg = topology::svg_of(picture);
    EXPECT_THAT(svg, Not(HasSubstr(fmt::format("{:016x}", kSpine0))));
    EXPECT_THAT(svg, HasSubstr("class=\"down\""));
}

TEST(SwitchPicture, ALinkIsWhatBothEndsSay) {
    auto switches = tree();
    switches[2].ports[0] = lost(0);  // what the leaf says is of a moment ago
    const topology::Picture picture = picture_of(two_cards(), switches);
    EXPECT_EQ(picture.links.size(), 5u);
    EXPECT_THAT(notes(picture),
                ElementsAre("2 2: to switch 0000000000000060 port 0", "4 0: down, lost once"));
}

TEST(SwitchPicture, ASwitchIsNoCardWhateverItsLevel) {
    auto switches = tree();
    switches[3].level = 0xffff'ffff;
    const topology::Picture picture = picture_of(two_cards(), switches);
    EXPECT_EQ(picture.cards[5].level, 0xff);
    EXPECT_THAT(topology::svg_of(picture), HasSubstr("<title>2 cards on 4 switches</title>"));
}

TEST(SwitchPicture, CardsOfOtherMachinesAreEndsOfLines) {
    auto switches = tree();
    switches[1].ports[0] = to(1, false, 0x99, 3);
    const topology::Picture picture = picture_of({card_at(0, kLeaf0, 0)}, switches);
    EXPECT_THAT(notes(picture), ElementsAre("2 1: to 0000000000000099 port 3"));
}

TEST(SwitchPicture, WithoutWordsOfSwitchesThereAreThoseAtCards) {
    const topology::Picture picture = picture_of(two_cards(), {});
    ASSERT_EQ(picture.cards.size(), 4u);
    EXPECT_EQ(picture.cards[2].kind, "0000000000000050");
    EXPECT_EQ(picture.cards[3].level, 0);
    EXPECT_EQ(picture.links.size(), 2u);
}

TEST(SwitchJson, HasLevelsPortsAndPeers) {
    auto switches = tree();
    switches[0].ports[2] = lost(3);
    const auto json = switches_json(two_cards(), switches);
    ASSERT_EQ(json.size(), 4u);
    EXPECT_EQ(json[0]["uid"], "0000000000000050");
    EXPECT_EQ(json[2]["level"], 1);
    EXPECT_EQ(json[0]["port_count"], 32);
    EXPECT_EQ(json[0]["ports"][0]["peer"]["kind"], "card");
    EXPECT_EQ(json[0]["ports"][0]["peer"]["device"], 0);
    EXPECT_EQ(json[0]["ports"][1]["peer"]["uid"], "0000000000000060");
    EXPECT_EQ(json[0]["ports"][1]["gbps"], 400);
    EXPECT_EQ(json[0]["ports"][2]["state"], "down");
    EXPECT_EQ(json[0]["ports"][2]["losses"], 1);
    EXPECT_TRUE(json[0]["ports"][2]["peer"].is_null());
}

// The registers, as links/PORT/switches has them.
struct Registers {
    std::vector<std::uint32_t> words = std::vector<std::uint32_t>(ORR_SWITCHES_BYTES / 4);
    std::uint64_t end = ORR_SWITCHES_BYTES;
    std::uint64_t fails_at = ORR_SWITCHES_BYTES;
    unsigned changes = 0;  // so many looks at the version find another one
    void set(std::uint64_t at, std::uint32_t value) { words.at(at / 4) = value; }
    void add_switch(unsigned place, std::uint32_t uid, std::uint32_t level, std::uint32_t ports) {
        set(ORR_SWITCHES_PLACE(place) + ORR_SWITCH_UID, uid);
        set(ORR_SWITCHES_PLACE(place) + ORR_SWITCH_LEVEL, level);
        set(ORR_SWITCHES_PLACE(place) + ORR_SWITCH_PORTS, ports);
    }
    ReadSwitches reader() {
        return [this](std::uint64_t offset, void* into, std::size_t bytes) -> text::Result<std::size_t> {
            if (offset == fails_at) return text::fail("no");
            if (offset == ORR_SWITCHES_VERSION && changes != 0) set(offset, 2 * --changes);
            const std::size_t there = offset < end ? std::min<std::uint64_t>(bytes, end - offset) : 0;
            std::memcpy(into, reinterpret_cast<const char*>(words.data()) + offset, there);
            return there;
        };
    }
};

TEST(SwitchWords, AreTakenApart) {
    Registers registers;
    registers.add_switch(0, 0x50, 0, 32);
    registers.add_switch(1, 0x60, 0xffff'ffff, 999);
    const std::uint64_t port = ORR_SWITCHES_PLACE(0) + ORR_SWITCH_PORT(7);
    registers.set(port, 3 | ORR_SWITCH_PORT_TO_SWITCH | 2u << ORR_SWITCH_PORT_LANES_SHIFT |
                            5u << ORR_SWITCH_PORT_PEER_PORT_SHIFT);
    registers.set(port + ORR_SWITCH_PORT_MBPS, 200'000);
    registers.set(port + ORR_SWITCH_PORT_PEER, 0x60);
    registers.set(port + ORR_SWITCH_PORT_PEER + 4, 1);
    registers.set(port + ORR_SWITCH_PORT_LATENCY_NS, 500);
    registers.set(port + ORR_SWITCH_PORT_LOSSES, 4);
    registers.changes = 3;
    const auto read = parse_switches(registers.reader(), 0x50);
    ASSERT_TRUE(read) << read.error().text;
    const auto& all = *read;
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(registers.changes, 0u) << "it was not read again";
    EXPECT_TRUE(all[0].first_hand);
    EXPECT_FALSE(all[1].first_hand);
    EXPECT_EQ(all[1].level, ORR_SWITCH_MAX_LEVEL) << "whatever it says";
    EXPECT_EQ(all[1].port_count, ORR_SWITCH_MAX_PORTS) << "whatever it says";
    EXPECT_THAT(all[1].ports, IsEmpty());
    ASSERT_EQ(all[0].ports.size(), 1u);
    EXPECT_EQ(all[0].ports[0], (SwitchPort{.number = 7,
                                           .state = orrLinkStateDegraded,
                                           .to_switch = true,
                                           .peer_uid = 0x1'0000'0060,
                                           .peer_port = 5,
                                           .lanes = 2,
                                           .gbps = 200,
                                           .latency_ns = 500,
                                           .losses = 4}));
}

TEST(SwitchWords, OfNobodyAreNone) {
    Registers registers;
    EXPECT_THAT(parse_switches(registers.reader(), 0x50).value(), IsEmpty());
    registers.add_switch(0, 0x50, 0, 32);
    registers.end = 0;
    EXPECT_THAT(parse_switches(registers.reader(), 0x50).value(), IsEmpty());
}

TEST(SwitchWords, ThatCannotBeReadAreAnError) {
    Registers registers;
    registers.add_switch(0, 0x50, 0, 32);
    registers.add_switch(1, 0x60, 1, 32);
    for (const std::uint64_t at :
         {std::uint64_t{ORR_SWITCHES_VERSION}, std::uint64_t{ORR_SWITCHES_PLACE(1)}}) {
        registers.fails_at = at;
        const auto all = parse_switches(registers.reader(), 0x50);
        ASSERT_FALSE(all);
        EXPECT_EQ(all.error().text, "no");
    }
}

TEST(SwitchWords, ThatDoNotStandStillAreNoPicture) {
    Registers registers;
    registers.add_switch(0, 0x50, 0, 32);
    registers.set(ORR_SWITCHES_VERSION, 5);
    auto all = parse_switches(registers.reader(), 0x50);
    ASSERT_FALSE(all) << "they are being changed";
    EXPECT_THAT(all.error().text, HasSubstr("try again"));
    registers.changes = 1000;
    EXPECT_FALSE(parse_switches(registers.reader(), 0x50)) << "each look finds others";
    registers.changes = 0;
    registers.set(ORR_SWITCHES_VERSION, 6);
    registers.end = ORR_SWITCHES_PLACE(0) + 0x40;
    EXPECT_FALSE(parse_switches(registers.reader(), 0x50)) << "there is less of them than of a place";
}

TEST(SwitchWords, WhoIsNotAtThePortDoesNotSpeakForItself) {
    Registers registers;
    registers.add_switch(0, 0x50, 0, 32);
    EXPECT_FALSE(parse_switches(registers.reader(), 0x51).value().front().first_hand);
}

TEST(SwitchWords, OfSeveralCardsAreMerged) {
    const auto all =
        merged({{kSpine0, 1, 4, {}}, {kLeaf1, 0, 4, {}}, {kSpine0, 1, 4, {}}, {kLeaf0, 0, 4, {}}});
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].uid, kLeaf0);
    EXPECT_EQ(all[2].uid, kSpine0);
}

// Whoever is asked first: another level does not make another switch, and hearsay is not preferred.
TEST(SwitchWords, OfOneSwitchAreMergedToThoseThatItSaysItself) {
    const Switch own{kLeaf0, 1, 4, {to(0, false, 0x10, 0)}, true};
    const Switch hearsay{kLeaf0, 0, 4, {}}, other{kLeaf0, 2, 4, {}}, fewer{kLeaf0, 0, 2, {}};
    for (std::vector<Switch> heard : {std::vector{own, hearsay, other}, std::vector{other, hearsay, own}})
        EXPECT_THAT(merged(heard), ElementsAre(own));
    EXPECT_THAT(merged({hearsay, fewer, other}), ElementsAre(fewer));
    EXPECT_THAT(merged({other, fewer, hearsay}), ElementsAre(fewer));
    EXPECT_THAT(merged({other, hearsay, own, {kLeaf1, 3, 4, {}}, {kLeaf1, 0, 4, {}}}),
                ElementsAre(Switch{kLeaf1, 0, 4, {}}, own));
}

}  // namespace
}  // namespace orrery::smi
