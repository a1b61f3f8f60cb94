// What the planted programs share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <orrery/orrery.hpp>

#include "tests/vm/prof/planted/kernels.h"

namespace planted {

inline constexpr std::size_t kMiB = 1 << 20;

// As many groups as the current card has cores.
std::uint32_t cores();

// The kernels, and memory for them on the current card. `in` is a cycle through all its elements, in an order
// that no cache likes, if `scattered`, else zeros. It is written in the stream of the first launch: nothing
// is waited for before that, so a host that stands still meanwhile is not what limits the program.
class Work {
  public:
    explicit Work(std::size_t bytes = 4 * kMiB, bool scattered = false);

    struct Shape {
        std::uint32_t groups = cores();
        std::uint64_t rounds = 1, skew = 0;
    };
    void launch(const char* kernel, const Shape& shape, const orrery::Stream& stream) const;
    // The same on memory of another's.
    void launch(const char* kernel, const Shape& shape, const PlantedArgs& args,
                const orrery::Stream& stream) const;
    // Some 5 us of work, or as many times that, for which the card's host takes so long that all that follows
    // is queued by then, however slowly this program runs.
    void begin(const orrery::Stream& stream, unsigned times = 1) const;

    std::size_t bytes;
    orrery::Library library;
    orrery::DeviceArray<float> in, out;

  private:
    void write(const orrery::Stream& stream) const;

    std::vector<std::uint32_t> order_;
    mutable bool written_ = false;
};

// A card's memory, kernels and stream, made with it as the current device.
struct Side {
    Side(int number, std::size_t bytes,
         const orrStreamAttributes& attributes = ORR_INIT(orrStreamAttributes));
    int device = 0;
    std::optional<Work> work;
    std::optional<orrery::Stream> stream;
};

// Lets cards 0 and 1 reach each other's memory.
void join_cards();

}  // namespace planted
