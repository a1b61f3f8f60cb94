#include "tools/bench/history.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <fstream>

namespace orrery::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSame = 0.03;  // less than that is noise whatever the spread says

std::optional<double> number(const Json& entry, const char* key) {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
}

std::string now_text() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

}  // namespace

History History::read(const std::filesystem::path& file) {
    History history;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        const Json run = Json::parse(line, nullptr, false);
        if (!run.is_object() || !run.contains("figures") || !run.at("figures").is_array()) continue;
        ++history.runs_;
        for (const Json& entry : run.at("figures")) {
            const auto value = number(entry, "value");
            if (!value || !entry.contains("label") || !entry.at("label").is_string()) continue;
            history.latest_[entry.at("label").get<std::string>()] = {
                *value, number(entry, "p10").value_or(*value), number(entry, "p90").value_or(*value),
                number(entry, "ratio")};
        }
    }
    return history;
}

std::optional<Earlier> History::latest(const std::string& label) const {
    const auto found = latest_.find(label);
    if (found == latest_.end()) return std::nullopt;
    return found->second;
}

std::string change(const Result& result, const Earlier& earlier) {
    const bool ratios = result.ratio && earlier.ratio && *earlier.ratio > 0;
    if (!ratios && earlier.value <= 0) return {};
    const double by = ratios ? *result.ratio / *earlier.ratio : result.value / earlier.value;
    const bool overlap = !ratios && result.p10 <= earlier.p90 && earlier.p10 <= result.p90;
    if (std::abs(by - 1) < kSame || overlap) return "same";
    if (by >= 2 || by <= 0.5) return fmt::format("{:.2g} x", by);
    return fmt::format("{:+.0f} %", (by - 1) * 100);
}

void append(const std::filesystem::path& file, const std::vector<Result>& results, const std::string& commit,
            std::optional<double> host_factor) {
    Json list = Json::array();
    for (const Result& result : results) {
        list.push_back({{"label", result.label()},
                        {"value", result.value},
                        {"p10", result.p10},
                        {"p90", result.p90},
                        {"ratio", result.ratio ? Json(*result.ratio) : Json(nullptr)},
                        {"holds", result.holds ? Json(*result.holds) : Json(nullptr)}});
    }
    const Json run = {{"date", now_text()},
                      {"commit", commit},
                      {"host_factor", host_factor ? Json(*host_factor) : Json(nullptr)},
                      {"figures", std::move(list)}};
    std::ofstream out(file, std::ios::app);
    out << run.dump() << '\n';
    if (!out.flush())
        throw std::runtime_error(fmt::format("{} cannot be written: is the disk full?", file.string()));
}

}  // namespace orrery::bench
