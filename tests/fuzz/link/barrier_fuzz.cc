// Barrier units of three cards in a chain, whose hosts, cores and peers do anything: no crash, no round that
// this card has not arrived at, nothing in VRAM but the semaphores, and nothing that a stranger's words
// change.
#include <cstdlib>

#include "tests/fuzz/engines/input.h"
#include "tests/unit/link/net.h"

namespace {

using namespace orrery::emu;
using namespace orrery::emu::test;

constexpr unsigned kCards = 3;
constexpr std::uint64_t kReleases = 0x1000, kReleasesBytes = 4 * sizeof(orr_semaphore);
constexpr ModelTime kStep = 100 * kPsPerNs, kLong = 1'000'000 * kPsPerNs;

void require(bool holds) {
    if (!holds) std::abort();
}

// What a card's host and core have said of a slot.
struct Slot {
    std::vector<std::uint32_t> members;  // nodes
    std::uint64_t key = 0, release = 0;
    bool has_member(std::uint32_t node) const { return std::ranges::find(members, node) != members.end(); }
};

struct Cards {
    Cards() : net(kCards, false) {
        require(net.up());
        net.forward();
    }
    std::uint32_t state(unsigned card, unsigned slot) const {
        return net.cards[card]->barriers.states() >> 4 * slot & 15;
    }
    // Of a barrier that is over nothing is left.
    void forget_free(unsigned card) {
        for (unsigned slot = 0; slot < ORR_BARRIER_SLOTS; ++slot) {
            if (was[card][slot] != ORR_BARRIER_FREE && state(card, slot) == ORR_BARRIER_FREE)
                slots[card][slot] = {};
            was[card][slot] = state(card, slot);
        }
    }
    void command(unsigned number, Input& input);
    void hear(unsigned number, Input& input);
    void break_way(unsigned number, Input& input);
    void check();
    void clean();

    Net net;
    std::array<std::array<Slot, ORR_BARRIER_SLOTS>, kCards> slots{};
    std::array<std::array<std::uint32_t, ORR_BARRIER_SLOTS>, kCards> was{};
    // The last round at which a card's core has arrived, by release.
    std::array<std::array<std::uint64_t, 4>, kCards> arrived{};
    bool routes_changed = false, cut = false;
};

void Cards::command(unsigned number, Input& input) {
    NetCard& card = net[number];
    const auto slot = input.take<std::uint8_t>() % (ORR_BARRIER_SLOTS + 1u);
    const auto what = input.take<std::uint8_t>() % 8;
    const auto value = input.take<std::uint16_t>();
    const bool known = slot < ORR_BARRIER_SLOTS;
    if (what < 2) {
        // Mostly another card of the chain.
        const std::uint32_t node = value % 8 < 6 ? 1 + (number + 1 + value % 2) % kCards : value;
        const std::uint32_t member = node | (value >> 8 & 15u) << ORR_BARRIER_SLOT_SHIFT;
        const std::uint32_t fault = card.barriers.add(slot, member, 0x4100u + node);
        if (fault == ORR_FAULT_NONE) slots[number].at(slot).members.push_back(node & (ORR_NODES - 1));
    } else if (what == 2) {
        const std::uint64_t release =
            value % 16 == 15 ? value * 0x1'0000'0001ull : kReleases + value % 4 * sizeof(orr_semaphore);
        const std::uint64_t key = 1 + (value >> 8 & 1);
        if (card.barriers.arm(slot, key, release, 0x4200 + number) == ORR_FAULT_NONE) {
            slots[number].at(slot).key = key;
            slots[number].at(slot).release = release;
        }
    } else if (what == 3) {
        card.barriers.clear(slot, value % 4 == 0 ? 0 : 0x4300u + value);
        if (known && state(number, slot) == ORR_BARRIER_FREE) slots[number].at(slot) = {};
    } else if (what == 4 && value % 4 == 0) {
        card.barriers.reset(value % 8 == 0);
        slots[number] = {};
    } else {
        const std::uint64_t round = value % 64 == 63 ? ORR_SEM_FAILED | value
                                    : value % 8 == 7 ? value
                                                     : 1 + value % 4;
        const bool armed = known && state(number, slot) == ORR_BARRIER_ARMED;
        if (armed && (round & ORR_SEM_FAILED) == 0) {
            const std::uint64_t release = slots[number].at(slot).release;
            auto& last = arrived[number].at((release - kReleases) / sizeof(orr_semaphore) % 4);
            last = std::max(last, round);
        }
        card.barriers.arrive(slot, round);
    }
}

// A word as a link may bring it, which comes by the port of its sender's route.
void Cards::hear(unsigned number, Input& input) {
    NetCard& card = net[number];
    auto message = input.take<link::Message>();
    const auto keep = input.take<std::uint8_t>();
    if ((keep & 1) == 0) message.source = static_cast<std::uint16_t>(1 + message.source % (kCards + 1));
    if ((keep & 2) == 0) message.key = 1 + message.key % 2;
    if ((keep & 4) == 0) message.offset %= ORR_BARRIER_SLOTS;
    message.op = (keep & 8) == 0 ? link::kOpArrive : link::kOpLeave;
    if ((keep & 16) == 0) message.value %= 8;
    message.value = message.op == link::kOpLeave ? message.value | ORR_SEM_FAILED
                                                 : message.value & ~std::uint64_t{ORR_SEM_FAILED};
    message.arrival_ps = card.events.system_now();
    const std::uint64_t before = card.barriers.states();
    const link::Status status = card.barriers.take(message);
    if (message.offset >= ORR_BARRIER_SLOTS) return require(status == link::kDenied);
    const auto slot = static_cast<unsigned>(message.offset);
    const std::uint32_t state = before >> 4 * slot & 15;
    if (state != ORR_BARRIER_ARMED && state != ORR_BARRIER_LOST) {
        require(card.barriers.states() == before);
        return require((status == link::kDone) == (message.op == link::kOpLeave));
    }
    const Slot& own = slots[number].at(slot);
    if (own.has_member(message.source) && own.key == message.key) return require(status == link::kDone);
    require(status != link::kDone && card.barriers.states() == before);
}

void Cards::break_way(unsigned number, Input& input) {
    const auto how = input.take<std::uint8_t>();
    const unsigned other = (number + 1 + how % 2) % kCards;
    if (how >= 0xfc && !cut) {
        cut = true;
        net[number].ports[number == 0 ? 1 : 0]->reset();
        net[number].barriers.ways_changed();
        return;
    }
    routes_changed = true;
    net[number].route(other + 1, other > number ? 1 : 0, how >> 2);
}

void Cards::check() {
    for (unsigned n = 0; n < kCards; ++n) {
        forget_free(n);
        for (unsigned release = 0; release < 4; ++release) {
            const std::uint64_t value = net[n].semaphore(kReleases + release * sizeof(orr_semaphore)).value;
            require((value & ORR_SEM_FAILED) != 0 || value <= arrived[n].at(release));
        }
    }
}

bool is_zero(const std::uint8_t* at, std::size_t bytes) {
    return at[0] == 0 && std::memcmp(at, at + 1, bytes - 1) == 0;
}

void Cards::clean() {
    for (auto& card : net.cards)
        card->barriers.reset(false);
    net.run();
    for (unsigned n = 0; n < kCards; ++n) {
        NetCard& card = net[n];
        require(card.barriers.states() == 0);
        require(is_zero(card.vram.data(), kReleases));
        require(is_zero(card.vram.data() + kReleases + kReleasesBytes, 0x2000));
        std::memset(card.vram.data() + kReleases, 0, kReleasesBytes);
        card.pokes.clear();
        card.arrivals.clear();
        if (!routes_changed) continue;
        for (unsigned other = 0; other < kCards; ++other)
            if (other != n) card.route(other + 1, other > n ? 1 : 0);
    }
    if (cut) {
        require(net.up());
        net.forward();
    }
    slots = {};
    was = {};
    arrived = {};
    routes_changed = cut = false;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Cards cards;
    Input input(data, size);
    for (unsigned step = 0; step < 256 && !input.empty(); ++step) {
        const auto what = input.take<std::uint8_t>();
        const unsigned card = what % kCards;
        const unsigned how = what / kCards % 16;
        if (how < 10)
            cards.command(card, input);
        else if (how < 13)
            cards.hear(card, input);
        else if (how == 13)
            cards.break_way(card, input);
        else
            cards.net.run(cards.net[card].events.now() + (how == 14 ? kStep : kLong));
        cards.check();
    }
    cards.net.run();
    cards.check();
    cards.clean();
    return 0;
}
