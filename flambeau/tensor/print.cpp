// The rules are those of torch/_tensor_str.py: one format for all elements, chosen from those that are shown.
#include "flambeau/tensor/print.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "flambeau/tensor/element.h"

namespace fl {

namespace {

std::atomic<PrintSuffix>& print_suffix() {
  static std::atomic<PrintSuffix> suffix{nullptr};
  return suffix;
}

/// Elements in host memory.
struct View {
  const char* data;
  DType dtype;
  std::vector<int64_t> sizes, strides;  // in elements

  int dim() const { return static_cast<int>(sizes.size()); }
  const char* at(int64_t offset) const { return data + offset * size_of(dtype); }
};

enum class Part { Real, Imag };

double number_at(const View& v, int64_t offset, Part part) {
  return visit_dtype(v.dtype, [&](auto* p) {
    using E = std::remove_pointer_t<decltype(p)>;
    E e;
    std::memcpy(&e, v.at(offset), sizeof(E));
    const auto c = convert_element<std::complex<double>>(e);
    return part == Part::Real ? c.real() : c.imag();
  });
}

std::string integer_text(const View& v, int64_t offset) { return load_scalar(v.at(offset), v.dtype).str(); }

std::string fixed(double value, int precision) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{:.{}f}", value, precision);
}

std::string scientific(double value, int precision) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{:.{}e}", value, precision);
}

/// The format of one part of the elements.
class Format {
 public:
  /// `shown` are the offsets of the elements that will be printed.
  Format(const View& view, Part part, const std::vector<int64_t>& shown, const PrintOptions& options)
      : view_(view),
        part_(part),
        precision_(options.precision),
        floating_(is_floating(view.dtype) || is_complex(view.dtype)) {
    if (!floating_) {
      for (const int64_t offset : shown) widen(integer_text(view, offset).size());
      return;
    }
    std::vector<double> values;
    for (const int64_t offset : shown) {
      const double value = number_at(view, offset, part);
      if (std::isfinite(value) && value != 0) values.push_back(value);
    }
    if (!values.empty()) choose(values, options.sci_mode);
  }

  size_t width() const { return width_; }

  std::string text(int64_t offset) const {
    std::string s;
    if (!floating_) {
      s = integer_text(view_, offset);
    } else {
      const double value = number_at(view_, offset, part_);
      if (scientific_) {
        s = scientific(value, precision_);
      } else if (whole_) {
        s = fixed(value, 0);
        if (std::isfinite(value)) s += ".";
      } else {
        s = fixed(value, precision_);
      }
    }
    return std::string(width_ - std::min(width_, s.size()), ' ') + s;
  }

 private:
  void choose(const std::vector<double>& values, std::optional<bool> sci_mode) {
    double smallest = std::abs(values[0]), largest = smallest;
    for (const double value : values) {
      smallest = std::min(smallest, std::abs(value));
      largest = std::max(largest, std::abs(value));
      whole_ = whole_ && value == std::ceil(value);
    }
    scientific_ = sci_mode.value_or(largest / smallest > 1000.0 || largest > 1.0e8 || smallest < 1.0e-4);
    for (const double value : values) {
      if (scientific_)
        widen(scientific(value, precision_).size());
      else
        widen(whole_ ? fixed(value, 0).size() + 1 : fixed(value, precision_).size());
    }
  }
  void widen(size_t width) { width_ = std::max(width_, width); }

  const View& view_;
  Part part_;
  int precision_;
  bool floating_, whole_ = true, scientific_ = false;
  size_t width_ = 1;
};

class Printer {
 public:
  Printer(const View& view, const PrintOptions& options, bool summarize)
      : view_(view),
        options_(options),
        summarize_(summarize),
        shown_(collect()),
        real_(view, Part::Real, shown_, options) {
    if (is_complex(view.dtype)) imag_.emplace(view, Part::Imag, shown_, options);
  }

  std::string print(size_t indent) const { return print(0, 0, indent); }

 private:
  bool cut(int d) const { return summarize_ && view_.sizes[d] > 2 * options_.edge_items; }

  /// Calls f(index) on the shown indices of a dimension, and gap() where some are left out.
  template <class F, class G>
  void for_shown(int d, F&& f, G&& gap) const {
    const int64_t size = view_.sizes[d], edge = options_.edge_items;
    for (int64_t i = 0; i < size; ++i) {
      if (cut(d) && i == edge) {
        gap();
        i = size - edge;
        if (i == size) break;
      }
      f(i);
    }
  }

  std::vector<int64_t> collect() const {
    std::vector<int64_t> offsets;
    collect(0, 0, offsets);
    return offsets;
  }
  void collect(int d, int64_t offset, std::vector<int64_t>& offsets) const {
    if (d == view_.dim()) {
      offsets.push_back(offset);
      return;
    }
    for_shown(
        d, [&](int64_t i) { collect(d + 1, offset + i * view_.strides[d], offsets); }, [] {});
  }

  std::string element(int64_t offset) const {
    if (!imag_) return real_.text(offset);
    std::string imag = imag_->text(offset) + "j";
    imag.erase(0, imag.find_first_not_of(' '));
    return real_.text(offset) + (imag[0] == '-' ? "" : "+") + imag;
  }

  std::string print(int d, int64_t offset, size_t indent) const {
    const int left = view_.dim() - d;
    if (left == 0) return element(offset);
    if (left == 1) return print_line(d, offset, indent);
    const std::string separator =
        "," + std::string(static_cast<size_t>(left - 1), '\n') + std::string(indent + 1, ' ');
    std::string text;
    const auto add = [&](const std::string& s) { text += (text.empty() ? "" : separator) + s; };
    for_shown(
        d, [&](int64_t i) { add(print(d + 1, offset + i * view_.strides[d], indent + 1)); },
        [&] { add("..."); });
    return "[" + text + "]";
  }

  std::string print_line(int d, int64_t offset, size_t indent) const {
    size_t length = real_.width() + 2;
    if (imag_) length += imag_->width() + 1;
    const size_t width = static_cast<size_t>(options_.line_width);
    const size_t per_line = std::max<size_t>(1, (width > indent ? width - indent : 0) / length);
    std::string text = "[";
    size_t count = 0;
    const auto add = [&](const std::string& s) {
      if (count > 0) text += count % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : std::string(", ");
      text += s;
      ++count;
    };
    for_shown(
        d, [&](int64_t i) { add(element(offset + i * view_.strides[d])); },
        [&] { add(options_.edge_items > 0 ? " ..." : "..."); });
    return text + "]";
  }

  const View& view_;
  const PrintOptions& options_;
  bool summarize_;
  std::vector<int64_t> shown_;
  Format real_;
  std::optional<Format> imag_;
};

std::string tuple_text(IntList sizes) {
  std::string text = to_string(sizes);
  text.front() = '(';
  text.back() = ')';
  if (sizes.size() == 1) text.insert(text.size() - 1, ",");
  return text;
}

std::string elements_text(const Tensor& t, const PrintOptions& options, size_t indent) {
  std::vector<char> copy;
  View view{host_elements(t, copy), t.dtype(), {}, {}};
  for (const SymInt size : t.sizes()) view.sizes.push_back(size.expect_int());
  for (const SymInt stride : t.strides()) view.strides.push_back(stride.expect_int());
  const bool summarize = t.numel().expect_int() > options.threshold;
  return Printer(view, options, summarize).print(indent);
}

std::string add_suffixes(std::string text, const std::vector<std::string>& suffixes, size_t indent,
                         const PrintOptions& options) {
  const size_t newline = text.rfind('\n');
  // PyTorch counts two more than the length of the line.
  size_t line = newline == std::string::npos ? text.size() + 2 : text.size() - newline + 1;
  for (const std::string& suffix : suffixes) {
    if (line + suffix.size() + 2 > static_cast<size_t>(options.line_width)) {
      text += ",\n" + std::string(indent, ' ') + suffix;
      line = indent + suffix.size();
    } else {
      text += ", " + suffix;
      line += suffix.size() + 2;
    }
  }
  return text + ")";
}

}  // namespace

void set_print_suffix(PrintSuffix suffix) { print_suffix().store(suffix); }

std::string to_string(const Tensor& t, const PrintOptions& options) {
  if (!t.defined()) return "None";
  const std::string prefix = options.prefix + "(";
  const DType dtype = t.dtype();
  const std::string dtype_suffix = fmt::format("dtype=torch.{}", name(dtype));
  std::vector<std::string> suffixes;
  if (t.device().type != DeviceType::CPU) suffixes.push_back("device='" + t.device().str() + "'");
  std::string text;
  if (!t.has_data()) {
    text = "...";
    suffixes.push_back("size=" + tuple_text(t.sizes()));
    if (dtype != options.default_dtype) suffixes.push_back(dtype_suffix);
  } else if (t.numel() == SymInt(0)) {
    text = "[]";
    if (t.dim() != 1) suffixes.push_back("size=" + tuple_text(t.sizes()));
    if (dtype != options.default_dtype) suffixes.push_back(dtype_suffix);
  } else {
    text = elements_text(t, options, prefix.size());
    const bool known = dtype == options.default_dtype || dtype == complex_dtype(options.default_dtype) ||
                       dtype == DType::Int64 || dtype == DType::Bool;
    if (options.edge_items == 0) suffixes.push_back("size=" + tuple_text(t.sizes()));
    if (!known) suffixes.push_back(dtype_suffix);
  }
  if (const PrintSuffix suffix = print_suffix().load()) {
    if (std::string s = suffix(t); !s.empty()) suffixes.push_back(std::move(s));
  }
  return add_suffixes(prefix + text, suffixes, prefix.size(), options);
}

std::string Tensor::str() const { return to_string(*this); }

}  // namespace fl
