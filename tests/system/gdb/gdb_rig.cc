// What gdb connects to in session.sh.
//   gdb_rig replay   records a card with the real firmware, and serves the recording
//   gdb_rig live     a running card with work that comes in all the time, whatever the debugger does; says
//   when
//                    it "runs" and is "held"
// Prints "port N"; ends when its stdin is closed (or the debugger kills a replay).
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "emulator/api/replay_server.h"
#include "emulator/card/card_thread.h"
#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

bool input_closed() {
    pollfd in{STDIN_FILENO, POLLIN, 0};
    if (::poll(&in, 1, 0) <= 0) return false;
    char byte = 0;
    return ::read(STDIN_FILENO, &byte, 1) <= 0;
}

void say_port(std::uint16_t port) {
    fmt::print("port {}\n", port);
    std::fflush(stdout);
}

int replay() {
    const TemporaryFile file;
    record_firmware(file.path());
    auto replayer = Replayer::open(file.path());
    if (!replayer || (*replayer)->divergence()) {
        fmt::print(stderr, "the recording does not replay\n");
        return 1;
    }
    const auto served = gdb::serve_replay(**replayer, 0, say_port, input_closed);
    if (!served) fmt::print(stderr, "{}\n", served.error());
    return served ? 0 : 1;
}

int live() {
    const TemporaryFile file;
    std::uint64_t rounds = 0;
    {
        CardConfig config = CardRig::config();
        config.gdb = 0;
        config.record = file.path();
        config.stepper = ORRERY_STEP;
        FirmwareRig fw(FirmwareRig::config(std::move(config)));
        const CardThread thread(fw.card());
        fw.boot();
        fw.make_queue(1);
        say_port(fw.card().gdb_port());
        constexpr std::uint64_t kSpare = kRamBase + (std::uint64_t{1} << 32);
        const UniqueFd spare(::memfd_create("gdb-rig", MFD_CLOEXEC));
        if (!spare || ::ftruncate(spare.get(), 4096) != 0) return 1;
        orr_packet_fill nop{};
        nop.header.opcode = ORR_PKT_NOP;
        bool runs = false;
        while (!input_closed()) {
            if (std::exchange(runs, fw.rig().read32(ORR_R_HELD) == 0) != runs) {
                fmt::print("{}\n", runs ? "runs" : "held");
                std::fflush(stdout);
            }
            // What QEMU does must be answered while the core stands still.
            DmaMap map;
            map.address = kSpare;
            map.size = 4096;
            map.fd = UniqueFd(::fcntl(spare.get(), F_DUPFD_CLOEXEC, 0));
            map.readable = map.writable = true;
            if (fw.rig().device().dma_map(std::move(map)) != 0) return 1;
            fw.rig().device().dma_unmap(kSpare, 4096);
            if (fw.rig().read32(ORR_R_ID) != ORR_ID_MAGIC) return 1;
            if (std::atomic_ref(fw.ring(1).consumer).load(std::memory_order_acquire) == fw.ring(1).producer) {
                fw.push(1, nop);
                fw.submit(1);
                ++rounds;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        if (fw.ring(1).error != 0) return 1;
    }
    // What the debugger changed is part of the recording.
    const auto replayer = Replayer::open(file.path());
    if (!replayer) {
        fmt::print(stderr, "{}\n", replayer.error());
        return 1;
    }
    if (const auto& bad = (*replayer)->divergence()) {
        fmt::print(stderr, "the recording diverges at step {}: {}\n", bad->step, bad->reason);
        return 1;
    }
    unsigned changes = 0;
    for (const TraceNote& note : (*replayer)->notes())
        changes += note.kind >= ORR_OTRACE_NOTE_SET_STATE ? 1 : 0;
    fmt::print("rounds {} changes {}\n", rounds, changes);
    return 0;
}

}  // namespace
}  // namespace orrery::emu

int main(int argc, char** argv) {
    const std::string kind = argc == 2 ? argv[1] : "";
    if (kind == "replay") return orrery::emu::replay();
    if (kind == "live") return orrery::emu::live();
    std::fputs("usage: gdb_rig replay|live\n", stderr);
    return 2;
}
