#include "tools/vm/qemu.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

namespace orrery::vm {

namespace {

// A card answers late when its host is busy; after this time QEMU gives the card up for good. Milliseconds.
constexpr unsigned kCardTimeout = 60000;

// The guest's time stamp counter is the host's. Measured here, because a guest that calibrates it against
// emulated timers while the host is busy gets it wrong by a factor, and with it all its clocks. 0: unknown.
std::uint64_t counter_khz() {
#if defined(__x86_64__)
    using Clock = std::chrono::steady_clock;
    struct Moment {
        Clock::time_point at;
        std::uint64_t count;
    };
    // The tightest of some readings: whoever is put aside within one is told so by its length, and nothing
    // corrects the guest's clock later.
    const auto now = [] {
        Moment best{};
        auto least = Clock::duration::max();
        for (int reading = 0; reading < 20; ++reading) {
            const auto before = Clock::now();
            const std::uint64_t count = __builtin_ia32_rdtsc();
            const auto took = Clock::now() - before;
            if (took >= least) continue;
            least = took;
            best = {before + took / 2, count};
        }
        return best;
    };
    const Moment first = now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Moment last = now();
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(last.at - first.at).count();
    return ns > 0 ? (last.count - first.count) * 1'000'000 / static_cast<std::uint64_t>(ns) : 0;
#else
    return 0;
#endif
}

std::string kernel_parameters(const Options& options, const Kernel& kernel) {
    // Warnings and worse on the console while booting (the guest's init raises this); a panic or an oops ends
    // QEMU, because panic=-1 reboots at once and -no-reboot makes that an exit. The rest saves a second of
    // boot under TCG: no defence against speculation that an emulated CPU does not have, no self-tests, no
    // measuring of how a CPU's times vary to draw random numbers from them, a clock that needs no watching.
    std::string text =
        "console=ttyS0 loglevel=5 printk.time=1 panic=-1 oops=panic mitigations=off nokaslr tsc=reliable "
        "no_timer_check "
        "cryptomgr.notests initcall_blacklist=jent_mod_init random.trust_cpu=on audit=0 8250.nr_uarts=1";
    if (const std::uint64_t khz = counter_khz()) text += fmt::format(" tsc_early_khz={}", khz);
    // A slow kernel on a busy host stands still for longer than these like.
    if (kernel.patience > 1)
        text += fmt::format(
            " watchdog_thresh={0} rcupdate.rcu_cpu_stall_timeout={1} "
            "sysctl.kernel.hung_task_timeout_secs={2}",
            10 * kernel.patience, 21 * kernel.patience, 120 * kernel.patience);
    if (options.viommu) text += " intel_iommu=on iommu=pt";
    if (!options.append.empty()) text += " " + options.append;
    return text;
}

// A path as a value among QEMU's comma-separated ones.
std::string escaped(const std::filesystem::path& path) {
    std::string text;
    for (const char c : path.string())
        text += c == ',' ? ",," : std::string(1, c);
    return text;
}

}  // namespace

std::uint64_t port_reserve(std::uint64_t vram_bytes) {
    constexpr std::uint64_t kSmallest = std::uint64_t{512} << 20;
    constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;
    return std::max(kSmallest, 2 * std::bit_ceil(std::min(vram_bytes, kLargest)));
}

std::uint64_t pci_window(std::uint64_t vram_bytes, unsigned cards) {
    constexpr std::uint64_t kSmallest = std::uint64_t{32} << 30;
    return std::max(kSmallest, std::bit_ceil(2 * port_reserve(vram_bytes) * cards));
}

std::vector<std::string> qemu_command(const Options& options, const Tree& tree, const Kernel& kernel,
                                      const QemuFiles& files, const QemuFds& fds) {
    const bool own = !options.qemu.empty();
    auto argv = own ? std::vector{options.qemu.string()} : tree.program("usr/bin/qemu-system-x86_64");
    const auto add = [&argv](std::initializer_list<std::string> words) { argv.insert(argv.end(), words); };
    const auto chardev = [&add](const char* id, int fd) {
        add({"-chardev", fmt::format("socket,id={},fd={}", id, fd)});
    };
    if (!own)
        add({"-L", (tree.path() / "usr/share/qemu").string(), "-L",
             (tree.path() / "usr/share/seabios").string()});
    add({"-name", "orrery", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-vga",
         "none", "-net", "none"});
    add({"-machine", fmt::format("q35,memory-backend=ram{}", options.viommu ? ",kernel-irqchip=split" : ""),
         "-smp", fmt::format("{}", options.smp)});
    if (options.accel == "kvm")
        add({"-accel", "kvm", "-cpu", "host,la57=off"});
    else
        add({"-accel", "tcg,thread=multi", "-cpu", "max,la57=off"});
    // Shared, so that a card can map it; without that, DMA fails silently.
    add({"-m", fmt::format("{}M", options.memory_mib), "-object",
         fmt::format("memory-backend-memfd,id=ram,size={}M,share=on", options.memory_mib)});
    add({"-kernel", files.kernel.string(), "-initrd", files.initramfs.string(), "-append",
         kernel_parameters(options, kernel)});
    if (options.viommu) add({"-device", "intel-iommu,intremap=on,caching-mode=on"});

    chardev("console", fds.console);
    add({"-serial", "chardev:console", "-device", "virtio-serial-pci,id=ports"});
    chardev("status", fds.status);
    chardev("out", fds.out);
    chardev("err", fds.err);
    add({"-device", "virtserialport,bus=ports.0,nr=1,chardev=status,name=orrery.status"});
    add({"-device", "virtserialport,bus=ports.0,nr=2,chardev=out,name=orrery.stdout"});
    add({"-device", "virtserialport,bus=ports.0,nr=3,chardev=err,name=orrery.stderr"});
    if (fds.in >= 0) {
        chardev("in", fds.in);
        add({"-device", "virtserialport,bus=ports.0,nr=4,chardev=in,name=orrery.stdin"});
    }
    if (fds.terminal >= 0) {
        chardev("terminal", fds.terminal);
        add({"-device", "virtconsole,bus=ports.0,nr=0,chardev=terminal"});
    }
    add({"-device", "virtio-rng-pci"});

    const auto show = [&add](const char* id, const std::filesystem::path& folder) {
        if (folder.empty()) return;
        add({"-fsdev", fmt::format("local,id={},path={},security_model=none", id, escaped(folder)), "-device",
             fmt::format("virtio-9p-pci,fsdev={0},mount_tag={0}", id)});
    };
    show("share", options.share);
    show("here", options.here);
    if (!files.root.empty())
        add({"-blockdev",
             fmt::format("driver=raw,node-name=root,read-only=on,file.driver=file,file.filename={}",
                         escaped(files.root)),
             "-device", "virtio-blk-pci,drive=root"});
    if (fds.nvme >= 0)
        add({"-add-fd", fmt::format("fd={},set=1", fds.nvme), "-blockdev",
             "driver=raw,node-name=nvme,file.driver=file,file.filename=/dev/fdset/1,file.locking=off",
             "-device", "nvme,serial=orrery,drive=nvme"});
    if (fds.net >= 0)
        add({"-netdev", fmt::format("stream,id=net,server=off,addr.type=fd,addr.str={}", fds.net), "-device",
             fmt::format("virtio-net-pci,netdev=net,mac={},romfile=", segment_mac(fds.net_number))});
    if (!files.gdb.empty()) add({"-gdb", fmt::format("unix:{},server=on,wait=off", files.gdb.string())});
    if (!files.qmp.empty()) add({"-qmp", fmt::format("unix:{},server=on,wait=off", files.qmp.string())});

    const std::uint64_t reserve = port_reserve(options.vram_bytes);
    if (!files.cards.empty())
        add({"-global",
             fmt::format("q35-pcihost.pci-hole64-size={}", pci_window(options.vram_bytes, options.cards))});
    for (std::size_t i = 0; i < files.cards.size(); ++i) {
        add({"-device", fmt::format("pcie-root-port,id=port{0},chassis={1},slot={1},pref64-reserve={2}", i,
                                    i + 1, reserve)});
        add({"-device",
             fmt::format(R"({{"driver":"vfio-user-pci","id":"card{0}","bus":"port{0}","x-msg-timeout":{1},)"
                         R"("socket":{{"type":"unix","path":"{2}"}}}})",
                         i, kCardTimeout, files.cards[i].string())});
    }
    argv.insert(argv.end(), options.qemu_args.begin(), options.qemu_args.end());
    return argv;
}

}  // namespace orrery::vm
