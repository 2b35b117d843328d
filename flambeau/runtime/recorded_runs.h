// Runs of a program that are recorded, and run again as one (CUDA graphs). Tests:
// tests/python/cuda/test_cuda_graphs.py.
//
// A recording has its addresses built in. Its outputs lie in memory of its own, which is written again only
// when nobody holds them any more; a call that finds them held gets another recording, or runs without.
// Inputs are read where they are: one that moved is copied to a place of the recording from then on, if it is
// small; a parameter, and what the program changes in place, never is: where it moved, the run is recorded
// anew.
#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "flambeau/runtime/executable_run.h"

namespace fl::runtime {

/// Counts of this process, for tests and who looks after performance.
struct RecordingFigures {
  int64_t recorded = 0, replayed = 0, skipped = 0;
  int64_t copied = 0;       ///< bytes of inputs that moved, and of outputs that were held
  std::string last_reason;  ///< why runs of a program are not recorded
};
RecordingFigures recording_figures();

/// Those of one layout. Several threads may run at once: then all but one go without recordings.
class Executable::RecordedRuns {
 public:
  explicit RecordedRuns(const Executable& e);
  ~RecordedRuns();
  /// The results of a recorded run; nothing where the call has to go without.
  std::optional<std::vector<Value>> run(Run& run);

 private:
  struct Lease;
  struct Recorded;
  Recorded* find(const Run& run, bool& busy);
  Recorded* record(Run& run);
  bool fits(const Recorded& r, const Run& run) const;
  void note_moves(const Run& run);
  void note_addresses(const Run& run);
  int64_t bytes_of(const Run& run, int buffer) const;
  void note_held(const Recorded& r);
  void make_room();
  std::vector<Value> replay(Recorded& r, Run& run) const;
  void give_up(std::string reason);

  const Executable& executable_;
  std::mutex mutex_;
  int calls_ = 0, recorded_ = 0;
  bool gave_up_ = false;
  int64_t arena_bytes_ = -1;  // what was asked for, on this stream
  uint64_t queue_ = 0;
  std::vector<int> input_buffers_;     // of inputs that are not given by value
  std::vector<void*> last_addresses_;  // of those, when they were last noted
  std::vector<int> moves_;             // of those: how often they were in another recording's memory
  std::vector<bool> copied_in_;        // of those: they have a place of its own
  std::vector<bool> copied_out_;  // by buffer: outputs that callers keep for long get memory of their own
  std::vector<std::unique_ptr<Recorded>> all_;  // the one that ran last is the last
};

}  // namespace fl::runtime
