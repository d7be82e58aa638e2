"""The tests of compact, ewise_setitem and scalar_setitem, for the cpu and for CUDA."""

from buffers import FLIPS, ORDERS, SLICES, STRETCHED, device_of, download, layout_of, output, upload

from needle_course.testing import GradedTest, equal


def compact_test(test, about, cases, device_name, clean=False):
    """Return a test that compacts the views of a table."""

    def inputs(rng):
        return {name: rng.standard_normal(shape, "float32") for name, (shape, _) in cases.items()}

    def probe(nd, inputs):
        device = device_of(nd, device_name)
        outputs = {}
        for name, (_, view_of) in cases.items():
            base = inputs[name]
            view = view_of(base)
            out = output(device, view.size, clean)
            device.compact(upload(device, base), out, *layout_of(view, base))
            outputs[name] = download(device, out)
        return outputs

    def check(inputs, outputs):
        for name, (_, view_of) in cases.items():
            equal(f"compact of {name}", outputs[name], view_of(inputs[name]).flatten())

    return GradedTest(test, inputs, probe, check, about)


def setitem_test(test, about, cases, device_name, scalar):
    """Return a test that writes into the views of a table; what lies beside a view must stay."""

    def inputs(rng):
        bases = {name: rng.standard_normal(shape, "float32") for name, (shape, _) in cases.items()}
        values = {
            f"{name}: values": rng.standard_normal(view_of(bases[name]).shape).astype("float32")
            for name, (_, view_of) in cases.items()
        }
        return bases | values

    def probe(nd, inputs):
        device = device_of(nd, device_name)
        outputs = {}
        for name, (_, view_of) in cases.items():
            base, values = inputs[name], inputs[f"{name}: values"]
            out = upload(device, base)
            layout = layout_of(view_of(base), base)
            if scalar:
                device.scalar_setitem(values.size, 2.5, out, *layout)
            else:
                device.ewise_setitem(upload(device, values), out, *layout)
            outputs[name] = download(device, out)
        return outputs

    def check(inputs, outputs):
        for name, (_, view_of) in cases.items():
            expected = inputs[name].copy()
            view_of(expected)[...] = 2.5 if scalar else inputs[f"{name}: values"]
            kernel = "scalar_setitem" if scalar else "ewise_setitem"
            equal(f"the buffer after {kernel} into {name}", outputs[name], expected.reshape(-1))

    return GradedTest(test, inputs, probe, check, about)


def view_kernel_tests(question, device):
    """Return the tests of one device."""
    made = [
        compact_test(f"{question}::compact_orders", "Permuted axes, up to seven.", ORDERS, device),
        compact_test(f"{question}::compact_slices", "Offsets and steps.", SLICES, device),
        compact_test(f"{question}::compact_flips", "Negative strides.", FLIPS, device),
        compact_test(f"{question}::compact_stretched", "Strides of zero.", STRETCHED, device),
    ]
    for kernel, scalar in (("ewise_setitem", False), ("scalar_setitem", True)):
        for name, cases in (("orders", ORDERS), ("slices", SLICES), ("flips", FLIPS)):
            about = f"{kernel} into views: {name}. What lies beside the view stays."
            made.append(setitem_test(f"{question}::{kernel}_{name}", about, cases, device, scalar))
    return made
