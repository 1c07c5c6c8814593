// Every rule of the verifier: a module that breaks it, and the message with its place.
#include <gtest/gtest.h>
#include <hidet/ir/passes.h>
#include <hidet/runtime/error.h>

#include <string>

namespace hidet::ir {
namespace {

std::string refusal(const Module& m, bool lowered = false) {
  try {
    verify(m, lowered);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage) << e.what();
    return e.what();
  }
  return "";
}
/// What is refused in a module, told as text; "bad.hir:" and "error: " left out.
std::string module_refusal(const std::string& text) {
  std::string message = refusal(parse("module m\n" + text, "bad.hir"));
  if (message.rfind("bad.hir:", 0) == 0) message = message.substr(8);
  if (const size_t at = message.find(": error: "); at != std::string::npos)
    message.replace(at, 9, ": ");
  return message;
}
/// The same for a statement in line 4 of a module with functions to call.
std::string stmt_refusal(const std::string& stmt) {
  std::string message = module_refusal(
      "cpu_internal g(a: i32, p: ptr(f32)) -> f32 { return p[a] }\n"
      "public f(x: ptr(f32), n: i32, c: boolean, h: f32, t: tensor(f32, [4, n]), u: f32x4) {\n" +
      stmt + "\n}\nextern e(f32) -> i32\n");
  const std::string tail = " (in 'f')";
  if (message.ends_with(tail)) message.resize(message.size() - tail.size());
  return message;
}
/// In a kernel of 32 threads.
std::string kernel_refusal(const std::string& stmts) {
  return module_refusal("cuda_kernel k(x: ptr(f32), n: i32) grid(1, 1, 1) block(32, 1, 1) {\n" +
                        stmts + "\n}\n");
}

struct Row {
  const char* text;
  const char* message;
};

TEST(Verifier, LegalStatements) {
  for (const char* text :
       {"x[n] = g(n, x):f32", "t(n, 0) = t(0, 1)", "x[0:i64] = h", "x[0] = u",
        "let b: boolean = x == x + n", "let b: boolean = c && !(n < 3)", "let i: i32 = e(h):i32",
        "let v: f32x4 = select(u < u, u, -u)", "let d: i32x4 = bitcast(u, i32x4)",
        "while c {\nbreak\n}", "parallel for i: i32 in range(0, n, 1) {\ncontinue\n}",
        "tensor s: tensor(f32, [4, 3], swizzle(row_major, 1, 1, 1), registers)",
        "var r: i32 = n\nasm volatile \"nop\" (\"+r\" r) (\"r\" n) ()",
        "let v: u8 = bitcast(pointer_cast(x, ptr(f8e4m3))[0], u8)",
        "tensor v: tensor(f16, [4]) = view(pointer_cast(x, ptr(f16)))", "let i: i32 = @abs(n) & ~n",
        "return"})
    EXPECT_EQ(stmt_refusal(text), "") << text;
}

TEST(Verifier, TypesOfExpressions) {
  const Row rows[] = {
      {"let v: f32 = h + n", "4: 'add' of f32 and i32, which must be one type"},
      {"let v: f32 = h + u", "4: 'add' of f32 and f32x4, which must be one type"},
      {"let v: f32 = h & h", "4: 'bit_and' does not take f32"},
      {"let v: f32 = h << h", "4: 'shl' does not take f32"},
      {"let v: boolean = c + c", "4: 'add' does not take boolean"},
      {"let v: i32 = n && n", "4: 'logical_and' does not take i32"},
      {"t + n", "4: 'add' takes numbers, not tensor(f32, [4, n]) and i32"},
      {"let v: ptr(f32) = x * n", "4: 'mul' of ptr(f32) and i32"},
      {"let v: ptr(f32) = x + h", "4: what is added to a pointer is a scalar integer, not f32"},
      {"let v: f32 = ~h", "4: 'bit_not' does not take f32"},
      {"let v: boolean = -c", "4: 'neg' does not take boolean"},
      {"let v: i32 = !n", "4: 'logical_not' does not take i32"},
      {"let v: f64 = (h + h):f64", "4: a Binary of type f64, whose operands make it f32"},
      {"let v: f32 = select(n, h, h)", "4: the condition of a select is boolean, not i32"},
      {"let v: f32 = select(c, h, n)", "4: 'select' of f32 and i32, which must be one type"},
      {"let v: f32 = cast(x, f32)", "4: cannot cast ptr(f32) to f32"},
      {"let v: f32 = cast(u, f32)", "4: cannot cast f32x4 to f32"},
      {"let v: f32 = bitcast(u, f32)", "4: cannot reinterpret f32x4 to f32"},
      {"let v: ptr(f32) = pointer_cast(n, ptr(f32))", "4: cannot cast the pointer i32 to ptr(f32)"},
      {"let v: f32 = x[h]", "4: an index is a scalar integer, not f32"},
      {"let v: f32 = t(0, h)", "4: an index is a scalar integer, not f32"},
      {"let v: f32 = t(0)", "4: a tensor of rank 2 takes 2 indices, not 1"},
      {"let v: ptr(f32) = &t(0, 1, 2)", "4: a tensor of rank 2 takes 2 indices, not 3"},
      {"let v: f32x2 = [h, n]", "4: 'vector' of f32 and i32, which must be one type"},
      {"let v: f32x2 = [x, x]", "4: a vector is made of scalars, not ptr(f32)"},
      {"let v: f32x4 = broadcast(u, 4)", "4: broadcast takes a scalar, not f32x4"},
      {"let v: f32 = (h).lane(0)", "4: a lane of f32, which is no vector"},
      {"let v: f32 = (u).lane(4)", "4: lane 4 of f32x4"},
      {"let v: f32 = (u).lane(h)", "4: a lane is a scalar integer, not f32"},
      {"let v: f32 = g(n):f32", "4: 'g' takes 2 arguments, not 1"},
      {"let v: f32 = g(h, x):f32", "4: argument 1 of 'g' is i32, not f32"},
      {"let v: f32 = g(n, n):f32", "4: argument 2 of 'g' is ptr(f32), not i32"},
      {"let v: f64 = g(n, x):f64", "4: the call of 'g' has type f64; it returns f32"},
      {"let v: i32 = e(n):i32", "4: argument 1 of 'e' is f32, not i32"},
      {"let v: f32 = e(h):f32", "4: the call of 'e' has type f32; it returns i32"},
      {"let v: f32 = @glow(h):f32", "4: there is no primitive 'glow'"},
      {"let v: f32 = @exp(h, h)", "4: the primitive 'exp' takes 1 arguments, not 2"},
      {"let v: i32 = @exp(n)", "4: the primitive 'exp' takes floating-point numbers, not i32"},
      {"let v: f32 = @fma(h, h, n)", "4: 'fma' of f32 and i32, which must be one type"},
      {"let v: f64 = @exp(h):f64", "4: a Prim of type f64, whose operands make it f32"},
      {"let v: f32 = reduce_sum([k: i32 < h], h)",
       "4: the extent of a reduction is a scalar integer, not f32"},
      {"let v: f32 = reduce_all([k: i32 < 3], h)", "4: reduce_all takes booleans, not f32"},
      {"let v: f32x4 = reduce_sum([k: i32 < 3], u)", "4: reduce_sum takes numbers, not f32x4"},
      {"let v: i64 = argmax([k: i32 < h], h)",
       "4: the extent of a reduction is a scalar integer, not f32"},
      {"let v: i64 = argmax([k: i32 < 3], u)", "4: a reduction is of numbers, not f32x4"},
      {"let v: f32 = cast(pointer_cast(x, ptr(f8e4m3))[0], f32)",
       "4: values of type f8e4m3 are loaded, stored and reinterpreted alone; this is a Cast"},
      {"pointer_cast(x, ptr(f8e5m2))[0] = cast(h, f8e5m2)",
       "4: values of type f8e5m2 are loaded, stored and reinterpreted alone; this is a Cast"},
      {"let v: f8e4m3 = -(pointer_cast(x, ptr(f8e4m3))[0])",
       "4: values of type f8e4m3 are loaded, stored and reinterpreted alone; this is a Unary"},
      {"let v: boolean = pointer_cast(x, ptr(f8e4m3))[0] < pointer_cast(x, ptr(f8e4m3))[1]",
       "4: values of type f8e4m3 are loaded, stored and reinterpreted alone; this is a Binary"},
      {"let v: i4 = pointer_cast(x, ptr(i4))[0]",
       "4: an element of type i4 is less than a byte; use u8"},
  };
  for (const Row& row : rows) EXPECT_EQ(stmt_refusal(row.text), row.message) << row.text;
}

TEST(Verifier, TypesOfStatements) {
  const Row rows[] = {
      {"let v: f32 = n", "4: 'v' of type f32 is given i32"},
      {"let v: void = n", "4: the variable 'v' of type void"},
      {"let v: tensor(f32, [4])", "4: the variable 'v' of type tensor(f32, [4])"},
      {"tensor s: tensor(f32, [4])", "4: the tensor 's' in global memory has no data"},
      {"tensor s: tensor(f32, [4]) = view(n)", "4: a view takes a pointer, not i32"},
      {"var v: f32\nv = n", "5: the variable of type f32 is given i32"},
      {"x[0] = n", "4: an element of type f32 is given i32"},
      {"t(0, 0) = n", "4: an element of type f32 is given i32"},
      {"x[0] = bitcast(u, i32x4)", "4: an element of type f32 is given i32x4"},
      {"for i: i32 in range(0, h, 1) {\n}", "4: a bound of a loop is a scalar integer, not f32"},
      {"for i: i64 in range(0:i64, n, 1:i64) {\n}",
       "4: the loop over 'i' of type i64 has a bound of type i32"},
      {"for i: i32 in range(0, n, 0) {\n}", "4: a loop has the step 0; it must be at least 1"},
      {"for i: i32 in spatial(4).on(h) {\n}", "4: a worker is a scalar integer, not f32"},
      {"for i: i8 in spatial(4).on(cast(n, i8)) {\n}", "4: a worker has at least 32 bits, not i8"},
      {"parallel for i: i32 in range(0, n, 1) grain 0 {\n}",
       "4: a loop has the grain 0; it must be at least 1"},
      {"for i: i64 in spatial(4).on(n) {\n}",
       "4: 'i' of a mapping has the type i64; its worker has i32"},
      {"asm \"nop\" (\"=r\" n) () ()",
       "4: assembly writes to a variable that can be assigned, not to 'n'"},
      {"asm \"nop\" (\"=r\" n + 1) () ()",
       "4: assembly writes to a variable that can be assigned, not to an expression"},
      {"while n {\n}", "4: the condition of a loop is a boolean, not i32"},
      {"if u < u {\n}", "4: the condition of a branch is a boolean, not booleanx4"},
      {"assert n, \"n\"", "4: what is asserted is a boolean, not i32"},
      {"return n", "4: the function returns void, not i32"},
      {"break", "4: a break outside a loop in 'f'"},
      {"if c {\ncontinue\n}", "5: a continue outside a loop in 'f'"},
      {"for i: i32 in spatial(4).on(n) {\nbreak\n}", "5: a break in a task mapping in 'f'"},
      {"parallel for i: i32 in range(0, n, 1) {\nbreak\n}", "5: a break in a parallel loop in 'f'"},
      {"let v: f32x4 = t.read(0, 0:4)", "4: a guarded access takes one element, not f32x4"},
      {"t.write(0, 0) = u", "4: a guarded access takes one element, not f32x4"},
      {"n = 1", "4: 'n' of 'f' is not a variable that can be assigned"},
  };
  for (const Row& row : rows) EXPECT_EQ(stmt_refusal(row.text), row.message) << row.text;
  EXPECT_EQ(module_refusal("cpu_internal f() -> i32 {\nreturn\n}"),
            "3: a return without a value; the function returns i32 (in 'f')");
  EXPECT_EQ(module_refusal("cpu_internal f(c: boolean) -> i32 {\nif c {\nreturn 1\n}\n}"),
            "2: the function 'f' returns i32 on some paths only");
  EXPECT_EQ(
      module_refusal("cpu_internal f(c: boolean) -> i32 {\nif c {\nreturn 1\n} else {\nreturn "
                     "2\n}\n}"),
      "");
}

/// A module of one public function f(), made by hand: what no parser and no maker lets through.
std::string made_refusal(const Stmt& body, const VarRef& param = nullptr) {
  Module m;
  m.name = "m";
  Function f;
  f.name = "f";
  f.kind = FuncKind::public_;
  if (param) f.params = {param};
  f.body = body;
  m.functions = {f};
  return refusal(m);
}

TEST(Verifier, NodesThatNoMakerMakes) {
  const auto value = [](const Expr& e) { return made_refusal(make_stmt<Evaluate>({}, e)); };
  EXPECT_EQ(value(Expr(new IntImm(300, Type(i8)))), "300 is no value of i8 (in 'f')");
  EXPECT_EQ(value(Expr(new IntImm(2, Type(boolean)))), "2 is no value of boolean (in 'f')");
  EXPECT_EQ(value(Expr(new IntImm(1, Type(f32)))), "1 is no value of f32 (in 'f')");
  EXPECT_EQ(value(Expr(new IntImm(-1, Type(u64)))), "");
  EXPECT_EQ(value(Expr(new FloatImm(1, Type(i32)))), "a number with a point is no i32 (in 'f')");
  const Expr worker = make_int(0, Type(i32));
  const auto mapped = [&](const TaskMapping& mapping) {
    return made_refusal(make_stmt<MappingFor>({}, std::vector<VarRef>{make_var("i", Type(i32))},
                                              mapping, worker, make_seq({})));
  };
  EXPECT_EQ(mapped({{{true, {4, 2}, {}}}}), "the mapping spatial(4, 2) has 1 variables (in 'f')");
  EXPECT_EQ(mapped({{{false, {0}, {}}}}), "the mapping repeat(0) has the extent 0 (in 'f')");
  EXPECT_EQ(
      made_refusal(make_stmt<Asm>({}, "nop", std::vector<std::string>{"=r"}, std::vector<Expr>{},
                                  std::vector<std::string>{}, std::vector<Expr>{worker},
                                  std::vector<std::string>{}, true)),
      "assembly has 0 outputs and 1 inputs with 1 and 0 constraints (in 'f')");
  EXPECT_EQ(made_refusal(make_stmt<DeclTensor>({}, make_var("t", Type(f32)), Expr())),
            "the tensor 't' of type f32 (in 'f')");
}

TEST(Verifier, LayoutsAndScopes) {
  const auto declared = [](const std::string& type) {
    return stmt_refusal("tensor s: tensor(" + type + ")");
  };
  EXPECT_EQ(declared("f32, [4], strided(1, 4), registers"),
            "4: the layout of 's' has 2 strides for 1 dimensions");
  EXPECT_EQ(declared("f32, [4], strided(h), registers"),
            "4: a stride of 's' is a scalar integer, not f32");
  EXPECT_EQ(declared("f32, [h], registers"), "4: an extent of 's' is a scalar integer, not f32");
  EXPECT_EQ(declared("f32, [-4], registers"), "4: an extent of 's' is -4");
  EXPECT_EQ(declared("f32, [4, 4], composed(row_major, row_major, [2]), registers"),
            "4: the layout of 's' has a tile of rank 1 for 2 dimensions");
  EXPECT_EQ(declared("f32, [4, 4], composed(row_major, strided(1), [2, 2]), registers"),
            "4: the layout of 's' has 1 strides for 2 dimensions");
  EXPECT_EQ(declared("f32, [n], registers"),
            "4: the tensor 's' in registers has a size that is not constant");
  EXPECT_EQ(declared("f32, [4], shared"),
            "4: the tensor 's' in shared memory of a public function; CUDA functions have it");
  EXPECT_EQ(declared("f32, [4], dynamic_shared"),
            "4: the tensor 's' in shared memory of a public function; CUDA functions have it");
  EXPECT_EQ(stmt_refusal("tensor s: tensor(f32, [3, 4], swizzle(row_major, 1, 2, 1)) = view(x)"),
            "4: the swizzle of 's' permutes 16 elements, and the tensor has 12");
  EXPECT_EQ(
      module_refusal("cuda_internal f(s: tensor(f32, [4], shared)) {\n}"),
      "2: the parameter 's' is a tensor in shared memory; a parameter is behind a pointer (in "
      "'f')");
  EXPECT_EQ(kernel_refusal("tensor s: tensor(f32, [n], shared)"),
            "3: the tensor 's' in shared memory has a size that is not constant (in 'k')");
  EXPECT_EQ(kernel_refusal("tensor s: tensor(f32, [12288], shared)"), "");
  EXPECT_EQ(
      kernel_refusal("tensor s: tensor(f32, [12288], shared)\ntensor t: tensor(u8, [1], shared)"),
      "4: with 't' 49153 bytes of shared memory are declared; 49152 are possible (in 'k')");
  Layout l = Layout::swizzled(Layout::row_major(), 1, 0, 1);
  l.shift = 0;
  const VarRef t = make_var("t", Type::tensor({f32, {make_int(4, Type(i32))}, l, Scope::global}));
  EXPECT_EQ(
      made_refusal(make_seq({}), t),
      "the swizzle of 't' has bits 1, base 0 and shift 0; bits <= shift and a sum below 32 are "
      "possible (in 'f')");
  l = Layout::composed(Layout::row_major(), Layout::row_major(), {0});
  const VarRef c = make_var("t", Type::tensor({f32, {make_int(4, Type(i32))}, l, Scope::global}));
  EXPECT_EQ(made_refusal(make_seq({}), c), "the tile of 't' has the extent 0 (in 'f')");
}

TEST(Verifier, Globals) {
  EXPECT_EQ(module_refusal("global g: tensor(f32, [2]) = [1.0, 2.0]\nglobal s: f32"), "");
  EXPECT_EQ(module_refusal("global g: tensor(f32, [3]) = [1.0, 2.0]"),
            "2: the global variable 'g' has 3 elements and 2 initial values");
  EXPECT_EQ(module_refusal("global g: ptr(f32)"),
            "2: the global variable 'g' is a scalar or a tensor, not ptr(f32)");
  EXPECT_EQ(module_refusal("global g: tensor(f32, [$n])"),
            "2: the global variable 'g' has a size that is not constant");
}

TEST(Verifier, Scopes) {
  // The parser knows no variable outside its scope, so these are built.
  const VarRef v = make_var("v", Type(i32)), n = make_var("n", Type(i32));
  const auto refused = [&](std::vector<Stmt> body, const Type& param = Type(i32)) {
    Module m;
    m.name = "m";
    Function f;
    f.name = "f";
    f.kind = FuncKind::public_;
    f.params = {n, make_var("p", param)};
    f.body = make_seq(std::move(body));
    m.functions = {f};
    return refusal(m);
  };
  const std::string expected = "the variable 'v' of 'f' is used outside its scope";
  const Stmt declare = make_stmt<DeclVar>({}, v, Expr(n)), use = make_stmt<Evaluate>({}, Expr(v));
  const Expr yes = make_bool(true);
  EXPECT_EQ(refused({declare, use}), "");
  EXPECT_EQ(refused({use, declare}), expected);
  EXPECT_EQ(refused({declare, declare}), "the variable 'v' of 'f' is declared twice");
  EXPECT_EQ(refused({make_stmt<If>({}, yes, declare, Stmt()), use}), expected);
  EXPECT_EQ(refused({make_stmt<While>({}, yes, declare), use}), expected);
  const Expr one = make_int(1, Type(i32));
  EXPECT_EQ(refused({make_stmt<For>({}, v, one, one, one, LoopKind::serial, int64_t{1}, use), use}),
            expected);
  EXPECT_EQ(refused({}, Type::tensor({f32, {v}, {}, Scope::global})), expected);
  const VarRef s =
      make_var("s", Type::tensor({f32, {one}, Layout::strided({v}), Scope::registers}));
  EXPECT_EQ(refused({make_stmt<DeclTensor>({}, s, Expr())}), expected);
}

TEST(Verifier, Calls) {
  const std::string functions =
      "extern e(i32) -> i32\npublic p() {\nparallel for i: i32 in range(0, 4, 1) "
      "{\n}\n}\ncpu_kernel c() {\n}\n"
      "cpu_internal i() {\n}\ncuda_internal d() {\n}\ncuda_kernel k() grid(1) block(1) {\n}\n";
  const auto refused = [&](const std::string& kind, const std::string& stmt) {
    return module_refusal(functions + kind + " f()" +
                          (kind == "cuda_kernel" ? " grid(1) block(1)" : "") + " {\n" + stmt +
                          "\n}\n");
  };
  const auto message = [](const std::string& caller, const std::string& callee,
                          const std::string& name, const std::string& callers) {
    return "16: the " + caller + " function 'f' calls the " + callee + " function '" + name +
           "', which only " + callers + " functions may call";
  };
  struct Callee {
    const char *kind, *name, *callers;
  };
  const Callee callees[] = {{"public", "p", "public"},
                            {"cpu_kernel", "c", "public, cpu_kernel"},
                            {"cpu_internal", "i", "public, cpu_kernel, cpu_internal"},
                            {"cuda_internal", "d", "cuda_kernel, cuda_internal"},
                            {"cuda_kernel", "k", "public"}};
  for (const std::string caller :
       {"public", "cpu_kernel", "cpu_internal", "cuda_internal", "cuda_kernel"})
    for (const Callee& callee : callees) {
      const std::string list = std::string(", ") + callee.callers + ",";
      const bool legal = list.find(", " + caller + ",") != std::string::npos;
      EXPECT_EQ(refused(caller, std::string(callee.name) + "()"),
                legal ? "" : message(caller, callee.kind, callee.name, callee.callers));
    }
  EXPECT_EQ(refused("cuda_internal", "e(1):i32"),
            "16: the cuda_internal function 'f' calls the extern function 'e', which only public, "
            "cpu_kernel "
            "and cpu_internal functions may call");
  EXPECT_EQ(refused("public", "nobody()"),
            "16: the function 'f' calls 'nobody', which the module 'm' does not have");
  EXPECT_EQ(refused("cuda_internal", "launch k grid(1) block(1) args()"),
            message("cuda_internal", "cuda_kernel", "k", "public"));
  EXPECT_EQ(refused("cpu_internal", "parallel for i: i32 in range(0, 4, 1) {\n}"),
            "16: a parallel loop in the cpu_internal function 'f'; only public and cpu_kernel "
            "functions may "
            "have one");
  EXPECT_EQ(module_refusal("public f() {\n}\npublic f() {\n}"),
            "4: the module has two functions 'f'");
  EXPECT_EQ(module_refusal("extern f(i32) -> i32\npublic f() {\n}"),
            "3: the module has two functions 'f'");
}

TEST(Verifier, Kernels) {
  const Row rows[] = {
      {"cuda_kernel k() {\n}",
       "2: the kernel 'k' has no launch dimensions: call grid_dim and block_dim"},
      {"cuda_kernel k() grid(1) {\n}",
       "2: the kernel 'k' has no launch dimensions: call grid_dim and block_dim"},
      {"cuda_kernel k() grid(0) block(32) {\n}", ""},
      {"cuda_kernel k() grid(-1) block(32) {\n}",
       "2: the kernel 'k' has grid x of -1; 0 to 2147483647 are possible"},
      {"cuda_kernel k() grid(1, 65536) block(32) {\n}",
       "2: the kernel 'k' has grid y of 65536; 0 to 65535 are possible"},
      {"cuda_kernel k() grid(1) block(1, 1, 65) {\n}",
       "2: the kernel 'k' has block z of 65; 1 to 64 are possible"},
      {"cuda_kernel k() grid(1) block(2147483648:i64) {\n}",
       "2: the kernel 'k' has blocks of 2147483648 threads; 1 to 1024 are possible"},
      {"cuda_kernel k() grid(1) block(-1, -1) {\n}",
       "2: the kernel 'k' has block x of -1; 1 to 1024 are possible"},
      {"cuda_kernel k() grid(17) block(1) cluster(17) {\n}",
       "2: the kernel 'k' has cluster x of 17; 1 to 16 are possible"},
      {"cuda_kernel k() grid(8, 4) block(1) cluster(8, 4) {\n}",
       "2: the kernel 'k' has clusters of 32 blocks; 1 to 16 are possible"},
      {"cuda_kernel k() grid(1) block(1) shared(232449) {\n}",
       "2: the kernel 'k' asks for 232449 bytes of dynamic shared memory; 0 to 232448 are "
       "possible"},
      {"cuda_kernel k() grid(1) block(1) min_blocks(33) {\n}",
       "2: the kernel 'k' has min_blocks of 33; 0 to 32 are possible"},
      {"cuda_kernel k() -> i32 grid(1) block(1) {\nreturn 1\n}",
       "2: the kernel 'k' returns i32; a kernel returns nothing"},
      {"cuda_kernel k() grid(1) block(1) {\n}\npublic f() {\nlaunch k grid(0) block(1) args()\n}",
       ""},
      {"cuda_kernel k() grid(1) block(1) {\n}\npublic f() {\nlaunch k grid(1) block(1025) "
       "args()\n}",
       "5: the kernel 'k' has blocks of 1025 threads; 1 to 1024 are possible"},
      {"cuda_kernel k() grid(1) block(1) {\n}\npublic f() {\nlaunch k grid(-1) block(1) args()\n}",
       "5: the kernel 'k' has grid x of -1; 0 to 2147483647 are possible"},
      {"cuda_kernel k() grid(1) block(32, 64, 1) {\n}",
       "2: the kernel 'k' has blocks of 2048 threads; 1 to 1024 are possible"},
      {"cuda_kernel k() grid(1) block(0, 1, 1) {\n}",
       "2: the kernel 'k' has blocks of 0 threads; 1 to 1024 are possible"},
      {"cuda_kernel k() grid(1) block(1) {\n}\npublic f() {\nlaunch k grid(1.0) block(1) args()\n}",
       "5: an extent of a launch is a scalar integer, not f32 (in 'f')"},
      {"cuda_kernel k() grid(1) block(1) {\n}\npublic f() {\nlaunch k grid(1) block(1) shared(1.0) "
       "args()\n}",
       "5: the size of dynamic shared memory is a scalar integer, not f32 (in 'f')"},
      {"cuda_kernel k() grid(1) block(1) {\n}\npublic f() {\nlaunch k grid(1) block(1) args(1)\n}",
       "5: 'k' takes 0 arguments, not 1 (in 'f')"},
      {"public f() {\n@syncthreads()\n}",
       "3: the primitive 'syncthreads' is used in the public function 'f'; it is for CUDA only"},
      {"cuda_internal f(p: ptr(f32)) {\n@prefetch(p)\n}",
       "3: the primitive 'prefetch' is used in the cuda_internal function 'f'; it is for the CPU "
       "only"},
  };
  for (const Row& row : rows) EXPECT_EQ(module_refusal(row.text), row.message) << row.text;
}

// --- barriers

/// The whole message for a barrier in line `line`.
std::string barrier(int line, int cond, const std::string& what = "the barrier 'syncthreads'") {
  return std::to_string(line) + ": " + what +
         " in 'k' is under a condition that differs between the "
         "threads of a block (bad.hir:" +
         std::to_string(cond) + ")";
}
std::string left(int line, int jump) {
  return std::to_string(line) +
         ": the barrier 'syncthreads' in 'k' comes after a way out that not all "
         "threads of a block take (bad.hir:" +
         std::to_string(jump) + ")";
}
const char* const kThread = "@thread_idx_x() > 3";
std::string with(std::string text) {
  for (size_t at; (at = text.find("THREAD")) != std::string::npos;) text.replace(at, 6, kThread);
  for (size_t at; (at = text.find("SYNC")) != std::string::npos;)
    text.replace(at, 4, "@syncthreads()");
  return text;
}

// Bug 43: a kernel of 600 inputs.
TEST(Verifier, KernelsWithManyParameters) {
  const auto refused = [](int pointers) {
    std::string params;
    for (int i = 0; i < pointers; i++) params += ", p" + std::to_string(i) + ": ptr(f32)";
    return module_refusal("cuda_kernel k(n: i32" + params + ") grid(1) block(1) {\n}");
  };
  EXPECT_EQ(refused(511), "");
  EXPECT_EQ(refused(600), "2: the kernel 'k' takes 4808 bytes of parameters; 4096 are possible");
}

TEST(Verifier, LaunchOfFourDimensions) {
  const std::vector<Expr> one{make_int(1, Type(i32))};
  const std::vector<Expr> four(4, one[0]);
  Module m = parse("module m\ncuda_kernel k() grid(1) block(1) {\n}\n");
  m.functions[0].launch.grid = four;
  EXPECT_EQ(refusal(m),
            "text:2: error: the kernel 'k' has 4 extents of its grid; up to 3 are possible");
}

TEST(Verifier, BarriersUnderConditions) {
  EXPECT_EQ(kernel_refusal(with("if n > 3 {\nSYNC\n}")), "");
  EXPECT_EQ(kernel_refusal(with("if THREAD {\n@syncwarp()\n}")), "");
  EXPECT_EQ(kernel_refusal(with("if THREAD {\nSYNC\n}")), barrier(4, 3));
  EXPECT_EQ(kernel_refusal(with("if THREAD {\n} else {\nSYNC\n}")), barrier(5, 3));
  EXPECT_EQ(kernel_refusal(with("if THREAD {\nlet c: i32 = @syncthreads_count(true)\n}")),
            barrier(4, 3, "the barrier 'syncthreads_count'"));
  EXPECT_EQ(kernel_refusal(with("if THREAD {\nif n > 2 {\nSYNC\n}\n}")), barrier(5, 3));
  EXPECT_EQ(kernel_refusal(with("let c: boolean = x[@thread_idx_x()] > 0.0\nif c {\nSYNC\n}")),
            barrier(5, 4));
  EXPECT_EQ(
      kernel_refusal(with("let t: i32 = @atomic_add(pointer_cast(x, ptr(i32)), 1):i32\nif t > 3 "
                          "{\nSYNC\n}")),
      barrier(5, 4));
}

// A variable differs by what it is given, and by where; what all agreed on does not.
TEST(Verifier, BarriersAndVariables) {
  EXPECT_EQ(kernel_refusal(with("var t: i32 = 0\nif THREAD {\nt = 1\n}\nif t > 0 {\nSYNC\n}")),
            barrier(8, 7));
  // Found in the second turn of the loop.
  EXPECT_EQ(
      kernel_refusal(with("var t: i32 = 0\nfor i: i32 in range(0, 4, 1) {\nif t > 0 {\nSYNC\n}\nt "
                          "= @thread_idx_y()\n}")),
      barrier(6, 5));
  EXPECT_EQ(kernel_refusal(with("let any: boolean = @syncthreads_or(THREAD)\nif any {\nSYNC\n}")),
            "");
  EXPECT_EQ(kernel_refusal(
                with("tensor r: tensor(i32, [4], registers)\nr(0) = @thread_idx_x()\nif r(0) > "
                     "2 {\nSYNC\n}")),
            barrier(6, 5));
  EXPECT_EQ(
      kernel_refusal(with("tensor s: tensor(i32, [4], shared)\ns(0) = @thread_idx_x()\nSYNC\nif "
                          "s(0) > 2 {\nSYNC\n}")),
      "");
  EXPECT_EQ(
      kernel_refusal(with("var t: i32 = 0\nasm \"mov.u32 %0, %tid.x;\" (\"=r\" t) () ()\nif t > 2 "
                          "{\nSYNC\n}")),
      barrier(6, 5));
}

TEST(Verifier, BarriersInLoops) {
  EXPECT_EQ(kernel_refusal(with("for i: i32 in range(0, n, 1) {\nSYNC\n}")), "");
  EXPECT_EQ(kernel_refusal(with("let t: i32 = @thread_idx_y() / 2\nfor i: i32 in range(0, t, 1) "
                                "{\nSYNC\n}")),
            barrier(5, 4));
  EXPECT_EQ(kernel_refusal(with("var t: i32 = 0\nt = @thread_idx_x()\nwhile t > 0 {\nSYNC\n}")),
            barrier(6, 5));
  EXPECT_EQ(
      kernel_refusal(with("for i: i32 in repeat(2).spatial(32).on(@thread_idx_x()) {\nSYNC\n}")),
      "");
  EXPECT_EQ(kernel_refusal(
                with("for i: i32 in spatial(32).on(@thread_idx_x()) {\nif i < n {\nSYNC\n}\n}")),
            barrier(5, 4));
}

// Bug 67: who left does not come to the barrier.
TEST(Verifier, BarriersAfterAWayOut) {
  EXPECT_EQ(kernel_refusal(with("if THREAD {\nreturn\n}\nSYNC")), left(6, 4));
  EXPECT_EQ(kernel_refusal(with("if n > 3 {\nreturn\n}\nSYNC")), "");
  EXPECT_EQ(kernel_refusal(with("if THREAD {\n} else {\nreturn\n}\nSYNC")), left(7, 5));
  EXPECT_EQ(kernel_refusal(with("for i: i32 in range(0, n, 1) {\nif THREAD {\nreturn\n}\n}\nSYNC")),
            left(8, 5));
  // A break keeps threads from the rest of the loop and its later turns, not from what follows.
  const std::string loop = "for i: i32 in range(0, n, 1) {\n";
  EXPECT_EQ(kernel_refusal(with(loop + "SYNC\nif THREAD {\nbreak\n}\n}")), left(4, 6));
  EXPECT_EQ(kernel_refusal(with(loop + "if THREAD {\nbreak\n}\nSYNC\n}")), left(7, 5));
  EXPECT_EQ(kernel_refusal(with(loop + "if THREAD {\nbreak\n}\n}\nSYNC")), "");
  EXPECT_EQ(kernel_refusal(with(loop + loop + "if THREAD {\nbreak\n}\n}\nSYNC\n}")), "");
  EXPECT_EQ(kernel_refusal(with(loop + "SYNC\n" + loop + "if THREAD {\nreturn\n}\n}\n}")),
            left(4, 7));
  // A continue keeps them from the rest of the turn.
  EXPECT_EQ(kernel_refusal(with(loop + "if THREAD {\ncontinue\n}\nSYNC\n}")), left(7, 5));
  EXPECT_EQ(kernel_refusal(with(loop + "SYNC\nif THREAD {\ncontinue\n}\n}")), "");
}

TEST(Verifier, BarriersInCallees) {
  const auto refused = [](const std::string& callee, const std::string& stmts) {
    return module_refusal(with("cuda_internal g(a: i32) {\n" + callee +
                               "\n}\ncuda_kernel k(n: i32) grid(1) block(32) {\n" + stmts +
                               "\n}\n"));
  };
  EXPECT_EQ(refused("SYNC", "g(n)"), "");
  EXPECT_EQ(
      refused("SYNC", "if THREAD {\ng(n)\n}"),
      "7: the barrier in 'g' that is called in 'k' is under a condition that differs between the "
      "threads of a block (bad.hir:6)");
  const std::string inside = "if a > 2 {\nSYNC\n}";
  EXPECT_EQ(refused(inside, "g(n)"), "");
  EXPECT_EQ(
      refused(inside, "g(@thread_idx_x())"),
      "4: the barrier 'syncthreads' in 'g' is under a condition that differs between the threads "
      "of a block (bad.hir:3)");
  // A result that depends on the thread.
  EXPECT_EQ(module_refusal(with("cuda_internal lane() -> i32 {\nreturn @thread_idx_x() % 32\n}\n"
                                "cuda_kernel k() grid(1) block(32) {\nif lane():i32 > 2 "
                                "{\nSYNC\n}\n}\n")),
            barrier(7, 6));
}

TEST(Verifier, TaskLevelNodesAreNotLowered) {
  const Module m =
      parse("module m\npublic f(x: ptr(f32)) {\nx[0] = reduce_sum([k: i32 < 4], x[k])\n}\n");
  EXPECT_EQ(refusal(m), "");
  try {
    verify(m, true);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::internal);
    EXPECT_NE(std::string(e.what()).find("a task-level node in 'f'"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace hidet::ir
