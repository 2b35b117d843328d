// What a check of guards found, so that the next check looks only at what can have changed: versions of dicts
// and types, and values that are kept outside of dicts.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <unordered_set>
#include <vector>

#include "guards.h"

namespace fl::python::capture {

/// Holds no references. Each entry is looked at only when those before it have shown that its objects are
/// alive: a dict whose version is the same holds the same objects.
class Snapshot {
 public:
  enum class Answer : uint8_t { Same, Changed };

  bool taken() const { return taken_; }
  void drop() { taken_ = false; }
  /// After a check that found `values`.
  void take(const std::vector<Place>& places, const std::vector<PyObject*>& values, Frame* f);
  /// Whether all checks would hold. Values of places below locals that are other objects now are found and
  /// checked anew; `values` has all of them then.
  Answer look(const std::vector<Place>& places, std::vector<PyObject*>& values, Frame* f);

 private:
  struct Entry {
    enum class Kind : uint8_t { Object, ObjectType, Dict, Type, Recheck } kind;
    int place = -1;                ///< Recheck
    PyObject* object = nullptr;    ///< the object, dict or type
    PyTypeObject* type = nullptr;  ///< its type
    PyObject** dict_at = nullptr;  ///< Object: where it has its __dict__
    PyObject* dict = nullptr;      ///< Object
    uint64_t version = 0;          ///< of the dict or type
  };
  /// The places below one local or stack slot, or those below constants.
  struct Group {
    int root = -1;
    PyObject* object = nullptr;  ///< at the root
    std::vector<Entry> entries;
    std::vector<int> places;
    std::vector<PyObject*> values;  ///< of the places
    bool stale = false;             ///< the values in use are others
  };
  static bool same(const Entry& e, const std::vector<Place>& places, const std::vector<PyObject*>& values,
                   Frame* f);
  static bool is_clean(Group& g, const std::vector<Place>& places, std::vector<PyObject*>& values, Frame* f);
  void add(Group& g, int k, const std::vector<Place>& places, const std::vector<PyObject*>& values);

  bool taken_ = false;
  int changes_ = 0;  ///< of large groups
  std::vector<Group> groups_;
  std::vector<int> relations_;          ///< places that are the same as others
  std::unordered_set<PyObject*> seen_;  ///< objects that have an entry; while it is taken
  std::vector<bool> held_;              ///< by place, while it is taken
  PyObject* globals_ = nullptr;
};

/// Whether a check of a place holds for an object.
bool holds(const Place& p, PyObject* o, const std::vector<PyObject*>& values);

}  // namespace fl::python::capture
#endif
