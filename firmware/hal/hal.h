// SPDX-License-Identifier: MIT
// The firmware's view of the chip. One type, `Hal`, with the same members in two builds: on the card it is a
// handful of inline loads and stores (no object, no virtual call); natively it is an interface that a model
// of the chip implements. Nothing else in the firmware touches hardware.
#pragma once

// A call that is worth a copy of the function: on the way of every packet.
#if defined(__clang__)
#define ORRERY_FW_INLINE [[clang::always_inline]]
#else
#define ORRERY_FW_INLINE
#endif

#if defined(ORRERY_FW_CARD)
#include "firmware/hal/card.h"
#else
#include "firmware/hal/native.h"
#endif
