#include "tools/scenario/machine.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <orrery/hw/bar0.h>
#include <orrery/hw/mmu.h>
#include <orrery/hw/pci.h>

namespace orrery::scenario {

namespace {

constexpr emu::ModelTime kCommandGap = 1'000'000;        // from a reply to the next command
constexpr emu::ModelTime kPatience = 1'000'000'000'000;  // model time for a boot or a reply
constexpr unsigned kMaxQuietRounds = 64;

}  // namespace

std::expected<std::unique_ptr<Machine>, std::string> Machine::create(Config config) {
    std::unique_ptr<Machine> machine(new Machine);
    config.card.ram_base = kRamBase;
    config.card.raise = [made = machine.get()](unsigned vector) { made->on_interrupt(vector); };
    auto card = emu::LoneCard::create(std::move(config.card));
    if (!card) return std::unexpected(card.error());
    machine->card_ = *std::move(card);
    machine->next_table_ = machine->card_->vram().size();
    machine->image_ = std::move(config.image);
    machine->save_areas_ = config.save_areas;
    return machine;
}

Machine::~Machine() = default;

// --- memory ---

std::uint64_t Machine::take_host(std::uint64_t bytes, std::uint64_t align) {
    const std::uint64_t start = (next_host_ + align - 1) / align * align;
    if (start + bytes > kRamBase + card_->ram().size()) return 0;
    next_host_ = start + bytes;
    return start;
}

std::uint64_t Machine::take_vram(std::uint64_t bytes, std::uint64_t align) {
    const std::uint64_t start = (next_vram_ + align - 1) / align * align;
    if (bytes > next_table_ || start > next_table_ - bytes) return 0;
    next_vram_ = start + bytes;
    return start;
}

std::uint64_t Machine::root(std::uint32_t asid) {
    if (roots_[asid] == 0) {
        if (next_table_ - ORR_PAGE_SIZE < next_vram_) return 0;
        next_table_ -= ORR_PAGE_SIZE;
        roots_[asid] = next_table_;
    }
    return roots_[asid];
}

bool Machine::map(std::uint32_t asid, std::uint64_t va, std::uint64_t address, std::uint64_t bytes,
                  std::uint64_t bits) {
    if (root(asid) == 0) return false;
    while (bytes > 0) {
        const bool huge = (va | address) % ORR_HUGE_PAGE_SIZE == 0 && bytes >= ORR_HUGE_PAGE_SIZE;
        const unsigned last = huge ? 1 : 0;
        std::uint64_t table = root(asid);
        for (unsigned level = ORR_MMU_LEVELS - 1;; --level) {
            std::uint64_t& entry =
                reinterpret_cast<std::uint64_t*>(vram(table))[va >> (12 + 9 * level) & 511];
            if (level == last) {
                entry = address | bits | ORR_PTE_VALID | ORR_PTE_LEAF;
                break;
            }
            if (entry == 0) {
                if (next_table_ - ORR_PAGE_SIZE < next_vram_) return false;
                next_table_ -= ORR_PAGE_SIZE;
                entry = next_table_ | ORR_PTE_VALID;
            }
            table = entry & ORR_PTE_ADDR_MASK;
        }
        const std::uint64_t done = huge ? ORR_HUGE_PAGE_SIZE : ORR_PAGE_SIZE;
        va += done;
        address += done;
        bytes -= std::min<std::uint64_t>(done, bytes);
    }
    return true;
}

// --- what an arrival does ---

void Machine::ring(std::uint32_t page, std::uint32_t slot, std::uint64_t value) {
    auto& doorbells = reinterpret_cast<orr_doorbell_page*>(card_->doorbells().data())[page];
    std::atomic_ref(doorbells.doorbell[slot]).store(value, std::memory_order_release);
    std::atomic_ref(doorbells.summary).store(doorbells.summary + 1, std::memory_order_release);
}

void Machine::send(std::uint16_t opcode, std::initializer_list<std::uint64_t> args,
                   std::function<void(const orr_mbox_message&)> reply, std::uint16_t flags) {
    auto& ring = *reinterpret_cast<orr_mbox_ring*>(host(kCommands));
    orr_mbox_message message{};
    message.sequence = ++sequence_;
    message.opcode = opcode;
    message.flags = flags;
    std::ranges::copy(args, message.arg);
    ring.entry[ring.producer % ORR_MBOX_ENTRIES] = message;
    std::atomic_ref(ring.producer).store(ring.producer + 1, std::memory_order_release);
    if (reply) waiting_.emplace(message.sequence, std::move(reply));
    write32(ORR_R_MBOX_DOORBELL, 1);
}

void Machine::on_interrupt(unsigned vector) {
    if (vector == ORR_IRQ_FAULT && on_halt && card_->halted()) on_halt();
    auto& ring = *reinterpret_cast<orr_mbox_ring*>(host(kMessages));
    while (std::atomic_ref(ring.producer).load(std::memory_order_acquire) != ring.consumer) {
        const orr_mbox_message message = ring.entry[ring.consumer % ORR_MBOX_ENTRIES];
        std::atomic_ref(ring.consumer).store(ring.consumer + 1, std::memory_order_release);
        if (message.sequence == 0) {
            if (on_event) on_event(now(), message);
            continue;
        }
        const auto waits = waiting_.find(message.sequence);
        if (waits == waiting_.end()) continue;
        const auto reply = std::move(waits->second);
        waiting_.erase(waits);
        reply(message);
    }
}

// --- the driver ---

void Machine::start_image() {
    write64(ORR_R_BOOT_IMAGE, kImageBus);
    write32(ORR_R_BOOT_SIZE, static_cast<std::uint32_t>(image_.size()));
    write64(ORR_R_BOOT_ARG, kBootBlock);
    write32(ORR_R_BOOT_START, 1);
}

void Machine::restart() {
    // A firmware that starts finds empty rings. What was under way is lost with the run that crashed.
    for (const std::uint64_t ring : {kCommands, kMessages}) {
        auto& anew = *reinterpret_cast<orr_mbox_ring*>(host(ring));
        anew.producer = anew.consumer = 0;
    }
    waiting_.clear();
    write32(ORR_R_CORE_RESTART, ORR_RESTART_MAGIC);
    start_image();
}

std::expected<void, std::string> Machine::boot() {
    if (image_.size() > kHostFree - kImageBus) return std::unexpected("the firmware image is too large");
    std::memcpy(host(kImageBus), image_.data(), image_.size());
    orr_boot_block& block = *reinterpret_cast<orr_boot_block*>(host(kBootBlock));
    block = {};
    block.host_magic = ORR_BB_HOST_MAGIC;
    block.host_abi = ORR_FW_ABI;
    block.command_ring = kCommands;
    block.message_ring = kMessages;
    block.queue_status = kStatus;
    block.host_page_size = 4096;
    const std::uint64_t save_bytes = read32(ORR_R_SAVE_BYTES);
    if (save_areas_ != 0 && save_bytes != 0) {
        block.save_base = take_vram(save_bytes * save_areas_);
        if (block.save_base == 0) {
            return std::unexpected(
                fmt::format("no room in VRAM for {} save areas of {} bytes: set save_areas to less, or give "
                            "the card more vram",
                            save_areas_, save_bytes));
        }
        block.save_areas = save_areas_;
    }
    start_image();
    const emu::ModelTime give_up = now() + kPatience;
    for (unsigned quiet = 0; quiet < kMaxQuietRounds && now() < give_up;) {
        if (read32(ORR_R_STATE) == ORR_STATE_RUNNING) return {};
        quiet = step(give_up) ? 0 : quiet + 1;
    }
    return std::unexpected(fmt::format(
        "the firmware does not start: state {}, boot status {}, progress {:#x}, halt cause {:#x}",
        read32(ORR_R_STATE), read32(ORR_R_BOOT_STATUS), read32(ORR_R_PROGRESS), read32(ORR_R_HALT_CAUSE)));
}

std::expected<orr_mbox_message, std::string> Machine::call(std::uint16_t opcode,
                                                           std::initializer_list<std::uint64_t> args) {
    std::optional<orr_mbox_message> answer;
    at(now() + kCommandGap,
       [&, this] { send(opcode, args, [&](const orr_mbox_message& reply) { answer = reply; }); });
    const emu::ModelTime give_up = now() + kPatience;
    for (unsigned quiet = 0; quiet < kMaxQuietRounds && now() < give_up;) {
        if (answer) return *answer;
        quiet = step(give_up) ? 0 : quiet + 1;
    }
    if (answer) return *answer;
    waiting_.clear();
    return std::unexpected(fmt::format("the firmware does not answer command {} (state {}, halt cause {:#x})",
                                       opcode, read32(ORR_R_STATE), read32(ORR_R_HALT_CAUSE)));
}

}  // namespace orrery::scenario
