#include "tools/apigen/ast.h"

#include <algorithm>

#include "tools/apigen/clang.h"

namespace orrery::apigen {
namespace {

// Goes through all places in it, in the order of the text.
void follow_file(const Json& part, std::string& file) {
    if (!part.is_structured()) return;
    for (const auto& [key, value] : part.items()) {
        if (key == "file" && value.is_string()) {
            file = value;
        } else if (key != "includedFrom") {
            follow_file(value, file);
        }
    }
}

}  // namespace

std::vector<Declaration> read_declarations(const std::string& folder, const std::string& source) {
    Json tree = Json::parse(clang(folder, "-fsyntax-only -Xclang -ast-dump=json", source));
    std::vector<Declaration> found;
    std::string file;
    for (Json& node : tree.at("inner")) {
        if (node.contains("loc")) follow_file(node["loc"], file);
        found.push_back({{}, file});
        follow_file(node, file);
        found.back().node = std::move(node);
    }
    return found;
}

const Json& inner(const Json& node) {
    static const Json kNothing = Json::array();
    const auto found = node.find("inner");
    return found == node.end() ? kNothing : *found;
}

std::string kind_of(const Json& node) {
    return node.value("kind", "");
}

std::string name_of(const Json& node) {
    return node.value("name", "");
}

bool has_child(const Json& node, const char* kind) {
    return std::ranges::any_of(inner(node), [&](const Json& child) { return kind_of(child) == kind; });
}

const Json* constant_in(const Json& node) {
    if (kind_of(node) == "ConstantExpr" && node.contains("value")) return &node["value"];
    for (const Json& child : inner(node)) {
        if (const Json* const found = constant_in(child)) return found;
    }
    return nullptr;
}

bool refers_to(const Json& node, const std::string& id) {
    if (!node.is_structured()) return false;
    if (node.is_object() && node.value("id", "") == id) return true;
    return std::ranges::any_of(node, [&](const Json& part) { return refers_to(part, id); });
}

}  // namespace orrery::apigen
