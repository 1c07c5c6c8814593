// decoder_test.cpp - the ONNX decoder on good, damaged and hostile bytes (no importer needed).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "onnx/order.h"
#include "onnx/proto.h"
#include "onnx/wire.h"
#include "onnx_builder.h"

using namespace hidet::graph::onnx;
using namespace onnx_test;
using hidet::Error;
using hidet::ErrorCode;
using ::testing::HasSubstr;

namespace {

std::string small_model() {
  Model m;
  m.input("x", 1, {"n", 4});
  m.initializer(tensor<float>("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  m.node("MatMul", {"x", "w"}, {"h"}, {}, "first");
  m.node("Softmax", {"h"}, {"y"}, {attr("axis", -1)});
  m.output("y", 1, {"n", 2});
  return m.serialize();
}

/// The error's text; fails the test where there is none or its code is another.
template <class F>
std::string error_of(F&& f, ErrorCode code = ErrorCode::bad_file) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

std::string nested_ifs(int depth) {
  std::string graph;
  for (int i = 0; i < depth; i++) {
    const std::string node =
        bytes(1, "c") + bytes(2, "y") + bytes(4, "If") + bytes(5, attr_graph("then_branch", graph));
    graph = bytes(1, node);
  }
  return bytes(7, graph);
}

}  // namespace

TEST(OnnxDecoder, ReadsEveryPart) {
  const std::string file = small_model();
  const ModelProto model = decode_model(file, "m.onnx");
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.opset(""), 17);
  EXPECT_EQ(model.opset("com.microsoft"), 0);
  ASSERT_EQ(model.graph.nodes.size(), 2u);
  EXPECT_EQ(model.graph.nodes[0].op_type, "MatMul");
  EXPECT_EQ(model.graph.nodes[0].inputs, (std::vector<std::string>{"x", "w"}));
  ASSERT_EQ(model.graph.nodes[1].attributes.size(), 1u);
  EXPECT_EQ(model.graph.nodes[1].attributes[0].i, -1);
  EXPECT_EQ(model.graph.nodes[1].attributes[0].type, AttributeType::i);
  ASSERT_EQ(model.graph.inputs.size(), 1u);
  EXPECT_EQ(model.graph.inputs[0].shape[0].symbol, "n");
  EXPECT_EQ(model.graph.inputs[0].shape[1].value, 4);
  const TensorProto& w = model.graph.initializers[0];
  EXPECT_EQ(w.dims, (std::vector<int64_t>{4, 2}));
  ASSERT_EQ(w.raw.size(), 32u);
  // a view into the file, not a copy
  EXPECT_GE(w.raw.data(), file.data());
  EXPECT_LE(w.raw.data() + w.raw.size(), file.data() + file.size());
}

TEST(OnnxDecoder, PackedAndUnpackedListsAreEqual) {
  const std::string packed = bytes(1, varint(2) + varint(3)) + number(2, 7) +
                             bytes(7, varint(5) + varint(static_cast<uint64_t>(-1)));
  const std::string loose =
      number(1, 2) + number(1, 3) + number(2, 7) + number(7, 5) + number(7, -1);
  for (const std::string& file : {packed, loose}) {
    const TensorProto t = decode_tensor(file, "t.pb");
    EXPECT_EQ(t.dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(t.int64s, (std::vector<int64_t>{5, -1}));
  }
}

TEST(OnnxDecoder, UnknownFieldsAreSkipped) {
  const ModelProto model =
      decode_model(small_model() + number(500, 3) + bytes(501, "x") + real(502, 1), "m.onnx");
  EXPECT_EQ(model.graph.nodes.size(), 2u);
}

// Bug report 71: cut at 200 places: an error or (never here) a model, no signal.
TEST(OnnxDecoder, EveryTruncationIsAnError) {
  const std::string file = small_model();
  for (int i = 0; i < 200; i++) {
    const std::string cut = file.substr(0, file.size() * i / 200);
    // The graph is one field that ends a few bytes before the file: what follows may be cut off.
    try {
      (void)decode_model(cut, "cut.onnx");
      EXPECT_GT(cut.size() + 12, file.size());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_file);
      EXPECT_THAT(e.what(), HasSubstr("cut.onnx"));
    }
  }
}

TEST(OnnxDecoder, FlippedBitsNeverCrash) {
  const std::string file = small_model();
  std::mt19937 random(71);
  for (int i = 0; i < 20000; i++) {
    std::string bad = file;
    for (int k = 0; k < 1 + i % 3; k++)
      bad[random() % bad.size()] ^= static_cast<char>(1u << random() % 8);
    try {
      const ModelProto model = decode_model(bad, "flipped.onnx");
      (void)execution_order(model.graph, "flipped.onnx");
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == ErrorCode::bad_file || e.code() == ErrorCode::unsupported);
      EXPECT_THAT(e.what(), HasSubstr("flipped.onnx"));
    }
  }
}

TEST(OnnxDecoder, RandomBytesNeverCrash) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; i++) {
    std::string bad(random() % 60, '\0');
    for (char& c : bad) c = static_cast<char>(random());
    try {
      (void)decode_model(bytes(7, bad), "random.onnx");
    } catch (const Error&) {
    }
  }
}

TEST(OnnxDecoder, LyingLengthsNameTheEntry) {
  const std::string node = bytes(1, "x") + varint(5 << 3 | 2) + varint(1ull << 62);
  const std::string what =
      error_of([&] { (void)decode_model(bytes(7, bytes(1, "") + bytes(1, node)), "m.onnx"); });
  EXPECT_THAT(what, HasSubstr("m.onnx: error: graph.node[1]"));
  EXPECT_THAT(what, HasSubstr("4611686018427387904"));
}

TEST(OnnxDecoder, GroupsLongVarintsAndFieldZeroAreRefused) {
  EXPECT_THAT(error_of([] { (void)decode_model(varint(9 << 3 | 3), "m"); }), HasSubstr("group"));
  EXPECT_THAT(error_of([] { (void)decode_model(varint(9 << 3 | 6), "m"); }),
              HasSubstr("wire type 6"));
  EXPECT_THAT(error_of([] { (void)decode_model(std::string(11, '\xff'), "m"); }),
              HasSubstr("ten bytes"));
  error_of([] { (void)decode_model(number(0, 1), "m"); });
  error_of([] { (void)decode_model("", "m"); });
  error_of([] { (void)decode_model(number(7, 1), "m"); });  // the graph as a number
  error_of([] { (void)decode_model(bytes(7, "") + bytes(7, ""), "m"); });
}

// Bug report 71: If nested 10,000 deep: refused, the stack does not grow with the depth.
TEST(OnnxDecoder, DeepNestingIsRefused) {
  EXPECT_NO_THROW((void)decode_model(nested_ifs(20), "ok.onnx"));
  EXPECT_THAT(error_of([] { (void)decode_model(nested_ifs(2000), "deep.onnx"); }),
              HasSubstr("deep"));
}

TEST(OnnxDecoder, TooManyMessagesAreRefused) {
  std::string graph;
  for (size_t i = 0; i <= Trail::kMaxMessages; i++) graph += bytes(1, "");
  EXPECT_THAT(error_of([&] { (void)decode_model(bytes(7, graph), "m"); }), HasSubstr("messages"));
}

TEST(OnnxDecoder, FunctionsAndSparseTensorsAreRefusedByName) {
  const std::string with_function = small_model() + bytes(25, bytes(1, "MyGelu"));
  EXPECT_THAT(
      error_of([&] { (void)decode_model(with_function, "m.onnx"); }, ErrorCode::unsupported),
      HasSubstr("'MyGelu'"));
  EXPECT_THAT(error_of([] { (void)decode_model(bytes(7, bytes(15, "")), "m.onnx"); },
                       ErrorCode::unsupported),
              HasSubstr("sparse"));
}

TEST(OnnxDecoder, NamesInMessagesAreEscapedAndCut) {
  EXPECT_EQ(quote_name("a\n\"b'"), "'a\\x0a\"b\\''");
  EXPECT_EQ(quote_name(std::string(200, 'x')).size(), 80u + 5);
}

TEST(OnnxOrder, KeepsTheFilesOrderAndSortsOthers) {
  Model m;
  m.input("x", 1, {2});
  m.node("Relu", {"b"}, {"c"}).node("Neg", {"x"}, {"a"}).node("Abs", {"a"}, {"b"}).output("c");
  const ModelProto model = decode_model(m.serialize(), "m");
  EXPECT_EQ(execution_order(model.graph, "m"), (std::vector<size_t>{1, 2, 0}));
  const ModelProto sorted = decode_model(small_model(), "m");
  EXPECT_EQ(execution_order(sorted.graph, "m"), (std::vector<size_t>{0, 1}));
}

TEST(OnnxOrder, CyclesAndUnknownNamesAreNamed) {
  const auto order = [](const Model& m) {
    const ModelProto model = decode_model(m.serialize(), "m.onnx");
    return error_of([&] { (void)execution_order(model.graph, "m.onnx"); });
  };
  Model cycle;
  cycle.input("x", 1, {2}).node("Add", {"x", "b"}, {"a"}, {}, "one");
  cycle.node("Relu", {"a"}, {"b"}, {}, "two").node("Neg", {"a"}, {"c"}, {}, "tail").output("c");
  const std::string what = order(cycle);
  EXPECT_THAT(what, HasSubstr("cycle"));
  EXPECT_THAT(what, HasSubstr("'one'"));
  EXPECT_THAT(what, HasSubstr("'two'"));
  EXPECT_THAT(what, ::testing::Not(HasSubstr("'tail'")));

  Model self;
  self.node("Relu", {"a"}, {"a"}, {}, "loop").output("a");
  EXPECT_THAT(order(self), HasSubstr("'loop'"));

  Model missing;
  missing.node("Relu", {"ghost"}, {"y"}, {}, "r").output("y");
  EXPECT_THAT(order(missing), HasSubstr("'ghost'"));

  Model twice;
  twice.input("x", 1, {2}).node("Relu", {"x"}, {"x"}).output("x");
  EXPECT_THAT(order(twice), HasSubstr("'x'"));

  Model output;
  output.input("x", 1, {2}).output("nothing");
  EXPECT_THAT(order(output), HasSubstr("'nothing'"));
}

TEST(OnnxOrder, SubgraphsTakeNamesFromOutside) {
  const std::string inner =
      bytes(1, bytes(1, "late") + bytes(2, "y") + bytes(4, "Relu")) + bytes(12, bytes(1, "y"));
  Model m;
  m.input("c", 9, {}).input("x", 1, {2});
  m.node("If", {"c"}, {"out"},
         {attr_graph("then_branch", inner), attr_graph("else_branch", inner)});
  m.node("Neg", {"x"}, {"late"}).output("out");
  const ModelProto model = decode_model(m.serialize(), "m");
  EXPECT_EQ(captured_names(model.graph.nodes[0]), (std::vector<std::string>{"late", "late"}));
  EXPECT_EQ(execution_order(model.graph, "m"), (std::vector<size_t>{1, 0}));
}
