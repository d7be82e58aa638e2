// The binding of a compiled backend: one Python entry for each kernel of interface.py, and all
// checks of arguments. A kernel runs only when every size agrees and no view leaves its buffer. The
// backend's own binding (bind_cpu.cc) includes this file once. python_array.h has the class Array
// and reads single arguments.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels.h"
#include "python_array.h"

namespace needle {

inline const Kernels* kernels = nullptr;  // set once, by bind_kernels

// Elements from which a kernel runs without the GIL: below, giving it up and taking it back costs
// more than it gains. A backend may set it, before it binds.
inline std::int64_t release_gil_from = 100'000;

// All kernels start here. An argument's buffer outlives the call: the caller holds a reference to
// each Array, and an Array never lets go of its buffer before its own end.
template <class Work>
void launch(std::int64_t elements, const Work& work) {
  if (elements < release_gil_from) {
    work();
  } else {
    const py::gil_scoped_release release;
    work();
  }
}

inline PyObject* none() { return Py_NewRef(Py_None); }

// A Python function made from a body without captures. Each body is a type of its own, so the call
// is direct.
template <class Body>
struct Entry {
  static inline const char* name;
  static inline const char* arguments;
  static inline Py_ssize_t argument_count;
  static inline const Body* body;
  static inline PyMethodDef method;

  static PyObject* call(PyObject*, PyObject* const* items, Py_ssize_t count) {
    if (count != argument_count) {
      PyErr_Format(PyExc_TypeError, "[%s] takes %zd arguments %s, not %zd", name, argument_count,
                   arguments, count);
      return nullptr;
    }
    try {
      return (*body)(Arguments(name, items));
    } catch (...) {
      raise_current_exception(name);
      return nullptr;
    }
  }
};

// `arguments` is the signature that users see: "(a, b, out)".
template <class Body>
void add_entry(py::module_& module, const char* name, const char* arguments, const Body& body) {
  using E = Entry<Body>;
  E::name = name;
  E::arguments = arguments;
  E::argument_count = 1;
  for (const char* c = arguments; *c != '\0'; ++c) E::argument_count += *c == ',';
  E::body = new Body(body);
  const auto* doc = new std::string(std::string(name) + arguments +
                                    "\n--\n\nSee needle.backend_ndarray.interface.");
  E::method = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(E::call)),
               METH_FASTCALL, doc->c_str()};
  PyObject* function = PyCFunction_NewEx(&E::method, nullptr, module.attr("__name__").ptr());
  if (function == nullptr) throw py::error_already_set();
  module.add_object(name, function);
}

// The checks that several entries share.

inline void check_same_size(const Arguments& args, const Array& a, const Array& b) {
  if (a.size() != b.size()) {
    fail<ShapeError>(args.op(), "buffers hold ", a.size(), " and ", b.size(),
                     " elements; they must agree");
  }
}

inline void check_size(const Arguments& args, const char* what, std::int64_t size,
                       std::int64_t wanted) {
  if (size != wanted)
    fail<ShapeError>(args.op(), what, " holds ", size, " elements; the sizes ask for ", wanted);
}

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

// rows * columns of a matrix; sizes come from the caller, so they are checked too.
inline std::int64_t area(const Arguments& args, std::int64_t rows, std::int64_t columns) {
  std::int64_t count;
  if (rows < 0 || columns < 0 || __builtin_mul_overflow(rows, columns, &count)) {
    fail<ShapeError>(args.op(), "no matrix has the shape ", "(", rows, ", ", columns, ")");
  }
  return count;
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

// The course's kernels: compact buffers, an `out` from the caller.

template <class Kernel>
PyObject* course_unary(const Arguments& args, Kernel kernel) {
  const Array& a = args.array(0);
  Array& out = args.array(1);
  check_same_size(args, a, out);
  launch(out.size(), [&] { kernel(a.data(), out.data(), out.size()); });
  return none();
}

template <class Kernel>
PyObject* course_binary(const Arguments& args, Kernel kernel) {
  const Array& a = args.array(0);
  const Array& b = args.array(1);
  Array& out = args.array(2);
  check_same_size(args, a, b);
  check_same_size(args, a, out);
  launch(out.size(), [&] { kernel(a.data(), b.data(), out.data(), out.size()); });
  return none();
}

template <class Kernel>
PyObject* course_scalar(const Arguments& args, Kernel kernel) {
  const Array& a = args.array(0);
  const float value = args.number(1);
  Array& out = args.array(2);
  check_same_size(args, a, out);
  launch(out.size(), [&] { kernel(a.data(), value, out.data(), out.size()); });
  return none();
}

template <class Kernel>
PyObject* course_reduce(const Arguments& args, Kernel kernel, std::int64_t smallest_block) {
  const Array& a = args.array(0);
  Array& out = args.array(1);
  const std::int64_t reduce_size = args.integer(2);
  if (reduce_size < smallest_block)
    fail<ShapeError>(args.op(), "a block has at least ", smallest_block, " elements, not ",
                     reduce_size);
  check_size(args, "a", a.size(), area(args, out.size(), reduce_size));
  launch(a.size(), [&] { kernel(a.data(), out.data(), out.size(), reduce_size); });
  return none();
}

template <class Kernel>
PyObject* course_matmul(const Arguments& args, Kernel kernel, std::int64_t tile) {
  const Array& a = args.array(0);
  const Array& b = args.array(1);
  Array& out = args.array(2);
  const std::int64_t m = args.integer(3);
  const std::int64_t n = args.integer(4);
  const std::int64_t p = args.integer(5);
  check_size(args, "a", a.size(), area(args, m, n));
  check_size(args, "b", b.size(), area(args, n, p));
  check_size(args, "out", out.size(), area(args, m, p));
  if (m % tile != 0 || n % tile != 0 || p % tile != 0) {
    fail<ShapeError>(args.op(), "sizes ", m, ", ", n, ", ", p,
                     " are not multiples of the tile size ", tile);
  }
  if (&out == &a || &out == &b)
    fail<ShapeError>(args.op(), "out is an operand; it must be a buffer of its own");
  launch(a.size() + b.size() + out.size(),
         [&] { kernel(a.data(), b.data(), out.data(), m, n, p); });
  return none();
}

// The kernels that walk rows take a view of () as one row of 1.
inline void at_least_one_axis(Layout& view) {
  if (view.ndim > 0) return;
  view.ndim = 1;
  view.shape[0] = 1;
  view.strides[0] = 0;
}

inline PyObject* compact(const Arguments& args) {
  const Array& a = args.array(0);
  Array& out = args.array(1);
  Layout view;
  args.layout_at(2, a, view);
  check_size(args, "out", out.size(), element_count(view));
  at_least_one_axis(view);
  launch(out.size(), [&] { kernels->compact(a.data(), out.data(), view); });
  return none();
}

inline PyObject* ewise_setitem(const Arguments& args) {
  const Array& a = args.array(0);
  Array& out = args.array(1);
  Layout view;
  args.layout_at(2, out, view);
  check_size(args, "a", a.size(), element_count(view));
  at_least_one_axis(view);
  launch(a.size(), [&] { kernels->ewise_setitem(a.data(), out.data(), view); });
  return none();
}

inline PyObject* scalar_setitem(const Arguments& args) {
  const std::int64_t size = args.integer(0);
  const float value = args.number(1);
  Array& out = args.array(2);
  Layout view;
  args.layout_at(3, out, view);
  if (size != element_count(view)) {
    fail<ShapeError>(args.op(), "size is ", size, ", the view has shape ", shape_text(view));
  }
  at_least_one_axis(view);
  launch(size, [&] { kernels->scalar_setitem(value, out.data(), view); });
  return none();
}

inline PyObject* fill(const Arguments& args) {
  Array& out = args.array(0);
  const float value = args.number(1);
  launch(out.size(), [&] { kernels->fill(out.data(), value, out.size()); });
  return none();
}

// The strided kernels: views in, a new Array out.

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

// To and from numpy.

inline PyObject* to_numpy(const Arguments& args) {
  const Array& a = args.array(0);
  Layout view;
  args.layout_at(1, a, view);
  const std::vector<py::ssize_t> shape(view.shape, view.shape + view.ndim);
  py::array_t<float> out(shape);
  float* data = out.mutable_data();
  launch(out.size(), [&] { kernels->to_host({a.data(), view}, data); });
  return out.release().ptr();
}

// Anything that numpy can make a float32 array of.
inline PyObject* from_numpy(const Arguments& args) {
  using HostArray = py::array_t<float, py::array::c_style | py::array::forcecast>;
  const HostArray array = HostArray::ensure(args.object(0));
  if (!array) fail<ArgumentError>(args.op(), "numpy cannot make a float32 array of argument 1");
  Array& out = args.array(1);
  check_size(args, "out", out.size(), array.size());
  const float* data = array.data();
  launch(out.size(), [&] { kernels->from_host(data, out.data(), out.size()); });
  return none();
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

inline py::dict memory_stats() {
  const MemoryStats stats = pool().stats();
  py::dict entries;
  entries["live_bytes"] = stats.live_bytes;
  entries["cached_bytes"] = stats.cached_bytes;
  entries["hits"] = stats.hits;
  entries["misses"] = stats.misses;
  return entries;
}

inline void bind_course_kernels(py::module_& m) {
  using Args = const Arguments&;
  add_entry(m, "to_numpy", "(a, shape, strides, offset)", [](Args args) { return to_numpy(args); });
  add_entry(m, "from_numpy", "(array, out)", [](Args args) { return from_numpy(args); });
  add_entry(m, "fill", "(out, value)", [](Args args) { return fill(args); });
  add_entry(m, "compact", "(a, out, shape, strides, offset)",
            [](Args args) { return compact(args); });
  add_entry(m, "ewise_setitem", "(a, out, shape, strides, offset)",
            [](Args args) { return ewise_setitem(args); });
  add_entry(m, "scalar_setitem", "(size, value, out, shape, strides, offset)",
            [](Args args) { return scalar_setitem(args); });
  add_entry(m, "ewise_add", "(a, b, out)",
            [](Args args) { return course_binary(args, kernels->ewise_add); });
  add_entry(m, "ewise_mul", "(a, b, out)",
            [](Args args) { return course_binary(args, kernels->ewise_mul); });
  add_entry(m, "ewise_div", "(a, b, out)",
            [](Args args) { return course_binary(args, kernels->ewise_div); });
  add_entry(m, "ewise_maximum", "(a, b, out)",
            [](Args args) { return course_binary(args, kernels->ewise_maximum); });
  add_entry(m, "ewise_eq", "(a, b, out)",
            [](Args args) { return course_binary(args, kernels->ewise_eq); });
  add_entry(m, "ewise_ge", "(a, b, out)",
            [](Args args) { return course_binary(args, kernels->ewise_ge); });
  add_entry(m, "scalar_add", "(a, value, out)",
            [](Args args) { return course_scalar(args, kernels->scalar_add); });
  add_entry(m, "scalar_mul", "(a, value, out)",
            [](Args args) { return course_scalar(args, kernels->scalar_mul); });
  add_entry(m, "scalar_div", "(a, value, out)",
            [](Args args) { return course_scalar(args, kernels->scalar_div); });
  add_entry(m, "scalar_power", "(a, value, out)",
            [](Args args) { return course_scalar(args, kernels->scalar_power); });
  add_entry(m, "scalar_maximum", "(a, value, out)",
            [](Args args) { return course_scalar(args, kernels->scalar_maximum); });
  add_entry(m, "scalar_eq", "(a, value, out)",
            [](Args args) { return course_scalar(args, kernels->scalar_eq); });
  add_entry(m, "scalar_ge", "(a, value, out)",
            [](Args args) { return course_scalar(args, kernels->scalar_ge); });
  add_entry(m, "ewise_log", "(a, out)",
            [](Args args) { return course_unary(args, kernels->ewise_log); });
  add_entry(m, "ewise_exp", "(a, out)",
            [](Args args) { return course_unary(args, kernels->ewise_exp); });
  add_entry(m, "ewise_tanh", "(a, out)",
            [](Args args) { return course_unary(args, kernels->ewise_tanh); });
  add_entry(m, "matmul", "(a, b, out, m, n, p)",
            [](Args args) { return course_matmul(args, kernels->matmul, 1); });
  if (kernels->matmul_tiled != nullptr) {
    m.attr("__tile_size__") = kernels->tile_size;
    add_entry(m, "matmul_tiled", "(a, b, out, m, n, p)", [](Args args) {
      return course_matmul(args, kernels->matmul_tiled, kernels->tile_size);
    });
  }
  add_entry(m, "reduce_sum", "(a, out, reduce_size)",
            [](Args args) { return course_reduce(args, kernels->reduce_sum, 0); });
  add_entry(m, "reduce_max", "(a, out, reduce_size)",
            [](Args args) { return course_reduce(args, kernels->reduce_max, 1); });
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

// Puts the class Array and every kernel of the table into the module.
inline void bind_backend(py::module_& module, const Kernels& table) {
  kernels = &table;
  add_array_type(module);
  bind_course_kernels(module);
  bind_strided_kernels(module);
  module.def("memory_stats", memory_stats,
             "Return live_bytes, cached_bytes, hits and misses of the memory pool, as a dict.");
  module.def(
      "empty_cache", [] { pool().empty_cache(); },
      "Give the pool's unused blocks back to the system.");
}

}  // namespace needle
