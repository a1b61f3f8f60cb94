#include "tests/unit/pcie/test_card.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace orrery::test {
namespace {

emu::UniqueFd make_memory(const char* name, uint64_t size) {
    emu::UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) throw std::runtime_error("memfd");
    return fd;
}

uint64_t to_u64(std::span<const std::byte> bytes) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
}

}  // namespace

TestCard::TestCard(emu::Interrupts& interrupts)
    : interrupts_(interrupts),
      vram_(make_memory("test-vram", kVramSize)),
      doorbells_(make_memory("test-doorbells", kDoorbellSize / 2)) {
    void* p = ::mmap(nullptr, kVramSize, PROT_READ | PROT_WRITE, MAP_SHARED, vram_.get(), 0);
    if (p == MAP_FAILED) throw std::runtime_error("mmap");
    vram_memory_ = static_cast<std::byte*>(p);
}

TestCard::~TestCard() {
    for (const auto& [address, range] : ranges_) {
        if (range.memory != nullptr) ::munmap(range.memory, range.size);
    }
    ::munmap(vram_memory_, kVramSize);
}

emu::PciDescription TestCard::description(emu::InterruptMode mode) const {
    emu::PciDescription d;
    d.interrupts = mode;
    d.serial = 0x0123456789abcdef;
    d.bars[0].size = ORR_BAR_REGS_SIZE;
    d.bars[2].size = kVramSize;
    d.bars[2].is_64bit = d.bars[2].prefetchable = true;
    d.bars[2].fd = vram_.get();
    d.bars[2].mapped = {{0, kVramSize}};
    d.bars[4].size = kDoorbellSize;
    d.bars[4].is_64bit = d.bars[4].prefetchable = true;
    d.bars[4].fd = doorbells_.get();
    d.bars[4].mapped = {{0, kDoorbellSize / 2}};
    return d;
}

void TestCard::event(std::string text) {
    const std::lock_guard lock(mutex_);
    // The fuzzer makes far more than anybody reads.
    if (events_.size() < 10000) events_.push_back(std::move(text));
}

std::vector<std::string> TestCard::take_events() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
}

size_t TestCard::mapped_ranges() const {
    const std::lock_guard lock(mutex_);
    return ranges_.size();
}

uint64_t TestCard::vram_word(uint64_t offset) const {
    return to_u64(std::span<const std::byte>(vram_memory_ + offset, 8));
}

uint64_t TestCard::read_register(uint64_t offset) const {
    switch (offset) {
        case kRegMagic:
            return kMagic;
        case kRegScratch:
            return scratch_;
        case kRegDmaAddress:
            return dma_address_;
        case kRegResets:
            return resets_;
        case kRegKicks:
            return kicks_;
        case kRegDmaErrors:
            return dma_errors_;
        case kRegVramWord:
            return vram_offset_;
        case kRegVramData:
            return vram_offset_ <= kVramSize - 8 ? vram_word(vram_offset_) : 0;
        default:
            return 0;
    }
}

void TestCard::write_register(uint64_t offset, uint64_t value) {
    switch (offset) {
        case kRegScratch:
            scratch_ = value;
            break;
        case kRegRaise:
            interrupts_.raise(static_cast<unsigned>(value));
            break;
        case kRegDmaAddress:
            dma_address_ = value;
            break;
        case kRegDmaCommand:
            dma(value);
            break;
        case kRegVramWord:
            vram_offset_ = value;
            break;
        case kRegVramData:
            if (vram_offset_ <= kVramSize - 8) std::memcpy(vram_memory_ + vram_offset_, &value, 8);
            break;
        default:
            break;
    }
}

void TestCard::dma(uint64_t command) {
    const std::lock_guard lock(mutex_);
    auto it = ranges_.upper_bound(dma_address_);
    if (it != ranges_.begin()) {
        --it;
        const auto& [address, range] = *it;
        const uint64_t at = dma_address_ - address;
        if (range.memory != nullptr && at <= range.size - 8) {
            if (command == kDmaLoad) {
                std::memcpy(&scratch_, range.memory + at, 8);
                return;
            }
            if (command == kDmaStore && range.writable) {
                std::memcpy(range.memory + at, &scratch_, 8);
                return;
            }
        }
    }
    dma_errors_++;
}

void TestCard::bar_read(unsigned bar, uint64_t offset, std::span<std::byte> out) {
    accesses_++;
    const uint64_t size = bar == 0 ? uint64_t{ORR_BAR_REGS_SIZE} : kDoorbellSize;
    if (offset % out.size() != 0 || out.size() > 8 || offset + out.size() > size) broken_promises_++;
    const uint64_t value = bar == 0 ? read_register(offset & ~uint64_t{7}) >> (8 * (offset & 7)) : 0;
    std::memcpy(out.data(), &value, out.size());
}

void TestCard::bar_write(unsigned bar, uint64_t offset, std::span<const std::byte> in) {
    accesses_++;
    const uint64_t size = bar == 0 ? uint64_t{ORR_BAR_REGS_SIZE} : kDoorbellSize;
    if (offset % in.size() != 0 || in.size() > 8 || offset + in.size() > size) broken_promises_++;
    if (bar == 4) {
        kicks_++;
        return;
    }
    // Halves of a register: the other one keeps its value.
    const uint64_t reg = offset & ~uint64_t{7};
    uint64_t value = read_register(reg);
    std::memcpy(reinterpret_cast<std::byte*>(&value) + (offset & 7), in.data(), in.size());
    write_register(reg, in.size() == 8 ? to_u64(in) : value);
}

int TestCard::dma_map(emu::DmaMap map) {
    if (refuse_ != 0) return refuse_;
    Range range{map.size, nullptr, map.writable};
    if (map.fd) {
        void* p = ::mmap(nullptr, map.size, PROT_READ | (map.writable ? PROT_WRITE : 0), MAP_SHARED,
                         map.fd.get(), static_cast<off_t>(map.offset));
        if (p == MAP_FAILED) return errno;
        range.memory = static_cast<std::byte*>(p);
    }
    event(fmt::format("map {:x}+{:x} {}{}{}", map.address, map.size, map.readable ? "r" : "",
                      map.writable ? "w" : "", map.fd ? "" : " nofd"));
    const std::lock_guard lock(mutex_);
    ranges_[map.address] = range;
    return 0;
}

void TestCard::dma_unmap(uint64_t address, uint64_t size) {
    event(fmt::format("unmap {:x}+{:x}", address, size));
    const std::lock_guard lock(mutex_);
    const auto it = ranges_.find(address);
    if (it == ranges_.end() || it->second.size != size) {
        broken_promises_++;
        return;
    }
    if (it->second.memory != nullptr) ::munmap(it->second.memory, size);
    ranges_.erase(it);
}

void TestCard::reset(emu::ResetKind kind) {
    resets_++;
    scratch_ = 0;
    event(kind == emu::ResetKind::kBus ? "reset bus" : "reset function");
}

void TestCard::bus_master(bool enabled) {
    event(enabled ? "master on" : "master off");
}

void TestCard::atomics(bool enabled) {
    event(enabled ? "atomics on" : "atomics off");
}

void TestCard::client_attached() {
    event("attached");
}

void TestCard::client_gone() {
    if (mapped_ranges() != 0) broken_promises_++;
    event("gone");
}

}  // namespace orrery::test
