#include "snapshot.h"

#if FLAMBEAU_CAPTURE
#include "world.h"

namespace fl::python::capture {
namespace {

bool is_root(Step s) { return s == Step::Local || s == Step::Stack; }

/// Whether the value is held by a dict whose version is looked at, or by what is itself held and never
/// changes: then it is the same object, not another one at its address.
bool is_held(const Place& p, const std::vector<bool>& held) {
  switch (p.step) {
    case Step::Constant:
    case Step::Globals:
    case Step::Instance:
    case Step::Dictionary:
    case Step::DictItem:
    case Step::DictValue:
    case Step::DictKeyAt:
    case Step::DictValueAt:
      return true;
    case Step::Itself:
    case Step::TupleItem:
    case Step::FreeCell:
    case Step::MethodSelf:
    case Step::MethodFunction:
    case Step::PartialFunction:
    case Step::PartialArguments:
    case Step::PartialKeywords:
      return held[static_cast<size_t>(p.parent)];
    default:
      return false;
  }
}

bool reads_dict(Step s) {
  return s == Step::DictItem || s == Step::DictValue || s == Step::DictKeyAt || s == Step::DictValueAt;
}

/// Whether the dict that a place reads from, if any, tells by its version that it was changed.
bool reads_versioned(const Place& p, const std::vector<PyObject*>& values) {
  if (p.step != Step::Instance && !reads_dict(p.step)) return true;
  PyObject* parent = values[static_cast<size_t>(p.parent)];
  if (!parent) return true;
  if (reads_dict(p.step)) return !PyDict_Check(parent) || has_version(parent);
  PyObject** at = _PyObject_GetDictPtr(parent);
  return !at || !*at || has_version(*at);
}

/// Whether a check asks about something that the object may change by itself.
bool needs_check(Check c) { return c == Check::Length || c == Check::Items || c == Check::Code; }

}  // namespace

void Snapshot::take(const std::vector<Place>& places, const std::vector<PyObject*>& values, Frame* f) {
  groups_.assign(1, Group{});
  globals_ = f->f_globals;
  std::vector<int> group_of(places.size(), 0);
  Group& constant = groups_[0];
  for (PyObject* dict : {f->f_globals, f->f_builtins}) {
    Entry e{Entry::Kind::Dict};
    e.object = dict;
    e.version = version_of_dict(dict);
    constant.entries.push_back(e);
  }
  seen_.clear();
  relations_.clear();
  held_.clear();
  for (size_t k = 0; k < places.size(); ++k) {
    const Place& p = places[k];
    if (is_root(p.step)) {
      group_of[k] = static_cast<int>(groups_.size());
      groups_.push_back({static_cast<int>(k), values[k], {}, {}, {}, false});
    } else if (p.parent >= 0) {
      group_of[k] = group_of[static_cast<size_t>(p.parent)];
    }
    Group& g = groups_[static_cast<size_t>(group_of[k])];
    g.places.push_back(static_cast<int>(k));
    g.values.push_back(values[k]);
    held_.push_back(is_held(p, held_) && reads_versioned(p, values));
    if (p.check == Check::SameAs) relations_.push_back(static_cast<int>(k));
    add(g, static_cast<int>(k), places, values);
  }
  seen_.clear();
  taken_ = true;
}

void Snapshot::add(Group& g, int k, const std::vector<Place>& places, const std::vector<PyObject*>& values) {
  const Place& p = places[static_cast<size_t>(k)];
  PyObject* o = values[static_cast<size_t>(k)];
  const auto once = [&](PyObject* what) { return seen_.insert(what).second; };
  // The parent's __dict__ comes before what it holds.
  if (p.step == Step::Instance || p.step == Step::Dictionary) {
    PyObject* parent = values[static_cast<size_t>(p.parent)];
    PyObject** at = parent ? _PyObject_GetDictPtr(parent) : nullptr;
    if (at && *at && once(*at)) {
      Entry e{Entry::Kind::Object};
      e.object = parent;
      e.type = Py_TYPE(parent);
      e.dict_at = at;
      e.dict = *at;
      e.version = version_of_dict(*at);
      g.entries.push_back(e);
    } else if (!at || !*at) {
      Entry e{Entry::Kind::Recheck};
      e.place = k;
      g.entries.push_back(e);
    }
  }
  if (reads_dict(p.step)) {
    PyObject* parent = values[static_cast<size_t>(p.parent)];
    if (parent && once(parent)) {
      Entry e{Entry::Kind::Dict};
      e.object = parent;
      e.version = version_of_dict(parent);
      g.entries.push_back(e);
    }
  }
  if (!held_[static_cast<size_t>(k)] || needs_check(p.check)) {
    Entry e{Entry::Kind::Recheck};
    e.place = k;
    g.entries.push_back(e);
  }
  if (!o) return;
  if (p.check == Check::Keys) {
    // Moving an item is no change of the dict below.
    if (!has_version(o) || (PyODict_Check(o) && PyDict_GET_SIZE(o) > 1)) {
      Entry e{Entry::Kind::Recheck};
      e.place = k;
      g.entries.push_back(e);
    } else if (once(o)) {
      Entry e{Entry::Kind::Dict};
      e.object = o;
      e.version = version_of_dict(o);
      g.entries.push_back(e);
    }
  } else if (p.check == Check::TypeVersion) {
    Entry e{Entry::Kind::Type};
    e.object = o;
    e.version = static_cast<uint64_t>(p.check_index);
    g.entries.push_back(e);
  } else if (p.check == Check::Type && is_python_class(Py_TYPE(o))) {
    Entry e{Entry::Kind::ObjectType};
    e.object = o;
    e.type = Py_TYPE(o);
    g.entries.push_back(e);
  }
}

bool Snapshot::same(const Entry& e, const std::vector<Place>& places, const std::vector<PyObject*>& values,
                    Frame* f) {
  switch (e.kind) {
    case Entry::Kind::Object:
      return Py_TYPE(e.object) == e.type && *e.dict_at == e.dict && version_of_dict(e.dict) == e.version;
    case Entry::Kind::ObjectType:
      return Py_TYPE(e.object) == e.type;
    case Entry::Kind::Dict:
      return version_of_dict(e.object) == e.version;
    case Entry::Kind::Type:
      return e.version != 0 && version_of(reinterpret_cast<PyTypeObject*>(e.object)) == e.version;
    case Entry::Kind::Recheck: {
      const Place& p = places[static_cast<size_t>(e.place)];
      PyObject* o = find(p, f, values);
      return o == values[static_cast<size_t>(e.place)] && holds(p, o, values);
    }
  }
  return false;
}

bool Snapshot::is_clean(Group& g, const std::vector<Place>& places, std::vector<PyObject*>& values,
                        Frame* f) {
  if (g.root >= 0) {
    if (find(places[static_cast<size_t>(g.root)], f, values) != g.object) return false;
    if (g.stale) {
      for (size_t k = 0; k < g.places.size(); ++k) values[static_cast<size_t>(g.places[k])] = g.values[k];
      g.stale = false;
    }
  }
  for (const Entry& e : g.entries)
    if (!same(e, places, values, f)) return false;
  return true;
}

Snapshot::Answer Snapshot::look(const std::vector<Place>& places, std::vector<PyObject*>& values, Frame* f) {
  if (f->f_globals != globals_) return Answer::Changed;
  for (Group& g : groups_) {
    if (is_clean(g, places, values, f)) continue;
    // A program that changes an object in each call makes taking it anew futile.
    constexpr size_t kMany = 64;
    constexpr int kTries = 3;
    if (g.root < 0 || (g.places.size() > kMany && changes_ < kTries)) {
      ++changes_;
      return Answer::Changed;
    }
    g.stale = true;
    for (int k : g.places) {
      const Place& p = places[static_cast<size_t>(k)];
      values[static_cast<size_t>(k)] = find(p, f, values);
      if (!holds(p, values[static_cast<size_t>(k)], values)) return Answer::Changed;
    }
  }
  for (int k : relations_)
    if (!holds(places[static_cast<size_t>(k)], values[static_cast<size_t>(k)], values))
      return Answer::Changed;
  return Answer::Same;
}

}  // namespace fl::python::capture
#endif
