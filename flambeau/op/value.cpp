#include "flambeau/op/value.h"

#include "flambeau/base/error.h"
#include "flambeau/tensor/generator.h"

namespace fl {

Value::Value(const Tensor& t) : tag_(t.defined() ? Tag::Tensor : Tag::None), raw_(0) {
  if (t.defined()) counted_ = Ref<TensorImpl>(t.ref()).leak();
}
Value::Value(Tensor&& t) : Value(static_cast<const Tensor&>(t)) {}
Value::Value(std::vector<Tensor> list) : tag_(Tag::TensorList) {
  counted_ = make_ref<Box<std::vector<Tensor>>>(std::move(list)).leak();
}
Value::Value(IntList list) : tag_(Tag::IntList) {
  counted_ = make_ref<Box<Sizes>>(Sizes(list.begin(), list.end())).leak();
}
Value::Value(std::vector<double> list) : tag_(Tag::FloatList) {
  counted_ = make_ref<Box<std::vector<double>>>(std::move(list)).leak();
}
Value::Value(std::vector<bool> list) : tag_(Tag::BoolList) {
  counted_ = make_ref<Box<std::vector<bool>>>(std::move(list)).leak();
}
Value::Value(std::vector<GraphRef> list) : tag_(Tag::GraphRefList) {
  counted_ = make_ref<Box<std::vector<GraphRef>>>(std::move(list)).leak();
}
Value::Value(std::string_view s) : tag_(Tag::Str) {
  counted_ = make_ref<Box<std::string>>(std::string(s)).leak();
}
Value::Value(Generator* g) : tag_(g ? Tag::Generator : Tag::None), raw_(0) {
  if (g) counted_ = Ref<Generator>(g).leak();
}
Value::Value(const Scalar& s) : tag_(Tag::None), raw_(0) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      tag_ = Tag::Bool;
      raw_ = s.to_bool();
      break;
    case Scalar::Kind::Int:
      tag_ = Tag::Int;
      raw_ = s.sym_int().raw();
      break;
    case Scalar::Kind::Float:
      tag_ = Tag::Float;
      double_ = s.to_double();
      break;
    case Scalar::Kind::Complex:
      tag_ = Tag::Complex;
      counted_ = make_ref<Box<std::complex<double>>>(s.to_complex()).leak();
  }
}

bool Value::owns() const {
  switch (tag_) {
    case Tag::Tensor:
    case Tag::TensorList:
    case Tag::IntList:
    case Tag::FloatList:
    case Tag::BoolList:
    case Tag::Complex:
    case Tag::Str:
    case Tag::Generator:
    case Tag::GraphRefList:
      return true;
    default:
      return false;
  }
}

Value::Value(const Value& o) : tag_(o.tag_), raw_(o.raw_) {
  if (owns()) counted_->retain();
}
void Value::release() { counted_->release(); }

std::string_view name(Value::Tag tag) {
  static constexpr std::string_view kNames[] = {
      "None",    "Tensor",       "Tensor[]",  "int",         "int[]",        "float",
      "float[]", "bool",         "bool[]",    "complex",     "str",          "ScalarType",
      "Device",  "MemoryFormat", "Generator", "graph value", "graph value[]"};
  return kNames[static_cast<int>(tag)];
}

void Value::wrong(std::string_view expected) const {
  FL_RAISE(TypeError, "expected {}, got {}", expected, describe());
}

namespace {
const Tensor& undefined() {
  static const Tensor none;
  return none;
}
const std::vector<Tensor>& no_tensors() {
  static const std::vector<Tensor> none;
  return none;
}
}  // namespace

// A Tensor is one counted pointer, as the word of a Value is.
static_assert(sizeof(Tensor) == sizeof(void*));
const Tensor& Value::tensor() const {
  if (tag_ == Tag::Tensor) return tensor_;
  if (tag_ != Tag::None) wrong("a Tensor");
  return undefined();
}
const std::vector<Tensor>& Value::tensors() const {
  if (tag_ == Tag::None) return no_tensors();
  if (tag_ != Tag::TensorList) wrong("a list of Tensors");
  return box<std::vector<Tensor>>();
}
SymInt Value::sym_int() const {
  if (tag_ == Tag::Int || tag_ == Tag::Bool) return SymInt::from_raw(raw_);
  wrong("an int");
}
IntList Value::ints() const {
  if (tag_ == Tag::None) return {};
  if (tag_ != Tag::IntList) wrong("a list of ints");
  return box<Sizes>();
}
double Value::to_double() const {
  if (tag_ == Tag::Float) return double_;
  if (tag_ == Tag::Int) return static_cast<double>(sym_int().guard_int());
  if (tag_ == Tag::Bool) return static_cast<double>(raw_);
  wrong("a float");
}
const std::vector<double>& Value::doubles() const {
  if (tag_ != Tag::FloatList) wrong("a list of floats");
  return box<std::vector<double>>();
}
bool Value::to_bool() const {
  if (tag_ != Tag::Bool && tag_ != Tag::Int) wrong("a bool");
  return tag_ == Tag::Bool ? raw_ != 0 : sym_int() != SymInt(0);
}
const std::vector<bool>& Value::bools() const {
  if (tag_ != Tag::BoolList) wrong("a list of bools");
  return box<std::vector<bool>>();
}
Scalar Value::scalar() const {
  switch (tag_) {
    case Tag::Bool:
      return Scalar(raw_ != 0);
    case Tag::Int:
      return Scalar(SymInt::from_raw(raw_));
    case Tag::Float:
      return Scalar(double_);
    case Tag::Complex:
      return Scalar(box<std::complex<double>>());
    case Tag::Tensor:
      return tensor().item();
    default:
      wrong("a number");
  }
}
std::string_view Value::str() const {
  if (tag_ != Tag::Str) wrong("a str");
  return box<std::string>();
}
DType Value::dtype() const {
  if (tag_ != Tag::DType) wrong("a dtype");
  return static_cast<DType>(raw_);
}
Device Value::device() const {
  if (tag_ != Tag::Device) wrong("a device");
  return {static_cast<DeviceType>(raw_ / 256), static_cast<int8_t>(raw_ % 256)};
}
MemoryFormat Value::memory_format() const {
  if (tag_ != Tag::MemoryFormat) wrong("a memory format");
  return static_cast<MemoryFormat>(raw_);
}
Generator* Value::generator() const {
  if (tag_ == Tag::None) return nullptr;
  if (tag_ != Tag::Generator) wrong("a Generator");
  return static_cast<Generator*>(counted_);
}
GraphRef Value::graph_ref() const {
  if (tag_ == Tag::None) return {};
  if (tag_ != Tag::GraphRef) wrong("a graph value");
  return ref_;
}
const std::vector<GraphRef>& Value::graph_refs() const {
  if (tag_ != Tag::GraphRefList) wrong("a list of graph values");
  return box<std::vector<GraphRef>>();
}

bool Value::same_as(const Value& o) const {
  if (tag_ != o.tag_) return false;
  switch (tag_) {
    case Tag::TensorList: {
      const auto &a = tensors(), &b = o.tensors();
      if (a.size() != b.size()) return false;
      for (size_t i = 0; i < a.size(); ++i)
        if (!a[i].is_same(b[i])) return false;
      return true;
    }
    case Tag::IntList: {
      auto a = ints(), b = o.ints();
      if (a.size() != b.size()) return false;
      for (size_t i = 0; i < a.size(); ++i)
        if (!a[i].same_as(b[i])) return false;
      return true;
    }
    case Tag::FloatList:
      return doubles() == o.doubles();
    case Tag::BoolList:
      return bools() == o.bools();
    case Tag::Str:
      return str() == o.str();
    case Tag::Complex:
      return scalar() == o.scalar();
    case Tag::GraphRefList:
      return graph_refs() == o.graph_refs();
    default:
      return raw_ == o.raw_;
  }
}

namespace {
template <class L, class F>
std::string join(const L& list, F&& f) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + std::string(f(list[i]));
  return out + "]";
}
std::string describe_tensor(const Tensor& t) {
  return t.defined() ? fmt::format("Tensor{} {}", to_string(t.sizes()), name(t.dtype())) : "None";
}
std::string describe_ref(GraphRef r) {
  if (r.node < 0) return "None";
  return r.index == 0 ? fmt::format("%{}", r.node) : fmt::format("%{}:{}", r.node, r.index);
}
}  // namespace

std::string Value::describe() const {
  switch (tag_) {
    case Tag::None:
      return "None";
    case Tag::Tensor:
      return describe_tensor(tensor());
    case Tag::TensorList:
      return join(tensors(), describe_tensor);
    case Tag::Int:
      return SymInt::from_raw(raw_).str();
    case Tag::IntList:
      return to_string(ints());
    case Tag::FloatList:
      return join(doubles(), [](double d) { return fmt::format("{}", d); });
    case Tag::Bool:
      return raw_ ? "True" : "False";
    case Tag::BoolList:
      return join(bools(), [](bool b) { return b ? "True" : "False"; });
    case Tag::Float: {
      // Always with a mark of a float, so that the text reads back as one.
      std::string s = fmt::format("{}", double_);
      return s.find_first_of(".einf") == std::string::npos ? s + ".0" : s;
    }
    case Tag::Complex:
      return scalar().str();
    case Tag::Str:
      return fmt::format("'{}'", str());
    case Tag::DType:
      return std::string(name(dtype()));
    case Tag::Device:
      return device().str();
    case Tag::MemoryFormat:
      return std::string(name(memory_format()));
    case Tag::Generator:
      return "Generator";
    case Tag::GraphRef:
      return describe_ref(ref_);
    case Tag::GraphRefList:
      return join(graph_refs(), describe_ref);
  }
  return "?";
}

}  // namespace fl
