/* The kernel's names of limits. */
#pragma once

#include <stdint.h>

#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
