// The C++ header: who owns what, and when it goes.
#include <orrery/orrery.hpp>

#include <atomic>
#include <fstream>
#include <iterator>
#include <span>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

bool lives(orrStream_t stream) {
    return orrStreamQuery(stream) == orrSuccess;
}

TEST(Owners, MovingReleasesWhatWasHeldBefore) {
    FakeSystem system;
    Stream first, second;
    const orrStream_t a = first.get(), b = second.get();
    first = std::move(second);
    EXPECT_FALSE(lives(a));
    EXPECT_TRUE(lives(b));
    EXPECT_EQ(first.get(), b);
    EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move)
    Stream& same = first;
    first = std::move(same);
    EXPECT_TRUE(lives(b));
    {
        const Stream third = std::move(first);
        EXPECT_EQ(third.get(), b);
    }
    EXPECT_FALSE(lives(b));
}

TEST(Owners, EmptyBorrowedAndReleased) {
    FakeSystem system;
    Stream later(empty);
    EXPECT_FALSE(later);
    later = Stream();
    const orrStream_t handle = later.get();
    EXPECT_TRUE(lives(handle));
    {
        const auto borrowed = Stream::borrow(handle);
        borrowed.synchronize();
        auto also = Stream::borrow(handle);
        also.destroy();
        EXPECT_FALSE(also);
    }
    EXPECT_TRUE(lives(handle));
    EXPECT_EQ(later.release(), handle);
    EXPECT_FALSE(later);
    EXPECT_TRUE(lives(handle));
    {
        const auto adopted = Stream::adopt(handle);
    }
    EXPECT_FALSE(lives(handle));
}

TEST(Owners, EmptyStreamsRefuseAndTheNullStreamIsAskedFor) {
    FakeSystem system;
    DeviceArray<int> array(8);
    Stream first;
    const Event event;
    Stream second = std::move(first);
    const auto refuses = [](const auto& call) {
        try {
            call();
        } catch (const ApiError& error) {
            return error.code() == orrErrorInvalidHandle;
        }
        return false;
    };
    const auto all_refuse = [&](const Stream& stream) {
        return refuses([&] { stream.synchronize(); }) && refuses([&] { (void)stream.done(); }) &&
               refuses([&] { stream.wait(event); }) && refuses([&] { event.record(stream); }) &&
               refuses([&] { fill(array.data(), 0, array.bytes(), stream); }) &&
               refuses([&] { Graph::begin_capture(stream); });
    };
    EXPECT_TRUE(all_refuse(first));  // NOLINT(bugprone-use-after-move)
    second.destroy();
    EXPECT_TRUE(all_refuse(second));
    EXPECT_TRUE(all_refuse(Stream(empty)));

    Stream null = Stream::null();
    fill(array.data(), 0, array.bytes(), null);
    event.record(null);
    null.synchronize();
    EXPECT_TRUE(event.done());
    const Stream moved = std::move(null);
    moved.synchronize();
    EXPECT_TRUE(all_refuse(null));  // NOLINT(bugprone-use-after-move)
    Stream released = Stream::null();
    EXPECT_EQ(released.release(), nullptr);
    EXPECT_TRUE(all_refuse(released));
}

TEST(Owners, DestroyingByHandTellsFailures) {
    FakeSystem system;
    auto stream = Stream::adopt(reinterpret_cast<orrStream_t>(0x1234));
    EXPECT_THROW(stream.destroy(), ApiError);
    EXPECT_FALSE(stream) << "it is not tried again";
    DeviceArray<int> array(8);
    array.destroy();
    EXPECT_EQ(array.size(), 0u);
    EXPECT_EQ(array.data(), nullptr);
}

TEST(Owners, GuardsPutTheDeviceBack) {
    FakeSystem system(3);
    EXPECT_EQ(device_count(), 3);
    {
        const DeviceGuard guard(1);
        EXPECT_EQ(current_device(), 1);
        EXPECT_THROW(DeviceGuard(7), ApiError);
        EXPECT_EQ(current_device(), 1);
        enable_peer_access(0, 1);
    }
    EXPECT_EQ(current_device(), 0);
}

TEST(Owners, CopiesSemaphoresAndModules) {
    FakeSystem system;
    const Stream stream;
    const PinnedArray<int> host(16), back(16);
    DeviceArray<int> card(16);
    for (std::size_t i = 0; i < host.size(); ++i)
        host[i] = static_cast<int>(i);
    copy(card.data(), host.data(), host.bytes());
    const Semaphore semaphore;
    copy(back.data(), card.data(), card.bytes(), stream);
    stream.signal(semaphore, 2);
    semaphore.wait(2);
    EXPECT_EQ(semaphore.value(), 2u);
    EXPECT_TRUE(std::equal(host.begin(), host.end(), back.begin()));
    EXPECT_FALSE(semaphore.wait_for(3, 1000));
    stream.wait(semaphore, 3);
    fill(card.data(), 0, card.bytes(), stream);
    const Event event;
    event.record(stream);
    EXPECT_FALSE(event.done());
    EXPECT_FALSE(stream.done());
    semaphore.signal(3);
    event.synchronize();
    EXPECT_TRUE(stream.done());

    std::ifstream file(TEST_KERNELS, std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    const Library library(std::as_bytes(std::span(image)));
    EXPECT_NE(library.function("add_value"), nullptr);
    EXPECT_THROW((void)library.function("none"), ApiError);
}

TEST(Owners, ShapesOfCopiesAndFills) {
    FakeSystem system;
    Stream stream;
    constexpr std::size_t kWidth = 40, kHeight = 5;
    PitchedMemory rows(kWidth, kHeight);
    ASSERT_GE(rows.pitch(), kWidth);
    PinnedArray<std::uint8_t> back(kWidth * kHeight);
    fill_2d(rows.get(), rows.pitch(), 3, kWidth, kHeight, stream);
    orrMemcpy3DParams box = ORR_INIT(orrMemcpy3DParams);
    box.dst = back.data();
    box.dst_pitch = kWidth;
    box.src = rows.get();
    box.src_pitch = rows.pitch();
    box.width = kWidth;
    box.height = kHeight;
    box.depth = 1;
    box.kind = orrMemcpyDefault;
    copy_3d(box, stream);
    stream.synchronize();
    EXPECT_THAT(std::vector(back.begin(), back.end()), ::testing::Each(3));
    PitchedMemory moved = std::move(rows);
    EXPECT_FALSE(rows);  // NOLINT(bugprone-use-after-move)
    EXPECT_GE(moved.pitch(), kWidth);

    DeviceArray<float> floats(100);
    DeviceArray<std::uint16_t> halves(100);
    DeviceArray<double> doubles(100);
    PinnedArray<float> one(1);
    PinnedArray<std::uint16_t> two(2);
    PinnedArray<double> three(1);
    fill_values(floats.data(), 1.5f, floats.size(), stream);
    fill_values(halves.data(), std::uint16_t{777}, halves.size(), stream);
    fill_values(doubles.data(), -2.25, doubles.size(), stream);
    copy_batch({{one.data(), floats.data() + 99, 4},
                {two.data(), halves.data() + 98, 4},
                {three.data(), doubles.data() + 99, 8}},
               stream);
    stream.synchronize();
    EXPECT_EQ(one[0], 1.5f);
    EXPECT_EQ(two[1], 777);
    EXPECT_EQ(three[0], -2.25);
}

TEST(Owners, CooperativeLaunches) {
    FakeSystem system;
    std::uint32_t groups = 0;
    system.card().on_dispatch = [&](FakeCard&, const FakeDispatch& dispatch) {
        if (dispatch.resident) groups = dispatch.grid[0];
        return FakeOutcome{};
    };
    const Module module(TEST_KERNELS);
    const orrFunction_t function = module.function("add_value");
    const Stream stream;
    const std::uint32_t most = max_active_groups(function, {1, 1, 1}, 0);
    launch_cooperative(function, {most, 1, 1}, {1, 1, 1}, 0, 0, stream);
    stream.synchronize();
    EXPECT_EQ(groups, most);
    EXPECT_THROW(launch_cooperative(function, {most + 1, 1, 1}, {1, 1, 1}, 0, 0, stream), ApiError);
}

TEST(Owners, LaunchesOverSeveralDevices) {
    FakeSystem system(2);
    std::atomic<int> started = 0;
    for (const std::size_t device : {0u, 1u}) {
        system.card(device).on_dispatch = [&](FakeCard&, const FakeDispatch&) {
            ++started;
            return FakeOutcome{};
        };
    }
    const Library library(TEST_KERNELS);
    const Stream first;
    const Stream second = [] {
        const DeviceGuard guard(1);
        return Stream();
    }();
    const int args = 0;
    const auto part = [&](const Stream& stream) {
        return launch_params(library.function("add_value"), {2, 1, 1}, {1, 1, 1}, args, 0, stream);
    };
    launch_gang({part(first), part(second)});
    first.synchronize();
    second.synchronize();
    EXPECT_EQ(started, 2);
    EXPECT_THROW(launch_gang({}), ApiError);
    EXPECT_THROW(launch_gang({part(first), part(first)}), ApiError);
    EXPECT_THROW((void)part(Stream(empty)), ApiError);
    FakeGangs::all().clear();
}

TEST(Owners, VariablesAndAttributes) {
    FakeSystem system;
    const Library library(TEST_KERNELS);
    const Module module(TEST_KERNELS);
    const Global found = library.global("shared_counter");
    ASSERT_EQ(found.bytes, sizeof(std::uint64_t));
    EXPECT_NE(module.global("shared_counter").address, found.address) << "each has its own";
    std::uint64_t value = 0;
    copy(&value, found.as<std::uint64_t>(), sizeof(value));
    EXPECT_EQ(value, 40u);
    EXPECT_THROW((void)found.as<char[3]>(), ApiError);
    EXPECT_THROW((void)library.global("nothing"), ApiError);
    EXPECT_THROW((void)module.global("nothing"), ApiError);
    const orrFunction_t function = library.function("use_more_stack");
    EXPECT_EQ(attributes_of(function).item_stack_bytes, 16384u);
    set_item_stack(function, 32768);
    EXPECT_EQ(attributes_of(function).item_stack_bytes, 32768u);
    EXPECT_THROW(set_item_stack(function, 0), ApiError);
    EXPECT_THROW((void)attributes_of(nullptr), ApiError);
}

}  // namespace
}  // namespace orrery::umd::test
