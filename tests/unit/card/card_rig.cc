#include "tests/unit/card/card_rig.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sodium.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace orrery::emu {

namespace {

TestKey make_key(std::uint8_t seed_byte) {
    EXPECT_GE(sodium_init(), 0);
    std::array<std::uint8_t, crypto_sign_SEEDBYTES> seed{};
    seed.fill(seed_byte);
    TestKey key;
    key.secret_key.resize(crypto_sign_SECRETKEYBYTES);
    crypto_sign_seed_keypair(key.public_key.data(), key.secret_key.data(), seed.data());
    return key;
}

std::unique_ptr<Card> make_card(CardConfig config) {
    auto card = Card::create(std::move(config));
    EXPECT_TRUE(card) << card.error();
    return *std::move(card);
}

}  // namespace

const TestKey& TestKey::ours() {
    static const TestKey key = make_key(1);
    return key;
}

const TestKey& TestKey::another() {
    static const TestKey key = make_key(2);
    return key;
}

std::vector<std::uint8_t> read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in) << path;
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::uint8_t> script_elf() {
    return read_file(SCRIPT_FIRMWARE);
}

void sign(std::vector<std::uint8_t>& image, const TestKey& key, bool fix_hash) {
    orr_image_header header;
    ASSERT_GE(image.size(), sizeof header);
    std::memcpy(&header, image.data(), sizeof header);
    if (fix_hash) {
        crypto_hash_sha256(header.sha256, image.data() + sizeof header, image.size() - sizeof header);
        std::memcpy(image.data(), &header, sizeof header);
    }
    crypto_sign_detached(image.data() + offsetof(orr_image_header, signature), nullptr, image.data(),
                         offsetof(orr_image_header, signature), key.secret_key.data());
}

std::vector<std::uint8_t> make_image(std::span<const std::uint8_t> elf, const TestKey& key) {
    orr_image_header header{};
    header.magic = ORR_IMAGE_MAGIC;
    header.header_size = sizeof header;
    header.image_size = static_cast<std::uint32_t>(sizeof header + elf.size());
    header.hw_version = ORR_HW_VERSION;
    std::vector<std::uint8_t> image(header.image_size);
    std::memcpy(image.data(), &header, sizeof header);
    std::memcpy(image.data() + sizeof header, elf.data(), elf.size());
    sign(image, key);
    return image;
}

CardConfig CardRig::config() {
    CardConfig config;
    config.vram_bytes = 64 << 20;
    config.uid = 0x1234;
    config.key = TestKey::ours().public_key;
    return config;
}

CardRig::CardRig(CardConfig config)
    : ram_fd_(memfd_create("guest", MFD_CLOEXEC)),
      card_(make_card([&] {
          config.raise = [this](unsigned vector) { raised.push_back(vector); };
          return std::move(config);
      }())),
      device_(*card_),
      next_table_(card_->vram().size()) {
    EXPECT_EQ(ftruncate(ram_fd_.get(), kRamBytes), 0);
    ram_ = *Mapping::create(ram_fd_.get(), 0, kRamBytes, true);
    doorbells_ = *Mapping::create(card_->doorbells().fd(), 0, Doorbells::kBytes, true);
    device_.client_attached();
    device_.bus_master(true);
    device_.atomics(true);
    EXPECT_EQ(map_ram(), 0);
}

CardRig::~CardRig() = default;

std::uint32_t CardRig::read32(std::uint64_t offset) {
    std::uint32_t value = 0;
    device_.bar_read(ORR_BAR_REGS, offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

std::uint64_t CardRig::read64(std::uint64_t offset) {
    std::uint64_t value = 0;
    device_.bar_read(ORR_BAR_REGS, offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

void CardRig::write32(std::uint64_t offset, std::uint32_t value) {
    device_.bar_write(ORR_BAR_REGS, offset, std::as_bytes(std::span(&value, 1)));
}

void CardRig::write64(std::uint64_t offset, std::uint64_t value) {
    device_.bar_write(ORR_BAR_REGS, offset, std::as_bytes(std::span(&value, 1)));
}

int CardRig::map_ram(std::uint64_t bus, std::uint64_t bytes) {
    DmaMap map;
    map.address = bus;
    map.size = bytes;
    map.fd = UniqueFd(fcntl(ram_fd_.get(), F_DUPFD_CLOEXEC, 0));
    map.offset = bus - kRamBase;
    map.readable = map.writable = true;
    return device_.dma_map(std::move(map));
}

void CardRig::unmap_ram(std::uint64_t bus, std::uint64_t bytes) {
    device_.dma_unmap(bus, bytes);
}

orr_doorbell_page& CardRig::page(unsigned number) {
    return reinterpret_cast<orr_doorbell_page*>(doorbells_.data())[number];
}

void CardRig::ring(unsigned number, unsigned slot, std::uint64_t value) {
    orr_doorbell_page& doorbells = page(number);
    std::atomic_ref(doorbells.doorbell[slot]).store(value, std::memory_order_release);
    std::atomic_ref(doorbells.summary).fetch_add(1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void CardRig::kick(unsigned number, unsigned slot) {
    const std::uint64_t value = 1;
    device_.bar_write(
        ORR_BAR_DOORBELL,
        ORR_DB_KICK_OFFSET + number * ORR_DB_PAGE_SIZE + offsetof(orr_doorbell_page, doorbell) + 8 * slot,
        std::as_bytes(std::span(&value, 1)));
}

void CardRig::settle() {
    // A script that never ends is a failed test, not one that hangs.
    for (int i = 0; i < 2'000'000; ++i) {
        if (!card_->step()) return;
    }
    ADD_FAILURE() << "the card does not come to rest";
}

void CardRig::steps(unsigned count) {
    for (unsigned i = 0; i < count; ++i)
        card_->step();
}

void CardRig::join(std::uint32_t node, unsigned port, std::uint32_t peer) {
    write32(ORR_R_NODE, node);
    write32(ORR_R_ROUTE(peer), ORR_ROUTE_VALID | port);
}

void CardRig::grant(unsigned port, std::uint32_t slot, std::uint64_t base, std::uint64_t size,
                    std::uint32_t node) {
    write64(ORR_R_LINK(port) + ORR_R_LINK_GRANT_BASE, base);
    write64(ORR_R_LINK(port) + ORR_R_LINK_GRANT_SIZE, size);
    write32(ORR_R_LINK(port) + ORR_R_LINK_GRANT_NODE, node);
    write32(ORR_R_LINK(port) + ORR_R_LINK_GRANT_CMD, slot | ORR_LINK_GRANT_SET);
}

void CardRig::start_boot(std::span<const std::uint8_t> image) {
    std::memcpy(ram(kImage), image.data(), image.size());
    write64(ORR_R_BOOT_IMAGE, kImage);
    write32(ORR_R_BOOT_SIZE, static_cast<std::uint32_t>(image.size()));
    write64(ORR_R_BOOT_ARG, kScript);
    std::memset(ram(kScript), 0, 16);
    write32(ORR_R_BOOT_START, 1);
}

std::uint32_t CardRig::boot(std::span<const std::uint8_t> image) {
    start_boot(image);
    settle();
    return read32(ORR_R_BOOT_STATUS);
}

void CardRig::boot_script() {
    ASSERT_EQ(boot(make_image(script_elf())), ORR_BOOT_OK);
    ASSERT_EQ(read32(ORR_R_STATE), ORR_STATE_RUNNING);
}

void CardRig::start(std::vector<script_op> script) {
    script.push_back({OP_END, 0, 0, 0});
    std::memcpy(ram(kScript + 16), script.data(), script.size() * sizeof(script_op));
    write32(ORR_R_MBOX_DOORBELL, 1);
}

std::vector<script_op> CardRig::results(std::size_t count) {
    std::vector<script_op> script(count);
    std::copy_n(reinterpret_cast<const script_op*>(ram(kScript + 16)), count, script.begin());
    return script;
}

std::vector<script_op> CardRig::run(std::vector<script_op> script) {
    const std::size_t count = script.size();
    const std::uint64_t before = word(kScript);
    start(std::move(script));
    settle();
    EXPECT_EQ(word(kScript), before + 1) << "the script did not come to its end";
    return results(count);
}

std::uint64_t CardRig::root(std::uint32_t asid) {
    if (roots_[asid] == 0) {
        next_table_ -= ORR_PAGE_SIZE;
        roots_[asid] = next_table_;
    }
    return roots_[asid];
}

void CardRig::map_page(std::uint32_t asid, std::uint64_t va, std::uint64_t address, std::uint64_t bits) {
    std::uint64_t table = root(asid);
    for (unsigned level = 3;; --level) {
        auto& entry =
            reinterpret_cast<std::uint64_t*>(card_->vram().data() + table)[va >> (12 + 9 * level) & 511];
        if (level == 0) {
            entry = address | bits | ORR_PTE_VALID | ORR_PTE_LEAF;
            return;
        }
        if (entry == 0) {
            next_table_ -= ORR_PAGE_SIZE;
            entry = next_table_ | ORR_PTE_VALID;
        }
        table = entry & ORR_PTE_ADDR_MASK;
    }
}

std::vector<script_op> CardRig::set_root(std::uint32_t asid) {
    return {write(SOC_MMU_ASID, asid), write(SOC_MMU_ARG, root(asid)), write(SOC_MMU_CMD, SOC_MMU_SET_ROOT)};
}

}  // namespace orrery::emu
