// Script mode: text, JSON, exit.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/unit/step/story.h"
#include "tools/step/commands/script.h"

namespace orrery::step {
namespace {

std::string output(const std::vector<std::string>& lines, bool json, bool& good) {
    const auto debugger = debug(three_queues());
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* out = open_memstream(&text, &size);
    good = run_script(*debugger, lines, json, out);
    std::fclose(out);
    std::string result(text, size);
    std::free(text);  // NOLINT(cppcoreguidelines-no-malloc): as open_memstream wants
    return result;
}

TEST(Script, ShowsCommandsAndTheirReplies) {
    bool good = false;
    EXPECT_EQ(output({"goto 17", "", "# nothing", "print 1 + 1"}, false, good),
              "orrery-step> goto 17\nstep 17  1.017 us  0x80000444\norrery-step> print 1 + 1\n1 + 1 = 2\n");
    EXPECT_TRUE(good);
}

TEST(Script, GoesOnAfterAFailureAndReportsIt) {
    bool good = true;
    EXPECT_EQ(
        output({"print", "print 2"}, false, good),
        "orrery-step> print\nerror: print what? 'print queue[3].vtime', 'print a0 + 8', 'print /x mcause'\n"
        "orrery-step> print 2\n2 = 2\n");
    EXPECT_FALSE(good);
}

TEST(Script, EndsWithQuit) {
    bool good = false;
    EXPECT_EQ(output({"quit", "print 2"}, false, good), "orrery-step> quit\n");
    EXPECT_TRUE(good);
}

TEST(Script, WritesAnObjectOfJsonForEachCommand) {
    bool good = true;
    const std::string text = output({"why 1", "nonsense", "queues", "summary", "waits", "timeline", "events",
                                     "contexts", "engines", "info", "where", "help", "step", "list"},
                                    true, good);
    EXPECT_FALSE(good);
    std::vector<Json> objects;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        ASSERT_NE(end, std::string::npos);
        objects.push_back(Json::parse(text.substr(at, end - at)));
        at = end + 1;
    }
    ASSERT_EQ(objects.size(), 14u);
    for (const Json& object : objects) {
        EXPECT_TRUE(object["command"].is_string());
        EXPECT_EQ(object["ok"].get<bool>(), object["command"] != "nonsense");
        EXPECT_EQ(object.contains("result"), object["ok"].get<bool>());
        EXPECT_EQ(object.contains("error"), !object["ok"].get<bool>());
    }
    EXPECT_EQ(objects[0]["result"]["candidates"][1]["queue"], 1);
    EXPECT_EQ(objects[12]["result"]["event"]["type"], "context");
}

}  // namespace
}  // namespace orrery::step
