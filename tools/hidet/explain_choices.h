// explain_choices.h - what `hidet explain` says about the candidates of a kernel.
// Threading: one thread.
#pragma once
#include <hidet/graph/tune_records.h>
#include <hidet/runtime/model_data.h>

#include "command.h"

namespace hidet::tools {

/// A row of the dispatch table, for one kernel.
struct ChoiceAt {
  std::string device, dims, kernel_dims;  ///< dims of the model's symbols, and of the kernel's
  std::string candidate;
};

struct KernelChoices {
  const KernelData* kernel;
  std::vector<ChoiceAt> choices;
  std::vector<graph::TuneRecord> records;  ///< of its candidates
};

/// The choices for a kernel of a program, and the records of its candidates.
KernelChoices choices_with_times(const ModelData& m, const ProgramData& p, size_t kernel,
                                 const std::vector<graph::TuneRecord>& records);
void print_choices(const KernelChoices& k);
/// {candidates, chosen}
nlohmann::ordered_json choices_json(const KernelChoices& k);

}  // namespace hidet::tools
