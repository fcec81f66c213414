//! tmp
use leakybins::backend::{
    gpu::{compose::*, *},
    *,
};
use leakybins::process::{leaky::*, *};
use leakybins::run::Schedule;
fn mutate(s: &str) -> String {
    let mut s = s.to_owned();
    for m in std::env::var("M").unwrap_or_default().split('|') {
        if let Some((a, b)) = m.split_once("=>") {
            assert!(s.contains(a), "{a}");
            s = s.replace(a, b);
        }
    }
    s
}
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (n, d, reps, rounds, wg) = (a[0], a[1], a[2], a[3], a[4] as u32);
    let layout = [Layout::Workgroup, Layout::Storage, Layout::Grid][a[5] as usize];
    let mut g = Gpu::open(&Options {
        allow_software: true,
        tuning: Tuning { layout: Some(layout), workgroup: Some(wg), mutate: Some(mutate), ..Tuning::default() },
        ..Options::default()
    })
    .unwrap();
    let p = Leaky::new(&Parameters { n, d, ..Parameters::default() }).unwrap();
    let every = if a[6] == 0 { rounds } else { a[6] };
    let job = Job {
        process: &p,
        seed: 1,
        schedule: Schedule { rounds, burn_in: 0, every, loads_every: 0, measure: Measure::Post },
        keep_loads: false,
    };
    for _ in 0..2 {
        let t = std::time::Instant::now();
        let r = g.run(&job, 0..reps, &Control::default());
        let e = t.elapsed().as_secs_f64();
        match r {
            Ok(r) => println!("{:.1} Mballs/s in {e:.2}s", r.tally.flow.arrived as f64 / e / 1e6),
            Err(x) => println!("{e:.2}s (twice) {}", x.to_string().get(..30).unwrap()),
        }
    }
}
