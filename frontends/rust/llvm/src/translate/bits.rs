//! Patterns: bitcasts between shapes, and elements of vectors.

use super::function::{Body, Parts, Result};
use super::shape::{self, Scalar, container};
use crate::error::Problem;
use crate::model::{Operand, Type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData};
use smallvec::smallvec;
use std::borrow::Cow;

/// What is said of a vector of nothing.
const NO_LANES: Problem = Problem::Inconsistent(Cow::Borrowed("a vector without lanes"));

impl Body<'_, '_, '_> {
    /// The same bits as a value of another type.
    pub fn bitcast(&mut self, from: &Type, to: &Type, parts: Parts) -> Result<Parts> {
        let (sources, targets) = (shape::parts(from)?, shape::parts(to)?);
        let widths = |scalars: &[Scalar]| scalars.iter().map(|of| of.bits()).collect::<Vec<_>>();
        let (from_widths, to_widths) = (widths(&sources), widths(&targets));
        if from_widths.iter().sum::<u32>() != to_widths.iter().sum::<u32>() {
            let message = "a bitcast between types of different sizes";
            return Err(Problem::Inconsistent(message.into()));
        }
        let patterns: Vec<ir::Value> = (parts.into_iter().zip(&sources))
            .map(|(part, of)| self.pattern(part, *of))
            .collect();
        let patterns = self.regrouped(&patterns, &from_widths, &to_widths);
        let values = patterns.into_iter().zip(&targets);
        Ok(values
            .map(|(pattern, of)| self.of_pattern(pattern, *of))
            .collect())
    }

    /// The bits of a scalar as an integer.
    pub fn pattern(&mut self, value: ir::Value, of: Scalar) -> ir::Value {
        match of.is_float() {
            true => self.reinterpreted(value, of.pattern()),
            false => value,
        }
    }

    /// The scalar with these bits.
    pub fn of_pattern(&mut self, pattern: ir::Value, of: Scalar) -> ir::Value {
        match of.is_float() {
            true => self.reinterpreted(pattern, of.clif()),
            false => pattern,
        }
    }

    /// The same bits as another type of CLIF.
    pub fn reinterpreted(&mut self, value: ir::Value, to: ir::Type) -> ir::Value {
        if self.type_of(value) == to {
            return value;
        }
        // Where the number of lanes changes, CLIF wants to hear in which order they lie.
        let flags = match self.type_of(value).lane_count() == to.lane_count() {
            true => MemFlagsData::new(),
            false => MemFlagsData::new().with_endianness(ir::Endianness::Little),
        };
        self.builder.ins().bitcast(to, flags, value)
    }

    /// The bits of integers behind each other, lowest first, cut into integers of other widths.
    pub fn regrouped(&mut self, from: &[ir::Value], widths: &[u32], to: &[u32]) -> Vec<ir::Value> {
        if widths == to {
            return from.to_vec();
        }
        let mut starts = Vec::new();
        let mut end = 0;
        for width in widths {
            starts.push(end);
            end += width;
        }
        let (mut values, mut start) = (Vec::new(), 0);
        for width in to {
            let (begin, end) = (start, start + width);
            let ty = container(*width);
            let mut sum = None;
            for ((value, from), bits) in from.iter().zip(&starts).zip(widths) {
                if from + bits <= begin || *from >= end {
                    continue;
                }
                let mut part = *value;
                if *from < begin {
                    part = self.shifted(part, begin - from, false);
                }
                part = self.resized(part, ty);
                if *from > begin {
                    part = self.shifted(part, from - begin, true);
                }
                sum = Some(match sum {
                    Some(sum) => self.builder.ins().bor(sum, part),
                    None => part,
                });
            }
            let value = sum.unwrap_or_else(|| self.integer(ty, 0));
            values.push(self.without_excess(value, *width));
            start = end;
        }
        values
    }

    fn shifted(&mut self, value: ir::Value, by: u32, left: bool) -> ir::Value {
        let amount = self.builder.ins().iconst(ir::types::I32, i64::from(by));
        match left {
            true => self.builder.ins().ishl(value, amount),
            false => self.builder.ins().ushr(value, amount),
        }
    }

    /// The lane of a constant number, if the index is one.
    fn constant_lane(&self, index: &Operand) -> Option<usize> {
        let crate::model::Value::Constant(constant) = &index.value else {
            return None;
        };
        match crate::data::scalar(&index.ty, constant) {
            Ok(crate::data::Scalar::Bits(bits)) => usize::try_from(bits).ok(),
            _ => None,
        }
    }

    /// A lane of a vector.
    pub fn extract_element(&mut self, vector: &Operand, index: &Operand) -> Result<ir::Value> {
        let lanes = self.operand(vector)?;
        let first = *lanes.first().ok_or(NO_LANES)?;
        if let Some(lane) = self.constant_lane(index) {
            return Ok(lanes.get(lane).copied().unwrap_or(first));
        }
        let number = self.single(index)?;
        let mut value = first;
        for (place, lane) in lanes.into_iter().enumerate().skip(1) {
            let is_it = self.is_number(number, place);
            value = self.builder.ins().select(is_it, lane, value);
        }
        Ok(value)
    }

    /// A vector with another lane.
    pub fn insert_element(
        &mut self,
        vector: &Operand,
        element: &Operand,
        index: &Operand,
    ) -> Result<Parts> {
        let (mut lanes, new) = (self.operand(vector)?, self.single(element)?);
        if let Some(lane) = self.constant_lane(index) {
            if let Some(place) = lanes.get_mut(lane) {
                *place = new;
            }
            return Ok(lanes);
        }
        let number = self.single(index)?;
        for (place, lane) in lanes.iter_mut().enumerate() {
            let is_it = self.is_number(number, place);
            *lane = self.builder.ins().select(is_it, new, *lane);
        }
        Ok(lanes)
    }

    fn is_number(&mut self, value: ir::Value, number: usize) -> ir::Value {
        let ty = self.type_of(value);
        let number = self.integer(ty, number as u128);
        self.builder.ins().icmp(IntCC::Equal, value, number)
    }

    /// A vector reduced to one lane, from the first to the last.
    pub fn reduced(
        &mut self,
        vector: &Operand,
        start: Option<ir::Value>,
        step: &mut dyn FnMut(&mut Self, Scalar, ir::Value, ir::Value) -> Result<ir::Value>,
    ) -> Result<Parts> {
        let lane = Scalar::of(vector.ty.lane())?;
        let mut lanes = self.operand(vector)?.into_iter();
        let first = match start {
            Some(start) => start,
            None => lanes.next().ok_or(NO_LANES)?,
        };
        let mut value = first;
        for next in lanes {
            value = step(self, lane, value, next)?;
        }
        Ok(smallvec![value])
    }
}
