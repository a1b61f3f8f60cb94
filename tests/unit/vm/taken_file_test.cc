// Files for a report, in a folder that a guest writes to: nothing of them leads elsewhere, or holds the run.
#include "tools/vm/run/taken_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace orrery::vm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TakenFile : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = "/tmp/orrery-taken-test-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        home_ = name;
        share_ = home_ / "share";
        fs::create_directories(share_ / "deep");
        fs::create_directory(home_ / "own");
        put(home_ / "own/secret", "of the host");
    }
    void TearDown() override { fs::remove_all(home_); }

    static void put(const fs::path& file, const std::string& bytes) { std::ofstream(file) << bytes; }
    std::string take(const fs::path& file, std::uint64_t most = 100, Taken what = Taken::kWhole) const {
        const auto taken = open_taken(file, share_, most, what);
        if (!taken) return "error: " + taken.error().text;
        std::string bytes(taken->bytes, '\0');
        const ssize_t got =
            ::pread(taken->file.get(), bytes.data(), bytes.size(), static_cast<off_t>(taken->from));
        bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return bytes;
    }

    fs::path home_, share_;
};

TEST_F(TakenFile, IsTheBytesOrTheEndOfThem) {
    put(share_ / "deep/a", "0123456789");
    put(home_ / "b", "0123456789");
    for (const fs::path& file : {share_ / "deep/a", home_ / "b", share_ / "deep/../deep/a"}) {
        EXPECT_EQ(take(file), "0123456789");
        EXPECT_EQ(take(file, 10), "0123456789");
        EXPECT_EQ(take(file, 3, Taken::kEnd), "789");
        EXPECT_THAT(take(file, 9), HasSubstr("error: it has 10 bytes; 9 are the most"));
    }
    EXPECT_THAT(take(share_ / "none"), HasSubstr("error: No such file"));
    fs::create_directory_symlink(home_ / "own", home_ / "way");
    EXPECT_EQ(take(home_ / "way/secret"), "of the host") << "the host's own links lead on";
    fs::create_directory_symlink(share_, home_ / "to-share");
    EXPECT_EQ(take(home_ / "to-share/deep/a"), "0123456789");
}

TEST_F(TakenFile, NoLinkOfTheGuestsIsFollowed) {
    fs::create_symlink(home_ / "own/secret", share_ / "a");
    fs::create_symlink("../own/secret", share_ / "b");
    fs::create_directory_symlink(home_ / "own", share_ / "c");
    fs::create_directory_symlink("deep", share_ / "d");
    fs::create_symlink("/dev/zero", share_ / "e");
    fs::create_directory_symlink(share_, home_ / "to-share");
    put(share_ / "deep/f", "x");
    for (const char* name : {"a", "b", "c/secret", "d/f", "e"}) {
        EXPECT_THAT(take(share_ / name), HasSubstr("error: it is a link")) << name;
        EXPECT_THAT(take(home_ / "to-share" / name), HasSubstr("error: it is a link")) << name;
    }
    fs::create_symlink(home_ / "own/secret", home_ / "g");
    EXPECT_THAT(take(home_ / "g"), HasSubstr("error: it is a link"));
}

TEST_F(TakenFile, WhatHasNoEndOrIsNoFileIsNotTaken) {
    ASSERT_EQ(::mkfifo((share_ / "fifo").c_str(), 0600), 0);
    EXPECT_THAT(take(share_ / "fifo"), HasSubstr("error: it is no regular file"));
    EXPECT_THAT(take(share_ / "deep"), HasSubstr("error: it is no regular file"));
    EXPECT_THAT(take("/dev/zero"), HasSubstr("error: it is no regular file"));
    EXPECT_THAT(take("/dev/zero", 100, Taken::kEnd), HasSubstr("error: it is no regular file"));
}

}  // namespace
}  // namespace orrery::vm
