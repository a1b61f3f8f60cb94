#include "emulator/faults/plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::emu {
namespace {

using enum FaultAction;

struct Point {
    std::string_view name;
    std::string_view subject;            // key of its subject; empty: it has none
    std::array<FaultAction, 7> actions;  // that it knows, besides kHang and kDie
};

// In the order of FaultPoint.
constexpr std::array<Point, kFaultPoints> kPoints{{
    {"doorbell", "tag", {kDrop, kDelay, kDuplicate}},
    {"dma-read", "", {kFail, kAllOnes, kCorrupt}},
    {"dma-write", "", {kFail, kDrop}},
    {"msi", "vector", {kDrop, kDelay, kDuplicate}},
    {"link", "port", {kDrop, kDelay, kDuplicate, kCorrupt, kForge, kStale, kFail}},
    {"dispatch", "port", {kDrop, kFail, kCorrupt}},
    {"done", "port", {kDrop, kDelay, kDuplicate, kFail}},
    {"mailbox", "", {kDrop, kDelay, kDuplicate}},
    {"register", "offset", {kAllOnes, kCorrupt}},
    {"walk", "asid", {kFail}},
    {"wire", "port", {kCorrupt, kLanes}},
    {"training", "port", {kLanes}},
}};

constexpr std::array<std::string_view, kFaultActions> kActions{"none",    "drop",  "delay",    "duplicate",
                                                               "corrupt", "fail",  "all-ones", "hang",
                                                               "die",     "lanes", "forge",    "stale"};

const Point& about(FaultPoint point) {
    return kPoints[static_cast<unsigned>(point)];
}

bool supports(const Point& point, FaultAction action) {
    return action == kHang || action == kDie ||
           (action != kNone && std::ranges::find(point.actions, action) != point.actions.end());
}

std::string actions_of(const Point& point) {
    std::vector<std::string_view> names;
    for (const FaultAction action : point.actions)
        if (action != kNone) names.push_back(name_of(action));
    names.insert(names.end(), {"hang", "die"});
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string point_names() {
    std::vector<std::string_view> names;
    names.reserve(std::size(kPoints));
    for (const Point& point : kPoints)
        names.push_back(point.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = text.find_first_of(separators);
        if (end != 0) parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return parts;
}

// Decimal or 0x.
std::optional<std::uint64_t> number(std::string_view text) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    if (hex) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// 3us, 250 ns without the space, 7 (ns).
std::optional<ModelTime> duration(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, ModelTime>, 5> kUnits{{{"ps", 1},
                                                                            {"ns", kPsPerNs},
                                                                            {"us", 1000 * kPsPerNs},
                                                                            {"ms", 1'000'000 * kPsPerNs},
                                                                            {"s", kPsPerSecond}}};
    ModelTime unit = kPsPerNs;
    for (const auto& [suffix, ps] : kUnits) {
        if (!text.ends_with(suffix)) continue;
        unit = ps;
        text.remove_suffix(suffix.size());
        break;
    }
    const auto value = number(text);
    if (!value || *value > (kNever - 1) / unit / 1024) return std::nullopt;
    return *value * unit;
}

// A share of one, to a millionth.
std::optional<std::uint32_t> share(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value > 0) || value > 1)
        return std::nullopt;
    return std::max(1u, static_cast<std::uint32_t>(std::lround(value * FaultRule::kAlways)));
}

// A chance for each bit.
double bit_error_rate(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = error == std::errc{} && end == text.data() + text.size() && value >= 1e-18 && value < 1;
    return good ? value : 0;
}

using Problem = std::optional<std::string>;

Problem set_key(FaultRule& rule, std::string_view key, std::string_view value) {
    const Point& point = about(rule.point);
    const auto positive = [&](std::uint64_t& field) -> Problem {
        const auto parsed = number(value);
        if (!parsed || *parsed == 0) return fmt::format("{}={}: a number from 1 on is needed", key, value);
        field = *parsed;
        return {};
    };
    if (key == "first") return positive(rule.first);
    if (key == "every") return positive(rule.every);
    if (key == "count" && value == "all") {
        rule.count = FaultRule::kEver;
        return {};
    }
    if (key == "count") return positive(rule.count);
    if (key == "chance") {
        const auto parsed = share(value);
        if (!parsed) return fmt::format("chance={}: a number above 0, at most 1, is needed", value);
        rule.chance = *parsed;
        return {};
    }
    if (key == "ber" && rule.point == FaultPoint::kWire) {
        rule.bit_errors = bit_error_rate(value);
        if (rule.bit_errors == 0)
            return fmt::format("ber={}: a number from 1e-18 on, below 1, is needed", value);
        return {};
    }
    if (!point.subject.empty() && key == point.subject) {
        rule.subject = number(value);
        if (!rule.subject) return fmt::format("{}={}: a number is needed", key, value);
        return {};
    }
    return fmt::format("{}: '{}' has no '{}'; it has first, every, count, chance{}{}{}", key, point.name, key,
                       point.subject.empty() ? "" : ", ", point.subject,
                       rule.point == FaultPoint::kWire ? ", ber" : "");
}

Problem set_action(FaultRule& rule, std::string_view word) {
    const Point& point = about(rule.point);
    const std::string_view name = word.substr(0, word.find('='));
    const auto found = std::ranges::find(kActions, name);
    const auto action = static_cast<FaultAction>(found - kActions.begin());
    if (found == kActions.end() || action == kNone)
        return fmt::format("'{}' is no action; at '{}' there are: {}", word, point.name, actions_of(point));
    if (!supports(point, action))
        return fmt::format("'{}' cannot {}; it can: {}", point.name, name, actions_of(point));
    if ((action == kDelay || action == kLanes) != (name.size() != word.size()))
        return fmt::format(
            "'{}': delay=TIME wants a model time such as 10us, lanes=N a number, "
            "and no other action one",
            word);
    if (action == kDelay) {
        const auto parsed = duration(word.substr(name.size() + 1));
        if (!parsed || *parsed == 0)
            return fmt::format("'{}': a model time such as 250ns, 10us or 3ms is needed", word);
        rule.delay = *parsed;
    }
    if (action == kLanes) {
        const auto parsed = number(word.substr(name.size() + 1));
        if (!parsed || *parsed == 0 || *parsed > FaultRule::kMostLanes)
            return fmt::format("'{}': a number of lanes from 1 to {} is needed", word, FaultRule::kMostLanes);
        rule.lanes = static_cast<std::uint32_t>(*parsed);
    }
    if (rule.bit_errors != 0 && (action != kCorrupt || rule.chance != FaultRule::kAlways))
        return std::string("ber= goes with corrupt, and without chance=");
    rule.action = action;
    return {};
}

Problem parse_rule(std::span<const std::string_view> words, FaultRule& rule) {
    const auto point = std::ranges::find(kPoints, words[0], &Point::name);
    if (point == kPoints.end())
        return fmt::format("'{}' is no point; there are: {}", words[0], point_names());
    rule.point = static_cast<FaultPoint>(point - kPoints.begin());
    for (const std::string_view word : words.subspan(1)) {
        if (rule.action != kNone) return fmt::format("'{}' follows the action, which comes last", word);
        const std::size_t equals = word.find('=');
        const bool key = equals != std::string_view::npos &&
                         std::ranges::find(kActions, word.substr(0, equals)) == kActions.end();
        Problem problem =
            key ? set_key(rule, word.substr(0, equals), word.substr(equals + 1)) : set_action(rule, word);
        if (problem) return problem;
    }
    if (rule.action == kNone)
        return fmt::format("the action is missing; at '{}' there are: {}", point->name, actions_of(*point));
    return {};
}

}  // namespace

std::string_view name_of(FaultPoint point) {
    return about(point).name;
}

std::string_view name_of(FaultAction action) {
    return kActions[static_cast<unsigned>(action)];
}

std::expected<void, std::string> FaultPlan::only_of(std::span<const FaultPoint> points) const {
    for (const FaultRule& rule : rules) {
        if (std::ranges::find(points, rule.point) != points.end()) continue;
        std::vector<std::string_view> names;
        names.reserve(points.size());
        for (const FaultPoint point : points)
            names.push_back(name_of(point));
        return std::unexpected(fmt::format("'{}' never comes here; the points that there are: {}",
                                           name_of(rule.point), fmt::join(names, ", ")));
    }
    return {};
}

std::string to_text(const FaultRule& rule) {
    const Point& point = about(rule.point);
    std::string text(point.name);
    if (rule.subject) text += fmt::format(" {}={:#x}", point.subject, *rule.subject);
    if (rule.first != 1) text += fmt::format(" first={}", rule.first);
    if (rule.every != 1) text += fmt::format(" every={}", rule.every);
    if (rule.count == FaultRule::kEver) {
        text += " count=all";
    } else if (rule.count != 1) {
        text += fmt::format(" count={}", rule.count);
    }
    if (rule.chance != FaultRule::kAlways)
        text += fmt::format(" chance={}.{:06}", rule.chance / FaultRule::kAlways,
                            rule.chance % FaultRule::kAlways);
    if (rule.bit_errors != 0) text += fmt::format(" ber={}", rule.bit_errors);
    text += fmt::format(" {}", name_of(rule.action));
    if (rule.action == kLanes) text += fmt::format("={}", rule.lanes);
    if (rule.action == kDelay) text += fmt::format("={}ps", rule.delay);
    return text;
}

std::expected<FaultPlan, std::string> FaultPlan::parse(std::string_view text) {
    FaultPlan plan;
    if (text.size() > kMaxText)
        return std::unexpected(fmt::format("fault plan: more than {} KiB of text", kMaxText >> 10));
    plan.text = text;
    unsigned line_number = 0;
    bool seeded = false;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        at = end + 1;
        line_number++;
        line = line.substr(0, line.find('#'));
        for (const std::string_view part : split(line, ";")) {
            const auto words = split(part, " \t\r");
            if (words.empty()) continue;
            const auto refuse = [line_number](const std::string& why) {
                return std::unexpected(fmt::format("fault plan, line {}: {}", line_number, why));
            };
            if (words[0] == "seed") {
                const auto value = words.size() == 2 ? number(words[1]) : std::nullopt;
                if (!value || *value == 0 || seeded || !plan.rules.empty())
                    return refuse("'seed NUMBER' (not 0) stands once, before the rules");
                plan.seed = *value;
                seeded = true;
                continue;
            }
            if (plan.rules.size() == kMaxRules) return refuse(fmt::format("more than {} rules", kMaxRules));
            FaultRule rule;
            if (const Problem problem = parse_rule(words, rule)) return refuse(*problem);
            plan.rules.push_back(rule);
        }
    }
    return plan;
}

std::expected<FaultPlan, std::string> FaultPlan::load(const std::string& file_or_text) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file_or_text, error)) {
        auto plan = parse(file_or_text);
        if (!plan && file_or_text.find(' ') == std::string::npos)
            return std::unexpected(
                fmt::format("'{}' is neither a file nor a plan: {}", file_or_text, plan.error()));
        return plan;
    }
    std::ifstream file(file_or_text);
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (!file.good() && !file.eof())
        return std::unexpected(fmt::format("{}: the fault plan cannot be read", file_or_text));
    auto plan = parse(text);
    if (!plan) return std::unexpected(fmt::format("{}: {}", file_or_text, plan.error()));
    return plan;
}

}  // namespace orrery::emu
