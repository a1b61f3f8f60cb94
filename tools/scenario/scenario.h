// A scenario: what processes ask of one or several cards, and when (docs/scenarios.md). Read from TOML or
// made by a program; run by runner.h.
//
// Times are model picoseconds from the scenario's start; in a file they are the cards' model time. Indices
// name elements of the vectors below.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <orrery/fw/mailbox.h>

#include "emulator/api/sku.h"

namespace orrery::scenario {

using Ps = std::uint64_t;
inline constexpr Ps kUs = 1'000'000;
inline constexpr Ps kMs = 1000 * kUs;

enum class Op : std::uint8_t {
    kNop,
    kKernel,
    kCopy,
    kFill,
    kWait,
    kSignal,
    kBarrier,
    kTimestamp,
    kGang,
    kMalformed,  // a packet that no firmware may accept
};
const char* to_string(Op op);

// Memory at one end of a copy or fill.
struct Place {
    enum class Kind : std::uint8_t { kVram, kHost, kPeer } kind = Kind::kVram;
    std::uint32_t card = 0;  // kPeer: whose VRAM
    bool operator==(const Place&) const = default;
};

constexpr std::uint64_t kMostCopyBytes = std::uint64_t{1} << 40;

// One packet.
struct Job {
    Op op = Op::kNop;
    bool ordered = false;    // starts when all earlier packets of the queue have finished
    bool interrupt = false;  // asks for an interrupt when it has finished
    // kKernel: groups that take so many cycles of a vector core each.
    std::uint32_t groups = 1;
    std::uint64_t cycles = 1000;
    bool resident = false;
    bool traps = false;  // its first instruction is illegal
    // kCopy, kFill
    std::uint64_t bytes = 4096;
    Place from, to;
    // kWait, kSignal
    std::uint32_t semaphore = 0;
    std::uint64_t value = 0;
    // kGang: the kernel behind it starts together with those of the other members.
    std::uint32_t gang = 0;
    std::uint64_t round = 1;
    bool operator==(const Job&) const = default;
};

struct Card {
    emu::Sku sku = emu::Sku::standard();
    std::uint64_t vram_bytes = 128u << 20;
};

struct Context {
    std::string name;
    std::uint32_t card = 0;
    std::uint32_t user = 0, process = 0;  // whose it is: shares go by these first
    std::uint32_t quota = 0;              // vector core time in 1/1000 of the card's in a period; 0: no limit
    std::uint32_t period_us = 0;
};

struct Queue {
    std::string name;
    std::uint32_t context = 0;
    std::uint32_t priority = ORR_PRIORITY_NORMAL;
    std::uint32_t weight = ORR_WEIGHT_DEFAULT;
    std::uint32_t slice_us = 0;  // 0: the firmware's default
    std::uint64_t limit_us = 0;  // of a dispatch; 0: the firmware's default
    bool ring_in_vram = false;
    std::uint32_t entries = 0;  // of the ring, power of two; 0: what all its packets need
};

struct Semaphore {
    std::string name;
    std::uint32_t card = 0;  // in whose VRAM it is; the others signal it over a link
};

struct Gang {
    std::string name;
    std::vector<std::uint32_t> members;  // of each card of the scenario; cards with 0 take no part
};

// Packets are written to a queue's ring, and its doorbell is rung.
struct Submit {
    Ps at = 0;
    std::uint32_t queue = 0;
    std::vector<Job> jobs;
};

// What a driver or a linked card does at a time of its own.
struct Action {
    enum class Kind : std::uint8_t {
        kQueueSet,      // queue, priority, weight, slice_us
        kQuotaSet,      // context, quota, period_us
        kQueueDestroy,  // queue
        kCrash,         // card; queue: looks guilty (kNobody: none). The core is restarted when it has halted
        kPoke,          // semaphore, value: as if a linked card had signalled it
        kRing,          // queue, value: its doorbell with this index, whatever is in the ring
    };
    static constexpr std::uint32_t kNobody = 0xffffffff;
    Kind kind = Kind::kQueueSet;
    Ps at = 0;
    std::uint32_t queue = 0, context = 0, card = 0, semaphore = 0;
    std::uint32_t priority = ORR_PRIORITY_NORMAL, weight = 0, slice_us = 0;
    std::uint32_t quota = 0, period_us = 0;
    std::uint64_t value = 0;
};

struct Scenario {
    // Model time of the cards at which a file's scenario starts, if it says nothing else: they have booted.
    static constexpr Ps kStart = kMs;

    std::string name;
    Ps start = 0;            // model time of the cards; 0: at a whole millisecond, as soon as all is set up
    Ps until = 10 * kMs;     // ends here, or when all work has been done
    std::uint64_t seed = 0;  // only carried along, into recordings
    std::uint32_t save_areas = 16;  // for preemption inside kernels, of each card
    std::vector<Card> cards = std::vector<Card>(1);
    std::vector<Context> contexts;
    std::vector<Queue> queues;
    std::vector<Semaphore> semaphores;
    std::vector<Gang> gangs;
    std::vector<Submit> submits;  // any order; those of one time in their order here
    std::vector<Action> actions;

    // Errors are one line: file, line, what is wrong, what to write instead.
    static std::expected<Scenario, std::string> load(const std::filesystem::path& file);
    // SKU files that the text names are sought beside `folder`.
    static std::expected<Scenario, std::string> parse(std::string_view toml,
                                                      const std::string& name_for_errors,
                                                      const std::filesystem::path& folder = {});
    // What parse() checks beyond syntax: indices and ranges. Empty: good.
    std::string check() const;
    // As a file that load() would read: for failing property tests, and what-ifs.
    std::string to_toml() const;

    std::uint32_t card_of(const Queue& queue) const { return contexts[queue.context].card; }
};

// "250us", "1.5ms", "3s", "40ns", "17ps".
std::expected<Ps, std::string> parse_time(std::string_view text);
std::string time_text(Ps time);

}  // namespace orrery::scenario
