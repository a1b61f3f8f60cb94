#include "tools/apigen/headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace orrery::apigen {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool has_child(const Json& node, const char* kind) {
    const auto inner = node.find("inner");
    return inner != node.end() &&
           std::ranges::any_of(*inner, [&](const Json& child) { return child.value("kind", "") == kind; });
}

// Where it stands, if the dump says so: a file is named only where it differs from the node before.
void follow_file(const Json& location, std::string& file) {
    if (!location.is_object()) return;
    for (const char* part : {"spellingLoc", "expansionLoc"}) {
        if (location.contains(part)) follow_file(location[part], file);
    }
    file = location.value("file", file);
}

Function read_function(const Json& node) {
    Function function;
    function.name = node.at("name");
    const std::string type = node.at("type").at("qualType");
    function.result = type.substr(0, type.find('('));
    while (function.result.ends_with(' '))
        function.result.pop_back();
    function.documented = has_child(node, "FullComment");
    if (!node.contains("inner")) return function;
    for (const Json& child : node["inner"]) {
        if (child.value("kind", "") != "ParmVarDecl") continue;
        if (!child.contains("name")) throw Problem(function.name + ": a parameter has no name");
        function.parameters.push_back({child.at("type").at("qualType"), child.at("name")});
    }
    return function;
}

// The constant expression in or below it, if any.
const Json* constant_in(const Json& node) {
    if (node.value("kind", "") == "ConstantExpr" && node.contains("value")) return &node["value"];
    const auto inner = node.find("inner");
    if (inner == node.end()) return nullptr;
    for (const Json& child : *inner) {
        if (const Json* const found = constant_in(child)) return found;
    }
    return nullptr;
}

Enum read_enum(const Json& node) {
    Enum found{node.value("name", ""), {}};
    long long next = 0;  // an enumerator without a value of its own follows the one before
    for (const Json& child : node.at("inner")) {
        if (child.value("kind", "") != "EnumConstantDecl") continue;
        if (const Json* const constant = constant_in(child)) {
            const std::string text = *constant;
            if (std::from_chars(text.data(), text.data() + text.size(), next).ec != std::errc{})
                throw Problem(fmt::format("{} = {} is too large for an enumerator", child.at("name"), text));
        }
        found.enumerators.push_back({child.at("name"), next++});
    }
    return found;
}

// `typedef struct orrDim3 {...} orrDim3;` says nothing that the struct does not say.
bool is_plain_tag(const std::string& name, const std::string& type) {
    const bool record = type.starts_with("struct ") || type.starts_with("union ");
    return (record && !type.ends_with('*')) || type == "enum " + name;
}

bool is_result(const Parameter& parameter) {
    return parameter.type.ends_with('*') && !parameter.type.starts_with("const ") &&
           parameter.type != "void *";
}

}  // namespace

bool is_api_name(const std::string& name) {
    return name.starts_with("orr") || name.starts_with("ORR_");
}

Headers read_headers(const std::string& folder) {
    const Json tree = Json::parse(clang(folder, "-fsyntax-only -Xclang -ast-dump=json"));
    Headers headers;
    std::string file;
    for (const Json& node : tree.at("inner")) {
        if (node.contains("range")) follow_file(node["range"].value("begin", Json()), file);
        follow_file(node.value("loc", Json()), file);
        const std::string kind = node.value("kind", ""), name = node.value("name", "");
        // What is exported is the API; system headers export nothing by attribute.
        if (kind == "FunctionDecl" && has_child(node, "VisibilityAttr")) {
            headers.functions.push_back(read_function(node));
            headers.functions.back().header = fs::path(file).filename();
        } else if (kind == "EnumDecl" && node.contains("inner")) {
            Enum found = read_enum(node);
            if (is_api_name(found.enumerators.front().name)) headers.enums.push_back(std::move(found));
        } else if (kind == "TypedefDecl" && is_api_name(name) &&
                   !is_plain_tag(name, node.at("type").at("qualType"))) {
            headers.typedefs.push_back(name);
        }
    }
    if (headers.functions.empty()) throw Problem(folder + " declares no function with ORR_API");
    return headers;
}

void check_rules(const std::vector<Function>& functions) {
    std::string problems;
    for (const Function& function : functions) {
        if (!function.documented)
            problems += fmt::format("{}: {} has no comment before it\n", function.header, function.name);
        const auto& all = function.parameters;
        const auto behind = std::ranges::find_if_not(all, is_result);
        const auto late = std::find_if(behind, all.end(), is_result);
        if (late != all.end()) {
            problems += fmt::format("{}: {} gives back {} behind {}: results come first\n", function.header,
                                    function.name, late->name, behind->name);
        }
    }
    if (!problems.empty()) throw Problem(problems);
}

}  // namespace orrery::apigen
