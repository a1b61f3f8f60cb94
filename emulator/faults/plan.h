// A fault plan: what shall fail, where and when. Its text is one rule a line (docs/faults.md):
//
//   seed 7
//   msi vector=1 first=3 count=2 drop
//   dispatch first=5 die
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/time/event_queue.h"

namespace orrery::emu {

// Where the card can fail. The numbers stand in recordings.
enum class FaultPoint : std::uint8_t {
    kDoorbell,  // a doorbell was rung, by tag
    kDmaRead,   // guest memory is looked up to be read
    kDmaWrite,  // to be written
    kMsi,       // an interrupt message, by vector
    kLink,      // a message to a peer, by port
    kDispatch,  // an engine is started, by engine port
    kDone,      // it has ended, by engine port
    kMailbox,   // the driver rings for the firmware
    kRegister,  // a read of BAR 0, by offset
    kWalk,      // a TLB miss walks the tables, by address space
    kWire,      // a frame goes over a link's wire, for the first time or again, by port
    kTraining,  // a link trains, by port
};
inline constexpr unsigned kFaultPoints = 12;

enum class FaultAction : std::uint8_t {
    kNone,
    kDrop,       // it does not happen, and nobody is told
    kDelay,      // it happens so much model time later
    kDuplicate,  // it happens twice
    kCorrupt,    // one bit is wrong; the seed says which
    kFail,       // it ends with the error that there is for it
    kAllOnes,    // all bits read as one
    kHang,       // the card stands still from here on, until it is reset
    kDie,        // its process ends at once
    kLanes,      // no more than so many lanes are good until the link comes up anew
    kForge,      // it comes with another key than its own; the seed says with which
    kStale,      // it comes with the first key that this card has sent there since its process began
};
inline constexpr unsigned kFaultActions = 12;

std::string_view name_of(FaultPoint point);
std::string_view name_of(FaultAction action);

struct FaultRule {
    static constexpr std::uint64_t kEver = ~std::uint64_t{0};
    static constexpr std::uint32_t kAlways = 1'000'000;
    static constexpr std::uint64_t kMostLanes = 64;

    FaultPoint point = FaultPoint::kDoorbell;
    FaultAction action = FaultAction::kNone;
    std::optional<std::uint64_t> subject;  // only with this tag, vector, port, offset or address space
    std::uint64_t first = 1;               // of the times that the point is passed with the subject
    std::uint64_t every = 1;               // and then every so many times
    std::uint64_t count = 1;               // at most so often
    std::uint32_t chance = kAlways;        // in millionths, each time; drawn from the seed
    double bit_errors = 0;                 // a bit's chance to go wrong, in place of `chance`; 0: not said
    ModelTime delay = 0;                   // kDelay
    std::uint32_t lanes = 0;               // kLanes
};

struct FaultPlan {
    std::string text;  // that it was made from
    std::uint64_t seed = 1;
    std::vector<FaultRule> rules;

    // Errors name the line and what would be right. Lines end with a newline or ';', '#' begins a comment.
    static std::expected<FaultPlan, std::string> parse(std::string_view text);
    // A file's text, if there is a file of that name, else the text itself.
    static std::expected<FaultPlan, std::string> load(const std::string& file_or_text);

    // An error that names them if a rule is of none of these points, and so could never strike.
    std::expected<void, std::string> only_of(std::span<const FaultPoint> points) const;

    static constexpr std::size_t kMaxRules = 256;
    static constexpr std::size_t kMaxText = 64 << 10;
};

// One rule as parse() takes it.
std::string to_text(const FaultRule& rule);

}  // namespace orrery::emu
