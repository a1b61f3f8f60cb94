#include <cstdlib>
#include <istream>
#include <optional>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/vm/prof/planted/cases.h"

namespace planted {
namespace {

using nlohmann::json;

std::string text(const json& object, const char* member) {
    return object.at(member).get<std::string>();
}

// What the verdict names first: the title of a finding; empty: nothing.
std::string named_first(const std::string& verdict) {
    static const std::regex kForms(
        "nothing limits it beyond (.+)|limited most by (.+)|at its bound \\((.+?)\\) for .*");
    std::smatch found;
    if (!std::regex_match(verdict, found, kForms)) return "";
    return found[1].str() + found[2].str() + found[3].str();
}
// What it names behind "beyond it".
std::string named_beyond(const std::string& verdict) {
    static const std::regex kForm(".*beyond it limited most by (.+)");
    std::smatch found;
    return std::regex_match(verdict, found, kForm) ? found[1].str() : "";
}
// A program that did less than explain judges by is right where that is what was planted.
bool names_nothing(const Case& one, const std::string& verdict) {
    return verdict.starts_with("nothing") || (one.is_short && verdict.starts_with("too short"));
}

const json* finding_of(const json& findings, const std::string& title) {
    for (const json& finding : findings)
        if (!title.empty() && finding.at("title") == title) return &finding;
    return nullptr;
}

// "1.5 ms less", "1.5 ms of the card's time less": of the span.
std::optional<double> gain(const json& finding, double span_ps) {
    static const std::regex kForm("([0-9]+(?:\\.[0-9]+)?) (ps|ns|us|ms|s) (?:of the card's time )?less");
    std::smatch found;
    const std::string gap = text(finding, "gap");
    if (!std::regex_search(gap, found, kForm)) return std::nullopt;
    const std::string unit = found[2].str();
    const double ps = unit == "s" ? 1e12 : unit == "ms" ? 1e9 : unit == "us" ? 1e6 : unit == "ns" ? 1e3 : 1;
    return std::atof(found[1].str().c_str()) * ps / span_ps;
}

std::string outside(const char* what, double value, const Range& range) {
    if (value >= range.least && value <= range.most) return "";
    return fmt::format("{} is {:.0f} % of the time, and should be {:.0f} to {:.0f} %", what, 100 * value,
                       100 * range.least, 100 * range.most);
}

std::string wrong_for_none(const Case& one, const json& device) {
    if (!names_nothing(one, text(device, "verdict"))) return "nothing limits it";
    for (const json& finding : device.at("findings"))
        if (!finding.at("at_bound").get<bool>())
            if (const std::string wrong =
                    outside(text(finding, "title").c_str(), finding.at("share").get<double>(), one.share);
                !wrong.empty())
                return wrong;
    return "";
}

std::string wrong_for_limit(const Case& one, const json& device) {
    const std::string verdict = text(device, "verdict");
    const json* named = finding_of(device.at("findings"), named_first(verdict));
    if (named == nullptr) return fmt::format("{} limits it", one.limit);
    if (named->at("rule") != one.limit && named->at("rule") == one.at_bound &&
        named->at("at_bound").get<bool>())
        named = finding_of(device.at("findings"), named_beyond(verdict));
    if (named == nullptr || named->at("rule") != one.limit)
        return fmt::format("{} is not what it names first", one.limit);
    if ((text(*named, "title") + text(*named, "evidence")).find(one.words) == std::string::npos)
        return fmt::format("'{}' is not what it says", one.words);
    if (const std::string wrong = outside("its share", named->at("share").get<double>(), one.share);
        !wrong.empty())
        return wrong;
    if (one.gain.most < one.gain.least) return "";
    const auto gained = gain(*named, device.at("span_ps").get<double>());
    return gained ? outside("what is gained without it", *gained, one.gain)
                  : fmt::format("its gap, '{}', tells no time that would be gained", text(*named, "gap"));
}

// The program itself: processes that it has forked came later.
const json* first_process(const json& processes) {
    const json* first = nullptr;
    for (const json& process : processes)
        if (first == nullptr || process.at("pid") < first->at("pid")) first = &process;
    return first;
}

}  // namespace

std::string wrong_in(const Case& one, std::istream& explained) {
    const json all = json::parse(explained);
    const json* const process = first_process(all.at("processes"));
    if (process == nullptr) return "there is no process";
    bool seen = false;
    std::string wrong;
    for (const json& device : process->at("devices")) {
        const int number = device.at("device").get<int>();
        const std::string verdict = text(device, "verdict");
        std::string of_this;
        if (number == one.device) {
            seen = true;
            of_this = one.limit == std::string_view("none") ? wrong_for_none(one, device)
                                                            : wrong_for_limit(one, device);
        } else if (number == one.innocent && !names_nothing(one, verdict)) {
            of_this = "nothing limits it there";
        }
        if (!of_this.empty())
            wrong +=
                fmt::format("{}device {}: '{}', but {}", wrong.empty() ? "" : "; ", number, verdict, of_this);
    }
    return seen ? wrong : fmt::format("device {} is not in it", one.device);
}

std::string complaint(const Case& one, const Known* known, const std::string& wrong) {
    if (known != nullptr && wrong.empty())
        return fmt::format("{} is named right now: take it out of known_wrong.cc ({})", one.name, known->why);
    if (wrong.empty() || (known != nullptr && wrong.find(known->said) != std::string::npos)) return "";
    return fmt::format("{} ({}): {}{}", one.name, one.why, wrong,
                       known == nullptr ? "" : fmt::format("; known is only '{}'", known->said));
}

}  // namespace planted
