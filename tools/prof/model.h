// A profile as what happened: who called, what cards did for it, what led from one to the other, and what the
// cards could have done. All commands read this.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prof/profile.h"
#include "tools/prof/stretches.h"

namespace orrery::prof {

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

// As orrProfOperation and orrProfOutcome number them.
enum class Operation : std::uint16_t { kOther = 0, kCopy = 1, kFill = 2, kKernel = 3, kWait = 4 };
enum class Outcome : std::uint16_t { kDone = 0, kPreempted = 1, kFailed = 2 };

// Ranges as spans with a begin and an end.
struct Span {
    std::uint32_t text, domain, thread;
    std::uint64_t begin_ns, end_ns, correlation, external;
    bool open;  // it had not ended where the profile ends
};

// Between which memories a copy goes, seen from the card that does it.
enum class Direction : std::uint8_t {
    kUnknown,
    kFromHost,
    kToHost,
    kInside,    // of the card's own memory
    kFromPeer,  // it reads another card's
    kToPeer,
    kOther,  // none of its sides is the card's own
};
Direction direction_of(const WorkRecord& work);
// Of a copy to or from a peer: that one, a device or a Place.
std::int32_t peer_of(const WorkRecord& work, Direction direction);
// "host to device", "device to peer": for people.
const char* name_of(Direction direction);
// The same of a copy that goes this way: "reduction host to device".
std::string copy_name(std::string_view way, bool reduces);
// How often each byte of such a copy passes VRAM of the card that does it, read or written: a reduction reads
// its destination as well.
unsigned vram_passes(Direction direction, bool reduces);

// What a card did.
struct Work {
    const WorkRecord* record = nullptr;
    const WorkCountersRecord* counters = nullptr;  // null: it was not counted
    std::uint32_t stream = 0;                      // of Activity::streams
    std::uint32_t lane = 0;                        // what overlaps in a stream has different ones
    std::uint32_t call = kNone;                    // of Process::calls, that submitted it
    // Of a wait: the work (of Activity::work) that its signal came behind; kNone: none that is here.
    std::uint32_t cause = kNone;
    // The call (of Process::calls) of its thread that waited for its stream and found it done, of the last
    // work of that stream that it waited for; its end stands before the call's. kNone: nobody knows of one.
    std::uint32_t found_by = kNone;
    bool goes_on = false;  // it was preempted, and the next part of the same run is here as well
    // A run in parts is one.
    std::uint64_t runs() const { return goes_on ? 0 : 1; }

    Operation operation() const { return static_cast<Operation>(record->operation); }
    // A copy that combines what it reads with what its destination has.
    bool reduces() const { return operation() == Operation::kCopy && record->reduces != 0; }
    Outcome outcome() const { return static_cast<Outcome>(record->outcome); }
    std::uint64_t ps() const { return record->end_ps - record->begin_ps; }
};

struct StreamModel {
    std::uint64_t number = 0;
    std::uint32_t device = 0;
    std::uint32_t name = 0;  // a text
    std::uint32_t lanes = 1;
    std::vector<std::uint32_t> work;  // of Activity::work
};

// What a card can do at most, from its SKU. GB/s are 10^9 bytes a second, FLOP/s have multiply-add as two.
struct Bounds {
    std::optional<double> vram_gb_per_s;  // reads and writes together
    std::optional<double> host_gb_per_s;  // one direction
    std::optional<double> copy_engine_gb_per_s;
    std::optional<double> link_gb_per_s;  // one direction of one link
    std::optional<double> gflops_f16, gflops_f32, gflops_f64;
    std::optional<std::uint64_t> launch_ps;  // a kernel: from start to the first work-group
    std::optional<std::uint64_t> copy_setup_ps;
};

// A card, as the process used it.
struct DeviceModel {
    std::uint32_t number = 0;
    const CardRecord* card = nullptr;  // null: the profile does not say what it is
    std::map<std::string_view, std::uint64_t> sku;
    Bounds bounds;
    std::vector<const LinkRecord*> links;
    std::vector<std::uint32_t> work;         // of Activity::work, by begin
    std::vector<std::uint32_t> streams;      // of Activity::streams
    std::uint64_t begin_ps = 0, end_ps = 0;  // of its first and its last work here
    HostClock clock;                         // settled; may be empty
    bool on_host_clock = false;              // and it says when each of the work began and ended
    std::uint64_t clock_error_ns = 0, clock_worst_ns = 0;  // of those moments: of half of them, and at most
    Stretches stretches;
    std::uint64_t memory_peak = 0;  // bytes that the process had in use at most
    std::uint64_t memory_peak_ns = 0;

    // A card's time is its own. On a timeline of the host its work stands where its clock says, if that is
    // known; else its first work of the process begins when that was submitted, and all else is as far from
    // it as on the card. It has the card's lengths and order either way.
    const Stretch& stretch_of(const Work& one) const;
    const Stretch& stretch_of(const StepRecord& step) const;
    // Of any moment of the card, on the same timeline; nothing: nobody knows.
    std::optional<std::uint64_t> moment_ns(std::uint64_t ps) const;
    // Vector cores; 0: not known.
    std::uint32_t cores() const { return card == nullptr ? 0 : card->vector_cores; }
    // What such a copy gets at most, in GB/s of what it copies; nothing if that is not known.
    std::optional<double> copy_bound(const Work& copy) const;
};

// What a process did. Texts are numbers of process->text().
struct Activity {
    const Process* process = nullptr;
    std::vector<Work> work;            // in the order in which it began, by the clocks of the cards
    std::vector<StreamModel> streams;  // by number
    std::vector<DeviceModel> devices;  // by number; those that did something, or of which something is known
    std::vector<Span> spans;           // in the order in which they began
    std::vector<std::uint32_t> threads;      // that called or had ranges, by number
    std::uint64_t host_memory_peak = 0;      // pinned bytes
    std::uint64_t begin_ns = 0, end_ns = 0;  // of what the host did

    const DeviceModel* device(std::uint32_t number) const;
    std::string_view text(std::uint32_t number) const { return process->text(number); }
    std::string_view name(const Work& one) const { return text(one.record->head.text); }
};

// Its parts refer to one another: it can be moved, and not be copied.
struct Model {
    explicit Model(Profile read);
    Model(Model&&) = default;
    Model& operator=(Model&&) = default;
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    Profile profile;
    std::vector<Activity> processes;  // in the order of the profile's
};

text::Result<Model> read_model(const std::string& file);

}  // namespace orrery::prof
