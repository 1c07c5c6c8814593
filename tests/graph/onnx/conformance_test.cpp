// conformance_test.cpp - runs the ONNX node cases (Debian's libonnx-testdata, or the folder in
// HIDET_ONNX_TESTDATA) with the reference evaluator. A case counts as passed, unsupported (an
// Error(unsupported)) or failed; failures are listed, and a run with fewer passes than the floor
// fails. Each case runs in a child, so that none can take the others down.
#include <hidet/graph/onnx.h>
#include <hidet/runtime/error.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;

namespace {

enum Outcome {
  passed = 0,
  mismatch = 1,
  unsupported = 2,
  failed = 3,
  crashed = 4,
  passed_fixed = 5
};

fs::path data_folder() {
  if (const char* folder = std::getenv("HIDET_ONNX_TESTDATA")) return folder;
  return "/usr/share/libonnx-testdata/data/node";
}

// Some bf16 values are stored as u16: `signatures` tells.
std::vector<hidet::Tensor> load(const fs::path& set, const std::string& kind,
                                const std::vector<hidet::TensorSignature>& signatures) {
  std::vector<hidet::Tensor> out;
  for (int i = 0; fs::exists(set / (kind + "_" + std::to_string(i) + ".pb")); i++) {
    hidet::Tensor tensor =
        hidet::load_onnx_tensor((set / (kind + "_" + std::to_string(i) + ".pb")).string());
    const bool bits = static_cast<size_t>(i) < signatures.size() && tensor.dtype() == hidet::u16 &&
                      signatures[i].dtype == hidet::bf16;
    out.push_back(bits ? tensor.view_at(0, tensor.shape(), hidet::bf16) : tensor);
  }
  return out;
}

bool close(const hidet::Tensor& actual, const hidet::Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) return false;
  const auto a = actual.to_doubles(), e = expected.to_doubles();
  const double rtol = expected.dtype().bits() == 16 && expected.dtype().is_float() ? 5e-3 : 1e-3;
  for (size_t i = 0; i < a.size(); i++) {
    if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) continue;
    if (!(std::fabs(a[i] - e[i]) <= 1e-7 + rtol * std::fabs(e[i]))) return false;
  }
  return true;
}

/// Runs one case. With `fix`, all inputs but the first are fixed at import: the cases of operators
/// whose shapes depend on an input (axes, target shapes) are models that no real exporter writes.
Outcome run_case(const fs::path& folder, bool fix, std::string& message) {
  try {
    const std::string path = (folder / "model.onnx").string();
    hidet::OnnxOptions options;
    if (fix) {
      const auto values = load(folder / "test_data_set_0", "input", {});
      const auto names = hidet::inspect_onnx(path).inputs;
      for (size_t i = values.size() == 1 ? 0 : 1; i < values.size() && i < names.size(); i++)
        options.values[names[i]] = values[i];
    }
    const hidet::FlowGraph graph = hidet::from_onnx(path, options);
    for (int i = 0; fs::exists(folder / ("test_data_set_" + std::to_string(i))); i++) {
      const fs::path set = folder / ("test_data_set_" + std::to_string(i));
      const auto expected = load(set, "output", graph.outputs());
      auto inputs = load(set, "input", graph.inputs());
      inputs.resize(std::min(inputs.size(), graph.inputs().size()));
      for (size_t k = 0; k < inputs.size(); k++) {
        // A few stored inputs do not have the shape that their model declares.
        const std::vector<hidet::DimExpr> declared = graph.inputs()[k].shape;
        if (hidet::is_concrete(declared) && hidet::to_concrete(declared) != inputs[k].shape()) {
          message = "the stored input is " + inputs[k].describe();
          return unsupported;
        }
      }
      const auto actual = graph.run(inputs);
      for (size_t k = 0; k < expected.size(); k++)
        if (k >= actual.size() || !close(actual[k], expected[k])) {
          message = "output " + std::to_string(k) + " is " +
                    (k < actual.size() ? actual[k].describe() : "missing") + ", expected " +
                    expected[k].describe();
          return mismatch;
        }
    }
    return passed;
  } catch (const hidet::Error& e) {
    message = e.what();
    return e.code() == hidet::ErrorCode::unsupported ? unsupported : failed;
  } catch (const std::exception& e) {
    message = e.what();
    return failed;
  }
}

Outcome run_in_child(const fs::path& folder) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    std::string message;
    Outcome outcome = run_case(folder, false, message);
    if (outcome == unsupported) {
      std::string second;
      if (run_case(folder, true, second) == passed) outcome = passed_fixed;
    }
    if (outcome != passed && outcome != passed_fixed &&
        (outcome != unsupported || std::getenv("HIDET_ONNX_VERBOSE")))
      std::printf("%s: %s\n", folder.filename().c_str(), message.c_str());
    std::fflush(stdout);
    ::_exit(outcome);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<Outcome>(WEXITSTATUS(status)) : crashed;
}

}  // namespace

TEST(OnnxConformance, NodeCases) {
  const fs::path root = data_folder();
  ASSERT_TRUE(fs::exists(root)) << root << " is missing: install libonnx-testdata";
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(root))
    if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  int count[6] = {};
  for (const fs::path& folder : cases) {
    const Outcome outcome = run_in_child(folder);
    count[outcome]++;
    if (outcome == crashed) std::printf("%s: crashed\n", folder.filename().c_str());
  }
  std::printf(
      "%zu cases: %d passed, %d passed with fixed inputs, %d unsupported, %d mismatches, %d "
      "errors, %d crashes\n",
      cases.size(), count[passed], count[passed_fixed], count[unsupported], count[mismatch],
      count[failed], count[crashed]);
  EXPECT_EQ(count[mismatch] + count[failed] + count[crashed], 0);
  const char* floor = std::getenv("HIDET_ONNX_FLOOR");
  EXPECT_GE(count[passed], floor ? std::atoi(floor) : 1);
}
