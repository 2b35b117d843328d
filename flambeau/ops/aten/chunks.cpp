#include "flambeau/ops/aten/chunks.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using samples::of;
constexpr Tag kPlain = Tag::NoInPlace;
constexpr Tag kView = Tag::NoInPlace | Tag::NoOut;

using List = std::vector<Tensor>;

/// Every tensor cut into as many chunks, filled up with zeros and laid out flat; the k-th chunks of all side
/// by side.
Tensor joined_chunks(TensorList tensors, int64_t dim, int64_t num_chunks) {
  FL_CHECK(!tensors.empty(), RuntimeError, "_chunk_cat expects a non-empty input tensor list");
  dim = wrap_dim(dim, tensors[0].dim());
  FL_CHECK(num_chunks >= 1, RuntimeError, "_chunk_cat expects positive num_chunks, got {}", num_chunks);
  List parts;
  for (const Tensor& x : tensors) {
    FL_CHECK(x.numel() > SymInt(0), RuntimeError, "_chunk_cat expects non-empty tensor");
    FL_CHECK(x.dtype() == tensors[0].dtype(), RuntimeError,
             "_chunk_cat expects all input tensors with the same dtype");
    FL_CHECK(dim < x.dim(), RuntimeError, "_chunk_cat expects dim < tensor.dim(), got {} and {}", dim,
             x.dim());
    for (int64_t d = 0; d < dim; ++d)
      FL_CHECK(x.sizes()[d] == tensors[0].sizes()[d], RuntimeError,
               "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
    const SymInt length = ceildiv(x.size(dim), SymInt(num_chunks));
    Sizes pad(2 * (x.dim() - dim), SymInt(0));
    pad.back() = length * SymInt(num_chunks) - x.size(dim);
    Sizes sizes(x.sizes().begin(), x.sizes().begin() + dim);
    sizes.insert(sizes.end(), {SymInt(num_chunks), SymInt(-1)});
    parts.push_back(reshape(constant_pad_nd(x, pad), sizes));
  }
  return cat(parts, dim + 1);
}

void define_chunk_cat(OpTable& t) {
  t.define(
      _chunk_cat,
      {.doc = "Every tensor cut into num_chunks chunks along a dimension, filled up with 0 and flattened "
              "from there on; the chunks of one number side by side.",
       .tags = kPlain,
       .decompose = joined_chunks,
       .samples = of([](SampleMaker& m, const Samples& o) {
         const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
         return std::vector<Sample>{{{List{x({5, 2}), x({3, 4})}, 0, 2}, "", ""},
                                    {{List{x({2, 5}), x({2, 3, 2})}, 1, 3}, "dim 1", ""},
                                    {{List{x({2, 2}), x({2})}, 1, 2}, "dim", "RuntimeError: expects dim"}};
       })});
  t.define(narrow_from, {.doc = "As `narrow`, from where a 0-dim tensor of an integer says.",
                         .tags = kView | Tag::DataDependent,
                         .decompose =
                             [](Tensor self, int64_t dim, Tensor start, SymInt length) {
                               FL_CHECK(start.dim() == 0 && is_integral(start.dtype()), RuntimeError,
                                        "start must be an 0-dim integral Tensor.");
                               return narrow(self, dim, SymInt(start.item().to_int()), length);
                             },
                         .samples = of([](SampleMaker& m, const Samples& o) {
                           return std::vector<Sample>{
                               {{m.make({5, 2}, o.low, o.high), 0, tensor_from<int64_t>({1}, {}), 3}, "", ""},
                               {{m.make({5}, o.low, o.high), 0, m.make({}, DType::Float32, 0, 3), 1},
                                "float",
                                "RuntimeError: 0-dim integral"}};
                         })});
}

void define_moved(OpTable& t) {
  t.define(movedim_one,
           {.doc = "One dimension moved to another place; the others keep their order.",
            .tags = kView,
            .decompose =
                [](Tensor self, int64_t source, int64_t destination) {
                  return movedim(self, {SymInt(source)}, {SymInt(destination)});
                },
            .samples = of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({2, 3, 4}, o.low, o.high), 0, 2}, "", ""},
                  {{m.make({2, 3}, o.low, o.high), 0, 2}, "outside", "IndexError: out of range"}};
            })});
}

}  // namespace

void define_chunks(OpTable& t) {
  define_chunk_cat(t);
  define_moved(t);
}

}  // namespace fl
