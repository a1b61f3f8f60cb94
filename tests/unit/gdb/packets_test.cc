#include "emulator/gdb/packets.h"

#include <gtest/gtest.h>

namespace orrery::emu::gdb {
namespace {

using Event = PacketReader::Event;

std::vector<Event> put_all(PacketReader& reader, std::string_view text) {
    std::vector<Event> events;
    for (const char c : text) {
        const Event event = reader.put(static_cast<std::uint8_t>(c));
        if (event != Event::kNothing) events.push_back(event);
    }
    return events;
}

TEST(Packets, ComeWithTheirChecksum) {
    PacketReader reader;
    EXPECT_EQ(put_all(reader, frame("m80000000,10")), std::vector{Event::kPacket});
    EXPECT_EQ(reader.packet(), "m80000000,10");
    EXPECT_EQ(put_all(reader, "$g#68"), std::vector{Event::kBad});
    EXPECT_EQ(put_all(reader, "$g#6z"), std::vector{Event::kBad});
    EXPECT_EQ(put_all(reader, "$g#67"), std::vector{Event::kPacket});
    EXPECT_EQ(put_all(reader, "$#00"), std::vector{Event::kPacket});
    EXPECT_EQ(reader.packet(), "");
}

TEST(Packets, EscapesAreUndone) {
    PacketReader reader;
    const std::string all = "a$b#c}d*e";
    EXPECT_EQ(put_all(reader, frame(all)), std::vector{Event::kPacket});
    EXPECT_EQ(reader.packet(), all);
}

TEST(Packets, BetweenThem) {
    PacketReader reader;
    EXPECT_EQ(put_all(reader, "++\x03-rubbish"), (std::vector{Event::kInterrupt, Event::kNack}));
    // A lost end: the next packet counts.
    EXPECT_EQ(put_all(reader, "$lost" + frame("?")), std::vector{Event::kPacket});
    EXPECT_EQ(reader.packet(), "?");
}

TEST(Packets, ALongOneIsRefusedAndTheNextTaken) {
    PacketReader reader;
    EXPECT_EQ(put_all(reader, frame(std::string(kMaxPacket, 'x'))), std::vector{Event::kPacket});
    EXPECT_EQ(put_all(reader, frame(std::string(kMaxPacket + 1, 'x'))), std::vector{Event::kBad});
    EXPECT_LE(reader.packet().size(), kMaxPacket);
    EXPECT_EQ(put_all(reader, frame("g")), std::vector{Event::kPacket});
    EXPECT_EQ(reader.packet(), "g");
}

TEST(Packets, NumbersAndBytes) {
    std::string_view text = "80000000,10";
    EXPECT_EQ(take_number(text), 0x80000000u);
    EXPECT_TRUE(take(text, ','));
    EXPECT_EQ(take_number(text), 0x10u);
    EXPECT_EQ(take_number(text), std::nullopt);
    text = "10000000000000000";
    EXPECT_EQ(take_number(text), std::nullopt) << "17 digits";
    EXPECT_EQ(from_hex("0aFF"), std::string("\x0a\xff"));
    EXPECT_EQ(from_hex("0"), std::nullopt);
    EXPECT_EQ(from_hex("0g"), std::nullopt);
    EXPECT_EQ(to_hex(std::vector<std::uint8_t>{0, 0xab}), "00ab");
}

}  // namespace
}  // namespace orrery::emu::gdb
