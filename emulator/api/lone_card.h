// A card without a VM: in one process with whoever plays its host, which drives it by model time.
//
// One thread. What the host does (write, doorbells, memory) happens at the card's present moment; at() has it
// happen at a moment of one's choosing. Two cards of one process find each other by their links' paths.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/api/model_time.h"
#include "emulator/api/sku.h"

namespace orrery::emu {

struct LoneCardConfig {
    struct Link {
        std::uint32_t port = 0;
        bool listen = false;
        std::string path;  // of a UNIX socket
    };
    Sku sku = Sku::standard();
    std::uint64_t vram_bytes = 0;
    std::uint64_t uid = 1;               // not 0
    std::array<std::uint8_t, 32> key{};  // Ed25519, in the fuses
    std::vector<Link> links;
    std::filesystem::path record;               // file for a recording; empty: none
    std::vector<std::uint8_t> symbols;          // struct orr_otrace_symbols, for the recording
    std::string program = "card";               // who records
    std::uint64_t ram_base = 0, ram_bytes = 0;  // host memory that the card may reach
    std::function<void(unsigned)> raise;        // an interrupt vector for the host
};

class LoneCard {
  public:
    // The error is one line.
    static std::expected<std::unique_ptr<LoneCard>, std::string> create(LoneCardConfig config);
    ~LoneCard();
    LoneCard(const LoneCard&) = delete;
    LoneCard& operator=(const LoneCard&) = delete;

    // --- what both sides see ---
    std::span<std::uint8_t> ram();  // from ram_base
    std::span<std::uint8_t> vram();
    std::span<std::uint8_t> doorbells();  // pages (orrery/hw/doorbell.h)

    // --- the host's side: registers of BAR 0 ---
    void write32(std::uint64_t offset, std::uint32_t value);
    void write64(std::uint64_t offset, std::uint64_t value);
    std::uint32_t read32(std::uint64_t offset);
    // As if a linked card had written to this semaphore in VRAM.
    void poke(std::uint64_t vram_offset);

    // --- time ---
    ModelTime now() const;
    // Calls what is due at its model time, those of one time in their order here.
    void at(ModelTime time, std::function<void()> arrival);
    // One round: events before `limit`, and instructions that begin before it. false: there was nothing to
    // do.
    bool step(ModelTime limit);
    // When the card would do something next; it has looked for what has arrived. kNever: never by itself.
    ModelTime next_activity();
    // Looks for what has arrived over links.
    void take_arrivals();

    // --- what it shows ---
    bool halted() const;                    // the control core has
    std::vector<std::uint64_t> counters();  // orrery/hw/counters.h, all of this moment
    // Every word that the firmware writes to the trace port.
    void on_trace(std::function<void(std::uint64_t word, ModelTime now)> listener);
    // All that it complained about so far, a line each.
    std::vector<std::string> log();
    void finish_recording();

  private:
    struct Impl;
    explicit LoneCard(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace orrery::emu
