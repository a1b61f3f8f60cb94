// What small work costs the card alone: its thread's time from a doorbell until it has nothing to do, without
// a VM and without a host that waits.
//   bench_jobs
//   bench_jobs off|sink|counters KERNELS: so many small kernels, for a tool that counts instructions; with
//     records of what ends for who wants them, and what it did
#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <orrery/fw/packet.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/link.h>
#include <orrery/hw/trace_sink.h>

#include "tests/unit/card/firmware_rig.h"
#include "tools/bench/measured.h"
#include "tools/bench/thread_clock.h"

namespace orrery::emu {
namespace {

constexpr int kTurns = 20, kJobs = 2000;
constexpr std::uint32_t kAsid = 1;
constexpr std::uint64_t kCodeVa = 0x10000, kSemaphoreVa = 0x20000;
constexpr std::uint64_t kCode = 0x200000;  // in VRAM
constexpr std::uint64_t kSemaphore = kRamBase + 0x200000;

// 99 x c.addi t0, 1 and c.jr ra.
constexpr std::uint16_t kAddi = 0x0285, kReturn = 0x8082;

class Jobs {
  public:
    Jobs() {
        fw_.boot();
        constexpr std::uint64_t kHost = std::uint64_t{ORR_TARGET_HOST} << ORR_PTE_TARGET_SHIFT;
        fw_.rig().map_page(kAsid, kCodeVa, kCode, ORR_PTE_READ | ORR_PTE_EXEC);
        fw_.rig().map_page(kAsid, kSemaphoreVa, kSemaphore, ORR_PTE_READ | ORR_PTE_WRITE | kHost);
        std::array<std::uint16_t, 100> code;
        code.fill(kAddi);
        code.back() = kReturn;
        std::memcpy(fw_.card().vram().at(kCode, sizeof code), code.data(), sizeof code);
        fw_.make_queue(kAsid);
    }

    void signal() {
        orr_packet_semaphore packet{};
        packet.header.opcode = ORR_PKT_SIGNAL;
        packet.semaphore = kSemaphoreVa;
        packet.value = ++value_;
        run(packet);
        const auto& semaphore = *reinterpret_cast<orr_semaphore*>(fw_.rig().ram(kSemaphore));
        if (semaphore.value != value_) throw std::runtime_error("a signal did not come");
    }
    void kernel() {
        orr_packet_dispatch packet{};
        packet.header.opcode = ORR_PKT_DISPATCH;
        packet.header.flags = ORR_PKT_F_ORDERED;
        packet.entry = kCodeVa;
        packet.grid_x = 8;
        packet.grid_y = packet.grid_z = packet.block_x = packet.block_y = packet.block_z = 1;
        run(packet);
    }

    // As the driver asks for it: how much is written is answered by records().
    void record(bool counters) {
        fw_.rig().write32(ORR_R_SINK_ASK, counters ? ORR_SINK_ASK_JOBS : 0);
        fw_.rig().write64(ORR_R_SINK_BASE, kSink);
        fw_.rig().write64(ORR_R_SINK_TYPES, 1ull << ORR_TRACE_END_JOB | 1ull << ORR_TRACE_WAIT |
                                                1ull << ORR_TRACE_WAKE | 1ull << ORR_TRACE_SIGNAL);
        fw_.rig().write32(ORR_R_SINK_BYTES, 2u << 20);
        fw_.rig().settle();
    }
    std::uint64_t recorded_words() { return fw_.rig().word(kSink); }

  private:
    static constexpr std::uint64_t kSink = kRamBase + (8 << 20);

    template <class Packet>
    void run(const Packet& packet) {
        fw_.push(kAsid, packet);
        fw_.submit(kAsid);
        while (fw_.card().step()) {
        }
        const orr_ring& ring = fw_.ring(kAsid);
        if (ring.consumer != ring.producer || ring.error != 0) throw std::runtime_error("a job was not done");
    }

    FirmwareRig fw_;
    std::uint64_t value_ = 0;
};

void measure(bench::Measured& measured, Jobs& jobs, const char* name, void (Jobs::*job)()) {
    bench::Measurement one{name, {}, {}, {}};
    for (int turn = 0; turn <= kTurns; ++turn) {
        const double took = bench::thread_seconds_of([&] {
            for (int i = 0; i < kJobs; ++i)
                (jobs.*job)();
        });
        if (turn > 0) one.samples.push_back(took * 1e6 / kJobs);
    }
    measured.add(std::move(one));
}

void count(std::string_view how, int kernels) {
    Jobs jobs;
    if (how != "off") jobs.record(how == "counters");
    for (int i = 0; i < kernels; ++i)
        jobs.kernel();
    fmt::print("{:.2f} words a kernel\n", static_cast<double>(jobs.recorded_words()) / kernels);
}

}  // namespace
}  // namespace orrery::emu

int main(int argc, char** argv) {
    using namespace orrery::emu;
    try {
        if (argc == 3) {
            count(argv[1], std::atoi(argv[2]));
            return 0;
        }
        orrery::bench::Measured measured;
        Jobs jobs;
        measure(measured, jobs, "empty job, card alone", &Jobs::signal);
        measure(measured, jobs, "small kernel, card alone", &Jobs::kernel);
        return measured.print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_jobs: {}\n", error.what());
        return 1;
    }
}
