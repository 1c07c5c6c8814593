// repro.cpp - cuts ever larger parts around the wrong node until one shows the fault (see repro.h).
#include "repro.h"

#include <hidet/graph/onnx.h>
#include <hidet/runtime/file.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace hidet::tools {
namespace {

/// Values that shapes are made of: small tensors of integers. As inputs they would make shapes depend on data.
bool is_shape_value(const Tensor& t) {
  return !t.dtype().is_float() && t.rank() <= 1 && t.num_elements() <= 64;
}

/// The part of a model around one node.
class Part {
 public:
  Part(const OnnxInfo& info, std::set<size_t> nodes) : info_(&info), nodes_(std::move(nodes)) {}

  size_t size() const { return nodes_.size(); }
  /// With the nodes that make what it takes from outside.
  Part grown() const {
    std::set<size_t> larger = nodes_;
    for (const std::string& value : taken())
      for (size_t i = 0; i < info_->nodes.size(); i++) {
        const auto& made = info_->nodes[i].outputs;
        if (std::find(made.begin(), made.end(), value) != made.end()) larger.insert(i);
      }
    return Part(*info_, std::move(larger));
  }
  /// What it takes from outside, initializers left out.
  std::vector<std::string> taken() const {
    std::set<std::string> made(info_->initializers.begin(), info_->initializers.end());
    for (size_t i : nodes_)
      made.insert(info_->nodes[i].outputs.begin(), info_->nodes[i].outputs.end());
    std::vector<std::string> out;
    for (size_t i : nodes_)
      for (const std::string& name : info_->nodes[i].inputs)
        if (!name.empty() && made.insert(name).second) out.push_back(name);
    return out;
  }

 private:
  const OnnxInfo* info_;
  std::set<size_t> nodes_;
};

class Search {
 public:
  Search(const std::string& model, const std::string& folder,
         const std::vector<TensorSignature>& signatures, const std::vector<Tensor>& inputs)
      : model_(model), folder_(folder), info_(inspect_onnx(model)) {
    for (size_t i = 0; i < signatures.size(); i++) {
      input_names_.push_back(signatures[i].name);
      values_[signatures[i].name] = inputs[i].cpu();
    }
  }

  int run(const std::string& node,
          const std::function<bool(const std::string&, const std::vector<Tensor>&)>& is_wrong) {
    std::filesystem::create_directories(folder_ + "/test_data_set_0");
    std::vector<std::string> outputs;
    for (size_t i = 0; i < info_.nodes.size(); i++)
      if (info_.nodes[i].name == node) {
        for (const std::string& name : info_.nodes[i].outputs)
          if (!name.empty()) outputs.push_back(name);
        for (Part part(info_, {i});;) {
          if (write(part.taken(), outputs) && is_wrong(file(), part_inputs_))
            return static_cast<int>(part.size());
          const Part larger = part.grown();
          if (larger.size() == part.size()) break;
          part = larger;
        }
      }
    HIDET_REQUIRE(write(input_names_, info_.outputs), ErrorCode::unsupported, "", "'", model_,
                  "' cannot be written as a model of its own");
    return static_cast<int>(info_.nodes.size());
  }

 private:
  std::string file() const { return folder_ + "/model.onnx"; }

  /// Runs a part of the whole model with the reference: values of `names`.
  std::vector<Tensor> reference(const std::vector<std::string>& names) {
    runtime::write_file(file(), cut_onnx(model_, {.inputs = input_names_, .outputs = names}));
    return run_reference(input_names_);
  }
  std::vector<Tensor> run_reference(const std::vector<std::string>& inputs) const {
    OnnxOptions options;
    std::vector<Tensor> given;
    for (const std::string& name : inputs) {
      const Tensor& t = values_.at(name);
      given.push_back(t);
      options.shapes[name] = {t.shape().begin(), t.shape().end()};
    }
    return from_onnx(file(), options).run(given);
  }

  /// Writes the part with its data; false where it is no model by itself.
  bool write(const std::vector<std::string>& taken, const std::vector<std::string>& outputs) try {
    std::vector<std::string> unknown;
    for (const std::string& name : taken)
      if (!values_.count(name)) unknown.push_back(name);
    if (!unknown.empty()) {
      const std::vector<Tensor> found = reference(unknown);
      for (size_t i = 0; i < unknown.size(); i++) values_[unknown[i]] = found[i];
    }
    OnnxCut cut{.inputs = {}, .outputs = outputs};
    part_inputs_.clear();
    for (const std::string& name : taken) {
      const bool own = std::count(input_names_.begin(), input_names_.end(), name) > 0;
      if (!own && is_shape_value(values_.at(name))) {
        cut.constants[name] = values_.at(name);
        continue;
      }
      cut.inputs.push_back(name);
      cut.values[name] = values_.at(name);
      part_inputs_.push_back(values_.at(name));
    }
    runtime::write_file(file(), cut_onnx(model_, cut));
    const std::vector<Tensor> right = run_reference(cut.inputs);
    for (size_t i = 0; i < right.size(); i++) cut.values[outputs[i]] = right[i];
    runtime::write_file(file(), cut_onnx(model_, cut));
    store("input", cut.inputs, part_inputs_);
    store("output", outputs, right);
    return true;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::unsupported || e.code() == ErrorCode::usage) return false;
    throw;
  }
  void store(const std::string& kind, const std::vector<std::string>& names,
             const std::vector<Tensor>& values) const {
    const std::string stem = folder_ + "/test_data_set_0/" + kind + "_";
    for (size_t i = 0; i < names.size(); i++)
      save_onnx_tensor(stem + std::to_string(i) + ".pb", names[i], values[i]);
    for (size_t i = names.size(); std::filesystem::remove(stem + std::to_string(i) + ".pb"); i++) {
    }
  }

  const std::string model_, folder_;
  const OnnxInfo info_;
  std::vector<std::string> input_names_;
  std::map<std::string, Tensor> values_;
  std::vector<Tensor> part_inputs_;
};

}  // namespace

int write_repro(
    const std::string& model, const std::string& folder, const std::string& node,
    const std::vector<TensorSignature>& signatures, const std::vector<Tensor>& inputs,
    const std::function<bool(const std::string&, const std::vector<Tensor>&)>& is_wrong) {
  return Search(model, folder, signatures, inputs).run(node, is_wrong);
}

}  // namespace hidet::tools
