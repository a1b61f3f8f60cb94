#include "tools/topology/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string_view>

namespace orrery::topology {
namespace {

struct Point {
    double x = 0, y = 0;
    Point operator+(Point other) const { return {x + other.x, y + other.y}; }
    Point operator-(Point other) const { return {x - other.x, y - other.y}; }
    Point operator*(double factor) const { return {x * factor, y * factor}; }
};

double length(Point p) {
    return std::hypot(p.x, p.y);
}

// Pixels.
constexpr Point kBox{150, 66};    // of a card
constexpr Point kRim{87, 45};     // half of the rounded box around it on which the badges of its ports sit
constexpr Point kStep{290, 190};  // from card to card in rows
constexpr unsigned kCardsInARow = 4;  // of a chain
constexpr double kBadge = 9;          // radius
constexpr double kLine = 44;          // of a port that leads nowhere here
constexpr double kMargin = 28;
constexpr std::size_t kLabelledLinks = 16;  // with more, only those that differ have a label

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else
            out += c >= ' ' && c <= '~' ? c : '?';
    }
    return out;
}

std::string_view css_class(LinkState state) {
    switch (state) {
        case LinkState::kUp:
            return "up";
        case LinkState::kDegraded:
            return "degraded";
        case LinkState::kTraining:
            return "training";
        default:
            return "down";
    }
}

// Cards in a row, and above them what joins them.
std::vector<Point> tiers(const Picture& picture) {
    std::map<int, std::vector<std::size_t>> tiers;
    std::size_t most = 1;
    for (std::size_t i = 0; i < picture.cards.size(); ++i) {
        auto& tier = tiers[picture.cards[i].level];
        tier.push_back(i);
        most = std::max(most, tier.size());
    }
    std::vector<Point> at(picture.cards.size());
    const double step = 0.66 * kStep.x;
    double y = 0;
    for (const auto& [level, tier] : tiers) {
        const double apart = step * static_cast<double>(most) / static_cast<double>(tier.size());
        for (std::size_t i = 0; i < tier.size(); ++i)
            at[tier[i]] = {apart * (static_cast<double>(i) + 0.5), y};
        y -= kStep.y;
    }
    return at;
}

std::vector<Point> places(const Picture& picture, const Form& form) {
    const auto cards = static_cast<unsigned>(picture.cards.size());
    if (std::ranges::any_of(picture.cards, [](const Picture::Card& card) { return card.level >= 0; }))
        return tiers(picture);
    std::vector<Point> at(cards);
    const bool in_a_row = form.shape == Shape::kPair || form.shape == Shape::kChain || cards == 1;
    // Long chains turn at the end of a row.
    const unsigned columns = form.shape == Shape::kTorus ? form.sides.columns : kCardsInARow;
    const double radius = std::max(175.0, 255 / (2 * std::sin(std::numbers::pi / std::max(cards, 2U))));
    for (unsigned i = 0; i < cards; ++i) {
        const unsigned row = i / columns, column = i % columns;
        if (in_a_row) {
            const unsigned x = row % 2 == 0 ? column : columns - 1 - column;
            at[form.order[i]] = {kStep.x * x, kStep.y * row};
        } else if (form.shape == Shape::kTorus) {
            at[i] = {kStep.x * column, kStep.y * row};
        } else {
            const double angle = 2 * std::numbers::pi * i / cards - std::numbers::pi / 2;
            at[form.order[i]] = {1.3 * radius * std::cos(angle), radius * std::sin(angle)};
        }
    }
    return at;
}

// Where a line from the middle of a card in this direction meets the rim of its badges, a superellipse.
Point on_rim(Point direction) {
    const double t = std::pow(std::pow(direction.x / kRim.x, 4) + std::pow(direction.y / kRim.y, 4), 1.0 / 4);
    return t == 0 ? Point{kRim.x, 0} : direction * (1 / t);
}

class Drawing {
  public:
    Drawing(const Picture& picture, const Form& form)
        : picture_(picture), form_(form), at_(places(picture, form)), used_(picture.cards.size()) {
        for (const Point& place : at_)
            middle_ = middle_ + place * (1.0 / static_cast<double>(at_.size()));
    }

    std::string svg() {
        find_common();
        for (const PictureLink& link : picture_.links)
            draw_link(link);
        for (const PicturePort& port : picture_.ports)
            draw_port(port);
        for (std::size_t card = 0; card < at_.size(); ++card)
            draw_card(card);
        return whole();
    }

  private:
    // "400 Gbit/s", or of lanes that have failed one way "400 Gbit/s from card 0, 100 from card 1".
    std::string both_ways(unsigned there, unsigned back, std::string_view unit, const Edge& edge) const {
        if (there == back) return fmt::format("{} {}", there, unit);
        return fmt::format("{} {} from {}, {} from {}", there, unit, picture_.cards[edge.first.card].name,
                           back, picture_.cards[edge.second.card].name);
    }
    std::string rate_text(const Edge& edge) const {
        return both_ways(edge.gbps, edge.back().gbps, "Gbit/s", edge);
    }

    static bool alike(const Edge& a, const Edge& b) {
        const auto one_way = [](const Edge& c, const Edge& d) {
            return c.lanes == d.lanes && c.gbps == d.gbps && c.latency_ns == d.latency_ns;
        };
        return one_way(a, b) && one_way(a.back(), b.back());
    }

    // What is said once, below the picture, of all links.
    void find_common() {
        const auto& links = picture_.links;
        if (links.empty()) return;
        // Which way is which, a line of all links cannot say.
        if (links[0].edge.same_both_ways() && std::ranges::all_of(links, [&](const PictureLink& link) {
                return alike(link.edge, links[0].edge);
            }))
            common_ = links[0].edge;
        for (const PictureLink& link : links) {
            if (!link.edge.same_both_ways()) continue;
            const auto same = std::ranges::count_if(
                links, [&](const PictureLink& other) { return alike(link.edge, other.edge); });
            if (2 * same > std::ssize(links)) usual_ = link.edge;
        }
    }

    void extend(Point p) {
        least_ = {std::min(least_.x, p.x), std::min(least_.y, p.y)};
        most_ = {std::max(most_.x, p.x), std::max(most_.y, p.y)};
    }

    void line(Point from, Point to, LinkState state) {
        lines_ +=
            fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                        css_class(state), from.x, from.y, to.x, to.y);
    }

    void label(Point at, std::string_view text, std::string_view anchor = "middle") {
        // A background first, so that a line does not run through the letters.
        for (const std::string_view kind : {"behind", "label"})
            labels_ +=
                fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                            kind, at.x, at.y + 4, anchor, escaped(text));
        const double width = 7.0 * static_cast<double>(text.size());
        const double left = anchor == "middle" ? width / 2 : anchor == "end" ? width : 0;
        extend({at.x - left, at.y - 8});
        extend({at.x - left + width, at.y + 8});
    }

    void badge(Port port, Point offset, std::string_view kind) {
        const Point at = at_[port.card] + offset;
        used_[port.card].push_back(offset);
        badges_ += fmt::format(
            "<circle class=\"badge {0}\" cx=\"{1:.1f}\" cy=\"{2:.1f}\" r=\"{3}\"/>"
            "<text class=\"port {0}\" x=\"{1:.1f}\" y=\"{4:.1f}\">{5}</text>\n",
            kind, at.x, at.y, kBadge, at.y + 3.7, port.port);
        extend(at - Point{kBadge, kBadge});
        extend(at + Point{kBadge, kBadge});
    }

    // From a badge outwards, with words at its end.
    void loose_end(Port port, Point direction, LinkState state, std::string_view text) {
        const Point unit = direction * (1 / length(direction));
        const Point from = at_[port.card] + on_rim(direction);
        const Point to = from + unit * kLine;
        line(from, to, state);
        const bool aside = std::abs(unit.x) > 0.5;
        label(to + (aside ? Point{unit.x > 0 ? 5.0 : -5.0, 0} : Point{0, unit.y > 0 ? 11.0 : -11.0}), text,
              !aside       ? "middle"
              : unit.x > 0 ? "start"
                           : "end");
        extend(to);
    }

    // A link of a torus from its last card back to its first, seen from the first; zero for others.
    Point way_round(const Edge& edge) const {
        if (form_.shape != Shape::kTorus) return {};
        const Point apart = at_[edge.second.card] - at_[edge.first.card];
        if (apart.y == 0 && std::abs(apart.x) > 1.5 * kStep.x) return {apart.x > 0 ? -1.0 : 1.0, 0};
        if (apart.x == 0 && std::abs(apart.y) > 1.5 * kStep.y) return {0, apart.y > 0 ? -1.0 : 1.0};
        return {};
    }

    void draw_link(const PictureLink& link) {
        const Edge& edge = link.edge;
        if (const Point back = way_round(edge); back.x != 0 || back.y != 0) {
            const auto name = [&](Port port) { return "to " + picture_.cards[port.card].name; };
            loose_end(edge.first, back, link.state, name(edge.second));
            loose_end(edge.second, back * -1, link.state, name(edge.first));
            badge(edge.first, on_rim(back), css_class(link.state));
            badge(edge.second, on_rim(back * -1), css_class(link.state));
            return;
        }
        const Point from = at_[edge.first.card], to = at_[edge.second.card];
        const Point out = on_rim(to - from);
        line(from + out, to - out, link.state);
        badge(edge.first, out, css_class(link.state));
        badge(edge.second, out * -1, css_class(link.state));
        const bool differs = usual_ && !alike(edge, *usual_);
        if (picture_.links.size() > kLabelledLinks && !differs && link.state == LinkState::kUp) return;
        // Lines through the middle of a circle meet there.
        const bool across = length((from + to) * 0.5 - middle_) < 40 && picture_.links.size() > 1 &&
                            form_.shape != Shape::kChain && form_.shape != Shape::kTorus;
        const Point at = from + (to - from) * (across ? 0.32 : 0.5);
        label(at, rate_text(edge));
        if (link.state == LinkState::kDegraded)
            label(at + Point{0, 16},
                  both_ways(edge.lanes, edge.back().lanes,
                            std::max(edge.lanes, edge.back().lanes) == 1 ? "lane" : "lanes", edge));
    }

    // Where there is most room, and rather outside than inside.
    Point free_direction(unsigned card) const {
        const Point outwards = at_[card] - middle_;
        const double far = length(outwards);
        const Point wish = far < 1 || form_.shape == Shape::kChain || form_.shape == Shape::kPair
                               ? Point{0, 1}
                               : outwards * (1 / far);
        Point best{0, 1};
        double most = -1e9;
        for (int i = 0; i < 48; ++i) {
            const double angle = 2 * std::numbers::pi * i / 48;
            const Point direction{std::cos(angle), std::sin(angle)};
            const Point spot = on_rim(direction);
            double room = 60;
            for (const Point& other : used_[card])
                room = std::min(room, length(spot - other));
            const double worth = room + 25 * (direction.x * wish.x + direction.y * wish.y);
            if (worth > most) {
                most = worth;
                best = direction;
            }
        }
        return best;
    }

    void draw_port(const PicturePort& port) {
        const Point direction = free_direction(port.port.card);
        const bool empty = port.state == LinkState::kDown && port.note.empty();
        if (!empty) loose_end(port.port, direction, port.state, port.note);
        badge(port.port, on_rim(direction), empty ? "free" : css_class(port.state));
        any_free_ |= empty;
    }

    void draw_card(std::size_t card) {
        const Point corner = at_[card] - kBox * 0.5;
        const Picture::Card& shown = picture_.cards[card];
        cards_ += fmt::format(
            "<rect class=\"card\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n",
            corner.x, corner.y, kBox.x, kBox.y);
        const auto text = [&](std::string_view kind, double down, const std::string& what) {
            cards_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kind,
                                  at_[card].x, corner.y + down, escaped(what));
        };
        if (shown.address.empty()) {
            text("name", 31, shown.name);
            text("kind", 49, shown.kind);
        } else {
            text("name", 24, shown.name);
            text("address", 41, shown.address);
            text("kind", 56, shown.kind);
        }
        extend(corner);
        extend(corner + kBox);
    }

    std::vector<std::string> notes() const {
        std::vector<std::string> lines;
        if (common_)
            lines.push_back(fmt::format("Each link: {} lanes, {} Gbit/s each way, {} ns.", common_->lanes,
                                        common_->gbps, common_->latency_ns));
        else if (usual_ && picture_.links.size() > kLabelledLinks)
            lines.push_back(fmt::format("Links without a label: {} lanes, {} Gbit/s each way, {} ns.",
                                        usual_->lanes, usual_->gbps, usual_->latency_ns));
        lines.push_back(any_free_ ? "Numbers are ports; grey ones lead nowhere." : "Numbers are ports.");
        return lines;
    }

    // A line of each kind that there is, if there is more than the usual one.
    std::string legend(Point at) const {
        const auto is_there = [&](LinkState state) {
            return std::ranges::any_of(picture_.links, [&](const auto& l) { return l.state == state; }) ||
                   std::ranges::any_of(picture_.ports, [&](const auto& p) {
                       return p.state == state && (state != LinkState::kDown || !p.note.empty());
                   });
        };
        std::string text;
        if (!is_there(LinkState::kDegraded) && !is_there(LinkState::kTraining) && !is_there(LinkState::kDown))
            return text;
        for (const LinkState state :
             {LinkState::kUp, LinkState::kDegraded, LinkState::kTraining, LinkState::kDown}) {
            if (!is_there(state)) continue;
            text += fmt::format(
                "<line class=\"{0}\" x1=\"{1:.1f}\" y1=\"{2:.1f}\" x2=\"{3:.1f}\" y2=\"{2:.1f}\"/>"
                "<text class=\"note\" x=\"{4:.1f}\" y=\"{5:.1f}\">{0}</text>\n",
                css_class(state), at.x, at.y, at.x + 34, at.x + 42, at.y + 4);
            at.x += 120;
        }
        return text;
    }

    std::string whole() const {
        const std::string title = title_of(picture_, form_);
        const auto below = notes();
        const double left = least_.x - kMargin, top = least_.y - kMargin - 44;
        const double width = std::max(most_.x - left + kMargin, 440.0);
        const std::string kinds = legend({left + kMargin, most_.y + kMargin + 6});
        const double foot = most_.y + kMargin + (kinds.empty() ? -26 : 0);
        const double height = foot - top + 26 + 18 * static_cast<double>(below.size()) + 12;
        std::string text = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{:.1f} {:.1f} {:.1f} {:.1f}\" "
            "width=\"{:.0f}\" "
            "height=\"{:.0f}\" role=\"img\">\n<title>{}</title>\n",
            left, top, width, height, width, height, escaped(title));
        text +=
            "<style>\n"
            "text { font-family: system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #22303c; }\n"
            "line { stroke-width: 3; stroke-linecap: round; }\n"
            ".up { stroke: #3a7ca5; } .degraded { stroke: #d08c1d; }\n"
            ".training { stroke: #d08c1d; stroke-dasharray: 2 7; }\n"
            ".down { stroke: #b8433b; stroke-dasharray: 9 7; }\n"
            ".card { fill: #ffffff; stroke: #22303c; stroke-width: 1.6; }\n"
            ".name { font-size: 16px; font-weight: 600; text-anchor: middle; }\n"
            ".address { font-size: 12px; text-anchor: middle; font-family: ui-monospace, 'DejaVu Sans Mono', "
            "monospace; }\n"
            ".kind { font-size: 11px; text-anchor: middle; fill: #6b7a86; }\n"
            ".badge { fill: #ffffff; stroke-width: 2; stroke-dasharray: none; }\n"
            ".badge.free { stroke: #b9c3ca; } .port.free { fill: #98a4ad; }\n"
            ".port { font-size: 11px; text-anchor: middle; stroke: none; }\n"
            ".label { font-size: 12px; }\n"
            ".behind { font-size: 12px; stroke: #f7f8f9; fill: #f7f8f9; stroke-width: 6; stroke-linejoin: "
            "round; "
            "}\n"
            ".title { font-size: 20px; font-weight: 600; } .note { font-size: 12px; fill: #51606c; }\n"
            "</style>\n";
        text += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#f7f8f9\"/>\n", left,
            top, width, height);
        text += fmt::format("<text class=\"title\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left + kMargin,
                            top + 36, escaped(title));
        text += lines_ + labels_ + cards_ + badges_;
        text += kinds;
        for (std::size_t i = 0; i < below.size(); ++i)
            text += fmt::format("<text class=\"note\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left + kMargin,
                                foot + 32 + 18 * static_cast<double>(i), escaped(below[i]));
        return text + "</svg>\n";
    }

    const Picture& picture_;
    const Form& form_;
    const std::vector<Point> at_;
    Point middle_{};
    std::vector<std::vector<Point>> used_;  // badges of each card, from its middle
    std::optional<Edge> common_, usual_;
    bool any_free_ = false;
    Point least_{}, most_{};
    std::string lines_, labels_, cards_, badges_;
};

}  // namespace

Picture planned(const Topology& topology, const std::string& kind, const Edge& link, unsigned ports) {
    Picture picture;
    std::vector<std::vector<bool>> joined(topology.cards, std::vector<bool>(ports));
    const auto take = [&](Port port) {
        if (port.card < topology.cards && port.port < ports) joined[port.card][port.port] = true;
    };
    for (unsigned card = 0; card < topology.cards; ++card)
        picture.cards.push_back({fmt::format("card {}", card), "", kind});
    for (const SwitchPlace& each : topology.switches)
        picture.cards.push_back(
            {each.name, "", fmt::format("switch of {} ports", each.ports), static_cast<int>(each.level)});
    for (const Link& each : topology.links) {
        Edge edge = link;
        edge.first = each.first;
        edge.second = each.second;
        picture.links.push_back({edge, LinkState::kUp});
        take(each.first);
        take(each.second);
    }
    for (unsigned card = 0; card < topology.cards; ++card)
        for (unsigned port = 0; port < ports; ++port)
            if (!joined[card][port]) picture.ports.push_back({{card, port}, LinkState::kDown, ""});
    return picture;
}

std::string title_of(const Picture& picture, const Form& form) {
    const auto switches = static_cast<std::size_t>(
        std::ranges::count_if(picture.cards, [](const Picture::Card& card) { return card.level >= 0; }));
    const std::size_t cards = picture.cards.size() - switches;
    if (switches != 0)
        return fmt::format("{} card{} on {} switch{}", cards, cards == 1 ? "" : "s", switches,
                           switches == 1 ? "" : "es");
    const std::string count = fmt::format("{} card{}", cards, cards == 1 ? "" : "s");
    switch (form.shape) {
        case Shape::kPair:
            return "A pair of cards";
        case Shape::kTorus:
            return fmt::format("{} in a torus of {} x {}", count, form.sides.columns, form.sides.rows);
        case Shape::kListed:
            return fmt::format("{}, {} link{}", count, picture.links.size(),
                               picture.links.size() == 1 ? "" : "s");
        default:
            return fmt::format("{} in a {}", count, shape_name(form.shape));
    }
}

std::string svg_of(const Picture& picture) {
    const unsigned cards = static_cast<unsigned>(picture.cards.size());
    Picture sane{picture.cards, {}, {}};
    std::vector<Edge> edges;
    for (const PictureLink& link : picture.links) {
        if (link.edge.first.card >= cards || link.edge.second.card >= cards ||
            link.edge.first.card == link.edge.second.card)
            continue;
        sane.links.push_back(link);
        edges.push_back(link.edge);
    }
    for (const PicturePort& port : picture.ports)
        if (port.port.card < cards) sane.ports.push_back(port);
    const Form form = form_of(cards, edges);
    return Drawing(sane, form).svg();
}

}  // namespace orrery::topology
