// What a profile is made into: calls with their work, waits with their causes, cards with their bounds.
#include "tools/prof/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/proftool/made_profile.h"

namespace orrery::prof::test {
namespace {

TEST(Model, LeadsFromWorkToItsCallAndItsCounters) {
    MadePart part;
    const auto launch = part.text("orrLaunchKernel"), kernel = part.text("saxpy"), stream = part.text("s");
    part.work(kernel, stream, 10, 20);
    part.work(kernel, stream, 30, 40, 99);
    part.call(launch, 2'000, 2'500);
    WorkCountersRecord counters{};
    counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
    counters.stream = stream;
    counters.begin_ps = 30;
    counters.instructions = 5;
    part.add(counters);
    const Model model = made_model(part.bytes());
    const Activity& activity = model.processes.at(0);
    ASSERT_EQ(activity.work.size(), 2u);
    EXPECT_EQ(activity.work[0].call, 0u);
    EXPECT_EQ(activity.work[1].call, kNone);
    EXPECT_EQ(activity.work[0].counters, nullptr);
    ASSERT_NE(activity.work[1].counters, nullptr);
    EXPECT_EQ(activity.work[1].counters->instructions, 5u);
    EXPECT_EQ(activity.threads, (std::vector<std::uint32_t>{100}));
    EXPECT_EQ(activity.name(activity.work[0]), "saxpy");
}

TEST(Model, LeadsFromTheLastWorkOfAStreamToTheCallThatFoundItDone) {
    MadePart part;
    const auto sync = part.text("orrStreamSynchronize"), launch = part.text("orrLaunchKernel"),
               kernel = part.text("saxpy");
    part.call(sync, 3'000, 5'000, 100);
    part.call(sync, 3'500, 6'000, 101);
    part.call(launch, 2'000, 2'500, 103);
    const auto add = [&](std::uint64_t stream, std::uint64_t index, std::uint32_t thread, std::uint64_t ns) {
        WorkRecord work = part.work_of(Operation::kKernel, kernel, sync, 10 * stream + index,
                                       10 * stream + index + 1, index);
        work.stream = stream;
        work.thread = thread;
        work.found_ns = ns;
        part.add(work);
    };
    add(1, 0, 100, 4'900);
    add(1, 1, 100, 4'900);  // two threads wait: whose it was
    add(2, 0, 102, 5'900);  // one does
    add(3, 0, 102, 4'000);  // two do, and it was nobody's
    add(4, 0, 103, 2'400);  // who does not wait finds nothing
    add(5, 0, 100, 0);
    add(6, 0, 100, 7'000);
    const Model model = made_model(part.bytes());
    std::vector<std::uint32_t> found;
    for (const Work& work : model.processes.at(0).work)
        found.push_back(work.found_by);
    EXPECT_EQ(found, (std::vector<std::uint32_t>{kNone, 0, 1, kNone, kNone, kNone, kNone}));
}

TEST(Model, LeadsFromAWaitToTheWorkBeforeItsSignal) {
    MadePart part;
    const auto copy = part.text("copy"), one = part.text("one"), other = part.text("other");
    for (std::uint64_t index = 0; index < 6; index += 2)
        part.add(part.work_of(Operation::kCopy, copy, one, 100 + index * 10, 110 + index * 10, index));
    const auto wait = [&](std::uint64_t behind, std::uint64_t stream, From from = From::kStream) {
        WorkRecord record = part.work_of(Operation::kWait, copy, other, behind, behind + 1, behind);
        record.from = static_cast<std::uint32_t>(from);
        record.from_stream = stream;
        record.from_index = behind;
        part.add(record);
    };
    wait(3, one);
    wait(5, one);
    wait(0, one);
    wait(1, 99);
    wait(2, one, From::kHost);
    const Model model = made_model(part.bytes());
    std::map<std::uint64_t, std::uint64_t> causes;
    for (const Work& work : model.processes[0].work) {
        if (work.cause != kNone)
            causes[work.record->index] = model.processes[0].work[work.cause].record->index;
    }
    EXPECT_EQ(causes, (std::map<std::uint64_t, std::uint64_t>{{3, 2}, {5, 4}}));
}

TEST(Model, KnowsWhatACardCouldDo) {
    MadePart part;
    part.orrery_1(2);
    LinkRecord link{
        {static_cast<std::uint16_t>(Type::kLink), sizeof(LinkRecord), 0}, 2, 0, 78, 1, 2, 4, 2, 200, 500};
    part.add(link);
    part.memory(2, 10, 100, 100);
    part.memory(2, 20, 50, 150);
    part.memory(2, 30, -100, 50);
    part.memory(-1, 40, 7, 7);
    const Model model = made_model(part.bytes());
    ASSERT_EQ(model.processes[0].devices.size(), 1u);
    const DeviceModel& device = model.processes[0].devices[0];
    EXPECT_EQ(device.number, 2u);
    EXPECT_EQ(device.bounds.vram_gb_per_s, 800);
    EXPECT_EQ(device.bounds.gflops_f32, 1'024) << "8 cores, 64 lanes of them, a multiply-add each";
    EXPECT_EQ(device.bounds.gflops_f64, 512);
    EXPECT_EQ(device.memory_peak, 150u);
    EXPECT_EQ(device.memory_peak_ns, 20u);
    EXPECT_EQ(model.processes[0].host_memory_peak, 7u);
    WorkRecord copy = part.work_of(Operation::kCopy, 1, 1, 0, 1);
    copy.device = 2;
    const auto bound = [&](std::int32_t source, std::int32_t destination, bool reduces = false) {
        copy.source = source;
        copy.destination = destination;
        copy.reduces = reduces ? 1 : 0;
        return device.copy_bound({.record = &copy});
    };
    EXPECT_EQ(bound(-1, 2), 32);
    EXPECT_EQ(bound(2, 2), 400);
    EXPECT_EQ(bound(2, 1), 25) << "that link has lost lanes";
    EXPECT_EQ(bound(3, 2), 50);
    EXPECT_EQ(bound(-3, 2), std::nullopt);
    constexpr bool kReduces = true;
    EXPECT_DOUBLE_EQ(bound(2, 2, kReduces).value_or(0), 800.0 / 3) << "it reads both, and writes";
    EXPECT_EQ(bound(-1, 2, kReduces), 32) << "its destination is read beside PCIe";
    EXPECT_EQ(model.processes[0].device(1), nullptr);
}

// They have their copies' places, and pass VRAM more often.
TEST(Model, TellsReductionsFromCopies) {
    MadePart part;
    const auto copy = part.text("copy"), reduction = part.text("reduction"), stream = part.text("s");
    part.orrery_1(0);
    part.copy(copy, stream, 0, 10, 64, 0, 0);
    part.copy(copy, stream, 10, 20, 64, 0, 0, true);
    part.copy(reduction, stream, 20, 30, 64, 0, 0);
    WorkRecord old = part.work_of(Operation::kCopy, reduction, stream, 30, 40, 2);
    part.add_first(old, offsetof(WorkRecord, reduces));                    // of 1.5
    old = part.work_of(Operation::kKernel, reduction, stream, 40, 50, 3);  // a program may call it so
    part.add_first(old, offsetof(WorkRecord, reduces));
    const Model model = made_model(part.bytes());
    const auto& work = model.processes[0].work;
    ASSERT_EQ(work.size(), 5u);
    EXPECT_FALSE(work[0].reduces());
    EXPECT_TRUE(work[1].reduces()) << "whatever its name is";
    EXPECT_FALSE(work[2].reduces());
    EXPECT_TRUE(work[3].reduces());
    EXPECT_FALSE(work[4].reduces());
    EXPECT_EQ(vram_passes(Direction::kInside, false), 2u);
    EXPECT_EQ(vram_passes(Direction::kInside, true), 3u);
    EXPECT_EQ(vram_passes(Direction::kFromPeer, true), 2u);
    EXPECT_EQ(vram_passes(Direction::kToHost, true), 1u) << "what it combines with is the host's";
}

// Of format 1.0, which had no more.
TEST(Model, TakesWorkOfOldProfiles) {
    MadePart part;
    const auto name = part.text("copy");
    WorkRecord record = part.work_of(Operation::kCopy, name, name, 10, 20);
    record.head.bytes = kWorkBytes;
    struct {
        std::byte bytes[kWorkBytes];
    } old{};
    std::memcpy(&old, &record, sizeof old);
    part.add(old);
    const Model model = made_model(part.bytes());
    ASSERT_EQ(model.processes[0].work.size(), 1u);
    EXPECT_EQ(direction_of(*model.processes[0].work[0].record), Direction::kUnknown);
    EXPECT_EQ(model.processes[0].devices.at(0).bounds.vram_gb_per_s, std::nullopt);
}

}  // namespace
}  // namespace orrery::prof::test
