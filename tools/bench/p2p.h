// orrery-bench p2p: what all pairs of cards reach over their links.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace orrery::bench {

struct P2pOptions {
    std::optional<unsigned> cards;  // nothing: as many as `topology` says, or four
    std::string topology;           // empty: a ring
    std::string sku, vram, size;    // as orrery-vm and orrery-bench-p2p take them; empty: theirs
    bool json = false;
    bool patterns = false;  // copies over several links, to all and to one, instead of pair by pair
};

// What starts the VM for times of the model, or of the host.
std::string pairs_command(const P2pOptions& options, const std::filesystem::path& programs, bool model);

// Starts orrery-bench-p2p in two VMs: with cards that keep step for model times, and with cards that do not
// for those of the host. `programs`: the folder of orrery-vm. Returns an exit status; throws
// std::runtime_error.
int measure_pairs(const P2pOptions& options, const std::filesystem::path& programs);

}  // namespace orrery::bench
