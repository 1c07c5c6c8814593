// tiny_model.h - a model written by hand for tests: y = relu(x * scale), where scale is 2 * w, made by init.
// Needs: cc in PATH. Threading: one thread at a time.
#pragma once
#include <hidet/runtime/error.h>
#include <hidet/runtime/model_data.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tiny {

/// A folder that goes with the object.
struct Folder {
  std::string path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hidet-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw hidet::Error("no temporary folder");
    path = pattern;
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
};

inline std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void write_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// Compiles C text that includes abi.h into a shared object.
inline hidet::Bytes compile(const std::string& text) {
  const Folder folder;
  std::ofstream(folder / "code.c")
      << "#include <hidet/runtime/abi.h>\n"
         "static const hidet_abi* H;\n"
         "void hidet_module_init(const hidet_abi* t) { H = t; }\n"
         "uint64_t hidet_abi_size(void) { return sizeof(hidet_abi); }\n"
      << text;
  const std::string command = "cc -O1 -shared -fPIC -I" HIDET_RUNTIME_INCLUDE " -o " +
                              (folder / "code.so") + " " + (folder / "code.c");
  if (std::system(command.c_str()) != 0) throw hidet::Error("cc failed");
  return hidet::Bytes(read_file(folder / "code.so"));
}

inline const char* const kCode = R"(
static int32_t scale_relu(hidet_ctx* c, float* x, float* w, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < 3; j++) { float v = x[i * 3 + j] * w[j]; y[i * 3 + j] = v > 0 || v != v ? v : 0; }
  if (n == 13) return H->raise(c, 2, "thirteen rows are unlucky");
  return 0;
}
int32_t hidet_call_scale_relu(hidet_ctx* c, const hidet_value* a) { return scale_relu(c, a[0].p, a[1].p, a[2].p, a[3].i); }
int32_t hidet_graph_init(hidet_ctx* c, void* const* s, void* const* o, void* ws) {
  (void)c; (void)ws;
  for (int i = 0; i < 3; i++) ((float*)o[0])[i] = 2 * ((float*)s[0])[i];
  return 0;
}
int32_t hidet_graph_launch(hidet_ctx* c, const int64_t* s, void* const* in, void* const* out, void* const* w, void* ws) {
  (void)ws;
  return scale_relu(c, in[0], w[0], out[0], s[0]);
}
int64_t hidet_graph_workspace(const int64_t* s, int32_t init) { return init ? 0 : 64 * s[0]; }
void hidet_graph_output_shapes(const int64_t* s, int64_t* d) { d[0] = s[0]; d[1] = 3; }
)";

/// Outputs: y, then x passed through, the stored weight, and y again.
inline hidet::ModelData model(std::vector<float> w = {1, -2, 3}) {
  using namespace hidet;
  static const Bytes code = compile(kCode);
  ModelData m;
  m.name = "tiny";
  m.inputs = {{"x", f32, {"n", 3}, {}}};
  m.outputs = {{"y", f32, {"n", 3}, {}},
               {"x2", f32, {"n", 3}, {}},
               {"w2", f32, {3}, {}},
               {"y2", f32, {"n", 3}, {}}};
  m.symbols = {{"n", 0, 1000}};
  m.sources = {{"w", f32, {3}, from_vector<float>(w, {3})}};
  m.stored = {{"mul(w, 2)", f32, {3}, -1, {}}};
  ProgramData p;
  p.target = "x86-64";
  p.code = code;
  p.stored = {0};
  p.execution.tensors = {{f32, {"n", 3}}, {f32, {3}}, {f32, {"n", 3}}};
  p.execution.inputs_index = {0};
  p.execution.weights_index = {1};
  p.execution.outputs_index = {2, 0, 1, 2};
  p.execution.instructions = {{"launch", 0, {0, 1}, {2}, {"n"}, {}, "relu"}};
  KernelData k;
  k.name = "scale_relu";
  k.symbols = {"n"};
  k.inputs = {{"x", f32, {"n", 3}, {}}, {"w", f32, {3}, {}}};
  k.outputs = {{"y", f32, {"n", 3}, {}}};
  k.candidates = {{"default", "", "scale_relu"}};
  p.kernels = {k};
  p.workspace_cpu = DimExpr("n") * 64;
  m.programs = {p};
  m.graph_string = "y = relu(x * (w * 2))";
  return m;
}

}  // namespace tiny
