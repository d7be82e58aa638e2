"""hw2.mlp_resnet: the model's structure, an epoch's numbers and modes, training on digits."""

import gzip
import tempfile
from pathlib import Path

import numpy as np

from needle_course.testing import close, equal, fail, graded


def linear_draws(source, shapes):
    """Return the weights and biases of Linear layers drawn one after the other."""
    drawn = []
    for fan_in, fan_out in shapes:
        weight = (2 * source.rand(fan_in, fan_out) - 1) * np.sqrt(6 / fan_in)
        bias = (2 * source.rand(fan_out, 1) - 1) * np.sqrt(6 / fan_out)
        drawn.append((weight, bias.reshape(1, fan_out)))
    return drawn


def norm(x):
    """Return what an untrained BatchNorm1d makes of x in eval mode."""
    return x / np.sqrt(1 + 1e-5)


def block(x, first, second):
    """Return a residual block of x in eval mode, for its two Linear layers."""
    hidden = np.maximum(norm(x @ first[0] + first[1]), 0)
    return np.maximum(x + norm(hidden @ second[0] + second[1]), 0)


def shapes_of(model):
    """Return the shapes of a model's parameters."""
    return [p.shape for p in model.parameters()]


@graded("hw2.mlp_resnet::residual_block")
class ResidualBlock:
    """Two linear layers with norms around ReLU and dropout, the addition, then ReLU."""

    def inputs(rng):
        x = rng.standard_normal((4, 6)).astype(np.float32)
        return {"x": x, "seed": int(rng.integers(1000))}

    def probe(ndl, inputs):
        from mlp_resnet import ResidualBlock

        np.random.seed(inputs["seed"])
        model = ResidualBlock(6, 3, drop_prob=0.5)
        shapes = shapes_of(model)
        model.eval()
        quiet = model(ndl.Tensor(inputs["x"])).numpy()
        model.train()
        np.random.seed(0)
        model(ndl.Tensor(inputs["x"]))
        drawn = float(np.random.rand())
        other = shapes_of(ResidualBlock(6, 3, norm=ndl.nn.LayerNorm1d))
        return {"shapes": shapes, "quiet": quiet, "drawn": drawn, "other": other}

    def check(inputs, outputs):
        shapes = [[6, 3], [1, 3], [3], [3], [3, 6], [1, 6], [6], [6]]
        equal("the shapes of the parameters", outputs["shapes"], shapes)
        equal("the shapes with norm=LayerNorm1d", outputs["other"], shapes)
        source = np.random.RandomState(inputs["seed"])
        first, second = linear_draws(source, [(6, 3), (3, 6)])
        close(
            "the output in eval mode",
            outputs["quiet"],
            block(inputs["x"], first, second),
            1e-4,
            1e-5,
        )
        source = np.random.RandomState(0)
        source.rand(4, 3)  # one mask, after the first half
        close("the next number of np.random after training mode", outputs["drawn"], source.rand())


@graded("hw2.mlp_resnet::model")
class Model:
    """Linear, ReLU, the blocks, Linear; made in that order; images are flattened."""

    def inputs(rng):
        images = rng.standard_normal((3, 4, 3, 1)).astype(np.float32)
        return {"images": images, "seed": int(rng.integers(1000))}

    def probe(ndl, inputs):
        from mlp_resnet import MLPResNet

        np.random.seed(inputs["seed"])
        model = MLPResNet(12, hidden_dim=8, num_blocks=2, num_classes=5)
        model.eval()
        return {"logits": model(ndl.Tensor(inputs["images"])).numpy(), "shapes": shapes_of(model)}

    def check(inputs, outputs):
        one = [[8, 4], [1, 4], [4], [4], [4, 8], [1, 8], [8], [8]]
        expected = [[12, 8], [1, 8], *one, *one, [8, 5], [1, 5]]
        equal("the shapes of the parameters", outputs["shapes"], expected)
        source = np.random.RandomState(inputs["seed"])
        sizes = [(12, 8), (8, 4), (4, 8), (8, 4), (4, 8), (8, 5)]
        first, *blocks, last = linear_draws(source, sizes)
        x = inputs["images"].reshape(3, 12).astype(np.float64)
        x = np.maximum(x @ first[0] + first[1], 0)
        x = block(block(x, *blocks[:2]), *blocks[2:])
        close("the logits in eval mode", outputs["logits"], x @ last[0] + last[1], 1e-3, 1e-4)


@graded("hw2.mlp_resnet::model_defaults")
class ModelDefaults:
    """100 hidden numbers, 3 blocks of half the width, 10 classes, dropout of 0.1 in each."""

    def inputs(rng):
        return {"x": rng.standard_normal((2, 20)).astype(np.float32)}

    def probe(ndl, inputs):
        from mlp_resnet import MLPResNet

        model = MLPResNet(20)
        np.random.seed(0)
        logits = model(ndl.Tensor(inputs["x"]))
        logits.backward()
        probabilities = sorted(m.p for m in model._children() if isinstance(m, ndl.nn.Dropout))
        return {
            "shapes": shapes_of(model),
            "grads": [p.grad.shape for p in model.parameters()],
            "probabilities": probabilities,
            "after": float(np.random.rand()),
        }

    def check(inputs, outputs):
        one = [[100, 50], [1, 50], [50], [50], [50, 100], [1, 100], [100], [100]]
        expected = [[20, 100], [1, 100], *one, *one, *one, [100, 10], [1, 10]]
        equal("the shapes of the parameters", outputs["shapes"], expected)
        equal("the shapes of their gradients", outputs["grads"], expected)
        equal("the probabilities of dropout", outputs["probabilities"], [0.1] * 3)
        source = np.random.RandomState(0)
        source.rand(3, 2, 50)
        close("the next number of np.random after a forward", outputs["after"], source.rand())


def recorder(ndl):
    """Return a module that hands logits on and remembers its mode and a number of np.random."""

    class Recorder(ndl.nn.Module):
        def __init__(self):
            super().__init__()
            self.modes, self.drawn = [], []

        def forward(self, x):
            self.modes.append(self.training)
            self.drawn.append(float(np.random.rand()))
            return x

    return Recorder()


@graded("hw2.mlp_resnet::epoch_evaluates")
class EpochEvaluates:
    """Without an optimizer: eval mode, seed 4, error rate and mean loss by sample, as floats."""

    def inputs(rng):
        return {
            "logits": rng.standard_normal((7, 3)).astype(np.float32) * 2,
            "labels": rng.integers(0, 3, 7).astype(np.uint8),
        }

    def probe(ndl, inputs):
        from mlp_resnet import epoch

        dataset = ndl.data.NDArrayDataset(inputs["logits"], inputs["labels"])
        model = recorder(ndl)
        model.train()
        error, loss = epoch(ndl.data.DataLoader(dataset, batch_size=3), model)
        floats = [isinstance(value, float) for value in (error, loss)]
        return {
            "error": error,
            "loss": loss,
            "floats": floats,
            "modes": model.modes,
            "drawn": model.drawn,
        }

    def check(inputs, outputs):
        logits, labels = inputs["logits"].astype(np.float64), inputs["labels"]
        error = np.mean(logits.argmax(axis=1) != labels)
        rows = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(7), labels]
        close("the error rate of 7 samples in batches of 3", outputs["error"], error)
        close("the mean loss of 7 samples in batches of 3", outputs["loss"], rows.mean(), 1e-4)
        equal("whether both are floats", outputs["floats"], [True, True])
        equal("the mode of each forward", outputs["modes"], [False] * 3)
        drawn = np.random.RandomState(4).rand(3)
        close("np.random in the three forwards", np.array(outputs["drawn"]), drawn)


@graded("hw2.mlp_resnet::epoch_trains")
class EpochTrains:
    """With an optimizer: train mode, and one step a batch on that batch's gradient alone."""

    def inputs(rng):
        return {
            "x": rng.standard_normal((5, 4)).astype(np.float32),
            "labels": rng.integers(0, 3, 5),
            "weight": rng.standard_normal((4, 3)).astype(np.float32),
        }

    def probe(ndl, inputs):
        from mlp_resnet import epoch

        dataset = ndl.data.NDArrayDataset(inputs["x"], inputs["labels"])
        linear = ndl.nn.Linear(4, 3, bias=False)
        linear.weight.data = ndl.Tensor(inputs["weight"])
        watch = recorder(ndl)
        model = ndl.nn.Sequential(linear, watch)
        model.eval()
        opt = ndl.optim.SGD(model.parameters(), lr=0.5)
        error, loss = epoch(ndl.data.DataLoader(dataset, batch_size=2), model, opt)
        weight = linear.weight.numpy()
        return {"error": error, "loss": loss, "weight": weight, "modes": watch.modes}

    def check(inputs, outputs):
        weight = inputs["weight"].astype(np.float64)
        wrong, total = 0, 0.0
        for start in range(0, 5, 2):
            x, y = inputs["x"][start : start + 2], inputs["labels"][start : start + 2]
            exp = np.exp(x @ weight)
            softmax = exp / exp.sum(axis=1, keepdims=True)
            wrong += int((softmax.argmax(axis=1) != y).sum())
            total -= np.log(softmax[np.arange(len(y)), y]).sum()
            weight = weight - 0.5 * x.T @ (softmax - np.eye(3)[y]) / len(x)
        close("the weight after three batches", outputs["weight"], weight, 1e-4, 1e-5)
        close("the error rate", outputs["error"], wrong / 5)
        close("the mean loss", outputs["loss"], total / 5, 1e-4)
        equal("the mode of each forward", outputs["modes"], [True] * 3)


def write_digits(folder, train, test):
    """Write the first digits of each part into a folder, as IDX files of their own."""
    for part, count in (("train", train), ("t10k", test)):
        for kind, header, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            name = f"{part}-{kind}-ubyte.gz"
            data = gzip.decompress(Path("data/digits", name).read_bytes())
            head = data[:4] + count.to_bytes(4, "big") + data[8:header]
            body = data[header : header + count * size]
            Path(folder, name).write_bytes(gzip.compress(head + body, 1))


@graded("hw2.mlp_resnet::train_mnist")
class TrainMnist:
    """Training on 300 digits: each time the same numbers, and a test error below 0.35."""

    seconds = 0.5

    def inputs(rng):
        return {"batch_size": 30, "epochs": 4, "lr": 0.01, "hidden_dim": 40}

    def probe(ndl, inputs):
        from mlp_resnet import train_mnist

        with tempfile.TemporaryDirectory() as folder:
            write_digits(folder, train=300, test=100)
            np.random.seed(0)
            results = train_mnist(**inputs, data_dir=folder)
            np.random.seed(1)
            short = {**inputs, "batch_size": 100, "epochs": 1}
            again = train_mnist(**short, data_dir=folder)
            twice = train_mnist(**short, data_dir=folder)
        return {"results": results, "again": again, "twice": twice}

    def check(inputs, outputs):
        equal("how many numbers come back", len(outputs["results"]), 4)
        equal("one epoch, run twice", outputs["twice"], outputs["again"])
        train_error, train_loss, test_error, test_loss = outputs["results"]
        if not (train_error < 0.15 and test_error < 0.35):
            fail(
                "the network does not learn the digits",
                f"train error {train_error:.3f}, expected below 0.15",
                f"test error {test_error:.3f}, expected below 0.35",
            )
        if not (0 < train_loss < outputs["again"][1] and 0 < test_loss < 2):
            fail("losses do not fall", f"train loss {train_loss:.3f}, test loss {test_loss:.3f}")
        counts = [error * total for error, total in ((train_error, 300), (test_error, 100))]
        close("errors as numbers of digits", np.array(counts), np.round(counts), atol=1e-3)


@graded("hw2.mlp_resnet::train_mnist_settings")
class TrainMnistSettings:
    """The optimizer is made as asked: a rate of zero trains nothing, SGD is taken as Adam is."""

    def inputs(rng):
        return {"batch_size": 50, "epochs": 2, "hidden_dim": 12}

    def probe(ndl, inputs):
        from mlp_resnet import train_mnist

        made = []

        def optimizer(params, **settings):
            made.append((len(list(params)), settings))
            return ndl.optim.SGD(params, **settings)

        with tempfile.TemporaryDirectory() as folder:
            write_digits(folder, train=100, test=50)
            settings = {"optimizer": optimizer, "lr": 0.25, "weight_decay": 0.125}
            results = train_mnist(**inputs, **settings, data_dir=folder)
        return {"made": made, "results": results}

    def check(inputs, outputs):
        equal("the number of optimizers that were made", len(outputs["made"]), 1)
        count, settings = outputs["made"][0]
        equal("the number of its parameters", count, 28)
        equal("its settings", settings, {"lr": 0.25, "weight_decay": 0.125})
        equal("the number of results", len(outputs["results"]), 4)
