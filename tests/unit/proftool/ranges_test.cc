// What cards did for each range, and what a comparison of SKUs makes of it.
#include "tools/prof/ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/proftool/made_profile.h"
#include "tools/prof/page_data.h"
#include "tools/prof/show.h"
#include "tools/prof/skus/compare.h"

namespace orrery::prof::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Ranges : public ::testing::Test {
  protected:
    Ranges() {
        part_.orrery_1(0);
        for (const auto& [key, value] : {std::pair("energy.instruction_fj", 1'000),
                                         {"energy.f16_fj", 0},
                                         {"energy.f32_fj", 500},
                                         {"energy.f64_fj", 0},
                                         {"energy.vram_fj", 40'000},
                                         {"energy.host_fj", 0},
                                         {"energy.link_fj", 0},
                                         {"energy.static_mw", 50'000}})
            part_.sku(0, key, static_cast<std::uint64_t>(value));
        stream_ = part_.text("main");
        saxpy_ = part_.text("saxpy");
        outer_ = part_.text("outer");
        inner_ = part_.text("inner");
        mine_ = part_.text("mine");
    }
    // A kernel that a call at `ns` has submitted.
    void kernel(std::uint64_t ns, std::uint64_t begin_us, std::uint64_t end_us, std::uint32_t thread = 100) {
        WorkRecord work =
            part_.work_of(Operation::kKernel, saxpy_, stream_, begin_us * kUs, end_us * kUs, ++index_);
        work.submitted_ns = ns;
        work.correlation = 0;
        work.thread = thread;
        WorkCountersRecord counters{};
        counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
        counters.stream = stream_;
        counters.index = index_;
        counters.begin_ps = work.begin_ps;
        counters.flops_f32 = 1'000;
        counters.vram_read = 64;
        counters.instructions = 10;
        part_.add(counters);
        part_.add(work);
    }
    static constexpr std::uint64_t kUs = 1'000'000;
    MadePart part_;
    std::uint32_t stream_ = 0, saxpy_ = 0, outer_ = 0, inner_ = 0, mine_ = 0;
    std::uint64_t index_ = 0;
};

TEST_F(Ranges, HaveWhatWasSubmittedInThemAndInThoseWithin) {
    part_.range(Type::kRangeBegin, outer_, 2'000);
    part_.range(Type::kRangeBegin, inner_, 3'000);
    part_.range(Type::kRangeEnd, 0, 4'000);
    part_.range(Type::kRangeBegin, inner_, 5'000);
    part_.range(Type::kRangeBegin, inner_, 5'100);  // within itself: counts once
    part_.range(Type::kRangeEnd, 0, 5'200);
    part_.range(Type::kRangeEnd, 0, 6'000);
    part_.range(Type::kRangeEnd, 0, 7'000);
    part_.range(Type::kRangeBegin, mine_, 3'500, mine_);  // another domain, across
    part_.range(Type::kRangeEnd, 0, 9'000, mine_);
    kernel(1'500, 0, 1);  // before all
    kernel(2'500, 1, 3);
    kernel(3'200, 3, 4);
    kernel(5'150, 4, 8);
    kernel(5'150, 8, 9, 101);  // another thread's
    kernel(8'000, 9, 10);
    const Model model = made_model(part_.bytes());
    const Activity& activity = model.processes.at(0);
    const std::vector<WorkSums> sums = RangeTree(activity).sums();
    ASSERT_EQ(sums.size(), 5u);
    EXPECT_EQ(sums[0].kernels, 3u);
    EXPECT_EQ(sums[0][&WorkCountersRecord::flops_f32], 3'000u);
    EXPECT_EQ(sums[0].kernel_ps, 7 * kUs);

    const std::vector<NamedRange> named = named_ranges(activity);
    ASSERT_EQ(named.size(), 3u);
    EXPECT_EQ(named[0].name, "outer");
    EXPECT_EQ(named[2].name, "mine: mine");
    EXPECT_EQ(named[2].sums.kernels, 2u);
    EXPECT_EQ(named[1].name, "inner");
    EXPECT_EQ(named[1].count, 2u);
    EXPECT_EQ(named[1].host_ns, 2'000u);
    EXPECT_EQ(named[1].sums.kernels, 2u);
    EXPECT_EQ(named[1].sums[&WorkCountersRecord::vram_read], 128u);
}

TEST_F(Ranges, TheCallThatSubmittedWorkSaysWhichItIs) {
    const std::uint32_t launch = part_.text("orrLaunchKernel");
    part_.range(Type::kRangeBegin, outer_, 2'000);
    part_.call(launch, 2'100, 2'300);
    part_.range(Type::kRangeEnd, 0, 2'400);
    part_.add(part_.work_of(Operation::kKernel, saxpy_, stream_, 0, kUs));
    WorkRecord late = part_.work_of(Operation::kKernel, saxpy_, stream_, kUs, 2 * kUs, 1);
    late.submitted_ns = 9'000;  // by a thread of the library's, after the call has ended
    late.thread = 555;
    part_.add(late);
    const Model model = made_model(part_.bytes());
    EXPECT_EQ(RangeTree(model.processes.at(0)).sums().at(0).kernels, 2u);
}

// What one of the cards does not count is known of none of it: not 0, and not the others' sum.
TEST_F(Ranges, OfWhatWasNotCountedHaveNoSums) {
    part_.range(Type::kRangeBegin, outer_, 2'000);
    part_.range(Type::kRangeBegin, inner_, 3'000);
    kernel(3'200, 0, 1);
    part_.range(Type::kRangeEnd, 0, 4'000);
    kernel(4'200, 1, 2);
    part_.add(part_.work_of(Operation::kCopy, saxpy_, stream_, 5 * kUs, 6 * kUs, 77));
    part_.range(Type::kRangeEnd, 0, 5'000);
    WorkCountersRecord counters{};
    counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
    counters.stream = stream_;
    counters.index = 77;
    counters.begin_ps = 5 * kUs;
    counters.moved = 64;
    counters.copy_setup_ps = 9;
    part_.add_first(counters, offsetof(WorkCountersRecord, copy_setup_ps));
    const Model model = made_model(part_.bytes());
    const Activity& activity = model.processes.at(0);
    const WorkCountersRecord& old = activity.process->counters.back();
    EXPECT_EQ(old.copy_setup_ps, 0u);
    EXPECT_TRUE(knows(old, &WorkCountersRecord::tlb_walked));
    EXPECT_FALSE(knows(old, &WorkCountersRecord::copy_setup_ps));
    EXPECT_FALSE(knows(old, &WorkCountersRecord::link_ports));
    EXPECT_EQ(known_fields(activity.process->counters.front()), kCounterFields.size());
    // The copy was submitted at 2'100, in the outer one.
    const std::vector<WorkSums> sums = RangeTree(activity).sums();
    ASSERT_EQ(sums.size(), 2u);
    const std::size_t first_unknown = known_fields(old);
    EXPECT_STREQ(kCounterFields.at(first_unknown).name, "copy_setup_ps");
    EXPECT_EQ(sums[0].counter(first_unknown - 1), 0u);
    EXPECT_EQ(sums[0].counter(first_unknown), std::nullopt);
    EXPECT_EQ(sums[1].counter(first_unknown), 0u) << "of the inner one all is known";
    EXPECT_TRUE(sums[0].knows(&WorkCountersRecord::flops_f32));
    EXPECT_FALSE(sums[0].knows(&WorkCountersRecord::copy_peer_ps));
    WorkSums both = sums[1];
    both.add(sums[0]);
    EXPECT_EQ(both.counter(first_unknown), std::nullopt);
    const std::string text = stat_text(model);
    EXPECT_THAT(text, HasSubstr("\n    and 10 that are not known\n"));
    EXPECT_THAT(text, Not(HasSubstr("copy_setup_ps")));
    const std::string json = report_json(model, 10);
    EXPECT_THAT(json, HasSubstr("\"copy_setup_ps\": null"));
    EXPECT_THAT(json, HasSubstr("\"copy_setup_ps\": 0"));
}

// The page shows them as that: it is told how many of a record's counters are known.
TEST_F(Ranges, ThePageIsToldWhatWasNotCounted) {
    for (const std::uint64_t index : {1u, 2u}) {
        WorkCountersRecord counters{};
        counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
        counters.stream = stream_;
        counters.index = index;
        counters.begin_ps = index * kUs;
        if (index == 1) part_.add(counters);
        if (index == 2) part_.add_first(counters, offsetof(WorkCountersRecord, copy_setup_ps));
        part_.add(part_.work_of(Operation::kKernel, saxpy_, stream_, index * kUs, index * kUs + 1, index));
    }
    const PageData data = page_data(made_model(part_.bytes()));
    ASSERT_EQ(data.meta.at("counterNames").size(), 1 + kCounterFields.size());
    std::size_t at = 0;
    std::string known;
    for (const auto& column : data.meta.at("columns")) {
        const auto bytes = column.at(1).get<std::size_t>();
        if (column.at(0) == "counterKnown") known = data.columns.substr(at, bytes);
        at += bytes;
    }
    // `cores` too.
    EXPECT_EQ(known, std::string({'\x2a', '\x20'}));
}

// What cards did for each stream, and for the process.
TEST_F(Ranges, OfStreamsAndProcessesAreSumsToo) {
    kernel(2'000, 0, 3);
    kernel(2'100, 3, 4);
    stream_ = part_.text("aside");
    kernel(2'200, 4, 9);
    const Model model = made_model(part_.bytes());
    EXPECT_THAT(report_text(model, 10),
                AllOf(::testing::ContainsRegex("streams +kernels +copies +card time +FLOP "),
                      ::testing::ContainsRegex("aside +1 +0 +5.000 us +1 000 "),
                      ::testing::ContainsRegex("main +2 +0 +4.000 us +2 000 "),
                      ::testing::ContainsRegex("all of the process +3 +0 +9.000 us +3 000 ")));
    const std::vector<WorkSums> sums = stream_sums(model.processes.at(0));
    ASSERT_EQ(sums.size(), 2u);
    EXPECT_EQ(sums[0].kernels + sums[1].kernels, 3u);
}

// Side by side they have one time, by which the card's rate goes.
TEST_F(Ranges, RatesGoByTheTimeInWhichAnyKernelRan) {
    kernel(2'000, 0, 4);
    stream_ = part_.text("aside");
    kernel(2'200, 0, 4);
    const Model model = made_model(part_.bytes());
    EXPECT_THAT(report_text(model, 10),
                AllOf(::testing::ContainsRegex("aside +1 +0 +4.000 us +1 000 +0.25 "),
                      ::testing::ContainsRegex("all of the process +2 +0 +8.000 us +2 000 +0.5 ")));
    const Activity& activity = model.processes.at(0);
    const std::vector<WorkSums> sums = stream_sums(activity, activity.devices.at(0));
    ASSERT_EQ(sums.size(), 2u);
    EXPECT_EQ(sums[0].kernels + sums[1].kernels, 2u);
    WorkSums both = sums[0];
    both.add(sums[1]);
    EXPECT_EQ(both.kernel_ps, 8 * kUs);
    EXPECT_EQ(both.counted_ps(), 4 * kUs);
}

TEST_F(Ranges, OneIsMeasuredAsIfNothingElseHadBeenThere) {
    part_.range(Type::kRangeBegin, outer_, 2'000);
    kernel(2'500, 100, 150);
    kernel(2'600, 150, 300);
    part_.range(Type::kRangeEnd, 0, 3'000);
    part_.range(Type::kRangeBegin, outer_, 4'000);
    kernel(4'500, 800, 801);
    part_.range(Type::kRangeEnd, 0, 5'000);
    kernel(6'000, 2'000, 9'000);
    const Model model = made_model(part_.bytes());
    const Measured measured = measured_of(model, "outer");
    EXPECT_EQ(measured.problem, "");
    EXPECT_EQ(measured.ps, 200 * kUs);
    EXPECT_EQ(measured.sums.kernels, 2u);
    ASSERT_TRUE(measured.energy);
    EXPECT_DOUBLE_EQ(measured.energy->static_j, 50 * 200e-6);
    EXPECT_DOUBLE_EQ(measured.energy->compute_j, 2 * (10 * 1e-12 + 1'000 * 0.5e-12));
    EXPECT_DOUBLE_EQ(measured.energy->vram_j, 128 * 40e-12);
    EXPECT_EQ(measured_of(model, "none").problem, "its profile has no range none with work");
    EXPECT_EQ(measured_of(model, "none").ps, 0u);
}

// A SKU has all figures; whoever knows none writes 0.
TEST(Energy, OfASkuWithoutFiguresIsNotKnown) {
    for (const std::uint64_t figure : {0u, 5u}) {
        MadePart part;
        part.orrery_1(0);
        for (const char* key :
             {"instruction_fj", "f16_fj", "f32_fj", "f64_fj", "vram_fj", "host_fj", "link_fj", "static_mw"})
            part.sku(0, std::string("energy.") + key, figure);
        const std::uint32_t stream = part.text("main"), saxpy = part.text("saxpy");
        part.range(Type::kRangeBegin, saxpy, 2'000);
        part.range(Type::kRangeEnd, 0, 3'000);
        WorkCountersRecord counters{};
        counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
        counters.stream = stream;
        counters.instructions = 10;
        part.add(counters);
        part.add(part.work_of(Operation::kKernel, saxpy, stream, 0, 50'000'000));
        const Measured measured = measured_of(made_model(part.bytes()), "saxpy");
        EXPECT_EQ(measured.ps, 50'000'000u);
        EXPECT_EQ(measured.energy.has_value(), figure != 0);
    }
}

Comparison made_comparison() {
    Comparison all;
    all.skus.push_back({.name = "first", .card = "First", .measured = {}});
    all.skus.push_back({.name = "<b>\"x\"&\n", .card = "<script>alert(1)</script>", .measured = {}});
    for (std::size_t i = 0; i < work_classes().size(); ++i) {
        Measured one;
        one.ps = 100 * 1'000'000;
        one.limit = "VRAM bandwidth";
        one.limit_share = 0.5;
        one.energy = Energy{.static_j = 1e-3};
        all.skus[0].measured.push_back(one);
        one.ps = i == 0 ? 0 : 50 * 1'000'000;
        one.problem = "a, b";
        all.skus[1].measured.push_back(one);
    }
    return all;
}

TEST(SkuComparison, TellsThroughputAndCardsForOne) {
    const Comparison all = made_comparison();
    EXPECT_EQ(all.throughput(1, 0), 0);
    EXPECT_EQ(all.throughput(1, 1), 2);
    const std::string text = comparison_text(all);
    EXPECT_THAT(text, HasSubstr("\n  memory   100.000 us  50.000 us  2 x\n"));
    EXPECT_THAT(text, HasSubstr("\n  memory        0.5\n"));
    EXPECT_THAT(text, HasSubstr("\n  compute         -\n"));
    EXPECT_THAT(text, AllOf(HasSubstr("VRAM bandwidth 50 %"), Not(HasSubstr("&\n"))));
    const std::string csv = comparison_csv(all);
    EXPECT_THAT(csv, HasSubstr("\r\nmemory,first,First,100000000,1,1,VRAM bandwidth,0.5,"));
    EXPECT_THAT(csv, HasSubstr("\r\ncompute,\"<b>\"\"x\"\"&\n\",<script>alert(1)</script>,0,,,"));
    EXPECT_THAT(csv, HasSubstr(",\"a, b\","));
}

TEST(SkuComparison, LeavesOutWhatWantsLinksWhereThereAreNone) {
    std::size_t link = 0;
    for (std::size_t i = 0; i < work_classes().size(); ++i) {
        const WorkClass& one = work_classes()[i];
        if (one.name == "link") link = i;
        EXPECT_EQ(why_left_out(one, 0), one.name == "link" ? "its cards have no link ports" : "");
        EXPECT_EQ(why_left_out(one, 1), "");
    }
    EXPECT_THAT(guest_script(true, 1), HasSubstr("/share/link.prof -- orrery-sku-work link --quick >"));
    EXPECT_THAT(guest_script(true, 0), Not(HasSubstr("link")));
    EXPECT_THAT(guest_script(true, 0), HasSubstr("/share/mixed.prof -- orrery-sku-work mixed --quick >"));
    Comparison all = made_comparison();
    EXPECT_THAT(comparison_text(all), Not(HasSubstr("left out")));
    all.skus[1].measured[link] = Measured();
    all.skus[1].measured[link].left_out = true;
    all.skus[1].measured[link].problem = why_left_out(work_classes()[link], 0);
    const std::string text = comparison_text(all), page = comparison_page(all);
    EXPECT_THAT(text, HasSubstr("\nlink is left out of <b>\"x\"&?: its cards have no link ports.\n"));
    EXPECT_THAT(text, testing::ContainsRegex("\n  link +100.000 us +-\n"));
    EXPECT_THAT(text, testing::ContainsRegex("\n  mixed +100.000 us +50.000 us  2 x\n")) << "as ever";
    EXPECT_THAT(page, HasSubstr("<bdi>link is left out of &lt;b&gt;"));
    EXPECT_THAT(comparison_csv(all), HasSubstr(",its cards have no link ports,"));
}

// A card that does not count what a rate is of has none, which is not 0.
TEST(SkuComparison, RatesOfWhatWasNotCountedAreNotKnown) {
    Comparison all = made_comparison();
    for (SkuRun& run : all.skus) {
        for (Measured& one : run.measured) {
            one.sums.counted = one.sums.kernels = 5;
            one.sums.known = 1;  // busy_ps
        }
    }
    const std::string text = comparison_text(all);
    EXPECT_THAT(text, Not(HasSubstr("/s")));
    for (const char* name : {"memory", "copies", "link"})
        EXPECT_THAT(text, testing::ContainsRegex(std::string("\n  ") + name + " +not known +not known\n"));
    EXPECT_THAT(text, testing::ContainsRegex("\n  launch +20 us each +10 us each\n"));
    EXPECT_THAT(comparison_page(all), HasSubstr("50.000 us, rate not known"));
    EXPECT_THAT(comparison_csv(all),
                HasSubstr("\r\nmemory,first,First,100000000,1,1,VRAM bandwidth,0.5,,0.001,"));
    for (SkuRun& run : all.skus) {
        for (Measured& one : run.measured)
            one.sums.known = kCounterFields.size();
    }
    EXPECT_THAT(comparison_text(all), testing::ContainsRegex("\n  memory +0 GB/s +0 GB/s\n"));
}

TEST(SkuComparison, OfNoEnergyHasNoShares) {
    Comparison all = made_comparison();
    for (SkuRun& run : all.skus) {
        for (Measured& one : run.measured)
            one.energy = Energy{};
    }
    EXPECT_THAT(comparison_text(all), Not(HasSubstr("nan")));
    EXPECT_THAT(comparison_text(all), testing::ContainsRegex("memory +0 uJ +0 uJ\n"));
    EXPECT_THAT(comparison_page(all), Not(HasSubstr("0 uJ: static")));
    EXPECT_THAT(comparison_csv(all), Not(HasSubstr("nan")));
}

TEST(SkuComparison, ThePageTakesNamesAsTextAndNothingFromElsewhere) {
    const std::string page = comparison_page(made_comparison());
    EXPECT_THAT(page, Not(HasSubstr("<script")));
    EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
    EXPECT_THAT(page, HasSubstr("<bdi>&lt;b&gt;&quot;x&quot;&amp;?</bdi>"));
    EXPECT_THAT(page, HasSubstr("default-src 'none'; style-src 'unsafe-inline'"));
    EXPECT_THAT(page, Not(HasSubstr("http://")));
    EXPECT_THAT(page, Not(HasSubstr("https://")));
    EXPECT_THAT(page, HasSubstr("<rect class=\"s1\""));
}

}  // namespace
}  // namespace orrery::prof::test
