#include "emulator/card/launch_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "emulator/card/kernel_modules.h"

namespace orrery::emu {

namespace {

// `place`: of its pc.
std::string why(const LaunchAccount& launch, const std::string& place) {
    switch (launch.cause) {
        case InOrder::kNoThreads:
            return "no threads";
        case InOrder::kBefore:
            return "an earlier launch did";
        case InOrder::kShort:
            return "groups are short";
        case InOrder::kStopped:
            return fmt::format("group {} at {}", launch.group, place);
        case InOrder::kMet:
            return fmt::format("group {} met another", launch.group);
        case InOrder::kNot:
            break;
    }
    // A group that was alone, beside a launch in order or a debugger.
    return launch.ahead == launch.instructions ? "-" : "others";
}

}  // namespace

std::expected<std::unique_ptr<LaunchLog>, std::string> LaunchLog::create(const std::filesystem::path& path,
                                                                         Mmu& mmu) {
    std::FILE* const file = std::fopen(path.c_str(), "we");
    if (file == nullptr)
        return std::unexpected(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
    std::unique_ptr<LaunchLog> log(new LaunchLog(file, mmu));
    fmt::print(file, "start_ps\tend_ps\tport\tspace\tkernel\tgroups\tstatus\tinstructions\tin_order\twhy\n");
    return log;
}

void LaunchLog::note(const LaunchAccount& launch) {
    if (launches_ == kMostLaunches) return;
    const orr_desc_kernel& desc = launch.desc;
    const std::string kernel = name_of(desc.asid, desc.entry);
    const std::string place =
        launch.cause == InOrder::kStopped ? name_of(desc.asid, launch.pc) : std::string();
    fmt::print(file_.get(), "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", launch.start_ps, launch.end_ps,
               launch.port, desc.asid, kernel, std::uint64_t{desc.grid_x} * desc.grid_y * desc.grid_z,
               launch.status, launch.instructions, launch.instructions - launch.ahead, why(launch, place));
    if (++launches_ == kMostLaunches) fmt::print(file_.get(), "and more, which are not written\n");
    // A card may be killed at any time.
    std::fflush(file_.get());
}

const std::string& LaunchLog::name_of(std::uint32_t asid, std::uint64_t code) {
    if (generation_ != mmu_.generation() || names_.size() == kMostNames) names_.clear();
    generation_ = mmu_.generation();
    const auto [it, is_new] = names_.try_emplace({asid, code});
    if (!is_new) return it->second;
    const auto read = [&](std::uint64_t va, std::span<std::uint8_t> out) {
        while (!out.empty()) {
            const auto page = mmu_.peek_page(asid, va, Access::kLoad);
            if (!page || page->host == nullptr) return false;
            const std::size_t at = va % ORR_PAGE_SIZE, bytes = std::min(out.size(), ORR_PAGE_SIZE - at);
            std::memcpy(out.data(), page->host + at, bytes);
            va += bytes;
            out = out.subspan(bytes);
        }
        return true;
    };
    const auto module = find_module(code, read);
    it->second =
        module ? fmt::format("{}+{:#x}", module->name, code - module->base) : fmt::format("{:#x}", code);
    return it->second;
}

}  // namespace orrery::emu
