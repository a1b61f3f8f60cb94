// A text Gantt chart: a row each engine, the core, and each queue; a column a slice of time.
#pragma once

#include <string>
#include <vector>

#include "tools/records/history.h"
#include "tools/step/words.h"

namespace orrery::step {

struct GanttRow {
    std::string label;
    std::string cells;
};
struct Gantt {
    Time from = 0, to = 0;
    Time cell = 0;  // duration of a column
    std::vector<GanttRow> engines, queues;
    GanttRow core;
    std::vector<std::string> legend;
};

// `engine_names`: by port. `columns` at least 10. Queues that have no work in the time are left out if there
// are more than `most_queues`.
Gantt make_gantt(const History& history, const std::vector<std::string>& engine_names, Time from, Time to,
                 unsigned columns, std::size_t most_queues = 40);
std::string draw(const Gantt& gantt);

// The letter of a queue, by its place among the queues of the recording.
char letter_of(std::size_t place);

}  // namespace orrery::step
