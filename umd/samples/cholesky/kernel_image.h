#pragma once

#include <cstddef>
#include <span>

// The module of kernels.cc, which travels inside the program.
std::span<const std::byte> kernel_image();
