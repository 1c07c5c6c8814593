// device.cpp - text forms of devices.
#include "hidet/runtime/device.h"

#include <charconv>
#include <ostream>

#include "hidet/runtime/error.h"

namespace hidet {

Device::Device(const char* text) {
  const std::string_view name(text ? text : "");
  if (name == "cpu") return;
  if (name.starts_with("cuda")) {
    kind_ = DeviceKind::cuda;
    if (name.size() == 4) return;
    const std::string_view digits = name.substr(name[4] == ':' ? 5 : 4);
    const char* const end = digits.data() + digits.size();
    const auto [stop, problem] = std::from_chars(digits.data(), end, index_);
    if (name[4] == ':' && problem == std::errc() && stop == end && index_ >= 0) return;
  }
  throw Error(ErrorCode::usage,
              detail::concat("no device is called '", name, "': use cpu, cuda or cuda:N"));
}

std::string Device::name() const { return is_cpu() ? "cpu" : "cuda:" + std::to_string(index_); }

std::ostream& operator<<(std::ostream& out, Device device) { return out << device.name(); }

}  // namespace hidet
