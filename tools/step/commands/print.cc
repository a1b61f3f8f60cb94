// print, list, where
#include <orrery/fw/inspect.h>

#include <algorithm>
#include <array>

#include "tools/step/commands/commands.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

// "queue[3]" alone: all fields of the row.
Result<Reply> print_row(Debugger& debugger, const Inspect::Table& table, std::string_view index) {
    const auto expression = Expression::parse(index, debugger.meanings());
    if (!expression) return std::unexpected(expression.error());
    const auto row = expression->evaluate(debugger.moment());
    if (!row) return std::unexpected(row.error());
    if (row->bits >= table.rows)
        return fail("{}[{}]: the table has rows 0 to {}", table.name, row->bits, table.rows - 1);
    Reply reply;
    Table text({{"field"}, {"value"}});
    for (const auto& field : table.fields) {
        const Cell cell = read_cell(debugger.session().sram(), table, row->bits, field);
        text.row({field.name, show(cell)});
        reply.data[field.name] = field.format == ORR_FORMAT_TEXT ? Json(cell.text) : Json(cell.bits);
    }
    reply.text = fmt::format("{}[{}]\n{}", table.name, row->bits, text.text("  "));
    return reply;
}

}  // namespace

Instruction instruction_at(const Debugger& debugger, std::uint64_t pc, std::string& bytes) {
    std::array<std::uint8_t, 4> raw{};
    if (!debugger.session().read(pc, std::span(raw).first(2))) return {"(not in SRAM or ROM)", 2};
    // The second half may lie behind the end of the memory.
    if (!debugger.session().read(pc, raw)) raw[2] = raw[3] = 0;
    std::uint32_t bits = 0;
    for (unsigned i = 4; i-- > 0;)
        bits = bits << 8 | raw[i];
    const Instruction instruction =
        disassemble(bits, pc, [&](std::uint64_t a) { return debugger.program().where(a); });
    bytes = instruction.bytes == 4 ? fmt::format("{:08x}", bits) : fmt::format("{:04x}", bits & 0xffff);
    return instruction;
}

bool take_hex(std::string_view& text) {
    const bool hex = text.starts_with("/x");
    if (hex) text.remove_prefix(2);
    while (text.starts_with(' '))
        text.remove_prefix(1);
    return hex;
}

Result<Reply> cmd_print(Debugger& debugger, const Args& args) {
    std::string_view text = args.all;
    const bool hex = take_hex(text);
    if (text.empty()) return fail("print what? 'print queue[3].vtime', 'print a0 + 8', 'print /x mcause'");
    const std::size_t open = text.find('[');
    if (open != std::string_view::npos && text.ends_with(']')) {
        if (const auto inspect = debugger.inspect()) {
            const Inspect::Table* table = (*inspect)->table(text.substr(0, open));
            if (table != nullptr)
                return print_row(debugger, *table, text.substr(open + 1, text.size() - open - 2));
        }
    }
    const auto expression = Expression::parse(text, debugger.meanings());
    if (!expression) return std::unexpected(expression.error());
    const auto value = expression->evaluate(debugger.moment());
    if (!value) return std::unexpected(value.error());
    Reply reply;
    const std::string shown =
        hex && value->present ? fmt::format("{:#x}", value->bits) : show(*value, debugger.program());
    reply.text = fmt::format("{} = {}\n", text, shown);
    reply.data["expression"] = std::string(text);
    if (!value->text.empty()) {
        reply.data["value"] = value->text;
    } else if (!value->present) {
        reply.data["value"] = nullptr;
    } else if (value->is_signed) {
        reply.data["value"] = static_cast<std::int64_t>(value->bits);
    } else {
        reply.data["value"] = value->bits;
    }
    reply.data["text"] = shown;
    return reply;
}

Result<Reply> cmd_list(Debugger& debugger, const Args& args) {
    std::uint64_t pc = debugger.session().registers().pc;
    const std::uint64_t here = pc;
    std::optional<Line> line;
    if (!args.all.empty()) {
        const auto function = debugger.program().function(args.all);
        if (!function) return std::unexpected(function.error());
        if (*function) {
            pc = (*function)->entries.front();
            line = (*function)->declared;
        } else {
            const auto expression = Expression::parse(args.all, debugger.meanings());
            if (!expression) return std::unexpected(expression.error());
            const auto value = expression->evaluate(debugger.moment());
            if (!value) return std::unexpected(value.error());
            pc = value->bits;
        }
    }
    Reply reply;
    if (!line) line = debugger.telling_line(pc);
    if (line) {
        const std::string source =
            debugger.program().source_text(line->file, line->line, 4, debugger.options().source_folders);
        reply.text +=
            fmt::format("{}:{}\n{}", line->file, line->line,
                        source.empty() ? "  (the source file is not here: --source FOLDER)\n" : source);
        reply.data["source"] = {{"file", line->file}, {"line", line->line}, {"text", source}};
    }
    Json list = Json::array();
    Table table({{""}, {"address"}, {"code"}, {"instruction"}});
    std::uint64_t at = pc;
    for (int i = 0; i < 10; ++i) {
        std::string bytes;
        const Instruction instruction = instruction_at(debugger, at, bytes);
        if (bytes.empty()) break;
        table.row({at == here ? "=>" : "", debugger.place(at), bytes, instruction.text});
        list.push_back({{"address", at}, {"code", bytes}, {"text", instruction.text}});
        at += instruction.bytes;
    }
    if (table.empty())
        return fail("there is no code at {:#x}: a recording holds the core's SRAM and ROM", pc);
    reply.text += table.text();
    reply.data["instructions"] = std::move(list);
    return reply;
}

Result<Reply> cmd_where(Debugger& debugger, const Args&) {
    Reply reply = debugger.here();
    std::string bytes;
    const std::uint64_t pc = debugger.session().registers().pc;
    const Instruction instruction = instruction_at(debugger, pc, bytes);
    if (!bytes.empty() && debugger.session().running()) {
        reply.text += fmt::format("  next: {}\n", instruction.text);
        reply.data["instruction"] = instruction.text;
    }
    Json frames = Json::array();
    Table table({{"in"}, {"at"}});
    for (const Frame& frame : debugger.program().debug().frames(pc)) {
        const std::string line = frame.line ? fmt::format("{}:{}", frame.line->file, frame.line->line) : "";
        table.row({frame.function, line});
        frames.push_back({{"function", frame.function}, {"line", line}});
    }
    reply.text += table.text("  ");
    reply.data["frames"] = std::move(frames);
    const std::size_t at = debugger.history().first_at_or_after(debugger.session().position());
    const auto& decisions = debugger.history().decisions();
    const auto decision = std::ranges::lower_bound(decisions, at);
    reply.text +=
        fmt::format("  event {} of {}, decision {} of {}\n", at, debugger.history().records().size(),
                    decision - decisions.begin(), decisions.size());
    reply.data["event_number"] = at;
    reply.data["decision_number"] = decision - decisions.begin();
    return reply;
}

}  // namespace orrery::step
