// What scheduler firmware does all day, as a freestanding program for the interpreter: linked ready queues by
// priority with a bitmap, a timer list, rings with indices, a little hashing. a0 is where it
// starts its pseudo-random numbers, a1 how many rounds it makes before its ebreak.
typedef unsigned long u64;
typedef unsigned int u32;

struct task {
    struct task *next, *prev;
    u64 deadline;
    u64 done;
    u32 priority;
    u32 state;
    u32 credit;
    u32 ring;
};
struct ring {
    u64 producer, consumer;
    u64 entries[64];
};

enum { kTasks = 256, kPriorities = 64, kRings = 32 };

static struct task tasks[kTasks];
static struct task queues[kPriorities];
static struct ring rings[kRings];
static u64 ready;
static u64 random_state;
volatile u64 result;

static u64 random_number(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static u32 lowest_bit(u64 bits) {
    u32 n = 0;
    if ((bits & 0xffffffff) == 0) n += 32, bits >>= 32;
    if ((bits & 0xffff) == 0) n += 16, bits >>= 16;
    if ((bits & 0xff) == 0) n += 8, bits >>= 8;
    if ((bits & 0xf) == 0) n += 4, bits >>= 4;
    if ((bits & 0x3) == 0) n += 2, bits >>= 2;
    return n + ((bits & 1) == 0);
}

static void enqueue(struct task* task) {
    struct task* head = &queues[task->priority];
    task->prev = head->prev;
    task->next = head;
    head->prev->next = task;
    head->prev = task;
    ready |= 1ul << task->priority;
}

static void dequeue(struct task* task) {
    task->prev->next = task->next;
    task->next->prev = task->prev;
    if (queues[task->priority].next == &queues[task->priority]) ready &= ~(1ul << task->priority);
}

static __attribute__((noinline)) struct task* choose(void) {
    if (ready == 0) return 0;
    struct task* head = &queues[lowest_bit(ready)];
    struct task* best = head->next;
    for (struct task* t = best->next; t != head; t = t->next) {
        if (t->deadline < best->deadline && t->credit != 0) best = t;
    }
    return best;
}

static __attribute__((noinline)) void submit(u32 index, u64 value) {
    struct ring* ring = &rings[index];
    if (ring->producer - ring->consumer < 64) ring->entries[ring->producer++ & 63] = value;
}

static __attribute__((noinline)) u64 consume(u32 index, u32 budget) {
    struct ring* ring = &rings[index];
    u64 hash = 0xcbf29ce484222325;
    while (ring->consumer != ring->producer && budget-- != 0) {
        hash = (hash ^ ring->entries[ring->consumer++ & 63]) * 0x100000001b3;
    }
    return hash;
}

__attribute__((noreturn, used)) void schedule(u64 seed, u64 rounds) {
    random_state = seed | 1;
    for (u32 i = 0; i < kPriorities; ++i)
        queues[i].next = queues[i].prev = &queues[i];
    for (u32 i = 0; i < kTasks; ++i) {
        tasks[i].priority = random_number() % kPriorities;
        tasks[i].deadline = random_number() & 0xffff;
        tasks[i].credit = 4;
        tasks[i].ring = i % kRings;
        enqueue(&tasks[i]);
    }
    for (u64 now = 0;; ++now) {
        if (now == rounds) __asm__ volatile("ebreak");
        struct task* task = choose();
        if (task == 0) continue;
        dequeue(task);
        const u64 r = random_number();
        submit(task->ring, r);
        if (task->credit-- == 0) {
            task->credit = 4;
            task->priority = r % kPriorities;
            result += consume(task->ring, 8);
        }
        task->deadline = now + (r >> 48);
        ++task->done;
        enqueue(task);
    }
}

__asm__(
    ".section .text.start, \"ax\"\n"
    ".globl _start\n"
    "_start: la sp, stack_top\n"
    "tail schedule\n"
    ".bss\n"
    ".balign 16\n"
    ".skip 4096\n"
    "stack_top:\n");
