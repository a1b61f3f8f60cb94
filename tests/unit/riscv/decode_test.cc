// The table of vector instructions against llvm-mc: every combination of the fields that choose the
// instruction, its operands and its mask, and the scalar neighbours. The texts are equal, so the table also
// agrees about which field is which operand. And the decoder of scalar floating point, in what there is and
// what not.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "emulator/core/decode.h"
#include "emulator/core/vector/opcodes.h"
#include "tests/unit/riscv/disassembly.h"

namespace orrery::riscv::test {
namespace {

namespace fs = std::filesystem;

// What llvm-mc calls each word; "" if it knows no such instruction or its name does not begin so.
std::vector<std::string> ask_llvm(const std::vector<std::uint32_t>& words, char first = 'v') {
    char name[] = "/tmp/orrery-decode-test-XXXXXX";
    if (mkdtemp(name) == nullptr) return {};
    const fs::path folder(name);
    {
        fmt::memory_buffer text;
        for (const std::uint32_t word : words)
            fmt::format_to(std::back_inserter(text), "{:#x},{:#x},{:#x},{:#x}\n", word & 0xff,
                           word >> 8 & 0xff, word >> 16 & 0xff, word >> 24);
        std::ofstream(folder / "in") << std::string_view(text.data(), text.size());
    }
    const std::string command = fmt::format(
        "cd '{}' && '{}' --disassemble -M no-aliases --triple=riscv64 "
        "-mattr=+v,+zvfh,+zvfbfmin,+zvfbfwma,+zfhmin,+zfbfmin < "
        "in "
        "> out 2> errors",
        folder.string(), ORRERY_LLVM_MC);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;

    // A word that it does not know has a line of errors with its number, and none of output.
    std::vector<bool> known(words.size(), true);
    std::ifstream errors(folder / "errors");
    for (std::string line; std::getline(errors, line);) {
        std::size_t number = 0;
        if (std::sscanf(line.c_str(), "<stdin>:%zu:1: warning: invalid", &number) == 1 &&
            number <= words.size())
            known[number - 1] = false;
    }
    std::vector<std::string> answers(words.size());
    std::ifstream out(folder / "out");
    std::string line;
    std::getline(out, line);  // .text
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (!known[i]) continue;
        if (!std::getline(out, line)) {
            ADD_FAILURE() << "llvm-mc says nothing about word " << i;
            break;
        }
        if (line.size() > 1 && line[1] == first) {
            answers[i] = line.substr(1);
            if (const auto tab = answers[i].find('\t'); tab != std::string::npos) answers[i][tab] = ' ';
        }
    }
    EXPECT_FALSE(std::getline(out, line)) << "more lines than words: " << line;
    fs::remove_all(folder);
    return answers;
}

// llvm-mc also knows, of instructions with a fixed number of registers, that the first must be a multiple of
// it.
std::string expected(std::uint32_t bits) {
    const emu::VectorOp op = emu::decode_vector(bits);
    if (op != emu::VectorOp::kNone && emu::row(op).has(emu::vector_property::kWhole)) {
        const bool move = emu::row(op).has(emu::vector_property::kMove);
        const std::uint32_t registers = (move ? bits >> 15 & 7 : bits >> 29) + 1;
        if ((bits >> 7 & 31) % registers != 0) return "";
        if (move && (bits >> 20 & 31) % registers != 0) return "";
    }
    return disassemble(bits);
}

void compare(const std::vector<std::uint32_t>& words, std::size_t at_least) {
    const std::vector<std::string> theirs = ask_llvm(words);
    ASSERT_EQ(theirs.size(), words.size());
    std::size_t vector = 0;
    unsigned differences = 0;
    for (std::size_t i = 0; i < words.size() && differences < 20; ++i) {
        const std::string ours = expected(words[i]);
        vector += !ours.empty();
        if (ours == theirs[i]) continue;
        ++differences;
        ADD_FAILURE() << fmt::format("{:08x}: ours '{}', llvm-mc's '{}'", words[i], ours, theirs[i]);
    }
    EXPECT_GE(vector, at_least);
}

// Registers that the rest of the word does not choose.
std::uint32_t some_register(std::uint32_t word, unsigned low) {
    return ((word * 0x9e3779b9u) >> 27) << low;
}

TEST(Decode, Arithmetic) {
    std::vector<std::uint32_t> words;
    for (std::uint32_t high = 0; high < 1u << 20; ++high) {  // funct6, vm, vs2, vs1, funct3
        const std::uint32_t word = high << 12 | 0x57;
        words.push_back(word | some_register(word, 7));
    }
    compare(words, 600'000);
}

TEST(Decode, LoadsAndStores) {
    std::vector<std::uint32_t> words;
    for (const std::uint32_t major : {0x07u, 0x27u})
        for (std::uint32_t high = 0; high < 1u << 12; ++high)  // nf, mew, mop, vm, lumop
            for (std::uint32_t width = 0; width < 8; ++width) {
                const std::uint32_t word = high << 20 | width << 12 | major;
                words.push_back(word | some_register(word, 7) | some_register(~word, 15));
            }
    compare(words, 12'000);
}

TEST(Decode, EveryRegister) {
    std::vector<std::uint32_t> words;
    for (const emu::VectorRow& row : emu::kVectorRows)
        for (std::uint32_t i = 0; i < 32; ++i)
            words.push_back(row.match |
                            ((i << 7 | (i ^ 9) << 15 | (i ^ 22) << 20 | (i & 1) << 25) & ~row.mask));
    compare(words, words.size() - 3 * 24 * 32);
}

TEST(Decode, OtherMajorOpcodes) {
    std::vector<std::uint32_t> words;
    for (std::uint32_t major = 3; major < 128; major += 4)
        if (major != 0x57 && (major & 0x1f) != 0x1f)  // not the longer instructions
            for (std::uint32_t i = 0; i < 2'000; ++i) {
                const std::uint32_t word = ((i * 0x9e3779b9u) & ~0x7fu) | major;
                // Of the two that vectors share, the scalar widths.
                if ((major != 0x07 && major != 0x27) || ((word >> 12 & 7) >= 1 && (word >> 12 & 7) <= 4))
                    words.push_back(word);
            }
    for (const std::uint32_t word : words)
        ASSERT_EQ(disassemble(word), "") << fmt::format("{:08x}", word);
    compare(words, 0);
}

const char* half_name(emu::OpCode code) {
    switch (code) {
        case emu::OpCode::kFlh:
            return "flh";
        case emu::OpCode::kFsh:
            return "fsh";
        case emu::OpCode::kFmvXH:
            return "fmv.x.h";
        case emu::OpCode::kFmvHX:
            return "fmv.h.x";
        case emu::OpCode::kFcvtSH:
            return "fcvt.s.h";
        case emu::OpCode::kFcvtHS:
            return "fcvt.h.s";
        case emu::OpCode::kFcvtDH:
            return "fcvt.d.h";
        case emu::OpCode::kFcvtHD:
            return "fcvt.h.d";
        case emu::OpCode::kFcvtSBf16:
            return "fcvt.s.bf16";
        case emu::OpCode::kFcvtBf16S:
            return "fcvt.bf16.s";
        default:
            return nullptr;
    }
}

// Which there are, and the names of the 16-bit ones: by all fields that choose them.
TEST(Decode, ScalarFloatingPoint) {
    std::vector<std::uint32_t> words;
    for (std::uint32_t high = 0; high < 1u << 12; ++high)  // funct7 and rs2
        for (std::uint32_t funct3 = 0; funct3 < 8; ++funct3)
            for (const std::uint32_t major : {0x07u, 0x27u, 0x43u, 0x47u, 0x4bu, 0x4fu, 0x53u}) {
                const std::uint32_t word = high << 20 | funct3 << 12 | major;
                words.push_back(word | some_register(word, 7) | some_register(~word, 15));
            }
    const std::vector<std::string> theirs = ask_llvm(words, 'f');
    ASSERT_EQ(theirs.size(), words.size());
    std::size_t halves = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const emu::OpCode code = emu::decode(words[i], 0, true, true).code;
        const bool scalar = code != emu::OpCode::kIllegal && code != emu::OpCode::kVectorMemory;
        ASSERT_EQ(scalar, !theirs[i].empty()) << fmt::format("{:08x} {}", words[i], theirs[i]);
        const std::string name = theirs[i].substr(0, theirs[i].find(' '));
        const bool half = name == "flh" || name == "fsh" || name.find("16") != std::string::npos ||
                          name.ends_with(".h") || name.find(".h.") != std::string::npos;
        const char* const ours = half_name(code);
        ASSERT_EQ(ours != nullptr ? ours : "", half ? name : "") << fmt::format("{:08x}", words[i]);
        halves += half;
    }
    EXPECT_EQ(halves, 2u * 4096 + 2 + 6 * 6);
}

// The order of the table's rows must not matter.
TEST(Decode, NoTwoRowsMatchOneWord) {
    for (const emu::VectorRow& a : emu::kVectorRows)
        for (const emu::VectorRow& b : emu::kVectorRows)
            if (&a != &b)
                EXPECT_NE(a.match & a.mask & b.mask, b.match & a.mask & b.mask)
                    << a.name << " and " << b.name;
}

}  // namespace
}  // namespace orrery::riscv::test
