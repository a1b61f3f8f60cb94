// An image that is of no card: each card loads it when something of it is used there for the first time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "umd/runtime/elf_image.h"
#include "umd/runtime/module.h"

namespace orrery::umd {

// Thread safe.
class Library : public std::enable_shared_from_this<Library> {
  public:
    // Checks all that needs no card. `name` is for error texts.
    static Result<std::shared_ptr<Library>> make(std::span<const std::byte> file, std::string name);
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    const ElfImage& image() const { return image_; }
    // A kernel of no card yet. devices: how many there are.
    Result<std::shared_ptr<Function>> function(std::string_view name, std::size_t devices);
    // On this card, which loads it now if it has not. One after the other on each card; what failed is tried
    // again by whoever needs it next.
    Result<std::shared_ptr<Module>> on(Context& context);

    // For unloading, as Module has it.
    Status drain();
    bool add_handle(void* handle);
    std::vector<void*> unload();

  private:
    Library(ElfImage image, std::string name) : image_(std::move(image)), name_(std::move(name)) {}
    struct Place {
        std::mutex mutex;
        std::shared_ptr<Module> module;
    };
    std::vector<std::shared_ptr<Module>> loaded() const;

    const ElfImage image_;
    const std::string name_;
    mutable std::mutex mutex_;
    std::map<const Context*, std::shared_ptr<Place>> places_;
    std::vector<void*> handles_;
    bool unloaded_ = false;
};

}  // namespace orrery::umd
