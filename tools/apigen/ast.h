// The tree of declarations that clang makes of the headers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace orrery::apigen {

// Members stay in the order of the text: a place says only what differs from the place before.
using Json = nlohmann::ordered_json;

// A declaration that is not within another one.
struct Declaration {
    Json node;
    std::string file;
};

// Of the headers in `folder`/orrery, with `source` behind them.
std::vector<Declaration> read_declarations(const std::string& folder, const std::string& source = "");

// Those in it, one level down.
const Json& inner(const Json& node);
std::string kind_of(const Json& node);
std::string name_of(const Json& node);
bool has_child(const Json& node, const char* kind);

// The constant expression in or below it, if any.
const Json* constant_in(const Json& node);
// Whether the declaration with this id is named anywhere in it.
bool refers_to(const Json& node, const std::string& id);

}  // namespace orrery::apigen
