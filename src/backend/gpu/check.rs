//! Whether an adapter computes rightly: its random functions alone, and short runs against the reference.

use super::Gpu;
use super::chunk::{map_on_submit, mapped_bytes, pipeline, shader_module};
use super::compose::{self, Multiply};
use super::device::Device;
use crate::backend::{Backend, BackendError, Control, Host, Job};
use crate::process::leaky::{Arrivals, Parameters};
use crate::process::start::Start;
use crate::process::{Measure, ProcessSpec};
use crate::rng::bounded::Packing;
use crate::rng::{Domain, Draws};
use crate::run::Schedule;
use wgpu::BufferUsages;

/// Runs the entry point `entry` of the test kernel on `questions`; one answer for each of `answers`.
fn ask(
    device: &Device,
    source: &str,
    entry: &str,
    questions: &[[u32; 4]],
    answers: u32,
) -> Result<Vec<[u32; 4]>, BackendError> {
    let bytes = 16 * u64::from(answers);
    let asked = device.buffer(
        "the questions",
        size_of_val(questions) as u64,
        BufferUsages::STORAGE | BufferUsages::COPY_DST,
    )?;
    let answered = device.buffer("the answers", bytes, BufferUsages::STORAGE | BufferUsages::COPY_SRC)?;
    let staging = device.buffer("a read-back", bytes, BufferUsages::MAP_READ | BufferUsages::COPY_DST)?;
    device.queue.write_buffer(&asked, 0, bytemuck::cast_slice(questions));
    let submission = device.create("the test kernel", |wgpu| {
        let module = shader_module(wgpu, source, false);
        let pipeline = pipeline(wgpu, &module, None, entry);
        let group = wgpu.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("known answers"),
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: asked.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: answered.as_entire_binding() },
            ],
        });
        let mut encoder = wgpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_bind_group(0, &group, &[]);
            pass.set_pipeline(&pipeline);
            pass.dispatch_workgroups(answers.div_ceil(64), 1, 1);
        }
        encoder.copy_buffer_to_buffer(&answered, 0, &staging, 0, bytes);
        let mapped = map_on_submit(&encoder, &staging);
        (device.queue.submit([encoder.finish()]), mapped)
    })?;
    let bytes = mapped_bytes(device, &staging, &submission.0, &submission.1)?;
    Ok(bytemuck::pod_collect_to_vec(&bytes))
}

pub(super) fn philox(
    device: &Device,
    questions: &[([u32; 4], [u32; 2])],
    multiply: Multiply,
) -> Result<Vec<[u32; 4]>, BackendError> {
    let source = compose::known_answers(&Packing::new(1, 1), multiply);
    let words: Vec<[u32; 4]> = questions.iter().flat_map(|&(counter, [a, b])| [counter, [a, b, 0, 0]]).collect();
    ask(device, &source, "blocks", &words, questions.len() as u32)
}

pub(super) fn first_choices(
    device: &Device,
    packing: &Packing,
    draws: &Draws,
    balls: u32,
    multiply: Multiply,
) -> Result<Vec<u32>, BackendError> {
    let source = compose::known_answers(packing, multiply);
    let [low, high] = draws.key();
    let answers = ask(device, &source, "choices", &[draws.counter(Domain::Choices, 0, 0), [low, high, 0, 0]], balls)?;
    Ok(answers.iter().map(|a| a[0]).collect())
}

/// Known answers published with Random123.
const PHILOX_ANSWERS: [([u32; 4], [u32; 2], [u32; 4]); 2] = [
    ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
    (
        [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
        [0xa409_3822, 0x299f_31d0],
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
    ),
];

pub(super) fn self_check(gpu: &mut Gpu) -> Result<(), BackendError> {
    let adapter = gpu.device.summary.to_string();
    let wrong = |what: &str| {
        BackendError::SelfCheck(format!(
            "{adapter} gives other {what} than the reference; update its driver, choose another adapter, or use \
             --backend cpu"
        ))
    };
    let int64 = gpu.device.features.contains(wgpu::Features::SHADER_INT64);
    let multiply = gpu.tuning.multiply.unwrap_or(if int64 { Multiply::Int64 } else { Multiply::Limbs16 });
    let answers = gpu.philox(&PHILOX_ANSWERS.map(|(counter, key, _)| (counter, key)), multiply)?;
    if answers != PHILOX_ANSWERS.map(|(_, _, answer)| answer) {
        return Err(wrong("random words"));
    }
    let parameters = Parameters { n: 1000, lambda: 0.9, d: 3, arrivals: Arrivals::Binomial, start: Start::OneBin(50) };
    let process = ProcessSpec::Leaky(parameters).build().expect("the parameters are in range");
    let schedule = Schedule { rounds: 16, burn_in: 3, every: 2, loads_every: 2, measure: Measure::Post };
    let job = Job { process: &*process, seed: 0x5EED, schedule, keep_loads: true };
    let expected = Host::reference().run(&job, 0..4, &Control::default())?;
    if gpu.run(&job, 0..4, &Control::default())? != expected {
        return Err(wrong("loads or tallies"));
    }
    Ok(())
}
