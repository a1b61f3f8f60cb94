// SPDX-License-Identifier: MIT
// A firmware that lies. It answers the driver as it should, except that all it does is answer, until a queue
// is given a name that begins with "lie ": then it tells the lie that follows (see lies.h) and goes on as
// before.
#include <orrery/fw/boot_block.h>
#include <orrery/fw/mailbox.h>
#include <orrery/fw/queue.h>
#include <orrery/hw/bar0.h>
#include <orrery/hw/pci.h>
#include <orrery/hw/soc.h>

#include <stddef.h>

#include "firmware/hal/hal.h"
#include "firmware/hal/window.h"
#include "tests/vm/liar/lies.h"

namespace {

using orrery::fw::Hal;

constexpr uint64_t kMessageWords = sizeof(orr_mbox_message) / 8;

class Liar {
  public:
    bool start();
    void serve();

  private:
    void post(const orr_mbox_message& message);
    void answer(const orr_mbox_message& command, uint32_t status = ORR_STATUS_OK);
    void event(uint16_t opcode, uint64_t a0, uint64_t a1 = 0, uint64_t index = 0);
    void edge(uint32_t report, uint32_t position, uint32_t edges, uint32_t queue, uint32_t signaller);
    void announce(uint64_t producer);
    uint64_t status(uint32_t queue, size_t field) const {
        return status_ + queue * sizeof(orr_queue_status) + field;
    }
    void tell(Lie lie, uint32_t queue);
    void circles(uint32_t queue);
    void indices(uint32_t queue);

    Hal hal_;
    uint64_t commands_ = 0;
    uint64_t messages_ = 0;
    uint64_t status_ = 0;
    uint64_t consumed_ = 0;
    uint64_t posted_ = 0;
    uint64_t heartbeat_ = 0;
    bool mute_ = false;  // says no more, so that the lie stands
    // What the next command's answer is to be.
    Lie next_ = Lie::kNone;
    // The command whose answer comes late, and after how many more.
    orr_mbox_message late_ = {};
    uint32_t late_in_ = 0;
    bool aborts_ = true;
};

bool Liar::start() {
    const uint64_t block = ORR_HOST_WINDOW(hal_.reg(SOC_BOOT_ARG));
    commands_ = ORR_HOST_WINDOW(hal_.load(block + offsetof(orr_boot_block, command_ring)));
    messages_ = ORR_HOST_WINDOW(hal_.load(block + offsetof(orr_boot_block, message_ring)));
    status_ = ORR_HOST_WINDOW(hal_.load(block + offsetof(orr_boot_block, queue_status)));
    const auto put = [&](size_t at, uint64_t low, uint64_t high) {
        hal_.store(block + at, low | high << 32);
    };
    put(offsetof(orr_boot_block, fw_magic), ORR_BB_FW_MAGIC & 0xffffffff, ORR_BB_FW_MAGIC >> 32);
    put(offsetof(orr_boot_block, fw_abi), ORR_FW_ABI, 0);
    put(offsetof(orr_boot_block, fw_version), kLiarVersion, ORR_FW_QUEUES);
    put(offsetof(orr_boot_block, max_contexts), ORR_FW_CONTEXTS, ORR_RING_MAX_ENTRIES);
    // As if nothing had been forgotten, so that the driver tries to go on after a restart.
    put(offsetof(orr_boot_block, start_kind),
        hal_.reg(SOC_BOOT_COUNT) > 1 ? ORR_BB_START_WARM : ORR_BB_START_COLD, 0xffffffff);
    hal_.store(commands_ + offsetof(orr_mbox_ring, consumer), 0);
    hal_.store(messages_ + offsetof(orr_mbox_ring, producer), 0);
    if (orrery::fw::take_window_fault(hal_)) return false;
    hal_.set_reg(SOC_IRQ_ENABLE, 1u << SOC_LINE_MAILBOX);
    hal_.set_reg(SOC_PROGRESS, ORR_PROGRESS_READY | ORR_BB_STEP_RINGS);
    return true;
}

// Tells the host that there are messages, true or not.
void Liar::announce(uint64_t producer) {
    hal_.fence();
    hal_.store(messages_ + offsetof(orr_mbox_ring, producer), producer);
    hal_.set_reg(SOC_HOST_IRQ, ORR_IRQ_MAILBOX);
}

void Liar::post(const orr_mbox_message& message) {
    const uint64_t taken = messages_ + offsetof(orr_mbox_ring, consumer);
    while (posted_ - hal_.load(taken) >= ORR_MBOX_ENTRIES) {
    }
    uint64_t words[kMessageWords];
    __builtin_memcpy(words, &message, sizeof(message));
    orrery::fw::store_words(
        hal_,
        messages_ + offsetof(orr_mbox_ring, entry) + posted_ % ORR_MBOX_ENTRIES * sizeof(orr_mbox_message),
        words, kMessageWords);
    announce(++posted_);
}

void Liar::answer(const orr_mbox_message& command, uint32_t status) {
    orr_mbox_message reply = {};
    reply.sequence = command.sequence;
    reply.opcode = command.opcode;
    reply.status = status;
    for (int i = 0; i < 6; ++i)
        reply.arg[i] = command.opcode == ORR_MBOX_PING ? command.arg[i] : 0;
    if (command.opcode == ORR_MBOX_QUEUE_CREATE) reply.arg[0] = 1;
    const Lie lie = next_;
    next_ = Lie::kNone;
    switch (lie) {
        case Lie::kReplyTwice:
            post(reply);
            break;
        case Lie::kReplyOtherCommand:
            reply.opcode = static_cast<uint16_t>(reply.opcode + 1);
            break;
        case Lie::kReplyOtherSequence:
            reply.sequence ^= 0x40000;
            break;
        case Lie::kReplyUnknownStatus:
            reply.status = 0xdead;
            break;
        case Lie::kReplyNonsense:
            for (uint64_t& arg : reply.arg)
                arg = ~uint64_t{0};
            reply.detail = 0xffffffff;
            reply.flags = 0xffff;
            break;
        case Lie::kSilence:
            return;
        case Lie::kSlow:
            late_ = reply;
            late_in_ = 4;
            return;
        default:
            break;
    }
    post(reply);
}

void Liar::event(uint16_t opcode, uint64_t a0, uint64_t a1, uint64_t index) {
    orr_mbox_message message = {};
    message.opcode = opcode;
    message.arg[0] = a0;
    message.arg[1] = a1;
    message.arg[2] = ~uint64_t{0};
    message.arg[3] = ~uint64_t{0};
    message.arg[5] = index;
    post(message);
}

void Liar::edge(uint32_t report, uint32_t position, uint32_t edges, uint32_t queue, uint32_t signaller) {
    event(ORR_EVENT_DEADLOCK, report | uint64_t{position} << 32 | uint64_t{edges} << 48,
          queue | uint64_t{signaller} << 32, 1000);
}

// Edges between this queue and the two before it that lead round for ever, or nowhere.
void Liar::circles(uint32_t queue) {
    const uint32_t a = queue - 1;
    const uint32_t b = queue - 2;
    // From the queue into a circle that does not contain it, with lengths that never fit.
    edge(1, 0, 1, b, a);
    edge(1, 0, 2, a, b);
    edge(1, 0, 5, queue, a);
    edge(2, 0, 3, a, b);
    edge(2, 1, 3, b, a);
    edge(2, 2, 3, queue, a);
    // To itself, of another length than one; of length nought; of more queues than there are; of mixed
    // reports.
    edge(3, 0, 1, queue, queue);
    edge(4, 0, 2, queue, queue);
    edge(5, 0, 0, queue, queue);
    edge(6, 7, 3, queue, queue);
    edge(7, 0, 0xffff, queue, a);
    edge(8, 0, 2, queue, a);
    edge(9, 1, 2, a, queue);
    edge(0, 0, 2, queue, a);
    // Queues that do not exist.
    edge(10, 0, 2, queue, ORR_FW_QUEUES - 1);
    edge(10, 1, 2, ORR_FW_QUEUES - 1, queue);
    edge(11, 0, 2, 0xffffffff, queue);
    edge(11, 0, 2, queue, 0xffffffff);
}

// A status line that goes back and forth.
void Liar::indices(uint32_t queue) {
    const uint64_t completed = status(queue, offsetof(orr_queue_status, completed));
    const uint64_t error = status(queue, offsetof(orr_queue_status, error));
    const uint64_t values[] = {~uint64_t{0}, 5, uint64_t{1} << 63, 0};
    for (const uint64_t value : values) {
        hal_.store(completed, value);
        hal_.set_reg(SOC_HOST_IRQ, ORR_IRQ_QUEUE);
        event(ORR_EVENT_QUEUE_ERROR, queue);
        hal_.store(error, value & 0xff);
        event(ORR_EVENT_QUEUE_ERROR, queue);
    }
}

void Liar::tell(Lie lie, uint32_t queue) {
    switch (lie) {
        case Lie::kCircles:
            circles(queue);
            break;
        case Lie::kIndices:
            indices(queue);
            break;
        case Lie::kUnknownEvents:
            for (uint32_t opcode = 0; opcode < 0x10000; opcode += 0x7f)
                if (opcode != ORR_EVENT_DEADLOCK)
                    event(static_cast<uint16_t>(opcode), ~uint64_t{0}, ~uint64_t{0});
            break;
        case Lie::kFlood:
            for (uint32_t i = 0; i < 20'000; ++i)
                event(ORR_EVENT_QUEUE_ERROR, i);
            break;
        case Lie::kProducerAhead:
            announce(posted_ + ORR_MBOX_ENTRIES + 1);
            mute_ = true;
            break;
        case Lie::kProducerBack:
            announce(posted_ - 1);
            mute_ = true;
            break;
        case Lie::kConsumerAhead:
            hal_.store(commands_ + offsetof(orr_mbox_ring, consumer), consumed_ + 1000);
            mute_ = true;
            break;
        case Lie::kReplyToNobody: {
            orr_mbox_message message = {};
            message.sequence = 0xffffffff;
            message.opcode = ORR_MBOX_PING;
            post(message);
            break;
        }
        case Lie::kInterrupts:
            for (uint32_t i = 0; i < 2'000; ++i)
                hal_.set_reg(SOC_HOST_IRQ, i % ORR_IRQ_VECTORS);
            break;
        case Lie::kNoAbort:
            aborts_ = false;
            break;
        case Lie::kTrap:
            hal_.crash();
        default:
            next_ = lie;
    }
}

void Liar::serve() {
    hal_.set_reg(SOC_MBOX_ACK, 1);
    while (!mute_ && hal_.load(commands_ + offsetof(orr_mbox_ring, producer)) != consumed_) {
        hal_.fence();
        uint64_t words[kMessageWords];
        orrery::fw::load_words(hal_,
                               commands_ + offsetof(orr_mbox_ring, entry) +
                                   consumed_ % ORR_MBOX_ENTRIES * sizeof(orr_mbox_message),
                               words, kMessageWords);
        orr_mbox_message command;
        __builtin_memcpy(&command, words, sizeof(command));
        hal_.store(commands_ + offsetof(orr_mbox_ring, consumer), ++consumed_);
        hal_.set_reg(SOC_HEARTBEAT, ++heartbeat_);
        // "lie " and a letter.
        const bool lie = command.opcode == ORR_MBOX_NAME && (command.arg[1] & 0xffffffff) == 0x2065696c;
        const bool answers = aborts_ || command.opcode != ORR_MBOX_QUEUE_ABORT;
        if (late_in_ != 0 && --late_in_ == 0) post(late_);
        if ((command.flags & ORR_MBOX_F_NO_REPLY) == 0 && answers) answer(command);
        if (lie)
            tell(static_cast<Lie>(command.arg[1] >> 32 & 0xff),
                 static_cast<uint32_t>(command.arg[0] & 0xffffffff));
    }
}

constinit Liar liar;

}  // namespace

// crt0.S and the handler of traps want it; nothing is kept over a restart.
extern "C" [[noreturn]] void orr_main() {
    Hal hal;
    if (liar.start()) {
        hal.enable_wakeups();
        for (;;) {
            liar.serve();
            hal.wait_for_interrupt();
        }
    }
    hal.set_reg(SOC_PROGRESS, ORR_PROGRESS_FAILED | ORR_BB_FAIL_RINGS);
    for (;;)
        hal.wait_for_interrupt();
}
