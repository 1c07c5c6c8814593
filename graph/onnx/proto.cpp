// proto.cpp - decodes ONNX messages. One function a message; field numbers are those of onnx.proto,
// which are frozen. A field that is not listed is skipped, as protobuf asks.
#include "onnx/proto.h"

#include "onnx/wire.h"

namespace hidet::graph::onnx {
namespace {

GraphProto read_graph(std::string_view bytes, Trail& trail);

std::pair<std::string, std::string> read_entry(std::string_view bytes, Trail& trail) {
  std::pair<std::string, std::string> out;
  for (WireReader in(bytes, trail); in.next();) {
    switch (in.number()) {
      case 1: out.first = in.string(); break;
      case 2: out.second = in.string(); break;
    }
  }
  return out;
}

TensorProto read_tensor(std::string_view bytes, Trail& trail) {
  TensorProto out;
  for (WireReader in(bytes, trail); in.next();) {
    switch (in.number()) {
      case 1: in.append(out.dims); break;
      case 2: out.data_type = in.int32(); break;
      case 3: trail.fail("a tensor in segments is not supported by ONNX readers");
      case 4: in.append(out.floats); break;
      case 5: in.append(out.int32s); break;
      case 6: out.has_strings = true; break;
      case 7: in.append(out.int64s); break;
      case 8: out.name = in.string(); break;
      case 9: out.raw = in.bytes(), out.has_raw = true; break;
      case 10: in.append(out.doubles); break;
      case 11: in.append(out.uint64s); break;
      case 13: {
        Step step(trail, "external_data", static_cast<int64_t>(out.external_data.size()));
        out.external_data.push_back(read_entry(in.bytes(), trail));
        break;
      }
      case 14: out.external = in.int64() == 1; break;
    }
  }
  return out;
}

DimProto read_dim(std::string_view bytes, Trail& trail) {
  DimProto out;
  for (WireReader in(bytes, trail); in.next();) {
    switch (in.number()) {
      case 1: out.has_value = true, out.value = in.int64(); break;
      case 2: out.symbol = in.string(); break;
    }
  }
  return out;
}

void read_shape(std::string_view bytes, Trail& trail, ValueInfoProto& out) {
  out.has_shape = true;
  for (WireReader in(bytes, trail); in.next();) {
    if (in.number() != 1) continue;
    Step step(trail, "dim", static_cast<int64_t>(out.shape.size()));
    out.shape.push_back(read_dim(in.bytes(), trail));
  }
}

void read_tensor_type(std::string_view bytes, Trail& trail, ValueInfoProto& out) {
  for (WireReader in(bytes, trail); in.next();) {
    if (in.number() == 1) out.elem_type = in.int32();
    if (in.number() != 2) continue;
    Step step(trail, "shape");
    read_shape(in.bytes(), trail, out);
  }
}

void read_type(std::string_view bytes, Trail& trail, ValueInfoProto& out) {
  for (WireReader in(bytes, trail); in.next();) {
    switch (in.number()) {
      case 1: {
        Step step(trail, "tensor_type");
        out.kind = "tensor";
        read_tensor_type(in.bytes(), trail, out);
        break;
      }
      case 4: out.kind = "sequence"; break;
      case 5: out.kind = "map"; break;
      case 7: out.kind = "opaque value"; break;
      case 8: out.kind = "sparse tensor"; break;
      case 9: out.kind = "optional"; break;
    }
  }
}

ValueInfoProto read_value_info(std::string_view bytes, Trail& trail) {
  ValueInfoProto out;
  for (WireReader in(bytes, trail); in.next();) {
    if (in.number() == 1) out.name = in.string();
    if (in.number() != 2) continue;
    Step step(trail, "type");
    read_type(in.bytes(), trail, out);
  }
  return out;
}

// Files of the first ONNX versions have no `type`: then it follows from the field that is set.
void infer_type(AttributeProto& out, AttributeType seen, Trail& trail) {
  if (out.type == AttributeType::undefined) out.type = seen;
  const auto number = static_cast<int32_t>(out.type);
  if (number < 0 || number > 14)
    trail.fail(
        detail::concat("attribute ", quote_name(out.name), " has the unknown type ", number));
  if ((out.type == AttributeType::tensor && !out.tensor) ||
      (out.type == AttributeType::graph && !out.graph))
    trail.fail(detail::concat("attribute ", quote_name(out.name), " has no value of its type"));
}

AttributeProto read_attribute(std::string_view bytes, Trail& trail) {
  using T = AttributeType;
  AttributeProto out;
  T seen = T::undefined;
  for (WireReader in(bytes, trail); in.next();) {
    switch (in.number()) {
      case 1: out.name = in.string(); break;
      case 2: out.f = in.f32(), seen = T::f; break;
      case 3: out.i = in.int64(), seen = T::i; break;
      case 4: out.s = in.string(), seen = T::s; break;
      case 5: {
        Step step(trail, "t");
        out.tensor = std::make_shared<TensorProto>(read_tensor(in.bytes(), trail));
        seen = T::tensor;
        break;
      }
      case 6: {
        Step step(trail, "g");
        out.graph = std::make_shared<GraphProto>(read_graph(in.bytes(), trail));
        seen = T::graph;
        break;
      }
      case 7: in.append(out.floats), seen = T::floats; break;
      case 8: in.append(out.ints), seen = T::ints; break;
      case 9: out.strings.push_back(in.string()), seen = T::strings; break;
      case 20: out.type = static_cast<T>(in.int32()); break;
      case 21:
        throw Error(ErrorCode::unsupported,
                    detail::concat(trail.entry(), ": attribute ", quote_name(out.name),
                                   " refers to a function's attribute; model-local functions are "
                                   "not supported"),
                    trail.file());
    }
  }
  infer_type(out, seen, trail);
  return out;
}

NodeProto read_node(std::string_view bytes, Trail& trail) {
  NodeProto out;
  out.bytes = bytes;
  for (WireReader in(bytes, trail); in.next();) {
    switch (in.number()) {
      case 1: out.inputs.push_back(in.string()); break;
      case 2: out.outputs.push_back(in.string()); break;
      case 3: out.name = in.string(); break;
      case 4: out.op_type = in.string(); break;
      case 5: {
        Step step(trail, "attribute", static_cast<int64_t>(out.attributes.size()));
        out.attributes.push_back(read_attribute(in.bytes(), trail));
        break;
      }
      case 7: out.domain = in.string(); break;
    }
  }
  if (out.domain == "ai.onnx") out.domain.clear();
  return out;
}

template <class T, class Read>
void read_into(std::vector<T>& list, const char* field, Trail& trail, std::string_view bytes,
               Read read) {
  Step step(trail, field, static_cast<int64_t>(list.size()));
  list.push_back(read(bytes, trail));
}

GraphProto read_graph(std::string_view bytes, Trail& trail) {
  GraphProto out;
  for (WireReader in(bytes, trail); in.next();) {
    switch (in.number()) {
      case 1: read_into(out.nodes, "node", trail, in.bytes(), read_node); break;
      case 2: out.name = in.string(); break;
      case 5: read_into(out.initializers, "initializer", trail, in.bytes(), read_tensor); break;
      case 11: read_into(out.inputs, "input", trail, in.bytes(), read_value_info); break;
      case 12: read_into(out.outputs, "output", trail, in.bytes(), read_value_info); break;
      case 15:
        throw Error(ErrorCode::unsupported,
                    trail.entry() + ": sparse initializers are not supported", trail.file());
    }
  }
  return out;
}

OpsetId read_opset(std::string_view bytes, Trail& trail) {
  OpsetId out;
  for (WireReader in(bytes, trail); in.next();) {
    switch (in.number()) {
      case 1: out.domain = in.string(); break;
      case 2: out.version = in.int64(); break;
    }
  }
  if (out.domain == "ai.onnx") out.domain.clear();
  return out;
}

// Only the name, for the refusal.
std::string read_function_name(std::string_view bytes, Trail& trail) {
  std::string name;
  for (WireReader in(bytes, trail); in.next();)
    if (in.number() == 1) name = in.string();
  return name;
}

void refuse_functions(const std::vector<std::string>& names, const std::string& file) {
  if (names.empty()) return;
  std::string list;
  for (size_t i = 0; i < names.size() && i < 20; i++)
    list += (i ? ", " : "") + quote_name(names[i]);
  throw Error(
      ErrorCode::unsupported,
      detail::concat("model-local functions are not supported; the file has ", names.size(), ": ",
                     list, names.size() > 20 ? ", ..." : "", "; inline them when exporting"),
      file);
}

}  // namespace

int64_t ModelProto::opset(std::string_view domain) const {
  for (const OpsetId& id : opsets)
    if (id.domain == domain) return id.version;
  return 0;
}

ModelProto decode_model(std::string_view bytes, const std::string& file) {
  Trail trail(file);
  ModelProto out;
  std::vector<std::string> functions;
  bool has_graph = false;
  for (WireReader in(bytes, trail); in.next();) {
    switch (in.number()) {
      case 1: out.ir_version = in.int64(); break;
      case 2: out.producer = in.string(); break;
      case 7: {
        if (has_graph) trail.fail("the file holds two graphs");
        has_graph = true;
        Step step(trail, "graph");
        out.graph = read_graph(in.bytes(), trail);
        break;
      }
      case 8: read_into(out.opsets, "opset_import", trail, in.bytes(), read_opset); break;
      case 25: read_into(functions, "functions", trail, in.bytes(), read_function_name); break;
    }
  }
  if (!has_graph) trail.fail("the file holds no ONNX graph");
  refuse_functions(functions, file);
  return out;
}

TensorProto decode_tensor(std::string_view bytes, const std::string& file) {
  Trail trail(file);
  return read_tensor(bytes, trail);
}

}  // namespace hidet::graph::onnx
