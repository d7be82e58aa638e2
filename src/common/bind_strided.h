// The binding of the strided kernels, which NDArray calls: views in, a new Array out; and of memory
// that is shared with numpy. bind.h has the entries' common part and the course's kernels.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

#include "bind.h"

namespace needle {

inline void check_same_shape(const Arguments& args, const Layout& a, const Layout& b) {
  bool same = a.ndim == b.ndim;
  for (int axis = 0; same && axis < a.ndim; ++axis) same = a.shape[axis] == b.shape[axis];
  if (same) return;
  fail<ShapeError>(args.op(), "views have shapes ", shape_text(a), " and ", shape_text(b),
                   "; they must agree");
}

// Gives a whole buffer (layout None, read as one axis) the shape of the view that it meets.
inline void take_shape(const Arguments& args, int at, Layout& whole, const Layout& view) {
  if (!args.is_none(at)) return;
  if (whole.shape[0] != element_count(view)) check_same_shape(args, whole, view);
  std::int64_t stride = 1;
  for (int axis = view.ndim - 1; axis >= 0; --axis) {
    whole.shape[axis] = view.shape[axis];
    whole.strides[axis] = stride;
    stride *= view.shape[axis];
  }
  whole.ndim = view.ndim;
}

// The number of elements of a result whose shape no view has been checked for.
inline std::int64_t checked_count(const Arguments& args, const Layout& shape) {
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.ndim; ++axis) {
    if (__builtin_mul_overflow(count, shape.shape[axis], &count)) {
      fail<ShapeError>(args.op(), "the result's shape ", shape_text(shape),
                       " has too many elements");
    }
  }
  return count;
}

// A new Array on its way to Python; freed if the kernel throws.
class Result {
 public:
  Result(const Arguments& args, std::int64_t size) : object_(new_array(args.op(), size)) {}
  ~Result() { Py_XDECREF(object_); }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;

  float* data() const { return reinterpret_cast<ArrayObject*>(object_)->array.data(); }

  PyObject* give() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  PyObject* object_;
};

inline PyObject* strided_unary(const Arguments& args, UnaryKernel kernel) {
  const Array& a = args.array(0);
  Layout a_layout;
  args.layout(1, a, a_layout);
  const std::int64_t size = element_count(a_layout);
  Result out(args, size);
  launch(size, [&] { kernel({a.data(), a_layout}, out.data()); });
  return out.give();
}

inline PyObject* strided_binary(const Arguments& args, BinaryKernel kernel) {
  const Array& a = args.array(0);
  Layout a_layout;
  args.layout(1, a, a_layout);
  const Array& b = args.array(2);
  Layout b_layout;
  args.layout(3, b, b_layout);
  take_shape(args, 1, a_layout, b_layout);
  take_shape(args, 3, b_layout, a_layout);
  check_same_shape(args, a_layout, b_layout);
  const std::int64_t size = element_count(a_layout);
  Result out(args, size);
  launch(size, [&] { kernel({a.data(), a_layout}, {b.data(), b_layout}, out.data()); });
  return out.give();
}

inline PyObject* strided_scalar(const Arguments& args, ScalarKernel kernel) {
  const Array& a = args.array(0);
  Layout a_layout;
  args.layout(1, a, a_layout);
  const float value = args.number(2);
  const std::int64_t size = element_count(a_layout);
  Result out(args, size);
  launch(size, [&] { kernel({a.data(), a_layout}, value, out.data()); });
  return out.give();
}

inline PyObject* where(const Arguments& args) {
  const Array& condition = args.array(0);
  const Array& a = args.array(2);
  const Array& b = args.array(4);
  Layout condition_layout, a_layout, b_layout;
  args.layout(1, condition, condition_layout);
  args.layout(3, a, a_layout);
  args.layout(5, b, b_layout);
  // Whichever of the three is a view gives the whole buffers its shape.
  const Layout& shape = !args.is_none(1)   ? condition_layout
                        : !args.is_none(3) ? a_layout
                                           : b_layout;
  take_shape(args, 1, condition_layout, shape);
  take_shape(args, 3, a_layout, shape);
  take_shape(args, 5, b_layout, shape);
  check_same_shape(args, condition_layout, a_layout);
  check_same_shape(args, a_layout, b_layout);
  const std::int64_t size = element_count(a_layout);
  Result out(args, size);
  launch(size, [&] {
    kernels->where({condition.data(), condition_layout}, {a.data(), a_layout}, {b.data(), b_layout},
                   out.data());
  });
  return out.give();
}

// Reads the view of whole numbers that number rows into memory of the call's own, each checked to
// be below `size`: what a kernel reads afterwards, nobody else can change.
inline void read_rows(const Arguments& args, View indices, std::int64_t size,
                      std::vector<std::int64_t>& rows) {
  std::vector<float> values(static_cast<std::size_t>(element_count(indices.layout)));
  kernels->to_host(indices, values.data());
  rows.reserve(values.size());
  for (const float value : values) {
    if (!(value >= 0.0f && value < static_cast<float>(size)) ||
        value != static_cast<float>(static_cast<std::int64_t>(value))) {
      fail<IndexingError>(args.op(), "index ", value, " is no row of ", size,
                          "; rows are whole numbers from 0 on");
    }
    rows.push_back(static_cast<std::int64_t>(value));
  }
}

inline void check_matrix(const Arguments& args, const Layout& a, const Layout& indices) {
  if (a.ndim == 2 && indices.ndim == 1) return;
  fail<ShapeError>(args.op(), "shapes ", shape_text(a), " and ", shape_text(indices),
                   "; a matrix and a list of indices are needed");
}

inline PyObject* take_rows(const Arguments& args) {
  const Array& a = args.array(0);
  const Array& indices = args.array(2);
  Layout a_layout, i_layout;
  args.layout(1, a, a_layout);
  args.layout(3, indices, i_layout);
  check_matrix(args, a_layout, i_layout);
  const std::int64_t count = i_layout.shape[0];
  const std::int64_t size = area(args, count, a_layout.shape[1]);
  Result out(args, size);
  launch(size + count, [&] {
    std::vector<std::int64_t> rows;
    read_rows(args, {indices.data(), i_layout}, a_layout.shape[0], rows);
    kernels->take_rows({a.data(), a_layout}, rows.data(), count, out.data());
  });
  return out.give();
}

inline PyObject* add_rows(const Arguments& args) {
  const Array& a = args.array(0);
  const Array& indices = args.array(2);
  Layout a_layout, i_layout;
  args.layout(1, a, a_layout);
  args.layout(3, indices, i_layout);
  check_matrix(args, a_layout, i_layout);
  if (a_layout.shape[0] != i_layout.shape[0]) {
    fail<ShapeError>(args.op(), i_layout.shape[0], " indices for ", a_layout.shape[0],
                     " rows; each row needs one");
  }
  const std::int64_t height = args.integer(4);
  const std::int64_t size = area(args, height, a_layout.shape[1]);
  Result out(args, size);
  launch(size + element_count(a_layout), [&] {
    std::vector<std::int64_t> rows;
    read_rows(args, {indices.data(), i_layout}, height, rows);
    kernels->add_rows({a.data(), a_layout}, rows.data(), height, out.data());
  });
  return out.give();
}

inline PyObject* strided_reduce(const Arguments& args, ReduceKernel kernel, bool takes_empty) {
  const Array& a = args.array(0);
  Layout a_layout;
  args.layout(1, a, a_layout);
  const std::int64_t count = args.integer(2);
  if (count < 0 || count > a_layout.ndim) {
    fail<ShapeError>(args.op(), "cannot reduce ", count, " axes of shape ", shape_text(a_layout));
  }
  const int first = a_layout.ndim - static_cast<int>(count);
  const std::int64_t size = element_count(a_layout, 0, first);
  const std::int64_t length = element_count(a_layout, first, a_layout.ndim);
  if (!takes_empty && length == 0 && size > 0) {
    fail<ShapeError>(args.op(), "no element in the reduced axes of shape ", shape_text(a_layout));
  }
  Result out(args, size);
  launch(size * length, [&] { kernel({a.data(), a_layout}, static_cast<int>(count), out.data()); });
  return out.give();
}

inline PyObject* batched_matmul(const Arguments& args) {
  const Array& a = args.array(0);
  const Array& b = args.array(2);
  Layout a_layout, b_layout;
  args.layout(1, a, a_layout);
  args.layout(3, b, b_layout);
  const int axes = a_layout.ndim - 2;
  const bool ranks_fit = axes >= 0 && b_layout.ndim == a_layout.ndim;
  bool fits = ranks_fit;
  for (int axis = 0; fits && axis < axes; ++axis)
    fits = a_layout.shape[axis] == b_layout.shape[axis];
  if (!fits) {
    fail<ShapeError>(args.op(), "leading axes differ: ", shape_text(a_layout), " @ ",
                     shape_text(b_layout));
  }
  if (a_layout.shape[axes + 1] != b_layout.shape[axes]) {
    fail<ShapeError>(args.op(), "inner sizes differ: ", shape_text(a_layout), " @ ",
                     shape_text(b_layout));
  }
  Layout shape = a_layout;
  shape.shape[axes + 1] = b_layout.shape[axes + 1];
  const std::int64_t size = checked_count(args, shape);
  Result out(args, size);
  const std::int64_t work = element_count(a_layout) + element_count(b_layout) + size;
  launch(work,
         [&] { kernels->batched_matmul({a.data(), a_layout}, {b.data(), b_layout}, out.data()); });
  return out.give();
}

// For backends on the host: memory shared with numpy, either way.

// A flat numpy array over an Array's memory, which it keeps alive.
inline PyObject* host_view(const Arguments& args) {
  Array& a = args.array(0);
  const auto owner = py::reinterpret_borrow<py::object>(args.object(0));
  return py::array_t<float>({a.size()}, {sizeof(float)}, a.data(), owner).release().ptr();
}

// An Array over a flat numpy array's memory, which it keeps alive.
inline PyObject* array_over(const Arguments& args) {
  PyObject* object = args.object(0);
  if (!py::isinstance<py::array_t<float>>(object))
    fail<ArgumentError>(args.op(), "argument 1 is no numpy array of float32");
  auto array = py::reinterpret_borrow<py::array_t<float>>(object);
  const bool flat = array.ndim() == 1 && (array.size() < 2 || array.strides(0) == sizeof(float));
  const auto address = reinterpret_cast<std::uintptr_t>(array.data());
  if (!flat || !array.writeable() || address % alignof(float) != 0) {
    fail<ArgumentError>(args.op(), "the array's memory must be flat, writable and aligned");
  }
  return new_array_over(array.mutable_data(), array.size(), object);
}

inline void bind_strided_kernels(py::module_& m) {
  using Args = const Arguments&;
#define BINARY(name, expression)                                            \
  add_entry(m, #name, "(a, a_layout, b, b_layout)",                         \
            [](Args args) { return strided_binary(args, kernels->name); }); \
  add_entry(m, #name "_scalar", "(a, a_layout, value)",                     \
            [](Args args) { return strided_scalar(args, kernels->name##_scalar); });
#define UNARY(name, expression)        \
  add_entry(m, #name, "(a, a_layout)", \
            [](Args args) { return strided_unary(args, kernels->name); });
#include "ops.def"
  add_entry(m, "copy", "(a, a_layout)",
            [](Args args) { return strided_unary(args, kernels->copy); });
  add_entry(m, "where", "(condition, c_layout, a, a_layout, b, b_layout)",
            [](Args args) { return where(args); });
  add_entry(m, "take_rows", "(a, a_layout, indices, i_layout)",
            [](Args args) { return take_rows(args); });
  add_entry(m, "add_rows", "(a, a_layout, indices, i_layout, rows)",
            [](Args args) { return add_rows(args); });
  add_entry(m, "sum", "(a, a_layout, count)",
            [](Args args) { return strided_reduce(args, kernels->sum, true); });
  add_entry(m, "max", "(a, a_layout, count)",
            [](Args args) { return strided_reduce(args, kernels->max, false); });
  add_entry(m, "min", "(a, a_layout, count)",
            [](Args args) { return strided_reduce(args, kernels->min, false); });
  add_entry(m, "batched_matmul", "(a, a_layout, b, b_layout)",
            [](Args args) { return batched_matmul(args); });
}

// Called by the binding of a backend on the host.
inline void bind_host_memory(py::module_& m) {
  using Args = const Arguments&;
  add_entry(m, "host_view", "(a)", [](Args args) { return host_view(args); });
  add_entry(m, "array_over", "(array)", [](Args args) { return array_over(args); });
}

}  // namespace needle
