// compare.cpp - differences and tolerances (see compare.h).
#include "compare.h"

#include <hidet/graph/onnx.h>

#include <cmath>
#include <filesystem>

namespace hidet::tools {

Difference compare(const Tensor& got, const Tensor& expected) {
  Difference d;
  if (got.shape() != expected.shape() || !(got.dtype() == expected.dtype()))
    return d.same_kind = false, d;
  const std::vector<double> g = got.cpu().to_doubles(), e = expected.cpu().to_doubles();
  for (double v : e)
    if (std::isfinite(v)) d.scale = std::fmax(d.scale, std::fabs(v));
  for (size_t i = 0; i < e.size(); i++) {
    if (std::isnan(g[i]) || std::isnan(e[i]))
      d.same_kind = d.same_kind && std::isnan(g[i]) == std::isnan(e[i]);
    else if (std::isinf(g[i]) || std::isinf(e[i])) d.same_kind = d.same_kind && g[i] == e[i];
    else d.worst = std::fmax(d.worst, std::fabs(g[i] - e[i]));
  }
  return d;
}

bool Tolerance::accepts(const Difference& d, DType dtype) const {
  struct Row {
    DType dtype;
    double rtol, atol;
  };
  static const Row rows[] = {
      {f64, 1e-9, 1e-12}, {f32, 1e-4, 1e-5}, {f16, 5e-3, 1e-4}, {bf16, 4e-2, 1e-3}};
  Row allowed{dtype, 0, 0};
  for (const Row& row : rows)
    if (row.dtype == dtype) allowed = row;
  return d.same_kind &&
         d.worst <= atol.value_or(allowed.atol) + rtol.value_or(allowed.rtol) * d.scale;
}

std::vector<Tensor> stored_tensors(const std::string& folder, const std::string& kind,
                                   const std::vector<TensorSignature>& signatures) {
  std::vector<Tensor> out;
  for (size_t i = 0;; i++) {
    const std::string file = folder + "/" + kind + "_" + std::to_string(i) + ".pb";
    if (!std::filesystem::exists(file)) return out;
    const Tensor t = load_onnx_tensor(file);
    const bool bits = i < signatures.size() && t.dtype() == u16 && signatures[i].dtype == bf16;
    out.push_back(bits ? t.view_at(0, t.shape(), bf16) : t);
  }
}

}  // namespace hidet::tools
