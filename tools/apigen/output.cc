#include "tools/apigen/output.h"

#include <fmt/format.h>

namespace orrery::apigen {
namespace {

constexpr const char* kHead = "// Made by orrery-apigen from the headers in umd/include/orrery.\n";

std::string declared(const Function& function) {
    std::string parameters;
    for (const Parameter& parameter : function.parameters)
        parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", parameter.type, parameter.name);
    return fmt::format("{} {}({})", function.result, function.name, parameters);
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

std::string entry_points_header(const std::vector<Function>& functions) {
    std::string text = kHead;
    text +=
        "#pragma once\n\n#include <orrery/graph.h>\n#include <orrery/group.h>\n#include "
        "<orrery/task.h>\n\n#include <cstdint>\n\n"
        "namespace orrery::umd {\n\nenum class Entry : std::uint16_t {\n";
    for (const Function& function : functions)
        text += fmt::format("    {},\n", function.name);
    text += "};\n\ninline constexpr const char* kEntryNames[] = {\n";
    for (const Function& function : functions)
        text += fmt::format("    \"{}\",\n", function.name);
    text += "};\n\n";
    for (const Function& function : functions) {
        text += fmt::format("struct {}_params {{", function.name);
        for (const Parameter& parameter : function.parameters)
            text += fmt::format("\n    {} {};", parameter.type, parameter.name);
        text += function.parameters.empty() ? "};\n" : "\n};\n";
    }
    text += "\nnamespace api {\n";
    for (const Function& function : functions)
        text += declared(function) + ";\n";
    text += "}  // namespace api\n\n}  // namespace orrery::umd\n";
    return text;
}

std::string entry_points_source(const std::vector<Function>& functions) {
    std::string text = kHead;
    text += "#include \"umd/api/entry.h\"\n\nextern \"C\" {\n\n";
    for (const Function& function : functions) {
        text += fmt::format("{} {{\n    ORR_ENTRY({}", declared(function), function.name);
        for (const Parameter& parameter : function.parameters)
            text += ", " + parameter.name;
        text += ");\n}\n";
    }
    text += "\n}  // extern \"C\"\n";
    return text;
}

}  // namespace orrery::apigen
