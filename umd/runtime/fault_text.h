// Turns what stopped a queue into an error of the API, with a text that says what to do.
#pragma once

#include "umd/runtime/stream.h"

namespace orrery::umd {

// The cycle of waits in which a stream of the context is, by names; nullopt: it is over.
std::optional<Error> describe_deadlock(Context& context);
// Of a failure word that names no queue of this process. where: "device 0"
Error describe_foreign_failure(std::uint64_t word, const std::string& where);
// packet: that of state.error_index, if it still stands in the ring. args: of the queue, to which packets
// refer.
Error describe_queue_error(const QueueState& state, OpNote note, const orr_packet& packet, Context& context,
                           std::span<const std::byte> args = {});

}  // namespace orrery::umd
