//! The stages in their order, and the buffers that they work on.

use crate::scenes::SIZE;
use bytemuck::bytes_of;
use std::cell::RefCell;
use vello_encoding::{
    BumpAllocators, Encoding, RenderConfig, WorkgroupCounts, resolve_solid_paths_only,
};
use vello_shaders::cpu::{self, CpuBinding};
use vello_shaders::{ComputeShader, SHADERS, Shaders};

/// A buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Config,
    Scene,
    Reduced,
    Monoids,
    PathBoxes,
    Bump,
    Lines,
    DrawReduced,
    DrawMonoids,
    InfoBinData,
    Clips,
    ClipBics,
    ClipElements,
    ClipBoxes,
    DrawBoxes,
    BinHeaders,
    Paths,
    Tiles,
    Indirect,
    SegmentCounts,
    Commands,
    Segments,
}

/// How many workgroups a stage has.
pub enum Workgroups {
    Known(fn(&WorkgroupCounts) -> (u32, u32, u32)),
    /// As [`Part::Indirect`] says.
    Indirect,
}

pub struct Stage {
    pub shader: &'static ComputeShader<'static>,
    cpu: fn(u32, &[CpuBinding<'_>]),
    pub workgroups: Workgroups,
    pub parts: &'static [Part],
}

const ALL: &Shaders<'static> = &SHADERS;

macro_rules! stage {
    ($shader:ident, $cpu:ident, $count:ident, [$($part:ident),*]) => {
        Stage {
            shader: &ALL.$shader,
            cpu: cpu::$cpu,
            workgroups: Workgroups::Known(|counts| counts.$count),
            parts: &[$(Part::$part),*],
        }
    };
    ($shader:ident, $cpu:ident, [$($part:ident),*]) => {
        Stage {
            shader: &ALL.$shader,
            cpu: cpu::$cpu,
            workgroups: Workgroups::Indirect,
            parts: &[$(Part::$part),*],
        }
    };
}

/// As Vello runs them.
pub static STAGES: &[Stage] = &[
    stage!(
        pathtag_reduce,
        pathtag_reduce,
        path_reduce,
        [Config, Scene, Reduced]
    ),
    stage!(
        pathtag_scan_small,
        pathtag_scan,
        path_scan,
        [Config, Scene, Reduced, Monoids]
    ),
    stage!(bbox_clear, bbox_clear, bbox_clear, [Config, PathBoxes]),
    stage!(
        flatten,
        flatten,
        flatten,
        [Config, Scene, Monoids, PathBoxes, Bump, Lines]
    ),
    stage!(
        draw_reduce,
        draw_reduce,
        draw_reduce,
        [Config, Scene, DrawReduced]
    ),
    stage!(
        draw_leaf,
        draw_leaf,
        draw_leaf,
        [
            Config,
            Scene,
            DrawReduced,
            PathBoxes,
            DrawMonoids,
            InfoBinData,
            Clips
        ]
    ),
    stage!(
        clip_reduce,
        clip_reduce,
        clip_reduce,
        [Clips, PathBoxes, ClipBics, ClipElements]
    ),
    stage!(
        clip_leaf,
        clip_leaf,
        clip_leaf,
        [
            Config,
            Clips,
            PathBoxes,
            ClipBics,
            ClipElements,
            DrawMonoids,
            ClipBoxes
        ]
    ),
    stage!(
        binning,
        binning,
        binning,
        [
            Config,
            DrawMonoids,
            PathBoxes,
            ClipBoxes,
            DrawBoxes,
            Bump,
            InfoBinData,
            BinHeaders
        ]
    ),
    stage!(
        tile_alloc,
        tile_alloc,
        tile_alloc,
        [Config, Scene, DrawBoxes, Bump, Paths, Tiles]
    ),
    stage!(
        path_count_setup,
        path_count_setup,
        path_count_setup,
        [Bump, Indirect]
    ),
    stage!(
        path_count,
        path_count,
        [Config, Bump, Lines, Paths, Tiles, SegmentCounts]
    ),
    stage!(
        backdrop_dyn,
        backdrop,
        backdrop,
        [Config, Bump, Paths, Tiles]
    ),
    stage!(
        coarse,
        coarse,
        coarse,
        [
            Config,
            Scene,
            DrawMonoids,
            BinHeaders,
            InfoBinData,
            Paths,
            Tiles,
            Bump,
            Commands
        ]
    ),
    stage!(
        path_tiling_setup,
        path_tiling_setup,
        path_tiling_setup,
        [Bump, Indirect, Commands]
    ),
    stage!(
        path_tiling,
        path_tiling,
        [Bump, SegmentCounts, Lines, Paths, Tiles, Segments]
    ),
];

/// All buffers.
pub struct State {
    buffers: Vec<RefCell<Vec<u8>>>,
    pub config: vello_encoding::ConfigUniform,
}

/// What a picture of this size needs of the buffers that are filled in an order of its own, in elements.
const ROOM: u32 = 1 << 14;

impl State {
    /// The buffers before the first stage.
    pub fn new(scene: &Encoding) -> (State, WorkgroupCounts) {
        let mut packed = Vec::new();
        let layout = resolve_solid_paths_only(scene, &mut packed);
        let [width, height] = SIZE;
        let base = peniko::Color::from_rgba8(255, 255, 255, 255);
        let mut render = RenderConfig::new(&layout, width, height, &base);
        let config = &mut render.gpu;
        config.lines_size = ROOM;
        config.binning_size = ROOM;
        config.tiles_size = ROOM;
        config.seg_counts_size = ROOM;
        config.segments_size = ROOM;
        config.ptcl_size = 4 * ROOM;
        let (config, sizes) = (render.gpu, &render.buffer_sizes);
        let zeros = |bytes: u32| vec![0; bytes as usize];
        let buffers = vec![
            bytes_of(&config).to_vec(),
            packed,
            zeros(sizes.path_reduced.size_in_bytes()),
            zeros(sizes.path_monoids.size_in_bytes()),
            zeros(sizes.path_bboxes.size_in_bytes()),
            bytes_of(&BumpAllocators::default()).to_vec(),
            zeros(ROOM * size_of::<vello_encoding::LineSoup>() as u32),
            zeros(sizes.draw_reduced.size_in_bytes()),
            zeros(sizes.draw_monoids.size_in_bytes()),
            zeros(4 * (layout.bin_data_start + ROOM)),
            zeros(sizes.clip_inps.size_in_bytes()),
            zeros(sizes.clip_bics.size_in_bytes()),
            zeros(sizes.clip_els.size_in_bytes()),
            zeros(sizes.clip_bboxes.size_in_bytes()),
            zeros(sizes.draw_bboxes.size_in_bytes()),
            zeros(sizes.bin_headers.size_in_bytes()),
            zeros(sizes.paths.size_in_bytes()),
            zeros(ROOM * size_of::<vello_encoding::Tile>() as u32),
            zeros(sizes.indirect_count.size_in_bytes()),
            zeros(ROOM * size_of::<vello_encoding::SegmentCount>() as u32),
            zeros(4 * ROOM * 4),
            zeros(ROOM * size_of::<vello_encoding::PathSegment>() as u32),
        ];
        let buffers = buffers.into_iter().map(RefCell::new).collect();
        (State { buffers, config }, render.workgroup_counts)
    }

    pub fn get(&self, part: Part) -> &RefCell<Vec<u8>> {
        &self.buffers[part as usize]
    }

    /// The first words of a buffer.
    pub fn words(&self, part: Part, count: usize) -> Vec<u32> {
        bytemuck::cast_slice(&self.get(part).borrow()[..4 * count]).to_vec()
    }

    /// Runs a stage on the CPU.
    pub fn run(&self, stage: &Stage, workgroups: u32) {
        // The CPU's versions of what is dispatched indirectly, and of some others, count for themselves.
        let bindings = stage
            .parts
            .iter()
            .map(|&part| CpuBinding::BufferRW(self.get(part)));
        (stage.cpu)(workgroups, &bindings.collect::<Vec<_>>());
    }
}
