// Perfetto's messages, read as others read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/proftool/made_profile.h"
#include "tests/unit/proftool/perfetto_reader.h"
#include "tools/prof/show.h"
#include "tools/prof/stream_events.h"

namespace orrery::prof::test {
namespace {

using ::testing::StartsWith;

// A process of one of two machines that number theirs alike: its calls, a range and a mark, a kernel, and a
// copy of another card that a wait for it stands before. With events: the signal that ended the wait, one of
// the host's, and two marks in streams.
std::string work_of_a_machine(std::uint64_t machine, std::uint64_t uid, bool events = false) {
    MadePart part;
    part.head.machine = machine;
    const auto launch = part.text("orrLaunchKernel"), other = part.text("orrMemcpyAsync"),
               kernel = part.text("saxpy"), copy = part.text("copy"), wait = part.text("wait"),
               compute = part.text("compute"), input = part.text("input"), step = part.text("step"),
               io = part.text("io");
    part.card(0, part.text("Orrery 1"), part.text("0000:01:00.0"), 8, uid);
    part.range(Type::kRangeBegin, step, 1'500);
    part.call(launch, 2'000, 2'500);
    CallRecord call{
        {static_cast<std::uint16_t>(Type::kCall), sizeof call, other}, 2'500, 3'000, 8, 3, 101, 0};
    part.add(call);
    part.range(Type::kMark, step, 2'600, io);
    part.range(Type::kRangeEnd, 0, 3'500);
    // The wait begins before what it waits for, and ends with it.
    WorkRecord waited = part.work_of(Operation::kWait, wait, compute, 1'000'000, 9'000'000, 4);
    waited.from = static_cast<std::uint32_t>(From::kStream);
    waited.from_stream = input;
    waited.from_index = 3;
    part.add(waited);
    WorkRecord moved = part.work_of(Operation::kCopy, copy, input, 2'000'000, 9'000'000, 2);
    moved.correlation = 8;
    moved.bytes = 4'096;
    part.add(moved);
    WorkRecord ran = part.work_of(Operation::kKernel, kernel, compute, 9'000'500, 12'345'678, 5);
    ran.groups = 64;
    part.add(ran);
    part.add(part.work_of(Operation::kFill, copy, compute, 12'345'700, 12'345'800, 6));  // below a nanosecond
    const auto bytes = part.text("copy_bytes"), unit = part.text("bytes"), busy = part.text("copy_busy_ps"),
               ps = part.text("ps"), still = part.text("resets");
    part.sample_set(0, 2'000'000, {{12, bytes, unit, 0}, {13, busy, ps, 0}, {26, still, still, 0}});
    part.sample(0, 500'000, {100, 0, 3});  // before the first work
    part.sample(0, 4'000'000, {1'100, 1'500'000, 3});
    part.sample(0, 10'000'000, {4'196, 7'000'000, 3});
    part.sample(0, 11'000'000, {4'196, 7'000'000, 3});  // as before: no point of its own
    part.sample(0, 12'000'000, {4'196, 7'000'000, 3});
    if (events) {
        const auto gate = part.text("gate"), host = part.text("the host"), here = part.text("here");
        SignalRecord signal = signal_of(gate, input, 3, 8'900'000, 2);
        signal.waiters = 1;
        part.add(signal);
        SignalRecord own = signal_of(gate, 0, 5, 9'500'000, 7);
        own.stream_name = host;
        part.add(own);
        part.add(mark_of(here, compute, 5, 9'000'000));
        part.add(mark_of(here, input, 3, 0));  // nothing was before it
    }
    return part.bytes();
}

// Name, begin and end.
using Times = std::multiset<std::tuple<std::string, std::uint64_t, std::uint64_t>>;

class Perfetto : public testing::Test {
  protected:
    void show(const std::string& parts) {
        model_.emplace(made_model(parts));
        trace_ = read_perfetto(perfetto_trace(*model_));
    }
    const PerfettoTrace::Track& track(const PerfettoTrace::Slice& slice) {
        return trace_.tracks[slice.track];
    }
    Times slices(const std::string& category) {
        Times times;
        for (const auto& slice : trace_.slices) {
            if (slice.category == category) times.emplace(slice.name, slice.begin, slice.end);
        }
        return times;
    }
    std::optional<Model> model_;
    PerfettoTrace trace_;
};

TEST_F(Perfetto, HasAllOfTheProfile) {
    // Numbers of cards are their machine's.
    show(work_of_a_machine(1, 77, true) + work_of_a_machine(2, 77, true));
    ASSERT_EQ(model_->profile.machines.size(), 2u);
    Times calls, ranges, marks;
    for (const Activity& activity : model_->processes) {
        for (const CallRecord& call : activity.process->calls)
            calls.emplace(activity.text(call.head.text), call.begin_ns, call.end_ns);
        for (const Span& span : activity.spans)
            ranges.emplace(activity.text(span.text), span.begin_ns, span.end_ns);
        for (const auto& [type, range] : activity.process->ranges) {
            if (type == Type::kMark) marks.emplace(activity.text(range.head.text), range.ns, range.ns);
        }
    }
    EXPECT_EQ(slices("call"), calls);
    EXPECT_EQ(slices("range"), ranges);
    EXPECT_EQ(slices("mark"), marks);
    EXPECT_EQ(calls.size(), 4u);

    // Work: its track has the stream's name below the device's, and its notes the card's own times.
    std::multiset<std::tuple<std::string, std::string, std::uint64_t, std::uint64_t, std::uint64_t>> work,
        read;
    for (const Activity& activity : model_->processes) {
        for (const Work& one : activity.work)
            work.emplace(activity.name(one), activity.text(one.record->stream_name), one.record->begin_ps,
                         one.record->end_ps, one.record->correlation);
    }
    std::set<std::string> devices;
    for (const auto& slice : trace_.slices) {
        if (slice.category != "work") continue;
        read.emplace(slice.name, track(slice).name, slice.notes.at("begin_ps"), slice.notes.at("end_ps"),
                     slice.notes.at("correlation"));
        devices.insert(trace_.tracks[track(slice).parent].name);
    }
    EXPECT_EQ(read, work);
    EXPECT_EQ(work.size(), 8u);
    EXPECT_THAT(devices, testing::ElementsAre("device 0 of process 100 of machine 1, model time",
                                              "device 0 of process 100 of machine 2, model time"));

    // Signals and marks of streams: moments of the same tracks, the host's of one of its own.
    using Moment = std::tuple<std::string, std::string, std::string, std::uint64_t, std::uint64_t,
                              std::uint64_t, std::uint64_t>;
    std::multiset<Moment> moments, told;
    for (const Activity& activity : model_->processes) {
        for (const SignalRecord& one : activity.process->signals)
            moments.emplace("signal", title_of(activity, one), activity.text(one.stream_name),
                            moment_ns(activity, one).value_or(0), one.time_ps, one.value, one.waiters);
        for (const StreamMarkRecord& one : activity.process->stream_marks)
            moments.emplace("stream mark", activity.text(one.head.text), activity.text(one.stream_name),
                            moment_ns(activity, one).value_or(0), one.time_ps, 0, 0);
    }
    for (const auto& slice : trace_.slices) {
        if (slice.category != "signal" && slice.category != "stream mark") continue;
        const auto noted = [&](const char* name) {
            const auto found = slice.notes.find(name);
            return found == slice.notes.end() ? 0 : found->second;
        };
        told.emplace(slice.category, slice.name, track(slice).name, slice.begin, noted("time_ps"),
                     noted("value"), noted("waiters"));
        EXPECT_TRUE(slice.instant);
        EXPECT_EQ(noted("correlation"), slice.category == "signal" ? 7u : 0u);
        EXPECT_TRUE(devices.contains(trace_.tracks[track(slice).parent].name)) << slice.name;
    }
    EXPECT_EQ(told, moments);
    EXPECT_EQ(told.size(), 8u);
    EXPECT_EQ(std::ranges::count_if(told,
                                    [](const Moment& one) {
                                        return std::get<1>(one) == "signal 'gate' 2" &&
                                               std::get<2>(one) == "input";
                                    }),
              2);
    // From the call that asked for it to the signal, and on to the wait that it ended.
    int asked = 0, ended = 0;
    for (const auto& [from, to] : trace_.flows) {
        asked += trace_.slices[from].category == "call" && trace_.slices[to].category == "signal" ? 1 : 0;
        ended += trace_.slices[from].name == "signal 'gate' 2" && trace_.slices[to].name == "wait" ? 1 : 0;
    }
    EXPECT_EQ(asked, 4);
    EXPECT_EQ(ended, 2);
}

TEST_F(Perfetto, KeepsProcessesOfMachinesApart) {
    show(work_of_a_machine(1, 77) + work_of_a_machine(2, 77));  // numbers of cards are their machine's
    std::map<std::string, std::int64_t> pids;
    std::map<std::pair<std::int64_t, std::int64_t>, int> threads;
    for (const auto& [uuid, track] : trace_.tracks) {
        if (track.pid != 0 && track.tid == 0) EXPECT_TRUE(pids.emplace(track.name, track.pid).second);
        if (track.tid != 0) ++threads[{track.pid, track.tid}];
    }
    ASSERT_EQ(pids.size(), 2u);
    EXPECT_EQ(pids["program"], 100) << "of one machine it is the process's own";
    ASSERT_TRUE(pids.contains("process 100 of machine 2: program"));
    EXPECT_GT(pids["process 100 of machine 2: program"], 1 << 22);
    EXPECT_EQ(threads.size(), 4u) << "two of each";
    for (const auto& [thread, count] : threads)
        EXPECT_EQ(count, 1);
    std::set<std::int64_t> gpus;
    for (const auto& stage : trace_.stages)
        gpus.insert(stage.gpu);
    EXPECT_EQ(gpus.size(), 2u);
}

TEST_F(Perfetto, LeadsFromACallToItsWorkAndOnToWhoWaits) {
    show(work_of_a_machine(0, 77));
    std::multiset<std::tuple<std::string, std::string>> arrows;
    for (const auto& [from, to] : trace_.flows) {
        EXPECT_LE(trace_.slices[from].begin, trace_.slices[to].end);
        arrows.emplace(trace_.slices[from].name, trace_.slices[to].name);
    }
    EXPECT_THAT(arrows, testing::UnorderedElementsAre(
                            std::tuple("orrLaunchKernel", "wait"), std::tuple("orrLaunchKernel", "saxpy"),
                            std::tuple("orrLaunchKernel", "copy"), std::tuple("orrMemcpyAsync", "copy"),
                            std::tuple("copy", "wait")));
    show(some_work());
    ASSERT_EQ(trace_.flows.size(), 2u) << "the third call is not in the profile";
    for (const auto& [from, to] : trace_.flows) {
        EXPECT_EQ(trace_.slices[from].name, "orrGraphLaunch");
        EXPECT_EQ(trace_.slices[to].name, "saxpy");
    }
}

TEST_F(Perfetto, LeadsFromTheLastWorkOfAStreamToTheCallThatWaitedForIt) {
    for (const std::uint64_t call_ends : {9'000u, 4'000u}) {
        MadePart part;
        const auto sync = part.text("orrStreamSynchronize"), kernel = part.text("saxpy");
        part.call(sync, 2'000, call_ends, 100);
        part.work(kernel, sync, 5'000'000, 6'000'000, 0);
        WorkRecord last = part.work_of(Operation::kKernel, kernel, sync, 6'000'000, 8'000'000, 1);
        last.correlation = 0;
        last.found_ns = 3'900;
        part.add(last);
        show(part.bytes());
        // It ends at 5.1 us: it would lead back to a call that ended before.
        ASSERT_EQ(trace_.flows.size(), call_ends == 9'000 ? 1u : 0u);
        for (const auto& [from, to] : trace_.flows) {
            EXPECT_EQ(trace_.slices[from].name, "saxpy");
            EXPECT_EQ(trace_.slices[from].end - trace_.slices[from].begin, 2'000u) << "the last";
            EXPECT_EQ(trace_.slices[to].name, "orrStreamSynchronize");
        }
    }
}

// An arrow that went back in time would be none.
TEST_F(Perfetto, LeadsToNoWaitThatEndedBefore) {
    MadePart part;
    const auto name = part.text("x"), one = part.text("one"), other = part.text("other");
    WorkRecord waited = part.work_of(Operation::kWait, name, one, 1'000'000, 2'000'000, 4);
    waited.from = static_cast<std::uint32_t>(From::kStream);
    waited.from_stream = other;
    waited.from_index = 3;
    part.add(waited);
    part.add(part.work_of(Operation::kCopy, name, other, 1'000'000, 2'500'000, 2));
    show(part.bytes());
    EXPECT_TRUE(trace_.flows.empty());
    ASSERT_EQ(trace_.stages.size(), 2u);
}

TEST_F(Perfetto, HasStagesOfEachCard) {
    // Two processes of a machine with the same card, and one that does not say which it has.
    MadePart unknown(7, "other");
    unknown.head.machine = 1;
    unknown.head.begin_ns = 3'000;
    unknown.work(unknown.text("fill"), unknown.text("stream"), 10, 20);
    show(work_of_a_machine(1, 77) + work_of_a_machine(1, 77) + unknown.bytes());
    ASSERT_EQ(trace_.stages.size(), 9u);
    std::map<std::uint64_t, const PerfettoTrace::Stage*> by_id;
    std::multiset<std::tuple<std::string, std::string, std::string>> seen;
    for (const auto& stage : trace_.stages) {
        EXPECT_TRUE(by_id.emplace(stage.id, &stage).second);
        if (stage.gpu == 0) seen.emplace(stage.queue, stage.stage, stage.name);
        EXPECT_EQ(stage.pid, stage.gpu == 0 ? 100 : 7);
        EXPECT_EQ(stage.category, stage.stage == "kernel" ? 2u : 0u);
    }
    const std::string card = ", Orrery 1 0000:01:00.0";
    std::multiset<std::tuple<std::string, std::string, std::string>> expected;
    for (int process = 0; process < 2; ++process) {
        expected.emplace("waits" + card, "wait", "wait");
        expected.emplace("copy engines" + card, "copy", "copy");
        expected.emplace("vector cores" + card, "kernel", "saxpy");
        expected.emplace("copy engines" + card, "fill", "copy");
    }
    EXPECT_EQ(seen, expected);
    const Activity& activity = model_->processes[0];
    const DeviceModel& device = activity.devices[0];
    int waits = 0, kernels = 0;
    for (const auto& stage : trace_.stages) {
        if (stage.stage == "wait") {
            ++waits;
            ASSERT_EQ(stage.waits.size(), 1u);
            EXPECT_EQ(by_id.at(stage.waits[0])->stage, "copy");
            EXPECT_EQ(by_id.at(stage.waits[0])->extra.at("bytes"), "4096");
        }
        if (stage.stage == "kernel") {
            ++kernels;
            EXPECT_EQ(stage.begin, *device.moment_ns(9'000'500));
            EXPECT_EQ(stage.begin + stage.length, *device.moment_ns(12'345'678));
            EXPECT_EQ(stage.extra.at("begin_ps"), "9000500");
            EXPECT_EQ(stage.extra.at("end_ps"), "12345678");
            EXPECT_EQ(stage.extra.at("groups"), "64");
            EXPECT_EQ(stage.extra.at("stream"), "compute");
        }
    }
    EXPECT_EQ(waits, 2);
    EXPECT_EQ(kernels, 2);
    EXPECT_EQ(trace_.stages.back().length, 1u) << "none is of no length";
}

TEST_F(Perfetto, HasRatesOfCounters) {
    show(work_of_a_machine(1, 77));
    std::map<std::string, const PerfettoTrace::Track*> counters;
    for (const auto& [uuid, track] : trace_.tracks) {
        if (!track.counter) continue;
        EXPECT_TRUE(counters.emplace(track.name, &track).second);
        EXPECT_THAT(trace_.tracks[track.parent].name, StartsWith("device 0 of process 100"));
    }
    ASSERT_EQ(counters.size(), 2u) << "one that stands still has no track";
    const DeviceModel& device = model_->processes[0].devices[0];
    const std::vector<std::uint64_t> times = {500'000, 4'000'000, 10'000'000, 12'000'000};
    const std::map<std::string, std::pair<std::string, std::vector<std::uint64_t>>> expected = {
        {"copy_bytes", {"bytes/s", {100, 1'100, 4'196, 4'196}}},
        {"copy_busy_ps", {"at once", {0, 1'500'000, 7'000'000, 7'000'000}}}};
    for (const auto& [name, unit_and_values] : expected) {
        const auto& [unit, values] = unit_and_values;
        ASSERT_TRUE(counters.contains(name));
        const PerfettoTrace::Track& track = *counters[name];
        EXPECT_EQ(track.unit, unit);
        ASSERT_EQ(track.values.size(), times.size());
        std::uint64_t value = values[0];  // each is found again
        for (std::size_t i = 0; i < times.size(); ++i) {
            EXPECT_EQ(value, values[i]) << name;
            EXPECT_EQ(track.values[i].first, device.moment_ns(times[i]));
            const double second = unit == "at once" ? 1 : 1e12;
            if (i + 1 < times.size()) {
                value += static_cast<std::uint64_t>(std::llround(
                    track.values[i].second * static_cast<double>(times[i + 1] - times[i]) / second));
            }
        }
        EXPECT_EQ(track.values.back().second, 0);
    }
    EXPECT_EQ(device.moment_ns(500'000), 1'600u) << "before the first work, which begins at 2100";
}

TEST_F(Perfetto, SlicesOfATrackLieWithinEachOther) {
    MadePart part;
    const auto outer = part.text("outer"), inner = part.text("\xffinner");
    part.range(Type::kRangeBegin, outer, 2'000);
    part.call(inner, 2'000, 2'000);  // of no length, at the same moment
    part.call(inner, 2'000, 2'500);
    part.call(inner, 2'500, 3'000);
    part.range(Type::kRangeEnd, 0, 3'000);
    show(part.bytes() + two_calls() + some_work());
    EXPECT_EQ(std::ranges::count(trace_.slices, false, &PerfettoTrace::Slice::instant), 13);
    EXPECT_EQ(std::ranges::count(trace_.slices, "call", &PerfettoTrace::Slice::category), 6);
    for (const auto& slice : trace_.slices) {
        if (slice.name == "outer") EXPECT_EQ(std::pair(slice.begin, slice.end), std::pair(2'000ul, 3'000ul));
        if (slice.name == "?inner") EXPECT_LE(slice.end, 3'000u);
    }
}

// Of a file of anybody: as long as it is one, so is the trace.
TEST_F(Perfetto, TakesNamesAndNumbersOfAnybody) {
    MadePart part(~std::uint64_t{0}, "\xff\x01");
    const auto name = part.text("\xc3\x28\n");
    part.card(0, name, name, 8, 5);
    part.work(name, name, 0, ~std::uint64_t{0});
    part.sample_set(0, 0, {{~0U, name, name, 0}});
    part.sample(0, 0, {5});
    part.sample(0, 7, {3});  // it began anew
    part.sample(0, 7, {9});
    show(part.bytes());
    ASSERT_EQ(trace_.stages.size(), 1u);
    EXPECT_THAT(trace_.stages[0].queue, StartsWith("other, "));
}

// Also what no trace of these tests has, and what orrery-step alone writes.
TEST(PerfettoMessages, AreThoseThatArePublished) {
    using ::testing::ElementsAre;
    using ::testing::IsEmpty;
    std::ifstream ours(SOURCES "/tools/step/report/perfetto.proto");
    ASSERT_TRUE(ours);
    EXPECT_THAT(wrong_in_proto(ours), IsEmpty());
    std::istringstream others(R"(syntax = "proto2";
        message TrackEvent {
          enum Type {
            TYPE_SLICE_BEGIN = 1;
            TYPE_INSTANT = 4;  // 3
          }
          optional Type type = 9;
          repeated uint64 flow_ids = 47;
          optional string categories = 22;
          optional uint64 track_uuid = 12;
        }
        message Mine {
          optional string name = 1;
        })");
    EXPECT_THAT(wrong_in_proto(others),
                ElementsAre("Type: TYPE_INSTANT = 4;", "TrackEvent: repeated uint64 flow_ids = 47;",
                            "TrackEvent: optional string categories = 22;",
                            "TrackEvent: optional uint64 track_uuid = 12;", "no Mine is published",
                            "Mine: optional string name = 1;"));
}

}  // namespace
}  // namespace orrery::prof::test
