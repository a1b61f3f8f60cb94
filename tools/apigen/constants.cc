#include "tools/apigen/constants.h"

#include <fmt/format.h>

#include <regex>
#include <sstream>

#include "tools/apigen/ast.h"
#include "tools/apigen/clang.h"

namespace orrery::apigen {

Macros read_macros(const std::string& folder) {
    const std::regex place(R"lit(# \d+ "([^"]*)".*)lit"), definition(R"(#define (\w+) (.+))"),
        end(R"(#undef (\w+))");
    OwnFiles own(folder);
    Macros macros;
    bool is_own = false;
    std::istringstream lines(clang(folder, "-E -dD"));
    std::smatch found;
    for (std::string text; std::getline(lines, text);) {
        if (!text.starts_with('#')) continue;
        if (std::regex_match(text, found, place)) {
            is_own = own.has(found[1]);
        } else if (std::regex_match(text, found, end)) {
            macros.erase(found[1]);
        } else if (is_own && std::regex_match(text, found, definition)) {
            macros[found[1]] = found[2];
        }
    }
    return macros;
}

bool is_constant(const std::string& name, const std::string& text) {
    return !name.starts_with("ORR_VERSION") && !text.starts_with("__attribute__") &&
           !text.starts_with("_Noreturn");
}

std::string version_of(const Macros& macros) {
    const auto major = macros.find("ORR_VERSION_MAJOR"), minor = macros.find("ORR_VERSION_MINOR");
    if (major == macros.end() || minor == macros.end())
        throw Problem("the headers lack ORR_VERSION_MAJOR or ORR_VERSION_MINOR");
    return major->second + "." + minor->second;
}

std::map<std::string, std::string> evaluate(const std::string& folder,
                                            const std::vector<std::string>& names) {
    if (names.empty()) return {};
    const std::string mark = "orrery_apigen_";
    std::string source;
    for (const std::string& name : names)
        source += fmt::format("enum {{ {}{} = {} }};\n", mark, name, name);
    std::map<std::string, std::string> values;
    for (const auto& [node, file] : read_declarations(folder, source)) {
        for (const Json& child : inner(node)) {
            const std::string name = name_of(child);
            if (!name.starts_with(mark)) continue;
            if (const Json* const value = constant_in(child)) values[name.substr(mark.size())] = *value;
        }
    }
    return values;
}

}  // namespace orrery::apigen
