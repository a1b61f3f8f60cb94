// SPDX-License-Identifier: MIT
// Interrupts to the host, gathered and sent once a pass: ten finished packets are one interrupt.
#pragma once

#include <orrery/hw/pci.h>
#include <orrery/hw/soc.h>

#include "firmware/hal/hal.h"

namespace orrery::fw {

class HostIrq {
  public:
    void raise(uint32_t vector) { due_ |= 1u << vector; }

    void flush(Hal& hal) {
        if (due_ != 0) send(hal);
    }

  private:
    [[gnu::noinline]] void send(Hal& hal) {
        for (uint32_t vector = 0; vector < ORR_IRQ_VECTORS; ++vector) {
            if ((due_ >> vector & 1) != 0) hal.set_reg(SOC_HOST_IRQ, vector);
        }
        due_ = 0;
    }

    uint32_t due_;
};

}  // namespace orrery::fw
