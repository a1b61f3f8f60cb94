// What a process is told of a kernel that failed. Its kernels may have written over the packet, and its
// modules may hold any text.
#include "umd/runtime/fault_text.h"

#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>

#include <orrery/hw/engine.h>
#include <orrery/hw/kernel_abi.h>

#include <bit>
#include <cstring>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/context.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd::test {
namespace {

class FaultText : public ::testing::Test {
  protected:
    Context& context() { return **(*Runtime::get())->context(0); }
    std::string of(std::uint64_t detail, std::uint64_t address, const orr_packet_dispatch& packet = {}) {
        QueueState state;
        state.error = ORR_QERR_KERNEL_TRAP;
        state.error_detail = detail;
        state.error_address = address;
        state.error_item = 6ull << ORR_DONE_ITEM_BITS | 5;
        return describe_queue_error(state, {Op::kKernel, "k"}, std::bit_cast<orr_packet>(packet), context())
            .text;
    }
    FakeSystem system_{1};
};

TEST_F(FaultText, NamesGroupAndItemAsTheLaunchCountsThem) {
    orr_packet_dispatch packet{};
    packet.header.opcode = ORR_PKT_DISPATCH;
    packet.grid_x = packet.grid_y = packet.grid_z = 2;
    packet.block_x = packet.block_y = 4;
    packet.block_z = 1;
    EXPECT_THAT(of(3, 0, packet), ::testing::HasSubstr("group (0, 1, 1), item (1, 1, 0)"));
    // What no launch has, only a ring that was written over.
    packet.grid_x = 0;
    packet.block_y = 0;
    packet.block_z = 2;
    EXPECT_THAT(of(3, 0, packet), ::testing::HasSubstr("group 6, item 5"));
    packet.block_x = 0;
    packet.block_y = 2;
    EXPECT_THAT(of(3, 0, packet), ::testing::HasSubstr("group 6, item 5"));
}

TEST_F(FaultText, AStackThatNoItemHasIsNoOverflow) {
    orr_packet_dispatch packet{};
    packet.header.opcode = ORR_PKT_DISPATCH;
    packet.block_x = 16;
    packet.block_y = packet.block_z = 1;
    packet.item_stack_pages = 1;
    const auto of_item = [&](std::uint64_t item) {
        QueueState state;
        state.error = ORR_QERR_FAULT;
        state.error_detail = ORR_FAULT_NOT_MAPPED;
        state.error_address = ORR_ITEM_STACKS + item * ORR_ITEM_STACK_STRIDE;
        return describe_queue_error(state, {Op::kKernel, "k"}, std::bit_cast<orr_packet>(packet), context())
            .text;
    };
    EXPECT_THAT(of_item(15), ::testing::HasSubstr("below the stack of item 15, of 4096 bytes"));
    EXPECT_THAT(of_item(40), ::testing::HasSubstr("on the stack of item 40 of a group of 16"));
}

TEST_F(FaultText, ABadAddressHasThePlaceInTheModule) {
    constexpr std::uint64_t kStart = 0x7000'0000;
    context().add_code(kStart, "m.elf", std::vector<std::byte>(64), {});
    const auto of_fault = [&](Op op, std::uint64_t address, std::uint64_t pc) {
        QueueState state;
        state.error = ORR_QERR_FAULT;
        state.error_detail = ORR_FAULT_NOT_MAPPED;
        state.error_address = address;
        state.error_other = pc;
        return describe_queue_error(state, {op, "k"}, {}, context()).text;
    };
    EXPECT_THAT(of_fault(Op::kKernel, 8, kStart + 16),
                ::testing::HasSubstr(
                    "accessed 0x8 where nothing is mapped at pc 0x70000010 (offset 0x10 of module m.elf): "));
    // A jump is at the address itself; cards of before tell nothing; a copy has no pc.
    for (const std::string& text : {of_fault(Op::kKernel, kStart + 16, kStart + 16),
                                    of_fault(Op::kKernel, 8, 0), of_fault(Op::kCopy, 8, kStart + 16)})
        EXPECT_EQ(text.find(" at pc "), std::string::npos) << text;
    context().remove_code(kStart);
}

TEST_F(FaultText, AListHasTheNumberOfTheCopy) {
    struct Args {
        std::byte others[64];
        orr_copy_entry list[40];
        BatchCopy numbers[40];
    } args{};
    args.numbers[7] = {150, 200};
    const std::uint64_t kList = reinterpret_cast<std::uintptr_t>(args.list);
    orr_packet_copies packet{};
    packet.header.opcode = ORR_PKT_COPIES;
    packet.header.tag = 9;
    packet.list = kList;
    packet.entries = 40;
    const auto of_entry = [&](std::uint64_t other, std::uint64_t index = 9) {
        QueueState state;
        state.error = ORR_QERR_FAULT;
        state.error_detail = ORR_FAULT_NOT_MAPPED;
        state.error_address = 0x666000;
        state.error_index = index;
        state.error_other = other;
        return describe_queue_error(state, {Op::kCopy, nullptr}, std::bit_cast<orr_packet>(packet), context(),
                                    std::as_bytes(std::span(&args, 1)))
            .text;
    };
    EXPECT_THAT(
        of_entry(kList + 7 * sizeof(orr_copy_entry)),
        ::testing::HasSubstr("a copy (copy 150 of 200, counted from 0) accessed 0x666000 where nothing is"));
    // What no list has, and a ring that was written over.
    for (const std::string& text : {of_entry(0), of_entry(kList - 32),
                                    of_entry(kList + 40 * sizeof(orr_copy_entry)), of_entry(kList, 73)})
        EXPECT_THAT(text, ::testing::StartsWith("a copy accessed 0x666000"));
    // Nor is a list believed that reaches beyond the stream's arguments, or begins before them.
    packet.entries = 41;
    EXPECT_THAT(of_entry(kList), ::testing::StartsWith("a copy accessed 0x666000"));
    packet.entries = 40;
    packet.list = kList - 96;
    EXPECT_THAT(of_entry(packet.list), ::testing::StartsWith("a copy accessed 0x666000"));
}

TEST(FaultTextOfAtomics, SaysWhatToDo) {
    FakeSystem system(3);
    system.card(1).host_atomics = system.card(2).host_atomics = false;
    system.card(2).driver_version = ORR_MAKE_VERSION(1, 3, 9);
    QueueState state;
    state.error = ORR_QERR_FAULT;
    state.error_detail = ORR_FAULT_ATOMIC;
    state.error_address = 0x5000;
    const auto text = [&](int device) {
        Context& context = **(*Runtime::get())->context(device);
        const Error error = describe_queue_error(state, {Op::kKernel, "k"}, {}, context);
        EXPECT_EQ(error.code, orrErrorIllegalAddress);
        return error.text;
    };
    EXPECT_THAT(text(0), ::testing::HasSubstr("accessed 0x5000 with an atomic on host memory"));
    EXPECT_THAT(text(0), ::testing::HasSubstr("bind it again"));
    EXPECT_THAT(text(1), ::testing::HasSubstr("the platform completes none"));
    EXPECT_THAT(text(2), ::testing::HasSubstr("a driver before 1.4 does not switch them on"));
}

TEST_F(FaultText, ARaceHasBothSides) {
    constexpr std::uint64_t kStart = 0x7000'0000;
    context().add_code(kStart, "m.elf", std::vector<std::byte>(64), {});
    orr_packet_dispatch packet{};
    packet.header.opcode = ORR_PKT_DISPATCH;
    packet.entry = kStart + 32;
    const auto finding = [&](std::uint64_t fault, std::uint64_t address) {
        QueueState state;
        state.error = ORR_QERR_KERNEL_TRAP;
        state.error_detail = fault;
        state.error_address = address;
        state.error_item = 6ull << ORR_DONE_ITEM_BITS | 5;
        state.error_other = 8ull << 32 | static_cast<std::uint32_t>(-16);
        return describe_queue_error(state, {Op::kKernel, "k"}, std::bit_cast<orr_packet>(packet), context())
            .text;
    };
    const std::uint64_t local = (ORR_LOCAL_BASE + 12) & 0xffff'ffff'ffff;
    const std::uint64_t who = 3ull << 28 | 2ull << 38;
    EXPECT_THAT(finding(ORR_TRAP_RACE | ORR_CHECK_ATOMIC << 16 | ORR_CHECK_STORE << 18 | 4 << 20 | who,
                        local | 3ull << 48),
                ::testing::MatchesRegex(
                    "kernel 'k' has a race on 4 bytes at 0x[0-9a-f]+ \\(byte 12 of work-group memory\\): "
                    "item 5 of group 6 writes at pc 0x70000010 \\(offset 0x10 of module m.elf\\); "
                    "item 3 of group 2 uses atomically at pc 0x70000028 \\(offset 0x28 of module m.elf\\); "
                    "nothing orders the two. 2 more findings of this launch are in the card's log .*"));
    EXPECT_THAT(
        finding(ORR_TRAP_RACE | 1 << 20 | ~0ull << 38, 0x1000 | 1ull << 48),
        ::testing::AllOf(::testing::HasSubstr("1 byte at 0x1000"), ::testing::HasSubstr("of a later group"),
                         ::testing::Not(::testing::HasSubstr("log"))));
    EXPECT_THAT(finding(ORR_TRAP_RACE_BESIDE | 1 << 20 | who, 0x1000 | 1ull << 48),
                ::testing::HasSubstr("item 3 of group 2 of a launch beside this one reads at pc 0x70000028"));
    EXPECT_THAT(finding(ORR_TRAP_OUTSIDE | 2 << 20, local | 2ull << 48),
                ::testing::AllOf(::testing::HasSubstr("beyond what its launch asked for"),
                                 ::testing::HasSubstr("1 more finding of this launch is in")));
    EXPECT_THAT(finding(ORR_TRAP_BELOW_STACK, local), ::testing::HasSubstr("below its stack pointer"));
    // Of card memory.
    EXPECT_THAT(finding(ORR_TRAP_OUTSIDE | 2 << 20, 0x1000),
                ::testing::HasSubstr("are in no allocation: near no"));
    EXPECT_THAT(
        finding(ORR_TRAP_NEVER_WRITTEN | 4 << 20, 0x1000),
        ::testing::HasSubstr("uses 4 bytes at 0x1000 that nobody wrote (near no allocation): item 5"));
    EXPECT_THAT(finding(ORR_TRAP_NEVER_WRITTEN, local), ::testing::HasSubstr("that it never wrote"));
    context().remove_code(kStart);
}

TEST(FaultTextOfTwo, AKernelInAnotherCardsMemoryIsToldWhoseItIs) {
    FakeSystem system(2);
    void* there = nullptr;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMalloc(&there, 4096));
    ASSERT_OK(orrSetDevice(0));
    const auto of = [&](int device, Op op, std::uint64_t fault = ORR_FAULT_PERMISSION) {
        QueueState state;
        state.error = ORR_QERR_FAULT;
        state.error_detail = fault;
        state.error_address = reinterpret_cast<std::uintptr_t>(there) + 8;
        return describe_queue_error(state, {op, "k"}, {}, **(*Runtime::get())->context(device)).text;
    };
    EXPECT_THAT(of(0, Op::kKernel),
                ::testing::HasSubstr("in memory of device 1, which this device reaches with copies only"));
    EXPECT_THAT(
        of(0, Op::kKernel, ORR_FAULT_NOT_MAPPED),
        ::testing::HasSubstr("in another card's memory (device 0 may not use memory of device 1: call"));
    EXPECT_THAT(of(0, Op::kKernel, ORR_FAULT_PEER_DOWN),
                ::testing::HasSubstr("over a link that is down (memory of device 1): 8 bytes into"));
    system.card(0).cut_link();
    for (const Op op : {Op::kKernel, Op::kCopy})
        EXPECT_THAT(
            of(0, op, ORR_FAULT_PEER_DOWN),
            ::testing::HasSubstr("over a link that is down (memory of device 1; the link from port 0 of "
                                 "device 0 to device 1 went down): 8 bytes into"));
    EXPECT_THAT(of(1, Op::kCopy, ORR_FAULT_PEER_DOWN), ::testing::HasSubstr("over a link that is down: "))
        << "its own memory";
    system.card(0).mend_link();
    EXPECT_THAT(of(0, Op::kCopy), ::testing::HasSubstr("against the memory's protection"));
    EXPECT_THAT(of(1, Op::kKernel), ::testing::HasSubstr("against the memory's protection"));
    ASSERT_OK(orrFree(there));
}

// Whatever the card has seen of it first.
TEST(FaultTextOfTwo, WhoLosesTheOwnerIsToldSo) {
    FakeSystem system(2);
    void* there = nullptr;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMalloc(&there, 4096));
    ASSERT_OK(orrSetDevice(0));
    Context& context = **(*Runtime::get())->context(0);
    QueueState state;
    state.error = ORR_QERR_FAULT;
    state.error_address = reinterpret_cast<std::uintptr_t>(there) + 8;
    const auto of = [&](Op op, std::uint64_t fault) {
        state.error_detail = fault;
        return describe_queue_error(state, {op, "k"}, {}, context);
    };
    EXPECT_EQ(of(Op::kKernel, ORR_FAULT_NO_ROUTE).code, orrErrorPeerAccess);
    system.card(1).lose();
    for (const auto fault : {ORR_FAULT_NO_ROUTE, ORR_FAULT_PEER_DOWN, ORR_FAULT_PEER_DENIED}) {
        for (const Op op : {Op::kKernel, Op::kCopy}) {
            const Error told = of(op, fault);
            EXPECT_EQ(told.code, orrErrorDeviceLost);
            EXPECT_THAT(told.text, ::testing::HasSubstr("4096 bytes at "));
            EXPECT_THAT(told.text, ::testing::HasSubstr(" on device 1, and that device is lost: "));
        }
    }
    EXPECT_EQ(of(Op::kKernel, ORR_FAULT_PERMISSION).code, orrErrorIllegalAddress);
    ASSERT_OK(orrFree(there));
}

// An older driver names a link also if it went with the card.
TEST(FaultTextOfTwo, WhoLosesTheOwnerIsToldOfTheLinkThatWentDownBefore) {
    constexpr std::string_view kBefore =
        "lost: the link from port 0 of device 0 to device 1 went down first; ";
    constexpr std::uint32_t kOld = ORR_MAKE_VERSION(1, 18, 0), kTells = ORR_MAKE_VERSION(1, 19, 0);
    for (const std::uint32_t version : {kOld, kTells}) {
        for (const bool cut : {true, false}) {
            FakeSystem system(2);
            for (std::size_t card = 0; card < 2; ++card)
                system.card(card).driver_version = version;
            void* there = nullptr;
            ASSERT_OK(orrSetDevice(1));
            ASSERT_OK(orrMalloc(&there, 4096));
            ASSERT_OK(orrSetDevice(0));
            Context& context = **(*Runtime::get())->context(0);
            if (cut) system.card(1).cut_link();
            system.card(1).lose();
            QueueState state;
            state.error = ORR_QERR_FAULT;
            state.error_detail = ORR_FAULT_NO_ROUTE;
            state.error_address = reinterpret_cast<std::uintptr_t>(there);
            const Error told = describe_queue_error(state, {Op::kCopy, nullptr}, {}, context);
            EXPECT_EQ(told.code, orrErrorDeviceLost);
            EXPECT_EQ(told.text.find(kBefore) != std::string::npos, cut && version == kTells) << told.text;
            ASSERT_OK(orrFree(there));
        }
    }
}

// Of a chain the last link that ended a way to the card may be one between others, of long ago.
TEST(FaultTextOfThree, WhoLosesTheOwnerIsToldOfNoLinkBetweenOthers) {
    for (const bool cut : {false, true}) {
        FakeSystem system(3);
        for (std::size_t card = 0; card < 3; ++card)
            system.card(card).driver_version = ORR_MAKE_VERSION(1, 19, 0);
        for (int device = 0; device < 3; ++device)
            (void)(*Runtime::get())->context(device);
        system.card(1).link_to(system.card(2));
        system.card(0).cut_link();
        if (cut) system.card(2).cut_link();
        system.card(2).lose();
        const auto told = (**(*Runtime::get())->context(2)).ask();
        ASSERT_TRUE(told);
        EXPECT_EQ(told->text.find("went down") != std::string::npos, cut) << told->text;
        if (cut)
            EXPECT_THAT(told->text, ::testing::StartsWith(
                                        "the link from port 1 of device 1 to device 2 went down first; "));
    }
}

// Whoever asks first: here its own stream does.
TEST(FaultTextOfTwo, AStreamOfALostCardIsToldOfTheLinkThatWentDownBefore) {
    FakeSystem system(2);
    for (std::size_t card = 0; card < 2; ++card)
        system.card(card).driver_version = ORR_MAKE_VERSION(1, 19, 0);
    orrStream_t stream = nullptr;
    (void)(*Runtime::get())->context(0);
    ASSERT_OK(orrSetDevice(1));
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 4096));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    system.card(1).pause(true);
    ASSERT_OK(orrMemsetAsync(memory, 0, 4096, stream));
    system.card(1).cut_link();
    system.card(1).lose();
    EXPECT_FAIL(orrStreamSynchronize(stream), orrErrorDeviceLost,
                "the link from port 0 of device 0 to device 1 went down first; ");
    EXPECT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrFree(memory));
}

// A write to one that can be read, too, is not taken for a read.
TEST(FaultTextOfTwo, WhoLosesAMemberOfAMulticastIsToldSo) {
    for (const bool combines : {false, true}) {
        FakeSystem system(3);
        system.card(0).driver_version = ORR_MAKE_VERSION(1, 9, 0);
        system.card(0).link_to(system.card(2));
        const auto context = [](int device) { return *(*Runtime::get())->context(device); };
        void* members[2];
        for (int device = 1; device < 3; ++device) {
            (void)context(device);
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrIpcMalloc(&members[device - 1], 4096, 0));
        }
        ASSERT_OK(orrSetDevice(0));
        void* all = nullptr;
        ASSERT_OK(orrMulticastCreate(&all, members, 2, 4096, combines ? orrMulticastReadable : 0));
        const auto of = [&](std::uint64_t fault) {
            QueueState state;
            state.error = ORR_QERR_FAULT;
            state.error_detail = fault;
            state.error_address = reinterpret_cast<std::uintptr_t>(all);
            return describe_queue_error(state, {Op::kCopy, nullptr}, {}, *context(0));
        };
        EXPECT_EQ(of(ORR_FAULT_NO_ROUTE).code, orrErrorPeerAccess);
        system.card(2).lose();
        for (const auto fault : {ORR_FAULT_NO_ROUTE, ORR_FAULT_PEER_DOWN}) {
            const Error told = of(fault);
            EXPECT_EQ(told.code, orrErrorDeviceLost) << told.text;
            EXPECT_THAT(told.text, ::testing::HasSubstr(", and device 2 is lost: "));
            EXPECT_EQ(told.text.find("reading"), std::string::npos) << told.text;
        }
        EXPECT_EQ(of(ORR_FAULT_PERMISSION).code, orrErrorIllegalAddress);
        ASSERT_OK(orrFree(all));
        for (void* member : members)
            ASSERT_OK(orrFree(member));
    }
}

TEST_F(FaultText, AnEnginesRefusalIsNotTheFirmwares) {
    const auto of = [&](std::uint32_t code, std::uint64_t detail) {
        QueueState state;
        state.error = code;
        state.error_detail = detail;
        return describe_queue_error(state, {Op::kKernel, "k"}, {}, context());
    };
    const Error refused = of(ORR_QERR_BAD_DESC, ORR_DONE_BAD_DESC);
    EXPECT_EQ(refused.code, orrErrorInternal);
    EXPECT_THAT(refused.text, ::testing::StartsWith("an engine of the card refused kernel 'k' (status 1): "));
    for (const std::uint32_t code : {ORR_QERR_BAD_OPCODE, ORR_QERR_BAD_PACKET, ORR_QERR_BAD_INDEX}) {
        const Error told = of(code, 3);
        EXPECT_EQ(told.code, orrErrorInternal);
        EXPECT_THAT(told.text, ::testing::StartsWith(fmt::format(
                                   "the firmware refused kernel 'k' (code {}, detail 0x3): ", code)));
    }
}

TEST_F(FaultText, TextsOfAModuleReachNoTerminalAsTheyAre) {
    // An assertion's expression, file, function and line; what __builtin_source_location() gives.
    constexpr std::uint64_t kStart = 0x7000'0000;
    struct {
        std::uint64_t expression = kStart + 64, file = kStart + 64, function = kStart + 64, line = 7;
        std::uint64_t place_file = kStart + 64, place_function = kStart + 64, place_line = 8, pad = 0;
    } words;
    std::vector<std::byte> code(64 + 10'000, std::byte{'x'});
    std::memcpy(code.data(), &words, sizeof words);
    code[64] = std::byte{0x1b};
    code.back() = std::byte{0};
    context().add_code(kStart, "m", code, {});
    for (const std::string& text : {of(ORR_TRAP_ASSERT, kStart), of(ORR_TRAP_BARRIER_LATE, kStart + 32)}) {
        EXPECT_THAT(text, ::testing::HasSubstr("?xxxx"));
        EXPECT_EQ(text.find('\x1b'), std::string::npos);
        EXPECT_LT(text.size(), 1200u);
    }
    context().remove_code(kStart);
}

}  // namespace
}  // namespace orrery::umd::test
