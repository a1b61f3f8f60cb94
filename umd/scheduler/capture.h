// Capture: calls on a stream become nodes of a graph. A capture belongs to the stream it began on; other
// streams join it by waiting for an event that was recorded in it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "umd/runtime/transfer.h"
#include "umd/scheduler/graph.h"

namespace orrery::umd {

struct Capture {
    std::mutex mutex;
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    const Stream* origin = nullptr;
    std::vector<std::shared_ptr<Stream>> joined;  // other streams
    Fate fate;
    bool ended = false;
};

// Of one stream: what its next node comes after.
struct StreamCapture {
    std::shared_ptr<Capture> capture;
    std::vector<std::uint32_t> after;
};

// What an event stands for that was recorded in a capture.
struct CapturedRecord {
    std::weak_ptr<Capture> capture;
    std::vector<std::uint32_t> nodes;
};

Status begin_capture(const std::shared_ptr<Stream>& stream);
// The graph; all streams run their work again.
Result<std::shared_ptr<Graph>> end_capture(Stream& stream);

Status capture_kernel(Stream& stream, const Function& function, orrDim3 grid, orrDim3 block,
                      std::span<const std::byte> args, std::size_t local_bytes, std::uint64_t flags);
Status capture_copy(Runtime& runtime, Stream& stream, const Transfer& transfer);
Status capture_box_copy(Runtime& runtime, Stream& stream, const BoxCopy& copy);
Status capture_fill(Runtime& runtime, Stream& stream, const CheckedFill& fill);
Status capture_reduction(Runtime& runtime, Stream& stream, const Reduction& reduction);
// A call that would have become a node was wrong.
Status capture_failure(Stream& stream, const Error& error);
Status capture_record(Stream& stream, Event& event);
// Event was recorded in a capture: the stream joins it, or is in it already.
Status capture_wait(const std::shared_ptr<Stream>& stream, Event& event);
// For calls that cannot be captured: the error, which the capture keeps as well.
Status refuse_capture(Stream& stream, const char* call);

}  // namespace orrery::umd
