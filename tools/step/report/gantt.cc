#include "tools/step/report/gantt.h"

#include <fmt/format.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>

#include <algorithm>
#include <array>
#include <map>

namespace orrery::step {
namespace {

// What a queue's cell shows: its engine work before its state, the more telling state before the less.
char state_letter(std::uint32_t state) {
    switch (state) {
        case ORR_TSTATE_READY:
            return 'r';
        case ORR_TSTATE_TURN:
            return 't';
        case ORR_TSTATE_COPY_PORT:
        case ORR_TSTATE_VECTOR_PORT:
            return 'e';
        case ORR_TSTATE_SEMAPHORE:
            return 'w';
        case ORR_TSTATE_OWN:
            return '-';
        case ORR_TSTATE_SUSPENDED:
            return 's';
        case ORR_TSTATE_QUOTA:
            return 'q';
        case ORR_TSTATE_GANG:
            return 'g';
        case ORR_TSTATE_STOPPED:
            return 'X';
        default:
            return '.';
    }
}

// For each column how long something holds that has a letter; the longest wins.
class Cells {
  public:
    Cells(Time from, Time to, unsigned columns) : from_(from), to_(to), lengths_(columns) {}
    void add(char letter, Time start, Time end) {
        start = std::max(start, from_);
        end = std::min(end, to_);
        if (end <= start) return;
        const Time span = to_ - from_;
        const std::size_t columns = lengths_.size();
        const auto column_of = [&](Time t) {
            return std::min<std::size_t>(
                columns - 1,
                static_cast<std::size_t>(static_cast<unsigned __int128>(t - from_) * columns / span));
        };
        const auto begin_of = [&](std::size_t c) {
            return from_ + static_cast<Time>(static_cast<unsigned __int128>(span) * c / columns);
        };
        for (std::size_t c = column_of(start); c < columns && begin_of(c) < end; ++c) {
            const Time here = std::min(end, begin_of(c + 1)) - std::min(end, std::max(start, begin_of(c)));
            if (here > 0) lengths_[c][letter] += here;
        }
    }
    // `weak` letters show only where no other is.
    std::string text(std::string_view weak) const {
        std::string cells;
        for (const auto& lengths : lengths_) {
            char best = '.';
            Time most = 0;
            bool best_is_weak = true;
            for (const auto& [letter, length] : lengths) {
                const bool is_weak = weak.find(letter) != std::string_view::npos;
                if (best_is_weak && !is_weak ? length > 0 : is_weak == best_is_weak && length > most) {
                    best = letter;
                    most = length;
                    best_is_weak = is_weak;
                }
            }
            cells += best;
        }
        return cells;
    }

  private:
    Time from_, to_;
    std::vector<std::map<char, Time>> lengths_;
};

std::string fit(std::string text, std::size_t width) {
    if (text.size() > width) text = text.substr(0, width - 1) + "~";
    return text;
}

}  // namespace

char letter_of(std::size_t place) {
    constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return place < kLetters.size() ? kLetters[place] : '+';
}

Gantt make_gantt(const History& history, const std::vector<std::string>& engine_names, Time from, Time to,
                 unsigned columns, std::size_t most_queues) {
    Gantt gantt;
    gantt.from = from;
    gantt.to = to;
    gantt.cell = (to - from) / columns;
    const auto& lives = history.queues();
    // Letters by queue number, in order of appearance.
    std::map<std::uint32_t, char> letters;
    for (const QueueLife& life : lives)
        letters.try_emplace(life.number, letter_of(letters.size()));

    std::map<std::uint32_t, Cells> engines;
    for (std::uint32_t port = 0; port < std::max<std::size_t>(history.ports(), engine_names.size()); ++port)
        engines.try_emplace(port, from, to, columns);
    for (const Job& job : history.jobs()) {
        const char letter = letters.contains(job.queue) ? letters[job.queue] : '+';
        for (const Segment& segment : job.segments) {
            const auto row = engines.find(segment.port);
            if (row != engines.end())
                row->second.add(letter, segment.start, std::min(segment.end, history.end()));
        }
    }
    for (const auto& [port, cells] : engines) {
        const std::string name = port < engine_names.size() && !engine_names[port].empty()
                                     ? engine_names[port]
                                     : fmt::format("port {}", port);
        gantt.engines.push_back({name, cells.text("")});
    }

    Cells core(from, to, columns);
    std::map<std::uint32_t, std::pair<Cells, bool>> rows;  // and: did anything
    for (const QueueLife& life : lives) {
        auto& [cells, active] = rows.try_emplace(life.number, Cells(from, to, columns), false).first->second;
        for (std::size_t i = 0; i < life.states.size(); ++i) {
            const Time start = life.states[i].time;
            const Time end = std::min(life.destroyed,
                                      i + 1 < life.states.size() ? life.states[i + 1].time : history.end());
            const std::uint32_t state = life.states[i].state;
            if (end <= from || start >= to) continue;
            if (state == ORR_TSTATE_TURN) core.add(letters[life.number], start, end);
            cells.add(state_letter(state), start, end);
            if (state != ORR_TSTATE_IDLE) active = true;
        }
        for (const std::size_t at : life.jobs) {
            const Job& job = history.jobs()[at];
            for (std::size_t i = 0; i < job.segments.size(); ++i) {
                const Segment& segment = job.segments[i];
                cells.add('#', segment.start, std::min(segment.end, history.end()));
                if (segment.start < to && segment.end > from) active = true;
                // Between its pieces, whatever its queue waits for meanwhile.
                const bool last = i + 1 == job.segments.size();
                if (!last) cells.add('s', segment.end, job.segments[i + 1].start);
                if (last && !job.finished && segment.status == ORR_DONE_PREEMPTED)
                    cells.add('s', segment.end, std::min(life.destroyed, history.end()));
            }
        }
    }
    gantt.core = {"core", core.text("")};
    std::size_t left_out = 0;
    std::size_t count = 0;
    for (const QueueLife& life : lives) {
        const auto row = rows.find(life.number);
        if (row == rows.end()) continue;
        if ((rows.size() > most_queues && !row->second.second) || count >= most_queues) {
            ++left_out;
        } else {
            ++count;
            gantt.queues.push_back(
                {fmt::format("{} {}", letters[life.number], fit(history.queue_row(life.number), 28)),
                 row->second.first.text(".-")});
        }
        rows.erase(row);
    }
    if (left_out > 0)
        gantt.legend.push_back(fmt::format("{} queue{} not shown", left_out, left_out == 1 ? "" : "s"));
    return gantt;
}

std::string draw(const Gantt& gantt) {
    std::size_t width = gantt.core.label.size();
    for (const auto* rows : {&gantt.engines, &gantt.queues})
        for (const GanttRow& row : *rows)
            width = std::max(width, row.label.size());
    const std::size_t columns = gantt.core.cells.size();
    std::string text;
    const std::string left = moment(gantt.from), right = moment(gantt.to);
    const std::size_t gap = columns > left.size() + right.size() ? columns - left.size() - right.size() : 1;
    text += fmt::format("{:<{}} |{}{:{}}{}|\n", "", width, left, "", gap, right);
    const auto line = [&](const GanttRow& row) {
        text += fmt::format("{:<{}} |{}|\n", row.label, width, row.cells);
    };
    for (const GanttRow& row : gantt.engines)
        line(row);
    line(gantt.core);
    for (const GanttRow& row : gantt.queues)
        line(row);
    text += fmt::format("a column is {}; engines and core: the queue they work for\n", duration(gantt.cell));

    std::string used;
    for (const GanttRow& row : gantt.queues)
        used += row.cells;
    constexpr std::array<std::pair<char, std::string_view>, 11> kLegend = {{{'#', "on an engine"},
                                                                            {'r', "ready"},
                                                                            {'t', "turn"},
                                                                            {'e', "waits for an engine"},
                                                                            {'s', "preempted"},
                                                                            {'w', "waits for a semaphore"},
                                                                            {'q', "over its quota"},
                                                                            {'g', "waits for its gang"},
                                                                            {'-', "own packets in flight"},
                                                                            {'X', "stopped"},
                                                                            {'.', "idle"}}};
    std::string legend;
    for (const auto& [letter, meaning] : kLegend) {
        if (used.find(letter) == std::string::npos) continue;
        legend += fmt::format("{}{} {}", legend.empty() ? "" : ", ", letter, meaning);
    }
    if (!legend.empty()) text += "queues: " + legend + "\n";
    for (const std::string& more : gantt.legend)
        text += more + "\n";
    return text;
}

}  // namespace orrery::step
