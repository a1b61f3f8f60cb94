// orrery-smi links.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <thread>

#include "tools/cards/cards.h"
#include "tools/smi/links.h"
#include "tools/text/clock.h"
#include "tools/text/table.h"

namespace orrery::smi {
namespace {

using namespace cards;

using text::Align;
using text::hour;
using text::seconds_now;
using text::Table;
using Json = nlohmann::ordered_json;

constexpr std::size_t kChangesShown = 12;

std::string ports_text(const std::vector<LinkedCard>& cards) {
    Table table({{"card"},
                 {"port", Align::kRight},
                 {"state"},
                 {"lanes", Align::kRight},
                 {"Gbit/s", Align::kRight},
                 {"ns", Align::kRight},
                 {"lost", Align::kRight},
                 {"damaged", Align::kRight},
                 {"again", Align::kRight},
                 {"trained", Align::kRight},
                 {"leads"}});
    for (const LinkedCard& card : cards)
        for (std::size_t i = 0; i < card.ports.size(); ++i) {
            const orrLinkInfo& link = card.ports[i].link;
            const auto number = [&](std::uint32_t value) {
                return is_up(link) ? fmt::format("{}", value) : std::string("-");
            };
            const LinkPort& port = card.ports[i];
            const auto count = [&](PortCount which) {
                return port.counts ? fmt::format("{}", (*port.counts)[which]) : std::string("?");
            };
            // All of its lanes, or so many of so many.
            const bool narrow = link.state == orrLinkStateDegraded && !port.width.empty();
            table.row({card.name, fmt::format("{}", i), link_state_name(link.state),
                       narrow ? port.width : number(link.lanes), narrow ? port.rate : number(link.gbps),
                       number(link.latency_ns), port.losses ? fmt::format("{}", *port.losses) : "?",
                       count(kPortDamaged), count(kPortRetries), count(kPortRetrains),
                       is_up(link) ? peer_text(card.ports[i]) : "nowhere"});
        }
    return table.text();
}

// What has crossed each port that has ever been used.
std::string counts_text(const std::vector<LinkedCard>& cards) {
    Table table({{"card"},
                 {"port", Align::kRight},
                 {"sent", Align::kRight},
                 {"bytes", Align::kRight},
                 {"received", Align::kRight},
                 {"bytes", Align::kRight},
                 {"denied", Align::kRight},
                 {"bad keys", Align::kRight},
                 {"refused", Align::kRight},
                 {"forged", Align::kRight}});
    bool any = false;
    for (const LinkedCard& card : cards)
        for (std::size_t i = 0; i < card.ports.size(); ++i) {
            const LinkPort& port = card.ports[i];
            const auto& counts = port.counts;
            bool used =
                counts && std::ranges::any_of(*counts, [](std::uint64_t count) { return count != 0; });
            std::vector<std::string> denials;
            for (std::size_t n = 0; n < kPortDenials; ++n) {
                const auto denial = denial_of(port, static_cast<PortDenial>(n));
                used |= denial.value_or(0) != 0;
                denials.push_back(denial ? fmt::format("{}", *denial) : "?");
            }
            if (!used) continue;
            any = true;
            std::vector<std::string> row{card.name, fmt::format("{}", i)};
            for (std::size_t n = kPortSentMessages; n <= kPortGotBytes; ++n)
                row.push_back(counts ? fmt::format("{}", (*counts)[n]) : "?");
            row.insert(row.end(), denials.begin(), denials.end());
            table.row(std::move(row));
        }
    return any ? "\nby port\n" + table.text() : "";
}

// With `before`, also what has come in since, over so many seconds.
std::string counters_text(const std::vector<LinkedCard>& cards, const std::vector<LinkedCard>* before,
                          double seconds) {
    std::vector<Table::Head> heads = {{""},
                                      {"sent", Align::kRight},
                                      {"bytes", Align::kRight},
                                      {"received", Align::kRight},
                                      {"bytes", Align::kRight},
                                      {"refused", Align::kRight},
                                      {"late", Align::kRight}};
    if (before != nullptr) {
        heads.push_back({"MB/s sent", Align::kRight});
        heads.push_back({"received", Align::kRight});
    }
    Table table(std::move(heads));
    for (const LinkedCard& card : cards) {
        if (card.ports.empty()) continue;
        std::vector<std::string> row{card.name};
        for (const std::uint64_t value : card.counters)
            row.push_back(fmt::format("{}", value));
        if (before != nullptr)
            for (const LinkCounter counter : {kSentBytes, kGotBytes}) {
                const auto more = counted_since(*before, card, counter);
                row.push_back(more ? fmt::format("{:.1f}", static_cast<double>(*more) / 1e6 / seconds) : "-");
            }
        table.row(std::move(row));
    }
    return table.text();
}

std::string whole_text(const std::vector<LinkedCard>& cards, const std::vector<LinkedCard>* before,
                       double seconds) {
    std::string text = ports_text(cards);
    for (const LinkedCard& card : cards)
        if (!card.trouble.empty()) text += fmt::format("{}: {}\n", card.name, card.trouble);
    if (text.empty()) return cards.empty() ? "" : "no card has a port for links\n";
    return text + "\nmessages and bytes; a card counts all its ports together\n" +
           counters_text(cards, before, seconds) + counts_text(cards);
}

}  // namespace

std::string links_text(const std::vector<LinkedCard>& cards) {
    return whole_text(cards, nullptr, 0);
}

std::string missing_text(const std::vector<MissingCard>& missing) {
    std::string text;
    for (const MissingCard& card : missing)
        text += fmt::format("missing: {}: {}\n", card.address, card.reason);
    return text;
}

Json missing_json(const std::vector<MissingCard>& missing) {
    Json all = Json::array();
    for (const MissingCard& card : missing)
        all.push_back({{"pci_address", card.address}, {"problem", card.reason}});
    return all;
}

void show_links_json(const std::vector<LinkedCard>& cards, const std::vector<MissingCard>& missing) {
    Json all = Json::array();
    for (const LinkedCard& card : cards) {
        Json ports = Json::array();
        for (std::size_t i = 0; i < card.ports.size(); ++i) {
            const orrLinkInfo& link = card.ports[i].link;
            Json counts = nullptr;
            for (std::size_t n = 0; card.ports[i].counts && n < kPortCounts; ++n)
                counts[kPortCountNames[n]] = (*card.ports[i].counts)[n];
            for (std::size_t n = 0; n < kPortDenials; ++n)
                if (const auto denial = denial_of(card.ports[i], static_cast<PortDenial>(n)))
                    counts[kPortDenialNames[n]] = *denial;
            ports.push_back({{"port", i},
                             {"state", link_state_name(link.state)},
                             {"peer_device",
                              is_up(link) && link.peer_device >= 0 ? Json(link.peer_device) : Json(nullptr)},
                             {"peer_uid", is_up(link) ? Json(link.peer_uid) : Json(nullptr)},
                             {"peer_port", is_up(link) ? Json(link.peer_port) : Json(nullptr)},
                             {"lanes", link.lanes},
                             {"gbps", link.gbps},
                             {"latency_ns", link.latency_ns},
                             {"losses", card.ports[i].losses ? Json(*card.ports[i].losses) : Json(nullptr)},
                             {"width", card.ports[i].width},
                             {"rate_gbps", card.ports[i].rate},
                             {"counters", std::move(counts)}});
        }
        Json counters = Json::object();
        for (std::size_t i = 0; i < kLinkCounters; ++i)
            counters[kLinkCounterNames[i]] = card.counters[i];
        all.push_back({{"device", card.device},
                       {"pci_address", card.address},
                       {"ports", std::move(ports)},
                       {"all_ports", std::move(counters)},
                       {"problem", card.trouble.empty() ? Json(nullptr) : Json(card.trouble)}});
    }
    const Json whole{{"cards", std::move(all)}, {"missing", missing_json(missing)}};
    fmt::print("{}\n", whole.dump(2, ' ', true, Json::error_handler_t::replace));
}

void end_when_told() {
    sigset_t ends;
    ::sigemptyset(&ends);
    ::sigaddset(&ends, SIGINT);
    ::sigaddset(&ends, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    // A look may wait long for a card; the end of the process ends that too.
    std::thread([ends] {
        int signal = 0;
        if (::sigwait(&ends, &signal) == 0) ::_exit(0);
    }).detach();
}

void watch_links() {
    const bool screen = ::isatty(STDOUT_FILENO) != 0;
    std::vector<LinkedCard> before = read_links();
    double looked = seconds_now();
    std::deque<std::string> seen;
    if (!screen) fmt::print("{}\n{}\n", hour(), links_text(before));
    for (bool first = true;; first = false) {
        const std::vector<LinkedCard> cards = first ? before : read_links();
        const double time = seconds_now();
        for (const std::string& change : changes(before, cards)) {
            seen.push_back(fmt::format("{} {}", hour(), change));
            if (!screen) fmt::print("{}\n", seen.back());
            if (seen.size() > kChangesShown) seen.pop_front();
        }
        if (screen) {
            fmt::print("\x1b[H\x1b[J{}, each second; Ctrl-C ends\n\n{}\n", hour(),
                       whole_text(cards, &before, first ? 1 : std::max(time - looked, 1e-3)));
            for (const std::string& change : seen)
                fmt::print("{}\n", change);
        }
        if (std::fflush(stdout) != 0) return;
        before = cards;
        looked = time;
        pollfd reader{STDOUT_FILENO, 0, 0};
        if (::poll(&reader, 1, 1000) > 0) return;  // it has gone
    }
}

}  // namespace orrery::smi
