"""ConvBN and ResNet9 against a forward pass in numpy, and the epoch that trains them."""

import math

import numpy as np

from needle_course.testing import close, equal, fail, graded

# (channels in, channels out, kernel, stride) in the order in which they run
BLOCKS = [
    (3, 16, 7, 4),
    (16, 32, 3, 2),
    (32, 32, 3, 1),
    (32, 32, 3, 1),
    (32, 64, 3, 2),
    (64, 128, 3, 2),
    (128, 128, 3, 1),
    (128, 128, 3, 1),
]
RESIDUAL = {2: 3, 6: 7}  # first and last block of each residual


def uniform(numbers, shape, bound):
    return (numbers.rand(*shape) * 2 * bound - bound).astype(np.float32)


def conv_parameters(numbers, c_in, c_out, kernel):
    fan_in = c_in * kernel * kernel
    weight = uniform(numbers, (kernel, kernel, c_in, c_out), math.sqrt(2) * math.sqrt(3 / fan_in))
    return weight, uniform(numbers, (c_out,), 1 / math.sqrt(fan_in))


def linear_parameters(numbers, n_in, n_out):
    weight = uniform(numbers, (n_in, n_out), math.sqrt(2) * math.sqrt(3 / n_in))
    return weight, uniform(numbers, (n_out, 1), math.sqrt(2) * math.sqrt(3 / n_out)).reshape(n_out)


def conv_bn(x, weight, bias, stride):
    """Return a convolution (NHWC), batch norm in training with its first parameters, and ReLU."""
    kernel = weight.shape[0]
    edge = kernel // 2
    frame = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(frame, (kernel, kernel), (1, 2))
    view = view[:, ::stride, ::stride]
    y = np.einsum("nijckl,klco->nijo", view, weight.astype(np.float64), optimize=True) + bias
    mean, var = y.mean(axis=(0, 1, 2)), y.var(axis=(0, 1, 2))
    return np.maximum((y - mean) / np.sqrt(var + 1e-5), 0)


def resnet9(x, seed):
    """Return the logits of a ResNet9 made after `np.random.seed(seed)`, in training."""
    numbers = np.random.RandomState(seed)
    x = x.transpose(0, 2, 3, 1).astype(np.float64)
    parameters = [conv_parameters(numbers, *block[:3]) for block in BLOCKS]
    for i, (block, (weight, bias)) in enumerate(zip(BLOCKS, parameters, strict=True)):
        if i in RESIDUAL:
            kept = x
        x = conv_bn(x, weight, bias, block[3])
        if i in RESIDUAL.values():
            x = x + kept
    x = x.reshape(len(x), 128)
    for n_out in (128, 10):
        weight, bias = linear_parameters(numbers, 128, n_out)
        x = x @ weight + bias
        if n_out == 128:
            x = np.maximum(x, 0)
    return x


@graded("hw4.resnet9::conv_bn")
class ConvBN:
    """ConvBN is a convolution, a batch norm and ReLU, in this order."""

    def inputs(rng):
        x = rng.standard_normal((3, 2, 6, 5)).astype(np.float32)
        return {"x": x, "seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        import models

        np.random.seed(inputs["seed"])
        block = models.ConvBN(2, 4, 3, 2)
        outputs = {
            "value": block(ndl.Tensor(inputs["x"])).numpy(),
            "shapes": [p.shape for p in block.parameters()],
        }
        block.eval()
        return {**outputs, "in_evaluation": block(ndl.Tensor(inputs["x"])).numpy()}

    def check(inputs, outputs):
        numbers = np.random.RandomState(inputs["seed"])
        weight, bias = conv_parameters(numbers, 2, 4, 3)
        x = inputs["x"].transpose(0, 2, 3, 1)
        y = conv_bn(x, weight, bias, 2).transpose(0, 3, 1, 2)
        equal("the shapes of the parameters", outputs["shapes"], [weight.shape, (4,), (4,), (4,)])
        close("the value in training", outputs["value"], y, rtol=1e-3, atol=1e-4)
        if np.allclose(outputs["in_evaluation"], y, rtol=1e-3):
            fail("eval() changes nothing: the batch norm has to be a part that the module finds")


@graded("hw4.resnet9::shapes")
class Shapes:
    """ResNet9 has 431946 parameters and maps (B, 3, 32, 32) to (B, 10)."""

    def inputs(rng):
        return {"x": rng.standard_normal((2, 3, 32, 32)).astype(np.float32)}

    def probe(ndl, inputs):
        import models

        model = models.ResNet9()
        counts = [math.prod(p.shape) for p in model.parameters()]
        return {"count": sum(counts), "shape": model(ndl.Tensor(inputs["x"])).shape}

    def check(inputs, outputs):
        equal("the number of parameters", outputs["count"], 431946)
        equal("the shape of the logits", outputs["shape"], (2, 10))


@graded("hw4.resnet9::forward")
class Forward:
    """From a seed, the logits are those of the same network computed in numpy."""

    seconds = 1.0

    def inputs(rng):
        x = rng.standard_normal((6, 3, 32, 32)).astype(np.float32)
        return {"x": x, "seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        import models

        np.random.seed(inputs["seed"])
        return {"logits": models.ResNet9()(ndl.Tensor(inputs["x"])).numpy()}

    def check(inputs, outputs):
        expected = resnet9(inputs["x"], inputs["seed"])
        close("the logits", outputs["logits"], expected, rtol=1e-2, atol=1e-2)


@graded("hw4.resnet9::gradients")
class Gradients:
    """Every parameter gets a gradient of its own shape, and a few steps lower the loss."""

    seconds = 1.5

    def inputs(rng):
        x = rng.standard_normal((8, 3, 32, 32)).astype(np.float32)
        return {"x": x, "y": np.arange(8) % 4, "seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        import models

        np.random.seed(inputs["seed"])
        model = models.ResNet9()
        opt = ndl.optim.Adam(model.parameters(), lr=0.003)
        losses = []
        for _ in range(6):
            loss = ndl.nn.SoftmaxLoss()(model(ndl.Tensor(inputs["x"])), ndl.Tensor(inputs["y"]))
            opt.reset_grad()
            loss.backward()
            opt.step()
            losses.append(loss.numpy().item())
        shapes = [p.shape for p in model.parameters()]
        return {
            "losses": losses,
            "shapes": shapes,
            "grad_shapes": [None if p.grad is None else p.grad.shape for p in model.parameters()],
        }

    def check(inputs, outputs):
        equal("the shapes of the gradients", outputs["grad_shapes"], outputs["shapes"])
        first, last = outputs["losses"][0], outputs["losses"][-1]
        if not last < 0.5 * first:
            fail(f"six steps of Adam took the loss from {first:.4g} to {last:.4g}, not below half")


def batches(rng):
    """Return two batches of unequal size, as a loader would give them."""
    return {
        "x0": rng.standard_normal((5, 2, 3)).astype(np.float32),
        "x1": rng.standard_normal((3, 2, 3)).astype(np.float32),
        "y0": rng.integers(0, 4, 5),
        "y1": rng.integers(0, 4, 3),
        "weight": rng.standard_normal((6, 4)).astype(np.float32),
    }


def softmax_loss(logits, y):
    """Return each sample's loss."""
    return np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(y)), y]


def linear_model(ndl, weight):
    """Return Flatten, Linear without bias and with this weight."""
    linear = ndl.nn.Linear(6, 4, bias=False)
    linear.weight.data = ndl.Tensor(weight, requires_grad=False)
    return ndl.nn.Sequential(ndl.nn.Flatten(), linear), linear


@graded("hw4.resnet9::epoch_without_optimizer")
class EpochWithoutOptimizer:
    """The epoch returns (accuracy, mean loss) by sample, in evaluation mode, changing nothing."""

    def inputs(rng):
        return batches(rng)

    def probe(ndl, inputs):
        import simple_ml

        model, linear = linear_model(ndl, inputs["weight"])
        loader = [(ndl.Tensor(inputs[f"x{i}"]), ndl.Tensor(inputs[f"y{i}"])) for i in range(2)]
        accuracy, loss = simple_ml.epoch_general_cifar10(loader, model)
        return {
            "accuracy": accuracy,
            "loss": loss,
            "weight": linear.weight.numpy(),
            "training": model.training,
            "following": np.random.rand(),
        }

    def check(inputs, outputs):
        y = np.concatenate([inputs["y0"], inputs["y1"]])
        x = np.concatenate([inputs["x0"], inputs["x1"]]).reshape(8, 6)
        logits = (x @ inputs["weight"]).astype(np.float64)
        close("the accuracy", outputs["accuracy"], np.mean(logits.argmax(axis=1) == y))
        close("the mean loss", outputs["loss"], softmax_loss(logits, y).mean(), rtol=1e-4)
        equal("the weight", outputs["weight"], inputs["weight"])
        equal("model.training", outputs["training"], False)
        close(
            "the random number after the epoch, which seeds numpy with 4",
            outputs["following"],
            np.random.RandomState(4).rand(),
        )


@graded("hw4.resnet9::epoch_with_optimizer")
class EpochWithOptimizer:
    """With an optimizer each batch is one step, from fresh gradients, in training mode."""

    def inputs(rng):
        return batches(rng)

    def probe(ndl, inputs):
        import simple_ml

        model, linear = linear_model(ndl, inputs["weight"])
        model.eval()
        opt = ndl.optim.SGD(model.parameters(), lr=0.5)
        loader = [(ndl.Tensor(inputs[f"x{i}"]), ndl.Tensor(inputs[f"y{i}"])) for i in range(2)]
        loss_fn = ndl.nn.SoftmaxLoss()
        accuracy, loss = simple_ml.epoch_general_cifar10(loader, model, loss_fn, opt)
        return {
            "accuracy": accuracy,
            "loss": loss,
            "weight": linear.weight.numpy(),
            "training": model.training,
        }

    def check(inputs, outputs):
        weight = inputs["weight"].astype(np.float64)
        correct, losses = 0, []
        for i in range(2):
            x, y = inputs[f"x{i}"].reshape(-1, 6), inputs[f"y{i}"]
            logits = x @ weight
            correct += np.sum(logits.argmax(axis=1) == y)
            losses.extend(softmax_loss(logits, y))
            softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            weight = weight - 0.5 * x.T @ (softmax - np.eye(4)[y]) / len(y)
        close("the weight after two steps", outputs["weight"], weight, rtol=1e-4, atol=1e-5)
        close("the accuracy before each step", outputs["accuracy"], correct / 8)
        close("the mean loss before each step", outputs["loss"], np.mean(losses), rtol=1e-4)
        equal("model.training", outputs["training"], True)
