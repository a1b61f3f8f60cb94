// A debugger that sends anything. First byte: even: the rest are the bytes of the connection; odd: lines,
// each of which becomes a good packet.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "emulator/gdb/session.h"
#include "tests/unit/gdb/fake_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace orrery::emu::gdb;
    if (size == 0) return 0;
    FakeTarget target;
    target.reverse = (data[0] & 2) != 0;
    target.stops = (data[0] & 4) != 0;
    if ((data[0] & 8) != 0) target.elf.assign(3 * kMaxPacket, '}');  // every byte needs an escape
    {
        Session session(target);
        const auto give = [&](std::string_view bytes) {
            session.receive({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
            session.poll();
            // A packet is answered by a packet or two: nothing makes the output grow without bound.
            if (session.output().size() > 4 * kMaxPacket * (bytes.size() + 1)) std::abort();
            session.output().clear();
        };
        std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
        if ((data[0] & 1) == 0) {
            give(rest);
        } else {
            while (!rest.empty()) {
                const std::size_t end = std::min(rest.find('\n'), rest.size());
                give(frame(rest.substr(0, end)));
                rest.remove_prefix(std::min(end + 1, rest.size()));
            }
        }
        if (session.over() && target.attached != 0) std::abort();
    }
    if (target.attached != 0) std::abort();
    return 0;
}
