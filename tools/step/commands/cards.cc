// card, together, sync
#include "tools/step/commands/cards.h"

#include <orrery/fw/trace.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "tools/records/names.h"
#include "tools/step/commands/commands.h"
#include "tools/step/report/links.h"
#include "tools/step/words.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

constexpr std::size_t kMostRows = 60;
constexpr const char* kAligned =
    "by system time: each card's clock and what it skipped to follow its peers; no message has an effect "
    "before it "
    "was sent,\nand nothing else holds the cards' clocks together\n";

struct Row {
    Time system = 0;
    std::size_t card = 0;
    std::size_t record = 0;  // in its history
    // Not null: what began to cross this link then.
    const LinkTrack* link = nullptr;
    const Crossing* crossing = nullptr;
};

// Of a link: what a card tells a linked one, or is told.
bool is_of_link(const Record& record) {
    switch (record.type) {
        case ORR_TRACE_POKE:
        case ORR_TRACE_GANG:
            return true;
        case ORR_TRACE_SIGNAL:
            return record.word[0] == ~std::uint64_t{0};
        case ORR_TRACE_WAKE:
            return record.b == ORR_WAKE_PEER;
        default:
            return false;
    }
}

Result<Cards*> several(Debugger& debugger) {
    if (debugger.cards == nullptr || debugger.cards->all.size() < 2)
        return fail(
            "this is one recording: 'orrery-step card0.otrace card1.otrace' opens those of linked cards "
            "together");
    return debugger.cards;
}

// A moment on the common time line.
Result<Time> parse_system(const Debugger& debugger, const std::string& text) {
    if (text == "now") return system_time(debugger.session(), debugger.session().time());
    if (auto time = parse_time(text)) return time;
    return fail("'{}' is no moment: write a time with its unit, as in 12.5us, or now", text);
}

std::vector<LinkTrack> links_of(const Cards& cards) {
    std::vector<LinkedCard> ends;
    for (std::size_t n = 0; n < cards.all.size(); ++n) {
        const Session& session = cards.all[n]->session();
        ends.push_back({session.about().uid, &session.bursts(), card_name(n)});
    }
    return find_links(ends, SIZE_MAX);
}

// At the end that sent it, or if that has no recording at the other one.
std::size_t card_of(const LinkTrack& link) {
    return link.from.card ? *link.from.card : link.to.card.value_or(0);
}

Json crossing_json(const LinkTrack& link, const Crossing& crossing) {
    const auto end = [](const LinkEnd& one) {
        return Json{
            {"card", one.card ? Json(*one.card) : Json(nullptr)}, {"port", one.port}, {"name", one.name}};
    };
    return {{"type", "link"},
            {"from", end(link.from)},
            {"to", end(link.to)},
            {"operation", operation_name(crossing.operation)},
            {"channel", crossing.channel},
            {"from_node", crossing.source},
            {"to_node", crossing.destination},
            {"first", crossing.first},
            {"messages", crossing.messages},
            {"bytes", crossing.bytes},
            {"begin_ps", crossing.begin},
            {"left_ps", crossing.left},
            {"came_ps", crossing.came},
            {"end_ps", crossing.end},
            {"sent", crossing.sent},
            {"taken", crossing.taken}};
}

std::vector<Row> rows_between(const Cards& cards, const std::vector<LinkTrack>& links, Time from, Time to) {
    std::vector<Row> rows;
    for (std::size_t card = 0; card < cards.all.size(); ++card) {
        const Debugger& debugger = *cards.all[card];
        const auto& records = debugger.history().records();
        const auto system_time = system_clock(debugger.session());
        for (std::size_t n = 0; n < records.size(); ++n) {
            if (records[n].type != ORR_TRACE_DECISION && !is_of_link(records[n])) continue;
            const Time system = system_time(records[n].time);
            if (system >= from && system <= to) rows.push_back({system, card, n});
        }
    }
    for (const LinkTrack& link : links)
        for (const Crossing& crossing : link.crossings)
            if (crossing.begin <= to && crossing.end >= from)
                rows.push_back({crossing.begin, card_of(link), SIZE_MAX, &link, &crossing});
    // Those of links are in the order of their tracks.
    std::ranges::sort(rows, {}, [](const Row& row) {
        return std::tuple(row.system, row.card, row.record, row.link, row.crossing);
    });
    return rows;
}

}  // namespace

std::string card_name(std::size_t card) {
    return fmt::format("card {}", card);
}

std::function<Time(Time own)> system_clock(const Session& session) {
    struct Skipped {
        Time from = 0, all = 0;
    };
    std::vector<Skipped> jumps;
    for (const ClockJump& jump : session.jumps())
        jumps.push_back({jump.time, jump.by + (jumps.empty() ? 0 : jumps.back().all)});
    return [jumps = std::move(jumps)](Time own) {
        const auto next = std::ranges::upper_bound(jumps, own, {}, &Skipped::from);
        return own + (next == jumps.begin() ? 0 : std::prev(next)->all);
    };
}

Time system_time(const Session& session, Time own) {
    return system_clock(session)(own);
}

Time own_time(const Session& session, Time system) {
    Time skipped = 0;
    for (const ClockJump& jump : session.jumps()) {
        if (jump.time + skipped > system) break;
        // In the midst of what it skipped the card stands at the jump.
        if (jump.time + skipped + jump.by > system) return jump.time;
        skipped += jump.by;
    }
    return system - skipped;
}

Result<Reply> cmd_card(Debugger& debugger, const Args& args) {
    const auto cards = several(debugger);
    if (!cards) return std::unexpected(cards.error());
    Cards& all = **cards;
    if (!args.words.empty()) {
        const auto number = parse_number(args.words.front());
        if (!number || *number >= all.all.size() || args.words.size() > 1)
            return fail("'card N': they run from 0 to {}", all.all.size() - 1);
        all.current = *number;
        return all.now().here();
    }
    Reply reply;
    Table table({{""},
                 {"card"},
                 {"recording"},
                 {"uid"},
                 {"firmware"},
                 {"clock", Align::kRight},
                 {"system time", Align::kRight},
                 {"events", Align::kRight},
                 {"decisions", Align::kRight},
                 {"of links", Align::kRight}});
    Json list = Json::array();
    for (std::size_t n = 0; n < all.all.size(); ++n) {
        const Debugger& one = *all.all[n];
        const Session& session = one.session();
        const Time system = system_time(session, session.time());
        const auto of_links = std::ranges::count_if(one.history().records(), is_of_link);
        table.row({n == all.current ? "=>" : "", card_name(n), session.about().file,
                   fmt::format("{:016x}", session.about().uid), session.about().build_id,
                   moment(session.time()), moment(system), fmt::format("{}", one.history().records().size()),
                   fmt::format("{}", one.history().decisions().size()), fmt::format("{}", of_links)});
        list.push_back({{"card", n},
                        {"file", session.about().file},
                        {"time_ps", session.time()},
                        {"system_time_ps", system},
                        {"link_events", of_links}});
    }
    reply.text = table.text() + kAligned;
    reply.data["cards"] = std::move(list);
    reply.data["current"] = all.current;
    return reply;
}

Result<Reply> cmd_together(Debugger& debugger, const Args& args) {
    const auto cards = several(debugger);
    if (!cards) return std::unexpected(cards.error());
    Time from = 0, to = kNever;
    std::vector<std::string> words = args.words;
    std::size_t shown = 0;
    if (!words.empty() && words.back().starts_with('+')) {
        const auto rows = parse_number(words.back().substr(1));
        if (!rows) return fail("'{}': +N goes on behind N rows", words.back());
        shown = *rows;
        words.pop_back();
    }
    const bool decisions = !words.empty() && words.back() == "decisions";
    if (decisions) words.pop_back();
    if (words.size() > 2)
        return fail("'together [FROM [TO]] [decisions] [+N]', each a time with its unit, as in 12.5us");
    if (!words.empty()) {
        const auto time = parse_system(debugger, words[0]);
        if (!time) return std::unexpected(time.error());
        from = *time;
    }
    if (words.size() == 2) {
        const auto time = parse_system(debugger, words[1]);
        if (!time) return std::unexpected(time.error());
        to = *time;
    }
    const std::vector<LinkTrack> links = decisions ? std::vector<LinkTrack>{} : links_of(**cards);
    const std::vector<Row> rows = rows_between(**cards, links, from, to);
    if (rows.empty()) return fail("no card decides or hears of another one in that time");
    if (shown >= rows.size()) return fail("there are {} rows in that time", rows.size());
    Reply reply;
    Table table({{"system time", Align::kRight},
                 {"card"},
                 {"clock", Align::kRight},
                 {"event", Align::kRight},
                 {"what"},
                 {""}});
    Json list = Json::array();
    const auto is_shown = [&](std::size_t n) { return n >= shown && n - shown < kMostRows; };
    for (std::size_t n = 0; n < rows.size(); ++n) {
        if (const Crossing* crossing = rows[n].crossing) {
            const LinkTrack& link = *rows[n].link;
            if (is_shown(n))
                table.row({moment(rows[n].system), card_name(rows[n].card),
                           moment(own_time((*cards)->all[rows[n].card]->session(), rows[n].system)), "-",
                           "link",
                           fmt::format("{} to {}: {}, there at {}", link.from.name, link.to.name,
                                       describe(*crossing), moment(crossing->end))});
            Json json = crossing_json(link, *crossing);
            json["card"] = rows[n].card;
            json["system_time_ps"] = rows[n].system;
            list.push_back(std::move(json));
            continue;
        }
        const History& history = (*cards)->all[rows[n].card]->history();
        const Record& record = history.records()[rows[n].record];
        if (is_shown(n)) {
            table.row({moment(rows[n].system), card_name(rows[n].card), moment(record.time),
                       fmt::format("{}", rows[n].record), record_name(record.type),
                       describe(record, history)});
        }
        Json json = record_json(record, history);
        json["card"] = rows[n].card;
        json["system_time_ps"] = rows[n].system;
        json["number"] = rows[n].record;
        list.push_back(std::move(json));
    }
    reply.text = table.text();
    if (rows.size() - shown > kMostRows) {
        std::string same;
        for (const std::string& word : words)
            same += " " + word;
        reply.text +=
            fmt::format("... and {} more: 'together{}{} +{}' goes on\n", rows.size() - shown - kMostRows,
                        same, decisions ? " decisions" : "", shown + kMostRows);
    }
    reply.text += kAligned;
    reply.data["events"] = std::move(list);
    return reply;
}

Result<Reply> cmd_sync(Debugger& debugger, const Args&) {
    const auto cards = several(debugger);
    if (!cards) return std::unexpected(cards.error());
    const Time system = system_time(debugger.session(), debugger.session().time());
    for (auto& one : (*cards)->all) {
        if (one.get() == &debugger) continue;
        Session& session = one->session();
        session.seek_time(std::clamp(own_time(session, system), session.about().start, session.end_time()));
    }
    return cmd_card(debugger, {});
}

}  // namespace orrery::step
