// hidet.h - the whole public API in one header: build or import graphs, compile, save, load, run; the script language.
#pragma once
#include <hidet/graph/build.h>
#include <hidet/graph/convert.h>
#include <hidet/graph/custom.h>
#include <hidet/graph/flow_graph.h>
#include <hidet/graph/onnx.h>
#include <hidet/graph/ops.h>
#include <hidet/lang.h>
#include <hidet/runtime.h>
#include <hidet/runtime/compiled_model.h>
#include <hidet/runtime/compiled_module.h>
