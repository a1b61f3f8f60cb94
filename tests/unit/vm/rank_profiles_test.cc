// Ranks' profiles become one, by an orrery-prof that is a script here.
#include "tools/run/profile.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

namespace orrery::run {
namespace {

namespace fs = std::filesystem;

class MergesProfiles : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "orrery-profiles-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        fs::create_directory(folder_ / "share");
    }
    void TearDown() override { fs::remove_all(folder_); }

    // It is given `merge FILES... -o OUTPUT`.
    void prof_is(const std::string& script) {
        const fs::path program = folder_ / "orrery-prof";
        std::ofstream(program) << "#!/bin/sh\necho \"$*\" >> " << (folder_ / "calls").string() << "\n"
                               << script;
        fs::permissions(program, fs::perms::owner_all);
    }
    // Of a run in which each rank has left what it is called.
    text::Result<void> merged(const std::vector<std::string>& ranks) {
        auto profiles =
            RankProfiles::create((folder_ / "share").string(), folder_, static_cast<unsigned>(ranks.size()));
        if (!profiles) return std::unexpected(profiles.error());
        const auto options = (*profiles)->options();
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
            if (!ranks[rank].empty()) std::ofstream(options.at(2 * rank + 1)) << ranks[rank];
        if (ranks_left) ranks_left(fs::path(options.at(1)).parent_path());
        return (*profiles)->merge(output().string());
    }
    fs::path output() const { return folder_ / "all"; }
    std::string made() const { return text_of(output()); }
    std::size_t calls() const {
        const std::string all = text_of(folder_ / "calls");
        return static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n'));
    }
    const fs::path& folder() const { return folder_; }
    std::function<void(const fs::path&)> ranks_left;
    bool is_kept() const { return !fs::is_empty(folder_ / "share"); }

    // Puts the files into the output, unless one of them says "damaged".
    static constexpr const char* kMerge = R"(
shift
all=
while [ "$1" != -o ]; do
  all=$all$(cat "$1")
  shift
done
case $all in *damaged*) exit 1 ;; esac
printf %s "$all" > "$2"
)";

    static std::string text_of(const fs::path& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }

  private:
    fs::path folder_;
};

TEST_F(MergesProfiles, OfRanksThatHaveLeftOne) {
    prof_is(kMerge);
    EXPECT_TRUE(merged({"a", "", "c"}));
    EXPECT_EQ(made(), "ac");
    EXPECT_FALSE(is_kept());
}

TEST_F(MergesProfiles, ButForDamagedOnes) {
    prof_is(kMerge);
    const auto all = merged({"a", "damaged", "c"});
    ASSERT_FALSE(all);
    EXPECT_NE(all.error().text.find("what rank 1 has left is damaged"), std::string::npos)
        << all.error().text;
    EXPECT_EQ(made(), "ac");
    EXPECT_TRUE(is_kept());
}

// What a process of a rank had spoilt, orrery-prof record puts beside the profile.
TEST_F(MergesProfiles, AndKeepsWhatWasSpoiltBesideThem) {
    prof_is(kMerge);
    ranks_left = [&](const fs::path& left) { std::ofstream(left / "rank1.prof.12-0.spoilt") << "raw"; };
    EXPECT_TRUE(merged({"a", "b"}));
    EXPECT_EQ(made(), "ab");
    EXPECT_TRUE(is_kept());
}

// Guests write to the folder of the profiles, and links that they make there are the host's as well.
TEST_F(MergesProfiles, AndNothingElseWhateverGuestsPutThere) {
    prof_is(kMerge);
    const fs::path victim = folder() / "victim";
    std::ofstream(victim) << "mine";
    ranks_left = [&](const fs::path& left) {
        fs::create_symlink(victim, left / "probe");
        fs::create_symlink(victim, left / "rank2.prof");
        fs::create_directory(left / "rank3.prof");
        ASSERT_EQ(::mkfifo((left / "rank4.prof").c_str(), 0600), 0);
    };
    const auto all = merged({"a", "damaged", "", "", "", "f"});
    ASSERT_FALSE(all);
    EXPECT_NE(all.error().text.find("what rank 1 has left is damaged"), std::string::npos)
        << all.error().text;
    EXPECT_EQ(made(), "af");
    EXPECT_EQ(text_of(victim), "mine");
}

TEST_F(MergesProfiles, WhatDiesByItselfMeansDamage) {
    prof_is(std::string("grep -q damaged \"$2\" && kill -SEGV $$\n") + kMerge);
    EXPECT_FALSE(merged({"damaged", "b"}));
    EXPECT_EQ(made(), "b");
}

TEST_F(MergesProfiles, NoLongerThanItIsLetTo) {
    prof_is("kill -TERM $$\n");
    const auto all = merged({"a", "b", "c"});
    ASSERT_FALSE(all);
    EXPECT_NE(all.error().text.find("asked to end"), std::string::npos) << all.error().text;
    EXPECT_EQ(all.error().text.find("damaged"), std::string::npos) << all.error().text;
    EXPECT_EQ(calls(), 1u) << "one rank after the other would be tried, and told as damaged";
    EXPECT_TRUE(is_kept());
}

}  // namespace
}  // namespace orrery::run
