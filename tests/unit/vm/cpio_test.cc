#include "tools/vm/cpio.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdint>
#include <map>

namespace orrery::vm {
namespace {

struct Entry {
    unsigned mode;
    std::string data;
};

unsigned hex(const std::string& text, std::size_t at) {
    unsigned value = 0;
    std::from_chars(text.data() + at, text.data() + at + 8, value, 16);
    return value;
}

// An independent reader of the format.
std::map<std::string, Entry> read_archive(const std::string& archive) {
    std::map<std::string, Entry> entries;
    std::size_t at = 0;
    const auto aligned = [](std::size_t n) { return (n + 3) / 4 * 4; };
    while (at + 110 <= archive.size()) {
        EXPECT_EQ(archive.substr(at, 6), "070701");
        const unsigned mode = hex(archive, at + 14);
        const unsigned size = hex(archive, at + 54);
        const unsigned name_size = hex(archive, at + 94);
        const std::string name = archive.substr(at + 110, name_size - 1);
        EXPECT_EQ(archive[at + 110 + name_size - 1], '\0');
        const std::size_t data = aligned(at + 110 + name_size);
        if (name == "TRAILER!!!") return entries;
        EXPECT_TRUE(entries.emplace(name, Entry{mode, archive.substr(data, size)}).second) << name;
        at = aligned(data + size);
    }
    ADD_FAILURE() << "no trailer";
    return entries;
}

TEST(Cpio, FilesDirectoriesAndLinks) {
    Cpio cpio;
    EXPECT_TRUE(cpio.file("/a/b/c", "hello", 0755));
    EXPECT_TRUE(cpio.file("/a/b/d", std::string_view("\0x\xff", 3)));
    EXPECT_TRUE(cpio.symlink("/bin/sh", "busybox"));
    cpio.directory("/tmp", 01777);
    const auto entries = read_archive(cpio.finish());
    ASSERT_EQ(entries.size(), 7U);
    EXPECT_EQ(entries.at("a").mode, S_IFDIR | 0755U);
    EXPECT_EQ(entries.at("a/b").mode, S_IFDIR | 0755U);
    EXPECT_EQ(entries.at("a/b/c").mode, S_IFREG | 0755U);
    EXPECT_EQ(entries.at("a/b/c").data, "hello");
    EXPECT_EQ(entries.at("a/b/d").data, std::string("\0x\xff", 3));
    EXPECT_EQ(entries.at("bin/sh").mode, S_IFLNK | 0777U);
    EXPECT_EQ(entries.at("bin/sh").data, "busybox");
    EXPECT_EQ(entries.at("tmp").mode, S_IFDIR | 01777U);
}

TEST(Cpio, TheFirstOfTwoEntriesStays) {
    Cpio cpio;
    EXPECT_TRUE(cpio.file("/x", "first"));
    EXPECT_FALSE(cpio.file("x", "second"));
    EXPECT_TRUE(cpio.contains("/x"));
    EXPECT_FALSE(cpio.contains("/y"));
    EXPECT_EQ(read_archive(cpio.finish()).at("x").data, "first");
}

TEST(Cpio, EveryLengthOfNameAndDataIsPadded) {
    Cpio cpio;
    for (std::size_t i = 1; i < 9; ++i)
        cpio.file(std::string(i, 'n'), std::string(i * 3, 'd'));
    const auto entries = read_archive(cpio.finish());
    for (std::size_t i = 1; i < 9; ++i)
        EXPECT_EQ(entries.at(std::string(i, 'n')).data, std::string(i * 3, 'd'));
}

}  // namespace
}  // namespace orrery::vm
