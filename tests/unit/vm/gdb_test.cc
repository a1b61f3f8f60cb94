// --gdb and the status port against a guest that says what it likes.
#include "tools/vm/run/gdb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/vm/run/status_lines.h"

namespace orrery::vm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(GuestSymbolsTest, SectionsAreNamesAndAddresses) {
    GuestSymbols symbols;
    ASSERT_TRUE(symbols.section(".text 0xffffffffc0201000"));
    for (const std::string& hostile :
         {std::string(".text $_shell(\"x\")"), std::string(".text 0x1$_shell(1)"), std::string(".te$xt 0x1"),
          std::string("text 0x1"), std::string(".text 0x"), std::string(".text"), std::string(""),
          std::string(".text 0x1 -s .data 0x2"), std::string(".text 0x1\rshell x"), std::string(".a\"b 0x1"),
          "." + std::string(1000, 'a') + " 0x1", ".text 0x" + std::string(1000, '1')}) {
        const auto taken = symbols.section(hostile);
        ASSERT_FALSE(taken) << hostile;
        EXPECT_THAT(taken.error().text, HasSubstr("--gdb"));
    }
    ASSERT_TRUE(symbols.section(".rodata 0xffffffffc0204000"));
    EXPECT_THAT(gdb_script("", "/s", "/m.ko", ""), HasSubstr("set remotetimeout 60\ntarget remote /s\n"));
    EXPECT_THAT(gdb_script("", "/s", "/m.ko", symbols.sections()),
                HasSubstr("add-symbol-file \"/m.ko\" -s .text 0xffffffffc0201000 -s .rodata "
                          "0xffffffffc0204000\n"));
}

TEST(GuestSymbolsTest, SectionsAreFew) {
    GuestSymbols symbols;
    for (int i = 0; i < 64; ++i)
        ASSERT_TRUE(symbols.section(".text 0x1"));
    EXPECT_FALSE(symbols.section(".text 0x1"));
}

TEST(GuestSymbolsTest, SymbolsArePlainNamesAndNotWithoutEnd) {
    GuestSymbols symbols;
    EXPECT_TRUE(symbols.kernel("ffffffff81000000 T do_good.part.0\t[orrery]"));
    EXPECT_TRUE(symbols.kernel("ffffffff81000010 T do\x1b]bad"));
    EXPECT_TRUE(symbols.kernel("ffffffff81000020 T too_long" + std::string(100000, 'x')));
    const std::string file = symbols.take_symbol_file();
    EXPECT_THAT(file, HasSubstr("do_good.part.0"));
    EXPECT_THAT(file, Not(HasSubstr("bad")));
    EXPECT_THAT(file, Not(HasSubstr("too_long")));
    EXPECT_EQ(symbols.take_symbol_file(), "");
    const std::string line = "ffffffff81000000 T " + std::string(1000, 'x');
    std::size_t taken = 0;
    while (taken < std::size_t{100} << 20 && symbols.kernel(line))
        taken += line.size();
    EXPECT_LT(taken, std::size_t{65} << 20);
}

TEST(StatusLinesTest, ComeWhole) {
    StatusLines lines;
    EXPECT_THAT(lines.feed("boot 1\nacc").value(), ElementsAre("boot 1"));
    EXPECT_THAT(lines.feed("el 2\n\nx").value(), ElementsAre("accel 2", ""));
}

TEST(StatusLinesTest, DoNotGrowWithoutEnd) {
    StatusLines lines;
    const std::string part(32768, 'x');
    std::size_t fed = 0;
    auto result = lines.feed(part);
    for (; result && fed < std::size_t{1} << 20; fed += part.size())
        result = lines.feed(part);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().text, HasSubstr("64 KiB"));
}

}  // namespace
}  // namespace orrery::vm
