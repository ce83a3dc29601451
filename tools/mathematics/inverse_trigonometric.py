"""asin, acos, atan, atan2."""

from clif import Function
from exponential import small
from formats import *
from mpmath import pi, mpf

ASIN_TERMS = {"f32": 5, "f64": 12}
ATAN_TERMS = {"f32": 9, "f64": 20}


def arcsine(f, form, x):
    """What asin x has beyond x, divided by x; |x| up to 1/2."""
    terms = ASIN_TERMS[form.name]
    p = small(form, "asin", mpf(1) / 2, terms)
    describe(f, "asin s = s + s^3 * polynomial of s^2", p, terms)
    t = x * x
    return t * f.horner(t, p.coefficients)


def parts_of(f, form, x):
    """The argument s of the polynomial, s_low that it lacks, and whether |x| is up to 1/2, where s = |x|; above s is the root of (1 - |x|) / 2."""
    a = x.abs()
    small_one = a.le(mpf(1) / 2)
    f.note("Above 1/2: asin a = pi/2 - 2 asin s, s the root of (1 - a) / 2, which is exact but for the root; s_low is what that lacks.")
    half = f.fma(a, -mpf(1) / 2, mpf(1) / 2)
    root = half.sqrt()
    root_low = f.fma(-root, root, half) * ((mpf(1) / 2) / root.max(mpf(2) ** -form.digits))
    s = small_one.select(a, root)
    s_low = small_one.select(f.constant(0, form.name), root_low)
    return a, small_one, s, s_low


def function_asin(form):
    f = Function("asin" + form.suffix, [form.name], [form.name], ["The arcsine."])
    (x,) = f.params
    a, small_one, s, s_low = parts_of(f, form, x)
    rest = f.fma(s, arcsine(f, form, s), s_low)
    half_pi, half_pi_low = form.split(pi / 2)
    total, lost = fast_two_sum(f.constant(half_pi, form.name), -(s + s))
    large = total + (lost + (half_pi_low - (rest + rest)))
    f.ret(small_one.select(s + rest, large).copysign(x))
    return f


def function_acos(form):
    f = Function("acos" + form.suffix, [form.name], [form.name], ["The arccosine."])
    (x,) = f.params
    a, small_one, s, s_low = parts_of(f, form, x)
    rest = f.fma(s, arcsine(f, form, s), s_low)
    f.note("pi/2 - asin x; of a above 1/2 2 asin s, of a below -1/2 pi less that.")
    half_pi, half_pi_low = form.split(pi / 2)
    negative = x.lt(0)
    base = small_one.select(f.constant(half_pi, form.name), negative.select(f.constant(2 * half_pi, form.name), 0))
    base_low = small_one.select(f.constant(half_pi_low, form.name), negative.select(f.constant(2 * half_pi_low, form.name), 0))
    factor = small_one.select(negative.select(f.constant(1, form.name), -1), negative.select(f.constant(-2, form.name), 2))
    step = s * factor
    total, lost = fast_two_sum(base, step)
    f.ret(total + f.fma(rest, factor, lost + base_low))
    return f


def arctangent(f, form, t):
    """What atan t has beyond t, divided by t; |t| up to 1."""
    terms = ATAN_TERMS[form.name]
    p = small(form, "atan", 1, terms)
    describe(f, "atan t = t + t^3 * polynomial of t^2", p, terms)
    square = t * t
    return square * f.horner(square, p.coefficients)


def function_atan(form):
    f = Function("atan" + form.suffix, [form.name], [form.name], ["The arctangent."])
    (x,) = f.params
    f.note("Above 1: pi/2 - atan(1 / a); far above pi/2.")
    a = x.abs().min(mpf(2) ** 80)
    large = a.gt(1)
    inverse = 1 / a
    t = large.select(inverse, a)
    f.note("What the quotient lacks counts 1 / (1 + t^2) times, about 1 - t^2 / 2.")
    lacks = f.fma(-inverse, a, 1) * inverse
    lacks = large.select(f.fma(t * t * (-mpf(1) / 2), lacks, lacks), 0)
    rest = f.fma(t, arctangent(f, form, t), lacks)
    half_pi, half_pi_low = form.split(pi / 2)
    total, lost = fast_two_sum(f.constant(half_pi, form.name), -t)
    above = total + (lost + (half_pi_low - rest))
    f.ret(large.select(above, t + rest).copysign(x))
    return f


def function_atan2(form):
    f = Function("atan2" + form.suffix, [form.name] * 2, [form.name], ["The angle of the point (x, y); y is the first argument."])
    y, x = f.params
    a, b = y.abs(), x.abs()
    steep = a.gt(b)
    low_side, high_side = steep.select(b, a), steep.select(a, b)
    f.note("Of two small or large sides what the quotient lacks would be no number: the same angle has larger and smaller ones.")
    large_sides = high_side.ge(mpf(2) ** (form.bias - 7))
    scale = large_sides.select(f.constant(mpf(2) ** -8, form.name), 1)
    small_sides = high_side.lt(mpf(2) ** -(form.bias // 2))
    scale = small_sides.select(f.constant(mpf(2) ** (form.bias // 2), form.name), scale)
    low_side, high_side = low_side * scale, high_side * scale
    f.note("The smaller through the larger; of two zeros 0, of two infinities 1.")
    t = low_side / high_side
    t = high_side.eq(0).select(f.constant(0, form.name), t)
    t = low_side.eq(INF).select(f.constant(1, form.name), t)
    f.note("What the quotient lacks; not where one side is so small beside the other that it does not count, nor of infinities.")
    f.note("It counts 1 / (1 + t^2) times.")
    lacks = f.fma(-t, high_side, low_side) / (high_side * f.fma(t, t, 1))
    lowest, highest = mpf(2) ** (-form.bias + 2 * form.digits), mpf(2) ** (form.bias - 3)
    lacks = low_side.gt(lowest).select(high_side.lt(highest).select(lacks, 0), 0)
    rest = f.fma(t, arctangent(f, form, t), lacks)
    f.note("base + sign (t + rest): from the axis that is nearest.")
    half_pi, half_pi_low = form.split(pi / 2)
    left = x.bits().lt(0)
    base = steep.select(f.constant(half_pi, form.name), left.select(f.constant(2 * half_pi, form.name), 0))
    base_low = steep.select(f.constant(half_pi_low, form.name), left.select(f.constant(2 * half_pi_low, form.name), 0))
    turned = steep ^ left
    t = turned.select(-t, t)
    rest = turned.select(-rest, rest)
    total, lost = fast_two_sum(base, t)
    value = total + (lost + (base_low + rest))
    value = value.copysign(y)
    f.note("NaN; infinities of both signs are not.")
    value = x.is_nan().select(x, value)
    f.ret(y.is_nan().select(y, value))
    return f


def functions():
    for form in FORMATS:
        for make in (function_asin, function_acos, function_atan, function_atan2):
            yield make(form)
