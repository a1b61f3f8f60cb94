// One card's share of the work, and how the shares become one result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "umd/samples/histogram/kernels.h"

using Histogram = std::array<std::uint64_t, kHistogramBins>;

struct CardTimes {
    int device = 0;
    bool by_host = false;  // its result: no links lead to the first card
    std::size_t bytes = 0;
    std::uint64_t work_items = 0;
    double copy_model_ns = 0;   // file to card
    double count_model_ns = 0;  // kernel
    double merge_model_ns = 0;  // on the first card: waiting for the others' results and adding them
};

struct Run {
    Histogram bins{};
    std::vector<CardTimes> cards;
    double host_ns = 0;   // from the first copy to the result in host memory
    double model_ns = 0;  // the same on the first card's model clock
};

// Counts the bytes of `data` on devices 0 .. cards - 1. With more than one card the others write their
// results into the first one's memory over links and signal its semaphore; the host only waits for the end.
// Where no links lead there, the host has to wait for the copy as well.
Run count_on_cards(std::span<const std::byte> data, int cards);
