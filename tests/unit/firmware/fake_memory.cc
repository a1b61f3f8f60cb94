// What the model of the chip reaches: address spaces, windows, host memory and VRAM.
#include <fmt/format.h>

#include <utility>

#include "tests/unit/firmware/fake_soc.h"

namespace orrery::fw::test {

void FakeSoc::mmu_command(std::uint64_t command) {
    const auto asid = static_cast<std::uint32_t>(regs_[SOC_MMU_ASID]);
    if (asid == 0 || asid >= ORR_ASIDS) violation(fmt::format("MMU command for ASID {}", asid));
    if (command == SOC_MMU_SET_ROOT) {
        roots_[asid] = regs_[SOC_MMU_ARG];
    } else if (command == SOC_MMU_CLEAR_ROOT) {
        roots_.erase(asid);
        for (const Engine& engine : engines) {
            if (engine.busy && engine.desc[0] >> 32 == asid) violation("root cleared under a running engine");
        }
    } else if (command == SOC_MMU_TRANSLATE) {
        mmu_fault_ = ORR_FAULT_NONE;
        mmu_result_ = memory_name(asid, regs_[SOC_MMU_ARG], false, mmu_fault_);
    } else {
        ++flushes;
    }
}

std::uint64_t FakeSoc::memory_name(std::uint32_t asid, std::uint64_t va, bool write, std::uint64_t& fault) {
    const std::uint64_t* const word = translate(asid, va & ~std::uint64_t{7}, write, fault);
    if (word == nullptr) return kEmpty;
    return ORR_VRAM_WINDOW + static_cast<std::uint64_t>(word - memory_.data()) * 8;
}

void FakeSoc::map(std::uint32_t asid, std::uint64_t va, std::uint64_t offset, bool writable) {
    pages_[{asid, va / ORR_PAGE_SIZE}] = {offset, writable};
}

std::uint64_t* FakeSoc::translate(std::uint32_t asid, std::uint64_t va, bool write, std::uint64_t& fault) {
    if (va >> ORR_VA_BITS != 0) {
        fault = ORR_FAULT_NON_CANONICAL;
        return nullptr;
    }
    if (!roots_.contains(asid)) {
        fault = ORR_FAULT_NO_CONTEXT;
        return nullptr;
    }
    const auto page = pages_.find({asid, va / ORR_PAGE_SIZE});
    if (page == pages_.end()) {
        fault = ORR_FAULT_NOT_MAPPED;
        return nullptr;
    }
    if (write && !page->second.writable) {
        fault = ORR_FAULT_PERMISSION;
        return nullptr;
    }
    return &memory_.at((page->second.offset + va % ORR_PAGE_SIZE) / 8);
}

void FakeSoc::window_fault(std::uint64_t code, std::uint64_t window) {
    if (window_fault_ != ORR_FAULT_NONE) return;
    window_fault_ = code;
    window_fault_va_ = window;
}

std::uint64_t* FakeSoc::find(std::uint64_t window, bool write) {
    count_access();
    if (window % 8 != 0) violation(fmt::format("misaligned window access {:#x}", window));
    if (window >> 63 != 0) {
        const std::uint64_t bus = window & ~(std::uint64_t{1} << 63);
        if (bus >= kHostBase && bus - kHostBase < kHostSize) return &host_[(bus - kHostBase) / 8];
        window_fault(ORR_FAULT_PAGE_RANGE, window);
        return nullptr;
    }
    if (window >= ORR_VRAM_WINDOW && window - ORR_VRAM_WINDOW < config_.memory_bytes)
        return &memory_[(window - ORR_VRAM_WINDOW) / 8];
    if (window >> 62 != 1) {
        violation(fmt::format("access to {:#x}, which is no window", window));
        return nullptr;
    }
    std::uint64_t fault = ORR_FAULT_NONE;
    const auto asid = static_cast<std::uint32_t>(window >> 48 & 0x3fff);
    std::uint64_t* const word = translate(asid, window & ((std::uint64_t{1} << 48) - 1), write, fault);
    if (word == nullptr) window_fault(fault, window);
    return word;
}

void FakeSoc::close(std::uint64_t window) {
    if (busy_closes != 0) {
        --busy_closes;
        sem_status_ = ORR_FAULT_PEER_BUSY;
        return;
    }
    std::uint64_t* const word = find(window + offsetof(orr_semaphore, time_ps), true);
    sem_status_ = word == nullptr ? ORR_FAULT_PAGE_RANGE : ORR_FAULT_NONE;
    window_fault_ = 0;
    if (word != nullptr) *word |= ORR_SEM_CLOSED;
    if (on_close) on_close();
}

std::uint64_t FakeSoc::load(std::uint64_t window) {
    ++loads;
    if (on_load) on_load(window);
    if (fault_next != ORR_FAULT_NONE) {
        window_fault(std::exchange(fault_next, std::uint64_t{ORR_FAULT_NONE}), window);
        return 0;
    }
    const std::uint64_t* const word = find(window, false);
    return word == nullptr ? 0 : *word;
}

void FakeSoc::store(std::uint64_t window, std::uint64_t value) {
    std::uint64_t* const word = find(window, true);
    if (word != nullptr) *word = value;
}

std::uint64_t FakeSoc::host(std::uint64_t bus) const {
    return host_.at((bus - kHostBase) / 8);
}
void FakeSoc::set_host(std::uint64_t bus, std::uint64_t value) {
    host_.at((bus - kHostBase) / 8) = value;
}
std::uint64_t FakeSoc::memory(std::uint64_t offset) const {
    return memory_.at(offset / 8);
}
void FakeSoc::set_memory(std::uint64_t offset, std::uint64_t value) {
    memory_.at(offset / 8) = value;
}

}  // namespace orrery::fw::test
