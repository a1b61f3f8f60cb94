/* SPDX-License-Identifier: MIT */
/** What owns handles, and failures as exceptions. Included by orrery.hpp. */
#ifndef ORRERY_CPP_OBJECT_HPP
#define ORRERY_CPP_OBJECT_HPP

#include <orrery/orrery.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace orrery {

/** what(): "orrErrorNoDevice: there is no Orrery card: ..." */
class ApiError : public std::runtime_error {
  public:
    explicit ApiError(orrError_t code)
        : std::runtime_error(std::string(orrGetErrorName(code)) + ": " + orrGetLastErrorText()),
          code_(code) {}
    /** Of this header: the library was not called. */
    ApiError(orrError_t code, const char* text)
        : std::runtime_error(std::string(orrGetErrorName(code)) + ": " + text), code_(code) {}
    orrError_t code() const { return code_; }

  private:
    orrError_t code_;
};

inline void check(orrError_t code) {
    if (code != orrSuccess) throw ApiError(code);
}

struct Empty {};
inline constexpr Empty empty{};

/** A handle and whether it is ours to destroy; movable, not copyable. */
template <typename Derived, typename Handle, orrError_t (*Destroy)(Handle)>
class Object {
  public:
    explicit Object(Empty) noexcept {}
    Object(Object&& other) noexcept
        : handle_(std::exchange(other.handle_, Handle{})), owned_(std::exchange(other.owned_, false)) {}
    /** What was held is destroyed first; a failure of that is dropped, as in the destructor. */
    Object& operator=(Object&& other) noexcept {
        if (this == &other) return *this;
        drop();
        handle_ = std::exchange(other.handle_, Handle{});
        owned_ = std::exchange(other.owned_, false);
        return *this;
    }
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    ~Object() { drop(); }

    /** The handle stays somebody else's. */
    static Derived borrow(Handle handle) { return hold(handle, false); }
    static Derived adopt(Handle handle) { return hold(handle, true); }

    Handle get() const { return handle_; }
    explicit operator bool() const { return handle_ != Handle{}; }
    /** Empty afterwards, also when it throws; of one that is borrowed nothing is destroyed. */
    void destroy() {
        const Handle handle = std::exchange(handle_, Handle{});
        if (std::exchange(owned_, false)) check(Destroy(handle));
    }
    /** Empty afterwards: the caller destroys it. */
    Handle release() {
        owned_ = false;
        return std::exchange(handle_, Handle{});
    }

  protected:
    explicit Object(Handle made) noexcept : handle_(made), owned_(true) {}

  private:
    static Derived hold(Handle handle, bool owned) {
        Derived object(empty);
        object.handle_ = handle;
        object.owned_ = owned;
        return object;
    }
    void drop() noexcept {
        if (owned_) (void)Destroy(handle_);
    }
    Handle handle_{};
    bool owned_ = false;
};

}  // namespace orrery

#endif /* ORRERY_CPP_OBJECT_HPP */
