/* SPDX-License-Identifier: MIT */
/** Memory, copies and fills. Included by orrery.hpp. */
#ifndef ORRERY_CPP_MEMORY_HPP
#define ORRERY_CPP_MEMORY_HPP

#include <orrery/cpp/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery {

/** Returns when it is done. */
inline void copy(void* dst, const void* src, std::size_t bytes) {
    check(orrMemcpy(dst, src, bytes, orrMemcpyDefault));
}
/** In the stream's order; see orrMemcpyAsync. */
inline void copy(void* dst, const void* src, std::size_t bytes, const Stream& stream) {
    check(orrMemcpyAsync(dst, src, bytes, orrMemcpyDefault, stream.handle()));
}
/** Rows; see orrMemcpy2D. */
inline void copy_2d(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                    std::size_t width, std::size_t height) {
    check(orrMemcpy2D(dst, dst_pitch, src, src_pitch, width, height, orrMemcpyDefault));
}
inline void copy_2d(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                    std::size_t width, std::size_t height, const Stream& stream) {
    check(orrMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, orrMemcpyDefault, stream.handle()));
}
/** A box of rows and planes; see orrMemcpy3D. */
inline void copy_3d(const orrMemcpy3DParams& params) {
    check(orrMemcpy3D(&params));
}
inline void copy_3d(const orrMemcpy3DParams& params, const Stream& stream) {
    check(orrMemcpy3DAsync(&params, stream.handle()));
}
/** A box in up to five dimensions; see orrMemcpyND. */
inline void copy_nd(const orrMemcpyNDParams& params) {
    check(orrMemcpyND(&params));
}
inline void copy_nd(const orrMemcpyNDParams& params, const Stream& stream) {
    check(orrMemcpyNDAsync(&params, stream.handle()));
}
struct CopyPart {
    void* dst;
    const void* src;
    std::size_t bytes;
};
/** All of them as one piece of work, in any order; see orrMemcpyBatchAsync. */
inline void copy_batch(const std::vector<CopyPart>& parts, const Stream& stream) {
    std::vector<void*> dsts;
    std::vector<const void*> srcs;
    std::vector<std::size_t> bytes;
    for (const CopyPart& part : parts) {
        dsts.push_back(part.dst);
        srcs.push_back(part.src);
        bytes.push_back(part.bytes);
    }
    check(orrMemcpyBatchAsync(dsts.data(), srcs.data(), bytes.data(), parts.size(), 0, stream.handle()));
}
/** dst[i] = dst[i] op src[i]; see orrMemcpyReduce. */
inline void reduce(void* dst, const void* src, std::size_t count, orrDataType type, orrReduceOp op) {
    check(orrMemcpyReduce(dst, src, count, type, op, 0));
}
inline void reduce(void* dst, const void* src, std::size_t count, orrDataType type, orrReduceOp op,
                   const Stream& stream) {
    check(orrMemcpyReduceAsync(dst, src, count, type, op, 0, stream.handle()));
}
/** Returns when it is done. */
inline void fill(void* dst, int value, std::size_t bytes) {
    check(orrMemset(dst, value, bytes));
}
/** In the stream's order. */
inline void fill(void* dst, int value, std::size_t bytes, const Stream& stream) {
    check(orrMemsetAsync(dst, value, bytes, stream.handle()));
}

/** `height` rows of `width` bytes; see orrMemset2D. */
inline void fill_2d(void* dst, std::size_t pitch, int value, std::size_t width, std::size_t height) {
    check(orrMemset2D(dst, pitch, value, width, height));
}
inline void fill_2d(void* dst, std::size_t pitch, int value, std::size_t width, std::size_t height,
                    const Stream& stream) {
    check(orrMemset2DAsync(dst, pitch, value, width, height, stream.handle()));
}
/** `count` times a value of 2, 4 or 8 bytes, for example a float; see orrMemsetD16. In the stream's order. */
template <typename T>
void fill_values(T* dst, T value, std::size_t count, const Stream& stream) {
    static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8));
    if constexpr (sizeof(T) == 2) {
        std::uint16_t bits;
        std::memcpy(&bits, &value, sizeof(T));
        check(orrMemsetD16Async(dst, bits, count, stream.handle()));
    } else if constexpr (sizeof(T) == 4) {
        std::uint32_t bits;
        std::memcpy(&bits, &value, sizeof(T));
        check(orrMemsetD32Async(dst, bits, count, stream.handle()));
    } else {
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof(T));
        check(orrMemsetD64Async(dst, bits, count, stream.handle()));
    }
}

class DeviceMemory : public Object<DeviceMemory, void*, orrFree> {
  public:
    explicit DeviceMemory(std::size_t bytes) : Object(make(bytes)) {}
    explicit DeviceMemory(Empty e) : Object(e) {}

  private:
    static void* make(std::size_t bytes) {
        void* pointer = nullptr;
        check(orrMalloc(&pointer, bytes));
        return pointer;
    }
};

/** `height` rows of `width` bytes on the current device, pitch() bytes apart; see orrMallocPitch. */
class PitchedMemory : public Object<PitchedMemory, void*, orrFree> {
  public:
    PitchedMemory(std::size_t width, std::size_t height) : Object(empty) {
        void* pointer = nullptr;
        check(orrMallocPitch(&pointer, &pitch_, width, height));
        *static_cast<Object*>(this) = adopt(pointer);
    }
    explicit PitchedMemory(Empty e) : Object(e) {}
    std::size_t pitch() const { return pitch_; }

  private:
    std::size_t pitch_ = 0;
};

class PinnedMemory : public Object<PinnedMemory, void*, orrFreeHost> {
  public:
    explicit PinnedMemory(std::size_t bytes) : Object(make(bytes)) {}
    explicit PinnedMemory(Empty e) : Object(e) {}

  private:
    static void* make(std::size_t bytes) {
        void* pointer = nullptr;
        check(orrMallocHost(&pointer, bytes, 0));
        return pointer;
    }
};

template <typename T, typename Memory>
class Array {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    explicit Array(std::size_t count) : memory_(count * sizeof(T)), count_(count) {}
    explicit Array(Empty e) : memory_(e) {}
    Array(Array&& other) noexcept
        : memory_(std::move(other.memory_)), count_(std::exchange(other.count_, 0)) {}
    Array& operator=(Array&& other) noexcept {
        memory_ = std::move(other.memory_);
        count_ = std::exchange(other.count_, 0);
        return *this;
    }
    T* data() const { return static_cast<T*>(memory_.get()); }
    std::size_t size() const { return count_; }
    std::size_t bytes() const { return count_ * sizeof(T); }
    /** Frees it and says so if that fails. */
    void destroy() {
        count_ = 0;
        memory_.destroy();
    }

  private:
    Memory memory_;
    std::size_t count_ = 0;
};

/** `count` objects of T in memory of the current device. */
template <typename T>
using DeviceArray = Array<T, DeviceMemory>;

/** `count` objects of T in pinned host memory, at the same address for the CPU and every device. */
template <typename T>
class PinnedArray : public Array<T, PinnedMemory> {
  public:
    using Array<T, PinnedMemory>::Array;
    T* begin() const { return this->data(); }
    T* end() const { return this->data() + this->size(); }
    T& operator[](std::size_t index) const { return this->data()[index]; }
};

}  // namespace orrery

#endif /* ORRERY_CPP_MEMORY_HPP */
