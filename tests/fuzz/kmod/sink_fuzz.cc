// How the driver reads the ring of a card's trace sink (orr_work.c, orr_pc.c, orr_sample.c), whatever the
// card writes there and says of it: within the ring, to an end, and nobody misses anything without being
// told. What a card writes as it should is read as it was written.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/fuzz/engines/input.h"

extern "C" {
#include "kmod/orr_sink_rule.h"
}

namespace {

using orrery::emu::test::Input;

constexpr u64 kRing = ORR_SINK_RING;
constexpr u32 kLook = 256;

void require(bool holds) {
    if (!holds) std::abort();
}

class Sink {
  public:
    void step(Input& input) {
        const auto what = input.take<std::uint8_t>();
        switch (what % 8) {
            case 0:
                lie(input, what / 8);
                break;
            case 1:
                scribble(input);
                break;
            case 2:
            case 3:
                write(input);
                break;
            case 4:
                job(input);
                break;
            case 5:
                switch_on();
                break;
            default:
                read(what / 8);
        }
    }

  private:
    // The head is anywhere.
    void lie(Input& input, unsigned how) {
        const auto by = input.take<std::uint64_t>();
        memory_->head = how % 4 == 0   ? by
                        : how % 4 == 1 ? memory_->head - by % 1'000
                        : how % 4 == 2 ? memory_->head + by % (2 * kRing)
                                       : ~std::uint64_t{0} - by % 600;
        honest_ = false;
    }
    void scribble(Input& input) {
        const u64 place = input.take<std::uint32_t>();
        words()[place % kRing] = input.take<std::uint64_t>();
        honest_ = false;
    }
    // A record as it should be.
    void write(Input& input) {
        std::array<u64, ORR_SINK_MARGIN> record{};
        const u32 size = 2 + input.take<std::uint8_t>();
        record[0] = ++written_;
        record[1] = (input.take<std::uint64_t>() & ~0xff00ull) | (size - 2) << 8;
        for (u32 i = 0; i < size; ++i)
            words()[(memory_->head + i) % kRing] = record[i];
        // It would take a card 10,000 years to come round.
        if (ring_.before + memory_->head > ~u64{0} - size) honest_ = false;
        memory_->head += size;
    }
    void read(unsigned room) {
        orr_sink_place place{};
        std::array<u64, 6> got{};
        const u64 was = next_;
        bool lost = !orr_sink_look(&ring_, &place, next_);
        require(place.end == ring_.before + memory_->head && place.next <= place.end &&
                lost == (was > place.end));
        require(!lost || !honest_);
        const u64 first = place.next;
        for (unsigned records = 0; !lost && records <= room; ++records) {
            const u64 before = place.next;
            const auto step = orr_sink_next(&ring_, &place, kLook, got.data(), static_cast<u32>(got.size()));
            require(place.next <= place.end);
            if (step == ORR_SINK_NO_MORE) {
                require(place.next == before && (before == place.end || before - first >= kLook));
                break;
            }
            if (step == ORR_SINK_LOST) {
                require(place.next == place.end);
                require(!honest_ || place.end - before > kRing - ORR_SINK_MARGIN);
                lost = true;
                break;
            }
            require(place.at == before && place.size >= 2 && place.size <= ORR_SINK_MARGIN &&
                    place.next == before + place.size);
            require(place.end + ORR_SINK_MARGIN - place.at <= kRing);
            // Numbered one behind the other.
            if (honest_) require(last_ == 0 || got[0] == last_ + 1);
            last_ = honest_ ? got[0] : 0;
        }
        if (lost) last_ = 0;
        if (place.next == place.end) honest_ = true;  // what comes now may be as it should be
        if (!honest_) last_ = 0;
        next_ = place.next;
    }
    void job(Input& input) {
        std::vector<u64> values(ORR_JOB_COUNTERS, 1);
        const u64 head = ring_.before + memory_->head, position = head - input.take<std::uint32_t>() % 3'000;
        const bool there = orr_sink_job(&ring_, position, values.data());
        require(!there || head + ORR_SINK_MARGIN - position <= kRing);
        const u64 has = words()[(position + 4 - ring_.before) % kRing];
        for (u32 n = 0; there && n < ORR_JOB_COUNTERS; ++n)
            require((has >> n & 1) != 0 || values[n] == 0);
    }
    // As orr_sink_get().
    void switch_on() {
        ring_.before += memory_->head;
        memory_->head = 0;
        next_ = ring_.before;
        last_ = 0;
        honest_ = true;
    }
    u64* words() { return reinterpret_cast<u64*>(memory_ + 1); }

    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::unique_ptr<void, Free> bytes_{std::calloc(1, sizeof(orr_trace_sink) + ORR_SINK_BYTES)};
    orr_trace_sink* const memory_ = static_cast<orr_trace_sink*>(bytes_.get());
    orr_sink_ring ring_{memory_, 0};
    u64 next_ = 0, written_ = 0, last_ = 0;
    bool honest_ = true;  // all from next_ on is as it should be
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Sink sink;
    Input input(data, size);
    for (unsigned steps = 0; !input.empty() && steps < 4'000; ++steps)
        sink.step(input);
    return 0;
}
