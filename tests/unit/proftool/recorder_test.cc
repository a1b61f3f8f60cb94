// What the recorder writes down of cards that do nothing for real: when their work was, by the host's clock.
#include <gtest/gtest.h>
#include <orrery/prof.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/unit/proftool/made_profile.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "tools/prof/clocks.h"
#include "umd/prof/profiler.h"
#include "umd/runtime/clock.h"

extern "C" const orrProfTool orrery_prof_tool;

namespace orrery::prof::test {
namespace {

namespace fs = std::filesystem;

class Recorder : public ::testing::Test {
  protected:
    Recorder() : folder_(fs::temp_directory_path() / ("orrery-recorder-" + std::to_string(::getpid()))) {
        fs::create_directories(folder_);
        ::setenv(kFolderVariable, folder_.c_str(), 1);
        EXPECT_EQ(orrery_prof_tool.start(), orrSuccess);
    }
    ~Recorder() override { fs::remove_all(folder_); }
    // Nothing is recorded behind this.
    Profile stopped() {
        orrery_prof_tool.stop();
        std::string parts;
        for (const auto& file : fs::directory_iterator(folder_)) {
            std::ifstream in(file.path(), std::ios::binary);
            const std::string all(std::istreambuf_iterator<char>(in), {});
            // The records begin with the second page, and end where nothing has been written yet.
            constexpr std::size_t kRecords = 4096;
            std::size_t end = kRecords;
            for (RecordHead record{}; end + sizeof record <= all.size(); end += record.bytes) {
                std::memcpy(&record, &all[end], sizeof record);
                if (record.type == static_cast<std::uint16_t>(Type::kEnd)) break;
            }
            PartHead head{};
            std::memcpy(&head, all.data(), sizeof head);
            head.bytes = end - kRecords;
            parts.append(reinterpret_cast<const char*>(&head), sizeof head);
            parts.append(all, kRecords, head.bytes);
        }
        auto profile = parse_profile(made_profile(parts));
        if (!profile) throw std::runtime_error(profile.error().text);
        return *std::move(profile);
    }
    const fs::path folder_;
    umd::test::FakeSystem system_{1};
};

// A library from before it was said whether a copy reduces and when work had ended tells of a copy on a card
// of its own, submitted at 1 s, whose record it reads at 2 s.
constexpr int kOldCard = 5;
void tell_as_an_old_library() {
    constexpr std::size_t kOldSize = offsetof(orrProfWork, reduces);
    static_assert(kOldSize == 168);
    orrProfWork work;
    std::memset(&work, 0xee, sizeof work);
    std::memset(&work, 0, kOldSize);
    work.size = kOldSize;
    work.device = kOldCard;
    work.operation = orrProfOperationCopy;
    work.submitted_ns = 1'000'000'000;
    work.begin_ps = 5'000'000;
    work.end_ps = 6'000'000;
    orrProfRecord record = ORR_INIT(orrProfRecord);
    record.kind = orrProfWorkDone;
    record.name = "copy";
    record.host_ns = 2'000'000'000;
    record.params = &work;
    umd::Profiler::get().tell_as_it_is(record, orrProfWantWork);
}

// However long after that the library looks for records. (A process has one recorder, once.)
TEST_F(Recorder, KnowsThatWorkHadEndedWhenTheProgramHadWaitedForItAndReadsNoMoreThanThereIs) {
    orrStream_t stream = nullptr;
    void* memory = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrMalloc(&memory, 4096));
    std::vector<std::uint64_t> waited_ns;
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(orrMemsetAsync(memory, 1, 64, stream));
        ASSERT_OK(orrStreamSynchronize(stream));
        waited_ns.push_back(static_cast<std::uint64_t>(umd::now_ns()));
        ::usleep(3'000);  // what is known of ends is written down each 2 ms
    }
    ASSERT_OK(orrFree(memory));
    ASSERT_OK(orrStreamDestroy(stream));
    tell_as_an_old_library();
    const Profile profile = stopped();
    const Process& process = profile.processes.at(0);
    ASSERT_EQ(process.work.size(), 4u);
    HostClock clock;
    for (const ClockRecord& one : process.clocks)
        if (one.device != kOldCard) clock.add(one);
    clock.settle();
    EXPECT_EQ(process.work[3].reduces, 0u);
    const auto known =
        std::ranges::find(process.clocks, static_cast<std::uint32_t>(kOldCard), &ClockRecord::device);
    ASSERT_NE(known, process.clocks.end());
    EXPECT_EQ(known->device_ps, 6'000'000u);
    EXPECT_EQ(known->after_ns - known->before_ns, 1'000'000'000u) << "it had ended when it was read";
    EXPECT_EQ(process.work[3].found_ns, 0u) << "nobody waited";
    const Model model(profile);
    for (std::size_t i = 0; i < waited_ns.size(); ++i) {
        EXPECT_LE(process.work[i].submitted_ns, process.work[i].found_ns) << i;
        EXPECT_LE(process.work[i].found_ns, waited_ns[i]) << i;
        const std::uint32_t call = model.processes[0].work[i].found_by;
        ASSERT_NE(call, kNone) << i;
        EXPECT_EQ(process.text(process.calls[call].head.text), "orrStreamSynchronize") << i;
    }
    for (std::size_t i = 0; i < waited_ns.size(); ++i) {
        const auto moment = clock.host_of(process.work[i].end_ps);
        ASSERT_TRUE(moment) << i;
        EXPECT_LE(moment->most_ns, waited_ns[i]) << i;
        EXPECT_GE(moment->least_ns, process.work[i].submitted_ns) << i;
    }
}

}  // namespace
}  // namespace orrery::prof::test
