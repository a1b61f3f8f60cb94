// Random code on a random and unfriendly bus. Besides not crashing, a hart must do the same whether it runs
// in one piece, in many, with all caches dropped all the time, or with code that another hart has decoded;
// and must not touch memory that the bus has revoked: pages are separate allocations that move when they are
// flushed, so that ASan sees a stale pointer.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "emulator/core/code_store.h"
#include "emulator/core/hart.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kRam = 0x80000000;
constexpr std::size_t kPages = 8;
constexpr std::uint64_t kWindow = 1ull << 62;  // the same pages with other rights
constexpr std::uint64_t kMmio = 0x10000000;
constexpr std::uint64_t kCycles = 200;

// The first bytes of an input.
struct Header {
    std::uint8_t fp, trap_to_host, code_pages, restless, chunk, window_rights, irq, breakpoints;
    std::uint8_t vlen;  // 0: none
    std::uint8_t spare[7];
    std::uint64_t x[4];
};

class FuzzBus : public Bus {
  public:
    FuzzBus(const Header& header, std::span<const std::uint8_t> code) : header_(header) {
        for (auto& page : pages_)
            page = std::make_unique<Page>();
        for (std::size_t i = 0; i < code.size() && i < kPages * kPageBytes; ++i) {
            bytes(i / kPageBytes)[i % kPageBytes] = code[i];
        }
    }
    void attach(Hart* hart) { hart_ = hart; }

    PageRef translate(std::uint64_t va, Access) override {
        if ((header_.restless & 1) != 0) move_pages();
        if (va - kRam < kPages * kPageBytes) {
            return PageRef::memory(bytes((va - kRam) / kPageBytes), kPageRead | kPageWrite | kPageExec);
        }
        if (va - kWindow < kPages * kPageBytes) {
            const std::size_t page = (va - kWindow) / kPageBytes;
            const auto rights = static_cast<std::uint8_t>((header_.window_rights + page) & 15);
            if (rights == 0) return PageRef::mmio();
            return PageRef::memory(bytes(page), rights);
        }
        return (va & ~(kPageBytes - 1)) == kMmio ? PageRef::mmio() : PageRef::fault();
    }
    bool load(std::uint64_t va, unsigned size, std::uint64_t& value) override {
        check(va, size);
        ++accesses_;
        value = accesses_ * 0x9e3779b97f4a7c15;
        if (va % 64 == 8) hart_->request_stop();
        return va % 64 != 56;
    }
    bool store(std::uint64_t va, unsigned size, std::uint64_t value) override {
        check(va, size);
        ++accesses_;
        switch (va % 64 / 8) {
            case 0:
                hart_->set_irq(Irq::kExternal, (value & 1) != 0);
                break;
            case 1:
                hart_->set_irq(Irq::kTimer, (value & 1) != 0);
                break;
            case 2:
                move_pages();
                break;
            case 3:
                hart_->flush_code();
                break;
            case 4:
                hart_->request_stop();
                break;
            case 5:
                hart_->advance_cycles(value & 0xff);
                break;
            case 7:
                return false;
            default:
                break;
        }
        return true;
    }
    bool read_csr(std::uint32_t number, std::uint64_t& value) override {
        if ((number & 0xff0) != 0xcc0) return false;
        if (number == 0xccf) move_pages();
        value = number;
        return true;
    }
    bool write_csr(std::uint32_t number, std::uint64_t) override { return number == 0x7c0; }

    // As after a DMA unmap and a new map: old memory is gone, contents are elsewhere.
    void move_pages() {
        for (auto& page : pages_) {
            auto fresh = std::make_unique<Page>(*page);
            page = std::move(fresh);
        }
        hart_->flush_pages();
    }
    std::string contents() const {
        std::string all;
        for (const auto& page : pages_)
            all.append(reinterpret_cast<const char*>(page->data()), kPageBytes);
        return all;
    }

  private:
    using Page = std::array<std::uint64_t, kPageBytes / 8>;
    std::uint8_t* bytes(std::size_t page) { return reinterpret_cast<std::uint8_t*>(pages_[page]->data()); }
    static void check(std::uint64_t va, unsigned size) {
        if ((size == 1 || size == 2 || size == 4 || size == 8) && va % size == 0) return;
        std::fprintf(stderr, "misaligned MMIO access reached the bus\n");
        std::abort();
    }

    Header header_;
    Hart* hart_ = nullptr;
    std::array<std::unique_ptr<Page>, kPages> pages_;
    std::uint64_t accesses_ = 0;
};

bool has_breakpoints(const Header& header) {
    return header.breakpoints % 8 == 7;
}

struct Outcome {
    HartState state;
    VectorState vectors;
    std::uint64_t cycles = 0;
    std::string memory;
    bool operator==(const Outcome&) const = default;
};

// `chunk` is the budget of each run(); `flush` drops all caches between them; `shared`: see Hart.
Outcome execute(const Header& header, std::span<const std::uint8_t> code, std::uint64_t chunk, bool flush,
                CodeStore* shared = nullptr) {
    FuzzBus bus(header, code);
    const Config config{.reset_pc = kRam,
                        .fp = (header.fp & 1) != 0,
                        .vlen = header.vlen % 7 == 0 ? 0 : 64u << header.vlen % 7,
                        .vector_datapath = 256,
                        .trap_to_host = (header.trap_to_host & 1) != 0,
                        .has_exit_pc = true,
                        .exit_pc = kRam + kPages * kPageBytes - 2,
                        .code_pages = 1u << (header.code_pages & 3)};
    Hart hart(config, bus, shared);
    bus.attach(&hart);
    HartState state = hart.state();
    const std::uint64_t bases[] = {kRam + 0x800, kRam + 0x1ff8, kRam + 2 * kPageBytes,
                                   kMmio,        kWindow,       kWindow + 0x1ffc};
    for (unsigned i = 1; i < 32; ++i)
        state.x[i] = i < 28 ? bases[i % 6] : header.x[i - 28];
    state.mtvec = kRam + 0x400 + (header.irq & 1);
    state.mie = 0x888;
    state.mstatus |= header.irq & 8;
    hart.set_state(state);
    if (has_breakpoints(header)) {
        const std::uint64_t points[] = {kRam + 4, kRam + 0xffe, kRam + 0x400};
        hart.set_breakpoints(points);
    }
    unsigned idle = 0;
    while (hart.cycles() < kCycles && idle < 4) {
        const std::uint64_t before = hart.cycles();
        const std::uint64_t budget = std::min(chunk, kCycles - before);
        const StopReason reason = hart.run(budget);
        const std::uint64_t taken = hart.cycles() - before;
        // Only vector instructions go beyond it.
        if ((taken > budget && hart.cycles() == hart.steps()) ||
            (reason == StopReason::kBudget && taken < budget)) {
            std::fprintf(stderr, "budget %llu, cycles %llu\n", static_cast<unsigned long long>(budget),
                         static_cast<unsigned long long>(taken));
            std::abort();
        }
        if (reason == StopReason::kTrap || reason == StopReason::kExit) break;
        if (reason == StopReason::kWfi) {
            hart.set_irq(Irq::kSoftware, true);
            ++idle;
        }
        if (flush) bus.move_pages();
    }
    return {hart.state(), hart.vector_state(), hart.cycles(), bus.contents()};
}

void expect_same(const Outcome& a, const Outcome& b, const char* what) {
    if (a == b) return;
    std::fprintf(stderr, "%s makes a difference: pc %llx %llx, steps %llu %llu, memory %s\n", what,
                 static_cast<unsigned long long>(a.state.pc), static_cast<unsigned long long>(b.state.pc),
                 static_cast<unsigned long long>(a.state.steps),
                 static_cast<unsigned long long>(b.state.steps),
                 a.memory == b.memory ? "equal" : "different");
    std::abort();
}

}  // namespace
}  // namespace orrery::emu

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace orrery::emu;
    Header header{};
    std::memcpy(&header, data, std::min(size, sizeof header));
    const std::span<const std::uint8_t> code(data + std::min(size, sizeof header),
                                             size - std::min(size, sizeof header));
    const Outcome whole = execute(header, code, kCycles, false);
    expect_same(whole, execute(header, code, 1 + header.chunk % 32, false), "the size of the budget");
    expect_same(whole, execute(header, code, 1 + header.chunk % 64, true), "what is cached");
    if (has_breakpoints(header)) return 0;
    CodeStore store;
    for (const bool flush : {false, true, false})
        expect_same(whole, execute(header, code, 1 + header.chunk % 32, flush, &store), "what is shared");
    return 0;
}
