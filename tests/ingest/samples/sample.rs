//! A crate.
use std::{fmt::{self, Display}, collections::HashMap as Map};
use crate::wire::*;

pub const LIMIT: usize = 3;
static mut COUNT: u32 = 0;
pub type Result<T> = std::result::Result<T, Error>;

/// A retry policy.
#[derive(Debug, Clone)]
pub struct Retry<T> {
    pub wait: u64,
    inner: T,
}

pub enum Kind { Fast, Slow(u8), Named { id: u32 } }

pub trait Run: Send + Clone {
    const NAME: &'static str;
    type Output;
    fn run(&self) -> u32;
    fn twice(&self) -> u32 { self.run() * 2 }
}

impl<T> Run for Retry<T> where T: Clone {
    type Output = u32;
    fn run(&self) -> u32 { helper(self.wait as u32) }
}

impl<T> Retry<T> {
    /// Makes one.
    pub fn new(inner: T) -> Self { Self { wait: 1, inner } }
}

fn helper(x: u32) -> u32 { println!("{}", x); Map::<u8, u8>::new(); wire::send(x); x }

macro_rules! square { ($x:expr) => { $x * $x }; }

mod tests { fn check() { assert_eq!(super::helper(1), 1); } }
union Bits { a: u32, b: f32 }
