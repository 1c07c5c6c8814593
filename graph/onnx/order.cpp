// order.cpp - topological order of an ONNX graph; see order.h.
#include "onnx/order.h"

#include <hidet/runtime/error.h>

#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "onnx/wire.h"

namespace hidet::graph::onnx {
namespace {

constexpr size_t kNoNode = SIZE_MAX;  // made by an input, an initializer or the outer graph
using Makers = std::unordered_map<std::string, size_t>;

/// The names that a graph makes, and the scopes around it.
struct Scope {
  const Scope* outer;
  std::unordered_set<std::string_view> names;
  bool has(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->outer)
      if (scope->names.count(name)) return true;
    return false;
  }
};

// The recursion is bounded by the decoder's nesting limit.
void collect_captured(const GraphProto& graph, const Scope* outer, std::vector<std::string>& out) {
  Scope own{outer, {}};
  for (const auto& value : graph.inputs) own.names.insert(value.name);
  for (const auto& value : graph.initializers) own.names.insert(value.name);
  for (const NodeProto& node : graph.nodes)
    for (const std::string& name : node.outputs) own.names.insert(name);
  for (const NodeProto& node : graph.nodes) {
    for (const std::string& name : node.inputs)
      if (!name.empty() && !own.has(name)) out.push_back(name);
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.graph) collect_captured(*attribute.graph, &own, out);
  }
  for (const auto& value : graph.outputs)
    if (!own.has(value.name)) out.push_back(value.name);
}

void add_maker(Makers& makers, const std::string& name, size_t node, const std::string& what,
               const std::string& file) {
  HIDET_REQUIRE(makers.emplace(name, node).second, ErrorCode::bad_file, file, what,
                " makes the value ", quote_name(name), ", which another one makes already");
}

Makers collect_makers(const GraphProto& graph, const std::string& file,
                      const std::vector<std::string>& outer) {
  Makers makers;
  for (const std::string& name : outer) makers.emplace(name, kNoNode);
  for (size_t i = 0; i < graph.inputs.size(); i++) {
    HIDET_REQUIRE(!graph.inputs[i].name.empty(), ErrorCode::bad_file, file, "graph input ", i,
                  " has no name");
    add_maker(makers, graph.inputs[i].name, kNoNode, "graph input " + std::to_string(i), file);
  }
  std::unordered_set<std::string> seen;
  for (const TensorProto& tensor : graph.initializers) {
    HIDET_REQUIRE(seen.insert(tensor.name).second, ErrorCode::bad_file, file, "two initializers ",
                  "are called ", quote_name(tensor.name));
    makers.emplace(tensor.name, kNoNode);  // it may be the default of an input
  }
  for (size_t i = 0; i < graph.nodes.size(); i++)
    for (const std::string& name : graph.nodes[i].outputs)
      if (!name.empty()) add_maker(makers, name, i, describe(graph.nodes[i], i), file);
  return makers;
}

// The makers that each node waits for.
std::vector<std::vector<size_t>> collect_needs(const GraphProto& graph, const std::string& file,
                                               const Makers& makers) {
  std::vector<std::vector<size_t>> needs(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); i++) {
    std::vector<std::string> names = captured_names(graph.nodes[i]);
    for (const std::string& name : graph.nodes[i].inputs)
      if (!name.empty()) names.push_back(name);
    for (const std::string& name : names) {
      const auto maker = makers.find(name);
      HIDET_REQUIRE(maker != makers.end(), ErrorCode::bad_file, file, describe(graph.nodes[i], i),
                    " needs the value ", quote_name(name), ", which nothing makes");
      if (maker->second != kNoNode) needs[i].push_back(maker->second);
    }
  }
  for (const ValueInfoProto& value : graph.outputs)
    HIDET_REQUIRE(makers.count(value.name), ErrorCode::bad_file, file, "graph output ",
                  quote_name(value.name), " is a value that nothing makes");
  return needs;
}

// Follows unfinished needs until a node comes again.
[[noreturn]] void fail_with_cycle(const GraphProto& graph, const std::string& file,
                                  const std::vector<std::vector<size_t>>& needs,
                                  const std::vector<size_t>& waiting) {
  size_t at = 0;
  while (waiting[at] == 0) at++;
  std::vector<size_t> path;
  std::unordered_map<size_t, size_t> position;
  while (position.emplace(at, path.size()).second) {
    path.push_back(at);
    for (size_t need : needs[at])
      if (waiting[need] > 0) {
        at = need;
        break;
      }
  }
  std::string names;
  size_t listed = 0;
  for (size_t i = position[at]; i < path.size() && listed < 20; i++, listed++)
    names += (names.empty() ? "" : ", ") + describe(graph.nodes[path[i]], path[i]);
  throw Error(ErrorCode::bad_file, "the nodes form a cycle: " + names, file);
}

}  // namespace

std::string describe(const NodeProto& node, size_t index) {
  std::string out = "node " + std::to_string(index);
  if (!node.name.empty()) out += ' ' + quote_name(node.name);
  return out + " (" + (node.domain.empty() ? "" : quote_name(node.domain) + ".") +
         (node.op_type.empty() ? "no operator" : quote_name(node.op_type)) + ")";
}

std::vector<std::string> captured_names(const NodeProto& node) {
  std::vector<std::string> out;
  for (const AttributeProto& attribute : node.attributes)
    if (attribute.graph) collect_captured(*attribute.graph, nullptr, out);
  return out;
}

std::vector<size_t> execution_order(const GraphProto& graph, const std::string& file,
                                    const std::vector<std::string>& outer) {
  const auto needs = collect_needs(graph, file, collect_makers(graph, file, outer));
  const size_t n = graph.nodes.size();
  std::vector<size_t> waiting(n);
  std::vector<std::vector<size_t>> users(n);
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < n; i++) {
    waiting[i] = needs[i].size();
    for (size_t need : needs[i]) users[need].push_back(i);
    if (needs[i].empty()) ready.push(i);
  }
  std::vector<size_t> order;
  order.reserve(n);
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t user : users[i])
      if (--waiting[user] == 0) ready.push(user);
  }
  if (order.size() != n) fail_with_cycle(graph, file, needs, waiting);
  return order;
}

}  // namespace hidet::graph::onnx
