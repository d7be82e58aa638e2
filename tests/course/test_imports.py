"""Imports and `__all__` of a stage: what the stage lacks goes, what it uses stays as written."""

from needle_course.imports import apply_edits, find_edits, module_names

REPOSITORY = ["python/needle/__init__.py", "python/needle/a.py", "python/needle/later.py"]


def pruned(text: str, **others: str) -> str:
    files = {"python/needle/a.py": text, "python/needle/__init__.py": ""}
    files |= {f"python/needle/{name}.py": other for name, other in others.items()}
    return apply_edits(text, find_edits(files, REPOSITORY)["python/needle/a.py"])


def test_a_file_that_uses_all_it_imports_stays():
    text = "import os\n\nfrom needle import b\n\nprint(os, b)\n"
    assert pruned(text, b="") == text


def test_an_unused_import_goes_and_blank_lines_join():
    text = "import os\nimport sys\n\nimport numpy as np\n\nfrom needle import b\n\nprint(sys, b)\n"
    assert pruned(text, b="") == "import sys\n\nfrom needle import b\n\nprint(sys, b)\n"


def test_a_module_that_the_stage_lacks_goes_with_its_names():
    text = "from needle import later\nfrom needle.later import x\n\nprint(later, x)\n"
    assert pruned(text) == "print(later, x)\n"


def test_a_name_that_a_module_lacks_goes():
    text = "from needle.b import one, two\n\nprint(one, two)\n"
    assert pruned(text, b="one = 1\n") == "from needle.b import one\n\nprint(one, two)\n"


def test_a_name_goes_where_its_source_dropped_it():
    text = "from needle.b import x\n\nprint(x)\n"
    assert pruned(text, b="from needle.later import x\n\n__all__ = ['x']\n") == "print(x)\n"


def test_foreign_modules_are_never_missing():
    text = "import torch\nfrom scipy.linalg import lu\n\nprint(torch, lu)\n"
    assert pruned(text) == text


def test_long_lists_keep_a_name_a_line_and_their_comments():
    names = [f"a_rather_long_name_{i}" for i in range(6)]
    listed = "".join(f"    {name},\n" for name in names)
    text = f"from needle.b import (\n    gone,\n{listed})\n\nprint({', '.join(names)}, gone)\n"
    kept = f"from needle.b import (\n{listed})\n\nprint({', '.join(names)}, gone)\n"
    assert pruned(text, b="".join(f"{name} = 1\n" for name in names)) == kept


def test_a_comment_behind_a_name_stays_with_it():
    kept = "from needle.b import (\n    abs,  # noqa: A004 - numpy's\n)\n\nprint(abs, gone)\n"
    text = kept.replace(")\n\n", "    gone,\n)\n\n")
    assert pruned(text, b="def abs(x): ...\n") == kept


def test_a_comment_behind_a_statement_stays_in_its_line():
    text = "from needle import gone_name, b  # noqa: E402\n\nprint(b, gone_name)\n"
    assert pruned(text, b="") == "from needle import b  # noqa: E402\n\nprint(b, gone_name)\n"


def test_a_list_that_now_fits_one_line_gets_one():
    text = "from needle.b import (\n    gone,\n    one,\n)\n\nprint(one)\n"
    assert pruned(text, b="one = 1\n") == "from needle.b import one\n\nprint(one)\n"


def test_all_lists_what_is_defined():
    text = '__all__ = [\n    "f",\n    "gone",\n]\n\n\ndef f(): ...\n'
    assert pruned(text) == '__all__ = ["f"]\n\n\ndef f(): ...\n'


def test_names_of_all_count_as_used():
    text = 'from needle.b import one, two\n\n__all__ = ["one"]\n'
    assert pruned(text, b="one = two = 1\n") == 'from needle.b import one\n\n__all__ = ["one"]\n'


def test_names_in_quoted_annotations_count_as_used():
    text = 'from needle.b import One\n\n\ndef f(x: "list[One]") -> None: ...\n'
    assert pruned(text, b="class One: ...\n") == text


def test_an_emptied_type_checking_block_goes():
    text = (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from needle.later import X\n"
        '\n\ndef f(x: "X"): ...\n'
    )
    result = pruned(text)
    assert "later" not in result
    assert "if" not in result


def test_an_emptied_function_keeps_a_body():
    text = "def f():\n    from needle.later import x\n"
    assert pruned(text) == "def f():\n    pass\n"


def test_imports_that_may_fail_stay():
    text = "try:\n    from needle.later import x\nexcept ImportError:\n    x = None\n\nprint(x)\n"
    assert pruned(text) == text


def test_imports_for_their_effect_stay():
    text = "import needle.b  # noqa: F401 - registers its ops\n"
    assert pruned(text, b="") == text


def test_a_package_keeps_what_it_does_not_use_itself():
    init = "from needle import a, later\nfrom needle.a import f, gone\n\n__all__ = ['a', 'later']\n"
    files = {"python/needle/__init__.py": init, "python/needle/a.py": "def f(): ...\n"}
    edits = find_edits(files, REPOSITORY)["python/needle/__init__.py"]
    assert apply_edits(init, edits) == (
        "from needle import a\nfrom needle.a import f\n\n__all__ = ['a']\n"
    )


def test_relative_imports_and_apps_are_resolved():
    files = {
        "python/needle/ops/__init__.py": "from .one import f\nfrom .two import g\n",
        "python/needle/ops/one.py": "from . import two\nfrom ..later import x\n\ndef f(): two, x\n",
        "apps/run.py": "import models\nfrom models import Net\n\nprint(models, Net)\n",
    }
    repository = [*files, "python/needle/ops/two.py", "python/needle/later.py", "apps/models.py"]
    edits = find_edits(files, repository)
    result = {path: apply_edits(text, edits[path]) for path, text in files.items()}
    assert result["python/needle/ops/__init__.py"] == "from .one import f\n"
    assert result["python/needle/ops/one.py"] == "def f(): two, x\n"
    assert result["apps/run.py"] == "print(models, Net)\n"


def test_edits_of_the_filled_form_fit_the_blank_one():
    body = (
        "import math\nimport sys\n\n\ndef f():\n"
        "    ### BEGIN YOUR SOLUTION (hw1.f)\n{}"
        "    ### END YOUR SOLUTION\n\n\nfrom needle.later import x  # noqa: E402\n"
    )
    filled = body.format("    import re\n    y = math.pi\n    return y, re\n")
    blank = body.format('    raise NotImplementedError("hw1.f")\n')
    edits = find_edits({"python/needle/a.py": filled}, REPOSITORY)["python/needle/a.py"]
    expected = body.replace("import sys\n", "").replace(
        "\n\n\nfrom needle.later import x  # noqa: E402", ""
    )
    assert apply_edits(blank, edits) == expected.format('    raise NotImplementedError("hw1.f")\n')
    assert "import re" in apply_edits(filled, edits)


def test_a_file_may_be_imported_by_its_name_on_the_path():
    assert module_names("python/needle/ops/__init__.py") == ["needle.ops"]
    assert module_names("apps/models.py") == ["apps.models", "models"]
