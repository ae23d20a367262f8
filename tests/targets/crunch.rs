// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// A release binary in Rust: crunch::Table::hot < crunch::walk (four deep) < main.
// usage: crunch SECONDS
use std::time::{Duration, Instant};

mod crunch {
    pub struct Table(pub Vec<u64>);

    impl Table {
        #[inline(never)]
        pub fn hot(&self, mut x: u64) -> u64 {
            for i in 0..200_000u64 {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(self.0[(x ^ i) as usize & 255]);
            }
            x
        }
    }

    #[inline(never)]
    pub fn walk(table: &Table, x: u64, depth: u32) -> u64 {
        if depth == 0 {
            return std::hint::black_box(table.hot(x));
        }
        // Seen through, this sum would become a loop, and the call above a jump.
        std::hint::black_box(walk(table, x ^ 3, depth - 1)).wrapping_add(x)
    }
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let table = crunch::Table((0..256).map(|i| i * 77 + 1).collect());
    let mut x = 1;
    while Instant::now() < end {
        x = crunch::walk(&table, x, 4);
    }
    println!("{x:x}");
}
