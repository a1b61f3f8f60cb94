/*
 * Runs in qemu-riscv64 and in our interpreter (qemu_test.cc): reads a seed and a count from standard input,
 * executes that many random FP instructions and word atomics on operands that hurt, in all rounding modes,
 * and writes one record each.
 */
typedef unsigned long u64;
typedef unsigned int u32;

struct record {
    u64 op, a, b, c, result, state; /* state: frm << 8 | fflags; of atomics the memory after it */
};

static struct record records[512];
static u64 word[2] __attribute__((aligned(16)));

static u64 system_call(u64 number, u64 x, u64 y, u64 z) {
    register u64 a0 __asm__("a0") = x;
    register u64 a1 __asm__("a1") = y;
    register u64 a2 __asm__("a2") = z;
    register u64 a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

static u64 random_state;
static u64 random_number(void) {
    random_state += 0x9e3779b97f4a7c15;
    u64 z = random_state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static u64 edge_double(u64 r) {
    static const u64 edges[] = {0,
                                0x8000000000000000,
                                0x3ff0000000000000,
                                0xbff0000000000000,
                                0x7ff0000000000000,
                                0xfff0000000000000,
                                0x7ff8000000000000,
                                0xfff8000000000001,
                                0x7ff0000000000001,
                                0xfff7ffffffffffff,
                                1,
                                0x800fffffffffffff,
                                0x0010000000000000,
                                0x7fefffffffffffff,
                                0x43e0000000000000,
                                0xc3e0000000000000,
                                0x41e0000000000000,
                                0x3fe0000000000000,
                                0x3810000000000000,
                                0x36a0000000000000,
                                0x47efffffe0000000,
                                0x47effffff0000000};
    return edges[r % (sizeof edges / sizeof edges[0])];
}
static u32 edge_float(u64 r) {
    static const u32 edges[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                                0x7fc00000, 0xffc00001, 0x7f800001, 0xffbfffff, 1,          0x807fffff,
                                0x00800000, 0x7f7fffff, 0x4f000000, 0xcf000000, 0x5f000000, 0x3f000000};
    return edges[r % (sizeof edges / sizeof edges[0])];
}

/* A double, a boxed single, a badly boxed single, or an integer: instructions take what they find. */
static u64 operand(int single) {
    const u64 r = random_number();
    const u64 s = random_number();
    u64 value;
    if (single) {
        value = r & 3 ? (r & 4 ? edge_float(s) : (u32)s) : ((s & 0x807fffff) | (123 + (s >> 40) % 8) << 23);
        if (r % 61 == 0) return s << 32 | value;
        return 0xffffffff00000000 | value;
    }
    value = r & 3 ? (r & 4 ? edge_double(s) : s) : ((s & 0x800fffffffffffff) | (1019 + (r >> 8) % 8) << 52);
    return value;
}

#define IN "fmv.d.x ft0, %1\n fmv.d.x ft1, %2\n fmv.d.x ft2, %3\n"
#define TO_FP(text)                                 \
    __asm__ volatile(IN text "\n fmv.x.d %0, ft3"   \
                     : "=&r"(result)                \
                     : "r"(a), "r"(b), "r"(c)       \
                     : "ft0", "ft1", "ft2", "ft3"); \
    break
#define TO_INT(text)                                                                                 \
    __asm__ volatile(IN text : "=&r"(result) : "r"(a), "r"(b), "r"(c) : "ft0", "ft1", "ft2", "ft3"); \
    break
#define AMO(text)                                                                          \
    word[0] = a;                                                                           \
    word[1] = c;                                                                           \
    __asm__ volatile(text " %0, %1, (%2)" : "=&r"(result) : "r"(b), "r"(word) : "memory"); \
    break

enum { kOps = 104, kFirstAmo = 96 };
static int takes_singles(u64 op) {
    return op < 48;
}

static u64 execute(u64 op, u64 a, u64 b, u64 c) {
    u64 result = 0;
    switch (op) {
        case 0:
            TO_FP("fadd.s ft3, ft0, ft1");
        case 1:
            TO_FP("fsub.s ft3, ft0, ft1");
        case 2:
            TO_FP("fmul.s ft3, ft0, ft1");
        case 3:
            TO_FP("fdiv.s ft3, ft0, ft1");
        case 4:
            TO_FP("fsqrt.s ft3, ft0");
        case 5:
            TO_FP("fmadd.s ft3, ft0, ft1, ft2");
        case 6:
            TO_FP("fmsub.s ft3, ft0, ft1, ft2");
        case 7:
            TO_FP("fnmsub.s ft3, ft0, ft1, ft2");
        case 8:
            TO_FP("fnmadd.s ft3, ft0, ft1, ft2");
        case 9:
            TO_FP("fsgnj.s ft3, ft0, ft1");
        case 10:
            TO_FP("fsgnjn.s ft3, ft0, ft1");
        case 11:
            TO_FP("fsgnjx.s ft3, ft0, ft1");
        case 12:
            TO_FP("fmin.s ft3, ft0, ft1");
        case 13:
            TO_FP("fmax.s ft3, ft0, ft1");
        case 14:
            TO_INT("feq.s %0, ft0, ft1");
        case 15:
            TO_INT("flt.s %0, ft0, ft1");
        case 16:
            TO_INT("fle.s %0, ft0, ft1");
        case 17:
            TO_INT("fclass.s %0, ft0");
        case 18:
            TO_INT("fcvt.w.s %0, ft0, dyn");
        case 19:
            TO_INT("fcvt.wu.s %0, ft0, dyn");
        case 20:
            TO_INT("fcvt.l.s %0, ft0, dyn");
        case 21:
            TO_INT("fcvt.lu.s %0, ft0, dyn");
        case 22:
            TO_FP("fcvt.s.w ft3, %1, dyn");
        case 23:
            TO_FP("fcvt.s.wu ft3, %1, dyn");
        case 24:
            TO_FP("fcvt.s.l ft3, %1, dyn");
        case 25:
            TO_FP("fcvt.s.lu ft3, %1, dyn");
        case 26:
            TO_FP("fcvt.d.s ft3, ft0");
        case 27:
            TO_INT("fmv.x.w %0, ft0");
        case 28:
            TO_FP("fmv.w.x ft3, %1");
        case 29:
            TO_FP("fadd.s ft3, ft0, ft1, rne");
        case 30:
            TO_FP("fadd.s ft3, ft0, ft1, rmm");
        case 31:
            TO_FP("fmul.s ft3, ft0, ft1, rtz");
        case 32:
            TO_FP("fdiv.s ft3, ft0, ft1, rdn");
        case 33:
            TO_FP("fsqrt.s ft3, ft0, rup");
        case 34:
            TO_FP("fmadd.s ft3, ft0, ft1, ft2, rne");
        case 35:
            TO_FP("fnmadd.s ft3, ft0, ft1, ft2, rmm");
        case 36:
            TO_INT("fcvt.w.s %0, ft0, rtz");
        case 37:
            TO_INT("fcvt.wu.s %0, ft0, rtz");
        case 38:
            TO_INT("fcvt.l.s %0, ft0, rtz");
        case 39:
            TO_INT("fcvt.lu.s %0, ft0, rtz");
        case 40:
            TO_FP("fcvt.s.l ft3, %1, rne");
        case 41:
            TO_FP("fcvt.s.lu ft3, %1, rne");
        case 42:
            TO_FP("fsub.s ft3, ft0, ft0, rdn");
        case 43:
            TO_FP("fdiv.s ft3, ft0, ft1, rne");
        case 44:
            TO_FP("fsqrt.s ft3, ft0, rne");
        case 45:
            TO_FP("fmul.s ft3, ft0, ft1, rne");
        case 46:
            TO_FP("fmsub.s ft3, ft0, ft1, ft2, rne");
        case 47:
            TO_FP("fnmsub.s ft3, ft0, ft1, ft2, rne");
        case 48:
            TO_FP("fadd.d ft3, ft0, ft1");
        case 49:
            TO_FP("fsub.d ft3, ft0, ft1");
        case 50:
            TO_FP("fmul.d ft3, ft0, ft1");
        case 51:
            TO_FP("fdiv.d ft3, ft0, ft1");
        case 52:
            TO_FP("fsqrt.d ft3, ft0");
        case 53:
            TO_FP("fmadd.d ft3, ft0, ft1, ft2");
        case 54:
            TO_FP("fmsub.d ft3, ft0, ft1, ft2");
        case 55:
            TO_FP("fnmsub.d ft3, ft0, ft1, ft2");
        case 56:
            TO_FP("fnmadd.d ft3, ft0, ft1, ft2");
        case 57:
            TO_FP("fsgnj.d ft3, ft0, ft1");
        case 58:
            TO_FP("fsgnjn.d ft3, ft0, ft1");
        case 59:
            TO_FP("fsgnjx.d ft3, ft0, ft1");
        case 60:
            TO_FP("fmin.d ft3, ft0, ft1");
        case 61:
            TO_FP("fmax.d ft3, ft0, ft1");
        case 62:
            TO_INT("feq.d %0, ft0, ft1");
        case 63:
            TO_INT("flt.d %0, ft0, ft1");
        case 64:
            TO_INT("fle.d %0, ft0, ft1");
        case 65:
            TO_INT("fclass.d %0, ft0");
        case 66:
            TO_INT("fcvt.w.d %0, ft0, dyn");
        case 67:
            TO_INT("fcvt.wu.d %0, ft0, dyn");
        case 68:
            TO_INT("fcvt.l.d %0, ft0, dyn");
        case 69:
            TO_INT("fcvt.lu.d %0, ft0, dyn");
        case 70:
            TO_FP("fcvt.d.w ft3, %1");
        case 71:
            TO_FP("fcvt.d.wu ft3, %1");
        case 72:
            TO_FP("fcvt.d.l ft3, %1, dyn");
        case 73:
            TO_FP("fcvt.d.lu ft3, %1, dyn");
        case 74:
            TO_FP("fcvt.s.d ft3, ft0");
        case 75:
            TO_INT("fmv.x.d %0, ft0");
        case 76:
            TO_FP("fmv.d.x ft3, %1");
        case 77:
            TO_FP("fadd.d ft3, ft0, ft1, rne");
        case 78:
            TO_FP("fadd.d ft3, ft0, ft1, rmm");
        case 79:
            TO_FP("fmul.d ft3, ft0, ft1, rtz");
        case 80:
            TO_FP("fdiv.d ft3, ft0, ft1, rdn");
        case 81:
            TO_FP("fsqrt.d ft3, ft0, rup");
        case 82:
            TO_FP("fmadd.d ft3, ft0, ft1, ft2, rne");
        case 83:
            TO_FP("fnmadd.d ft3, ft0, ft1, ft2, rmm");
        case 84:
            TO_INT("fcvt.w.d %0, ft0, rtz");
        case 85:
            TO_INT("fcvt.wu.d %0, ft0, rtz");
        case 86:
            TO_INT("fcvt.l.d %0, ft0, rtz");
        case 87:
            TO_INT("fcvt.lu.d %0, ft0, rtz");
        case 88:
            TO_FP("fcvt.d.l ft3, %1, rne");
        case 89:
            TO_FP("fcvt.d.lu ft3, %1, rne");
        case 90:
            TO_FP("fcvt.s.d ft3, ft0, rne");
        case 91:
            TO_FP("fdiv.d ft3, ft0, ft1, rne");
        case 92:
            TO_FP("fsqrt.d ft3, ft0, rne");
        case 93:
            TO_FP("fmul.d ft3, ft0, ft1, rne");
        case 94:
            TO_FP("fmsub.d ft3, ft0, ft1, ft2, rne");
        case 95:
            TO_FP("fnmsub.d ft3, ft0, ft1, ft2, rne");
        case 96:
            AMO("amomin.w");
        case 97:
            AMO("amomax.w");
        case 98:
            AMO("amominu.w");
        case 99:
            AMO("amomaxu.w");
        case 100:
            AMO("amomin.d");
        case 101:
            AMO("amomax.d");
        case 102:
            AMO("amominu.d");
        case 103:
            AMO("amomaxu.d");
        default:
            break;
    }
    return result;
}

__attribute__((noreturn, used)) void guest_main(void) {
    u64 input[2] = {0, 0};
    system_call(63, 0, (u64)input, sizeof input);
    random_state = input[0];
    u64 used = 0;
    for (u64 i = 0; i < input[1]; ++i) {
        struct record* r = &records[used];
        r->op = random_number() % kOps;
        const int single = takes_singles(r->op);
        r->a = operand(single);
        r->b = operand(single);
        r->c = operand(single);
        const u64 mode = random_number() % 5;
        __asm__ volatile("csrw frm, %0\n csrw fflags, zero" : : "r"(mode));
        r->result = execute(r->op, r->a, r->b, r->c);
        __asm__ volatile("csrr %0, fcsr" : "=r"(r->state));
        if (r->op >= kFirstAmo) r->state = word[0];
        if (++used == sizeof records / sizeof records[0] || i + 1 == input[1]) {
            system_call(64, 1, (u64)records, used * sizeof records[0]);
            used = 0;
        }
    }
    for (;;)
        system_call(93, 0, 0, 0);
}

__asm__(".globl _start\n_start: tail guest_main\n");
