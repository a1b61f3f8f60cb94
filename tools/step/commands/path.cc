// path
#include <orrery/fw/trace.h>

#include "tools/records/wait_graph.h"
#include "tools/step/commands/cards.h"
#include "tools/step/commands/commands.h"
#include "tools/step/report/path.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

constexpr std::size_t kMostRows = 40;

// As asked for, or the one that waits, or the one that the record at the position is about.
Result<std::uint32_t> queue_asked(const Debugger& debugger, const Args& args) {
    const History& history = debugger.history();
    if (args.words.size() > 1) return fail("'path [QUEUE]', by its number");
    if (!args.words.empty()) {
        const auto number = parse_number(args.words.front());
        if (!number ||
            history.queue_at(static_cast<std::uint32_t>(*number), debugger.session().time()) == nullptr)
            return fail("there is no queue '{}': 'queues' lists them", args.words.front());
        return static_cast<std::uint32_t>(*number);
    }
    const WaitGraph graph = wait_graph(history, debugger.session().position());
    if (graph.edges.size() == 1) return graph.edges.front().queue;
    if (const auto here = debugger.record_here())
        if (const std::uint32_t queue = queue_of(history.records()[*here]); queue != ORR_TRACE_NONE)
            return queue;
    return fail("of which queue? 'path QUEUE', by its number; {} wait here",
                graph.edges.empty() ? "none" : "several");
}

std::string what(const PathPiece& piece) {
    if (piece.kind != PathPiece::Kind::kWorks || piece.engines + piece.turns == 0) return piece.text;
    std::string text = piece.text + ": " + duration(piece.engines) + " on engines";
    if (piece.turns != 0) text += ", " + duration(piece.turns) + " until it had its turns";
    return text;
}

}  // namespace

Result<Reply> cmd_path(Debugger& debugger, const Args& args) {
    const auto queue = queue_asked(debugger, args);
    if (!queue) return std::unexpected(queue.error());
    std::vector<CardHistory> cards;
    std::size_t here = 0;
    if (debugger.cards == nullptr) {
        cards.push_back({&debugger.history(), system_clock(debugger.session())});
    } else {
        here = debugger.cards->current;
        for (const auto& one : debugger.cards->all)
            cards.push_back({&one->history(), system_clock(one->session())});
    }
    const Path path = path_back(cards, find_messages(cards), here, *queue, debugger.session().position(),
                                debugger.session().time());
    Reply reply;
    Table table({{"from", Align::kRight},
                 {"to", Align::kRight},
                 {"for", Align::kRight},
                 {"card"},
                 {"queue"},
                 {"what"}});
    Json list = Json::array();
    Time engines = 0, turns = 0, links = 0, works = 0;
    for (const PathPiece& piece : path.pieces) {
        const std::string name = cards[piece.card].history->queue(piece.queue, piece.from);
        const bool ends = piece.to != kNever;
        const bool link = piece.kind == PathPiece::Kind::kLink;
        if (list.size() < kMostRows)
            table.row({moment(piece.from), ends ? moment(piece.to) : "-",
                       ends ? duration(piece.to - piece.from) : "-", card_name(piece.card), name,
                       what(piece)});
        if (link) links += piece.to - piece.from;
        if (piece.kind == PathPiece::Kind::kWorks) works += piece.to - piece.from;
        engines += piece.engines;
        turns += piece.turns;
        list.push_back({{"kind", link                                    ? "link"
                                 : piece.kind == PathPiece::Kind::kWaits ? "waits"
                                                                         : "works"},
                        {"card", piece.card},
                        {"queue", piece.queue},
                        {"from_ps", piece.from},
                        {"to_ps", ends ? Json(piece.to) : Json(nullptr)},
                        {"engines_ps", piece.engines},
                        {"turns_ps", piece.turns},
                        {"text", piece.text}});
    }
    reply.text = table.text();
    if (list.size() > kMostRows)
        reply.text += fmt::format("... and {} before that\n", list.size() - kMostRows);
    reply.text += path.begin + "\n";
    if (works + links != 0)
        reply.text += fmt::format(
            "on the way: {} of work ({} on engines, {} until it had its turns, the rest firmware), {} on "
            "links\n",
            duration(works), duration(engines), duration(turns), duration(links));
    reply.data["path"] = std::move(list);
    reply.data["begin"] = path.begin;
    reply.data["works_ps"] = works;
    reply.data["engines_ps"] = engines;
    reply.data["turns_ps"] = turns;
    reply.data["links_ps"] = links;
    return reply;
}

}  // namespace orrery::step
