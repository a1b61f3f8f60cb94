// Units, tables, tables of the firmware, disassembly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/fw/inspect.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/unit/step/story.h"
#include "tools/step/program/debug_info.h"
#include "tools/step/program/disassemble.h"
#include "tools/text/progress.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;

TEST(Units, SuitTheirSize) {
    EXPECT_EQ(duration(0), "0");
    EXPECT_EQ(duration(999), "999 ps");
    EXPECT_EQ(duration(1500), "1.500 ns");
    EXPECT_EQ(duration(999'999'999), "1.000 ms");
    EXPECT_EQ(duration(12 * kUs), "12.000 us");
    EXPECT_EQ(duration(1'500'000'000'000), "1.500 s");
    EXPECT_EQ(moment(1234 * kUs + 567'890), "1234.567 us");
    EXPECT_EQ(grouped(1234567), "1 234 567");
    EXPECT_EQ(grouped(12), "12");
    EXPECT_EQ(parse_time(" 2.5 ms").value(), 2'500 * kUs);
    EXPECT_EQ(parse_time("7ps").value(), 7u);
    for (const char* bad : {"", "5", "us", "-1us", "1e300s", "5 minutes"})
        EXPECT_FALSE(parse_time(bad)) << bad;
    EXPECT_EQ(parse_number("0x10").value(), 16u);
    for (const char* bad : {"", "x", "12a", "-1", "0x"})
        EXPECT_FALSE(parse_number(bad)) << bad;
}

TEST(Progress, IsALineThatGoes) {
    char* bytes = nullptr;
    std::size_t size = 0;
    std::FILE* const to = ::open_memstream(&bytes, &size);
    const auto printed = [&] {
        (void)std::fflush(to);
        return std::string(bytes, size);
    };
    {
        text::Progress(std::string("reading x"), to, false, std::chrono::milliseconds(0)).at(0.5);
    }
    {
        text::Progress(std::string("reading x"), to, true, std::chrono::hours(1)).at(0.5);
    }
    EXPECT_EQ(printed(), "") << "no terminal; not long enough";
    {
        text::Progress(
            "reading a\x1b"
            "b",
            to, true, std::chrono::milliseconds(0))
            .at(0.5);
    }
    EXPECT_EQ(printed(), "\rreading a?b: 50 %\r                 \r");
    (void)std::fclose(to);
    ::free(bytes);
}

TEST(Table, AlignsAndLeavesNoSpaceAtLineEnds) {
    Table table({{"name"}, {"n", Align::kRight}, {"note"}});
    EXPECT_EQ(table.text(), "");
    table.row({"a", "1", ""});
    table.row({"größer", "100", "x"});
    EXPECT_EQ(table.text("| "), "| name      n  note\n| a         1\n| größer  100  x\n");
}

TEST(Style, ColoursOnlyIfAsked) {
    EXPECT_EQ(Style{}.bad("x"), "x");
    EXPECT_EQ((Style{.colour = true}).bad("x"), "\x1b[31mx\x1b[0m");
}

TEST(Inspect, RefusesTablesThatLeaveTheSram) {
    const auto story = three_queues();
    std::vector<std::uint8_t> sram(story->sram().begin(), story->sram().end());
    const std::uint64_t head = ORR_SRAM_BASE + 0x1000;
    ASSERT_TRUE(Inspect::read(sram, head));
    const auto broken = [&](std::size_t offset, std::uint32_t value) {
        std::vector<std::uint8_t> copy = sram;
        std::memcpy(copy.data() + offset, &value, sizeof value);
        const auto inspect = Inspect::read(copy, head);
        return inspect ? std::string() : inspect.error().text;
    };
    constexpr std::size_t kTable = 0x1100, kField = 0x2000;
    EXPECT_THAT(broken(0x1000, 0), HasSubstr("no description"));
    EXPECT_THAT(broken(0x1008, 2), HasSubstr("no description"));
    EXPECT_THAT(broken(0x100c, 1000), HasSubstr("1000 tables"));
    EXPECT_THAT(broken(0x1010, 0xffffffff), HasSubstr("lies outside SRAM"));
    EXPECT_THAT(broken(kTable + offsetof(orr_inspect_table, base), 0),
                HasSubstr("\"queue\" lies outside SRAM"));
    EXPECT_THAT(broken(kTable + offsetof(orr_inspect_table, rows), 60000),
                HasSubstr("\"queue\" lies outside SRAM"));
    EXPECT_THAT(broken(kTable + offsetof(orr_inspect_table, stride), 4), HasSubstr("outside its row"));
    EXPECT_THAT(broken(kTable + offsetof(orr_inspect_table, fields), 0), HasSubstr("outside its row"));
    EXPECT_THAT(broken(kField + offsetof(orr_inspect_field, offset), 0xfffffff0),
                HasSubstr("outside its row"));
    EXPECT_THAT(broken(kField + offsetof(orr_inspect_field, bytes), 0), HasSubstr("outside its row"));
    for (const std::uint64_t address : {0ull, ~0ull, ORR_SRAM_BASE + ORR_SRAM_SIZE - 8ull})
        EXPECT_FALSE(Inspect::read(sram, address));
}

std::string text_of(std::uint32_t bits) {
    return disassemble(bits, 0x80000000, {}).text;
}

TEST(Names, AreAsPeopleWriteThem) {
    EXPECT_EQ(readable_name("orr_main"), "orr_main");
    EXPECT_EQ(readable_name("_ZN6orrery2fw9Scheduler15drain_doorbellsEv"), "Scheduler::drain_doorbells");
    EXPECT_EQ(readable_name("_ZNK6orrery2fw7Engines6levelsEv"), "Engines::levels");
    EXPECT_EQ(readable_name("_ZN6orrery2fw12_GLOBAL__N_110save_areasERNS0_3HalERK14orr_boot_block"),
              "save_areas");
    EXPECT_EQ(readable_name("_ZN6orrery2fw3Hal4regsILj8EEEvjRAT__m"), "Hal::regs");
    EXPECT_EQ(readable_name("_ZN6orrery2fw5trace5writeIJmmEEEvRNS0_3HalEjjmDpT_"), "trace::write");
    EXPECT_EQ(readable_name("_ZN6orrery2fw1AltERKS1_"), "A::operator<");
    EXPECT_EQ(readable_name("_ZNK6orrery2fw1AclEi"), "A::operator()");
}

TEST(Disassembler, ReadsInstructions) {
    EXPECT_EQ(text_of(0x00a50513), "addi a0, a0, 10");
    EXPECT_EQ(text_of(0x00000013), "nop");
    EXPECT_EQ(text_of(0x00008067), "ret");
    EXPECT_EQ(text_of(0xfe0518e3), "bnez a0, 0x7ffffff0");
    EXPECT_EQ(text_of(0x0000006f), "j 0x80000000");
    EXPECT_EQ(text_of(0x008000ef), "jal 0x80000008");
    EXPECT_EQ(text_of(0x00053503), "ld a0, 0(a0)");
    EXPECT_EQ(text_of(0xfea43c23), "sd a0, -8(s0)");
    EXPECT_EQ(text_of(0x02b50533), "mul a0, a0, a1");
    EXPECT_EQ(text_of(0x100526af), "lr.w a3, (a0)");
    EXPECT_EQ(text_of(0x30002573), "csrr a0, mstatus");
    EXPECT_EQ(text_of(0x30447073), "csrci mie, 8");
    EXPECT_EQ(text_of(0x10500073), "wfi");
    EXPECT_EQ(text_of(0x30200073), "mret");
    EXPECT_EQ(text_of(0x00004501), "li a0, 0");   // compressed
    EXPECT_EQ(text_of(0x0000832a), "mv t1, a0");  // compressed
    EXPECT_EQ(disassemble(0x4501, 0, {}).bytes, 2u);
    EXPECT_EQ(text_of(0), ".half 0x0000");
    EXPECT_EQ(text_of(0xffffffff), ".word 0xffffffff");
    EXPECT_EQ(disassemble(0x008000ef, 0x80000000, [](std::uint64_t) { return std::string("f"); }).text,
              "jal 0x80000008 <f>");
}

}  // namespace
}  // namespace orrery::step
