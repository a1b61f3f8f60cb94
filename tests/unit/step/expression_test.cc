// The expression evaluator: operators, operands, words, what it depends on, and its complaints.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/hw/soc.h>

#include "tests/unit/step/story.h"
#include "tools/step/session/expression.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Expressions : public ::testing::Test {
  protected:
    std::string eval(const std::string& text) {
        const auto expression = Expression::parse(text, debugger->meanings());
        if (!expression) return "error: " + expression.error().text;
        const auto value = expression->evaluate(debugger->moment());
        return value ? show(*value, debugger->program()) : "error: " + value.error().text;
    }
    std::unique_ptr<Debugger> debugger = debug(three_queues());
};

TEST_F(Expressions, HaveTheOperatorsOfC) {
    EXPECT_EQ(eval("2 + 3 * 2"), "8");
    EXPECT_EQ(eval("(2 + 3) * 2"), "10 (0xa)");
    EXPECT_EQ(eval("7 - 2 - 1"), "4");
    EXPECT_EQ(eval("3 - 5"), "-2");
    EXPECT_EQ(eval("-7 / 2"), "-3");
    EXPECT_EQ(eval("7 % 4"), "3");
    EXPECT_EQ(eval("1 << 4 | 1"), "17 (0x11)");
    EXPECT_EQ(eval("0xff & 0x0f ^ 1"), "14 (0xe)");
    EXPECT_EQ(eval("1 << 64"), "0");
    EXPECT_EQ(eval("!0 && 2 > 1"), "true");
    EXPECT_EQ(eval("1 == 2 || 3 <= 3"), "true");
    EXPECT_EQ(eval("-1 < 1"), "true");
    EXPECT_EQ(eval("0xffffffffffffffff < 1"), "false");
    EXPECT_EQ(eval("~0 == 0xffffffffffffffff"), "true");
    EXPECT_EQ(eval("1 && 0 == 1 / 0"), "error: division by zero");
    EXPECT_EQ(eval("0 && 1 / 0"), "false");
    EXPECT_EQ(eval("(0 - 0x7fffffffffffffff - 1) / -1"), "-9223372036854775808");
}

TEST_F(Expressions, KnowTimes) {
    EXPECT_EQ(eval("12.5us"), "12.500 us (12500000 ps)");
    EXPECT_EQ(eval("3 ms + 1us"), "3.001 ms (3001000000 ps)");
    EXPECT_EQ(eval("10us / 2us"), "5");
    EXPECT_EQ(eval("time"), "1.000 us (1000000 ps)");
    EXPECT_THAT(eval("12 parsecs"), HasSubstr("'parsecs'"));
}

TEST_F(Expressions, ReadTablesAndWords) {
    ASSERT_THAT(run(*debugger, "goto decision 1"), HasSubstr("batch"));
    EXPECT_EQ(eval("queue[1].vtime"), "28.000 us (28000000 ps)");
    EXPECT_EQ(eval("queue[1].vtime - queue[2].vtime"), "25.000 us (25000000 ps)");
    EXPECT_EQ(eval("queue[2].vtime - queue[1].vtime"), "-25.000 us (-25000000 ps)");
    EXPECT_EQ(eval("queue[1].state"), "vector_port (4)");
    EXPECT_EQ(eval("queue[1 + 1].state == vector_port"), "true");
    EXPECT_EQ(eval("queue[0].priority == high"), "true");
    EXPECT_EQ(eval("queue[0].name"), "\"ui\"");
    EXPECT_EQ(eval("decision.rule == share"), "true");
    EXPECT_EQ(eval("decision.rule"), "share (3)");
    EXPECT_EQ(eval("decision.queue"), "2");
    EXPECT_EQ(eval("event.type"), "decision (7)");
    // The same word means what fits the left side.
    EXPECT_EQ(eval("event.type == gang"), "false");
    EXPECT_EQ(eval("rule.gang"), "6");
    EXPECT_EQ(eval("state.gang"), "9");
    EXPECT_EQ(eval("event.gang"), "20 (0x14)");
}

TEST_F(Expressions, HaveNoEventBetweenRecords) {
    run(*debugger, "step 1 insn");
    run(*debugger, "step 1 insn");
    EXPECT_THAT(eval("event.type"), StartsWith("nothing"));
    EXPECT_EQ(eval("event.type == decision"), "false");
    EXPECT_EQ(eval("event.type != decision"), "false");
    EXPECT_EQ(eval("!(decision.queue == 1)"), "true");
}

TEST_F(Expressions, ReadRegistersAndMemory) {
    EXPECT_EQ(eval("a0"), "0x1000 (4096)");
    EXPECT_EQ(eval("$a0 + 1"), "0x1001 (4097)");
    EXPECT_EQ(eval("x10 == a0"), "true");
    EXPECT_EQ(eval("mcause"), "0xb (11)");
    EXPECT_EQ(eval("pc"), "0x80000400 (2147484672)");
    EXPECT_EQ(eval("u64(0x80001000) == 0x5450534e4952524f"), "true");  // ORRINSPT
    EXPECT_EQ(eval("*0x80001000 & 0xff"), "79 (0x4f)");
    EXPECT_EQ(eval("u8(0x80001001)"), "82 (0x52)");
    const std::uint64_t last = ORR_SRAM_BASE + ORR_SRAM_SIZE - 2;
    EXPECT_THAT(eval(fmt::format("u32({:#x})", last)),
                StartsWith("error: a recording holds the core's SRAM"));
    EXPECT_THAT(eval("u64(0x10000000)"), StartsWith("error: a recording holds"));
}

TEST_F(Expressions, ComplainWhereItHurts) {
    EXPECT_THAT(eval("1 +"), HasSubstr("at the end"));
    EXPECT_THAT(eval("(1"), HasSubstr("expected ')'"));
    EXPECT_THAT(eval("1 2"), HasSubstr("at '2'"));
    EXPECT_THAT(eval("nonsense"), HasSubstr("neither a register"));
    EXPECT_THAT(eval("$nonsense"), HasSubstr("no register"));
    EXPECT_THAT(eval("&nonsense"), HasSubstr("no symbol"));
    EXPECT_THAT(eval("queue[3].colour"), HasSubstr("has no field 'colour'; it has exists, context"));
    EXPECT_THAT(eval("queue[16].state"), HasSubstr("rows 0 to 15"));
    EXPECT_THAT(eval("queue[a0].state"), HasSubstr("rows 0 to 15"));
    EXPECT_THAT(eval("99999999999999999999"), HasSubstr("neither a number nor a time"));
    EXPECT_THAT(eval(std::string(1000, '(')), HasSubstr("nested too deeply"));
    EXPECT_THAT(eval(std::string(1000, '!') + "1"), HasSubstr("nested too deeply"));
    EXPECT_THAT(eval(std::string(5000, '1')), HasSubstr("longer than"));
}

TEST_F(Expressions, SayWhatTheyDependOn) {
    const auto parse = [&](const char* text) {
        return Expression::parse(text, debugger->meanings()).value();
    };
    const Expression fixed = parse("queue[1].state == ready && u32(0x80002000) > 3");
    ASSERT_TRUE(fixed.memory());
    EXPECT_EQ(fixed.memory()->size(), 2u);
    EXPECT_EQ(fixed.memory()->back().address, 0x80002000u);
    EXPECT_EQ(fixed.memory()->back().bytes, 4u);
    EXPECT_FALSE(fixed.uses_registers() || fixed.uses_event() || fixed.uses_time());
    EXPECT_FALSE(parse("u32(sp + 4)").memory());
    EXPECT_FALSE(parse("queue[decision.queue].vtime").memory());
    EXPECT_TRUE(parse("decision.queue == 1").uses_event());
    EXPECT_TRUE(parse("pc == 4").uses_registers());
    EXPECT_TRUE(parse("time > 3us").uses_time());
}

}  // namespace
}  // namespace orrery::step
