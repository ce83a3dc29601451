"""exp, exp2, exp10, expm1, sinh, cosh, tanh."""

from clif import Function
from fit import fit
from formats import *
from functools import cache
from mpmath import exp, sinh, cosh, tanh, sqrt, mpf, log

REACH = mpf("0.3467")


@cache
def exponential(form):
    """(e^r - 1 - r) / r^2."""
    terms = {"f32": 5, "f64": 10}[form.name]
    def tail(r):
        return (exp(r) - 1 - r) / r**2 if abs(r) > mpf(10) ** -12 else mpf(1) / 2 + r / 6
    return fit(tail, lambda r: r * r / exp(r), -REACH, REACH, terms, form.name)


def note_exponential(f, form):
    p = exponential(form)
    describe(f, "e^r = 1 + r + r^2 * polynomial", p, len(p.coefficients))


def exponential_pair(f, form, r, low):
    """e^(r + low) for |r| up to ln 2 / 2, as 1 + r rounded and the rest."""
    note_exponential(f, form)
    q = f.horner(r, exponential(form).coefficients)
    one = f.constant(1, form.name)
    total, lost = fast_two_sum(one, r)
    return total, lost + f.fma(r * r, q, low)


def reduced(f, form, x):
    """x = n ln 2 + r + low: n as a number and as an integer, r, low."""
    n, integer = nearest(f, form, x, form.split(1 / LN2)[0])
    high, low = form.split(LN2)
    f.note("x - n ln 2: the first step is exact.")
    first = f.fma(n, -high, x)
    r = f.fma(n, -low, first)
    rest = f.fma(n, -low, first - r)
    return integer, r, rest


def clamped(x, low, high):
    return x.max(low).min(high)


LIMITS = {"f32": (-104, 89), "f64": (-746, 710)}


def function_exp(form):
    f = Function("exp" + form.suffix, [form.name], [form.name], ["e^x."])
    (x,) = f.params
    f.note("Beyond these the result is 0 or infinity.")
    x = clamped(x, *LIMITS[form.name])
    n, r, low = reduced(f, form, x)
    high, low = exponential_pair(f, form, r, low)
    f.note("Times 2^n in two steps, of which only the last one rounds a subnormal result.")
    f.ret(scaled(form, high + low, n))
    return f


def function_exp2(form):
    f = Function("exp2" + form.suffix, [form.name], [form.name], ["2^x."])
    (x,) = f.params
    f.note("Beyond these the result is 0 or infinity.")
    x = clamped(x, -form.bias - form.digits - 2, form.bias + 2)
    n, integer = nearest(f, form, x, 1)
    f.note("r = (x - n) ln 2 in two parts.")
    part = x - n
    ln2, ln2_low = form.split(LN2)
    r = part * ln2
    low = f.fma(part, ln2_low, f.fma(part, ln2, -r))
    high, low = exponential_pair(f, form, r, low)
    f.ret(scaled(form, high + low, integer))
    return f


def function_exp10(form):
    f = Function("exp10" + form.suffix, [form.name], [form.name], ["10^x."])
    (x,) = f.params
    f.note("Beyond these the result is 0 or infinity.")
    low, high = {"f32": (-46, 39), "f64": (-325, 310)}[form.name]
    x = clamped(x, low, high)
    n, integer = nearest(f, form, x, form.split(log(10, 2))[0])
    f.note("x - n log10 2, the first step exact, times ln 10.")
    step, step_low = form.split(LN2 / log(10))
    first = f.fma(n, -step, x)
    part = f.fma(n, -step_low, first)
    part_low = f.fma(n, -step_low, first - part)
    ten, ten_low = form.split(log(10))
    r = part * ten
    low = f.fma(part_low, ten, f.fma(part, ten_low, f.fma(part, ten, -r)))
    high, low = exponential_pair(f, form, r, low)
    f.ret(scaled(form, high + low, integer))
    return f


def function_expm1(form):
    f = Function("expm1" + form.suffix, [form.name], [form.name], ["e^x - 1."])
    (x,) = f.params
    least = {"f32": -20, "f64": -40}[form.name]
    greatest = {"f32": 89, "f64": 710}[form.name]
    f.note("Below the result is -1, above infinity.")
    y = clamped(x, least, greatest)
    n, r, low = reduced(f, form, y)
    note_exponential(f, form)
    q = f.horner(r, exponential(form).coefficients)
    f.note("2^(n-1) e^r - 1/2, the largest parts first, then twice that.")
    half = power_of_two(form, n - 1)
    base, base_lost = fast_two_sum(half, f.constant(-mpf(1) / 2, form.name))
    step = half * r
    total, lost = two_sum(base, step)
    rest = f.fma(half, f.fma(r * r, q, low), lost + base_lost)
    result = (total + rest) * 2
    f.note("Where x^2 does not count, and what is half a number may not be one.")
    f.ret(x.abs().lt(mpf(2) ** (-form.digits - 1)).select(x, result))
    return f


@cache
def even_and_odd(form):
    """(cosh r - 1) / r^2 and (sinh r - r) / r^3, in r^2."""
    even_terms, odd_terms = {"f32": (3, 2), "f64": (5, 5)}[form.name]
    def even(t):
        return (cosh(sqrt(t)) - 1) / t if t > mpf(10) ** -20 else mpf(1) / 2
    def odd(t):
        r = sqrt(t)
        return (sinh(r) - r) / (t * r) if t > mpf(10) ** -20 else mpf(1) / 6
    e = fit(even, lambda t: t, 0, REACH**2, even_terms, form.name)
    o = fit(odd, lambda t: t * sqrt(t), 0, REACH**2, odd_terms, form.name)
    return e, o


def hyperbolic(f, form, a, sign):
    """(e^a + sign * e^-a) / 2 for a >= 0, clamped."""
    n, r, low = reduced(f, form, a)
    even, odd = even_and_odd(form)
    f.note("u cosh r + v sinh r with u and v = 2^(n-3) +- 2^(-n-3); 4 times that is the result.")
    up, down = power_of_two(form, n - 3), power_of_two(form, -3 - n.min(form.bias - 4))
    u, u_low = fast_two_sum(up, down if sign > 0 else -down)
    v = up - down if sign > 0 else up + down
    t = r * r
    describe(f, "cosh r = 1 + r^2 * polynomial of r^2", even, len(even.coefficients))
    c = f.horner(t, even.coefficients)
    describe(f, "sinh r = r + r^3 * polynomial of r^2", odd, len(odd.coefficients))
    s = f.horner(t, odd.coefficients)
    step = v * r
    step_low = f.fma(v, r, -step)
    total, lost = fast_two_sum(u, step)
    rest = f.fma(u, t * c, f.fma(v, f.fma(t * r, s, low), (step_low + u_low) + lost))
    return (total + rest) * 4


def function_cosh(form):
    f = Function("cosh" + form.suffix, [form.name], [form.name], ["(e^x + e^-x) / 2."])
    (x,) = f.params
    f.note("Beyond this the result is infinity.")
    a = x.abs().min({"f32": 90, "f64": 711}[form.name])
    f.ret(hyperbolic(f, form, a, 1))
    return f


@cache
def small(form, name, reach, terms):
    """(g(x) - x) / x^3 in x^2 for an odd function g, weighted by what it counts for in g(x)."""
    from mpmath import tan, atan, asin, asinh, atanh
    g = {"sinh": sinh, "tanh": tanh, "tan": tan, "atan": atan, "asin": asin, "asinh": asinh, "atanh": atanh}[name]
    def tail(t):
        x = sqrt(t)
        with mp.workdps(90):
            return +((g(x) - x) / (t * x))
    return fit(tail, lambda t: t * sqrt(t) / g(sqrt(t)), 0, mpf(reach) ** 2, terms, form.name)


def small_odd(f, form, name, x, reach, terms):
    """What x + x^3 polynomial of x^2 has beyond x, divided by x."""
    p = small(form, name, reach, terms)
    describe(f, f"{name} x = x + x^3 * polynomial of x^2", p, terms)
    t = x * x
    return t * f.horner(t, p.coefficients)


def function_sinh(form):
    f = Function("sinh" + form.suffix, [form.name], [form.name], ["(e^x - e^-x) / 2."])
    (x,) = f.params
    small_block, large_block = f.block(), f.block()
    a = x.abs()
    f.brif(a.lt(1), small_block, [], large_block, [])
    f.begin(small_block)
    rest = small_odd(f, form, "sinh", a, 1, {"f32": 4, "f64": 7}[form.name])
    f.ret(f.fma(a, rest, a).copysign(x))
    f.begin(large_block)
    f.note("Beyond this the result is infinity.")
    f.ret(hyperbolic(f, form, a.min({"f32": 90, "f64": 711}[form.name]), -1).copysign(x))
    return f


def function_tanh(form):
    f = Function("tanh" + form.suffix, [form.name], [form.name], ["(e^x - e^-x) / (e^x + e^-x)."])
    (x,) = f.params
    small_block, large_block = f.block(), f.block()
    a = x.abs()
    f.brif(a.lt(mpf("0.5625")), small_block, [], large_block, [])
    f.begin(small_block)
    rest = small_odd(f, form, "tanh", a, mpf("0.5625"), {"f32": 5, "f64": 11}[form.name])
    f.ret(f.fma(a, rest, a).copysign(x))
    f.begin(large_block)
    f.note("1 - 2 / (e^2a + 1); beyond this the result is 1.")
    a = a.min({"f32": 10, "f64": 20}[form.name])
    n, r, low = reduced(f, form, a + a)
    high, low = fast_two_sum(*exponential_pair(f, form, r, low))
    scale = power_of_two(form, n)
    one = f.constant(1, form.name)
    d, lost = fast_two_sum(high * scale, one)
    d_low = f.fma(low, scale, lost)
    f.note("2 / (d + d_low) as y and what it lacks, then 1 less that.")
    y = 2 / d
    lacks = f.fma(-y, d, 2) - y * d_low
    more = lacks * (y * (mpf(1) / 2))
    total, lost = fast_two_sum(one, -y)
    f.ret((total + (lost - more)).copysign(x))
    return f


def functions():
    for form in FORMATS:
        for make in (function_exp, function_exp2, function_exp10, function_expm1, function_sinh, function_cosh, function_tanh):
            yield make(form)
