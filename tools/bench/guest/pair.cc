#include "tools/bench/guest/pair.h"

#include <unistd.h>

#include <algorithm>

#include "tools/bench/guest/clock.h"

namespace orrery::bench {
namespace {

constexpr std::size_t kPauseBytes = 8 << 20;
constexpr int kPauses = 4;

int made_current(int device, int peer) {
    check(orrSetDevice(device));
    enable_peer_access(device, peer);
    return device;
}

}  // namespace

Pair::Side::Side(int own, int peer, std::size_t bytes)
    : device(made_current(own, peer)), source(bytes), target(bytes) {
    check(orrMemset(source.data(), own + 1, bytes));
}

void Pair::Lane::copy(const Side& from, const Side& to, std::size_t bytes, int copies) {
    check(orrSetDevice(from.device));
    begin.record(stream);
    for (int i = 0; i < copies; ++i)
        orrery::copy(to.target.data(), from.source.data(), bytes, stream);
    end.record(stream);
}

Pair::Pair(int from, int to, std::size_t bytes)
    : pause_((made_current(from, to), kPauseBytes)), from_(from, to, bytes), to_(to, from, bytes) {}

void Pair::hold() {
    check(orrSetDevice(from_.device));
    ++held_;
    for (Lane& lane : from_.lanes)
        lane.stream.wait(from_.gate, held_);
    // When the host has let go it still says this and that to the card: the work begins after that.
    for (int i = 0; i < kPauses; ++i)
        check(orrMemsetAsync(pause_.data(), 0, kPauseBytes, from_.lanes[0].stream.handle()));
    from_.lanes[0].stream.signal(from_.turn, ++turns_);
    from_.lanes[1].stream.wait(from_.turn, turns_);
}

void Pair::let_go() {
    from_.gate.signal(held_);
    // Nobody waits in the driver, which would have it speak to the cards now and then.
    ::usleep(20'000);
    for (const Side* side : {&from_, &to_})
        for (const Lane& lane : side->lanes)
            while (!lane.stream.done())
                ::usleep(1000);
}

double Pair::window_ns(std::initializer_list<const Lane*> lanes) {
    std::uint64_t first = ~std::uint64_t{0}, last = 0;
    for (const Lane* lane : lanes) {
        std::uint64_t begin = 0, end = 0;
        check(orrEventGetModelTime(&begin, lane->begin.get()));
        check(orrEventGetModelTime(&end, lane->end.get()));
        first = std::min(first, begin);
        last = std::max(last, end);
    }
    return static_cast<double>(last - first) / 1e3;
}

double Pair::one_way(std::size_t bytes, int copies) {
    hold();
    from_.copy_to(to_, bytes, copies);
    let_go();
    return static_cast<double>(bytes) * copies / from_.model_ns();
}

double Pair::two_at_a_time(std::size_t bytes, int copies) {
    hold();
    for (Lane& lane : from_.lanes)
        lane.copy(from_, to_, bytes, copies);
    let_go();
    return static_cast<double>(bytes) * copies * 2 / window_ns({&from_.lanes[0], &from_.lanes[1]});
}

double Pair::both_ways(std::size_t bytes, int copies) {
    hold();
    check(orrSetDevice(to_.device));
    to_.lanes[0].stream.wait(to_.turn, ++turns_);
    check(orrSetDevice(from_.device));
    from_.lanes[0].stream.signal(to_.turn, turns_);
    to_.copy_to(from_, bytes, copies);
    from_.copy_to(to_, bytes, copies);
    let_go();
    return static_cast<double>(bytes) * copies * 2 / window_ns({&from_.lanes[0], &to_.lanes[0]});
}

double Pair::signal_ns(int rounds) {
    hold();
    from_.lanes[0].begin.record(from_.lanes[0].stream);
    for (int i = 0; i < rounds; ++i) {
        ++turns_;
        check(orrSetDevice(from_.device));
        from_.lanes[0].stream.signal(to_.turn, turns_);
        from_.lanes[0].stream.wait(from_.turn, turns_);
        check(orrSetDevice(to_.device));
        to_.lanes[0].stream.wait(to_.turn, turns_);
        to_.lanes[0].stream.signal(from_.turn, turns_);
    }
    check(orrSetDevice(from_.device));
    from_.lanes[0].end.record(from_.lanes[0].stream);
    let_go();
    return from_.model_ns() / (2.0 * rounds);
}

double Pair::host_rate(std::size_t bytes) {
    check(orrSetDevice(from_.device));
    const std::int64_t begin = now_ns();
    copy(to_.target.data(), from_.source.data(), bytes, from_.lanes[0].stream);
    from_.lanes[0].stream.synchronize();
    return static_cast<double>(bytes) / static_cast<double>(now_ns() - begin);
}

}  // namespace orrery::bench
