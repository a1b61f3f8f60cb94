// The firmware's trace records (orrery/fw/trace.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "tools/text/units.h"

namespace orrery::records {

using namespace text;

struct Record {
    std::uint8_t type = 0;  // ORR_TRACE_*
    std::uint16_t a = 0;
    std::uint32_t b = 0;
    std::array<std::uint64_t, 4> word = {};  // word[0] is what trace.h calls word 1; missing ones are 0
    std::uint64_t step = 0;                  // of the header
    Time time = 0;                           // of the header
};

// From the words of the trace port: a header and those that follow it.
Record make_record(std::uint64_t step, Time time, std::uint64_t header, std::span<const std::uint64_t> words);

// Names that the driver has given: for texts.
struct Labels {
    // Numbers are used again: the name is that of the queue which had the number at that moment.
    virtual std::string queue(std::uint32_t number, Time at) const = 0;
    virtual std::string memory(std::uint64_t address) const = 0;

  protected:
    ~Labels() = default;
};

// One line for people, without time and step.
std::string describe(const Record& record, const Labels& labels);
// The queue that a record is about, or ORR_TRACE_NONE.
std::uint32_t queue_of(const Record& record);

}  // namespace orrery::records
