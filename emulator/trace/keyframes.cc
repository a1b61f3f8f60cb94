#include "emulator/trace/keyframes.h"

#include <algorithm>
#include <cstring>

#include "emulator/trace/recorder.h"

namespace orrery::emu {

namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

void ChangedPages::keyframe(const HartState& state, std::uint64_t rest_ps,
                            std::span<const std::uint8_t> memory, std::vector<std::uint8_t>& payload) {
    std::vector<std::uint32_t> changed;
    for (std::size_t at = 0; at < memory.size(); at += kPage) {
        if (std::memcmp(memory.data() + at, last_.data() + at, kPage) != 0)
            changed.push_back(static_cast<std::uint32_t>(at / kPage));
    }
    orr_otrace_keyframe head{};
    head.state = trace_state(state);
    head.rest_ps = rest_ps;
    head.pages = static_cast<std::uint32_t>(changed.size());
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&head);
    payload.assign(bytes, bytes + sizeof head);
    payload.reserve(sizeof head + changed.size() * (sizeof(std::uint32_t) + kPage));
    const auto* const numbers = reinterpret_cast<const std::uint8_t*>(changed.data());
    payload.insert(payload.end(), numbers, numbers + changed.size() * sizeof(std::uint32_t));
    for (const std::uint32_t page : changed) {
        const std::uint8_t* const now = memory.data() + page * kPage;
        payload.insert(payload.end(), now, now + kPage);
        std::memcpy(last_.data() + page * kPage, now, kPage);
    }
}

std::expected<Keyframe, const char*> apply_keyframe(std::span<const std::uint8_t> payload,
                                                    std::span<std::uint8_t> memory) {
    orr_otrace_keyframe head{};
    if (payload.size() < sizeof head) return std::unexpected("a keyframe without its head");
    std::memcpy(&head, payload.data(), sizeof head);
    if (head.reserved != 0 || head.pages > memory.size() / kPage ||
        payload.size() != sizeof head + head.pages * (sizeof(std::uint32_t) + kPage))
        return std::unexpected("a keyframe of another size than its pages");
    const std::uint8_t* const numbers = payload.data() + sizeof head;
    const std::uint8_t* const pages = numbers + head.pages * sizeof(std::uint32_t);
    std::uint32_t least = 0;
    for (std::uint32_t i = 0; i < head.pages; ++i) {
        std::uint32_t page = 0;
        std::memcpy(&page, numbers + i * sizeof page, sizeof page);
        if (page < least || page >= memory.size() / kPage)
            return std::unexpected("a keyframe whose pages are out of order, or not in SRAM");
        least = page + 1;
        std::memcpy(memory.data() + page * kPage, pages + i * kPage, kPage);
    }
    return Keyframe{hart_state(head.state), head.rest_ps};
}

}  // namespace orrery::emu
