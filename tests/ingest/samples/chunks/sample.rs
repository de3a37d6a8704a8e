//! A ring of the last values, without allocation after the start.

use std::fmt::{self, Display};
use std::ops::Index;

/// Values a ring holds when nobody says otherwise.
pub const DEFAULT: usize = 64;

/// The last `N` values pushed, the oldest first.
#[derive(Debug, Clone)]
pub struct Ring<T> {
    items: Vec<T>,
    next: usize,
    capacity: usize,
}

/// Why a ring cannot be made.
#[derive(Debug, PartialEq, Eq)]
pub enum RingError {
    /// A ring of no values.
    Empty,
    /// More values than memory can hold.
    TooLarge { wanted: usize },
}

impl Display for RingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingError::Empty => write!(out, "a ring needs room for one value"),
            RingError::TooLarge { wanted } => write!(out, "no memory for {wanted} values"),
        }
    }
}

impl<T: Clone> Ring<T> {
    /// Makes a ring for so many values.
    pub fn new(capacity: usize) -> Result<Self, RingError> {
        if capacity == 0 {
            return Err(RingError::Empty);
        }
        let mut items = Vec::new();
        items
            .try_reserve_exact(capacity)
            .map_err(|_| RingError::TooLarge { wanted: capacity })?;
        Ok(Ring { items, next: 0, capacity })
    }

    /// Adds a value; the oldest makes room when the ring is full.
    pub fn push(&mut self, value: T) -> Option<T> {
        if self.items.len() < self.capacity {
            self.items.push(value);
            return None;
        }
        let old = std::mem::replace(&mut self.items[self.next], value);
        self.next = (self.next + 1) % self.capacity;
        Some(old)
    }

    /// Returns the values, the oldest first.
    pub fn to_vec(&self) -> Vec<T> {
        let (new, old) = self.items.split_at(self.next);
        old.iter().chain(new).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<T> Index<usize> for Ring<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.items[(self.next + at) % self.items.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_value_makes_room() {
        let mut ring = Ring::new(2).unwrap();
        assert_eq!(ring.push(1), None);
        assert_eq!(ring.push(2), None);
        assert_eq!(ring.push(3), Some(1));
        assert_eq!(ring.to_vec(), vec![2, 3]);
    }

    #[test]
    fn a_ring_of_nothing_is_refused() {
        assert_eq!(Ring::<u8>::new(0).unwrap_err(), RingError::Empty);
    }
}
