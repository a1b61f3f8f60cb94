// One card with what is in front of it: host memory, a driver that boots the firmware and talks to its
// mailbox, page tables. Everything that reaches the card does so at a model time of the caller's choosing.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <orrery/fw/boot_block.h>
#include <orrery/fw/mailbox.h>
#include <orrery/fw/queue.h>
#include <orrery/hw/bar0.h>
#include <orrery/hw/doorbell.h>
#include <orrery/hw/mmu.h>

#include "emulator/api/lone_card.h"
#include "tools/scenario/layout.h"

namespace orrery::scenario {

class Machine {
  public:
    struct Config {
        emu::LoneCardConfig card;  // without raise and where host memory is
        std::uint32_t save_areas = 0;
        std::vector<std::uint8_t> image;
    };
    static std::expected<std::unique_ptr<Machine>, std::string> create(Config config);
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    emu::LoneCard& card() { return *card_; }
    emu::ModelTime now() { return card_->now(); }

    // --- memory ---
    std::uint8_t* host(std::uint64_t bus) { return card_->ram().data() + (bus - kRamBase); }
    std::uint8_t* vram(std::uint64_t offset) { return card_->vram().data() + offset; }
    // 0: full.
    std::uint64_t take_host(std::uint64_t bytes, std::uint64_t align = 4096);
    std::uint64_t take_vram(std::uint64_t bytes, std::uint64_t align = 4096);
    // Maps [address, address + bytes) of a target (`bits`: target, port and rights); all multiples of 4 KiB.
    // Pages of 2 MiB where all is aligned for them. false: no room for tables.
    bool map(std::uint32_t asid, std::uint64_t va, std::uint64_t address, std::uint64_t bytes,
             std::uint64_t bits);
    std::uint64_t root(std::uint32_t asid);  // 0: no room

    // --- arrivals: calls what is due at its model time, those of one time in their order here ---
    void at(emu::ModelTime time, std::function<void()> arrival) { card_->at(time, std::move(arrival)); }

    // --- what an arrival does ---
    void ring(std::uint32_t page, std::uint32_t slot, std::uint64_t value);
    // A command; `reply` is called when the firmware answers (never, with ORR_MBOX_F_NO_REPLY).
    void send(std::uint16_t opcode, std::initializer_list<std::uint64_t> args,
              std::function<void(const orr_mbox_message&)> reply = {}, std::uint16_t flags = 0);
    void write32(std::uint64_t offset, std::uint32_t value) { card_->write32(offset, value); }
    void write64(std::uint64_t offset, std::uint64_t value) { card_->write64(offset, value); }
    std::uint32_t read32(std::uint64_t offset) { return card_->read32(offset); }
    // As a driver does it when the control core has halted: the firmware anew, engines and SRAM as they are.
    void restart();

    // --- time ---
    // One round of the card: events before `limit`, and instructions that begin before it. false: there was
    // nothing to do.
    bool step(emu::ModelTime limit) { return card_->step(limit); }
    // When the card would do something next; it has looked for what has arrived. kNever: never by itself.
    emu::ModelTime next_activity() { return card_->next_activity(); }

    // --- the driver's side before a scenario starts: these step the card until they are done ---
    std::expected<void, std::string> boot();
    std::expected<orr_mbox_message, std::string> call(std::uint16_t opcode,
                                                      std::initializer_list<std::uint64_t> args);

    orr_queue_status& status(std::uint32_t queue) {
        return reinterpret_cast<orr_queue_status*>(host(kStatus))[queue];
    }

    // Events of the firmware, at the time of the interrupt that told of them.
    std::function<void(emu::ModelTime, const orr_mbox_message&)> on_event;
    // The control core has halted.
    std::function<void()> on_halt;
    // What the card complained about so far.
    std::vector<std::string> log() { return card_->log(); }

  private:
    Machine() = default;
    void start_image();
    void on_interrupt(unsigned vector);

    std::unique_ptr<emu::LoneCard> card_;
    std::vector<std::uint8_t> image_;
    std::uint32_t save_areas_ = 0;
    std::uint64_t next_host_ = kHostFree;
    std::uint64_t next_vram_ = kFreeOffset, next_table_ = 0;
    std::vector<std::uint64_t> roots_ = std::vector<std::uint64_t>(ORR_ASIDS);

    std::uint32_t sequence_ = 0;
    std::map<std::uint32_t, std::function<void(const orr_mbox_message&)>> waiting_;
};

}  // namespace orrery::scenario
