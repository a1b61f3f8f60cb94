#include "umd/samples/pipeline/stages.h"

#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.hpp>

#include <array>
#include <memory>

#include "umd/samples/pipeline/kernels.h"

ORR_EMBEDDED_KERNEL(pipeline_kernels);

namespace {

constexpr std::uint32_t kGroups = 8;  // as many as a card has vector cores
constexpr std::size_t kSlots = 2;     // between two stages: one is filled while the other is used
constexpr std::size_t kLayer = std::size_t{kWidth} * kWidth;

// What one stage needs; made with its card as the current device.
struct Stage {
    Stage(int number, std::size_t batch_size, std::size_t slots_before, std::size_t slots_behind)
        : device(number),
          batch(batch_size),
          slots_in(slots_before),
          slots_out(slots_behind),
          weights(kLayer),
          inputs(slots_in * batch),
          outputs(slots_out * batch) {}

    float* in(std::size_t number) const { return inputs.data() + number % slots_in * batch; }
    float* out(std::size_t number) const { return outputs.data() + number % slots_out * batch; }

    int device;
    std::size_t batch, slots_in, slots_out;
    orrery::DeviceArray<float> weights, inputs, outputs;
    orrery::Stream work, outgoing;
    std::array<orrery::Event, kBatches> computed, sent;
};

void compute(const Stage& stage, const Stage* before, bool sends, orrFunction_t layer, std::size_t number) {
    const orrery::DeviceGuard guard(stage.device);
    if (before != nullptr) stage.work.wait(before->sent[number]);                 // the input is there
    if (sends && number >= kSlots) stage.work.wait(stage.sent[number - kSlots]);  // the output is free
    const LayerArgs args{stage.in(number), stage.weights.data(), stage.out(number),
                         static_cast<std::uint32_t>(stage.batch / kWidth), kWidth};
    orrery::launch(layer, {kGroups, 1, 1}, {1, 1, 1}, args, 0, stage.work);
    stage.computed[number].record(stage.work);
}

void send(const Stage& stage, const Stage& next, std::size_t number) {
    const orrery::DeviceGuard guard(stage.device);
    stage.outgoing.wait(stage.computed[number]);
    if (number >= kSlots) stage.outgoing.wait(next.computed[number - kSlots]);  // the place is free
    orrery::copy(next.in(number), stage.out(number), stage.batch * sizeof(float), stage.outgoing);
    stage.sent[number].record(stage.outgoing);
}

}  // namespace

double run_pipeline(std::span<const int> devices, std::span<const float> weights, std::uint32_t rows,
                    std::span<const float> input, std::span<float> output) {
    const orrery::Library library(pipeline_kernels_image());
    std::vector<std::unique_ptr<Stage>> stages;
    std::vector<orrFunction_t> layers;
    for (std::size_t s = 0; s < devices.size(); ++s) {
        const orrery::DeviceGuard guard(devices[s]);
        library.preload();
        layers.push_back(library.function("layer"));
        const bool last = s + 1 == devices.size();
        stages.push_back(std::make_unique<Stage>(devices[s], std::size_t{rows} * kWidth,
                                                 s == 0 ? kBatches : kSlots, last ? kBatches : kSlots));
        orrery::copy(stages[s]->weights.data(), weights.data() + s * kLayer, kLayer * sizeof(float));
        // Data goes on, and word of places that are free back.
        if (s == 0 || devices[s - 1] == devices[s]) continue;
        orrery::enable_peer_access(devices[s - 1], devices[s]);
        orrery::enable_peer_access(devices[s], devices[s - 1]);
    }
    const Stage &first = *stages.front(), &last = *stages.back();
    orrery::copy(first.inputs.data(), input.data(), input.size_bytes());

    // All is in the streams before anything begins: from then on no card needs the host.
    const orrery::DeviceGuard guard(first.device);
    const orrery::Semaphore gate;
    const orrery::Event begin, end;
    first.work.wait(gate, 1);
    begin.record(first.work);
    for (std::size_t number = 0; number < kBatches; ++number) {
        for (std::size_t s = 0; s < stages.size(); ++s) {
            const Stage* const next = s + 1 < stages.size() ? stages[s + 1].get() : nullptr;
            compute(*stages[s], s == 0 ? nullptr : stages[s - 1].get(), next != nullptr, layers[s], number);
            if (next != nullptr) send(*stages[s], *next, number);
        }
    }
    first.work.wait(last.computed[kBatches - 1]);
    end.record(first.work);
    gate.signal(1);
    for (const auto& stage : stages) {
        stage->work.synchronize();
        stage->outgoing.synchronize();
    }
    orrery::copy(output.data(), last.outputs.data(), output.size_bytes());
    return end.model_ns_since(begin);
}
