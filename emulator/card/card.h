// The card: everything behind the PCIe function, on one thread of its own.
//
// CardThread is that thread. The I/O thread reaches the card through post() and through registers(), which
// are atomics. Without it, a test drives the card itself: step() from one thread, which is then also the I/O
// thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/api/sku.h"
#include "emulator/card/command_queue.h"
#include "emulator/card/debuggers.h"
#include "emulator/card/launch_log.h"
#include "emulator/card/link_log.h"
#include "emulator/card/note_ring.h"
#include "emulator/card/register_file.h"
#include "emulator/control/fault_control.h"
#include "emulator/core/isa.h"
#include "emulator/engines/copy_engine.h"
#include "emulator/engines/vector_unit.h"
#include "emulator/faults/faults.h"
#include "emulator/link/barrier_unit.h"
#include "emulator/link/link_port.h"
#include "emulator/memory/host_memory.h"
#include "emulator/memory/mmu.h"
#include "emulator/memory/vram.h"
#include "emulator/model/memory_system.h"
#include "emulator/probes/counters.h"
#include "emulator/probes/errors.h"
#include "emulator/soc/boot_rom.h"
#include "emulator/soc/control_core.h"
#include "emulator/soc/doorbells.h"
#include "emulator/soc/soc_registers.h"
#include "emulator/soc/trace_sink.h"
#include "emulator/soc/windows.h"
#include "emulator/sync/lockstep.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

class CardThread;

struct CardConfig {
    Sku sku = Sku::standard();
    std::uint64_t vram_bytes = 0;  // 0: what the SKU says
    std::uint64_t uid = 1;         // not 0
    std::optional<PublicKey> key;
    std::vector<LinkConfig> links;      // rates and uid are filled in from the SKU
    std::filesystem::path lockstep;     // file of the cards that this one keeps step with; empty: none
    std::uint32_t spin_us = 200;        // host time without work before the card blocks; 0 is legal
    std::uint32_t workers = 0;          // host threads for large copies, beside the card's own
    std::uint32_t threads = 0;          // the same for work-groups of kernels
    std::filesystem::path launches;     // file for a line a launch (launch_log.h); empty: none
    unsigned check = 0;                 // of kernels (api/checks.h)
    bool host_atomics = true;           // the platform completes AtomicOps (ORR_R_PLATFORM)
    std::FILE* log = nullptr;           // borrowed
    std::filesystem::path record;       // file for a recording (docs/trace.md); empty: none
    std::vector<std::uint8_t> symbols;  // of the firmware, for the recording: struct orr_otrace_symbols
    std::uint64_t record_keyframe_cost = RecordingInfo::kKeyframeCost;
    RecordWriter::Write record_write;     // for tests: in place of write(2) for the recording
    std::string program = "orrery-card";  // who records, for the recording's header
    // Of a flight recorder, if there is no recording (RecordingInfo); 0: none. It is in memory of its own, or
    // in a file that somebody else holds.
    std::uint64_t flight_segment = 0;
    std::filesystem::path flight_file;
    // Ports on the loopback interface for a debugger of the firmware, and of kernels; 0: any free one.
    std::optional<std::uint16_t> gdb, kernel_gdb;
    std::filesystem::path stepper;    // orrery-step, which tells a debugger what the recording says; or empty
    std::optional<FaultPlan> faults;  // what shall fail
    std::filesystem::path control;    // UNIX socket at which faults can be ordered; empty: none
    std::function<void()> die;        // ends the process; empty: SIGKILL
    std::function<void(unsigned)> raise;  // sends an interrupt vector to the host; called on the card thread
};

// Whether somebody on the card waits for room in a link, or for an answer, and whether one of those peers
// stands (LinkPort::peer_stands()). In step no clock passes one that stands.
enum class AwaitedPeers { kNone, kAlive, kStand };

class Card final : private SocEffects {
  public:
    static std::expected<std::unique_ptr<Card>, std::string> create(CardConfig config);
    ~Card() override;
    Card(const Card&) = delete;
    Card& operator=(const Card&) = delete;

    // --- any thread ---
    const CardConfig& config() const { return config_; }
    const Sku& sku() const { return config_.sku; }
    // What the vector cores run; VLEN in bits, 0: no vectors.
    const std::string& vector_isa() const { return vector_isa_; }
    std::uint32_t vector_vlen() const { return config_.sku.vector_vlen; }
    Vram& vram() { return vram_; }                  // size, descriptor and bytes
    Doorbells& doorbells() { return *doorbells_; }  // fd() and kick()
    Counters& counters() { return counters_; }
    // All of one moment, with what is under way counted up to now; card thread.
    std::array<std::uint64_t, ORR_COUNTER_COUNT> snapshot();
    Errors& errors() { return errors_; }
    RegisterFile& registers() { return file_; }
    NoteRing& notes() { return notes_; }
    // What a link port has counted; null: nothing is plugged in there.
    const link::Counts* link_counts(unsigned port) const {
        return links_[port] != nullptr ? &links_[port]->counts() : nullptr;
    }
    Faults* faults() { return faults_.get(); }  // null: none can happen
    // After kick(), or whatever else the card should look at.
    void wake();

    // --- I/O thread ---
    // Hands a command over; waits while the queue is full.
    void post(const Command& command);
    // Waits until everything posted has been carried out.
    void flush();
    // The same for at most about `limit_us` of host time; false: not yet.
    bool flush_within(std::uint32_t limit_us);

    // --- card thread ---
    // One round: commands, doorbells, links, a chunk of the core, some events. false: there was nothing to
    // do.
    // With `skip_idle` false the timer of a sleeping core, if nothing else is to come, is not run yet. Events
    // after `limit` are left alone.
    bool step(bool skip_idle = true, ModelTime limit = kNever - 1);
    // The first part of a round: looks at commands, doorbells and links. Who drives several cards in the
    // order of their model times calls it before it asks when each of them goes on.
    bool take_arrivals();
    // The recording's file has all up to now.
    void store_recording();
    // Where that is while the card lives; empty: nowhere.
    std::filesystem::path recording() const {
        return recorder_ != nullptr ? recorder_->file() : std::filesystem::path();
    }
    // For what waits on the card's thread with the core stopped: takes what the host and peers want
    // meanwhile. false: the card is to stop.
    bool serve_host() {
        if (lockstep_) lockstep_->beat();
        // As in step().
        if (recording_waits())
            drain_commands();
        else
            take_arrivals();
        return !stop_.load(std::memory_order_acquire);
    }

    // --- any thread ---
    void request_stop();
    // A CardThread is at work: post() leaves the commands to it.
    bool running() const { return running_.load(std::memory_order_acquire); }

    // --- for tests that drive the card, and for its own parts ---
    EventQueue& events() { return events_; }
    Mmu& mmu() { return *mmu_; }
    HostMemory& host_memory() { return host_; }
    ControlCore& core() { return *core_; }
    // Where debuggers of the firmware and of kernels connect; 0: nowhere.
    std::uint16_t gdb_port() const { return gdb_port_; }
    std::uint16_t kernel_gdb_port() const { return kernel_gdb_port_; }
    SocRegisters& soc() { return *soc_; }
    // Writes what has been recorded so far; the card thread, which does not wait for the file, does it by
    // itself once a second.
    void flush_recording();
    // Nothing is recorded from here on.
    void finish_recording();
    // Starts the core with what is in SRAM, without a boot ROM's checks; ignored unless in reset.
    void start_core_for_test(std::uint64_t entry);

  private:
    friend class CardThread;
    // On its thread, until request_stop().
    void run();

    explicit Card(CardConfig config, Vram vram);
    std::expected<void, std::string> build();
    std::expected<void, std::string> build_recorder();
    std::expected<void, std::string> build_faults();
    std::expected<void, std::string> build_debuggers();

    void host_interrupt(std::uint64_t vector) override;
    void progress(std::uint32_t code) override;
    void heartbeat(std::uint64_t value) override;
    void halt(std::uint64_t code) override;

    // `quiet`: only up to the first that is not.
    bool drain_commands(bool quiet = false);
    void carry_out(const Command& command);
    void start_boot(const Command& command);
    void boot(ModelTime now);
    void fail_boot(const BootResult& result);
    void reset();
    void restart_core();
    // What the host sees of a core that has not been started.
    void publish_core_reset();
    void power_on();
    // No other thread uses the tables of the MMU or of the host's memory, or pointers that come from them.
    void quiesce();
    void map(const Command& command);
    void unmap(const Command& command);
    void set_node(std::uint32_t node);
    void set_route(const Command& command);
    void grant(const Command& command);
    void barrier(const Command& command);
    void multicast(const Command& command);
    void snapshot(const Command& command);
    void set_sink(const Command& command);
    void set_sample(std::uint32_t period_ns, std::uint64_t low, std::uint64_t high);
    void sample();
    void watch_for_sample();
    void set_pc_period(std::uint32_t period_ns);
    void trace_core(std::uint32_t core, ModelTime from, ModelTime until);
    void follow_sink();  // it is on or off now
    bool poll_links();
    void publish_reach(unsigned port);
    void publish_switches(unsigned port);
    // What the switch there shows is another thing; each is told by itself, as only one of them matters to
    // the driver.
    void peer_shows(unsigned port);
    std::expected<void, std::string> build_lockstep();
    // A round as step() is one, within what the others leave.
    bool step_in_lockstep(bool skip_idle);
    // By the card's clock: what comes now, from outside of model time, can be acted on without breaking what
    // was promised to other cards.
    ModelTime time_for_news();
    // The others count on this card to keep quiet: what the host does comes a little later.
    bool host_waits();
    // Nothing follows from it that another card could hear of.
    static bool is_quiet(Command::Kind kind);
    void on_host(ModelTime now);
    bool is_recorded() const { return !config_.record.empty() || config_.flight_segment != 0; }
    bool keeps_step() const { return lockstep_ != nullptr && lockstep_->active(); }
    // Only others can give this card leave to go on.
    bool waits_for_others() const;
    AwaitedPeers awaited_peers(std::chrono::steady_clock::time_point now);
    void jumped(ModelTime gap, unsigned port);
    void publish_link(unsigned port);
    // A fault has stopped the card, until the host resets it.
    bool hung() const { return faults_ != nullptr && faults_->hung(); }
    // A debugger has stopped the firmware, or kernels, and time with them.
    bool held() const { return core_->debug_stopped() || vector_unit_->debugger().stopped(); }
    bool serve_debuggers();
    // Events that fire before the next look at commands: one may take some 50 us of host time.
    static constexpr unsigned kBurst = 8;
    // The core sleeps until its timer, or until a message arrives that is on its way.
    bool waits_for_timer_or_peers() const;
    bool run_events(bool skip_idle, ModelTime limit);
    void publish();
    void raise(unsigned vector);
    void on_interrupt(ModelTime now);
    void interrupt_arrives(unsigned vector);
    void send_interrupt(unsigned vector);
    void send_mailbox_ring();
    void on_mailbox(ModelTime now);
    void ring_mailbox();
    void report_recording();
    // The recording's file does not take what waits for it: the card's model time stands until it does.
    bool recording_waits();
    void sleep(int timeout_us);

    CardConfig config_;
    Counters counters_;
    Errors errors_;
    RegisterFile file_;
    NoteRing notes_;
    EventQueue events_;
    std::unique_ptr<Faults> faults_;
    std::unique_ptr<FaultControl> fault_control_;
    HostMemory host_;
    Vram vram_;
    MemorySystem memory_;
    std::unique_ptr<Mmu> mmu_;
    std::unique_ptr<Doorbells> doorbells_;
    std::array<std::unique_ptr<LinkPort>, ORR_LINK_MAX_PORTS> links_;
    std::vector<LinkPort*> active_links_;
    // Versions of what the peer of each port showed last, if it is a switch.
    struct Shown {
        std::uint64_t reach = 0, switches = 0;
    };
    std::array<Shown, ORR_LINK_MAX_PORTS> shown_{};
    Peers peers_;
    std::unique_ptr<BarrierUnit> barriers_;
    std::unique_ptr<Workers> workers_;
    std::unique_ptr<CheckedMemory> checked_memory_;  // null: use of memory is not checked
    std::unique_ptr<EngineContext> engine_context_;
    std::vector<std::unique_ptr<CopyEngine>> copy_engines_;
    std::string vector_isa_ = isa_of(vector_vlen());
    std::unique_ptr<LaunchLog> launch_log_;  // null: nobody wants one
    std::unique_ptr<VectorUnit> vector_unit_;
    std::unique_ptr<Windows> windows_;
    std::unique_ptr<SocRegisters> soc_;
    std::unique_ptr<Recorder> recorder_;
    LinkLog link_log_{
        [this](unsigned kind, std::initializer_list<std::uint64_t> fields) { core_->note(kind, fields); }};
    TraceSink sink_{host_};
    ModelTime sample_period_ = 0;  // 0: none
    ModelTime pc_period_ = 0;      // likewise
    std::uint32_t step_core_ = 0;  // one more; 0: none
    ModelTime step_from_ = 0, step_until_ = 0;
    std::unique_ptr<ControlCore> core_;
    std::unique_ptr<sync::Lockstep> lockstep_;
    Event horizon_ = Event::stop();                         // keeps the core from running past it
    Event host_arrival_ = Event::of<&Card::on_host>(this);  // what the host does meanwhile is heard then
    Debuggers debuggers_;
    std::uint16_t gdb_port_ = 0, kernel_gdb_port_ = 0;

    Event boot_event_ = Event::of<&Card::boot>(this);
    // On their way to the host.
    struct Interrupt {
        ModelTime arrival;
        unsigned vector;
    };
    std::deque<Interrupt> interrupts_;
    Event interrupt_event_ = Event::of<&Card::on_interrupt>(this);
    // Rings of the mailbox's doorbell that are on their way to the card: when they arrive.
    std::deque<ModelTime> mailbox_rings_;
    Event mailbox_event_ = Event::of<&Card::on_mailbox>(this);
    std::optional<ImageReader> image_;  // the boot ROM's copy, while it is at work
    std::uint64_t image_bus_ = 0;
    std::uint64_t image_bytes_ = 0;
    std::uint64_t boot_arg_ = 0;
    unsigned burst_ = 0;  // events that may still fire before the control core goes on
    bool core_halt_seen_ = false;
    bool recording_failed_ = false;
    bool recording_waits_ = false;

    CommandQueue commands_;
    UniqueFd wake_fd_;
    std::atomic<bool> sleeping_{false};
    std::atomic<bool> stop_{false};
    std::atomic<bool> running_{false};
};

}  // namespace orrery::emu
