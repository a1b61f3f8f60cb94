// Results of earlier runs: a line of JSON a run, {"date", "commit", "host_factor", "figures": [...]}, the
// latest last. Lines that cannot be read are left alone.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/result.h"

namespace orrery::bench {

struct Earlier {
    double value = 0, p10 = 0, p90 = 0;
    std::optional<double> ratio;
    bool operator==(const Earlier&) const = default;
};

class History {
  public:
    // A file that is not there is an empty history.
    static History read(const std::filesystem::path& file);
    // The latest of the figure with this label.
    std::optional<Earlier> latest(const std::string& label) const;
    std::size_t runs() const { return runs_; }

  private:
    std::map<std::string, Earlier> latest_;
    std::size_t runs_ = 0;
};

// "3 % less", "1.4 x", "same": how the result stands to an earlier one. A ratio to a yardstick is compared if
// both have one, else the value; within the spread of both it is the same.
std::string change(const Result& result, const Earlier& earlier);

// Throws std::runtime_error if it cannot be written.
void append(const std::filesystem::path& file, const std::vector<Result>& results, const std::string& commit,
            std::optional<double> host_factor);

}  // namespace orrery::bench
