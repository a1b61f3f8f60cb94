// A card's memory system without a card: VRAM, host memory, page tables, a clock, for engine tests.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "emulator/engines/copy_engine.h"
#include "emulator/engines/engine.h"
#include "emulator/engines/vector_unit.h"
#include "emulator/memory/atomic.h"

namespace orrery::emu::test {

// Memory that is far enough for latencies to show.
inline MemoryConfig far_memory() {
    MemoryConfig config;
    config.vram_latency_ps = 150 * kPsPerNs;
    config.pcie_latency_ps = 600 * kPsPerNs;
    return config;
}

// A peer that takes what fits its window, and remembers.
class FakePeer final : public PeerPort {
  public:
    FakePeer(EventQueue& events, std::size_t bytes) : memory(bytes), events_(events) {}

    std::uint64_t bytes_per_second() const override { return kPsPerSecond / kBytePs; }
    LinkSend write(std::uint32_t, std::uint64_t offset, std::span<const std::byte> data,
                   ModelTime at) override {
        if (fault != ORR_FAULT_NONE) return {.fault = fault};
        if (refusals > 0) {
            --refusals;
            return {};
        }
        const std::size_t bytes = std::min(data.size(), max_bytes);
        if (offset > memory.size() || bytes > memory.size() - offset) return {.fault = ORR_FAULT_PEER_DENIED};
        std::memcpy(memory.data() + offset, data.data(), bytes);
        free_ = std::max(free_, std::min(at, events_.now())) + bytes * kBytePs;
        ++writes;
        return {.bytes = bytes, .sent_ps = free_};
    }
    std::uint32_t signal(std::uint32_t, std::uint64_t, std::uint64_t) override { return fault; }
    // Answered by give().
    LinkAsk read(std::uint32_t, std::uint64_t offset, std::span<std::byte> to, ModelTime at,
                 Asker& asker) override {
        if (fault != ORR_FAULT_NONE) return {.fault = fault};
        if (refusals_left > 0) {
            --refusals_left;
            return {};
        }
        if (!contains(offset, to.size())) return {.fault = ORR_FAULT_PEER_DENIED};
        asked.push_back({++last_tag, offset, to, std::min(at, events_.now()), &asker});
        return {.tag = last_tag};
    }
    LinkAsk atomic(std::uint32_t, std::uint64_t offset, const LinkAtomic& what, ModelTime at,
                   Asker& asker) override {
        if (fault != ORR_FAULT_NONE) return {.fault = fault};
        if (!contains(offset, what.bytes)) return {.fault = ORR_FAULT_PEER_DENIED};
        // Whether anybody still waits when the answer comes or not.
        const std::uint64_t old = atomic_on(reinterpret_cast<std::uint8_t*>(memory.data()) + offset, what);
        const std::uint64_t told = what.bytes == 4 ? old | upper : old;
        asked.push_back({++last_tag, offset, {}, std::min(at, events_.now()), &asker, told});
        return {.tag = last_tag};
    }
    void abandon(std::uint32_t tag) override {
        ++abandoned;
        std::erase_if(asked, [tag](const Question& one) { return one.tag == tag; });
    }
    void put_aside(std::uint32_t, bool aside) override { put_aside_ += aside ? 1 : -1; }
    int put_aside_ = 0;
    LinkTold tell(std::uint32_t, const BarrierWord&) override { return {.fault = fault, .sent = true}; }
    Refusals refused_by(std::uint32_t) const override { return refused; }
    struct Question {
        std::uint32_t tag = 0;
        std::uint64_t offset = 0;
        std::span<std::byte> to;
        ModelTime at = 0;
        Asker* asker = nullptr;
        std::uint64_t old = 0;  // of an atomic
    };
    // The first question's answer comes now.
    void give(std::uint32_t with = ORR_FAULT_NONE) {
        const Question one = asked.front();
        asked.erase(asked.begin());
        LinkAnswer answer{.fault = with, .began = events_.now(), .came = events_.now()};
        answer.value = one.old;
        if (with == ORR_FAULT_NONE && !one.to.empty())
            std::memcpy(one.to.data(), memory.data() + one.offset, one.to.size());
        one.asker->answered(one.tag, answer);
    }
    std::vector<Question> asked;
    std::uint32_t last_tag = 0;
    unsigned abandoned = 0, refusals_left = 0;
    std::uint64_t upper = 0;  // what it says beside the old value of a word of 32 bits
    Refusals refused;
    void wait_for_room(std::uint32_t, Event& event) override {
        ++waits;
        parked.push_back(&event);
    }
    void forget(Event& event) override { std::erase(parked, &event); }
    std::uint64_t session() const override { return sessions; }
    std::uint32_t post(std::uint32_t, std::uint64_t, std::span<const std::byte>) override { return fault; }
    bool settle(std::uint64_t) override { return true; }
    // There is room again.
    void let() {
        for (Event* event : std::exchange(parked, {}))
            events_.schedule(*event, events_.now());
    }

    std::vector<std::byte> memory;
    std::uint32_t fault = ORR_FAULT_NONE;
    unsigned refusals = 0, waits = 0, writes = 0;
    std::size_t max_bytes = 256 << 10;
    std::vector<Event*> parked;
    std::uint64_t sessions = 0;

  private:
    bool contains(std::uint64_t offset, std::uint64_t bytes) const {
        return offset <= memory.size() && bytes <= memory.size() - offset;
    }
    static constexpr ModelTime kBytePs = 20;
    EventQueue& events_;
    ModelTime free_ = 0;
};

class Rig {
  public:
    static constexpr std::uint64_t kHostBase = 0x1'0000'0000;
    static constexpr std::uint32_t kPeerNode = 3;
    static constexpr std::uint64_t kRights = ORR_PTE_READ | ORR_PTE_WRITE;

    explicit Rig(std::uint64_t vram_bytes = 64 << 20, std::uint64_t host_bytes = 64 << 20,
                 std::size_t peer_bytes = 8 << 20, const MemoryConfig& config = {})
        : vram(*Vram::create(vram_bytes)),
          memory(config),
          mmu(vram, host, counters),
          peer(events, peer_bytes),
          context{.events = events,
                  .vram = vram,
                  .mmu = mmu,
                  .memory = memory,
                  .counters = counters,
                  .peers = peers,
                  .errors = nullptr,
                  .done = {}},
          tables_(vram_bytes) {
        UniqueFd fd(::memfd_create("rig", MFD_CLOEXEC));
        if (::ftruncate(fd.get(), static_cast<off_t>(host_bytes)) != 0) throw std::runtime_error("memfd");
        auto range = HostRange::create(kHostBase, host_bytes, fd, 0, true, true);
        host_data = range->data();
        if (!host.insert(std::move(*range))) throw std::runtime_error("host range");
        peers.attach(3, &peer);
        peers.set_route(kPeerNode, ORR_ROUTE_VALID | 3);
        context.done = [this](const Completion& completion) { done.push_back(completion); };
        root_ = new_table();
        if (mmu.set_root(1, root_) != 0) throw std::runtime_error("root");
    }

    std::uint64_t root() const { return root_; }  // of ASID 1

    // Maps [va, va + bytes) in ASID 1 to consecutive 4 KiB pages (or 2 MiB ones if `huge`).
    void map(std::uint64_t va, std::uint64_t bytes, unsigned target, std::uint64_t address,
             std::uint64_t rights = kRights, unsigned node = 0, bool huge = false) {
        const std::uint64_t page = huge ? ORR_HUGE_PAGE_SIZE : ORR_PAGE_SIZE;
        for (std::uint64_t at = 0; at < bytes; at += page) {
            *entry(va + at, huge ? 1 : 0) = ORR_PTE_VALID | ORR_PTE_LEAF | rights |
                                            std::uint64_t{target} << ORR_PTE_TARGET_SHIFT |
                                            std::uint64_t{node} << ORR_PTE_NODE_SHIFT | (address + at);
        }
        mmu.flush_asid(1);
    }
    void unmap(std::uint64_t va) {
        *entry(va, 0) = 0;
        mmu.flush_asid(1);
    }
    std::uint64_t* entry(std::uint64_t va, unsigned level) {
        std::uint64_t table = root_;
        for (unsigned at = ORR_MMU_LEVELS - 1; at > level; --at) {
            std::uint64_t& word = words(table)[va >> (12 + 9 * at) & 511];
            if ((word & ORR_PTE_VALID) == 0) word = ORR_PTE_VALID | new_table();
            table = word & ORR_PTE_ADDR_MASK;
        }
        return &words(table)[va >> (12 + 9 * level) & 511];
    }

    // Runs events until none is left (or `limit` of them have run). Returns how many ran.
    std::size_t run(std::size_t limit = 10'000'000) {
        std::size_t count = 0;
        while (count < limit && events.run_next(kNever - 1))
            ++count;
        return count;
    }

    // One row, in ASID 1.
    static orr_desc_copy copy(std::uint64_t src, std::uint64_t dst, std::uint64_t bytes) {
        orr_desc_copy desc{};
        desc.op = ORR_DESC_COPY;
        desc.asid = 1;
        desc.src = src;
        desc.dst = dst;
        desc.row_bytes = bytes;
        desc.rows = 1;
        return desc;
    }

    template <class Desc>
    static DescriptorWords words_of(const Desc& desc) {
        return std::bit_cast<DescriptorWords>(desc);
    }

    template <class Desc>
    Completion run_one(EnginePort& engine, const Desc& desc) {
        done.clear();
        if (!engine.start(words_of(desc), 77)) throw std::runtime_error("busy");
        run();
        if (done.size() != 1) throw std::runtime_error("no completion");
        return done.front();
    }

    Vram vram;
    HostMemory host;
    Counters counters;
    EventQueue events;
    MemorySystem memory;
    Mmu mmu;
    FakePeer peer;
    Peers peers;
    EngineContext context;
    std::uint8_t* host_data = nullptr;
    std::vector<Completion> done;

  private:
    std::uint64_t* words(std::uint64_t table) {
        return reinterpret_cast<std::uint64_t*>(vram.data() + table);
    }
    // Tables grow down from the end of VRAM.
    std::uint64_t new_table() { return tables_ -= ORR_PAGE_SIZE; }

    std::uint64_t tables_;
    std::uint64_t root_ = 0;
};

}  // namespace orrery::emu::test
