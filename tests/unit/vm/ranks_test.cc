#include "tools/run/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::run {
namespace {

TEST(Ranks, AreSharedOutEvenlyAndInOrder) {
    for (unsigned vms = 1; vms <= 8; ++vms)
        for (unsigned ranks = vms; ranks <= 20; ++ranks) {
            unsigned next = 0;
            for (unsigned vm = 0; vm < vms; ++vm) {
                const Share share = share_of(ranks, vms, vm);
                EXPECT_EQ(share.first, next);
                EXPECT_GE(share.count, ranks / vms);
                EXPECT_LE(share.count, (ranks + vms - 1) / vms);
                next += share.count;
            }
            EXPECT_EQ(next, ranks);
        }
}

TEST(Ranks, EachRunHasATokenOfItsOwn) {
    EXPECT_EQ(make_token(1).size(), std::string("orrg1-unix-").size() + 32 + 1 + 32);
    EXPECT_NE(make_token(1), make_token(1));
    EXPECT_TRUE(make_token(2).starts_with("orrg1-dir-"));
    EXPECT_TRUE(make_token(2).ends_with("-/share"));
}

TEST(Ranks, OptionsOfTheProfileAreWordsAsAShellHasThem) {
    using ::testing::ElementsAre;
    const auto words = [](std::string_view text) {
        return profile_options(text).value_or(std::vector<std::string>{"refused"});
    };
    EXPECT_THAT(words(""), ElementsAre());
    EXPECT_THAT(words("  --counters  --samples 20 "), ElementsAre("--counters", "--samples", "20"));
    EXPECT_THAT(words("--trace-core '0:1:2 3' --a\"b c\"d ''"),
                ElementsAre("--trace-core", "0:1:2 3", "--ab cd", ""));
    // Each rank's own goes where all are put together from.
    EXPECT_THAT(profile_options("--counters -o x").error().text,
                ::testing::HasSubstr("--profile says where"));
    EXPECT_FALSE(profile_options("--counters -- true"));
    EXPECT_THAT(profile_options("'--counters").error().text, ::testing::HasSubstr("does not end"));
}

}  // namespace
}  // namespace orrery::run
