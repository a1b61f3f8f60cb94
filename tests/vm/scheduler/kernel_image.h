// The compiled kernels.cc.
#pragma once

#include <cstddef>
#include <span>

std::span<const std::byte> kernel_image();
