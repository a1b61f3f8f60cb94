// A hart with memory and one MMIO page around it, for tests.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "emulator/core/hart.h"

namespace orrery::emu::test {

inline constexpr std::uint64_t kRam = 0x80000000;
inline constexpr std::uint64_t kRamBytes = 0x40000;
inline constexpr std::uint64_t kMmio = 0x10000000;

struct MmioAccess {
    bool is_store = false;
    std::uint64_t va = 0;
    unsigned size = 0;
    std::uint64_t value = 0;
    bool operator==(const MmioAccess&) const = default;
};

// RAM at kRam, a page of registers at kMmio, nothing elsewhere, unless `pages` says otherwise.
class TestBus : public Bus {
  public:
    PageRef translate(std::uint64_t va, Access access) override {
        ++translations;
        if (on_translate) on_translate(va, access);
        const std::uint64_t page = va & ~(kPageBytes - 1);
        if (const auto it = pages.find(page); it != pages.end()) return it->second;
        if (page == kMmio) return PageRef::mmio();
        if (va < kRam || va - kRam >= kRamBytes) return PageRef::fault();
        return PageRef::memory(ram() + (page - kRam), kPageRead | kPageWrite | kPageExec);
    }
    bool load(std::uint64_t va, unsigned size, std::uint64_t& value) override {
        if (on_load && !on_load(va, size, value)) return false;
        log.push_back({false, va, size, value});
        return true;
    }
    bool store(std::uint64_t va, unsigned size, std::uint64_t value) override {
        if (on_store && !on_store(va, size, value)) return false;
        log.push_back({true, va, size, value});
        return true;
    }
    bool read_csr(std::uint32_t number, std::uint64_t& value) override {
        const auto it = csrs.find(number);
        if (it == csrs.end()) return false;
        value = it->second;
        return true;
    }
    bool write_csr(std::uint32_t number, std::uint64_t value) override {
        const auto it = csrs.find(number);
        if (it == csrs.end()) return false;
        it->second = value;
        return true;
    }

    std::uint8_t* ram() { return reinterpret_cast<std::uint8_t*>(memory_.get()); }
    std::span<std::uint8_t> bytes() { return {ram(), kRamBytes}; }
    template <class T>
    T get(std::uint64_t va) {
        T value;
        std::memcpy(&value, ram() + (va - kRam), sizeof value);
        return value;
    }
    template <class T>
    void put(std::uint64_t va, T value) {
        std::memcpy(ram() + (va - kRam), &value, sizeof value);
    }
    void put_code(std::uint64_t va, std::initializer_list<std::uint32_t> instructions) {
        for (const std::uint32_t instruction : instructions) {
            put(va, instruction);
            va += 4;
        }
    }

    std::map<std::uint64_t, PageRef> pages;
    std::map<std::uint32_t, std::uint64_t> csrs;
    std::vector<MmioAccess> log;
    std::uint64_t translations = 0;
    std::function<void(std::uint64_t, Access)> on_translate;
    std::function<bool(std::uint64_t, unsigned, std::uint64_t&)> on_load;
    std::function<bool(std::uint64_t, unsigned, std::uint64_t)> on_store;

  private:
    std::unique_ptr<std::uint64_t[]> memory_ = std::make_unique<std::uint64_t[]>(kRamBytes / 8);
};

inline Config fp_config() {
    return {.reset_pc = kRam, .fp = true};
}
inline Config plain_config() {
    return {.reset_pc = kRam};
}

struct Machine {
    explicit Machine(const Config& config = plain_config()) : hart(config, bus) {}
    void code(std::initializer_list<std::uint32_t> instructions, std::uint64_t va = kRam) {
        bus.put_code(va, instructions);
        hart.flush_code();
    }
    TestBus bus;
    Hart hart;
};

}  // namespace orrery::emu::test
