#include "umd/scheduler/cost_model.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>

namespace orrery::umd {
namespace {

constexpr double kGuess = 20e6;  // 20 us
constexpr double kMost = kLongest;
constexpr std::uint64_t kMemory = 64;  // later measurements count at least 1/64
constexpr const char* kHeader = "orrery-task-costs-2";
constexpr const char* kHeaderWithoutSkus = "orrery-task-costs-1";

}  // namespace

CostModel::Key CostModel::key(const std::string& footprint) {
    return keys_.try_emplace(footprint, static_cast<Key>(keys_.size())).first->second;
}

CostModel::Sku CostModel::sku(const std::string& name) {
    const auto [known, added] = skus_.try_emplace(name, static_cast<Sku>(entries_.size()));
    if (added) entries_.emplace_back();
    return known->second;
}

const CostModel::Entry& CostModel::entry(Sku sku, Key key) const {
    static const Entry kNone;
    return key < entries_[sku].size() ? entries_[sku][key] : kNone;
}

CostModel::Entry& CostModel::entry(Sku sku, Key key) {
    if (key >= entries_[sku].size()) entries_[sku].resize(key + 1);
    return entries_[sku][key];
}

Ps CostModel::expect(Sku sku, Key key) const {
    const Entry& known = entry(sku, key);
    return known.count == 0 ? kNever : std::max<Ps>(static_cast<Ps>(known.mean), 1);
}

bool CostModel::measured(Sku sku, Key key, Ps duration) {
    Entry& entry = this->entry(sku, key);
    entry.count = std::min(entry.count + 1, kMemory);
    const Ps known = std::clamp<Ps>(duration, 1, kLongest);
    entry.mean += (static_cast<double>(known) - entry.mean) / static_cast<double>(entry.count);
    if (entry.told != 0 && std::abs(entry.mean - entry.told) <= entry.told / 5) return false;
    entry.told = entry.mean;
    return true;
}

Ps CostModel::guess(Sku sku) const {
    double sum = 0, count = 0;
    for (const Entry& entry : entries_[sku]) {
        if (entry.count == 0) continue;
        sum += entry.mean;
        ++count;
    }
    return static_cast<Ps>(count == 0 ? kGuess : sum / count);
}

double CostModel::slowness(Sku sku, Sku reference) const {
    double sum = 0, count = 0;
    for (Key key = 0; key < keys_.size(); ++key) {
        const Entry &here = entry(sku, key), &there = entry(reference, key);
        if (here.count == 0 || there.count == 0) continue;
        sum += std::log(here.mean / there.mean);
        ++count;
    }
    return count == 0 ? 0 : std::clamp(std::exp(sum / count), 1 / kMostSlowness, kMostSlowness);
}

std::optional<Channel> CostModel::channel(const std::string& name) const {
    const auto known = channels_.find(name);
    return known == channels_.end() ? std::nullopt : std::optional(known->second);
}

Status CostModel::load(const std::string& path) {
    std::ifstream file(path);
    if (!file) return {};
    std::string line;
    const bool any = static_cast<bool>(std::getline(file, line));
    if (any && line == kHeaderWithoutSkus) return {};
    if (!any || line != kHeader) {
        return fail(orrErrorInvalidValue, "{} does not start with '{}': it is no file of task costs", path,
                    kHeader);
    }
    for (int number = 2; std::getline(file, line); ++number) {
        std::istringstream words(line);
        std::string name, footprint;
        if (line.starts_with("> ")) {
            Channel channel{.exists = true};
            if (!(words >> footprint >> name >> channel.latency >> channel.ps_per_byte) ||
                channel.latency < 0 || static_cast<double>(channel.latency) > kMost ||
                !std::isfinite(channel.ps_per_byte) || channel.ps_per_byte <= 0 ||
                channel.ps_per_byte > kMost) {
                return fail(
                    orrErrorInvalidValue,
                    "{}:{}: of a channel '>', its name, and picoseconds before the first byte and for "
                    "each are needed",
                    path, number);
            }
            channels_[name] = channel;
            continue;
        }
        double mean = 0;
        std::uint64_t count = 0;
        if (!(words >> name >> footprint >> mean >> count) || !std::isfinite(mean) || mean < 1 ||
            mean > kMost || count == 0) {
            return fail(orrErrorInvalidValue,
                        "{}:{}: a SKU, a footprint, a mean in picoseconds and a count are needed", path,
                        number);
        }
        entry(sku(name), key(footprint)) = {mean, std::min(count, kMemory), mean};
    }
    return {};
}

Status CostModel::save(const std::string& path) const {
    std::ofstream file(path, std::ios::trunc);
    file << kHeader << '\n';
    for (const auto& [name, channel] : channels_)
        file << "> " << name << ' ' << channel.latency << ' ' << channel.ps_per_byte << '\n';
    for (const auto& [name, sku] : skus_) {
        for (const auto& [footprint, key] : keys_) {
            const Entry& known = entry(sku, key);
            if (known.count != 0)
                file << name << ' ' << footprint << ' ' << known.mean << ' ' << known.count << '\n';
        }
    }
    file.close();
    if (!file) return fail_errno(errno, fmt::format("writing task costs to {}", path));
    return {};
}

}  // namespace orrery::umd
