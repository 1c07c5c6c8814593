// child.h - child processes without a shell, private temporary folders, programs in PATH.
// Threading: thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hidet::backends::cpu {

/// A folder of our own that goes away with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();  ///< in TMPDIR, else /tmp, /var/tmp, /dev/shm; Error(io) when none can be written
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const;  ///< Error(io) on failure
  /// The file's bytes; empty when it is not there.
  std::vector<uint8_t> read(const std::string& name) const;

 private:
  std::string path_;
};

struct ChildResult {
  int exit_code = 0;   ///< 128 + signal when a signal ended it
  std::string output;  ///< standard output and error together
};

/// Runs arguments[0] (an absolute path) in `folder` and waits. The arguments reach the program as they
/// are. Its input is empty, its temporary files go to `folder`. Error(device) when it cannot be started.
ChildResult run_child(const std::vector<std::string>& arguments, const std::string& folder);

/// Absolute path of an executable called `name` in PATH, or `name` itself when it has a slash; empty if none.
std::string find_program(const std::string& name);

}  // namespace hidet::backends::cpu
