// Why a queue got no further sooner: back from it along what it waited for, over all cards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/step/report/messages.h"

namespace orrery::step {

struct PathPiece {
    enum class Kind : std::uint8_t {
        kWaits,  // at a semaphore
        kWorks,  // from what it waited for, or from its doorbell, to what comes of it
        kLink,   // a signal travels from this card to another
    };
    Kind kind = Kind::kWorks;
    std::size_t card = 0;
    std::uint32_t queue = 0;
    Time from = 0, to = 0;  // system time; kNever: it does not end
    std::string text;
    // Of kWorks.
    Time engines = 0;  // its jobs were on engines
    Time turns = 0;    // it was ready, and others were first
};

struct Path {
    std::vector<PathPiece> pieces;  // the last first
    std::string begin;              // what the first piece began with, or why no more is known
};

// At the position `step` of a card, whose own clock is `now`. `link` is for signals: who sent what.
Path path_back(const std::vector<CardHistory>& cards, const std::vector<Message>& messages, std::size_t card,
               std::uint32_t queue, std::uint64_t step, Time now);

}  // namespace orrery::step
