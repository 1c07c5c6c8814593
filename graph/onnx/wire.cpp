// wire.cpp - the protobuf wire format; see wire.h.
#include "onnx/wire.h"

#include <cstring>

namespace hidet::graph::onnx {

std::string quote_name(std::string_view name) {
  constexpr size_t kMost = 80;
  std::string out = "'";
  for (char c : name.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      constexpr char hex[] = "0123456789abcdef";
      out += "\\x";
      out += hex[byte >> 4];
      out += hex[byte & 15];
    } else {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + (name.size() > kMost ? "...'" : "'");
}

std::string Trail::entry() const {
  std::string out;
  for (const Place& place : places_) {
    if (!out.empty()) out += '.';
    out += place.field;
    if (place.index >= 0) out += '[' + std::to_string(place.index) + ']';
  }
  return out.empty() ? "model" : out;
}

void Trail::fail(const std::string& message) const {
  throw Error(ErrorCode::bad_file, entry() + ": " + message, file_);
}

Step::Step(Trail& trail, const char* field, int64_t index) : trail_(trail) {
  if (trail.places_.size() >= Trail::kMaxDepth) {
    trail.places_.resize(8);  // a readable message
    trail.fail(detail::concat("nested more than ", Trail::kMaxDepth, " messages deep"));
  }
  if (++trail.messages_ > Trail::kMaxMessages)
    trail.fail(detail::concat("the file holds more than ", Trail::kMaxMessages, " messages"));
  trail.places_.push_back({field, index});
}

uint64_t WireReader::take_varint(std::string_view& from) const {
  uint64_t value = 0;
  for (size_t i = 0; i < 10; i++) {
    if (i >= from.size()) trail_.fail("ends inside a number");
    const auto byte = static_cast<unsigned char>(from[i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      from.remove_prefix(i + 1);
      return value;
    }
  }
  trail_.fail("a number takes more than ten bytes");
}

uint64_t WireReader::take_fixed(std::string_view& from, size_t size) const {
  if (from.size() < size) trail_.fail("ends inside a number");
  uint64_t value = 0;
  std::memcpy(&value, from.data(), size);
  from.remove_prefix(size);
  return value;
}

bool WireReader::next() {
  if (rest_.empty()) return false;
  const uint64_t tag = take_varint(rest_);
  if (tag >> 3 == 0 || tag >> 32 != 0) trail_.fail("damaged: a field has no valid number");
  number_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<Type>(tag & 7);
  switch (tag & 7) {
    case 0: value_ = take_varint(rest_); return true;
    case 1: value_ = take_fixed(rest_, 8); return true;
    case 5: value_ = take_fixed(rest_, 4); return true;
    case 2: {
      const uint64_t length = take_varint(rest_);
      if (length > rest_.size())
        trail_.fail(detail::concat("field ", number_, " claims ", length, " bytes where ",
                                   rest_.size(), " are left"));
      bytes_ = rest_.substr(0, length);
      rest_.remove_prefix(length);
      return true;
    }
    case 3:
    case 4: trail_.fail(detail::concat("field ", number_, " is a group, which ONNX never uses"));
    default: trail_.fail(detail::concat("field ", number_, " has the unknown wire type ", tag & 7));
  }
}

void WireReader::expect(Type type) const {
  if (type_ != type)
    trail_.fail(detail::concat("field ", number_, " is stored as wire type ",
                               static_cast<int>(type_), ", expected ", static_cast<int>(type)));
}

uint64_t WireReader::varint() const {
  expect(Type::varint);
  return value_;
}

float WireReader::f32() const {
  expect(Type::fixed32);
  float out;
  std::memcpy(&out, &value_, sizeof out);
  return out;
}

std::string_view WireReader::bytes() const {
  expect(Type::bytes);
  return bytes_;
}

template <class T>
void WireReader::append_varints(std::vector<T>& out) const {
  if (type_ != Type::bytes) {
    out.push_back(static_cast<T>(varint()));
    return;
  }
  for (std::string_view left = bytes_; !left.empty();)
    out.push_back(static_cast<T>(take_varint(left)));
}

template <class T>
void WireReader::append_fixed(std::vector<T>& out, Type type) const {
  if (type_ != Type::bytes) {
    expect(type);
    T value;
    std::memcpy(&value, &value_, sizeof value);
    out.push_back(value);
    return;
  }
  if (bytes_.size() % sizeof(T) != 0)
    trail_.fail(detail::concat("field ", number_, " holds ", bytes_.size(),
                               " bytes, not a multiple of ", sizeof(T)));
  const size_t old = out.size();
  out.resize(old + bytes_.size() / sizeof(T));
  if (!bytes_.empty()) std::memcpy(out.data() + old, bytes_.data(), bytes_.size());
}

void WireReader::append(std::vector<int64_t>& out) const { append_varints(out); }
void WireReader::append(std::vector<int32_t>& out) const { append_varints(out); }
void WireReader::append(std::vector<uint64_t>& out) const { append_varints(out); }
void WireReader::append(std::vector<float>& out) const { append_fixed(out, Type::fixed32); }
void WireReader::append(std::vector<double>& out) const { append_fixed(out, Type::fixed64); }

}  // namespace hidet::graph::onnx
