#include "flambeau/ops/aten/recurrent.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

enum class Kind { Lstm, Gru, Tanh, Relu };
constexpr const char* kNames[] = {"lstm", "gru", "rnn_tanh", "rnn_relu"};

/// What a network is told beside its tensors.
struct Network {
  Kind kind;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;
  const char* name() const { return kNames[static_cast<int>(kind)]; }
  int directions() const { return bidirectional ? 2 : 1; }
};

/// The parameters of one direction of one layer, as PyTorch lists them.
struct Direction {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

std::vector<Direction> directions_of(const Network& n, TensorList params, bool projects) {
  const size_t each = 2 + (n.has_biases ? 2 : 0) + (projects ? 1 : 0);
  const size_t count = static_cast<size_t>(n.layers * n.directions());
  FL_CHECK(params.size() == count * each, RuntimeError,
           "{}: expected {} parameters ({} layers of {} directions, {} each), got {}", n.name(), count * each,
           n.layers, n.directions(), each, params.size());
  std::vector<Direction> out;
  for (size_t k = 0; k < count; ++k) {
    const TensorList p = params.slice(k * each, each);
    Direction d{.w_ih = p[0], .w_hh = p[1]};
    if (n.has_biases) d.b_ih = p[2], d.b_hh = p[3];
    if (projects) d.w_hr = p[each - 1];
    out.push_back(std::move(d));
  }
  return out;
}

Tensor in_dtype_of(const Tensor& x, const Tensor& like) {
  return x.defined() ? to_dtype(x, like.dtype()) : x;
}

struct LayerResult {
  Tensor output, h, c;
};

/// One direction over packed rows; h and c are its first states.
LayerResult run_direction(const Network& n, const Direction& d, const Tensor& rows, Tensor h, Tensor c,
                          IntList batch_sizes, bool reverse) {
  // A GRU's hidden bias stands inside a product with a gate; the others' biases are one.
  const bool one_bias = n.has_biases && n.kind != Kind::Gru;
  const Tensor x = linear(rows, d.w_ih, one_bias ? add(d.b_ih, d.b_hh) : d.b_ih);
  // Under autocast x has another dtype than states and weights.
  h = in_dtype_of(h, x);
  const Tensor w = in_dtype_of(d.w_hh, x);
  switch (n.kind) {
    case Kind::Lstm: {
      const auto [output, hy, cy, gates, cells] =
          _lstm_layer(x, h, in_dtype_of(c, x), w, in_dtype_of(d.w_hr, x), batch_sizes, reverse);
      return {output, hy, cy};
    }
    case Kind::Gru: {
      const auto [output, hy, gates] = _gru_layer(x, h, w, in_dtype_of(d.b_hh, x), batch_sizes, reverse);
      return {output, hy, {}};
    }
    default: {
      const auto [output, hy] = _rnn_layer(x, h, w, batch_sizes, reverse, n.kind == Kind::Relu);
      return {output, hy, {}};
    }
  }
}

void check_states(const Network& n, const Tensor& h, const Tensor& c, SymInt batch) {
  const int64_t count = n.layers * n.directions();
  for (const Tensor* state : {&h, &c}) {
    if (!state->defined()) continue;
    FL_CHECK(state->dim() == 3 && state->sizes()[0] == SymInt(count) && state->sizes()[1] == batch,
             RuntimeError, "{}: expected a state of sizes [{}, {}, hidden], got {}", n.name(), count, batch,
             to_string(state->sizes()));
  }
}

/// All layers over packed rows. c is undefined but for an LSTM.
LayerResult run_network(const Network& n, Tensor rows, const Tensor& h, const Tensor& c, TensorList params,
                        IntList batch_sizes) {
  FL_CHECK(n.layers > 0, RuntimeError, "{}: expected 1 or more layers, got {}", n.name(), n.layers);
  FL_CHECK(!batch_sizes.empty(), RuntimeError, "{}: Expected sequence length to be larger than 0 in RNN",
           n.name());
  check_states(n, h, c, batch_sizes[0]);
  const bool projects = c.defined() && h.sizes()[2] != c.sizes()[2];
  const std::vector<Direction> directions = directions_of(n, params, projects);
  FL_CHECK(rows.sizes()[1] == directions[0].w_ih.size(-1), RuntimeError,
           "input.size(-1) must be equal to input_size. Expected {}, got {}", directions[0].w_ih.size(-1),
           rows.sizes()[1]);
  std::vector<Tensor> hs, cs;
  for (int64_t layer = 0; layer < n.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int k = 0; k < n.directions(); ++k) {
      const int64_t number = layer * n.directions() + k;
      LayerResult r = run_direction(n, directions[number], rows, select(h, 0, number),
                                    c.defined() ? select(c, 0, number) : c, batch_sizes, k == 1);
      outputs.push_back(r.output);
      hs.push_back(r.h);
      cs.push_back(r.c);
    }
    rows = outputs.size() == 1 ? outputs[0] : cat(outputs, 1);
    if (n.dropout > 0 && n.train && layer + 1 < n.layers) rows = dropout(rows, n.dropout, true);
  }
  return {rows, stack(hs), c.defined() ? stack(cs) : Tensor()};
}

/// Sequences of one length, (length, batch, features) or (batch, length, features).
LayerResult run_padded(const Network& n, const Tensor& input, const Tensor& h, const Tensor& c,
                       TensorList params, bool batch_first) {
  FL_CHECK(input.dim() == 3, RuntimeError, "{}: expected input of 3 dimensions, got sizes {}", n.name(),
           to_string(input.sizes()));
  const Tensor x = batch_first ? transpose(input, 0, 1) : input;
  const SymInt length = x.sizes()[0], batch = x.sizes()[1];
  const Sizes batch_sizes(length.guard_int(), batch);
  const Tensor rows = reshape(x, {length * batch, x.sizes()[2]});
  LayerResult r = run_network(n, rows, h, c, params, batch_sizes);
  r.output = view(r.output, {length, batch, r.output.sizes()[1]});
  if (batch_first) r.output = transpose(r.output, 0, 1);
  return r;
}

/// Sequences of unequal lengths as PackedSequence holds them.
LayerResult run_packed(const Network& n, const Tensor& data, const Tensor& batch_sizes, const Tensor& h,
                       const Tensor& c, TensorList params) {
  FL_CHECK(data.dim() == 2, RuntimeError, "{}: expected packed data of 2 dimensions, got sizes {}", n.name(),
           to_string(data.sizes()));
  FL_CHECK(batch_sizes.dim() == 1 && is_integral(batch_sizes.dtype()), RuntimeError,
           "{}: batch_sizes have to be a vector of integers, got {} of sizes {}", n.name(),
           name(batch_sizes.dtype()), to_string(batch_sizes.sizes()));
  Sizes sizes;
  int64_t rows = 0;
  for (int64_t t = 0; t < batch_sizes.sizes()[0].guard_int(); ++t) {
    const int64_t size = select(batch_sizes, 0, t).item().to_int();
    FL_CHECK(size > 0 && (t == 0 || SymInt(size) <= sizes.back()), RuntimeError,
             "{}: batch_sizes have to be positive and in descending order, got {} at position {}", n.name(),
             size, t);
    sizes.push_back(size);
    rows += size;
  }
  FL_CHECK(data.sizes()[0] == SymInt(rows), RuntimeError,
           "{}: batch_sizes add up to {}, the data has {} rows", n.name(), rows, data.sizes()[0]);
  return run_network(n, data, h, c, params, sizes);
}

std::pair<Tensor, Tensor> lstm_states(TensorList hx) {
  FL_CHECK(hx.size() == 2, RuntimeError, "lstm expects two hidden states, got {}", hx.size());
  return {hx[0], hx[1]};
}

std::tuple<Tensor, Tensor, Tensor> lstm_of(Tensor input, TensorList hx, TensorList params, bool has_biases,
                                           int64_t layers, double dropout, bool train, bool bidirectional,
                                           bool batch_first) {
  const Network n{Kind::Lstm, has_biases, layers, dropout, train, bidirectional};
  const auto [h, c] = lstm_states(hx);
  const LayerResult r = run_padded(n, input, h, c, params, batch_first);
  return {r.output, r.h, r.c};
}
std::tuple<Tensor, Tensor, Tensor> lstm_packed_of(Tensor data, Tensor batch_sizes, TensorList hx,
                                                  TensorList params, bool has_biases, int64_t layers,
                                                  double dropout, bool train, bool bidirectional) {
  const Network n{Kind::Lstm, has_biases, layers, dropout, train, bidirectional};
  const auto [h, c] = lstm_states(hx);
  const LayerResult r = run_packed(n, data, batch_sizes, h, c, params);
  return {r.output, r.h, r.c};
}

template <Kind K>
std::tuple<Tensor, Tensor> padded_of(Tensor input, Tensor hx, TensorList params, bool has_biases,
                                     int64_t layers, double dropout, bool train, bool bidirectional,
                                     bool batch_first) {
  const Network n{K, has_biases, layers, dropout, train, bidirectional};
  const LayerResult r = run_padded(n, input, hx, {}, params, batch_first);
  return {r.output, r.h};
}
template <Kind K>
std::tuple<Tensor, Tensor> packed_of(Tensor data, Tensor batch_sizes, Tensor hx, TensorList params,
                                     bool has_biases, int64_t layers, double dropout, bool train,
                                     bool bidirectional) {
  const Network n{K, has_biases, layers, dropout, train, bidirectional};
  const LayerResult r = run_packed(n, data, batch_sizes, hx, {}, params);
  return {r.output, r.h};
}

// --- samples: calls of every form, with the states as they are or as a list ---

std::vector<Tensor> sample_params(SampleMaker& m, const Samples& o, int64_t gates, int64_t in, int64_t hidden,
                                  int64_t projected, int64_t layers, int64_t directions, bool biases) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const int64_t out = projected ? projected : hidden;
  std::vector<Tensor> params;
  for (int64_t k = 0; k < layers * directions; ++k) {
    params.push_back(x({gates * hidden, k < directions ? in : out * directions}));
    params.push_back(x({gates * hidden, out}));
    if (biases) params.push_back(x({gates * hidden})), params.push_back(x({gates * hidden}));
    if (projected) params.push_back(x({projected, hidden}));
  }
  return params;
}

template <int64_t Gates>
std::vector<Sample> network_samples(SampleMaker& m, const Samples& o, bool packed) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const auto state = [&](int64_t count, int64_t batch, int64_t projected) {
    if (Gates != 4) return Value(x({count, batch, 3}));
    return Value(std::vector<Tensor>{x({count, batch, projected ? projected : 3}), x({count, batch, 3})});
  };
  const auto lengths = [&] { return tensor_from<int64_t>({3, 2, 2, 1}, Sizes{4}); };
  std::vector<Sample> out;
  const auto call = [&](int64_t layers, int64_t directions, bool biases, int64_t projected, bool batch_first,
                        const char* note) {
    Sample s;
    const int64_t batch = packed ? 3 : 2;
    if (packed)
      s.args = {x({8, 4}), lengths()};
    else
      s.args = {x(batch_first ? Sizes{2, 3, 4} : Sizes{3, 2, 4})};
    s.args.push_back(state(layers * directions, batch, projected));
    s.args.emplace_back(sample_params(m, o, Gates, 4, 3, projected, layers, directions, biases));
    for (const Value& v : {Value(biases), Value(layers), Value(0.0), Value(false), Value(directions == 2)})
      s.args.push_back(v);
    if (!packed) s.args.emplace_back(batch_first);
    s.note = note;
    out.push_back(std::move(s));
  };
  call(1, 1, true, 0, false, "");
  call(2, 2, true, 0, true, "two layers, two directions");
  call(1, 1, false, 0, false, "no bias");
  if (Gates == 4) call(2, 1, true, 2, false, "projected");
  Sample few = out[0];
  few.args[packed ? 3 : 2] = Value(std::vector<Tensor>{x({Gates * 3, 4})});
  few.error = "RuntimeError: parameters";
  out.push_back(few);
  return out;
}
template <int64_t Gates>
Samples padded_samples() {
  return samples::custom([](SampleMaker& m, const Samples& o) { return network_samples<Gates>(m, o, false); },
                         {.low = -1, .high = 1, .tolerance = 1e-4});
}
template <int64_t Gates>
Samples packed_samples() {
  return samples::custom([](SampleMaker& m, const Samples& o) { return network_samples<Gates>(m, o, true); },
                         {.low = -1, .high = 1, .tolerance = 1e-4});
}

constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
constexpr const char* kPackedDoc =
    "The same over packed sequences: rows of data for each step, batch_sizes of them, the longest first.";

}  // namespace

void define_recurrent(OpTable& t) {
  t.define(
      lstm,
      {.doc = "An LSTM: all outputs of the last layer, and h and c after the last step of every layer "
              "and direction. params: w_ih, w_hh, b_ih, b_hh (and w_hr, if h is smaller than c) of each.",
       .tags = kTags,
       .decompose = lstm_of,
       .samples = padded_samples<4>()});
  t.define(lstm_packed, {.doc = kPackedDoc,
                         .tags = kTags | Tag::DataDependent,
                         .decompose = lstm_packed_of,
                         .samples = packed_samples<4>()});
  t.define(gru, {.doc = "A GRU: all outputs of the last layer, and h after the last step of every layer and "
                        "direction. params: w_ih, w_hh, b_ih, b_hh of each.",
                 .tags = kTags,
                 .decompose = padded_of<Kind::Gru>,
                 .samples = padded_samples<3>()});
  t.define(gru_packed, {.doc = kPackedDoc,
                        .tags = kTags | Tag::DataDependent,
                        .decompose = packed_of<Kind::Gru>,
                        .samples = packed_samples<3>()});
  t.define(rnn_tanh,
           {.doc = "A network of h = tanh(w_ih x + b_ih + w_hh h + b_hh): all outputs of the last layer, "
                   "and h after the last step of every layer and direction.",
            .tags = kTags,
            .decompose = padded_of<Kind::Tanh>,
            .samples = padded_samples<1>()});
  t.define(rnn_tanh_packed, {.doc = kPackedDoc,
                             .tags = kTags | Tag::DataDependent,
                             .decompose = packed_of<Kind::Tanh>,
                             .samples = packed_samples<1>()});
  t.define(rnn_relu, {.doc = "`rnn_tanh` with relu in tanh's place.",
                      .tags = kTags,
                      .decompose = padded_of<Kind::Relu>,
                      .samples = padded_samples<1>()});
  t.define(rnn_relu_packed, {.doc = kPackedDoc,
                             .tags = kTags | Tag::DataDependent,
                             .decompose = packed_of<Kind::Relu>,
                             .samples = packed_samples<1>()});
}

}  // namespace fl
