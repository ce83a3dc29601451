use thisgpu_build::{Device, Grid, SimConfig};

mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

fn main() -> Result<(), thisgpu_build::Error> {
    let device = Device::simulator(SimConfig::default());
    let numbers: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let x = device.upload(&numbers)?;
    let mut y = device.upload(&vec![1.0f32; 1000])?;

    kernels::saxpy(&device, Grid::for_elems(1000, 256), 2.0, &x, &mut y)?;

    println!("y = {:?} …", &y.to_vec()?[..8]);
    Ok(())
}
