#include "umd/runtime/library.h"

#include <algorithm>
#include <utility>

namespace orrery::umd {

Result<std::shared_ptr<Library>> Library::make(std::span<const std::byte> file, std::string name) {
    auto image = ElfImage::parse(file);
    if (!image) return std::unexpected(Error{image.error().code, name + " is " + image.error().text});
    return std::shared_ptr<Library>(new Library(*std::move(image), std::move(name)));
}

Result<std::shared_ptr<Function>> Library::function(std::string_view name, std::size_t devices) {
    const auto found = image_.functions().find(name);
    if (found == image_.functions().end())
        return std::unexpected(no_kernel(name_, name, names_of(image_.functions())));
    auto function = std::make_shared<Function>();
    function->name = found->first.c_str();  // lives as long as the library
    function->item_stack_pages = item_stack_pages(image_, name);
    function->code_bytes = image_.code_bytes(name);
    function->entry = found->second;
    function->cards = std::make_unique<Function::Cards>(shared_from_this(), devices);
    return function;
}

Result<std::shared_ptr<Module>> Library::on(Context& context) {
    std::shared_ptr<Place> place;
    {
        const std::lock_guard lock(mutex_);
        if (unloaded_) return fail(orrErrorInvalidHandle, "{} was unloaded", name_);
        auto& found = places_[&context];
        if (found == nullptr) found = std::make_shared<Place>();
        place = found;
    }
    const std::lock_guard loading(place->mutex);
    if (place->module != nullptr) return place->module;
    ORR_TRY(module, Module::load(context, image_, name_));
    const std::lock_guard lock(mutex_);
    // Who unloads it meanwhile has not seen this one, so it goes with this reference.
    if (unloaded_) return fail(orrErrorInvalidHandle, "{} was unloaded", name_);
    place->module = std::move(*module);
    return place->module;
}

std::vector<std::shared_ptr<Module>> Library::loaded() const {
    std::vector<std::shared_ptr<Module>> all;
    for (const auto& [context, place] : places_) {
        if (place->module != nullptr) all.push_back(place->module);
    }
    return all;
}

Status Library::drain() {
    std::vector<std::shared_ptr<Module>> all;
    {
        const std::lock_guard lock(mutex_);
        all = loaded();
    }
    for (const auto& module : all) {
        ORR_TRY(drained, module->context().drain());
    }
    return {};
}

bool Library::add_handle(void* handle) {
    const std::lock_guard lock(mutex_);
    if (unloaded_) return false;
    handles_.push_back(handle);
    return true;
}

std::vector<void*> Library::unload() {
    const std::lock_guard lock(mutex_);
    unloaded_ = true;
    for (const auto& module : loaded())
        module->unload();
    return std::exchange(handles_, {});
}

Result<const Function*> Function::elsewhere(Context& where) const {
    if (cards == nullptr) {
        return fail(orrErrorInvalidValue, "kernel '{}' is loaded on device {}, the stream is of device {}",
                    printable(name), context->device(), where.device());
    }
    const auto device = static_cast<std::size_t>(where.device());
    if (device < cards->found.size()) {
        if (const Function* there = cards->found[device].load(std::memory_order_acquire)) return there;
    }
    ORR_TRY(loaded, cards->library->on(where));
    ORR_TRY(function, (*loaded)->function(name));
    (*function)->module = std::move(*loaded);
    const std::lock_guard lock(cards->mutex);
    const auto same =
        std::ranges::find_if(cards->owned, [&](const auto& each) { return each->context == &where; });
    if (same != cards->owned.end()) return same->get();
    (*function)->item_stack_pages = item_stack_pages.load();
    cards->owned.push_back(*function);
    // Cards that came after it was asked for are looked for in the list.
    if (device < cards->found.size()) cards->found[device].store(function->get(), std::memory_order_release);
    return function->get();
}

void Function::set_item_stack_pages(std::uint16_t pages) {
    if (cards == nullptr) {
        item_stack_pages = pages;
        return;
    }
    const std::lock_guard lock(cards->mutex);
    item_stack_pages = pages;
    for (const auto& each : cards->owned)
        each->item_stack_pages = pages;
}

std::string Function::source() const {
    return cards == nullptr ? context->line_of_function(entry, code_bytes)
                            : cards->library->image().lines().find_function(entry, code_bytes);
}

const Isa& Function::needs() const {
    return cards == nullptr ? module->needs() : cards->library->image().needs();
}

}  // namespace orrery::umd
