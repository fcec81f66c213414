//! Shader sources: WGSL fragments under a header of constants that come from the Rust side.

use crate::process::{Kernel, Measure};
use crate::rng::bounded::{MAX_ATTEMPTS, Packing};
use crate::rng::{Domain, philox};
use std::fmt::Write;

/// Where the loads live, and which threads do what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Layout {
    /// One workgroup a replica, its loads in workgroup memory during a dispatch of many rounds.
    Workgroup,
    /// One workgroup a replica, its loads in the storage buffer.
    Storage,
    /// One thread a Philox block of balls, then one a bin; a few dispatches a round.
    Grid,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Layout; 3] = [Layout::Workgroup, Layout::Storage, Layout::Grid];
}

/// How a shader multiplies two words into 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Multiply {
    /// From 16-bit limbs, on every device.
    #[value(name = "16")]
    Limbs16,
    /// With the device's 64-bit integers.
    #[value(name = "64")]
    Int64,
}

impl Multiply {
    /// Both ways.
    pub const ALL: [Multiply; 2] = [Multiply::Limbs16, Multiply::Int64];

    fn source(self) -> &'static str {
        match self {
            Multiply::Limbs16 => include_str!("../../../shaders/multiply_16.wgsl"),
            Multiply::Int64 => include_str!("../../../shaders/multiply_64.wgsl"),
        }
    }
}

/// Everything that a composed shader depends on beside the process. No choice changes a bit of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Layout of the loads and the threads.
    pub layout: Layout,
    /// The 64-bit product.
    pub multiply: Multiply,
    /// Whether subgroups add up before they touch a common counter.
    pub subgroups: bool,
    /// Two words a bin instead of one.
    pub wide: bool,
    /// Whether the replicas do not follow each other, or are at different rounds.
    pub staggered: bool,
    /// Threads of a workgroup.
    pub workgroup: u32,
    /// Loads below this are counted.
    pub levels: u32,
    /// When the loads are observed.
    pub measure: Measure,
}

/// Loads below this are first counted in workgroup memory.
pub const SMALL_LOADS: u32 = 64;

impl Variant {
    /// Words that hold the loads of a replica.
    #[must_use]
    pub fn load_cells(&self, kernel: &Kernel<'_>) -> u64 {
        u64::from(kernel.packing.bins) * if self.wide { 2 } else { 1 }
    }

    /// Words that hold the state of a replica.
    #[must_use]
    pub fn cells(&self, kernel: &Kernel<'_>) -> u64 {
        self.load_cells(kernel) + u64::from(kernel.pool.map_or(0, |pool| pool.ages))
    }

    /// Counters of the loads, of what is beyond them, and of the waiting times.
    #[must_use]
    pub fn counters(&self, kernel: &Kernel<'_>) -> u64 {
        let levels = u64::from(self.levels);
        levels + 1 + if kernel.pool.is_some() { levels } else { 0 }
    }

    /// Bytes of workgroup memory: the cells where they live there, the small loads, two plans and three pairs of
    /// counters; with a pool, the small waiting times, two pairs of counters and the largest age.
    #[must_use]
    pub fn workgroup_bytes(&self, kernel: &Kernel<'_>) -> u64 {
        let cells = if self.layout == Layout::Workgroup { self.cells(kernel) } else { 0 };
        let pool = if kernel.pool.is_some() { u64::from(SMALL_LOADS) + 4 + 1 } else { 0 };
        4 * (cells + u64::from(SMALL_LOADS) + 4 + 6 + pool)
    }
}

/// Blocks and balls of a unit, the work of one thread: the smallest run of whole blocks that serves whole balls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Philox blocks of a unit.
    pub blocks: u32,
    /// Balls of a unit.
    pub balls: u32,
}

impl Unit {
    /// The unit of `packing`.
    #[must_use]
    pub fn new(packing: &Packing) -> Self {
        let words = packing.words_per_ball;
        if words <= 2 {
            Unit { blocks: 1, balls: 4 / words * packing.balls_per_word }
        } else {
            Unit { blocks: words / 4, balls: 1 }
        }
    }

    /// Units that serve `balls` balls.
    #[must_use]
    pub fn count(&self, balls: u32) -> u32 {
        balls.div_ceil(self.balls)
    }
}

/// The constants of the random functions.
fn random_constants(packing: &Packing) -> String {
    let mut header = String::from("// Generated.\n");
    let unit = Unit::new(packing);
    let domains = Domain::ALL.iter().map(|&(domain, name)| (format!("DOMAIN_{name}"), domain as u32));
    let others = [
        ("PHILOX_M0", philox::MULTIPLIERS[0]),
        ("PHILOX_M1", philox::MULTIPLIERS[1]),
        ("PHILOX_W0", philox::KEY_STEPS[0]),
        ("PHILOX_W1", philox::KEY_STEPS[1]),
        ("BINS", packing.bins),
        ("CHOICES", packing.choices),
        ("INDICES_PER_WORD", packing.indices_per_word),
        ("BALLS_PER_WORD", packing.balls_per_word),
        ("PRODUCT", packing.product),
        ("THRESHOLD", packing.threshold),
        ("MAX_ATTEMPTS", u32::from(MAX_ATTEMPTS)),
        ("BALLS_PER_UNIT", unit.balls),
        ("BLOCKS_PER_UNIT", unit.blocks),
    ];
    for (name, value) in domains.chain(others.map(|(name, value)| (name.to_owned(), value))) {
        writeln!(header, "const {name} = {value}u;").expect("writing to a string succeeds");
    }
    header
}

/// The shader that runs `kernel` as `variant` says.
#[must_use]
pub fn simulation(kernel: &Kernel<'_>, variant: &Variant) -> String {
    let mut source = random_constants(&kernel.packing);
    let bins = kernel.packing.bins;
    let groups = |threads: u32| threads.div_ceil(variant.workgroup).max(1);
    let constants = [
        ("ARRIVALS_FIRST", kernel.arrivals.first()),
        ("ARRIVALS_TABLE", kernel.arrivals.as_slice().len() as u32),
        ("CELLS", variant.cells(kernel) as u32),
        ("ELSEWHERE", variant.load_cells(kernel) as u32),
        ("AGES", kernel.pool.map_or(0, |pool| pool.ages)),
        ("PLACES", kernel.pool.map_or(u32::MAX, |pool| pool.places)),
        ("LEVELS", variant.levels),
        ("SMALL", SMALL_LOADS),
        ("WG", variant.workgroup),
        ("UNIT_GROUPS", groups(Unit::new(&kernel.packing).count(kernel.most_balls()))),
        ("BIN_GROUPS", groups(bins)),
    ];
    for (name, value) in constants {
        writeln!(source, "const {name} = {value}u;").expect("writing to a string succeeds");
    }
    for (name, value) in [
        ("WIDE", variant.wide),
        ("STAGGERED", variant.staggered),
        ("PRE", variant.measure == Measure::Pre),
        ("RETHROWS", kernel.rethrows),
        ("POOL", kernel.pool.is_some()),
    ] {
        writeln!(source, "const {name} = {value};").expect("writing to a string succeeds");
    }
    let (cells, entry) = match variant.layout {
        Layout::Workgroup => {
            (include_str!("../../../shaders/cells_workgroup.wgsl"), include_str!("../../../shaders/replica.wgsl"))
        }
        Layout::Storage => {
            (include_str!("../../../shaders/cells_storage.wgsl"), include_str!("../../../shaders/replica.wgsl"))
        }
        Layout::Grid => {
            (include_str!("../../../shaders/cells_storage.wgsl"), include_str!("../../../shaders/grid.wgsl"))
        }
    };
    let gather = if variant.subgroups {
        include_str!("../../../shaders/gather_subgroup.wgsl")
    } else {
        include_str!("../../../shaders/gather_plain.wgsl")
    };
    for fragment in [
        variant.multiply.source(),
        include_str!("../../../shaders/philox.wgsl"),
        include_str!("../../../shaders/bounded.wgsl"),
        include_str!("../../../shaders/bindings.wgsl"),
        include_str!("../../../shaders/arrivals.wgsl"),
        cells,
        include_str!("../../../shaders/bins.wgsl"),
    ]
    .iter()
    .chain(kernel.sources)
    .chain(&[gather, include_str!("../../../shaders/tally.wgsl"), entry])
    {
        source.push_str(fragment);
    }
    source
}

/// The test kernel of the random functions.
#[must_use]
pub fn known_answers(packing: &Packing, multiply: Multiply) -> String {
    [
        &random_constants(packing),
        multiply.source(),
        include_str!("../../../shaders/philox.wgsl"),
        include_str!("../../../shaders/bounded.wgsl"),
        include_str!("../../../shaders/known_answers.wgsl"),
    ]
    .concat()
}
