#include "emulator/memory/host_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace orrery::emu {

std::expected<HostRange, int> HostRange::create(std::uint64_t address, std::uint64_t size, const UniqueFd& fd,
                                                std::uint64_t offset, bool readable, bool writable) {
    // The last byte may be the last of the address space: size - 1 then reaches it, and end() is 0.
    if (size == 0 || address + (size - 1) < address) return std::unexpected(EINVAL);
    HostRange range;
    range.address_ = address;
    range.size_ = size;
    range.readable_ = readable;
    range.writable_ = writable;
    if (fd) {
        auto mapping = Mapping::create(fd.get(), offset, size, writable);
        if (!mapping) return std::unexpected(mapping.error());
        range.mapping_ = std::move(*mapping);
    }
    return range;
}

namespace {

bool starts_after(std::uint64_t address, const HostRange& range) {
    return address < range.address();
}

}  // namespace

std::expected<void, int> HostMemory::insert(HostRange range) {
    if (ranges_.size() >= kMaxRanges) return std::unexpected(ENOSPC);
    const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), range.address(), starts_after);
    const std::uint64_t last = range.address() + (range.size() - 1);
    if (next != ranges_.end() && next->address() <= last) return std::unexpected(EEXIST);
    if (next != ranges_.begin()) {
        const HostRange& before = *(next - 1);
        if (before.address() + (before.size() - 1) >= range.address()) return std::unexpected(EEXIST);
    }
    ranges_.insert(next, std::move(range));
    last_ = 0;
    return {};
}

std::optional<HostRange> HostMemory::remove(std::uint64_t address, std::uint64_t size) {
    const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), address, starts_after);
    if (next == ranges_.begin()) return std::nullopt;
    const auto found = next - 1;
    if (found->address() != address || found->size() != size) return std::nullopt;
    std::optional<HostRange> range(std::move(*found));
    ranges_.erase(found);
    last_ = 0;
    return range;
}

std::vector<HostRange> HostMemory::remove_all() {
    last_ = 0;
    return std::exchange(ranges_, {});
}

// A faulty piece of memory is a page of its own, which lasts as long as whoever asked keeps what he got.
HostMemory::Span HostMemory::find_faulty(std::uint64_t address, std::uint64_t bytes, bool write) {
    const Span whole = find_whole(address, bytes, write);
    if (whole.data == nullptr || whole.bytes == 0) return whole;
    const Fault fault = faults_->at(write ? FaultPoint::kDmaWrite : FaultPoint::kDmaRead);
    if (!fault) return whole;
    if (fault.action == FaultAction::kFail) return {};
    const std::uint64_t inside = address % Faults::kStandIn;
    std::uint8_t* const page = faults_->stand_in();
    // Only for this kind of access: the other kind asks for itself.
    const Span piece{page + inside, std::min(whole.bytes, Faults::kStandIn - inside), !write, write};
    if (fault.action == FaultAction::kAllOnes) std::memset(page, 0xff, Faults::kStandIn);
    if (fault.action == FaultAction::kCorrupt) {
        std::memcpy(piece.data, whole.data, piece.bytes);
        const std::uint64_t bit = Faults::bit_of(fault, piece.bytes * 8);
        piece.data[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    }
    return piece;
}

const HostRange* HostMemory::range_of(std::uint64_t address) const {
    const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), address, starts_after);
    if (next == ranges_.begin()) return nullptr;
    const HostRange& found = *(next - 1);
    return address - found.address() < found.size() ? &found : nullptr;
}

HostMemory::Span HostMemory::find_slow(std::uint64_t address, std::uint64_t bytes, bool write) {
    const HostRange* const found = range_of(address);
    if (found == nullptr) return {};
    last_ = static_cast<std::size_t>(found - ranges_.data());
    return span_of(*found, address, bytes, write);
}

HostMemory::Span HostMemory::peek(std::uint64_t address, std::uint64_t bytes, bool write) const {
    return faults_ == nullptr ? look(address, bytes, write) : Span{};
}

HostMemory::Span HostMemory::look(std::uint64_t address, std::uint64_t bytes, bool write) const {
    const HostRange* const found = range_of(address);
    return found == nullptr ? Span{} : span_of(*found, address, bytes, write);
}

}  // namespace orrery::emu
