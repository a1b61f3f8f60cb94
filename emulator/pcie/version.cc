#include "emulator/pcie/version.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

namespace orrery::emu {
namespace {

using nlohmann::json;

// Far above what any client says; bounds what the parser builds.
constexpr size_t kMaxText = 4096;

std::unexpected<VersionError> invalid(std::string why) {
    return std::unexpected(VersionError{EINVAL, std::move(why)});
}

}  // namespace

std::expected<VersionReply, VersionError> negotiate(std::span<const std::byte> payload) {
    wire::Version proposed;
    if (payload.size() < sizeof proposed) return invalid("VERSION is too short");
    std::memcpy(&proposed, payload.data(), sizeof proposed);
    if (proposed.major != wire::kVersionMajor) {
        return std::unexpected(VersionError{
            EPROTONOSUPPORT,
            fmt::format("the client speaks protocol version {}.{}, this card {}.{}", proposed.major,
                        proposed.minor, wire::kVersionMajor, wire::kVersionMinor)});
    }
    VersionReply reply{{wire::kVersionMajor, wire::kVersionMinor}, {}};
    json answer = json::object();
    const std::span<const std::byte> text = payload.subspan(sizeof proposed);
    if (!text.empty()) {
        if (text.size() > kMaxText) return invalid("VERSION carries more than 4096 bytes of capabilities");
        if (text.back() != std::byte{0}) return invalid("capabilities are not terminated");
        const std::string_view chars(reinterpret_cast<const char*>(text.data()), text.size() - 1);
        const json proposal = json::parse(chars, nullptr, false);
        if (!proposal.is_object()) return invalid("capabilities are not a JSON object");
        if (const auto caps = proposal.find("capabilities"); caps != proposal.end()) {
            if (!caps->is_object()) return invalid("\"capabilities\" is not a JSON object");
            json& mine = answer["capabilities"] = json::object();
            const auto offer = [&](const char* name, uint64_t value) -> bool {
                const auto theirs = caps->find(name);
                if (theirs == caps->end()) return true;
                mine[name] = value;
                return theirs->is_number_unsigned();
            };
            if (!offer("max_msg_fds", wire::kMaxMessageFds) ||
                !offer("max_data_xfer_size", wire::kMaxTransfer) || !offer("pgsizes", wire::kDmaPageSize) ||
                !offer("max_dma_maps", wire::kMaxDmaMaps)) {
                return invalid("a capability is not a natural number");
            }
        }
    }
    reply.capabilities = answer.dump();
    return reply;
}

}  // namespace orrery::emu
