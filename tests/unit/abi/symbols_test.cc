// The symbols that liborrery exports are those of its headers, each in the node of its release; and headers
// that break the rules stop the build.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace {

namespace fs = std::filesystem;
using Symbols = std::map<std::string, std::string>;  // with the node

std::string contents(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

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
    for (const auto& release : fs::directory_iterator(fs::path(ORRERY_CHECKOUT) / "umd/api/symbols")) {
        std::ifstream file(release.path());
        for (std::string line; std::getline(file, line);) {
            if (!line.starts_with('#')) symbols[line] = "ORRERY_" + release.path().filename().string();
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
        if (name.starts_with("orr")) functions[name] = node;
        EXPECT_TRUE(name.starts_with("orr") || name.starts_with("ORRERY_")) << name << " leaves the library";
    }
    EXPECT_EQ(functions, wanted);
}

TEST(Symbols, AllHaveAnEntryPoint) {
    const std::string source = contents(fs::path(GENERATED) / "entry_points.cc");
    for (const auto& [name, node] : listed()) {
        EXPECT_NE(source.find(fmt::format("ORR_ENTRY({}", name)), std::string::npos) << name;
    }
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

class Headers : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / fmt::format("orrery-apigen-{}", ::getpid());
        fs::create_directories(folder_ / "include/orrery");
        fs::create_directories(folder_ / "symbols");
        fs::create_directories(folder_ / "out");
    }
    void TearDown() override { fs::remove_all(folder_); }
    void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
    void header(const std::string& text) {
        write("include/orrery/api.h", "#define ORR_API __attribute__((visibility(\"default\")))\n" + text);
    }
    // Exit status; what it printed is in output_.
    int run() {
        const std::string command =
            fmt::format("cd {} && {} include symbols out > output 2>&1", folder_.string(), APIGEN);
        const int status = std::system(command.c_str());
        output_ = contents(folder_ / "output");
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    fs::path folder_;
    std::string output_;
};

TEST_F(Headers, MakeANodeForEachRelease) {
    header(
        "/** Old. */\nORR_API int orrOld(int x);\n/** New. */\nORR_API int orrNew(void);\nint "
        "hidden(void);\n");
    write("symbols/0.2", "# comment\norrOld\n");
    write("symbols/0.10", "orrNew\n");
    ASSERT_EQ(run(), 0) << output_;
    EXPECT_EQ(contents(folder_ / "out/orrery.map"),
              "ORRERY_0.2 {\n  global:\n    orrOld;\n  local: *;\n};\n"
              "ORRERY_0.10 {\n  global:\n    orrNew;\n} ORRERY_0.2;\n");
    EXPECT_THAT(contents(folder_ / "out/entry_points.cc"), ::testing::HasSubstr("ORR_ENTRY(orrOld, x)"));
}

TEST_F(Headers, WithoutAnEntryInAListAreRefused) {
    header("/** Old. */\nORR_API int orrOld(int x);\n/** New. */\nORR_API int orrNew(void);\n");
    write("symbols/0.2", "orrOld\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("api.h declares orrNew, which is in no release"));
}

TEST_F(Headers, ThatLackWhatAReleaseHadAreRefused) {
    header("/** Old. */\nORR_API int orrOld(int x);\n");
    write("symbols/0.2", "orrOld\norrGone\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("orrGone, which no header declares"));
    write("symbols/0.2", "orrOld\n");
    write("symbols/0.3", "orrOld\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("orrOld is listed twice"));
}

TEST_F(Headers, WithoutDocumentationAreRefused) {
    header("/* no doc comment */\nORR_API int orrOld(int x);\n");
    write("symbols/0.2", "orrOld\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("orrOld has no comment"));
}

TEST_F(Headers, WhoseResultsComeLateAreRefused) {
    header("/** Old. */\nORR_API int orrOld(int x, int* result);\n");
    write("symbols/0.2", "orrOld\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("gives back result behind x"));
}

}  // namespace
