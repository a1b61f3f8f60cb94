// Layers one behind the other, each on a card, through which micro-batches go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

inline constexpr std::uint32_t kWidth = 256;  // of a layer
inline constexpr std::size_t kBatches = 16;

// Stage s works on devices[s] with the weights number s, of kWidth x kWidth each; all of them may be on one
// card. `input`: kBatches micro-batches of `rows` x kWidth. From the begin of the first stage until it knows
// that the last one has ended, in ns of model time.
double run_pipeline(std::span<const int> devices, std::span<const float> weights, std::uint32_t rows,
                    std::span<const float> input, std::span<float> output);
