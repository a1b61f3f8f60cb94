#include "umd/runtime/elf_image.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "tests/unit/umd/made_image.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {
namespace {

std::vector<std::byte> good_image() {
    std::ifstream in(TEST_KERNELS, std::ios::binary);
    const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
    std::vector<std::byte> bytes(chars.size());
    std::memcpy(bytes.data(), chars.data(), chars.size());
    return bytes;
}

Elf64_Ehdr& header(std::vector<std::byte>& image) {
    return *reinterpret_cast<Elf64_Ehdr*>(image.data());
}

Elf64_Phdr& program_header(std::vector<std::byte>& image, std::uint32_t type, int number = 0) {
    auto* first = reinterpret_cast<Elf64_Phdr*>(image.data() + header(image).e_phoff);
    for (int i = 0; i < header(image).e_phnum; ++i) {
        if (first[i].p_type == type && number-- == 0) return first[i];
    }
    std::abort();
}

// In a module of ours file offset and address differ; this finds an entry of the dynamic section in the file.
Elf64_Dyn& dynamic_entry(std::vector<std::byte>& image, std::int64_t tag) {
    const Elf64_Phdr& dynamic = program_header(image, PT_DYNAMIC);
    auto* entry = reinterpret_cast<Elf64_Dyn*>(image.data() + dynamic.p_offset);
    while (entry->d_tag != tag)
        ++entry;
    return *entry;
}

std::string refusal(const std::vector<std::byte>& image) {
    const auto parsed = ElfImage::parse(image);
    if (parsed) return "accepted";
    EXPECT_EQ(parsed.error().code, orrErrorInvalidImage);
    return parsed.error().text;
}

TEST(ElfImage, GoodModule) {
    const auto parsed = ElfImage::parse(good_image());
    ASSERT_TRUE(parsed) << parsed.error().text;
    EXPECT_TRUE(parsed->functions().contains("add_value"));
    EXPECT_TRUE(parsed->functions().contains("spin_for_ever"));
    EXPECT_FALSE(parsed->functions().contains("memcpy")) << "only what is marked ORR_KERNEL is exported";
    for (const auto& segment : parsed->segments()) {
        EXPECT_EQ(segment.start % 4096, 0u);
        EXPECT_EQ(segment.size % 4096, 0u);
        EXPECT_LE(segment.start + segment.size, parsed->size());
        EXPECT_NE(segment.bind & (ORR_BIND_WRITE | ORR_BIND_EXEC), ORR_BIND_WRITE | ORR_BIND_EXEC);
    }
    // The table of functions in kernels.cc holds addresses: they move with the base.
    const auto at_0 = parsed->relocated(0), at_x = parsed->relocated(0x10000000);
    int moved = 0;
    for (std::size_t i = 0; i + 8 <= at_0.size(); i += 8) {
        std::uint64_t a = 0, b = 0;
        std::memcpy(&a, at_0.data() + i, 8);
        std::memcpy(&b, at_x.data() + i, 8);
        if (a != b) {
            EXPECT_EQ(b - a, 0x10000000u);
            ++moved;
        }
    }
    EXPECT_GE(moved, 2);
}

constexpr std::uint32_t kAttributes = 0x70000003;  // PT_RISCV_ATTRIBUTES

TEST(ElfImage, SaysWhatItNeeds) {
    EXPECT_EQ(ElfImage::parse(good_image())->needs().lacking(Isa::first()), "");
    EXPECT_EQ(ElfImage::parse(good_image())->needs().text(), "rv64imafdc_zicsr_zmmul");
    // Who does not say is taken for a module from before there was a choice.
    auto image = good_image();
    program_header(image, kAttributes).p_type = PT_NULL;
    EXPECT_EQ(ElfImage::parse(image)->needs().text(), Isa::first().text());
    // What cannot be understood is refused.
    const Elf64_Phdr attributes = program_header(image = good_image(), kAttributes);
    const auto with = [&](std::uint64_t at, int value) {
        auto copy = good_image();
        copy[attributes.p_offset + at] = static_cast<std::byte>(value);
        return refusal(copy);
    };
    EXPECT_THAT(with(0, 'B'), ::testing::HasSubstr("make no sense"));
    EXPECT_THAT(with(4, 0x7f), ::testing::HasSubstr("make no sense"));
    EXPECT_THAT(with(1, 2), ::testing::HasSubstr("make no sense"));
    const std::string text(reinterpret_cast<const char*>(image.data()) + attributes.p_offset,
                           attributes.p_filesz);
    EXPECT_THAT(with(text.find("rv64") + 2, '3'), ::testing::HasSubstr("is no ISA"));
    for (std::uint64_t at = 0; at < attributes.p_filesz; ++at) {
        for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
            auto copy = image;
            copy[attributes.p_offset + at] = static_cast<std::byte>(value);
            (void)ElfImage::parse(copy);
        }
    }
}

TEST(ElfImage, TruncationIsSafeAndNoneWithoutItsSegmentsIsTaken) {
    const auto image = good_image();
    std::uint64_t needed = 0;
    auto copy = image;
    for (int i = 0; i < header(copy).e_phnum; ++i) {
        const auto& h = reinterpret_cast<Elf64_Phdr*>(copy.data() + header(copy).e_phoff)[i];
        if (h.p_type == PT_LOAD || h.p_type == kAttributes)
            needed = std::max<std::uint64_t>(needed, h.p_offset + h.p_filesz);
    }
    // Each length of the headers and of the segments' ends, and of what lies between some.
    for (std::size_t size = 0; size < image.size(); size += size < 4096 || needed - size < 512 ? 1 : 11) {
        const bool taken = ElfImage::parse(std::span(image).first(size)).has_value();
        ASSERT_EQ(taken, size >= needed) << size;
    }
}

TEST(ElfImage, RefusalsNameTheReason) {
    struct Case {
        const char* reason;
        std::function<void(std::vector<std::byte>&)> spoil;
    };
    using Bytes = std::vector<std::byte>;
    const Case cases[] = {
        {"does not begin as an ELF", [](Bytes& b) { b[0] = std::byte{0}; }},
        {"64-bit", [](Bytes& b) { b[EI_CLASS] = std::byte{ELFCLASS32}; }},
        {"not RISC-V", [](Bytes& b) { header(b).e_machine = EM_X86_64; }},
        {"position-independent", [](Bytes& b) { header(b).e_type = ET_EXEC; }},
        {"odd program header size", [](Bytes& b) { header(b).e_phentsize = 8; }},
        {"0 program headers", [](Bytes& b) { header(b).e_phnum = 0; }},
        {"65535 program headers", [](Bytes& b) { header(b).e_phnum = 0xffff; }},
        {"outside the file", [](Bytes& b) { header(b).e_phoff = ~0ull - 10; }},
        {"cut short", [](Bytes& b) { header(b).e_phoff = b.size() - 20; }},
        {"more file than memory", [](Bytes& b) { program_header(b, PT_LOAD).p_memsz = 1; }},
        {"ends outside the file", [](Bytes& b) { program_header(b, PT_LOAD).p_offset = ~0ull; }},
        {"beyond 64 MiB", [](Bytes& b) { program_header(b, PT_LOAD).p_vaddr = ~0ull - 4096; }},
        {"beyond 64 MiB", [](Bytes& b) { program_header(b, PT_LOAD).p_memsz = ~0ull; }},
        {"out of order", [](Bytes& b) { program_header(b, PT_LOAD, 1).p_vaddr = 0; }},
        {"writable and executable",
         [](Bytes& b) { program_header(b, PT_LOAD, 1).p_flags = PF_R | PF_W | PF_X; }},
        {"cannot be read", [](Bytes& b) { program_header(b, PT_LOAD, 1).p_flags = PF_X; }},
        {"interpreter", [](Bytes& b) { program_header(b, PT_DYNAMIC).p_type = PT_INTERP; }},
        {"no dynamic section", [](Bytes& b) { program_header(b, PT_DYNAMIC).p_type = PT_NULL; }},
        {"dynamic section lies outside",
         [](Bytes& b) { program_header(b, PT_DYNAMIC).p_vaddr = 1ull << 40; }},
        {"shared library", [](Bytes& b) { dynamic_entry(b, DT_STRSZ).d_tag = DT_NEEDED; }},
        {"constructors", [](Bytes& b) { dynamic_entry(b, DT_STRSZ).d_tag = DT_INIT_ARRAY; }},
        {"kind that is not supported", [](Bytes& b) { dynamic_entry(b, DT_RELA).d_tag = DT_JMPREL; }},
        {"relocations lie outside", [](Bytes& b) { dynamic_entry(b, DT_RELA).d_un.d_val = ~0ull; }},
        {"relocations lie outside", [](Bytes& b) { dynamic_entry(b, DT_RELASZ).d_un.d_val = ~0ull; }},
        {"odd relocation size", [](Bytes& b) { dynamic_entry(b, DT_RELAENT).d_un.d_val = 7; }},
        {"symbol table lies outside", [](Bytes& b) { dynamic_entry(b, DT_SYMTAB).d_un.d_val = ~0ull; }},
        {"symbol table lies outside", [](Bytes& b) { dynamic_entry(b, DT_STRSZ).d_un.d_val = ~0ull; }},
        {"no symbol table", [](Bytes& b) { dynamic_entry(b, DT_HASH).d_tag = 0x6000ffff; }},
    };
    for (const Case& c : cases) {
        auto image = good_image();
        c.spoil(image);
        EXPECT_THAT(refusal(image), ::testing::HasSubstr(c.reason));
    }
}

// Names may lie in each other, so a small file can have many long ones.
TEST(ElfImage, NamesAreBoundedAloneAndTogether) {
    test::MadeImage good;
    good.add_function(good.add_text(std::string(4096, 'f')));
    good.add_variable(good.add_text("v"), 0, 8);
    EXPECT_EQ(refusal(good.bytes()), "accepted");

    test::MadeImage longer;
    longer.add_function(longer.add_text(std::string(4097, 'f')));
    EXPECT_THAT(refusal(longer.bytes()), ::testing::HasSubstr("name has more than 4096 bytes"));

    test::MadeImage many;
    const std::uint32_t text = many.add_text(std::string(4000, 'v'));
    for (std::uint32_t i = 0; i < 10'000; ++i)
        many.add_variable(text + i % 4000, 8ull * (i % 4000), 8);
    EXPECT_THAT(refusal(many.bytes()), ::testing::HasSubstr("names of its symbols have more than 16 MiB"));
}

TEST(ElfImage, SizesOfFunctionsAreInsideTheCode) {
    for (const std::uint64_t bytes : {std::uint64_t{4096} - 8, std::uint64_t{4096} - 7, ~std::uint64_t{0}}) {
        test::MadeImage image;
        image.add_function(image.add_text("f\n"), 8, bytes);
        EXPECT_EQ(
            refusal(image.bytes()),
            bytes == 4088 ? "accepted" : "not a module of orrery-cc: function 'f?' lies outside the code");
    }
}

TEST(ElfImage, VariablesDoNotOverlap) {
    const auto of = [](std::uint64_t offset, std::uint64_t bytes) {
        test::MadeImage image;
        image.add_variable(image.add_text("first"), 64, 64);
        image.add_variable(image.add_text("second"), offset, bytes);
        return refusal(image.bytes());
    };
    EXPECT_EQ(of(0, 64), "accepted");
    EXPECT_EQ(of(128, 64), "accepted");
    EXPECT_EQ(of(64, 64), "accepted") << "another name of the same";
    EXPECT_THAT(of(0, 65), ::testing::HasSubstr("variables 'second' and 'first' overlap"));
    EXPECT_THAT(of(127, 64), ::testing::HasSubstr("variables 'first' and 'second' overlap"));
    EXPECT_THAT(of(64, 8), ::testing::HasSubstr("overlap"));
    EXPECT_THAT(of(72, 8), ::testing::HasSubstr("overlap"));
}

TEST(ElfImage, RandomDamageNeverDoesHarm) {
    const auto image = good_image();
    std::mt19937 random(3);
    for (int round = 0; round < 20000; ++round) {
        auto damaged = image;
        const int changes = 1 + static_cast<int>(random() % 8);
        for (int i = 0; i < changes; ++i) {
            // Half of them in the headers, where they matter.
            const std::size_t limit = random() % 2 == 0 ? 1024 : damaged.size();
            damaged[random() % limit] = static_cast<std::byte>(random());
        }
        if (const auto parsed = ElfImage::parse(damaged)) {
            for (const auto& segment : parsed->segments()) {
                ASSERT_LE(segment.start + segment.size, parsed->size());
                ASSERT_NE(segment.bind & (ORR_BIND_WRITE | ORR_BIND_EXEC), ORR_BIND_WRITE | ORR_BIND_EXEC);
            }
            for (const auto& [name, entry] : parsed->functions())
                ASSERT_LT(entry, parsed->size());
            if (parsed->size() < 1 << 20) (void)parsed->relocated(0x7f0000000000);
        }
    }
}

}  // namespace
}  // namespace orrery::umd
