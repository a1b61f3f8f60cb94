// What changed between runs, and whether that may be chance.
#include "tools/prof/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/proftool/made_profile.h"

namespace orrery::prof::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kUs = 1'000'000;

TEST(MannWhitney, IsAsInBooks) {
    const std::vector<double> low = {1, 2, 3, 4, 5}, high = {6, 7, 8, 9, 10}, same = {4, 4, 4};
    EXPECT_NEAR(mann_whitney(low, high), 0.01219, 0.00001);
    EXPECT_EQ(mann_whitney(low, high), mann_whitney(high, low));
    EXPECT_EQ(mann_whitney(same, same), 1);
    EXPECT_EQ(mann_whitney(same, {}), 1);
    EXPECT_EQ(mann_whitney(low, low), 1);
    // Ranks 1.5 1.5 3 5 | 5 5 7 8: U is 1, and ties make the deviation sqrt(16/12 * (9 - 30/56)).
    const std::vector<double> a = {1, 1, 2, 3}, b = {3, 3, 4, 5};
    EXPECT_NEAR(mann_whitney(a, b), std::erfc(6.5 / std::sqrt(16.0 / 12 * (9 - 30.0 / 56)) / std::sqrt(2.0)),
                1e-9);
}

// Runs of a kernel, each so long, and of another one that is always the same.
Model a_run(const std::vector<std::uint64_t>& us, std::uint64_t calls_ns = 1'000) {
    MadePart part;
    const auto gemm = part.text("gemm"), fixed = part.text("fixed"), call = part.text("orrLaunchKernel");
    std::uint64_t now = 0;
    for (const std::uint64_t length : us) {
        part.add(part.work_of(Operation::kKernel, gemm, fixed, now, now + length * kUs, now));
        part.add(part.work_of(Operation::kKernel, fixed, fixed, now + length * kUs, now + (length + 3) * kUs,
                              now + 1));
        part.call(call, 2'000, 2'000 + calls_ns);
        now += (length + 5) * kUs;
    }
    auto profile = parse_profile(made_profile(part.bytes()));
    EXPECT_TRUE(profile) << profile.error().text;
    return Model(*std::move(profile));
}
std::vector<Model> side(auto&&... runs) {
    std::vector<Model> all;
    (all.push_back(std::move(runs)), ...);
    return all;
}

TEST(Compare, SaysWhatIsEqualAndWhatIsNot) {
    const auto a = side(a_run({10, 11, 12, 13, 14, 15, 16, 17})),
               b = side(a_run({20, 21, 22, 23, 24, 25, 26, 27}));
    const auto changes = changes_of(a, b);
    ASSERT_EQ(changes.size(), 3u);
    EXPECT_EQ(changes[0].name, "gemm") << "that differs most";
    EXPECT_LT(changes[0].p, 0.001);
    EXPECT_EQ(changes[0].difference(), 80.0 * kUs);
    EXPECT_EQ(changes[1].name, "fixed");
    EXPECT_TRUE(changes[1].equal);
    EXPECT_NEAR(changes[0].a.deviation(), 2.449 * kUs, 0.001 * kUs);
    const std::string text = compare_text(a, b, 10);
    EXPECT_THAT(text, HasSubstr("+80.000 us  p = 0.00094, significant"));
    EXPECT_THAT(text, HasSubstr("exactly equal"));
    EXPECT_THAT(text, HasSubstr("device 0, first work to last  146.000 us  226.000 us  +80.000 us  +54.8 %"));
    const auto json = nlohmann::json::parse(compare_json(a, b));
    EXPECT_EQ(json.at("changes").at(0).at("significant"), true);
    EXPECT_EQ(json.at("changes").at(1).at("equal"), true);
    EXPECT_EQ(json.at("changes").at(2).at("kind"), "call");
}

TEST(Compare, DoesNotTakeChanceForAChange) {
    const auto a = side(a_run({10, 12, 14, 16, 18, 20})), b = side(a_run({11, 13, 15, 17, 19, 21}));
    EXPECT_THAT(compare_text(a, b, 10), HasSubstr("may be chance"));
    EXPECT_THAT(compare_text(a, b, 10), Not(HasSubstr("significant")));
    EXPECT_THAT(compare_text(side(a_run({10})), side(a_run({30})), 10), HasSubstr("too few to tell"));
}

TEST(Compare, TakesSeveralRunsOfASide) {
    const auto a = side(a_run({10, 10}), a_run({12, 12})), b = side(a_run({11, 11}));
    const auto changes = changes_of(a, b);
    EXPECT_EQ(changes[0].a.values.size(), 4u);
    EXPECT_THAT(compare_text(a, b, 10), HasSubstr("fixed                      4  2            3.000 us   "
                                                  "3.000 us                 0  each exactly equal"));
    // Per run it is the same.
    EXPECT_THAT(compare_text(a, b, 10), HasSubstr("4  2  11.000 us +-10.5 %  11.000 us"));
    EXPECT_THAT(compare_text(a, b, 10),
                HasSubstr("  kernels ran                 28.000 us  28.000 us   equal"));
}

TEST(Compare, SaysWhatIsOnOneSideOnly) {
    const auto a = side(a_run({10}));
    std::vector<Model> nothing;
    nothing.emplace_back(Profile{});
    EXPECT_THAT(compare_text(a, nothing, 10), HasSubstr("only in A"));
    EXPECT_THAT(compare_text(nothing, a, 10), HasSubstr("only in B"));
    EXPECT_THAT(compare_text(nothing, nothing, 10), HasSubstr("nothing was recorded in either"));
    EXPECT_THAT(compare_text(a, nothing, 1), HasSubstr("and 1 more"));
}

}  // namespace
}  // namespace orrery::prof::test
