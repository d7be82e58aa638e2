"""What is handed in: exactly the manifest's files, tested from the zip itself."""

import json
import zipfile

import pytest

from needle_course.stages import load_course
from needle_course.submission import IntegrityError, pack, rehearse, unpack
from needle_course.workspace import start
from tests.course.small_course import answer, make_course

OPS = "python/needle/ops.py"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return load_course(make_course(tmp_path_factory.mktemp("course")))


@pytest.fixture
def mine(course, tmp_path):
    return start(course, "hw1", tmp_path / "mine")


def packed(mine, course):
    return pack(mine, course, course.stage("hw1"))


def test_the_zip_holds_the_manifests_files_and_nothing_else(course, mine, tmp_path):
    (mine.root / "python/needle/extra.py").write_text("MINE = 1\n")
    submission = packed(mine, course)
    submission.write(tmp_path / "out.zip")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.namelist() == sorted(["manifest.json", *course.files("hw1")])
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["format"] == "needle.submission/1"
    assert manifest["stage"] == "hw1"
    assert manifest["content"] == submission.content_hash
    assert submission.left_out == ("python/needle/extra.py",)


def test_the_same_answers_give_the_same_bytes(course, mine, tmp_path):
    packed(mine, course).write(tmp_path / "one.zip")
    (mine.root / OPS).write_bytes((mine.root / OPS).read_bytes())
    packed(mine, course).write(tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    before = packed(mine, course).content_hash
    answer(mine.root, OPS, "hw1.double", "return x + x")
    assert packed(mine, course).content_hash != before


def test_the_rehearsal_tests_the_zip(course, mine, tmp_path):
    answer(mine.root, OPS, "hw1.double", "return x + x")
    packed(mine, course).write(tmp_path / "out.zip")
    answer(mine.root, OPS, "hw1.double", "return 0")
    verdicts = {
        record["test"]: record["verdict"] for record in rehearse(tmp_path / "out.zip", course)
    }
    assert verdicts == {
        "hw1.double::values": "pass",
        "hw1.double::number_of_the_file": "pass",
        "hw1.mean::values": "not_implemented",
    }


def test_an_answer_that_needs_a_file_outside_the_manifest_shows_it(course, mine, tmp_path):
    (mine.root / "python/needle/extra.py").write_text("def twice(x):\n    return 2 * x\n")
    own = "from needle.extra import twice\nreturn twice(x)"
    answer(mine.root, OPS, "hw1.double", own)
    packed(mine, course).write(tmp_path / "out.zip")
    records = {record["test"]: record for record in rehearse(tmp_path / "out.zip", course)}
    assert "No module named 'needle.extra'" in records["hw1.double::values"]["message"]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (("tests/hw1/test_ops.py", "close(", "print("), "tests/hw1/test_ops.py differ"),
        ((OPS, "### END YOUR SOLUTION", "### END"), "restore the marker lines"),
        ((OPS, "### BEGIN YOUR SOLUTION (hw1.mean)", ""), "out of place"),
        ((OPS, None, None), f"{OPS} of the manifest is missing"),
    ],
)
def test_a_damaged_workspace_is_not_packed(course, mine, damage, says):
    path, old, new = damage
    file = mine.root / path
    if old is None:
        file.unlink()
    else:
        file.write_text(file.read_text().replace(old, new))
    with pytest.raises(IntegrityError) as caught:
        packed(mine, course)
    assert says in str(caught.value)


def test_lost_regions_are_named(course, mine):
    file = mine.root / OPS
    lines = [line for line in file.read_text().splitlines() if "YOUR SOLUTION" not in line]
    file.write_text("\n".join(lines))
    with pytest.raises(IntegrityError, match=r"marker lines of hw1\.double, hw1\.mean are gone"):
        packed(mine, course)


def rewritten(path, change):
    """Write a zip again with its files changed by a function."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def with_manifest(files, change):
    manifest = json.loads(files["manifest.json"])
    change(manifest)
    files["manifest.json"] = json.dumps(manifest).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files.update({OPS: files[OPS] + b"# more\n"}),
        lambda files: files.pop(OPS),
        lambda files: files.pop("manifest.json"),
        lambda files: files.update({"manifest.json": b"[]"}),
        lambda files: with_manifest(files, lambda manifest: manifest.update(content="0")),
        lambda files: with_manifest(files, lambda manifest: manifest["files"].pop(OPS)),
    ],
)
def test_a_zip_that_was_changed_is_refused(course, mine, tmp_path, change):
    packed(mine, course).write(tmp_path / "out.zip")
    rewritten(tmp_path / "out.zip", change)
    with pytest.raises(IntegrityError):
        unpack(tmp_path / "out.zip", tmp_path / "fresh", course)


def test_a_zip_puts_no_file_outside_the_manifest(course, mine, tmp_path):
    submission = packed(mine, course)
    submission.files["../outside.py"] = b"print()\n"
    submission.write(tmp_path / "out.zip")
    with pytest.raises(IntegrityError, match=r"\.\./outside\.py is no file of hw1"):
        unpack(tmp_path / "out.zip", tmp_path / "fresh", course)
    assert not (tmp_path / "outside.py").exists()


def test_no_zip_at_all(course, tmp_path):
    (tmp_path / "out.zip").write_text("no zip")
    with pytest.raises(IntegrityError, match="is no submission"):
        unpack(tmp_path / "out.zip", tmp_path / "fresh", course)
