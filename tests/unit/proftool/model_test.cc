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

// What its last work of each of these streams was found by, by the text of the call.
std::map<std::uint64_t, std::string> finders(const MadePart& part) {
    const Model model = made_model(part.bytes());
    const Activity& activity = model.processes.at(0);
    std::map<std::uint64_t, std::string> found;
    for (const Work& work : activity.work) {
        if (work.found_by == kNone) continue;
        const CallRecord& call = activity.process->calls.at(work.found_by);
        EXPECT_TRUE(found.emplace(work.record->stream, activity.text(call.head.text)).second);
        EXPECT_EQ(call.thread, work.record->thread);
        EXPECT_EQ(work.record->index, 1u) << "the last";
    }
    return found;
}
class Finders : public ::testing::Test {
  protected:
    // Two pieces of work of a stream. All of them together take the card no more than a nanosecond.
    void work(std::uint64_t stream, std::uint32_t thread, std::uint64_t found_ns,
              std::uint64_t correlation = 0) {
        for (std::uint64_t index = 0; index < 2; ++index) {
            WorkRecord record = part_.work_of(Operation::kKernel, name_, name_, 20 * stream + index,
                                              20 * stream + index + 1, index);
            record.stream = stream;
            record.thread = thread;
            record.found_ns = found_ns;
            record.correlation = correlation;
            part_.add(record);
        }
    }
    MadePart part_;
    const std::uint32_t name_ = part_.text("saxpy"), sync_ = part_.text("orrStreamSynchronize"),
                        device_sync_ = part_.text("orrDeviceSynchronize"),
                        wait_ = part_.text("orrSemaphoreWait"), launch_ = part_.text("orrLaunchKernel"),
                        copy_ = part_.text("orrMemcpy");
};

TEST_F(Finders, AreCallsOfTheThreadThatHadSubmittedTheWork) {
    part_.call(sync_, 3'000, 5'000, 100);
    part_.call(wait_, 2'500, 60'000, 101);
    part_.call(launch_, 2'000, 2'500, 103);
    work(1, 100, 4'900);  // two threads wait: whose it was
    work(2, 102, 5'900);  // one does, and it is another's
    work(3, 103, 2'400);  // who does not wait finds nothing
    work(4, 100, 0);
    work(5, 100, 7'000);  // no more
    EXPECT_EQ(finders(part_), (std::map<std::uint64_t, std::string>{{1, "orrStreamSynchronize"}}));
}

TEST_F(Finders, OfOneStreamLeaveOthersOut) {
    part_.call(sync_, 3'000, 5'000);
    work(1, 100, 4'000);  // a piece of it is passed on meanwhile
    work(2, 100, 4'900);
    part_.call(device_sync_, 6'000, 8'000);
    work(3, 100, 7'000);
    work(4, 100, 7'900);
    EXPECT_EQ(finders(part_),
              (std::map<std::uint64_t, std::string>{
                  {2, "orrStreamSynchronize"}, {3, "orrDeviceSynchronize"}, {4, "orrDeviceSynchronize"}}));
}

TEST_F(Finders, ThatDidWorkWaitedForTheStreamOfThat) {
    part_.call(copy_, 3'000, 5'000);
    work(1, 100, 4'800);
    work(2, 100, 4'900, 7);  // the call's own
    EXPECT_EQ(finders(part_), (std::map<std::uint64_t, std::string>{{2, "orrMemcpy"}}));
}

// Clocks are known to some microseconds: all that shows profiles has the same arrows.
TEST_F(Finders, EndBehindTheWorkWhereverThatStands) {
    part_.call(device_sync_, 3'000, 5'000);
    work(1, 100, 4'900);
    work(150'000, 100, 4'950);  // its end stands 3 us behind its submission
    EXPECT_EQ(finders(part_), (std::map<std::uint64_t, std::string>{{1, "orrDeviceSynchronize"}}));
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
