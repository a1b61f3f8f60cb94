#include "emulator/pcie/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "emulator/pcie/function.h"
#include "emulator/pcie/session.h"
#include "emulator/pcie/socket.h"

namespace orrery::emu {
namespace {

// Pause after accept() failed for want of descriptors or memory, which only others can free.
constexpr int kAcceptPauseMs = 100;

}  // namespace

class VfioUserServer::Impl {
  public:
    Impl(PciDescription description, PciDevice& device, Interrupts& interrupts, Log log, UniqueFd stop)
        : function_(std::move(description), device, interrupts),
          device_(device),
          interrupts_(interrupts),
          log_(std::move(log)),
          stop_(std::move(stop)) {}

    ~Impl() {
        if (listener_) ::unlink(path_.c_str());
    }

    void listen(std::string path, UniqueFd listener, const Keeper* keeper) {
        path_ = std::move(path);
        listener_ = std::move(listener);
        keeper_ = keeper;
    }

    std::expected<void, std::string> run();
    void serve(UniqueFd connection);
    void request_stop() noexcept;
    Counters counters() const;

  private:
    bool wait(int fd, short events);
    bool stopping() const;
    UniqueFd accept_client();
    void refuse_client();
    void count(const SessionCounters& session);
    void say(std::string_view line) const {
        if (log_) log_(line);
    }

    struct Atomics {
        std::atomic<uint64_t> clients, refused, messages, errors, dma_maps, dma_maps_no_fd, dma_unmaps,
            resets;
    };

    PciFunction function_;
    PciDevice& device_;
    Interrupts& interrupts_;
    Log log_;
    UniqueFd stop_;  // eventfd: readable from request_stop() on
    std::string path_;
    UniqueFd listener_;
    const Keeper* keeper_ = nullptr;
    bool listener_lost_ = false;
    Atomics counters_{};
    SessionCounters counted_;  // of the session at hand, what counters_ has already
};

std::expected<std::unique_ptr<VfioUserServer>, std::string> VfioUserServer::create_detached(
    PciDescription description, PciDevice& device, Interrupts& interrupts, Log log) {
    if (auto good = validate(description); !good) return std::unexpected("PCIe function: " + good.error());
    UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop) return std::unexpected(fmt::format("cannot create an eventfd: {}", std::strerror(errno)));
    auto impl =
        std::make_unique<Impl>(std::move(description), device, interrupts, std::move(log), std::move(stop));
    return std::unique_ptr<VfioUserServer>(new VfioUserServer(std::move(impl)));
}

std::expected<std::unique_ptr<VfioUserServer>, std::string> VfioUserServer::create(
    std::string socket_path, PciDescription description, PciDevice& device, Interrupts& interrupts, Log log,
    const Keeper* keeper) {
    auto server = create_detached(std::move(description), device, interrupts, std::move(log));
    if (!server) return server;
    auto listener = listen_unix(socket_path);
    if (!listener) return std::unexpected(listener.error());
    (*server)->impl_->listen(std::move(socket_path), std::move(*listener), keeper);
    return server;
}

VfioUserServer::VfioUserServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VfioUserServer::~VfioUserServer() = default;

std::expected<void, std::string> VfioUserServer::run() {
    return impl_->run();
}
void VfioUserServer::serve(UniqueFd connection) {
    impl_->serve(std::move(connection));
}
void VfioUserServer::request_stop() noexcept {
    impl_->request_stop();
}
VfioUserServer::Counters VfioUserServer::counters() const {
    return impl_->counters();
}

void VfioUserServer::Impl::request_stop() noexcept {
    const uint64_t one = 1;
    static_cast<void>(::write(stop_.get(), &one, sizeof one) < 0);
}

// Waits for the client, and turns others away meanwhile. `fd` -1 waits for a client to come.
bool VfioUserServer::Impl::wait(int fd, short events) {
    for (;;) {
        std::array<pollfd, 3> polled{pollfd{stop_.get(), POLLIN, 0}, pollfd{fd, events, 0},
                                     pollfd{listener_.get(), POLLIN, 0}};
        if (::poll(polled.data(), polled.size(), -1) < 0) {
            if (errno == EINTR) continue;
            return false;
        }
        if (polled[0].revents != 0) return false;
        if (polled[1].revents != 0) return true;
        if (polled[2].revents == 0) continue;
        // Whoever is attached comes first: the end of a dead client was seen above, before its successor.
        if (fd < 0) return true;
        refuse_client();
    }
}

bool VfioUserServer::Impl::stopping() const {
    pollfd stop{stop_.get(), POLLIN, 0};
    return ::poll(&stop, 1, 0) > 0;
}

UniqueFd VfioUserServer::Impl::accept_client() {
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client) return client;
    switch (errno) {
        case EINTR:
        case EAGAIN:
        case ECONNABORTED:
            break;
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM: {
            say(fmt::format("vfio-user: cannot accept a client: {}", std::strerror(errno)));
            pollfd stop{stop_.get(), POLLIN, 0};
            ::poll(&stop, 1, kAcceptPauseMs);
            break;
        }
        default:
            say(fmt::format("vfio-user: the listening socket is lost: {}", std::strerror(errno)));
            listener_lost_ = true;
    }
    return {};
}

void VfioUserServer::Impl::refuse_client() {
    if (!accept_client()) return;
    counters_.refused++;
    say("vfio-user: a second client was turned away: this card serves one at a time");
}

void VfioUserServer::Impl::count(const SessionCounters& now) {
    counters_.errors += now.errors - counted_.errors;
    counters_.dma_maps += now.dma_maps - counted_.dma_maps;
    counters_.dma_maps_no_fd += now.dma_maps_no_fd - counted_.dma_maps_no_fd;
    counters_.dma_unmaps += now.dma_unmaps - counted_.dma_unmaps;
    counters_.resets += now.resets - counted_.resets;
    counted_ = now;
}

std::expected<void, std::string> VfioUserServer::Impl::run() {
    if (!listener_) return std::unexpected("this server has no listening socket: use serve()");
    while (!listener_lost_ && wait(-1, 0)) {
        if (UniqueFd client = accept_client()) serve(std::move(client));
    }
    if (listener_lost_) return std::unexpected(fmt::format("the listening socket '{}' is lost", path_));
    return {};
}

void VfioUserServer::Impl::serve(UniqueFd fd) {
    counters_.clients++;
    counted_ = {};
    say("vfio-user: a client has connected");
    if (keeper_ != nullptr) keeper_->hold(fd.get());
    Connection connection(std::move(fd), [this](int on, short events) { return wait(on, events); });
    Session session(function_, device_, interrupts_, log_);
    for (Message message;;) {
        const Connection::Status received = connection.receive(message);
        if (received == Connection::Status::kGarbage) {
            counters_.errors++;
            session.complain(fmt::format("vfio-user: the client is disconnected: {}", connection.error()));
        }
        if (received != Connection::Status::kOk) break;
        const Session::Reply reply = session.handle(message);
        counters_.messages++;
        count(session.counters());
        if (connection.send(reply.bytes, reply.fd) != Connection::Status::kOk || reply.hang_up) break;
    }
    if (keeper_ == nullptr || !stopping()) {
        connection.hang_up();
        if (keeper_ != nullptr) keeper_->release();
    }
    say("vfio-user: the client has gone");
}

VfioUserServer::Counters VfioUserServer::Impl::counters() const {
    return {.clients = counters_.clients,
            .refused = counters_.refused,
            .messages = counters_.messages,
            .errors = counters_.errors,
            .dma_maps = counters_.dma_maps,
            .dma_maps_no_fd = counters_.dma_maps_no_fd,
            .dma_unmaps = counters_.dma_unmaps,
            .resets = counters_.resets};
}

}  // namespace orrery::emu
