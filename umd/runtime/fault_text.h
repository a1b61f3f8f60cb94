// Turns what stopped a queue into an error of the API, with a text that says what to do.
#pragma once

#include "umd/runtime/stream.h"

namespace orrery::umd {

// The cycle of waits in which a stream of the context is, by names; nullopt: it is over.
std::optional<Error> describe_deadlock(Context& context);
// Of a failure word that names no queue of this process. where: "device 0"
Error describe_foreign_failure(std::uint64_t word, const std::string& where);
Error describe_queue_error(const QueueState& state, OpNote note, Context& context);

}  // namespace orrery::umd
