//! Fits of lines and local exponents against exact values (`kat/fit.json`).

#![allow(clippy::print_stdout, reason = "errors and bounds belong to a test's output")]

use leakybins::stats::fit::{FitError, Line, Measured, Point, local_exponent};
use proptest::prelude::*;
use serde_json::Value;

fn point(x: f64, value: f64, error: f64) -> Point {
    Point { x, y: Measured { value, error } }
}

fn cases(kind: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("kat/fit.json")).expect("valid JSON");
    all[kind].as_array().expect("a list of cases").clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn numbers<const N: usize>(value: &Value) -> [f64; N] {
    let numbers: Vec<f64> = value.as_array().expect("an array").iter().map(number).collect();
    numbers.try_into().expect("that many numbers")
}

fn points(case: &Value) -> Vec<Point> {
    let of = |row| {
        let [x, value, error] = numbers(row);
        point(x, value, error)
    };
    case["points"].as_array().expect("an array").iter().map(of).collect()
}

#[test]
fn lines_are_those_of_exact_fractions() {
    let cases = cases("lines");
    assert_eq!(cases.len(), 10);
    for case in &cases {
        let name = case["name"].as_str().expect("a name");
        let points = points(case);
        let line = Line::fit(&points).expect("a line");
        let mut pairs = vec![("covariance", line.covariance, number(&case["covariance"]))];
        let mut add = |what, found: Measured, [value, error]: [f64; 2]| {
            pairs.extend([(what, found.value, value), (what, found.error, error)]);
        };
        add("intercept", line.intercept, numbers(&case["intercept"]));
        add("slope", line.slope, numbers(&case["slope"]));
        for at in case["at"].as_array().expect("an array") {
            let [x, value, error] = numbers(at);
            add("prediction", line.at(x), [value, error]);
        }
        assert_eq!(line.degrees_of_freedom, points.len() as u64 - 2, "{name}");
        let mut residual = Vec::new();
        if line.degrees_of_freedom == 0 {
            assert_eq!((line.chi_square, line.p_value), (0.0, None), "{name}");
        } else {
            residual.push(("chi-square", line.chi_square, number(&case["chi_square"])));
            residual.push(("p-value", line.p_value.expect("degrees of freedom"), number(&case["p_value"])));
        }
        // Residuals of a millionth of the values have lost that many digits.
        let residual_bound = if name == "errors of all sizes" { 1e-11 } else { 5e-14 };
        for (what, found, meant, bound) in pairs
            .into_iter()
            .map(|(what, found, meant)| (what, found, meant, 3e-15))
            .chain(residual.into_iter().map(|(what, found, meant)| (what, found, meant, residual_bound)))
        {
            let off = (found / meant - 1.0).abs();
            println!("{name}: {what} {found:e}, relative error {off:.1e}, bound {bound:.1e}");
            assert!(off <= bound, "{name}: {what} {found:e} for {meant:e}");
        }
    }
}

#[test]
fn exponents_are_those_of_high_precision() {
    let cases = cases("exponents");
    assert_eq!(cases.len(), 6);
    for case in &cases {
        let [from, to] = points(case).try_into().expect("two points");
        let found = local_exponent(from, to).expect("an exponent");
        let [value, error] = numbers(&case["exponent"]);
        for (found, meant) in [(found.value, value), (found.error, error)] {
            let off = if found == meant { 0.0 } else { (found / meant - 1.0).abs() };
            println!("{from:?}, {to:?}: {found:e}, relative error {off:.1e}");
            assert!(off <= 1e-15, "{from:?}, {to:?}: {found:e} for {meant:e}");
        }
    }
}

#[test]
fn bad_points_are_refused() {
    let good = point(1.0, 2.0, 0.1);
    let fit = |points: &[Point]| Line::fit(points).expect_err("no line");
    assert_eq!(fit(&[]), FitError::TooFewPlaces(0));
    assert_eq!(fit(&[good, good, good]), FitError::TooFewPlaces(1));
    assert_eq!(fit(&[point(0.0, 1.0, 0.1), point(-0.0, 2.0, 0.1)]), FitError::TooFewPlaces(1));
    assert_eq!(fit(&[good, point(f64::INFINITY, 2.0, 0.1)]), FitError::NotFinite { x: f64::INFINITY, y: 2.0 });
    assert!(matches!(fit(&[good, point(2.0, f64::NAN, 0.1)]), FitError::NotFinite { x: 2.0, .. }));
    for error in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(fit(&[good, point(2.0, 2.0, error)]), FitError::Error { x: 2.0, error });
    }
    assert!(matches!(fit(&[good, point(2.0, 2.0, f64::NAN)]), FitError::Error { x: 2.0, .. }));
    assert_eq!(fit(&[point(-1e308, 0.0, 1.0), point(1e308, 1.0, 1.0)]), FitError::Range);
    assert_eq!(fit(&[good, point(2.0, 2.0, 1e200)]), FitError::Range);

    let exponent = |from, to| local_exponent(from, to).expect_err("no exponent");
    assert_eq!(exponent(good, point(1.0, 3.0, 0.1)), FitError::TooFewPlaces(1));
    assert_eq!(exponent(good, point(0.0, 3.0, 0.1)), FitError::NotPositive { x: 0.0, y: 3.0 });
    assert_eq!(exponent(point(2.0, -1.0, 0.1), good), FitError::NotPositive { x: 2.0, y: -1.0 });
    assert_eq!(exponent(good, point(2.0, 3.0, 0.0)), FitError::Error { x: 2.0, error: 0.0 });
    assert_eq!(exponent(good, point(2.0, 1e-300, 1e200)), FitError::Range);
}

proptest! {
    /// Another unit of y or x, or another order, changes nothing else.
    #[test]
    fn lines_follow_their_units(
        rows in prop::collection::vec((-10.0..10.0f64, -5.0..5.0f64, 0.1..2.0f64), 3..20), shift in -9i32..9,
    ) {
        let points: Vec<Point> = rows.iter().map(|&(x, y, error)| point(x, y, error)).collect();
        let unit = 2f64.powi(shift);
        let scaled: Vec<Point> = rows.iter().map(|&(x, y, error)| point(x / unit, y * unit, error * unit)).collect();
        let (line, scaled) = (Line::fit(&points).expect("a line"), Line::fit(&scaled).expect("a line"));
        // Powers of two are exact.
        prop_assert_eq!(scaled.slope.value, line.slope.value * unit * unit);
        prop_assert_eq!(scaled.intercept.error, line.intercept.error * unit);
        prop_assert_eq!((scaled.chi_square, scaled.p_value), (line.chi_square, line.p_value));
        let backwards: Vec<Point> = points.iter().rev().copied().collect();
        let backwards = Line::fit(&backwards).expect("a line");
        prop_assert!((backwards.chi_square / line.chi_square - 1.0).abs() < 1e-9);
        let at = line.at(0.0);
        prop_assert_eq!(at, line.intercept);
    }
}
