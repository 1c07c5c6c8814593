// error.cpp - how a failed internal check is reported.
#include "hidet/runtime/error.h"

#include <string_view>

namespace hidet::detail {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  // The folder that the project was built in says nothing to a reader: keep the file's name.
  std::string_view name(file);
  if (const size_t slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  throw Error(ErrorCode::internal,
              concat("internal error: ", message.empty() ? "" : message + ": ", "(", condition,
                     ") does not hold"),
              concat(name, ":", line));
}

}  // namespace hidet::detail
