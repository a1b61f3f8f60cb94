// What the scheduler core hands to whoever runs things: cards (runtime_executor.h), a simulation
// (sim_executor.h), or a test. Commands come in an order in which each comes after all that it waits for.
#pragma once

#include <cstdint>
#include <span>

#include "umd/scheduler/machine.h"

namespace orrery::umd {

using TaskId = std::uint32_t;
using DataId = std::uint32_t;
using CommandId = std::uint32_t;  // counts from 1 over all commands of a core; 0: nothing to wait for
constexpr TaskId kNoTask = ~0u;

struct TransferCommand {
    CommandId id = 0;
    DataId data = 0;
    unsigned from = 0, to = 0;  // memories
    bool partial = false;       // a card's part of a reduction, for a merge
    unsigned origin = 0;        // partial: that card
    CommandId after = 0;        // what put the data where it comes from
    TaskId consumer = 0;        // for which it was planned
};

struct RunCommand {
    CommandId id = 0;
    TaskId task = 0;
    unsigned node = 0;                   // card, or Machine::host()
    unsigned worker = 0;                 // of the card; those of one worker run one after the other
    std::span<const CommandId> after;    // tasks and transfers; may hold duplicates and 0
    std::span<const unsigned> partials;  // a merge: other cards whose parts have been transferred here
    std::uint64_t clear = 0;  // bit i: access i reduces, and is the first on this card: clear its part
};

class Executor {
  public:
    virtual ~Executor() = default;
    virtual void transfer(const TransferCommand& command) = 0;
    // Ends with Core::complete() or Core::fail(), not before this returns.
    virtual void run(const RunCommand& command) = 0;
};

}  // namespace orrery::umd
