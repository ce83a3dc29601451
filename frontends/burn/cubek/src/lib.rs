//! The tests of CubeK 0.3.1, the kernels that Burn launches, on the simulator: see `tests/cubek`. Nothing of them is
//! kept here: they are compiled from the sources that cargo has of CubeK's packages.
