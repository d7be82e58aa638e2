"""Models in safetensors files: round trips, files that do not fit, saves that are interrupted."""

import re
import struct

import numpy as np
import pytest
import safetensors.numpy

import needle as ndl
from needle import nn
from needle.errors import DtypeError, NeedleError, ShapeError


def model_on(device, features=3):
    """Return a model with parameters and running statistics, all random."""
    model = nn.Sequential(
        nn.Linear(features, 4, device=device), nn.BatchNorm1d(4, device=device), nn.Dropout(0.5)
    )
    for tensor in model._state().values():
        tensor.data = ndl.init.rand(*tensor.shape, device=device)
    return model


def state_of(model):
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def assert_same_state(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


# --- round trips ---


def test_a_model_comes_back(device, path):
    saved, loaded = model_on(device), model_on("cpu_numpy")
    ndl.save_model(saved, path)
    ndl.load_model(loaded, path)
    assert_same_state(state_of(loaded), state_of(saved))
    assert all(p.device == ndl.cpu_numpy() and p.requires_grad for p in loaded.parameters())


def test_a_file_loads_onto_the_device_of_the_model(device, path):
    saved, loaded = model_on("cpu_numpy"), model_on(device)
    ndl.save_model(saved, path)
    ndl.load_model(loaded, path)
    assert_same_state(state_of(loaded), state_of(saved))
    assert all(tensor.device == device for tensor in loaded._state().values())


def test_a_loaded_model_predicts_the_same(device, path, rng):
    saved, loaded = model_on(device).eval(), model_on(device).eval()
    ndl.save_model(saved, path)
    ndl.load_model(loaded, path)
    x = ndl.Tensor(rng.standard_normal((5, 3)), device=device)
    np.testing.assert_array_equal(loaded(x).numpy(), saved(x).numpy())


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3, 4)], ids=str)
def test_tensors_of_any_shape(device, path, shape):
    tensor = ndl.init.rand(*shape, device=device)
    ndl.save({"t": tensor}, path)
    loaded = ndl.load(path)["t"]
    assert loaded.shape == shape and loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, tensor.numpy())


def test_views_are_saved_as_they_look(device, path):
    tensor = ndl.Tensor(np.arange(6).reshape(2, 3), device=device)
    ndl.save({"transposed": tensor.transpose(), "wide": tensor[0:1].broadcast_to((2, 3))}, path)
    loaded = ndl.load(path)
    np.testing.assert_array_equal(loaded["transposed"], [[0, 3], [1, 4], [2, 5]])
    np.testing.assert_array_equal(loaded["wide"], [[0, 1, 2], [0, 1, 2]])


def test_the_file_is_plain_safetensors(device, path):
    model = model_on(device)
    ndl.save_model(model, path)
    assert_same_state(safetensors.numpy.load_file(path), state_of(model))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64])
def test_other_dtypes_are_converted(device, path, dtype):
    state = {name: (value * 8).astype(dtype) for name, value in state_of(model_on(device)).items()}
    safetensors.numpy.save_file(state, path)
    model = model_on(device)
    ndl.load_model(model, path)
    assert all(p.numpy().dtype == np.float32 for p in model.parameters())
    np.testing.assert_allclose(
        model.modules[0].weight.numpy(), state["modules.0.weight"], rtol=1e-6
    )


@pytest.mark.parametrize("as_text", [True, False], ids=["str", "Path"])
def test_folders_on_the_way_are_made(tmp_path, as_text):
    path = tmp_path / "a" / "b" / "model.safetensors"
    ndl.save_model(model_on("cpu_numpy"), str(path) if as_text else path)
    ndl.load_model(model_on("cpu_numpy"), str(path) if as_text else path)


def test_a_relative_path_starts_where_the_program_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ndl.save_model(model_on("cpu_numpy"), "model.safetensors")
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


# --- files that do not fit ---


def truncated(path):
    path.write_bytes(path.read_bytes()[:-10])


def cut_in_the_header(path):
    path.write_bytes(path.read_bytes()[:50])


def emptied(path):
    path.write_bytes(b"")


def a_web_page(path):
    path.write_text("<!DOCTYPE html><html><body>403 Forbidden</body></html>")


def missing(path):
    path.unlink()


def a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage, message",
    [
        (truncated, "is truncated or no safetensors file"),
        (cut_in_the_header, "is truncated or no safetensors file"),
        (emptied, "is truncated or no safetensors file"),
        (a_web_page, "is truncated or no safetensors file"),
        (missing, "does not exist"),
        (a_folder, "is a folder"),
    ],
)
def test_an_unreadable_file_is_named_and_changes_nothing(device, path, damage, message):
    model = model_on(device)
    ndl.save_model(model_on(device), path)
    damage(path)
    before = state_of(model)
    with pytest.raises(NeedleError, match=re.escape(f"[load] {path} {message}")):
        ndl.load_model(model, path)
    assert_same_state(state_of(model), before)


def renamed(state):
    state["modules.0.weights"] = state.pop("modules.0.weight")


def too_many(state):
    state["modules.3.weight"] = state["modules.0.weight"]


def too_few(state):
    del state["modules.1.running_var"]


@pytest.mark.parametrize(
    "change, message",
    [
        (renamed, "missing ['modules.0.weight'], unknown ['modules.0.weights']"),
        (too_many, "missing [], unknown ['modules.3.weight']"),
        (too_few, "missing ['modules.1.running_var'], unknown []"),
    ],
)
def test_other_names_are_listed_and_change_nothing(device, path, change, message):
    model, state = model_on(device), state_of(model_on(device))
    change(state)
    safetensors.numpy.save_file(state, path)
    before = state_of(model)
    with pytest.raises(NeedleError, match=re.escape(message)):
        ndl.load_model(model, path)
    assert_same_state(state_of(model), before)


def test_another_shape_is_named_and_changes_nothing(device, path):
    ndl.save_model(model_on(device, features=5), path)
    model = model_on(device)
    before = state_of(model)
    message = "modules.0.weight has shape (5, 4), the model (3, 4)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        ndl.load_model(model, path)
    assert_same_state(state_of(model), before)


@pytest.mark.parametrize("types", ["numpy's", "ml_dtypes'"])
def test_a_type_that_numpy_lacks_is_named(path, types):
    if types != "numpy's":  # a package that teaches numpy bfloat16, as onnx brings it
        pytest.importorskip("ml_dtypes")
    header = b'{"t":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(2))
    with pytest.raises(DtypeError, match=re.escape(f"[load] {path} holds a type that numpy lacks")):
        ndl.load(path)


# --- interrupted saves ---


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError])
def test_an_interrupted_save_leaves_the_old_file(path, monkeypatch, interruption):
    old = model_on("cpu_numpy")
    ndl.save_model(old, path)

    def stop_halfway(tensors, filename, **_):
        filename.write_bytes(safetensors.numpy.save(tensors)[:100])
        raise interruption

    monkeypatch.setattr(safetensors.numpy, "save_file", stop_halfway)
    with pytest.raises(interruption):
        ndl.save_model(model_on("cpu_numpy"), path)
    loaded = model_on("cpu_numpy")
    ndl.load_model(loaded, path)
    assert_same_state(state_of(loaded), state_of(old))
    assert list(path.parent.iterdir()) == [path], "the half file is left lying about"


def test_texts_go_with_arrays(path):
    ndl.save({"t": ndl.ones(2), "a": np.arange(3.0)}, path, metadata={"what": "both"})
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata() == {"what": "both"}
    assert {k: v.tolist() for k, v in ndl.load(path).items()} == {"t": [1, 1], "a": [0, 1, 2]}


def test_a_save_replaces_the_old_file_as_a_whole(path):
    ndl.save_model(model_on("cpu_numpy"), path)
    second, written = model_on("cpu_numpy"), path.read_bytes()
    with path.open("rb") as reader:
        ndl.save_model(second, path)
        assert reader.read() == written, "written over while someone reads it"
    assert_same_state(safetensors.numpy.load_file(path), state_of(second))
    assert list(path.parent.iterdir()) == [path]
