// Ranks' profiles become one, by an orrery-prof that is a script here.
#include "tools/run/profile.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
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
        return (*profiles)->merge(output().string());
    }
    fs::path output() const { return folder_ / "all"; }
    std::string made() const { return text_of(output()); }
    std::size_t calls() const {
        const std::string all = text_of(folder_ / "calls");
        return static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n'));
    }
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

  private:
    static std::string text_of(const fs::path& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
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
