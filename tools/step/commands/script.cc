#include "tools/step/commands/script.h"

#include <fstream>
#include <iostream>

#include "tools/step/commands/cards.h"
#include "tools/step/commands/commands.h"
#include "tools/text/shown.h"

namespace orrery::step {

Result<std::vector<std::string>> script_lines(const std::string& file) {
    std::ifstream opened;
    if (file != "-") {
        opened.open(file);
        if (!opened) return fail("{}: the script cannot be read", file);
    }
    std::istream& in = file == "-" ? std::cin : opened;
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

Debugger& current_of(Debugger& debugger) {
    return debugger.cards != nullptr ? debugger.cards->now() : debugger;
}

std::string prompt_of(const Debugger& debugger) {
    return debugger.cards != nullptr ? card_name(debugger.cards->current) + "> " : "orrery-step> ";
}

bool run_script(Debugger& first, const std::vector<std::string>& lines, bool json, std::FILE* out) {
    bool good = true;
    for (const std::string& line : lines) {
        Debugger& debugger = current_of(first);
        if (debugger.quit) break;
        const std::size_t text = line.find_first_not_of(" \t\r");
        if (text == std::string::npos || line[text] == '#') continue;
        const std::string prompt = prompt_of(first);
        const auto reply = debugger.execute(line);
        const std::string error = reply ? reply->failure : reply.error().text;
        good = good && error.empty();
        if (json) {
            Json object = {{"command", line}, {"ok", error.empty()}};
            if (reply) object["result"] = reply->data;
            if (!error.empty()) object["error"] = error;
            fmt::print(out, "{}\n", object.dump(-1, ' ', false, Json::error_handler_t::replace));
        } else {
            fmt::print(out, "{}{}\n{}{}", prompt, line, reply ? shown(reply->text) : "",
                       error.empty() ? "" : shown("error: " + error + "\n"));
        }
    }
    return std::fflush(out) == 0 && good;
}

Result<Reply> cmd_source(Debugger& debugger, const Args& args) {
    constexpr unsigned kMostDepth = 16;  // a file that sources itself
    if (args.words.size() != 1) return fail("'source FILE' runs the commands that stand in it");
    const auto lines = script_lines(args.words.front());
    if (!lines) return std::unexpected(lines.error());
    if (debugger.sourcing == kMostDepth)
        return fail("{}: sources are nested more than {} deep", args.words.front(), kMostDepth);
    Reply reply;
    reply.data["replies"] = Json::array();
    ++debugger.sourcing;
    Result<Reply> done;
    for (std::size_t i = 0; i < lines->size() && done && !debugger.quit; ++i) {
        done = debugger.execute((*lines)[i]);
        if (!done) {
            done = fail("{}:{}: {}", args.words.front(), i + 1, done.error().text);
            break;
        }
        reply.text += done->text;
        if (!done->data.empty()) reply.data["replies"].push_back(done->data);
        if (done->failure.empty()) continue;
        reply.failure = fmt::format("{}:{}: {}", args.words.front(), i + 1, done->failure);
        break;
    }
    --debugger.sourcing;
    if (!done) return done;
    return reply;
}

}  // namespace orrery::step
