// Runs a scenario on real cards in this process: each the emulated card with the real firmware image, and a
// small driver and processes in front of it. One thread; arrivals are events of the model clock, so a run
// depends on the scenario, the image and the SKUs alone.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <orrery/fw/mailbox.h>
#include <orrery/hw/counters.h>

#include "tools/records/records.h"
#include "tools/scenario/image.h"
#include "tools/scenario/scenario.h"

namespace orrery::scenario {

// In the header of recordings; the second one in those of before orrery-step ran scenarios.
inline constexpr const char* kProgram = "orrery-step run";
inline constexpr const char* kOldProgram = "orrery-scenario";
inline constexpr Ps kUnknown = ~Ps{0};

// One packet's life; times from the scenario's start. What did not happen, or was not seen, is kUnknown.
struct JobResult {
    std::uint32_t queue = 0;
    std::uint64_t index = 0;  // in its queue
    Job job;
    Ps submitted = kUnknown;
    Ps started = kUnknown;   // on its engine, first; needs trace records of the firmware
    Ps finished = kUnknown;  // on its engine; else when the queue's consumer index passed it
    Ps used_ps = 0;          // engine time, all cores together; needs trace records
    std::uint32_t preempted = 0;
};

// ORR_TRACE_DECISION, as the firmware wrote it.
struct Decision {
    Ps at = 0;
    std::uint32_t queue = 0;  // the scenario's; kNoQueue: nobody may have the resource
    std::uint32_t rule = 0, resource = 0, candidates = 0;
    std::uint64_t index = 0;  // of the packet
    std::uint32_t card = 0;
    std::uint64_t number = 0;  // counts all decisions as they were heard
    static constexpr std::uint32_t kNoQueue = 0xffff;
    bool same_choice(const Decision& other) const {
        return queue == other.queue && rule == other.rule && resource == other.resource &&
               index == other.index;
    }
};

struct QueueResult {
    std::string name;
    std::uint32_t card = 0, number = 0;  // the firmware's queue number on that card
    std::uint64_t submitted = 0, completed = 0;
    std::uint64_t error = 0, error_index = 0, error_address = 0, error_detail = 0;
    // ORR_MBOX_QUEUE_STATS at the end; false: this firmware has none.
    bool has_stats = false;
    Ps vector_ps = 0, copy_ps = 0, ready_ps = 0, longest_ready_ps = 0;
    std::uint64_t finished = 0, preempted = 0;
};

struct Message {
    Ps at = 0;
    std::uint32_t card = 0;
    orr_mbox_message message{};
};

// A record of the firmware's trace port (orrery/fw/trace.h), header first.
struct Record {
    Ps at = 0;
    std::uint32_t card = 0;
    std::vector<std::uint64_t> words;
};

struct Result {
    bool done = false;  // every packet finished, or its queue stopped; else `until` came first
    Ps start = 0;       // model time of the cards at which it started
    Ps end = 0;
    Ps makespan = 0;  // when the last job finished
    std::vector<QueueResult> queues;
    std::vector<JobResult> jobs;                       // by queue, then index
    std::vector<std::vector<std::uint64_t>> counters;  // of each card: what the scenario added to each
    std::vector<Decision> decisions;                   // in order of time
    std::vector<Message> events;                       // from the firmwares, without replies
    std::vector<Record> records;                       // Options::keep_records
    // Options::keep_history: of each card, all that its firmware told since power-on, in model time.
    std::vector<std::vector<records::Record>> history;
    std::vector<std::string> log;  // what the cards complained about
    // Options::profile_bytes: of each card, its ring (orrery/hw/trace_sink.h) and how many words were written
    // to it.
    struct Sink {
        std::uint64_t head = 0;
        std::vector<std::uint64_t> ring;
    };
    std::vector<Sink> sinks;

    std::uint64_t counter(std::uint32_t card, orr_counter number) const { return counters[card][number]; }
};

struct Options {
    Image image = Image::built();  // of all cards
    // Recordings of the cards: one a card, or none. A file that is there is replaced.
    std::vector<std::string> record;
    // Who records, for the header. What-ifs know the kernels of this program exactly, those of others by
    // their time.
    std::string program = kProgram;
    bool keep_records = false;
    bool keep_history = false;
    // Of each card's ring in host memory for all that it can be profiled by, from power-on: the firmware's
    // records, those of jobs, samples of all counters and of where vector cores are at the shortest periods,
    // and all instructions of core 0. A power of two, ORR_R_SINK at most; 0: the cards are not profiled.
    std::uint32_t profile_bytes = 0;
};

// Errors: a scenario that check() refuses, an image that does not boot, a command that the firmware refuses.
std::expected<Result, std::string> run(const Scenario& scenario, const Options& options);

}  // namespace orrery::scenario
