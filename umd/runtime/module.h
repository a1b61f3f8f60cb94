// A module on a card: its segments in card memory, each with its own protection, and its kernels.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "umd/runtime/context.h"
#include "umd/runtime/elf_image.h"

namespace orrery::umd {

class Module;

struct Function {
    Context* context = nullptr;
    std::shared_ptr<Module> module{};  // who launches it keeps its code
    std::uint64_t entry = 0;
    const char* name = nullptr;  // lives as long as the context
    // For each item that waits at a barrier; 0: none does.
    std::atomic<std::uint16_t> item_stack_pages{0};
    std::uint64_t code_bytes = 0;
    std::string source{};  // "gemm.cc:42"; empty: built without -g
};

// Thread safe.
class Module {
  public:
    // `name` is for error texts.
    static Result<std::shared_ptr<Module>> load(Context& context, std::span<const std::byte> file,
                                                std::string name);
    // Of one that was unloaded: waits for what others launched meanwhile.
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    Context& context() const { return context_; }
    Result<std::shared_ptr<Function>> function(std::string_view name) const;
    // Where the variable is; from now on copies and fills take its address.
    Result<Allocation> variable(std::string_view name) const;
    const Isa& needs() const { return needs_; }

    // A handle given out, which ends with the module. False: it was unloaded.
    bool add_handle(void* handle);
    // The handles given out; no more from now on.
    std::vector<void*> unload();

  private:
    Module(Context& context, std::string name) : context_(context), name_(std::move(name)) {}

    Context& context_;
    std::string name_;
    Block* block_ = nullptr;
    struct Entry {
        std::uint64_t offset = 0;
        std::uint16_t item_stack_pages = 0;
        std::uint64_t code_bytes = 0;
        std::string source{};
    };
    std::map<std::string, Entry, std::less<>> functions_;
    std::map<std::string, ElfImage::Variable, std::less<>> variables_;
    Isa needs_;
    std::mutex mutex_;
    std::vector<void*> handles_;
    bool unloaded_ = false;
};

}  // namespace orrery::umd
