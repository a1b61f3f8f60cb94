// Turns what stopped a queue into an error of the API, with a text that says what to do.
#pragma once

#include "umd/runtime/stream.h"

namespace orrery::umd {

Error describe_queue_error(const QueueState& state, OpNote note, Context& context);

}  // namespace orrery::umd
