// log.h - notes to the user: one callback, standard error by default, once per cause.
// Threading: thread-safe; the callback is called under a lock, one note at a time.
#pragma once
#include <functional>
#include <string>

namespace hidet {

/// Receives one note: a sentence without a line end.
using LogCallback = std::function<void(const std::string& message)>;

/// Sends notes to `callback`; an empty one sends them to standard error again ("hidet: ...").
/// The callback must not log.
void set_log(LogCallback callback);
/// Sends one note.
void log_note(const std::string& message);
/// Sends the note for this cause the first time only in this process; true when it was sent.
bool log_once(const std::string& cause, const std::string& message);

}  // namespace hidet
