"""erf."""

from clif import Function
from exponential import exponential_pair, reduced
from fit import fit
from formats import *
from functools import cache
from mpmath import erf, erfc, log, pi, sqrt, mpf

# Above the last of these the result is 1.
EDGES = {"f32": (1, 4), "f64": (1, 2, mpf("3.5"), 6)}


@cache
def near_zero(form):
    """erf(x) / x - 1 in x^2."""
    terms = {"f32": 7, "f64": 12}[form.name]
    def g(t):
        x = sqrt(t)
        with mp.workdps(90):
            return +(erf(x) / x - 1)
    return fit(g, lambda t: sqrt(t) / erf(sqrt(t)), mpf(2) ** -40, 1, terms, form.name)


@cache
def far(form, piece):
    """log erfc(x) between two edges, in x less the lower one: from the middle terms would cancel."""
    low, high = EDGES[form.name][piece : piece + 2]
    low, high = mpf(low), mpf(high)
    terms = {"f32": (9,), "f64": (14, 13, 11)}[form.name][piece]
    def g(u):
        with mp.workdps(90):
            return +log(erfc(low + u))
    return low, fit(g, lambda u: erfc(low + u) / erf(low + u), 0, high - low, terms, form.name, 300)


def function_erf(form):
    f = Function("erf" + form.suffix, [form.name], [form.name], ["The error function."])
    (x,) = f.params
    near_block, far_block = f.block(), f.block()
    a = x.abs()
    f.brif(a.lt(1), near_block, [], far_block, [])
    f.begin(near_block)
    p = near_zero(form)
    describe(f, "erf x = x + x * polynomial of x^2", p, len(p.coefficients))
    f.ret(f.fma(x, f.horner(x * x, p.coefficients), x))
    f.begin(far_block)
    edges = EDGES[form.name]
    f.note("Beyond this the result is 1.")
    a = a.min(edges[-1])
    if len(edges) == 2:
        start, p = far(form, 0)
        describe(f, f"log erfc x = polynomial of x - {float(start)}", p, len(p.coefficients))
        value = f.horner(a - start, p.coefficients)
    else:
        done = f.block(form.name)
        for piece in range(len(edges) - 1):
            start, p = far(form, piece)
            here = None
            if piece < len(edges) - 2:
                here, above = f.block(), f.block()
                f.brif(a.lt(edges[piece + 1]), here, [], above, [])
                f.begin(here)
            describe(f, f"log erfc x = polynomial of x - {float(start)}", p, len(p.coefficients))
            f.jump(done, f.horner(a - start, p.coefficients))
            if here:
                f.begin(above)
        (value,) = f.begin(done)
    n, r, low = reduced(f, form, value)
    high, low = exponential_pair(f, form, r, low)
    complement = scaled(form, high + low, n)
    f.ret((1 - complement).copysign(x))
    return f


def functions():
    for form in FORMATS:
        yield function_erf(form)
