// Measurements between two cards through the public API.
#pragma once

#include <orrery/orrery.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace orrery::bench {

// Of copies and signals from one device to another that is linked to it. Rates are bytes a nanosecond. Model
// times are those of work that waits for one semaphore until all of it is queued.
class Pair {
  public:
    // `bytes`: of the largest copy.
    Pair(int from, int to, std::size_t bytes);

    // So many copies one behind the other in a stream, from before the first to behind the last.
    double one_way(std::size_t bytes, int copies);
    // As many again beside them, in a second stream: what all make together.
    double two_at_a_time(std::size_t bytes, int copies);
    // One stream each way at once: what both make together, from the begin of the first to the end of the
    // last. The way back begins a signal later.
    double both_ways(std::size_t bytes, int copies);
    // Half of what it takes a signal to go there and another to come back, with what the firmware of both
    // cards needs, in ns.
    double signal_ns(int rounds);
    // Real time of one copy, from the call until its end is known.
    double host_rate(std::size_t bytes);

  private:
    struct Side;
    // A stream, and what it did.
    struct Lane {
        void copy(const Side& from, const Side& to, std::size_t bytes, int copies);
        Stream stream;
        Event begin, end;
    };
    // One device's side.
    struct Side {
        Side(int own, int peer, std::size_t bytes);
        void copy_to(const Side& to, std::size_t bytes, int copies) {
            lanes[0].copy(*this, to, bytes, copies);
        }
        double model_ns() const { return lanes[0].end.model_ns_since(lanes[0].begin); }

        int device;  // current while the others are made
        DeviceArray<std::byte> source, target;
        Semaphore gate, turn;  // in its memory: the host signals one, the other side the other
        Lane lanes[2];
    };
    // Work of `from` that is queued between the two waits for all of it, and for that of `to`.
    void hold();
    void let_go();
    // Of the model's time, from the first begin to the last end.
    static double window_ns(std::initializer_list<const Lane*> lanes);

    DeviceArray<std::byte> pause_;  // on `from`
    Side from_, to_;
    std::uint64_t held_ = 0, turns_ = 0;
};

}  // namespace orrery::bench
