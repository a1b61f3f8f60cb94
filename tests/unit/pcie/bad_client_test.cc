// What a client that lies, dies or sends garbage gets: an error reply or the end of the connection; the next
// client finds the card as new.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "emulator/pcie/config_space.h"
#include "tests/unit/pcie/server_fixture.h"

namespace orrery::test {
namespace {

using emu::Interrupts;
using testing::ElementsAre;
using testing::HasSubstr;

class BadClient : public ServerFixture {
  protected:
    // The connection ends, and the server lives.
    void expect_hang_up(Client& client) {
        EXPECT_FALSE(client.receive());
        client.hang_up();
        settle();
    }
    static size_t open_files() {
        const std::filesystem::directory_iterator all("/proc/self/fd");
        return static_cast<size_t>(std::distance(begin(all), end(all)));
    }
};

TEST_F(BadClient, MustStartWithVersion) {
    start();
    auto client = Client::connect(path_);
    EXPECT_EQ(client->error_of(wire::kDeviceReset, {}), EPROTO);
    EXPECT_FALSE(client->receive());
    const Client next = attach();
    EXPECT_THAT(card_.take_events(), ElementsAre("attached")) << "the first one never got as far as that";
}

TEST_F(BadClient, MustProposeASoundVersion) {
    start();
    const auto text = [](std::string_view json) {
        return bytes_of(wire::Version{0, 0}) + std::as_bytes(std::span(json.data(), json.size())) +
               std::vector<std::byte>(1);
    };
    const std::vector<std::pair<std::vector<std::byte>, int>> cases{
        {bytes_of(wire::Version{1, 0}), EPROTONOSUPPORT},
        {{}, EINVAL},
        {std::vector<std::byte>(3), EINVAL},
        {text("{"), EINVAL},
        {text("[]"), EINVAL},
        {text("null"), EINVAL},
        {text(R"({"capabilities": 3})"), EINVAL},
        {text(R"({"capabilities": {"max_msg_fds": "many"}})"), EINVAL},
        {text(R"({"capabilities": {"max_data_xfer_size": -1}})"), EINVAL},
        {text(std::string(100000, '[')), EINVAL},
        {text(std::string(4000, '[')), EINVAL},
        {bytes_of(wire::Version{0, 0}) + std::vector<std::byte>(10, std::byte{'x'}), EINVAL},
    };
    for (size_t i = 0; i < cases.size(); i++) {
        auto client = Client::connect(path_);
        ASSERT_TRUE(client);
        EXPECT_EQ(client->error_of(wire::kVersion, cases[i].first), cases[i].second) << "case " << i;
        expect_hang_up(*client);
    }
}

TEST_F(BadClient, SendsBadHeaders) {
    start();
    for (const wire::Header header : {
             wire::Header{1, wire::kDeviceReset, 0, 0, 0},
             wire::Header{1, wire::kDeviceReset, 15, 0, 0},
             wire::Header{1, wire::kRegionWrite, wire::kMaxMessage + 1, 0, 0},
             wire::Header{1, wire::kRegionWrite, 0xffffffff, 0, 0},
             wire::Header{1, wire::kDmaRead, 16, wire::kFlagReply, 0},
             wire::Header{1, wire::kDmaRead, 16, 0xf, 0},
         }) {
        Client client = attach();
        ASSERT_TRUE(client.send(bytes_of(header)));
        expect_hang_up(client);
    }
}

TEST_F(BadClient, SendsWrongSizes) {
    start();
    Client client = attach();
    for (const uint16_t command :
         {wire::kDmaMap, wire::kDmaUnmap, wire::kDeviceGetInfo, wire::kDeviceGetRegionInfo,
          wire::kDeviceGetIrqInfo, wire::kDeviceSetIrqs, wire::kRegionRead, wire::kRegionWrite}) {
        for (const size_t size : {0u, 1u, 8u, 15u, 17u, 19u, 23u, 25u, 31u, 33u, 1000u, 100000u}) {
            EXPECT_EQ(client.error_of(command, std::vector<std::byte>(size)), EINVAL)
                << "command " << command << ", " << size << " bytes";
        }
    }
    EXPECT_EQ(client.error_of(wire::kDeviceReset, std::vector<std::byte>(1)), EINVAL);
    EXPECT_EQ(client.error_of(wire::kDeviceGetInfo, bytes_of(wire::DeviceInfo{15, 0, 0, 0})), EINVAL);
    EXPECT_EQ(client.region_info(0, 31)->error(), EINVAL);
    EXPECT_EQ(client.error_of(wire::kDeviceGetIrqInfo, bytes_of(wire::IrqInfo{16, 0, 5, 0})), EINVAL);
    EXPECT_EQ(client.read<uint64_t>(0, kRegMagic), kMagic) << "and the connection goes on";
}

TEST_F(BadClient, AccessesOutside) {
    start();
    Client client = attach();
    const auto read = [&](uint32_t region, uint64_t offset, uint32_t count) {
        return client.error_of(wire::kRegionRead, bytes_of(wire::RegionAccess{offset, region, count}));
    };
    EXPECT_EQ(read(0, ORR_BAR_REGS_SIZE - 4, 4), 0);
    EXPECT_EQ(read(0, ORR_BAR_REGS_SIZE - 4, 8), EINVAL);
    EXPECT_EQ(read(0, ORR_BAR_REGS_SIZE, 1), EINVAL);
    EXPECT_EQ(read(0, 0xffffffffffffffff, 1), EINVAL);
    EXPECT_EQ(read(0, 0xfffffffffffffffc, 8), EINVAL);
    EXPECT_EQ(read(0, 0, 0), EINVAL);
    EXPECT_EQ(read(2, 0, wire::kMaxTransfer + 1), E2BIG);
    EXPECT_EQ(read(2, 0, 0xffffffff), E2BIG);
    EXPECT_EQ(read(1, 0, 4), EINVAL) << "no such BAR";
    EXPECT_EQ(read(wire::kRegionRom, 0, 4), EINVAL);
    EXPECT_EQ(read(wire::kRegionVga, 0, 4), EINVAL);
    EXPECT_EQ(read(9, 0, 4), EINVAL);
    EXPECT_EQ(read(0xffffffff, 0, 4), EINVAL);
    EXPECT_EQ(read(wire::kRegionConfig, emu::kConfigSize - 4, 4), 0);
    EXPECT_EQ(read(wire::kRegionConfig, emu::kConfigSize - 4, 8), EINVAL);
    EXPECT_EQ(client.write<uint64_t>(wire::kRegionConfig, emu::kConfigSize - 4, 0), EINVAL);
    EXPECT_EQ(client.write<uint64_t>(0, ORR_BAR_REGS_SIZE - 4, 0), EINVAL);
    // A count that the message does not hold.
    EXPECT_EQ(
        client.error_of(wire::kRegionWrite, bytes_of(wire::RegionAccess{0, 0, 8}) + bytes_of(uint32_t{0})),
        EINVAL);
    EXPECT_EQ(client.error_of(wire::kRegionWrite,
                              bytes_of(wire::RegionAccess{0, 0, 0xfffffff0}) + bytes_of(uint32_t{0})),
              E2BIG);
}

TEST_F(BadClient, MapsNonsense) {
    start();
    Client client = attach();
    const auto fd = memory(0x2000);
    const auto map = [&](uint64_t address, uint64_t size, uint64_t offset, uint32_t flags, int descriptor) {
        return client.error_of(wire::kDmaMap, bytes_of(wire::DmaMap{32, flags, offset, address, size}),
                               std::span(&descriptor, 1));
    };
    EXPECT_EQ(map(0x1000, 0, 0, 3, fd.get()), EINVAL);
    EXPECT_EQ(map(0x1001, 0x1000, 0, 3, fd.get()), EINVAL);
    EXPECT_EQ(map(0x1000, 0x1001, 0, 3, fd.get()), EINVAL);
    EXPECT_EQ(map(0xfffffffffffff000, 0x2000, 0, 3, fd.get()), EINVAL);
    EXPECT_EQ(map(0x1000, 0x1000, 0, 4, fd.get()), EINVAL) << "unknown flag";
    EXPECT_EQ(map(0x1000, 0x3000, 0, 3, fd.get()), EINVAL) << "the file is shorter";
    EXPECT_EQ(map(0x1000, 0x1000, 0x2000, 3, fd.get()), EINVAL);
    EXPECT_EQ(map(0x1000, 0x1000, 0xfffffffffffff000, 3, fd.get()), EINVAL);
    EXPECT_EQ(map(0x1000, 0x1000, 0x800, 3, fd.get()), EINVAL);
    const auto irq = event();
    EXPECT_EQ(map(0x1000, 0x1000, 0, 3, irq.get()), EINVAL) << "not memory";
    const emu::UniqueFd null(::open("/dev/zero", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(map(0x1000, 0x1000, 0, 3, null.get()), EINVAL) << "nor are devices";
    const std::vector<int> two{fd.get(), fd.get()};
    EXPECT_EQ(client.error_of(wire::kDmaMap, bytes_of(wire::DmaMap{32, 3, 0, 0x1000, 0x1000}), two), EINVAL);
    EXPECT_EQ(card_.mapped_ranges(), 0u);

    ASSERT_TRUE(client.map(0x10000, 0x2000, fd.get()));
    const auto unmap = [&](uint64_t address, uint64_t size, uint32_t flags) {
        return client.error_of(wire::kDmaUnmap, bytes_of(wire::DmaUnmap{24, flags, address, size}));
    };
    EXPECT_EQ(unmap(0x10000, 0x1000, 0), EINVAL) << "cuts the range";
    EXPECT_EQ(unmap(0x11000, 0x1000, 0), EINVAL);
    EXPECT_EQ(unmap(0x10000, 0, 0), EINVAL);
    EXPECT_EQ(unmap(0x10000, 0x2000, 1), EINVAL) << "no dirty bitmaps";
    EXPECT_EQ(unmap(0x10000, 0x2000, wire::kUnmapAll), EINVAL) << "all of what?";
    EXPECT_EQ(card_.mapped_ranges(), 1u);
    EXPECT_EQ(unmap(0, uint64_t{1} << 63, 0), 0);
    EXPECT_EQ(card_.mapped_ranges(), 0u);
}

TEST_F(BadClient, SetsNonsenseInterrupts) {
    start();
    Client client = attach();
    const uint32_t set = wire::kIrqDataEventfd | wire::kIrqActionTrigger;
    const auto a = event(), b = event();
    const std::vector<int> one{a.get()}, two{a.get(), b.get()};
    const uint32_t msix = Interrupts::kMsixIndex;
    EXPECT_EQ(client.set_irqs(5, 0, 1, set, one), EINVAL);
    EXPECT_EQ(client.set_irqs(0, 0, 1, set, one), EINVAL) << "no INTx";
    EXPECT_EQ(client.set_irqs(msix, 8, 1, set, one), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0xffffffff, 2, set, two), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 7, 2, set, two), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0, 0xffffffff, set, one), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0, 3, set, two), EINVAL) << "too few descriptors";
    EXPECT_EQ(client.set_irqs(msix, 0, 1, set, two), EINVAL) << "too many";
    EXPECT_EQ(client.set_irqs(msix, 0, 0, set), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0, 1, 0, {}), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0, 1, 0x7, {}), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0, 1, 0x39, {}), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0, 1, set | 0x80000000, one), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0, 1, wire::kIrqDataNone | wire::kIrqActionTrigger, one), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 1, 0, wire::kIrqDataNone | wire::kIrqActionTrigger), EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0, 0, wire::kIrqDataNone | wire::kIrqActionMask), EINVAL);
    EXPECT_EQ(
        client.set_irqs(msix, 0, 2, wire::kIrqDataBool | wire::kIrqActionMask, {}, std::vector<std::byte>(1)),
        EINVAL);
    EXPECT_EQ(client.set_irqs(msix, 0, 1, wire::kIrqDataEventfd | wire::kIrqActionMask, one), ENOTSUP);

    // Descriptors that are not eventfds: writing to them could block, grow a file, or raise SIGPIPE.
    int pair[2];
    ASSERT_EQ(::pipe2(pair, O_CLOEXEC), 0);
    const emu::UniqueFd reader(pair[0]), writer(pair[1]);
    const auto file = memory(4096);
    for (const int fd : {reader.get(), writer.get(), file.get(), client.fd()}) {
        const std::vector<int> bad{fd};
        EXPECT_EQ(client.set_irqs(msix, 0, 1, set, bad), EINVAL);
        const std::vector<int> mixed{a.get(), fd};
        EXPECT_EQ(client.set_irqs(msix, 0, 2, set, mixed), EINVAL) << "all or nothing";
    }
    client.write<uint64_t>(0, kRegRaise, 0);
    EXPECT_EQ(signals(a), 0u);

    // A blocking eventfd whose counter is full would stop whoever raises.
    const emu::UniqueFd full(::eventfd(0, EFD_CLOEXEC));
    const uint64_t most = 0xfffffffffffffffe;
    ASSERT_EQ(::write(full.get(), &most, 8), 8);
    const std::vector<int> fulls{full.get()};
    EXPECT_EQ(client.set_irqs(msix, 0, 1, set, fulls), 0);
    EXPECT_EQ(client.write<uint64_t>(0, kRegRaise, 0), 0);
    EXPECT_EQ(interrupts_.counters().sent, 0u);
}

TEST_F(BadClient, SendsDescriptorsThatNobodyWants) {
    start();
    Client client = attach();
    const size_t before = open_files();
    const auto fd = event();
    const std::vector<int> three{fd.get(), fd.get(), fd.get()};
    for (int i = 0; i < 50; i++) {
        EXPECT_EQ(client.error_of(wire::kDeviceReset, {}, three), EINVAL);
        EXPECT_EQ(client.error_of(wire::kRegionRead, bytes_of(wire::RegionAccess{0, 0, 8}), three), EINVAL);
        EXPECT_EQ(client.error_of(77, {}, three), EINVAL);
        EXPECT_EQ(client.error_of(wire::kDmaMap, bytes_of(wire::DmaMap{}), three), EINVAL);
    }
    EXPECT_EQ(open_files(), before + 1) << "all but ours are closed";
    EXPECT_EQ(client.read<uint64_t>(0, kRegMagic), kMagic);
    // More than a message may carry: some are lost, and the message with them.
    const std::vector<int> many(17, fd.get());
    ASSERT_TRUE(client.send(message(wire::kDeviceReset, {}), many));
    expect_hang_up(client);
    EXPECT_LE(open_files(), before + 1);
}

TEST_F(BadClient, StopsInsideAMessage) {
    start();
    const auto whole =
        message(wire::kRegionWrite, bytes_of(wire::RegionAccess{kRegScratch, 0, 8}) + bytes_of(uint64_t{1}));
    for (const size_t cut : {1u, 15u, 16u, 17u, 32u, 39u}) {
        Client client = attach();
        ASSERT_TRUE(client.send(std::span(whole).first(cut)));
        client.hang_up();
        settle();
    }
    // In pieces it is the same message.
    Client client = attach();
    for (const std::byte& byte : whole)
        ASSERT_TRUE(client.send(std::span(&byte, 1)));
    EXPECT_TRUE(client.receive());
    EXPECT_EQ(client.read<uint64_t>(0, kRegScratch), 1u);
}

TEST_F(BadClient, SendsRandomBytes) {
    start();
    std::minstd_rand random(1);
    for (int round = 0; round < 50; round++) {
        Client client = attach();
        std::vector<std::byte> noise(1 + random() % 3000);
        for (std::byte& byte : noise)
            byte = static_cast<std::byte>(random());
        client.send(noise);
    }
    settle();
}

TEST_F(BadClient, DiesWithEverythingSetUp) {
    start();
    const auto fd = memory(0x10000);
    const auto irq = event();
    const std::vector<int> irqs{irq.get()};
    const size_t before = open_files();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        // In the child only what is safe after fork(): it attaches, sets up, and dies without a word.
        auto client = Client::connect(path_);
        const bool good = client && client->negotiate() && client->map(0x1000, 0x10000, fd.get()) &&
                          client->map(0xe0000000, 0x1000, -1) &&
                          client->set_irqs(Interrupts::kMsixIndex, 0, 1,
                                           wire::kIrqDataEventfd | wire::kIrqActionTrigger, irqs) == 0 &&
                          client->write<uint16_t>(wire::kRegionConfig, 4, 6) == 0 &&
                          client->write<uint32_t>(wire::kRegionConfig, 0x10, 0xfe000000) == 0;
        if (!good) ::_exit(1);
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    Client next = attach();
    EXPECT_THAT(card_.take_events(),
                ElementsAre("attached", "map 1000+10000 rw", "map e0000000+1000 rw nofd", "master on",
                            "master off", "unmap 1000+10000", "unmap e0000000+1000", "gone", "attached"));
    EXPECT_EQ(next.read<uint16_t>(wire::kRegionConfig, 4), 0) << "as after power-on";
    EXPECT_EQ(next.read<uint32_t>(wire::kRegionConfig, 0x10), 0u);
    next.write<uint64_t>(0, kRegRaise, 0);
    EXPECT_EQ(signals(irq), 0u) << "nothing goes to the dead";
    EXPECT_EQ(open_files(), before + 2) << "two ends of the new connection, no descriptor of the old";
}

TEST_F(BadClient, IsRefusedWhileAnotherIsAttached) {
    start();
    Client first = attach();
    auto second = Client::connect(path_);
    ASSERT_TRUE(second);
    EXPECT_FALSE(second->receive()) << "hung up at once, not left to wait";
    EXPECT_EQ(first.read<uint64_t>(0, kRegMagic), kMagic);
    EXPECT_EQ(server_->counters().refused, 1u);
}

TEST_F(BadClient, DoesNotKeepTheCardFromStopping) {
    start();
    Client client = attach();
    // Half a header, and nothing more.
    ASSERT_TRUE(client.send(std::vector<std::byte>(8)));
    stop();
    EXPECT_FALSE(client.receive());

    // One that never reads its replies: the socket fills up until the server waits.
    start();
    Client deaf = attach();
    const auto read = message(wire::kRegionRead, bytes_of(wire::RegionAccess{0, 2, wire::kMaxTransfer}));
    for (int i = 0; i < 20; i++)
        ASSERT_TRUE(deaf.send(read));
    stop();
}

TEST_F(BadClient, CannotFillTheLog) {
    start();
    Client client = attach();
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(client.error_of(99, {}), ENOSYS);
    client.hang_up();
    settle();
    EXPECT_EQ(server_->counters().errors, 1000u);
    stop();
    EXPECT_LT(log_.size(), 50u);
}

TEST(Listening, NamesWhatIsWrong) {
    Interrupts interrupts;
    TestCard card(interrupts);
    const auto create = [&](const std::string& path) {
        return emu::VfioUserServer::create(path, card.description(emu::InterruptMode::kMsi), card,
                                           interrupts);
    };
    const std::string path = testing::TempDir() + "orrery-listen-" + std::to_string(::getpid());
    EXPECT_THAT(create(std::string(200, 'x')).error(), HasSubstr("shorter"));
    EXPECT_THAT(create("").error(), HasSubstr("bytes"));
    EXPECT_THAT(create("/nonexistent/card.sock").error(), HasSubstr("No such file"));
    std::ofstream(path) << "a file of the user's";
    EXPECT_THAT(create(path).error(), HasSubstr("not a socket"));
    EXPECT_TRUE(std::filesystem::exists(path));
    std::filesystem::remove(path);
    {
        const auto server = create(path);
        ASSERT_TRUE(server);
        struct stat info{};
        ASSERT_EQ(::stat(path.c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0600u) << "for this user only";
        EXPECT_THAT(create(path).error(), HasSubstr("another process"));
    }
    EXPECT_FALSE(std::filesystem::exists(path)) << "gone with the server";
    // A socket that a dead process left behind.
    {
        const emu::UniqueFd stale(::socket(AF_UNIX, SOCK_STREAM, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.data(), path.size());
        ASSERT_EQ(::bind(stale.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
    EXPECT_TRUE(create(path));
    emu::PciDescription bad = card.description(emu::InterruptMode::kMsi);
    bad.bars[2].size = 12345;
    EXPECT_THAT(emu::VfioUserServer::create(path, bad, card, interrupts).error(), HasSubstr("BAR 2"));
}

}  // namespace
}  // namespace orrery::test
