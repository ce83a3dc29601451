//! Vectors and matrices.

use thisgpu_gpu::*;

functions! {
    /// Matrices of nalgebra: an inverse, a decomposition, a rotation.
    fn nalgebra(seed: u64) -> u64 {
        use nalgebra::{Matrix3, Matrix4, UnitQuaternion, Vector3};
        let at = |index: u32| (seed.rotate_left(index * 7) & 0xff) as f64 / 16.0 - 7.0;
        let matrix = Matrix3::from_fn(|row, column| at((3 * row + column) as u32)) + Matrix3::identity() * 0.125;
        let inverse = matrix.try_inverse().unwrap_or_else(Matrix3::zeros);
        let wide = Matrix4::from_fn(|row, column| at((5 * row + column) as u32));
        let determinant = wide.lu().determinant();
        let axis = Vector3::new(at(1), at(2), at(3) + 9.0);
        let turned = UnitQuaternion::from_scaled_axis(axis * 0.1) * (inverse * axis);
        turned.iter().fold(determinant.to_bits(), |sum, x| sum.rotate_left(11) ^ x.to_bits())
    }

    /// Vectors and matrices of glam, which are SSE2 on the host.
    fn glam(seed: u64) -> u64 {
        use glam::{Mat4, Quat, Vec3, Vec4};
        let at = |index: u32| (seed.rotate_left(index * 9) & 0xfff) as f32 / 256.0 - 7.0;
        let (a, b) = (Vec3::new(at(0), at(1), at(2)), Vec3::new(at(3), at(4), at(5)));
        let turn = Quat::from_xyzw(0.5, -0.5, 0.5, 0.5) * a.cross(b);
        let matrix = Mat4::from_cols(a.extend(1.0), b.extend(at(6)), Vec4::new(2.0, 0.0, at(1), 1.0), Vec4::ONE);
        let point = matrix * Vec4::new(at(2), at(7), 1.0, 0.5) + turn.extend(a.dot(b));
        let clamped = point.min(Vec4::splat(3.0)).max(Vec4::splat(-300.0));
        let lanes = [clamped.x, clamped.y, clamped.z, clamped.w, matrix.determinant()];
        lanes.iter().fold(u64::from(a.cmplt(b).bitmask()), |sum, x| sum.rotate_left(13) ^ u64::from(x.to_bits()))
    }

    /// Rotors of ultraviolet.
    fn ultraviolet(seed: u64) -> u64 {
        use ultraviolet::{Bivec3, Mat3, Rotor3, Vec3};
        let at = |index: u32| (seed.rotate_left(index * 9) & 0xfff) as f32 / 256.0 - 7.0;
        let mut point = Vec3::new(at(0), at(1), at(2));
        let rotor = Rotor3::new(at(3), Bivec3::new(at(4), at(5), 0.5));
        rotor.rotate_vec(&mut point);
        let matrix = Mat3::new(point, Vec3::new(1.0, at(6), 0.0), Vec3::new(at(7), 0.5, 2.0));
        let point = matrix.transposed() * point + point.cross(Vec3::unit_z());
        [point.x, point.y, point.z].iter().fold(5, |sum, x| sum * 31 ^ u64::from(x.to_bits()))
    }

    /// Bytes that are seen as other types.
    fn bytemuck(seed: u64) -> u64 {
        #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        struct Pair {
            first: u32,
            second: [u16; 2],
        }
        let words = [seed, !seed, seed.rotate_left(3)];
        let pairs: &[Pair] = bytemuck::cast_slice(&words);
        let halves: &[u16] = bytemuck::cast_slice(pairs);
        let sum = pairs.iter().map(|pair| u64::from(pair.first ^ u32::from(pair.second[1]))).sum::<u64>();
        let odd = bytemuck::try_cast_slice::<u8, u64>(&bytemuck::bytes_of(&words)[..17]).is_err();
        halves.iter().fold(sum, |sum, half| sum.wrapping_mul(31) ^ u64::from(*half)) ^ u64::from(odd)
    }
}
