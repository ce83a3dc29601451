//! The wide access: a vector whose lanes are the pieces, or the words of the pieces where those differ.

use super::group::{Group, Member, repeated};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Endianness, Function, InstBuilder, MemFlagsData, Type, Value};
use smallvec::SmallVec;

/// The bits of a value stay as they are.
const SAME_BITS: MemFlagsData = MemFlagsData::new().with_endianness(Endianness::Little);

/// Replaces the members of a group by one access.
pub(super) fn write(func: &mut Function, group: &Group) {
    if group.store {
        store(func, group);
    } else {
        load(func, group);
    }
}

/// The lanes of the wide value: the type of the pieces if they have one in common, words otherwise.
fn lane_type(members: &[Member]) -> Type {
    let first = members[0].piece.ty;
    let alike = members.iter().all(|member| member.piece.ty == first);
    if alike && first.lane_count() == 1 {
        first
    } else {
        I32
    }
}

fn vector_type(lane: Type, bytes: u32) -> Type {
    lane.by(bytes / lane.bytes())
        .expect("a vector of up to 16 bytes")
}

fn load(func: &mut Function, group: &Group) {
    let lane = lane_type(&group.members);
    let ty = vector_type(lane, group.bytes);
    let location = func.srcloc(group.place);
    let mut pos = FuncCursor::new(func)
        .at_inst(group.place)
        .with_srcloc(location);
    let whole = pos.ins().load(ty, group.flags, group.address, group.offset);
    for member in &group.members {
        let location = pos.func.srcloc(member.inst);
        let mut pos = FuncCursor::new(pos.func)
            .at_inst(member.inst)
            .with_srcloc(location);
        let result = pos.func.dfg.first_result(member.inst);
        let to = pos.func.dfg.value_type(result);
        let index = (member.at / lane.bytes()) as u8;
        if lane == member.piece.ty {
            match member.piece.signed {
                None => _ = pos.func.replace(member.inst).extractlane(whole, index),
                Some(signed) => {
                    let value = pos.ins().extractlane(whole, index);
                    let replaced = pos.func.replace(member.inst);
                    _ = match signed {
                        true => replaced.sextend(to, value),
                        false => replaced.uextend(to, value),
                    };
                }
            }
            continue;
        }
        if to == I32 {
            pos.func.replace(member.inst).extractlane(whole, index);
            continue;
        }
        let low = pos.ins().extractlane(whole, index);
        let bits = match member.piece.ty.bytes() {
            8 => {
                let high = pos.ins().extractlane(whole, index + 1);
                if to == I64 {
                    pos.func.replace(member.inst).iconcat(low, high);
                    continue;
                }
                pos.ins().iconcat(low, high)
            }
            _ => low,
        };
        let replaced = pos.func.replace(member.inst);
        _ = match member.piece.signed {
            Some(true) => replaced.sextend(to, bits),
            Some(false) => replaced.uextend(to, bits),
            None => replaced.bitcast(to, SAME_BITS, bits),
        };
    }
}

fn store(func: &mut Function, group: &Group) {
    let lane = lane_type(&group.members);
    let ty = vector_type(lane, group.bytes);
    let location = func.srcloc(group.place);
    let mut pos = FuncCursor::new(func)
        .at_inst(group.place)
        .with_srcloc(location);
    let mut lanes: SmallVec<[Value; 16]> = SmallVec::new();
    for member in &group.members {
        let value = pos.func.dfg.inst_args(member.inst)[0];
        if lane == member.piece.ty {
            lanes.push(match member.piece.signed {
                Some(_) if pos.func.dfg.value_type(value) != lane => pos.ins().ireduce(lane, value),
                _ => value,
            });
        } else {
            push_words(&mut pos, member, value, &mut lanes);
        }
    }
    let whole = match repeated(pos.func, &lanes) {
        Some(value) => pos.ins().splat(ty, value),
        None => {
            let first = pos.ins().scalar_to_vector(ty, lanes[0]);
            (lanes.iter().zip(0u8..).skip(1)).fold(first, |whole, (&value, index)| {
                pos.ins().insertlane(whole, value, index)
            })
        }
    };
    let func = pos.func;
    func.replace(group.place)
        .store(group.flags, whole, group.address, group.offset);
    for member in group
        .members
        .iter()
        .filter(|member| member.inst != group.place)
    {
        func.layout.remove_inst(member.inst);
    }
}

/// The one or two words of what a member stores.
fn push_words(
    pos: &mut FuncCursor<'_>,
    member: &Member,
    value: Value,
    words: &mut SmallVec<[Value; 16]>,
) {
    let ty = pos.func.dfg.value_type(value);
    if member.piece.ty.bytes() == 4 {
        words.push(match ty {
            I32 => value,
            _ if member.piece.signed.is_some() => pos.ins().ireduce(I32, value),
            _ => pos.ins().bitcast(I32, SAME_BITS, value),
        });
        return;
    }
    let bits = match ty {
        I64 => value,
        _ => pos.ins().bitcast(I64, SAME_BITS, value),
    };
    let (low, high) = pos.ins().isplit(bits);
    words.extend([low, high]);
}
