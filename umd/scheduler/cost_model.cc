#include "umd/scheduler/cost_model.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>

namespace orrery::umd {
namespace {

constexpr double kGuess = 20e6;        // 20 us
constexpr std::uint64_t kMemory = 64;  // later measurements count at least 1/64
constexpr const char* kHeader = "orrery-task-costs-1";

}  // namespace

CostModel::Key CostModel::key(const std::string& footprint) {
    const auto [entry, added] = keys_.try_emplace(footprint, static_cast<Key>(entries_.size()));
    if (added) entries_.emplace_back();
    return entry->second;
}

Ps CostModel::expect(Key key) const {
    return entries_[key].count == 0 ? kNever : std::max<Ps>(static_cast<Ps>(entries_[key].mean), 1);
}

bool CostModel::measured(Key key, Ps duration) {
    Entry& entry = entries_[key];
    entry.count = std::min(entry.count + 1, kMemory);
    entry.mean += (static_cast<double>(duration) - entry.mean) / static_cast<double>(entry.count);
    if (entry.told != 0 && std::abs(entry.mean - entry.told) <= entry.told / 5) return false;
    entry.told = entry.mean;
    return true;
}

Ps CostModel::guess() const {
    double sum = 0, count = 0;
    for (const Entry& entry : entries_) {
        if (entry.count == 0) continue;
        sum += entry.mean;
        ++count;
    }
    return static_cast<Ps>(count == 0 ? kGuess : sum / count);
}

Status CostModel::load(const std::string& path) {
    std::ifstream file(path);
    if (!file) return {};
    std::string line;
    if (!std::getline(file, line) || line != kHeader) {
        return fail(orrErrorInvalidValue, "{} does not start with '{}': it is no file of task costs", path,
                    kHeader);
    }
    for (int number = 2; std::getline(file, line); ++number) {
        std::istringstream words(line);
        std::string footprint;
        double mean = 0;
        std::uint64_t count = 0;
        if (!(words >> footprint >> mean >> count) || !std::isfinite(mean) || mean <= 0 || mean > 1e15 ||
            count == 0) {
            return fail(orrErrorInvalidValue,
                        "{}:{}: a footprint, a mean in picoseconds and a count are needed", path, number);
        }
        entries_[key(footprint)] = {mean, std::min(count, kMemory), mean};
    }
    return {};
}

Status CostModel::save(const std::string& path) const {
    std::ofstream file(path, std::ios::trunc);
    file << kHeader << '\n';
    for (const auto& [footprint, key] : keys_) {
        const Entry& entry = entries_[key];
        if (entry.count != 0) file << footprint << ' ' << entry.mean << ' ' << entry.count << '\n';
    }
    file.close();
    if (!file) return fail_errno(errno, fmt::format("writing task costs to {}", path));
    return {};
}

}  // namespace orrery::umd
