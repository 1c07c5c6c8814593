// c_api.cpp - the C interface over the C++ one: exceptions become codes and a sentence per thread.
// Threading: see hidet/c.h.
#include "hidet/c.h"

#include <new>

#include "hidet/runtime/compiled_model.h"
#include "hidet/runtime/device_api.h"
#include "hidet/runtime/error.h"
#include "src/compiled/context.h"

struct hidet_model {
  hidet::CompiledModel model;
};
struct hidet_tensor {
  hidet::Tensor tensor;
};

namespace {

using hidet::ErrorCode;

template <class Work>
int guarded(Work&& work) noexcept {
  std::string& text = hidet::runtime::last_error_text();
  try {
    work();
    return HIDET_OK;
  } catch (const hidet::Error& e) {
    text = e.what();
    return static_cast<int>(e.code());
  } catch (const std::bad_alloc&) {
    text = "out of memory";
    return HIDET_MEMORY;
  } catch (const std::exception& e) {
    text = e.what();
    return HIDET_INTERNAL;
  }
}

void need(bool condition, const char* what) {
  HIDET_REQUIRE(condition, ErrorCode::usage, "", what);
}

hidet::LoadOptions options_of(const hidet_load_options* o) {
  hidet::LoadOptions options;
  if (!o) return options;
  need(o->size == sizeof *o, "hidet_load_options.size must be sizeof(hidet_load_options)");
  if (o->device) options.device = hidet::Device(o->device);
  if (o->target) options.target = o->target;
  options.allow_jit = o->no_jit == 0;
  if (o->verify_all) options.verify = hidet::Verify::full;
  return options;
}

hidet::Shape shape_of(const int64_t* shape, int rank) {
  need(rank >= 0 && rank <= HIDET_MAX_RANK && (shape || rank == 0),
       "the rank must be from 0 to HIDET_MAX_RANK, with a shape");
  return hidet::Shape(shape, shape + rank);
}
hidet::DType dtype_of(int dtype) {
  need(dtype >= 0 && dtype < hidet::kNumDTypes, "there is no such dtype number");
  return hidet::DType(static_cast<hidet::DTypeCode>(dtype));
}
hidet::Device device_of(hidet_device d) {
  need((d.kind == 0 || d.kind == 1) && d.index >= 0,
       "the device's kind must be 0 (CPU) or 1 (CUDA)");
  return hidet::Device(static_cast<hidet::DeviceKind>(d.kind), d.index);
}

void fill(const hidet::TensorSignature& s, hidet_tensor_info* info) {
  need(s.shape.size() <= HIDET_MAX_RANK, "the rank is over HIDET_MAX_RANK");
  *info = {};
  info->name = s.name.c_str();
  info->dtype = static_cast<int32_t>(s.dtype.code());
  info->rank = static_cast<int32_t>(s.shape.size());
  info->device = {static_cast<int32_t>(s.device.kind()), s.device.index()};
  for (size_t i = 0; i < s.shape.size(); ++i)
    info->shape[i] = s.shape[i].is_const() ? s.shape[i].value() : -1;
}

}  // namespace

extern "C" {

const char* hidet_last_error(void) { return hidet::runtime::last_error_text().c_str(); }

int hidet_load_model(const char* path, const hidet_load_options* options, hidet_model** model) {
  return guarded([&] {
    need(path && model, "hidet_load_model: path and model must not be NULL");
    *model = new hidet_model{hidet::load_model(std::string(path), options_of(options))};
  });
}
int hidet_load_model_memory(const void* bytes, size_t count, const hidet_load_options* options,
                            hidet_model** model) {
  return guarded([&] {
    need(bytes && model, "hidet_load_model_memory: bytes and model must not be NULL");
    const std::span<const std::byte> span(static_cast<const std::byte*>(bytes), count);
    *model = new hidet_model{hidet::load_model(span, options_of(options))};
  });
}
void hidet_model_release(hidet_model* model) { delete model; }
size_t hidet_model_num_inputs(const hidet_model* model) {
  return model ? model->model.inputs().size() : 0;
}
size_t hidet_model_num_outputs(const hidet_model* model) {
  return model ? model->model.outputs().size() : 0;
}
int hidet_model_input_info(const hidet_model* model, size_t index, hidet_tensor_info* info) {
  return guarded([&] {
    need(model && info && index < model->model.inputs().size(),
         "hidet_model_input_info: there is no such input");
    fill(model->model.inputs()[index], info);
  });
}
int hidet_model_output_info(const hidet_model* model, size_t index, hidet_tensor_info* info) {
  return guarded([&] {
    need(model && info && index < model->model.outputs().size(),
         "hidet_model_output_info: there is no such output");
    fill(model->model.outputs()[index], info);
  });
}
int hidet_run(const hidet_model* model, hidet_tensor* const* in, size_t n_in, hidet_tensor** out,
              size_t n_out) {
  return guarded([&] {
    need(model && (in || n_in == 0) && (out || n_out == 0), "hidet_run: a pointer is NULL");
    need(n_out == model->model.outputs().size(),
         "hidet_run: n_out is not the model's number of outputs");
    std::vector<hidet::Tensor> inputs;
    for (size_t i = 0; i < n_in; ++i) {
      need(in[i] != nullptr, "hidet_run: an input is NULL");
      inputs.push_back(in[i]->tensor);
    }
    std::vector<hidet::Tensor> outputs = model->model.run(inputs);
    std::vector<std::unique_ptr<hidet_tensor>> made;
    for (hidet::Tensor& t : outputs)
      made.push_back(std::make_unique<hidet_tensor>(hidet_tensor{std::move(t)}));
    for (size_t i = 0; i < n_out; ++i) out[i] = made[i].release();
  });
}

int hidet_tensor_zeros(const int64_t* shape, int rank, int dtype, hidet_device device,
                       hidet_tensor** tensor) {
  return guarded([&] {
    need(tensor != nullptr, "hidet_tensor_zeros: tensor must not be NULL");
    *tensor =
        new hidet_tensor{hidet::zeros(shape_of(shape, rank), dtype_of(dtype), device_of(device))};
  });
}
int hidet_tensor_from_blob(void* data, const int64_t* shape, int rank, int dtype,
                           hidet_device device, hidet_tensor** tensor) {
  return guarded([&] {
    need(tensor != nullptr, "hidet_tensor_from_blob: tensor must not be NULL");
    *tensor = new hidet_tensor{
        hidet::Tensor::from_blob(data, shape_of(shape, rank), dtype_of(dtype), device_of(device))};
  });
}
int hidet_tensor_get_info(const hidet_tensor* tensor, hidet_tensor_info* info) {
  return guarded([&] {
    need(tensor && info, "hidet_tensor_get_info: a pointer is NULL");
    const hidet::Tensor& t = tensor->tensor;
    fill({"", t.dtype(), t.shape_expr(), t.device()}, info);
    info->name = "";
    info->data = t.data();
    info->bytes = t.bytes();
  });
}
int hidet_tensor_copy_out(const hidet_tensor* tensor, void* to, int64_t bytes) {
  return guarded([&] {
    need(tensor && (to || bytes == 0) && tensor->tensor.bytes() == bytes,
         "hidet_tensor_copy_out: bytes must be the tensor's");
    const hidet::Tensor& t = tensor->tensor;
    if (bytes > 0)
      hidet::runtime::copy_bytes(to, {}, t.data(), t.device(), static_cast<size_t>(bytes));
  });
}
int hidet_tensor_copy_in(hidet_tensor* tensor, const void* from, int64_t bytes) {
  return guarded([&] {
    need(tensor && (from || bytes == 0) && tensor->tensor.bytes() == bytes,
         "hidet_tensor_copy_in: bytes must be the tensor's");
    const hidet::Tensor& t = tensor->tensor;
    if (bytes > 0)
      hidet::runtime::copy_bytes(t.data(), t.device(), from, {}, static_cast<size_t>(bytes));
  });
}
void hidet_tensor_release(hidet_tensor* tensor) { delete tensor; }

}  // extern "C"
