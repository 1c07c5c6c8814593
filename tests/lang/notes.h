// notes.h - what is noted of candidates while something runs.
#pragma once
#include <hidet/runtime/log.h>

#include <string>
#include <vector>

namespace hidet::lang {

/// The notes of candidates logged while `work` runs. Others, as of a compiler that is missing, depend on the machine.
template <class Work>
std::vector<std::string> candidate_notes(Work work) {
  std::vector<std::string> notes;
  struct Listener {
    explicit Listener(std::vector<std::string>& to) {
      set_log([&to](const std::string& note) {
        if (note.starts_with("candidate ")) to.push_back(note);
      });
    }
    ~Listener() { set_log({}); }
  } const listener(notes);
  work();
  return notes;
}

}  // namespace hidet::lang
