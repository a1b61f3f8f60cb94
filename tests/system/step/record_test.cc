// A recording of a real run (the firmware's image on the emulated card), stepped forward and backward,
// through the library and through the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

#include "tools/records/statistics.h"
#include "tools/scenario/runner.h"
#include "tools/step/commands/debugger.h"
#include "tools/text/files.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;

struct RecordingFile {
    std::string name = ::testing::TempDir() + fmt::format("orrery-step-{}.otrace", getpid());
    RecordingFile() {
        const auto scenario = scenario::Scenario::load(SCENARIO);
        EXPECT_TRUE(scenario) << scenario.error();
        scenario::Options options;
        options.record = {name};
        const auto result = scenario::run(*scenario, options);
        EXPECT_TRUE(result) << result.error();
        EXPECT_TRUE(result->done);
    }
    ~RecordingFile() { std::filesystem::remove(name); }
};
const std::string& recording() {
    static const RecordingFile file;
    return file.name;
}

std::unique_ptr<Session> open() {
    auto session = open_session(recording(), {});
    EXPECT_TRUE(session) << session.error().text;
    return std::move(*session);
}

// Of all that a program could see: registers and SRAM.
std::uint64_t fingerprint(const Session& session) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    const auto mix = [&](std::uint64_t word) {
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    };
    const emu::HartState state = session.registers();
    for (std::size_t i = 0; i < sizeof state; i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, reinterpret_cast<const char*>(&state) + i, 8);
        mix(word);
    }
    const Sram sram = session.sram();
    for (std::size_t i = 0; i < sram.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, sram.data() + i, 8);
        mix(word);
    }
    mix(session.time());
    return hash;
}

TEST(Recording, IsExactAndTellsOfItself) {
    const auto session = open();
    const About& about = session->about();
    EXPECT_EQ(about.divergence, "");
    EXPECT_FALSE(about.crashed);
    EXPECT_GT(about.hashes_checked, 0u);
    EXPECT_EQ(about.firmware_hash.size(), 64u);
    EXPECT_FALSE(about.elf.empty());
    EXPECT_GT(session->records().size(), 50u);
    std::uint64_t last = 0;
    for (const Record& record : session->records()) {
        EXPECT_GE(record.step, last);
        last = record.step;
    }
}

TEST(Stepping, ForwardAndBackwardMeetInTheSameStates) {
    const auto session = open();
    std::vector<std::uint64_t> prints;
    for (const Record& record : session->records()) {
        session->seek(record.step);
        ASSERT_EQ(session->time(), record.time);
        prints.push_back(fingerprint(*session));
    }
    for (std::size_t i = prints.size(); i-- > 0;) {
        session->seek(session->records()[i].step);
        ASSERT_EQ(fingerprint(*session), prints[i]) << "record " << i;
    }
}

TEST(Stepping, SingleInstructionsGoBackTheWayTheyCame) {
    const auto session = open();
    std::mt19937_64 random(7);
    for (int round = 0; round < 4; ++round) {
        const std::uint64_t from = random() % (session->end() - 40);
        session->seek(from);
        std::vector<std::uint64_t> prints = {fingerprint(*session)};
        for (int i = 0; i < 20; ++i) {
            session->run(session->position() + 1, {});
            prints.push_back(fingerprint(*session));
        }
        for (int i = 20; i-- > 0;) {
            session->run_back(session->position() - 1, {});
            ASSERT_EQ(session->position(), from + static_cast<std::uint64_t>(i));
            ASSERT_EQ(fingerprint(*session), prints[static_cast<std::size_t>(i)]);
        }
    }
}

TEST(Decisions, NameCandidatesThatTheFirmwareCounted) {
    auto made = Debugger::make(open(), {});
    ASSERT_TRUE(made) << made.error().text;
    Debugger& debugger = **made;
    const std::size_t count = debugger.history().decisions().size();
    ASSERT_GT(count, 10u);
    std::size_t agreed = 0;
    bool preempted = false, resumed = false;
    for (std::size_t i = 0; i < count; ++i) {
        const auto why = debugger.execute(fmt::format("why {}", i));
        ASSERT_TRUE(why) << why.error().text;
        const Json& candidates = why->data["candidates"];
        // Whom the firmware chose is among them, once.
        std::size_t chosen = 0;
        for (const Json& c : candidates)
            if (c["chosen"].get<bool>()) {
                ++chosen;
                EXPECT_EQ(c["queue"], why->data["queue"]) << "decision " << i;
            }
        if (!why->data["queue"].is_null()) {
            EXPECT_EQ(chosen, 1u) << "decision " << i << "\n" << why->text;
        }
        if (candidates.size() == why->data["counted"].get<std::size_t>()) ++agreed;
        preempted = preempted || why->data["rule"] == "preempt";
        resumed = resumed || why->data["rule"] == "resume";
    }
    EXPECT_EQ(agreed, count) << "what 'why' shows are the candidates that the firmware counted";
    EXPECT_TRUE(preempted);
    EXPECT_TRUE(resumed);
}

TEST(Tables, AgreeWithTheRecordsAtTheEnd) {
    auto made = Debugger::make(open(), {});
    ASSERT_TRUE(made) << made.error().text;
    Debugger& debugger = **made;
    ASSERT_TRUE(debugger.execute("goto end"));
    const auto queues = debugger.execute("queues");
    ASSERT_TRUE(queues) << queues.error().text;
    const auto summary = debugger.execute("summary");
    ASSERT_TRUE(summary) << summary.error().text;
    ASSERT_EQ(queues->data["queues"].size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
        const Json& row = queues->data["queues"][i];
        EXPECT_EQ(row["retired"], row["producer"]);
        EXPECT_EQ(row["name"], summary->data["queues"][i]["name"]);
        EXPECT_EQ(row["class"], summary->data["queues"][i]["class"]);
        EXPECT_EQ(row["retired"], summary->data["queues"][i]["packets"]);
    }
    EXPECT_EQ(summary->data["queues"][0]["name"], "ui");
    EXPECT_GT(summary->data["queues"][1]["share"].get<double>(),
              summary->data["queues"][2]["share"].get<double>());
}

// Whatever the compiler inlined: what the source calls a function can be found.
TEST(Symbols, FunctionsAreFoundWhereverTheirCodeWent) {
    Debugger::Options options;
    options.source_folders = {SOURCE_FOLDER};
    auto made = Debugger::make(open(), options);
    ASSERT_TRUE(made) << made.error().text;
    Debugger& debugger = **made;
    const Program& program = debugger.program();
    ASSERT_TRUE(program.debug().has_lines());
    const auto inside = [&](std::uint64_t pc, std::string_view name) {
        return std::ranges::any_of(program.debug().frames(pc),
                                   [&](const Frame& frame) { return frame.function == name; });
    };
    std::size_t several = 0;
    for (const Function& function : program.debug().functions()) {
        ASSERT_FALSE(function.entries.empty()) << function.name;
        for (const std::uint64_t entry : function.entries) {
            EXPECT_TRUE(inside(entry, function.name)) << function.name << " " << entry;
            const auto line = program.debug().line_at(entry);
            ASSERT_TRUE(line) << function.name;
            EXPECT_FALSE(program.debug().addresses_of_line(line->file, line->line).empty()) << function.name;
        }
        if (function.entries.size() > 1) ++several;
        const auto found = program.function(function.name);
        ASSERT_TRUE(found && *found) << function.name;
        EXPECT_THAT((*found)->entries, testing::IsSupersetOf(function.entries));
    }
    EXPECT_GT(several, 10u) << "a build that inlines nothing?";

    ASSERT_TRUE(debugger.execute("goto start"));
    const auto set = debugger.execute("break Firmware::pass");
    ASSERT_TRUE(set) << set.error().text;
    EXPECT_EQ(set->data["kind"], "place");
    for (int i = 0; i < 3; ++i) {
        const auto stopped = debugger.execute("step 1000 events");
        ASSERT_TRUE(stopped) << stopped.error().text;
        EXPECT_EQ(stopped->data["breakpoint"], 1) << stopped->text;
        EXPECT_TRUE(inside(debugger.session().registers().pc, "Firmware::pass")) << stopped->text;
    }
    const auto where = debugger.execute("where");
    ASSERT_TRUE(where);
    EXPECT_THAT(where->data["frames"].dump(), HasSubstr("\"Firmware::pass\""));
    const auto list = debugger.execute("list Firmware::pass");
    ASSERT_TRUE(list) << list.error().text;
    EXPECT_THAT(list->text, HasSubstr("bool Firmware::pass()"));
}

struct Stack {
    bool inlined = false;                // the innermost function was, into calls.front()
    std::vector<std::string> functions;  // innermost first
    std::vector<std::string> calls;      // those with a frame of their own
};
Stack stack_of(Debugger& debugger) {
    Stack stack;
    const auto bt = debugger.execute("bt");
    EXPECT_TRUE(bt) << bt.error().text;
    if (!bt) return stack;
    stack.inlined = bt->data["frames"][0]["inlined"];
    for (const Json& frame : bt->data["frames"]) {
        stack.functions.push_back(frame["function"]);
        if (!frame["inlined"].get<bool>()) stack.calls.push_back(frame["function"]);
    }
    return stack;
}

TEST(Symbols, StacksReachTheFirstFunctionAndFinishGoesUp) {
    auto made = Debugger::make(open(), {});
    ASSERT_TRUE(made) << made.error().text;
    Debugger& debugger = **made;
    unsigned left_inlined = 0, returned = 0;
    for (std::size_t decision = 0; decision < debugger.history().decisions().size(); decision += 3) {
        ASSERT_TRUE(debugger.execute(fmt::format("goto decision {}", decision)));
        Stack stack = stack_of(debugger);
        ASSERT_GE(stack.calls.size(), 2u);
        ASSERT_EQ(stack.calls.back(), "_start") << testing::PrintToString(stack.calls);
        // As far as to the loop that never returns.
        for (int times = 0; times < 30 && stack.calls.size() > 2; ++times) {
            const auto finished = debugger.execute("finish");
            ASSERT_TRUE(finished) << finished.error().text;
            const Stack outside = stack_of(debugger);
            const std::vector<std::string> callers(stack.calls.begin() + 1, stack.calls.end());
            if (!stack.inlined) {
                ASSERT_EQ(outside.calls, callers) << "decision " << decision;
                ++returned;
            } else if (outside.calls != callers) {
                ASSERT_EQ(outside.calls, stack.calls) << "decision " << decision;
                ++left_inlined;
            }
            stack = outside;
        }
    }
    EXPECT_GT(left_inlined, 5u);
    EXPECT_GT(returned, 0u);
}

struct Ran {
    int status = -1;
    std::string out;
};
Ran program(const std::string& arguments) {
    Ran ran;
    const std::string command = std::string(ORRERY_STEP) + " " + arguments + " 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    char buffer[4096];
    for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
        ran.out.append(buffer, got);
    const int status = pclose(pipe);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ran;
}

TEST(Program, AnswersInJsonAndInText) {
    const Ran json = program(recording() +
                             " --json -c info -c 'step 3 decision' -c why -c 'back decision' -c summary -c "
                             "'until event.type == preempt'");
    EXPECT_EQ(json.status, 0) << json.out;
    std::vector<Json> objects;
    for (std::size_t at = 0; at < json.out.size();) {
        const std::size_t end = json.out.find('\n', at);
        objects.push_back(Json::parse(json.out.substr(at, end - at)));
        at = end + 1;
    }
    ASSERT_EQ(objects.size(), 6u);
    for (const Json& object : objects)
        EXPECT_TRUE(object["ok"].get<bool>()) << object.dump();
    EXPECT_EQ(objects[2]["result"]["decision"], 2);
    EXPECT_EQ(objects[4]["result"]["queues"][0]["class"], "high");
    EXPECT_EQ(objects[5]["result"]["event"]["type"], "preempt");
    const Ran text =
        program(recording() + " -c 'break Firmware::pass' -c list -c 'diff " + recording() + "'");
    EXPECT_EQ(text.status, 0) << text.out;
    EXPECT_THAT(text.out, HasSubstr("decisions are the same, at the same times"));
    EXPECT_EQ(text.out.find('\x1b'), std::string::npos) << "no colours into a pipe";
}

// A kernel that never ends is aborted at the limit of a dispatch. Without that limit it runs on, until the
// what-if is ended.
TEST(Program, FailsWhenAWhatIfDoesNotEnd) {
    const std::string base = ::testing::TempDir() + fmt::format("orrery-step-hung-{}", getpid());
    const std::string scenario = base + ".toml", trace = base + ".otrace", script = base + ".script";
    ASSERT_TRUE(write_file(scenario, R"(
name = "hung"
until = "10ms"
[[context]]
name = "c"
[[queue]]
name = "q"
context = "c"
[[submit]]
queue = "q"
at = "1100us"
jobs = [{op = "kernel", cycles = 1000000000}]
)"));
    const Ran recorded = program(fmt::format("run {} --policy limit_us=1000 -o {}", scenario, trace));
    EXPECT_EQ(recorded.status, 0) << recorded.out;
    const std::string patient = " --policy limit_us=60000000", complaint = "not all work was done when";
    for (const std::string& arguments :
         {"whatif " + trace + patient, trace + " -c 'whatif" + patient + "' -c summary"}) {
        const Ran stuck = program(arguments);
        EXPECT_EQ(stuck.status, 1) << arguments;
        EXPECT_THAT(stuck.out, HasSubstr("NOT DONE: the what-if ended at")) << arguments;
        EXPECT_THAT(stuck.out, HasSubstr(complaint)) << arguments;
    }
    const Ran json = program(trace + " --json -c 'whatif" + patient + "'");
    const Json object = Json::parse(json.out);
    EXPECT_EQ(object["ok"], false);
    EXPECT_THAT(object["error"].get<std::string>(), HasSubstr(complaint));
    EXPECT_TRUE(object["result"].contains("what_if"));
    // A script that is sourced ends there.
    ASSERT_TRUE(write_file(script, "whatif" + patient + "\nsummary\n"));
    const Ran sourced = program(trace + " -c 'source " + script + "'");
    EXPECT_EQ(sourced.status, 1);
    EXPECT_THAT(sourced.out, HasSubstr("orrery-step-hung"));
    EXPECT_THAT(sourced.out, HasSubstr(":1: " + complaint));
    const Ran same = program("whatif " + trace + " --policy slice_us=50");
    EXPECT_EQ(same.status, 0) << same.out;
    for (const std::string& file : {scenario, trace, script})
        std::filesystem::remove(file);
}

TEST(Program, FailsWhenACommandFails) {
    EXPECT_EQ(program(recording() + " -c nonsense -c summary").status, 1);
    EXPECT_EQ(program("/nowhere.otrace -c summary").status, 1);
    EXPECT_EQ(program("").status, 2);
    EXPECT_EQ(program("--nonsense").status, 2);
    EXPECT_EQ(program(recording() + " --elf /bin/sh -c summary").status, 1);
    EXPECT_EQ(program("run /nowhere.toml -o x").status, 1);
    EXPECT_EQ(program("--help").status, 0);
}

// What the program shows at a terminal of its own, in `folder`, which is its home too.
std::string at_a_terminal(const std::string& folder, const std::string& typed) {
    int terminal = -1;
    const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (child == 0) {
        setenv("HOME", folder.c_str(), 1);
        unsetenv("XDG_CONFIG_HOME");
        unsetenv("XDG_STATE_HOME");
        setenv("TERM", "dumb", 1);
        if (chdir(folder.c_str()) == 0) execl(ORRERY_STEP, ORRERY_STEP, recording().c_str(), nullptr);
        _exit(127);
    }
    EXPECT_EQ(write(terminal, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
    std::string shown;
    char buffer[4096];
    for (ssize_t got; (got = read(terminal, buffer, sizeof buffer)) > 0;)
        shown.append(buffer, static_cast<std::size_t>(got));
    int status = 0;
    waitpid(child, &status, 0);
    close(terminal);
    EXPECT_EQ(status, 0) << shown;
    return shown;
}

TEST(Program, APromptBeginsWithTheInitFiles) {
    const std::string folder = ::testing::TempDir() + fmt::format("orrery-step-home-{}", getpid());
    std::filesystem::create_directories(folder + "/.config/orrery");
    ASSERT_TRUE(write_file(folder + "/.config/orrery/step", "break decision.rule == preempt\n"));
    ASSERT_TRUE(write_file(folder + "/.orrery-step", "watch queue[1].state\n"));
    std::filesystem::permissions(folder + "/.orrery-step", std::filesystem::perms(0600));
    const std::string both = at_a_terminal(folder, "info\nquit\n");
    EXPECT_THAT(both, HasSubstr("break      1: decision.rule == preempt"));
    EXPECT_THAT(both, HasSubstr("watch      2: queue[1].state"));
    // One that others could have written is named and left out.
    std::filesystem::permissions(folder + "/.orrery-step", std::filesystem::perms(0666));
    const std::string one = at_a_terminal(folder, "info\nquit\n");
    EXPECT_THAT(one, HasSubstr("break      1: decision.rule == preempt"));
    EXPECT_THAT(one, HasSubstr(".orrery-step is not read"));
    EXPECT_THAT(one, testing::Not(HasSubstr("watch      2")));
    std::filesystem::remove_all(folder);
}

TEST(Program, RefusesACutRecording) {
    const auto bytes = read_file(recording());
    ASSERT_TRUE(bytes);
    const std::string cut = recording() + ".cut";
    ASSERT_TRUE(
        write_file(cut, std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size() - 100)));
    const Ran ran = program(cut + " -c summary");
    std::filesystem::remove(cut);
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.out, HasSubstr("offset"));
}

}  // namespace
}  // namespace orrery::step
