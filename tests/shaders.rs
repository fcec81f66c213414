//! The shaders without a GPU: every composition is valid and translates to every backend's language, and the structs
//! that host and device share have the same layout.

use leakybins::backend::gpu::compose::{self, Layout, Multiply, Variant};
use leakybins::backend::gpu::records::{MomentWords, Run, Seen, State};
use leakybins::process::leaky::{Leaky, Parameters};
use leakybins::process::{Measure, Process, ProcessSpec};
use leakybins::rng::bounded::Packing;
use naga::back::{hlsl, msl, spv};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use std::mem::offset_of;

fn parse(source: &str) -> (naga::Module, ModuleInfo) {
    let module = naga::front::wgsl::parse_str(source).unwrap_or_else(|e| panic!("{}", e.emit_to_string(source)));
    let capabilities = Capabilities::SHADER_INT64 | Capabilities::SUBGROUP | Capabilities::SUBGROUP_BARRIER;
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    validator.subgroup_stages(naga::valid::ShaderStages::COMPUTE);
    validator.subgroup_operations(naga::valid::SubgroupOperationSet::all());
    let info = validator.validate(&module).unwrap_or_else(|e| panic!("{}", e.emit_to_string(source)));
    (module, info)
}

fn translate(module: &naga::Module, info: &ModuleInfo) {
    spv::write_vec(module, info, &spv::Options { lang_version: (1, 3), ..Default::default() }, None).expect("SPIR-V");
    let options = msl::Options { lang_version: (2, 4), fake_missing_bindings: true, ..Default::default() };
    msl::write_string(module, info, &options, &msl::PipelineOptions::default()).expect("MSL");
    let options =
        hlsl::Options { shader_model: hlsl::ShaderModel::V6_0, fake_missing_bindings: true, ..Default::default() };
    let mut text = String::new();
    hlsl::Writer::new(&mut text, &options, &hlsl::PipelineOptions::default()).write(module, info, None).expect("HLSL");
}

fn leaky(n: u64, d: u64) -> Leaky {
    Leaky::new(&Parameters { n, d, ..Parameters::default() }).expect("valid parameters")
}

fn variants() -> impl Iterator<Item = Variant> {
    Layout::ALL.into_iter().flat_map(|layout| {
        Multiply::ALL.into_iter().flat_map(move |multiply| {
            [false, true].into_iter().flat_map(move |subgroups| {
                [false, true].map(move |wide| Variant {
                    layout,
                    multiply,
                    subgroups,
                    wide,
                    staggered: wide == subgroups,
                    workgroup: 128,
                    levels: 1 << 16,
                    measure: if wide { Measure::Pre } else { Measure::Post },
                })
            })
        })
    })
}

#[test]
fn every_composition_is_valid_and_translates() {
    for (n, d) in [(1, 1), (1000, 1), (1024, 2), (1000, 3), (1024, 5), (100_000, 2), (3_000_000, 256)] {
        let process = leaky(n, d);
        for variant in variants() {
            let (module, info) = parse(&compose::simulation(&process.kernel(), &variant));
            translate(&module, &info);
        }
    }
    let capped = ProcessSpec::Capped(Default::default()).build().expect("valid parameters");
    for variant in variants().filter(|variant| variant.layout != Layout::Grid) {
        let (module, info) = parse(&compose::simulation(&capped.kernel(), &variant));
        translate(&module, &info);
    }
    for multiply in Multiply::ALL {
        let (module, info) = parse(&compose::known_answers(&Packing::new((1 << 31) + 1, 3), multiply));
        translate(&module, &info);
    }
}

#[test]
fn entry_points_are_those_of_the_layout() {
    let process = leaky(1024, 2);
    for variant in variants() {
        let (module, _) = parse(&compose::simulation(&process.kernel(), &variant));
        let names: Vec<&str> = module.entry_points.iter().map(|e| &*e.name).collect();
        match variant.layout {
            Layout::Grid => assert_eq!(names, ["open_rounds", "throw_balls", "serve_bins", "close_rounds"]),
            Layout::Workgroup | Layout::Storage => assert_eq!(names, ["advance"]),
        }
        assert!(module.entry_points.iter().all(|e| e.workgroup_size == [128, 1, 1]));
    }
}

/// Names, offsets and span of a struct of the shader.
fn layout_of(module: &naga::Module, name: &str) -> (Vec<(String, usize)>, usize) {
    let (_, ty) = module.types.iter().find(|(_, t)| t.name.as_deref() == Some(name)).expect("the struct is there");
    let naga::TypeInner::Struct { members, span } = &ty.inner else { panic!("{name} is no struct") };
    let offsets = members.iter().map(|m| (m.name.clone().expect("a name"), m.offset as usize)).collect();
    (offsets, *span as usize)
}

macro_rules! same_layout {
    ($module:expr, $shader:literal, $host:ty { $($field:ident),* $(,)? }) => {
        let host: Vec<(String, usize)> = vec![$((stringify!($field).to_owned(), offset_of!($host, $field))),*];
        assert_eq!(layout_of($module, $shader), (host, size_of::<$host>()), $shader);
    };
}

#[test]
fn host_and_device_agree_on_the_structs() {
    let process = leaky(1024, 2);
    let variant = variants().next().expect("there are variants");
    let (module, _) = parse(&compose::simulation(&process.kernel(), &variant));
    same_layout!(
        &module,
        "Run",
        Run {
            key_low,
            key_high,
            round_low,
            round_high,
            first_replica,
            replicas,
            rounds,
            first_sample,
            every,
            first_loads,
            loads_every,
        }
    );
    same_layout!(
        &module,
        "State",
        State { total_low, total_high, occupied, oldest, balls, flags, departed, empty, highest, replica, ahead }
    );
    same_layout!(
        &module,
        "Moments",
        MomentWords {
            sum_0,
            sum_1,
            sum_2,
            squares_0,
            squares_1,
            squares_2,
            squares_3,
            squares_4,
            largest_low,
            largest_high,
            complement_low,
            complement_high,
        }
    );
    same_layout!(
        &module,
        "Seen",
        Seen {
            rounds,
            samples,
            arrived_low,
            arrived_high,
            departed_low,
            departed_high,
            total_load,
            empty_bins,
            elsewhere
        }
    );
}

#[test]
fn no_fragment_declares_a_generated_constant() {
    let process = leaky(1024, 2);
    let variant = variants().next().expect("there are variants");
    let source = compose::simulation(&process.kernel(), &variant);
    let generated = source.lines().take_while(|line| line.starts_with("const") || line.starts_with("// Generated"));
    let names: Vec<String> =
        generated.filter_map(|l| Some(l.strip_prefix("const ")?.split([' ', ':']).next()?.to_owned())).collect();
    assert!(names.len() > 15, "{names:?}");
    for entry in std::fs::read_dir("shaders").expect("the folder is there") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("a text file");
        for name in &names {
            for word in ["const", "override", "let", "var"] {
                let declares = |end| text.contains(&format!("{word} {name}{end}"));
                assert!(![' ', ':', '='].into_iter().any(declares), "{} declares {name}", path.display());
            }
        }
    }
}
