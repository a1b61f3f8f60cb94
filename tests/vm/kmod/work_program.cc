// kmod_work [ROUNDS [CARD]]: opens every card, or CARD, works on each, and goes. For scripts: status 0 if all
// was right.
#include <cstdio>
#include <cstdlib>

#include "tests/vm/kmod/device.h"

namespace {

using namespace orrery::kmod_test;

constexpr std::uint64_t kMiB = 1 << 20;

bool work(unsigned card) {
    File file = open_card(card);
    std::uint32_t vm = 0;
    if (!file || create_vm(file.get(), vm) != 0) return false;
    Buffer vram;
    Buffer system;
    if (make_buffer(file.get(), vm, 0x40000000, 4 * kMiB, ORR_BO_VRAM, vram) != 0) return false;
    if (make_buffer(file.get(), vm, 0x50000000, kMiB, ORR_BO_SYSTEM, system) != 0) return false;
    Queue queue(file.get(), vm, 0x10000000);
    if (queue.error() != 0) return false;
    orr_packet move = copy(vram.va + kMiB, system.va, kMiB);
    move.header.flags = ORR_PKT_F_ORDERED;
    if (queue.run(std::vector{fill(vram.va, 4 * kMiB, 0x1234567), move}) != 0) return false;
    if (system.words()[kMiB / 8 - 1] != 0x1234567) return false;
    // Left behind on purpose: a queue that waits for ever, work in flight, everything mapped.
    queue.submit(std::vector{fill(vram.va, kMiB, 1), wait_for(vram.va, 100), fill(vram.va, kMiB, 1)});
    queue.forget();
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
    const bool one = argc > 2;
    const unsigned first = one ? static_cast<unsigned>(std::atoi(argv[2])) : 0;
    const unsigned end = one ? first + 1 : count_cards();
    if (end == 0) {
        std::fprintf(stderr, "kmod_work: no card in /dev/accel\n");
        return 1;
    }
    for (int round = 0; round < rounds; round++) {
        for (unsigned card = first; card < end; card++) {
            if (!work(card)) {
                std::fprintf(stderr, "kmod_work: card %u failed in round %d\n", card, round);
                return 1;
            }
        }
    }
    return 0;
}
