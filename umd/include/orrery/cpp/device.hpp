/* SPDX-License-Identifier: MIT */
/** Devices. Included by orrery.hpp. */
#ifndef ORRERY_CPP_DEVICE_HPP
#define ORRERY_CPP_DEVICE_HPP

#include <orrery/cpp/object.hpp>

namespace orrery {

inline int device_count() {
    int count = 0;
    check(orrGetDeviceCount(&count));
    return count;
}
inline int current_device() {
    int device = 0;
    check(orrGetDevice(&device));
    return device;
}
inline orrDeviceProp device_properties(int device) {
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    check(orrGetDeviceProperties(&prop, device));
    return prop;
}

/** Makes a device current, and the one before again at its end. */
class DeviceGuard {
  public:
    explicit DeviceGuard(int device) : before_(current_device()) { check(orrSetDevice(device)); }
    ~DeviceGuard() { (void)orrSetDevice(before_); }
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;

  private:
    int before_;
};

/** Lets `device` write to memory of `peer`. */
inline void enable_peer_access(int device, int peer) {
    const DeviceGuard guard(device);
    check(orrDeviceEnablePeerAccess(peer, 0));
}

/** Which way copies from `device` to `peer` take, and why. */
inline orrPeerWay peer_way(int device, int peer) {
    orrPeerWay way = ORR_INIT(orrPeerWay);
    check(orrDeviceGetPeerWay(&way, device, peer));
    return way;
}

}  // namespace orrery

#endif /* ORRERY_CPP_DEVICE_HPP */
