// A module on a card: its segments in card memory, each with its own protection, and its kernels.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "umd/runtime/context.h"
#include "umd/runtime/elf_image.h"

namespace orrery::umd {

struct Function {
    Context* context = nullptr;
    std::uint64_t entry = 0;
    const char* name = nullptr;  // lives as long as the context
};

// Thread safe.
class Module {
  public:
    // `name` is for error texts.
    static Result<std::shared_ptr<Module>> load(Context& context, std::span<const std::byte> file,
                                                std::string name);
    // The caller has waited for what runs in it.
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    Context& context() const { return context_; }
    Result<std::shared_ptr<Function>> function(std::string_view name) const;

    // Handles given out, which end with the module.
    void add_handle(void* handle);
    std::vector<void*> take_handles();

  private:
    Module(Context& context, std::string name) : context_(context), name_(std::move(name)) {}

    Context& context_;
    std::string name_;
    Block* block_ = nullptr;
    std::map<std::string, std::uint64_t, std::less<>> functions_;
    std::mutex mutex_;
    std::vector<void*> handles_;
};

}  // namespace orrery::umd
