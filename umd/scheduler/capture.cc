#include "umd/scheduler/capture.h"

#include <algorithm>
#include <utility>

namespace orrery::umd {
namespace {

// A graph with a hole in it must not be used.
Status kept(Capture& capture, const Error& error) {
    capture.fate.end(error);
    return std::unexpected(error);
}

Status ended_meanwhile() {
    return fail(orrErrorStreamCapture, "the capture ended while this call ran");
}

Status append(Stream& stream, Result<GraphNode> node) {
    const auto state = stream.capture();
    if (state == nullptr) return ended_meanwhile();
    Capture& capture = *state->capture;
    const std::lock_guard lock(capture.mutex);
    if (capture.ended) return ended_meanwhile();
    if (!node) return kept(capture, node.error());
    node->after = state->after;
    auto number = capture.graph->add(std::move(*node));
    if (!number) return kept(capture, number.error());
    state->after.assign(1, *number);
    return {};
}

}  // namespace

Status begin_capture(const std::shared_ptr<Stream>& stream) {
    if (stream->capturing()) return fail(orrErrorStreamCapture, "the stream is being captured already");
    auto state = std::make_shared<StreamCapture>();
    state->capture = std::make_shared<Capture>();
    state->capture->origin = stream.get();
    stream->set_capture(std::move(state));
    return {};
}

Result<std::shared_ptr<Graph>> end_capture(Stream& stream) {
    const auto state = stream.capture();
    if (state == nullptr) {
        return fail(orrErrorStreamCapture,
                    "the stream is not being captured: call orrStreamBeginCapture first");
    }
    Capture& capture = *state->capture;
    const std::lock_guard lock(capture.mutex);
    if (capture.ended) return std::unexpected(ended_meanwhile().error());
    if (capture.origin != &stream) {
        return fail(
            orrErrorStreamCapture,
            "the capture began on another stream: end it there, after that stream waited for this one");
    }
    std::vector<bool> covered(capture.graph->nodes().size());
    std::vector<std::uint32_t> open = state->after;
    while (!open.empty()) {
        const std::uint32_t node = open.back();
        open.pop_back();
        if (covered[node]) continue;
        covered[node] = true;
        const auto& after = capture.graph->nodes()[node].after;
        open.insert(open.end(), after.begin(), after.end());
    }
    capture.ended = true;
    stream.set_capture(nullptr);
    for (const auto& joined : capture.joined)
        joined->set_capture(nullptr);
    capture.joined.clear();
    if (const auto broken = capture.fate.error()) {
        return fail(broken->code, "the capture holds no whole graph, because a call failed: {}",
                    broken->text);
    }
    const auto lost = std::ranges::find(covered, false);
    if (lost != covered.end()) {
        return fail(
            orrErrorStreamCapture,
            "a stream that joined the capture was not joined back (node {} is behind no event that this "
            "stream waited for): record an event there and wait for it here",
            lost - covered.begin());
    }
    return std::move(capture.graph);
}

Status capture_kernel(Stream& stream, const Function& function, orrDim3 grid, orrDim3 block,
                      std::span<const std::byte> args, std::size_t local_bytes, std::uint64_t flags) {
    return append(stream, kernel_node(function, grid, block, args, local_bytes, flags));
}

Status capture_copy(Runtime& runtime, Stream& stream, const Transfer& transfer) {
    if (!transfer.src_memory || !transfer.dst_memory)
        return append(stream, fail(orrErrorStreamCapture,
                                   "a copy of ordinary host memory, which may be another one at the launch, "
                                   "cannot become part of a graph: use memory of orrMallocHost"));
    return append(stream, copy_node(runtime, transfer, stream.context().device()));
}

Status capture_box_copy(Runtime& runtime, Stream& stream, const BoxCopy& copy) {
    return append(stream, box_copy_node(runtime, copy, stream.context().device()));
}

Status capture_fill(Runtime& runtime, Stream& stream, const CheckedFill& fill) {
    return append(stream, fill_node(runtime, fill, stream.context().device()));
}

Status capture_reduction(Runtime& runtime, Stream& stream, const Reduction& reduction) {
    return append(stream, reduce_node(runtime, reduction, stream.context().device()));
}

Status capture_failure(Stream& stream, const Error& error) {
    return append(stream, std::unexpected(error));
}

Status capture_record(Stream& stream, Event& event) {
    const auto state = stream.capture();
    if (state == nullptr) return ended_meanwhile();
    const std::lock_guard lock(state->capture->mutex);
    if (state->capture->ended) return ended_meanwhile();
    event.set_captured(std::make_shared<CapturedRecord>(CapturedRecord{state->capture, state->after}));
    return {};
}

Status capture_wait(const std::shared_ptr<Stream>& stream, Event& event) {
    const auto record = event.captured();
    const auto capture = record == nullptr ? nullptr : record->capture.lock();
    auto state = stream->capture();
    if (capture == nullptr) {
        return state == nullptr
                   ? fail(orrErrorStreamCapture, "the event was recorded in a capture that has ended")
                   : refuse_capture(*stream, "a wait for an event that was recorded outside of it");
    }
    const std::lock_guard lock(capture->mutex);
    if (capture->ended)
        return fail(orrErrorStreamCapture, "the event was recorded in a capture that has ended");
    if (state == nullptr) {
        state = std::make_shared<StreamCapture>();
        state->capture = capture;
        capture->joined.push_back(stream);
        stream->set_capture(state);
    } else if (state->capture != capture) {
        return kept(*capture,
                    Error{orrErrorStreamCapture, "the stream and the event belong to different captures"});
    }
    for (const std::uint32_t node : record->nodes) {
        if (std::ranges::find(state->after, node) == state->after.end()) state->after.push_back(node);
    }
    return {};
}

Status refuse_capture(Stream& stream, const char* call) {
    const Error error{orrErrorStreamCapture,
                      fmt::format("{} cannot become part of a graph: end the capture first", call)};
    const auto state = stream.capture();
    if (state == nullptr) return std::unexpected(error);
    const std::lock_guard lock(state->capture->mutex);
    return kept(*state->capture, error);
}

}  // namespace orrery::umd
