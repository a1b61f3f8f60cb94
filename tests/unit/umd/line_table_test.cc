// Source lines of modules that orrery-cc -g has made, against llvm-addr2line, and what becomes of tables that
// are not.
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "umd/runtime/elf_image.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
    std::vector<std::byte> bytes(chars.size());
    std::memcpy(bytes.data(), chars.data(), chars.size());
    return bytes;
}

std::string output_of(const std::string& command) {
    std::string text;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> piece{};
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
        text.append(piece.data(), got);
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return text;
}

class LineTablesOf : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        folder_ = fs::path(testing::TempDir()) / fmt::format("orrery-lines-{}", ::getpid());
        fs::create_directories(folder_ / "sub");
        std::ofstream(folder_ / "sub/inner.h") << "#pragma once\n"
                                                  "inline unsigned inner(unsigned x) {\n"
                                                  "    asm volatile(\"nop\");\n"
                                                  "    return x * 3;\n"
                                                  "}\n";
        std::ofstream(folder_ / "k.cc") << "#include <orrery/kernel.h>\n"
                                           "#include \"sub/inner.h\"\n"
                                           "void nobody() { asm volatile(\"nop\"); }\n"
                                           "ORR_KERNEL void work(unsigned* p) {\n"
                                           "    for (unsigned i = 0; i < p[1]; ++i)\n"
                                           "        p[0] += inner(i);\n"
                                           "    if (p[0] == 5)\n"
                                           "        __builtin_trap();\n"
                                           "}\n";
        ASSERT_EQ(
            std::system(
                fmt::format("cd {} && {} {} -o k.elf k.cc", folder_.string(), ORRERY_CC, GetParam()).c_str()),
            0);
    }
    void TearDown() override { fs::remove_all(folder_); }
    fs::path folder_;
};

TEST_P(LineTablesOf, SayWhatAnotherReaderSays) {
    const auto image = ElfImage::parse(bytes_of(folder_ / "k.elf"));
    ASSERT_TRUE(image) << image.error().text;
    unsigned lines = 0;
    std::string all, expected;
    for (const auto& segment : image->segments()) {
        if ((segment.bind & ORR_BIND_EXEC) == 0) continue;
        std::string addresses;
        for (std::uint64_t at = segment.start; at < segment.start + 0x400; at += 2) {
            addresses += fmt::format(" {:#x}", at);
            const std::string line = image->lines().find(at);
            all += line.empty() ? "??:0\n" : line + "\n";
            lines += line.empty() ? 0 : 1;
        }
        // Without its column, and a line that is none.
        expected = output_of(
            fmt::format("cd {} && llvm-addr2line-19 --relativenames -e k.elf {} | sed 's/ (.*//; s/:?$/:0/; "
                        "s/^.*:0$/??:0/'",
                        folder_.string(), addresses));
    }
    EXPECT_GT(lines, 20u);
    EXPECT_NE(all.find("k.cc:8\n"), std::string::npos) << "the trap";
    EXPECT_NE(all.find("inner.h:3\n"), std::string::npos) << "what is inline";
    EXPECT_EQ(all, expected);
}

TEST_P(LineTablesOf, DamageCostsLinesOnly) {
    const auto image = ElfImage::parse(bytes_of(folder_ / "k.elf"));
    ASSERT_TRUE(image);
    std::mt19937_64 random(1);
    for (unsigned round = 0; round < 1000; ++round) {
        LineTables tables = image->lines();
        for (std::uint64_t n = 0; n <= random() % 4; ++n)
            tables.line[random() % tables.line.size()] = static_cast<std::byte>(random());
        if (round % 3 == 0) tables.line.resize(random() % tables.line.size());
        if (round % 5 == 0) tables.line_str.resize(random() % (tables.line_str.size() + 1));
        for (std::uint64_t at = 0x1000; at < 0x1100; at += 32) {
            for (const char c : tables.find(at))
                ASSERT_TRUE(c >= ' ' && c <= '~');
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Options, LineTablesOf,
                         ::testing::Values("-g", "-g -O0", "-g -gdwarf-4", "-gdwarf-2 -O3", "-g -gdwarf64",
                                           "-gline-tables-only"));

// A table by hand: one row at 0x1000, of a file whose name is at this place of .debug_line_str.
LineTables table(std::uint32_t name, std::int64_t more_lines, std::uint8_t special) {
    LineTables tables;
    const std::string names = std::string(1 << 20, 'x') + '\0' + "a.c" + '\0';
    tables.line_str.resize(names.size());
    std::memcpy(tables.line_str.data(), names.data(), names.size());
    std::string header, unit;
    const auto put = [](std::string& to, auto value) {
        to.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    // Lines from -1 on, 4 of them; 10 opcodes; no directories; files of a path each, one of them.
    header.append("\1\1\1\xff\4\x0a\0\1\1\1\1\0\0\0\1", 15).append("\0\0\1\1\x1f\1", 6);
    put(header, name);
    put(unit, std::uint16_t{5});
    put(unit, std::uint16_t{8});
    put(unit, static_cast<std::uint32_t>(header.size()));
    unit += header;
    unit.append("\0\x09\2", 3);  // the address
    put(unit, std::uint64_t{0x1000});
    unit.append("\4\0\3", 3);  // the file, then lines
    for (unsigned n = 0; n < 9; ++n, more_lines >>= 7)
        put(unit, static_cast<std::uint8_t>(0x80 | (more_lines & 0x7f)));
    put(unit, static_cast<std::uint8_t>(more_lines));
    put(unit, special);
    unit.append("\2\4\0\1\1", 5);  // the end
    std::string all;
    put(all, static_cast<std::uint32_t>(unit.size()));
    all += unit;
    tables.line.resize(all.size());
    std::memcpy(tables.line.data(), all.data(), all.size());
    return tables;
}

TEST(LineTables, LinesAndNamesBeyondMeasureAreNone) {
    constexpr std::uint32_t kName = (1 << 20) + 1;
    EXPECT_EQ(table(kName, 41, 12).find(0x1000), "a.c:43");
    EXPECT_EQ(table(kName, INT64_MAX - 1, 12).find(0x1000), "");
    EXPECT_EQ(table(kName - 5, 41, 12).find(0x1000), "xxxx:43");
    // Each of a million entries may have one, so the search for its end has one too.
    EXPECT_EQ(table(0, 41, 12).find(0x1000), "");
}

TEST(LineTables, OfAModuleWithoutAreEmpty) {
    const auto image = ElfImage::parse(bytes_of(TEST_KERNELS));
    ASSERT_TRUE(image);
    EXPECT_TRUE(LineTables{}.find(0x1000).empty());
}

}  // namespace
}  // namespace orrery::umd
