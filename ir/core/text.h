// text.h - what the printer and the parser of the text form share: its words, and the type that a node has
// unless the text says another. Private to ir/core.
// Threading: pure functions; thread-safe.
#pragma once
#include <hidet/ir/stmt.h>

#include <string_view>

namespace hidet::ir {

/// True for letters, digits and underscores that do not begin with a digit.
bool is_plain_name(std::string_view s);
/// Words that have a meaning of their own where an expression or statement may begin: no variable has such a
/// name in the text form.
bool is_reserved_word(std::string_view s);
/// The type that follows from the operands of `e`; the text form names the type of other nodes.
Type natural_type(const ExprNode& e);

}  // namespace hidet::ir
