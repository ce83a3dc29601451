"""Writes the families of mathematical functions: `python3 generate.py [FAMILY…]`, with mpmath (PyPI) installed.

Coefficients come from `fit.py`, the text from `clif.py`; a family is a module here and a file in `src/compile/library`.
"""

import importlib
import pathlib
import sys

FAMILIES = {
    "exponential": "Exponentials and hyperbolic functions.",
    "logarithmic": "Logarithms and inverse hyperbolic functions.",
    "trigonometric": "Trigonometric functions.",
    "inverse_trigonometric": "Inverse trigonometric functions.",
    "power": "Powers and roots.",
    "error_function": "The error function.",
    "remainder": "Remainders.",
}

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "src/compile/library"


def main():
    for family in sys.argv[1:] or FAMILIES:
        module = importlib.import_module(family)
        head = f"; {FAMILIES[family]} Written by tools/mathematics/generate.py from {family}.py: change that.\n"
        text = "\n".join([head] + [function.text() for function in module.functions()])
        (FOLDER / f"{family}.clif").write_text(text)
        print(family)


if __name__ == "__main__":
    main()
