#include "tools/vm/guest_archive.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "tools/vm/files.h"
#include "tools/vm/programs.h"

namespace orrery::vm {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GuestArchiveTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "guest-archive-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        shell_ = read_file("/bin/sh").value();
    }
    void TearDown() override { fs::remove_all(folder_); }

    void write(const std::string& name, const std::string& bytes, mode_t mode = 0755) {
        std::ofstream(folder_ / name, std::ios::binary) << bytes;
        ASSERT_EQ(::chmod((folder_ / name).c_str(), mode), 0);
    }

    // The shell, with all of one string replaced by another of its length.
    std::string shell_with(const std::string& from, const std::string& to) const {
        std::string bytes = shell_;
        for (auto at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1))
            bytes.replace(at, to.size(), to);
        return bytes;
    }

    fs::path folder_;
    std::string shell_;
};

TEST_F(GuestArchiveTest, SizesAreKnownWithoutReading) {
    write("three", "abc");
    EXPECT_EQ(size_of_all(folder_ / "three"), 3U);
    fs::create_directory(folder_ / "below");
    write("below/large", "");
    fs::resize_file(folder_ / "below/large", std::uintmax_t{1} << 40);
    fs::create_symlink("large", folder_ / "below/link");
    EXPECT_EQ(size_of_all(folder_), (std::uint64_t{1} << 40) + 3);
    EXPECT_EQ(size_of_all(folder_ / "missing"), 0U);
}

TEST_F(GuestArchiveTest, ForeignProgramsAreFilesLikeOthers) {
    std::string other_machine = shell_;
    other_machine[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_AARCH64);
    write("aarch64", other_machine);
    write("other-loader", shell_with("/lib64/ld-linux-x86-64.so.2", "/lib64/ld-nobody-has.so.222"));
    write("cut-off", shell_.substr(0, 100));
    EXPECT_FALSE(runnable_here(other_machine));
    GuestArchive archive({});
    const auto done = archive.carry(folder_, "/data");
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_THAT(archive.notes(), IsEmpty());
    for (const char* name : {"/data/aarch64", "/data/other-loader", "/data/cut-off"})
        EXPECT_TRUE(archive.cpio().contains(name)) << name;
    EXPECT_FALSE(archive.cpio().contains(kHostLoader));
    EXPECT_NE(archive.cpio().finish().find(other_machine), std::string::npos);
}

TEST_F(GuestArchiveTest, AProgramWhoseLibraryIsNotHereGoesInWithANote) {
    write("lonely", shell_with("libc.so.6", "libq.so.6"));
    GuestArchive archive({});
    ASSERT_TRUE(archive.carry(folder_ / "lonely", "/lonely"));
    EXPECT_THAT(archive.notes(), ElementsAre(HasSubstr("libq.so.6")));
    EXPECT_TRUE(archive.cpio().contains("/lonely"));
    EXPECT_FALSE(GuestArchive({}).need(folder_ / "lonely", "/lonely")) << "a program of ours must run";
}

TEST_F(GuestArchiveTest, AProgramBringsItsLibraries) {
    write("shell", shell_);
    GuestArchive archive({});
    ASSERT_TRUE(archive.carry(folder_, "/data"));
    EXPECT_TRUE(archive.cpio().contains(kHostLoader));
}

TEST_F(GuestArchiveTest, ModesAndLinksStay) {
    write("secret", "x", 0600);
    fs::create_symlink("nowhere", folder_ / "dangling");
    fs::create_directory(folder_ / "deep");
    fs::create_directory_symlink("deep", folder_ / "alias");
    GuestArchive archive({});
    ASSERT_TRUE(archive.carry(folder_, "/data"));
    const std::string& bytes = archive.cpio().finish();
    // newc: magic, inode, mode, …; the mode is the third field of eight digits, the name follows 110 bytes
    // later.
    const auto mode_of = [&bytes](const std::string& name) {
        const auto at = bytes.find(name + '\0');
        return at == std::string::npos ? 0UL : std::stoul(bytes.substr(at - 110 + 14, 8), nullptr, 16);
    };
    EXPECT_EQ(mode_of("data/secret"), static_cast<unsigned long>(S_IFREG | 0600));
    EXPECT_TRUE(S_ISLNK(mode_of("data/dangling")));
    EXPECT_TRUE(S_ISLNK(mode_of("data/alias")));
    EXPECT_TRUE(S_ISDIR(mode_of("data/deep")));
}

TEST_F(GuestArchiveTest, WhatIsNoFileIsNamed) {
    ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
    const auto done = GuestArchive({}).carry(folder_, "/data");
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text, HasSubstr("pipe is neither a file nor a folder"));
}

}  // namespace
}  // namespace orrery::vm
