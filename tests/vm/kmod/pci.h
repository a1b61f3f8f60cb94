// The cards as PCI devices: which there are, and the driver that comes to them and leaves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::kmod_test {

// The PCI devices that the driver may have, in order of their address.
std::vector<std::string> pci_addresses();

// The number of the node of a PCI device; -1: none.
int node_of(const std::string& address);

// Through sysfs; whether it could be done.
bool bind_driver(const std::string& address);
bool unbind_driver(const std::string& address);

// How a card reaches another, as its driver's file routes says: "PORT LINKS GENERATION STATE"; empty: there
// is no such line.
std::string route_of(const std::string& from, const std::string& to);

// Requests with a wrong key that ports of cards with a driver have refused: in a test without a card that
// lies there is none, whatever becomes of links and cards.
std::uint64_t bad_keys();

// All that the kernel's log has.
std::string kernel_log();

bool write_file(const std::string& path, const std::string& text);
// The first line.
std::string read_file(const std::string& path);

// A limit that the driver has by a parameter of its module, while this lives. For root.
class TimeOut {
  public:
    TimeOut(const std::string& parameter, const std::string& milliseconds);
    ~TimeOut();
    TimeOut(const TimeOut&) = delete;
    TimeOut& operator=(const TimeOut&) = delete;

  private:
    std::string path_;
    std::string was_;
};

}  // namespace orrery::kmod_test
