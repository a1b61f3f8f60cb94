// A recording that can be at any of its positions: what the rest of this tool sees of the replayer
// (emulator/trace/replayer.h has the words). Tests put another one in its place.
//
// Position s means: s steps have been made. Positions run from 0 to end(). A failed move leaves the position
// at what can be reached.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/api/replayer.h"
#include "tools/records/inspect.h"
#include "tools/records/link_burst.h"
#include "tools/records/records.h"
#include "tools/step/words.h"
#include "tools/text/result.h"

namespace orrery::step {

// What the recording says about itself.
struct About {
    std::string file;
    std::string program;  // that recorded
    std::string sku;
    std::string build_id;       // of the firmware
    std::string firmware_hash;  // SHA-256 of its ELF, 64 digits
    std::uint32_t hw_version = 0;
    std::uint64_t uid = 0;
    std::uint64_t seed = 0;
    std::string fault_plan;  // its text; empty: none
    Time cycle_ps = 1000;
    Time start = 0;          // model time at position 0
    bool crashed = false;    // the recorder died; this is all up to its last block
    bool resumed = false;    // it begins in the midst; position 1 is the first at which the core runs
    std::string divergence;  // not empty: replay does not make what was recorded
    std::uint64_t hashes_checked = 0;
    bool verified = true;  // all was replayed and checked; a long recording not when it is opened
    // They last as long as the session.
    std::span<const std::uint8_t> elf;      // of the firmware; empty: not known
    std::span<const std::uint8_t> symbols;  // struct orr_otrace_symbols; empty: the recording has none
};

// Here the card's system time went ahead of its clock, to a linked card's (docs/links.md).
struct ClockJump {
    Time time = 0;  // of its clock
    Time by = 0;
};

// The core stopped: it halted by itself, or the driver started it anew.
struct CoreStop {
    bool halted = false;
    Time time = 0;
    std::uint64_t step = 0;
};

class Session {
  public:
    virtual ~Session() = default;

    virtual const About& about() const = 0;  // a move can find a divergence
    // All of them, in order; the references stay good. Which they are changes with take_divergence() only.
    virtual const std::vector<Record>& records() const = 0;
    virtual const std::vector<ClockJump>& jumps() const = 0;
    virtual const std::vector<CoreStop>& stops() const {
        static const std::vector<CoreStop> none;
        return none;
    }
    // In the order in which they ended.
    virtual const std::vector<LinkBurst>& bursts() const {
        static const std::vector<LinkBurst> none;
        return none;
    }
    virtual std::uint64_t end() const = 0;
    virtual Time end_time() const = 0;

    virtual std::uint64_t position() const = 0;
    virtual Time time() const = 0;  // model time there
    virtual bool running() const = 0;
    virtual bool sleeping() const = 0;
    virtual emu::HartState registers() const = 0;
    virtual Sram sram() const = 0;
    virtual bool read(std::uint64_t address, std::span<std::uint8_t> out) const = 0;  // SRAM and ROM

    // Replays all that has not been, and checks it; see about(). false: cancelled.
    virtual bool verify(const std::function<bool(double)>& progress) = 0;
    // true: a move has found a divergence since this was asked last, or since the session was opened. end()
    // is before it then, and from this call on there are no records behind end().
    virtual bool take_divergence() = 0;

    virtual emu::ReplayStopInfo seek(std::uint64_t position) = 0;
    // The last position whose time is not after `time`.
    virtual emu::ReplayStopInfo seek_time(Time time) = 0;
    virtual emu::ReplayStopInfo run(std::uint64_t target, const emu::ReplayLimits& limits) = 0;
    virtual emu::ReplayStopInfo run_back(std::uint64_t target, const emu::ReplayLimits& limits) = 0;
};

// Opens a recording, and replays it once if it is short or old (emu::Opening). `progress` may be empty; false
// cancels.
Result<std::unique_ptr<Session>> open_session(const std::string& file,
                                              const emu::Replayer::Progress& progress,
                                              emu::Opening opening = emu::Opening::kUsual);
// The same of a file's bytes; `name` is for errors.
Result<std::unique_ptr<Session>> open_session(std::vector<std::uint8_t> bytes, const std::string& name,
                                              const emu::Replayer::Progress& progress);
// The session of a replayer that somebody else moves too, and who outlives it.
std::unique_ptr<Session> share_session(const std::string& file, emu::Replayer& replayer);

}  // namespace orrery::step
