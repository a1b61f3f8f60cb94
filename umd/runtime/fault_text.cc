#include "umd/runtime/fault_text.h"

#include <orrery/fw/failure.h>
#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>

#include <orrery/hw/engine.h>
#include <orrery/hw/kernel_abi.h>
#include <orrery/hw/mmu.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "umd/runtime/bytes.h"
#include "umd/runtime/context.h"
#include "umd/runtime/fleet.h"
#include "umd/runtime/link_text.h"
#include "umd/runtime/packets.h"

namespace orrery::umd {
namespace {

const char* fault_name(std::uint64_t fault) {
    switch (fault) {
        case ORR_FAULT_NO_CONTEXT:
            return "in an address space that is gone";
        case ORR_FAULT_NON_CANONICAL:
            return "beyond the card's 48-bit addresses";
        case ORR_FAULT_NOT_MAPPED:
            return "where nothing is mapped";
        case ORR_FAULT_PERMISSION:
            return "against the memory's protection (code is not writable, data cannot run)";
        case ORR_FAULT_RESERVED_BIT:
            return "through a malformed page table entry";
        case ORR_FAULT_TABLE_RANGE:
            return "through a page table outside the card's memory";
        case ORR_FAULT_PAGE_RANGE:
            return "to a page that is neither card memory nor mapped for DMA";
        case ORR_FAULT_PEER_READ:
            return "reading another card's memory where only copies and kernels do (copy it here first)";
        case ORR_FAULT_PEER_DOWN:
            return "over a link that is down";
        case ORR_FAULT_PEER_DENIED:
            return "to memory that its owner has not opened to this card";
        case ORR_FAULT_PEER_KEY:
            return "to memory that its owner has opened to this card with another key (was it bound anew?)";
        case ORR_FAULT_MISALIGNED:
            return "with wrong alignment";
        case ORR_FAULT_PEER_BUSY:
            return "over a link whose other end takes no more signals now";
        case ORR_FAULT_ATOMIC:
            return "with an atomic on host memory, which needs AtomicOps of PCIe";
        case ORR_FAULT_NO_ROUTE:
            return "to memory of another card, to which no link leads any more (is it lost, or was its "
                   "driver bound anew?)";
        default:
            return "for an unknown reason";
    }
}

// "; use card memory …", of what needed AtomicOps.
const char* instead_of_atomics(const QueueState& state, const Context& context) {
    if (state.error_detail != ORR_FAULT_ATOMIC) return "";
    if (context.host_atomics())
        return "; they are switched off in PCIe Device Control 2, where the driver had switched them on: "
               "bind "
               "it again";
    return switches_atomics_on(context.winsys())
               ? "; the platform completes none (host_atomics of orrGetDeviceProperties): use card memory"
               : "; a driver before 1.4 does not switch them on: load the module of this release, or use "
                 "card "
                 "memory";
}

// The card only says that its page tables do not allow it.
std::string why_refused(const QueueState& state, OpNote note, const orr_packet& packet,
                        const Context& context) {
    const auto memory = context.memory().find(state.error_address);
    // It is over, whatever was to be done with it.
    if (state.error_detail == ORR_FAULT_NO_ROUTE) {
        const std::string lost = lost_of_multicast(context, state.error_address);
        if (!lost.empty()) return fault_name(state.error_detail) + lost;
    }
    if (memory && memory->elsewhere && state.error_detail == ORR_FAULT_PERMISSION)
        return memory->block->members.empty() ? "reading another machine's memory, which can be written only"
                                              : "reading a multicast, which can be written only";
    // One that may read it has lost its way.
    if (memory && memory->elsewhere && memory->block->combines && state.error_detail == ORR_FAULT_NO_ROUTE &&
        packet.header.opcode != ORR_PKT_REDUCE)
        return "reading a multicast, which only copies with reduction do";
    if (note.op == Op::kKernel && memory && memory->device != kHost && memory->device != context.device()) {
        const auto refused = context.memory().peer_refusal(context.device(), *memory);
        if (state.error_detail == ORR_FAULT_NOT_MAPPED && refused)
            return fmt::format("in another card's memory ({})", refused->text);
        if (state.error_detail == ORR_FAULT_PERMISSION || state.error_detail == ORR_FAULT_PEER_READ)
            return fmt::format(
                "in memory of device {}, which this device reaches with copies only (kernels do from "
                "hardware 2.4 on, and only read where copies do)",
                memory->device);
        if (state.error_detail != ORR_FAULT_PEER_DOWN && state.error_detail != ORR_FAULT_NO_ROUTE)
            return fmt::format("{} (memory of device {})", fault_name(state.error_detail), memory->device);
    }
    if (state.error_detail == ORR_FAULT_PEER_DOWN || state.error_detail == ORR_FAULT_NO_ROUTE)
        return fault_name(state.error_detail) + beyond_link(context, state.error_address);
    return fault_name(state.error_detail);
}

// What a card may say of another one's memory, when it cannot be reached.
bool is_of_peer(const QueueState& state) {
    switch (state.error_detail) {
        case ORR_FAULT_PEER_DOWN:
        case ORR_FAULT_PEER_DENIED:
        case ORR_FAULT_NO_ROUTE:
        case ORR_FAULT_PEER_BUSY:
        case ORR_FAULT_PEER_KEY:
            return true;
        default:
            return false;
    }
}

struct LostOwner {
    std::string who;
    Error loss;
};

// The cause, if it is that a card which has the memory is gone, of a multicast one of its members: the card
// that went there knows of its way only, the driver of both.
std::optional<LostOwner> lost_owner(const QueueState& state, const Context& context) {
    const auto memory = context.memory().find(state.error_address);
    if (!is_of_peer(state) || !memory) return std::nullopt;
    const bool no_way = state.error_detail == ORR_FAULT_NO_ROUTE || state.error_detail == ORR_FAULT_PEER_DOWN;
    const auto has_it = [&](const Context& card) {
        if (!memory->elsewhere) return card.device() == memory->device;
        const auto& members = memory->block->members;
        return no_way && std::ranges::find(members, card.device(), &MulticastWay::device) != members.end();
    };
    for (Context* const owner : context.fleet().contexts()) {
        if (owner == &context || !has_it(*owner)) continue;
        if (auto loss = owner->ask())
            return LostOwner{memory->elsewhere ? fmt::format("device {}", owner->device()) : "that device",
                             *std::move(loss)};
    }
    return std::nullopt;
}

// "; card 512 of another machine has it: …", of memory of one that was not reached; else nothing.
std::string abroad(const QueueState& state, const Context& context) {
    const Abroad there = context.memory().abroad(state.error_address);
    if (!is_of_peer(state) || there.node == 0) return {};
    const std::string who = fmt::format("; card {} of another machine has it: ", there.node);
    const auto link = there.known ? context.winsys().link(there.port) : fail(orrErrorSystem, "not known");
    if (!link) return who + "no way there was known";
    const std::string port = fmt::format("the link from port {} of device {}, by which it was reached, ",
                                         there.port, there.device);
    if (!is_up(*link)) return who + port + "is down";
    if (link->losses != there.losses) return who + port + "went down, and is up again: import it anew";
    return fmt::format("{}{}is up: its owner shares it no more, or it was lost behind a switch", who, port);
}

const char* trap_name(std::uint64_t cause) {
    switch (cause) {
        case 0:
            return "instruction address misaligned";
        case 1:
            return "it jumped to where no code is";
        case 2:
            return "illegal instruction (or a CSR that a kernel may not use)";
        case 3:
            return "ebreak (__builtin_trap)";
        case 4:
            return "misaligned load";
        case 5:
            return "bad load";
        case 6:
            return "misaligned store or atomic";
        case 7:
            return "bad store";
        case 8:
        case 11:
            return "ecall: kernels have no system calls";
        default:
            return "unknown cause";
    }
}

std::string subject(OpNote note) {
    switch (note.op) {
        case Op::kKernel:
            return fmt::format("kernel '{}'", note.name == nullptr ? "?" : printable(note.name));
        case Op::kCopy:
            return "a copy";
        case Op::kFill:
            return "a memset";
        case Op::kWait:
            return "a semaphore wait";
        case Op::kSignal:
            return "a semaphore signal or event record";
        case Op::kNone:
            break;
    }
    return "a packet";
}

// "(1, 0, 2)", or "1" in one dimension.
std::string coordinates(std::uint64_t number, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    // The packet may have been written over since.
    if (y * z <= 1 || x == 0) return fmt::format("{}", number);
    return fmt::format("({}, {}, {})", number % x, number / x % y, number / x / y);
}

// ", group 7, item 3", of a kernel; else nothing.
std::string failing_item(const QueueState& state, OpNote note, const orr_packet& packet) {
    if (note.op != Op::kKernel || state.error_item == ~std::uint64_t{0}) return {};
    std::uint64_t group = state.error_item >> ORR_DONE_ITEM_BITS;
    std::uint64_t item = state.error_item & ((1u << ORR_DONE_ITEM_BITS) - 1);
    if (packet.header.opcode != ORR_PKT_DISPATCH ||
        packet.header.tag != static_cast<std::uint32_t>(state.error_index))
        return fmt::format(", group {}, item {}", group, item);
    const auto d = std::bit_cast<orr_packet_dispatch>(packet);
    return fmt::format(", group {}, item {}", coordinates(group, d.grid_x, d.grid_y, d.grid_z),
                       coordinates(item, d.block_x, d.block_y, d.block_z));
}

// Nothing: the module has no text there.
std::optional<std::string> text_at(std::uint64_t va, const Context& context) {
    const auto pointer = context.word_of_code(va);
    const auto text = pointer ? context.text_of_code(*pointer) : std::nullopt;
    return text ? std::optional(printable(*text)) : std::nullopt;
}

// "sum (kernel.cc:12)" of what __builtin_source_location() gives.
std::string source_place(std::uint64_t va, const Context& context) {
    const auto file = text_at(va, context), function = text_at(va + 8, context);
    const auto line = context.word_of_code(va + 16);
    if (!file || !function || !line) return fmt::format("{:#x}", va);
    return fmt::format("{}:{} ({})", *file, static_cast<std::uint32_t>(*line), *function);
}

// Nothing: the cause is the card's own.
std::optional<std::string> broken_promise(const QueueState& state, const Context& context) {
    const std::uint64_t what = state.error_address;
    const auto here = [&] { return source_place(what, context); };
    switch (state.error_detail) {
        case ORR_TRAP_ASSERT: {
            const auto expression = text_at(what, context);
            const auto line = context.word_of_code(what + 24);
            if (!expression || !line) return "failed an assertion that its module does not have";
            return fmt::format("failed the assertion '{}' at {}:{}, in {}", *expression,
                               text_at(what + 8, context).value_or("?"), *line,
                               text_at(what + 16, context).value_or("?"));
        }
        case ORR_TRAP_BARRIER_OTHER:
            return fmt::format(
                "came to the barrier at {} while the items before it wait at that at {}: all "
                "items of a group must come to the same barriers",
                here(), source_place(state.error_other, context));
        case ORR_TRAP_BARRIER_ENDED:
            return fmt::format(
                "ended while the items before it wait at the barrier at {}: all items of a group "
                "must come to it",
                here());
        case ORR_TRAP_BARRIER_LATE:
            return fmt::format(
                "came to the barrier at {} when the items before it had ended without it: all "
                "items of a group must come to it",
                here());
        case ORR_TRAP_BARRIER_STACKS:
            return "came to a barrier, and its launch has no stacks for items that wait: call orr::barrier() "
                   "of "
                   "<orrery/kernel.h>, which tells the loader";
        default:
            return std::nullopt;
    }
}

// " at pc 0x… (gemm.cc:42, …)", of a kernel's load or store; nothing of a jump, whose pc is the address.
std::string faulting_code(const QueueState& state, OpNote note, const Context& context) {
    if (note.op != Op::kKernel || state.error_other == 0 || state.error_other == state.error_address)
        return {};
    return fmt::format(" at pc {:#x}{}", state.error_other, context.describe_code(state.error_other));
}

// " (copy 150 of 200, counted from 0)", of a batch that was not done to its end; else nothing.
std::string failing_copy(const QueueState& state, const orr_packet& packet, std::span<const std::byte> args) {
    if (packet.header.opcode != ORR_PKT_COPIES || (packet.header.flags & ORR_PKT_F_LONG) != 0 ||
        packet.header.tag != static_cast<std::uint32_t>(state.error_index))
        return {};
    const auto copies = std::bit_cast<orr_packet_copies>(packet);
    const std::uint64_t entry = (state.error_other - copies.list) / sizeof(orr_copy_entry);
    if (state.error_other < copies.list || entry >= copies.entries) return {};
    // The caller's numbers, which stand behind the list: see copy_batch().
    const std::uint64_t start = copies.list - reinterpret_cast<std::uintptr_t>(args.data());
    const std::uint64_t list = copies.entries * sizeof(orr_copy_entry);
    const std::uint64_t size = list + copies.entries * sizeof(BatchCopy);
    if (start > args.size() || size > args.size() - start) return {};
    BatchCopy copy;
    std::memcpy(&copy, args.data() + start + list + entry * sizeof copy, sizeof copy);
    return fmt::format(" (copy {} of {}, counted from 0)", copy.number, copy.count);
}

// A kernel may also run over its stack or its group memory, which lie above all other addresses.
std::string place(std::uint64_t address, const orr_packet& packet, Context& context) {
    constexpr std::uint64_t kItemStacksEnd = ORR_ITEM_STACKS + 1024ull * ORR_ITEM_STACK_STRIDE;
    if (address >= ORR_ITEM_STACKS && address < kItemStacksEnd) {
        const auto dispatch = packet.header.opcode == ORR_PKT_DISPATCH
                                  ? std::bit_cast<orr_packet_dispatch>(packet)
                                  : orr_packet_dispatch{};
        const std::uint64_t item = (address - ORR_ITEM_STACKS) / ORR_ITEM_STACK_STRIDE;
        const std::uint64_t items = std::uint64_t{dispatch.block_x} * dispatch.block_y * dispatch.block_z;
        if (items != 0 && item >= items)
            return fmt::format("on the stack of item {} of a group of {}: does group_shuffle() ask for it?",
                               item, items);
        return fmt::format(
            "below the stack of item {}, of {} bytes: a stack overflow? Kernels with barriers get "
            "more by ORR_ITEM_STACK(kernel, bytes)",
            item, std::uint64_t{dispatch.item_stack_pages} * ORR_PAGE_SIZE);
    }
    if (address >= ORR_STACK_TOP - 2 * ORR_STACK_BYTES && address < ORR_STACK_TOP + ORR_STACK_BYTES) {
        return fmt::format("beside the work-item's stack of {} bytes: a stack overflow?", ORR_STACK_BYTES);
    }
    if (address >= ORR_LOCAL_BASE && address < ORR_LOCAL_BASE + 16ull * ORR_LOCAL_BYTES) {
        return fmt::format(
            "byte {} of work-group memory: ask for more local_bytes at the launch (at most {})",
            address - ORR_LOCAL_BASE, ORR_LOCAL_BYTES);
    }
    return context.memory().describe(address);
}

// What a card that checks kernels found in one; nothing: the cause is another.
std::optional<std::string> finding(const QueueState& state, const orr_packet& packet, Context& context) {
    const std::uint64_t cause = state.error_detail & 0xffff;
    if (cause < ORR_TRAP_RACE || cause > ORR_TRAP_RACE_BESIDE) return std::nullopt;
    const auto bits = [&](unsigned from, unsigned count) {
        return state.error_detail >> from & ((std::uint64_t{1} << count) - 1);
    };
    const auto address =
        static_cast<std::uint64_t>(static_cast<std::int64_t>(state.error_address << 16) >> 16);
    const bool in_card_memory = address >> (ORR_VA_BITS - 1) == 0;
    const auto verb = [](std::uint64_t kind) {
        return kind == ORR_CHECK_STORE ? "writes" : kind == ORR_CHECK_ATOMIC ? "uses atomically" : "reads";
    };
    const std::uint64_t entry = packet.header.opcode == ORR_PKT_DISPATCH &&
                                        packet.header.tag == static_cast<std::uint32_t>(state.error_index)
                                    ? std::bit_cast<orr_packet_dispatch>(packet).entry
                                    : 0;
    const auto at = [&](std::uint64_t distance) {
        if ((distance & 0xffffffff) == ORR_CHECK_FAR)
            return std::string("in a module that is far from this one");
        const auto pc = entry + static_cast<std::uint64_t>(std::int64_t{
                                    static_cast<std::int32_t>(static_cast<std::uint32_t>(distance))});
        return fmt::format("at pc {:#x}{}", pc, context.describe_code(pc));
    };
    const std::string bytes =
        fmt::format("{} byte{} at {:#x}", bits(20, 8), bits(20, 8) == 1 ? "" : "s", address);
    const auto where = [&] {
        if (address >= ORR_LOCAL_BASE && address < ORR_LOCAL_BASE + ORR_LOCAL_BYTES)
            return fmt::format("byte {} of work-group memory", address - ORR_LOCAL_BASE);
        if (address >= ORR_ITEM_STACKS || address >= ORR_STACK_TOP - ORR_STACK_BYTES)
            return std::string("a work-item's stack");
        return context.memory().describe(address);
    };
    const std::string self =
        fmt::format("item {} of group {} {} {}", state.error_item & ((1u << ORR_DONE_ITEM_BITS) - 1),
                    state.error_item >> ORR_DONE_ITEM_BITS, verb(bits(18, 2)), at(state.error_other));
    std::string text;
    if (cause == ORR_TRAP_RACE || cause == ORR_TRAP_RACE_BESIDE) {
        constexpr std::uint64_t kNoRoom = (1u << 26) - 1;
        const std::uint64_t group = bits(38, 26);
        text = fmt::format("has a race on {} ({}): {}; item {} of {}{} {} {}; nothing orders the two", bytes,
                           where(), self, bits(28, 10),
                           group == kNoRoom ? "a later group" : fmt::format("group {}", group),
                           cause == ORR_TRAP_RACE_BESIDE ? " of a launch beside this one" : "",
                           verb(bits(16, 2)), at(state.error_other >> 32));
    } else if (cause == ORR_TRAP_OUTSIDE) {
        text = in_card_memory
                   ? fmt::format("uses {}, which are in no allocation: {}: {}", bytes, where(), self)
                   : fmt::format("uses {} ({}), beyond what its launch asked for: {}", bytes, where(), self);
    } else if (cause == ORR_TRAP_BELOW_STACK) {
        text = fmt::format("uses {} below its stack pointer: {}", bytes, self);
    } else {
        text = in_card_memory ? fmt::format("uses {} that nobody wrote ({}): {}", bytes, where(), self)
                              : fmt::format("uses {} of its stack that it never wrote: {}", bytes, self);
    }
    const std::uint64_t findings = state.error_address >> 48;
    if (findings > 1)
        text += fmt::format(". {} more finding{} of this launch {} in the card's log", findings - 1,
                            findings == 2 ? "" : "s", findings == 2 ? "is" : "are");
    return text;
}

template <std::size_t N>
std::string name_of(const __u8 (&name)[N]) {
    const auto* text = reinterpret_cast<const char*>(name);
    return std::string(text, ::strnlen(text, N));
}

// A queue of an edge: ours have a number, other processes of ours at least a name.
std::string stream_of(std::uint32_t number, const std::string& name) {
    if (number != 0) return fmt::format("stream '{}'", name);
    if (!name.empty()) return fmt::format("stream '{}' of another process", name);
    return "a stream of another user";
}

}  // namespace

std::optional<Error> describe_deadlock(Context& context) {
    auto edges = context.winsys().deadlock();
    if (!edges) return edges.error();
    if (edges->empty()) return std::nullopt;
    std::string text = fmt::format("deadlock of {} stream{} on device {}:", edges->size(),
                                   edges->size() == 1 ? "" : "s", context.device());
    for (const drm_orr_wait_edge& edge : *edges) {
        text += fmt::format(" {} waits for ", stream_of(edge.queue, name_of(edge.queue_name)));
        if (edge.queue != 0) {
            text += fmt::format("{} to reach {} (it is {})", context.describe_semaphore(edge.semaphore),
                                edge.wanted, edge.value);
        } else {
            text += "a semaphore";
        }
        text += fmt::format(", which {} would signal later;",
                            stream_of(edge.signaller, name_of(edge.signaller_name)));
    }
    text +=
        " nothing of it has been stopped: signal one of them from the host (orrSemaphoreSignal) or from "
        "another stream, or destroy a stream";
    return Error{orrErrorDeadlock, std::move(text)};
}

Error describe_foreign_failure(std::uint64_t word, const std::string& where) {
    struct Known {
        orrError_t code;
        const char* what;
    };
    const auto known = [](std::uint32_t code) -> Known {
        switch (code) {
            case ORR_QERR_FAULT:
            case ORR_QERR_RING_FAULT:
                return {orrErrorIllegalAddress, "it accessed memory that is not mapped or is protected"};
            case ORR_QERR_KERNEL_TRAP:
                return {orrErrorIllegalInstruction, "a kernel trapped"};
            case ORR_QERR_TIMEOUT:
            case ORR_QERR_GANG:
                return {orrErrorLaunchTimeout, "a kernel ran over its limit of model time"};
            case ORR_QERR_FIRMWARE:
            case ORR_QERR_LOST:
                return {orrErrorFirmware, "the card's firmware crashed and was started again"};
            case ORR_QERR_ABORTED:
                return {orrErrorAborted, "it was aborted or destroyed, or its process ended"};
            case ORR_QERR_WAIT_LIMIT:
                return {orrErrorTimeout, "a wait of limited time ended"};
            case ORR_QERR_ABANDONED:
                return {orrErrorAbandoned, "nobody is left who may signal it"};
            case ORR_QERR_PEER_LOST:
                return {orrErrorPeerAccess,
                        "all who may signal it are on a card that cannot be reached (is the link up and the "
                        "card alive? See orrery-smi)"};
            case ORR_QERR_BAD_DESC:
                return {orrErrorInternal, "an engine of the card refused a packet's work"};
            default:
                return {orrErrorInternal, "the firmware refused a packet"};
        }
    };
    const auto [code, what] = known(ORR_FAILURE_CODE(word));
    if (ORR_FAILURE_QUEUE(word) == ORR_FAILURE_NO_QUEUE) {
        // Of one whose link went down the word has the card, of whatever machine.
        if (ORR_FAILURE_CODE(word) != ORR_QERR_PEER_LOST || ORR_FAILURE_NODE(word) == 0) return {code, what};
        return {code, fmt::format("{}; the last was {}", what, where)};
    }
    // Then the word names the last of them, which need not have stopped.
    if (ORR_FAILURE_CODE(word) == ORR_QERR_ABANDONED || ORR_FAILURE_CODE(word) == ORR_QERR_PEER_LOST)
        return {code, fmt::format("{}; the last was queue {} on {}", what, ORR_FAILURE_QUEUE(word), where)};
    return {code,
            fmt::format("queue {} on {}, of another process or destroyed since, stopped at packet {}: {}",
                        ORR_FAILURE_QUEUE(word), where, ORR_FAILURE_INDEX(word), what)};
}

Error describe_queue_error(const QueueState& state, OpNote note, const orr_packet& packet, Context& context,
                           std::span<const std::byte> args) {
    const bool by_kernel = state.error == ORR_QERR_FAULT || state.error == ORR_QERR_KERNEL_TRAP;
    const std::string tail =
        fmt::format(" (device {}, packet {}{}). The stream has stopped: destroy it and make a new one",
                    context.device(), state.error_index, by_kernel ? failing_item(state, note, packet) : "");
    const std::string who =
        subject(note) + (note.op == Op::kCopy ? failing_copy(state, packet, args) : std::string());
    switch (state.error) {
        case ORR_QERR_FAULT: {
            if (const auto lost = lost_owner(state, context)) {
                return {orrErrorDeviceLost,
                        fmt::format("{} accessed {:#x}{}: {}, and {} is lost: {}{}", who, state.error_address,
                                    faulting_code(state, note, context),
                                    place(state.error_address, packet, context), lost->who, lost->loss.text,
                                    tail)};
            }
            return {
                is_of_peer(state) ? orrErrorPeerAccess : orrErrorIllegalAddress,
                fmt::format("{} accessed {:#x} {}{}: {}{}{}", who, state.error_address,
                            why_refused(state, note, packet, context), faulting_code(state, note, context),
                            place(state.error_address, packet, context) + abroad(state, context),
                            instead_of_atomics(state, context), tail)};
        }
        case ORR_QERR_KERNEL_TRAP:
            if (const auto found = finding(state, packet, context))
                return {orrErrorIllegalInstruction, fmt::format("{} {}{}", who, *found, tail)};
            if (const auto broken = broken_promise(state, context))
                return {orrErrorIllegalInstruction, fmt::format("{} {}{}", who, *broken, tail)};
            return {
                orrErrorIllegalInstruction,
                fmt::format("{} trapped at pc {:#x}: {}{}{}", who, state.error_address,
                            trap_name(state.error_detail), context.describe_code(state.error_address), tail)};
        case ORR_QERR_TIMEOUT:
            return {
                orrErrorLaunchTimeout,
                fmt::format("{} ran over its limit of model time and was ended: look for an endless loop, or "
                            "split the launch{}",
                            who, tail)};
        case ORR_QERR_RING_FAULT:
            return {orrErrorIllegalAddress,
                    fmt::format("the card cannot access the stream's ring at {:#x} {}{}", state.error_address,
                                fault_name(state.error_detail), tail)};
        case ORR_QERR_FIRMWARE:
            return {orrErrorFirmware,
                    fmt::format("the card's firmware crashed while it worked for {} (mcause {:#x}) and was "
                                "started again; see the kernel log{}",
                                who, state.error_detail, tail)};
        case ORR_QERR_LOST:
            return {orrErrorFirmware,
                    fmt::format("the card's firmware was started again and has lost this stream{}", tail)};
        case ORR_QERR_GANG:  // without a place; else Gangs tells the cause
            return {
                orrErrorOutOfMemory,
                fmt::format("{} is part of a launch over several devices, and device {} had no place for "
                            "it: {} of them may wait there to start, {} of one process, and of all "
                            "processes of one user as many as are left then: {} if no other user has any, "
                            "else fewer. Try again when some have started{}",
                            who, context.device(), ORR_GANG_MAX_OF_CARD, ORR_GANG_MAX_OF_CONTEXT,
                            ORR_GANG_MAX_OF_CARD / 2, tail)};
        case ORR_QERR_POISON: {
            const Error cause = context.fleet().cause(
                state.error_detail, context.others_fail(state.error_address), state.error_address);
            return {cause.code, fmt::format("{} that this stream waited for will never come: {}",
                                            context.describe_semaphore(state.error_address), cause.text)};
        }
        case ORR_QERR_ABORTED:
            return {orrErrorAborted, fmt::format("the stream was aborted at {}{}", who, tail)};
        case ORR_QERR_WAIT_LIMIT:
            return {orrErrorTimeout,
                    fmt::format("{} did not reach the value that this stream waited for within the wait's "
                                "limit: it is {}{}",
                                context.describe_semaphore(state.error_address), state.error_detail, tail)};
        case ORR_QERR_NOT_IMPLEMENTED:
            return {orrErrorNotSupported,
                    fmt::format("the card's firmware cannot do what {} asks for{}", who, tail)};
        case ORR_QERR_BAD_OPCODE:
        case ORR_QERR_BAD_PACKET:
        case ORR_QERR_BAD_INDEX:
            return {orrErrorInternal,
                    fmt::format(
                        "the firmware refused {} (code {}, detail {:#x}): the ring was overwritten, or this "
                        "is a fault of the library{}",
                        who, state.error, state.error_detail, tail)};
        case ORR_QERR_BAD_DESC:  // of a packet that the firmware took for good
            return {orrErrorInternal,
                    fmt::format("an engine of the card refused {} (status {}): the card works wrongly, its "
                                "packet or what that refers to was overwritten, or this is a fault of the "
                                "library{}",
                                who, state.error_detail, tail)};
        default:
            return {orrErrorVersion,
                    fmt::format("{} stopped with code {}, which this library does not know{}", who,
                                state.error, tail)};
    }
}

}  // namespace orrery::umd
