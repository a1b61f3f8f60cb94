// Tools that the environment names, with the real library: loaded, or refused with a line that says why.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Ran {
    int status;
    std::string output;  // with stderr
};

Ran run(const std::string& tools, const std::string& arguments = "") {
    const std::string command = fmt::format("ORR_PROF_TOOL='{}' {} {} 2>&1", tools, PROGRAM, arguments);
    std::FILE* const pipe = ::popen(command.c_str(), "re");
    Ran ran{-1, {}};
    std::array<char, 4096> piece{};
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
        ran.output.append(piece.data(), got);
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) ran.status = WEXITSTATUS(status);
    return ran;
}

std::string tool(const std::string& fault = "") {
    return TOOLS + fault + ".so";
}

constexpr const char* kWork = "orrSuccess\n";
constexpr const char* kTold =
    "tool: start\ntool: +orrGetErrorName\ntool: -orrGetErrorName\norrSuccess\ntool: stop\n";

TEST(Tools, AreToldFromTheFirstCallToTheEnd) {
    const Ran ran = run(tool());
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.output, kTold);
}

TEST(Tools, OfTheGuideIsOne) {
    const Ran ran = run(PAGE_TOOL, "thread");
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.output, StartsWith(kWork));
    EXPECT_THAT(ran.output, ::testing::ContainsRegex("mine: orrGetErrorName 1 times, [0-9]+ us\n"));
    EXPECT_THAT(ran.output, HasSubstr("mine: 0 kernels, 0 us of model time\n"));
}

TEST(Tools, AreNoneWithoutTheVariable) {
    EXPECT_EQ(run("").output, kWork);
    EXPECT_EQ(run("::").output, kWork);
}

TEST(Tools, HearOfRangesBeforeTheFirstCall) {
    EXPECT_EQ(run(tool(), "range").output,
              "tool: start\ntool: [work\ntool: +orrGetErrorName\ntool: -orrGetErrorName\norrSuccess\n"
              "tool: ]\ntool: stop\n");
}

TEST(Tools, HearOfOtherThreads) {
    EXPECT_THAT(run(tool(), "thread").output, HasSubstr("tool: +orrGetErrorString\n"));
}

// Each is refused in a line that names it, and the program and the other tool go on.
void expect_refused(const std::string& path, const std::string& why) {
    const Ran ran = run(path + ":" + tool());
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.output, StartsWith("liborrery: ORR_PROF_TOOL: " + path + ": "));
    EXPECT_THAT(ran.output, HasSubstr(why));
    EXPECT_THAT(ran.output, HasSubstr(std::string("; the program goes on without it\n") + kTold));
}

TEST(Tools, ThatCannotBeUsedAreRefused) {
    expect_refused("/nowhere/tool.so", "cannot be loaded (/nowhere/tool.so: cannot open shared object file");
    expect_refused("/etc/passwd", "cannot be loaded");
    expect_refused(tool("_OLD"), "it is a tool of version 77, and this library takes version 1");
    expect_refused(tool("_SHORT"), "has 16 bytes, and 40 are needed");
    expect_refused(tool("_SILENT"), "exports no orrery_prof_tool");
    expect_refused(tool("_UNWILLING"), "its start() gave error 14");
}

TEST(Tools, ThatAreNamedTwiceStartOnce) {
    const Ran ran = run(tool() + ":" + tool());
    EXPECT_THAT(ran.output, HasSubstr("it is named twice"));
    EXPECT_THAT(ran.output, HasSubstr("tool: +orrGetErrorName\ntool: -orrGetErrorName\n"));
}

}  // namespace
