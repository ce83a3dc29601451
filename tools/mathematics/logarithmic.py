"""log, log2, log10, log1p, asinh, acosh, atanh."""

from clif import Function
from exponential import small_odd
from fit import fit
from formats import *
from functools import cache
from mpmath import log, log10, log1p, sqrt, mpf

LOW, HIGH = sqrt(mpf(1) / 2) - 1 - mpf(2) ** -20, sqrt(mpf(2)) - 1 + mpf(2) ** -20


@cache
def logarithm(form):
    """(log(1 + f) - f + f^2 / 2) / f^3."""
    terms = {"f32": 8, "f64": 20}[form.name]
    def tail(f):
        with mp.workdps(90):
            return +((log1p(f) - f + f * f / 2) / f**3) if abs(f) > mpf(10) ** -12 else mpf(1) / 3 - f / 4
    return fit(tail, lambda f: f**3 / log1p(f), LOW, HIGH, terms, form.name)


def split_number(f, form, x):
    """x = 2^k m, m between the roots of 1/2 and 2: k as an integer, m - 1. x is positive and normal."""
    f.note("x = 2^k m with m between the roots of 1/2 and of 2.")
    root = form.split(sqrt(mpf(1) / 2))[0]
    bits = x.bits()
    base = int(sqrt(mpf(1) / 2) * 2 * 2**form.fraction) - (1 << form.fraction) + ((form.bias - 1) << form.fraction)
    k = (bits - base).sshr(form.fraction)
    m = (bits - (k << form.fraction)).float()
    return k, m - 1


def normal(f, form, x):
    """x or, of a subnormal number, what is 2^digits times as large, and the change of the exponent."""
    f.note("Subnormal numbers become normal ones.")
    tiny = x.lt(mpf(2) ** (1 - form.bias))
    scaled_x = tiny.select(x * mpf(2) ** form.digits, x)
    change = tiny.select(f.constant(-form.digits, form.integer), 0)
    return scaled_x, change


def log1p_pair(f, form, part, low):
    """log(1 + part + low) as two numbers."""
    p = logarithm(form)
    describe(f, "log(1 + f) = f - f^2 / 2 + f^3 * polynomial", p, len(p.coefficients))
    q = f.horner(part, p.coefficients)
    half = part * (mpf(1) / 2)
    square = part * half
    square_low = f.fma(part, half, -square)
    total, lost = fast_two_sum(part, -square)
    f.note("What was left out of 1 + f counts 1 / (1 + f) times, about 1 - f + f^2.")
    cube = f.fma(part * part, part * q, lost - square_low)
    return (total, cube) if low is None else (total, cube + f.fma(low, f.fma(part, part, -part), low))


BASES = {"log": None, "log2": mpf(2), "log10": mpf(10)}


def combined(f, form, k, total, rest, base=None):
    """k log 2 + total + rest, divided by log base."""
    k = k.to_float(form.name)
    factor = 1 / log(base) if base else mpf(1)
    if base:
        high, low = form.split(factor)
        scaled_total = total * high
        rest = f.fma(rest, high, f.fma(total, low, f.fma(total, high, -scaled_total)))
        total = scaled_total
    step = LN2 * factor
    if base == 2:
        base_value = k
    else:
        f.note("k times the first part of the constant is exact.")
        short, low = form.short(step, form.digits - (8 if form.name == "f32" else 11))
        base_value = k * short
        rest = f.fma(k, low, rest)
    total, lost = fast_two_sum(base_value, total)
    return total + (lost + rest)


def finished(f, x, result):
    """The result where x is positive and finite; else -infinity, NaN, or x."""
    f.note("0, what is negative or NaN, infinity.")
    result = x.eq(0).select(-INF, result)
    result = x.ge(0).select(result, NAN)
    return x.eq(INF).select(x, result)


def function_log(form, name):
    about = {"log": "The natural logarithm.", "log2": "The logarithm of base 2.", "log10": "The logarithm of base 10."}
    f = Function(name + form.suffix, [form.name], [form.name], [about[name]])
    (x,) = f.params
    y, change = normal(f, form, x)
    k, part = split_number(f, form, y)
    total, rest = log1p_pair(f, form, part, None)
    f.ret(finished(f, x, combined(f, form, k + change, total, rest, BASES[name])))
    return f


def log_of_sum(f, form, x, low):
    """log(1 + x + low), as log1p_pair's parts and k, for x + low > -1."""
    f.note("1 + x, and what rounding it lost.")
    u = x + 1
    lost = x.ge(1).select((x - u) + 1, x - (u - 1))
    if low is not None:
        lost = lost + low
    k, part = split_number(f, form, u)
    f.note("At 2^k with a large k nothing is lost.")
    scale = power_of_two(form, -k.min(form.bias - 7))
    part_low = lost * scale
    f.note("Without a power of two x is exact.")
    plain = k.eq(0)
    part = plain.select(x, part)
    part_low = plain.select(low if low is not None else 0, part_low)
    total, rest = log1p_pair(f, form, part, part_low)
    return k, total, rest


def function_log1p(form):
    f = Function("log1p" + form.suffix, [form.name], [form.name], ["log(1 + x)."])
    (x,) = f.params
    k, total, rest = log_of_sum(f, form, x, None)
    result = combined(f, form, k, total, rest)
    f.note("-1, what is below or NaN, infinity, and where x^2 does not count.")
    result = x.eq(-1).select(-INF, result)
    result = x.ge(-1).select(result, NAN)
    result = x.eq(INF).select(x, result)
    f.ret(x.abs().lt(mpf(2) ** (-form.digits - 1)).select(x, result))
    return f


def log_of_pair(f, form, high, low, more):
    """log(high + low) + more log 2."""
    k, part = split_number(f, form, high)
    part_low = low * power_of_two(form, -k.min(form.bias - 7))
    total, rest = log1p_pair(f, form, part, part_low)
    return combined(f, form, k + more if more is not None else k, total, rest)


def function_asinh(form):
    f = Function("asinh" + form.suffix, [form.name], [form.name], ["The inverse of sinh."])
    (x,) = f.params
    small_block, large_block = f.block(), f.block()
    a = x.abs()
    f.brif(a.lt(mpf(1) / 2), small_block, [], large_block, [])
    f.begin(small_block)
    rest = small_odd(f, form, "asinh", a, mpf(1) / 2, {"f32": 6, "f64": 13}[form.name])
    f.ret(f.fma(a, rest, a).copysign(x))
    f.begin(large_block)
    f.note("log(a + root of (1 + a^2)); of large a log(2 a).")
    large = a.gt(mpf(2) ** (form.digits // 2 + 2))
    b = large.select(f.constant(1, form.name), a)
    square, square_low = product(f, b, b)
    total, lost = two_sum(f.constant(1, form.name), square)
    lost = lost + square_low
    root = total.sqrt()
    root_low = (f.fma(-root, root, total) + lost) * ((mpf(1) / 2) / root)
    total, lost = fast_two_sum(root, b)
    total = large.select(a, total)
    lost = large.select(f.constant(0, form.name), lost + root_low)
    more = large.select(f.constant(1, form.integer), 0)
    result = log_of_pair(f, form, total, lost, more)
    f.note("NaN and infinities.")
    f.ret(a.lt(INF).select(result.copysign(x), x))
    return f


def function_acosh(form):
    f = Function("acosh" + form.suffix, [form.name], [form.name], ["The inverse of cosh, not below 0."])
    (x,) = f.params
    f.note("log(1 + t + root of t (t + 2)), t = x - 1; of large x log(2 x).")
    large = x.gt(mpf(2) ** (form.digits + 2))
    one = f.constant(1, form.name)
    t = large.select(one, x - 1)
    b, b_low = two_sum(t, f.constant(2, form.name))
    square, square_low = product(f, t, b)
    square_low = f.fma(t, b_low, square_low)
    root = square.sqrt()
    f.note("At 0 the correction would be 0 / 0.")
    inverse = (mpf(1) / 2) / root.max(mpf(2) ** -form.bias * 2)
    root_low = (f.fma(-root, root, square) + square_low) * inverse
    total, lost = fast_two_sum(root, t)
    lost = lost + root_low
    sum_high, sum_low = fast_two_sum(total, lost)
    sum_high = large.select(x, sum_high)
    sum_low = large.select(f.constant(0, form.name), sum_low)
    k, total, rest = log_of_sum(f, form, sum_high, sum_low)
    more = large.select(f.constant(1, form.integer), 0)
    result = combined(f, form, k + more, total, rest)
    f.note("What is below 1 or NaN, infinity.")
    result = x.ge(1).select(result, NAN)
    f.ret(x.eq(INF).select(x, result))
    return f


def function_atanh(form):
    f = Function("atanh" + form.suffix, [form.name], [form.name], ["The inverse of tanh."])
    (x,) = f.params
    small_block, large_block = f.block(), f.block()
    a = x.abs()
    f.brif(a.lt(mpf(1) / 2), small_block, [], large_block, [])
    f.begin(small_block)
    rest = small_odd(f, form, "atanh", a, mpf(1) / 2, {"f32": 6, "f64": 14}[form.name])
    f.ret(f.fma(a, rest, a).copysign(x))
    f.begin(large_block)
    f.note("Half of log((1 + a) / (1 - a)); 1 - a is exact.")
    one = f.constant(1, form.name)
    up, up_low = fast_two_sum(one, a)
    down = one - a
    quotient = up / down
    f.note("1 / (1 - a) is half of the quotient and 1.")
    lacks = f.fma(-quotient, down, up) + up_low
    quotient_low = lacks * f.fma(quotient, mpf(1) / 2, mpf(1) / 2)
    result = log_of_pair(f, form, quotient, quotient_low, None) * (mpf(1) / 2)
    f.note("1 is infinity, what is above or NaN is NaN.")
    result = a.eq(1).select(INF, result)
    f.ret(a.le(1).select(result.copysign(x), NAN))
    return f


def functions():
    for form in FORMATS:
        for name in BASES:
            yield function_log(form, name)
        for make in (function_log1p, function_asinh, function_acosh, function_atanh):
            yield make(form)
