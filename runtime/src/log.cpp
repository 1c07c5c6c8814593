// log.cpp - keeps the log callback and the causes already told.
// Threading: one lock around both; objects live for ever, as notes may come from exit handlers.
#include "hidet/runtime/log.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

namespace hidet {
namespace {

struct State {
  std::mutex mutex;
  LogCallback callback;
  std::set<std::string> told;
};

State& state() {
  static State* const s = new State;
  return *s;
}

void send(State& s, const std::string& message) {
  if (s.callback) s.callback(message);
  else std::fprintf(stderr, "hidet: %s\n", message.c_str());
}

}  // namespace

void set_log(LogCallback callback) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.callback = std::move(callback);
}

void log_note(const std::string& message) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  send(s, message);
}

bool log_once(const std::string& cause, const std::string& message) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!s.told.insert(cause).second) return false;
  send(s, message);
  return true;
}

}  // namespace hidet
