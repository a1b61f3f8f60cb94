// Two guests on one network.
#include "tests/vm/orrery_vm/fixture.h"

namespace orrery::vm {
namespace {

TEST_F(OrreryVm, TwoGuestsOfOneNameTalkTcp) {
    const auto guest = [this](const std::string& place, const std::string& script) {
        return start(
            {"--cards", "0", "--no-module", "--timeout", "120", "--net", place, "--", "sh", "-ec", script},
            place.substr(5));
    };
    // Megabytes one way, and acknowledgements the other; the server may be there later than the client. nc
    // leaves when the other's input has ended, and tells the end of its own, which therefore has none at the
    // server.
    auto server = guest("pair:1", "hostname; mkfifo endless; nc -l -p 5000 <>endless | md5sum");
    auto client = guest(
        "pair:2",
        "hostname; cp /boot/vmlinuz-* file; until nc -w 20 vm1 5000 <file; do usleep 100000; done; md5sum "
        "<file");
    const auto served = finish(server);
    const auto sent = finish(client);
    EXPECT_EQ(served.status, 0) << served.err;
    EXPECT_EQ(sent.status, 0) << sent.err;
    EXPECT_EQ(served.out.substr(0, 4), "vm1\n");
    EXPECT_EQ(sent.out.substr(0, 4), "vm2\n");
    EXPECT_EQ(served.out.substr(4), sent.out.substr(4));
}

}  // namespace
}  // namespace orrery::vm
