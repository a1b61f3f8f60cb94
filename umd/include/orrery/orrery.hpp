/* SPDX-License-Identifier: MIT */
/**
 * The C API with owners: objects that clean up after themselves, and failures as exceptions that carry the
 * library's text. Header only, C++17; threads and lifetimes as in orrery.h.
 *
 *   orrery::Stream stream;                              // made on the current device
 *   orrery::Stream later(orrery::empty);                // nothing yet: later = orrery::Stream();
 *   auto null = orrery::Stream::null();                 // the null stream of the current device
 *   auto theirs = orrery::Stream::borrow(handle);       // used, and left alone
 *   auto mine = orrery::Stream::adopt(handle);          // destroyed at the end
 *   stream.destroy();                                   // as the destructor does it, and throws if it fails
 */
#ifndef ORRERY_ORRERY_HPP
#define ORRERY_ORRERY_HPP

#include <orrery/cpp/device.hpp>
#include <orrery/cpp/graph.hpp>
#include <orrery/cpp/kernel.hpp>
#include <orrery/cpp/memory.hpp>
#include <orrery/cpp/object.hpp>
#include <orrery/cpp/stream.hpp>
#include <orrery/cpp/task.hpp>

#endif /* ORRERY_ORRERY_HPP */
