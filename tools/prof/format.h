// A profile: what processes wrote, one behind the other. docs/profiling.md has the same, for other readers.
//
// Little-endian; a file is FileHead, then for each process a PartHead and `bytes` of records. A record starts
// with RecordHead and has a multiple of 8 bytes; a reader skips types that it does not know. Type 0 ends a
// part: what is behind it was never written. Times are CLOCK_MONOTONIC in nanoseconds.
#pragma once

#include <cstdint>

namespace orrery::prof {

inline constexpr char kMagic[8] = {'O', 'R', 'R', 'P', 'R', 'O', 'F', '\n'};
inline constexpr std::uint32_t kFormatMajor = 1;  // a reader of another one cannot read it
inline constexpr std::uint32_t kFormatMinor = 0;  // new types of records

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
    std::uint64_t reserved;
    char command[192];  // zero-padded; what is longer is cut
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
    kPadding = 0xffff,
};

struct RecordHead {
    std::uint16_t type;
    std::uint16_t bytes;  // with this head
    std::uint32_t
        text;  // of Text: its number, from 1, in the order of the part; of others: their name, 0: none
};
static_assert(sizeof(RecordHead) == 8);

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
};
static_assert(sizeof(WorkRecord) == 88);

// Before what comes next there was more work of the device, which is not here.
struct WorkLostRecord {
    RecordHead head;
    std::uint32_t device;
    std::uint32_t reserved;
};
static_assert(sizeof(WorkLostRecord) == 16);

// Where the recorder puts the part of each process, and how large one may become: from orrery-prof to it.
inline constexpr const char* kFolderVariable = "ORRERY_PROF_PARTS";
inline constexpr const char* kLimitVariable = "ORRERY_PROF_LIMIT";

}  // namespace orrery::prof
