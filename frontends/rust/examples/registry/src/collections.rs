//! Collections, and what goes over them.

use crate::bytes::fold;
use alloc::vec::Vec;
use thisgpu_gpu::*;

functions! {
    /// A vector in an array, with its operations.
    fn arrayvec(seed: u64) -> u64 {
        let mut random = oorandom::Rand32::new(seed);
        let mut values: arrayvec::ArrayVec<u32, 24> = (0..24).map(|_| random.rand_u32() % 100).collect();
        values.retain(|value| *value % 3 != 0);
        if values.len() > 4 {
            values.swap_remove(2);
            values.insert(1, 77);
        }
        let mut text = arrayvec::ArrayString::<16>::new();
        text.push_str("ab");
        let _ = text.try_push('é');
        let drained = values.drain(..).rev();
        let sum = drained.fold(fold(text.as_bytes()), |sum, value| sum.rotate_left(5) ^ u64::from(value));
        sum ^ values.len() as u64
    }

    /// Another one.
    fn tinyvec(seed: u64) -> u64 {
        let mut values = tinyvec::ArrayVec::<[u16; 20]>::new();
        for index in 0..20 {
            values.push((seed >> index) as u16);
        }
        values.retain(|value| *value != seed as u16);
        if values.len() > 3 {
            values.remove(1);
            values.truncate(15);
        }
        values.sort_unstable();
        values.iter().fold(values.len() as u64, |sum, value| sum.wrapping_mul(31) ^ u64::from(*value))
    }

    /// A map with the hash of the crate fnv.
    fn hashbrown(seed: u64) -> u64 {
        let mut map = hashbrown::HashMap::with_hasher(fnv::FnvBuildHasher::new());
        for index in 0..40u64 {
            *map.entry((seed >> (index % 60)) % 29).or_insert(0u64) += index;
        }
        map.retain(|key, _| key % 3 != 1);
        let mut all: Vec<(u64, u64)> = map.iter().map(|(key, value)| (*key, *value)).collect();
        all.sort();
        all.iter().fold(map.len() as u64, |sum, (key, value)| sum.wrapping_mul(31) ^ key ^ value << 9)
    }

    /// A map that keeps its order.
    fn indexmap(seed: u64) -> u64 {
        let mut map = indexmap::IndexMap::with_hasher(fnv::FnvBuildHasher::new());
        for index in 0..30u64 {
            map.insert((seed >> index) % 23, index);
        }
        map.swap_remove(&(seed % 23));
        map.sort_by(|a, x, b, y| (a % 5, x).cmp(&(b % 5, y)));
        map.iter().fold(7, |sum, (key, value)| sum * 31 ^ key ^ value << 7)
    }

    /// Vectors that begin on the stack.
    fn smallvec(seed: u64) -> u64 {
        let mut values: smallvec::SmallVec<[u32; 4]> = smallvec::SmallVec::new();
        for index in 0..seed % 11 {
            values.push((seed >> index) as u32);
        }
        values.dedup_by_key(|value| *value % 4);
        let spilled = values.spilled();
        values.extend_from_slice(&[1, 2, 3]);
        values.iter().fold(u64::from(spilled), |sum, value| sum.wrapping_mul(31) ^ u64::from(*value))
    }

    /// Collections of a fixed size.
    fn heapless(seed: u64) -> u64 {
        use heapless::binary_heap::Min;
        let mut heap: heapless::BinaryHeap<u32, Min, 16> = heapless::BinaryHeap::new();
        let mut queue: heapless::Deque<u32, 8> = heapless::Deque::new();
        let mut text: heapless::String<24> = heapless::String::new();
        for index in 0..20 {
            let value = (seed >> (2 * index)) as u32 & 0xff;
            if heap.push(value).is_err() {
                queue.push_back(value).or_else(|_| queue.pop_front().map_or(Err(0), |_| Ok(()))).unwrap_or(());
            }
        }
        let full = core::fmt::Write::write_fmt(&mut text, format_args!("{:?} {}", queue.front(), queue.len())).is_err();
        let mut sum = fold(text.as_bytes()) ^ u64::from(full);
        while let Some(least) = heap.pop() {
            sum = sum.wrapping_mul(31) ^ u64::from(least);
        }
        sum
    }

    /// Slices of bits.
    fn bitvec(seed: u64) -> u64 {
        use bitvec::prelude::*;
        let mut bits: BitVec<u32, Msb0> = BitVec::new();
        for index in 0..70 {
            bits.push(seed.rotate_left(index * 3) & 5 == 1);
        }
        bits.rotate_left((seed % 17) as usize);
        let field: u16 = bits[5..18].load_be();
        let ones = bits[10..60].count_ones() as u64;
        u64::from(field) ^ ones << 20 ^ bits.first_one().map_or(1, |place| place as u64) << 40
    }

    /// Sets of small numbers.
    fn fixedbitset(seed: u64) -> u64 {
        let mut set = fixedbitset::FixedBitSet::with_capacity(150);
        let other: fixedbitset::FixedBitSet = (0..30).map(|index| (seed >> index) as usize % 140).collect();
        set.insert_range(20..(seed % 100) as usize + 21);
        set.intersect_with(&other);
        set.toggle(3);
        set.ones().fold(set.count_ones(..) as u64, |sum, one| sum.wrapping_mul(31) ^ one as u64)
    }

    /// Keys that stay valid.
    fn slotmap(seed: u64) -> u64 {
        let mut map = slotmap::SlotMap::new();
        let keys: Vec<_> = (0..20u64).map(|index| map.insert(seed >> index)).collect();
        for (index, key) in keys.iter().enumerate() {
            if seed >> index & 1 == 1 {
                map.remove(*key);
            }
        }
        let again = map.insert(seed);
        let gone = keys.iter().filter(|key| !map.contains_key(**key)).count() as u64;
        map.values().fold(gone, |sum, value| sum.wrapping_mul(31) ^ value) ^ map[again]
    }

    /// The shortest ways through a graph.
    fn petgraph(seed: u64) -> u64 {
        use petgraph::graph::{Graph, NodeIndex};
        let mut graph = Graph::<(), u32>::new();
        let nodes: Vec<NodeIndex> = (0..10).map(|_| graph.add_node(())).collect();
        for index in 0..25u32 {
            let (from, to) = ((seed.rotate_left(index) % 10) as usize, (seed.rotate_right(index * 3) % 10) as usize);
            graph.add_edge(nodes[from], nodes[to], index % 7 + 1);
        }
        let start = nodes[0];
        let cost = petgraph::algo::bellman_ford(&graph.map(|_, ()| (), |_, cost| *cost as f32), start);
        let costs = cost.map_or(0, |paths| paths.distances.iter().fold(1u64, |sum, cost| {
            sum.wrapping_mul(31) ^ u64::from(cost.to_bits())
        }));
        let parts = petgraph::algo::tarjan_scc(&graph);
        let parts = parts.iter().fold(3u64, |sum, part| sum.wrapping_mul(7) ^ part.len() as u64);
        costs ^ parts ^ petgraph::algo::toposort(&graph, None).is_ok() as u64
    }

    /// Adapters of iterators.
    fn itertools(seed: u64) -> u64 {
        use itertools::Itertools;
        let values: Vec<u32> = (0..14).map(|index| (seed >> (3 * index)) as u32 % 16).collect();
        let text = values.iter().join("-");
        let chunks = values.iter().chunk_by(|value| **value > 7);
        let groups = chunks.into_iter().map(|(_, group)| group.count()).collect_vec();
        let pairs = values.iter().sorted().dedup().array_combinations::<2>();
        let sum = pairs.fold(0u64, |sum, [a, b]| sum.wrapping_mul(3) ^ u64::from(a * 16 + b));
        let most = values.iter().minmax().into_option().map_or(0, |(least, most)| u64::from(least * 100 + most));
        groups.iter().fold(sum ^ fold(text.as_bytes()) ^ most, |sum, count| sum.rotate_left(5) ^ *count as u64)
    }
}
