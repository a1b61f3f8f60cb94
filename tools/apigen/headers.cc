#include "tools/apigen/headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <regex>
#include <system_error>
#include <utility>

#include "tools/apigen/ast.h"

namespace orrery::apigen {
namespace {

namespace fs = std::filesystem;

Function read_function(const Json& node) {
    Function function;
    function.name = node.at("name");
    const std::string type = node.at("type").at("qualType");
    function.result = type.substr(0, type.find('('));
    while (function.result.ends_with(' '))
        function.result.pop_back();
    function.documented = has_child(node, "FullComment");
    for (const Json& child : inner(node)) {
        if (kind_of(child) != "ParmVarDecl") continue;
        if (!child.contains("name")) throw Problem(function.name + ": a parameter has no name");
        function.parameters.push_back({child.at("type").at("qualType"), child.at("name")});
    }
    return function;
}

Enum read_enum(const Json& node) {
    Enum found{name_of(node), {}};
    long long next = 0;  // an enumerator without a value of its own follows the one before
    for (const Json& child : inner(node)) {
        if (kind_of(child) != "EnumConstantDecl") continue;
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
    return type == "struct " + name || type == "union " + name || type == "enum " + name;
}

// "struct orrBox_st" of another name for it, else empty.
std::string tag_of(const Json& type) {
    static const std::regex tag(R"((struct|union) \w+)");
    const std::string name = type.at("qualType"), text = type.value("desugaredQualType", name);
    return std::regex_match(text, tag) ? text : "";
}

bool is_result(const Parameter& parameter) {
    return parameter.type.ends_with('*') && !parameter.type.starts_with("const ") &&
           parameter.type != "void *";
}

class Reader {
  public:
    void add(const Declaration& declaration) {
        const Json& node = declaration.node;
        const std::string kind = kind_of(node), name = name_of(node);
        if (kind == "FunctionDecl") {
            if (!has_child(node, "VisibilityAttr"))
                throw Problem(name + " is declared without ORR_API, so no program could call it: add that");
            headers.functions.push_back(read_function(node));
            headers.functions.back().header = fs::path(declaration.file).filename();
        } else if (kind == "VarDecl") {
            throw Problem(name + " is a variable, which no library can ever change: add a function instead");
        } else if (kind == "TypedefDecl") {
            check_tags(node);
            if (!is_plain_tag(name, node.at("type").at("qualType")))
                headers.typedefs.push_back({name, tag_of(node.at("type"))});
        } else if (kind == "RecordDecl" || kind == "EnumDecl") {
            if (name.empty()) untagged_.push_back(node.at("id"));
            add_type(node);
        }
    }

    Headers headers;

  private:
    // A struct, union or enum, and those in it.
    void add_type(const Json& node) {
        const std::string name = name_of(node);
        if (has_child(node, "EnumConstantDecl")) headers.enums.push_back(read_enum(node));
        if (kind_of(node) == "EnumDecl" || name.empty()) return;
        for (const Json& child : inner(node)) {
            const std::string kind = kind_of(child);
            const bool type = kind == "RecordDecl" || kind == "EnumDecl";
            if ((type || kind == "FieldDecl") && name_of(child).empty()) {
                throw Problem(name +
                              " has a member without a name, or of a type without one: "
                              "give it one, as contracts know members by name");
            }
            if (type) add_type(child);
        }
        if (node.value("completeDefinition", false)) headers.records.push_back(name);
    }

    // Clang lays out and compares what has a tag.
    void check_tags(const Json& node) const {
        for (const std::string& id : untagged_) {
            if (!refers_to(node, id)) continue;
            throw Problem(fmt::format(
                "{0} is a struct, union or enum without a tag: write `typedef struct {0} {{...}} {0};`, as "
                "contracts know types by their tags",
                name_of(node)));
        }
    }

    std::vector<std::string> untagged_;  // ids
};

}  // namespace

Headers read_headers(const std::string& folder) {
    OwnFiles own(folder);
    Reader reader;
    for (const Declaration& declaration : read_declarations(folder)) {
        if (own.has(declaration.file)) reader.add(declaration);
    }
    if (reader.headers.functions.empty()) throw Problem(folder + " declares no function with ORR_API");
    return std::move(reader.headers);
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
