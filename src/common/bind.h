// The binding of a compiled backend: one Python entry for each course kernel of interface.py, and
// all checks of its arguments. A kernel runs only when every size agrees and no view leaves its
// buffer. The backend's own binding (bind_cpu.cc) includes this file once. python_array.h has the
// class Array and reads single arguments.
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

// rows * columns of a matrix; sizes come from the caller, so they are checked too.
inline std::int64_t area(const Arguments& args, std::int64_t rows, std::int64_t columns) {
  std::int64_t count;
  if (rows < 0 || columns < 0 || __builtin_mul_overflow(rows, columns, &count)) {
    fail<ShapeError>(args.op(), "no matrix has the shape ", "(", rows, ", ", columns, ")");
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

// To and from numpy.

inline PyObject* to_numpy(const Arguments& args) {
  const Array& a = args.array(0);
  Layout view;
  args.layout_at(1, a, view);
  const std::vector<py::ssize_t> shape(view.shape, view.shape + view.ndim);
  /// SINCE full
  py::array_t<float> out(shape);
  float* data = out.mutable_data();
  launch(out.size(), [&] { kernels->to_host({a.data(), view}, data); });
  return out.release().ptr();
  /// END SINCE
  /// UNTIL hw5
  // std::vector<py::ssize_t> strides;
  // for (int axis = 0; axis < view.ndim; ++axis) {
  //   strides.push_back(view.strides[axis] * static_cast<py::ssize_t>(sizeof(float)));
  // }
  // py::array_t<float> buffer(a.size());
  // kernels->to_host(a.data(), buffer.mutable_data(), a.size());
  // const py::array_t<float> shown(shape, strides, buffer.data() + view.offset, buffer);
  // return shown.attr("copy")().release().ptr();
  /// END UNTIL
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
  m.attr("__tile_size__") = kernels->tile_size;
  add_entry(m, "matmul_tiled", "(a, b, out, m, n, p)", [](Args args) {
    return course_matmul(args, kernels->matmul_tiled, kernels->tile_size);
  });
  add_entry(m, "reduce_sum", "(a, out, reduce_size)",
            [](Args args) { return course_reduce(args, kernels->reduce_sum, 0); });
  add_entry(m, "reduce_max", "(a, out, reduce_size)",
            [](Args args) { return course_reduce(args, kernels->reduce_max, 1); });
}

// Puts the class Array and the course's kernels of the table into the module.
inline void bind_backend(py::module_& module, const Kernels& table) {
  kernels = &table;
  add_array_type(module);
  bind_course_kernels(module);
  module.def("memory_stats", memory_stats,
             "Return live_bytes, cached_bytes, hits and misses of the memory pool, as a dict.");
  module.def(
      "empty_cache", [] { pool().empty_cache(); },
      "Give the pool's unused blocks back to the system.");
}

}  // namespace needle
