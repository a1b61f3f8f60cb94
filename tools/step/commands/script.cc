#include "tools/step/commands/script.h"

#include <fstream>
#include <iostream>

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

bool run_script(Debugger& debugger, const std::vector<std::string>& lines, bool json, std::FILE* out) {
    bool good = true;
    for (const std::string& line : lines) {
        if (debugger.quit) break;
        const std::size_t text = line.find_first_not_of(" \t\r");
        if (text == std::string::npos || line[text] == '#') continue;
        const auto reply = debugger.execute(line);
        good = good && reply.has_value();
        if (json) {
            Json object = {{"command", line}, {"ok", reply.has_value()}};
            if (reply) {
                object["result"] = reply->data;
            } else {
                object["error"] = reply.error().text;
            }
            fmt::print(out, "{}\n", object.dump(-1, ' ', false, Json::error_handler_t::replace));
        } else {
            fmt::print(out, "orrery-step> {}\n{}", line,
                       reply ? reply->text : "error: " + reply.error().text + "\n");
        }
    }
    return std::fflush(out) == 0 && good;
}

}  // namespace orrery::step
