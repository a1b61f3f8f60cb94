#include "tools/apigen/output.h"

#include <fmt/format.h>

#include <cstddef>
#include <set>

namespace orrery::apigen {
namespace {

constexpr const char* kMade = "Made by orrery-apigen from the headers in umd/include/orrery.";

std::string declared(const Function& function) {
    std::string parameters;
    for (const Parameter& parameter : function.parameters)
        parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", parameter.type, parameter.name);
    return fmt::format("{} {}({})", function.result, function.name, parameters);
}

std::string params_of(const Function& function) {
    return function.name + "_params";
}

// Profilers are not told of what they themselves call.
bool is_told(const Function& function) {
    return function.header != "prof.h";
}

}  // namespace

std::string symbol_map(const std::vector<Release>& releases) {
    std::string text, before;
    for (const Release& release : releases) {
        std::string names;
        for (const Item& item : release.items) {
            if (item.kind == "function") names += fmt::format("    {};\n", item.name);
        }
        if (names.empty()) continue;
        const std::string node = "ORRERY_" + release.version;
        text += fmt::format("{} {{\n  global:\n{}", node, names);
        text += before.empty() ? "  local: *;\n};\n" : fmt::format("}} {};\n", before);
        before = node;
    }
    return text;
}

std::string calls_header(const std::vector<Function>& functions) {
    std::set<std::string> headers;
    std::string numbers, parameters;
    for (std::size_t i = 0; i < functions.size(); ++i) {
        const Function& function = functions[i];
        if (!is_told(function)) continue;
        headers.insert(function.header);
        numbers += fmt::format("    orrProfCall_{} = {},\n", function.name, i);
        if (function.parameters.empty()) continue;  // C has no struct without members
        parameters += "typedef struct " + params_of(function) + " {\n";
        for (const Parameter& parameter : function.parameters)
            parameters += fmt::format("    {} {};\n", parameter.type, parameter.name);
        parameters += fmt::format("}} {};\n", params_of(function));
    }
    std::string includes;
    for (const std::string& header : headers)
        includes += fmt::format("#include <orrery/{}>\n", header);
    return fmt::format(
        "/* SPDX-License-Identifier: MIT */\n"
        "/** Number and parameters of each call that orrery/prof.h tells of. {} */\n"
        "#ifndef ORRERY_PROF_CALLS_H\n#define ORRERY_PROF_CALLS_H\n\n{}\n"
        "typedef enum orrProfCall {{\n{}}} orrProfCall;\n\n{}\n#endif /* ORRERY_PROF_CALLS_H */\n",
        kMade, includes, numbers, parameters);
}

std::string entry_points_header(const std::vector<Function>& functions) {
    std::set<std::string> headers;
    std::string names, declarations;
    for (const Function& function : functions) {
        headers.insert(function.header);
        names += fmt::format("    \"{}\",\n", function.name);
        declarations += declared(function) + ";\n";
    }
    std::string includes;
    for (const std::string& header : headers)
        includes += fmt::format("#include <orrery/{}>\n", header);
    return fmt::format(
        "// {}\n#pragma once\n\n{}#include <orrery/prof_calls.h>\n\nnamespace orrery::umd {{\n\n"
        "// By the numbers of calls.\ninline constexpr const char* kEntryNames[] = {{\n{}}};\n\n"
        "namespace api {{\n{}}}  // namespace api\n\n}}  // namespace orrery::umd\n",
        kMade, includes, names, declarations);
}

std::string entry_points_source(const std::vector<Function>& functions) {
    std::string text = fmt::format("// {}\n#include \"umd/api/entry.h\"\n\nextern \"C\" {{\n\n", kMade);
    for (const Function& function : functions) {
        std::string arguments;
        for (const Parameter& parameter : function.parameters)
            arguments += (arguments.empty() ? "" : ", ") + parameter.name;
        text += declared(function) + " {\n";
        if (!is_told(function)) {
            text += fmt::format("    return orrery::umd::api::{}({});\n}}\n", function.name, arguments);
        } else if (arguments.empty()) {
            text += fmt::format("    ORR_ENTRY_PLAIN({});\n}}\n", function.name);
        } else {
            text += fmt::format("    ORR_ENTRY({}, {});\n}}\n", function.name, arguments);
        }
    }
    text += "\n}  // extern \"C\"\n";
    return text;
}

}  // namespace orrery::apigen
