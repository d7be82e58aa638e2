"""hw2.optimizers: trajectories of SGD and Adam, and what a step leaves alone."""

import gc

import numpy as np

from needle_course.testing import GradedTest, close, equal, fail, graded


def parameters(ndl, values):
    """Return one float32 Parameter for each array."""
    return [ndl.nn.Parameter(ndl.Tensor(array, dtype="float32")) for array in values]


def run(ndl, kind, values, grads, **settings):
    """Return the parameters' values after every step; grads[step][i] is the i-th's gradient."""
    ps = parameters(ndl, values)
    opt = getattr(ndl.optim, kind)(ps, **settings)
    path = []
    for step in grads:
        for p, grad in zip(ps, step, strict=True):
            p.grad = None if grad is None else ndl.Tensor(grad, dtype="float32")
        opt.step()
        path.append([p.numpy() for p in ps])
    return path


def sgd(values, grads, lr, momentum=0.0, weight_decay=0.0):
    """Return the path of SGD in float64."""
    values = [np.asarray(v, np.float64) for v in values]
    u = [np.zeros_like(v) for v in values]
    path = []
    for step in grads:
        for i, grad in enumerate(step):
            if grad is not None:
                g = grad + weight_decay * values[i]
                u[i] = momentum * u[i] + (1 - momentum) * g
                values[i] = values[i] - lr * u[i]
        path.append(list(values))
    return path


def adam(values, grads, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    """Return the path of Adam in float64."""
    values = [np.asarray(v, np.float64) for v in values]
    m = [np.zeros_like(v) for v in values]
    v = [np.zeros_like(w) for w in values]
    path = []
    for t, step in enumerate(grads, 1):
        for i, grad in enumerate(step):
            if grad is None:
                continue
            g = grad + weight_decay * values[i]
            m[i] = beta1 * m[i] + (1 - beta1) * g
            v[i] = beta2 * v[i] + (1 - beta2) * g * g
            m_hat, v_hat = m[i] / (1 - beta1**t), v[i] / (1 - beta2**t)
            values[i] = values[i] - lr * m_hat / (np.sqrt(v_hat) + eps)
        path.append(list(values))
    return path


RULES = {"SGD": sgd, "Adam": adam}

# name: optimizer, settings
TRAJECTORIES = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "sgd_weight_decay": ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    "sgd_momentum_and_weight_decay": ("SGD", {"lr": 0.05, "momentum": 0.7, "weight_decay": 0.2}),
    "adam": ("Adam", {"lr": 0.01}),
    "adam_weight_decay": ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    "adam_settings": ("Adam", {"lr": 0.02, "beta1": 0.7, "beta2": 0.9, "eps": 0.01}),
}


def trajectory_test(name, kind, settings):
    """Return the test of an optimizer's path over six steps with random gradients."""

    def inputs(rng):
        shapes = [(2, 3), (1, 3)]
        return {
            "values": [rng.standard_normal(shape) for shape in shapes],
            "grads": [[rng.standard_normal(shape) for shape in shapes] for _ in range(6)],
        }

    def probe(ndl, inputs):
        return {"path": run(ndl, kind, inputs["values"], inputs["grads"], **settings)}

    def check(inputs, outputs):
        expected = RULES[kind](inputs["values"], inputs["grads"], **settings)
        for step, (got, right) in enumerate(zip(outputs["path"], expected, strict=True), 1):
            for i, (a, b) in enumerate(zip(got, right, strict=True)):
                close(f"parameter {i} after step {step}", a, b, 1e-4, 1e-5, "float32")

    words = ", ".join(f"{key}={value}" for key, value in settings.items())
    doc = f"Six steps of {kind}({words}) with random gradients."
    return GradedTest(f"hw2.optimizers::{name}", inputs, probe, check, doc)


TESTS = [trajectory_test(name, *case) for name, case in TRAJECTORIES.items()]


@graded("hw2.optimizers::adam_zero_gradients")
class AdamZeroGradients:
    """With zero gradients the weight decay alone moves a parameter: it goes through Adam."""

    def inputs(rng):
        return {"values": [np.array([1.0, -1.0])], "grads": [[np.zeros(2)]] * 3}

    def probe(ndl, inputs):
        settings = {"lr": 0.01, "weight_decay": 0.1}
        return {"path": run(ndl, "Adam", inputs["values"], inputs["grads"], **settings)}

    def check(inputs, outputs):
        for step, size in enumerate((0.99, 0.9800027, 0.9700101)):
            got = outputs["path"][step][0]
            close(f"the parameter after step {step + 1}", got, [size, -size], 1e-5, 1e-5)


@graded("hw2.optimizers::without_gradient")
class WithoutGradient:
    """A parameter without a gradient stays as it is; Adam counts the step all the same."""

    def inputs(rng):
        grads = [rng.standard_normal(3) for _ in range(4)]
        return {
            "values": [rng.standard_normal(3).astype(np.float32) for _ in range(2)],
            "grads": [[g, g if step == 3 else None] for step, g in enumerate(grads)],
        }

    def probe(ndl, inputs):
        return {
            "SGD": run(
                ndl,
                "SGD",
                inputs["values"],
                inputs["grads"],
                lr=0.1,
                momentum=0.5,
                weight_decay=0.1,
            ),
            "Adam": run(ndl, "Adam", inputs["values"], inputs["grads"], lr=0.1, weight_decay=0.1),
        }

    def check(inputs, outputs):
        settings = {"SGD": {"momentum": 0.5}, "Adam": {}}
        for kind, path in outputs.items():
            idle = path[2][1]
            equal(f"{kind}: a parameter that had no gradient yet", idle, inputs["values"][1])
            more = settings[kind]
            right = RULES[kind](inputs["values"], inputs["grads"], 0.1, weight_decay=0.1, **more)
            for i in range(2):
                what = f"{kind}: parameter {i} after step 4"
                close(what, path[3][i], right[3][i], 1e-4, 1e-5)


@graded("hw2.optimizers::reset_grad_and_an_idle_step")
class IdleStep:
    """A step before any gradient, or after reset_grad, moves nothing."""

    def inputs(rng):
        return {"values": [rng.standard_normal((2, 2)).astype(np.float32)]}

    def probe(ndl, inputs):
        outputs = {}
        for kind in RULES:
            (p,) = parameters(ndl, inputs["values"])
            opt = getattr(ndl.optim, kind)([p], lr=0.1, weight_decay=0.5)
            opt.step()
            (p * 3.0).sum().backward()
            opt.reset_grad()
            opt.step()
            outputs[kind] = p.numpy()
        return outputs

    def check(inputs, outputs):
        for kind, values in outputs.items():
            equal(f"{kind}: a parameter without gradient", values, inputs["values"][0])


@graded("hw2.optimizers::gradients_are_not_changed")
class GradientsAreNotChanged:
    """A step only reads the gradients, with weight decay too."""

    def inputs(rng):
        return {"value": rng.standard_normal((2, 3)), "grad": rng.standard_normal((2, 3))}

    def probe(ndl, inputs):
        outputs = {}
        for kind in RULES:
            (p,) = parameters(ndl, [inputs["value"]])
            grad = ndl.Tensor(inputs["grad"], dtype="float32")
            p.grad = grad
            opt = getattr(ndl.optim, kind)([p], lr=0.1, weight_decay=0.1)
            opt.step()
            opt.step()
            outputs[kind] = [grad.numpy(), p.grad.numpy()]
        return outputs

    def check(inputs, outputs):
        for kind, grads in outputs.items():
            for grad in grads:
                equal(f"the gradient after two steps of {kind}", grad, np.float32(inputs["grad"]))


@graded("hw2.optimizers::parameters_stay_parameters")
class ParametersStayParameters:
    """After steps a parameter is the same leaf: no graph, gradient still wanted, float32."""

    def inputs(rng):
        return {"value": rng.standard_normal((1, 3)), "grad": rng.standard_normal((1, 3))}

    def probe(ndl, inputs):
        outputs = {}
        for kind, settings in (("SGD", {"momentum": 0.9}), ("Adam", {})):
            (p,) = parameters(ndl, [inputs["value"]])
            opt = getattr(ndl.optim, kind)([p], lr=np.float64(0.1), weight_decay=0.1, **settings)
            for _ in range(3):
                (p * ndl.Tensor(inputs["grad"], dtype="float32")).sum().backward()
                opt.step()
            same = opt.params[0] is p and isinstance(p, ndl.nn.Parameter)
            state = [same, p.op is None, p.requires_grad]
            outputs[kind] = [state, p.shape, str(p.dtype), p.numpy()]
        return outputs

    def check(inputs, outputs):
        start, grads = [inputs["value"]], [[inputs["grad"]]] * 3
        paths = {
            "SGD": sgd(start, grads, 0.1, momentum=0.9, weight_decay=0.1),
            "Adam": adam(start, grads, 0.1, weight_decay=0.1),
        }
        for kind, (state, shape, dtype, values) in outputs.items():
            what = f"{kind}: is the parameter the same, without an op, does it want a gradient"
            equal(what, state, [True, True, True])
            equal(f"{kind}: the parameter's shape", shape, [1, 3])
            equal(f"{kind}: the parameter's dtype", dtype, "float32")
            close(f"{kind}: the parameter after 3 steps", values, paths[kind][2][0], 1e-4, 1e-5)


@graded("hw2.optimizers::no_tensors_pile_up")
class NoTensorsPileUp:
    """As many Tensors live after thirty steps as after five: state keeps no past graph."""

    def inputs(rng):
        return {"x": rng.standard_normal((4, 3)), "w": rng.standard_normal((3, 2))}

    def probe(ndl, inputs):
        outputs = {}
        x = ndl.Tensor(inputs["x"], dtype="float32", requires_grad=False)
        for kind, settings in (("SGD", {"momentum": 0.9}), ("Adam", {})):
            (w,) = parameters(ndl, [inputs["w"]])
            opt = getattr(ndl.optim, kind)([w], lr=0.01, weight_decay=0.1, **settings)
            counts = []
            for _ in range(30):
                opt.reset_grad()
                ((x @ w) ** 2).sum().backward()
                opt.step()
                gc.collect()  # a gradient's graph may be a cycle
                counts.append(ndl.autograd.TENSOR_COUNTER)
            outputs[kind] = {"counts": counts, "w": w.numpy()}
        return outputs

    def check(inputs, outputs):
        for kind, found in outputs.items():
            if np.allclose(found["w"], inputs["w"], atol=1e-3):
                fail(f"{kind}: the parameter has not moved in thirty steps")
            after_5, after_30 = found["counts"][4], found["counts"][29]
            if after_30 > after_5:
                fail(
                    f"{kind}: Tensors pile up; use .data of parameters, gradients and state",
                    f"TENSOR_COUNTER after 5 steps {after_5}, after 30 {after_30}",
                )
