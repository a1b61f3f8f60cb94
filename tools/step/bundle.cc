#include "tools/step/bundle.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tools/step/commands/commands.h"
#include "tools/text/shown.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

using bundle::Bundle;
using nlohmann::ordered_json;

constexpr std::size_t kMostCards = 64;

// A card as the manifest lists it.
struct Listed {
    std::uint32_t number = 0;
    std::string died;
    std::unique_ptr<Debugger> debugger;  // null: it has no recording
};

Result<Listed> open_card(Bundle& from, const ordered_json& one, const std::string& file,
                         const Debugger::Options& options, const OpenBytes& open) {
    Listed card;
    card.number = static_cast<std::uint32_t>(Bundle::number(one, "index"));
    card.died = Bundle::text(one, "died");
    const std::string name = Bundle::text(one, "recording");
    if (name.empty()) return card;
    const auto found = from.files.find(name);
    if (found == from.files.end())
        return fail("{}: its manifest names a recording '{}', which is not in it", file, text::shown(name));
    std::vector<std::uint8_t> bytes(found->second.begin(), found->second.end());
    auto session = open(std::move(bytes), file + ":" + name);
    if (!session) return std::unexpected(session.error());
    auto debugger = Debugger::make(std::move(*session), options);
    if (!debugger) return std::unexpected(debugger.error());
    card.debugger = std::move(*debugger);
    return card;
}

Witness witness(const Listed& card) {
    Witness out;
    out.card = card.number;
    out.died = card.died;
    if (card.debugger == nullptr) return out;
    out.history = &card.debugger->history();
    out.system = system_clock(card.debugger->session());
    const Session& session = card.debugger->session();
    for (const CoreStop& stop : session.stops())
        out.stops.push_back({stop.halted, stop.time, stop.step});
    out.end = session.end();
    out.end_time = session.end_time();
    return out;
}

// "pair: card 0 port 0 to card 1 port 0, …", as far as it is one.
std::string topology_text(const ordered_json& topology) {
    constexpr std::size_t kMostLinks = 16;
    const ordered_json links = Bundle::part(topology, "links");
    const std::string named = Bundle::text(topology, "named");
    std::string text;
    std::size_t count = 0;
    for (const ordered_json& link : links.is_array() ? links : ordered_json::array()) {
        const auto is_number = [](const ordered_json& one) { return one.is_number_unsigned(); };
        if (!link.is_array() || link.size() != 4 || !std::ranges::all_of(link, is_number)) continue;
        if (++count > kMostLinks) continue;
        const auto at = [&](std::size_t i) { return link[i].get<std::uint64_t>(); };
        text += fmt::format("{}card {} port {} to card {} port {}", text.empty() ? "" : ", ", at(0), at(1),
                            at(2), at(3));
    }
    if (count > kMostLinks) text += fmt::format(", and {} links more", count - kMostLinks);
    if (text.empty()) return named;
    return named.empty() ? text : named + ": " + text;
}

// A plan of faults has a line for each rule.
std::string one_line(std::string plan) {
    while (plan.ends_with('\n'))
        plan.pop_back();
    for (std::size_t at = plan.find('\n'); at != std::string::npos; at = plan.find('\n', at + 1))
        plan.replace(at, 1, "; ");
    return plan;
}

// Whether there is a recording that the cause's step is of.
bool has_place(const OpenBundle& open, const Cause& cause) {
    return cause.card ? std::ranges::find(open.numbers, *cause.card) != open.numbers.end()
                      : !open.cards.all.empty();
}

}  // namespace

Result<std::unique_ptr<OpenBundle>> open_bundle(const std::string& file, const Debugger::Options& options,
                                                const OpenBytes& open) {
    auto read = bundle::read(file);
    if (!read) return std::unexpected(read.error());
    auto out = std::make_unique<OpenBundle>();
    out->bundle = std::move(*read);
    const ordered_json listed = Bundle::part(out->bundle.manifest, "cards");
    if (!listed.is_array() || listed.size() > kMostCards)
        return fail("{}: its manifest lists no cards, or more than {}", file, kMostCards);
    std::vector<Listed> cards;
    std::vector<Witness> witnesses;
    for (const ordered_json& one : listed) {
        auto card = open_card(out->bundle, one, file, options, open);
        if (!card) return std::unexpected(card.error());
        witnesses.push_back(witness(*card));
        cards.push_back(std::move(*card));
    }
    const ordered_json ended = Bundle::part(out->bundle.manifest, "ended");
    Ending ending;
    ending.kernel_report = Bundle::text(out->bundle.manifest, "kernel_report");
    ending.text = Bundle::text(ended, "text");
    if (const auto log = out->bundle.files.find("guest.log"); log != out->bundle.files.end())
        ending.guest_log = log->second;
    out->causes = causes(witnesses, ending);
    for (Listed& card : cards) {
        if (card.debugger == nullptr) continue;
        if (out->cause() != nullptr && out->cause()->card == card.number)
            out->cards.current = out->cards.all.size();
        out->numbers.push_back(card.number);
        out->cards.all.push_back(std::move(card.debugger));
    }
    if (out->cards.all.empty()) return out;
    if (out->cause() == nullptr || !has_place(*out, *out->cause())) {
        // Nothing failed, or nobody knows when: all that is there is shown at its end.
        for (const auto& each : out->cards.all) {
            each->session().seek(each->session().end());
            if (out->cards.all.size() > 1) each->cards = &out->cards;
        }
        return out;
    }
    Debugger& here = out->cards.now();
    here.session().seek(out->cause()->step);
    const Time now = system_time(here.session(), here.session().time());
    for (const auto& each : out->cards.all) {
        if (each.get() != &here) each->session().seek_time(own_time(each->session(), now));
        if (out->cards.all.size() > 1) each->cards = &out->cards;
    }
    return out;
}

std::string summary(const OpenBundle& open) {
    const ordered_json& manifest = open.bundle.manifest;
    std::string text;
    const auto row = [&](const char* name, const std::string& value) {
        if (!value.empty()) text += fmt::format("{:<10} {}\n", name, value);
    };
    const auto words = [](const ordered_json& list) {
        std::string line;
        for (const ordered_json& word : list.is_array() ? list : ordered_json::array())
            if (word.is_string()) line += (line.empty() ? "" : " ") + word.get<std::string>();
        return line;
    };
    row("command", words(Bundle::part(manifest, "command")));
    row("options", words(Bundle::part(manifest, "options")));
    const ordered_json versions = Bundle::part(manifest, "versions");
    row("versions", fmt::format("orrery {}, hardware {}, kernel {}", Bundle::text(versions, "orrery"),
                                Bundle::text(versions, "hardware"), Bundle::text(versions, "kernel")));
    row("SKU", Bundle::text(manifest, "sku"));
    row("topology", topology_text(Bundle::part(manifest, "topology")));
    row("sync", Bundle::text(manifest, "sync"));
    for (const ordered_json& card : Bundle::part(manifest, "cards"))
        if (const std::string plan = Bundle::text(card, "faults"); !plan.empty())
            row("faults", fmt::format("card {}: {}", Bundle::number(card, "index"), one_line(plan)));
    for (std::size_t i = 0; i < open.cards.all.size(); ++i)
        if (const std::uint64_t seed = open.cards.all[i]->session().about().seed; seed != 0)
            row("seed", fmt::format("card {}: {}", open.numbers[i], seed));
    const std::string ended = Bundle::text(Bundle::part(manifest, "ended"), "text");
    row("ended", ended.empty() ? "well" : ended);
    std::string names;
    for (const auto& [name, bytes] : open.bundle.files)
        names += (names.empty() ? "" : ", ") + name;
    row("files", names);
    row("missing", words(Bundle::part(manifest, "missing")));
    return text + where(open, false);
}

std::string where(const OpenBundle& open, bool json) {
    const Cause* const first = open.cause();
    if (json) {
        const auto object = [&](const Cause& cause) {
            Json one{{"kind", cause.kind}, {"cause", cause.text}};
            if (cause.card) one["card"] = *cause.card;
            if (has_place(open, cause)) {
                one["step"] = cause.step;
                one["system_time_ps"] = cause.time;
            }
            return one;
        };
        Json out = first != nullptr ? object(*first) : Json{{"kind", "none"}};
        out["then"] = Json::array();
        for (std::size_t i = 1; i < open.causes.size(); ++i)
            out["then"].push_back(object(open.causes[i]));
        return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
    if (first == nullptr) return "kind: none\ncause: nothing that failed is in this bundle\n";
    std::string text = fmt::format("kind: {}\ncause: {}\n", first->kind, first->text);
    if (first->card) text += fmt::format("card: {}\n", *first->card);
    if (has_place(open, *first))
        text += fmt::format("step: {}\ntime: {}\n", first->step, moment_text(first->time));
    for (std::size_t i = 1; i < open.causes.size(); ++i)
        text += fmt::format("then: {}{}\n",
                            open.causes[i].card ? fmt::format("card {}: ", *open.causes[i].card) : "",
                            open.causes[i].text);
    return text;
}

Result<void> extract(const Bundle& from, const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail("{}: the folder cannot be made: {}", folder, error.message());
    auto files = from.files;
    files.emplace(bundle::kManifest, from.manifest_text);
    const auto there = [](const std::filesystem::path& file) {
        return fail("{}: there is such a file already: give another folder", file.string());
    };
    // All are looked at first, so that nothing is left half done.
    for (const auto& [name, bytes] : files) {
        const std::filesystem::path file = std::filesystem::path(folder) / name;
        if (std::filesystem::exists(std::filesystem::symlink_status(file, error))) return there(file);
    }
    for (const auto& [name, bytes] : files) {
        const std::filesystem::path file = std::filesystem::path(folder) / name;
        // "x": made here, through no link that somebody puts there meanwhile.
        std::FILE* const out = std::fopen(file.c_str(), "wbx");
        if (out == nullptr && errno == EEXIST) return there(file);
        if (out == nullptr) return fail("{}: {}", file.string(), std::strerror(errno));
        const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), out) == bytes.size();
        if (std::fclose(out) != 0 || !whole) return fail("{}: {}", file.string(), std::strerror(errno));
    }
    return {};
}

}  // namespace orrery::step
