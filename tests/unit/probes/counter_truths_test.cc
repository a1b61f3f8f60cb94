// No counter without a test that knows by itself how much there is to count.
#include "tests/unit/probes/counter_truths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace orrery::emu::test {
namespace {

struct Catalogued {
    orr_counter number;
    const char *constant, *name;
};
#define COUNTER(number, NAME, name, unit, engine, meaning) {ORR_CTR_##NAME, "ORR_CTR_" #NAME, name},
constexpr Catalogued kCatalogue[] = {ORR_COUNTER_LIST(COUNTER)};
#undef COUNTER
static_assert(std::size(kCatalogue) == ORR_COUNTER_COUNT);

std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(std::filesystem::path(SOURCE_FOLDER) / "tests/unit" / file);
    return {std::istreambuf_iterator<char>(in), {}};
}

bool is_of_a_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Not as the beginning or the end of a longer word.
bool says(std::string_view text, std::string_view word) {
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_of_a_word(text[at - 1])) && (end == text.size() || !is_of_a_word(text[end])))
            return true;
    }
    return false;
}

// Strings of these tests have no // in them.
std::string without_comments(std::string_view text) {
    std::string code;
    while (!text.empty()) {
        const std::size_t comment = std::min(text.find("//"), text.find("/*"));
        code += text.substr(0, comment);
        if (comment == std::string_view::npos) break;
        const bool whole_line = text[comment + 1] == '/';
        const std::size_t end = text.find(whole_line ? "\n" : "*/", comment + 2);
        if (end == std::string_view::npos) break;
        code += ' ';
        text.remove_prefix(end + (whole_line ? 0 : 2));
    }
    return code;
}

// From its TEST to its closing brace, which stands alone at the beginning of a line.
std::optional<std::string_view> body(std::string_view text, const TruthTest& test) {
    for (const std::string_view macro : {"TEST(", "TEST_F(", "TEST_P("}) {
        const std::string head =
            "\n" + std::string(macro) + std::string(test.suite) + ", " + std::string(test.name) + ") {\n";
        const std::size_t begin = text.find(head);
        if (begin == std::string_view::npos) continue;
        const std::size_t end = text.find("\n}\n", begin);
        if (end == std::string_view::npos) return std::nullopt;
        return text.substr(begin, end - begin);
    }
    return std::nullopt;
}

TEST(CounterTruths, CommentsAreNoCode) {
    EXPECT_EQ(without_comments("a // b\nc /* d\n// e */ f / g // h"), "a  \nc   f / g ");
    EXPECT_FALSE(says(without_comments("of(X); // of Y\n"), "Y"));
}

TEST(CounterTruths, EachCounterHasOne) {
    for (const Catalogued& each : kCatalogue)
        EXPECT_EQ(std::ranges::count(kCounterTruths, each.number, &CounterTruth::counter), 1)
            << each.name << ": write a test that knows how much there is to count (a closed form, a replay), "
            << "and name it in tests/unit/probes/counter_truths.h";
}

TEST(CounterTruths, EachIsATestThatIsBuiltAndNamesItsCounter) {
    for (const CounterTruth& truth : kCounterTruths) {
        const Catalogued& counter = *std::ranges::find(kCatalogue, truth.counter, &Catalogued::number);
        const TruthTest& test = truth.test;
        const std::filesystem::path file(test.file);
        const std::string text = text_of(file);
        ASSERT_FALSE(text.empty()) << test.file << " of " << counter.name << " is not there";
        EXPECT_TRUE(says(text_of(file.parent_path() / "CMakeLists.txt"), file.filename().string()))
            << test.file << " is built by nobody";
        const auto said = body(text, test);
        ASSERT_TRUE(said) << test.file << " has no " << test.suite << '.' << test.name << ", of "
                          << counter.name;
        const std::string_view named = truth.by.empty() ? std::string_view(counter.constant) : truth.by;
        EXPECT_TRUE(says(without_comments(*said), named))
            << test.suite << '.' << test.name << " says nothing of " << named << ", of " << counter.name;
    }
}

}  // namespace
}  // namespace orrery::emu::test
