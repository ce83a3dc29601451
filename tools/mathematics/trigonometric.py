"""sin, cos, tan, and the reduction of arguments of any size."""

from clif import Function
from exponential import small
from fit import fit
from formats import *
from functools import cache
from mpmath import cos, sin, pi, sqrt, mpf, floor

# Up to here pi/2 in three parts is enough; the quadrant is so small that its product with pi/2 leaves r exact.
LARGEST = {"f32": 2**15, "f64": 2**20}
REACH = {"f32": mpf("0.79"), "f64": mpf("0.7854")}


def words_of_two_over_pi(count):
    """64-bit words of 2/pi, behind one of zeros."""
    with mp.workdps(700):
        whole = int(floor(2 / pi * mpf(2) ** (64 * count)))
    return [0] + [whole >> 64 * (count - 1 - i) & (2**64 - 1) for i in range(count)]


def window(f, position, words, count):
    """`count` words of the table from the bit `position` on (i64): first the words, by halves of the table, then the bits."""
    index = position >> 6
    values = list(words)
    step = 1
    while step < len(words):
        step *= 2
    need = count + 1
    while step > 1:
        step //= 2
        taken = (index & step).ne(0)
        length = need + step - 1
        values = values + [0] * (length + step - len(values))
        def choose(no, yes):
            if not hasattr(no, "ty") and not hasattr(yes, "ty") and no == yes:
                return no
            yes = yes if hasattr(yes, "ty") else f.constant(yes, "i64")
            return taken.select(yes, no)
        values = [choose(values[i], values[i + step]) for i in range(length)]
    shift = position & 63
    back = 63 - shift
    values = [v if hasattr(v, "ty") else f.constant(v, "i64") for v in values]
    return [(values[i] << shift) | ((values[i + 1] >> 1) >> back) for i in range(count)]


def large_angle(f, form, x):
    """r + low = x - n pi/2, |r| at most about pi/4, and n modulo 4, of a large x, by the method of Payne and Hanek."""
    f.note("A large angle (Payne and Hanek): x = M 2^e with an integer M. Of 2/pi the bits that make multiples of 4 with M 2^e do not")
    f.note("matter, and of the rest as many as the result needs are multiplied.")
    a = x.abs().bits()
    if form.name == "f32":
        a = a.uextend("i64")
    exponent = a >> form.fraction
    mantissa = (a & ((1 << form.fraction) - 1)) | (1 << form.fraction)
    f.note("The window begins at the bit of 2/pi whose product with the lowest of M is worth 2; a word of zeros is in front.")
    position = exponent - (form.bias + form.fraction + 2 - 64)
    if form.name == "f32":
        w = window(f, position, words_of_two_over_pi(4), 2)
        f.note("M times the window, in units of 4 / 2^64.")
        product_high = mantissa * w[0] + mantissa.umulhi(w[1])
    else:
        w = window(f, position, words_of_two_over_pi(19), 3)
        f.note("M times the window, in units of 4 / 2^128: 64 bits twice.")
        low_part = mantissa * w[1]
        product_low = low_part + mantissa.umulhi(w[2])
        carry = product_low.ult(low_part).uextend("i64")
        product_high = mantissa * w[0] + mantissa.umulhi(w[1]) + carry
    f.note("The nearest quadrant, and what is left as a signed fraction.")
    n = ((product_high >> 62) + ((product_high >> 61) & 1)).ireduce("i32")
    finite = x.abs().lt(INF)
    negative = x.lt(0)
    n = negative.select(-n, n)
    if form.name == "f32":
        fraction = product_high << 2
        f.note("In f64, which has the digits of both parts of the result.")
        scale = parts(pi / 2 / mpf(2) ** 64, 53, 1)[0]
        wide = fraction.to_float("f64") * scale
        r = wide.demote()
        low = (wide - r.promote()).demote()
    else:
        high = (product_high << 2) | (product_low >> 62)
        low = product_low << 2
        f.note("Its magnitude, without leading zeros.")
        minus = high.lt(0)
        low_negated = -low
        high_negated = (high ^ -1) + low.eq(0).uextend("i64")
        high = minus.select(high_negated, high)
        low = minus.select(low_negated, low)
        empty = high.eq(0)
        high, low = empty.select(low, high), empty.select(f.constant(0, "i64"), low)
        zeros = high.clz()
        shift = zeros & 63
        first = (high << shift) | ((low >> 1) >> (63 - shift))
        second = low << shift
        f.note("53 digits and the next 63 as numbers.")
        scale = power_of_two(form, -53 - (shift + empty.select(f.constant(64, "i64"), 0)))
        leading = (first >> 11).to_float("f64") * scale
        trailing = (((first << 53) >> 1) | (second >> 12)).to_float("f64") * (scale * mpf(2) ** -63)
        f.note("Times pi/2.")
        half_pi, half_pi_low = form.split(pi / 2)
        whole, whole_low = product(f, leading, f.constant(half_pi, "f64"))
        whole_low = f.fma(leading, half_pi_low, f.fma(trailing, half_pi, whole_low))
        r, low = fast_two_sum(whole, whole_low)
        r = minus.select(-r, r)
        low = minus.select(-low, low)
    r = negative.select(-r, r)
    low = negative.select(-low, low)
    f.note("Infinities and NaN have no angle.")
    return finite.select(r, NAN), low, n


def angle(f, form, x):
    """r, low, n with x = n pi/2 + r + low: n modulo 4."""
    near, far = f.block(), f.block()
    done = f.block(form.name, form.name, "i32")
    f.brif(x.abs().lt(LARGEST[form.name]), near, [], far, [])
    f.begin(near)
    n, integer = nearest(f, form, x, form.split(2 / pi)[0])
    f.note("x - n pi/2 with three parts of pi/2: the first step is exact, of the second what rounding loses is kept.")
    first, second, third = form.split(pi / 2, 3)
    r = f.fma(n, -first, x)
    step = n * second
    step_low = f.fma(n, second, -step)
    total, lost = two_sum(r, -step)
    low = f.fma(n, -third, lost - step_low)
    r, low = fast_two_sum(total, low)
    f.jump(done, r, low, integer if form.name == "f32" else integer.ireduce("i32"))
    f.begin(far)
    f.jump(done, *large_angle(f, form, x))
    return f.begin(done)


@cache
def circular(form):
    """(sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 in r^2."""
    sin_terms, cos_terms = {"f32": (3, 3), "f64": (6, 6)}[form.name]
    reach = REACH[form.name]
    def sine(t):
        r = sqrt(t)
        with mp.workdps(90):
            return +((sin(r) - r) / (t * r))
    def cosine(t):
        with mp.workdps(90):
            return +((cos(sqrt(t)) - 1 + t / 2) / (t * t))
    s = fit(sine, lambda t: t * sqrt(t) / sin(sqrt(t)), 0, reach**2, sin_terms, form.name)
    c = fit(cosine, lambda t: t * t / cos(sqrt(t)), 0, reach**2, cos_terms, form.name)
    return s, c


def sine_of(f, form, r, low):
    s, _ = circular(form)
    describe(f, "sin r = r + r^3 * polynomial of r^2", s, len(s.coefficients))
    t = r * r
    f.note("low counts cos r times, about 1 - r^2 / 2.")
    rest = f.fma(t * (-mpf(1) / 2), low, low)
    return r + f.fma(t * r, f.horner(t, s.coefficients), rest)


def cosine_of(f, form, r, low):
    _, c = circular(form)
    describe(f, "cos r = 1 - r^2 / 2 + r^4 * polynomial of r^2", c, len(c.coefficients))
    t = r * r
    half = t * (mpf(1) / 2)
    one = f.constant(1, form.name)
    total, lost = fast_two_sum(one, -half)
    return total + (lost + f.fma(t * t, f.horner(t, c.coefficients), -(r * low)))


def function_sin_cos(form, name):
    about = {"sin": "The sine.", "cos": "The cosine."}[name]
    f = Function(name + form.suffix, [form.name], [form.name], [about])
    (x,) = f.params
    r, low, n = angle(f, form, x)
    if name == "cos":
        f.note("cos x = sin(x + pi/2).")
        n = n + 1
    sine, cosine = sine_of(f, form, r, low), cosine_of(f, form, r, low)
    value = (n & 1).select(cosine, sine)
    value = (n & 2).select(-value, value)
    if name == "sin":
        f.note("Zero keeps its sign.")
        value = x.eq(0).select(x, value)
    f.ret(value)
    return f


def function_tan(form):
    f = Function("tan" + form.suffix, [form.name], [form.name], ["The tangent."])
    (x,) = f.params
    r, low, n = angle(f, form, x)
    terms = {"f32": 7, "f64": 15}[form.name]
    p = small(form, "tan", REACH[form.name], terms)
    describe(f, "tan r = r + r^3 * polynomial of r^2", p, terms)
    t = r * r
    part = t * f.horner(t, p.coefficients)
    f.note("low counts 1 + tan^2 r times.")
    about = f.fma(r, part, r)
    rest = f.fma(r, part, f.fma(about * about, low, low))
    value, value_low = fast_two_sum(r, rest)
    f.note("-1 / tan r in odd quadrants, with what the quotient lacks.")
    safe = value.eq(0).select(f.constant(1, form.name), value)
    quotient = -1 / safe
    lacks = f.fma(quotient, value_low, f.fma(quotient, value, 1))
    inverse = f.fma(quotient, lacks, quotient)
    value = (n & 1).select(inverse, value)
    f.note("Zero keeps its sign.")
    f.ret(x.eq(0).select(x, value))
    return f


def functions():
    for form in FORMATS:
        yield function_sin_cos(form, "sin")
        yield function_sin_cos(form, "cos")
        yield function_tan(form)
