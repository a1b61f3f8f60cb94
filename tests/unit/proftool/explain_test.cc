// What limits a run: a profile for each rule, made so that nothing else does.
#include "tools/prof/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "tests/unit/proftool/made_profile.h"
#include "tools/prof/rules.h"

namespace orrery::prof::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kUs = 1'000'000;

class Explain : public ::testing::Test {
  protected:
    Explain() {
        part_.orrery_1(0);
        stream_ = part_.text("main");
        other_ = part_.text("other");
        copy_ = part_.text("copy");
        saxpy_ = part_.text("saxpy");
        sync_ = part_.text("orrStreamSynchronize");
    }
    WorkRecord kernel(std::uint64_t begin_us, std::uint64_t end_us, std::uint64_t index = 0, double use = 1) {
        WorkRecord work =
            part_.work_of(Operation::kKernel, saxpy_, stream_, begin_us * kUs, end_us * kUs, index);
        work.used_ps = static_cast<std::uint64_t>(8 * use * static_cast<double>((end_us - begin_us) * kUs));
        work.groups = 64;
        return work;
    }
    // Of a kernel that ran on all cores: shares of their time.
    void counted(std::uint64_t begin_us, std::uint64_t end_us,
                 const std::function<void(WorkCountersRecord&)>& fill) {
        counted(kernel(begin_us, end_us), fill);
    }
    void counted(const WorkRecord& work, const std::function<void(WorkCountersRecord&)>& fill) {
        WorkCountersRecord counters{};
        counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
        counters.stream = work.stream;
        counters.index = work.index;
        counters.begin_ps = work.begin_ps;
        counters.busy_ps = work.used_ps;
        counters.instructions = 1'000;
        fill(counters);
        part_.add(counters);
        part_.add(work);
    }
    // Of another stream, with half of the cores.
    WorkRecord half(std::uint32_t stream, std::uint32_t name, std::uint64_t begin_us, std::uint64_t end_us) {
        WorkRecord work = kernel(begin_us, end_us, 0, 0.5);
        work.stream = work.stream_name = stream;
        work.head.text = name;
        return work;
    }
    void wait(std::uint64_t begin_us, std::uint64_t end_us, From from, std::uint32_t name = 0,
              std::uint64_t stream = 0) {
        WorkRecord work = part_.work_of(Operation::kWait, copy_, stream_, begin_us * kUs, end_us * kUs, 50);
        work.from = static_cast<std::uint32_t>(from);
        work.from_name = name;
        work.from_stream = stream;
        part_.add(work);
    }
    const Explanation& explained() {
        auto profile = parse_profile(made_profile(part_.bytes()));
        EXPECT_TRUE(profile) << profile.error().text;
        model_.emplace(*std::move(profile));
        all_ = explain(*model_, model_->processes.at(0), BarrierLasts(*model_));
        return all_;
    }
    // What limits device 0 most.
    const Finding& first() {
        static const Finding kNothing;
        for (const Finding& finding : explained().findings) {
            if (finding.device == 0) return finding;
        }
        return kNothing;
    }
    std::set<std::string_view> names() const {
        std::set<std::string_view> all;
        for (const Finding& finding : all_.findings)
            all.insert(finding.rule);
        return all;
    }

    MadePart part_;
    std::uint32_t stream_ = 0, other_ = 0, copy_ = 0, saxpy_ = 0, sync_ = 0;
    std::optional<Model> model_;
    Explanation all_;
};

TEST_F(Explain, FindsScalarCode) {
    counted(0, 100, [](WorkCountersRecord& counters) { counters.flops_f32 = 1'000'000; });
    const Finding& found = first();
    EXPECT_EQ(found.rule, "compute");
    EXPECT_NEAR(found.share, 1, 1e-9);
    EXPECT_THAT(found.evidence, HasSubstr("0 % of those are of vectors"));
    EXPECT_THAT(found.bound, HasSubstr("1024 GFLOP/s"));
    EXPECT_THAT(found.advice, HasSubstr("scalar code"));
    EXPECT_FALSE(found.at_bound);
}

TEST_F(Explain, SaysThatNothingLimitsWhatComputesAtThePeak) {
    counted(0, 100, [](WorkCountersRecord& counters) {
        counters.flops_f32 = 97'280'000;  // 972.8 of 1024
        counters.simd_fp = 900;
        counters.lanes = counters.lanes_active = 10;
    });
    EXPECT_TRUE(first().at_bound);
    EXPECT_THAT(explain_text(*model_), HasSubstr("nothing limits it beyond compute"));
}

// Each has half of the cores, and half of the peak.
TEST_F(Explain, CountsKernelsSideBySideOnce) {
    for (const std::uint32_t stream : {stream_, other_})
        counted(half(stream, saxpy_, 0, 100), [](WorkCountersRecord& counters) {
            counters.flops_f32 = 48'640'000;
            counters.simd_fp = 900;
            counters.lanes = counters.lanes_active = 10;
        });
    EXPECT_EQ(first().rule, "compute");
    EXPECT_TRUE(first().at_bound);
    EXPECT_THAT(first().evidence, HasSubstr("972.8 GFLOP/s while kernels ran"));
    EXPECT_THAT(first().gap, HasSubstr("95 % of the peak"));
}

TEST_F(Explain, OfThePeakIsWhatCoresThatComputeReach) {
    // Half of the cores, all of whose time is at the peak: what is missing is the others'.
    counted(half(stream_, saxpy_, 0, 100), [](WorkCountersRecord& counters) {
        counters.flops_f32 = 48'640'000;
        counters.simd_fp = 900;
        counters.lanes = counters.lanes_active = 10;
    });
    (void)explained();
    for (const Finding& finding : all_.findings)
        EXPECT_EQ(finding.at_bound, finding.rule == "compute") << finding.rule;
    EXPECT_TRUE(names().contains("imbalance"));
}

TEST_F(Explain, KernelsSideBySideShareVram) {
    const auto triad = part_.text("triad");
    for (const auto& [stream, name] : {std::pair(stream_, saxpy_), std::pair(other_, triad)})
        counted(half(stream, name, 0, 100), [](WorkCountersRecord& counters) {
            counters.bandwidth_ps = counters.busy_ps / 3;
            counters.vram_read = 38'000'000;  // 380 of 800 GB/s
        });
    EXPECT_EQ(first().rule, "vram_bandwidth");
    EXPECT_NEAR(first().share, 1, 0.01) << "what cores compute takes none of the time";
    EXPECT_THAT(first().gap, HasSubstr("95 % of it"));
    EXPECT_TRUE(first().at_bound);
}

TEST_F(Explain, ALittleFloatingPointDoesNotHideWholeNumbers) {
    const auto floats = part_.text("floats");
    WorkRecord small = kernel(0, 5);
    small.head.text = floats;
    const auto full = [](WorkCountersRecord& counters) { counters.lanes = counters.lanes_active = 10; };
    counted(small, [&](WorkCountersRecord& counters) {
        full(counters);
        counters.simd_fp = 900;
        counters.flops_f32 = 4'800'000;
    });
    counted(kernel(5, 100, 1), [&](WorkCountersRecord& counters) {
        full(counters);
        counters.simd_int = 900;
    });
    EXPECT_EQ(first().rule, "compute");
    EXPECT_TRUE(first().at_bound);
    EXPECT_THAT(first().gap, HasSubstr("mostly whole numbers"));
}

TEST_F(Explain, WholeNumbersInVectorsThatAreNotFullAreNotAtTheirBound) {
    counted(0, 100, [](WorkCountersRecord& counters) {
        counters.lanes = 10;
        counters.lanes_active = 5;
        counters.simd_int = 900;
    });
    EXPECT_EQ(first().rule, "compute");
    EXPECT_FALSE(first().at_bound);
    EXPECT_THAT(first().advice, HasSubstr("most of each vector is unused"));
}

TEST_F(Explain, FindsVramBandwidth) {
    counted(0, 100, [](WorkCountersRecord& counters) {
        counters.bandwidth_ps = counters.busy_ps * 9 / 10;
        counters.vram_read = 40'000'000;  // 400 of 800 GB/s
    });
    EXPECT_EQ(first().rule, "vram_bandwidth");
    EXPECT_NEAR(first().share, 0.9, 0.001);
    EXPECT_EQ(first().gap, "50 % of it");
    EXPECT_FALSE(first().at_bound);
}

TEST_F(Explain, FindsHostMemoryThatKernelsUse) {
    counted(0, 100, [](WorkCountersRecord& counters) {
        counters.bandwidth_ps = counters.busy_ps * 9 / 10;
        counters.host_read = 3'000'000;
    });
    EXPECT_EQ(first().title, "host memory that kernels use");
    EXPECT_THAT(first().bound, HasSubstr("32 GB/s of PCIe"));
}

// As many bytes of each: VRAM has them in a 25th of the time.
TEST_F(Explain, HostMemoryHoldsKernelsUpLongerThanVram) {
    counted(0, 100, [](WorkCountersRecord& counters) {
        counters.bandwidth_ps = counters.busy_ps * 9 / 10;
        counters.host_read = 3'000'000;
        counters.vram_read = 3'100'000;
    });
    EXPECT_EQ(first().title, "host memory that kernels use");
    EXPECT_EQ(first().gap, "30 GB/s there and back while kernels ran");
}

TEST_F(Explain, FindsCopiesInsideOfVram) {
    part_.copy(copy_, stream_, 0, 100 * kUs, 38'000'000, 0, 0);
    EXPECT_EQ(first().rule, "vram_bandwidth");
    EXPECT_TRUE(first().at_bound);
    EXPECT_THAT(explain_text(*model_), HasSubstr("nothing limits it beyond VRAM bandwidth"));
}

TEST_F(Explain, FindsLatency) {
    counted(0, 100, [](WorkCountersRecord& counters) { counters.latency_ps = counters.busy_ps * 8 / 10; });
    EXPECT_EQ(first().rule, "latency");
    EXPECT_THAT(first().evidence, HasSubstr("saxpy 80 %"));
}

TEST_F(Explain, FindsLinkStallsOfKernels) {
    counted(0, 100, [](WorkCountersRecord& counters) { counters.link_ps = counters.busy_ps * 8 / 10; });
    EXPECT_EQ(first().rule, "link");
    EXPECT_THAT(first().bound, HasSubstr("50 GB/s of a link"));
}

TEST_F(Explain, FindsCopiesOverALink) {
    part_.add(kernel(0, 5));
    part_.copy(copy_, stream_, 5 * kUs, 100 * kUs, 2'000'000, 0, 1);
    part_.add(LinkRecord{
        {static_cast<std::uint16_t>(Type::kLink), sizeof(LinkRecord), 0}, 0, 2, 78, 1, 0, 4, 2, 200, 500});
    EXPECT_EQ(first().rule, "link");
    EXPECT_THAT(first().evidence,
                AllOf(HasSubstr("1 copies of 1.9 MiB"), HasSubstr("port 2 has lost lanes")));
    EXPECT_THAT(first().bound, HasSubstr("25 GB/s"));
}

// The link is never idle: kernels that run beside copies change nothing.
TEST_F(Explain, KernelsBesideALinkThatIsFullDoNotHideIt) {
    const auto halo = [&](std::uint64_t kernel_us) {
        for (std::uint64_t i = 0; i < 5; ++i) {
            part_.copy(copy_, other_, i * 100 * kUs, (i * 100 + 98) * kUs, 4'800'000, 0, 1);
            part_.add(kernel(i * 100, i * 100 + kernel_us, i));
        }
        return first();
    };
    const Finding found = halo(40);
    EXPECT_EQ(found.rule, "link");
    EXPECT_NEAR(found.share, 0.98, 0.01);
    EXPECT_TRUE(found.at_bound);
    EXPECT_THAT(found.evidence, HasSubstr("kernels beside them take less"));
    EXPECT_THAT(explain_text(*model_), HasSubstr("nothing limits it beyond links"));
}

// The link is at its rate while it sends, and half of the time it does not.
TEST_F(Explain, FindsCopiesToOtherCardsThatTakeTurnsWithKernels) {
    for (std::uint64_t i = 0; i < 5; ++i) {
        part_.copy(copy_, stream_, i * 20 * kUs, (i * 20 + 8) * kUs, 400'000, 0, 1);
        part_.add(kernel(i * 20 + 8, i * 20 + 20, i));
    }
    EXPECT_FALSE(explained().findings.empty());
    EXPECT_FALSE(names().contains("link"));
    const auto found = std::ranges::find(all_.findings, "copy_not_overlapped", &Finding::rule);
    ASSERT_NE(found, all_.findings.end());
    EXPECT_NEAR(found->share, 0.4, 0.001);
    EXPECT_FALSE(found->at_bound);
    EXPECT_THAT(found->evidence, HasSubstr("from or to other cards"));
    EXPECT_THAT(found->bound, HasSubstr("50 GB/s of a link"));
    EXPECT_THAT(found->gap, HasSubstr("40.000 us less if copies each way and kernels ran side by side"));
}

TEST_F(Explain, KernelsThatTakeLongerHideALink) {
    for (std::uint64_t i = 0; i < 5; ++i) {
        part_.copy(copy_, other_, i * 100 * kUs, (i * 100 + 85) * kUs, 4'200'000, 0, 1);
        part_.add(kernel(i * 100, i * 100 + 99, i));
    }
    (void)explained();
    EXPECT_FALSE(names().contains("link"));
}

TEST_F(Explain, APcieThatIsFullIsTheLimitWhateverRunsBeside) {
    for (std::uint64_t i = 0; i < 5; ++i) {
        part_.copy(copy_, other_, i * 100 * kUs, (i * 100 + 98) * kUs, 3'100'000, -1, 0);
        part_.add(kernel(i * 100, i * 100 + 40, i));
    }
    EXPECT_EQ(first().title, "PCIe bandwidth");
    EXPECT_TRUE(first().at_bound);
    EXPECT_NEAR(first().share, 0.98, 0.01);
}

TEST_F(Explain, FindsLaunches) {
    for (std::uint64_t i = 0; i < 100; ++i) {
        WorkRecord tiny = kernel(i * 2, i * 2 + 1, i);
        tiny.used_ps = 4 * kUs;  // of 8 us: half is the launch
        part_.add(tiny);
    }
    EXPECT_EQ(first().rule, "launch");
    EXPECT_NEAR(first().share, 0.75, 0.01);
    EXPECT_THAT(first().evidence, HasSubstr("100 kernels of 1.000 us each"));
    EXPECT_THAT(first().bound, HasSubstr("500.000 ns"));
}

TEST_F(Explain, FindsWorkItemsThatDoTooLittle) {
    counted(0, 100, [](WorkCountersRecord& counters) { counters.launch_ps = counters.busy_ps * 8 / 10; });
    EXPECT_EQ(first().rule, "launch");
    EXPECT_THAT(first().advice, HasSubstr("work-items and work-groups do too little"));
}

TEST_F(Explain, CountsWhatHandsGroupsOverAsLaunching) {
    counted(0, 100, [](WorkCountersRecord& counters) { counters.busy_ps /= 4; });
    EXPECT_EQ(first().rule, "launch");
    EXPECT_NEAR(first().share, 0.75, 0.001);
    EXPECT_FALSE(names().contains("kernels"));
}

TEST_F(Explain, TakesCopiesOfUnknownSidesForCopies) {
    part_.copy(copy_, stream_, 0, 50 * kUs, 1'000'000, -3, -3);
    part_.add(kernel(50, 60));
    EXPECT_EQ(first().rule, "copy_not_overlapped");
}

TEST_F(Explain, FindsSmallCopies) {
    for (std::uint64_t i = 0; i < 100; ++i)
        part_.copy(copy_, stream_, i * kUs, (i + 1) * kUs, 64, -1, 0);
    EXPECT_EQ(first().rule, "launch");
    EXPECT_THAT(first().advice, HasSubstr("fewer and larger pieces"));
}

TEST_F(Explain, FindsAHostThatWaitsForEachKernel) {
    for (std::uint64_t i = 0; i < 10; ++i) {
        WorkRecord work = kernel(i * 10, i * 10 + 4, i);
        work.submitted_ns = 1'000 + i * 1'000;
        part_.add(work);
        part_.call(sync_, work.submitted_ns + 10, work.submitted_ns + 900);
    }
    EXPECT_EQ(first().rule, "host");
    EXPECT_NEAR(first().share, 54.0 / 94, 0.01);
    EXPECT_THAT(first().evidence, HasSubstr("9 times"));
}

// An idle card's time hardly goes on.
TEST_F(Explain, FindsAHostThatComputesByItsOwnClock) {
    for (std::uint64_t i = 0; i < 10; ++i) {
        WorkRecord work = kernel(i * 10, i * 10 + 10, i);
        work.submitted_ns = 1'000'000 + i * 1'000'000;
        part_.add(work);
        part_.call(sync_, work.submitted_ns + 10'000, work.submitted_ns + 100'000);
    }
    EXPECT_EQ(explained().sums.own_ns, 9 * 900'000u);
    EXPECT_TRUE(names().contains("host"));
}

TEST_F(Explain, FindsWaitsForASignalOfTheHost) {
    part_.add(kernel(0, 10));
    wait(10, 90, From::kHost);
    part_.add(kernel(90, 100, 51));
    EXPECT_EQ(first().rule, "host");
    EXPECT_THAT(first().evidence, HasSubstr("orrSemaphoreSignal"));
}

TEST_F(Explain, FindsCopiesThatAreNotOverlapped) {
    for (std::uint64_t i = 0; i < 5; ++i) {
        part_.copy(copy_, stream_, i * 20 * kUs, (i * 20 + 12) * kUs, 360'000, -1, 0);
        part_.add(kernel(i * 20 + 12, i * 20 + 20, i));
    }
    EXPECT_EQ(first().rule, "copy_not_overlapped");
    EXPECT_NEAR(first().share, 0.6, 0.001);
    // What takes longest is left.
    EXPECT_THAT(first().gap,
                HasSubstr("40.000 us less if copies each way and kernels ran side by side; now 0 %"));
}

TEST_F(Explain, CopiesEachWayCanRunSideBySideToo) {
    for (std::uint64_t i = 0; i < 5; ++i) {
        part_.copy(copy_, stream_, i * 30 * kUs, (i * 30 + 10) * kUs, 300'000, -1, 0);
        part_.add(kernel(i * 30 + 10, i * 30 + 20, i));
        part_.copy(copy_, stream_, (i * 30 + 20) * kUs, (i * 30 + 30) * kUs, 300'000, 0, -1);
    }
    EXPECT_EQ(first().rule, "copy_not_overlapped");
    EXPECT_THAT(first().gap, HasSubstr("100.000 us less if copies each way and kernels ran side by side"));
}

TEST_F(Explain, DoesNotBlameCopiesThatAreOverlapped) {
    for (std::uint64_t i = 0; i < 5; ++i) {
        part_.copy(copy_, other_, i * 20 * kUs, (i * 20 + 12) * kUs, 360'000, -1, 0);
        part_.add(kernel(i * 20, i * 20 + 20, i));
    }
    (void)explained();
    EXPECT_FALSE(names().contains("copy_not_overlapped"));
}

TEST_F(Explain, SaysThatNothingLimitsWhatCopiesAtTheRateOfPcie) {
    part_.copy(copy_, stream_, 0, 100 * kUs, 3'100'000, -1, 0);
    EXPECT_TRUE(first().at_bound);
    EXPECT_THAT(explain_text(*model_), HasSubstr("nothing limits it beyond PCIe bandwidth"));
}

TEST_F(Explain, NamesTheRankThatIsWaitedFor) {
    const auto three = part_.text("rank 3 of a group"), five = part_.text("rank 5 of a group");
    part_.add(kernel(0, 10));
    wait(10, 20, From::kOutside, five);
    part_.add(kernel(20, 30, 51));
    wait(30, 90, From::kOutside, three);
    part_.add(kernel(90, 100, 52));
    EXPECT_EQ(first().rule, "rank");
    EXPECT_EQ(first().title, "waiting for rank 3 of a group");
    EXPECT_NEAR(first().share, 0.7, 0.001);
    EXPECT_THAT(first().evidence, HasSubstr("that rank may have waited for another one itself"));
}

// Who was the last to come to a barrier unit is not in what its release is called.
TEST_F(Explain, SaysThatABarrierNamesNoLateRank) {
    const auto barrier = part_.text("the barrier of rank 0 of a group"), own = part_.text("gate");
    part_.add(kernel(0, 10));
    wait(10, 90, From::kOutside, barrier);
    part_.add(kernel(90, 100, 51));
    EXPECT_EQ(first().rule, "rank");
    EXPECT_THAT(first().evidence, HasSubstr("which was the last is in the ranks' own profiles"));
    wait(100, 300, From::kOutside, own);
    part_.add(kernel(300, 310, 52));
    EXPECT_EQ(first().title, "waiting for gate");
    EXPECT_THAT(first().evidence, Not(HasSubstr("semaphore's name")));
}

TEST_F(Explain, FindsCardsThatWaitForOthersAndUnequalWork) {
    WorkRecord far = part_.work_of(Operation::kKernel, saxpy_, other_, 0, 90 * kUs, 0);
    far.device = 1;
    part_.add(far);
    part_.add(kernel(0, 10));
    wait(10, 90, From::kStream, 0, other_);
    part_.add(kernel(90, 100, 51));
    EXPECT_EQ(first().rule, "other_card");
    EXPECT_THAT(first().evidence, HasSubstr("waited for other"));
    EXPECT_TRUE(names().contains("uneven_cards"));
}

TEST_F(Explain, FindsTooFewWorkGroups) {
    WorkRecord work = kernel(0, 100, 0, 0.25);
    work.groups = 2;
    part_.add(work);
    EXPECT_EQ(first().rule, "imbalance");
    EXPECT_NEAR(first().share, 0.745, 0.001) << "but for the launch";
    EXPECT_THAT(first().evidence, HasSubstr("saxpy kept 25 % of 8 cores busy with 2 work-groups"));
    EXPECT_THAT(first().advice, HasSubstr("fewer work-groups than cores"));
}

TEST_F(Explain, FindsUnequalWorkGroups) {
    part_.add(kernel(0, 100, 0, 0.4));
    EXPECT_EQ(first().rule, "imbalance");
    EXPECT_THAT(first().advice, HasSubstr("equal length"));
}

// All cores have a group, and most of them pause until the one has come.
TEST_F(Explain, FindsGroupsThatWaitForOthers) {
    counted(0, 100, [](WorkCountersRecord& counters) { counters.pause_ps = counters.busy_ps * 7 / 10; });
    EXPECT_EQ(first().rule, "imbalance");
    EXPECT_NEAR(first().share, 0.7, 0.01);
    EXPECT_EQ(first().title, "cores that paused for others");
    EXPECT_THAT(first().evidence, HasSubstr("cores paused for others that had not come: saxpy 70 %"));
    EXPECT_THAT(first().gap, HasSubstr("70.000 us less"));
    EXPECT_THAT(first().advice, HasSubstr("between two barriers"));
    EXPECT_FALSE(names().contains("polling"));
}

// The only group of its launch looks for a word of the host's, or of another card's.
TEST_F(Explain, FindsAKernelThatLooksForTheHost) {
    WorkRecord work = kernel(0, 100);
    work.groups = 1;
    counted(work, [](WorkCountersRecord& counters) { counters.pause_ps = counters.busy_ps * 7 / 10; });
    EXPECT_EQ(first().rule, "polling");
    EXPECT_NEAR(first().share, 0.7, 0.01);
    EXPECT_EQ(first().title, "kernels that wait for the host or another card");
    EXPECT_THAT(first().evidence, HasSubstr("they paused: saxpy 70 %"));
    EXPECT_THAT(first().advice, Not(HasSubstr("barrier")));
    EXPECT_FALSE(names().contains("imbalance"));
}

TEST_F(Explain, FindsOthersOnTheCardAndQuotas) {
    const auto add = [&] {
        for (std::uint64_t i = 0; i < 5; ++i) {
            WorkRecord part = kernel(i * 20, i * 20 + 5, 7);
            part.outcome = static_cast<std::uint16_t>(i < 4 ? Outcome::kPreempted : Outcome::kDone);
            part_.add(part);
        }
    };
    add();
    EXPECT_EQ(first().rule, "preemption");
    EXPECT_THAT(first().evidence, HasSubstr("interrupted 4 times"));
    part_.sku(0, kQuotaPermille, 250);
    EXPECT_EQ(first().rule, "quota");
    EXPECT_THAT(first().evidence, HasSubstr("may use 25 % of the cores"));
    EXPECT_FALSE(names().contains("preemption"));
}

TEST_F(Explain, AsksForCountersWhereThereAreNone) {
    part_.add(kernel(0, 100));
    EXPECT_EQ(first().rule, "kernels");
    EXPECT_THAT(first().advice, HasSubstr("--counters"));
}

TEST_F(Explain, OfNothingSaysSo) {
    (void)explained();
    EXPECT_THAT(explain_text(*model_), HasSubstr("no card did anything"));
}

TEST_F(Explain, IsWrappedAndToldToPrograms) {
    part_.add(kernel(0, 40));
    part_.copy(copy_, stream_, 40 * kUs, 100 * kUs, 1'000'000, -1, 0);
    (void)explained();
    std::istringstream text(explain_text(*model_));
    for (std::string line; std::getline(text, line);)
        EXPECT_LE(line.size(), 100u) << line;
    const auto json = nlohmann::json::parse(explain_json(*model_));
    const auto& device = json.at("processes").at(0).at("devices").at(0);
    EXPECT_EQ(device.at("verdict"), "limited most by copies beside which no kernel runs");
    EXPECT_EQ(device.at("findings").at(0).at("rule"), "copy_not_overlapped");
    EXPECT_GT(device.at("findings").at(0).at("share"), 0.5);
}

TEST(Rules, HaveNamesOfTheirOwnAndAdvice) {
    std::set<std::string_view> names;
    for (const Rule& rule : rules()) {
        EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
        EXPECT_FALSE(rule.advice.empty()) << rule.name;
        EXPECT_FALSE(rule.title.empty()) << rule.name;
    }
}

}  // namespace
}  // namespace orrery::prof::test
