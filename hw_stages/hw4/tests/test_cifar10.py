"""CIFAR10Dataset on batch files made for the test: five for training, one for testing."""

import pickle
import tempfile
from pathlib import Path

import numpy as np

from needle_course.testing import close, equal, graded

COUNTS = (3, 1, 2, 4, 2)


def batches(rng):
    """Return pixels and labels of the five training batches and of the test batch."""
    total = sum(COUNTS) + 3
    return {
        "pixels": rng.integers(0, 256, (total, 3072)).astype(np.uint8),
        "labels": rng.integers(0, 10, total),
    }


def write(folder, inputs):
    """Write the batch files in the form of CIFAR-10."""
    start = 0
    names = [f"data_batch_{number}" for number in range(1, 6)]
    for name, count in zip([*names, "test_batch"], [*COUNTS, 3], strict=True):
        stop = start + count
        content = {
            b"data": inputs["pixels"][start:stop],
            b"labels": [int(label) for label in inputs["labels"][start:stop]],
        }
        (Path(folder) / name).write_bytes(pickle.dumps(content, protocol=4))
        start = stop


def images(inputs):
    """Return the images that the files hold, float32 (n, 3, 32, 32) in 0..1."""
    return inputs["pixels"].reshape(-1, 3, 32, 32).astype(np.float32) / 255


@graded("hw4.cifar10::images_and_labels")
class ImagesAndLabels:
    """X and y hold all images and labels of a part, in the order of the files."""

    def inputs(rng):
        return batches(rng)

    def probe(ndl, inputs):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, inputs)
            train = ndl.data.CIFAR10Dataset(folder, train=True)
            test = ndl.data.CIFAR10Dataset(folder, train=False)
        return {
            "train_X": train.X,
            "train_y": train.y,
            "test_X": test.X,
            "test_y": test.y,
            "lengths": (len(train), len(test)),
        }

    def check(inputs, outputs):
        n = sum(COUNTS)
        equal("the lengths", outputs["lengths"], (n, 3))
        close("X for training", outputs["train_X"], images(inputs)[:n], dtype="float32")
        close("X for testing", outputs["test_X"], images(inputs)[n:], dtype="float32")
        equal("y for training", outputs["train_y"], inputs["labels"][:n])
        equal("y for testing", outputs["test_y"], inputs["labels"][n:])


@graded("hw4.cifar10::items")
class Items:
    """An item is the tuple (image, label); a slice and an index array give stacks."""

    def inputs(rng):
        return batches(rng)

    def probe(ndl, inputs):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, inputs)
            dataset = ndl.data.CIFAR10Dataset(folder, train=True)
        item = dataset[5]
        return {
            "kind": type(item).__name__,
            "image": item[0],
            "label": item[1],
            "slice": dataset[2:6],
            "picked": dataset[np.array([7, 0, 3])],
        }

    def check(inputs, outputs):
        x, y = images(inputs), inputs["labels"]
        equal("the type of an item", outputs["kind"], "tuple")
        close("the image of item 5", outputs["image"], x[5], dtype="float32")
        equal("the label of item 5", outputs["label"], y[5])
        for name, index in (("slice", slice(2, 6)), ("picked", [7, 0, 3])):
            close(f"the images of a {name}", outputs[name][0], x[index])
            equal(f"the labels of a {name}", outputs[name][1], y[index])


@graded("hw4.cifar10::transforms")
class Transforms:
    """Transforms see each image as (32, 32, 3); the item is (3, 32, 32) again."""

    def inputs(rng):
        return batches(rng)

    def probe(ndl, inputs):
        seen = []

        class Double(ndl.data.Transform):
            def __call__(self, x):
                seen.append(x.shape)
                return 2 * x

        transforms = [Double(), ndl.data.RandomFlipHorizontal(p=1)]
        with tempfile.TemporaryDirectory() as folder:
            write(folder, inputs)
            dataset = ndl.data.CIFAR10Dataset(folder, train=False, transforms=transforms)
        return {"one": dataset[1][0], "several": dataset[0:3][0], "seen": seen, "X": dataset.X}

    def check(inputs, outputs):
        x = images(inputs)[sum(COUNTS) :]
        equal("what the transforms saw", outputs["seen"], [(32, 32, 3)] * 4)
        close("an image doubled and mirrored", outputs["one"], 2 * x[1, :, :, ::-1])
        close("a slice of images", outputs["several"], 2 * x[:, :, :, ::-1])
        close("X, which the transforms leave alone", outputs["X"], x)


@graded("hw4.cifar10::loader")
class Loader:
    """The DataLoader gives batches of Tensors on NDArray; the last one is short."""

    def inputs(rng):
        return batches(rng)

    def probe(ndl, inputs):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, inputs)
            dataset = ndl.data.CIFAR10Dataset(folder, train=True)
        pairs = list(ndl.data.DataLoader(dataset, batch_size=5))
        return {
            "images": [x.numpy() for x, _ in pairs],
            "labels": [y.numpy() for _, y in pairs],
            "on_our_arrays": isinstance(pairs[0][0].realize_cached_data(), ndl.NDArray),
        }

    def check(inputs, outputs):
        n = sum(COUNTS)
        equal("that a batch is an NDArray", outputs["on_our_arrays"], True)
        equal("the sizes of the batches", [len(x) for x in outputs["images"]], [5, 5, 2])
        close("the images", np.concatenate(outputs["images"]), images(inputs)[:n])
        close("the labels", np.concatenate(outputs["labels"]), inputs["labels"][:n])
