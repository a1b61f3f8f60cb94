/* SPDX-License-Identifier: MIT */
/**
 * Compiled kernels inside a program, C++20: CMake's orrery_embed_kernel(program saxpy gemm), which
 * find_package(orrery) brings, puts them there, as many as it names, and
 *
 *   ORR_EMBEDDED_KERNEL(saxpy);
 *   orrery::Library library(saxpy_image());
 *
 * reaches them: each device loads them when one is first launched there. The first line stands outside of
 * all namespaces; names are those of C++. A kernel that was not embedded is an error of the linker.
 */
#ifndef ORRERY_EMBEDDED_KERNEL_HPP
#define ORRERY_EMBEDDED_KERNEL_HPP

#include <cstddef>
#include <span>

#define ORR_EMBEDDED_KERNEL(name) std::span<const std::byte> name##_image()

#endif /* ORRERY_EMBEDDED_KERNEL_HPP */
