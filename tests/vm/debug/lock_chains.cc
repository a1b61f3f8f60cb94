#include "tests/vm/debug/lock_chains.h"

#include <gtest/gtest.h>

#include <fstream>

namespace orrery::kmod_test {

std::vector<std::vector<std::string>> lock_chains() {
    std::ifstream file("/proc/lockdep_chains");
    std::vector<std::vector<std::string>> chains;
    for (std::string line; std::getline(file, line);) {
        // "irq_context: …" begins a chain, "[address] name" is a lock of it.
        if (line.starts_with("irq_context")) chains.emplace_back();
        const auto end = line.find("] ");
        if (line.starts_with("[") && end != std::string::npos && !chains.empty())
            chains.back().push_back(line.substr(end + 2));
    }
    EXPECT_FALSE(chains.empty()) << "this kernel does not look after locks";
    return chains;
}

}  // namespace orrery::kmod_test
