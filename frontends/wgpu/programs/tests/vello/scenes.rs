//! Three scenes of paths in one color each.

use peniko::kurbo::{Affine, BezPath, Cap, Circle, Join, Rect, Stroke};
use peniko::{BlendMode, Color, Compose, Fill, Mix};
use vello_encoding::{DrawBeginClip, Encoding, Transform};

/// Pixels along the edges.
pub const SIZE: [u32; 2] = [400, 300];

fn place(scene: &mut Encoding, transform: Affine) {
    scene.encode_transform(Transform::from_kurbo(&transform));
}

fn color(number: usize) -> Color {
    let step = |factor: usize| (number * factor % 251) as u8;
    Color::from_rgba8(step(37), step(91), step(151), 200)
}

/// A star with so many points, whose lines cross.
fn star(points: usize) -> BezPath {
    let mut path = BezPath::new();
    for n in 0..points {
        let angle = (n * (points / 2)) as f64 * std::f64::consts::TAU / points as f64;
        let point = (60.0 * angle.sin(), -60.0 * angle.cos());
        match n {
            0 => path.move_to(point),
            _ => path.line_to(point),
        }
    }
    path.close_path();
    path
}

/// Shapes one over the other, by both rules.
pub fn fills() -> Encoding {
    let mut scene = Encoding::new();
    for n in 0..12 {
        let (x, y) = (70.0 + 90.0 * (n % 4) as f64, 60.0 + 85.0 * (n / 4) as f64);
        place(
            &mut scene,
            Affine::translate((x, y)) * Affine::rotate(0.3 * n as f64),
        );
        scene.encode_fill_style(if n % 2 == 0 {
            Fill::NonZero
        } else {
            Fill::EvenOdd
        });
        let _ = match n % 3 {
            0 => scene.encode_shape(&star(5 + 2 * (n / 3)), true),
            1 => scene.encode_shape(&Circle::new((0.0, 0.0), 35.0 + n as f64), true),
            _ => scene.encode_shape(&Rect::new(-30.0, -45.0, 40.0, 20.0), true),
        };
        scene.encode_color(color(n));
    }
    scene
}

/// Lines and curves with widths, ends and corners.
pub fn strokes() -> Encoding {
    let mut scene = Encoding::new();
    let ends = [Cap::Butt, Cap::Round, Cap::Square];
    let corners = [Join::Miter, Join::Round, Join::Bevel];
    for n in 0..9 {
        let y = 30.0 * n as f64;
        place(&mut scene, Affine::translate((10.0, y)));
        let stroke = Stroke::new(2.0 + n as f64)
            .with_caps(ends[n % 3])
            .with_join(corners[n / 3]);
        assert!(scene.encode_stroke_style(&stroke));
        let mut path = BezPath::new();
        path.move_to((10.0, 10.0));
        path.line_to((60.0, 40.0));
        path.quad_to((110.0, -30.0), (160.0, 20.0));
        path.curve_to((220.0, 90.0), (240.0, -60.0), (300.0, 30.0));
        path.line_to((350.0, 5.0));
        let _ = scene.encode_shape(&path, false);
        scene.encode_color(color(n));
    }
    scene
}

/// Hundreds of clips, some in others, and layers. No edge is where a tile begins: there the shader of `path_count`
/// leaves out lines that its version for the CPU counts (`<=` and `<` of the bounds).
pub fn clips() -> Encoding {
    let mut scene = Encoding::new();
    scene.encode_fill_style(Fill::NonZero);
    for n in 0..200 {
        let (x, y) = (19.0 * (n % 20) as f64 + 0.37, 28.0 * (n / 20) as f64 + 0.41);
        place(&mut scene, Affine::translate((x, y)));
        let _ = scene.encode_shape(&Circle::new((15.0, 15.0), 12.0), true);
        scene.encode_begin_clip(DrawBeginClip::clip());
        if n % 5 == 0 {
            let _ = scene.encode_shape(&Rect::new(2.0, 2.0, 20.0, 25.0), true);
            let mode = BlendMode::new(Mix::Multiply, Compose::SrcOver);
            scene.encode_begin_clip(DrawBeginClip::new(mode, 0.5));
        }
        let _ = scene.encode_shape(&Rect::new(0.0, 5.0, 30.0, 22.0), true);
        scene.encode_color(color(n));
        if n % 5 == 0 {
            scene.encode_end_clip();
        }
        scene.encode_end_clip();
    }
    scene
}
