#include "tests/unit/firmware/documented.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace orrery::fw::test {
namespace {

constexpr double kMayDiffer = 0.05;

struct Number {
    double value = 0;
    double digit = 1;  // what one in its last place is worth
};

std::vector<Number> numbers_of(std::string_view row) {
    const std::string begin = "| " + std::string(row) + " |";
    std::vector<Number> numbers;
    std::ifstream page(DOCUMENTED_IN);
    for (std::string line; std::getline(page, line);) {
        if (!line.starts_with(begin)) continue;
        const std::string cell = line.substr(begin.size(), line.find('|', begin.size()) - begin.size());
        static const std::regex number(R"(\d+(?:\.(\d+))?)");
        for (std::sregex_iterator at(cell.begin(), cell.end(), number), end; at != end; ++at)
            numbers.push_back({std::stod(at->str()), std::pow(10, -static_cast<double>(at->length(1)))});
        break;
    }
    return numbers;
}

}  // namespace

void expect_documented(std::string_view row, std::size_t nth, double measured) {
    // Exact, for who changes the firmware: --gtest_output=json:FILE.
    const std::string name = std::string(row) + (nth == 0 ? "" : ", number " + std::to_string(nth + 1));
    ::testing::Test::RecordProperty(name, std::to_string(measured));
    const std::vector<Number> numbers = numbers_of(row);
    ASSERT_LT(nth, numbers.size()) << DOCUMENTED_IN << ": the row '" << row << "' should hold " << measured;
    const auto [value, digit] = numbers[nth];
    EXPECT_LE(std::abs(value - measured), kMayDiffer * measured + digit / 2)
        << DOCUMENTED_IN << ": the row '" << row << "' says " << value << ", and it is " << measured;
}

}  // namespace orrery::fw::test
