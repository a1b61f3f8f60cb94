// The compiled kernels that orrery_embed_kernel() put into this program.
#pragma once

#include <cstddef>
#include <span>

std::span<const std::byte> kernel_image();
