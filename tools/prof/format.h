// A profile: what processes wrote, one behind the other. docs/profile-format.md has the same, for other
// readers.
//
// Little-endian; a file is FileHead, then for each process a PartHead and `bytes` of records. A record starts
// with RecordHead and has a multiple of 8 bytes; a reader skips types that it does not know. Type 0 ends a
// part: what is behind it was never written. Times are CLOCK_MONOTONIC in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery::prof {

inline constexpr char kMagic[8] = {'O', 'R', 'R', 'P', 'R', 'O', 'F', '\n'};
inline constexpr std::uint32_t kFormatMajor = 1;  // a reader of another one cannot read it
inline constexpr std::uint32_t kFormatMinor = 7;  // new types of records

struct FileHead {
    char magic[8];
    std::uint32_t major;
    std::uint32_t minor;
};
static_assert(sizeof(FileHead) == 16);

struct PartHead {
    std::uint64_t magic;  // kPartMagic
    std::uint64_t bytes;  // of records behind it
    std::uint64_t lost;   // records for which there was no room
    std::uint64_t ended;  // 1: the process came to its end in order, as exit() does
    std::uint64_t pid;
    std::uint64_t parent;
    std::uint64_t begin_ns;
    std::uint64_t machine;  // since 1.2: another one for each system that was booted; 0: not known
    char command[192];      // zero-padded; what is longer is cut
};
inline constexpr std::uint64_t kPartMagic = 0x3154524150525250;
static_assert(sizeof(PartHead) == 256);

enum class Type : std::uint16_t {
    kEnd = 0,
    kText = 1,
    kCall = 2,
    kRangeBegin = 3,
    kRangeEnd = 4,
    kMark = 5,
    kWork = 6,
    kWorkLost = 7,
    kWorkCounters = 8,  // since 1.1, as those below
    kSampleSet = 9,
    kSample = 10,
    kPcSample = 11,
    kSamplesLost = 12,
    kInstruction = 13,  // since 1.2
    kStep = 14,         // since 1.3
    kSignal = 15,       // since 1.4
    kCard = 16,
    kSku = 17,
    kLink = 18,
    kMemory = 19,
    kClock = 20,       // since 1.2
    kStreamMark = 21,  // since 1.4
    kCut = 22,         // since 1.7
    kPadding = 0xffff,
};

struct RecordHead {
    std::uint16_t type;
    std::uint16_t bytes;  // with this head
    std::uint32_t
        text;  // of Text: its number, from 1, in the order of the part; of others: their name, 0: none
};
static_assert(sizeof(RecordHead) == 8);
inline constexpr std::size_t kLongestRecord = 0xffff;

// Text: the head, then the text, zero-padded with at least one zero.
inline constexpr std::uint32_t kMaxText = 1023;
inline constexpr std::uint32_t kMaxTexts = 65'536;  // of a part

struct CallRecord {
    RecordHead head;
    std::uint64_t begin_ns;
    std::uint64_t end_ns;
    std::uint64_t correlation;
    std::uint64_t external;
    std::uint32_t thread;
    std::int32_t error;  // an orrError_t; 0 for calls that give back a text
};
static_assert(sizeof(CallRecord) == 48);

// RangeBegin, RangeEnd, Mark.
struct RangeRecord {
    RecordHead head;
    std::uint64_t ns;
    std::uint64_t correlation;
    std::uint64_t external;
    std::uint32_t thread;
    std::uint32_t domain;  // a Text; 0: the program's own
};
static_assert(sizeof(RangeRecord) == 40);

// What a card did, in its model time, which begins when the card is switched on.
struct WorkRecord {
    RecordHead head;
    std::uint32_t thread;  // that submitted it
    std::uint32_t device;
    std::uint64_t submitted_ns;
    std::uint64_t correlation;  // of the call
    std::uint64_t external;
    std::uint64_t stream;  // another one for each of the process
    std::uint64_t index;   // of the packet; parts of one that was preempted have the same
    std::uint64_t begin_ps;
    std::uint64_t end_ps;
    std::uint64_t used_ps;
    std::uint32_t stream_name;  // a Text
    std::uint16_t operation;    // an orrProfOperation
    std::uint16_t outcome;      // an orrProfOutcome
    // Since 1.1; a record that ends here has none of what follows.
    std::uint64_t bytes;       // of copies and fills: that were copied or filled; 0: not known
    std::int32_t source;       // of copies: whose memory it reads, a device or a Place
    std::int32_t destination;  // of copies and fills: whose it writes
    std::uint64_t
        from_stream;  // of waits: the stream that ended it, by its packets below `from_index`; 0: none
    std::uint64_t from_index;
    std::uint32_t from;       // of waits: a From
    std::uint32_t from_name;  // of waits: a Text, the name that the program gave to the semaphore
    std::uint64_t groups;     // of kernels: work-groups
    std::uint32_t items;      // of kernels: work-items of each group
    std::uint32_t known;      // 1: what is since 1.1 has been filled in
    // Since 1.4, of waits.
    std::uint64_t semaphore;  // which one, as Signal has it; 0: not known
    std::uint64_t value;      // that was waited for
    // Since 1.6.
    std::uint32_t reduces;  // of copies: 1: it reads its destination as well. Before, its name said so
    std::uint32_t reserved;
    // Since 1.7.
    std::uint64_t found_ns;  // when a call that waited for the stream found it done; 0: none did, or its
                             // record was read before
};
static_assert(sizeof(WorkRecord) == 176);
inline constexpr std::size_t kWorkBytes = 88;  // of format 1.0

enum class Place : std::int32_t {  // what is no device
    kHost = -1,                    // pinned memory
    kElsewhere = -2,               // of another machine, or a multicast
    kUnknown = -3,                 // many of a list, or no allocation of the program
};
enum class From : std::uint32_t {
    kUnknown = 0,
    kStream = 1,   // of this process
    kHost = 2,     // orrSemaphoreSignal
    kOutside = 3,  // another process
};

// A semaphore was signalled on a card. head.text: the name that the program gave to it.
struct SignalRecord {
    RecordHead head;
    std::uint32_t thread;  // that submitted it
    std::uint32_t device;
    std::uint64_t submitted_ns;
    std::uint64_t correlation;  // of the call
    std::uint64_t external;
    std::uint64_t stream;  // as Work has it; 0: the host
    std::uint64_t index;   // of the packet; `from_index` of waits that it ended
    std::uint64_t time_ps;
    std::uint64_t semaphore;  // another one for each of the process
    std::uint64_t value;
    std::uint32_t stream_name;  // a Text
    std::uint16_t outcome;      // an orrProfOutcome
    std::uint16_t reserved;
    std::int32_t memory;    // where the semaphore is: a device or a Place
    std::uint32_t waiters;  // of the card's own streams that waited for it
};
static_assert(sizeof(SignalRecord) == 96);

// A stream came to where the program had marked it. head.text: what the program called that.
struct StreamMarkRecord {
    RecordHead head;
    std::uint32_t thread;
    std::uint32_t device;
    std::uint64_t submitted_ns;
    std::uint64_t correlation;
    std::uint64_t external;
    std::uint64_t stream;
    std::uint64_t index;    // of the packet behind it
    std::uint64_t time_ps;  // when the last of what was before it ended; 0: nothing was, or it is not known
    std::uint32_t stream_name;  // a Text
    std::uint32_t domain;       // a Text; 0: the program's own
};
static_assert(sizeof(StreamMarkRecord) == 72);

// There was more work of the device, which is not here.
struct WorkLostRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t count;  // since 1.3: kernels, copies and fills, with signals since 1.4; at most 2^32 - 1;
                          // 0: not known
};
static_assert(sizeof(WorkLostRecord) == 16);

// What the hardware counted for one piece of work, kernels and copies only: at most one for a Work record,
// which stands somewhere before it in the part and has the same stream, index and begin_ps. A later minor
// puts more at the end (head.bytes); what is not there is not known, and not 0. Meanings as in
// docs/counters.md, of this work alone; bytes are as bandwidth is charged for them, whole lines of 64 bytes.
struct WorkCountersRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t cores;  // different vector cores that ran it; 0: a copy or fill
    std::uint64_t stream;
    std::uint64_t index;
    std::uint64_t begin_ps;
    std::uint64_t busy_ps;       // vector cores', summed; without what hands groups over and saves them
    std::uint64_t vram_read;     // bytes
    std::uint64_t vram_written;  // bytes
    std::uint64_t host_read;     // bytes, over PCIe
    std::uint64_t host_written;  // bytes, over PCIe
    std::uint64_t link_read;     // bytes of other cards' memory
    std::uint64_t link_written;  // bytes to other cards' memory
    std::uint64_t moved;         // bytes that a copy or fill moved; of it the rest to tlb_walked is zero
    std::uint64_t queued_ps;     // descriptor at its port to first work-group on a core
    std::uint64_t groups;
    std::uint64_t items;
    std::uint64_t instructions;
    std::uint64_t latency_ps;    // of busy_ps: waits for answers to scalar loads and atomics
    std::uint64_t bandwidth_ps;  // of busy_ps: waits for memory behind what was computed
    std::uint64_t link_ps;       // of busy_ps: waits for other cards' memory
    std::uint64_t launch_ps;     // of busy_ps: starts of work-items
    std::uint64_t barriers;
    std::uint64_t simd_int;  // instructions by class
    std::uint64_t simd_fp;
    std::uint64_t simd_moves;
    std::uint64_t simd_loads;
    std::uint64_t simd_stores;
    std::uint64_t simd_config;
    std::uint64_t lanes_active;
    std::uint64_t lanes;
    std::uint64_t flops_f16;
    std::uint64_t flops_f32;
    std::uint64_t flops_f64;
    std::uint64_t tlb_lookups;
    std::uint64_t tlb_misses;
    std::uint64_t tlb_walked;
    // Since 1.5, of copies and fills.
    std::uint64_t copy_setup_ps;  // of busy_ps, as the next eight; what is left of it moved bytes
    std::uint64_t copy_rows_ps;
    std::uint64_t copy_vram_ps;
    std::uint64_t copy_pcie_ps;
    std::uint64_t copy_latency_ps;
    std::uint64_t copy_translation_ps;
    std::uint64_t copy_link_ps;
    std::uint64_t copy_credit_ps;
    std::uint64_t copy_peer_ps;
    std::uint64_t link_ports;  // bit n: bytes of it went through link port n; 0: of none, or not known
    // Since 1.6, of kernels.
    std::uint64_t pause_ps;  // of busy_ps: between looks whether others have come
};
static_assert(sizeof(WorkCountersRecord) == 376);

// Which counters of a device the Sample records behind it have, until another SampleSet of that device.
struct SampleSetRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t count;
    std::uint64_t period_ps;
    // then `count` of SampledCounter
};
static_assert(sizeof(SampleSetRecord) == 24);
struct SampledCounter {
    std::uint32_t number;  // of the card's catalogue, docs/counters.md
    std::uint32_t name;    // a Text
    std::uint32_t unit;    // a Text
    std::uint32_t reserved;
};
static_assert(sizeof(SampledCounter) == 16);

// The whole card's counters at a moment of its model time, since power-on: rates are differences of two.
struct SampleRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t count;
    std::uint64_t time_ps;
    // then `count` values of 64 bits, in the order of the SampleSet
};
static_assert(sizeof(SampleRecord) == 24);

// Where a vector core was that ran a kernel of this process, and what it was at. head.text: the kernel.
struct PcSampleRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t core;
    std::uint64_t time_ps;
    std::uint64_t stream;
    std::uint64_t index;
    std::uint64_t offset;     // of the instruction, from the load address of the kernel's module
    std::uint64_t group;      // work-group, linear number
    std::uint32_t function;   // a Text: in which function; 0: not known
    std::uint32_t source;     // a Text, "gemm.cc:42"; 0: not known
    std::uint32_t stall;      // a PcStall
    std::uint32_t more;       // moments behind the first at which it was there too (1.2)
    std::uint64_t period_ps;  // from one to the next (1.2)
};
static_assert(sizeof(PcSampleRecord) == 80);
// An instruction of a vector core that is traced, or its wait for memory: the same struct, where `more` is
// cycles behind the first and period_ps 0.
enum class PcStall : std::uint32_t {
    kComputing = 0,
    kLatency = 1,    // waits for answers to scalar loads and atomics
    kBandwidth = 2,  // waits for memory behind what was computed
    kLink = 3,       // waits for other cards' memory
    kLaunch = 4,     // starts a work-item
    kBarrier = 5,    // comes to a barrier (1.2)
    kPause = 6,      // pauses between looks whether others have come (1.6)
};
inline constexpr std::size_t kPcStalls = 7;

// A part of what one call did: a node of a graph, a task, a member's part in a barrier; as orrProfStep has
// it. head.text: the kernel, the task, "copy", "host node", "barrier".
struct StepRecord {
    RecordHead head;
    std::uint32_t thread;       // of the call
    std::int32_t device;        // -1: the host
    std::uint64_t correlation;  // of the call
    std::uint64_t external;
    std::uint64_t owner;  // graph, task graph or group: another one for each of the process; of a group whose
                          // highest bit is set: the same in all processes that are members
    std::uint64_t round;  // of graphs: launch; of groups: barrier in streams, or other call; from 1
    std::uint64_t number;  // node, task or rank
    std::uint16_t kind;    // a StepKind
    std::uint16_t of;      // a StepOf
    std::uint32_t lane;
    std::uint32_t members;  // of groups
    std::uint32_t reserved;
    std::uint64_t stream;  // of cards: as Work has it
    std::uint64_t first_index;
    std::uint64_t end_index;  // behind the last packet
    std::uint64_t begin_ps;   // of cards, as end_ps; both 0: it did not wait, or that was lost
    std::uint64_t end_ps;
    std::uint64_t begin_ns;  // of the host, as end_ns
    std::uint64_t end_ns;
};
static_assert(sizeof(StepRecord) == 128);
enum class StepKind : std::uint16_t {
    kKernel = 1,
    kCopy = 2,
    kFill = 3,
    kHost = 4,   // a host node or task
    kMerge = 5,  // of a reduction
    kBarrier = 6,
    kBroadcast = 7,
    kGather = 8,
    kReduction = 9,  // since 1.6: a copy that combines
};
enum class StepOf : std::uint16_t { kGraph = 1, kTasks = 2, kGroup = 3 };
inline constexpr std::uint64_t kOwnerOfAll = std::uint64_t{1} << 63;

// A card that the process used. head.text: the name of its SKU.
struct CardRecord {
    RecordHead head;
    std::uint32_t device;  // as Work has it
    std::uint32_t pci;     // a Text, its address
    std::uint64_t uid;     // the same one in all processes of all machines
    std::uint64_t vram_bytes;
    std::uint64_t core_hz;
    std::uint64_t vector_hz;
    std::uint64_t vlen;  // bits of a vector register
    std::uint32_t copy_engines;
    std::uint32_t vector_ports;
    std::uint32_t vector_cores;
    std::uint32_t link_ports;
};
static_assert(sizeof(CardRecord) == 72);

// A number of the card's SKU: head.text is its key, docs/skus.md; or what this process may use of the card.
inline constexpr const char* kQuotaPermille = "quota.permille";  // of its vector cores' time
inline constexpr const char* kQuotaPeriod = "quota.period_us";   // 0: the driver's own
struct SkuRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t reserved;
    std::uint64_t value;
};
static_assert(sizeof(SkuRecord) == 24);

// A port that has a peer, as it was when the process first used the card.
struct LinkRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t port;
    std::uint64_t peer_uid;
    std::int32_t peer_device;  // of this process, or -1
    std::uint32_t peer_port;
    std::uint32_t state;  // an orrLinkState
    std::uint32_t lanes;
    std::uint32_t gbit_per_s;
    std::uint32_t latency_ns;
};
static_assert(sizeof(LinkRecord) == 48);

// Memory that the process took or gave back: orrMalloc, orrFree and the like.
struct MemoryRecord {
    RecordHead head;
    std::int32_t device;  // or Place::kHost
    std::uint32_t thread;
    std::uint64_t ns;
    std::uint64_t correlation;
    std::uint64_t address;
    std::int64_t bytes;    // taken; below 0: given back
    std::uint64_t in_use;  // of that device by this process, after it
};
static_assert(sizeof(MemoryRecord) == 56);

// A card's clock between two moments of the host's: it had not passed device_ps at before_ns, and had come to
// it at after_ns. From reading it, or from work: when it was submitted, its end, and when that was known.
struct ClockRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t in_step;  // 1: cards that are linked to it have the same clock
    std::uint64_t before_ns;
    std::uint64_t device_ps;
    std::uint64_t after_ns;
};
static_assert(sizeof(ClockRecord) == 40);

// Before what comes next there were more samples of the device, of this Type, which are not here.
struct SamplesLostRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t type;   // kSample or kPcSample
    std::uint64_t count;  // at least so many
};
static_assert(sizeof(SamplesLostRecord) == 24);

// The last of a part of which what was behind this was no record: something had overwritten it, or cut it.
struct CutRecord {
    RecordHead head;
    std::uint64_t at;     // in the process's file, as it is kept beside the profile
    std::uint64_t bytes;  // of records that were said to be behind it
};
static_assert(sizeof(CutRecord) == 24);

// Where the recorder puts the part of each process, and how large one may become: from orrery-prof to it.
inline constexpr const char* kFolderVariable = "ORRERY_PROF_PARTS";
inline constexpr const char* kLimitVariable = "ORRERY_PROF_LIMIT";
// What else it is to record, if it is set.
inline constexpr const char* kCountersVariable = "ORRERY_PROF_COUNTERS";
inline constexpr const char* kSamplesVariable = "ORRERY_PROF_SAMPLES";  // a period in nanoseconds
inline constexpr const char* kPcVariable = "ORRERY_PROF_PC";            // likewise
// DEVICE:CORE:FROM:UNTIL, in nanoseconds of model time from when the program first uses the device.
inline constexpr const char* kTraceVariable = "ORRERY_PROF_TRACE_CORE";

}  // namespace orrery::prof
