// A model of the chip around the control core, for the firmware's native tests: memory behind the windows,
// doorbells, engines that finish when the test says so, model time. It checks what the firmware does to
// hardware: see violations().
#pragma once

#include <orrery/hw/engine.h>
#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>
#include <orrery/hw/pci.h>
#include <orrery/hw/soc.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "firmware/hal/hal.h"

namespace orrery::fw::test {

inline constexpr std::uint64_t kHostBase = 0x100000;
inline constexpr std::uint64_t kHostSize = 0x100000;
inline constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

// The core stops in the middle of an instruction.
struct CoreCrash {};

class FakeSoc final : public Hal {
  public:
    struct Config {
        std::uint32_t copy_engines = 2;
        std::uint32_t vector_ports = 2;
        std::uint64_t memory_bytes = 0xa00000;
        bool abort_at_once = true;  // else the test completes aborted ports: see Engine::abort_wanted
        bool preempt_at_once =
            true;  // SOC_PREEMPT_NOW, and any on an engine without cores; else see Engine::preempt
        std::uint64_t boot_count = 1;
        std::uint64_t save_bytes = 0x10000;
        std::uint32_t vector_cores = 8;
        bool tells_kinds = true;  // has SOC_KIND
        // Behind those, by kind: engines that only the test knows. Word 1 of a descriptor is its work, not 0.
        std::vector<std::uint64_t> more_ports = {};
    };

    struct Engine {
        std::uint64_t kind = 0;
        std::array<std::uint64_t, 8> desc{};
        std::uint32_t tag = 0;
        bool busy = false;
        bool abort_wanted = false;
        bool resumed = false;       // from `save`, not started
        std::uint64_t preempt = 0;  // SOC_PREEMPT_* wanted
        std::uint64_t save = kEmpty, priority = 0, weight = 1;
        std::uint64_t active = 1;     // what SOC_ENGINE_ACTIVE shows: the test's to set
        std::uint64_t used = kEmpty;  // core time since start; kEmpty: as if one core had worked all the time
        std::uint64_t start_ps = 0;
        std::uint64_t used_ps(std::uint64_t now) const { return used == kEmpty ? now - start_ps : used; }

        template <typename T>
        T as() const {
            T value;
            static_assert(sizeof(value) == sizeof(desc));
            std::memcpy(&value, desc.data(), sizeof(value));
            return value;
        }
    };

    explicit FakeSoc(const Config& config);
    FakeSoc() : FakeSoc(Config{}) {}

    // --- Hal ---
    std::uint64_t reg(std::uint32_t offset) override;
    void set_reg(std::uint32_t offset, std::uint64_t value) override;
    std::uint64_t load(std::uint64_t window) override;
    std::uint64_t loads = 0;  // through windows
    std::function<void(std::uint64_t window)> on_load;
    std::uint64_t fault_next = ORR_FAULT_NONE;        // of the next load
    std::uint32_t busy_signals = 0, busy_closes = 0;  // that find no room
    std::function<void()> on_close;                   // what was under way is carried out
    void store(std::uint64_t window, std::uint64_t value) override;
    void trace(std::uint64_t word) override {
        trace_words.push_back(word);
        if (on_trace) on_trace(word);
    }
    std::function<void(std::uint64_t word)> on_trace;
    void fence() override {}
    [[noreturn]] void crash() override;
    bool timer_pending() override { return time >= timer; }

    // --- memory as the host and processes see it ---
    std::uint64_t host(std::uint64_t bus) const;
    void set_host(std::uint64_t bus, std::uint64_t value);
    // Maps one page of the test's memory. Several may name the same.
    void map(std::uint32_t asid, std::uint64_t va, std::uint64_t offset, bool writable = true);
    void unmap(std::uint32_t asid, std::uint64_t va) { pages_.erase({asid, va / ORR_PAGE_SIZE}); }
    // A page of another card: stores of the semaphore unit go there, loads fault.
    using Peer = std::function<void(std::uint64_t offset, std::uint64_t value)>;
    void map_peer(std::uint32_t asid, std::uint64_t va, Peer peer) {
        peers_[{asid, va / ORR_PAGE_SIZE}] = std::move(peer);
    }
    std::uint64_t memory(std::uint64_t offset) const;
    void set_memory(std::uint64_t offset, std::uint64_t value);
    bool has_root(std::uint32_t asid) const { return roots_.contains(asid); }

    // As SOC_IRQ_PENDING, without the cost of an access.
    std::uint64_t lines() const;

    // --- events ---
    void ring_mailbox() { mailbox_rung_ = true; }
    void ring(std::uint32_t page, std::uint32_t slot, std::uint64_t value);
    void poke(std::uint64_t offset) { pokes_.push_back(offset); }
    void finish(std::uint32_t port, std::uint64_t status = ORR_DONE_OK, std::uint64_t fault = 0,
                std::uint64_t detail = 0);
    // The descriptor ends at a group's border and is saved, as the firmware has asked.
    void preempt(std::uint32_t port);
    // A completion that no engine produced.
    void wild_completion(std::uint64_t popped) {
        done_.push_back({popped, ORR_DONE_OK, 0, 0, time, time, 0});
    }
    std::vector<std::uint32_t> busy_ports() const;

    // --- what the firmware did ---
    std::array<unsigned, ORR_IRQ_VECTORS> host_irqs{};
    std::uint64_t progress = 0, heartbeat = 0;
    std::uint64_t halt = kEmpty;
    std::uint64_t flushes = 0;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> bindings;  // (page, slot) → tag
    std::vector<Engine> engines;
    std::uint64_t accesses = 0;
    std::vector<std::uint64_t> trace_words;
    struct Slot {
        std::uint64_t ring = 0, mask = 0, next = 0, limit = 0;
    };
    std::array<Slot, SOC_SLOTS> slots{};
    std::map<std::uint64_t, Engine> saved;  // by the save area's offset
    const std::vector<std::string>& violations() const { return violations_; }

    // ORR_R_CORE_RESTART: all but the core stays.
    void restart_core();
    // The core crashes at this access, counted by `accesses`; kEmpty: never.
    std::uint64_t crash_at = kEmpty;
    // Before CoreCrash is thrown: what SRAM holds now is what the next run finds.
    std::function<void()> on_crash;

    // --- knobs and hooks ---
    std::uint64_t time = 1'000'000, timer = kEmpty;
    std::uint64_t boot_arg = 0;
    std::uint64_t irq_enable = 0;
    std::function<void(std::uint32_t port, const Engine&)> on_start;
    std::function<void(std::uint32_t asid, std::uint64_t va, std::uint64_t value)> on_signal;

  private:
    struct Done {
        std::uint64_t popped, status, fault, detail, start_ps, end_ps, used_ps;
    };
    struct Page {
        std::uint64_t offset;
        bool writable;
    };

    // Where a window address leads; null: fault.
    std::uint64_t* find(std::uint64_t window, bool write);
    std::uint64_t* translate(std::uint32_t asid, std::uint64_t va, bool write, std::uint64_t& fault);
    void window_fault(std::uint64_t code, std::uint64_t window);
    void close(std::uint64_t window);
    void doorbell_command(std::uint64_t command);
    void mmu_command(std::uint64_t command);
    void signal(std::uint64_t value);
    void start(std::uint32_t port, std::uint64_t tag);
    void launch(std::uint32_t port, std::uint64_t value);
    bool read_slot(std::uint32_t n);
    void launch_signal(std::uint64_t value);
    void resume(std::uint32_t port, std::uint64_t tag);
    std::uint64_t slot_reg(std::uint32_t offset);
    void set_slot_reg(std::uint32_t offset, std::uint64_t value);
    std::uint64_t memory_name(std::uint32_t asid, std::uint64_t va, bool write, std::uint64_t& fault);
    void set_engine_reg(std::uint32_t offset, std::uint64_t value);
    void count_access();
    void violation(std::string text) { violations_.push_back(std::move(text)); }

    Config config_;
    std::vector<std::uint64_t> host_, memory_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, Page> pages_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, Peer> peers_;
    std::map<std::uint32_t, std::uint64_t> roots_;
    std::map<std::uint32_t, std::uint64_t> regs_;  // the plain ones
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> doorbells_;
    std::deque<std::pair<std::uint64_t, std::uint64_t>> rung_;
    std::deque<Done> done_;
    std::deque<std::uint64_t> pokes_;
    bool mailbox_rung_ = false;
    std::uint64_t window_fault_ = 0, window_fault_va_ = 0;
    std::uint64_t launch_result_ = kEmpty;
    std::uint64_t db_value_ = 0, sem_status_ = 0, sem_memory_ = kEmpty;
    std::uint64_t mmu_result_ = kEmpty, mmu_fault_ = 0;
    std::array<std::array<std::uint64_t, 8>, SOC_SLOTS> slot_packet_{};
    std::array<std::uint64_t, SOC_SLOTS> slot_read_{};  // index of what slot_packet_ holds; kEmpty: none
    std::array<std::uint64_t, SOC_SLOTS> slot_fault_{};
    Done latched_{};
    std::vector<std::string> violations_;
};

}  // namespace orrery::fw::test
