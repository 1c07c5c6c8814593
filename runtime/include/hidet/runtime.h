// runtime.h - the runtime's public API in one header: what a program needs that loads and runs models.
#pragma once
#include <hidet/runtime/compiled_model.h>
#include <hidet/runtime/compiled_module.h>
#include <hidet/runtime/cpu_level.h>
#include <hidet/runtime/device.h>
#include <hidet/runtime/device_api.h>
#include <hidet/runtime/dim_expr.h>
#include <hidet/runtime/dlpack.h>
#include <hidet/runtime/dtype.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/log.h>
#include <hidet/runtime/numpy.h>
#include <hidet/runtime/tensor.h>
#include <hidet/runtime/thread_pool.h>
