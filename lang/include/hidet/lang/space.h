// space.h - parameter spaces: kernels that are recorded once for each choice of some numbers.
// Threading: plain values.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hidet::lang {

class ScriptModule;

/// One parameter and the values to try; the first of each make the default candidate.
struct SpaceDim {
  std::string name;
  std::vector<int64_t> values;
};

/// The values of one candidate.
class Params {
 public:
  explicit Params(std::vector<std::pair<std::string, int64_t>> values)
      : values_(std::move(values)) {}
  /// The value of the parameter `name`; Error(usage) where there is none.
  int64_t operator[](const std::string& name) const;
  std::string text() const;  ///< "tile=32,stages=2"

 private:
  std::vector<std::pair<std::string, int64_t>> values_;
};

}  // namespace hidet::lang
