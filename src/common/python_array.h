// The Python class Array, and how a call's arguments become C++ values. In the plain C API: a call
// for 16 numbers takes a quarter to a third of its time through pybind11's dispatcher and registry
// of instances. Used by bind.h.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <new>
#include <string>

#include "array.h"
#include "error.h"
#include "layout.h"

namespace needle {

namespace py = pybind11;

struct ArrayObject {
  PyObject_HEAD Array array;
  PyObject* owner;  // of memory that is not the pool's; else null
};

inline PyTypeObject* array_type = nullptr;  // set once, by add_array_type

// Returns a new reference to an uninitialised Array; throws what Array's constructor throws.
inline PyObject* new_array(const char* op, std::int64_t size) {
  auto* object = PyObject_New(ArrayObject, array_type);
  if (object == nullptr) throw py::error_already_set();
  try {
    new (&object->array) Array(op, size);
  } catch (...) {
    PyObject_Free(object);
    Py_DECREF(array_type);
    throw;
  }
  object->owner = nullptr;
  return reinterpret_cast<PyObject*>(object);
}

/// SINCE full
// Returns a new reference to an Array over memory of `owner`, which lives as long.
inline PyObject* new_array_over(float* data, std::int64_t size, PyObject* owner) {
  auto* object = PyObject_New(ArrayObject, array_type);
  if (object == nullptr) throw py::error_already_set();
  new (&object->array) Array(data, size);
  object->owner = Py_NewRef(owner);
  return reinterpret_cast<PyObject*>(object);
}

/// END SINCE
inline void delete_array(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* object = reinterpret_cast<ArrayObject*>(self);
  PyObject* owner = object->owner;
  object->array.~Array();
  PyObject_Free(self);
  Py_XDECREF(owner);  // last: it may run any code
  Py_DECREF(type);
}

// Raises the class `name` of needle.errors. Looked up at the time of the error: this module knows
// no other.
inline void raise_needle_error(const char* name, const char* text) {
  PyObject* errors = PyImport_ImportModule("needle.errors");
  if (errors == nullptr) return;
  PyObject* type = PyObject_GetAttrString(errors, name);
  Py_DECREF(errors);
  if (type == nullptr) return;
  PyErr_SetString(type, text);
  Py_DECREF(type);
}

// Turns the exception in flight, from a call of `op`, into Python's. Called inside a catch block.
inline void raise_current_exception(const char* op) {
  try {
    throw;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const IndexingError& error) {
    raise_needle_error("IndexingError", error.what());
  } catch (const ShapeError& error) {
    raise_needle_error("ShapeError", error.what());
  } catch (const OutOfMemoryError& error) {
    raise_needle_error("OutOfMemoryError", error.what());
  } catch (const DeviceError& error) {
    raise_needle_error("DeviceError", error.what());
  } catch (const ArgumentError& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const NotImplementedError& error) {
    PyErr_SetString(PyExc_NotImplementedError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {  // whatever else stopped a kernel
    raise_needle_error("DeviceError", ('[' + std::string(op) + "] " + error.what()).c_str());
  }
}

// A shape as Python writes it: (2, 3), (5,), ().
inline std::string shape_text(const std::int64_t* shape, int ndim) {
  std::string text = "(";
  for (int axis = 0; axis < ndim; ++axis)
    text += (axis > 0 ? ", " : "") + std::to_string(shape[axis]);
  return text + (ndim == 1 ? ",)" : ")");
}

inline std::string shape_text(const Layout& layout) {
  return shape_text(layout.shape, layout.ndim);
}

// The arguments of one call of `op`, read by position.
class Arguments {
 public:
  Arguments(const char* op, PyObject* const* items) : op_(op), items_(items) {}

  const char* op() const { return op_; }
  PyObject* object(int i) const { return items_[i]; }

  /// SINCE full
  bool is_none(int i) const { return items_[i] == Py_None; }

  /// END SINCE
  Array& array(int i) const {
    if (Py_TYPE(items_[i]) != array_type) {
      fail<ArgumentError>(op_, "argument ", i + 1, " is a '", type_name(items_[i]),
                          "'; an Array of this device is needed");
    }
    return reinterpret_cast<ArrayObject*>(items_[i])->array;
  }

  std::int64_t integer(int i) const { return integer(items_[i]); }

  // A Python or numpy number, rounded to float32.
  float number(int i) const {
    if (PyFloat_CheckExact(items_[i])) return static_cast<float>(PyFloat_AS_DOUBLE(items_[i]));
    const double value = PyFloat_AsDouble(items_[i]);
    if (value == -1.0 && PyErr_Occurred() != nullptr) refuse(items_[i], "a number");
    return static_cast<float>(value);
  }

  /// SINCE full
  // Argument i: None, the whole of `array` in order, or a tuple (shape, strides, offset).
  void layout(int i, const Array& array, Layout& out) const {
    PyObject* item = items_[i];
    if (item == Py_None) {
      set_flat(out, array.size());
      return;
    }
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 3) {
      fail<ArgumentError>(op_, "a layout is None or (shape, strides, offset), not a '",
                          type_name(item), "'");
    }
    read_layout(PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1), PyTuple_GET_ITEM(item, 2),
                out);
    check_inside(array, out);
  }

  /// END SINCE
  // Arguments i, i + 1 and i + 2: shape, strides and offset of a view of `array`.
  void layout_at(int i, const Array& array, Layout& out) const {
    read_layout(items_[i], items_[i + 1], items_[i + 2], out);
    check_inside(array, out);
  }

 private:
  static const char* type_name(PyObject* item) { return Py_TYPE(item)->tp_name; }

  // A wrong type gets a plain text; other errors (a number too large) stay as they are.
  [[noreturn]] void refuse(PyObject* item, const char* needed) const {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
    PyErr_Clear();
    fail<ArgumentError>(op_, "'", type_name(item), "' given where ", needed, " is needed");
  }

  std::int64_t integer(PyObject* item) const {
    const std::int64_t value = PyLong_AsLongLong(item);
    if (value == -1 && PyErr_Occurred() != nullptr) {
      if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        fail<ShapeError>(op_, "a size, stride or offset does not fit in 64 bits");
      }
      refuse(item, "an integer");
    }
    return value;
  }

  // A tuple or a list, whose items can be read in place.
  Py_ssize_t sequence(PyObject* item, PyObject* const*& entries) const {
    if (!PyTuple_Check(item) && !PyList_Check(item)) {
      fail<ArgumentError>(op_, "'", type_name(item), "' given where a tuple of integers is needed");
    }
    entries = PySequence_Fast_ITEMS(item);
    return PySequence_Fast_GET_SIZE(item);
  }

  void read_layout(PyObject* shape, PyObject* strides, PyObject* offset, Layout& out) const {
    PyObject* const* sizes;
    PyObject* const* steps;
    const Py_ssize_t ndim = sequence(shape, sizes);
    if (sequence(strides, steps) != ndim) {
      fail<ShapeError>(op_, "shape has ", ndim, " axes, strides have ",
                       PySequence_Fast_GET_SIZE(strides));
    }
    if (ndim > kMaxDims)
      fail<ShapeError>(op_, "a view has at most ", kMaxDims, " axes, not ", ndim);
    out.ndim = static_cast<int>(ndim);
    out.offset = integer(offset);
    for (int axis = 0; axis < out.ndim; ++axis) {
      out.shape[axis] = integer(sizes[axis]);
      out.strides[axis] = integer(steps[axis]);
    }
  }

  // Every element of the view lies in the buffer, and kernels may multiply any of its sizes. A view
  // without elements may lie anywhere. Sets the strides of axes of size 1, which mean nothing, to
  // 0.
  void check_inside(const Array& array, Layout& view) const {
    std::int64_t low = view.offset;
    std::int64_t high = view.offset;
    std::int64_t count = 1;
    bool empty = false;
    bool overflow = false;
    for (int axis = 0; axis < view.ndim; ++axis) {
      const std::int64_t size = view.shape[axis];
      if (size < 0) fail<ShapeError>(op_, "shape ", shape_text(view), " has a negative axis");
      if (size == 0) {
        empty = true;
      } else if (size == 1) {
        view.strides[axis] = 0;
      } else {
        if (__builtin_mul_overflow(count, size, &count)) {
          fail<ShapeError>(op_, "shape ", shape_text(view),
                           " has more elements than 63 bits count");
        }
        std::int64_t reach;
        std::int64_t& end = view.strides[axis] < 0 ? low : high;
        overflow |= __builtin_mul_overflow(size - 1, view.strides[axis], &reach);
        overflow |= __builtin_add_overflow(end, reach, &end);
      }
    }
    if (empty) return;
    if (overflow)
      fail<ShapeError>(op_, "view leaves its buffer of ", array.size(),
                       " by more than 63 bits count");
    if (low < 0 || high >= array.size()) {
      fail<ShapeError>(op_, "view touches elements ", low, "..", high, " of a buffer of ",
                       array.size());
    }
  }

  const char* op_;
  PyObject* const* items_;
};

// Array(size)
inline PyObject* construct_array(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"size", nullptr};
  PyObject* size;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Array", const_cast<char**>(names), &size))
    return nullptr;
  try {
    return new_array("Array", Arguments("Array", &size).integer(0));
  } catch (...) {
    raise_current_exception("Array");
    return nullptr;
  }
}

// Makes the class and adds it to the module.
inline void add_array_type(py::module_& module) {
  static PyGetSetDef properties[] = {
      {"size",
       [](PyObject* self, void*) {
         return PyLong_FromLongLong(reinterpret_cast<ArrayObject*>(self)->array.size());
       },
       nullptr, "the number of elements", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyMethodDef methods[] = {
      {"ptr",
       [](PyObject* self, PyObject*) {
         return PyLong_FromVoidPtr(reinterpret_cast<ArrayObject*>(self)->array.data());
       },
       METH_NOARGS, "ptr()\n--\n\nReturn the address of element 0, as an int."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_doc,
       const_cast<char*>(
           "Array(size)\n--\n\nAn uninitialised flat buffer of `size` float32 numbers.")},
      {Py_tp_new, reinterpret_cast<void*>(construct_array)},
      {Py_tp_dealloc, reinterpret_cast<void*>(delete_array)},
      {Py_tp_getset, properties},
      {Py_tp_methods, methods},
      {0, nullptr}};
  static const std::string name = module.attr("__name__").cast<std::string>() + ".Array";
  static PyType_Spec spec = {name.c_str(), sizeof(ArrayObject), 0, Py_TPFLAGS_DEFAULT, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  array_type = reinterpret_cast<PyTypeObject*>(type);
  module.add_object("Array", type);
}

}  // namespace needle
