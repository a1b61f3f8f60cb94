// What the time of a copy goes into. Each moment of it has one cause, so that all causes together are the
// time that it took.
//
// The engine knows at an event what it will do until the next one: that is planned, and settled when the
// clock has come there. What is asked in between is told of as much as has passed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <orrery/hw/trace_sink.h>

#include "emulator/probes/counters.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

class CopyLedger {
  public:
    // In the order of ORR_CTR_COPY_SETUP_PS and those behind it.
    enum Cause : std::uint8_t {
        kSetup,
        kMove,
        kRows,
        kVram,
        kPcie,
        kLatency,
        kTranslation,
        kLink,
        kCredit,
        kPeer,
        kCauses
    };
    using Times = std::array<ModelTime, kCauses>;
    static constexpr orr_counter counter_of(std::size_t cause) {
        return static_cast<orr_counter>(ORR_CTR_COPY_SETUP_PS + cause);
    }
    // Of all but kMove.
    static constexpr orr_job_counter job_counter_of(std::size_t cause) {
        return static_cast<orr_job_counter>(ORR_JOB_COPY_SETUP_PS + cause - (cause > kMove ? 1 : 0));
    }

    // A copy that begins now.
    void begin(ModelTime now);
    // It does this from the end of what is planned on; nothing if that is later.
    void plan(Cause cause, ModelTime until);
    // And this behind all that is planned, until an event comes.
    void then_wait(Cause cause) { waits_ = cause; }
    // The clock has come here.
    void settle(ModelTime now);
    // And nothing of what was planned for later happens.
    void cut(ModelTime now);
    // Since begin(), up to `now`, which is not before the last event.
    Times until(ModelTime now) const;

    // --- a stretch in which the engine and others work side by side ---
    void open(ModelTime began) {
        began_ = engine_ = began;
        vram_reads_ = 0;
    }
    // When one of them is through; gives that.
    ModelTime need(Cause cause, ModelTime end) {
        if (end > ends_[cause]) ends_[cause] = end;
        return end;
    }
    // The same of the engine itself, and how much longer rows took it than their bytes do.
    ModelTime need_engine(ModelTime end, ModelTime rows) {
        engine_ = end;
        rows_ += rows;
        return end;
    }
    // The same of its reads of VRAM in flight, by what they are for.
    ModelTime need_vram_reads(ModelTime end, std::uint64_t walked, std::uint64_t read) {
        vram_reads_ = end;
        walked_ += walked;
        read_ += read;
        return end;
    }
    // Plans it: the engine works first, and waits then for who is through last.
    void close();

  private:
    struct Stretch {
        ModelTime until;
        Cause cause;
    };
    ModelTime planned() const { return plan_.empty() ? mark_ : plan_.back().until; }

    Times times_{};
    ModelTime mark_ = 0;  // what was before is in times_
    std::vector<Stretch> plan_;
    std::size_t next_ = 0;  // what of it is not settled
    Cause waits_ = kSetup;

    ModelTime began_ = 0, engine_ = 0, rows_ = 0, vram_reads_ = 0;
    std::uint64_t walked_ = 0, read_ = 0;
    Times ends_{};
};

}  // namespace orrery::emu
