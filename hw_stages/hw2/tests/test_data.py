"""hw2.data: the two transforms, MNISTDataset and DataLoader, with their draws of np.random."""

import gzip

import numpy as np

from needle_course.testing import close, equal, graded

IMAGES = "data/digits/t10k-images-idx3-ubyte.gz"
LABELS = "data/digits/t10k-labels-idx1-ubyte.gz"


def digits():
    """Return the pixels (1000, 28, 28) as bytes and the labels (1000,) of the test digits."""
    with gzip.open(IMAGES) as file:
        pixels = np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 28, 28)
    with gzip.open(LABELS) as file:
        return pixels, np.frombuffer(file.read()[8:], np.uint8)


def scaled(pixels):
    """Return images (..., 28, 28, 1) of floats in 0..1."""
    return (pixels.astype(np.float64) / 255)[..., np.newaxis]


# --- transforms ---


@graded("hw2.data::random_flip")
class RandomFlip:
    """An image is mirrored left to right where np.random.rand() is below p."""

    def inputs(rng):
        return {
            "images": rng.random((10, 4, 5, 3)).astype(np.float32),
            "p": float(rng.uniform(0.3, 0.7)),
            "seed": int(rng.integers(1000)),
        }

    def probe(ndl, inputs):
        flip = ndl.data.RandomFlipHorizontal(inputs["p"])
        np.random.seed(inputs["seed"])
        return {"images": np.stack([flip(image) for image in inputs["images"].copy()])}

    def check(inputs, outputs):
        source = np.random.RandomState(inputs["seed"])
        expected = [
            image[:, ::-1] if source.rand() < inputs["p"] else image for image in inputs["images"]
        ]
        equal("ten images, each flipped or not", outputs["images"], np.stack(expected))


@graded("hw2.data::random_crop")
class RandomCrop:
    """The window moves by two numbers from -padding to padding, rows first; zeros come in."""

    def inputs(rng):
        return {
            "images": rng.random((12, 5, 6, 2)).astype(np.float32) + 0.1,
            "seed": int(rng.integers(1000)),
        }

    def probe(ndl, inputs):
        crop = ndl.data.RandomCrop(padding=2)
        np.random.seed(inputs["seed"])
        return {"images": np.stack([crop(image) for image in inputs["images"].copy()])}

    def check(inputs, outputs):
        source = np.random.RandomState(inputs["seed"])
        expected = np.zeros_like(inputs["images"])
        for image, out in zip(inputs["images"], expected, strict=True):
            down, right = source.randint(low=-2, high=3, size=2)
            for row in range(5):
                for column in range(6):
                    if 0 <= row + down < 5 and 0 <= column + right < 6:
                        out[row, column] = image[row + down, column + right]
        equal("twelve cropped images", outputs["images"], expected)


@graded("hw2.data::transforms_always_draw")
class TransformsAlwaysDraw:
    """A flip draws once also for p = 0 and p = 1; a padding of 0 leaves the image."""

    def inputs(rng):
        return {"image": rng.random((3, 3, 1)), "seed": int(rng.integers(1000))}

    def probe(ndl, inputs):
        data = ndl.data
        np.random.seed(inputs["seed"])
        changes = [data.RandomFlipHorizontal(0), data.RandomCrop(0), data.RandomFlipHorizontal(1)]
        images = [change(inputs["image"].copy()) for change in changes]
        return {"images": images, "after": float(np.random.rand())}

    def check(inputs, outputs):
        image = inputs["image"]
        for got, right in zip(outputs["images"], (image, image, image[:, ::-1]), strict=True):
            equal("the image", got, right)
        source = np.random.RandomState(inputs["seed"])
        source.rand()
        source.randint(low=0, high=1, size=2)
        source.rand()
        close("the next number of np.random", outputs["after"], source.rand(), rtol=1e-12)


# --- MNISTDataset ---


@graded("hw2.data::mnist_item")
class MnistItem:
    """An int gives one image, float32 (28, 28, 1) in 0..1, and its label; len counts images."""

    def inputs(rng):
        return {"index": int(rng.integers(1000))}

    def probe(ndl, inputs):
        dataset = ndl.data.MNISTDataset(IMAGES, LABELS)
        image, label = dataset[inputs["index"]]
        return {"image": image, "label": int(label), "length": len(dataset)}

    def check(inputs, outputs):
        pixels, labels = digits()
        close("the image", outputs["image"], scaled(pixels[inputs["index"]]), dtype="float32")
        equal("the label", outputs["label"], int(labels[inputs["index"]]))
        equal("the number of images", outputs["length"], 1000)


@graded("hw2.data::mnist_several")
class MnistSeveral:
    """A slice or an index array gives images (n, 28, 28, 1) and labels (n,)."""

    def inputs(rng):
        return {"indices": rng.integers(0, 1000, 5), "start": int(rng.integers(900))}

    def probe(ndl, inputs):
        dataset = ndl.data.MNISTDataset(IMAGES, LABELS)
        start = inputs["start"]
        one = dataset[start : start + 1]
        return {
            "slice": dataset[start : start + 4],
            "indices": dataset[inputs["indices"]],
            "one": one,
        }

    def check(inputs, outputs):
        pixels, labels = digits()
        start = inputs["start"]
        parts = {
            "slice": slice(start, start + 4),
            "indices": inputs["indices"],
            "one": slice(start, start + 1),
        }
        for name, part in parts.items():
            images, numbers = outputs[name]
            close(f"the images of {name}", images, scaled(pixels[part]), dtype="float32")
            equal(f"the labels of {name}", numbers, labels[part])


@graded("hw2.data::mnist_transforms")
class MnistTransforms:
    """Transforms run image by image, for each in the order of the list; the data stays as it is."""

    def inputs(rng):
        return {"seed": int(rng.integers(1000)), "indices": rng.integers(0, 1000, 6)}

    def probe(ndl, inputs):
        changes = [ndl.data.RandomCrop(3), ndl.data.RandomFlipHorizontal(0.5)]
        dataset = ndl.data.MNISTDataset(IMAGES, LABELS, transforms=changes)
        np.random.seed(inputs["seed"])
        several = dataset[inputs["indices"]][0]
        one = dataset[int(inputs["indices"][0])][0]
        return {"several": several, "one": one}

    def check(inputs, outputs):
        images = scaled(digits()[0])
        source = np.random.RandomState(inputs["seed"])

        def changed(image):
            down, right = source.randint(low=-3, high=4, size=2)
            window = np.pad(image, ((3, 3), (3, 3), (0, 0)))
            window = window[3 + down : 31 + down, 3 + right : 31 + right]
            return window[:, ::-1] if source.rand() < 0.5 else window

        expected = np.stack([changed(images[i]) for i in inputs["indices"]])
        close("six transformed images", outputs["several"], expected)
        close(
            "the first one, transformed again",
            outputs["one"],
            changed(images[inputs["indices"][0]]),
        )


@graded("hw2.data::slices_are_batches")
class SlicesAreBatches:
    """A slice of the dataset has the shapes and values of the loader's batch."""

    def inputs(rng):
        return {"batch_size": int(rng.integers(90, 140))}

    def probe(ndl, inputs):
        dataset = ndl.data.MNISTDataset(IMAGES, LABELS)
        size = inputs["batch_size"]
        x, y = next(iter(ndl.data.DataLoader(dataset, size)))
        part = dataset[0:size]
        return {"batch": [x.numpy(), y.numpy()], "part": part, "dtype": str(x.dtype)}

    def check(inputs, outputs):
        size = inputs["batch_size"]
        pixels, labels = digits()
        for name in ("batch", "part"):
            close(f"the images of the {name}", outputs[name][0], scaled(pixels[:size]))
            equal(f"the labels of the {name}", outputs[name][1], labels[:size])
        equal("the dtype of the batch's images", outputs["dtype"], "float32")


# --- DataLoader ---


def counting(ndl, n):
    """Return a dataset of the numbers 0 .. n-1."""
    return ndl.data.NDArrayDataset(np.arange(n, dtype=np.float32))


def values(loader):
    """Return the first field of each batch as a list."""
    return [batch[0].numpy().tolist() for batch in loader]


@graded("hw2.data::loader_batches")
class LoaderBatches:
    """Batches are tuples of constant Tensors, one a field, in order; the last may be short."""

    def inputs(rng):
        return {
            "x": rng.standard_normal((7, 2, 3)).astype(np.float32),
            "y": rng.integers(0, 9, 7),
            "z": rng.standard_normal((7, 4)).astype(np.float32),
        }

    def probe(ndl, inputs):
        dataset = ndl.data.NDArrayDataset(inputs["x"], inputs["y"], inputs["z"])
        loader = ndl.data.DataLoader(dataset, batch_size=3)
        batches = list(loader)
        fields = [field for batch in batches for field in batch]
        return {
            "batches": [[field.numpy() for field in batch] for batch in batches],
            "length": len(loader),
            "tensors": all(isinstance(field, ndl.Tensor) for field in fields),
            "constant": not any(field.requires_grad for field in fields),
        }

    def check(inputs, outputs):
        equal("the number of batches", len(outputs["batches"]), 3)
        equal("len(loader)", outputs["length"], 3)
        equal("whether all fields are Tensors", outputs["tensors"], True)
        equal("whether none requires a gradient", outputs["constant"], True)
        for number, batch in enumerate(outputs["batches"]):
            equal(f"the number of fields of batch {number}", len(batch), 3)
            for name, field in zip("xyz", batch, strict=True):
                part = inputs[name][3 * number : 3 * number + 3]
                close(f"{name} of batch {number}", field, part)


@graded("hw2.data::loader_of_one_field")
class LoaderOfOneField:
    """A dataset of one array, or of bare arrays, gives batches of one Tensor."""

    def inputs(rng):
        return {"x": rng.standard_normal((5, 2, 3)).astype(np.float32)}

    def probe(ndl, inputs):
        class Bare(ndl.data.Dataset):
            def __len__(self):
                return len(inputs["x"])

            def __getitem__(self, index):
                return inputs["x"][index]

        outputs = {}
        for name, dataset in (("bare", Bare()), ("array", ndl.data.NDArrayDataset(inputs["x"]))):
            batches = list(ndl.data.DataLoader(dataset, batch_size=2))
            outputs[name] = [[field.numpy() for field in batch] for batch in batches]
        return outputs

    def check(inputs, outputs):
        for name, batches in outputs.items():
            equal(f"{name}: the fields of each batch", [len(batch) for batch in batches], [1] * 3)
            for number, (field,) in enumerate(batches):
                close(f"{name}: batch {number}", field, inputs["x"][2 * number : 2 * number + 2])


@graded("hw2.data::loader_shuffles")
class LoaderShuffles:
    """Each loop has the order of one np.random.permutation; making the loader draws nothing."""

    def inputs(rng):
        return {"n": int(rng.integers(20, 40)), "seed": int(rng.integers(1000))}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        loader = ndl.data.DataLoader(counting(ndl, inputs["n"]), batch_size=8, shuffle=True)
        first, second = values(loader), values(loader)
        return {"first": first, "second": second, "after": float(np.random.rand())}

    def check(inputs, outputs):
        source = np.random.RandomState(inputs["seed"])
        for name in ("first", "second"):
            order = source.permutation(inputs["n"])
            expected = [order[start : start + 8].tolist() for start in range(0, inputs["n"], 8)]
            equal(f"the batches of the {name} loop", outputs[name], expected)
        close("the next number of np.random", outputs["after"], source.rand(), rtol=1e-12)


@graded("hw2.data::loader_starts_over")
class LoaderStartsOver:
    """Every loop begins anew, also inside another one; without shuffle nothing is drawn."""

    def inputs(rng):
        return {"seed": int(rng.integers(1000))}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        loader = ndl.data.DataLoader(counting(ndl, 5), batch_size=2)
        next(iter(loader))
        nested = [[a[0].numpy().tolist(), values(loader)] for a in loader]
        return {"nested": nested, "after": float(np.random.rand())}

    def check(inputs, outputs):
        batches = [[0, 1], [2, 3], [4]]
        expected = [[batch, batches] for batch in batches]
        equal("batches of a loop, each with a loop inside", outputs["nested"], expected)
        first = np.random.RandomState(inputs["seed"]).rand()
        close("the next number of np.random", outputs["after"], first, rtol=1e-12)


@graded("hw2.data::loader_of_nothing")
class LoaderOfNothing:
    """An empty dataset gives no batch, shuffled or not; one item gives one batch."""

    def inputs(rng):
        return {}

    def probe(ndl, inputs):
        loaders = [
            ndl.data.DataLoader(counting(ndl, n), batch_size=4, shuffle=shuffle)
            for n in (0, 1)
            for shuffle in (False, True)
        ]
        return {"batches": [values(loader) for loader in loaders]}

    def check(inputs, outputs):
        equal("batches of 0, 0, 1 and 1 items", outputs["batches"], [[], [], [[0]], [[0]]])
