//! The normal law: quantiles (Wichura, algorithm AS 241, Applied Statistics 37, 1988).

use crate::float::ln;

/// Coefficients of a rational function, highest power first.
type Rational = [[f64; 8]; 2];

const CENTRE: Rational = [
    [
        2509.0809287301227,
        33_430.57558358813,
        67_265.7709270087,
        45_921.95393154987,
        13_731.69376550946,
        1971.5909503065513,
        133.14166789178438,
        3.3871328727963665,
    ],
    [
        5226.495278852546,
        28_729.085735721943,
        39_307.89580009271,
        21_213.794301586597,
        5394.196021424751,
        687.1870074920579,
        42.31333070160091,
        1.0,
    ],
];
const MIDDLE: Rational = [
    [
        0.0007745450142783414,
        0.022723844989269184,
        0.2417807251774506,
        1.2704582524523684,
        3.6478483247632045,
        5.769497221460691,
        4.630337846156546,
        1.4234371107496835,
    ],
    [
        1.0507500716444169e-09,
        0.0005475938084995345,
        0.015198666563616457,
        0.14810397642748008,
        0.6897673349851,
        1.6763848301838038,
        2.053191626637759,
        1.0,
    ],
];
const FAR: Rational = [
    [
        2.0103343992922881e-07,
        2.7115555687434876e-05,
        0.0012426609473880784,
        0.026532189526576124,
        0.29656057182850487,
        1.7848265399172913,
        5.463784911164114,
        6.657904643501103,
    ],
    [
        2.0442631033899397e-15,
        1.421511758316446e-07,
        1.8463183175100548e-05,
        0.0007868691311456133,
        0.014875361290850615,
        0.1369298809227358,
        0.599832206555888,
        1.0,
    ],
];

fn rational([numerator, denominator]: &Rational, r: f64) -> f64 {
    let horner = |coefficients: &[f64; 8]| coefficients.iter().fold(0.0, |sum, c| sum * r + c);
    horner(numerator) / horner(denominator)
}

/// The z with P(Z > z) = `probability`.
///
/// NaN unless 0 < probability < 1.
///
/// # Numerics
/// Relative error below 1e-15, tested from 1e-300 to 1 - 1e-10 (`tests/kat/quantiles.txt`).
#[must_use]
pub fn upper_quantile(probability: f64) -> f64 {
    if !(0.0 < probability && probability < 1.0) {
        return f64::NAN;
    }
    let centred = 0.5 - probability;
    if centred.abs() <= 0.425 {
        return centred * rational(&CENTRE, 0.425f64.mul_add(0.425, -centred * centred));
    }
    let r = (-ln(probability.min(1.0 - probability))).sqrt();
    let z = if r <= 5.0 { rational(&MIDDLE, r - 1.6) } else { rational(&FAR, r - 5.0) };
    z.copysign(centred)
}
