// wire.h - reads the protobuf wire format: tags, varints, fixed values and length-delimited bytes.
// Nothing is copied: `bytes()` is a view into the buffer. Nothing is trusted: lengths stay inside
// the buffer, varints are at most ten bytes, groups and unknown wire types are refused, nesting
// and the number of messages are bounded. Every fault throws Error(bad_file) that names the file
// and the entry.
// Threading: one thread at a time for one Trail.
#pragma once
#include <hidet/runtime/error.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hidet::graph::onnx {

/// `name` in single quotes for a message: control bytes escaped, cut after 80 bytes.
std::string quote_name(std::string_view name);

/// Where in the file the decoder is, for messages, and what bounds it.
class Trail {
 public:
  /// Nested messages: ONNX needs 5 for a node's tensor, and 3 more for each nested graph.
  static constexpr size_t kMaxDepth = 100;
  /// Messages in one file; each costs some hundred bytes, so this bounds memory.
  static constexpr size_t kMaxMessages = 1'000'000;

  explicit Trail(std::string file) : file_(std::move(file)) {}
  const std::string& file() const { return file_; }
  /// "graph.node[3].attribute[0]"
  std::string entry() const;
  /// Throws Error(bad_file) at the file, naming the entry.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  friend class Step;
  struct Place {
    const char* field;
    int64_t index;
  };
  std::string file_;
  std::vector<Place> places_;
  size_t messages_ = 0;
};

/// One nested message: entered by the constructor, left by the destructor.
class Step {
 public:
  /// `index` counts repeated fields; -1 for a single one.
  Step(Trail& trail, const char* field, int64_t index = -1);
  ~Step() { trail_.places_.pop_back(); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  Trail& trail_;
};

/// The fields of one message in the order in which they are stored.
class WireReader {
 public:
  WireReader(std::string_view buffer, Trail& trail) : rest_(buffer), trail_(trail) {}

  /// Reads the next field, whole; false at the end of the message.
  bool next();
  uint32_t number() const { return number_; }

  // The value of the current field. A wire type that does not fit is an error.
  uint64_t varint() const;
  int64_t int64() const { return static_cast<int64_t>(varint()); }
  int32_t int32() const { return static_cast<int32_t>(varint()); }
  float f32() const;
  std::string_view bytes() const;
  std::string string() const { return std::string(bytes()); }

  // Appends the values of a repeated field, packed or not.
  void append(std::vector<int64_t>& out) const;
  void append(std::vector<int32_t>& out) const;
  void append(std::vector<uint64_t>& out) const;
  void append(std::vector<float>& out) const;
  void append(std::vector<double>& out) const;

 private:
  enum class Type : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  uint64_t take_varint(std::string_view& from) const;
  uint64_t take_fixed(std::string_view& from, size_t size) const;
  void expect(Type type) const;
  template <class T>
  void append_varints(std::vector<T>& out) const;
  template <class T>
  void append_fixed(std::vector<T>& out, Type type) const;

  std::string_view rest_;
  Trail& trail_;
  uint32_t number_ = 0;
  Type type_ = Type::varint;
  uint64_t value_ = 0;
  std::string_view bytes_;
};

}  // namespace hidet::graph::onnx
