#include "emulator/gdb/session.h"

#include <gtest/gtest.h>

#include <memory>

#include <fmt/format.h>

#include "emulator/gdb/registers.h"
#include "tests/unit/gdb/fake_target.h"

namespace orrery::emu::gdb {
namespace {

class SessionTest : public testing::Test {
  protected:
    // The reply to a packet, unpacked; "" also if there is none.
    std::string ask(std::string_view packet) {
        send(frame(packet));
        return answer();
    }
    void send(std::string_view text) {
        session_->receive({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    }
    std::string answer() {
        PacketReader reader;
        std::string got;
        for (const char c : session_->output()) {
            if (reader.put(static_cast<std::uint8_t>(c)) == PacketReader::Event::kPacket)
                got = reader.packet();
        }
        session_->output().clear();
        return got;
    }
    std::string resume(std::string_view packet) {
        send(frame(packet));
        session_->poll();
        return answer();
    }

    FakeTarget target_;
    std::unique_ptr<Session> session_ = std::make_unique<Session>(target_);
};

TEST_F(SessionTest, SaysWhatItCan) {
    EXPECT_EQ(target_.attached, 1);
    const std::string plain = ask("qSupported:swbreak+");
    EXPECT_NE(plain.find("PacketSize=1000"), std::string::npos);
    EXPECT_EQ(plain.find("Reverse"), std::string::npos);
    target_.reverse = true;
    EXPECT_NE(ask("qSupported").find("ReverseStep+;ReverseContinue+"), std::string::npos);
    EXPECT_EQ(ask("?"), "T05");
    EXPECT_EQ(ask("qAttached"), "1");
    EXPECT_EQ(ask("vMustReplyEmpty"), "");
    EXPECT_EQ(ask("nonsense"), "");
}

// As gdb reads it: where it is, then the file in pieces.
TEST_F(SessionTest, ADebuggerWithoutTheProgramReadsItFromTheTarget) {
    EXPECT_EQ(ask("qSupported").find("exec-file"), std::string::npos);
    EXPECT_EQ(ask("vFile:open:2f6f72726572792d66772e656c66,0,0"), "") << "this target has none";
    EXPECT_EQ(ask("qXfer:exec-file:read::0,400"), "E00");
    for (std::size_t n = 0; n < 10'000; ++n)
        target_.elf.push_back(static_cast<std::uint8_t>(n % 4 == 0 ? '}' : n % 4 == 1 ? '#' : n));
    EXPECT_NE(ask("qSupported").find(";qXfer:exec-file:read+"), std::string::npos);
    EXPECT_EQ(ask("qXfer:exec-file:read::0,400"), "l/orrery-fw.elf");
    EXPECT_EQ(ask("qXfer:exec-file:read:1:0,4"), "m/orr");
    EXPECT_EQ(ask("qXfer:exec-file:read:1:4,400"), "lery-fw.elf");
    ASSERT_EQ(ask("vFile:open:2f6f72726572792d66772e656c66,0,0"), "F1");
    const std::string status = ask("vFile:fstat:1");
    ASSERT_EQ(status.size(), 4u + 64);
    EXPECT_EQ(status.substr(0, 4), "F40;");
    EXPECT_EQ(status.substr(4 + 7 * 4, 8), std::string("\0\0\0\0\0\0\x27\x10", 8));
    std::string got;
    for (;;) {
        const std::string reply = ask(fmt::format("vFile:pread:1,fff,{:x}", got.size()));
        const auto begin = reply.find(';');
        ASSERT_NE(begin, std::string::npos) << reply;
        ASSERT_LT(reply.size(), kMaxPacket / 2);
        if (reply == "F0;") break;
        EXPECT_EQ(reply.substr(0, begin), fmt::format("F{:x}", reply.size() - begin - 1));
        got += reply.substr(begin + 1);
    }
    EXPECT_EQ(got, std::string(target_.elf.begin(), target_.elf.end()));
    EXPECT_EQ(ask("vFile:close:1"), "F0");
}

TEST_F(SessionTest, NoOtherFileIsRead) {
    target_.elf = {1, 2, 3};
    EXPECT_EQ(ask("vFile:open:2f6574632f686f73746e616d65,0,0"), "F-1,2") << "/etc/hostname";
    EXPECT_EQ(ask("vFile:open:2f6f72726572792d66772e656c66,2,0"), "F-1,1e") << "nor written";
    EXPECT_EQ(ask("vFile:open:2f6,0,0"), "F-1,16");
    EXPECT_EQ(ask("vFile:open:"), "F-1,16");
    EXPECT_EQ(ask("vFile:pread:2,1,0"), "F-1,9");
    EXPECT_EQ(ask("vFile:pread:1"), "F-1,16");
    EXPECT_EQ(ask("vFile:pread:1,1,ffffffffffffffff"), "F0;");
    EXPECT_EQ(ask("vFile:close:1x"), "F-1,16");
    EXPECT_EQ(ask("vFile:unlink:2f78"), "");
    EXPECT_EQ(ask("vFile:"), "");
    EXPECT_EQ(ask("vFile"), "");
}

TEST_F(SessionTest, Registers) {
    for (unsigned i = 0; i < 32; ++i)
        target_.hart.x[i] = i * 0x0101;
    target_.hart.pc = 0x80001234;
    target_.hart.mepc = 0x42;
    const std::string all = ask("g");
    ASSERT_EQ(all.size(), 33u * 16);
    EXPECT_EQ(all.substr(2 * 16, 16), "0202000000000000");
    EXPECT_EQ(all.substr(32 * 16), "3412008000000000");
    EXPECT_EQ(ask("p20"), "3412008000000000");
    EXPECT_EQ(ask("p382"), "4200000000000000") << "65 + 0x341";
    EXPECT_EQ(ask("p381"), "0000000000000000") << "mscratch";
    EXPECT_EQ(ask("p50"), "E02");
    EXPECT_EQ(ask("p"), "E01");
    EXPECT_EQ(ask("Pa=efcdab0000000000"), "OK");
    EXPECT_EQ(target_.hart.x[10], 0xabcdefu);
    EXPECT_EQ(ask("P0=ffffffffffffffff"), "OK");
    EXPECT_EQ(target_.hart.x[0], 0u);
    EXPECT_EQ(ask("Pa=ef"), "E01");
    EXPECT_EQ(ask("P385=0000000000000000"), "E02") << "mip belongs to the hardware";
    EXPECT_EQ(ask("G" + std::string(33 * 16, '1')), "OK");
    EXPECT_EQ(target_.hart.x[31], 0x1111111111111111u);
    EXPECT_EQ(ask("G11"), "E01");
}

TEST_F(SessionTest, TheDescriptionComesInParts) {
    std::string all;
    for (;;) {
        const std::string part = ask(fmt::format("qXfer:features:read:target.xml:{:x},100", all.size()));
        ASSERT_FALSE(part.empty());
        all += part.substr(1);
        if (part[0] == 'l') break;
        ASSERT_EQ(part[0], 'm');
    }
    EXPECT_EQ(all, target_description());
    EXPECT_NE(all.find("mcycle"), std::string::npos);
    EXPECT_EQ(ask("qXfer:features:read:other.xml:0,100"), "E00");
    EXPECT_EQ(ask("qXfer:features:read:target.xml:zz"), "E01");
    EXPECT_EQ(ask("qXfer:features:read:target.xml:ffffffffffffffff,100"), "l");
}

TEST_F(SessionTest, Memory) {
    EXPECT_EQ(ask("M80000010,4:01020304"), "OK");
    EXPECT_EQ(ask("m80000010,4"), "01020304");
    EXPECT_EQ(ask("m8000fffe,2"), "0000");
    EXPECT_EQ(ask("m8000fffe,3"), "E02");
    EXPECT_EQ(ask("m0,8"), "E02");
    EXPECT_EQ(ask("mffffffffffffffff,8"), "E02");
    EXPECT_EQ(ask("m80000000,ffffffffffffffff").size(), 2 * ((kMaxPacket - 8) / 2)) << "as much as fits";
    EXPECT_EQ(ask("M80000010,5:01020304"), "E01");
    EXPECT_EQ(ask("M0,1:00"), "E02");
    EXPECT_EQ(ask("m80000000"), "E01");
}

TEST_F(SessionTest, Points) {
    EXPECT_EQ(ask("Z0,80000100,2"), "OK");
    EXPECT_EQ(ask("Z1,80000200,4"), "OK");
    EXPECT_EQ(ask("Z2,80000300,8"), "OK");
    EXPECT_EQ(target_.points.size(), 3u);
    EXPECT_EQ(ask("z0,80000100,2"), "OK");
    EXPECT_EQ(ask("Z2,80000300,0"), "E01");
    EXPECT_EQ(ask("Z2,80000300,ffffffff"), "E01");
    EXPECT_EQ(ask("Z2,ffffffffffffffff,8"), "E01");
    EXPECT_EQ(ask("Z9,80000300,8"), "");
    EXPECT_EQ(ask("Z0,80000300"), "E01");
}

TEST_F(SessionTest, RunningAndStopping) {
    EXPECT_EQ(resume("s"), "T05");
    EXPECT_EQ(target_.resumes.back(), Resume::kStep);
    target_.next = {Stop::Kind::kWatchpoint, Watch::kAccess, 0x80000300};
    EXPECT_EQ(resume("c"), "T05awatch:80000300;");
    EXPECT_EQ(ask("bs"), "") << "no reverse on a live target";
    target_.reverse = true;
    target_.next.kind = Stop::Kind::kHistoryBegin;
    EXPECT_EQ(resume("bc"), "T05replaylog:begin;");
    EXPECT_EQ(target_.resumes.back(), Resume::kReverseContinue);
    target_.next.kind = Stop::Kind::kHistoryEnd;
    EXPECT_EQ(resume("c"), "T05replaylog:end;");
    EXPECT_EQ(ask("?"), "T05replaylog:end;");
    EXPECT_EQ(ask("c80000000"), "E01");

    target_.stops = false;
    EXPECT_EQ(resume("c"), "");
    EXPECT_TRUE(session_->running());
    EXPECT_EQ(ask("g"), "E01") << "not while it runs";
    send("\x03");
    session_->poll();
    EXPECT_EQ(answer(), "T02");
    EXPECT_FALSE(session_->running());
}

TEST_F(SessionTest, Acknowledgements) {
    send(frame("?"));
    EXPECT_EQ(session_->output(), "+" + frame("T05"));
    session_->output().clear();
    send("-");
    EXPECT_EQ(session_->output(), frame("T05"));
    session_->output().clear();
    send("$?#00");
    EXPECT_EQ(session_->output(), "-");
    session_->output().clear();
    EXPECT_EQ(ask("QStartNoAckMode"), "OK");
    send(frame("?"));
    EXPECT_EQ(session_->output(), frame("T05"));
}

TEST_F(SessionTest, LeavingLetsGo) {
    EXPECT_EQ(ask("D"), "OK");
    EXPECT_TRUE(session_->over());
    EXPECT_FALSE(session_->killed());
    EXPECT_EQ(target_.attached, 0);
    session_.reset();
    EXPECT_EQ(target_.attached, 0) << "once";
}

TEST_F(SessionTest, KillAndLoss) {
    target_.stops = false;
    resume("c");
    EXPECT_EQ(ask("vKill;1"), "OK");
    EXPECT_TRUE(session_->over());
    EXPECT_TRUE(session_->killed());
    EXPECT_EQ(target_.attached, 0);
    session_ = std::make_unique<Session>(target_);
    EXPECT_EQ(target_.attached, 1);
    session_.reset();
    EXPECT_EQ(target_.attached, 0) << "the connection was lost";
}

}  // namespace
}  // namespace orrery::emu::gdb
