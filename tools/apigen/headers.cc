#include "tools/apigen/headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace orrery::apigen {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Kernels include it; it declares nothing of the API.
constexpr const char* kForKernels = "kernel.h";

std::string output_of(const std::string& command) {
    std::FILE* const pipe = ::popen(command.c_str(), "re");
    if (pipe == nullptr) throw Problem("cannot start: " + command);
    std::string text;
    std::array<char, 65536> piece{};
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
        text.append(piece.data(), got);
    if (::pclose(pipe) != 0)
        throw Problem("failed (is clang-19 installed, and are the headers C?): " + command);
    return text;
}

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

bool is_result(const Parameter& parameter) {
    return parameter.type.ends_with('*') && !parameter.type.starts_with("const ") &&
           parameter.type != "void *";
}

}  // namespace

std::vector<Function> read_headers(const std::string& folder) {
    std::string includes;
    std::vector<fs::path> headers;
    for (const auto& entry : fs::directory_iterator(fs::path(folder) / "orrery"))
        headers.push_back(entry.path());
    std::ranges::sort(headers);
    for (const auto& header : headers) {
        if (header.extension() == ".h" && header.filename() != kForKernels)
            includes += fmt::format(" -include {}", header.string());
    }
    const Json tree = Json::parse(output_of(fmt::format(
        "clang-19 -std=c11 -I{}{} -fsyntax-only -Xclang -ast-dump=json -x c /dev/null", folder, includes)));
    std::vector<Function> functions;
    std::string file;
    for (const Json& node : tree.at("inner")) {
        if (node.contains("range")) follow_file(node["range"].value("begin", Json()), file);
        follow_file(node.value("loc", Json()), file);
        // What is exported is the API; system headers export nothing by attribute.
        const bool exported = node.value("kind", "") == "FunctionDecl" && has_child(node, "VisibilityAttr");
        if (!exported) continue;
        functions.push_back(read_function(node));
        functions.back().header = fs::path(file).filename();
    }
    if (functions.empty()) throw Problem(folder + " declares no function with ORR_API");
    return functions;
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
