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
        if (!bench.step()) return;
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

// A command as a driver would send it, mostly.
void fill_in(orr_mbox_message& command, Input& in) {
    const std::uint64_t queue = in.take(1) % 6;
    const std::uint64_t context = in.take(1) % 4;
    const std::uint64_t share = in.take(1) * 4 | (in.take(1) % 4 * 100) << 32;
    const std::uint64_t quota = in.take(1) * 4 | in.take(1) * 10 << 32;
    switch (command.opcode) {
        case ORR_MBOX_CONTEXT_CREATE:
            command.arg[0] = context;
            command.arg[1] = 0x1000 * context;
            command.arg[2] = context;
            command.arg[3] = quota;
            break;
        case ORR_MBOX_QUEUE_CREATE:
            command.arg[0] = queue | context << 32;
            command.arg[1] = kRingVa + queue * kRingBytes;
            command.arg[2] = 8;
            command.arg[3] = queue | in.take(1) % 4 << 32;
            command.arg[4] = in.take(1) * 100;
            command.arg[5] = share;
            break;
        case ORR_MBOX_QUEUE_SET:
            command.arg[0] = queue;
            command.arg[1] = in.take(1) % 4;
            command.arg[2] = share;
            break;
        case ORR_MBOX_QUOTA_SET:
            command.arg[0] = context;
            command.arg[1] = quota;
            break;
        case ORR_MBOX_CONTEXT_DESTROY:
        case ORR_MBOX_TLB_FLUSH:
            command.arg[0] = context;
            break;
        case ORR_MBOX_NAME:
            command.arg[0] = queue | in.take(1) % 2 << 32;
            command.arg[1] = in.take(8);
            break;
        default:
            command.arg[0] = queue;
            if (command.opcode == ORR_MBOX_QUEUE_ARM) command.arg[1] = in.take(1) % 16;
    }
}

void send_command(Bench& bench, Input& in) {
    orr_mbox_message command{};
    command.sequence = static_cast<std::uint32_t>(in.take(1));
    command.opcode = static_cast<std::uint16_t>(in.take(1) % 16);
    const std::uint64_t kind = in.take(1);
    command.flags = static_cast<std::uint16_t>(kind % 3);
    if (kind < 64) {
        for (std::uint64_t& arg : command.arg)
            arg = number(in);
    } else {
        fill_in(command, in);
    }
    // Never over what the firmware has not read yet: that would be the fuzzer's race, not the driver's.
    if (bench.command_producer - bench.soc.host(kCommands + 64) < ORR_MBOX_ENTRIES) bench.send(command);
}

void push_packet(Bench& bench, Input& in, std::vector<ProcessQueue>& queues) {
    ProcessQueue& queue = queues[in.take(1) % queues.size()];
    orr_packet p =
        packet(static_cast<std::uint16_t>(in.take(1) % 12), static_cast<std::uint16_t>(in.take(1) % 5));
    switch (in.take(1) % 7) {
        case 0:
            p = copy(number(in));
            break;
        case 6: {
            orr_packet_gang gang{};
            gang.header.opcode = ORR_PKT_GANG;
            gang.board = kSharedVa + 64 * (in.take(1) % 4);
            gang.round = 1 + in.take(1) % 3;
            gang.cards = static_cast<std::uint16_t>(1 + in.take(1) % 2);
            gang.card = static_cast<std::uint16_t>(in.take(1) % gang.cards);
            gang.peers = gang.cards == 1 ? 0 : kSharedVa + 8 * (in.take(1) % 64);
            gang.members = static_cast<std::uint16_t>(1 + in.take(1) % 2);
            bench.push(queue, as_packet(gang));
            orr_packet_dispatch kernel = dispatch_of(number(in) & ~1ull, ORR_PKT_F_RESIDENT);
            kernel.grid_x = static_cast<std::uint32_t>(1 + in.take(1) % 6);
            kernel.grid_y = kernel.grid_z = 1;
            p = as_packet(kernel);
            break;
        }
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

// The driver starts the core again.
void restart(Bench& bench, Input& in) {
    if (in.take(1) % 2 == 0) {
        // What was left of its tables is not all as it was.
        auto* const bytes =
            bench.crashed ? bench.remains.data() : reinterpret_cast<std::uint8_t*>(bench.tables.get());
        // Rows of those that exist are rare: aim at them.
        const std::size_t queues = offsetof(Tables, queues);
        const std::uint64_t where = in.take(1) % 4;
        const std::size_t at =
            where == 0   ? sizeof(PersistHeader) + in.take(3) % (sizeof(Tables) - sizeof(PersistHeader))
            : where == 1 ? queues + in.take(2) % (6 * sizeof(Queue))
            : where == 2 ? offsetof(Tables, contexts) + in.take(1) % (3 * sizeof(Context))
                         : sizeof(PersistHeader) + in.take(2) % (queues - sizeof(PersistHeader));
        bytes[at] = static_cast<std::uint8_t>(in.take(1));
    }
    require(bench.restart(), "does not start again");
}

void act(Bench& bench, Input& in, std::vector<ProcessQueue>& queues) {
    switch (in.take(1) % 14) {
        case 12:
            // The core crashes, here or a little later.
            if (in.take(1) % 4 != 0) break;
            bench.soc.crash_at = bench.soc.accesses + 1 + in.take(2) % 300;
            run(bench);
            bench.soc.crash_at = kEmpty;
            restart(bench, in);
            break;
        case 13: {
            const auto busy = bench.soc.busy_ports();
            if (busy.empty()) break;
            const std::uint32_t port = busy[in.take(1) % busy.size()];
            bench.soc.engines[port].active = in.take(1) % 9;
            bench.soc.preempt(port);
            break;
        }
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
            if (busy.empty()) break;
            const std::uint32_t port = busy[in.take(1) % busy.size()];
            const std::uint64_t status = in.take(1) % 6;
            if (status == ORR_DONE_PREEMPTED)
                bench.soc.preempt(port);  // if it was asked to
            else
                bench.soc.finish(port, status, in.take(1), number(in));
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
    const std::uint64_t kind = in.take(1);
    FakeSoc::Config config;
    config.memory_bytes = 0x150000;
    config.copy_engines = 1 + kind % 2;
    config.vector_ports = 1 + kind / 2 % 4;
    config.preempt_at_once = (kind & 8) != 0;
    config.abort_at_once = (kind & 16) != 0;
    Bench bench(config);
    const std::uint64_t areas = kind / 32 % 4;
    bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_areas) / 8 * 8, areas << 32 | 4096);
    bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_base), areas == 0 ? 0 : 0x110000);
    require(bench.boot(), "does not boot");
    for (std::uint32_t context = 1; context <= 2; ++context)
        bench.create_context(context, context);
    std::vector<ProcessQueue> queues;
    for (std::uint32_t n = 0; n < 4; ++n)
        queues.push_back(bench.create_queue(n, 1 + n % 2, 8));
    while (!in.empty() && !bench.firmware->halted()) {
        act(bench, in, queues);
        run(bench);
        if (bench.crashed) restart(bench, in);
    }
    // What is on the engines comes to an end, and what waits for them after it.
    for (int n = 0; n < 1'000 && !bench.firmware->halted() && !bench.soc.busy_ports().empty(); ++n) {
        for (const std::uint32_t port : bench.soc.busy_ports())
            bench.soc.finish(port);
        while (bench.receive()) {
        }
        run(bench);
        require(!bench.crashed, "crashes by itself");
    }
    if (!bench.firmware->halted()) require(bench.soc.busy_ports().empty(), "engines never rest");
    if (!bench.soc.violations().empty()) require(false, bench.soc.violations().front().c_str());
    return 0;
}
