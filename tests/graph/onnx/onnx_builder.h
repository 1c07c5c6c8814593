// onnx_builder.h - writes ONNX files in memory, so that tests need no Python and no stored models.
// Messages are strings of protobuf wire format, made by the small functions below; `Model` puts
// them together. Threading: values.
#pragma once
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace onnx_test {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number(uint32_t field, int64_t value) {
  return varint(field << 3) + varint(static_cast<uint64_t>(value));
}
inline std::string bytes(uint32_t field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}
inline std::string real(uint32_t field, float value) {
  std::string out = varint(field << 3 | 5);
  out.resize(out.size() + 4);
  std::memcpy(out.data() + out.size() - 4, &value, 4);
  return out;
}

/// ONNX's element type of a C++ type.
template <class T>
constexpr int onnx_type() = delete;
template <>
constexpr int onnx_type<float>() {
  return 1;
}
template <>
constexpr int onnx_type<uint8_t>() {
  return 2;
}
template <>
constexpr int onnx_type<int8_t>() {
  return 3;
}
template <>
constexpr int onnx_type<int32_t>() {
  return 6;
}
template <>
constexpr int onnx_type<int64_t>() {
  return 7;
}
template <>
constexpr int onnx_type<bool>() {
  return 9;
}
template <>
constexpr int onnx_type<double>() {
  return 11;
}

/// A TensorProto with raw data.
template <class T>
std::string tensor(const std::string& name, const std::vector<int64_t>& dims,
                   const std::vector<T>& values) {
  std::string out, raw;
  for (int64_t d : dims) out += number(1, d);
  for (T v : values) {
    char cell[sizeof(T)];
    std::memcpy(cell, &v, sizeof(T));
    raw.append(cell, sizeof(T));
  }
  return out + number(2, onnx_type<T>()) + bytes(8, name) + bytes(9, raw);
}

/// A f32 TensorProto whose values lie in another file.
inline std::string external_tensor(const std::string& name, const std::vector<int64_t>& dims,
                                   const std::string& location, int64_t offset, int64_t length) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return bytes(13, bytes(1, key) + bytes(2, value));
  };
  std::string out;
  for (int64_t d : dims) out += number(1, d);
  return out + number(2, 1) + bytes(8, name) + entry("location", location) +
         entry("offset", std::to_string(offset)) + entry("length", std::to_string(length)) +
         number(14, 1);
}

/// A dimension: a number, a symbol, or "?" for unknown.
struct Dim {
  Dim(int64_t value) : text(number(1, value)) {}  // NOLINT: {2, "n"} reads well
  Dim(int value) : text(number(1, value)) {}
  Dim(const char* symbol) : text(*symbol == '?' ? "" : bytes(2, symbol)) {}
  std::string text;
};

/// A ValueInfoProto of a tensor.
inline std::string value(const std::string& name, int elem_type, const std::vector<Dim>& dims) {
  std::string shape;
  for (const Dim& dim : dims) shape += bytes(1, dim.text);
  return bytes(1, name) + bytes(2, bytes(1, number(1, elem_type) + bytes(2, shape)));
}

// AttributeProto.
inline std::string attr(const std::string& name, int64_t value) {
  return bytes(1, name) + number(3, value) + number(20, 2);
}
inline std::string attr(const std::string& name, int value) { return attr(name, int64_t{value}); }
inline std::string attr(const std::string& name, float value) {
  return bytes(1, name) + real(2, value) + number(20, 1);
}
inline std::string attr(const std::string& name, const std::string& value) {
  return bytes(1, name) + bytes(4, value) + number(20, 3);
}
inline std::string attr(const std::string& name, const char* value) {
  return attr(name, std::string(value));
}
inline std::string attr(const std::string& name, const std::vector<int64_t>& values) {
  std::string out = bytes(1, name);
  for (int64_t v : values) out += number(8, v);
  return out + number(20, 7);
}
inline std::string attr_tensor(const std::string& name, const std::string& tensor) {
  return bytes(1, name) + bytes(5, tensor) + number(20, 4);
}
inline std::string attr_graph(const std::string& name, const std::string& graph) {
  return bytes(1, name) + bytes(6, graph) + number(20, 5);
}

/// A ModelProto in parts.
struct Model {
  int64_t opset = 17;
  std::string graph, extra;

  Model& input(const std::string& name, int elem_type, const std::vector<Dim>& dims) {
    graph += bytes(11, value(name, elem_type, dims));
    return *this;
  }
  Model& output(const std::string& name, int elem_type = 1, const std::vector<Dim>& dims = {}) {
    graph += bytes(12, dims.empty() ? bytes(1, name) + bytes(2, bytes(1, number(1, elem_type)))
                                    : value(name, elem_type, dims));
    return *this;
  }
  Model& initializer(const std::string& tensor) {
    graph += bytes(5, tensor);
    return *this;
  }
  Model& node(const std::string& op, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const std::vector<std::string>& attrs = {},
              const std::string& name = "", const std::string& domain = "") {
    std::string out;
    for (const auto& i : inputs) out += bytes(1, i);
    for (const auto& o : outputs) out += bytes(2, o);
    out += bytes(3, name) + bytes(4, op);
    for (const auto& a : attrs) out += bytes(5, a);
    if (!domain.empty()) out += bytes(7, domain);
    graph += bytes(1, out);
    return *this;
  }
  /// The file. The name field is last, so that the graph is not at the file's end.
  std::string serialize() const {
    return number(1, 8) + bytes(7, graph + bytes(2, "g")) +
           bytes(8, bytes(1, "") + number(2, opset)) + extra;
  }
};

inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
}

}  // namespace onnx_test
