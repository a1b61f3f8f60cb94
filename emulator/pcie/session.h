// What one client has set up, and the answers to its messages. No sockets here: messages come in and replies
// go out as values, so that tests and the fuzzer reach every line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "emulator/pcie/dma_table.h"
#include "emulator/pcie/function.h"
#include "emulator/pcie/protocol.h"
#include "emulator/pcie/socket.h"

namespace orrery::emu {

// Only the I/O thread writes these, through the session.
struct SessionCounters {
    uint64_t errors = 0;
    uint64_t dma_maps = 0;
    uint64_t dma_maps_no_fd = 0;
    uint64_t dma_unmaps = 0;
    uint64_t resets = 0;
};

class Session {
  public:
    using Log = std::function<void(std::string_view)>;

    Session(PciFunction& function, PciDevice& device, Interrupts& interrupts, const Log& log);
    // The client has gone: takes back all that it had set up, and tells the device.
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    struct Reply {
        std::span<const std::byte>
            bytes;             // whole message, valid until the next handle(); empty: send nothing
        int fd = -1;           // borrowed; -1: none
        bool hang_up = false;  // close the connection after sending
    };
    // Carries out one message. Descriptors that the message may not have are closed with it.
    Reply handle(Message& message);

    // A complaint about the client; after a few dozen they are counted only.
    void complain(std::string_view what);

    const SessionCounters& counters() const { return counters_; }

  private:
    // What a command comes to: an errno, or a payload in reply_ behind the header.
    struct Result {
        int error = 0;
        size_t size = 0;  // bytes of payload
        int fd = -1;
        bool hang_up = false;
    };
    static Result fail(int error) { return {error, 0, -1, false}; }
    static Result hang_up(int error) { return {error, 0, -1, true}; }
    static Result ok(size_t size = 0) { return {0, size, -1, false}; }
    static Result with_fd(size_t size, int fd) { return {0, size, fd, false}; }

    Result dispatch(Message& message);
    Result version(std::span<const std::byte> payload);
    Result dma_map(Message& message);
    Result dma_unmap(std::span<const std::byte> payload);
    Result device_info(std::span<const std::byte> payload);
    Result region_info(std::span<const std::byte> payload);
    Result irq_info(std::span<const std::byte> payload);
    Result set_irqs(Message& message);
    Result region_read(std::span<const std::byte> payload);
    Result region_write(std::span<const std::byte> payload);

    uint64_t region_size(uint32_t index) const;
    // 0, or why the access cannot be.
    int check_access(const wire::RegionAccess& access) const;
    std::byte* reply_payload() { return reply_.get() + sizeof(wire::Header); }
    template <typename T>
    size_t put(size_t at, const T& value);

    PciFunction& function_;
    PciDevice& device_;
    Interrupts& interrupts_;
    const Log& log_;
    DmaTable dma_;
    SessionCounters counters_;
    bool negotiated_ = false;
    bool ram_is_private_ = false;  // the client mapped its RAM without a descriptor
    unsigned complaints_ = 0;
    std::string why_;  // of the error at hand, for the log
    std::unique_ptr<std::byte[]> reply_;
};

}  // namespace orrery::emu
