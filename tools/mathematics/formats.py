"""The two formats, and steps that functions of several families share."""

from fit import parts
from mpmath import mp, mpf, log


class Format:
    def __init__(self, name, integer, digits, exponent_bits):
        self.name, self.integer, self.digits = name, integer, digits
        self.fraction = digits - 1
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.sign = 1 << (digits - 1 + exponent_bits)
        self.infinity = ((1 << exponent_bits) - 1) << self.fraction
        # Adding this rounds to an integer, which the lowest bits of the sum hold.
        self.magic = mpf(3) * 2 ** (self.fraction - 1)
        self.magic_bits = ((self.bias + self.fraction) << self.fraction) + (1 << (self.fraction - 1))
        self.suffix = "f" if name == "f32" else ""
        self.type_suffix = name

    def one(self):
        return self.bias << self.fraction

    def split(self, value, count=2):
        return parts(value, self.digits, count)

    def short(self, value, digits):
        """A value as a number of so few digits and one of all digits."""
        first = parts(value, digits, 1)[0]
        return first, parts(value - first, self.digits, 1)[0]


F32 = Format("f32", "i32", 24, 8)
F64 = Format("f64", "i64", 53, 11)
FORMATS = (F32, F64)

LN2 = log(mpf(2))
INF, NAN = mpf("inf"), mpf("nan")


def fast_two_sum(a, b):
    """a + b and what rounding it lost, exactly, where |a| >= |b| or a is 0."""
    total = a + b
    return total, b - (total - a)


def two_sum(a, b):
    """The same for any a and b."""
    total = a + b
    b_part = total - a
    a_part = total - b_part
    return total, (a - a_part) + (b - b_part)


def product(f, a, b):
    """a * b and what rounding it lost."""
    high = a * b
    return high, f.fma(a, b, -high)


def power_of_two(form, n):
    """2^n for an integer n that leaves it a normal number."""
    return ((n + form.bias) << form.fraction).float()


def scaled(form, value, n):
    """value * 2^n for any n between twice the least and twice the greatest exponent, rounded once."""
    half = n.sshr(1)
    return value * power_of_two(form, half) * power_of_two(form, n - half)


def nearest(f, form, x, factor):
    """The integer nearest to x * factor, as a number and as an integer."""
    f.note("The nearest integer: the sum with 1.5 * 2^FRACTION has it in its lowest bits.")
    shifted = f.fma(x, factor, form.magic)
    return shifted - form.magic, shifted.bits() - form.magic_bits


def power_text(value):
    """An error as a power of two."""
    return f"2^{float(mp.log(value, 2)):.1f}" if value else "0"


def describe(f, what, polynomial, terms):
    low, high = (float(x) for x in polynomial.interval)
    f.note(f"{what}: {terms} terms on [{low:.6g}, {high:.6g}], relative error {power_text(polynomial.error)} of the result.")
