"""Writes functions of CLIF: values with operators, one instruction a line."""

from mpmath import mpf, frexp, isinf, isnan

DIGITS = {"f32": 23, "f64": 52}
LEAST = {"f32": -126, "f64": -1022}


def hexadecimal(value, form):
    """A number as texts of CLIF have it. It has to be one of the format."""
    if isinstance(value, float) and value == 0 and str(value).startswith("-"):
        return "-0.0"
    value = mpf(value)
    if isnan(value):
        return "+NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "0.0"
    sign = "-" if value < 0 else ""
    _, exponent = frexp(abs(value))
    exponent = max(exponent - 1, LEAST[form])
    bits = abs(value) * mpf(2) ** (DIGITS[form] - exponent)
    assert bits == int(bits), f"{value} is no {form}"
    bits = int(bits)
    lead, fraction = bits >> DIGITS[form], bits & ((1 << DIGITS[form]) - 1)
    digits = -(-DIGITS[form] // 4)
    fraction <<= digits * 4 - DIGITS[form]
    text = f"{fraction:0{digits}x}".rstrip("0") or "0"
    return f"{sign}0x{lead}.{text}p{exponent}"


class Value:
    """A value of a function. Numbers become constants of the other operand's type."""

    def __init__(self, function, name, ty):
        self.function, self.name, self.ty = function, name, ty

    def is_float(self):
        return self.ty[0] == "f"

    def other(self, value, ty=None):
        return value if isinstance(value, Value) else self.function.constant(value, ty or self.ty)

    def two(self, fop, iop, other, ty=None):
        op = fop if self.is_float() else iop
        return self.function.emit(f"{op} {{}}, {{}}", ty or self.ty, self, self.other(other))

    def swapped(self, fop, iop, other):
        op = fop if self.is_float() else iop
        return self.function.emit(f"{op} {{}}, {{}}", self.ty, self.other(other), self)

    def __add__(self, o): return self.two("fadd", "iadd", o)
    def __radd__(self, o): return self.swapped("fadd", "iadd", o)
    def __sub__(self, o): return self.two("fsub", "isub", o)
    def __rsub__(self, o): return self.swapped("fsub", "isub", o)
    def __mul__(self, o): return self.two("fmul", "imul", o)
    def __rmul__(self, o): return self.swapped("fmul", "imul", o)
    def __truediv__(self, o): return self.two("fdiv", None, o)
    def __rtruediv__(self, o): return self.swapped("fdiv", None, o)
    def __and__(self, o): return self.two(None, "band", o)
    def __or__(self, o): return self.two(None, "bor", o)
    def __xor__(self, o): return self.two(None, "bxor", o)
    def __lshift__(self, o): return self.two(None, "ishl", o)
    def __rshift__(self, o): return self.two(None, "ushr", o)
    def sshr(self, o): return self.two(None, "sshr", o)
    def umulhi(self, o): return self.two(None, "umulhi", o)
    def __neg__(self): return self.one("fneg" if self.is_float() else "ineg")

    def one(self, op, ty=None):
        suffix = f".{ty}" if ty else ""
        return self.function.emit(f"{op}{suffix} {{}}", ty or self.ty, self)

    def abs(self): return self.one("fabs")
    def sqrt(self): return self.one("sqrt")
    def nearest(self): return self.one("nearest")
    def trunc(self): return self.one("trunc")
    def floor(self): return self.one("floor")
    def clz(self): return self.one("clz")
    def to_int(self, ty): return self.one("fcvt_to_sint_sat", ty)
    def to_float(self, ty): return self.one("fcvt_from_sint", ty)
    def promote(self): return self.one("fpromote", "f64")
    def demote(self): return self.one("fdemote", "f32")
    def uextend(self, ty): return self.one("uextend", ty)
    def sextend(self, ty): return self.one("sextend", ty)
    def ireduce(self, ty): return self.one("ireduce", ty)
    def min(self, o): return self.two("fmin", "smin", o)
    def max(self, o): return self.two("fmax", "smax", o)
    def copysign(self, o): return self.two("fcopysign", None, o)

    def bits(self):
        ty = {"f32": "i32", "f64": "i64"}[self.ty]
        return self.one("bitcast", ty)

    def float(self):
        ty = {"i32": "f32", "i64": "f64"}[self.ty]
        return self.one("bitcast", ty)

    def compare(self, condition, other):
        op = "fcmp" if self.is_float() else "icmp"
        return self.function.emit(f"{op} {condition} {{}}, {{}}", "i8", self, self.other(other))

    def lt(self, o): return self.compare("lt" if self.is_float() else "slt", o)
    def le(self, o): return self.compare("le" if self.is_float() else "sle", o)
    def gt(self, o): return self.compare("gt" if self.is_float() else "sgt", o)
    def ge(self, o): return self.compare("ge" if self.is_float() else "sge", o)
    def eq(self, o): return self.compare("eq", o)
    def ne(self, o): return self.compare("ne", o)
    def ult(self, o): return self.compare("ult", o)
    def uge(self, o): return self.compare("uge", o)
    def is_nan(self): return self.compare("uno", self)

    def select(self, yes, no):
        """`yes` where this is not zero."""
        ty = yes.ty if isinstance(yes, Value) else no.ty
        yes = yes if isinstance(yes, Value) else self.function.constant(yes, ty)
        return self.function.emit("select {}, {}, {}", ty, self, yes, yes.other(no))


class Function:
    """A function that is written from its first instruction to its last."""

    def __init__(self, name, params, results, about, aliases=()):
        self.name, self.about, self.aliases = name, about, aliases
        self.results = results
        self.lines, self.count, self.blocks = [], len(params), 1
        self.constants, self.callees = {}, {}
        self.declared = []
        self.params = [Value(self, f"v{i}", ty) for i, ty in enumerate(params)]
        listed = ", ".join(f"{v.name}: {v.ty}" for v in self.params)
        self.lines.append(f"block0({listed}):" if params else "block0:")

    def fresh(self, ty):
        value = Value(self, f"v{self.count}", ty)
        self.count += 1
        return value

    def emit(self, text, ty, *operands):
        assert "None" not in text, text
        value = self.fresh(ty)
        for operand in operands:
            assert operand.function is self
        self.lines.append(f"    {value.name} = " + text.format(*(o.name for o in operands)))
        return value

    def constant(self, value, ty):
        if ty[0] == "f":
            text = f"{ty}const {hexadecimal(value, ty)}".replace("f32const", "f32const").replace("f64const", "f64const")
        else:
            bits = int(ty[1:])
            value = int(value) & ((1 << bits) - 1)
            text = f"iconst.{ty} {value}" if value < 1 << 16 else f"iconst.{ty} 0x{value:x}"
        if text not in self.constants:
            self.constants[text] = self.emit(text, ty)
        return self.constants[text]

    def note(self, text):
        """A comment on the lines below."""
        self.lines.append(f"    ;; {text}")

    def fma(self, a, b, c):
        known = next(v for v in (a, b, c) if isinstance(v, Value))
        a, b, c = (known.other(v) for v in (a, b, c))
        return self.emit("fma {}, {}, {}", known.ty, a, b, c)

    def horner(self, x, coefficients):
        total = self.constant(coefficients[-1], x.ty)
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, coefficient)
        return total

    def call(self, name, params, results, *arguments):
        if name not in self.callees:
            self.callees[name] = f"fn{len(self.callees)}"
            returns = f" -> {', '.join(results)}" if results else ""
            self.declared.append(f"    {self.callees[name]} = %{name}({', '.join(params)}){returns}")
        values = [self.fresh(ty) for ty in results]
        left = ", ".join(v.name for v in values)
        self.lines.append(f"    {left} = call {self.callees[name]}({', '.join(a.name for a in arguments)})")
        return values[0] if len(values) == 1 else values

    def block(self, *params):
        """A block that is begun later, with `begin`."""
        name = f"block{self.blocks}"
        self.blocks += 1
        return name, params

    def begin(self, block):
        """Writes the block from here on; gives its parameters."""
        name, params = block
        values = [self.fresh(ty) for ty in params]
        listed = ", ".join(f"{v.name}: {v.ty}" for v in values)
        self.lines.append(f"{name}({listed}):" if values else f"{name}:")
        # Constants of other blocks need not be above this one.
        self.constants = {}
        return values

    def target(self, block, arguments):
        listed = ", ".join(a.name for a in arguments)
        return f"{block[0]}({listed})" if arguments else block[0]

    def jump(self, block, *arguments):
        self.lines.append(f"    jump {self.target(block, arguments)}")

    def brif(self, condition, yes, with_yes, no, with_no):
        self.lines.append(f"    brif {condition.name}, {self.target(yes, with_yes)}, {self.target(no, with_no)}")

    def ret(self, *values):
        self.lines.append(f"    return {', '.join(v.name for v in values)}")

    def text(self):
        above = [f"; {', '.join(self.aliases)}"] if self.aliases else []
        above += [f";; {line}" for line in self.about]
        params = ", ".join(v.ty for v in self.params)
        head = f"function %{self.name}({params}) -> {', '.join(self.results)} {{"
        return "\n".join(above + [head] + self.declared + self.lines + ["}"]) + "\n"
