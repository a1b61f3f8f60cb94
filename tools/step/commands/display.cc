// display, undisplay
#include <algorithm>

#include "tools/step/commands/commands.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

void show_display(const Debugger& debugger, const Display& display, Reply& reply) {
    const auto value = display.expression.evaluate(debugger.moment());
    std::string shown;
    if (!value) {
        shown = "(" + value.error().text + ")";
    } else if (display.hex && value->present) {
        shown = fmt::format("{:#x}", value->bits);
    } else {
        shown = show(*value, debugger.program());
    }
    reply.text += fmt::format("{}: {} = {}\n", display.number, display.expression.text(), shown);
    reply.data["display"].push_back(
        {{"number", display.number}, {"expression", display.expression.text()}, {"text", shown}});
}

}  // namespace

void append_displays(const Debugger& debugger, Reply& reply) {
    for (const Display& display : debugger.displays())
        show_display(debugger, display, reply);
}

Result<Reply> cmd_display(Debugger& debugger, const Args& args) {
    Reply reply;
    std::string_view text = args.all;
    if (text.empty()) {
        append_displays(debugger, reply);
        if (reply.text.empty())
            reply.text = "nothing is displayed; 'display queue[3].state' adds something\n";
        return reply;
    }
    const bool hex = take_hex(text);
    auto expression = Expression::parse(text, debugger.meanings());
    if (!expression) return std::unexpected(expression.error());
    debugger.displays().push_back({debugger.next_display(), hex, std::move(*expression)});
    show_display(debugger, debugger.displays().back(), reply);
    return reply;
}

Result<Reply> cmd_undisplay(Debugger& debugger, const Args& args) {
    auto& all = debugger.displays();
    Reply reply;
    std::size_t gone = args.words.empty() ? all.size() : args.words.size();
    for (const std::string& word : args.words) {
        const auto number = parse_number(word);
        if (!number) return std::unexpected(number.error());
        if (std::erase_if(all, [&](const Display& d) { return d.number == *number; }) == 0)
            return fail("there is no display {}; 'display' shows them", *number);
    }
    if (args.words.empty()) all.clear();
    reply.data["removed"] = gone;
    reply.text = fmt::format("{} removed\n", gone);
    return reply;
}

}  // namespace orrery::step
