//! One chunk: replicas whose loads are on the device at the same time, until the first of them are finished: all together,
//! unless some were begun before.

use super::cells::Cells;
use super::compose::{self, Layout, Unit};
use super::device::Device;
use super::plan::{Form, MAX_DIMENSION, Plan};
use super::ramp::Ramp;
use super::records::{Run, Seen, State, join_words};
use super::{Keeping, next_round, rounds_of};
use crate::backend::segments::Left;
use crate::backend::{BackendError, Begun, Control, Job, Partial, check_conservation, memory};
use crate::process::Kernel;
use crate::rng::key_of;
use crate::stats::{Flow, Histogram, Record, Tally};
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use wgpu::BufferUsages;

/// Balls, or bins where these are more, of the first submission: little enough for any device.
const FIRST_WORK: f64 = 4e6;
/// Submissions in flight: one runs while the other is read.
const IN_FLIGHT: usize = 2;

/// The pipelines of one composed shader.
pub(super) struct Pipelines {
    source: String,
    bindings: wgpu::BindGroupLayout,
    /// `advance`, or `open_rounds`, `throw_balls`, `serve_bins`, `close_rounds`.
    entries: Vec<wgpu::ComputePipeline>,
}

impl Pipelines {
    /// Compiles `source` for `layout`.
    pub(super) fn new(device: &Device, source: String, layout: Layout, checked: bool) -> Result<Self, BackendError> {
        let entry_points: &[&str] = match layout {
            Layout::Workgroup | Layout::Storage => &["advance"],
            Layout::Grid => &["open_rounds", "throw_balls", "serve_bins", "close_rounds"],
        };
        let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
        let kinds = [wgpu::BufferBindingType::Uniform, storage(true), storage(false), storage(false), storage(false)];
        let entries: Vec<_> = kinds.into_iter().chain([storage(false); 2]).zip(0..).map(binding).collect();
        let (bindings, entries) = device.create("the simulation's pipelines", |device| {
            let module = shader_module(device, &source, checked);
            let descriptor = wgpu::BindGroupLayoutDescriptor { label: Some("chunk"), entries: &entries };
            let bindings = device.create_bind_group_layout(&descriptor);
            let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some("chunk"),
                bind_group_layouts: &[Some(&bindings)],
                immediate_size: 0,
            });
            let pipeline = |entry: &&str| pipeline(device, &module, Some(&layout), entry);
            (bindings, entry_points.iter().map(pipeline).collect())
        })?;
        Ok(Self { source, bindings, entries })
    }

    /// Whether these are the pipelines of `source`.
    pub(super) fn are_of(&self, source: &str) -> bool {
        self.source == source
    }
}

fn binding((ty, binding): (wgpu::BufferBindingType, u32)) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}

/// Compiles a shader; with all of wgpu's run-time checks if `checked`.
pub(super) fn shader_module(device: &wgpu::Device, source: &str, checked: bool) -> wgpu::ShaderModule {
    let descriptor =
        wgpu::ShaderModuleDescriptor { label: Some("leakybins"), source: wgpu::ShaderSource::Wgsl(source.into()) };
    if checked {
        return device.create_shader_module(descriptor);
    }
    let checks = wgpu::ShaderRuntimeChecks {
        force_loop_bounding: false,
        int_div_checks: false,
        ..wgpu::ShaderRuntimeChecks::checked()
    };
    // SAFETY: bounds checks stay on. Every loop of the shaders ends: each counts a private variable up to a bound that
    // is fixed before the loop (run.rounds, a constant, the number of balls), halves an interval of the threshold
    // table, or counts at most MAX_ATTEMPTS attempts for each of four words; and every divisor is a positive constant, or run.every or run.loads_every, which the host keeps positive.
    // tests/parity.rs runs the checked form too.
    unsafe { device.create_shader_module_trusted(descriptor, checks) }
}

/// A pipeline for `entry`. Workgroup memory is written by the shaders before it is read.
pub(super) fn pipeline(
    device: &wgpu::Device,
    module: &wgpu::ShaderModule,
    layout: Option<&wgpu::PipelineLayout>,
    entry: &str,
) -> wgpu::ComputePipeline {
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(entry),
        layout,
        module,
        entry_point: Some(entry),
        compilation_options: wgpu::PipelineCompilationOptions {
            zero_initialize_workgroup_memory: false,
            ..Default::default()
        },
        cache: None,
    })
}

/// How a chunk ended.
pub(super) enum Ended {
    /// Those that were ahead of all others are finished, which are all where none was.
    Finished(Box<Shown>),
    /// A value did not fit the form.
    Outgrown(Form),
}

/// What a chunk has shown by the end of a round.
pub(super) struct Shown {
    /// Its part of the block.
    pub(super) partial: Partial,
    /// The loads of finished replicas, where they are wanted.
    pub(super) loads: Vec<u32>,
}

/// A submission on its way.
struct Flight {
    rounds: u64,
    staging: usize,
    begun: Instant,
    submission: wgpu::SubmissionIndex,
    mapped: Receiver<Result<(), wgpu::BufferAsyncError>>,
}

/// The buffers of a chunk and how to drive them.
pub(super) struct Chunk<'a> {
    device: &'a Device,
    pipelines: &'a Pipelines,
    job: &'a Job<'a>,
    plan: Plan,
    form: Form,
    /// The replicas, each as it was left.
    left: &'a [Left],
    /// The least of their next rounds.
    first_round: u64,
    /// Rounds until the first replicas are finished.
    rounds: u64,
    cells: Cells,
    run: wgpu::Buffer,
    loads: wgpu::Buffer,
    seen: wgpu::Buffer,
    counts: wgpu::Buffer,
    peaks: wgpu::Buffer,
    group: wgpu::BindGroup,
    staging: Vec<wgpu::Buffer>,
    /// Balls in the beginning: of all replicas, and of those that were not begun.
    balls: [u128; 2],
    /// What is counted over all replicas since then: the loads of the bins, and waiting times.
    tally: Tally,
    /// All else, one for each replica.
    records: Vec<Record>,
}

impl<'a> Chunk<'a> {
    /// Fills the device with the states of `left`; a form where `form` does not hold them.
    pub(super) fn new(
        device: &'a Device,
        pipelines: &'a Pipelines,
        job: &'a Job<'a>,
        plan: Plan,
        form: Form,
        left: &'a [Left],
    ) -> Result<Result<Self, Form>, BackendError> {
        let kernel = job.process.kernel();
        let count = left.len() as u64;
        let (cells, (first_round, last_round)) = (Cells::new(&kernel, form), rounds_of(left));
        let words = plan.variant.cells(&kernel);
        require_memory(device, kernel.packing.bins, words + u64::from(form.levels), count)?;
        let rw = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        // Buffers are zero when made, which is the form of empty bins.
        let loads = device.buffer("the loads", 4 * words * count, rw)?;
        let states = device.buffer("the states", count * size_of::<State>() as u64, rw)?;
        let mut balls = [0; 2];
        if plan.variant.staggered || last_round > 0 || !kernel.starts_empty {
            let (start, bins) = (states_of(job, &kernel, left), kernel.packing.bins as usize);
            let states_of_start = || start.par_chunks(kernel.words());
            let max = states_of_start().flat_map(|state| &state[..bins]).copied().max().unwrap_or(0);
            if !form.holds(max) {
                return Ok(Err(form.grow(max)?));
            }
            let record = |(state, replica): (&[u32], &Left)| {
                let total: u64 = state.iter().map(|&balls| u64::from(balls)).sum();
                let (loads, pool) = state.split_at(bins);
                let occupied = loads.iter().filter(|&&load| load > 0).count() as u32;
                let oldest = pool.iter().rposition(|&balls| balls > 0).map_or(0, |i| i as u32 + 1);
                State {
                    total_low: total as u32,
                    total_high: (total >> 32) as u32,
                    occupied,
                    oldest,
                    replica: replica.0 as u32,
                    ahead: (next_round(replica) - first_round) as u32,
                    ..State::default()
                }
            };
            let records: Vec<State> = states_of_start().zip(left).map(record).collect();
            for (state, (_, begun)) in records.iter().zip(left) {
                let total = u128::from(join_words(state.total_low, state.total_high));
                balls[0] += total;
                balls[1] += if begun.is_none() { total } else { 0 };
            }
            device.queue.write_buffer(&states, 0, bytemuck::cast_slice(&records));
            device.queue.write_buffer(&loads, 0, bytemuck::cast_slice(&cells.of(&start)));
        }
        let thresholds = table(&kernel);
        let run =
            device.buffer("the parameters", size_of::<Run>() as u64, BufferUsages::UNIFORM | BufferUsages::COPY_DST)?;
        let table = device.buffer(
            "the arrival table",
            size_of_val(&*thresholds) as u64,
            BufferUsages::STORAGE | BufferUsages::COPY_DST,
        )?;
        device.queue.write_buffer(&table, 0, bytemuck::cast_slice(&thresholds));
        let seen = device.buffer("the tallies", count * size_of::<Seen>() as u64, rw)?;
        let counts = device.buffer("the histograms", 4 * plan.variant.counters(&kernel), rw)?;
        let peaks = device.buffer("the max loads", 4 * u64::from(form.levels) * count, rw)?;
        let bytes = seen.size() + counts.size();
        let read = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
        let staging = (0..IN_FLIGHT).map(|_| device.buffer("a read-back", bytes, read)).collect::<Result<_, _>>()?;
        let buffers = [&run, &table, &loads, &states, &seen, &counts, &peaks];
        let entries: Vec<_> = (0..)
            .zip(buffers)
            .map(|(binding, b)| wgpu::BindGroupEntry { binding, resource: b.as_entire_binding() })
            .collect();
        let descriptor =
            wgpu::BindGroupDescriptor { label: Some("chunk"), layout: &pipelines.bindings, entries: &entries };
        let group = device.create("the bindings", |device| device.create_bind_group(&descriptor))?;
        let records = vec![Record::default(); count as usize];
        Ok(Ok(Self {
            device,
            pipelines,
            job,
            plan,
            form,
            left,
            first_round,
            rounds: job.schedule.rounds - last_round,
            cells,
            run,
            loads,
            seen,
            counts,
            peaks,
            group,
            staging,
            balls,
            tally: Tally::default(),
            records,
        }))
    }

    /// Runs until the first replicas are finished. `submitted` is called after each submission.
    pub(super) fn run(
        mut self,
        budget: Duration,
        control: &Control,
        keeping: &Keeping<'_>,
        submitted: &mut dyn FnMut(&Device),
    ) -> Result<Ended, BackendError> {
        let (total, replicas) = (self.rounds, self.left.len() as u64);
        let first = FIRST_WORK / (self.job.process.round_work() * replicas as f64);
        let mut ramp = Ramp::new(first as u64, self.plan.most_rounds, budget);
        let mut flights = VecDeque::new();
        let (mut round, mut submissions, mut reported) = (0, 0, 0);
        // Whether the device comes to rest, so that the block can be kept.
        let mut pausing = false;
        // Rounds that may have been counted in the max loads since these were read.
        let mut counted = 0;
        let mut idle_since = Instant::now();
        loop {
            while !pausing && round < total && flights.len() < IN_FLIGHT {
                let rounds = ramp.rounds().min(total - round);
                if counted + rounds > self.plan.most_counted {
                    if !flights.is_empty() {
                        break;
                    }
                    self.read_peaks()?;
                    counted = 0;
                }
                counted += rounds;
                flights.push_back(self.submit(round, rounds, submissions % IN_FLIGHT));
                submitted(self.device);
                submissions += 1;
                round += rounds;
            }
            let Some(flight) = flights.pop_front() else {
                let shown = match self.show(round)? {
                    Ok(shown) => shown,
                    Err(larger) => {
                        control.retract(reported);
                        return Ok(Ended::Outgrown(larger));
                    }
                };
                if round == total {
                    return Ok(Ended::Finished(Box::new(shown)));
                }
                keeping.keep(shown.partial);
                if control.is_cancelled() {
                    return Err(BackendError::Cancelled);
                }
                (pausing, counted, idle_since) = (false, 0, Instant::now());
                continue;
            };
            if control.is_cancelled() && !keeping.is_due() {
                return Err(BackendError::Cancelled);
            }
            let fits = self.collect(&flight)?;
            let now = Instant::now();
            ramp.learn(flight.rounds, now - flight.begun.max(idle_since));
            idle_since = now;
            control.advance(flight.rounds * replicas);
            reported += flight.rounds * replicas;
            if !fits {
                control.retract(reported);
                return Ok(Ended::Outgrown(self.form.grow(0)?));
            }
            pausing = keeping.is_due();
        }
    }

    /// What the chunk has shown in its first `rounds` rounds, which are all that were submitted; a form where this one has lost
    /// balls.
    fn show(&mut self, rounds: u64) -> Result<Result<Shown, Form>, BackendError> {
        self.read_peaks()?;
        let bytes = self.read("the read-back of the loads", &self.loads, false)?;
        let balls = self.cells.balls(&bytes);
        let mut flow = Flow::default();
        self.records.iter().for_each(|record| flow.add(record.flow));
        let [initial_balls, fresh_balls] = self.balls;
        let since = Tally { initial_balls, final_balls: balls.iter().sum(), flow, ..Tally::default() };
        if !self.form.wide && !since.conserves_balls() {
            // A narrow load or its joins overflowed, which always loses balls; see shaders/bins.wgsl.
            return Ok(Err(self.form.widen()));
        }
        check_conservation(&since, &(self.left[0].0..self.left[self.left.len() - 1].0 + 1))?;
        let mut partial = Partial { tally: self.tally.clone(), left: Vec::new() };
        partial.tally.initial_balls = fresh_balls;
        for (slot, (replica, balls)) in self.left.iter().zip(balls).enumerate() {
            let (number, begun) = replica;
            let (round, record) = (next_round(replica) + rounds, whole(begun.as_deref(), &self.records[slot]));
            if round == self.job.schedule.rounds {
                partial.tally.add(&record);
                partial.tally.final_balls += balls;
            } else {
                let (state, record) = (self.cells.state(&bytes, slot), record.into_owned());
                partial.left.push((*number, Some(Box::new(Begun { round, state, record }))));
            }
        }
        let loads = if self.job.keep_loads { self.cells.loads(&bytes) } else { Vec::new() };
        Ok(Ok(Shown { partial, loads }))
    }

    /// Submits `rounds` rounds, from the chunk's round `round` on.
    fn submit(&self, round: u64, rounds: u64, staging: usize) -> Flight {
        let Device { device, queue, .. } = self.device;
        let key = key_of(self.job.seed);
        let (round, schedule) = (self.first_round + round, &self.job.schedule);
        let (first_sample, every) = sampled(schedule.burn_in, schedule.every, round);
        let (first_loads, loads_every) = match schedule.loads_every {
            0 => (u32::MAX, 1),
            step => sampled(schedule.burn_in, schedule.every.saturating_mul(step), round),
        };
        let run = Run {
            key_low: key[0],
            key_high: key[1],
            round_low: round as u32,
            round_high: (round >> 32) as u32,
            first_replica: self.left[0].0 as u32,
            replicas: self.left.len() as u32,
            rounds: rounds as u32,
            first_sample,
            every,
            first_loads,
            loads_every,
        };
        queue.write_buffer(&self.run, 0, bytemuck::bytes_of(&run));
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.clear_buffer(&self.seen, 0, None);
        encoder.clear_buffer(&self.counts, 0, None);
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_bind_group(0, &self.group, &[]);
            self.dispatch(&mut pass, rounds);
        }
        let target = &self.staging[staging];
        encoder.copy_buffer_to_buffer(&self.seen, 0, target, 0, self.seen.size());
        encoder.copy_buffer_to_buffer(&self.counts, 0, target, self.seen.size(), self.counts.size());
        let mapped = map_on_submit(&encoder, target);
        let begun = Instant::now();
        let submission = queue.submit([encoder.finish()]);
        Flight { rounds, staging, begun, submission, mapped }
    }

    fn dispatch(&self, pass: &mut wgpu::ComputePass<'_>, rounds: u64) {
        let kernel = self.job.process.kernel();
        let replicas = self.left.len() as u64;
        let threads = u64::from(self.plan.variant.workgroup);
        let mut start = |pipeline: &wgpu::ComputePipeline, groups: u64| {
            pass.set_pipeline(pipeline);
            let (x, y) = spread(groups);
            pass.dispatch_workgroups(x, y, 1);
        };
        match &*self.pipelines.entries {
            [advance] => start(advance, replicas),
            [open, throw, serve, close] => {
                let groups = |items: u32| replicas * u64::from(items).div_ceil(threads).max(1);
                let units = Unit::new(&kernel.packing).count(kernel.most_balls());
                start(open, replicas.div_ceil(threads));
                for _ in 0..rounds {
                    start(throw, groups(units));
                    start(serve, groups(kernel.packing.bins));
                    start(close, replicas.div_ceil(threads));
                }
            }
            other => unreachable!("a layout has one or four entry points, not {}", other.len()),
        }
    }

    /// Waits for a submission and adds what it saw; false where a value did not fit the form.
    fn collect(&mut self, flight: &Flight) -> Result<bool, BackendError> {
        let staging = &self.staging[flight.staging];
        let (seen, counts) = {
            let bytes = mapped_bytes(self.device, staging, &flight.submission, &flight.mapped)?;
            let (seen, counts) = bytes.split_at(self.seen.size() as usize);
            (bytemuck::pod_collect_to_vec::<u8, Seen>(seen), bytemuck::pod_collect_to_vec::<u8, u32>(counts))
        };
        staging.unmap();
        for (record, seen) in self.records.iter_mut().zip(seen) {
            if u64::from(seen.rounds) != flight.rounds {
                let message = format!("the GPU did {} rounds instead of {}", seen.rounds, flight.rounds);
                return Err(BackendError::Device(message));
            }
            record.flow.arrived += u128::from(join_words(seen.arrived_low, seen.arrived_high));
            record.flow.departed += u128::from(join_words(seen.departed_low, seen.departed_high));
            record.total_load.merge(&seen.total_load.moments(seen.samples));
            record.empty_bins.merge(&seen.empty_bins.moments(seen.samples));
            if self.job.process.kernel().pool.is_some() {
                record.further.numbers(0, &seen.elsewhere.moments(seen.samples));
            }
        }
        let (loads, rest) = counts.split_at(self.form.levels as usize);
        let (beyond, waits) = rest.split_first().expect("after the loads comes what is beyond all levels");
        add_counts(&mut self.tally.load_per_bin, loads);
        if waits.iter().any(|&count| count > 0) {
            let histograms = &mut self.tally.further.histograms;
            histograms.resize(histograms.len().max(1), Histogram::default());
            add_counts(&mut histograms[0], waits);
        }
        Ok(*beyond == 0)
    }

    /// Adds the counts of the max loads to the records, and clears them.
    fn read_peaks(&mut self) -> Result<(), BackendError> {
        let bytes = self.read("the read-back of the max loads", &self.peaks, true)?;
        let levels = self.form.levels as usize;
        self.records.par_iter_mut().zip(bytes.par_chunks_exact(4 * levels)).for_each(|(record, counts)| {
            // Not aligned to a word on every platform.
            add_counts(&mut record.max_load, &bytemuck::pod_collect_to_vec::<u8, u32>(counts));
        });
        Ok(())
    }

    /// The bytes of `buffer`, which is cleared behind them if that is asked for.
    fn read(&self, what: &'static str, buffer: &wgpu::Buffer, clear: bool) -> Result<wgpu::BufferView, BackendError> {
        let read = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
        let staging = self.device.buffer(what, buffer.size(), read)?;
        let Device { device, queue, .. } = self.device;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
        if clear {
            encoder.clear_buffer(buffer, 0, None);
        }
        let mapped = map_on_submit(&encoder, &staging);
        let submission = queue.submit([encoder.finish()]);
        mapped_bytes(self.device, &staging, &submission, &mapped)
    }
}

/// What a replica has shown in the rounds before the chunk and in those `since`.
fn whole<'r>(begun: Option<&Begun>, since: &'r Record) -> Cow<'r, Record> {
    let Some(begun) = begun else { return Cow::Borrowed(since) };
    let mut record = begun.record.clone();
    record.merge(since);
    Cow::Owned(record)
}

/// Adds `counts[value]` for each value.
fn add_counts(histogram: &mut Histogram, counts: &[u32]) {
    for (value, &count) in (0..).zip(counts) {
        histogram.add(value, u128::from(count));
    }
}

/// Refuses a chunk that the host has no room for.
fn require_memory(device: &Device, bins: u32, words: u64, replicas: u64) -> Result<(), BackendError> {
    // The words of loads and counters, their way through wgpu's staging, and the loads themselves; a software adapter's memory is the host's.
    let copies = if device.is_software() { 4 } else { 3 };
    let what = format!("running {replicas} x {bins} bins at once");
    memory::require(what, copies * 4 * words * replicas, "use fewer bins, or --backend cpu")
}

/// The states of replicas that are begun or begin, replica-major.
fn states_of(job: &Job<'_>, kernel: &Kernel<'_>, left: &[Left]) -> Vec<u32> {
    let words = kernel.words();
    let mut states = vec![0; words * left.len()];
    states.par_chunks_mut(words).zip(left).for_each(|(state, (replica, begun))| match begun {
        Some(begun) => state.iter_mut().zip(&begun.state).for_each(|(balls, &kept)| *balls = kept as u32),
        None => job.process.start(job.seed, *replica as u32, state),
    });
    states
}

/// The arrival thresholds as (low, high) words; one unused entry where there is none, since a buffer cannot be empty.
fn table(kernel: &Kernel<'_>) -> Vec<[u32; 2]> {
    let mut words: Vec<[u32; 2]> = kernel.arrivals.as_slice().iter().map(|&t| [t as u32, (t >> 32) as u32]).collect();
    if words.is_empty() {
        words.push([0; 2]);
    }
    words
}

/// Of the sampled rounds `burn_in + stride - 1, burn_in + 2 stride - 1, ..`: the first from `round` on, counted from
/// there, and the stride, each as far as 32 bits go.
fn sampled(burn_in: u64, stride: u64, round: u64) -> (u32, u32) {
    let steps = (round + 1).saturating_sub(burn_in).div_ceil(stride).max(1);
    let first = burn_in.saturating_add(steps.saturating_mul(stride)) - 1 - round;
    let narrow = |x: u64| u32::try_from(x).unwrap_or(u32::MAX);
    (narrow(first), narrow(stride))
}

/// Workgroups as a two-dimensional dispatch; the shader ignores those beyond `groups`.
fn spread(groups: u64) -> (u32, u32) {
    let rows = groups.div_ceil(MAX_DIMENSION).max(1);
    (groups.div_ceil(rows) as u32, rows as u32)
}

/// Maps `buffer` for reading as soon as the commands of `encoder` are submitted and done.
pub(super) fn map_on_submit(
    encoder: &wgpu::CommandEncoder,
    buffer: &wgpu::Buffer,
) -> Receiver<Result<(), wgpu::BufferAsyncError>> {
    let (sender, receiver) = channel();
    encoder.map_buffer_on_submit(buffer, wgpu::MapMode::Read, .., move |result| {
        // The receiver is gone only where the run has ended early.
        let _ = sender.send(result);
    });
    receiver
}

/// Waits for `submission`, then gives the bytes of its mapped buffer.
pub(super) fn mapped_bytes(
    device: &Device,
    buffer: &wgpu::Buffer,
    submission: &wgpu::SubmissionIndex,
    mapped: &Receiver<Result<(), wgpu::BufferAsyncError>>,
) -> Result<wgpu::BufferView, BackendError> {
    device.wait(submission)?;
    let unreadable = |why: String| BackendError::Device(format!("the GPU's results cannot be read ({why})"));
    mapped.recv().map_err(|e| unreadable(e.to_string()))?.map_err(|e| unreadable(e.to_string()))?;
    buffer.get_mapped_range(..).map_err(|e| unreadable(e.to_string()))
}

/// The source of a chunk's shader.
pub(super) fn source(kernel: &Kernel<'_>, plan: &Plan) -> String {
    compose::simulation(kernel, &plan.variant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Measure;
    use crate::run::Schedule;

    #[test]
    fn sampled_rounds_are_those_of_the_schedule() {
        for (burn_in, every) in [(0, 1), (5, 4), (3, 1), (0, 7), (10, 100)] {
            let schedule = Schedule { rounds: 64, burn_in, every, loads_every: 1, measure: Measure::Post };
            for round in 0..64 {
                let (first, stride) = sampled(burn_in, every, round);
                for k in 0..64 - round {
                    let on_device = k >= u64::from(first) && (k - u64::from(first)) % u64::from(stride) == 0;
                    assert_eq!(on_device, schedule.samples(round + k), "{burn_in} {every} {round} {k}");
                }
            }
        }
        assert_eq!(sampled(1 << 47, 1 << 40, 0), (u32::MAX, u32::MAX));
    }

    #[test]
    fn dispatches_cover_all_groups_within_the_limit() {
        for groups in [0, 1, 65_535, 65_536, 1_000_000, 65_535 * 65_535] {
            let (x, y) = spread(groups);
            assert!(u64::from(x) * u64::from(y) >= groups && u64::from(x.max(y)) <= MAX_DIMENSION, "{groups}");
        }
    }
}
