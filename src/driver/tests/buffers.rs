//! Typed buffers: parts, casts, copies.

use crate::driver::{Buffer, Device, DeviceError};
use crate::sim::SimConfig;
use std::ops::Bound;

fn device() -> Device {
    Device::simulator(SimConfig::default())
}

#[test]
fn a_slice_is_a_part_of_its_buffer_and_keeps_it() {
    let device = device();
    let numbers: Vec<u32> = (0..100).collect();
    let buffer = device.upload(&numbers).unwrap();
    let slice = buffer.slice(10..20).unwrap();
    assert_eq!((slice.len(), slice.bytes()), (10, 40));
    assert_eq!(slice.address(), buffer.address() + 40);
    slice.write_at(1, &[7, 8]).unwrap();
    assert_eq!(buffer.read_range(9..14).unwrap(), [9, 10, 7, 8, 13]);
    let inner = slice
        .slice((Bound::Excluded(3), Bound::Included(5)))
        .unwrap();
    assert_eq!(inner.to_vec().unwrap(), [14, 15]);
    drop((buffer, slice));
    assert_eq!(device.live_allocations().len(), 1);
    assert_eq!(inner.to_vec().unwrap(), [14, 15]);
    inner.clear().unwrap();
    assert_eq!(inner.to_vec().unwrap(), [0, 0]);
    drop(inner);
    assert_eq!(device.live_allocations().len(), 0);
}

#[test]
fn what_is_outside_is_refused() {
    let device = device();
    let whole = device.upload(&[0u16; 8]).unwrap();
    let part = whole.slice(2..4).unwrap();
    let error = |result: Result<(), DeviceError>| result.unwrap_err().to_string();
    let outside = "3 elements from number 0 on are not inside a buffer of 2";
    assert_eq!(error(part.write_at(0, &[1; 3])), outside);
    assert_eq!(error(part.write(&[1u16; 3])), outside);
    assert_eq!(error(part.read_at(0, &mut [0; 3])), outside);
    assert_eq!(error(part.read_range(..3).map(|_| ())), outside);
    #[expect(clippy::reversed_empty_ranges, reason = "what is tested")]
    let reversed = part.slice(2..1);
    assert!(reversed.is_err());
    assert!(part.slice(3..).is_err());
    assert!(part.slice(u64::MAX..).is_err());
    assert!(part.slice(..=u64::MAX).is_err());
    assert!(part.slice(u64::MAX - 1..u64::MAX).is_err());
    assert!(part.write_at(u64::MAX, &[1]).is_err());
    assert!(part.slice(2..2).unwrap().is_empty());
    assert_eq!(whole.to_vec().unwrap(), [0; 8]);
    assert!(matches!(
        device.allocate_of::<u64>(u64::MAX),
        Err(DeviceError::Driver(_))
    ));
    assert!(matches!(
        device.allocate_of::<()>(5),
        Err(DeviceError::ElementSize { element: 0, .. })
    ));
}

#[test]
fn a_cast_checks_length_and_alignment() {
    let device = device();
    let bytes = device.upload(&[1u8, 0, 0, 0, 2, 0, 0, 0, 3]).unwrap();
    let words: Buffer<u32> = bytes.slice(..8).unwrap().cast().unwrap();
    assert_eq!(words.to_vec().unwrap(), [1, 2]);
    assert!(matches!(
        bytes.cast::<u32>(),
        Err(DeviceError::ElementSize {
            bytes: 9,
            element: 4
        })
    ));
    let odd = bytes.slice(1..9).unwrap();
    assert!(matches!(
        odd.cast::<u32>(),
        Err(DeviceError::ElementAlignment { element: 4, .. })
    ));
    assert_eq!(
        odd.cast::<[u8; 4]>().unwrap().to_vec().unwrap(),
        [[0, 0, 0, 2], [0, 0, 0, 3]]
    );
    assert!(bytes.cast::<()>().is_err());
}

#[test]
fn copies_go_between_buffers_and_devices() {
    let (one, other) = (device(), device());
    let from = one.upload(&[1i32, 2, 3, 4, 5]).unwrap();
    for device in [&one, &other] {
        let to = device.zeros::<i32>(5).unwrap();
        from.copy_to(&to).unwrap();
        assert_eq!(to.to_vec().unwrap(), [1, 2, 3, 4, 5]);
        from.slice(1..3)
            .unwrap()
            .copy_to(&to.slice(3..).unwrap())
            .unwrap();
        assert_eq!(to.to_vec().unwrap(), [1, 2, 3, 2, 3]);
        assert!(matches!(
            from.copy_to(&to.slice(1..).unwrap()),
            Err(DeviceError::CopyLength { from: 5, to: 4 })
        ));
    }
    // Parts of one memory that overlap.
    from.slice(..4)
        .unwrap()
        .copy_to(&from.slice(1..).unwrap())
        .unwrap();
    assert_eq!(from.to_vec().unwrap(), [1, 1, 2, 3, 4]);
}

/// Who frees an address by hand leaves buffers that fail, and nothing else.
#[test]
fn a_buffer_whose_memory_was_freed_fails() {
    let device = device();
    let buffer = device.upload(&[1u8; 16]).unwrap();
    let copy = buffer.clone();
    let pointer = buffer.into_raw();
    assert_eq!(copy.to_vec().unwrap(), [1; 16]);
    device.free(pointer).unwrap();
    assert!(copy.to_vec().is_err());
    assert!(copy.write_at(0, &[1]).is_err());
    drop(copy);
    assert_eq!(device.live_allocations(), []);
}
