// kmod_work [ROUNDS [CARD]]: opens every card, or CARD, works on each, and goes. For scripts: status 0 if all
// was right.
#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/vm/kmod/device.h"

namespace {

using namespace orrery::kmod_test;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kPattern = 0x1234567;

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(value));
    return text;
}

// What was asked and what came back, if that was not what should have; else nothing.
std::string work(unsigned card) {
    const auto refused = [](const std::string& asked, int error) {
        return asked + ": " + std::strerror(error);
    };
    const File file(::open(("/dev/accel/accel" + std::to_string(card)).c_str(), O_RDWR | O_CLOEXEC));
    if (!file) return refused("opening its node", errno);
    std::uint32_t vm = 0;
    if (const int error = create_vm(file.get(), vm); error != 0)
        return refused("making an address space", error);
    Buffer vram;
    Buffer system;
    if (const int error = make_buffer(file.get(), vm, 0x40000000, 4 * kMiB, ORR_BO_VRAM, vram); error != 0)
        return refused("mapping 4 MiB of the card's memory", error);
    if (const int error = make_buffer(file.get(), vm, 0x50000000, kMiB, ORR_BO_SYSTEM, system); error != 0)
        return refused("mapping 1 MiB of the host's memory", error);
    Queue queue(file.get(), vm, 0x10000000);
    if (queue.error() != 0) return refused("making a queue", queue.error());
    orr_packet move = copy(vram.va + kMiB, system.va, kMiB);
    move.header.flags = ORR_PKT_F_ORDERED;
    drm_orr_queue_wait out{};
    if (const int error = queue.run(std::vector{fill(vram.va, 4 * kMiB, kPattern), move}, out); error != 0)
        return refused(
            "waiting for a fill and a copy, of which " + std::to_string(out.completed) + " were done", error);
    if (out.error != 0)
        return "a fill and a copy: the queue stopped with error " + std::to_string(out.error) +
               " at packet " + std::to_string(out.error_index) + ", address " + hex(out.error_address) +
               ", detail " + hex(out.error_detail);
    if (const std::uint64_t last = system.words()[kMiB / 8 - 1]; last != kPattern)
        return "what was filled with " + hex(kPattern) + " and copied ends with " + hex(last);
    // Left behind on purpose: a queue that waits for ever, work in flight, everything mapped.
    queue.submit(std::vector{fill(vram.va, kMiB, 1), wait_for(vram.va, 100), fill(vram.va, kMiB, 1)});
    queue.forget();
    return {};
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
            const std::string failure = work(card);
            if (failure.empty()) continue;
            std::fprintf(stderr, "kmod_work: card %u failed in round %d: %s\n", card, round, failure.c_str());
            return 1;
        }
    }
    return 0;
}
