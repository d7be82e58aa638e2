"""The layer rule of needle: a module imports only modules to the left of its own in LAYERS.

Read from the syntax trees, so nothing is imported and no build is needed.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# From left to right. Modules of one row do not import each other; a package means all in it.
LAYERS = (
    ("needle.errors", "needle.recording"),
    ("needle.tensor_methods",),
    ("needle.backend_ndarray.layout", "needle.backend_ndarray.interface"),
    (
        "needle.backend_ndarray.course_kernels",
        "needle.backend_ndarray.dlpack",
        "needle.backend_ndarray.ndarray_backend_numpy",
    ),
    ("needle.backend_ndarray.device",),
    ("needle.backend_ndarray.ndarray",),
    ("needle.backend_ndarray.exchange",),
    ("needle.backend_ndarray.array_api",),
    ("needle.backend_ndarray",),
    ("needle.backend_numpy",),
    ("needle.backend_selection",),
    ("needle.autograd",),
    ("needle.engine",),
    ("needle.ops",),
    ("needle.config", "needle.exchange", "needle.function"),
    ("needle.init",),
    ("needle.nn",),
    ("needle.optim", "needle.data", "needle.torch_layout", "needle.model_summary", "needle.viz"),
    ("needle.serialization",),
    ("needle.onnx",),
    ("needle",),
    ("apps",),
)

# Imports to the right, in a function or below the definitions: (from, to), and how many.
LATE_IMPORTS = {
    ("needle.backend_ndarray.device", "needle.backend_ndarray.ndarray"): 3,
    ("needle.autograd", "needle.engine"): 1,
    ("needle.autograd", "needle.ops"): 1,
    ("needle.engine", "needle.ops"): 1,
}

RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part not in ("python", "__init__"))


FILES = {
    module_name(path): path
    for folder in ("python/needle", "apps")
    for path in sorted((ROOT / folder).rglob("*.py"))
}


def layer_of(module: str) -> str:
    """Return the longest name in LAYERS that holds `module`."""
    name = module
    while name not in RANKS:
        name, dot, _ = name.rpartition(".")
        assert dot, f"{module} is in no layer; give it a place in LAYERS"
    assert name != "needle" or module == "needle", f"{module} is in no layer"
    return name


def imported_modules(node: ast.Import | ast.ImportFrom, module: str) -> Iterator[str]:
    """Yield the modules of this repository that an import statement in `module` names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        is_package = FILES[module].name == "__init__.py"
        dots = node.level - is_package  # `from .` is the module's package, or itself if it is one
        base = module.rsplit(".", dots)[0] if node.level else ""
        source = ".".join(filter(None, [base, node.module]))
        submodules = (f"{source}.{alias.name}" for alias in node.names)
        names = [name if name in FILES else source for name in submodules]
    for name in names:
        if f"apps.{name}" in FILES:  # apps lie on the path
            name = f"apps.{name}"
        if name.split(".")[0] in ("needle", "apps"):
            yield name


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imports(module: str) -> Iterator[tuple[str, bool]]:
    """Yield (layer, late) for each import in a module; late ones run after its definitions."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef

    def walk(node: ast.AST, late: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                for name in imported_modules(child, module):
                    yield layer_of(name), late
            elif not is_for_types_only(child):
                yield from walk(child, late or isinstance(child, functions))
            if isinstance(node, ast.Module) and isinstance(child, functions | ast.ClassDef):
                late = True

    return walk(ast.parse(FILES[module].read_text()), late=False)


@pytest.mark.parametrize("module", [name for name in FILES if name != "needle"])
def test_imports_go_to_the_left(module):
    own = layer_of(module)
    for layer, late in imports(module):
        to_the_left = layer == own or RANKS[layer] < RANKS[own]
        allowed = to_the_left or (late and (own, layer) in LATE_IMPORTS)
        assert allowed, f"{module} imports {layer}, which is not to the left of {own}"


@pytest.mark.parametrize(("pair", "times"), LATE_IMPORTS.items(), ids=lambda value: str(value))
def test_late_imports_stay_few(pair, times):
    source, target = pair
    modules = [name for name in FILES if name != "needle" and layer_of(name) == source]
    found = sum((target, True) == entry for name in modules for entry in imports(name))
    assert found <= times, f"{source} imports {target} {found} times; {times} were agreed"
