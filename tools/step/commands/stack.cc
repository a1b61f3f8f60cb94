// bt, finish
#include <algorithm>

#include "tools/step/commands/commands.h"
#include "tools/step/commands/run.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

constexpr std::size_t kMostCalls = 64;

FrameRegisters registers_of(const Session& session) {
    const emu::HartState state = session.registers();
    FrameRegisters registers;
    std::copy_n(state.x, registers.x.size(), registers.x.begin());
    registers.pc = state.pc;
    return registers;
}

// The caller's registers, as they will be when what runs here has returned.
std::optional<FrameRegisters> caller_of(const Debugger& debugger, const FrameRegisters& here) {
    return debugger.program().calls().caller(here, [&](std::uint64_t address, std::uint64_t& value) {
        std::array<std::uint8_t, 8> bytes{};
        if (!debugger.session().read(address, bytes)) return false;
        value = 0;
        for (unsigned i = 8; i-- > 0;)
            value = value << 8 | bytes[i];
        return true;
    });
}

Result<void> check_running(const Debugger& debugger) {
    if (!debugger.session().running()) return fail("the core does not run at this position");
    if (debugger.program().symbols().empty())
        return fail("there are no symbols: name the firmware's ELF file with --elf");
    return {};
}

}  // namespace

Result<Reply> cmd_bt(Debugger& debugger, const Args&) {
    if (const auto runs = check_running(debugger); !runs) return std::unexpected(runs.error());
    Reply reply;
    Json list = Json::array();
    Table table({{"", Align::kRight}, {"pc"}, {"in"}, {"at"}});
    const Program& program = debugger.program();
    std::optional<FrameRegisters> at = registers_of(debugger.session());
    for (std::size_t calls = 0; at && calls < kMostCalls; ++calls, at = caller_of(debugger, *at)) {
        // A return address is behind the call: the call itself is meant.
        const std::uint64_t pc = calls == 0 ? at->pc : at->pc - 1;
        auto frames = program.debug().frames(pc);
        if (frames.empty()) {
            const Symbol* symbol = program.symbol_at(pc);
            if (symbol == nullptr && calls > 0) break;
            frames.push_back(
                {symbol != nullptr ? symbol->name : fmt::format("{:#x}", pc), program.debug().line_at(pc)});
        }
        for (std::size_t i = 0; i < frames.size(); ++i) {
            const Frame& frame = frames[i];
            const bool inlined = i + 1 < frames.size();
            const std::string line =
                frame.line ? fmt::format("{}:{}", frame.line->file, frame.line->line) : "";
            table.row({fmt::format("#{}", list.size()), inlined ? "" : fmt::format("{:#x}", at->pc),
                       frame.function, line + (inlined ? "  (inlined)" : "")});
            list.push_back({{"function", frame.function},
                            {"line", line},
                            {"pc", at->pc},
                            {"sp", at->sp()},
                            {"inlined", inlined}});
        }
    }
    reply.text = table.text();
    reply.data["frames"] = std::move(list);
    return reply;
}

Result<Reply> cmd_finish(Debugger& debugger, const Args&) {
    if (const auto runs = check_running(debugger); !runs) return std::unexpected(runs.error());
    Session& session = debugger.session();
    const FrameRegisters here = registers_of(session);
    const auto caller = caller_of(debugger, here);
    const auto inlined = debugger.program().debug().inlined_at(here.pc);
    if (!caller && inlined.empty())
        return fail("nobody called this code, as far as its debug information tells; 'bt' shows the stack");

    Goal goal;
    const auto returned = [&](const emu::HartState& now) {
        return caller && now.pc == caller->pc && now.x[2] >= caller->sp();
    };
    if (inlined.empty()) {
        goal.pcs = {caller->pc};
        goal.holds = [&] { return returned(session.registers()); };
    } else {
        // Code around an inlined function is of the same symbol, on the same stack frame.
        const Symbol* around = debugger.program().symbol_at(here.pc);
        goal.holds = [&, around] {
            const emu::HartState now = session.registers();
            if (returned(now)) return true;
            if (now.x[2] < here.sp() || around == nullptr || now.pc - around->address >= around->bytes)
                return false;
            return std::ranges::none_of(
                inlined, [&](const auto& range) { return now.pc >= range.first && now.pc < range.second; });
        };
    }
    const std::uint64_t from = session.position();
    const auto end = run_forward(debugger, session.end(), goal);
    if (!end) return std::unexpected(end.error());
    if (end->why == RunEnd::Why::kTarget) {
        session.seek(from);
        return fail("this code does not return in the recording; the position has not changed");
    }
    return arrived(debugger, *end, "");
}

}  // namespace orrery::step
