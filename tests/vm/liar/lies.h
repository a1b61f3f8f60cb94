// The lies that the lying firmware tells. A queue whose name is "lie " and the letter makes it tell one.
#pragma once

#include <stdint.h>

inline constexpr uint32_t kLiarVersion = 0x666666;

enum class Lie : uint8_t {
    kNone = 0,
    // At once.
    kCircles = 'a',        // reports of cycles of waits that are none, or lead round for ever
    kIndices = 'b',        // the queue's status line goes back and forth
    kUnknownEvents = 'c',  // events with numbers, queues and texts that make no sense
    kFlood = 'd',          // 20,000 events as fast as the ring takes them
    kInterrupts = 'e',     // 2,000 interrupts without a reason, on all vectors
    kProducerAhead = 'f',  // more messages than the ring has entries
    kProducerBack = 'g',   // one message less than were there
    kConsumerAhead = 'h',  // commands taken that were never sent
    kReplyToNobody = 'i',  // an answer to no command
    kTrap = 'j',           // the core halts
    // With the next answer.
    kReplyTwice = 'k',
    kReplyOtherCommand = 'l',
    kReplyOtherSequence = 'm',
    kReplyUnknownStatus = 'n',
    kReplyNonsense = 'o',  // all of it is ones but for what makes it a reply
    kSilence = 'p',        // none
    kSlow = 'q',           // it comes after four more commands
    // From then on.
    kNoAbort = 'r',  // no answer to ABORT
};
