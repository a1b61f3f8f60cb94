// orrery-smi topo.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/cards/cards.h"
#include "tools/smi/links.h"
#include "tools/text/files.h"
#include "tools/text/table.h"

namespace orrery::smi {
namespace {

using namespace cards;

using Json = nlohmann::ordered_json;
using topology::Edge;

// Everything that both forms of output say.
struct Matrix {
    Matrix(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches)
        : picture(picture_of(cards, switches)),
          edges(cables(picture, cards.size())),
          form(topology::form_of(static_cast<unsigned>(cards.size()), edges)),
          ways(static_cast<unsigned>(cards.size()), edges) {}

    // Of the picture's links those from card to card.
    static std::vector<Edge> cables(const topology::Picture& picture, std::size_t cards) {
        std::vector<Edge> edges = topology::edges_of(picture.links);
        std::erase_if(edges, [&](const Edge& edge) { return edge.second.card >= cards; });
        return edges;
    }

    // A link from the one to the other, seen this way; of several the fastest.
    std::optional<Edge> link(unsigned from, unsigned to) const {
        std::optional<Edge> best;
        for (const Edge& edge : edges) {
            for (const Edge& way : {edge, edge.back()}) {
                const bool leads = way.first.card == from && way.second.card == to;
                if (leads && (!best || way.gbps > best->gbps)) best = way;
            }
        }
        return best;
    }

    topology::Picture picture;
    std::vector<Edge> edges;
    topology::Form form;
    topology::Ways ways;
};

// Which way copies of programs take; through the host's memory also of a card that does not answer.
orrPeerWay way_of(int from, int to) {
    orrPeerWay way = ORR_INIT(orrPeerWay);
    if (orrDeviceGetPeerWay(&way, from, to) == orrSuccess) return way;
    way.kind = orrPeerWayHost;
    std::string_view(orrGetLastErrorText()).copy(way.reason, sizeof way.reason - 1);
    return way;
}
bool can_write(int from, int to) {
    return way_of(from, to).kind == orrPeerWayLink;
}

std::string link_text(const Edge& edge) {
    return fmt::format("{}G x{}", edge.gbps, edge.lanes);
}

}  // namespace

void show_topology(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches) {
    if (cards.empty()) return;
    const Matrix matrix(cards, switches);
    const unsigned count = static_cast<unsigned>(cards.size());
    std::vector<text::Table::Head> heads(1);
    for (const LinkedCard& card : cards)
        heads.push_back({card.name});
    heads.push_back({"PCI address"});
    text::Table table(std::move(heads));
    std::map<std::pair<unsigned, unsigned>, bool> links;  // Gbit/s and lanes: all have them each way
    bool hops = false, used = true, host = false, switched = false;
    for (unsigned from = 0; from < count; ++from) {
        std::vector<std::string> row{cards[from].name};
        for (unsigned to = 0; to < count; ++to) {
            const auto& way = matrix.ways.between(from, to);
            if (from == to) {
                row.push_back("X");
            } else if (const auto edge = matrix.link(from, to)) {
                row.push_back(link_text(*edge));
                bool& even = links.try_emplace({edge->gbps, edge->lanes}, true).first->second;
                even = even && edge->same_both_ways();
            } else if (way) {
                row.push_back(fmt::format("{} hops", way->links));
                hops = true;
                used = used && can_write(cards[from].device, cards[to].device);
            } else if (can_write(cards[from].device, cards[to].device)) {
                // No cables between cards lead there, and yet there is a way.
                row.push_back("switch");
                switched = true;
            } else {
                row.push_back("host");
                host = true;
            }
        }
        row.push_back(cards[from].address);
        table.row(std::move(row));
    }
    fmt::print("{}\n{}\n", table.text(), topology::title_of(matrix.picture, matrix.form));
    text::Table legend({{""}, {""}});
    legend.row({"X", "the card itself"});
    for (const auto& [link, even] : links) {
        const auto [gbps, lanes] = link;
        legend.row({fmt::format("{}G x{}", gbps, lanes),
                    fmt::format("a link: {} Gbit/s {} on {} lane{}", gbps,
                                even ? "each way" : "from the card on the left to the one above,", lanes,
                                lanes == 1 ? "" : "s")});
    }
    constexpr const char* kByHost = "copies go through the host's memory";
    if (hops)
        legend.row({"N hops",
                    used ? std::string("no link: copies go over so many, through other cards")
                         : fmt::format("no link, though so many lead there through other cards, which pass "
                                       "nothing on here: {}",
                                       kByHost)});
    if (switched) legend.row({"switch", "copies go over one switch or several"});
    if (host) legend.row({"host", fmt::format("no links that are up lead there: {}", kByHost)});
    fmt::print("{}", legend.text("  "));
    for (const LinkedCard& card : cards)
        if (!card.trouble.empty()) fmt::print("{}: {}\n", card.name, card.trouble);
}

Json switches_json(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches) {
    Json list = Json::array();
    const auto device_of = [&](std::uint64_t uid) {
        const auto card = std::ranges::find(cards, uid, &LinkedCard::uid);
        return card == cards.end() ? Json(nullptr) : Json(card->device);
    };
    for (const Switch& one : switches) {
        Json ports = Json::array();
        for (const SwitchPort& port : one.ports) {
            const bool up = port.state == orrLinkStateUp || port.state == orrLinkStateDegraded;
            Json peer(nullptr);
            if (up)
                peer = {{"kind", port.to_switch ? "switch" : "card"},
                        {"uid", fmt::format("{:016x}", port.peer_uid)},
                        {"device", port.to_switch ? Json(nullptr) : device_of(port.peer_uid)},
                        {"port", port.peer_port}};
            ports.push_back({{"port", port.number},
                             {"state", link_state_name(port.state)},
                             {"losses", port.losses},
                             {"peer", std::move(peer)},
                             {"lanes", up ? Json(port.lanes) : Json(nullptr)},
                             {"gbps", up ? Json(port.gbps) : Json(nullptr)},
                             {"latency_ns", up ? Json(port.latency_ns) : Json(nullptr)}});
        }
        list.push_back({{"uid", fmt::format("{:016x}", one.uid)},
                        {"level", one.level},
                        {"port_count", one.port_count},
                        {"ports", std::move(ports)}});
    }
    return list;
}

void show_topology_json(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches,
                        const std::vector<MissingCard>& missing) {
    const Matrix matrix(cards, switches);
    Json list = Json::array();
    Json pairs = Json::array();
    for (unsigned from = 0; from < cards.size(); ++from) {
        const LinkedCard& card = cards[from];
        list.push_back({{"device", card.device},
                        {"pci_address", card.address},
                        {"sku", card.sku},
                        {"problem", card.trouble.empty() ? Json(nullptr) : Json(card.trouble)}});
        for (unsigned to = 0; to < cards.size(); ++to) {
            if (from == to) continue;
            const auto& way = matrix.ways.between(from, to);
            const orrPeerWay taken = way_of(card.device, cards[to].device);
            const bool writes = taken.kind == orrPeerWayLink;
            pairs.push_back({{"from", card.device},
                             {"to", cards[to].device},
                             {"kind", !way              ? (writes ? "switch" : "host")
                                      : way->links == 1 ? "link"
                                                        : "hops"},
                             {"links", way ? Json(way->links) : Json(nullptr)},
                             {"gbps", way ? Json(way->gbps) : Json(nullptr)},
                             {"latency_ns", way ? Json(way->latency_ns) : Json(nullptr)},
                             {"peer_access", writes},
                             {"reason", taken.reason}});
        }
    }
    Json links = Json::array();
    for (const topology::PictureLink& link : matrix.picture.links) {
        if (link.edge.second.card >= cards.size()) continue;  // to a switch
        links.push_back({{"from", cards[link.edge.first.card].device},
                         {"from_port", link.edge.first.port},
                         {"to", cards[link.edge.second.card].device},
                         {"to_port", link.edge.second.port},
                         {"state", link.state == topology::LinkState::kUp ? "up" : "degraded"},
                         {"lanes", link.edge.lanes},
                         {"gbps", link.edge.gbps},
                         {"lanes_back", link.edge.back().lanes},
                         {"gbps_back", link.edge.back().gbps},
                         {"latency_ns", link.edge.latency_ns}});
    }
    Json all{{"shape", topology::shape_name(matrix.form.shape)}};
    if (matrix.form.shape == topology::Shape::kTorus)
        all["torus"] = {matrix.form.sides.columns, matrix.form.sides.rows};
    all["cards"] = std::move(list);
    all["missing"] = missing_json(missing);
    all["switches"] = switches_json(cards, switches);
    all["links"] = std::move(links);
    all["pairs"] = std::move(pairs);
    fmt::print("{}\n", all.dump(2, ' ', true, Json::error_handler_t::replace));
}

text::Result<void> draw_topology(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches,
                                 const std::string& file) {
    return text::write_file(file, topology::svg_of(picture_of(cards, switches)));
}

}  // namespace orrery::smi
