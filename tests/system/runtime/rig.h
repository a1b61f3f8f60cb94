// The cards under the runtime's conformance suite: either live in the test's process (fake_rig.cc) or are
// real ones in a VM (card_rig.cc). The suite itself knows only the C API and this.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace orrery::umd::conformance {

// What goes wrong from outside of the program's own work.
enum class Mishap { kFirmwareCrash, kCardKilled, kLinkCut };

class Rig {
  public:
    virtual ~Rig() = default;
    // The module of tests/vm/umd/kernels.cc.
    virtual std::span<const std::byte> module() const = 0;
    // Empty: it can. Otherwise why not.
    virtual std::string cannot(Mishap mishap) const = 0;
    // stream: the name of the stream that the firmware works for when it crashes.
    virtual void happen(Mishap mishap, int device, const std::string& stream) = 0;
};

// Two linked cards, nothing of the runtime in use yet. One at a time.
std::unique_ptr<Rig> make_rig();

}  // namespace orrery::umd::conformance
