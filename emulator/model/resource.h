// Something of which so many bytes go through in a second, whoever they are for: the bandwidth of a memory,
// one direction of PCIe or of a link.
//
// Served in the order of requests. What a request leaves of a picosecond is carried to the next one, so that
// requests without a gap between them take exactly what one of them all would. Times do not depend on the
// host. Card thread only.
#pragma once

#include <cstdint>

#include "emulator/probes/counters.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

class Resource {
  public:
    // 0 bytes a second: takes no time.
    explicit Resource(std::uint64_t bytes_per_second = 0)
        : rate_(bytes_per_second), piece_(piece_of(bytes_per_second)) {}

    std::uint64_t bytes_per_second() const { return rate_; }
    // All bytes that go through from now on are added to `bytes`, and to `waits` how long requests waited for
    // those before them.
    void count_in(Counters& counters, orr_counter bytes, orr_counter waits) {
        counters_ = &counters;
        bytes_ = bytes;
        waits_ = waits;
    }
    // Who asks next: the bytes are also added to this counter.
    Resource& of(orr_counter user) {
        user_ = user;
        return *this;
    }

    // The bytes go through behind all that was reserved before, and not before `now`; they take `least` if
    // that is longer. Gives the time at which the last of them is through.
    //
    // Who moves much reserves a piece() at a time and comes back when it is through: then users that want
    // all they can get share evenly. Reserve at the clock's time, or what others could have had goes unused.
    ModelTime reserve(ModelTime now, std::uint64_t bytes, ModelTime least = 0);

    // The same of bytes that are known to take less than `least` by a picosecond or more.
    ModelTime reserve_least(ModelTime now, std::uint64_t bytes, ModelTime least) {
        const ModelTime free = bulk_.rounded();
        count(bytes, free > now ? free - now : 0);
        bulk_ = {later(now > free ? now : free, least), 0};
        return bulk_.time;
    }

    // For a request of a few bytes of the control core: it goes between two bursts of what others have
    // reserved, and what is reserved later comes so much later. Small ones go one behind the other, and as
    // much of the others goes between two of them: together they take half at most.
    ModelTime slip_in(ModelTime now, std::uint64_t bytes);

    // When all that was reserved is through.
    ModelTime free_at() const { return bulk_.rounded(); }

    // Nothing goes through for this long, from the end of what has been reserved on.
    void hold(ModelTime time);
    // From the end of what has been reserved on.
    void set_rate(std::uint64_t bytes_per_second);
    // Nothing is reserved.
    void reset() {
        bulk_ = small_ = {};
        turn_ = 0;
    }

    // What one user reserves at once, at most: as much as goes through in 2 us, and no more than 128 KiB.
    std::uint64_t piece() const { return piece_; }

    static constexpr ModelTime kPiecePs = 2'000 * kPsPerNs;
    static constexpr std::uint64_t kMostPiece = 128 << 10;
    // What cannot be interrupted for a small request.
    static constexpr std::uint64_t kBurst = 512;

  private:
    // A time with the rest of a picosecond, in parts of bytes_per_second.
    struct Moment {
        ModelTime time = 0;
        std::uint64_t rest = 0;
        ModelTime rounded() const { return later(time, rest != 0 ? 1 : 0); }
    };
    Moment after(Moment begin, std::uint64_t bytes) const;
    static std::uint64_t piece_of(std::uint64_t rate);

    void count(std::uint64_t bytes, ModelTime waited) {
        if (counters_ == nullptr) return;
        counters_->add(bytes_, bytes);
        if (user_ != ORR_COUNTER_COUNT) counters_->add(user_, bytes);
        if (waited != 0) counters_->add(waits_, waited);
    }

    std::uint64_t rate_, piece_;
    Counters* counters_ = nullptr;
    orr_counter bytes_ = ORR_COUNTER_COUNT, waits_ = ORR_COUNTER_COUNT, user_ = ORR_COUNTER_COUNT;
    Moment bulk_;         // the end of what has been reserved
    Moment small_;        // and of what has slipped in
    ModelTime turn_ = 0;  // when the next may slip in while others are busy
};

}  // namespace orrery::emu
