// Turns what stopped a queue into an error of the API, with a text that says what to do.
#pragma once

#include "umd/runtime/stream.h"

namespace orrery::umd {

// The cycle of waits in which a stream of the context is, by names; nullopt: it is over.
std::optional<Error> describe_deadlock(Context& context);
Error describe_queue_error(const QueueState& state, OpNote note, Context& context);

}  // namespace orrery::umd
