// A module on a card: its segments in card memory, each with its own protection, and its kernels.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "umd/runtime/bytes.h"
#include "umd/runtime/context.h"
#include "umd/runtime/elf_image.h"

namespace orrery::umd {

class Library;
class Module;

// A kernel on a card, or one of a library, which is of no card until it is used there (library.cc).
struct Function {
    // What a library's function is on the cards that have used it.
    struct Cards {
        Cards(std::shared_ptr<Library> whole, std::size_t devices)
            : library(std::move(whole)), found(devices) {}
        std::shared_ptr<Library> library;
        std::vector<std::atomic<const Function*>> found;  // by device
        std::mutex mutex;
        std::vector<std::shared_ptr<Function>> owned;
    };

    // What runs there. Lives as long as this one.
    Result<const Function*> on(Context& where) const {
        if (context == &where) [[likely]]
            return this;
        return elsewhere(where);
    }
    void set_item_stack_pages(std::uint16_t pages);
    const Isa& needs() const;
    // Its first line that does something, "gemm.cc:42"; empty: built without -g.
    std::string source() const;

    Context* context = nullptr;  // null: a library's
    std::unique_ptr<Cards> cards{};
    std::shared_ptr<Module> module{};  // who launches it keeps its code
    std::uint64_t entry = 0;           // of a library's: relative to where it is loaded
    const char* name = nullptr;        // lives as long as the context, or the library
    // For each item that waits at a barrier; 0: none does.
    std::atomic<std::uint16_t> item_stack_pages{0};
    std::uint64_t code_bytes = 0;

  private:
    Result<const Function*> elsewhere(Context& where) const;
};

// For each item that waits at a barrier; 0: none does.
std::uint16_t item_stack_pages(const ElfImage& image, std::string_view function);
// What to say when a module has no such kernel.
Error no_kernel(std::string_view module, std::string_view name, const std::string& known);
// Of a map's keys: "a, b", or "none". Of many the first ones: "a, b and 7 more".
std::string names_of(const auto& things) {
    constexpr std::size_t kMost = 1000;
    std::string known;
    std::size_t left = things.size();
    for (const auto& [name, thing] : things) {
        if (known.size() > kMost) return fmt::format("{} and {} more", known, left);
        known += (known.empty() ? "" : ", ") + printable(name);
        --left;
    }
    return known.empty() ? "none" : known;
}

// Thread safe.
class Module {
  public:
    // `name` is for error texts.
    static Result<std::shared_ptr<Module>> load(Context& context, std::span<const std::byte> file,
                                                std::string name);
    static Result<std::shared_ptr<Module>> load(Context& context, const ElfImage& image, std::string name);
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
    };
    std::map<std::string, Entry, std::less<>> functions_;
    std::map<std::string, ElfImage::Variable, std::less<>> variables_;
    Isa needs_;
    std::mutex mutex_;
    std::vector<void*> handles_;
    bool unloaded_ = false;
};

}  // namespace orrery::umd
