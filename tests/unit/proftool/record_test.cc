// orrery-prof record with programs that are linked with the real library, whatever becomes of them.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "tests/unit/proftool/made_profile.h"
#include "tools/prof/parts.h"
#include "tools/prof/profile.h"

namespace {
std::int64_t pread_fails_from = -1;  // this byte of a file, as of a bad disk; -1: none
}

// The linker puts this in the place of the system's (--wrap). Sanitizers have one of their own there.
extern "C" ssize_t __wrap_pread(int fd, void* data, std::size_t bytes, off_t offset);
extern "C" ssize_t __wrap_pread(int fd, void* data, std::size_t bytes, off_t offset) {
    if (pread_fails_from < 0 || offset + static_cast<off_t>(bytes) <= pread_fails_from)
        return ::syscall(SYS_pread64, fd, data, bytes, offset);
    errno = EIO;
    return -1;
}

namespace orrery::prof::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Record : public ::testing::Test {
  protected:
    Record() : folder_(fs::temp_directory_path() / fmt::format("orrery-proftool-{}", ::getpid())) {
        fs::create_directories(folder_ / "tmp");
    }
    ~Record() override { fs::remove_all(folder_); }

    // Status; what it printed is in output_.
    int run(const std::string& words, const std::string& environment = "") {
        const std::string command = fmt::format("cd {} && TMPDIR={}/tmp {} {} {} 2>&1", folder_.string(),
                                                folder_.string(), environment, ORRERY_PROF, words);
        std::FILE* const pipe = ::popen(command.c_str(), "re");
        output_.clear();
        std::array<char, 4096> piece{};
        while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
            output_.append(piece.data(), got);
        const int status = ::pclose(pipe);
        EXPECT_EQ(fs::is_empty(folder_ / "tmp"), !parts_are_kept_);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    int record(const std::string& words, const std::string& options = "",
               const std::string& environment = "") {
        return run(fmt::format("record -o x {} -- {} {}", options, PROGRAM, words), environment);
    }
    Profile profile() {
        auto read = read_profile(folder_ / "x");
        EXPECT_TRUE(read) << read.error().text;
        return read ? *read : Profile{};
    }
    static std::map<std::string, int> calls(const Process& process) {
        std::map<std::string, int> counts;
        for (const CallRecord& call : process.calls)
            ++counts[std::string(process.text(call.head.text))];
        return counts;
    }

    const fs::path folder_;
    std::string output_;
    bool parts_are_kept_ = false;
};

using Counts = std::map<std::string, int>;

// A command that ends when it has been told of: if nothing is told, in a minute.
TEST_F(Record, SaysHowMuchThereIsWhileItGoesOn) {
    const std::string command = fmt::format(
        "sh -c '{} range; n=0; until grep -q \"of 1 process so far\" err; do sleep 0.1; n=$((n + 1)); [ $n "
        "-lt 600 ] "
        "|| exit 3; done'",
        PROGRAM);
    EXPECT_EQ(run(fmt::format("record -o x --progress 0.05 -- {} 2>err || exit $?; cat err", command)), 0)
        << output_;
    EXPECT_THAT(output_, HasSubstr(" bytes of 1 process so far\n"));
    EXPECT_EQ(run("record --progress never -- true"), 2) << output_;
    EXPECT_THAT(output_, HasSubstr("--progress never: give 0 to 3600 seconds"));
}

TEST_F(Record, HasEachCallOfAProgram) {
    ASSERT_EQ(record("range fail"), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("orrSuccess\n"));
    EXPECT_THAT(output_, HasSubstr("of 1 process in x"));
    const Profile all = profile();
    ASSERT_EQ(all.processes.size(), 1u);
    const Process& process = all.processes[0];
    EXPECT_THAT(process.command, HasSubstr("prof_test_program range fail"));
    EXPECT_TRUE(process.ended);
    EXPECT_EQ(process.lost, 0u);
    EXPECT_EQ(calls(process), (Counts{{"orrGetErrorName", 1}, {"orrFree", 1}}));
    EXPECT_EQ(process.calls[0].error, 0);
    EXPECT_NE(process.calls[1].error, 0);
    ASSERT_EQ(process.ranges.size(), 2u);
    EXPECT_EQ(process.text(process.ranges[0].record.head.text), "work");
    EXPECT_LE(process.ranges[0].record.ns, process.calls[0].begin_ns);
    EXPECT_GE(process.ranges[1].record.ns, process.calls[0].end_ns);
    EXPECT_EQ(run("stat x"), 0);
    EXPECT_THAT(output_, HasSubstr("orrFree"));
    EXPECT_EQ(run("report x --top 1"), 0);
    EXPECT_THAT(output_, HasSubstr("and 1 more"));
    EXPECT_EQ(run("report --json x"), 0);
    EXPECT_EQ(run("explain x"), 0);
    EXPECT_EQ(run("compare x x"), 0);
    EXPECT_THAT(output_, HasSubstr("equal"));
    EXPECT_EQ(run("compare --json -a x x -b x"), 0);
    EXPECT_EQ(run("compare x nowhere"), 1);
    EXPECT_EQ(run("explain x --json"), 0);
    EXPECT_EQ(run("export x --sqlite x.db"), 0) << output_;
    EXPECT_EQ(run("export x --csv x.csv"), 0) << output_;
    EXPECT_GT(fs::file_size(folder_ / "x.csv" / "call.csv"), 100u);
    EXPECT_EQ(run("trace x -o y.json"), 0);
    EXPECT_EQ(run("trace x --perfetto -o y.pb"), 0);
    EXPECT_GT(fs::file_size(folder_ / "y.pb"), 100u);
}

TEST_F(Record, HasManyCallsOfManyThreads) {
    ASSERT_EQ(record("threads many"), 0) << output_;
    const Profile all = profile();
    EXPECT_EQ(calls(all.processes.at(0)), (Counts{{"orrGetErrorName", 1}, {"orrGetErrorString", 120'000}}));
    std::set<std::uint32_t> threads;
    for (const CallRecord& call : all.processes[0].calls)
        threads.insert(call.thread);
    EXPECT_EQ(threads.size(), 5u);
}

TEST_F(Record, HasAPartOfEachProcess) {
    ASSERT_EQ(record("fork exec"), 0) << output_;
    const Profile all = profile();
    ASSERT_EQ(all.processes.size(), 4u) << "itself, two children, and what the second one executes";
    std::multiset<int> strings;
    std::map<std::uint64_t, int> pids;
    for (const Process& process : all.processes) {
        strings.insert(calls(process)["orrGetErrorString"]);
        ++pids[process.pid];
    }
    EXPECT_EQ(strings, (std::multiset<int>{0, 0, 1, 3}));
    EXPECT_EQ(pids.size(), 3u);
    EXPECT_EQ(all.processes[1].parent, all.processes[0].pid);
}

TEST_F(Record, OfOneThatIsKilledHasAllUntilThen) {
    EXPECT_EQ(record("threads kill"), 128 + 9);
    const Profile all = profile();
    EXPECT_FALSE(all.processes.at(0).ended);
    EXPECT_EQ(calls(all.processes[0]), (Counts{{"orrGetErrorName", 1}, {"orrGetErrorString", 20'000}}));
}

// As when the VM is lost in which it runs. The command ends it when the file has what another program did.
TEST_F(Record, ThatIsLostItselfLeavesWhatItHadSaved) {
    parts_are_kept_ = true;
    const std::string command = fmt::format(
        "sh -c '{} range; n=0; until {} stat x 2>&1 | grep -q orrGetErrorName; do sleep 0.1; n=$((n + 1)); "
        "[ $n -lt 600 ] || exit 3; done; kill -9 $PPID'",
        PROGRAM, ORRERY_PROF);
    EXPECT_EQ(run("record -o x --save 0.05 -- " + command), 128 + SIGKILL) << output_;
    const Profile all = profile();
    ASSERT_EQ(all.processes.size(), 1u);
    EXPECT_EQ(calls(all.processes[0]), (Counts{{"orrGetErrorName", 1}}));
    EXPECT_FALSE(all.processes[0].ended) << "what was saved on the way is no whole profile";
}

// What it would replace is somebody else's.
TEST_F(Record, SavesNothingOverPipesAndLinks) {
    std::ofstream(folder_ / "kept") << "kept";
    fs::create_symlink("kept", folder_ / "link");
    EXPECT_EQ(run(fmt::format("record -o link --save 0.05 -- {}", PROGRAM)), 127) << output_;
    EXPECT_THAT(output_, HasSubstr("--save cannot replace it"));
    EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
    EXPECT_EQ(run(fmt::format("record -o /dev/null --save 0.05 -- {}", PROGRAM)), 127) << output_;
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// What was saved on the way is not in the way of the whole.
TEST_F(Record, ThatIsSavedOnTheWayIsWholeAtTheEnd) {
    const std::string command = fmt::format(
        "sh -c '{0} range; n=0; until {1} stat x >seen 2>&1; do sleep 0.1; n=$((n + 1)); [ $n -lt 600 ] || "
        "exit 3; done; {0} range'",
        PROGRAM, ORRERY_PROF);
    EXPECT_EQ(run("record -o x --save 0.05 -- " + command), 0) << output_;
    EXPECT_EQ(profile().processes.size(), 2u);
    EXPECT_EQ(std::ranges::count_if(fs::directory_iterator(folder_),
                                    [](const auto& entry) { return entry.path().extension() == ".new"; }),
              0);
    EXPECT_EQ(run("record --save 0 -- true"), 2) << output_;
    EXPECT_THAT(output_, HasSubstr("--save 0: give 0.01 to 3600 seconds"));
}

TEST_F(Record, CountsWhatHasNoRoom) {
    ASSERT_EQ(record("many", "--limit 1"), 0);
    EXPECT_THAT(output_, HasSubstr("records were lost: give a larger --limit"));
    const Profile all = profile();
    const Process& process = all.processes.at(0);
    EXPECT_GT(process.lost, 0u);
    EXPECT_EQ(process.calls.size() + process.lost, 100'001u);
}

TEST_F(Record, TakesAnyNames) {
    ASSERT_EQ(record("names"), 0);
    const Profile all = profile();
    const Process& process = all.processes.at(0);
    ASSERT_EQ(process.ranges.size(), 6u);
    EXPECT_EQ(process.text(process.ranges[1].record.domain), "io");
    EXPECT_EQ(process.ranges[2].record.external, 5u);
    EXPECT_EQ(process.text(process.ranges[3].record.head.text), std::string(kMaxText, 'x')) << "cut";
    EXPECT_EQ(run("stat x"), 0);
    EXPECT_EQ(run("trace x -o y.json"), 0);
    EXPECT_EQ(run("trace x --perfetto -o y.pb"), 0);
}

TEST_F(Record, GoesTogetherWithAnotherTool) {
    ASSERT_EQ(record("", "", fmt::format("ORR_PROF_TOOL={}", OTHER_TOOL)), 0);
    EXPECT_THAT(output_, HasSubstr("tool: +orrGetErrorName"));
    EXPECT_EQ(calls(profile().processes.at(0)), (Counts{{"orrGetVersion", 1}, {"orrGetErrorName", 1}}))
        << "with what the other tool calls as it starts";
}

// A tool beside the recorder crashes: what was recorded until then is there, and who crashed is not to guess.
TEST_F(Record, KeepsWhatItHadWhenAnotherToolCrashes) {
    struct Case {
        const char* place;
        Counts calls;
    };
    const Counts all_calls{{"orrGetErrorName", 1}, {"orrGetErrorString", 20'000}, {"orrFree", 1}};
    Counts before_free = all_calls;
    before_free.erase("orrFree");
    const Case cases[] = {{"start", {}}, {"orrFree", before_free}, {"stop", all_calls}};
    for (const auto& [place, expected] : cases) {
        SCOPED_TRACE(place);
        EXPECT_EQ(
            record("threads fail", "", fmt::format("WITNESS_CRASH={} ORR_PROF_TOOL={}", place, WITNESS)),
            128 + SIGSEGV);
        EXPECT_THAT(output_,
                    HasSubstr("orrery-prof: the command was ended by signal 11 (Segmentation fault), "
                              "it or a tool in it: the profile has"));
        const Profile all = profile();
        ASSERT_EQ(all.processes.size(), 1u);
        EXPECT_FALSE(all.processes[0].ended);
        EXPECT_EQ(all.processes[0].lost, 0u);
        EXPECT_EQ(calls(all.processes[0]), expected);
        for (const char* reader : {"stat", "report", "explain"})
            EXPECT_EQ(run(fmt::format("{} x", reader)), 0) << output_;
    }
    EXPECT_EQ(record("threads fail", "", fmt::format("ORR_PROF_TOOL={}", WITNESS)), 0);
    EXPECT_THAT(output_, HasSubstr("witness: calls 20002 launches 0 work 0 "));
}

TEST_F(Record, GivesTheCommandsStatus) {
    EXPECT_EQ(record("status"), 7);
    EXPECT_EQ(run("record -o x -- /nowhere/program"), 127);
    EXPECT_THAT(output_, HasSubstr("/nowhere/program cannot be started: No such file"));
    EXPECT_EQ(run("record -o x -- true"), 1);
    EXPECT_THAT(output_, HasSubstr("nothing was recorded"));
    EXPECT_EQ(run("record -o x -- sh -c 'exit 5'"), 5);
    EXPECT_EQ(run("record -o /nowhere/x -- touch touched"), 127);
    EXPECT_THAT(output_, HasSubstr("/nowhere/x cannot be written"));
    EXPECT_FALSE(fs::exists(folder_ / "touched"));
}

TEST_F(Record, KeepsThePartsWhenTheProfileCannotBeWritten) {
    parts_are_kept_ = true;
    for (const auto& [words, status] : {std::pair{"", 1}, {"status", 7}}) {
        EXPECT_EQ(run(fmt::format("record -o /dev/full -- {} {}", PROGRAM, words)), status);
        EXPECT_THAT(output_, HasSubstr("/dev/full is not whole: it cannot be written: No space left"));
        const fs::path kept = fs::directory_iterator(folder_ / "tmp")->path();
        EXPECT_THAT(output_, HasSubstr("is kept in " + kept.string()));
        EXPECT_EQ(std::distance(fs::directory_iterator(kept), {}), 1);
        fs::remove_all(kept);
    }
}

// What is in the folder is the program's, and whoever else's.
TEST_F(Record, TakesRegularFilesOnly) {
    EXPECT_EQ(run(fmt::format("record -o x -- sh -c '{}; cd $ORRERY_PROF_PARTS; ln -s * link; mkfifo fifo'",
                              PROGRAM),
                  "timeout 60"),
              0)
        << output_;
    EXPECT_EQ(profile().processes.size(), 1u);
    EXPECT_EQ(run(fmt::format("record -o x -- sh -c '{}; rm -r $ORRERY_PROF_PARTS'", PROGRAM)), 1);
    EXPECT_THAT(output_, HasSubstr("cannot be read: No such file"));
}

// As by a stray store: a part is mapped into its process, and is a file for all others of its user.
class RecordOfSpoilt : public Record {
  protected:
    // Of a program whose part is spoilt by `$part`'s mistreatment, and of another one behind it.
    void record_and(const std::string& spoil) {
        const std::string script = fmt::format(
            "#!/bin/sh\n{0} threads\npart=$(echo $ORRERY_PROF_PARTS/*)\n{1}\ncp $part copy\n"
            "echo ${{part##*/}} >name\n{0} range fail\n",
            PROGRAM, spoil);
        std::ofstream(folder_ / "script") << script;
        ASSERT_EQ(run("record -o x -- sh script"), 0) << output_;
        std::ifstream(folder_ / "name") >> name_;
        pid_ = name_.substr(0, name_.find('-'));
    }
    static std::string bytes_of(const fs::path& file) {
        std::ifstream stream(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    void expect_other_whole(const Process& other) {
        EXPECT_TRUE(other.ended);
        EXPECT_FALSE(other.cut);
        EXPECT_EQ(calls(other), (Counts{{"orrGetErrorName", 1}, {"orrFree", 1}}));
        EXPECT_EQ(other.ranges.size(), 2u);
    }
    void expect_told(const std::string& why) {
        EXPECT_THAT(output_, HasSubstr(why));
        EXPECT_THAT(output_, HasSubstr(fmt::format("as it was it is kept in x.{}.spoilt", name_)));
        EXPECT_EQ(bytes_of(folder_ / ("x." + name_ + ".spoilt")), bytes_of(folder_ / "copy"));
    }

    std::string name_, pid_;
};

TEST_F(RecordOfSpoilt, EndsWhereItIsAndHasAllOthers) {
    struct Case {
        const char* spoil;
        const char* why;
        std::size_t at_least, at_most;  // calls before it
    };
    const Case cases[] = {
        {"tr '\\0' '\\377' </dev/zero | dd of=$part bs=1 count=96 seek=100000 conv=notrunc 2>/dev/null",
         "has a record of 65535 bytes, which cannot be", 1'990, 2'000},
        {"tr '\\0' '\\377' </dev/zero | dd of=$part bs=1 count=96 seek=700000 conv=notrunc 2>/dev/null",
         "has a record of 65535 bytes, which cannot be", 14'490, 14'500},
        {"dd if=/dev/zero of=$part bs=1 count=96 seek=100000 conv=notrunc 2>/dev/null", "it has zeros, and",
         1'990, 2'000},
        {"truncate -s 100000 $part", "bytes of records, and has 95904", 1'990, 2'000},
        {"truncate -s 5000 $part", "bytes of records, and has 904", 1, 20},
        {"tr '\\0' '\\377' </dev/zero | dd of=$part bs=1 count=8 seek=8 conv=notrunc 2>/dev/null",
         "it has zeros, and", 20'001, 20'001},
    };
    for (const Case& each : cases) {
        SCOPED_TRACE(each.spoil);
        record_and(each.spoil);
        expect_told(each.why);
        EXPECT_THAT(output_,
                    HasSubstr(fmt::format("the part of process {} ({} threads) is spoilt: ", pid_, PROGRAM)));
        EXPECT_THAT(output_, HasSubstr("What was before that is in x;"));
        const Profile all = profile();
        ASSERT_EQ(all.processes.size(), 2u);
        const bool second = std::to_string(all.processes[0].pid) != pid_;
        const Process& spoilt = all.processes[second ? 1 : 0];
        EXPECT_TRUE(spoilt.cut);
        EXPECT_GE(spoilt.calls.size(), each.at_least);
        EXPECT_LE(spoilt.calls.size(), each.at_most);
        expect_other_whole(all.processes[second ? 0 : 1]);
        if (&each != cases) continue;
        for (const char* reader : {"stat x", "report x"}) {
            EXPECT_EQ(run(reader), 0);
            EXPECT_THAT(output_, HasSubstr(fmt::format("  its part was spoilt from byte ")));
        }
        EXPECT_EQ(run("merge x -o y"), 0) << output_;
    }
}

TEST_F(RecordOfSpoilt, LeavesOutWhatIsNoPart) {
    const std::pair<const char*, const char*> cases[] = {
        {"printf x | dd of=$part bs=1 conv=notrunc 2>/dev/null", "it does not begin as one does"},
        {"printf '\\001\\0\\0\\0\\0\\0\\0\\0' | dd of=$part bs=1 seek=32 conv=notrunc 2>/dev/null",
         "it says that it is of process 1"},
        {"dd if=/dev/zero of=$part bs=256 count=1 conv=notrunc 2>/dev/null", "it does not begin as one does"},
    };
    for (const auto& [spoil, why] : cases) {
        SCOPED_TRACE(spoil);
        record_and(spoil);
        expect_told(fmt::format("the part of process {} is spoilt: {}. It is not in x;", pid_, why));
        const Profile all = profile();
        ASSERT_EQ(all.processes.size(), 1u);
        expect_other_whole(all.processes[0]);
    }
}

// What a process leaves there is none of orrery-prof's business, but for parts.
TEST_F(RecordOfSpoilt, SaysNothingOfOtherFilesAndOfPartsThatHadOnlyBegun) {
    for (const char* left :
         {"head -c 4096 /dev/zero >4711-0; : >4712-0", "yes | head -c 9000 >core; : >x-0"}) {
        EXPECT_EQ(run(fmt::format("record -o x -- sh -c '{}; cd $ORRERY_PROF_PARTS; {}'", PROGRAM, left)), 0);
        EXPECT_THAT(output_, Not(HasSubstr("spoilt")));
        EXPECT_EQ(profile().processes.size(), 1u);
        EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2) << "tmp and x";
    }
    EXPECT_EQ(run(fmt::format("record -o x -- sh -c '{}; cd $ORRERY_PROF_PARTS; mv * other'", PROGRAM)), 1);
    EXPECT_THAT(output_, HasSubstr("nothing was recorded: no process of the command called liborrery"));
}

// A process may leave as many as it likes.
TEST_F(RecordOfSpoilt, KeepsOfAllTogetherAsMuchAsAPartMayHave) {
    constexpr std::uintmax_t kRoom = (1 << 20) + 4'096, kEach = 900'000;
    const std::string script = fmt::format(
        "{}; cd $ORRERY_PROF_PARTS; for i in 1 2 3; do yes | head -c {} >$i-0; done", PROGRAM, kEach);
    EXPECT_EQ(run(fmt::format("record -o x --limit 1 -- sh -c '{}'", script)), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("as it was it is kept in x.1-0.spoilt"));
    EXPECT_THAT(output_, HasSubstr(fmt::format("its first {} of {} bytes as it was are kept in x.2-0.spoilt",
                                               kRoom - kEach, kEach)));
    EXPECT_THAT(output_,
                HasSubstr("the part of process 3 is spoilt: it does not begin as one does. It is not in "
                          "x; as it was it is not kept"));
    EXPECT_EQ(fs::file_size(folder_ / "x.1-0.spoilt"), kEach);
    EXPECT_EQ(fs::file_size(folder_ / "x.2-0.spoilt"), kRoom - kEach);
    EXPECT_FALSE(fs::exists(folder_ / "x.3-0.spoilt"));
    EXPECT_EQ(profile().processes.size(), 1u);
}

// A disk that gives back an error is no end of a file.
TEST_F(RecordOfSpoilt, SaysWhatCannotBeRead) {
    MadePart part;
    part.call(part.text("orrMemcpy"), 2'000, 2'500);
    std::string bytes = part.bytes();
    bytes.insert(sizeof(PartHead), 4'096 - sizeof(PartHead), '\0');
    const fs::path parts = folder_ / "parts";
    fs::create_directory(parts);
    std::ofstream(parts / "100-0", std::ios::binary) << bytes;
    const auto put = [&](std::int64_t from) {
        Recorded recorded;
        pread_fails_from = from;
        {
            const File to(folder_ / "x", O_WRONLY | O_CREAT | O_TRUNC);
            EXPECT_TRUE(put_together(parts, to, recorded, true));
        }
        EXPECT_EQ(keep_spoilt(folder_ / "x", 1 << 20, recorded), from < 0);
        pread_fails_from = -1;
        output_ = fmt::format("{}", fmt::join(recorded.told, "\n"));
        return recorded.processes;
    };
    EXPECT_EQ(put(-1), 1u);
    EXPECT_EQ(output_, "");
    EXPECT_EQ(put(4'100), 1u);
    EXPECT_THAT(output_, HasSubstr("is spoilt: from byte 4096 on it cannot be read: Input/output error."));
    EXPECT_THAT(output_, HasSubstr(".spoilt cannot be made: it cannot be read: Input/output error)"));
    EXPECT_TRUE(profile().processes.at(0).cut);
    EXPECT_EQ(put(0), 0u);
    EXPECT_THAT(output_, HasSubstr("is spoilt: it cannot be read: Input/output error."));
}

// It is in the file that is saved on the way, too, which is all there is if the VM is lost.
TEST_F(RecordOfSpoilt, IsSavedOnTheWayAsAtTheEnd) {
    parts_are_kept_ = true;
    std::ofstream(folder_ / "script") << fmt::format(
        "{0} range\nprintf '\\377' | dd of=$(echo $ORRERY_PROF_PARTS/*) bs=1 seek=4098 conv=notrunc\n{0} "
        "fail\n"
        "n=0; until {1} stat x 2>&1 | grep -q orrFree; do sleep 0.1; n=$((n + 1)); [ $n -lt 600 ] || exit 3; "
        "done; kill -9 $PPID",
        PROGRAM, ORRERY_PROF);
    EXPECT_EQ(run("record -o x --save 0.05 -- sh script"), 128 + SIGKILL) << output_;
    const Profile all = profile();
    ASSERT_EQ(all.processes.size(), 2u);
    EXPECT_TRUE(all.processes[0].cut || all.processes[1].cut);
}

TEST_F(Record, FindsRecorderAndPartsFromAnyFolder) {
    fs::create_directory_symlink(LIBRARIES, folder_ / "lib");
    EXPECT_EQ(
        run(fmt::format("record -o x -- sh -c 'cd / && {} fork'", PROGRAM), "TMPDIR=tmp LD_LIBRARY_PATH=lib"),
        0);
    EXPECT_EQ(profile().processes.size(), 2u) << output_;
}

// Its profile is a pipe from which nobody reads: it has begun to write, and does not end.
class RecordIntoPipe : public Record {
  protected:
    void SetUp() override {
        Record::SetUp();
        const std::string file = folder_ / "x";
        ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
        reader_ = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        ASSERT_GE(reader_, 0);
        child_ = ::fork();
        if (child_ == 0) {
            ::setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
            ::execl(ORRERY_PROF, ORRERY_PROF, "record", "-o", file.c_str(), "--", PROGRAM, "many", nullptr);
            ::_exit(127);
        }
        pollfd readable{.fd = reader_, .events = POLLIN, .revents = 0};
        ASSERT_EQ(::poll(&readable, 1, 60'000), 1);
    }
    int status_without_reader() {
        ::close(reader_);
        int status = 0;
        EXPECT_EQ(::waitpid(child_, &status, 0), child_);
        return status;
    }

    int reader_ = -1;
    pid_t child_ = -1;
};

TEST_F(RecordIntoPipe, TellsThatItsReaderHasGoneAndKeepsTheParts) {
    const int status = status_without_reader();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
    EXPECT_FALSE(fs::is_empty(folder_ / "tmp"));
}

// A pipe cannot be gone back in: the head, which says how long it is, is there already.
TEST_F(RecordIntoPipe, EndsWhereAPartIsSpoiltMeanwhile) {
    ASSERT_EQ(::fcntl(reader_, F_SETFL, 0), 0);
    std::string bytes(sizeof(FileHead) + sizeof(PartHead), '\0');
    for (std::size_t got = 0; got < bytes.size();) {
        const ssize_t more = ::read(reader_, bytes.data() + got, bytes.size() - got);
        ASSERT_GT(more, 0);
        got += static_cast<std::size_t>(more);
    }
    const fs::path parts = fs::directory_iterator(folder_ / "tmp")->path();
    std::fstream part(fs::directory_iterator(parts)->path());
    part.seekp(4'000'000) << std::string(96, '\xff') << std::flush;
    std::array<char, 65'536> piece{};
    while (const ssize_t got = ::read(reader_, piece.data(), piece.size())) {
        ASSERT_GT(got, 0);
        bytes.append(piece.data(), static_cast<std::size_t>(got));
    }
    EXPECT_EQ(status_without_reader(), 0);
    const auto all = parse_profile(bytes);
    ASSERT_TRUE(all) << all.error().text;
    EXPECT_TRUE(all->processes.at(0).cut);
    EXPECT_NEAR(static_cast<double>(all->processes[0].calls.size()), 4e6 / sizeof(CallRecord), 200);
    EXPECT_TRUE(fs::exists(parts)) << "there is no place beside a pipe";
}

TEST_F(RecordIntoPipe, EndsBySignalsBehindWhatItWritesAndKeeps) {
    EXPECT_EQ(::kill(child_, SIGTERM), 0);
    const int status = status_without_reader();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
    EXPECT_FALSE(fs::is_empty(folder_ / "tmp"));
}

class SkuCompare : public Record {
  protected:
    void write(const char* file) {
        fs::create_directories((folder_ / file).parent_path());
        std::ofstream(folder_ / file) << "kept\n";
    }
};

TEST_F(SkuCompare, LeavesWhatIsKeptIfItCannotRun) {
    write("K/orrery-1/compute.prof");
    EXPECT_EQ(run("sku-compare --keep K orrery-1 orery-edge"), 1) << output_;
    EXPECT_TRUE(fs::exists(folder_ / "K/orrery-1/compute.prof"));
}

// Before a VM is started: there is none with such a card.
TEST_F(SkuCompare, WantsRoomForWhatItWillWrite) {
    for (const char* option : {"--csv", "--html"}) {
        EXPECT_EQ(run(fmt::format("sku-compare {} nowhere/x orrery-1 orery-edge", option)), 1);
        EXPECT_THAT(output_, StartsWith("orrery-prof: nowhere/x: No such file"));
    }
    write("old");
    EXPECT_EQ(run("sku-compare --csv old orrery-1 orery-edge"), 1);
    EXPECT_EQ(fs::file_size(folder_ / "old"), 5u) << "it stays until there is another";
}

TEST_F(SkuCompare, WritesIntoNoOtherFolder) {
    write("compute.prof");
    write("K/compute.prof");
    for (const char* sku : {"..", ".", "folder/", "folder/.."}) {
        EXPECT_EQ(run(fmt::format("sku-compare --keep K {} orrery-1", sku)), 2) << sku;
        EXPECT_THAT(output_, HasSubstr(fmt::format("{} is no SKU", sku)));
    }
    EXPECT_TRUE(fs::exists(folder_ / "compute.prof"));
    EXPECT_TRUE(fs::exists(folder_ / "K/compute.prof"));
}

TEST_F(Record, WantsAProperCommandLine) {
    for (const char* words : {"",
                              "nothing",
                              "record",
                              "record --",
                              "record -o",
                              "record -x -- true",
                              "stat",
                              "stat a b",
                              "trace x",
                              "trace -o y",
                              "report",
                              "report a b",
                              "report --top 0 x",
                              "export x",
                              "explain",
                              "explain x y",
                              "export x --csv",
                              "export x --xml y",
                              "record --limit 0 -- true",
                              "record --limit x -- true"}) {
        EXPECT_EQ(run(words), 2) << words;
        EXPECT_THAT(output_, HasSubstr("usage: orrery-prof")) << words;
    }
    EXPECT_EQ(run("--help"), 0);
    EXPECT_EQ(run("stat /etc/passwd"), 1);
    EXPECT_THAT(output_, HasSubstr("/etc/passwd: it is not a profile"));
    EXPECT_EQ(run("stat nowhere"), 1);
    EXPECT_THAT(output_, HasSubstr("nowhere"));
}

}  // namespace
}  // namespace orrery::prof::test
