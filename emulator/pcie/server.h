// The vfio-user server: one PCIe function on one UNIX socket, for one client at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "emulator/base/unique_fd.h"
#include "emulator/pcie/device.h"
#include "emulator/pcie/interrupts.h"
#include "emulator/pcie/keeper.h"

namespace orrery::emu {

class VfioUserServer {
  public:
    // One line of text about a client that misbehaves or comes and goes; called on the I/O thread. Lines
    // about bad messages stop after a few dozen a client, so that garbage cannot fill a disk.
    using Log = std::function<void(std::string_view)>;

    struct Counters {
        uint64_t clients = 0;         // connections served
        uint64_t refused = 0;         // connections turned away because a client was attached
        uint64_t messages = 0;        // whole messages received
        uint64_t errors = 0;          // error replies, and connections ended because of what was received
        uint64_t dma_maps = 0;        // DMA_MAP accepted
        uint64_t dma_maps_no_fd = 0;  // of these, without a descriptor
        uint64_t dma_unmaps = 0;      // ranges unmapped
        uint64_t resets = 0;          // bus and function resets
    };

    // `keeper`, if any, looks after each client, and has it to itself when request_stop() ends the service.
    //
    // Checks `description` and starts to listen on `socket_path` (mode 0600; a stale socket is replaced, one
    // that a living process listens on is an error). `device` and `interrupts` must outlive the server.
    // Errors say what is wrong and what to do.
    static std::expected<std::unique_ptr<VfioUserServer>, std::string> create(
        std::string socket_path, PciDescription description, PciDevice& device, Interrupts& interrupts,
        Log log = {}, const Keeper* keeper = nullptr);
    // The same without a socket of its own: for serve().
    static std::expected<std::unique_ptr<VfioUserServer>, std::string> create_detached(
        PciDescription description, PciDevice& device, Interrupts& interrupts, Log log = {});

    ~VfioUserServer();
    VfioUserServer(const VfioUserServer&) = delete;
    VfioUserServer& operator=(const VfioUserServer&) = delete;

    // Serves clients, one after another, on the calling thread (the I/O thread) until request_stop(). A
    // client that is attached then is disconnected or left to the keeper, and the device is told. An error
    // means that the listening socket is lost.
    std::expected<void, std::string> run();

    // Serves one connected stream socket until it closes or request_stop().
    void serve(UniqueFd connection);

    // Ends run() and serve(), now or when they start. Any thread, and signal handlers.
    void request_stop() noexcept;

    Counters counters() const;

  private:
    class Impl;
    explicit VfioUserServer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace orrery::emu
