// Runs a suite's command.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/bench/figures.h"

namespace orrery::bench {

struct Places {
    std::filesystem::path root;      // of the project: where commands run
    std::filesystem::path programs;  // $BIN
    std::filesystem::path out;       // $OUT; what commands say on standard error is kept there
};

// The measurements that it printed. Throws std::runtime_error with the end of what it said if it failed.
nlohmann::ordered_json run(const Suite& suite, const std::vector<std::uint64_t>& sizes, const Places& places);

}  // namespace orrery::bench
