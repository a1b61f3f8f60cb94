#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <elf.h>
#include <zstd.h>

#include <cstring>

#include "tools/vm/tree.h"
#include "tools/vm/unpacked_kernel.h"

namespace orrery::vm {
namespace {

std::string image_with(const std::string& version) {
    std::string image(0x400, '\0');
    image.replace(0x202, 4, "HdrS");
    image[0x20e] = '\x10';  // at 0x310
    image[0x20f] = '\x01';
    image.replace(0x310, version.size(), version);
    return image;
}

TEST(BzImage, SaysItsRelease) {
    EXPECT_EQ(bzimage_release(image_with("6.12.1-own (me@here) #1 SMP")), "6.12.1-own");
    EXPECT_EQ(bzimage_release(image_with("7.3.4")), "7.3.4");
}

TEST(BzImage, WhatIsNoneIsRefused) {
    EXPECT_FALSE(bzimage_release(""));
    EXPECT_FALSE(bzimage_release(std::string(4096, 'x')));
    EXPECT_FALSE(bzimage_release(image_with("")));
    EXPECT_FALSE(bzimage_release(image_with(std::string(100, 'v'))));
    std::string beyond = image_with("6.12");
    beyond[0x20f] = '\x7f';
    EXPECT_FALSE(bzimage_release(beyond));
    const std::string whole = image_with("6.12.1-own x");
    for (std::size_t size = 0; size < 0x31a; ++size)
        EXPECT_FALSE(bzimage_release(whole.substr(0, size))) << size;
}

// An ELF with one note, of Xen's.
std::string elf_with_note(std::uint32_t type, const char* owner = "Xen") {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    header.e_phoff = sizeof header;
    const Elf64_Nhdr other{.n_namesz = 6, .n_descsz = 1, .n_type = 18};
    const Elf64_Nhdr note{.n_namesz = 4, .n_descsz = 8, .n_type = type};
    Elf64_Phdr segments[2]{};
    segments[0].p_type = PT_LOAD;
    segments[1].p_type = PT_NOTE;
    segments[1].p_offset = sizeof header + sizeof segments;
    segments[1].p_filesz = 2 * sizeof note + 8 + 4 + 4 + 8;
    std::string elf(segments[1].p_offset + segments[1].p_filesz, '\0');
    std::size_t at = 0;
    const auto put = [&](const void* from, std::size_t bytes) {
        std::memcpy(elf.data() + at, from, bytes);
        at += bytes;
    };
    put(&header, sizeof header);
    put(segments, sizeof segments);
    put(&other, sizeof other);
    put("Linux\0\0\0\0\0\0\0", 12);
    put(&note, sizeof note);
    put(owner, 4);
    return elf;
}

// As a kernel's build packs it: setup code of one sector, the payload somewhere behind it, and the size last.
std::string image_of(const std::string& elf) {
    std::string packed(ZSTD_compressBound(elf.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), elf.data(), elf.size(), 3));
    const auto size = static_cast<std::uint32_t>(elf.size());
    packed.append(reinterpret_cast<const char*>(&size), sizeof size);
    std::string image = image_with("6.12.1-own x");
    image[0x1f1] = 1;
    const std::uint32_t where[2] = {0x400 - 2 * 512 + 100, static_cast<std::uint32_t>(packed.size())};
    std::memcpy(image.data() + 0x248, where, sizeof where);
    return image + std::string(100, 'x') + packed + std::string(1000, 'y');
}

TEST(UnpackedKernel, IsTheElfInTheImage) {
    const std::string elf = elf_with_note(18);
    EXPECT_EQ(unpack_kernel(image_of(elf)), elf);
    const std::string large = elf + std::string(9 << 20, 'k');  // more than a step
    EXPECT_EQ(unpack_kernel(image_of(large)), large);
}

TEST(UnpackedKernel, WhatQemuWouldNotTakeBootsAsItIs) {
    EXPECT_FALSE(unpack_kernel(image_of(elf_with_note(17))));
    EXPECT_FALSE(unpack_kernel(image_of(elf_with_note(18, "Xan"))));
    EXPECT_FALSE(unpack_kernel(image_of("no ELF at all")));
    EXPECT_FALSE(unpack_kernel(image_with("6.12.1-own x")));
    EXPECT_FALSE(unpack_kernel(""));
    std::string image = image_of(elf_with_note(18));
    for (std::size_t size = 0; size < image.size() - 1004; size += 3)
        EXPECT_FALSE(unpack_kernel(image.substr(0, size))) << size;
    const std::string elf = elf_with_note(18);
    for (std::size_t size = 0; size < elf.size() - 8; ++size)
        EXPECT_FALSE(unpack_kernel(image_of(elf.substr(0, size)))) << size;
    std::memset(image.data() + 0x248, 0xff, 8);
    EXPECT_FALSE(unpack_kernel(image));
}

// As a host that crashed while it wrote may leave one.
TEST(UnpackedKernel, ThatWasCutIsNotBooted) {
    const std::string elf = elf_with_note(18) + "more";
    EXPECT_TRUE(is_bootable(elf));
    for (std::size_t size = 0; size < elf.size() - 4; ++size)
        EXPECT_FALSE(is_bootable(elf.substr(0, size))) << size;
}

}  // namespace
}  // namespace orrery::vm
