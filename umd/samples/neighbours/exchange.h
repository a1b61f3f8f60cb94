// Memory and semaphores that ranks of a program give each other: between those of one VM as file descriptors
// through a socket, to those of another as handles, which all tell all as members of a group.
#pragma once

#include <orrery/group.h>
#include <orrery/orrery.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace neighbours {

// Where this rank is among the others: what orrery-run says.
struct Place {
    static Place find();
    unsigned rank = 0, ranks = 1, local = 0, locals = 1, vms = 1;
    std::string token;

    bool same_vm(unsigned other) const { return other - (rank - local) < locals; }
    unsigned vm_of(unsigned other) const;
    // Of a rank in this VM.
    int device_of(unsigned other) const;
    // "rank 2 (VM 1)"
    std::string name_of(unsigned other) const;
};

// Again for some seconds, as long as there is no way to a card: links may not be up yet when VMs have just
// booted.
void once_linked(const std::function<orrError_t()>& call);

// All ranks, until one of them fails, or a minute has passed in which one has not come to a call.
class Group {
  public:
    explicit Group(const Place& place);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    void barrier() const;
    // all: of each rank what it has as `own`.
    void all_gather(void* all, const void* own, std::size_t bytes) const;

  private:
    orrGroup_t group_ = nullptr;
};

// What a rank gives one other.
enum class What : std::uint32_t { kInbox, kFull, kRoom };

// All throw, after a minute in which the other has given nothing, too. All ranks give, then tell, then take.
class Exchange {
  public:
    explicit Exchange(Place place);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    void give(unsigned to, What what, void* memory);
    void give(unsigned to, What what, const orrery::Semaphore& semaphore);
    void tell(const Group& group);
    // For writing, after orrDeviceEnablePeerAccess if it is another device's of this VM, by streams of the
    // current device.
    orrery::DeviceMemory take_memory(unsigned from, What what);
    // For signalling, likewise.
    orrery::Semaphore take_semaphore(unsigned from, What what);

  private:
    void send(unsigned to, What what, int fd) const;
    int receive(unsigned from, What what);
    orrFabricHandle handle(unsigned from, What what) const;

    using Handles = std::array<orrFabricHandle, 3>;  // by What
    Place place_;
    int listener_ = -1;
    Handles own_{};
    std::vector<Handles> told_;                      // by rank
    std::map<std::pair<unsigned, What>, int> came_;  // descriptors that somebody has yet to ask for
};

}  // namespace neighbours
