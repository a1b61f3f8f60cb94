// What lockdep has seen: chains of locks, in the order in which they were taken by somebody who then held all
// of them.
#pragma once

#include <string>
#include <vector>

namespace orrery::kmod_test {

// All chains so far, by the locks' names. Fails the test if the kernel tells none.
std::vector<std::vector<std::string>> lock_chains();

}  // namespace orrery::kmod_test
