// A vfio-user client of ours: says what QEMU says, and also what no sane client would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/base/unique_fd.h"
#include "emulator/pcie/protocol.h"

namespace orrery::test {

namespace wire = emu::wire;

struct ClientReply {
    wire::Header header{};
    std::vector<std::byte> payload;
    std::vector<emu::UniqueFd> fds;

    bool ok() const { return (header.flags & wire::kFlagError) == 0; }
    int error() const { return ok() ? 0 : static_cast<int>(header.error); }
    // The first bytes of the payload as a T; zeros where it is shorter.
    template <typename T>
    T as(size_t at = 0) const {
        T value{};
        if (at < payload.size()) {
            std::memcpy(&value, payload.data() + at, std::min(sizeof value, payload.size() - at));
        }
        return value;
    }
};

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

std::vector<std::byte> operator+(std::vector<std::byte> a, std::span<const std::byte> b);

class Client {
  public:
    explicit Client(emu::UniqueFd fd) : fd_(std::move(fd)) {}
    // Empty when nobody listens.
    static std::optional<Client> connect(const std::string& path);

    // Raw bytes with descriptors; false when the server has hung up.
    bool send(std::span<const std::byte> bytes, std::span<const int> fds = {});
    // The next reply; empty when the server has hung up.
    std::optional<ClientReply> receive();
    // A well-formed header around any payload; the reply must carry its id and command.
    std::optional<ClientReply> call(uint16_t command, std::span<const std::byte> payload,
                                    std::span<const int> fds = {});
    // The errno of the reply, 0 for success, -1 when the server hung up.
    int error_of(uint16_t command, std::span<const std::byte> payload, std::span<const int> fds = {});

    // VERSION with what QEMU 11.1 proposes; true when agreed.
    bool negotiate();

    bool map(uint64_t address, uint64_t size, int fd, uint64_t offset = 0, uint32_t flags = 3);
    int set_irqs(uint32_t index, uint32_t start, uint32_t count, uint32_t flags,
                 std::span<const int> fds = {}, std::span<const std::byte> data = {});
    std::optional<ClientReply> region_info(uint32_t index, uint32_t argsz);

    // One access of sizeof(T) bytes. Reads give all ones when they fail.
    template <typename T>
    T read(uint32_t region, uint64_t offset) {
        const auto reply = call(wire::kRegionRead, bytes_of(wire::RegionAccess{offset, region, sizeof(T)}));
        if (!reply || !reply->ok()) return static_cast<T>(~T{0});
        return reply->as<T>(sizeof(wire::RegionAccess));
    }
    template <typename T>
    int write(uint32_t region, uint64_t offset, T value) {
        return error_of(wire::kRegionWrite,
                        bytes_of(wire::RegionAccess{offset, region, sizeof(T)}) + bytes_of(value));
    }

    void hang_up() { fd_.reset(); }
    int fd() const { return fd_.get(); }

  private:
    emu::UniqueFd fd_;
    uint16_t next_id_ = 1;
};

// A message as it goes over the wire.
std::vector<std::byte> message(uint16_t command, std::span<const std::byte> payload, uint16_t id = 1,
                               uint32_t flags = 0);

// What QEMU 11.1 sends as the payload of VERSION.
std::vector<std::byte> qemu_version();

}  // namespace orrery::test
