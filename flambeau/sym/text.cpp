// Printing and parsing of expressions.
#include <cctype>

#include "flambeau/base/error.h"
#include "flambeau/sym/expr.h"

namespace fl::sym {
namespace {

void print(const Expr& e, std::string& out, int precedence) {
  switch (e.kind()) {
    case Kind::Const:
      if (e.value() < 0 && precedence > 0) {
        out += fmt::format("({})", e.value());
      } else {
        out += fmt::format("{}", e.value());
      }
      return;
    case Kind::Symbol:
      out += e.name();
      return;
    case Kind::Add:
    case Kind::Mul: {
      const int mine = e.kind() == Kind::Add ? 1 : 2;
      if (precedence > mine) out += '(';
      bool first = true;
      for (const Expr& a : e.args()) {
        if (!first) out += mine == 1 ? " + " : "*";
        print(a, out, mine);
        first = false;
      }
      if (precedence > mine) out += ')';
      return;
    }
    case Kind::FloorDiv:
    case Kind::Mod:
      out += '(';
      print(e.args()[0], out, 3);
      out += e.kind() == Kind::Mod ? " % " : " // ";
      print(e.args()[1], out, 3);
      out += ')';
      return;
    default:
      out += e.kind() == Kind::Min ? "min(" : "max(";
      print(e.args()[0], out, 0);
      out += ", ";
      print(e.args()[1], out, 0);
      out += ')';
  }
}

class Parser {
 public:
  Parser(std::string_view text, int64_t lower) : text_(text), lower_(lower) {}

  Expr run() {
    Expr e = sum();
    skip();
    if (at_ != text_.size()) fail("end of the expression");
    return e;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  [[noreturn]] void fail(std::string_view expected) {
    FL_RAISE(ValueError, "expected {} at column {} of the size expression '{}'", expected, at_, text_);
  }
  Expr sum() {
    Expr e = product();
    for (;;) {
      if (take("+"))
        e += product();
      else if (take("-"))
        e -= product();
      else
        return e;
    }
  }
  Expr product() {
    Expr e = atom();
    for (;;) {
      if (take("//"))
        e = floordiv(e, atom());
      else if (take("%"))
        e = mod(e, atom());
      else if (take("*"))
        e *= atom();
      else
        return e;
    }
  }
  Expr atom() {
    if (take("-")) return -atom();
    if (take("%")) {  // a value of a kernel
      size_t end = at_;
      while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end]))) ++end;
      if (end == at_) fail("the number of a value");
      Expr e = Expr::symbol(text_.substr(at_ - 1, end - at_ + 1), kUnbounded);
      at_ = end;
      return e;
    }
    if (take("(")) {
      Expr e = sum();
      if (!take(")")) fail("')'");
      return e;
    }
    skip();
    size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_' ||
                                  text_[end] == '.' || text_[end] == '$'))
      ++end;
    if (end == at_) fail("a number, a name or '('");
    std::string word(text_.substr(at_, end - at_));
    at_ = end;
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      if (word.size() > 18 || word.find_first_not_of("0123456789") != std::string::npos)
        fail("an integer below 10^18");
      return Expr(static_cast<int64_t>(std::stoll(word)));
    }
    if ((word == "min" || word == "max") && take("(")) {
      Expr a = sum();
      if (!take(",")) fail("','");
      Expr b = sum();
      if (!take(")")) fail("')'");
      return word == "min" ? min(a, b) : max(a, b);
    }
    return Expr::symbol(word, lower_);
  }

  std::string_view text_;
  int64_t lower_;
  size_t at_ = 0;
};

}  // namespace

std::string Expr::str() const {
  std::string out;
  print(*this, out, 0);
  return out;
}

Expr parse(std::string_view text, int64_t lower) { return Parser(text, lower).run(); }

}  // namespace fl::sym
