// simulate.cpp - the entry: arguments, module variables, shadows of memory, programs.
#include <hidet/ir/fold.h>
#include <hidet/ir/passes.h>
#include <hidet/ir/rewriter.h>

#include <algorithm>
#include <cstdlib>

#include "sim/worker.h"

namespace hidet::backends {
namespace sim {
namespace {

/// What a message calls an argument.
std::string text_of(const SimArg& arg) {
  if (const bool* b = std::get_if<bool>(&arg)) return *b ? "true" : "false";
  if (const int64_t* i = std::get_if<int64_t>(&arg)) return std::to_string(*i);
  if (const uint64_t* i = std::get_if<uint64_t>(&arg)) return std::to_string(*i);
  if (const double* d = std::get_if<double>(&arg)) return detail::concat(*d);
  const Tensor& t = std::get<Tensor>(arg);
  return t.defined() ? t.describe() : "an empty tensor";
}

/// The binary logarithm of what a granule of shadow memory has at most: an element of the least type that memory is seen as.
int finest(const ir::Module& module) {
  size_t bytes = 4;
  const auto see = [&](const ir::Type& pointer) {
    if (!pointer.is_pointer()) return;
    const ir::Type& to = pointer.pointee();
    bytes = std::min(bytes, to.is_arithmetic() ? std::max<size_t>(to.dtype().bytes(), 1) : 1);
  };
  for (const ir::Function& f : module.functions)
    if (f.body)
      ir::visit_all(f.body, [&](const ir::Node& n) {
        const ir::Cast* c = ir::as<ir::Cast>(&n);
        if (c && c->how == ir::CastKind::pointer) see(c->type), see(c->a->type);
      });
  return bytes == 1 ? 0 : bytes == 2 ? 1 : 2;
}

int shift_of(DType t, int finest) {
  return std::min(finest, t.bytes() < 2 ? 0 : t.bytes() < 4 ? 1 : 2);
}

}  // namespace

Machine::Machine(const ir::Module& module, const SimOptions& options)
    : module_(module), options_(options) {
  finest_ = finest(module_);
  for (const ir::Function& f : module_.functions) has_kernel_ = has_kernel_ || ir::is_cuda(f.kind);
  objects_.emplace_back();  // number 0: null
  add_globals();
  workers_.push_back(std::make_unique<Worker>(*this));
}

Machine::~Machine() = default;

int64_t Machine::add_object(const std::string& name, DType dtype, void* data, int64_t bytes) {
  HIDET_REQUIRE(static_cast<int64_t>(objects_.size()) < kFirstLocal, ErrorCode::usage, "",
                "the simulator takes at most ", kFirstLocal, " tensors");
  objects_.push_back(
      {name, dtype, static_cast<uint8_t*>(data), bytes, -1, shift_of(dtype, finest_)});
  return static_cast<int64_t>(objects_.size()) - 1;
}

void Machine::add_globals() {
  for (const ir::GlobalVar& g : module_.globals) {
    int64_t elements = 1;
    const DType t = g.var->type.dtype();
    if (g.var->type.is_tensor())
      ir::is_const_int(g.var->type.tensor_info().layout.span(g.var->type.tensor_info().shape),
                       &elements);
    std::vector<double>& storage =
        global_storage_.emplace_back(static_cast<size_t>(t.bytes_of(elements) + 7) / 8 + 1);
    uint8_t* data = reinterpret_cast<uint8_t*>(storage.data());
    std::fill(data, data + storage.size() * 8, uint8_t{0});
    for (size_t i = 0; i < g.init.size(); i++)
      write_cell(data + i * t.bytes(), t.code(),
                 t.is_float() ? from_double(g.init[i], t) : Cell{.i = ir::saturate(g.init[i], t)});
    globals_[g.var.get()] =
        pointer::make(add_object(g.var->name, t, data, t.bytes_of(elements)), 0);
  }
}

Cell Machine::argument(const ir::Function& f, size_t i, const SimArg& arg) {
  const ir::VarRef& p = f.params[i];
  const auto require = [&](bool fine) {
    HIDET_REQUIRE(fine, ErrorCode::usage, f.loc.text(), "'", f.name, "' takes ", p->type.text(),
                  " for '", p->name, "', not ", text_of(arg));
  };
  if (const Tensor* t = std::get_if<Tensor>(&arg)) {
    require(t->defined() && !t->is_symbolic() && (p->type.is_pointer() || p->type.is_tensor()) &&
            t->device().is_cpu());
    const ir::Type& to = p->type.is_pointer() ? p->type.pointee() : p->type;
    require(to.is_void() || to.is_pointer() || to.dtype() == t->dtype());
    return Cell{.i = pointer::make(add_object(p->name, t->dtype(), t->data(), t->bytes()), 0)};
  }
  require(p->type.is_scalar());
  const DType type = p->type.dtype();
  if (const bool* b = std::get_if<bool>(&arg)) {
    require(type.is_boolean());
    return Cell{.i = *b};
  }
  if (const double* d = std::get_if<double>(&arg)) {
    require(type.is_float());
    return from_double(*d, type);
  }
  const uint64_t* u = std::get_if<uint64_t>(&arg);
  const int64_t v = u ? static_cast<int64_t>(*u) : std::get<int64_t>(arg);
  const DType from = u ? u64 : i64;
  require(!type.is_boolean() && (type.is_float() || ir::fits(v, from, type)));
  return type.is_float() ? from_double(ir::int_to_double(v, from), type) : Cell{.i = v};
}

/// Gives every object its granules of shadow memory; objects that overlap share them.
void Machine::add_shadows() {
  std::vector<Object*> order;
  for (Object& o : objects_)
    if (o.bytes > 0) order.push_back(&o);
  std::sort(order.begin(), order.end(),
            [](const Object* a, const Object* b) { return a->data < b->data; });
  for (size_t i = 0; i < order.size();) {
    uint8_t *begin = order[i]->data, *end = begin;
    int shift = 2;
    size_t j = i;
    for (; j < order.size() && (j == i || order[j]->data < end); j++) {
      end = std::max(end, order[j]->data + order[j]->bytes);
      shift = std::min(shift, order[j]->shift);
      if ((order[j]->data - begin) % 4) shift = 0;
    }
    extents_.emplace_back(begin, end - begin);
    for (; i < j; i++) {
      order[i]->shift = shift;
      order[i]->granule = granules_ + ((order[i]->data - begin) >> shift);
    }
    granules_ += ((end - begin) >> shift) + 1;
  }
}

const Program& Machine::program(const ir::Function& f, int64_t* first_local) {
  auto& entry = programs_[&f];
  if (!entry.first) {
    entry.second = kFirstLocal + static_cast<int64_t>(programs_.size() - 1) * kLocalsPerProgram;
    entry.first = std::make_unique<Program>(
        compile(f, {module_, globals_, options_.symbols, options_.arithmetic, entry.second}));
    HIDET_REQUIRE(static_cast<int64_t>(entry.first->locals.size()) <= kLocalsPerProgram,
                  ErrorCode::usage, f.loc.text(), "'", f.name, "' declares more than ",
                  kLocalsPerProgram, " tensors");
  }
  *first_local = entry.second;
  return *entry.first;
}

void Machine::call(const ir::Function& f, std::span<const SimArg> args) {
  HIDET_REQUIRE(args.size() == f.params.size(), ErrorCode::usage, f.loc.text(), "'", f.name,
                "' takes ", f.params.size(), " arguments, not ", args.size());
  Launch host;
  host.program = &program(f, &host.first_local);
  for (size_t i = 0; i < args.size(); i++)
    host.args.emplace_back(host.program->params[i], argument(f, i, args[i]));
  for (int i : options_.undefined) {
    HIDET_REQUIRE(i >= 0 && i < static_cast<int>(args.size()) &&
                      std::holds_alternative<Tensor>(args[static_cast<size_t>(i)]),
                  ErrorCode::usage, f.loc.text(), "argument ", i, " of '", f.name,
                  "' is no tensor");
    Object& o =
        objects_[static_cast<size_t>(pointer::object(host.args[static_cast<size_t>(i)].second.i))];
    o.written.assign(static_cast<size_t>(o.bytes), 0);
  }
  if (has_kernel_) add_shadows();
  workers_.front()->run_host(host);
}

}  // namespace sim

void simulate(const ir::Module& module, const std::string& function, std::span<const SimArg> args,
              const SimOptions& options) {
  ir::Module whole = module;
  const ir::Function* f = whole.find(function);
  if (!f) {
    std::string names;
    for (const ir::Function& g : module.functions) names += (names.empty() ? "" : ", ") + g.name;
    throw Error(ErrorCode::usage, "the module '" + module.name + "' has no function '" + function +
                                      "'; it has " + names);
  }
  HIDET_REQUIRE(f->kind != ir::FuncKind::cuda_internal, ErrorCode::usage, f->loc.text(),
                "the cuda_internal function '", function, "' has no caller on the host");
  std::string entry = function;
  if (f->kind == ir::FuncKind::cuda_kernel) {
    // A kernel by itself: through a function that launches it.
    ir::Function launch;
    launch.name = entry = "launch of " + function;
    launch.kind = ir::FuncKind::public_;
    launch.loc = f->loc;
    launch.params = f->params;
    std::vector<ir::Expr> values(f->params.begin(), f->params.end());
    launch.body = ir::make_stmt<ir::Evaluate>(
        f->loc, ir::make_call(function, std::move(values), ir::Type(), f->loc));
    whole.functions.push_back(std::move(launch));
  }
  ir::with_large_stack([&] {
    whole = ir::run_passes(whole, ir::lowering(ir::Target::sim));
    sim::Machine machine(whole, options);
    machine.call(*whole.find(entry), args);
  });
}

}  // namespace hidet::backends
