// The C++ header: who owns what, and when it goes.
#include <orrery/orrery.hpp>

#include <fstream>
#include <iterator>

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
    const Module module(image.data(), image.size());
    EXPECT_NE(module.function("add_value"), nullptr);
    EXPECT_THROW((void)module.function("none"), ApiError);
}

}  // namespace
}  // namespace orrery::umd::test
