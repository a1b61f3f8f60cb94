// What follows from profiles: how busy, how near to the bound, and why nothing ran.
#include "tools/prof/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/proftool/made_profile.h"
#include "tools/prof/counter_series.h"
#include "tools/prof/queues.h"
#include "tools/prof/show.h"

namespace orrery::prof::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kUs = 1'000'000;

TEST(IntervalSets, AreJoinedSharedAndSubtracted) {
    const Intervals some = union_of({{5, 7}, {1, 3}, {3, 4}, {9, 9}, {6, 8}});
    EXPECT_EQ(some, (Intervals{{1, 4}, {5, 8}}));
    EXPECT_EQ(length_of(some), 6u);
    EXPECT_EQ(both(some, {{0, 2}, {3, 6}, {7, 20}}), (Intervals{{1, 2}, {3, 4}, {5, 6}, {7, 8}}));
    EXPECT_EQ(without(some, {{2, 3}, {5, 6}}), (Intervals{{1, 2}, {3, 4}, {6, 8}}));
    EXPECT_EQ(without({{0, 10}}, some), (Intervals{{0, 1}, {4, 5}, {8, 10}}));
    EXPECT_EQ(without(some, {}), some);
    EXPECT_EQ(without(some, {{0, 100}}), Intervals{});
}

// A card as orrery-1, and a stream on it.
class Analysis : public ::testing::Test {
  protected:
    Analysis() {
        part_.orrery_1(0);
        stream_ = part_.text("main");
        kernel_ = part_.text("saxpy");
        copy_ = part_.text("copy");
        wait_ = part_.text("wait");
    }
    WorkRecord kernel(std::uint64_t begin_us, std::uint64_t end_us, std::uint64_t submitted_ns,
                      std::uint64_t index) {
        WorkRecord work =
            part_.work_of(Operation::kKernel, kernel_, stream_, begin_us * kUs, end_us * kUs, index);
        work.submitted_ns = submitted_ns;
        work.groups = 16;
        work.used_ps = 4 * (end_us - begin_us) * kUs;
        return work;
    }
    // The card's clock had not passed ps at before_ns, and had come to it at after_ns.
    void clock(std::uint64_t before_ns, std::uint64_t us, std::uint64_t after_ns) {
        ClockRecord clock{};
        clock.head = {static_cast<std::uint16_t>(Type::kClock), sizeof clock, 0};
        clock.before_ns = before_ns;
        clock.device_ps = us * kUs;
        clock.after_ns = after_ns;
        part_.add(clock);
    }
    const DeviceSums& sums() {
        model_.emplace(made_model(part_.bytes()));
        all_ = sums_of(model_->processes.at(0));
        return all_.devices.at(0);
    }
    std::uint64_t idle(Idle why) const {
        return all_.devices.at(0).idle_ps[static_cast<std::size_t>(why)] / kUs;
    }

    MadePart part_;
    std::uint32_t stream_ = 0, kernel_ = 0, copy_ = 0, wait_ = 0;
    std::optional<Model> model_;
    Sums all_;
};

// 240,000 bytes pass VRAM three times, at 800 GB/s: 900 ns.
TEST_F(Analysis, HoldsReductionsAgainstABoundOfTheirOwn) {
    part_.copy(copy_, stream_, 0, kUs, 240'000, 0, 0);
    part_.copy(part_.text("reduction"), stream_, kUs, 2 * kUs, 240'000, 0, 0, true);
    const DeviceSums& device = sums();
    ASSERT_EQ(device.copies.size(), 2u);
    EXPECT_EQ(device.copies[0].name(), "inside the device");
    EXPECT_DOUBLE_EQ(device.copies[0].best_ps, 600'000);
    EXPECT_EQ(device.copies[1].name(), "reduction inside the device");
    EXPECT_DOUBLE_EQ(device.copies[1].best_ps, 900'000);
}

TEST_F(Analysis, AddsUpEnginesAndWhatIsBesideEachOther) {
    part_.add(kernel(0, 10, 1'000, 0));
    part_.add(kernel(5, 20, 1'000, 1));
    part_.copy(copy_, stream_, 15 * kUs, 30 * kUs, 240'000, -1, 0);
    part_.copy(copy_, stream_, 38 * kUs, 40 * kUs, 64'000, 0, -1);
    const DeviceSums& device = sums();
    EXPECT_EQ(device.span_ps, 40 * kUs);
    EXPECT_EQ(device.vector_ps(), 20 * kUs) << "two at a time count once";
    EXPECT_EQ(device.copy_ps(), 17 * kUs);
    EXPECT_EQ(device.overlap_ps, 5 * kUs);
    EXPECT_EQ(device.busy_ps(), 32 * kUs);
    ASSERT_EQ(device.kernels.size(), 1u);
    EXPECT_EQ(device.kernels[0].totals.count, 2u);
    EXPECT_EQ(device.kernels[0].totals.total_ps, 25 * kUs);
    EXPECT_DOUBLE_EQ(device.kernels[0].core_use(8), 0.5);
    ASSERT_EQ(device.copies.size(), 2u);
    EXPECT_EQ(device.copies[0].name(), "host to device");
    EXPECT_DOUBLE_EQ(device.copies[0].gb_per_s(), 16);
    EXPECT_EQ(device.copies[0].bound, 32);
    EXPECT_DOUBLE_EQ(device.copies[1].best_ps, 2e6);
}

TEST_F(Analysis, FindsWhyNothingRan) {
    const auto other = part_.text("other"), sync = part_.text("orrStreamSynchronize");
    part_.add(kernel(0, 10, 1'000, 0));
    part_.add(kernel(11, 20, 1'100, 1));  // it was there: 1 us of launching
    part_.call(sync, 1'200, 5'000);
    part_.add(kernel(25, 30, 6'000, 2));  // the host had waited: 5 us
    const auto wait = [&](std::uint64_t end_us, std::uint64_t index, From from, std::uint64_t stream = 0) {
        WorkRecord work = part_.work_of(Operation::kWait, wait_, stream_, 30 * kUs, end_us * kUs, index);
        work.from = static_cast<std::uint32_t>(from);
        work.from_stream = stream;
        if (from == From::kOutside) work.from_name = other;
        part_.add(work);
    };
    wait(39, 3, From::kOutside);
    part_.add(kernel(40, 50, 6'100, 4));  // 10 us
    wait(57, 5, From::kHost);
    part_.add(kernel(57, 60, 6'200, 6));  // 7 us
    WorkRecord far = part_.work_of(Operation::kKernel, kernel_, other, 0, 80 * kUs);
    far.device = 1;
    part_.add(far);
    wait(81, 7, From::kStream, other);
    part_.add(kernel(81, 90, 6'300, 8));     // 21 us
    wait(91, 9, From::kStream, stream_);     // of this card: only the signal was on its way
    part_.add(kernel(92, 95, 6'400, 10));    // 2 us
    part_.add(kernel(195, 200, 6'401, 11));  // 100 us: it was there, and did not begin
    (void)sums();
    EXPECT_EQ(idle(Idle::kLaunch), 3u);
    EXPECT_EQ(idle(Idle::kHost), 5u);
    EXPECT_EQ(idle(Idle::kOutside), 10u);
    EXPECT_EQ(idle(Idle::kHostWait), 7u);
    EXPECT_EQ(idle(Idle::kOtherCard), 21u);
    EXPECT_EQ(idle(Idle::kHeldBack), 100u);
    const DeviceSums& device = all_.devices.at(0);
    EXPECT_EQ(device.gaps.at(0).time, (Interval{95 * kUs, 195 * kUs}));
    EXPECT_EQ(device.idle_who.at("other"), 10 * kUs);
    EXPECT_EQ(model_->processes[0].name(model_->processes[0].work[device.gaps[0].ended_by]), "saxpy");
}

TEST_F(Analysis, TakesPartsOfAKernelAsOneRun) {
    for (const std::uint64_t begin : {0u, 20u}) {
        WorkRecord part = kernel(begin, begin + 10, 1'000, 3);
        part.outcome = static_cast<std::uint16_t>(begin == 0 ? Outcome::kPreempted : Outcome::kDone);
        part_.add(part);
    }
    const DeviceSums& device = sums();
    EXPECT_EQ(device.kernels.at(0).totals.count, 1u);
    EXPECT_EQ(device.kernels[0].totals.longest_ps, 20 * kUs);
    EXPECT_EQ(device.preemptions, 1u);
    EXPECT_EQ(device.preempted_ps, 10 * kUs);
    EXPECT_EQ(idle(Idle::kHeldBack), 10u);
}

TEST_F(Analysis, PlacesKernelsBelowTheirRoof) {
    const auto counted = [&](std::uint64_t begin, std::uint32_t name, std::uint64_t flops,
                             std::uint64_t bytes) {
        WorkCountersRecord counters{};
        counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
        counters.stream = stream_;
        counters.begin_ps = begin * kUs;
        counters.flops_f32 = flops;
        counters.vram_read = bytes;
        part_.add(counters);
        WorkRecord work = kernel(begin, begin + 10, 1'000, 0);
        work.head.text = name;
        part_.add(work);
    };
    counted(0, kernel_, 1'000'000, 4'000'000);              // 100 GFLOP/s, 400 GB/s of 800
    counted(20, part_.text("gemm"), 9'216'000, 1'000'000);  // 921.6 GFLOP/s of 1024
    const DeviceSums& device = sums();
    const Roofline& gemm = device.kernels.at(0).roofline;
    const Roofline& saxpy = device.kernels.at(1).roofline;
    EXPECT_DOUBLE_EQ(saxpy.intensity(), 0.25);
    EXPECT_DOUBLE_EQ(saxpy.gflops(), 100);
    EXPECT_DOUBLE_EQ(saxpy.attainable_gflops(), 200);
    EXPECT_DOUBLE_EQ(saxpy.share(), 0.5);
    EXPECT_TRUE(saxpy.by_memory());
    EXPECT_DOUBLE_EQ(gemm.share(), 0.9);
    EXPECT_FALSE(gemm.by_memory());
    EXPECT_THAT(report_text(*model_, 10), HasSubstr("90.0 %  of the peak"));
    EXPECT_THAT(report_text(*model_, 10), HasSubstr("50.0 %  of VRAM's bandwidth"));
}

// What no card had to do by the host's clock.
TEST_F(Analysis, CountsTheTimeInWhichNothingWasSubmitted) {
    const auto sync = part_.text("orrDeviceSynchronize");
    part_.add(kernel(0, 1, 1'000, 0));
    part_.call(sync, 1'100, 1'500);
    part_.add(kernel(2, 3, 3'500, 1));
    part_.call(sync, 3'600, 4'000);
    (void)sums();
    EXPECT_EQ(all_.working_ns, 3'000u);
    EXPECT_EQ(all_.nothing_submitted_ns, 2'000u);
}

TEST_F(Analysis, IsShownAndToldToPrograms) {
    const auto launch = part_.text("orrLaunchKernel");
    part_.call(launch, 2'000, 2'500);
    part_.add(kernel(0, 10, 1'000, 0));
    part_.copy(copy_, stream_, 15 * kUs, 30 * kUs, 240'000, -1, 0);
    part_.add(LinkRecord{
        {static_cast<std::uint16_t>(Type::kLink), sizeof(LinkRecord), 0}, 0, 2, 78, -1, 0, 4, 2, 200, 500});
    part_.memory(0, 10, 1 << 20, 1 << 20);
    (void)sums();
    const std::string text = report_text(*model_, 10);
    EXPECT_THAT(text, HasSubstr("device 0: Orrery 1, 0000:01:00.0, 30.000 us of model time"));
    EXPECT_THAT(text,
                HasSubstr("kernels  [########................]  33.3 %  10.000 us  50.0 % of 8 vector"));
    EXPECT_THAT(text, HasSubstr("memory: 1.0 MiB of 256.0 MiB at most"));
    EXPECT_THAT(text,
                HasSubstr("host to device      1  234.4 KiB  15.000 us  15.000 us    16       32  50.0 %"));
    EXPECT_THAT(text, HasSubstr("at 10.000 us  5.000 us  launch  copy            orrLaunchKernel"));
    EXPECT_THAT(text, HasSubstr("port 2  node 0x4e    25  500.000 ns  degraded"));
    EXPECT_THAT(text, HasSubstr("record --counters"));
    const auto json = nlohmann::json::parse(report_json(*model_, 10));
    const auto& device = json.at("processes").at(0).at("devices").at(0);
    EXPECT_EQ(device.at("span_ps"), 30 * kUs);
    EXPECT_EQ(device.at("kernels").at(0).at("name"), "saxpy");
    EXPECT_EQ(device.at("copies").at(0).at("bound_gb_per_s"), 32);
    EXPECT_EQ(device.at("gaps").at(0).at("call"), "orrLaunchKernel");
    EXPECT_EQ(device.at("bounds").at("gflops_f32"), 1'024);
}

TEST(Report, OfHostileNamesIsPlain) {
    MadePart part(5, "a\x1b[31mb");
    const auto bad = part.text("\x1b]0;title\x07\xff");
    part.call(bad, 1, 2);
    part.work(bad, bad, 10, 20);
    const Model model = made_model(part.bytes());
    EXPECT_THAT(report_text(model, 10), Not(HasSubstr("\x1b")));
    EXPECT_EQ(nlohmann::json::parse(report_json(model, 10)).at("processes").size(), 1u);
}

TEST(Report, OfNothingSaysSo) {
    EXPECT_THAT(report_text(made_model(MadePart().bytes()), 10), HasSubstr("nothing was recorded"));
}

// From the end of what was before in the stream, by what it was for; and how much was there.
TEST_F(Analysis, QueuesSayWhatBecameOfWorkUntilItBegan) {
    part_.add(kernel(10, 20, 2'000, 1));
    part_.add(kernel(21, 30, 2'100, 2));
    part_.add(kernel(33, 40, 2'200, 3));
    part_.add(kernel(90, 95, 2'300, 4));  // it was there
    part_.call(part_.text("orrStreamSynchronize"), 2'400, 3'000);
    part_.add(kernel(97, 99, 3'100, 5));
    WorkRecord wait = part_.work_of(Operation::kWait, wait_, stream_, 99 * kUs, 120 * kUs, 6);
    wait.submitted_ns = 3'150;
    part_.add(wait);
    part_.add(kernel(121, 130, 3'150, 7));
    WorkRecord beside = kernel(125, 126, 3'160, 8);  // while the one before still runs
    part_.add(beside);
    clock(2'310, 15, 2'320);
    clock(2'900, 95, 3'000);
    clock(3'200, 110, 3'300);
    clock(5'000, 200, 6'000);
    const Model model = made_model(part_.bytes());
    const Activity& activity = model.processes.at(0);
    const std::vector<QueueSums> all = queue_sums(activity, activity.devices.at(0));
    ASSERT_EQ(all.size(), 1u);
    const QueueSums& queue = all[0];
    EXPECT_EQ(queue.work, 7u);
    EXPECT_EQ(queue.launches.count, 3u);
    EXPECT_EQ(queue.launches.total_ps, 5 * kUs);
    EXPECT_EQ(queue.launches.longest_ps, 3 * kUs);
    EXPECT_EQ(queue.held_back.count, 1u);
    EXPECT_EQ(queue.held_back.total_ps, 50 * kUs);
    EXPECT_EQ(queue.late.count, 1u);
    EXPECT_EQ(queue.late.total_ps, 2 * kUs);
    EXPECT_EQ(queue.waits.total_ps, 21 * kUs);
    EXPECT_EQ(queue.unknown.count, 0u);
    // Each may have begun when it was looked last before it, or first behind it.
    ASSERT_TRUE(queue.deepest);
    EXPECT_EQ(queue.deepest->least, 3u);
    EXPECT_EQ(queue.deepest->most, 4u);
    const std::string text = report_text(model, 10);
    EXPECT_THAT(text, ::testing::ContainsRegex(
                          "queues +work +launch, mean +longest +held back +late +not known +waits"));
    EXPECT_THAT(text, ::testing::ContainsRegex(
                          "main +7 +1.667 us +3.000 us +50.000 us +2.000 us +21.000 us +3 to 4\n"));
    const auto json = nlohmann::json::parse(report_json(model, 10))["processes"][0]["devices"][0];
    EXPECT_EQ(json["queues"][0]["held_back"]["total_ps"], 50 * kUs);
    EXPECT_EQ(json["queues"][0]["late"]["total_ps"], 2 * kUs);
    EXPECT_EQ(json["queues"][0]["unknown"]["count"], 0);
    EXPECT_EQ(json["queues"][0]["deepest"]["most"], 4);
    EXPECT_FALSE(json.contains("queue_counters"));
}

// What was submitted before the end of what was before it was there, however long after that.
TEST_F(Analysis, QueuesHoldBackWhatWasThere) {
    const std::uint32_t other = part_.text("other");
    part_.add(kernel(0, 1'000, 1'000, 1));
    part_.add(kernel(1'100, 1'200, 201'000, 2));
    WorkRecord beside = kernel(1'000, 1'100, 1'500, 1);
    beside.stream = beside.stream_name = other;
    part_.add(beside);
    clock(300'000, 990, 310'000);
    clock(900'000, 1'300, 910'000);
    const Model model = made_model(part_.bytes());
    const Activity& activity = model.processes.at(0);
    const QueueSums queue = queue_sums(activity, activity.devices.at(0)).at(0);
    EXPECT_EQ(queue.held_back.count, 1u);
    EXPECT_EQ(queue.held_back.total_ps, 100 * kUs);
    EXPECT_EQ(queue.late.count, 0u);
}

// Late is what the host was late by, and not what others took behind that.
TEST_F(Analysis, QueuesAreLateUntilWorkWasThere) {
    const std::uint32_t other = part_.text("other");
    part_.add(kernel(0, 1'000, 1'000, 1));
    part_.add(kernel(1'500, 1'600, 4'000, 2));
    WorkRecord beside = kernel(1'001, 1'500, 1'500, 1);
    beside.stream = beside.stream_name = other;
    part_.add(beside);
    clock(2'000, 1'000, 3'000);
    clock(5'000, 1'010, 5'100);
    clock(9'000, 1'700, 9'100);
    const Model model = made_model(part_.bytes());
    const Activity& activity = model.processes.at(0);
    const QueueSums queue = queue_sums(activity, activity.devices.at(0)).at(0);
    EXPECT_EQ(queue.late.count, 1u);
    EXPECT_EQ(queue.late.total_ps, 10 * kUs);
    EXPECT_EQ(queue.held_back.total_ps, 490 * kUs);
    EXPECT_EQ(queue.launches.count + queue.unknown.count, 0u);
}

// Submitted between the moments that the end of the work before it was at by the clock: nobody knows.
TEST_F(Analysis, QueuesSayWhatTheClockDoesNotTell) {
    part_.add(kernel(0, 1'000, 1'000, 1));
    part_.add(kernel(1'002, 1'100, 2'500, 2));
    part_.add(kernel(1'150, 1'200, 3'500, 3));
    clock(2'000, 1'000, 2'100);
    clock(2'900, 1'010, 3'000);
    clock(3'400, 1'050, 3'450);
    clock(3'600, 1'120, 3'700);
    clock(9'000, 1'300, 9'100);
    const Model known = made_model(part_.bytes());
    const auto of = [](const Model& model) {
        return queue_sums(model.processes.at(0), model.processes[0].devices.at(0)).at(0);
    };
    // The one at 2'500 came behind 2'100; the other within 3'400 to 3'700, and 30 us before it began.
    EXPECT_EQ(of(known).late.total_ps, 2 * kUs);
    EXPECT_EQ(of(known).unknown.count, 1u);
    EXPECT_EQ(of(known).unknown.total_ps, 20 * kUs);
    EXPECT_EQ(of(known).held_back.total_ps, 30 * kUs);
    EXPECT_THAT(report_text(known, 10),
                ::testing::ContainsRegex("main +3 +30.000 us +2.000 us +20.000 us +"));
    EXPECT_EQ(nlohmann::json::parse(
                  report_json(known, 10))["processes"][0]["devices"][0]["queues"][0]["unknown"]["total_ps"],
              20 * kUs);
    MadePart without;
    without.orrery_1(0);
    const std::uint32_t stream = without.text("main");
    for (const std::uint64_t begin : {0u, 20u}) {
        WorkRecord work =
            without.work_of(Operation::kKernel, stream, stream, begin * kUs, begin * kUs + kUs, begin);
        without.add(work);
    }
    const Model unclocked = made_model(without.bytes());
    EXPECT_EQ(of(unclocked).unknown.total_ps, 19 * kUs);
    EXPECT_EQ(of(unclocked).late.count + of(unclocked).launches.count + of(unclocked).held_back.count, 0u);
}

// That a thread has waited for another stream says nothing of this one.
TEST_F(Analysis, QueuesLaunchWhatWasThereWhoeverWaitedForWhatElse) {
    part_.add(kernel(0, 1'000, 1'000, 1));
    part_.call(part_.text("orrStreamSynchronize"), 1'100, 100'000, 101);
    part_.add(kernel(1'001, 1'200, 201'000, 2));
    clock(300'000, 990, 310'000);
    clock(900'000, 1'300, 910'000);
    const Model model = made_model(part_.bytes());
    const Activity& activity = model.processes.at(0);
    const QueueSums queue = queue_sums(activity, activity.devices.at(0)).at(0);
    EXPECT_EQ(queue.launches.count, 1u);
    EXPECT_EQ(queue.launches.total_ps, kUs);
    EXPECT_EQ(queue.late.count, 0u);
}

// Without clocks nobody knows how much was there when; and what the card counted of all queues stands beside.
TEST_F(Analysis, QueuesHaveTheCardsOwnCountersBeside) {
    part_.add(kernel(10, 20, 2'000, 1));
    std::vector<SampledCounter> counters;
    for (const char* name : {"ring_wait_ps", "ring_packets", "doorbell_wait_ps", "doorbell_pops"})
        counters.push_back({static_cast<std::uint32_t>(counters.size()), part_.text(name), stream_, 0});
    part_.sample_set(0, kUs, counters);
    part_.sample(0, 10 * kUs, {100, 10, 5, 1});
    part_.sample(0, 20 * kUs, {100 + 20 * kUs, 20, 5 + 6 * kUs, 3});
    const Model model = made_model(part_.bytes());
    const Activity& activity = model.processes.at(0);
    EXPECT_FALSE(queue_sums(activity, activity.devices.at(0)).at(0).deepest);
    const auto counts = queue_counts(activity, activity.devices.at(0));
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->packets, 10u);
    EXPECT_DOUBLE_EQ(counts->depth, 2);
    EXPECT_DOUBLE_EQ(counts->latency_us, 3 + 2);
    EXPECT_THAT(report_text(model, 10), HasSubstr("10 packets of any kind, 2"));
}

// A counter that is there twice does not make up for one that is not.
TEST_F(Analysis, QueuesHaveNoCountersOfASetWithoutOne) {
    part_.add(kernel(10, 20, 2'000, 1));
    std::vector<SampledCounter> counters;
    for (const char* name : {"ring_wait_ps", "ring_packets", "doorbell_wait_ps", "ring_packets"})
        counters.push_back({static_cast<std::uint32_t>(counters.size()), part_.text(name), stream_, 0});
    part_.sample_set(0, kUs, counters);
    part_.sample(0, 10 * kUs, {100, 10, 5, 10});
    part_.sample(0, 20 * kUs, {100 + 20 * kUs, 20, 5 + 6 * kUs, 20});
    const Model model = made_model(part_.bytes());
    const Activity& activity = model.processes.at(0);
    EXPECT_FALSE(queue_counts(activity, activity.devices.at(0)));
    EXPECT_FALSE(sampled_ups(*activity.process, 0, std::vector<std::string_view>{"doorbell_pops"}));
    EXPECT_EQ(sampled_ups(*activity.process, 0, std::vector<std::string_view>{"ring_packets"})->values,
              std::vector<std::uint64_t>{10});
}

// The parts of a kernel that was preempted are one, also if others of the stream begin between them.
TEST_F(Analysis, QueuesTakePartsOfAKernelAsOne) {
    for (const std::uint64_t begin : {0u, 20u, 30u}) {
        WorkRecord part = kernel(begin, begin + 10, 1'000, 3);
        part.outcome = static_cast<std::uint16_t>(begin < 30 ? Outcome::kPreempted : Outcome::kDone);
        part_.add(part);
    }
    part_.add(kernel(12, 15, 1'000, 4));
    clock(2'000, 0, 2'100);
    clock(9'000, 100, 9'100);
    const Model model = made_model(part_.bytes());
    const Activity& activity = model.processes.at(0);
    const QueueSums queue = queue_sums(activity, activity.devices.at(0)).at(0);
    EXPECT_EQ(queue.work, 2u);
    EXPECT_EQ(queue.held_back.count, 2u);
    EXPECT_EQ(queue.held_back.total_ps, 5 * kUs);
    EXPECT_EQ(queue.launches.total_ps, 2 * kUs);
    ASSERT_TRUE(queue.deepest);
    EXPECT_EQ(queue.deepest->most, 2u);
}

}  // namespace
}  // namespace orrery::prof::test
