#include "emulator/host/host_registers.h"

#include <algorithm>
#include <cstring>

#include <orrery/hw/pci.h>
#include <orrery/hw/switches.h>

#include "emulator/api/checks.h"
#include "emulator/engines/save_area.h"
#include "emulator/soc/register_names.h"
#include "emulator/soc/trace_sink.h"

namespace orrery::emu {

namespace {

// A read waits at most this long for the writes before it.
constexpr std::uint32_t kReadWaitUs = 20'000;

constexpr std::uint64_t kLinkFirst = ORR_R_LINK(0);
constexpr std::uint64_t kLinkStride = ORR_R_LINK(1) - ORR_R_LINK(0);
constexpr std::uint64_t kReachFirst = ORR_R_REACH(0, 0);
constexpr std::uint64_t kReachEnd = ORR_R_REACH(ORR_LINK_MAX_PORTS, 0);
constexpr std::uint64_t kReachStride = ORR_R_REACH(1, 0) - ORR_R_REACH(0, 0);
constexpr std::uint64_t kReachBytes = ORR_R_REACH(0, 1) - ORR_R_REACH(0, 0);
static_assert(kReachStride == ORR_NODES * kReachBytes);
constexpr std::uint64_t kSwitchesFirst = ORR_R_SWITCHES(0);
constexpr std::uint64_t kSwitchesEnd = ORR_R_SWITCHES(ORR_LINK_MAX_PORTS);
static_assert(kReachEnd <= kSwitchesFirst && kSwitchesEnd <= ORR_BAR_REGS_SIZE);
constexpr std::uint64_t kLinkEnd = ORR_R_LINK(ORR_LINK_MAX_PORTS);
constexpr std::uint64_t kRouteFirst = ORR_R_ROUTE(1);
constexpr std::uint64_t kRouteEnd = ORR_R_ROUTE(ORR_NODES);
constexpr std::uint64_t kKeyFirst = ORR_R_ROUTE_KEY(1);
constexpr std::uint64_t kKeyEnd = ORR_R_ROUTE_KEY(ORR_NODES);
static_assert(kRouteEnd <= kKeyFirst && kKeyEnd <= ORR_R_SKU);

bool is_route(std::uint64_t offset) {
    return offset >= kRouteFirst && offset < kRouteEnd;
}

// The losses belong to a write that sets, and that looks at them.
bool is_link_control(std::uint32_t value) {
    constexpr std::uint32_t kGuarded = ORR_LINK_FORWARD | ORR_LINK_IF_LOSSES;
    constexpr std::uint32_t kFlags = (1u << ORR_LINK_LOSSES_SHIFT) - 1;
    return (value & ~ORR_LINK_FORWARD) == 0 || (value & kFlags) == kGuarded;
}
bool is_note(std::uint64_t offset, std::uint64_t first) {
    return offset >= first && offset < first + ORR_NOTE_BYTES;
}

constexpr std::uint64_t kSkuNameBytes = 32;

std::uint32_t half(std::uint64_t value, bool upper) {
    return static_cast<std::uint32_t>(upper ? value >> 32 : value);
}

void set_half(std::uint64_t& word, bool upper, std::uint32_t value) {
    if (upper) {
        word = (word & 0xffffffffu) | std::uint64_t{value} << 32;
    } else {
        word = (word & ~std::uint64_t{0xffffffffu}) | value;
    }
}

void make_faulty(const Fault& fault, std::span<std::byte> bytes) {
    if (fault.action == FaultAction::kAllOnes) std::ranges::fill(bytes, std::byte{0xff});
    if (fault.action == FaultAction::kCorrupt && !bytes.empty()) {
        const std::uint64_t bit = Faults::bit_of(fault, bytes.size() * 8);
        bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
}

// The numbers of the card as it is: --vram goes before the SKU's file.
std::string table_of(const Card& card) {
    Sku sku = card.sku();
    if (sku.vram_bytes != card.config().vram_bytes) {
        sku.vram_bytes = card.config().vram_bytes;
        const auto keys = sku_keys();
        const auto vram =
            std::ranges::find_if(keys, [](const SkuKey& key) { return full_name(key) == "card.vram"; });
        sku.sources.resize(keys.size());
        sku.sources[static_cast<std::size_t>(vram - keys.begin())] = {SkuOrigin::kAssumed,
                                                                      "given when the card was started"};
    }
    std::string table = sku.table();
    if (table.size() > ORR_SKU_MAX_BYTES) table.clear();  // cannot be: a test adds up the longest texts
    return table;
}

}  // namespace

HostRegisters::HostRegisters(Card& card)
    : card_(card), sku_table_(table_of(card)), sku_bytes_(static_cast<std::uint32_t>(sku_table_.size())) {
    sku_table_.resize((sku_table_.size() + 7) & ~std::size_t{7});
}

void HostRegisters::read(std::uint64_t offset, std::span<std::byte> bytes) {
    std::ranges::fill(bytes, std::byte{0});
    if (!card_.flush_within(kReadWaitUs)) {
        card_.errors().report(ErrorKind::kHostError,
                              "the card thread took more than {} us: BAR 0 read at {:#x} may be stale",
                              kReadWaitUs, offset);
    }
    bool good = bytes.size() >= 4;
    for (std::size_t at = 0; good && at < bytes.size(); at += 4) {
        std::uint32_t value = 0;
        good = read32(offset + at, value);
        if (good) std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    if (!good) nothing_there(offset, bytes.size(), "read");
    if (Faults* faults = card_.faults()) make_faulty(faults->at(FaultPoint::kRegister, offset), bytes);
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    if (!watch_.read(offset, value)) return;
    const char* why = good ? why_it_stays(offset) : "nothing is there";
    if (why == nullptr) return;
    card_.errors().note("the host has read {} (BAR 0 offset {:#x}) {} times in a row, and it stays {:#x}: {}",
                        name_of_host_register(offset), offset, watch_.row(), value, why);
}

void HostRegisters::nothing_there(std::uint64_t offset, std::size_t bytes, const char* access) {
    const std::uint64_t number = watch_.unknown(offset);
    card_.errors().guest_if(AccessWatch::shown(number),
                            "BAR 0: {} of {} bytes at {:#x}, where nothing takes it (nearest: {}); {} times",
                            access, bytes, offset, name_of_host_register(offset), number);
}

const char* HostRegisters::why_it_stays(std::uint64_t offset) const {
    if (offset < ORR_R_MODEL_TIME || offset >= ORR_R_SKU ||
        (offset >= ORR_R_VECTOR_ISA && offset < ORR_R_VECTOR_ISA + ORR_ISA_BYTES))
        return "it is a constant of the card";
    if (offset >= kLinkFirst && offset < kLinkEnd) {
        const auto port = (offset - kLinkFirst) / kLinkStride;
        const auto& links = card_.config().links;
        const bool there =
            std::ranges::any_of(links, [&](const LinkConfig& one) { return one.port == port; });
        if (!there) return "this port has no link (--link)";
        switch ((offset - kLinkFirst) % kLinkStride & ~std::uint64_t{3}) {
            case ORR_R_LINK_GBPS:
            case ORR_R_LINK_LATENCY_NS:
            case ORR_R_LINK_FORWARD_NS:
            case ORR_R_LINK_BUILT:
                return "it is a constant of the card";
            case ORR_R_LINK_GRANT_DONE:
            case ORR_R_LINK_DRAINED:
            case ORR_R_LINK_RESETS:
                return "all commands that were written are done";
            case ORR_R_LINK_GRANT_BASE:
            case ORR_R_LINK_GRANT_BASE + 4:
            case ORR_R_LINK_GRANT_SIZE:
            case ORR_R_LINK_GRANT_SIZE + 4:
            case ORR_R_LINK_GRANT_NODE:
            case ORR_R_LINK_GRANT_RIGHTS:
                return "only the host's own writes change it";
            default:
                return nullptr;
        }
    }
    if (is_route(offset)) return "only the host's own writes change it";
    switch (offset & ~std::uint64_t{3}) {
        case ORR_R_ROUTE_KEYS:
        case ORR_R_BARRIER_DONE:
        case ORR_R_MULTICAST_DONE:
        case ORR_R_SNAPSHOT_DONE:
        case ORR_R_SINK_DONE:
            return "all commands that were written are done";
        case ORR_R_RESET_COUNT:
            return "all resets that were written are done";
        case ORR_R_BOOT_IMAGE:
        case ORR_R_BOOT_IMAGE + 4:
        case ORR_R_BOOT_SIZE:
        case ORR_R_BOOT_ARG:
        case ORR_R_BOOT_ARG + 4:
        case ORR_R_IRQ_MASK:
        case ORR_R_NODE:
        case ORR_R_BARRIER_MEMBER:
        case ORR_R_BARRIER_RELEASE:
        case ORR_R_BARRIER_RELEASE + 4:
        case ORR_R_BARRIER_WORD:
        case ORR_R_BARRIER_WORD + 4:
        case ORR_R_MULTICAST_MEMBER:
        case ORR_R_MULTICAST_BASE:
        case ORR_R_MULTICAST_BASE + 4:
        case ORR_R_SINK_BASE:
        case ORR_R_SINK_BASE + 4:
        case ORR_R_SINK_TYPES:
        case ORR_R_SINK_TYPES + 4:
        case ORR_R_SINK_ASK:
        case ORR_R_SINK_PERIOD:
        case ORR_R_SINK_SET:
        case ORR_R_SINK_SET + 4:
        case ORR_R_SINK_SET_HIGH:
        case ORR_R_SINK_SET_HIGH + 4:
        case ORR_R_SINK_PC_PERIOD:
        case ORR_R_SINK_STEP_CORE:
        case ORR_R_SINK_STEP_FROM:
        case ORR_R_SINK_STEP_FROM + 4:
        case ORR_R_SINK_STEP_UNTIL:
        case ORR_R_SINK_STEP_UNTIL + 4:
        case ORR_R_NOTE_OUT:
            return "only the host's own writes change it";
        case ORR_R_STATE:
        case ORR_R_BOOT_STATUS:
        case ORR_R_BOOT_DETAIL:
        case ORR_R_PROGRESS:
        case ORR_R_HEARTBEAT:
        case ORR_R_HEARTBEAT + 4:
        case ORR_R_HALT_CAUSE:
        case ORR_R_HALT_PC:
        case ORR_R_HALT_TVAL:
            break;
        default:
            return nullptr;
    }
    switch (card_.registers().state.load(std::memory_order_acquire)) {
        case ORR_STATE_RESET:
            return "the control core waits in reset: write ORR_R_BOOT_START";
        case ORR_STATE_BOOT_FAILED:
            return "the boot has failed (ORR_R_BOOT_STATUS says why): write ORR_R_RESET or "
                   "ORR_R_CORE_RESTART";
        case ORR_STATE_HALTED:
            return "the control core has halted (ORR_R_HALT_CAUSE): write ORR_R_RESET or ORR_R_CORE_RESTART";
        default:
            return nullptr;
    }
}

void HostRegisters::write(std::uint64_t offset, std::span<const std::byte> bytes) {
    watch_.other();
    bool good = bytes.size() >= 4;
    for (std::size_t at = 0; good && at < bytes.size(); at += 4) {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        good = write32(offset + at, value);
    }
    if (!good) nothing_there(offset, bytes.size(), "write");
}

bool HostRegisters::read_wide(std::uint64_t offset, std::uint64_t& value) const {
    const RegisterFile& file = card_.registers();
    const Sku& sku = card_.sku();
    if (offset >= ORR_R_COUNTER(0) && offset < ORR_R_COUNTER(ORR_COUNTER_COUNT)) {
        value = card_.counters().get(static_cast<unsigned>((offset - ORR_R_COUNTER(0)) / 8));
        return true;
    }
    if (offset >= ORR_R_SKU_NAME && offset < ORR_R_SKU_NAME + kSkuNameBytes) {
        std::array<char, kSkuNameBytes> name{};
        sku.name.copy(name.data(), name.size() - 1);
        std::memcpy(&value, name.data() + (offset - ORR_R_SKU_NAME), sizeof value);
        return true;
    }
    if (offset >= ORR_R_SKU && offset - ORR_R_SKU < sku_table_.size()) {
        std::memcpy(&value, sku_table_.data() + (offset - ORR_R_SKU), sizeof value);
        return true;
    }
    if (offset >= ORR_R_VECTOR_ISA && offset < ORR_R_VECTOR_ISA + ORR_ISA_BYTES) {
        std::array<char, ORR_ISA_BYTES> isa{};
        card_.vector_isa().copy(isa.data(), isa.size());
        std::memcpy(&value, isa.data() + (offset - ORR_R_VECTOR_ISA), sizeof value);
        return true;
    }
    switch (offset) {
        case ORR_R_UID:
            value = card_.config().uid;
            return true;
        case ORR_R_VRAM_SIZE:
            value = card_.config().vram_bytes;
            return true;
        case ORR_R_CORE_HZ:
            value = sku.core_hz;
            return true;
        case ORR_R_VECTOR_HZ:
            value = sku.vector_hz;
            return true;
        case ORR_R_MODEL_TIME:
            value = file.model_time.load(std::memory_order_acquire);
            return true;
        case ORR_R_HEARTBEAT:
            value = file.heartbeat.load(std::memory_order_acquire);
            return true;
        case ORR_R_HALT_CAUSE:
            value = file.halt_cause.load(std::memory_order_acquire);
            return true;
        case ORR_R_HALT_PC:
            value = file.halt_pc.load(std::memory_order_acquire);
            return true;
        case ORR_R_HALT_TVAL:
            value = file.halt_tval.load(std::memory_order_acquire);
            return true;
        case ORR_R_BOOT_IMAGE:
            value = boot_image_;
            return true;
        case ORR_R_BOOT_ARG:
            value = boot_arg_;
            return true;
        case ORR_R_BARRIER_RELEASE:
            value = barrier_.release;
            return true;
        case ORR_R_BARRIER_WORD:
            value = barrier_.word;
            return true;
        case ORR_R_MULTICAST_BASE:
            value = multicast_.base;
            return true;
        case ORR_R_SINK_BASE:
            value = sink_.base;
            return true;
        case ORR_R_SINK_TYPES:
            value = sink_.types;
            return true;
        case ORR_R_SINK_SET:
            value = sink_.set;
            return true;
        case ORR_R_SINK_STEP_FROM:
            value = sink_.step_from;
            return true;
        case ORR_R_SINK_STEP_UNTIL:
            value = sink_.step_until;
            return true;
        case ORR_R_SINK_SET_HIGH:
            value = sink_.set_high;
            return true;
        case ORR_R_BARRIER_STATES:
            value = file.barrier_states.load(std::memory_order_acquire);
            return true;
        default:
            return false;
    }
}

bool HostRegisters::read32(std::uint64_t offset, std::uint32_t& value) {
    if (offset >= kLinkFirst && offset < kLinkEnd) {
        const std::uint64_t at = offset - kLinkFirst;
        const auto port = static_cast<unsigned>(at / kLinkStride);
        return port < card_.sku().link_ports && read_link(port, at % kLinkStride, value);
    }
    if (offset >= kReachFirst && offset < kReachEnd) return read_reach(offset - kReachFirst, value);
    if (offset >= kSwitchesFirst && offset < kSwitchesEnd)
        return read_switches(offset - kSwitchesFirst, value);
    const RegisterFile& file = card_.registers();
    if (is_route(offset)) {
        value = file.routes[(offset - ORR_R_ROUTE(0)) / 4].load(std::memory_order_acquire);
        return true;
    }
    if (is_note(offset, ORR_R_NOTE_OUT)) {
        value = note_[(offset - ORR_R_NOTE_OUT) / 4];
        return true;
    }
    if (is_note(offset, ORR_R_NOTE_IN)) {
        value = card_.notes().first().words[(offset - ORR_R_NOTE_IN) / 4];
        return true;
    }
    const Sku& sku = card_.sku();
    switch (offset) {
        case ORR_R_BARRIER:
            value = ORR_BARRIER_SLOTS | ORR_BARRIER_MEMBERS << 16;
            return true;
        case ORR_R_BARRIER_MEMBER:
            value = barrier_.member;
            return true;
        case ORR_R_BARRIER_DONE:
            value = file.barriers_done.load(std::memory_order_acquire);
            return true;
        case ORR_R_BARRIER_FAULT:
            value = file.barrier_fault.load(std::memory_order_acquire);
            return true;
        case ORR_R_MULTICAST:
            value = ORR_MULTICASTS | ORR_MULTICAST_MEMBERS << 16;
            return true;
        case ORR_R_MULTICAST_MEMBER:
            value = multicast_.member;
            return true;
        case ORR_R_MULTICAST_DONE:
            value = file.multicasts_done.load(std::memory_order_acquire);
            return true;
        case ORR_R_MULTICAST_FAULT:
            value = file.multicast_fault.load(std::memory_order_acquire);
            return true;
        case ORR_R_SNAPSHOT_DONE:
            value = file.snapshot_done.load(std::memory_order_acquire);
            return true;
        case ORR_R_SINK:
            value = TraceSink::kLargest;
            return true;
        case ORR_R_SINK_ASK:
            value = sink_.ask;
            return true;
        case ORR_R_SINK_PERIOD:
            value = sink_.period;
            return true;
        case ORR_R_SINK_PC_PERIOD:
            value = sink_.pc_period;
            return true;
        case ORR_R_SINK_STEP_CORE:
            value = sink_.step_core;
            return true;
        case ORR_R_SINK_DONE:
            value = file.sinks_done.load(std::memory_order_acquire);
            return true;
        case ORR_R_SINK_FAULT:
            value = file.sink_fault.load(std::memory_order_acquire);
            return true;
        case ORR_R_NOTE_SENT:
            value = file.notes_sent.load(std::memory_order_acquire);
            return true;
        case ORR_R_NOTE_FAULT:
            value = file.note_fault.load(std::memory_order_acquire);
            return true;
        case ORR_R_NOTE_WAITING:
            value = card_.notes().waiting();
            return true;
        case ORR_R_NOTE_FROM:
            value = card_.notes().first().from;
            return true;
        case ORR_R_NOTE_DROPPED:
            value = card_.notes().dropped();
            return true;
        case ORR_R_ID:
            value = ORR_ID_MAGIC;
            return true;
        case ORR_R_HW_VERSION:
            value = ORR_HW_VERSION;
            return true;
        case ORR_R_COPY_ENGINES:
            value = sku.copy_engines;
            return true;
        case ORR_R_VECTOR_PORTS:
            value = sku.vector_ports;
            return true;
        case ORR_R_VECTOR_CORES:
            value = sku.vector_cores;
            return true;
        case ORR_R_LINK_PORTS:
            value = sku.link_ports;
            return true;
        case ORR_R_DOORBELL_PAGES:
            value = ORR_DB_PAGES;
            return true;
        case ORR_R_COUNTERS:
            value = ORR_COUNTER_COUNT;
            return true;
        case ORR_R_SAVE_BYTES:
            value = static_cast<std::uint32_t>(save_area_bytes(sku.vector_cores, sku.vector_vlen));
            return true;
        case ORR_R_SKU_BYTES:
            value = sku_bytes_;
            return true;
        case ORR_R_VECTOR_VLEN:
            value = card_.vector_vlen();
            return true;
        case ORR_R_STATE:
            value = file.state.load(std::memory_order_acquire);
            return true;
        case ORR_R_CHECKS:
            static_assert(kCheckRace == ORR_CHECKS_RACE && kCheckMemory == ORR_CHECKS_MEMORY);
            value = card_.config().check;
            return true;
        case ORR_R_PLATFORM:
            value = (card_.config().host_atomics ? ORR_PLATFORM_ATOMICS : 0) |
                    (card_.config().lockstep.empty() ? 0 : ORR_PLATFORM_IN_STEP);
            return true;
        case ORR_R_NODE:
            value = file.node.load(std::memory_order_acquire);
            return true;
        case ORR_R_ROUTE_KEYS:
            value = file.route_keys.load(std::memory_order_acquire);
            return true;
        case ORR_R_HELD:
            value = file.held.load(std::memory_order_acquire);
            return true;
        case ORR_R_RESET_COUNT:
            value = file.reset_count.load(std::memory_order_acquire);
            return true;
        case ORR_R_BOOT_SIZE:
            value = boot_size_;
            return true;
        case ORR_R_BOOT_STATUS:
            value = file.boot_status.load(std::memory_order_acquire);
            return true;
        case ORR_R_BOOT_DETAIL:
            value = file.boot_detail.load(std::memory_order_acquire);
            return true;
        case ORR_R_PROGRESS:
            value = file.progress.load(std::memory_order_acquire);
            return true;
        case ORR_R_IRQ_STATUS:
            value = file.irq_status.load(std::memory_order_acquire);
            return true;
        case ORR_R_IRQ_MASK:
            value = file.irq_mask.load(std::memory_order_acquire);
            return true;
        default:
            break;
    }
    std::uint64_t wide = 0;
    if (!read_wide(offset & ~std::uint64_t{7}, wide)) return false;
    value = half(wide, (offset & 4) != 0);
    return true;
}

bool HostRegisters::read_link_count(unsigned port, std::uint64_t reg, std::uint32_t& value) const {
    const auto count_of = [reg](const link::Counts& counts) -> const link::Count* {
        switch (reg) {
            case ORR_R_LINK_CRC_ERRORS:
                return &counts.crc_errors;
            case ORR_R_LINK_RETRIES:
                return &counts.retries;
            case ORR_R_LINK_RETRAINS:
                return &counts.retrains;
            case ORR_R_LINK_CHANGES:
                return &counts.changes;
            case ORR_R_LINK_DENIED:
                return &counts.denied;
            case ORR_R_LINK_BAD_KEYS:
                return &counts.bad_keys;
            case ORR_R_LINK_BAD_KEY_BY:
                return &counts.bad_key_by;
            case ORR_R_LINK_REFUSED:
                return &counts.refused;
            case ORR_R_LINK_REFUSED_BY:
                return &counts.refused_by;
            case ORR_R_LINK_TX_MESSAGES:
            case ORR_R_LINK_TX_MESSAGES + 4:
                return &counts.tx_messages;
            case ORR_R_LINK_TX_BYTES:
            case ORR_R_LINK_TX_BYTES + 4:
                return &counts.tx_bytes;
            case ORR_R_LINK_RX_MESSAGES:
            case ORR_R_LINK_RX_MESSAGES + 4:
                return &counts.rx_messages;
            case ORR_R_LINK_RX_BYTES:
            case ORR_R_LINK_RX_BYTES + 4:
                return &counts.rx_bytes;
            default:
                return nullptr;
        }
    };
    static const link::Counts none{};
    const link::Counts* const counts = card_.link_counts(port);
    const link::Count* const count = count_of(counts != nullptr ? *counts : none);
    if (count == nullptr) return false;
    const bool wide = reg >= ORR_R_LINK_TX_MESSAGES && reg < ORR_R_LINK_RX_BYTES + 8;
    value = half(count->get(), wide && (reg & 4) != 0);
    return true;
}

bool HostRegisters::read_reach(std::uint64_t at, std::uint32_t& value) const {
    const RegisterFile::Reach& reach =
        card_.registers().reach[at / kReachStride][at % kReachStride / kReachBytes];
    switch (at % kReachBytes) {
        case ORR_REACH_HOW:
        case ORR_REACH_LATENCY_NS:
            value = half(reach.how.load(std::memory_order_acquire), at % kReachBytes != 0);
            return true;
        case ORR_REACH_FABRIC:
        case ORR_REACH_FABRIC + 4:
            value = half(reach.fabric.load(std::memory_order_relaxed), at % 8 != 0);
            return true;
        case ORR_REACH_MBPS:
            value = reach.mbps.load(std::memory_order_relaxed);
            return true;
        default:
            return false;
    }
}

// Between the words of a place and the next one there is nothing, and who reads all reads that too.
bool HostRegisters::read_switches(std::uint64_t at, std::uint32_t& value) const {
    const RegisterFile::Switches& all = card_.registers().switches[at / ORR_SWITCHES_BYTES];
    const std::uint64_t reg = at % ORR_SWITCHES_BYTES;
    value = 0;
    if (reg % 4 != 0) return false;
    if (reg == ORR_SWITCHES_VERSION) value = all.version.load(std::memory_order_acquire);
    if (reg < ORR_SWITCHES_PLACE(0)) return true;
    constexpr std::uint64_t kPlace = ORR_SWITCHES_PLACE(1) - ORR_SWITCHES_PLACE(0);
    const auto& place = all.places[(reg - ORR_SWITCHES_PLACE(0)) / kPlace];
    const std::uint64_t word = reg % kPlace / 8;
    if (word < place.size()) value = half(place[word].load(std::memory_order_acquire), (reg & 4) != 0);
    return true;
}

bool HostRegisters::read_link(unsigned port, std::uint64_t reg, std::uint32_t& value) const {
    const RegisterFile::Link& link = card_.registers().links[port];
    const bool upper = (reg & 4) != 0;
    switch (reg) {
        case ORR_R_LINK_STATE:
            value = link.state.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_LANES:
            value = link.lanes.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_PEER_UID:
        case ORR_R_LINK_PEER_UID + 4:
            value = half(link.peer_uid.load(std::memory_order_acquire), upper);
            return true;
        case ORR_R_LINK_PEER_PORT:
            value = link.peer_port.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_GBPS:
            value = card_.sku().link_gbps;
            return true;
        case ORR_R_LINK_LATENCY_NS:
            value = card_.sku().link_latency_ns;
            return true;
        case ORR_R_LINK_FORWARD_NS:
            value = card_.sku().link_forward_ns;
            return true;
        case ORR_R_LINK_BUILT:
            value = card_.sku().link_lanes;
            return true;
        case ORR_R_LINK_MBPS:
            value = link.mbps.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_CONTROL:
            value = link.control.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_RESETS:
            value = link.resets.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_DRAINED:
            value = link.drained.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_SWITCH:
            value = link.peer_switch.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_REACH_VERSION:
            value = link.reach_version.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_LOSSES:
            value = link.losses.load(std::memory_order_acquire);
            return true;
        case ORR_R_LINK_GRANT_BASE:
        case ORR_R_LINK_GRANT_BASE + 4:
            value = half(grants_[port].base, upper);
            return true;
        case ORR_R_LINK_GRANT_SIZE:
        case ORR_R_LINK_GRANT_SIZE + 4:
            value = half(grants_[port].size, upper);
            return true;
        case ORR_R_LINK_GRANT_NODE:
            value = grants_[port].node;
            return true;
        case ORR_R_LINK_GRANT_RIGHTS:
            value = grants_[port].rights;
            return true;
        case ORR_R_LINK_GRANT_DONE:
            value = link.grants_done.load(std::memory_order_acquire);
            return true;
        default:
            return read_link_count(port, reg, value);
    }
}

std::uint64_t* HostRegisters::wide_storage(std::uint64_t offset) {
    switch (offset) {
        case ORR_R_BOOT_IMAGE:
            return &boot_image_;
        case ORR_R_BOOT_ARG:
            return &boot_arg_;
        case ORR_R_BARRIER_KEY:
            return &barrier_.key;
        case ORR_R_BARRIER_RELEASE:
            return &barrier_.release;
        case ORR_R_BARRIER_WORD:
            return &barrier_.word;
        case ORR_R_MULTICAST_BASE:
            return &multicast_.base;
        case ORR_R_SINK_BASE:
            return &sink_.base;
        case ORR_R_SINK_TYPES:
            return &sink_.types;
        case ORR_R_SINK_SET:
            return &sink_.set;
        case ORR_R_SINK_SET_HIGH:
            return &sink_.set_high;
        case ORR_R_SINK_STEP_FROM:
            return &sink_.step_from;
        case ORR_R_SINK_STEP_UNTIL:
            return &sink_.step_until;
        default:
            return nullptr;
    }
}

bool HostRegisters::write32(std::uint64_t offset, std::uint32_t value) {
    if (offset >= kLinkFirst && offset < kLinkEnd) {
        const std::uint64_t at = offset - kLinkFirst;
        const auto port = static_cast<unsigned>(at / kLinkStride);
        return port < card_.sku().link_ports && write_link(port, at % kLinkStride, value);
    }
    if (is_route(offset)) {
        if (!Peers::is_route(value, card_.sku().link_ports)) return false;
        card_.post({.kind = Command::Kind::kRoute,
                    .number = static_cast<std::uint32_t>((offset - ORR_R_ROUTE(0)) / 4),
                    .a = value});
        return true;
    }
    if (offset >= kKeyFirst && offset < kKeyEnd) {
        const auto node = static_cast<std::uint32_t>((offset - ORR_R_ROUTE_KEY(0)) / 8);
        set_half(route_keys_[node], (offset & 4) != 0, value);
        if ((offset & 4) != 0)
            card_.post({.kind = Command::Kind::kRouteKey, .number = node, .a = route_keys_[node]});
        return true;
    }
    if (is_note(offset, ORR_R_NOTE_OUT)) {
        note_[(offset - ORR_R_NOTE_OUT) / 4] = value;
        return true;
    }
    RegisterFile& file = card_.registers();
    switch (offset) {
        case ORR_R_NOTE_SEND:
            if ((value & 0xffff) >= card_.sku().link_ports || value >> ORR_NOTE_NODE_SHIFT >= ORR_NODES)
                return false;
            card_.post({.kind = Command::Kind::kNote,
                        .number = value & 0xffff,
                        .a = value >> ORR_NOTE_NODE_SHIFT,
                        .note = note_});
            return true;
        case ORR_R_BARRIER_MEMBER:
            barrier_.member = value;
            return true;
        case ORR_R_BARRIER_CMD:
            card_.post({.kind = Command::Kind::kBarrier,
                        .number = value,
                        .a = barrier_.member,
                        .b = barrier_.release,
                        .c = barrier_.word,
                        .d = barrier_.key});
            return true;
        case ORR_R_MULTICAST_MEMBER:
            multicast_.member = value;
            return true;
        case ORR_R_MULTICAST_CMD:
            card_.post({.kind = Command::Kind::kMulticast,
                        .number = value,
                        .a = multicast_.member,
                        .b = multicast_.base});
            return true;
        case ORR_R_SNAPSHOT:
            set_half(snapshot_, false, value);
            return true;
        case ORR_R_SNAPSHOT + 4:
            set_half(snapshot_, true, value);
            card_.post({.kind = Command::Kind::kSnapshot, .a = snapshot_});
            return true;
        case ORR_R_SINK_BYTES:
            card_.post({.kind = Command::Kind::kSink, .number = value, .a = sink_.base, .b = sink_.types});
            return true;
        case ORR_R_SINK_ASK:
            sink_.ask = value & ORR_SINK_ASK_JOBS;
            card_.post({.kind = Command::Kind::kSinkAsk, .number = sink_.ask});
            return true;
        case ORR_R_SINK_PERIOD:
            sink_.period = value == 0 ? 0 : std::max(value, ORR_SINK_PERIOD_MIN);
            card_.post({.kind = Command::Kind::kSample,
                        .number = sink_.period,
                        .a = sink_.set,
                        .b = sink_.set_high});
            return true;
        case ORR_R_SINK_PC_PERIOD:
            sink_.pc_period = value == 0 ? 0 : std::max(value, ORR_SINK_PC_PERIOD_MIN);
            card_.post({.kind = Command::Kind::kSamplePc, .number = sink_.pc_period});
            return true;
        case ORR_R_SINK_STEP_CORE:
            sink_.step_core = value;
            card_.post({.kind = Command::Kind::kTraceCore,
                        .number = sink_.step_core,
                        .a = sink_.step_from,
                        .b = sink_.step_until});
            return true;
        case ORR_R_NOTE_TAKE:
            if (value != 1) return false;
            card_.notes().take();
            return true;
        case ORR_R_NODE:
            if (value >= ORR_NODES) return false;
            card_.post({.kind = Command::Kind::kNode, .number = value});
            return true;
        case ORR_R_RESET:
            if (value != ORR_RESET_MAGIC) return false;
            reset();
            return true;
        case ORR_R_CORE_RESTART:
            if (value != ORR_RESTART_MAGIC) return false;
            card_.post({.kind = Command::Kind::kRestartCore});
            return true;
        case ORR_R_BOOT_SIZE:
            boot_size_ = value;
            return true;
        case ORR_R_BOOT_START:
            if (value != 1) return false;
            card_.post(
                {.kind = Command::Kind::kBootStart, .a = boot_image_, .b = boot_size_, .c = boot_arg_});
            return true;
        case ORR_R_IRQ_STATUS:
            file.irq_status.fetch_and(~value, std::memory_order_acq_rel);
            return true;
        case ORR_R_IRQ_MASK:
            file.irq_mask.store(value & ((1u << ORR_IRQ_VECTORS) - 1), std::memory_order_release);
            return true;
        case ORR_R_MBOX_DOORBELL:
            card_.post({.kind = Command::Kind::kMailbox});
            return true;
        default:
            break;
    }
    std::uint64_t* word = wide_storage(offset & ~std::uint64_t{7});
    if (word == nullptr) return false;
    set_half(*word, (offset & 4) != 0, value);
    return true;
}

bool HostRegisters::write_link(unsigned port, std::uint64_t reg, std::uint32_t value) {
    Grant& grant = grants_[port];
    const bool upper = (reg & 4) != 0;
    switch (reg) {
        case ORR_R_LINK_GRANT_BASE:
        case ORR_R_LINK_GRANT_BASE + 4:
            set_half(grant.base, upper, value);
            return true;
        case ORR_R_LINK_GRANT_SIZE:
        case ORR_R_LINK_GRANT_SIZE + 4:
            set_half(grant.size, upper, value);
            return true;
        case ORR_R_LINK_GRANT_NODE:
            if (value == 0 || value >= ORR_NODES) return false;
            grant.node = value;
            return true;
        case ORR_R_LINK_GRANT_RIGHTS:
            if ((value & ~ORR_LINK_RIGHTS) != 0) return false;
            grant.rights = value;
            return true;
        case ORR_R_LINK_GRANT_KEY:
        case ORR_R_LINK_GRANT_KEY + 4:
            set_half(grant.key, upper, value);
            return true;
        case ORR_R_LINK_CONTROL:
            if (!is_link_control(value)) return false;
            card_.post({.kind = Command::Kind::kForward, .number = port, .a = value});
            return true;
        case ORR_R_LINK_DRAIN:
            if (value != 1 && value != ORR_LINK_DRAIN_FORCED) return false;
            card_.post({.kind = Command::Kind::kDrain,
                        .number = port,
                        .a = value == ORR_LINK_DRAIN_FORCED ? 1u : 0u});
            return true;
        case ORR_R_LINK_RESET:
            if (value != 1) return false;
            card_.post({.kind = Command::Kind::kLinkReset, .number = port});
            return true;
        case ORR_R_LINK_GRANT_CMD:
            card_.post({.kind = Command::Kind::kGrant,
                        .number = port | grant.node << 16,
                        .a = grant.base,
                        .b = grant.size,
                        .c = value | std::uint64_t{grant.rights} << Command::kRightsShift,
                        .d = grant.key});
            return true;
        default:
            return false;
    }
}

void HostRegisters::clear() {
    boot_image_ = boot_arg_ = 0;
    boot_size_ = 0;
    barrier_ = {};
    multicast_ = {};
    snapshot_ = 0;
    sink_ = {};
    grants_ = {};
    route_keys_ = {};
    note_ = {};
    card_.notes().clear();
}

void HostRegisters::reset() {
    clear();
    card_.post({.kind = Command::Kind::kReset});
}

}  // namespace orrery::emu
