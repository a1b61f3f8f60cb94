// What a measuring program prints: a JSON list of measurements, each with all its samples, in the unit that
// the table of figures (tools/bench/figures.cc) names, and with the samples of its yardstick, taken in turns
// with them. Goals stand in that table only.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orrery::bench {

struct Measurement {
    std::string name;
    std::optional<std::uint64_t> size;  // bytes, tasks, ...: what the figure's sizes are
    std::vector<double> samples;
    std::vector<double> yardstick;  // empty: there is none
};

class Measured {
  public:
    void add(Measurement measurement) {
        if (measurement.samples.empty()) throw std::runtime_error(measurement.name + ": there was no sample");
        list_.push_back({{"name", measurement.name},
                         {"size", measurement.size ? Json(*measurement.size) : Json(nullptr)},
                         {"samples", std::move(measurement.samples)},
                         {"yardstick", std::move(measurement.yardstick)}});
    }
    // False: standard output takes no more.
    bool print() const {
        const std::string text = list_.dump() + "\n";
        return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    }

  private:
    using Json = nlohmann::ordered_json;
    Json list_ = Json::array();
};

}  // namespace orrery::bench
