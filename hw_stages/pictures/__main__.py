"""Write the pictures of the handouts: python -m hw_stages.pictures --out DIR [NAME ...]"""

import argparse
from importlib import import_module
from pathlib import Path

NAMES = ("strides", "graph", "im2col", "lstm_cell", "attention_mask")


def main() -> None:
    """Draw the pictures that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m hw_stages.pictures", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; all if none is named")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    options = parser.parse_args()
    for name in options.names:
        if name not in NAMES:
            parser.error(f"no picture {name}; there are {', '.join(NAMES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or NAMES:
        picture = import_module(f"hw_stages.pictures.{name}").draw()
        (options.out / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
