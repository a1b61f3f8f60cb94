// Copies of rows and planes, fills of larger values, lists of copies, copies with reduction.
#include <orrery/graph.h>

#include <cstring>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

constexpr std::size_t kSize = 4 << 20;
constexpr std::uint8_t kUntouched = 0xee;

// One memory of each kind.
struct Memories {
    Memories() {
        EXPECT_OK(orrMalloc(&card, kSize));
        EXPECT_OK(orrMalloc(&other, kSize));
        EXPECT_OK(orrMallocHost(&pinned, kSize, 0));
        ordinary.resize(kSize);
    }
    ~Memories() {
        EXPECT_OK(orrFree(card));
        EXPECT_OK(orrFree(other));
        EXPECT_OK(orrFreeHost(pinned));
    }
    std::vector<void*> all() { return {card, pinned, ordinary.data()}; }
    void* card = nullptr;
    void* other = nullptr;
    void* pinned = nullptr;
    std::vector<std::uint8_t> ordinary;
};

std::vector<std::uint8_t> read(const void* memory) {
    std::vector<std::uint8_t> bytes(kSize);
    EXPECT_OK(orrMemcpy(bytes.data(), memory, kSize, orrMemcpyDefault));
    return bytes;
}

void copy_box(std::vector<std::uint8_t>& to, const std::vector<std::uint8_t>& from,
              const orrMemcpy3DParams& box, std::size_t dst, std::size_t src) {
    for (std::size_t plane = 0; plane < box.depth; ++plane) {
        for (std::size_t row = 0; row < box.height; ++row) {
            std::memcpy(to.data() + dst + (plane * box.dst_height + row) * box.dst_pitch,
                        from.data() + src + (plane * box.src_height + row) * box.src_pitch, box.width);
        }
    }
}

orrMemcpy3DParams box_of(std::size_t width, std::size_t height, std::size_t depth) {
    orrMemcpy3DParams box = ORR_INIT(orrMemcpy3DParams);
    box.width = width;
    box.height = height;
    box.depth = depth;
    box.dst_pitch = width + 24;
    box.src_pitch = width + 7;
    box.dst_height = height + 1;
    box.src_height = height + 2;
    box.kind = orrMemcpyDefault;
    return box;
}

// Rows that fit a half of the staging buffer many times, once, and not at all.
TEST(Shapes, BoxesInAllDirections) {
    FakeSystem system(1);
    Memories from, to;
    const auto data = random_bytes(kSize, 1);
    for (void* src : from.all())
        ASSERT_OK(orrMemcpy(src, data.data(), kSize, orrMemcpyDefault));
    const orrMemcpy3DParams boxes[] = {box_of(1000, 30, 40), box_of(1, 700, 3), box_of(400'000, 3, 2),
                                       box_of(600'000, 2, 2), box_of(64, 1, 1)};
    for (orrMemcpy3DParams box : boxes) {
        std::vector<std::uint8_t> want(kSize, kUntouched);
        copy_box(want, data, box, 5, 17);
        for (void* src : from.all()) {
            for (void* dst : to.all()) {
                ASSERT_OK(orrMemcpy(dst, std::vector<std::uint8_t>(kSize, kUntouched).data(), kSize,
                                    orrMemcpyDefault));
                box.dst = at(dst, 5);
                box.src = at(src, 17);
                ASSERT_OK(orrMemcpy3D(&box));
                ASSERT_EQ(read(dst), want) << box.width;
            }
        }
    }
}

TEST(Shapes, RowsInAStream) {
    FakeSystem system(1);
    Memories from, to;
    const auto data = random_bytes(kSize, 2);
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrMemcpy(from.pinned, data.data(), kSize, orrMemcpyDefault));
    ASSERT_OK(orrMemset(to.card, kUntouched, kSize));
    const std::uint64_t before = system.card().packets();
    ASSERT_OK(
        orrMemcpy2DAsync(to.card, 300, at(from.pinned, 3), 500, 123, 900, orrMemcpyHostToDevice, stream));
    ASSERT_OK(orrStreamSynchronize(stream));
    EXPECT_EQ(system.card().packets() - before, 1u) << "one packet, however many rows";
    std::vector<std::uint8_t> want(kSize, kUntouched);
    for (std::size_t row = 0; row < 900; ++row)
        std::memcpy(want.data() + row * 300, data.data() + 3 + row * 500, 123);
    ASSERT_EQ(read(to.card), want);
    std::vector<std::uint8_t> back(kSize, kUntouched);
    ASSERT_OK(orrMemcpy2D(back.data(), 200, to.card, 300, 123, 900, orrMemcpyDeviceToHost));
    for (std::size_t row = 0; row < 900; ++row) {
        ASSERT_EQ(std::memcmp(back.data() + row * 200, data.data() + 3 + row * 500, 123), 0);
        ASSERT_EQ(back[row * 200 + 123], kUntouched);
    }
    ASSERT_OK(orrStreamDestroy(stream));
}

TEST(Shapes, PitchedMemory) {
    FakeSystem system(1);
    void* memory = nullptr;
    std::size_t pitch = 0;
    ASSERT_OK(orrMallocPitch(&memory, &pitch, 1000, 50));
    EXPECT_EQ(pitch, 1024u);
    ASSERT_OK(orrMemset2D(memory, pitch, 7, 1000, 50));
    EXPECT_FAIL(orrMemset2D(memory, pitch, 7, 1000, 51), orrErrorInvalidValue, "destination");
    EXPECT_FAIL(orrMallocPitch(nullptr, &pitch, 1, 1), orrErrorInvalidValue, "ptr");
    EXPECT_FAIL(orrMallocPitch(&memory, nullptr, 1, 1), orrErrorInvalidValue, "pitch");
    EXPECT_FAIL(orrMallocPitch(&memory, &pitch, 0, 1), orrErrorInvalidValue, "0 bytes");
    EXPECT_FAIL(orrMallocPitch(&memory, &pitch, 1, 0), orrErrorInvalidValue, "0 bytes");
    EXPECT_EQ(orrMallocPitch(&memory, &pitch, ~std::size_t{0}, 1), orrErrorOutOfMemory);
    EXPECT_EQ(orrMallocPitch(&memory, &pitch, 1 << 20, ~std::size_t{0} >> 19), orrErrorOutOfMemory);
    ASSERT_OK(orrFree(memory));
}

TEST(Shapes, ValuesOfManySizes) {
    FakeSystem system(1);
    Memories memory;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    for (void* dst : {memory.card, memory.pinned}) {
        ASSERT_OK(orrMemset(dst, kUntouched, kSize));
        std::vector<std::uint8_t> want(kSize, kUntouched);
        const auto expect = [&](std::size_t from, std::size_t count, auto value) {
            for (std::size_t i = 0; i < count; ++i)
                std::memcpy(want.data() + from + i * sizeof value, &value, sizeof value);
        };
        ASSERT_OK(orrMemsetD16(at(dst, 2), 0x1234, 1001));
        expect(2, 1001, std::uint16_t{0x1234});
        ASSERT_OK(orrMemsetD16(at(dst, 4096), 0x89ab, 1000));
        expect(4096, 1000, std::uint16_t{0x89ab});
        ASSERT_OK(orrMemsetD32Async(at(dst, 8192), 0xdeadbeef, 1000, stream));
        expect(8192, 1000, std::uint32_t{0xdeadbeef});
        ASSERT_OK(orrMemsetD64Async(at(dst, 16384), 0x0123456789abcdef, 1000, stream));
        expect(16384, 1000, std::uint64_t{0x0123456789abcdef});
        ASSERT_OK(orrMemsetD16Async(at(dst, 32768), 0x5555, 0, stream));
        ASSERT_OK(orrMemset2DAsync(at(dst, 65536), 1000, 0x177, 333, 100, stream));
        for (std::size_t row = 0; row < 100; ++row)
            expect(65536 + row * 1000, 333, std::uint8_t{0x77});
        ASSERT_OK(orrStreamSynchronize(stream));
        ASSERT_OK(orrMemsetD32(at(dst, 1 << 20), 1, 5));
        expect(1 << 20, 5, std::uint32_t{1});
        ASSERT_OK(orrMemsetD64(at(dst, 2 << 20), 2, 5));
        expect(2 << 20, 5, std::uint64_t{2});
        ASSERT_EQ(read(dst), want);
    }
    ASSERT_OK(orrStreamDestroy(stream));
}

TEST(Shapes, ManyCopiesAtOnce) {
    FakeSystem system(1);
    Memories from, to;
    const auto data = random_bytes(kSize, 3);
    for (void* src : from.all())
        ASSERT_OK(orrMemcpy(src, data.data(), kSize, orrMemcpyDefault));
    ASSERT_OK(orrMemset(to.card, kUntouched, kSize));
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    std::vector<void*> dsts;
    std::vector<const void*> srcs;
    std::vector<std::size_t> sizes;
    std::vector<std::uint8_t> want(kSize, kUntouched);
    const auto add = [&](void* src, std::size_t offset, std::size_t bytes) {
        const std::size_t slot = dsts.size() * 1024;
        dsts.push_back(at(to.card, slot));
        srcs.push_back(at(src, offset));
        sizes.push_back(bytes);
        std::memcpy(want.data() + slot, data.data() + offset, bytes);
    };
    for (std::size_t i = 0; i < 300; ++i)
        add(i % 2 == 0 ? from.card : from.pinned, i * 4001, i % 7 == 0 ? 0 : i * 3);
    std::uint64_t before = system.card().packets();
    ASSERT_OK(orrMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), dsts.size(), 0, stream));
    ASSERT_OK(orrStreamSynchronize(stream));
    EXPECT_EQ(system.card().packets() - before, 3u) << "lists of up to 128";
    ASSERT_EQ(read(to.card), want);
    add(from.ordinary.data(), 77, 900);
    ASSERT_OK(orrMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), dsts.size(), 0, stream));
    ASSERT_OK(orrMemcpyBatchAsync(nullptr, nullptr, nullptr, 0, 0, stream));
    ASSERT_OK(orrStreamSynchronize(stream));
    ASSERT_EQ(read(to.card), want);
    // One that is wrong: none is begun.
    before = system.card().packets();
    sizes[200] = kSize;
    EXPECT_FAIL(orrMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), dsts.size(), 0, stream),
                orrErrorInvalidValue, "copy 200 of 301");
    EXPECT_FAIL(orrMemcpyBatchAsync(nullptr, srcs.data(), sizes.data(), 1, 0, stream), orrErrorInvalidValue,
                "dsts");
    EXPECT_FAIL(orrMemcpyBatchAsync(dsts.data(), nullptr, sizes.data(), 1, 0, stream), orrErrorInvalidValue,
                "srcs");
    EXPECT_FAIL(orrMemcpyBatchAsync(dsts.data(), srcs.data(), nullptr, 1, 0, stream), orrErrorInvalidValue,
                "bytes");
    EXPECT_FAIL(orrMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), 1, 2, stream),
                orrErrorInvalidValue, "flags 0x2: give 0");
    EXPECT_OK(orrStreamSynchronize(stream));
    EXPECT_EQ(system.card().packets(), before);
    ASSERT_OK(orrStreamDestroy(stream));
}

// The caller's numbers, though a batch is cut into lists, and empty copies are in none.
TEST(Shapes, ABatchThatFailsTellsWhichOfTheCallersCopies) {
    FakeSystem system(1);
    struct Case {
        std::size_t count, empty, bad;
        const char* text;
    };
    for (const Case& c : {Case{200, 0, 150, "a copy (copy 150 of 200, counted from 0) accessed"},
                          Case{40, 10, 20, "a copy (copy 20 of 40, counted from 0) accessed"},
                          Case{40, 0, 0, "a copy (copy 0 of 40, counted from 0) accessed"}}) {
        Memories from, to;
        void* gone = nullptr;
        ASSERT_OK(orrMallocHost(&gone, 4096, 0));
        system.card().hide(gone);
        std::vector<void*> dsts(c.count, to.card);
        std::vector<const void*> srcs(c.count, from.pinned);
        std::vector<std::size_t> sizes(c.count, 64);
        std::fill_n(sizes.begin(), c.empty, 0);
        srcs[c.bad] = gone;
        orrStream_t stream = nullptr;
        ASSERT_OK(orrStreamCreate(&stream, 0));
        ASSERT_OK(orrMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), c.count, 0, stream));
        EXPECT_FAIL(orrStreamSynchronize(stream), orrErrorIllegalAddress, c.text);
        ASSERT_OK(orrStreamDestroy(stream));
        ASSERT_OK(orrFreeHost(gone));
    }
}

TEST(Shapes, Reductions) {
    FakeSystem system(1);
    Memories memory;
    constexpr std::size_t kCount = 10'000;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    std::vector<float> a(kCount), b(kCount), back(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
        a[i] = static_cast<float>(i) * 0.5f;
        b[i] = 3000.0f - static_cast<float>(i);
    }
    const std::size_t bytes = kCount * sizeof(float);
    ASSERT_OK(orrMemcpy(memory.card, a.data(), bytes, orrMemcpyDefault));
    ASSERT_OK(orrMemcpy(memory.other, b.data(), bytes, orrMemcpyDefault));
    std::memcpy(memory.pinned, b.data(), bytes);
    ASSERT_OK(orrMemcpyReduce(memory.card, memory.other, kCount, orrFloat32, orrReduceSum, 0));
    ASSERT_OK(orrMemcpyReduceAsync(memory.pinned, memory.card, kCount, orrFloat32, orrReduceMax, 0, stream));
    ASSERT_OK(orrMemcpyReduceAsync(memory.card, memory.card, kCount, orrFloat32, orrReduceSum, 0, stream));
    ASSERT_OK(orrMemcpyReduceAsync(memory.card, memory.other, 0, orrFloat32, orrReduceSum, 0, stream));
    ASSERT_OK(orrStreamSynchronize(stream));
    ASSERT_OK(orrMemcpy(back.data(), memory.card, bytes, orrMemcpyDefault));
    for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(back[i], 2 * (a[i] + b[i])) << i;
        ASSERT_EQ(static_cast<float*>(memory.pinned)[i], std::max(b[i], a[i] + b[i])) << i;
    }
    const std::uint64_t before = system.card().packets();
    const auto reduce = [&](void* dst, const void* src, std::size_t count, int type, int op) {
        const orrError_t now =
            orrMemcpyReduce(dst, src, count, static_cast<orrDataType>(type), static_cast<orrReduceOp>(op), 0);
        EXPECT_EQ(now, orrMemcpyReduceAsync(dst, src, count, static_cast<orrDataType>(type),
                                            static_cast<orrReduceOp>(op), 0, stream));
        return now;
    };
    void* const card = memory.card;
    EXPECT_FAIL(reduce(card, memory.other, 1, 0, 1), orrErrorInvalidValue, "orrDataType");
    EXPECT_FAIL(reduce(card, memory.other, 1, 11, 1), orrErrorInvalidValue, "orrDataType");
    EXPECT_FAIL(reduce(card, memory.other, 1, 9, 0), orrErrorInvalidValue, "orrReduceOp");
    EXPECT_FAIL(reduce(card, memory.other, 1, 9, 5), orrErrorInvalidValue, "orrReduceOp");
    EXPECT_FAIL(reduce(nullptr, memory.other, 1, 9, 1), orrErrorInvalidValue, "null");
    EXPECT_FAIL(reduce(card, nullptr, 1, 9, 1), orrErrorInvalidValue, "null");
    EXPECT_FAIL(reduce(at(card, 2), memory.other, 1, 9, 1), orrErrorInvalidValue, "multiple");
    EXPECT_FAIL(reduce(card, at(memory.other, 1), 1, 7, 1), orrErrorInvalidValue, "multiple");
    EXPECT_FAIL(reduce(card, at(card, 64), 17, 9, 1), orrErrorInvalidValue, "overlap");
    EXPECT_FAIL(reduce(at(card, 64), card, 17, 9, 1), orrErrorInvalidValue, "overlap");
    EXPECT_FAIL(reduce(card, memory.ordinary.data(), 1, 9, 1), orrErrorInvalidValue, "orrMallocHost");
    EXPECT_FAIL(reduce(memory.ordinary.data(), card, 1, 9, 1), orrErrorInvalidValue, "orrMallocHost");
    EXPECT_FAIL(reduce(card, memory.other, kSize, 9, 1), orrErrorInvalidValue, "destination");
    EXPECT_FAIL(reduce(card, memory.other, ~std::size_t{0}, 9, 1), orrErrorInvalidValue, "more than");
    EXPECT_FAIL(reduce(card, memory.other, ~std::size_t{0} / 4 + 2, 9, 1), orrErrorInvalidValue, "more than");
    EXPECT_FAIL(orrMemcpyReduce(card, memory.other, 1, orrInt8, orrReduceSum, 1), orrErrorInvalidValue,
                "flags 0x1: give 0");
    EXPECT_FAIL(orrMemcpyReduceAsync(card, memory.other, 1, orrInt8, orrReduceSum, 1, stream),
                orrErrorInvalidValue, "flags 0x1: give 0");
    EXPECT_EQ(system.card().packets(), before);
    EXPECT_OK(orrStreamSynchronize(stream));
    EXPECT_OK(reduce(card, at(card, 64), 16, 9, 1)) << "side by side";
    ASSERT_OK(orrStreamDestroy(stream));
}

TEST(Shapes, WrongRowsAreRefused) {
    FakeSystem system(1);
    Memories memory;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    void* freed = nullptr;
    ASSERT_OK(orrMalloc(&freed, kSize));
    ASSERT_OK(orrFree(freed));
    const std::uint64_t before = system.card().packets();
    const auto expect = [&](auto change, const char* text) {
        orrMemcpy3DParams box = box_of(100, 10, 10);
        box.dst = memory.card;
        box.src = memory.pinned;
        change(box);
        EXPECT_FAIL(orrMemcpy3D(&box), orrErrorInvalidValue, text);
        EXPECT_FAIL(orrMemcpy3DAsync(&box, stream), orrErrorInvalidValue, text);
    };
    constexpr std::size_t kHuge = ~std::size_t{0};
    expect([](auto& box) { box.dst = nullptr; }, "destination is null");
    expect([](auto& box) { box.src = nullptr; }, "source is null");
    expect([&](auto& box) { box.dst = freed; }, "freed");
    expect([](auto& box) { box.dst_pitch = 99; }, "destination's pitch is 99");
    expect([](auto& box) { box.src_pitch = 0; }, "source's pitch is 0");
    expect([](auto& box) { box.dst_height = 9; }, "destination's planes");
    expect([](auto& box) { box.src_height = kHuge; }, "source's planes");
    expect([](auto& box) { box.depth = 10'000; }, "destination");
    expect([](auto& box) { box.depth = 0; }, "depth is 0");
    expect([](auto& box) { box.height = kHuge; }, "more than a copy can move");
    expect([](auto& box) { box.width = box.dst_pitch = box.src_pitch = kHuge; }, "more than");
    expect([](auto& box) { box.depth = box.height = 1ull << 32; }, "more than");
    expect([](auto& box) { box.dst_pitch = kHuge; }, "wraps around");
    expect([](auto& box) { box.src_pitch = kHuge / 8; }, "wraps around");
    expect([](auto& box) { box.kind = orrMemcpyDeviceToHost; }, "kind");
    expect([](auto& box) { box.kind = static_cast<orrMemcpyKind>(7); }, "orrMemcpyKind");
    expect([](auto& box) { box.reserved = 1; }, "reserved");
    expect([](auto& box) { box.size = 7; }, "ORR_INIT");
    EXPECT_FAIL(orrMemcpy3D(nullptr), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrMemcpy2D(memory.card, 10, memory.pinned, 100, 100, 10, orrMemcpyDefault),
                orrErrorInvalidValue, "pitch is 10");
    EXPECT_FAIL(orrMemset2D(memory.card, 99, 1, 100, 2), orrErrorInvalidValue, "pitch is 99");
    EXPECT_FAIL(orrMemset2D(memory.ordinary.data(), 100, 1, 100, 2), orrErrorInvalidValue, "destination");
    EXPECT_FAIL(orrMemset2D(memory.card, 1 << 20, 1, 100, 5), orrErrorInvalidValue, "destination");
    EXPECT_FAIL(orrMemset2D(nullptr, 100, 1, 100, 2), orrErrorInvalidValue, "destination");
    EXPECT_FAIL(orrMemsetD16(at(memory.card, 1), 1, 1), orrErrorInvalidValue, "multiple");
    EXPECT_FAIL(orrMemsetD32(at(memory.card, 2), 1, 1), orrErrorInvalidValue, "multiple");
    EXPECT_FAIL(orrMemsetD64(at(memory.card, 4), 1, 1), orrErrorInvalidValue, "multiple");
    EXPECT_FAIL(orrMemsetD64(memory.card, 1, kHuge / 4), orrErrorInvalidValue, "more than");
    EXPECT_FAIL(orrMemsetD64Async(memory.card, 1, 1, reinterpret_cast<orrStream_t>(0x77)),
                orrErrorInvalidHandle, "stream");
    EXPECT_EQ(system.card().packets(), before);
    // Nothing to do is nothing wrong, whatever the pitches say.
    EXPECT_OK(orrMemcpy2D(memory.card, 0, memory.pinned, 0, 100, 0, orrMemcpyDefault));
    EXPECT_OK(orrMemcpy2D(memory.card, 0, memory.pinned, 0, 0, kHuge, orrMemcpyDefault));
    EXPECT_OK(orrMemcpy2D(memory.card, 0, memory.pinned, 0, 100, 1, orrMemcpyDefault))
        << "one row has no pitch";
    EXPECT_OK(orrStreamSynchronize(stream));
    ASSERT_OK(orrStreamDestroy(stream));
}

TEST(Shapes, OverALink) {
    FakeSystem system(2);
    void *here = nullptr, *there = nullptr;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrMalloc(&here, kSize));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMalloc(&there, kSize));
    ASSERT_OK(orrSetDevice(0));
    const auto data = random_bytes(kSize, 4);
    ASSERT_OK(orrMemcpy(here, data.data(), kSize, orrMemcpyDefault));
    ASSERT_OK(orrMemset(there, kUntouched, kSize));
    orrMemcpy3DParams box = box_of(1000, 30, 40);
    box.dst = there;
    box.src = here;
    EXPECT_EQ(orrMemcpy3DAsync(&box, stream), orrErrorPeerAccess);
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    ASSERT_OK(orrMemcpy3DAsync(&box, stream));
    void* const dsts[] = {at(there, 3 << 20), at(there, (3 << 20) + 5000)};
    const void* const srcs[] = {here, at(here, 100)};
    const std::size_t sizes[] = {4000, 5000};
    ASSERT_OK(orrMemcpyBatchAsync(dsts, srcs, sizes, 2, 0, stream));
    ASSERT_OK(orrStreamSynchronize(stream));
    std::vector<std::uint8_t> want(kSize, kUntouched);
    copy_box(want, data, box, 0, 0);
    std::memcpy(want.data() + (3 << 20), data.data(), 4000);
    std::memcpy(want.data() + (3 << 20) + 5000, data.data() + 100, 5000);
    ASSERT_EQ(read(there), want);
    // A reduction reads both sides: neither may be another card's.
    EXPECT_FAIL(orrMemcpyReduceAsync(there, here, 8, orrFloat32, orrReduceSum, 0, stream), orrErrorPeerAccess,
                "destination");
    EXPECT_FAIL(orrMemcpyReduceAsync(here, there, 8, orrFloat32, orrReduceSum, 0, stream), orrErrorPeerAccess,
                "source");
    EXPECT_EQ(orrMemcpyReduce(here, there, 8, orrFloat32, orrReduceSum, 0), orrErrorPeerAccess);
    EXPECT_OK(orrStreamSynchronize(stream));
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrFree(here));
    ASSERT_OK(orrFree(there));
}

// The same work given to a stream that is captured, and as nodes.
TEST(Shapes, InGraphs) {
    FakeSystem system(1);
    Memories memory;
    const auto data = random_bytes(kSize, 5);
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    orrMemcpy3DParams box = box_of(64, 5, 6);
    box.dst = memory.card;
    box.src = memory.pinned;
    constexpr std::size_t kWords = 1 << 17, kBatch = 2 << 20, kRows = 3 << 20;
    void* const dsts[] = {at(memory.card, kBatch), at(memory.card, kBatch + 4096)};
    const void* const srcs[] = {memory.pinned, at(memory.pinned, 17)};
    const std::size_t sizes[] = {1000, 2000};
    std::vector<std::uint8_t> want(kSize, kUntouched);
    copy_box(want, data, box, 0, 0);
    for (std::size_t i = 0; i < 100; ++i) {
        const std::uint64_t word = 2 * 0x1122334455667788;  // added to itself
        std::memcpy(want.data() + kWords + i * 8, &word, 8);
        if (i < 4) std::memset(want.data() + kRows + i * 100, 9, 32);
    }

    const auto check = [&](orrGraph_t graph) {
        orrGraphExec_t exec = nullptr;
        ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
        for (int launch = 0; launch < 2; ++launch) {
            ASSERT_OK(orrMemset(memory.card, kUntouched, kSize));
            ASSERT_OK(orrGraphLaunch(exec, stream));
            ASSERT_OK(orrStreamSynchronize(stream));
            ASSERT_EQ(read(memory.card), want);
        }
        ASSERT_OK(orrGraphExecDestroy(exec));
        ASSERT_OK(orrGraphDestroy(graph));
    };
    std::memcpy(memory.pinned, data.data(), kSize);

    orrGraph_t made = nullptr;
    orrGraphNode_t fill = nullptr;
    ASSERT_OK(orrGraphCreate(&made, 0));
    ASSERT_OK(orrGraphAddMemcpy3DNode(nullptr, made, nullptr, 0, &box));
    orrMemsetNodeParams words = ORR_INIT(orrMemsetNodeParams);
    words.dst = at(memory.card, kWords);
    words.value = 0x1122334455667788;
    words.value_bytes = 8;
    words.width = 800;
    words.height = 1;
    ASSERT_OK(orrGraphAddMemset2DNode(&fill, made, nullptr, 0, &words));
    ASSERT_OK(orrGraphAddReduceNode(nullptr, made, &fill, 1, words.dst, words.dst, 100, orrUint64,
                                    orrReduceSum, 0));
    orrMemsetNodeParams rows = ORR_INIT(orrMemsetNodeParams);
    rows.dst = at(memory.card, kRows);
    rows.value = 9;
    rows.value_bytes = 1;
    rows.pitch = 100;
    rows.width = 32;
    rows.height = 4;
    ASSERT_OK(orrGraphAddMemset2DNode(nullptr, made, nullptr, 0, &rows));
    rows.value_bytes = 3;
    EXPECT_FAIL(orrGraphAddMemset2DNode(nullptr, made, nullptr, 0, &rows), orrErrorInvalidValue,
                "value_bytes is 3");
    rows.value_bytes = 8;
    rows.width = 33;
    EXPECT_FAIL(orrGraphAddMemset2DNode(nullptr, made, nullptr, 0, &rows), orrErrorInvalidValue, "multiple");
    rows.width = 32;
    EXPECT_FAIL(orrGraphAddMemset2DNode(nullptr, made, nullptr, 0, &rows), orrErrorInvalidValue,
                "pitch of 100");
    EXPECT_FAIL(orrGraphAddMemcpy3DNode(nullptr, made, nullptr, 0, nullptr), orrErrorInvalidValue, "null");
    EXPECT_FAIL(
        orrGraphAddReduceNode(nullptr, made, nullptr, 0, words.dst, nullptr, 1, orrInt8, orrReduceMin, 0),
        orrErrorInvalidValue, "null");
    check(made);

    std::memcpy(want.data() + kBatch, data.data(), 1000);
    std::memcpy(want.data() + kBatch + 4096, data.data() + 17, 2000);
    const auto record = [&] {
        ASSERT_OK(orrStreamBeginCapture(stream, 0));
        ASSERT_OK(orrMemcpy3DAsync(&box, stream));
        ASSERT_OK(orrMemsetD64Async(words.dst, words.value, 100, stream));
        ASSERT_OK(orrMemcpyReduceAsync(words.dst, words.dst, 100, orrUint64, orrReduceSum, 0, stream));
        ASSERT_OK(orrMemset2DAsync(rows.dst, 100, 9, 32, 4, stream));
        ASSERT_OK(orrMemcpyBatchAsync(dsts, srcs, sizes, 2, 0, stream));
    };
    orrGraph_t captured = nullptr;
    record();
    ASSERT_OK(orrStreamEndCapture(&captured, stream));
    check(captured);

    // A wrong call leaves no graph with a hole in it.
    record();
    EXPECT_EQ(orrMemsetD64Async(at(words.dst, 1), 1, 1, stream), orrErrorInvalidValue);
    EXPECT_FAIL(orrStreamEndCapture(&captured, stream), orrErrorInvalidValue, "multiple");
    record();
    box.src = memory.ordinary.data();
    EXPECT_EQ(orrMemcpy3DAsync(&box, stream), orrErrorStreamCapture);
    EXPECT_EQ(orrStreamEndCapture(&captured, stream), orrErrorStreamCapture);
    ASSERT_OK(orrStreamDestroy(stream));
}

}  // namespace
}  // namespace orrery::umd::test
