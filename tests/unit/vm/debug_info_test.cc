#include <elf.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "tools/vm/debug_info.h"
#include "tools/vm/files.h"

namespace orrery::vm {
namespace {

struct Section {
    std::string name;
    std::uint64_t flags;
    std::string bytes;
};

// A relocatable file, as a module is one.
std::string relocatable(const std::vector<Section>& given) {
    std::string names(1, '\0'), body(sizeof(Elf64_Ehdr), '\0');
    std::vector<Elf64_Shdr> headers(1);
    const auto add = [&](const Section& section, std::uint32_t type) {
        Elf64_Shdr header{};
        header.sh_name = static_cast<Elf64_Word>(names.size());
        header.sh_type = type;
        header.sh_flags = section.flags;
        header.sh_addralign = 16;
        names += section.name + '\0';
        body.resize((body.size() + 15) / 16 * 16);
        header.sh_offset = body.size();
        header.sh_size = section.bytes.size();
        body += section.bytes;
        headers.push_back(header);
    };
    for (const auto& section : given)
        add(section, SHT_PROGBITS);
    add({".shstrtab", 0, {}}, SHT_STRTAB);
    headers.back().sh_offset = body.size();
    headers.back().sh_size = names.size();
    body += names;
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_type = ET_REL;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(headers.size());
    header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
    header.e_shoff = body.size();
    std::memcpy(body.data(), &header, sizeof header);
    return body.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(Elf64_Shdr));
}

std::string section_of(const std::string& elf, std::size_t n) {
    Elf64_Ehdr header;
    std::memcpy(&header, elf.data(), sizeof header);
    Elf64_Shdr section;
    std::memcpy(&section, elf.data() + header.e_shoff + n * sizeof section, sizeof section);
    return elf.substr(section.sh_offset, section.sh_size);
}

TEST(DebugInfo, OfAModuleGoesAndAllElseKeepsItsNumber) {
    const std::string large(100000, 'd');
    const std::string elf = relocatable({{".text", SHF_ALLOC, "code"},
                                         {".debug_info", 0, large},
                                         {".rela.debug_info", 0, large},
                                         {".rela.text", 0, "relocations"},
                                         {".debug_of_the_driver", SHF_ALLOC, "data"},
                                         {".symtab", 0, "symbols"}});
    const std::string slim = without_debug_info(elf);
    EXPECT_LT(slim.size(), 2000u);
    const std::vector<std::string> expected{"", "code", "", "", "relocations", "data", "symbols"};
    for (std::size_t n = 0; n < expected.size(); ++n)
        EXPECT_EQ(section_of(slim, n), expected[n]) << n;
    EXPECT_EQ(without_debug_info(slim), slim);
}

TEST(DebugInfo, AProgramRunsWithout) {
    auto self = read_file("/proc/self/exe");
    ASSERT_TRUE(self);
    const std::size_t before = self->size();
    const std::string slim = without_debug_info(std::move(*self));
    EXPECT_LT(slim.size(), before);
    const auto file = std::filesystem::path(testing::TempDir()) / "slim_program";
    std::ofstream(file, std::ios::binary) << slim;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    const int status = std::system((file.string() + " --gtest_list_tests > /dev/null").c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    std::filesystem::remove(file);
}

TEST(DebugInfo, WhatMakesNoSenseStaysAsItIs) {
    for (const std::string text : {"", "#!/bin/sh\n",
                                   "\x7f"
                                   "ELF"})
        EXPECT_EQ(without_debug_info(text), text);
    const std::string elf = relocatable({{".text", SHF_ALLOC, "code"}, {".debug_info", 0, "debug"}});
    for (std::size_t size = 0; size < elf.size(); ++size)
        EXPECT_EQ(without_debug_info(elf.substr(0, size)), elf.substr(0, size)) << size;
    // Sections that overlap, so that all of them together are more than the file.
    std::string many = relocatable(std::vector<Section>(100, {".text", SHF_ALLOC, std::string(100000, 'c')}));
    Elf64_Ehdr header;
    std::memcpy(&header, many.data(), sizeof header);
    for (std::size_t n = 1; n <= 100; ++n) {
        const Elf64_Off whole[2] = {sizeof header, many.size() / 2};
        std::memcpy(many.data() + header.e_shoff + n * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset),
                    whole, sizeof whole);
    }
    EXPECT_EQ(without_debug_info(many), many);
    std::mt19937 random(1);
    for (int round = 0; round < 20000; ++round) {
        std::string spoiled = elf;
        for (int n = 0; n < 3; ++n)
            spoiled[random() % spoiled.size()] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
        EXPECT_LE(without_debug_info(spoiled).size(), spoiled.size() + (2 << 20));
    }
}

}  // namespace
}  // namespace orrery::vm
