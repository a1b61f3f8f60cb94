// Guest RAM: the ranges that the client has mapped for DMA, by bus address. They come and go.
//
// Every pointer from here is revocable: it is good until remove() takes its range. remove() runs only
// between two events of the card thread, and whoever keeps pointers longer watches Mmu::generation().
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "emulator/base/unique_fd.h"
#include "emulator/faults/faults.h"
#include "emulator/memory/mapping.h"

namespace orrery::emu {

// One mapped range. Made on any thread; used by the card thread.
class HostRange {
  public:
    // Maps the file; errors are errno values. `fd` may be empty: the range is then known, and never
    // reachable.
    static std::expected<HostRange, int> create(std::uint64_t address, std::uint64_t size, const UniqueFd& fd,
                                                std::uint64_t offset, bool readable, bool writable);

    std::uint64_t address() const { return address_; }
    std::uint64_t size() const { return size_; }
    std::uint64_t end() const { return address_ + size_; }  // never wraps to anything but 0
    bool readable() const { return readable_; }
    bool writable() const { return writable_; }
    std::uint8_t* data() const { return mapping_.data(); }

  private:
    HostRange() = default;
    std::uint64_t address_ = 0;
    std::uint64_t size_ = 0;
    bool readable_ = false;
    bool writable_ = false;
    Mapping mapping_;
};

// Card thread only.
class HostMemory {
  public:
    struct Span {
        std::uint8_t* data = nullptr;  // nullptr: not mapped, or not for this access
        std::uint64_t bytes = 0;       // contiguous from data on, at most what was asked for
        bool readable = false;
        bool writable = false;
    };

    // errno: EEXIST if it overlaps a range that is there, ENOSPC beyond kMaxRanges.
    std::expected<void, int> insert(HostRange range);
    // Takes out exactly this range; nothing if there is none such. The caller drops it when no pointer is
    // left.
    std::optional<HostRange> remove(std::uint64_t address, std::uint64_t size);
    std::vector<HostRange> remove_all();

    // The bytes from `address` on, at most `bytes`, as far as one range goes.
    // Nothing is found while bus mastering is off.
    Span find(std::uint64_t address, std::uint64_t bytes, bool write) {
        if (faults_ != nullptr) [[unlikely]] {
            return find_faulty(address, bytes, write);
        }
        return find_whole(address, bytes, write);
    }

    // The same without leaving a trace, so that several threads may ask while nobody changes anything.
    // Nothing where faults may be ordered.
    Span peek(std::uint64_t address, std::uint64_t bytes, bool write) const;

    // The same also there: no fault comes to it.
    Span look(std::uint64_t address, std::uint64_t bytes, bool write) const;

    // Bus mastering: on at first.
    void set_enabled(bool enabled) { enabled_ = enabled; }
    // AtomicOps: allowed at first.
    void set_atomics(bool allowed) { atomics_ = allowed; }
    bool atomics() const { return atomics_; }
    void set_faults(Faults* faults) { faults_ = faults; }

    std::size_t size() const { return ranges_.size(); }

    static constexpr std::size_t kMaxRanges = 65536;

  private:
    Span find_whole(std::uint64_t address, std::uint64_t bytes, bool write) {
        if (last_ < ranges_.size()) {
            const HostRange& range = ranges_[last_];
            if (address - range.address() < range.size()) return span_of(range, address, bytes, write);
        }
        return find_slow(address, bytes, write);
    }

    Span find_faulty(std::uint64_t address, std::uint64_t bytes, bool write);
    Span find_slow(std::uint64_t address, std::uint64_t bytes, bool write);
    const HostRange* range_of(std::uint64_t address) const;
    Span span_of(const HostRange& range, std::uint64_t address, std::uint64_t bytes, bool write) const {
        if (!enabled_ || range.data() == nullptr || !(write ? range.writable() : range.readable())) return {};
        const std::uint64_t skip = address - range.address();
        const std::uint64_t left = range.size() - skip;
        return {range.data() + skip, bytes < left ? bytes : left, range.readable(), range.writable()};
    }

    std::vector<HostRange> ranges_;  // by address
    bool enabled_ = true;
    bool atomics_ = true;
    std::size_t last_ = 0;  // index of the last hit
    Faults* faults_ = nullptr;
};

}  // namespace orrery::emu
