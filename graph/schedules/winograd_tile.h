// winograd_tile.h - the functions of a Winograd convolution's module that take a tile, or one product of some tiles, through a step.
// Where sizes are known at run time only, they are the last parameters. Private to graph/schedules.
#pragma once
#include <set>

#include "schedules/winograd_plan.h"

namespace hidet::graph {

/// All of them; `heights`: rows, of tiles, that the micro kernel is called with.
///   input(image, results, elements from a product to the next, row and column of the first input), and "input_edge" of the same
///     parameters for tiles of which some inputs lie outside the image
///   weight(panel, results): plan.depth channels of one panel
///   products_RxC(inputs, weights, sums)
///   output_C(parameters..., sums, elements from a product to the next, a tile's results, image, row, column, column block)
///   direct_C(image, panels, a tile's results, row, column): the tile as the direct kernel computes it
std::vector<ir::Function> winograd_functions(const WinogradPlan& plan,
                                             const std::set<int64_t>& heights);

/// Names of those that come in several instances.
std::string input_name(bool edge);
std::string products_name(int64_t rows, int64_t columns);
std::string output_name(int64_t columns);

/// The arguments of such a function, where `at` are the sizes.
std::vector<ir::Value> with_sizes(const WinogradPlan& plan, std::vector<ir::Value> args,
                                  const WinogradSizes& at);

}  // namespace hidet::graph
