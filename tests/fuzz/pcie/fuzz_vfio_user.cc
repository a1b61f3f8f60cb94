// Throws message streams at a session and at the socket code.
//
// Input: a byte that says how many descriptors of which kind come along, then a vfio-user message with its
// header (whose size field is put right most of the time, as else nothing gets past the framing), and so on.
// The first byte of all chooses the interrupt mode and whether the whole stream also goes over a real socket.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "emulator/pcie/server.h"
#include "emulator/pcie/session.h"
#include "tests/unit/pcie/client.h"
#include "tests/unit/pcie/test_card.h"

namespace {

using namespace orrery;
using emu::wire::Header;

// Guest memory, an eventfd and a file that is neither; duplicated for each message that carries some.
int descriptor(unsigned kind) {
    static const int memory = [] {
        const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
        if (fd < 0 || ::ftruncate(fd, 1 << 20) != 0) std::abort();
        return fd;
    }();
    static const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    static const int other = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const int kinds[] = {memory, event, other};
    return kinds[kind % 3];
}

struct Piece {
    std::vector<int> fds;  // borrowed
    Header header{};
    std::span<const uint8_t> payload;
};

std::vector<Piece> split(std::span<const uint8_t> input) {
    std::vector<Piece> pieces;
    while (input.size() >= 1 + sizeof(Header) && pieces.size() < 200) {
        Piece piece;
        const uint8_t fds = input[0];
        piece.fds.assign(fds & 7, descriptor(fds >> 3));
        std::memcpy(&piece.header, input.data() + 1, sizeof piece.header);
        input = input.subspan(1 + sizeof(Header));
        // The size field, within what is there.
        const size_t wanted = piece.header.size >= sizeof(Header) ? piece.header.size - sizeof(Header) : 0;
        piece.payload = input.first(std::min(wanted, input.size()));
        input = input.subspan(piece.payload.size());
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

// What must hold of a reply, whatever the message was.
void check(const emu::Session::Reply& reply, const Header& sent) {
    if (reply.bytes.empty()) {
        if ((sent.flags & emu::wire::kFlagNoReply) == 0) std::abort();
        return;
    }
    Header header;
    if (reply.bytes.size() < sizeof header || reply.bytes.size() > emu::wire::kMaxMessage) std::abort();
    std::memcpy(&header, reply.bytes.data(), sizeof header);
    const bool failed = (header.flags & emu::wire::kFlagError) != 0;
    if (header.size != reply.bytes.size() || header.id != sent.id || header.command != sent.command ||
        (header.flags & emu::wire::kFlagTypeMask) != emu::wire::kFlagReply || failed != (header.error != 0) ||
        (failed && (header.size != sizeof header || reply.fd >= 0))) {
        std::abort();
    }
}

void through_session(emu::PciDescription description, test::TestCard& card, emu::Interrupts& interrupts,
                     const std::vector<Piece>& pieces) {
    emu::PciFunction function(std::move(description), card, interrupts);
    const emu::Session::Log log;
    emu::Session session(function, card, interrupts, log);
    for (const Piece& piece : pieces) {
        emu::Message message;
        message.header = piece.header;
        message.header.size = static_cast<uint32_t>(sizeof(Header) + piece.payload.size());
        message.header.flags &= ~emu::wire::kFlagTypeMask;
        message.payload = std::as_bytes(piece.payload);
        for (const int fd : piece.fds)
            message.fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
        const emu::Session::Reply reply = session.handle(message);
        check(reply, message.header);
        if (!message.fds.empty()) std::abort();
        if (reply.hang_up) break;
    }
}

// The stream as it is, wrong size fields included. Everything is sent before the server starts, so that one
// thread does it; what does not fit into the socket is left out.
void through_socket(emu::PciDescription description, test::TestCard& card, emu::Interrupts& interrupts,
                    const std::vector<Piece>& pieces) {
    auto server = emu::VfioUserServer::create_detached(std::move(description), card, interrupts);
    if (!server) std::abort();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    test::Client client{emu::UniqueFd(ends[0])};
    for (const Piece& piece : pieces) {
        std::vector<std::byte> bytes = test::bytes_of(piece.header);
        const auto payload = std::as_bytes(piece.payload);
        bytes.insert(bytes.end(), payload.begin(), payload.end());
        if (!client.send(bytes, piece.fds)) break;
    }
    client.hang_up();
    (*server)->serve(emu::UniqueFd(ends[1]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) return 0;
    const uint8_t control = data[0];
    const auto mode = static_cast<emu::InterruptMode>(control % 3);
    const std::vector<Piece> pieces = split(std::span(data, size).subspan(1));
    emu::Interrupts interrupts;
    test::TestCard card(interrupts);
    if ((control & 0x80) != 0) {
        through_socket(card.description(mode), card, interrupts, pieces);
    } else {
        through_session(card.description(mode), card, interrupts, pieces);
    }
    // The card heard of each range once, in natural accesses, and of the end of all of them.
    if (card.broken_promises() != 0 || card.mapped_ranges() != 0) std::abort();
    return 0;
}
