// The page of what vm.prof_record has recorded of vector_basics on a card, in a headless Chromium.
#include <gmock/gmock.h>

#include "tests/system/prof/in_browser.h"

namespace orrery::prof::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class RecordedPage : public InBrowser {
  protected:
    void SetUp() override {
        InBrowser::SetUp();
        open(PAGE);
    }
};

TEST_F(RecordedPage, HasTheKernelsAndTellsOfEach) {
    const auto now = state();
    Strings heads;
    for (const Json& row : now["rows"])
        if (row["type"] == "head") heads.push_back(row["label"]);
    EXPECT_THAT(heads, Contains("Card 0"));
    press("#tab-tables");
    const auto kernels = texts("#tables tbody td:first-child");
    EXPECT_THAT(kernels, UnorderedElementsAre("saxpy", "reduce", "scan_parts", "scan_totals", "scan_add",
                                              "transpose", "softmax", "layer_norm"));
    for (std::size_t i = 1; i <= kernels.size(); ++i) {
        press("#tab-tables");
        press(fmt::format("#tables tbody tr:nth-child({}) button", i));
        const auto led = state();
        ASSERT_EQ(led["tab"], "timeline") << i;
        ASSERT_EQ(led["selected"]["kind"], "kernel") << i;
        // It is in sight now, and large enough: a click where it is says what it is.
        browser_->key(kEscape);
        ASSERT_EQ(selected(), "");
        click(led["selected"]["slice"]);
        EXPECT_EQ(state()["selected"], led["selected"]);
        EXPECT_EQ(text("#details h2"), kernels[i - 1]);
        EXPECT_THAT(text("#details"), HasSubstr("\ninstructions\n"));
    }
}

TEST_F(RecordedPage, HasWhatWasCounted) {
    press("#tab-roofline");
    EXPECT_EQ(count("#roofline tbody tr"), 8);
    EXPECT_EQ(count("#roofline svg circle"), 4);  // the others have no floating point
    press("#tab-summary");
    EXPECT_THAT(text("#summary"), HasSubstr("Card 0, Orrery 1"));
    press("#tab-findings");
    EXPECT_GT(count("#findings article"), 0);
}

}  // namespace
}  // namespace orrery::prof::test
