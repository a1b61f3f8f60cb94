// A thread's own object, also where its thread has ended: handlers of exit() run when the main thread's
// objects are gone, and may call the library, as tools do.
#pragma once

namespace orrery::umd {

// One T a thread, made at the first call. Null: the thread has ended, and its T with it.
template <typename T>
T* thread_object() {
    thread_local bool gone = false;  // nothing destroys it
    struct Held {
        T object{};
        Held() = default;
        ~Held() { gone = true; }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;
    };
    if (gone) return nullptr;
    thread_local Held held;
    return &held.object;
}

}  // namespace orrery::umd
