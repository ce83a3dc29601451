"""pow, powi, ldexp, hypot, rhypot, 1 / root, cbrt."""

from clif import Function
from exponential import clamped, exponential_pair
from fit import fit
from formats import *
from functools import cache
from logarithmic import normal, split_number
from mpmath import atanh, cbrt, log, sqrt, mpf

REACH = sqrt(mpf(2)) - 1
REACH = (REACH / (2 + REACH) * (1 + mpf(2) ** -15)) ** 2


@cache
def logarithm_of_quotient(form):
    """(2 atanh(s) / (s ln 2) - a - b s^2) / s^4 in s^2, and the parts of a = 2 / ln 2 and b = a / 3."""
    terms = {"f32": 3, "f64": 8}[form.name]
    a = form.split(2 / LN2)
    b = form.split(2 / LN2 / 3)
    def tail(t):
        with mp.workdps(90):
            s = sqrt(t)
            return +((2 * atanh(s) / (s * LN2) - sum(a) - sum(b) * t) / (t * t))
    return a, b, fit(tail, lambda t: t * t * LN2 / 2, mpf(2) ** -30, REACH, terms, form.name)


def log2_pair(f, form, x):
    """log2 of a positive normal number, with twice the digits: high, low."""
    k, part = split_number(f, form, x)
    f.note("s = f / (2 + f) and what the quotient lacks: 1 / (2 + f) is (1 - s) / 2.")
    below, below_low = fast_two_sum(f.constant(2, form.name), part)
    s = part / below
    lacks = f.fma(-s, below, part) - s * below_low
    s_low = lacks * f.fma(s, -mpf(1) / 2, mpf(1) / 2)
    f.note("t = s^2.")
    t, t_low = product(f, s, s)
    t_low = f.fma(s + s, s_low, t_low)
    a, b, p = logarithm_of_quotient(form)
    describe(f, "log2 m = s (a + t (b + t * polynomial of t)), a and b in two parts", p, len(p.coefficients))
    step = t * f.horner(t, p.coefficients)
    inner, inner_low = fast_two_sum(f.constant(b[0], form.name), step)
    inner_low = inner_low + b[1]
    cubic, cubic_low = product(f, t, inner)
    cubic_low = f.fma(t, inner_low, f.fma(t_low, inner, cubic_low))
    outer, outer_low = fast_two_sum(f.constant(a[0], form.name), cubic)
    outer_low = (outer_low + cubic_low) + a[1]
    high, low = product(f, s, outer)
    low = f.fma(s, outer_low, f.fma(s_low, outer, low))
    return k, high, low


def whole_log2(f, form, x):
    """log2 |x| as log2_pair: of 0 -infinity, of infinity infinity. What it gives for NaN means nothing."""
    x = x.abs()
    y, change = normal(f, form, x)
    k, high, low = log2_pair(f, form, y)
    total, lost = fast_two_sum((k + change).to_float(form.name), high)
    high, low = fast_two_sum(total, lost + low)
    zero, infinite = x.eq(0), x.eq(INF)
    special = zero | infinite
    high = zero.select(-INF, infinite.select(INF, high))
    return high, special.select(f.constant(0, form.name), low)


def power(f, form, x, y, y_low=None):
    """|x|^(y + y_low), without the special cases that log2 |x| does not have."""
    log_high, log_low = whole_log2(f, form, x)
    f.note("y log2 |x| in two parts; beyond these limits the result is 0 or infinity.")
    high = y * log_high
    low = f.fma(y, log_low, f.fma(y, log_high, -high))
    if y_low is not None:
        low = f.fma(y_low, log_high, low)
    limit = form.bias + form.digits + 4
    low = high.abs().lt(limit).select(low, 0)
    high = clamped(high, -limit, limit)
    n, integer = nearest(f, form, high, 1)
    part = high - n
    ln2, ln2_low = form.split(LN2)
    r = part * ln2
    rest = f.fma(low, ln2, f.fma(part, ln2_low, f.fma(part, ln2, -r)))
    r, rest = fast_two_sum(r, rest)
    value, value_low = exponential_pair(f, form, r, rest)
    return scaled(form, value + value_low, integer)


def function_pow(form):
    f = Function("pow" + form.suffix, [form.name] * 2, [form.name], ["x^y."])
    x, y = f.params
    value = power(f, form, x, y)
    f.note("Of negative x (zeros and infinities too) odd powers are negative, others than integers of finite ones NaN.")
    half = y * (mpf(1) / 2)
    whole = y.trunc().eq(y)
    odd = whole & half.trunc().ne(half)
    negative = x.bits().lt(0)
    value = (negative & odd).select(-value, value)
    undefined = x.lt(0) & x.gt(-INF) & (whole ^ 1)
    value = undefined.select(NAN, value)
    value = x.compare("uno", y).select(NAN, value)
    f.note("1 to any power, anything to the power 0, -1 to an infinite one: 1.")
    one = x.eq(1) | y.eq(0) | (x.eq(-1) & y.abs().eq(INF))
    f.ret(one.select(1, value))
    return f


def function_powi(form):
    name = {"f32": "__powisf2", "f64": "__powidf2"}[form.name]
    f = Function(name, [form.name, "i32"], [form.name], ["x^n."])
    x, n = f.params
    if form.name == "f64":
        f.note("Every n is a number of f64.")
        f.ret(f.call("pow", ["f64"] * 2, ["f64"], x, n.to_float("f64")))
        return f
    f.note("n in two parts, of 16 bits and the rest.")
    top = n & ~0xFFFF
    y, y_low = fast_two_sum(top.to_float("f32"), (n - top).to_float("f32"))
    value = power(f, form, x, y, y_low)
    f.note("Odd powers have the sign of x; NaN.")
    value = (n & 1).select(value.copysign(x), value)
    value = x.is_nan().select(x, value)
    f.note("1 to any power, anything to the power 0: 1.")
    one = x.eq(1) | n.eq(0)
    f.ret(one.select(1, value))
    return f


def sides(f, form, x, y):
    """The root of p^2 + q^2 as two numbers, where p and q are the sides times a power of two, that power, and whether a side is infinite."""
    a, b = x.abs(), y.abs()
    larger, smaller = a.max(b), a.min(b)
    f.note("Scaled by a power of two where a square would be too large or too small; what is far smaller than the other does not count.")
    shift = form.bias // 2 + form.digits + 3
    huge, tiny = larger.gt(mpf(2) ** (form.bias // 2 - 1)), larger.lt(mpf(2) ** (-(form.bias // 2) + form.digits + 1))
    up, down = mpf(2) ** shift, mpf(2) ** -shift
    scale = huge.select(f.constant(down, form.name), tiny.select(f.constant(up, form.name), 1))
    back = huge.select(f.constant(up, form.name), tiny.select(f.constant(down, form.name), 1))
    p, q = larger * scale, smaller * scale
    square, square_low = product(f, p, p)
    total, lost = fast_two_sum(square, q * q)
    root = total.sqrt()
    f.note("What the root lacks.")
    lacks = f.fma(-root, root, total) + (lost + square_low)
    inverse = 1 / root.max(mpf(2) ** -form.bias * 2)
    infinite = a.eq(INF) | b.eq(INF)
    return root, lacks * (inverse * (mpf(1) / 2)), inverse, scale, back, infinite


def function_hypot(form):
    f = Function("hypot" + form.suffix, [form.name] * 2, [form.name], ["The root of x^2 + y^2, without overflow on the way."])
    x, y = f.params
    root, low, _, _, back, infinite = sides(f, form, x, y)
    value = (root + low) * back
    f.note("An infinite side, even beside NaN.")
    f.ret(infinite.select(INF, value))
    return f


def function_rhypot(form):
    f = Function("rhypot" + form.suffix, [form.name] * 2, [form.name], ["1 / root of x^2 + y^2, without overflow on the way."])
    x, y = f.params
    root, low, inverse, scale, _, infinite = sides(f, form, x, y)
    f.note("What the quotient lacks.")
    lacks = f.fma(-low, inverse, f.fma(-root, inverse, 1))
    value = f.fma(lacks, inverse, inverse) * scale
    f.note("No length; an infinite side, even beside NaN.")
    value = root.eq(0).select(INF, value)
    f.ret(infinite.select(f.constant(0, form.name), value))
    return f


def function_ldexp(form):
    f = Function("ldexp" + form.suffix, [form.name, "i32"], [form.name], ["x * 2^n."], ["scalbn" + form.suffix])
    x, n = f.params
    f.note("Beyond this every number becomes 0 or infinity.")
    limit = 2 * (form.bias + form.digits)
    n = n.max(-limit).min(limit)
    f.note("As much as one factor takes is the last step: before it x is large enough that nothing is rounded.")
    last = n.max(1 - form.bias).min(form.bias)
    first = n - last
    half = first.sshr(1)
    steps = [half, first - half, last]
    if form.name == "f64":
        steps = [step.sextend("i64") for step in steps]
    for step in steps:
        x = x * power_of_two(form, step)
    f.ret(x)
    return f


def function_rsqrt(form):
    f = Function("rsqrt" + form.suffix, [form.name], [form.name], ["1 / root of x; of 0 infinity with its sign."])
    (x,) = f.params
    f.note("What the root lacks is no number where x is tiny: that is made larger.")
    tiny = x.lt(mpf(2) ** (-form.bias + 2 * form.digits))
    scale = tiny.select(f.constant(mpf(2) ** form.digits, form.name), 1)
    larger = x * scale * scale
    root = larger.sqrt()
    y = 1 / root
    f.note("What the root and the quotient lack, as parts of the result; not of 0 and infinity.")
    lacks = f.fma(-root, root, larger)
    part = f.fma(-root, y, 1) - lacks * (y * y) * (mpf(1) / 2)
    better = f.fma(part, y, y)
    inside = x.gt(0) & x.lt(INF)
    f.ret(inside.select(better, y) * scale)
    return f


@cache
def inverse_cube_root(form):
    """m^(-1/3) between 1 and 2."""
    return fit(lambda m: 1 / cbrt(m), lambda m: cbrt(m), 1, 2, {"f32": 4, "f64": 5}[form.name], form.name)


def function_cbrt(form):
    f = Function("cbrt" + form.suffix, [form.name], [form.name], ["The cube root."])
    (x,) = f.params
    y, change = normal(f, form, x.abs())
    f.note("y = 2^e m; e = 3 k + j.")
    bits = y.bits()
    exponent = (bits >> form.fraction) - form.bias
    m = ((bits & ((1 << form.fraction) - 1)) | form.one()).float()
    if form.name == "f64":
        exponent = exponent.ireduce("i32")
        change = change.ireduce("i32")
    exponent = exponent + change
    f.note("Divided by 3: (e + 1536) 43691 / 2^17 - 512.")
    k = (((exponent + 1536) * 43691) >> 17) - 512
    j = exponent - (k + k + k)
    p = inverse_cube_root(form)
    describe(f, "m^(-1/3)", p, len(p.coefficients))
    start = f.horner(m, p.coefficients)
    f.note("Of 2^j m.")
    second, third = form.split(cbrt(mpf(1) / 2))[0], form.split(cbrt(mpf(1) / 4))[0]
    factor = j.eq(0).select(f.constant(1, form.name), j.eq(1).select(f.constant(second, form.name), third))
    a = j.eq(0).select(m, j.eq(1).select(m * 2, m * 4))
    r = start * factor
    f.note("Newton's steps for a^(-1/3).")
    steps = {"f32": 1, "f64": 2}[form.name]
    third_part = form.split(mpf(1) / 3)[0]
    for _ in range(steps):
        error = f.fma(-a * r, r * r, 1)
        f.note("Of third order: r (1 + e / 3 + 2 e^2 / 9).")
        r = f.fma(r * error, f.fma(error, form.split(mpf(2) / 9)[0], third_part), r)
    f.note("a r^2 is the root; what it lacks, by its cube.")
    c = a * (r * r)
    square, square_low = product(f, c, c)
    cube, cube_low = product(f, square, c)
    lacks = (a - cube) - f.fma(square_low, c, cube_low)
    c = f.fma(lacks * third_part, r * r, c)
    if form.name == "f64":
        k = k.sextend("i64")
    value = (c * power_of_two(form, k)).copysign(x)
    f.note("Zeros, infinities and NaN are their own roots.")
    special = x.eq(0) | (x.abs().lt(INF) ^ 1)
    f.ret(special.select(x, value))
    return f


def functions():
    for form in FORMATS:
        for make in (function_pow, function_powi, function_ldexp, function_hypot, function_rhypot, function_rsqrt, function_cbrt):
            yield make(form)
