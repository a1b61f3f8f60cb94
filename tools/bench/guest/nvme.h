// The yardstick: 4 KiB reads of QEMU's own NVMe device, backed by memory, past the page cache.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace orrery::bench {

class Nvme {
  public:
    // Null with a text on standard error if the device is not there.
    static std::unique_ptr<Nvme> open(const char* path);
    ~Nvme();
    Nvme(const Nvme&) = delete;
    Nvme& operator=(const Nvme&) = delete;

    // Nanoseconds of each read, one at a time. Empty: a read failed.
    std::vector<double> read_latency(int reads);
    // Nanoseconds a read at this depth; one value for each `depth` completions. together: `depth` are
    // submitted at once and waited for; else as many as have come are submitted anew, so that so many are in
    // flight at all times.
    std::vector<double> read_at_depth(int rounds, int depth, bool together);

  private:
    Nvme(int fd, std::byte* buffer);
    int fd_;
    std::byte* buffer_;  // kDepth blocks
    std::size_t next_ = 0;
    std::size_t next_offset();
};

}  // namespace orrery::bench
