//! Pictures: every view has its labels and marks, and no document is too strange.

use leakybins::plot::{Format, PlotError, View, render};
use proptest::prelude::*;
use roxmltree::Document;
use serde_json::{Value, json};

const RUN: &str = include_str!("plot/run.json");
const SWEEP: &str = include_str!("plot/sweep.json");
const RECOVER: &str = include_str!("plot/recover.json");
/// A prediction with a level that is reached with probability 0.
const THEORY: &str = r#"{"schema": 1, "kind": "theory", "process": "leaky", "round": 7, "measure": "pre",
    "parameters": {"n": 4, "lambda": 0.5, "d": 1, "arrivals": "poisson", "start": "each:1"},
    "load": {"basis": "exact"}, "max_load": {"basis": "independent-bins"},
    "levels": [{"k": 0, "load_exceedance": 1.0, "max_exceedance": 1.0},
               {"k": 1, "load_exceedance": 0.25, "max_exceedance": 0.68},
               {"k": 2, "load_exceedance": 0.0, "max_exceedance": 0.0}]}"#;

/// Cover times of which one of four is censored.
const COVER: &str = r#"{"schema": 1, "kind": "cover", "process": "repeated", "parameters": {"n": 4, "start": "each:1"},
    "queue": "lifo", "balls": 4, "replicas": 4, "cover": {"histogram": {"20": 2, "31": 1}},
    "first_ball": {"histogram": {"7": 3, "9": 1}}}"#;

/// Fills of the series, in the order in which series take them.
const BLUE: &str = "#0072B2";
const VERMILLION: &str = "#D55E00";
const GREEN: &str = "#009E73";
const BLACK: &str = "#000000";

fn value(document: &str) -> Value {
    serde_json::from_str(document).expect("valid JSON")
}

fn svg(document: &str, view: Option<View>) -> String {
    let bytes = render(document.as_bytes(), view, Format::Svg).expect("a picture");
    String::from_utf8(bytes).expect("SVG is UTF-8")
}

/// All texts of a picture.
fn texts<'a>(picture: &'a Document<'_>) -> Vec<&'a str> {
    let texts = picture.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    texts.map(|node| node.text().expect("a text").trim()).collect()
}

/// Marks of one kind and colour.
fn count(picture: &Document<'_>, tag: &str, attribute: &str, colour: &str) -> usize {
    let marks = picture.descendants().filter(|node| node.tag_name().name() == tag);
    marks.filter(|node| node.attribute(attribute) == Some(colour)).count()
}

fn assert_texts(picture: &Document<'_>, expected: &[&str]) {
    let texts = texts(picture);
    for text in expected {
        assert!(texts.contains(text), "'{text}' is missing in {texts:?}");
    }
}

#[test]
fn survival_of_a_run() {
    let text = svg(RUN, None);
    let picture = Document::parse(&text).expect("XML");
    assert_texts(
        &picture,
        &[
            "Leaky bins: how often the max load reaches k",
            "n = 1024, λ = 0.95, d = 2, binomial arrivals, start empty",
            "256 replicas, 2000 rounds each, the first 1000 left out, loads at the end of a round, seed 1",
            "max load k, in balls",
            "P(M ≥ k)",
            "10⁻³",
            "10",
            "simulation, 95 % intervals for all levels at once",
            "stationary theory (bins taken as independent)",
        ],
    );
    // Levels 4 to 11, and the sample in the legend. Level 12 was never reached: it has an interval only.
    assert_eq!(count(&picture, "circle", "fill", BLUE), 8 + 1);
    assert_eq!(value(RUN)["observables"]["max_load"]["exceedance"][8]["p"], 0.0);
    // An interval that ends at 0 reaches to the axis.
    let ys = |colour| {
        let lines = picture.descendants().filter(move |node| node.attribute("stroke") == Some(colour));
        lines.filter_map(|node| node.attribute("points")).map(|points| {
            let ys = points.split_whitespace().filter_map(|point| point.split_once(',')?.1.parse::<u32>().ok());
            ys.collect::<Vec<_>>()
        })
    };
    let axes = ys(BLACK).find(|ys| ys.len() == 3 && ys[1] == ys[2]).expect("the lines of both axes");
    let levels = value(RUN)["observables"]["max_load"]["exceedance"].as_array().cloned().unwrap_or_default();
    let to_zero = levels.iter().filter(|level| level["low"] == 0.0).count();
    let bars = ys(BLUE).filter(|ys| ys.len() == 2 && ys[0] != ys[1] && ys.contains(&axes[2]));
    assert_eq!((bars.count(), to_zero), (3, 3));
}

#[test]
fn tiny_lower_limits_leave_room_for_the_values() {
    let text = svg(RUN, None);
    let picture = Document::parse(&text).expect("XML");
    let mut document = value(RUN);
    for level in document["observables"]["max_load"]["exceedance"].as_array_mut().expect("levels") {
        level["low"] = json!(1e-70);
    }
    let tiny = svg(&document.to_string(), None);
    assert!(texts(&picture).contains(&"10⁻⁴") && texts(&Document::parse(&tiny).expect("XML")) == texts(&picture));
}

#[test]
fn survival_without_intervals_is_counted_from_the_histogram() {
    let document = r#"{"kind": "run", "observables": {"max_load": {"histogram": {"3": 90, "4": 9, "7": 1}}}}"#;
    let text = svg(document, Some(View::Survival));
    let picture = Document::parse(&text).expect("XML");
    let ys: Vec<f64> = picture
        .descendants()
        .filter(|node| node.tag_name().name() == "circle")
        .map(|node| node.attribute("cy").and_then(|y| y.parse().ok()).expect("a number"))
        .collect();
    let [one, tenth, hundredth, _legend] = ys[..] else { panic!("{ys:?}") };
    assert!(((hundredth - tenth) - (tenth - one)).abs() <= 1.0, "1, 1/10 and 1/100 are equally far apart: {ys:?}");
    assert_texts(&picture, &["Balls into bins: how often the max load reaches k", "simulation"]);
}

#[test]
fn many_levels_are_a_line_in_a_band() {
    let levels = (1..=100).map(|k| json!({"k": k, "p": 0.5 / f64::from(k), "low": 0.4 / f64::from(k), "high": 0.6}));
    let mut document = value(RUN);
    document["observables"]["max_load"]["exceedance"] = levels.collect();
    let text = svg(&document.to_string(), None);
    let picture = Document::parse(&text).expect("XML");
    assert_eq!(count(&picture, "circle", "fill", BLUE), 0);
    let band = picture.descendants().find(|node| node.tag_name().name() == "polygon").expect("a band");
    let corners = band.attribute("points").map(|points| points.split_whitespace().count());
    assert_eq!(corners, Some(200));
    // The line and its sample.
    assert_eq!(count(&picture, "polyline", "stroke", BLUE) + count(&picture, "line", "stroke", BLUE), 2);
}

#[test]
fn histogram_of_a_run() {
    let text = svg(RUN, Some(View::Histogram));
    let picture = Document::parse(&text).expect("XML");
    assert_texts(&picture, &["Leaky bins: max load of a round", "fraction of the sampled rounds", "0.5", "simulation"]);
    let bars = value(RUN)["observables"]["max_load"]["histogram"].as_object().map(serde_json::Map::len);
    let pale_blue = "#66AAD0";
    assert_eq!(Some(count(&picture, "rect", "fill", pale_blue)), bars.map(|bars| bars + 1));
    assert_eq!(count(&picture, "polygon", "fill", BLACK), 8 + 1, "theory at the levels that were seen");
}

#[test]
fn survival_of_a_theory() {
    let text = svg(THEORY, None);
    let picture = Document::parse(&text).expect("XML");
    assert_texts(
        &picture,
        &[
            "n = 4, λ = 0.5, d = 1, poisson arrivals, start each:1",
            "after round 7, loads before the deletions",
            "load k, in balls",
            "probability of a load ≥ k",
            "load of one bin (exact)",
            "max load of all bins (bins taken as independent)",
            "0.2",
        ],
    );
    assert_eq!(count(&picture, "polyline", "stroke", VERMILLION), 1 + 1, "a line and its sample");
    assert!(count(&picture, "polyline", "stroke", BLUE) > 10, "dashes");
}

#[test]
fn scaling_of_a_sweep() {
    let text = svg(SWEEP, None);
    let picture = Document::parse(&text).expect("XML");
    assert_texts(
        &picture,
        &[
            "Leaky bins: mean max load near saturation",
            "binomial arrivals, 95 % intervals",
            "1/(1 − λ)",
            "mean max load, in balls",
            "d = 1, n = 1024",
            "d = 2, n = 65536",
            "theory",
            "fit, d = 1, n = 1024: slope 0.450 ± 0.012 in ln(n/(1−λ))/(1−λ)",
            "fit, d = 2, n = 1024: slope 1.410 ± 0.012 in ln(1/(1−λ))",
            "10²",
        ],
    );
    // Nine values of lambda and a sample, each series with its own marker.
    assert_eq!(count(&picture, "circle", "fill", BLUE), 9 + 1);
    assert_eq!(count(&picture, "polygon", "fill", VERMILLION), 9 + 1);
    assert_eq!(count(&picture, "polygon", "fill", GREEN), 9 + 1);

    // d = 2 alone needs no logarithmic axis.
    let mut document = value(SWEEP);
    document["points"].as_array_mut().expect("points").retain(|point| point["d"] == 2);
    let text = svg(&document.to_string(), None);
    assert_texts(&Document::parse(&text).expect("XML"), &["4", "6", "8", "10", "12"]);

    // lambda = 1 has no place.
    document["points"][0]["lambda"] = json!(1.0);
    let text = svg(&document.to_string(), None);
    assert_eq!(count(&Document::parse(&text).expect("XML"), "circle", "fill", BLUE), 8 + 1);
}

#[test]
fn fitted_lines_run_through_their_points() {
    let inverse = [2.0, 10.0, 100.0];
    let point = |inverse: f64, d: u64, mean: f64| json!({"n": 64, "lambda": 1.0 - 1.0 / inverse, "d": d, "max_load": {"mean": mean}});
    for (d, x) in [(1, "ln(n/(1-lambda))/(1-lambda)"), (2, "ln(1/(1-lambda))")] {
        let law = |inverse: f64| if d == 1 { (64.0 * inverse).ln() * inverse } else { inverse.ln() };
        let points: Vec<Value> = inverse.iter().map(|&i| point(i, d, 1.0 + 0.5 * law(i))).collect();
        let fit = json!({"d": d, "n": 64, "x": x, "intercept": 1.0, "slope": 0.5});
        let text = svg(&json!({"kind": "sweep", "points": points, "fits": [fit]}).to_string(), None);
        let picture = Document::parse(&text).expect("XML");
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let line = picture.descendants().filter(|node| node.attribute("stroke") == Some(BLUE));
        let line = line.filter_map(|node| node.attribute("points")).flat_map(str::split_whitespace);
        let line = line.map(|point| point.split_once(',').expect("x,y")).map(|(x, y)| (number(x), number(y)));
        let line: Vec<(f64, f64)> = line.collect();
        let marks = picture.descendants().filter(|node| node.tag_name().name() == "circle");
        for mark in marks.take(inverse.len()) {
            let at = ["cx", "cy"].map(|name| number(mark.attribute(name).expect("a centre")));
            let nearest = line.iter().map(|(x, y)| (x - at[0]).hypot(y - at[1])).fold(f64::INFINITY, f64::min);
            // A gap between dashes is 40 long.
            assert!(nearest < 45.0, "d = {d}: {nearest} from {at:?}");
        }
    }
}

#[test]
fn recovery_from_a_start() {
    let text = svg(RECOVER, None);
    let picture = Document::parse(&text).expect("XML");
    assert_texts(
        &picture,
        &[
            "Leaky bins: recovery from the start",
            "n = 1024, λ = 0.95, d = 2, binomial arrivals, start one-bin:1000",
            "128 replicas",
            "round",
            "load, in balls",
            "max load, 5 to 95 % of the replicas",
            "max load, median",
            "balls per bin, mean",
            "theory, mean max load",
            "theory, mean balls per bin",
            "recovered: max load ≤ 9, reached in round 1024 (median)",
            "10³",
        ],
    );
    let rounds = value(RECOVER)["trajectory"].as_array().map(|t| t.iter().filter(|state| state["round"] != 0).count());
    let band = picture.descendants().find(|node| node.tag_name().name() == "polygon").expect("a band");
    let corners = band.attribute("points").map(|points| points.split_whitespace().count());
    assert_eq!(corners, rounds.map(|rounds| 2 * rounds), "round 0 has no place on a logarithmic axis");
}

#[test]
fn cover_times_as_fractions_of_the_replicas() {
    let text = svg(COVER, None);
    let picture = Document::parse(&text).expect("XML");
    assert_texts(
        &picture,
        &[
            "Repeated balls-into-bins: balls that have been in every bin",
            "n = 4, start each:1",
            "4 balls, queue lifo, 4 replicas",
            "round",
            "fraction of the replicas",
            "first ball",
            "all balls",
        ],
    );
    // Two steps, of two corners each. The other line is dashed: more dashes than the three in the legend.
    let lines = picture.descendants().filter(|node| node.attribute("stroke") == Some(BLUE));
    let corners = lines.filter_map(|line| line.attribute("points")).map(|points| points.split_whitespace().count());
    assert_eq!(corners.max(), Some(4));
    assert!(count(&picture, "polyline", "stroke", VERMILLION) > 3);
}

#[test]
fn costs_of_a_round_over_n() {
    let points = |seconds: f64| {
        json!([
            {"n": 1000, "seconds": seconds, "low": seconds, "high": 2.0 * seconds},
            {"n": 1e12, "seconds": 9.0 * seconds, "low": seconds, "high": 10.0 * seconds}
        ])
    };
    let series = json!([
        {"backend": "profile", "d": 2, "points": points(4e-6)},
        {"backend": "profile", "d": 1, "points": points(9e-6)},
        {"backend": "cpu", "d": 2, "points": points(2e-6)}
    ]);
    let text = svg(&json!({"kind": "cost", "parameters": {"lambda": 0.95}, "series": series}).to_string(), None);
    let picture = Document::parse(&text).expect("XML");
    assert_texts(
        &picture,
        &[
            "λ = 0.95",
            "number of bins n",
            "time of a round of one replica, in microseconds",
            "profile, d = 2",
            "profile, d = 1",
            "cpu, d = 2",
        ],
    );
    // Two points and the mark in the legend of each; one colour a backend, one form a number of choices.
    assert_eq!(count(&picture, "circle", "fill", BLUE), 2 + 1);
    assert_eq!(picture.descendants().filter(|node| node.tag_name().name() == "circle").count(), 2 * (2 + 1));
}

/// Width, height and pixels of a PNG.
fn decoded(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a small picture")];
    let info = reader.next_frame(&mut pixels).expect("an image");
    (info.width, info.height, pixels)
}

#[test]
fn a_png_shows_what_the_svg_shows() {
    for (document, view) in [
        (RUN, View::Survival),
        (RUN, View::Histogram),
        (THEORY, View::Survival),
        (SWEEP, View::Scaling),
        (RECOVER, View::Recovery),
        (COVER, View::Cover),
    ] {
        let bytes = render(document.as_bytes(), Some(view), Format::Png).expect("a picture");
        let (width, height, pixels) = decoded(&bytes);
        let text = svg(document, Some(view));
        let picture = Document::parse(&text).expect("XML");
        let size =
            ["width", "height"].map(|name| picture.root_element().attribute(name).and_then(|n| n.parse::<u32>().ok()));
        assert_eq!([Some(width), Some(height)], size.map(|units| units.map(|units| 2 * units)));

        let part = |inside: &dyn Fn(usize, usize) -> bool| {
            let rows = pixels.chunks_exact(3 * width as usize).enumerate();
            let all = rows.flat_map(|(y, row)| row.chunks_exact(3).enumerate().map(move |(x, pixel)| (x, y, pixel)));
            all.filter(|(x, y, _)| inside(*x, *y)).map(|(_, _, pixel)| pixel.to_vec()).collect::<Vec<_>>()
        };
        let inked = |pixels: &[Vec<u8>]| pixels.iter().filter(|pixel| **pixel != [255, 255, 255]).count();
        // Title, legend and the border around all.
        assert!(inked(&part(&|_, y| y < 90)) > 1000, "{view:?}: no title");
        assert!(inked(&part(&|_, y| y + 60 > height as usize)) > 200, "{view:?}: no legend");
        let border = part(&|x, y| x < 16 || y < 16 || x + 16 > width as usize || y + 16 > height as usize);
        assert_eq!(inked(&border), 0, "{view:?}: something is cut");
        let blue = if view == View::Histogram { [102, 170, 208] } else { [0, 114, 178] };
        assert!(part(&|_, _| true).iter().filter(|pixel| **pixel == blue).count() > 100, "{view:?}: no data");
    }
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    for format in [Format::Svg, Format::Png] {
        let draw = || render(SWEEP.as_bytes(), None, format).expect("a picture");
        assert!(draw() == draw());
    }
}

#[test]
fn what_has_no_picture_is_refused_with_reason_and_remedy() {
    let run = |max_load: &str| format!(r#"{{"schema": 1, "kind": "run", "observables": {{"max_load": {max_load}}}}}"#);
    let fit = r#"{"d": 2, "n": 8, "x": "tan(lambda)", "intercept": 1, "slope": 1}"#;
    let point = r#"{"n": 8, "lambda": 0.5, "d": 2, "max_load": {"mean": 2}}"#;
    let many: Vec<Value> = (1..14).map(|n| json!({"n": n, "lambda": 0.5, "d": 2, "max_load": {"mean": 2}})).collect();
    for (document, view, message) in [
        (String::new(), None, "cannot be read (EOF"),
        ("not JSON".into(), None, "cannot be read (expected"),
        ("[1]".into(), None, "as --format json writes it"),
        ("[".repeat(1_000_000), None, "cannot be read ("),
        (
            "{}".into(),
            None,
            "no field 'kind'; kinds with a picture are run, theory, sweep, recover, cover, tail and cost",
        ),
        (r#"{"kind": "sieve"}"#.into(), None, "the unknown kind 'sieve'"),
        (r#"{"kind": "run", "schema": 9}"#.into(), None, "schema 9, but this version draws schema 1"),
        (r#"{"kind": "run"}"#.into(), None, "missing field `observables`"),
        (run("{}"), None, "nothing to draw (no sampled max load)"),
        (run(r#"{"histogram": {}}"#), Some(View::Histogram), "nothing to draw (no sampled max load)"),
        (run(r#"{"histogram": {"4": 0}}"#), Some(View::Histogram), "nothing to draw"),
        (run(r#"{"histogram": {"4": 0}}"#), None, "nothing to draw"),
        (run(r#"{"histogram": {"four": 1}}"#), None, "cannot be read ("),
        (run(r#"{"histogram": {"4": -1}}"#), None, "cannot be read ("),
        (run(r#"{"exceedance": [{"k": 1, "p": null}]}"#), None, "nothing to draw"),
        (RUN.into(), Some(View::Scaling), "kind 'run' has no such view; use survival or histogram"),
        (THEORY.into(), Some(View::Histogram), "kind 'theory' has no such view; use survival"),
        (SWEEP.into(), Some(View::Survival), "kind 'sweep' has no such view; use scaling"),
        (RECOVER.into(), Some(View::Survival), "kind 'recover' has no such view; use recovery"),
        (COVER.into(), Some(View::Survival), "kind 'cover' has no such view; use cover"),
        (COVER.replace("31", "many"), None, "cannot be read ("),
        (
            r#"{"kind": "cover", "replicas": 3, "cover": {"histogram": {}}, "first_ball": {"histogram": {}}}"#.into(),
            None,
            "no ball that has been in every bin",
        ),
        (r#"{"kind": "cost", "series": []}"#.into(), Some(View::Scaling), "kind 'cost' has no such view; use cost"),
        (r#"{"kind": "cost", "series": []}"#.into(), None, "nothing to draw (no time of a round)"),
        (r#"{"kind": "theory"}"#.into(), None, "no level with a positive probability"),
        (r#"{"kind": "sweep", "points": []}"#.into(), None, "no point with a mean max load and lambda < 1"),
        (
            json!({"kind": "sweep", "points": many}).to_string(),
            None,
            "13 combinations of d, n and arrivals, and a picture tells 12",
        ),
        (format!(r#"{{"kind": "sweep", "points": [{point}], "fits": [{fit}]}}"#), None, "a fit over 'tan(lambda)'"),
        (
            format!(r#"{{"kind": "sweep", "points": [{point}], "fits": [{}{fit}]}}"#, format!("{fit}, ").repeat(12)),
            None,
            "13 fits, and",
        ),
        (r#"{"kind": "recover", "trajectory": []}"#.into(), None, "no positive load after round 0"),
    ] {
        let error = render(document.as_bytes(), view, Format::Svg).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
    assert!(matches!(render(b"{", None, Format::Png), Err(PlotError::Document(_))));
}

#[test]
fn strange_documents_still_have_pictures() {
    let long = "x".repeat(100_000);
    let run = |max_load: Value| json!({"kind": "run", "process": long, "parameters": {"start": "a\u{0}<b>&\"\u{ffff}"}, "observables": {"max_load": max_load}});
    let point = |lambda: f64, mean: Value| json!({"n": 8, "lambda": lambda, "d": 2, "max_load": {"mean": mean, "low": null, "high": 1e308}});
    for document in [
        run(json!({"histogram": {"0": 1}})),
        run(json!({"histogram": {"18446744073709551615": 18_446_744_073_709_551_615_u64, "0": 1}})),
        run(json!({"histogram": {"9007199254740992": 1, "9007199254740993": 1}})),
        run(json!({"exceedance": [{"k": 3, "p": 1e-320, "low": 0.0, "high": 1.0}]})),
        run(json!({"exceedance": [{"k": 3, "p": 0.5, "low": 0.9, "high": 0.1}]})),
        json!({"kind": "run", "confidence": 1e308, "observables": {"max_load": {"exceedance": [{"k": 3, "p": 0.5, "low": 0.4, "high": 0.6}]}}}),
        json!({"kind": "theory", "levels": [{"k": 5, "max_exceedance": 1e-300}]}),
        json!({"kind": "sweep", "points": [point(0.5, json!(3.0)), point(1.0, json!(4)), point(0.75, Value::Null), point(-7.0, json!(-2))]}),
        json!({"kind": "recover", "trajectory": [{"round": 1, "max_load": {"mean": 5}}]}),
        json!({"kind": "recover", "parameters": {"n": 0}, "recovery": {"level": 3}, "trajectory": [
            {"round": 9, "max_load": {"quantiles": [[0.05, 0], [0.5, null], [0.95, 7]]}, "total_load": {"mean": 5}}]}),
    ] {
        let document = document.to_string();
        for format in [Format::Svg, Format::Png] {
            let bytes = render(document.as_bytes(), None, format);
            let bytes = bytes.unwrap_or_else(|e| panic!("{e}: {}", &document[..document.len().min(300)]));
            match format {
                Format::Svg => assert!(Document::parse(std::str::from_utf8(&bytes).expect("UTF-8")).is_ok()),
                Format::Png => assert_eq!(decoded(&bytes).0, 1520),
            }
        }
    }
}

/// Puts `new` in the place of the `at`-th value of a document, counted in depth, or removes it where there is none.
fn mangle(value: &mut Value, at: &mut usize, new: Option<&Value>) {
    if *at == 0 {
        *value = new.cloned().unwrap_or_default();
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| mangle(value, at, new)),
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().cloned().collect();
            for key in keys {
                if *at == 0 && new.is_none() {
                    fields.remove(&key);
                    *at = usize::MAX;
                } else {
                    mangle(&mut fields[&key], at, new);
                }
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mangled_documents_never_panic(
        which in 0..4usize,
        changes in prop::collection::vec((0..600usize, prop::sample::select(vec![
            None, Some("null"), Some("0"), Some("-1"), Some("1"), Some("0.5"), Some("1e308"), Some("-1e308"), Some("1e-320"),
            Some("18446744073709551615"), Some("true"), Some("[]"), Some("{}"), Some("\"\""), Some("[[0.5, 1]]"),
        ])), 1..6),
    ) {
        let mut document = value([RUN, THEORY, SWEEP, RECOVER][which]);
        for (mut at, new) in changes {
            mangle(&mut document, &mut at, new.map(value).as_ref());
        }
        let document = document.to_string();
        for view in [None, Some(View::Histogram)] {
            if let Ok(bytes) = render(document.as_bytes(), view, Format::Svg) {
                let text = String::from_utf8(bytes).expect("UTF-8");
                let picture = Document::parse(&text);
                prop_assert!(picture.is_ok(), "{picture:?}");
                prop_assert!(!text.contains("NaN") && !text.contains("inf"));
            }
        }
    }

    #[test]
    fn cut_documents_are_refused(end in 0..3000usize) {
        let end = end.min(RUN.len() - 2);
        prop_assert!(matches!(render(&RUN.as_bytes()[..end], None, Format::Svg), Err(PlotError::Document(_))));
    }
}

/// The command as its users meet it.
mod command {
    use super::*;
    use assert_cmd::Command;
    use predicates::str::contains;
    use std::fs;
    use std::path::Path;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_leakybins");

    fn leakybins(arguments: &str, folder: &Path) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments.split_whitespace()).current_dir(folder);
        command
    }

    #[test]
    fn results_become_pictures() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let folder = folder.path();
        leakybins("run leaky --backend cpu --n 50 --replicas 4 --rounds 60 --seed 1 --format json -o run.json", folder)
            .assert()
            .success();
        let theory =
            leakybins("theory leaky --n 50 --format json", folder).assert().success().get_output().stdout.clone();
        fs::write(folder.join("theory.json"), &theory).expect("a file");
        for (arguments, output, view) in [
            ("run.json -o a.svg", "a.svg", None),
            ("run.json --view histogram -o b.PNG", "b.PNG", Some(View::Histogram)),
            ("theory.json --output c.png", "c.png", None),
        ] {
            leakybins(&format!("plot {arguments}"), folder).assert().success().stdout("").stderr("");
            let document =
                fs::read(folder.join(&arguments[..arguments.find(' ').expect("words")])).expect("a document");
            let format = Format::of(Path::new(output)).expect("a known ending");
            let picture = render(&document, view, format).expect("a picture");
            assert!(fs::read(folder.join(output)).expect("the picture") == picture, "{output}");
        }
        leakybins("plot - -o d.svg", folder).write_stdin(theory).assert().success();
        assert!(fs::read(folder.join("d.svg")).is_ok_and(|picture| picture.starts_with(b"<svg ")));
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 6, "nothing else is left behind");
    }

    #[test]
    fn bad_requests_are_refused_and_leave_nothing() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let folder = folder.path();
        fs::write(folder.join("sweep.json"), SWEEP).expect("a file");
        fs::write(folder.join("empty.json"), "").expect("a file");
        for (arguments, message) in [
            ("sweep.json -o -", "this is no file name"),
            ("sweep.json -o x.pdf", "x.pdf has no known ending (it says which form the picture has); use .svg or .png"),
            ("sweep.json -o x", "use .svg or .png"),
            ("sweep.json -o nowhere/x.svg", "cannot be written ("),
            ("sweep.json", "--output <FILE>"),
            ("nowhere.json -o x.svg", "nowhere.json cannot be read ("),
            (". -o x.svg", ". cannot be read ("),
            ("empty.json -o x.svg", "empty.json: the document cannot be read (EOF"),
            ("sweep.json --view survival -o x.svg", "a document of the kind 'sweep' has no such view; use scaling"),
            ("sweep.json --view pie -o x.svg", "possible values: survival, histogram, scaling, recovery, cover, cost"),
        ] {
            leakybins(&format!("plot {arguments}"), folder).assert().code(2).stdout("").stderr(contains(message));
        }
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 2);
    }
}
