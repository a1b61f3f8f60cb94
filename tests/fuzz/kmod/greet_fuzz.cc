// What a driver makes of greetings (orr_foreign.c), whatever comes from the other side and by which ports: a
// session only with who has heard this very greeting, of an epoch that is ahead of all that this side
// remembers, no nonce twice in a row, and a place for a card only where nobody has anything.
#include <array>
#include <cstdlib>

#include "tests/fuzz/engines/input.h"

extern "C" {
#include "kmod/orr_greet.h"
}

namespace {

using orrery::emu::test::Input;

void require(bool holds) {
    if (!holds) std::abort();
}

struct Side {
    Side() { orr_greet_anew(&greet, 5, 0); }

    void anew(Input& input) {
        const u64 old = greet.nonce;
        // By chance, or by ill chance the same again, or none.
        const auto how = input.take<std::uint8_t>();
        const u64 nonce = how % 4 == 0 ? 0 : how % 4 == 1 ? old : input.take<std::uint64_t>();
        if (greet.session) before = greet.epoch;
        orr_greet_anew(&greet, nonce, before);
        require(!greet.session && greet.nonce != 0 && greet.nonce != old && greet.told == 0);
    }

    void hear(Input& input) {
        const auto how = input.take<std::uint8_t>();
        orr_greeting heard{};
        heard.nonce = how % 2 == 0 ? greet.peer : input.take<std::uint64_t>();
        heard.known = how / 2 % 4 != 0 ? greet.nonce : input.take<std::uint64_t>();
        heard.before = input.take<std::uint16_t>();
        heard.asks = how >= 0x80;
        if (orr_greet_ends(&greet, &heard)) {
            require(greet.session && heard.nonce != greet.peer);
            anew(input);
        }
        const orr_greet was = greet;
        const bool begins = orr_greet_hear(&greet, &heard);
        require(greet.nonce == was.nonce && greet.before == was.before && greet.peer == heard.nonce &&
                greet.session == was.session);
        require(!begins || (!was.session && heard.known == was.nonce));
        require(begins || greet.epoch == was.epoch);
        if (begins) {
            require(greet.epoch != 0);
            const auto ahead = [&](u16 of) {
                const u16 step = greet.epoch - of;
                // One is skipped, and both are apart by half of all at most.
                return of == 0 || (step >= 1 && step <= 0x8002);
            };
            require(ahead(was.before));
            // Both sides come to the same.
            require(orr_epoch_of(heard.before, was.before, was.nonce ^ heard.nonce) == greet.epoch);
            // The caller may have to cut something first.
            if (how % 8 != 7) greet.session = true;
        }
        const bool answers = orr_greet_answers(&greet, &heard);
        require(answers || !heard.asks);
        if (answers) say(false);
        // It ends: who says the same again without asking is not answered.
        heard.asks = false;
        require(!answers || !orr_greet_answers(&greet, &heard));
    }

    void say(bool asks) {
        const orr_greeting said = orr_greet_say(&greet, asks);
        require(said.nonce == greet.nonce && said.known == greet.peer && said.before == greet.before &&
                said.asks == asks && greet.told == greet.peer);
    }

    orr_greet greet{};
    u16 before = 0;
};

void place(Input& input) {
    std::array<u8, 9> uses{};
    const u32 count = 1 + input.take<std::uint8_t>() % 8;
    for (u8& use : uses)
        use = input.take<std::uint8_t>() % 4;
    u32 last = input.take<std::uint8_t>() % count;
    const u32 was = last, found = orr_greet_place(uses.data(), count, &last);
    require(found <= count && last == (found == count ? was : found));
    for (u32 i = 0; i < count; ++i) {
        if (found == count)
            require(uses.at(i) == ORR_PLACE_USED);
        else
            require(uses.at(found) != ORR_PLACE_USED && uses.at(found) <= uses.at(i));
    }
}

// Not both of two cards give way to each other.
void moves(Input& input) {
    const u32 a = input.take<std::uint16_t>(), b = input.take<std::uint16_t>();
    orr_greet one{}, other{};
    const auto how = input.take<std::uint8_t>();
    one.session = (how & 1) != 0, other.session = (how & 2) != 0;
    if (a != b) require(!orr_greet_moves(&one, a, b, true) || !orr_greet_moves(&other, b, a, true));
    require(!one.session || !orr_greet_moves(&one, a, b, (how & 4) != 0));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Side side;
    Input input(data, size);
    for (unsigned steps = 0; !input.empty() && steps < 400; ++steps) {
        switch (input.take<std::uint8_t>() % 8) {
            case 0:
                side.anew(input);
                break;
            case 1:
                side.say(true);
                break;
            case 2:
                place(input);
                break;
            case 3:
                moves(input);
                break;
            default:
                side.hear(input);
        }
    }
    return 0;
}
