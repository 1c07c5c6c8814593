// device.h - where memory is and code runs: "cpu", "cuda", "cuda:1".
// Threading: values; thread-safe.
#pragma once
#include <iosfwd>
#include <string>
#include <string_view>

namespace hidet {

enum class DeviceKind : int { cpu = 0, cuda = 1 };

/// A device. Converts from text, so that `zeros({5}, f32, "cuda")` works; a wrong name throws
/// Error(usage). Naming a GPU needs none to be there.
class Device {
 public:
  constexpr Device() = default;
  constexpr Device(DeviceKind kind, int index = 0) : kind_(kind), index_(index) {}
  Device(const char* text);
  Device(const std::string& text) : Device(text.c_str()) {}
  constexpr DeviceKind kind() const { return kind_; }
  constexpr int index() const { return index_; }
  constexpr bool is_cpu() const { return kind_ == DeviceKind::cpu; }
  constexpr bool is_cuda() const { return kind_ == DeviceKind::cuda; }
  std::string name() const;  ///< "cpu", "cuda:0"
  friend constexpr bool operator==(Device a, Device b) {
    return a.kind_ == b.kind_ && a.index_ == b.index_;
  }

 private:
  DeviceKind kind_ = DeviceKind::cpu;
  int index_ = 0;
};
std::ostream& operator<<(std::ostream& out, Device device);

}  // namespace hidet
