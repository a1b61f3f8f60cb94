// What docs/firmware.md says that the scheduler costs must be what is measured.
#pragma once

#include <cstddef>
#include <string_view>

namespace orrery::fw::test {

// In a table of the page: the number `nth` (from 0) of the second cell in the row whose first cell is `row`.
// Another compiler may move a figure by some percent; more, or a row that is gone, fails the test.
void expect_documented(std::string_view row, std::size_t nth, double measured);

}  // namespace orrery::fw::test
