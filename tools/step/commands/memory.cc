// x, info registers
#include <array>
#include <cctype>

#include "tools/step/commands/commands.h"
#include "tools/step/program/disassemble.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

constexpr std::uint64_t kMostUnits = 4096;

// What stands behind "x/": a count, a format and a size, as gdb has them.
struct Format {
    std::uint64_t count = 1;
    char letter = 'x';
    unsigned bytes = 8;
};

Result<Format> parse_format(std::string_view text) {
    Format format;
    std::size_t digits = 0;
    while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0)
        ++digits;
    if (digits > 0) {
        const auto count = parse_number(text.substr(0, digits));
        if (!count || *count == 0 || *count > kMostUnits)
            return fail("x shows 1 to {} units at a time", kMostUnits);
        format.count = *count;
    }
    for (const char c : text.substr(digits)) {
        switch (c) {
            case 'b':
                format.bytes = 1;
                break;
            case 'h':
                format.bytes = 2;
                break;
            case 'w':
                format.bytes = 4;
                break;
            case 'g':
                format.bytes = 8;
                break;
            case 'a':
                format.bytes = 8;
                [[fallthrough]];
            case 'x':
            case 'd':
            case 'u':
            case 'i':
            case 's':
            case 't':
                format.letter = c;
                break;
            default:
                return fail("'{}' is no format: x/4wx has a count, a size (b h w g) and one of x d u t a i s",
                            c);
        }
    }
    return format;
}

std::string show_unit(const Debugger& debugger, std::uint64_t value, const Format& format) {
    switch (format.letter) {
        case 'd': {
            const unsigned unused = 64 - 8 * format.bytes;
            return fmt::format("{}", static_cast<std::int64_t>(value << unused) >> unused);
        }
        case 'u':
            return fmt::format("{}", value);
        case 't':
            return fmt::format("{:0{}b}", value, 8 * format.bytes);
        case 'a':
            return debugger.place(value);
        default:
            return fmt::format("0x{:0{}x}", value, 2 * format.bytes);
    }
}

Result<void> not_here(std::uint64_t address) {
    return fail(
        "{:#x} is not in the recording: it holds the core's SRAM (0x80000000 on) and ROM (0x10000 on)",
        address);
}

Result<void> show_numbers(const Debugger& debugger, std::uint64_t address, const Format& format,
                          Reply& reply) {
    const std::uint64_t columns = format.letter == 'a' || format.letter == 't' ? 1 : 16 / format.bytes;
    Json values = Json::array();
    for (std::uint64_t i = 0; i < format.count; ++i) {
        std::array<std::uint8_t, 8> bytes{};
        const std::uint64_t at = address + i * format.bytes;
        if (!debugger.session().read(at, std::span(bytes).first(format.bytes))) return not_here(at);
        std::uint64_t value = 0;
        for (unsigned b = format.bytes; b-- > 0;)
            value = value << 8 | bytes[b];
        if (i % columns == 0) reply.text += (i == 0 ? "" : "\n") + debugger.place(at) + ":";
        reply.text += "  " + show_unit(debugger, value, format);
        values.push_back(value);
    }
    reply.text += "\n";
    reply.data["values"] = std::move(values);
    return {};
}

Result<void> show_instructions(const Debugger& debugger, std::uint64_t address, const Format& format,
                               Reply& reply) {
    Table table({{""}, {""}, {""}});
    Json list = Json::array();
    const std::uint64_t pc = debugger.session().registers().pc;
    for (std::uint64_t i = 0; i < format.count; ++i) {
        std::string bytes;
        const Instruction instruction = instruction_at(debugger, address, bytes);
        if (bytes.empty()) return not_here(address);
        table.row({address == pc ? "=>" : "", debugger.place(address) + ":", instruction.text});
        list.push_back({{"address", address}, {"code", bytes}, {"text", instruction.text}});
        address += instruction.bytes;
    }
    reply.text = table.text();
    reply.data["instructions"] = std::move(list);
    return {};
}

Result<void> show_strings(const Debugger& debugger, std::uint64_t address, const Format& format,
                          Reply& reply) {
    Json list = Json::array();
    for (std::uint64_t i = 0; i < format.count; ++i) {
        const std::uint64_t from = address;
        std::string text;
        for (std::uint8_t byte = 0; text.size() < kMostUnits; ++address) {
            if (!debugger.session().read(address, std::span(&byte, 1))) return not_here(address);
            if (byte == 0) break;
            text += byte >= ' ' && byte < 127 ? static_cast<char>(byte) : '?';
        }
        ++address;
        reply.text += fmt::format("{}:  \"{}\"\n", debugger.place(from), text);
        list.push_back(text);
    }
    reply.data["strings"] = std::move(list);
    return {};
}

}  // namespace

Result<Reply> cmd_x(Debugger& debugger, const Args& args) {
    std::string_view text = args.all;
    Format format;
    if (text.starts_with('/')) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const auto parsed = parse_format(text.substr(1, end - 1));
        if (!parsed) return std::unexpected(parsed.error());
        format = *parsed;
        text.remove_prefix(end);
    }
    while (text.starts_with(' '))
        text.remove_prefix(1);
    if (text.empty()) return fail("x where? 'x/8gx sp', 'x/4i pc', 'x/s &build_id'");
    const auto expression = Expression::parse(text, debugger.meanings());
    if (!expression) return std::unexpected(expression.error());
    const auto value = expression->evaluate(debugger.moment());
    if (!value) return std::unexpected(value.error());
    Reply reply;
    reply.data["address"] = value->bits;
    const auto shown = format.letter == 'i'   ? show_instructions(debugger, value->bits, format, reply)
                       : format.letter == 's' ? show_strings(debugger, value->bits, format, reply)
                                              : show_numbers(debugger, value->bits, format, reply);
    if (!shown) return std::unexpected(shown.error());
    return reply;
}

Reply registers_reply(const Debugger& debugger) {
    const emu::HartState state = debugger.session().registers();
    Reply reply;
    Table table({{""}, {""}, {""}});
    const auto row = [&](std::string name, std::uint64_t value, bool points) {
        const std::string where = points ? debugger.program().where(value) : "";
        table.row({name, fmt::format("{:#x}", value),
                   where.empty() ? fmt::format("{}", static_cast<std::int64_t>(value)) : "<" + where + ">"});
        reply.data[name] = value;
    };
    for (unsigned number = 1; number < 32; ++number)
        row(register_name(number), state.x[number], true);
    row("pc", state.pc, true);
    for (const auto& [name, value] : {std::pair{"mstatus", state.mstatus},
                                      {"mie", state.mie},
                                      {"mip", state.mip},
                                      {"mscratch", state.mscratch},
                                      {"mcause", state.mcause},
                                      {"mtval", state.mtval},
                                      {"mcycle", state.mcycle},
                                      {"minstret", state.minstret}})
        row(name, value, false);
    row("mtvec", state.mtvec, true);
    row("mepc", state.mepc, true);
    reply.text = table.text();
    return reply;
}

}  // namespace orrery::step
