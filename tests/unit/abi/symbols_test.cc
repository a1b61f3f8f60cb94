// The symbols that liborrery exports are those of its headers, each in the node of its release; and headers
// that break the rules stop the build.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "tests/unit/abi/apigen.h"

namespace {

namespace fs = std::filesystem;
using orrery::test::contents;
using ::testing::HasSubstr;
using Symbols = std::map<std::string, std::string>;  // with the node

std::string output_of(const std::string& command) {
    const fs::path file = fs::temp_directory_path() / fmt::format("orrery-abi-{}", ::getpid());
    EXPECT_EQ(std::system((command + " > " + file.string()).c_str()), 0) << command;
    std::string text = contents(file);
    fs::remove(file);
    return text;
}

// "orrMalloc@@ORRERY_0.2" of all lines.
Symbols versioned(const std::string& text) {
    Symbols symbols;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        const auto at = word.find('@');
        if (at == std::string::npos) continue;
        symbols[word.substr(0, at)] = word.substr(word.find_last_of('@') + 1);
    }
    return symbols;
}

Symbols listed() {
    Symbols symbols;
    for (const auto& release : fs::directory_iterator(fs::path(ORRERY_CHECKOUT) / "umd/api/releases")) {
        std::istringstream lines(contents(release.path()));
        for (std::string line; std::getline(lines, line);) {
            std::string kind, name;
            if (std::istringstream(line) >> kind >> name && kind == "function")
                symbols[name] = "ORRERY_" + release.path().filename().string();
        }
    }
    return symbols;
}

TEST(Symbols, AreExportedAsTheListsSay) {
    const auto exported =
        versioned(output_of("nm --dynamic --defined-only --with-symbol-versions " LIBORRERY));
    auto wanted = listed();
    EXPECT_GT(wanted.size(), 90u);
    Symbols functions;
    for (const auto& [name, node] : exported) {
        if (!name.starts_with("ORRERY_")) functions[name] = node;
    }
    EXPECT_EQ(functions, wanted);
}

TEST(Symbols, AllHaveAnEntryPoint) {
    const std::string source = contents(fs::path(GENERATED) / "entry_points.cc");
    for (const auto& [name, node] : listed()) {
        const char* const form = name.starts_with("orrProf") ? "api::{}\\(" : "ORR_ENTRY(_PLAIN)?\\({}[,)]";
        EXPECT_TRUE(std::regex_search(source, std::regex(fmt::format(fmt::runtime(form), name)))) << name;
    }
}

// Programs that are kept of a release show that it is out.
TEST(Symbols, OfReleasesThatAreOutAreLocked) {
    std::size_t kept = 0;
    for (const auto& release : fs::directory_iterator(fs::path(ORRERY_CHECKOUT) / "tests/vm/compat")) {
        if (!release.is_directory()) continue;
        ++kept;
        const std::string version = release.path().filename();
        EXPECT_THAT(contents(fs::path(ORRERY_CHECKOUT) / "umd/api/releases" / version),
                    HasSubstr("\nreleased "))
            << "lock it: orrery-apigen release " << version << " umd/api/releases";
    }
    EXPECT_GE(kept, 1u);
}

// A page that names a call which is not there sends its reader nowhere.
TEST(Docs, NameNothingThatTheHeadersDoNotHave) {
    std::string headers;
    for (const auto& header : fs::directory_iterator(fs::path(ORRERY_CHECKOUT) / "umd/include/orrery"))
        headers += contents(header.path());
    const std::regex name("\\borr[A-Z][A-Za-z]+");
    std::size_t names = 0;
    for (const auto& page : fs::directory_iterator(fs::path(ORRERY_CHECKOUT) / "docs")) {
        if (page.path().extension() != ".md") continue;
        const std::string text = contents(page.path());
        for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at, ++names) {
            // "orrGraphAdd...Node" names a family.
            EXPECT_NE(headers.find(at->str()), std::string::npos)
                << page.path().filename() << ": " << at->str();
        }
    }
    EXPECT_GT(names, 100u);
}

using Headers = orrery::test::Apigen;

TEST_F(Headers, MakeANodeForEachRelease) {
    header("/** Old. */\nORR_API int orrOld(int x);\n");
    ASSERT_EQ(list("0.2"), 0) << output_;
    ASSERT_EQ(release("0.2"), 0) << output_;
    // A release that brings no function has no node.
    minor_ = 9;
    header("/** Old. */\nORR_API int orrOld(int x);\n#define orrFlag 1\n");
    ASSERT_EQ(list("0.9"), 0) << output_;
    ASSERT_EQ(release("0.9"), 0) << output_;
    minor_ = 10;
    header(
        "/** New. */\nORR_API int orrNew(void);\n/** Old. */\nORR_API int orrOld(int x);\n"
        "#define orrFlag 1\n");
    ASSERT_EQ(list("0.10"), 0) << output_;
    ASSERT_EQ(run(), 0) << output_;
    EXPECT_EQ(made("out/orrery.map"),
              "ORRERY_0.2 {\n  global:\n    orrOld;\n  local: *;\n};\n"
              "ORRERY_0.10 {\n  global:\n    orrNew;\n} ORRERY_0.2;\n");
    EXPECT_THAT(made("out/entry_points.cc"), HasSubstr("ORR_ENTRY(orrOld, x)"));
}

// Profilers know a call by its number.
TEST_F(Headers, MayPutANewFunctionAnywhereAndNoNumberChanges) {
    const std::string a = "/** A. */\nORR_API int orrA(void);\n", b = "/** B. */\nORR_API int orrB(void);\n",
                      x = "/** X. */\nORR_API int orrX(void);\n", y = "/** Y. */\nORR_API int orrY(void);\n";
    header(b + a);
    ASSERT_EQ(list("0.2"), 0) << output_;
    ASSERT_EQ(release("0.2"), 0) << output_;
    minor_ = 3;
    header(b + x + a);
    ASSERT_EQ(list("0.3"), 0) << output_;
    header(y + a + x + b);
    ASSERT_EQ(list("0.3"), 0) << output_;
    ASSERT_EQ(run(), 0) << output_;
    const std::string entries = made("out/entry_points.h");
    EXPECT_THAT(
        made("out/include/orrery/prof_calls.h"),
        HasSubstr("{\n    orrProfCall_orrB = 0,\n    orrProfCall_orrA = 1,\n    orrProfCall_orrX = 2,\n"
                  "    orrProfCall_orrY = 3,\n}"));
    EXPECT_THAT(entries, HasSubstr("{\n    \"orrB\",\n    \"orrA\",\n    \"orrX\",\n    \"orrY\",\n};"));
}

TEST_F(Headers, WithoutDocumentationAreRefused) {
    header("/* no doc comment */\nORR_API int orrOld(int x);\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, HasSubstr("orrOld has no comment"));
}

TEST_F(Headers, WithFunctionsThatNobodyCanCallAreRefused) {
    header("/** Old. */\nORR_API int orrOld(int x);\nint orrHidden(void);\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, HasSubstr("orrHidden is declared without ORR_API"));
}

TEST_F(Headers, WithVariablesAreRefused) {
    header("/** Old. */\nORR_API int orrOld(int x);\nextern ORR_API int orrLevel;\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, HasSubstr("orrLevel is a variable"));
}

TEST_F(Headers, WhoseResultsComeLateAreRefused) {
    header("/** Old. */\nORR_API int orrOld(int x, int* result);\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, HasSubstr("gives back result behind x"));
}

}  // namespace
