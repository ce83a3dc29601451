//! A ray tracer: spheres over a chequered floor, with shadows and reflections.

use core::ops::{Add, Mul, Sub};
use thisgpu_gpu::*;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Vec3(f32, f32, f32);

impl Add for Vec3 {
    type Output = Vec3;
    fn add(self, o: Vec3) -> Vec3 {
        Vec3(self.0 + o.0, self.1 + o.1, self.2 + o.2)
    }
}

impl Sub for Vec3 {
    type Output = Vec3;
    fn sub(self, o: Vec3) -> Vec3 {
        Vec3(self.0 - o.0, self.1 - o.1, self.2 - o.2)
    }
}

impl Mul<f32> for Vec3 {
    type Output = Vec3;
    fn mul(self, by: f32) -> Vec3 {
        Vec3(self.0 * by, self.1 * by, self.2 * by)
    }
}

impl Vec3 {
    fn dot(self, o: Vec3) -> f32 {
        self.0 * o.0 + self.1 * o.1 + self.2 * o.2
    }

    fn unit(self) -> Vec3 {
        self * (1.0 / self.dot(self).sqrt())
    }
}

/// A ball of the scene.
#[derive(Clone, Copy, Element)]
#[repr(C)]
pub struct Sphere {
    centre: [f32; 3],
    radius: f32,
    colour: [f32; 3],
    shine: f32,
}

#[derive(Clone, Copy)]
struct Ray {
    from: Vec3,
    to: Vec3,
}

enum Hit<'a> {
    Nothing,
    Floor(f32),
    Ball(f32, &'a Sphere),
}

fn vector(a: [f32; 3]) -> Vec3 {
    Vec3(a[0], a[1], a[2])
}

fn nearest<'a>(spheres: &'a [Sphere], ray: &Ray) -> Hit<'a> {
    let floor = if ray.to.1 < -1e-4 {
        Some(-ray.from.1 / ray.to.1)
    } else {
        None
    };
    let mut hit = floor.map_or(Hit::Nothing, Hit::Floor);
    for sphere in spheres {
        let off = ray.from - vector(sphere.centre);
        let b = off.dot(ray.to);
        let c = off.dot(off) - sphere.radius * sphere.radius;
        let d = b * b - c;
        if d <= 0.0 {
            continue;
        }
        let t = -b - d.sqrt();
        if t < 1e-3 {
            continue;
        }
        match hit {
            Hit::Floor(best) | Hit::Ball(best, _) if best <= t => {}
            _ => hit = Hit::Ball(t, sphere),
        }
    }
    hit
}

const LIGHT: Vec3 = Vec3(0.6, 0.7, -0.4);

fn shade(spheres: &[Sphere], mut ray: Ray) -> Vec3 {
    let (mut colour, mut weight) = (Vec3(0.0, 0.0, 0.0), 1.0);
    for _bounce in 0..4 {
        let (at, normal, own, shine) = match nearest(spheres, &ray) {
            Hit::Nothing => {
                colour = colour + Vec3(0.3, 0.5, 0.9) * (weight * (0.5 + 0.5 * ray.to.1));
                break;
            }
            Hit::Floor(t) => {
                let at = ray.from + ray.to * t;
                let tile = (at.0.floor() as i32 + at.2.floor() as i32) & 1;
                let own = if tile == 0 {
                    Vec3(0.9, 0.9, 0.9)
                } else {
                    Vec3(0.1, 0.1, 0.1)
                };
                (at, Vec3(0.0, 1.0, 0.0), own, 0.1)
            }
            Hit::Ball(t, ball) => {
                let at = ray.from + ray.to * t;
                (
                    at,
                    (at - vector(ball.centre)).unit(),
                    vector(ball.colour),
                    ball.shine,
                )
            }
        };
        let away = at + normal * 1e-3;
        let light = LIGHT.unit();
        let lit = match nearest(
            spheres,
            &Ray {
                from: away,
                to: light,
            },
        ) {
            Hit::Nothing => normal.dot(light).max(0.0),
            _ => 0.0,
        };
        colour = colour + own * (weight * (1.0 - shine) * (0.2 + 0.8 * lit));
        weight *= shine;
        if weight < 0.01 {
            break;
        }
        ray = Ray {
            from: away,
            to: (ray.to - normal * (2.0 * ray.to.dot(normal))).unit(),
        };
    }
    colour
}

/// The picture, a pixel a thread, as bytes of red, green, blue.
#[kernel]
pub fn picture(spheres: &[Sphere], width: u32, height: u32, mut out: DisjointMut<[u8; 4], Plane>) {
    let index = thread::index2();
    let Some(pixel) = out.get_mut(&index) else {
        return;
    };
    let x = (index.x() as f32 + 0.5) / width as f32 * 2.0 - 1.0;
    let y = 1.0 - (index.y() as f32 + 0.5) / height as f32 * 2.0;
    let ray = Ray {
        from: Vec3(0.0, 1.0, -4.0),
        to: Vec3(x, y * 0.75, 2.0).unit(),
    };
    let colour = shade(spheres, ray);
    let byte = |part: f32| (part.clamp(0.0, 1.0) * 255.0) as u8;
    *pixel = [byte(colour.0), byte(colour.1), byte(colour.2), 255];
}
