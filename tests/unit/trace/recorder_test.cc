// Files that cannot be made, and files that cannot grow: the card lives on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "emulator/card/card_thread.h"
#include "emulator/trace/recorder.h"
#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

using testing::HasSubstr;

std::string error_of(const std::filesystem::path& file) {
    CardConfig config = CardRig::config();
    config.record = file;
    const auto card = Card::create(std::move(config));
    return card ? "made" : card.error();
}

TEST(Recorder, SaysWhyAFileCannotBeMade) {
    EXPECT_THAT(error_of("/nonexistent/x.otrace"),
                HasSubstr("/nonexistent/x.otrace: the recording cannot be made"));
    EXPECT_THAT(error_of("/dev/full"), HasSubstr("regular file"));
    EXPECT_THAT(error_of("/tmp"), HasSubstr("directory"));
}

TEST(Recorder, AnOldFileIsReplaced) {
    const TemporaryFile file;
    write_bytes(file.path(), std::vector<std::uint8_t>(2 << 20, 0x55));
    record_scripts(file.path());
    EXPECT_LT(std::filesystem::file_size(file.path()), 1u << 20);
    EXPECT_TRUE(TraceReader::open(file.path()));
}

// What arrives while the core sleeps is handed over in time, or the recording says that something is missing.
TEST(Recorder, NothingIsLeftOutInSilence) {
    constexpr unsigned kMany = 400'000;
    for (const bool hands_over : {false, true}) {
        const TemporaryFile file;
        RecordingInfo info;
        info.cycle_ps = 1'000;
        auto recorder = Recorder::create(file.path(), info);
        ASSERT_TRUE(recorder) << recorder.error();
        Recorder& it = **recorder;
        const std::vector<std::uint8_t> rom(ORR_ROM_SIZE), sram(ORR_SRAM_SIZE);
        it.start({.time = 0, .reset_pc = ORR_ROM_BASE, .rom = rom, .sram = sram, .state = {}});
        std::uint64_t time = 0;
        for (unsigned i = 0; i < kMany; ++i) {
            it.note(ORR_OTRACE_NOTE_DOORBELL, 0, ++time, {~std::uint64_t{0}, 1, 2, 3});
            if (!hands_over || !it.full(0)) continue;
            it.flush({}, sram, time, 0);
            it.writer().drain();
        }
        it.finish({}, sram, time);
        if (hands_over) {
            EXPECT_EQ(it.error(), "");
        } else {
            EXPECT_THAT(it.error(), HasSubstr("more was observed"));
        }
    }
}

// The size of files is limited, as a full disk would: recording ends, the card works on, and what was
// recorded before is good.
TEST(Recorder, AFullDiskEndsTheRecordingAndNothingElse) {
    const TemporaryFile file;
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit old_limit{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    {
        CardConfig config = CardRig::config();
        config.record = file.path();
        CardRig rig(std::move(config));
        rig.boot_script();
        rig.run({CardRig::read(SOC_TIME)});
        rig.card().flush_recording();
        rlimit limit = old_limit;
        limit.rlim_cur = std::filesystem::file_size(file.path()) + 60;
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(rig.run({CardRig::read(SOC_UID)})[0].result, rig.card().config().uid);
            rig.card().flush_recording();
        }
        EXPECT_EQ(rig.card().errors().count(ErrorKind::kHostError), 1u) << "said once";
    }
    setrlimit(RLIMIT_FSIZE, &old_limit);
    std::signal(SIGXFSZ, old_handler);
    const auto replayer = Replayer::open(file.path());
    ASSERT_TRUE(replayer) << replayer.error();
    EXPECT_TRUE((*replayer)->info().crashed) << "it was not ended in order";
    EXPECT_FALSE((*replayer)->divergence());
    EXPECT_GT((*replayer)->end(), 10u);
}

// A disk that stalls: the card's model time waits for it and its registers do not, and in the end nothing is
// missing.
TEST(Recorder, ADiskThatStallsCostsModelTimeAndNothingElse) {
    const TemporaryFile file;
    std::atomic<bool> gate{false};
    std::FILE* const log = std::tmpfile();
    constexpr std::size_t kOps = 450'000;
    std::uint64_t seen = 0;
    {
        CardConfig config = CardRig::config();
        config.record = file.path();
        config.log = log;
        config.record_write = [&gate](int fd, const void* bytes, std::size_t count) {
            while (!gate)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return ::write(fd, bytes, count);
        };
        CardRig rig(std::move(config));
        rig.boot_script();
        std::vector<script_op> script;
        std::mt19937_64 random(1);
        for (std::size_t i = 0; i < kOps; ++i)
            script.push_back(
                {OP_READ, ORR_HOST_WINDOW(kRamBase + random() % (1 << 20) * 8), random(), random()});
        rig.start(std::move(script));
        CardThread thread(rig.card());
        const auto told = [&] {
            rig.card().errors().flush();
            std::string text(1 << 16, '\0');
            std::rewind(log);
            text.resize(std::fread(text.data(), 1, text.size(), log));
            return text.find("does not keep up") != std::string::npos;
        };
        while (!told())
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        const std::uint64_t time = rig.read64(ORR_R_MODEL_TIME);
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_RUNNING);
            EXPECT_EQ(rig.read64(ORR_R_MODEL_TIME), time);
        }
        EXPECT_EQ(rig.word(CardRig::kScript), 0u);
        gate = true;
        while (std::atomic_ref(rig.word(CardRig::kScript)).load() == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        thread.stop();
        seen = rig.results(kOps).back().result;
    }
    std::fclose(log);
    const auto replayer = Replayer::open(file.path());
    ASSERT_TRUE(replayer) << replayer.error();
    EXPECT_FALSE((*replayer)->info().crashed);
    EXPECT_FALSE((*replayer)->divergence());
    EXPECT_GT((*replayer)->end(), kOps);
    EXPECT_EQ(seen, 0u);  // that memory holds zeros
}

// Without anything to do a card still writes what it has.
TEST(Recorder, NothingIsLeftBehindAFlush) {
    const TemporaryFile file;
    CardConfig config = CardRig::config();
    config.record = file.path();
    CardRig rig(std::move(config));
    rig.boot_script();
    rig.run({CardRig::read(SOC_TIME), CardRig::write(SOC_TRACE, 0x55)});
    rig.card().flush_recording();
    const LiveEnd live = live_end(rig.card());
    const auto size = std::filesystem::file_size(file.path());
    rig.card().flush_recording();
    EXPECT_EQ(std::filesystem::file_size(file.path()), size) << "nothing new, nothing written";
    const auto replayer = Replayer::open(file.path());
    ASSERT_TRUE(replayer) << replayer.error();
    EXPECT_TRUE((*replayer)->info().crashed);
    EXPECT_EQ((*replayer)->end_time(), live.time);
    EXPECT_EQ((*replayer)->record_count(), 1u);
}

}  // namespace
}  // namespace orrery::emu
