// Who uses a card, as the kernel's fdinfo says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace orrery::cards {

struct Process {
    int pid = 0;
    std::string name;     // printable ASCII
    std::string address;  // of the card, "0000:01:00.0"
    std::uint64_t memory_bytes = 0;
    std::uint64_t vector_ns = 0, copy_ns = 0;  // engine time used so far, model time
};

// One a process and card, in the order of process ids; without this process, and without those whose files
// may not be read, of which there are `hidden`.
std::vector<Process> find_processes(const std::filesystem::path& proc = "/proc",
                                    std::size_t* hidden = nullptr);

}  // namespace orrery::cards
