// The border between the card and its engines: a dispatch port each (SOC_ENGINE), and what they work with.
//
// Everything here happens on the card thread. An engine does its work in events: each handler does a bounded
// piece (about 50 µs of host time at most, so that the card stays able to let go of host memory), and
// schedules the next at the model time at which that piece is done. It keeps no host pointer from one event
// to the next unless Mmu::generation() stands still.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <orrery/hw/engine.h>

#include "emulator/card/sku.h"
#include "emulator/link/link_port.h"
#include "emulator/memory/mmu.h"
#include "emulator/probes/counters.h"
#include "emulator/probes/errors.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

struct Completion {
    std::uint32_t port = 0;  // the card fills it in
    std::uint32_t tag = 0;
    std::uint32_t status = ORR_DONE_OK;  // ORR_DONE_*
    std::uint64_t fault = 0;             // ORR_FAULT_* or mcause
    std::uint64_t detail = 0;            // VA or pc
    ModelTime start = 0;
    ModelTime end = 0;
};

class CompletionSink {
  public:
    virtual ~CompletionSink() = default;
    // `port` as given to the engine when it was attached. Called once a start, at model time `end` == now.
    virtual void complete(unsigned port, const Completion& completion) = 0;
};

// Writes to memory behind links. Implemented by the card over its link ports (emulator/link/link_port.h,
// whose rules for partial writes and waiting hold here); a port that is not there answers
// ORR_FAULT_PEER_DOWN.
class PeerWriter {
  public:
    virtual ~PeerWriter() = default;
    virtual LinkSend write(unsigned port, std::uint64_t peer_offset, std::span<const std::byte> bytes) = 0;
    // For a writer that got no room: then it tries again at the same model time, through the event queue.
    virtual void wait_for_room(unsigned port) = 0;
};

// What engines get to work with; all outlive the engines.
struct EngineContext {
    EventQueue& events;
    Mmu& mmu;
    Vram& vram;
    Counters& counters;
    Errors& errors;
    PeerWriter& peers;
    CompletionSink& completions;
    const Sku& sku;
};

// One dispatch port. Several ports may share hardware behind them (the vector ports do).
class Engine {
  public:
    virtual ~Engine() = default;

    virtual std::uint32_t kind() const = 0;  // ORR_ENGINE_*
    // Starts a descriptor; never called while busy(). A bad one ends with ORR_DONE_BAD_DESC, through an event
    // (not from inside this call).
    virtual void start(std::span<const std::byte, 64> descriptor, std::uint32_t tag) = 0;
    // Ends the running descriptor soon with ORR_DONE_ABORTED; nothing while idle.
    virtual void abort() = 0;
    // From start() until the completion has been handed over.
    virtual bool busy() const = 0;
    // Card reset: drops what runs, without a completion, and every pointer.
    virtual void reset() = 0;
};

// Ports in the order of SOC_ENGINE: copy engines first, then vector ports. Engine i completes as port i.
// emulator/engines provides this function.
std::vector<std::unique_ptr<Engine>> make_engines(const EngineContext& context);

}  // namespace orrery::emu
