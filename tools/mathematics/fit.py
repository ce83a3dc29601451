"""Minimax polynomials by the Remez exchange, with coefficients rounded to the format that evaluates them.

The coefficients are rounded from the lowest power on; after each one the higher ones are changed, by least squares, to make up for what rounding lost.
The error that `Polynomial` states is that of the rounded coefficients, in exact arithmetic, over a grid of 4,000 points.
"""

from mpmath import mp, mpf, matrix, lu_solve, cos, pi, frexp, ldexp, nint

mp.dps = 60

DIGITS = {"f32": 24, "f64": 53}


def rounded(value, digits):
    """The number of so many binary digits nearest to a value."""
    value = mpf(value)
    if value == 0:
        return value
    fraction, exponent = frexp(value)
    return ldexp(nint(ldexp(fraction, digits)), exponent - digits)


def parts(value, digits, count):
    """A value as a sum of numbers of so many digits each, the largest first."""
    found = []
    for _ in range(count):
        part = rounded(value, digits)
        found.append(part)
        value -= part
    return found


class Polynomial:
    """Coefficients by power from 0, the interval, and the largest error under the weight."""

    def __init__(self, coefficients, interval, error):
        self.coefficients, self.interval, self.error = coefficients, interval, error


def evaluate(coefficients, x):
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def remez(values, powers):
    """Coefficients for the powers, such that the greatest `weight * |polynomial - target|` is least. `values` are the grid, the targets
    and the weights there."""
    grid, targets, weights = values
    count = len(powers) + 1
    last = len(grid) - 1
    chosen = [int(round(float((1 - cos(pi * (2 * i + 1) / (2 * count))) / 2 * last))) for i in range(count)]
    for _ in range(12):
        rows = matrix(count, count)
        right = matrix(count, 1)
        for i, place in enumerate(chosen):
            for j, power in enumerate(powers):
                rows[i, j] = grid[place] ** power
            rows[i, count - 1] = (-1) ** i / weights[place]
            right[i] = targets[place]
        solution = lu_solve(rows, right)
        coefficients = [solution[j] for j in range(count - 1)]
        errors = []
        for x, wanted, by in zip(grid, targets, weights):
            value = sum(c * x**p for c, p in zip(coefficients, powers))
            errors.append((value - wanted) * by)
        # The largest of each stretch of one sign.
        peaks = []
        for place, error in enumerate(errors):
            if peaks and (errors[peaks[-1]] > 0) == (error > 0):
                if abs(error) > abs(errors[peaks[-1]]):
                    peaks[-1] = place
            else:
                peaks.append(place)
        while len(peaks) > count:
            if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]):
                peaks.pop(0)
            else:
                peaks.pop()
        if len(peaks) < count:
            break
        if peaks == chosen:
            break
        chosen = peaks
    return coefficients


def least_squares(grid, weights, powers, wanted):
    """Coefficients for the powers that come nearest to a function, in the mean."""
    count = len(powers)
    rows, right = matrix(count, count), matrix(count, 1)
    for x, weight in list(zip(grid, weights))[::4]:
        basis = [x**power * weight for power in powers]
        value = wanted(x) * weight
        for i in range(count):
            right[i] += basis[i] * value
            for j in range(count):
                rows[i, j] += basis[i] * basis[j]
    return list(lu_solve(rows, right))


def fit(function, weight, low, high, terms, form, grid_points=400):
    """A polynomial of so many terms for `function` between `low` and `high`. `weight(x)` times the error is what is made least."""
    digits = DIGITS[form]
    low, high = mpf(low), mpf(high)
    def places(count):
        return [(low + high) / 2 - (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    grid = places(grid_points)
    targets = [function(x) for x in grid]
    weights = [weight(x) for x in grid]
    coefficients = remez((grid, targets, weights), list(range(terms)))
    for power in range(terms - 1):
        exact = coefficients[power]
        coefficients[power] = rounded(exact, digits)
        change = coefficients[power] - exact
        higher = range(power + 1, terms)
        for place, correction in zip(higher, least_squares(grid, weights, higher, lambda x: -change * x**power)):
            coefficients[place] += correction
    coefficients[-1] = rounded(coefficients[-1], digits)
    fine = places(4000) if grid_points < 4000 else grid
    error = max(abs((evaluate(coefficients, x) - function(x)) * weight(x)) for x in fine)
    return Polynomial(coefficients, (low, high), error)
