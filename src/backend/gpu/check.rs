//! Whether an adapter computes rightly: its random functions alone, and short runs against the reference.

use super::Gpu;
use super::chunk::{map_on_submit, mapped_bytes, pipeline, shader_module};
use super::compose::{self, Layout, Multiply};
use super::device::Device;
use crate::backend::{BackendError, agrees_with_reference};
use crate::rng::bounded::Packing;
use crate::rng::philox::PUBLISHED;
use crate::rng::{Domain, Draws};
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
    let answers = gpu.philox(&PUBLISHED.map(|(counter, key, _)| (counter, key)), multiply)?;
    if answers != PUBLISHED.map(|(_, _, answer)| answer) {
        return Err(wrong("random words"));
    }
    // Each layout is a program of its own, and a run may need any of them.
    let given = gpu.tuning.layout;
    let exact = given.map_or(Layout::ALL.to_vec(), |given| vec![given]).into_iter().try_fold(true, |exact, layout| {
        gpu.tuning.layout = Some(layout);
        Ok(exact && agrees_with_reference(gpu)?)
    });
    gpu.tuning.layout = given;
    if exact? { Ok(()) } else { Err(wrong("loads or tallies")) }
}
