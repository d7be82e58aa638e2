"""Every backend has the names of interface.py with its arguments, and no other kernels."""

import inspect
import re

import pytest

from needle.backend_ndarray import all_devices, cpu_numpy, interface

# What else a module holds: the parts of the specification, and the settings of a compiled backend.
SPECIFICATION_PARTS = {"exponents", "last_axes", "number", "truth", "view", "views"}
SETTINGS = {"get_num_threads", "isa", "set_num_threads", "supported_isas"}
SETTINGS |= {"device_count", "unavailable"}

TABLES = (interface.COURSE_KERNELS, interface.STRIDED_KERNELS, interface.MEMORY_FUNCTIONS)


def parameters_of(name):
    """Return the parameter names that interface.py gives a kernel."""
    if name in interface.BINARY_KERNELS:
        return ["a", "a_layout", "b", "b_layout"]
    if name.removesuffix("_scalar") in interface.BINARY_KERNELS:
        return ["a", "a_layout", "value"]
    if name in interface.UNARY_KERNELS:
        return ["a", "a_layout"]
    text = next(table[name] for table in TABLES if name in table)
    return re.findall(r"\w+", re.match(r"\(([^)]*)\)", text)[1])


def functions_of(module):
    return {name for name, value in vars(module).items() if inspect.isroutine(value)}


def test_no_kernel_is_listed_twice():
    names = [
        name
        for table in (*TABLES, interface.BINARY_KERNELS, interface.UNARY_KERNELS)
        for name in table
    ]
    assert len(names) == len(set(names))


def test_kernel_names():
    names = interface.kernel_names()
    assert {"fill", "ewise_add", "add", "add_scalar", "exp", "sum", "where", "empty_cache"} <= names
    assert (
        names - interface.kernel_names(optional=False)
        == interface.OPTIONAL_KERNELS
        == {"matmul_tiled", "host_view", "array_over"}
    )
    assert len(names) == sum(map(len, TABLES)) + 2 * len(interface.BINARY_KERNELS) + len(
        interface.UNARY_KERNELS
    )


def test_backend_has_the_names_of_the_interface(device):
    names = functions_of(device.mod)
    assert interface.kernel_names(optional=False) - names == set(), "kernels that are missing"
    known = interface.kernel_names() | SPECIFICATION_PARTS | SETTINGS
    assert names - known == set(), "functions that interface.py does not name"


@pytest.mark.parametrize(
    "name", sorted(interface.kernel_names() - interface.MEMORY_FUNCTIONS.keys())
)
def test_kernel_takes_the_arguments_of_the_interface(device, name):
    if name in interface.OPTIONAL_KERNELS and not hasattr(device, name):
        pytest.skip(f"{device} has no {name}, which is optional")
    assert list(inspect.signature(getattr(device, name)).parameters) == parameters_of(name)


def test_device_offers_each_kernel_as_its_own_attribute(device):
    for name in interface.kernel_names() & functions_of(device.mod):
        assert vars(device)[name] is getattr(device.mod, name)
    assert device.Array is device.mod.Array


def test_array_has_the_members_of_the_interface(device):
    made = device.Array(3)
    assert set(interface.ARRAY_MEMBERS) == {"Array(size)", "size", "ptr()"}
    assert made.size == 3
    assert made.ptr() == made.ptr() != device.Array(3).ptr()


def test_device_name_of_the_module(device):
    names = {"cpu": "cpu", "cuda": "cuda", "cpu_numpy": "numpy"}
    assert device.mod.__device_name__ == names[device.name]


def test_tile_size_belongs_to_matmul_tiled(device):
    assert hasattr(device, "__tile_size__") == hasattr(device, "matmul_tiled")


def test_specification_is_complete():
    """The optional kernels are optional for the specification too, and nothing else is."""
    missing = interface.kernel_names() - functions_of(cpu_numpy().mod)
    assert missing <= interface.OPTIONAL_KERNELS
    assert cpu_numpy() in all_devices()
