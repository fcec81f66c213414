//! Sweeps: their points, their laws, the command; and two facts about d that a sweep shows.

#![allow(clippy::print_stdout, reason = "statistics belong to a test's output")]

use assert_cmd::Command;
use leakybins::process::Measure;
use leakybins::process::leaky::Parameters;
use leakybins::theory::When;
use leakybins::theory::leaky::predict;
use predicates::str::contains;
use serde_json::Value;

fn leakybins(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leakybins"));
    command.args(arguments.split_whitespace());
    command
}

fn output(arguments: &str) -> String {
    let output = leakybins(arguments).assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("results are UTF-8")
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&output(&format!("{arguments} --format json"))).expect("valid JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is a number"))
}

const SMALL: &str = "sweep leaky --backend cpu --n 16,32 --lambda 0.5..0.7+0.1 --d 1..2 --balls 1e5 --seed 5 --quiet";

#[test]
fn points_come_in_the_order_of_the_grid_and_can_be_run_again() {
    let sweep = json(&format!("{SMALL} --at 2,3"));
    assert_eq!((&sweep["kind"], &sweep["complete"], &sweep["seed"]), (&"sweep".into(), &true.into(), &5.into()));
    let points = sweep["points"].as_array().expect("points");
    let mut grid = Vec::new();
    for n in [16, 32] {
        for d in [1, 2] {
            grid.extend([0.5, 0.6, 0.7].map(|lambda| (n, d, lambda)));
        }
    }
    assert_eq!(points.len(), grid.len());
    for (i, (point, (n, d, lambda))) in points.iter().zip(grid).enumerate() {
        assert_eq!((&point["n"], &point["d"], &point["lambda"]), (&n.into(), &d.into(), &lambda.into()));
        assert_eq!(point["seed"], 5 + i);
        let flags = ["seed", "replicas", "rounds", "burn_in", "every"];
        let flags = flags.map(|name| format!("--{} {}", name.replace('_', "-"), point[name])).join(" ");
        let run = json(&format!(
            "run leaky --backend cpu --n {n} --d {d} --lambda {lambda} --start mean-field --loads-every 0 -q {flags}"
        ));
        let observables = &run["observables"];
        assert_eq!(point["max_load"]["mean"], observables["max_load"]["mean"]);
        assert_eq!(point["max_load"]["high"], observables["max_load"]["high"]);
        let load = number(&observables["total_load"]["mean"]) / f64::from(n);
        assert!((number(&point["load"]["mean"]) - load).abs() < 1e-14);
        for exceedance in point["exceedance"].as_array().expect("levels") {
            let of_run = observables["max_load"]["exceedance"].as_array().expect("levels");
            let same = of_run.iter().find(|level| level["k"] == exceedance["k"]).expect("a common level");
            assert_eq!(same, exceedance);
        }
    }
}

#[test]
fn csv_has_a_row_a_point_and_the_numbers_of_the_json() {
    let text = output(&format!("{SMALL} --at 3 --format csv"));
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = table.headers().expect("a header").iter().map(str::to_owned).collect();
    for name in
        ["n", "lambda", "d", "seed", "short", "max_load", "max_load_se", "load_theory", "max_load_q999", "p_3_high"]
    {
        assert!(names.iter().any(|other| other == name), "{name} is missing in {names:?}");
    }
    let json = json(&format!("{SMALL} --at 3"));
    let rows: Vec<_> = table.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), 12);
    for (row, point) in rows.iter().zip(json["points"].as_array().expect("points")) {
        let cell = |name: &str| {
            let column = names.iter().position(|other| other == name).expect("a column");
            row[column].parse::<f64>().expect("a number")
        };
        assert_eq!(cell("max_load"), number(&point["max_load"]["mean"]));
        assert_eq!(cell("empty_fraction_low"), number(&point["empty_fraction"]["low"]));
        assert_eq!(cell("p_3_theory"), number(&point["theory"]["exceedance"][0][1]));
        assert_eq!(cell("max_load_q95"), number(&point["max_load"]["quantiles"][1][1]));
    }
}

/// The same means and errors as in a run, in every form.
#[test]
fn numbers_that_a_process_has_beside_the_loads_are_in_every_form() {
    const CAPPED: &str = "sweep capped --backend cpu --n 64 --c 1,2 --lambda 0.75 --balls 1e6 --seed 5 --quiet";
    let sweep = json(CAPPED);
    let text = output(&format!("{CAPPED} --format csv"));
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = table.headers().expect("a header").iter().map(str::to_owned).collect();
    let rows: Vec<_> = table.records().map(|row| row.expect("a row")).collect();
    let table = output(CAPPED);
    assert!(table.contains("\npool: balls in the pool at the end of a round\n"), "{table}");
    for (i, c) in [1, 2].into_iter().enumerate() {
        let point = &sweep["points"][i];
        let flags = ["seed", "replicas", "rounds", "burn_in", "every"];
        let flags = flags.map(|name| format!("--{} {}", name.replace('_', "-"), point[name])).join(" ");
        let run = json(&format!(
            "run capped --backend cpu --n 64 --c {c} --lambda 0.75 --start mean-field --loads-every 0 -q {flags}"
        ));
        let cell = |name: &str| {
            let column = names.iter().position(|other| other == name).expect("a column");
            rows[i][column].parse::<f64>().expect("a number")
        };
        let pool = &point["pool"];
        for (field, suffix) in [("mean", ""), ("standard_error", "_se"), ("low", "_low"), ("high", "_high")] {
            assert_eq!(pool[field], run["observables"]["pool"][field]);
            assert_eq!(number(&pool[field]), cell(&format!("pool{suffix}")));
        }
        assert_eq!(point["theory"]["further"]["pool"], run["theory"]["further"]["pool"]);
        assert_eq!(number(&point["theory"]["further"]["pool"]), cell("pool_theory"));
    }
}

#[test]
fn the_table_has_points_fits_and_exponents_in_eighty_columns() {
    let table = output(
        "sweep leaky --backend cpu --n 64 --lambda 0.5,0.9,1-2^-(4..7) --d 1,2 --balls 1e6 --at 5 --seed 1 --quiet",
    );
    for text in ["12 of 12", "+- 95 %", "P(M >= k)", "b = ", "chi2 = ", "local exponent", " *\n", "--balls makes"] {
        assert!(table.contains(text), "{text} is missing in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn a_dry_run_says_what_a_sweep_would_cost_and_runs_nothing() {
    let text = output("sweep leaky --lambda 1-2^-(1..16) --d 1,2,3 --n 2^10,2^14 --dry-run");
    assert_eq!(text.lines().count(), 97);
    assert!(text.contains("n 16384, lambda 0.9999847412109375, d 3") && text.contains("\n96 points, "), "{text}");
}

#[test]
fn bad_grids_are_refused_with_reason_and_remedy() {
    for (flags, reason) in [
        ("--lambda 5..1", "item '5..1'"),
        ("--lambda 0.5,,0.6", "it is empty"),
        ("--lambda 0.5,1", "there is no stationary law"),
        ("--lambda 1.5", "use 0 <= lambda < 1"),
        ("--d 0..2", "use 1 <= d"),
        ("--n 0", "use n >= 1"),
        ("--n 1..1001", "the grid has 1001 x 1 x 1 = 1001 points"),
        ("--n 1..100 --d 1..20 --max-points 50", "--max-points 2000"),
        ("--confidence 2", "use e.g. 0.95"),
        ("--replicas 0", "replicas = 0"),
        ("--plot out.pdf", "use .svg or .png"),
        ("--output /nowhere/at/all.json", "cannot be written"),
        ("--at x", "item 'x'"),
    ] {
        leakybins(&format!("sweep leaky --seed 1 {flags}")).assert().code(2).stdout("").stderr(contains(reason));
    }
    for (flags, reason) in [
        ("--each 1e12 --dry-run", "1000000000000 balls in a bin are too many to count; use at most 2^31"),
        ("--n 0", "use n >= 1"),
    ] {
        leakybins(&format!("sweep repeated --seed 1 {flags}")).assert().code(2).stdout("").stderr(contains(reason));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_reports_the_points_that_are_done() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    // The second point takes for ever.
    let child = Command::new(env!("CARGO_BIN_EXE_leakybins"))
        .args(
            "sweep leaky --backend cpu --n 4 --lambda 0.5,1-1e-5 --d 1 --balls 1e15 --seed 1 --format json".split(' '),
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    std::thread::sleep(Duration::from_secs(4));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a process number"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("a signal");
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(130));
    let sweep: Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    assert_eq!((&sweep["complete"], sweep["points"].as_array().expect("points").len()), (&false.into(), 1));
}

/// Herding on stale loads: at lambda = 0.95 and n = 1024 three choices give a larger max load than two, though a smaller
/// mean load. The figures are averages of long runs of another program; alpha is 1e-6 for each.
#[test]
fn three_choices_have_a_larger_max_load_than_two() {
    let sweep = json("sweep leaky --backend cpu --n 1024 --lambda 0.95 --d 2,3 --balls 2e8 --seed 3 --quiet");
    let mean = |point: usize, what: &str| {
        let point = &sweep["points"][point][what];
        (number(&point["mean"]), number(&point["standard_error"]))
    };
    for (point, figure) in [(0, 5.762), (1, 6.318)] {
        let (max, error) = mean(point, "max_load");
        println!("d = {}: {max:.4} +- {error:.4}, known {figure}", point + 2);
        // The figures are rounded to 0.001, and have an error of their own of about as much.
        assert!((max - figure).abs() < 5.0 * error.hypot(0.001), "{max} +- {error} for {figure}");
    }
    let [(two, a), (three, b)] = [mean(0, "max_load"), mean(1, "max_load")];
    assert!(three - two > 0.5 - 5.0 * a.hypot(b));
    let [(two, a), (three, b)] = [mean(0, "load"), mean(1, "load")];
    assert!(two - three > 5.0 * a.hypot(b), "{two} and {three}");
}

/// In the limit of many bins and at lambda = 0.99 four choices reach high loads more often than two, and low ones less.
#[test]
fn four_choices_reach_high_loads_more_often_than_two() {
    let laws = [2, 4].map(|d| {
        let parameters = Parameters { n: 1 << 40, lambda: 0.99, d, ..Parameters::default() };
        predict(&parameters, When::Stationary, Measure::Post).expect("a prediction").bins
    });
    let more = |k| laws[1].load_exceedance(k) > laws[0].load_exceedance(k);
    assert!((1..=3).all(|k| !more(k)), "low loads");
    assert!((6..=30).all(more), "high loads");
}
