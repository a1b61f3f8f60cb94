// Memory and semaphores that ranks of a program give each other: between those of one VM as file descriptors
// through a socket, to those of another as handles in files, in the directory that all VMs of a run see.
#pragma once

#include <orrery/orrery.hpp>

#include <functional>
#include <map>
#include <string>
#include <utility>

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

// All throw, after a minute in which the other has given nothing, too.
class Exchange {
  public:
    explicit Exchange(Place place);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    // what: the same word for who takes it.
    void give(unsigned to, const std::string& what, void* memory);
    void give(unsigned to, const std::string& what, const orrery::Semaphore& semaphore);
    // For writing, after orrDeviceEnablePeerAccess if it is another device's of this VM, by streams of the
    // current device.
    orrery::DeviceMemory take_memory(unsigned from, const std::string& what);
    // For signalling, likewise.
    orrery::Semaphore take_semaphore(unsigned from, const std::string& what);

  private:
    void send(unsigned to, const std::string& what, int fd) const;
    int receive(unsigned from, const std::string& what);
    std::string file_of(unsigned from, unsigned to, const std::string& what) const;
    void write(unsigned to, const std::string& what, const orrFabricHandle& handle) const;
    orrFabricHandle read(unsigned from, const std::string& what) const;

    Place place_;
    int listener_ = -1;
    std::map<std::pair<unsigned, std::string>, int> came_;  // descriptors that somebody has yet to ask for
};

}  // namespace neighbours
