// What is a valid packet, and the descriptor that an engine gets for it.
#include <orrery/hw/kernel_abi.h>
#include <orrery/hw/mmu.h>

#include "firmware/sched/queue/packets.h"

#include "tests/unit/firmware/bench.h"

namespace orrery::fw::test {
namespace {

Verdict judge(const orr_packet& packet) {
    std::uint64_t words[kPacketWords];
    std::memcpy(words, &packet, sizeof(words));
    return validate_packet(words);
}

template <typename T>
Verdict judge_typed(const T& packet) {
    return judge(as_packet(packet));
}

void expect_bad_word(const Verdict& verdict, std::uint64_t word) {
    EXPECT_EQ(verdict.code, ORR_QERR_BAD_PACKET);
    EXPECT_EQ(verdict.detail, word);
}

orr_packet_reduce reduce_of(std::uint64_t src) {
    orr_packet_reduce p{};
    p.header.opcode = ORR_PKT_REDUCE;
    p.src = src;
    p.dst = src + 0x100000;
    p.row_bytes = 64;
    p.rows = 2;
    p.type = ORR_TYPE_F32;
    p.function = ORR_REDUCE_MAX;
    p.src_pitch = 128;
    p.dst_pitch = 256;
    return p;
}

orr_packet_copies copies_of(std::uint64_t list) {
    orr_packet_copies p{};
    p.header.opcode = ORR_PKT_COPIES;
    p.list = list;
    p.bytes = 1000;
    p.entries = 3;
    return p;
}

orr_packet_long long_of(std::uint64_t descriptor) {
    orr_packet_long p{};
    p.header.opcode = ORR_PKT_COPY;
    p.header.flags = ORR_PKT_F_LONG;
    p.descriptor = descriptor;
    p.bytes = sizeof(orr_desc_box);
    return p;
}

TEST(Packet, GoodOnesPass) {
    for (const orr_packet& p :
         {nop(), nop(ORR_PKT_F_ORDERED | ORR_PKT_F_INTERRUPT), barrier(), signal(0x1000, 1),
          wait(0x1010, ~0ull >> 1, ORR_PKT_F_INTERRUPT), timestamp(0x1008), copy(0x1000, 3),
          as_packet(fill_of(0x1000)), as_packet(reduce_of(0x1000)), as_packet(copies_of(0x1000)),
          as_packet(long_of(0x1008)), dispatch(0x1002, 3)})
        EXPECT_EQ(judge(p).code, ORR_QERR_NONE) << p.header.opcode;
}

TEST(Packet, TagIsFree) {
    orr_packet p = nop();
    p.header.tag = 0xdeadbeef;
    EXPECT_EQ(judge(p).code, ORR_QERR_NONE);
}

TEST(Packet, UnknownAndUnfinishedOpcodes) {
    orr_packet p = packet(14);
    p.header.tag = 5;
    EXPECT_EQ(judge(p).code, ORR_QERR_BAD_OPCODE);
    EXPECT_EQ(judge(p).detail, 14 | 5ull << 32);
    EXPECT_EQ(judge(packet(0xffff)).code, ORR_QERR_BAD_OPCODE);
    EXPECT_EQ(judge(packet(ORR_PKT_INDIRECT)).code, ORR_QERR_NOT_IMPLEMENTED);
    EXPECT_EQ(judge(packet(ORR_PKT_MATRIX, 1)).code, ORR_QERR_NOT_IMPLEMENTED);
}

TEST(Packet, FlagsThatTheOpcodeDoesNotName) {
    for (std::uint16_t opcode = ORR_PKT_NOP; opcode <= ORR_PKT_COPIES; ++opcode) {
        if (opcode == ORR_PKT_INDIRECT || opcode == ORR_PKT_MATRIX) continue;
        if (opcode != ORR_PKT_DISPATCH) expect_bad_word(judge(packet(opcode, ORR_PKT_F_RESIDENT)), 0);
        if (opcode != ORR_PKT_COPY) expect_bad_word(judge(packet(opcode, ORR_PKT_F_LONG)), 0);
        expect_bad_word(judge(packet(opcode, 0x10)), 0);
        expect_bad_word(judge(packet(opcode, 0x8000)), 0);
    }
    for (const unsigned opcode : {ORR_PKT_WAIT, ORR_PKT_SIGNAL, ORR_PKT_BARRIER, ORR_PKT_TIMESTAMP})
        expect_bad_word(judge(packet(static_cast<std::uint16_t>(opcode), ORR_PKT_F_ORDERED)), 0);
}

TEST(Packet, ReservedWords) {
    const struct {
        orr_packet packet;
        int first;
    } kinds[] = {{nop(), 0},
                 {barrier(), 0},
                 {signal(0, 1), 2},
                 {wait(0, 1), 2},
                 {timestamp(0), 1},
                 {copy(0x1000), 6},
                 {as_packet(fill_of(0)), 5},
                 {dispatch(0), 5},
                 {as_packet(reduce_of(0)), 6},
                 {as_packet(copies_of(0)), 4},
                 {as_packet(long_of(0)), 2}};
    for (const auto& kind : kinds) {
        ASSERT_EQ(judge(kind.packet).code, ORR_QERR_NONE) << kind.packet.header.opcode;
        for (int word = kind.first; word < 7; ++word) {
            orr_packet p = kind.packet;
            p.word[word] = 1ull << 63;
            expect_bad_word(judge(p), static_cast<std::uint64_t>(word) + 1);
        }
    }
}

TEST(Packet, LongDescriptors) {
    auto p = long_of(0x1004);
    expect_bad_word(judge_typed(p), 1);
    for (const std::uint32_t bytes : {0u, 4u, 116u, ORR_DESC_LONG_BYTES + 8, 0xfffffff8u}) {
        p = long_of(0x1000);
        p.bytes = bytes;
        expect_bad_word(judge_typed(p), 2);
    }
    p = long_of(0x1000);
    p.reserved0 = 1;
    expect_bad_word(judge_typed(p), 2);
    p = long_of(0x1000);
    p.bytes = ORR_DESC_LONG_BYTES;
    EXPECT_EQ(judge_typed(p).code, ORR_QERR_NONE);
}

TEST(Packet, Alignment) {
    expect_bad_word(judge(signal(0x1008, 1)), 1);
    expect_bad_word(judge(wait(0x1001, 1)), 1);
    expect_bad_word(judge(timestamp(0x1004)), 1);
    expect_bad_word(judge(dispatch(0x1001)), 1);
}

TEST(Packet, CopySizes) {
    auto p = copy_of(0x1000);
    p.rows = 0;
    expect_bad_word(judge_typed(p), 4);
    p = copy_of(0x1000);
    p.row_bytes = (1ull << 40) + 1;
    expect_bad_word(judge_typed(p), 3);
    p.row_bytes = 1ull << 40;
    EXPECT_EQ(judge_typed(p).code, ORR_QERR_NONE);
    p.rows = 2;
    expect_bad_word(judge_typed(p), 3);
    p.row_bytes = 1ull << 33;
    p.rows = 0xffffffff;
    expect_bad_word(judge_typed(p), 3);
    p.row_bytes = 0;
    EXPECT_EQ(judge_typed(p).code, ORR_QERR_NONE);
}

TEST(Packet, CopiesOfPlanes) {
    auto p = copy_of(0x1000);
    p.planes = 1;
    EXPECT_EQ(judge_typed(p).code, ORR_QERR_NONE);
    p.src_height = 4;
    expect_bad_word(judge_typed(p), 7);
    p.planes = 2;
    EXPECT_EQ(judge_typed(p).code, ORR_QERR_NONE);
    p.row_bytes = 1ull << 39;
    EXPECT_EQ(judge_typed(p).code, ORR_QERR_NONE);
    p.planes = 3;
    expect_bad_word(judge_typed(p), 3);
    p.row_bytes = 1;
    p.rows = p.planes = 0xffffffff;
    expect_bad_word(judge_typed(p), 3);
}

TEST(Packet, Reductions) {
    const auto with = [](auto change) {
        auto p = reduce_of(0x1000);
        change(p);
        return judge_typed(p);
    };
    expect_bad_word(with([](auto& p) { p.rows = 0; }), 4);
    expect_bad_word(with([](auto& p) { p.type = 0; }), 4);
    expect_bad_word(with([](auto& p) { p.type = ORR_TYPE_F64 + 1; }), 4);
    expect_bad_word(with([](auto& p) { p.function = 0; }), 4);
    expect_bad_word(with([](auto& p) { p.function = ORR_REDUCE_PRODUCT + 1; }), 4);
    expect_bad_word(with([](auto& p) { p.row_bytes = 1ull << 40; }), 3);
    for (const auto [type, bytes] :
         {std::pair{ORR_TYPE_I8, 1u}, std::pair{ORR_TYPE_U8, 1u}, std::pair{ORR_TYPE_I32, 4u},
          std::pair{ORR_TYPE_U32, 4u}, std::pair{ORR_TYPE_I64, 8u}, std::pair{ORR_TYPE_U64, 8u},
          std::pair{ORR_TYPE_F16, 2u}, std::pair{ORR_TYPE_BF16, 2u}, std::pair{ORR_TYPE_F32, 4u},
          std::pair{ORR_TYPE_F64, 8u}}) {
        auto p = reduce_of(0x1000);
        p.type = static_cast<std::uint16_t>(type);
        for (std::uint64_t* field : {&p.src, &p.dst, &p.row_bytes, &p.src_pitch, &p.dst_pitch})
            *field += bytes;
        EXPECT_EQ(judge_typed(p).code, ORR_QERR_NONE) << type;
        if (bytes == 1) continue;
        const std::uint64_t words[] = {1, 2, 3, 5, 6};
        std::uint64_t* const fields[] = {&p.src, &p.dst, &p.row_bytes, &p.src_pitch, &p.dst_pitch};
        for (unsigned i = 0; i < 5; ++i) {
            *fields[i] += bytes / 2;
            expect_bad_word(judge_typed(p), words[i]);
            *fields[i] -= bytes / 2;
        }
        p.src_pitch = p.dst_pitch = 1;
        p.rows = 1;
        EXPECT_EQ(judge_typed(p).code, ORR_QERR_NONE) << "a row has no pitch";
    }
}

TEST(Packet, ListsOfCopies) {
    const auto with = [](auto change) {
        auto p = copies_of(0x1000);
        change(p);
        return judge_typed(p);
    };
    expect_bad_word(with([](auto& p) { p.list += 16; }), 1);
    expect_bad_word(with([](auto& p) { p.reserved0 = 1; }), 2);
    expect_bad_word(with([](auto& p) { p.bytes = (1ull << 40) + 1; }), 3);
    expect_bad_word(with([](auto& p) { p.entries = 0; }), 4);
    expect_bad_word(with([](auto& p) { p.reserved1 = 1; }), 4);
    EXPECT_EQ(with([](auto& p) { p.bytes = 0; }).code, ORR_QERR_NONE);
}

TEST(Packet, FillSizes) {
    for (const std::uint32_t bytes : {0u, 3u, 5u, 16u, 0x10004u}) {
        auto p = fill_of(0x1000);
        p.pattern_bytes = bytes;
        expect_bad_word(judge_typed(p), 4);
    }
    auto p = fill_of(0x1002);
    expect_bad_word(judge_typed(p), 2);
    p = fill_of(0x1000);
    p.row_bytes = 30;
    expect_bad_word(judge_typed(p), 3);
    p = fill_of(0x1000);
    p.rows = 0;
    expect_bad_word(judge_typed(p), 4);
}

TEST(Packet, DispatchSizes) {
    const auto with = [](auto change) {
        auto p = dispatch_of(0x1000);
        change(p);
        return judge_typed(p);
    };
    expect_bad_word(with([](auto& p) { p.grid_x = 0; }), 3);
    expect_bad_word(with([](auto& p) { p.grid_y = 0; }), 3);
    expect_bad_word(with([](auto& p) { p.grid_x = p.grid_y = 0xffffffff; }), 3);
    expect_bad_word(with([](auto& p) { p.grid_z = 0; }), 4);
    expect_bad_word(with([](auto& p) { p.grid_z = 0xffffffff; }), 4);
    expect_bad_word(with([](auto& p) { p.block_x = 0; }), 4);
    expect_bad_word(with([](auto& p) { p.block_y = 513; }), 4);
    expect_bad_word(with([](auto& p) { p.block_x = p.block_y = 0xffff; }), 4);
    expect_bad_word(with([](auto& p) { p.block_z = 0; }), 5);
    expect_bad_word(with([](auto& p) { p.block_z = 65; }), 5);
    expect_bad_word(with([](auto& p) { p.item_stack_pages = ORR_ITEM_STACK_MAX_PAGES + 1; }), 5);
    expect_bad_word(with([](auto& p) { p.item_stack_pages = 1; }), 6);
    expect_bad_word(with([](auto& p) { p.item_stacks = ORR_PAGE_SIZE; }), 6);
    expect_bad_word(with([](auto& p) { p.item_stack_pages = 1, p.item_stacks = 8; }), 6);
    expect_bad_word(with([](auto& p) { p.item_stack_pages = 1, p.item_stacks = 1ull << 47; }), 6);
    expect_bad_word(with([](auto& p) { p.local_bytes = 0x10001; }), 5);
    EXPECT_EQ(with([](auto& p) { p.block_z = 64; }).code, ORR_QERR_NONE);
    EXPECT_EQ(with([](auto& p) {
                  p.grid_x = 1u << 31;
                  p.grid_y = p.grid_z = 1;
              }).code,
              ORR_QERR_NONE);
}

class Descriptors : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(bench.boot());
        bench.create_context(6, 0);
        queue = bench.create_queue(0, 6);
    }
    Bench bench;
    ProcessQueue queue;
};

TEST_F(Descriptors, Copy) {
    auto p = copy_of(0x1000);
    p.rows = 3;
    p.src_pitch = 128;
    p.dst_pitch = 256;
    bench.submit(queue, {as_packet(p)});
    const auto desc = bench.soc.engines[0].as<orr_desc_copy>();
    EXPECT_EQ(desc.op, ORR_DESC_COPY);
    EXPECT_EQ(desc.asid, 6u);
    EXPECT_EQ(desc.pattern_bytes, 0u);
    EXPECT_EQ(desc.src, p.src);
    EXPECT_EQ(desc.dst, p.dst);
    EXPECT_EQ(desc.row_bytes, p.row_bytes);
    EXPECT_EQ(desc.rows, 3u);
    EXPECT_EQ(desc.src_pitch, 128u);
    EXPECT_EQ(desc.dst_pitch, 256u);
    EXPECT_EQ(desc.pattern, 0u);
}

TEST_F(Descriptors, Fill) {
    const auto p = fill_of(0x1000);
    bench.submit(queue, {as_packet(p)});
    const auto desc = bench.soc.engines[0].as<orr_desc_pattern>();
    EXPECT_EQ(desc.op, ORR_DESC_PATTERN);
    EXPECT_EQ(desc.reserved0, 0u);
    EXPECT_EQ(desc.asid, 6u);
    EXPECT_EQ(desc.pattern_bytes, 4u);
    EXPECT_EQ(desc.dst, 0x1000u);
    EXPECT_EQ(desc.row_bytes, 32u);
    EXPECT_EQ(desc.rows, 2u);
    EXPECT_EQ(desc.dst_pitch, 64u);
    EXPECT_EQ(desc.pattern, p.pattern);
}

TEST_F(Descriptors, Planes) {
    auto p = copy_of(0x1000);
    p.planes = 5;
    p.src_height = 6;
    p.dst_height = 7;
    bench.submit(queue, {as_packet(p)});
    const auto desc = bench.soc.engines[0].as<orr_desc_copy>();
    EXPECT_EQ(desc.op, ORR_DESC_COPY);
    EXPECT_EQ(desc.planes, 5u);
    EXPECT_EQ(desc.pattern, 6 | 7ull << 32);
}

// It is never launched from its slot: the third waits for a port, and is read then.
TEST_F(Descriptors, Long) {
    for (std::uint64_t i = 0; i < 3; ++i)
        bench.submit(queue, {as_packet(long_of(0x1008 + 0x1000 * i))});
    for (std::uint64_t i = 0; i < 3; ++i) {
        const auto desc = bench.soc.engines[i % 2].as<orr_desc_long>();
        EXPECT_EQ(desc.op, ORR_DESC_LONG);
        EXPECT_EQ(desc.reserved0, 0u);
        EXPECT_EQ(desc.asid, 6u);
        EXPECT_EQ(desc.descriptor, 0x1008u + 0x1000 * i);
        EXPECT_EQ(desc.bytes, sizeof(orr_desc_box));
        EXPECT_EQ(desc.reserved1, 0u);
        bench.soc.finish(static_cast<std::uint32_t>(i % 2));
        bench.run();
    }
    EXPECT_EQ(bench.ring_of(queue).consumer, 3u);
}

TEST_F(Descriptors, Reduce) {
    const auto p = reduce_of(0x1000);
    bench.submit(queue, {as_packet(p)});
    const auto desc = bench.soc.engines[0].as<orr_desc_reduce>();
    EXPECT_EQ(desc.op, ORR_DESC_REDUCE);
    EXPECT_EQ(desc.asid, 6u);
    EXPECT_EQ(desc.src, p.src);
    EXPECT_EQ(desc.dst, p.dst);
    EXPECT_EQ(desc.type, ORR_TYPE_F32);
    EXPECT_EQ(desc.function, ORR_REDUCE_MAX);
    EXPECT_EQ(desc.dst_pitch, 256u);
}

// More than there are engines: the last ones wait for a port, and get it.
TEST_F(Descriptors, ListsOfCopiesWaitForAPort) {
    for (std::uint64_t i = 0; i < 5; ++i)
        bench.submit(queue,
                     {i % 2 == 0 ? as_packet(copies_of(0x1000 + 0x1000 * i)) : as_packet(reduce_of(0x40))});
    const auto desc = bench.soc.engines[0].as<orr_desc_copies>();
    EXPECT_EQ(desc.op, ORR_DESC_COPIES);
    EXPECT_EQ(desc.asid, 6u);
    EXPECT_EQ(desc.list, 0x1000u);
    EXPECT_EQ(desc.bytes, 1000u);
    EXPECT_EQ(desc.entries, 3u);
    for (unsigned i = 0; i < 5; ++i) {
        for (std::uint32_t port = 0; port < 2; ++port) {
            if (bench.soc.engines[port].busy) bench.soc.finish(port);
        }
        bench.run();
    }
    EXPECT_EQ(bench.ring_of(queue).consumer, 5u);
}

TEST_F(Descriptors, Kernel) {
    const auto p = dispatch_of(0x4242);
    bench.submit(queue, {as_packet(p)});
    const auto desc = bench.soc.engines[2].as<orr_desc_kernel>();
    EXPECT_EQ(desc.op, ORR_DESC_KERNEL);
    EXPECT_EQ(desc.asid, 6u);
    EXPECT_EQ(desc.entry, 0x4242u);
    EXPECT_EQ(desc.args, p.args);
    EXPECT_EQ(desc.grid_x, 2u);
    EXPECT_EQ(desc.grid_y, 3u);
    EXPECT_EQ(desc.grid_z, 4u);
    EXPECT_EQ(desc.block_x, 8u);
    EXPECT_EQ(desc.block_y, 2u);
    EXPECT_EQ(desc.block_z, 1u);
    EXPECT_EQ(desc.local_bytes, 256u);
    EXPECT_EQ(desc.flags | desc.item_stack_pages | desc.item_stacks | desc.reserved, 0u);
}

}  // namespace
}  // namespace orrery::fw::test
