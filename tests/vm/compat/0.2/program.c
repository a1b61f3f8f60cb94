/*
 * A program of release 0.2 as it was built then: `program` and `kernels.elf` beside this file are kept as they are
 * and run on every later library (make.sh says how they were made). It is bound to every function of 0.2, uses
 * each family of the API, and ends with 0 if all is as it was. Without a card it does what needs none.
 */
#include <orrery/graph.h>
#include <orrery/orrery.h>
#include <orrery/task.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION(name) (void (*)(void))(name),
static void (*const functions[])(void) = {
#include "functions.inc"
};

#define CHECK(call)                                                                                    \
    do {                                                                                               \
        orrError_t code_ = (call);                                                                     \
        if (code_ != orrSuccess) {                                                                     \
            printf("%s: %s: %s\n", #call, orrGetErrorName(code_), orrGetLastErrorText());              \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (0)
#define EXPECT(what)                                         \
    do {                                                     \
        if (!(what)) {                                       \
            printf("%d: not so: %s\n", __LINE__, #what);     \
            exit(1);                                         \
        }                                                    \
    } while (0)

enum { kCount = 1000 };
struct Args {
    uint32_t* words;
    uint32_t count, add;
};
static const orrDim3 kGrid = {4, 1, 1}, kBlock = {256, 1, 1};

static void* image;
static size_t image_bytes;

static void read_image(const char* path) {
    FILE* file = fopen(path, "rb");
    EXPECT(file != NULL);
    image = malloc(1 << 20);
    image_bytes = fread(image, 1, 1 << 20, file);
    fclose(file);
}

static uint32_t expected(uint32_t i, uint32_t start, uint32_t add, uint32_t times) {
    return start + times * (add + i / 256);
}

static void without_a_card(void) {
    uint32_t version = 0;
    CHECK(orrGetVersion(&version));
    EXPECT(version >= ORR_VERSION);
    CHECK(orrModuleCheckData(image, image_bytes));
    EXPECT(strcmp(orrGetErrorName(orrErrorAbandoned), "orrErrorAbandoned") == 0);
    EXPECT(orrEventQuery((orrEvent_t)(uintptr_t)7) != orrSuccess);
    EXPECT(strlen(orrGetLastErrorText()) > 0);
}

static void devices(void) {
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    CHECK(orrGetDeviceProperties(&prop, 0));
    EXPECT(prop.vector_cores > 0 && prop.vram_bytes > 0 && prop.state == orrDeviceStateRunning);
    orrDeviceVersion below = ORR_INIT(orrDeviceVersion);
    CHECK(orrDeviceGetVersion(&below, 0));
    EXPECT(below.driver != 0 && below.firmware != 0);
    orrCounter_t counter = 0;
    uint64_t value = 0;
    CHECK(orrDeviceFindCounter(&counter, 0, "doorbells"));
    CHECK(orrDeviceReadCounters(&value, 0, &counter, 1));
}

static void streams(void) {
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.name = "compat";
    attributes.priority = 1;
    orrStream_t stream, other;
    CHECK(orrStreamCreateWithAttributes(&stream, &attributes));
    CHECK(orrStreamCreate(&other, orrStreamNonBlocking));
    orrModule_t module;
    orrFunction_t add;
    CHECK(orrModuleLoadData(&module, image, image_bytes));
    CHECK(orrModuleGetFunction(&add, module, "add"));
    void *words, *pinned;
    CHECK(orrMalloc(&words, kCount * 4));
    CHECK(orrMallocHost(&pinned, kCount * 4, 0));
    orrEvent_t start, end;
    CHECK(orrEventCreate(&start, orrEventDefault));
    CHECK(orrEventCreate(&end, orrEventDefault));
    orrSemaphore_t semaphore;
    CHECK(orrSemaphoreCreate(&semaphore, 0));

    struct Args args = {words, kCount, 5};
    CHECK(orrMemsetAsync(words, 0, kCount * 4, stream));
    CHECK(orrEventRecord(start, stream));
    CHECK(orrLaunchKernel(add, kGrid, kBlock, &args, sizeof(args), 0, stream));
    CHECK(orrEventRecord(end, stream));
    orrWaitOptions options = ORR_INIT(orrWaitOptions);
    options.limit_ns = 1000000000;
    CHECK(orrStreamWaitEvent(other, end, &options));
    CHECK(orrLaunchKernel(add, kGrid, kBlock, &args, sizeof(args), 0, other));
    CHECK(orrMemcpyAsync(pinned, words, kCount * 4, orrMemcpyDeviceToHost, other));
    CHECK(orrStreamSignalSemaphore(other, semaphore, 3));
    CHECK(orrSemaphoreWait(semaphore, 3, ORR_NO_LIMIT));
    CHECK(orrStreamSynchronize(other));
    for (uint32_t i = 0; i < kCount; ++i)
        EXPECT(((uint32_t*)pinned)[i] == expected(i, 0, 5, 2));
    double ns = 0;
    CHECK(orrEventElapsedModelTime(&ns, start, end));
    EXPECT(ns > 0);
    orrStreamStats stats = ORR_INIT(orrStreamStats);
    CHECK(orrStreamGetStats(&stats, stream));
    EXPECT(stats.jobs >= 2);

    orrGraph_t graph;
    orrGraphExec_t exec;
    orrKernelNodeParams params = ORR_INIT(orrKernelNodeParams);
    params.function = add;
    params.grid = kGrid;
    params.block = kBlock;
    params.args = &args;
    params.bytes = sizeof(args);
    CHECK(orrGraphCreate(&graph, 0));
    CHECK(orrGraphAddKernelNode(NULL, graph, NULL, 0, &params));
    CHECK(orrGraphInstantiate(&exec, graph, 0));
    CHECK(orrGraphLaunch(exec, stream));
    CHECK(orrStreamSynchronize(stream));
    CHECK(orrMemcpy(pinned, words, kCount * 4, orrMemcpyDefault));
    EXPECT(((uint32_t*)pinned)[999] == expected(999, 0, 5, 3));
    orrGraphExecInfo info = ORR_INIT(orrGraphExecInfo);
    CHECK(orrGraphExecGetInfo(&info, exec));
    EXPECT(info.nodes == 1 && info.launches == 1);

    CHECK(orrGraphExecDestroy(exec));
    CHECK(orrGraphDestroy(graph));
    CHECK(orrSemaphoreDestroy(semaphore));
    CHECK(orrEventDestroy(start));
    CHECK(orrEventDestroy(end));
    CHECK(orrFreeHost(pinned));
    CHECK(orrFree(words));
    CHECK(orrModuleUnload(module));
    CHECK(orrStreamDestroy(other));
    CHECK(orrStreamDestroy(stream));
    EXPECT(orrStreamQuery(stream) == orrErrorInvalidHandle);
}

static void tasks(void) {
    orrTaskGraph_t graph;
    orrTaskData_t data;
    orrTaskKernel_t kernel;
    uint32_t words[kCount];
    for (uint32_t i = 0; i < kCount; ++i)
        words[i] = i;
    CHECK(orrTaskGraphCreate(&graph, NULL));
    CHECK(orrTaskDataCreate(&data, graph, words, sizeof(words)));
    CHECK(orrTaskKernelCreate(&kernel, graph, image, image_bytes, "add"));
    struct Args args = {NULL, kCount, 2};
    orrTaskAccess access = {data, orrTaskAccessReadWrite, 0, offsetof(struct Args, words), 0};
    orrTaskDesc desc = ORR_INIT(orrTaskDesc);
    desc.kernel = kernel;
    desc.grid = kGrid;
    desc.block = kBlock;
    desc.args = &args;
    desc.bytes = sizeof(args);
    desc.accesses = &access;
    desc.access_count = 1;
    orrTask_t task;
    CHECK(orrTaskSubmit(&task, graph, &desc));
    CHECK(orrTaskGraphWait(graph));
    orrTaskInfo info = ORR_INIT(orrTaskInfo);
    CHECK(orrTaskGetInfo(&info, graph, task));
    EXPECT(info.state == orrTaskStateDone && info.end_ns > info.start_ns);
    CHECK(orrTaskDataRead(words, data, sizeof(words)));
    for (uint32_t i = 0; i < kCount; ++i)
        EXPECT(words[i] == expected(i, i, 2, 1));
    CHECK(orrTaskGraphDestroy(graph));
}

int main(int argc, char** argv) {
    EXPECT(argc == 2);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
        EXPECT(functions[i] != NULL);
    read_image(argv[1]);
    without_a_card();
    int count = 0;
    if (orrGetDeviceCount(&count) != orrSuccess || count == 0) {
        printf("program of 0.2: right, as far as it goes without a card\n");
        return 0;
    }
    devices();
    streams();
    tasks();
    printf("program of 0.2: right\n");
    return 0;
}
