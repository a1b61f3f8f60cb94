#include "tests/vm/prof/planted/work.h"

#include <map>
#include <utility>

#include <orrery/embedded_kernel.hpp>

ORR_EMBEDDED_KERNEL(planted_kernels);

namespace planted {

// Asked for once a device: it is a system call, which a guest takes a millisecond for at times.
std::uint32_t cores() {
    static std::map<int, std::uint32_t> known;
    const auto [place, is_new] = known.try_emplace(orrery::current_device());
    if (is_new) place->second = orrery::device_properties(place->first).vector_cores;
    return place->second;
}

Work::Work(std::size_t size, bool scattered)
    : bytes(size), library(planted_kernels_image()), in(size / sizeof(float)), out(size / sizeof(float)) {
    library.preload();
    if (!scattered) return;
    // A linear congruence whose period is a power of two: all of them.
    order_.resize(in.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i)
        order_[i] = (i * 1664525u + 1013904223u) % static_cast<std::uint32_t>(order_.size());
}

void Work::write(const orrery::Stream& stream) const {
    if (std::exchange(written_, true)) return;
    if (order_.empty())
        orrery::fill(in.data(), 0, bytes, stream);
    else
        orrery::copy(in.data(), order_.data(), bytes, stream);
    orrery::fill(out.data(), 0, bytes, stream);
}

void Work::launch(const char* kernel, const Shape& shape, const orrery::Stream& stream) const {
    launch(kernel, shape, {out.data(), in.data(), in.size(), 0, 0}, stream);
}

void Work::launch(const char* kernel, const Shape& shape, const PlantedArgs& args,
                  const orrery::Stream& stream) const {
    write(stream);
    PlantedArgs all = args;
    all.rounds = shape.rounds;
    all.skew = shape.skew;
    orrery::launch(library.function(kernel), {shape.groups, 1, 1}, {1, 1, 1}, all, 0, stream);
}

void Work::begin(const orrery::Stream& stream, unsigned times) const {
    launch("hesitate", {.rounds = std::uint64_t{1'000} * times}, stream);
}

Side::Side(int number, std::size_t bytes, const orrStreamAttributes& attributes) : device(number) {
    const orrery::DeviceGuard guard(number);
    work.emplace(bytes);
    stream.emplace(attributes);
}

void join_cards() {
    orrery::enable_peer_access(0, 1);
    orrery::enable_peer_access(1, 0);
}

}  // namespace planted
