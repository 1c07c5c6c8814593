// machine.h - runs functions of a module on values: statements, arrays and calls beside interpreter.h. Like that, written
// apart from the passes, the simulator and the generators. Pointers are parameters, or sums of one and integers.
#pragma once
#include <hidet/ir/stmt.h>

#include <map>
#include <stdexcept>

#include "ir/interpreter.h"

namespace hidet::testing {

/// The elements behind a pointer or of a tensor.
struct Array {
  DType dtype;
  std::vector<Cell> cells;
};
struct Place {
  Array* array = nullptr;
  int64_t at = 0;
  Cell& cell(int64_t index) const { return array->cells.at(static_cast<size_t>(at + index)); }
};
/// An assert that did not hold.
struct AssertFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Machine : public Interpreter {
 public:
  /// What becomes of the statement after.
  enum class Flow : uint8_t { next, broke, continued, returned };

  explicit Machine(const Module& module) : Interpreter(cells_), module_(module) {}

  /// Runs `f`; a pointer's argument is a Place.
  Cell call(const Function& f, const std::vector<Cell>& values, const std::vector<Place>& places) {
    for (size_t i = 0; i < f.params.size(); i++) {
      if (f.params[i]->type.is_pointer()) places_[f.params[i].get()] = places[i];
      else cells_[f.params[i].get()] = values[i];
    }
    run(f.body);
    return result_;
  }

 private:
  int64_t integer(const Expr& e) const { return static_cast<int64_t>((*this)(e).i); }

  Place place(const Expr& e) const {
    if (const Binary* b = as<Binary>(e)) {
      Place p = place(b->a);
      p.at += b->op == BinaryOp::sub ? -integer(b->b) : integer(b->b);
      return p;
    }
    return places_.at(e.get());
  }
  /// Row major, whatever the layout: a layout says where elements lie, not which is which. Null: outside.
  Cell* element(const Expr& tensor, const std::vector<Expr>& indices) const {
    int64_t at = 0;
    bool inside = true;
    const auto& shape = tensor->type.tensor_info().shape;
    for (size_t d = 0; d < indices.size(); d++) {
      const int64_t i = integer(indices[d]), n = as<IntImm>(shape[d])->value;
      inside = inside && i >= 0 && i < n;
      at = at * n + i;
    }
    return inside ? &tensors_.at(tensor.get())->cells.at(static_cast<size_t>(at)) : nullptr;
  }

  Cell other(const Expr& e) const override {
    if (const Load* l = as<Load>(e)) return place(l->base).cell(integer(l->index));
    if (const Element* t = as<Element>(e)) {
      const Cell* cell = element(t->tensor, t->indices);
      if (!cell && !t->guarded) throw std::out_of_range("an element outside");
      return cell ? *cell : Cell{};
    }
    const Call* c = as<Call>(e);
    if (!c) return Interpreter::other(e);
    const Function& f = *module_.find(c->callee);
    std::vector<Cell> values(c->args.size());
    std::vector<Place> places(c->args.size());
    for (size_t i = 0; i < c->args.size(); i++) {
      if (c->args[i]->type.is_pointer()) places[i] = place(c->args[i]);
      else values[i] = (*this)(c->args[i]);
    }
    return Machine(module_).call(f, values, places);
  }

  Flow loop_body(const Stmt& body, bool& go_on) {
    const Flow flow = run(body);
    go_on = flow == Flow::next || flow == Flow::continued;
    return flow == Flow::returned ? flow : Flow::next;
  }
  Flow counted(const For& f) {
    const Wide end = (*this)(f.end).i, step = (*this)(f.step).i;
    for (Wide i = (*this)(f.begin).i; i < end; i += step) {
      cells_[f.var.get()] = {i, 0};
      bool go_on = true;
      if (const Flow flow = loop_body(f.body, go_on); !go_on) return flow;
    }
    return Flow::next;
  }
  /// Every task of `worker` in the items from `item` on, each item's part in `task`.
  Flow tasks(const MappingFor& m, size_t item, int64_t worker, const std::vector<int64_t>& task) {
    if (item == m.mapping.items.size()) {
      for (size_t d = 0; d < task.size(); d++) cells_[m.vars[d].get()] = {task[d], 0};
      return run(m.body);
    }
    const TaskMapping::Item& part = m.mapping.items[item];
    int64_t size = 1, inner = 1;
    for (const int64_t n : part.shape) size *= n;
    for (size_t k = item + 1; k < m.mapping.items.size(); k++)
      for (const int64_t n : m.mapping.items[k].shape)
        inner *= m.mapping.items[k].is_spatial ? n : 1;
    for (int64_t number = 0; number < size; number++) {
      if (part.is_spatial && number != worker / inner) continue;
      std::vector<int64_t> next = task;
      int64_t rest = number;
      for (size_t k = part.shape.size(); k-- > 0;) {
        const size_t d = part.order.empty() ? k : static_cast<size_t>(part.order[k]);
        next[d] = task[d] * part.shape[d] + rest % part.shape[d];
        rest /= part.shape[d];
      }
      const Flow flow = tasks(m, item + 1, part.is_spatial ? worker % inner : worker, next);
      if (flow == Flow::returned) return flow;
    }
    return Flow::next;
  }

  Flow run(const Stmt& s) {
    switch (s ? s->kind : Kind::Comment) {
      case Kind::Seq:
        for (const Stmt& child : as<Seq>(s)->body)
          if (const Flow flow = run(child); flow != Flow::next) return flow;
        return Flow::next;
      case Kind::DeclVar: cells_[as<DeclVar>(s)->var.get()] = (*this)(as<DeclVar>(s)->init); break;
      case Kind::DeclTensor: {
        const Expr tensor = as<DeclTensor>(s)->var;
        int64_t n = 1;
        for (const Expr& e : tensor->type.tensor_info().shape) n *= as<IntImm>(e)->value;
        tensors_[tensor.get()] = std::make_shared<Array>(
            Array{tensor->type.dtype(), std::vector<Cell>(static_cast<size_t>(n))});
        break;
      }
      case Kind::Assign: cells_[as<Assign>(s)->var.get()] = (*this)(as<Assign>(s)->value); break;
      case Kind::Store: {
        const Store& store = *as<Store>(s);
        const Cell value = (*this)(store.value);
        place(store.base).cell(integer(store.index)) = value;
        break;
      }
      case Kind::ElementStore: {
        const ElementStore& store = *as<ElementStore>(s);
        const Cell value = (*this)(store.value);
        if (Cell* cell = element(store.tensor, store.indices)) *cell = value;
        else if (!store.guarded) throw std::out_of_range("an element outside");
        break;
      }
      case Kind::For: return counted(*as<For>(s));
      case Kind::MappingFor: {
        const MappingFor& m = *as<MappingFor>(s);
        return tasks(m, 0, integer(m.worker), std::vector<int64_t>(m.vars.size()));
      }
      case Kind::While:
        for (bool go_on = true; (*this)(as<While>(s)->cond).i;)
          if (const Flow flow = loop_body(as<While>(s)->body, go_on); !go_on) return flow;
        break;
      case Kind::If:
        return run((*this)(as<If>(s)->cond).i ? as<If>(s)->then : as<If>(s)->otherwise);
      case Kind::Break: return Flow::broke;
      case Kind::Continue: return Flow::continued;
      case Kind::Return:
        if (as<Return>(s)->value) result_ = (*this)(as<Return>(s)->value);
        return Flow::returned;
      case Kind::Evaluate: (void)(*this)(as<Evaluate>(s)->value); break;
      case Kind::Assert:
        if (!(*this)(as<Assert>(s)->cond).i) throw AssertFailed(as<Assert>(s)->message);
        break;
      case Kind::Comment: break;
      default: ADD_FAILURE() << "a " << kind_name(s->kind) << " in a random kernel";
    }
    return Flow::next;
  }

  const Module& module_;
  Cells cells_;
  std::unordered_map<const Node*, Place> places_;
  std::unordered_map<const Node*, std::shared_ptr<Array>> tensors_;
  Cell result_;
};

}  // namespace hidet::testing
