// file.h - a model to a file and back.
// Threading: thread-safe.
#pragma once
#include <string>
#include <vector>

#include "src/container/archive.h"
#include "src/model/state.h"

namespace hidet::runtime {

void save_model(const ModelState& state, const std::string& path, const SaveOptions& options);
std::vector<uint8_t> serialize_model(const ModelState& state, const SaveOptions& options);
/// Everything but code that is not looked at; weights are views of the archive. Throws Error(bad_file).
ModelData read_model_data(const Archive& archive, const LoadOptions& options);

}  // namespace hidet::runtime
