// What a kernel launch consists of, for streams, graphs and tasks alike.
#pragma once

#include <orrery/fw/packet.h>
#include <orrery/orrery.h>

#include <cstddef>
#include <cstdint>

#include "umd/runtime/module.h"

namespace orrery::umd {

constexpr std::uint64_t kMaxItems = 1024;  // of a work-group

// Checks all that the API's caller gave.
Status check_launch(orrDim3 grid, orrDim3 block, const void* args, std::size_t bytes,
                    std::size_t local_bytes);
// All groups of the grid, which is good, run at once.
Status check_resident(const Function& function, orrDim3 grid);
// As the flags orrLaunch* want it; where its arguments are is put in later.
Result<orr_packet> make_launch(const Function& function, orrDim3 grid, orrDim3 block, std::size_t local_bytes,
                               std::uint64_t flags);
// args_va: of the arguments' copy.
orr_packet make_dispatch(const Function& function, orrDim3 grid, orrDim3 block, std::size_t local_bytes,
                         std::uint64_t args_va);

}  // namespace orrery::umd
