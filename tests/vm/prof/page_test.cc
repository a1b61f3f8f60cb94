// Pages of what vm.prof_record has recorded of vector_basics on a card, and vm.prof_top of halo on two, in a
// headless Chromium.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "tests/system/prof/in_browser.h"

namespace orrery::prof::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr const char* kEnter = "\uE007";

class RecordedPage : public InBrowser {
  protected:
    void SetUp() override {
        InBrowser::SetUp();
        open(PAGE);
    }
    static void open_made(const char* profile, const std::string& options = "") {
        const fs::path page = folder_ / "page.html";
        const std::string command =
            fmt::format("'{}' html '{}' {} -o '{}'", ORRERY_PROF, profile, options, page.string());
        const int status = std::system(command.c_str());
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
        open(page);
    }
    static Strings labels(const char* type) {
        Strings all;
        for (const Json& row : state()["rows"])
            if (row["type"] == type) all.push_back(row["label"]);
        return all;
    }
    static void click_head(const char* label) {
        const Json now = state();
        for (const Json& row : now["rows"]) {
            if (row["type"] != "head" || row["label"] != label) continue;
            const double top = browser_->run("return canvas.getBoundingClientRect().top"), axis = 22,
                         middle = 12;
            browser_->click(40,
                            top + now["model"]["top"].get<double>() + axis + row["y"].get<double>() + middle);
            return;
        }
        FAIL() << "there is no " << label;
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

// Of the card's counters those that went up while it was recorded.
TEST_F(RecordedPage, HasCountersOverTime) {
    EXPECT_THAT(labels("head"), Contains("Counters"));
    const Strings before = labels("chart");
    click_head("Counters");
    const Strings charts = labels("chart");
    EXPECT_GT(charts.size(), before.size() + 8);
    for (const char* counter : {"copy_bytes", "vector_instructions", "vector_busy_ps", "pcie_read_bytes"})
        EXPECT_THAT(charts, Contains(counter));
    click_head("Counters");
    EXPECT_EQ(labels("chart"), before);
}

// Where cores were, beside the lines of the file that is here.
TEST_F(RecordedPage, HasSamplesBesideTheLinesOfItsSource) {
    open_made(LINES, fmt::format("--source '{}'", SOURCES));
    Strings lines;
    std::ifstream file(fs::path(SOURCES) / "kernels.cc");
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    press("#tab-source");
    ASSERT_EQ(state()["tab"], "source");
    const int kernels = count("#source .kinds button");
    EXPECT_GE(kernels, 5);
    for (int i = 1; i <= kernels; ++i) {
        press(fmt::format("#source .kinds button:nth-child({})", i));
        ASSERT_THAT(texts("#source h2"), Contains("kernels.cc")) << i;
        EXPECT_THAT(
            texts("#source .wide:nth-of-type(2) td:last-child"),
            Contains(::testing::ContainsRegex("(computing|latency|memory|start of an item) [0-9.]+ %")));
        const Json sampled = browser_->run(
            "return [...document.querySelectorAll('#source .wide:last-child tbody tr')]"
            ".map((row) => [...row.children].map((cell) => cell.innerText)).filter((cells) => cells[1])");
        ASSERT_GT(sampled.size(), 0u) << i;
        for (const Json& cells : sampled)
            EXPECT_EQ(cells[2], lines.at(std::stoul(cells[0].get<std::string>()) - 1)) << i;
    }
}

// What one card copies to the other is in a row of the link, which leads to the copy.
TEST_F(RecordedPage, OfTwoCardsHasWhatTheirLinkCarried) {
    open_made(OF_TWO);
    EXPECT_THAT(labels("head"), AllOf(Contains("Card 0"), Contains("Card 1"), Contains("Counters")));
    const Strings rows = labels("row");
    for (const char* row : {"link to card 1", "link to card 0"})
        EXPECT_THAT(rows, Contains(row));
    for (const char* from : {"0", "1"}) {
        open_made(OF_TWO);
        press("#canvas");
        browser_->key("/");
        browser_->type(fmt::format("1.0 KiB by card {}", from));
        browser_->key(kEnter);
        EXPECT_THAT(text("#details"), HasSubstr("copy over a link"));
        press("#details .links:last-of-type button");
        EXPECT_EQ(state()["selected"]["kind"], "copy");
        for (const std::string& fact : {std::string("device to peer"), std::string("1\u202f024 (1.00 KiB)"),
                                        fmt::format("card\n{}\n", from)})
            EXPECT_THAT(text("#details"), HasSubstr(fact));
    }
    press("#tab-summary");
    EXPECT_THAT(text("#summary"), HasSubstr("to card 1, 400 Gbit/s"));
    EXPECT_THAT(text("#summary"), HasSubstr("to card 0, 400 Gbit/s"));
}

}  // namespace
}  // namespace orrery::prof::test
