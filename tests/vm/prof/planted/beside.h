// Another process at the card's cores.
#pragma once

#include <functional>

#include <orrery/orrery.hpp>

namespace planted {

// Queues some work of the other process, behind which it records the event.
using Row = std::function<void(const orrery::Event&)>;

// Runs `own` in this process while another one, which is forked and so begins before this one has used a
// card, does rows of what `others` makes there: so far ahead that it has work on the card also while it
// stands still itself. It is not recorded for long: it ends when `own` has.
void beside(unsigned rows_ahead, const std::function<Row()>& others, const std::function<void()>& own);

}  // namespace planted
