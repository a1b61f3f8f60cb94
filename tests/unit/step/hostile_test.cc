// Recordings of people who mean no good: what they carry neither ends this program nor commands a terminal.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tools/step/program/program.h"
#include "tools/text/shown.h"

namespace orrery::step {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

template <typename T>
void append(std::vector<std::uint8_t>& to, const T& value) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(&value);
    to.insert(to.end(), begin, begin + sizeof value);
}

// Of a program for RISC-V, without sections.
Elf64_Ehdr elf_header() {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_RISCV;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    return header;
}

// An ELF file with these sections, none of which is loaded.
std::vector<std::uint8_t> elf_of(std::vector<std::pair<std::string, std::vector<std::uint8_t>>> sections) {
    std::string names(1, '\0');
    sections.emplace_back(".shstrtab", std::vector<std::uint8_t>());
    std::vector<Elf64_Shdr> heads(1);
    for (const auto& [name, bytes] : sections) {
        Elf64_Shdr head{};
        head.sh_name = static_cast<Elf64_Word>(names.size());
        head.sh_type = SHT_PROGBITS;
        head.sh_addralign = 1;
        if (name == ".strtab") head.sh_type = SHT_STRTAB;
        if (name == ".symtab") {
            head.sh_type = SHT_SYMTAB;
            head.sh_entsize = sizeof(Elf64_Sym);
            head.sh_link = static_cast<Elf64_Word>(heads.size() + 1);  // what comes next
        }
        heads.push_back(head);
        names += name + '\0';
    }
    heads.back().sh_type = SHT_STRTAB;
    sections.back().second.assign(names.begin(), names.end());
    std::vector<std::uint8_t> file(sizeof(Elf64_Ehdr));
    for (std::size_t i = 0; i < sections.size(); ++i) {
        heads[i + 1].sh_offset = file.size();
        heads[i + 1].sh_size = sections[i].second.size();
        file.insert(file.end(), sections[i].second.begin(), sections[i].second.end());
    }
    file.resize((file.size() + 7) & ~std::size_t{7});
    Elf64_Ehdr header = elf_header();
    header.e_shoff = file.size();
    header.e_shnum = static_cast<Elf64_Half>(heads.size());
    header.e_shstrndx = static_cast<Elf64_Half>(heads.size() - 1);
    std::memcpy(file.data(), &header, sizeof header);
    for (const Elf64_Shdr& head : heads)
        append(file, head);
    return file;
}

// An image whose section headers are cut has no names; what it recorded can be looked at all the same.
TEST(Hostile, AnElfWithoutSectionNamesIsTaken) {
    Elf64_Ehdr header = elf_header();
    header.e_shoff = 1 << 20;
    header.e_shstrndx = SHN_XINDEX;
    std::vector<std::uint8_t> bytes(sizeof header);
    std::memcpy(bytes.data(), &header, sizeof header);
    const auto program = Program::parse(bytes, "cut");
    ASSERT_TRUE(program) << program.error().text;
    EXPECT_TRUE(program->symbols().empty());
    EXPECT_TRUE(program->elf().empty());
}

// An ELF file that names one function, and whose last section is `section`.
std::vector<std::uint8_t> elf_with(const std::string& section, std::string_view contents) {
    std::vector<std::uint8_t> symbols(sizeof(Elf64_Sym));
    Elf64_Sym symbol{};
    symbol.st_name = 1;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = SHN_ABS;
    symbol.st_value = 0x8000'0000;
    append(symbols, symbol);
    const std::string_view names("\0orr_main\0", 10);
    return elf_of({{".symtab", symbols},
                   {".strtab", {names.begin(), names.end()}},
                   {section, {contents.begin(), contents.end()}}});
}

bool holds(const std::vector<std::uint8_t>& bytes, std::string_view text) {
    return !std::ranges::search(bytes, text).empty();
}

TEST(Hostile, ADebuggerIsGivenNoScriptAndNoOtherFilesName) {
    constexpr std::string_view kContents = "\x04gdb.inlined\nimport os\n";
    for (const std::string name :
         {".debug_gdb_scripts", ".zdebug_gdb_scripts", ".gnu_debuglink", ".gnu_debugaltlink",
          ".gnu_debugdata", ".debug_sup", ".note.gnu.build-id", ".debug_str.dwo"}) {
        const auto program = Program::parse(elf_with(name, kContents), "mailed");
        ASSERT_TRUE(program) << program.error().text;
        const std::vector<std::uint8_t>& served = program->elf();
        EXPECT_TRUE(holds(served, "orr_main")) << name;
        EXPECT_FALSE(holds(served, kContents)) << name;
        EXPECT_FALSE(holds(served, name)) << name;
        // Symbols are found in what is served as they were.
        const auto again = Program::parse(served, "served");
        ASSERT_TRUE(again) << again.error().text;
        EXPECT_EQ(again->where(0x8000'0000), "orr_main");
    }
    EXPECT_TRUE(holds(Program::parse(elf_with(".debug_str", kContents), "whole")->elf(), kContents));
}

// Of what is loaded it gets names and addresses; the bytes are the target's.
TEST(Hostile, ADebuggerIsGivenNoScriptThatSaysItIsLoaded) {
    std::vector<std::uint8_t> elf = elf_with(".debug_gdb_scripts", "\x04gdb.inlined\n");
    Elf64_Ehdr header;
    std::memcpy(&header, elf.data(), sizeof header);
    Elf64_Shdr head;
    std::uint8_t* const at = elf.data() + header.e_shoff + 3 * sizeof head;
    std::memcpy(&head, at, sizeof head);
    head.sh_flags = SHF_ALLOC;
    std::memcpy(at, &head, sizeof head);
    const auto program = Program::parse(elf, "loaded");
    ASSERT_TRUE(program) << program.error().text;
    EXPECT_TRUE(holds(program->elf(), "orr_main"));
    EXPECT_FALSE(holds(program->elf(), "gdb.inlined"));
}

// Heads may say what they like: sections outside the file, or all of them the same bytes.
TEST(Hostile, ADebuggerIsGivenNothingOfAnElfThatLies) {
    const std::vector<std::uint8_t> whole = elf_with(".debug_str", std::string(4096, 'x'));
    Elf64_Ehdr header;
    std::memcpy(&header, whole.data(), sizeof header);
    const auto changed = [&](auto change) {
        std::vector<std::uint8_t> elf = whole;
        Elf64_Shdr head;
        std::uint8_t* const at = elf.data() + header.e_shoff + 3 * sizeof head;
        std::memcpy(&head, at, sizeof head);
        change(head);
        std::memcpy(at, &head, sizeof head);
        return elf;
    };
    EXPECT_FALSE(Program::parse(whole, "whole")->elf().empty());
    const auto outside = Program::parse(changed([](Elf64_Shdr& head) { head.sh_size = 1 << 30; }), "outside");
    EXPECT_TRUE(!outside || outside->elf().empty());
    std::vector<std::uint8_t> many = whole;
    for (int n = 0; n < 1000; ++n)
        many.insert(many.end(), whole.begin() + static_cast<std::ptrdiff_t>(header.e_shoff) + 3 * 64,
                    whole.begin() + static_cast<std::ptrdiff_t>(header.e_shoff) + 4 * 64);
    header.e_shnum = static_cast<Elf64_Half>(header.e_shnum + 1000);
    std::memcpy(many.data(), &header, sizeof header);
    const auto repeated = Program::parse(many, "repeated");
    ASSERT_TRUE(repeated) << repeated.error().text;
    EXPECT_FALSE(repeated->symbols().empty());
    EXPECT_TRUE(repeated->elf().empty());
}

TEST(Hostile, BlocksInBlocksWithoutEnd) {
    constexpr std::size_t kDeep = 400'000;
    // 1: a unit, 2: a block; both with children and without attributes.
    const std::vector<std::uint8_t> abbreviations = {1, 0x11, 1, 0, 0, 2, 0x0b, 1, 0, 0, 0};
    std::vector<std::uint8_t> unit;
    append(unit, std::uint16_t{4});  // version of DWARF
    append(unit, std::uint32_t{0});  // abbreviations
    unit.push_back(8);               // bytes of an address
    unit.push_back(1);
    unit.insert(unit.end(), kDeep, 2);
    unit.insert(unit.end(), kDeep + 1, 0);
    std::vector<std::uint8_t> info;
    append(info, static_cast<std::uint32_t>(unit.size()));
    info.insert(info.end(), unit.begin(), unit.end());
    const auto program =
        Program::parse(elf_of({{".debug_abbrev", abbreviations}, {".debug_info", info}}), "deep");
    ASSERT_TRUE(program) << program.error().text;
    EXPECT_TRUE(program->function_names().empty());
}

TEST(Hostile, OnlyAFileBelowTheFolderIsASource) {
    std::string name = testing::TempDir() + "source-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    const fs::path folder = fs::path(name) / "folder";
    fs::create_directory(folder);
    std::ofstream(folder / "good.cc") << "one\ntwo\n";
    std::ofstream(fs::path(name) / "beside.cc") << "secret\n";
    ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
    std::ofstream(folder / "large");
    fs::resize_file(folder / "large", std::uintmax_t{1} << 40);
    fs::create_symlink("/dev/zero", folder / "link");
    const auto text = [&](const std::string& file) {
        return Program().source_text(file, 1, 4, {folder.string()});
    };
    EXPECT_THAT(text("good.cc"), HasSubstr("two"));
    for (const std::string& file :
         {std::string("fifo"), std::string("large"), std::string("link"), std::string("../beside.cc"),
          std::string("x/../../beside.cc"), (folder / "good.cc").string(), std::string("/dev/zero"),
          std::string(".")})
        EXPECT_EQ(text(file), "") << file;
    fs::remove_all(name);
}

TEST(Hostile, ATerminalIsToldNothing) {
    EXPECT_EQ(text::shown("a\tb\n\xc3\xa4"), "a\tb\n\xc3\xa4");
    EXPECT_EQ(text::shown("\x1b[1;31mred\x1b[0m"), "\x1b[1;31mred\x1b[0m");
    EXPECT_EQ(text::shown("\x1b]0;title\x07"), "?]0;title?");
    EXPECT_EQ(text::shown("\x1b[2J\r\x7f\xc2\x9b"
                          "2J\x1b["),
              "?[2J???2J?[");
}

}  // namespace
}  // namespace orrery::step
