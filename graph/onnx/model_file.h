// model_file.h - the bytes of an ONNX file and of its external data, memory-mapped.
// External data is opened only inside the model's folder: a location that is empty, absolute, has
// `..` or a backslash, or goes through a symbolic link, and a file that is no plain file or has
// more than one hard link, is refused before any byte is read. Messages name the model file and
// the tensor, never a path outside of the folder.
// Threading: one thread at a time; the mappings may be read by any thread.
#pragma once
#include <hidet/runtime/error.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "onnx/proto.h"

namespace hidet::graph::onnx {

/// A read-only mapping of a whole file; unmapped when the last handle goes.
struct Mapping {
  const char* data = nullptr;
  size_t size = 0;
  ~Mapping();
  std::string_view bytes() const { return {data, size}; }
};

/// An ONNX file and the external files that its tensors name.
class ModelFile {
 public:
  /// Maps the file. Throws Error(bad_file) that names `path` where it is missing or no plain file.
  explicit ModelFile(const std::string& path);

  /// The file's name without folders, for messages.
  const std::string& name() const { return name_; }
  const std::shared_ptr<const Mapping>& mapping() const { return model_; }
  std::string_view bytes() const { return model_->bytes(); }

  /// The bytes of an external tensor and what keeps them alive.
  struct View {
    std::string_view bytes;
    std::shared_ptr<const Mapping> owner;
  };
  /// `bytes_needed` is what shape and dtype ask for; a stated length must be equal;
  /// `what` says whose tensor it is ("initializer 'w'").
  View external(const TensorProto& tensor, uint64_t bytes_needed, const std::string& what);

 private:
  std::shared_ptr<const Mapping> open_external(const std::string& location,
                                               const std::string& what) const;
  std::string folder_, name_;
  std::shared_ptr<const Mapping> model_;
  std::map<std::string, std::shared_ptr<const Mapping>> external_;
};

}  // namespace hidet::graph::onnx
