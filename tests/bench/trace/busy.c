// Firmware that never sleeps: pseudo-random updates of 256 KiB of SRAM, and now and then an access to a register
// or a record for the trace port, about as often as a scheduler under full load.
typedef unsigned long u64;

#define SOC 0x10000000ul
#define REG(offset) (*(volatile u64*)(SOC + (offset)))
#define SOC_TIME 0x200
#define SOC_IRQ_PENDING 0x100
#define SOC_TRACE 0x700

static u64* const table = (u64*)0x80020000ul;
enum { kWords = 32768 };

__attribute__((section(".start"), noreturn)) void _start(void) {
    __asm__ volatile("li sp, 0x8007fff0");
    u64 random = 88172645463325252ul;
    u64 sum = 0;
    for (u64 round = 0;; ++round) {
        for (int i = 0; i < 4; ++i) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            sum += table[random % kWords];
            table[(random >> 20) % kWords] = sum ^ round;
        }
        sum += REG(round % 2 != 0 ? SOC_TIME : SOC_IRQ_PENDING);
        if (round % 16 == 0) {
            REG(SOC_TRACE) = 1 | 2 << 8;
            REG(SOC_TRACE) = round;
            REG(SOC_TRACE) = sum;
        }
    }
}
