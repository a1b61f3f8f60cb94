// What a driver makes of notes about circles of waits over machines (orr_far.c), whatever comes from the
// others: no answer changes, no search is held unless each of its waits is, nobody is told twice, and nothing
// is written beside its place.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <list>
#include <ranges>

#include "tests/fuzz/engines/input.h"

extern "C" {
#include "kmod/orr_far_rule.h"
}

namespace {

using orrery::emu::test::Input;

constexpr std::size_t kSearches = 12;

void require(bool holds) {
    if (!holds) std::abort();
}

orr_device* card(unsigned n) {
    return reinterpret_cast<orr_device*>(std::uintptr_t{64} * (1 + n));  // NOLINT: only compared
}

struct Search {
    orr_far_state state{};
    // What was so before the last note.
    orr_far_answer was = ORR_FAR_OPEN;
    std::array<orr_far_answer, ORR_FAR_ASKS> answers{};
    std::array<bool, ORR_FAR_ASKS> assumed{};
    bool told = false;
};

class Driver {
  public:
    void step(Input& input) {
        switch (input.take<std::uint8_t>() % 8) {
            case 0:
            case 1:
                begin(input);
                break;
            case 2:
                hop(input);
                break;
            case 3:
            case 4:
                answer(input);
                break;
            case 5:
                asked_all(input);
                break;
            case 6:
                tell();
                break;
            default:
                end(input);
        }
        for (Search& search : searches_)
            check(search);
    }

  private:
    // A look, for a process or for a question, whose path may be anything.
    void begin(Input& input) {
        if (searches_.size() == kSearches) searches_.pop_front();
        Search& search = searches_.emplace_back();
        orr_far_state& state = search.state;
        const auto kind = input.take<std::uint8_t>();
        state.is_others = kind % 4 != 0;
        state.id = kind / 4 % 4;
        state.answer = kind >= 0xf0 ? ORR_FAR_NONE : kind >= 0xe0 ? ORR_FAR_FREE : ORR_FAR_OPEN;
        if (state.is_others)
            for (u16& mark : state.path)
                mark = input.take<std::uint8_t>() % 8 * 0x2001;
        if (state.answer == ORR_FAR_OPEN) {
            const auto shape = input.take<std::uint16_t>();
            state.waits = 1 + shape % ORR_FAR_WAITS;
            state.asks = (shape >> 8) % (ORR_FAR_ASKS + 1);
        }
        for (u32 i = 0; i < state.asks; ++i) {
            orr_far_ask& ask = state.ask[i];
            const auto what = input.take<std::uint16_t>();
            ask.odev = card(what % 2);
            ask.at = what / 2 % 4;
            ask.node = ask.at + 1;
            ask.tag = what / 8 % 4;
            ask.offset = what / 32 % 2;
            ask.wanted = 1;
            ask.wait = what / 64 % state.waits;
            ask.number = ++number_;
            ask.answer = ORR_FAR_OPEN;
            ask.known = 1;
        }
        const auto held = input.take<std::uint8_t>();
        for (u32 i = 0; i < state.waits; ++i)
            state.held[i] = (held >> i & 1) != 0;
        for (const Search& other : searches_)
            if (&other != &search) orr_far_assume(&state, &other.state);
        for (u32 i = 0; i < state.asks; ++i) {
            search.assumed[i] = state.ask[i].answer == ORR_FAR_HELD;
            require(!search.assumed[i] || is_assumed_by_an_ancestor(search, i));
            search.answers[i] = state.ask[i].answer;
        }
        const orr_far_answer before = state.answer;
        orr_far_start(&state, 1 + input.take<std::uint8_t>() % 7 * 0x2001);
        require(state.asking && (before == ORR_FAR_OPEN || state.answer == before));
        search.was = state.answer;
    }

    bool is_assumed_by_an_ancestor(const Search& search, u32 i) const {
        return std::ranges::any_of(searches_, [&](const Search& other) {
            if (&other == &search || other.state.id != search.state.id || !other.state.marked) return false;
            const auto own = std::span(other.state.path);
            const auto end = std::ranges::find(own, 0);
            if (!std::equal(own.begin(), end, search.state.path)) return false;
            return std::ranges::any_of(
                std::span(other.state.ask, other.state.asks),
                [&](const orr_far_ask& ask) { return orr_far_is_same(&ask, &search.state.ask[i]); });
        });
    }

    // To whom a note may be, as orr_far_answered() finds it. Most say what was asked.
    template <class Then>
    void found(Input& input, Then then) {
        const auto who = input.take<std::uint8_t>();
        const auto which = input.take<std::uint16_t>();
        for (Search& search : searches_) {
            if (search.state.id != who % 4u) continue;
            u16 number = which;
            u32 at = which % 4, tag = which / 4 % 4;
            orr_device* by = card(who / 4 % 2);
            if (who >= 0x40 && search.state.asks != 0) {
                const orr_far_ask& meant = search.state.ask[which % search.state.asks];
                number = meant.number, at = meant.at, tag = meant.tag, by = meant.odev;
            }
            orr_far_ask* const ask = orr_far_find(&search.state, by, at, tag, number);
            if (ask == nullptr) continue;
            require(ask->answer == ORR_FAR_OPEN && ask->number == number && ask->at == at &&
                    ask->tag == tag && ask->odev == by && ask >= search.state.ask &&
                    ask < search.state.ask + search.state.asks);
            then(search, *ask);
            return;
        }
    }

    void hop(Input& input) {
        found(input, [&](Search&, orr_far_ask& ask) {
            const u32 known = ask.known;
            orr_far_wait* const hop = orr_far_take_hop(&ask);
            require(hop == nullptr ? known == 1 + ORR_FAR_BEYOND && ask.known == known
                                   : hop == &ask.there[known] && ask.known == known + 1);
            if (hop != nullptr) *hop = {.node = input.take<std::uint32_t>(), .name = {}};
        });
    }

    void answer(Input& input) {
        found(input, [&](Search& search, orr_far_ask& ask) {
            const auto said = input.take<std::uint8_t>();
            const u32 status = said >= 0xe0 ? input.take<std::uint32_t>() : said % 4u;
            const u32 known = (said & 0x10) != 0 ? input.take<std::uint16_t>() : ask.known, had = ask.known;
            orr_far_take_answer(&ask, status, known, input.take<std::uint64_t>());
            require(ask.answer == ORR_FAR_FREE || ask.answer == ORR_FAR_NONE || ask.answer == ORR_FAR_HELD);
            require(ask.answer == ORR_FAR_FREE ||
                    (static_cast<u32>(ask.answer) == status && (known == had || known == 0)));
            search.answers[static_cast<std::size_t>(&ask - search.state.ask)] = ask.answer;
            if (search.state.answer != ORR_FAR_OPEN) return;
            orr_far_settle(&search.state);
            search.was = search.state.answer;
        });
    }

    void asked_all(Input& input) {
        if (searches_.empty()) return;
        auto& search = *std::next(searches_.begin(), input.take<std::uint8_t>() % searches_.size());
        orr_far_asked_all(&search.state);
    }

    void tell() {
        for (auto search = searches_.begin(); search != searches_.end();) {
            const orr_far_step step = orr_far_next(&search->state);
            if (step != ORR_FAR_TELL && step != ORR_FAR_TELL_AND_KEEP) {
                ++search;
                continue;
            }
            require(!search->told && !search->state.asking && search->state.is_others);
            require((step == ORR_FAR_TELL_AND_KEEP) == (search->state.answer == ORR_FAR_HELD));
            search->told = search->state.told = true;
            search = step == ORR_FAR_TELL ? searches_.erase(search) : std::next(search);
        }
    }

    void end(Input& input) {
        if (searches_.empty()) return;
        const auto search = std::next(searches_.begin(), input.take<std::uint8_t>() % searches_.size());
        if (!search->state.asking) searches_.erase(search);
    }

    static void check(Search& search) {
        const orr_far_state& state = search.state;
        require(state.answer == search.was);
        require(state.waits <= ORR_FAR_WAITS && state.asks <= ORR_FAR_ASKS);
        bool open = false, free = false;
        std::array<bool, ORR_FAR_WAITS> held{};
        for (u32 i = 0; i < state.waits; ++i)
            held[i] = state.held[i];
        for (u32 i = 0; i < state.asks; ++i) {
            const orr_far_ask& ask = state.ask[i];
            require(ask.answer == search.answers[i] && ask.known <= 1 + ORR_FAR_BEYOND);
            require(!search.assumed[i] || ask.known == 0);
            require(orr_far_asks_now(&state, i) ==
                    (state.answer == ORR_FAR_OPEN && ask.answer == ORR_FAR_OPEN));
            open |= ask.answer == ORR_FAR_OPEN;
            free |= ask.answer == ORR_FAR_FREE;
            if (ask.answer == ORR_FAR_HELD) held.at(ask.wait) = true;
        }
        if (state.marked) {  // no gap, and nothing behind it
            const auto path = std::span(state.path);
            const auto end = std::ranges::find(path, 0);
            require(end != path.begin() && std::all_of(end, path.end(), [](u16 mark) { return mark == 0; }));
        }
        if (state.answer == ORR_FAR_HELD)
            require(!open && !free &&
                    std::ranges::all_of(held | std::views::take(state.waits), std::identity()));
        if (state.answer == ORR_FAR_OPEN) require(open && !free && state.marked);
        const orr_far_step step = orr_far_next(&state);
        require((step == ORR_FAR_END) == (!state.is_others && state.answer != ORR_FAR_OPEN));
        require(step == ORR_FAR_WAIT || state.answer != ORR_FAR_OPEN);
    }

    std::list<Search> searches_;
    u16 number_ = 0;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Driver driver;
    Input input(data, size);
    for (unsigned steps = 0; !input.empty() && steps < 400; ++steps)
        driver.step(input);
    return 0;
}
