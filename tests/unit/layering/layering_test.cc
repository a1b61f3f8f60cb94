// Enforces the arrows between the parts and the size of files over the whole tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/unit/layering/rules.h"

namespace orrery::layering {
namespace {

const std::filesystem::path kRoot = ORRERY_SOURCE_DIR;

std::string read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

TEST(Rules, TellForbiddenFromAllowed) {
    EXPECT_EQ(why_forbidden("emulator/card/card.cc", "orrery/hw/bar0.h"), "");
    EXPECT_NE(why_forbidden("emulator/card/card.cc", "orrery/fw/packet.h"), "");
    EXPECT_NE(why_forbidden("emulator/core/hart.cc", "emulator/memory/mmu.h"), "");
    EXPECT_NE(why_forbidden("emulator/engines/copy.cc", "emulator/card/card.h"), "");
    EXPECT_NE(why_forbidden("umd/runtime/stream.cc", "emulator/time/event_queue.h"), "");
    EXPECT_EQ(why_forbidden("umd/runtime/stream.cc", "orrery/fw/packet.h"), "");
    EXPECT_NE(why_forbidden("kmod/orr_drv.c", "orrery/orrery.h"), "");
    EXPECT_NE(why_forbidden("tools/smi/main.cc", "umd/runtime/device.h"), "");
    EXPECT_NE(why_forbidden("firmware/include/orrery/fw/queue.h", "firmware/sched/queue/queue.h"), "");
    EXPECT_NE(why_forbidden("firmware/sched/sync/gang.cc", "firmware/sched/scheduler.h"), "");
    EXPECT_NE(why_forbidden("firmware/sched/sync/gang.cc", "firmware/sched/scheduler_inline.h"), "");
    EXPECT_EQ(why_forbidden("firmware/sched/sync/waits.cc", "firmware/sched/scheduler.h"), "");
    EXPECT_EQ(why_forbidden("tools/step/session/session.h", "tools/step/program/program.h"), "");
    EXPECT_NE(why_forbidden("tools/step/session/session.h", "tools/step/commands/debugger.h"), "");
    EXPECT_NE(why_forbidden("tools/step/nowhere/x.cc", "tools/step/session/session.h"), "");
    EXPECT_EQ(why_forbidden("tools/step/commands/whatif.cc", "tools/scenario/whatif.h"), "");
    EXPECT_EQ(why_forbidden("tools/records/why.cc", "tools/text/units.h"), "");
    EXPECT_NE(why_forbidden("tools/records/why.cc", "tools/step/commands/debugger.h"), "");
    EXPECT_NE(why_forbidden("tools/scenario/runner.cc", "tools/step/session/session.h"), "");
    EXPECT_NE(why_forbidden("tools/vm/main.cc", "tools/records/why.h"), "");
    EXPECT_EQ(why_forbidden("tools/step/session/session.h", "emulator/api/replayer.h"), "");
    EXPECT_NE(why_forbidden("tools/step/session/session.h", "emulator/trace/replay_core.h"), "");
    EXPECT_NE(why_forbidden("tools/scenario/machine.cc", "emulator/card/card.h"), "");
    EXPECT_NE(why_forbidden("umd/runtime/stream.cc", "emulator/api/lone_card.h"), "");
    EXPECT_NE(why_forbidden("emulator/api/replayer.h", "emulator/core/hart.h"), "");
    EXPECT_EQ(why_forbidden("tools/step/main.cc", "tools/step/commands/debugger.h"), "");
    EXPECT_NE(why_forbidden("emulator/nowhere/x.cc", "emulator/core/hart.h"), "");
    EXPECT_NE(why_forbidden("emulator/soc/windows.h", "emulator/card/card.h"), "");
    EXPECT_NE(why_forbidden("emulator/card/card.h", "emulator/host/host_registers.h"), "");
    EXPECT_NE(why_forbidden("firmware/hal/hal.h", "firmware/sched/scheduler.h"), "");
    EXPECT_NE(why_forbidden("firmware/sched/queue/queue.h", "firmware/sched/policy/tenants.h"), "");
    EXPECT_NE(why_forbidden("firmware/sched/queue/queue.h", "firmware/sched/scheduler.h"), "");
    EXPECT_NE(why_forbidden("firmware/sched/nowhere/x.cc", "firmware/sched/scheduler.h"), "");
    EXPECT_EQ(why_forbidden("firmware/sched/policy/tenants.h", "firmware/sched/queue/queue.h"), "");
    EXPECT_EQ(why_forbidden("firmware/sched/queue/lifecycle.cc", "firmware/sched/recover/restart.h"), "");
    EXPECT_EQ(why_forbidden("firmware/main/firmware.cc", "firmware/version.h"), "");
    EXPECT_EQ(why_forbidden("tests/unit/card/x.cc", "emulator/card/card.h"), "");
}

TEST(Rules, FindIncludes) {
    const auto found =
        includes_of("int a;\n#include <x/y.h>\n  #  include \"z.h\" // why\n#define include\n");
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].name, "x/y.h");
    EXPECT_EQ(found[0].line, 2);
    EXPECT_EQ(found[1].name, "z.h");
}

TEST(Tree, HasOnlyAllowedArrows) {
    const auto files = source_files(kRoot);
    ASSERT_GT(files.size(), 20u) << "the scan found almost nothing below " << kRoot;
    for (const std::string& file : files)
        for (const Include& include : includes_of(read(kRoot / file)))
            EXPECT_EQ(why_forbidden(file, include.name), "")
                << file << ":" << include.line << " includes " << include.name;
}

TEST(Tree, HasNoFileOverTheLimit) {
    for (const std::string& file : source_files(kRoot)) {
        const std::string text = read(kRoot / file);
        EXPECT_LE(std::ranges::count(text, '\n'), kMaxLines) << file << ": split it by subject";
    }
}

TEST(Tree, TopLevelIsTheAgreedOne) {
    const std::set<std::string> allowed = {"Makefile",  "kmod",    "firmware",       "umd",
                                           "emulator",  "tools",   "tests",          "docs",
                                           "README.md", "LICENSE", "CMakeLists.txt", "CMakePresets.json",
                                           "build"};
    for (const auto& entry : std::filesystem::directory_iterator(kRoot)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(".")) continue;
        EXPECT_TRUE(allowed.contains(name)) << name << " is not part of the agreed top level";
    }
}

TEST(Docs, EverySubsystemPageEndsInKnownLimits) {
    int pages = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kRoot / "docs")) {
        if (entry.path().extension() != ".md") continue;
        if (entry.path().filename() == "dependencies.md") continue;  // a list of reasons, not a subsystem
        ++pages;
        const std::string text = read(entry.path());
        const size_t last = text.rfind("\n## ");
        ASSERT_NE(last, std::string::npos) << entry.path();
        EXPECT_TRUE(text.substr(last + 4).starts_with("Known limits")) << entry.path();
    }
    EXPECT_GT(pages, 0);
}

int columns(const std::string& line) {
    // Bytes that begin a character.
    return static_cast<int>(
        std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

TEST(Docs, ProseIsWrapped) {
    constexpr int kColumns = 100;
    std::vector<std::filesystem::path> pages = {kRoot / "README.md"};
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "docs"))
        if (entry.path().extension() == ".md") pages.push_back(entry.path());
    EXPECT_GT(pages.size(), 10u);
    for (const auto& page : pages) {
        std::istringstream in(read(page));
        std::string line;
        bool code = false;
        for (int number = 1; std::getline(in, line); ++number) {
            const size_t first = line.find_first_not_of(' ');
            if (first == std::string::npos) continue;
            const bool fence = line.compare(first, 3, "```") == 0;
            if (fence) code = !code;
            // Code and tables are as wide as they are; one word, mostly a link, cannot be wrapped.
            if (fence || code || line[first] == '|' || line.starts_with("    ") ||
                line.find(' ', first) == std::string::npos)
                continue;
            EXPECT_LE(columns(line), kColumns) << page << ":" << number << ": " << line;
        }
        EXPECT_FALSE(code) << page << ": a block of code has no end";
    }
}

}  // namespace
}  // namespace orrery::layering
