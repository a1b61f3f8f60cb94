#pragma once

#include <span>
#include <string_view>

namespace orrery::emu {

struct BuiltInSku {
    std::string_view name;
    std::string_view text;  // of its file
};

// The default first.
std::span<const BuiltInSku> built_in_skus();

}  // namespace orrery::emu
