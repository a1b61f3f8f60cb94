#include "umd/runtime/module.h"

#include <cstring>
#include <utility>

namespace orrery::umd {

std::uint16_t item_stack_pages(const ElfImage& image, std::string_view function) {
    return static_cast<std::uint16_t>((image.item_stack_bytes(function) + ORR_PAGE_SIZE - 1) / ORR_PAGE_SIZE);
}

Error no_kernel(std::string_view module, std::string_view name, const std::string& known) {
    return {orrErrorNotFound, fmt::format("{} has no kernel '{}'; it has: {}. Is it marked ORR_KERNEL?",
                                          module, printable(name), known)};
}

Result<std::shared_ptr<Module>> Module::load(Context& context, std::span<const std::byte> file,
                                             std::string name) {
    auto image = ElfImage::parse(file);
    if (!image) return std::unexpected(Error{image.error().code, name + " is " + image.error().text});
    return load(context, *image, std::move(name));
}

Result<std::shared_ptr<Module>> Module::load(Context& context, const ElfImage& image, std::string name) {
    if (const std::string lacking = image.needs().lacking(context.isa()); !lacking.empty()) {
        return fail(orrErrorNotSupported,
                    "{} needs {}; device {} has {}: build it with another -march, or use another card", name,
                    lacking, context.device(), context.isa().text());
    }
    std::shared_ptr<Module> module(new Module(context, std::move(name)));
    ORR_TRY(block, context.memory().create_unbound_block(context.device(), image.size(), BoKind::kVram));
    module->block_ = *block;
    ORR_TRY(mapped, (*block)->bo->map());
    auto bytes = image.relocated((*block)->va);
    if (const auto pointer = image.output_pointer()) {
        ORR_TRY(ring, context.output_ring());
        std::memcpy(bytes.data() + *pointer, &*ring, sizeof *ring);
    }
    std::memcpy(*mapped, bytes.data(), bytes.size());
    // From here on only the card sees it, each part as its segment says.
    (*block)->bo->unmap();
    for (const auto& segment : image.segments()) {
        ORR_TRY(bound, context.winsys().bind(*(*block)->bo, segment.start, (*block)->va + segment.start,
                                             segment.size, segment.bind));
    }
    std::vector<Context::CodeFunction> functions;
    for (const auto& [function, offset] : image.functions()) {
        module->functions_[function] = {offset, item_stack_pages(image, function),
                                        image.code_bytes(function)};
        functions.push_back({offset, image.code_bytes(function), function});
    }
    module->variables_ = image.variables();
    module->needs_ = image.needs();
    context.add_code((*block)->va, module->name_, std::move(bytes), image.lines(), std::move(functions));
    return module;
}

Module::~Module() {
    if (block_ == nullptr) return;
    // Memory in which something still runs is not given to others.
    if (unloaded_ && !context_.drain()) return;
    // The formats of what its kernels have printed are in it.
    context_.print_output();
    context_.remove_code(block_->va);
    context_.memory().free_block(block_);
}

Result<std::shared_ptr<Function>> Module::function(std::string_view name) const {
    const auto found = functions_.find(name);
    if (found == functions_.end()) return std::unexpected(no_kernel(name_, name, names_of(functions_)));
    auto function = std::make_shared<Function>();
    function->context = &context_;
    function->entry = block_->va + found->second.offset;
    function->item_stack_pages = found->second.item_stack_pages;
    function->code_bytes = found->second.code_bytes;
    function->name = context_.keep_name(std::string(name));
    return function;
}

Result<Allocation> Module::variable(std::string_view name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end()) {
        return fail(orrErrorNotFound, "{} has no variable '{}'; it has: {}. Is it marked ORR_GLOBAL?", name_,
                    printable(name), names_of(variables_));
    }
    const auto& [offset, bytes, constant] = found->second;
    const std::uint64_t va = block_->va + offset;
    context_.memory().add_variable(*block_, va, bytes, constant);
    return Allocation{context_.device(), va, bytes, block_};
}

bool Module::add_handle(void* handle) {
    const std::lock_guard lock(mutex_);
    if (unloaded_) return false;
    handles_.push_back(handle);
    return true;
}

std::vector<void*> Module::unload() {
    const std::lock_guard lock(mutex_);
    unloaded_ = true;
    return std::exchange(handles_, {});
}

}  // namespace orrery::umd
