// Graphs and their memory, on a GPU or the stand-in for its driver.
#include "flambeau/runtime/cuda/graph.h"

#include <gtest/gtest.h>

#include <thread>

#include "flambeau/ops/functions.h"
#include "flambeau/runtime/cuda/runtime.h"
#include "flambeau/runtime/device_runtime.h"

namespace fl::runtime::cuda {
namespace {

class GpuGraph : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << library::cuda::why_no_driver();
    before_ = current_stream(0);
    stream_ = pooled_stream(0);
    set_current_stream(stream_);
  }
  void TearDown() override {
    if (device_count() == 0) return;
    set_current_stream(before_);
    synchronize(0);
  }
  static Tensor filled(int64_t size, double value) {
    return full({SymInt(size)}, value, DType::Float32, Device{DeviceType::CUDA, 0});
  }
  static float first(const Tensor& t) {
    float out = 0;
    device_allocator(0).copy(&out, t.data(), sizeof(out));
    return out;
  }

  Stream before_, stream_;
};

TEST_F(GpuGraph, RunsWhatWasRecorded) {
  const Tensor x = filled(4, 1);
  Tensor y = add(x, 1);  // compiled before
  Graph g(0);
  g.begin(stream_, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(recording(), &g);
  y = add(x, 1);
  EXPECT_EQ(g.launch_count(), 1);
  g.end();
  EXPECT_EQ(recording(), nullptr);
  EXPECT_EQ(g.node_count(), 1u);
  fill.in_place(x, 5);
  g.launch(stream_);
  EXPECT_EQ(first(y), 6);
}

TEST_F(GpuGraph, KernelsThatAreFirstNeededWhileRecordingAreLoaded) {
  const Tensor x = filled(7, 2);
  Graph g(0);
  g.begin(stream_, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
  const Tensor y = atan(cosh(x));
  g.end();
  g.launch(stream_);
  EXPECT_NEAR(first(y), std::atan(std::cosh(2.0f)), 1e-6);
}

TEST_F(GpuGraph, MemoryStaysWithTheGraph) {
  const Tensor x = filled(1 << 18, 1);
  {
    Graph g(0);
    g.begin(stream_, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
    Tensor y = add(x, 1);
    void* const taken = y.data();
    y = Tensor();
    const Tensor inside = add(x, 2);
    EXPECT_EQ(inside.data(), taken);  // again in the same graph
    g.end();
    const Tensor outside = filled(1 << 18, 3);
    EXPECT_NE(outside.data(), taken);
    device_allocator(0).empty_cache();  // keeps what graphs use
    g.launch(stream_);
    EXPECT_EQ(first(inside), 3);
    EXPECT_EQ(first(outside), 3);
  }
  const int64_t before = device_allocator(0).stats().reserved;
  device_allocator(0).empty_cache();
  EXPECT_LT(device_allocator(0).stats().reserved, before);
}

TEST_F(GpuGraph, WhatWasSpoiltLeavesNothingBehind) {
  const Tensor x = filled(4, 1);
  Graph g(0);
  g.begin(stream_, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
  // Past this library's own checks.
  EXPECT_NE(library::cuda::driver().cuStreamSynchronize(stream_.handle), CUDA_SUCCESS);
  EXPECT_THROW(g.end(), RuntimeError);
  EXPECT_FALSE(g.is_recorded());
  EXPECT_THROW(g.launch(stream_), RuntimeError);
  EXPECT_EQ(first(add(x, 1)), 2);
  g.begin(stream_, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
  g.abandon();
  EXPECT_EQ(first(add(x, 1)), 2);
}

TEST_F(GpuGraph, AnotherThreadsMemoryIsNoneOfIt) {
  Graph g(0);
  g.begin(stream_, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  const Tensor mine = filled(4, 1);
  std::thread([&] {
    set_current_stream(pooled_stream(0));
    const Tensor theirs = filled(4, 2);
    EXPECT_EQ(first(theirs), 2);
  }).join();
  g.end();
  g.launch(stream_);
  EXPECT_EQ(first(mine), 1);
}

TEST_F(GpuGraph, DrawsMoveTheGeneratorOn) {
  const Device device{DeviceType::CUDA, 0};
  Generator& generator = *default_generator(device);
  generator.manual_seed(3);
  Graph g(0);
  g.begin(stream_, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
  const Tensor a = rand(IntList{SymInt(5)}, nullptr, DType::Float32, device);
  const Tensor b = rand(IntList{SymInt(6)}, nullptr, DType::Float32, device);
  EXPECT_EQ(generator.offset(), 0);
  g.end();
  g.launch(stream_);
  EXPECT_EQ(generator.offset(), 11);
  g.launch(stream_);
  const float second = first(b);
  generator.set_offset(11 + 5);
  EXPECT_EQ(second, first(rand(IntList{SymInt(6)}, nullptr, DType::Float32, device)));
}

TEST_F(GpuGraph, ProgramsRecordedByTheLibraryAllowWaitsElsewhere) {
  const Tensor x = filled(4, 1);
  Tensor y;
  std::atomic<bool> recorded{false};
  std::thread waits;
  auto r = runtime_of(x.device()).record(x.device(), [&](const Recording& recording) {
    y = add(x, 1);
    EXPECT_EQ(recording.launch_count(), 1);
    waits = std::thread([&] {
      synchronize(0);  // after the recording
      EXPECT_TRUE(recorded);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    recorded = true;
  });
  waits.join();
  EXPECT_TRUE(r->is_current());
  r->run({});
  EXPECT_EQ(first(y), 2);
  set_current_stream(pooled_stream(0));
  EXPECT_FALSE(r->is_current());
  set_current_stream(stream_);
  EXPECT_THROW(
      runtime_of(x.device()).record(x.device(), [&](const Recording&) { synchronize(current_stream(0)); }),
      RuntimeError);
  r->run({});
  EXPECT_EQ(first(y), 2);
}

}  // namespace
}  // namespace fl::runtime::cuda
