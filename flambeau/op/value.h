// Value: one argument or result of an operator, of any of the schema's types, in two words.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "flambeau/tensor/tensor.h"

namespace fl {

/// A reference to output `index` of a node of a graph; takes a tensor's place in an argument list.
struct GraphRef {
  int32_t node = -1;
  int32_t index = 0;
  bool operator==(const GraphRef&) const = default;
};

class Generator;

/// In an argument declared Tensor, Int, Float, Bool and Complex stand for a number that promotes as one.
class Value {
 public:
  enum class Tag : uint8_t {
    None,
    Tensor,
    TensorList,  ///< an undefined tensor stands for None
    Int,
    IntList,
    Float,
    FloatList,
    Bool,
    BoolList,
    Complex,
    Str,
    DType,
    Device,
    MemoryFormat,
    Generator,
    GraphRef,
    GraphRefList,  ///< node -1 stands for None
  };

  Value() : tag_(Tag::None), raw_(0) {}
  Value(const Tensor& t);
  Value(Tensor&& t);
  Value(std::vector<Tensor> list);
  Value(TensorList list) : Value(list.vec()) {}
  Value(SymInt i) : tag_(Tag::Int), raw_(i.raw()) {}
  Value(int64_t i) : Value(SymInt(i)) {}
  Value(int i) : tag_(Tag::Int), raw_(i) {}
  Value(IntList list);
  Value(const Sizes& list) : Value(IntList(list)) {}
  Value(double d) : tag_(Tag::Float), double_(d) {}
  Value(std::vector<double> list);
  Value(bool b) : tag_(Tag::Bool), raw_(b) {}
  Value(std::vector<bool> list);
  Value(const Scalar& s);
  Value(std::string_view s);
  Value(const char* s) : Value(std::string_view(s)) {}
  Value(DType d) : tag_(Tag::DType), raw_(static_cast<int64_t>(d)) {}
  Value(Device d)
      : tag_(Tag::Device), raw_(static_cast<int64_t>(d.type) * 256 + static_cast<uint8_t>(d.index)) {}
  Value(MemoryFormat f) : tag_(Tag::MemoryFormat), raw_(static_cast<int64_t>(f)) {}
  Value(Generator* g);  ///< null: None
  Value(GraphRef r) : tag_(Tag::GraphRef), ref_(r) {}
  Value(std::vector<GraphRef> list);
  template <class T>
  Value(const std::optional<T>& o) : Value() {
    if (o) *this = Value(*o);
  }

  Value(const Value& o);
  Value(Value&& o) noexcept : tag_(o.tag_), raw_(o.raw_) { o.tag_ = Tag::None; }
  Value& operator=(Value o) noexcept {
    std::swap(tag_, o.tag_);
    std::swap(raw_, o.raw_);
    return *this;
  }
  ~Value() {
    if (owns()) release();
  }

  Tag tag() const { return tag_; }
  bool is_none() const { return tag_ == Tag::None; }
  bool is_tensor() const { return tag_ == Tag::Tensor; }
  bool is_number() const {
    return tag_ == Tag::Int || tag_ == Tag::Float || tag_ == Tag::Bool || tag_ == Tag::Complex;
  }

  // Each raises TypeError if the value is something else.
  const Tensor& tensor() const;  ///< None gives the undefined tensor.
  const std::vector<Tensor>& tensors() const;
  SymInt sym_int() const;
  int64_t to_int() const { return sym_int().guard_int(); }
  IntList ints() const;      ///< None gives the empty list.
  double to_double() const;  ///< Of Int, Float or Bool.
  const std::vector<double>& doubles() const;
  bool to_bool() const;
  const std::vector<bool>& bools() const;
  Scalar scalar() const;
  std::string_view str() const;
  DType dtype() const;
  Device device() const;
  MemoryFormat memory_format() const;
  Generator* generator() const;  ///< None gives null.
  GraphRef graph_ref() const;
  const std::vector<GraphRef>& graph_refs() const;

  /// Same type and contents; tensors by identity, sizes by expression.
  bool same_as(const Value& o) const;
  /// For messages and graph texts: "Tensor[2, 3] float32", "[1, s0]", "1.5".
  std::string describe() const;

 private:
  template <class T>
  struct Box : RefCounted {
    T value;
    explicit Box(T v) : value(std::move(v)) {}
  };
  template <class T>
  const T& box() const {
    return static_cast<const Box<T>*>(counted_)->value;
  }
  bool owns() const;
  void release();
  [[noreturn]] void wrong(std::string_view expected) const;

  Tag tag_;
  union {
    int64_t raw_;
    double double_;
    RefCounted* counted_;
    GraphRef ref_;
    Tensor tensor_;  // counted_ seen as the handle that it is
  };
};
static_assert(sizeof(Value) == 16);
std::string_view name(Value::Tag tag);

}  // namespace fl
