//! The patterns of `lemma`, proven: that the code of divisions gives quotients and remainders.
//!
//! N is 2^32 or 2^64, a and b are the numbers divided, b > 0, and z approximates N / b from below with e = N − z·b. The
//! proof has four parts, each a test:
//!
//! 1. The first z, which comes from floats, is such a bound with e ≤ N / 2^20 + b: computed for the floats that integers
//!    become, with MUFU.RCP anywhere within two units of the last place.
//! 2. A step to z + floor(z·e / N) leaves e' with 0 ≤ e' < e² / N + b and e' ≤ e, and then e ≤ 2b: asked of a solver, of
//!    real numbers.
//! 3. With e ≤ 2b, floor(a·z / N) has a remainder from 0 to 3b, which two corrections bring below b: likewise.
//! 4. The code computes that: its terms are the same as the formulas', whatever products of words are.

use std::time::Duration;
use thisgpu_verify::Solvers;
use thisgpu_verify::lemma::{Division, divisions};
use thisgpu_verify::solver::Answer;
use thisgpu_verify::sweep::can_hold;
use thisgpu_verify::term::{Term, clear, substituted};
use thisgpu_verify::words::variable;

/// The solvers, if there are any: without them nothing is tested, and the test says so.
fn solvers() -> Option<Solvers> {
    match Solvers::find(Duration::from_secs(20)) {
        Ok(solvers) => Some(solvers),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// The factors of `isle/lower/divide.isle`: 2^32 and 2^64, times 1 − 10·2^-24.
const SCALES: [(u32, u32); 2] = [(32, 0x4f7f_fff6), (64, 0x5f7f_fff6)];

/// A float moved by units of its last place.
fn moved(x: f32, units: i32) -> f32 {
    f32::from_bits(x.to_bits().wrapping_add_signed(units))
}

/// Part 1, for every `step`th float that an integer becomes.
fn estimates(step: u32) {
    for (bits, scale) in SCALES {
        let (n, scale) = (1_u128 << bits, f32::from_bits(scale));
        let last = (n as f32).to_bits();
        let mut checked = 0_u64;
        for at in (1.0_f32.to_bits()..=last)
            .step_by(step as usize)
            .chain([last])
        {
            let f = f32::from_bits(at);
            // Numbers that become this float: those between the midpoints to its neighbours, these included.
            let half_way = |other: f32| (f64::from(f) + f64::from(other)) / 2.0;
            let least = half_way(moved(f, -1)).ceil().max(1.0) as u128;
            let most = (half_way(moved(f, 1)).floor() as u128).min(n - 1);
            if least > most {
                continue;
            }
            let exact = 1.0 / f64::from(f);
            let nearest = exact as f32;
            let unit = f64::from(moved(nearest, 1)) - f64::from(nearest);
            for units in -2..=2 {
                let reciprocal = moved(nearest, units);
                if (f64::from(reciprocal) - exact).abs() > 2.0 * unit {
                    continue;
                }
                let z = (reciprocal * scale) as u128;
                assert!(z * most <= n, "{f}: {z} is no lower bound for {most}");
                let rest = n - z * least;
                assert!(
                    rest <= n / (1 << 20) + least,
                    "{f}: {z} is too far away for {least}"
                );
            }
            checked += 1;
        }
        println!("{bits} bits: {checked} floats, every reciprocal within two units");
    }
}

#[test]
fn estimates_are_lower_bounds() {
    estimates(1009);
}

#[test]
#[ignore = "a minute, for when the code of divisions changes"]
fn all_estimates_are_lower_bounds() {
    estimates(1);
}

/// Quotients below 2^16: floor((a + 1/2)·r) is the quotient for every a and b, r within two units of 1/b. The product
/// grows with a, so it is enough to look where the quotient changes.
#[test]
fn small_quotients_are_exact() {
    for b in 1..1_u32 << 16 {
        let exact = (1.0 / f64::from(b)) as f32;
        for units in -2..=2 {
            let r = moved(exact, units);
            let quotient = |a: u32| ((a as f32 + 0.5) * r) as u32;
            for k in (0..1 << 16).step_by(b as usize) {
                assert_eq!(
                    quotient(k),
                    k / b,
                    "{k} / {b}, reciprocal {units} units off"
                );
                let last = (k + b - 1).min(0xffff);
                assert_eq!(quotient(last), last / b, "{last} / {b}");
            }
        }
    }
}

/// Asks a solver whether a claim about real numbers can fail; it must not.
fn holds(claim: &str, assumed: &str, text: &str) {
    let Some(solvers) = solvers() else { return };
    let question = format!("(set-logic QF_NRA)\n{VARIABLES}{assumed}\n(assert (not {text}))\n");
    let answer = solvers.ask_text(&question);
    assert_eq!(answer.expect("a solver answers"), Answer::Never, "{claim}");
}

const VARIABLES: &str = "
(declare-const n Real) (declare-const a Real) (declare-const b Real) (declare-const z Real)
(declare-const t Real) (declare-const q Real)
(define-fun e () Real (- n (* z b)))
(define-fun f () Real (- e (* t b)))
(define-fun r () Real (- a (* q b)))
(assert (and (>= b 1) (> n b) (>= z 0) (>= e 0)))";

/// t = floor(z·e / n), and f is what e becomes.
const STEP: &str = "(assert (and (>= t 0) (<= (* t n) (* z e)) (< (* z e) (* (+ t 1) n))))";

#[test]
fn steps_come_nearer() {
    holds("the bound stays a lower one", STEP, "(>= f 0)");
    holds("the error does not grow", STEP, "(<= f e)");
    holds(
        "the error is squared",
        STEP,
        "(< (* f n) (+ (* e e) (* b n)))",
    );
}

/// The error falls below 2b: where b is at least N / 2^20 it is so from the beginning.
#[test]
fn steps_are_enough() {
    let first = "(assert (<= e (+ (/ n 1048576) b)))";
    let with = |n: &str, more: &str| format!("(assert (= n {n}))\n{first}\n{more}");
    let (word, pair) = ("4294967296", "18446744073709551616");
    for n in [word, pair] {
        let large = with(n, "(assert (>= (* b 1048576) n))");
        holds("a large divisor needs no step", &large, "(<= e (* 2 b))");
    }
    // f is any number that `steps_come_nearer` allows.
    let next = "(declare-const g Real) (assert (and (>= g 0) (< (* g n) (+ (* e e) (* b n)))))";
    let small = |n: &str| with(n, &format!("(assert (< (* b 1048576) n))\n{next}"));
    holds("one step for a word", &small(word), "(<= g (* 2 b))");
    let again =
        "(declare-const h Real) (assert (and (>= h 0) (<= h g) (< (* h n) (+ (* g g) (* b n)))))";
    holds(
        "two steps for two",
        &format!("{}\n{again}", small(pair)),
        "(<= h (* 2 b))",
    );
}

#[test]
fn two_corrections_are_enough() {
    let quotient = "(assert (and (>= a 0) (< a n) (<= e (* 2 b))))
        (assert (and (<= (* q n) (* a z)) (< (* a z) (* (+ q 1) n))))";
    holds("the quotient is not too large", quotient, "(>= r 0)");
    holds("it is at most two too small", quotient, "(< r (* 3 b))");
}

/// Whether a number is less, both unsigned: by its words, as code compares.
fn is_below(x: Term, y: Term) -> Term {
    if x.width() == 32 {
        return x.is_below(y);
    }
    let word = |t: Term, i: u32| t.part(32 * i, 32);
    let (high_x, high_y) = (word(x, 1), word(y, 1));
    let lower = word(x, 0).is_below(word(y, 0));
    high_x.is_below(high_y).or(high_x.equals(high_y).and(lower))
}

/// What the code of a division computes, from an estimate z.
fn formulas(division: &Division, z: Term) -> (Term, Term) {
    let (a, b, width) = (division.dividend, division.divisor, division.width);
    let zero = Term::number(0, width);
    let minus_b = zero.minus(b);
    let upper = |x: Term, y: Term| {
        let wide = |t: Term| t.zero_extended(2 * width);
        wide(x).times(wide(y)).part(width, width)
    };
    let step = |z: Term| z.plus(upper(z, z.times(minus_b)));
    let z = if width == 64 { step(step(z)) } else { step(z) };
    let quotient = upper(a, z);
    let remainder = a.plus(quotient.times(minus_b));
    let corrected = |(quotient, remainder): (Term, Term)| {
        let is_right = is_below(remainder, b);
        let one = Term::number(1, width);
        (
            quotient.plus(Term::choose(is_right, zero, one)),
            Term::choose(is_right, remainder, remainder.minus(b)),
        )
    };
    corrected(corrected((quotient, remainder)))
}

/// Part 4, for divisions of so many bits.
fn code_computes_formulas(width: u32) {
    let Some(solvers) = solvers() else { return };
    clear();
    let all = divisions();
    assert_eq!(all.len(), 3, "16, 32 and 64 bits are understood");
    for division in all.iter().filter(|d| d.width == width) {
        let z = variable("z", width);
        let of_z = |t: Term| substituted(t, &[(division.estimate, z)].into_iter().collect());
        let (quotient, remainder) = formulas(division, z);
        for (code, formula) in [
            (of_z(division.quotient), quotient),
            (of_z(division.remainder), remainder),
        ] {
            let differs = code.equals(formula).not();
            let answer = can_hold(differs, &solvers);
            assert_eq!(answer.expect("a solver answers"), Answer::Never);
        }
    }
}

#[test]
fn the_code_of_words_computes_the_formulas() {
    code_computes_formulas(32);
}

#[test]
#[ignore = "six minutes of solvers, for when the code of divisions changes"]
fn the_code_of_two_words_computes_the_formulas() {
    code_computes_formulas(64);
}
