// The firmware between a hostile driver and hostile processes: commands, packets, indices, doorbells,
// completions and mappings as the input says. It must stay within its own memory (the sanitizers tell), keep
// the chip's rules (FakeSoc::violations), and never spin without end.
#include <cstdio>
#include <cstdlib>

#include "tests/unit/firmware/bench.h"

namespace orrery::fw::test {
namespace {

class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
    bool empty() const { return left_ == 0; }
    std::uint64_t take(std::size_t bytes) {
        std::uint64_t value = 0;
        for (std::size_t n = 0; n < bytes && left_ != 0; ++n, ++data_, --left_)
            value |= std::uint64_t{*data_} << 8 * n;
        return value;
    }

  private:
    const std::uint8_t* data_;
    std::size_t left_;
};

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz_firmware: %s\n", what);
    std::abort();
}

void run(Bench& bench) {
    for (int n = 0; n < 20'000; ++n) {
        if (!bench.firmware->pass()) return;
    }
    require(false, "the firmware never goes idle");
}

// Mostly plausible: small numbers, with some bits from the input.
std::uint64_t number(Input& in) {
    const std::uint64_t kind = in.take(1);
    switch (kind % 8) {
        case 0:
            return in.take(8);
        case 1:
            return kSharedVa + 16 * in.take(1);
        case 2:
            return kRingVa + kRingBytes * in.take(1);
        case 3:
            return std::uint64_t{1} << in.take(1) % 64;
        case 4:
            return in.take(1) | in.take(1) << 32;
        default:
            return in.take(1) % 8;
    }
}

void send_command(Bench& bench, Input& in) {
    orr_mbox_message command{};
    command.sequence = static_cast<std::uint32_t>(in.take(1));
    command.opcode = static_cast<std::uint16_t>(in.take(1) % 14);
    command.flags = static_cast<std::uint16_t>(in.take(1) % 3);
    for (std::uint64_t& arg : command.arg)
        arg = number(in);
    for (std::uint64_t n = 5; n > in.take(1) % 6; --n)
        command.arg[n] = 0;
    if (bench.command_producer - bench.soc.host(kCommands + 64) >= ORR_MBOX_ENTRIES) return;
    bench.send(command);
}

void push_packet(Bench& bench, Input& in, std::vector<ProcessQueue>& queues) {
    ProcessQueue& queue = queues[in.take(1) % queues.size()];
    orr_packet p =
        packet(static_cast<std::uint16_t>(in.take(1) % 12), static_cast<std::uint16_t>(in.take(1) % 5));
    switch (in.take(1) % 6) {
        case 0:
            p = copy(number(in));
            break;
        case 1:
            p = dispatch(number(in) & ~1ull);
            break;
        case 2:
            p = wait(kSharedVa + 16 * in.take(1), in.take(1) % 4);
            break;
        case 3:
            p = signal(kSharedVa + 16 * in.take(1), in.take(1) % 4);
            break;
        default:
            for (std::uint64_t n = in.take(1) % 8; n-- > 0;)
                p.word[n] = number(in);
    }
    bench.push(queue, p);
    if (in.take(1) % 16 == 0) queue.producer += number(in);
    bench.ring(queue);
}

void act(Bench& bench, Input& in, std::vector<ProcessQueue>& queues) {
    switch (in.take(1) % 12) {
        case 0:
            send_command(bench, in);
            break;
        case 1:
        case 2:
        case 3:
            push_packet(bench, in, queues);
            break;
        case 4: {
            const auto busy = bench.soc.busy_ports();
            if (!busy.empty())
                bench.soc.finish(busy[in.take(1) % busy.size()], in.take(1) % 6, in.take(1), number(in));
            break;
        }
        case 5:
            while (bench.receive()) {
            }
            break;
        case 6:
            bench.soc.ring(static_cast<std::uint32_t>(in.take(1) % 4),
                           static_cast<std::uint32_t>(in.take(1) % 16), number(in) | in.take(1) << 48);
            break;
        case 7:
            bench.soc.poke(number(in));
            break;
        case 8:
            // Never the tag of a job: a chip that lies about its own jobs is out of scope.
            bench.soc.wild_completion(number(in) | 0x80000000);
            break;
        case 9:
            bench.soc.time += in.take(2) << 24;
            break;
        case 10: {
            const std::uint64_t va = number(in) & ~0xfffull & ((1ull << 48) - 1);
            const auto context = static_cast<std::uint32_t>(1 + in.take(1) % 3);
            if (in.take(1) % 2 == 0)
                bench.soc.unmap(context, va);
            else
                bench.soc.map(context, va, in.take(1) % 16 * 0x1000, in.take(1) % 2 == 0);
            break;
        }
        default:
            bench.set_shared(16 * in.take(1), in.take(1) % 4);
    }
}

}  // namespace
}  // namespace orrery::fw::test

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace orrery::fw::test;
    Input in(data, size);
    FakeSoc::Config config;
    config.memory_bytes = 0x120000;
    Bench bench(config);
    require(bench.boot(), "does not boot");
    for (std::uint32_t context = 1; context <= 2; ++context)
        bench.create_context(context, context);
    std::vector<ProcessQueue> queues;
    for (std::uint32_t n = 0; n < 4; ++n)
        queues.push_back(bench.create_queue(n, 1 + n % 2, 8));
    while (!in.empty() && !bench.firmware->halted()) {
        act(bench, in, queues);
        run(bench);
    }
    if (!bench.soc.violations().empty()) require(false, bench.soc.violations().front().c_str());
    return 0;
}
