#include "umd/winsys/env.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <ranges>
#include <string_view>
#include <system_error>

namespace orrery::umd {
namespace {

constexpr std::uint32_t kMinPeriodUs = 100, kMaxPeriodUs = 1'000'000, kDefaultPeriodUs = 10'000;

constexpr Env::Variable kVariables[] = {
    {"ORR_PROF_TOOL", "paths with colons between them, as /usr/lib/a.so:/tmp/b.so",
     "profiling tools that the library loads at the process's first call; of one that cannot be used a line "
     "on "
     "stderr says why"},
    {"ORR_QUOTA", "PERMILLE or PERMILLE/PERIOD_US, as 250 or 250/10000",
     "quota of this process on every device for which the program sets none"},
    {"ORR_VISIBLE_DEVICES", "numbers with commas between them, as 2,0",
     "the only cards that the process sees, and their order; numbers count from 0 in the order of PCI "
     "addresses"},
};
constexpr const Env::Variable &kProfTool = kVariables[0], &kQuota = kVariables[1],
                              &kVisibleDevices = kVariables[2];

std::string_view value(const Env::Variable& variable) {
    const char* text = std::getenv(variable.name);
    return text == nullptr ? "" : text;
}

std::unexpected<Error> malformed(const Env::Variable& variable) {
    return fail(orrErrorInvalidValue, "the environment has {}={}: it must be {}", variable.name,
                value(variable), variable.form);
}

// Takes a number off the front of `text`.
template <typename Number>
bool take(std::string_view& text, Number& number) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    return true;
}
bool take(std::string_view& text, char separator) {
    if (!text.starts_with(separator)) return false;
    text.remove_prefix(1);
    return true;
}

}  // namespace

Status check_quota(Quota quota, const char* what) {
    if (quota.permille == 0 && quota.period_us == 0) return {};
    if (quota.permille < 1 || quota.permille > 1000 || quota.period_us < kMinPeriodUs ||
        quota.period_us > kMaxPeriodUs) {
        return fail(orrErrorInvalidValue,
                    "{} is {} permille in {} us: give 1 to 1000 in {} to {}, or 0 and 0 for none", what,
                    quota.permille, quota.period_us, kMinPeriodUs, kMaxPeriodUs);
    }
    return {};
}

std::span<const Env::Variable> Env::variables() {
    return kVariables;
}

std::vector<std::string> Env::prof_tools() {
    const char* const text = ::secure_getenv(kProfTool.name);
    std::vector<std::string> paths;
    for (const auto part : std::views::split(std::string_view(text == nullptr ? "" : text), ':')) {
        if (!part.empty()) paths.emplace_back(part.begin(), part.end());
    }
    return paths;
}

Result<Quota> Env::quota() {
    std::string_view text = value(kQuota);
    if (text.empty()) return Quota{};
    Quota quota{0, kDefaultPeriodUs};
    const bool read = take(text, quota.permille) && (!take(text, '/') || take(text, quota.period_us));
    if (!read || !text.empty()) return malformed(kQuota);
    ORR_TRY(good, check_quota(quota, kQuota.name));
    return quota;
}

Result<std::vector<std::size_t>> Env::visible_devices(std::size_t cards) {
    std::string_view text = value(kVisibleDevices);
    std::vector<std::size_t> devices;
    if (text.empty()) {
        devices.resize(cards);
        std::iota(devices.begin(), devices.end(), std::size_t{0});
        return devices;
    }
    do {
        std::size_t device = 0;
        if (!take(text, device)) return malformed(kVisibleDevices);
        if (device >= cards) {
            return fail(orrErrorInvalidDevice,
                        "the environment has {}={}, but there is no card {}: there are {}",
                        kVisibleDevices.name, value(kVisibleDevices), device, cards);
        }
        if (std::ranges::find(devices, device) != devices.end()) return malformed(kVisibleDevices);
        devices.push_back(device);
    } while (take(text, ','));
    if (!text.empty()) return malformed(kVisibleDevices);
    return devices;
}

}  // namespace orrery::umd
