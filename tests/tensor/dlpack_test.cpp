#include "flambeau/tensor/dlpack.h"

#include <gtest/gtest.h>

namespace fl::dlpack {
namespace {

Tensor strided() {
  const Tensor base = tensor_from<float>({0, 1, 2, 3, 4, 5, 6, 7}, {8});
  return Tensor({{2, 3}, {1, 2}, DType::Float32, {}, 1}, base.storage());
}

TEST(DLPack, DescribesTheTensor) {
  const Tensor t = strided();
  DLManagedTensor* m = to_dlpack(t);
  EXPECT_EQ(m->tensor.data, t.data());
  EXPECT_EQ(m->tensor.ndim, 2);
  EXPECT_EQ(m->tensor.shape[1], 3);
  EXPECT_EQ(m->tensor.strides[1], 2);
  EXPECT_EQ(m->tensor.device.kind, DeviceKind::Cpu);
  EXPECT_EQ(m->tensor.dtype.code, TypeCode::Float);
  EXPECT_EQ(m->tensor.dtype.bits, 32);
  EXPECT_EQ(m->tensor.dtype.lanes, 1);
  m->deleter(m);
}

TEST(DLPack, KeepsTheStorageUntilDeleted) {
  Tensor t = strided();
  const Ref<Storage> storage = t.storage();
  DLManagedTensorVersioned* m = to_dlpack_versioned(t, kReadOnly);
  t = {};
  EXPECT_EQ(storage->use_count(), 2);
  EXPECT_EQ(m->version.major, 1u);
  EXPECT_EQ(m->flags, kReadOnly);
  m->deleter(m);
  EXPECT_EQ(storage->use_count(), 1);
}

TEST(DLPack, RoundTripSharesMemory) {
  const Tensor t = strided();
  const int64_t users = t.storage()->use_count();
  {
    const Tensor a = from_dlpack(to_dlpack(t)), b = from_dlpack(to_dlpack_versioned(t));
    for (const Tensor& back : {a, b}) {
      EXPECT_EQ(back.data(), t.data());
      EXPECT_EQ(back.to_vector<float>(), (std::vector<float>{1, 3, 5, 2, 4, 6}));
      EXPECT_EQ(back.offset().expect_int(), 0);
    }
    a.data_as<float>()[0] = 9;
    EXPECT_EQ(t.to_vector<float>()[0], 9);
  }
  EXPECT_EQ(t.storage()->use_count(), users);
}

TEST(DLPack, EveryDtypeHasAType) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    EXPECT_EQ(dtype_of(data_type(dtype)), dtype);
    EXPECT_EQ(from_dlpack(to_dlpack(empty_tensor({2, 0, 3}, dtype))).dtype(), dtype);
  }
}

/// What another library hands over: row-major without strides, with a byte offset.
struct Foreign {
  float values[4] = {7, 1, 2, 3};
  int64_t shape[1] = {3};
  int64_t strides[1] = {1};
  int deleted = 0;
  DLManagedTensor managed{{values, {DeviceKind::Cpu, 0}, 1, {TypeCode::Float, 32, 1}, shape, nullptr, 4},
                          this,
                          [](auto* self) { static_cast<Foreign*>(self->context)->deleted++; }};
};

TEST(DLPack, ForeignTensorIsDeletedWithItsLastUser) {
  Foreign f;
  {
    const Tensor t = from_dlpack(&f.managed);
    const Tensor other(t.spec(), t.storage());
    EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(f.deleted, 0);
  }
  EXPECT_EQ(f.deleted, 1);
  f.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&f.managed).numel().expect_int(), 3);
}

template <class E>
void refused(void (*change)(Foreign& f)) {
  Foreign f;
  change(f);
  EXPECT_THROW(from_dlpack(&f.managed), E);
  EXPECT_EQ(f.deleted, 0);  // Still the caller's.
}

TEST(DLPack, RefusesWhatCannotBeATensor) {
  refused<NotImplementedError>([](Foreign& f) { f.managed.tensor.dtype.lanes = 4; });
  refused<NotImplementedError>([](Foreign& f) { f.managed.tensor.dtype.bits = 24; });
  refused<NotImplementedError>([](Foreign& f) { f.managed.tensor.dtype.code = TypeCode::OpaqueHandle; });
  refused<NotImplementedError>([](Foreign& f) { f.managed.tensor.device.kind = static_cast<DeviceKind>(8); });
  refused<ValueError>([](Foreign& f) { f.managed.tensor.ndim = -1; });
  refused<ValueError>([](Foreign& f) { f.managed.tensor.shape = nullptr; });
  refused<ValueError>([](Foreign& f) { f.managed.tensor.data = nullptr; });
  refused<ValueError>([](Foreign& f) { f.shape[0] = -3; });
  refused<ValueError>([](Foreign& f) {
    f.strides[0] = -1;
    f.managed.tensor.strides = f.strides;
  });
  refused<RuntimeError>([](Foreign& f) { f.shape[0] = INT64_MAX; });
  refused<ValueError>([](Foreign& f) { f.managed.tensor.device = {DeviceKind::Cuda, 1000}; });
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), ValueError);
  DLManagedTensorVersioned* newer = to_dlpack_versioned(strided());
  newer->version.major = 2;
  EXPECT_THROW(from_dlpack(newer), NotImplementedError);
  newer->deleter(newer);
}

TEST(DLPack, RefusesTensorsWithoutData) {
  EXPECT_THROW(to_dlpack(empty_tensor({2}, DType::Float32, {DeviceType::Meta})), RuntimeError);
  EXPECT_THROW(to_dlpack(Tensor()), RuntimeError);
  EXPECT_THROW(device_of(Device{DeviceType::Meta}), NotImplementedError);
}

TEST(DLPack, DevicesMap) {
  EXPECT_EQ(device_of(device_of(Device{DeviceType::CUDA, 3})), (Device{DeviceType::CUDA, 3}));
  EXPECT_EQ(device_of(DLDevice{DeviceKind::CudaHost, 2}), Device{});
}

}  // namespace
}  // namespace fl::dlpack
