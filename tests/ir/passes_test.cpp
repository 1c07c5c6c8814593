// The pass manager: order, errors that name the pass, and the three switches HIDET_TIME, HIDET_DUMP, HIDET_VERIFY.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/ir/passes.h>
#include <hidet/runtime/error.h>

#include <cstdlib>
#include <optional>

namespace hidet::ir {
namespace {
using testing::HasSubstr;

/// An environment variable while the object lives; null: not set.
class Env {
 public:
  Env(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Env() { set(old_ ? old_->c_str() : nullptr); }
  Env(const Env&) = delete;

 private:
  void set(const char* value) const {
    if (value) setenv(name_, value, 1);
    else unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

const char* const kText =
    "module m\npublic f(x: ptr(f32)) {\n  unroll for i: i32 in range(0, 2, 1) {\n"
    "    x[i] = 0.0 + cast(i, f32)\n  }\n}\n";

struct Ran {
  std::string error, err;
  Module module;
};
Ran run(const std::vector<Pass>& passes) {
  Ran out;
  testing::internal::CaptureStderr();
  try {
    out.module = run_passes(parse(kText, "m.hir"), passes);
  } catch (const Error& e) {
    out.error = e.what();
  }
  out.err = testing::internal::GetCapturedStderr();
  return out;
}
/// A pass that leaves `body` as the body of every function.
Pass leaves(const char* name, const Stmt& body) {
  return stmt_pass(name, [body](const Stmt&) { return body; });
}

TEST(Passes, EveryPassOfAPipelineHasAName) {
  std::vector<std::string> names;
  for (const Pass& p : all_passes()) names.emplace_back(p.name);
  for (const Target t : {Target::cpu, Target::cuda, Target::sim})
    for (const Pass& p : lowering(t)) EXPECT_THAT(names, testing::Contains(std::string(p.name)));
}

TEST(Passes, NothingIsPrintedUnasked) {
  const Env time("HIDET_TIME", "0"), dump("HIDET_DUMP", nullptr);
  const Ran r = run(lowering(Target::cpu));
  EXPECT_EQ(r.error + r.err, "");
}

TEST(Passes, TimePrintsEachPass) {
  const Env time("HIDET_TIME", "1");
  EXPECT_THAT(run({unroll_loops(), simplify()}).err,
              testing::MatchesRegex(" +[0-9]+\\.[0-9]{3} ms  unroll-loops @m\n"
                                    " +[0-9]+\\.[0-9]{3} ms  simplify @m\n"));
}

TEST(Passes, DumpPrintsTheModuleAfterThePass) {
  const std::string expected = print(run_passes(parse(kText), {unroll_loops()}));
  const Env dump("HIDET_DUMP", "after:unroll-loops");
  const Ran r = run({unroll_loops(), simplify()});
  EXPECT_EQ(r.err, expected);
  EXPECT_NE(r.err, print(r.module));
}

TEST(Passes, DumpOfAPassThatIsNone) {
  const Env dump("HIDET_DUMP", "after:unrol");
  EXPECT_THAT(run({unroll_loops()}).error,
              HasSubstr("HIDET_DUMP is 'after:unrol'; it is after: and the name of a pass: "
                        "lower-launches, lower-mappings, "));
}

TEST(Passes, ErrorsNameThePass) {
  const Pass fails = stmt_pass("fails", [](const Stmt&) -> Stmt {
    throw Error(ErrorCode::unsupported, "no such thing", "k.cpp:7");
  });
  EXPECT_EQ(run({fails}).error, "k.cpp:7: error: no such thing, while running fails on @m");
}

TEST(Passes, VerifyFindsThePassThatBreaksTheModule) {
  const VarRef lost = make_var("lost", Type(i32));
  const Pass breaks = leaves("breaks", make_stmt<Evaluate>({}, Expr(lost)));
  const char* const message =
      "the variable 'lost' of 'f' is used outside its scope, while verifying @m after breaks";
  for (const char* level : {"1", "text"}) {
    const Env on("HIDET_VERIFY", level);
    EXPECT_THAT(run({breaks}).error, HasSubstr(message));
  }
  const Env off("HIDET_VERIFY", "0");
  EXPECT_EQ(run({breaks}).error, "");
}

TEST(Passes, VerifyOfTheTextFindsWhatDoesNotReadBack) {
  // 0.1 is no f32, and its text is read as the f32 beside it: no maker makes it.
  const Pass breaks = leaves("breaks", make_stmt<Evaluate>({}, Expr(new FloatImm(0.1, Type(f32)))));
  {
    const Env on("HIDET_VERIFY", "1");
    EXPECT_EQ(run({breaks}).error, "");
  }
  const Env on("HIDET_VERIFY", "text");
  EXPECT_THAT(run({breaks}).error,
              testing::AllOf(HasSubstr("the text reads back as another module:\n"),
                             testing::EndsWith(", while verifying @m after breaks")));
}

// What a pass lowers must not come back in a later one.
TEST(Passes, WhatIsGoneStaysGone) {
  const Env on("HIDET_VERIFY", "1");
  const auto back = [](const Pass& first, const std::string& line) {
    const Pass breaks = {"breaks", [line](const Module& m) {
                           Module out = m;
                           out.functions = parse(
                                               "module m\npublic f(t: tensor(f32, [4]), n: i32, h: "
                                               "f16) {\n" +
                                                   line + "\n}\n",
                                               "m.hir")
                                               .functions;
                           return out;
                         }};
    return run({first, breaks}).error;
  };
  const auto message = [](const char* what, const char* pass) {
    return std::string("m.hir:3: error: a ") + what + " in 'f', which is gone after " + pass +
           ", while verifying @m after breaks";
  };
  EXPECT_EQ(back(lower_mappings(), "for i: i32 in spatial(4).on(n) {\n}"),
            message("MappingFor", "lower-mappings"));
  EXPECT_EQ(back(lower_guards(), "t.write(n) = 1.0"), message("ElementStore", "lower-guards"));
  EXPECT_EQ(back(lower_guards(), "let v: f32 = t.read(n)"), message("Element", "lower-guards"));
  EXPECT_EQ(back(lower_tensors(), "t(n) = 1.0"), message("ElementStore", "lower-tensors"));
  EXPECT_EQ(back(unroll_loops(), "unroll for i: i32 in range(0, 4, 1) {\n}"),
            message("For", "unroll-loops"));
  EXPECT_EQ(back(vectorize_loops(), "vectorize for i: i32 in range(0, 4, 1) {\n}"),
            message("For", "vectorize-loops"));
  EXPECT_EQ(back(symbols_to_params(), "let v: i64 = $s"),
            message("DimSymbol", "symbols-to-params"));
  EXPECT_EQ(back(widen_halves(), "let v: f16 = h * h"), message("Binary", "widen-halves"));
  EXPECT_EQ(back(lower_mappings(), "t(n) = 1.0"), "");
}

}  // namespace
}  // namespace hidet::ir
