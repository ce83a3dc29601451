"""fmod."""

from clif import Function
from formats import *


def function_fmod(form):
    f = Function("fmod" + form.suffix, [form.name] * 2, [form.name], ["What is left of x after as many y as fit, with the sign of x; exact."])
    x, y = f.params
    ty = form.integer
    special, ordinary = f.block(), f.block()
    a, b = x.abs(), y.abs()
    f.brif(a.lt(INF) & b.gt(0) & a.ge(b), ordinary, [], special, [])
    f.begin(special)
    f.note("x where it is less than y; NaN of infinite x, of y 0, of NaN.")
    f.ret(a.lt(b).select(x, NAN))
    f.begin(ordinary)
    f.note("y is infinite nowhere here. Both as integers of all digits times a power of two; subnormal numbers have the exponent of the least normal one.")
    def taken(v):
        bits = v.bits()
        field = bits >> form.fraction
        fraction = bits & ((1 << form.fraction) - 1)
        is_normal = field.ne(0)
        return is_normal.select(fraction | (1 << form.fraction), fraction), is_normal.select(field, 1)
    m, m_exponent = taken(a)
    d, d_exponent = taken(b)
    f.note("Of a subnormal y the leading digit in its place.")
    shift = d.clz() - (int(ty[1:]) - form.digits)
    d = d << shift
    d_exponent = d_exponent - shift
    m_shift = m.clz() - (int(ty[1:]) - form.digits)
    m = m << m_shift
    m_exponent = m_exponent - m_shift
    loop, body, done = f.block(ty, ty), f.block(), f.block(ty)
    f.jump(loop, m, m_exponent - d_exponent)
    left, steps = f.begin(loop)
    f.note("One digit of the quotient a turn.")
    less = left - d
    left = less.lt(0).select(left, less)
    f.brif(steps.eq(0) | left.eq(0), done, [left], body, [])
    f.begin(body)
    f.jump(loop, left + left, steps - 1)
    (left,) = f.begin(done)
    f.note("The integer times its power of two: normal where the exponent allows it.")
    zeros = left.clz() - (int(ty[1:]) - form.digits)
    up = zeros.min((d_exponent - 1).max(0))
    left = left << up
    exponent = d_exponent - up
    f.note("Exponents below 1 shift to the right, exactly, since x and y have no smaller digits.")
    down = (1 - exponent).max(0).min(form.digits)
    left = left >> down
    exponent = exponent.max(1)
    is_normal = (left >> form.fraction).ne(0)
    bits = is_normal.select((left & ((1 << form.fraction) - 1)) | (exponent << form.fraction), left)
    f.ret(bits.float().copysign(x))
    return f


def functions():
    for form in FORMATS:
        yield function_fmod(form)
