// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
//! The same work as the parts of bench/symbolize, by other libraries.
//! usage: symbols-peer blazesym ELF < ADDRESSES   (hexadecimal file addresses, 32 for each call)
//!        symbols-peer kernel SPOOL KALLSYMS
//!        symbols-peer maps SPOOL FOLDER
use std::io::Read;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolizer};
use stackpulse::spool::Replay;
use stackpulse::symbolize::{KernelSymbolSource, SymbolizerBuilder};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const BATCH: usize = 32;

fn read_addresses() -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text.split_whitespace().map(|word| u64::from_str_radix(word, 16)).collect::<Result<_, _>>()?)
}

fn blazesym(path: &str) -> Outcome {
    let source = Source::Elf(Elf::new(path));
    let symbolizer = Symbolizer::new();
    let (mut names, mut inlined, mut lines) = (0, 0, 0);
    for batch in read_addresses()?.chunks(BATCH) {
        for result in symbolizer.symbolize(&source, Input::VirtOffset(batch))? {
            if let Some(symbol) = result.as_sym() {
                names += 1;
                inlined += symbol.inlined.len();
                lines += symbol.code_info.is_some() as usize;
            }
        }
    }
    println!("names={names} inlined={inlined} lines={lines}");
    Ok(())
}

/// Resolves a whole spool; prints how many frames there were.
fn resolve(path: &str, set: impl FnOnce(SymbolizerBuilder) -> SymbolizerBuilder) -> Outcome {
    let reader = Replay::open(path)?;
    let mut symbolizer = set(reader.symbolizer()).build()?;
    let mut frames = 0;
    for sample in reader.samples() {
        frames += symbolizer.resolve(sample.stack())?.frames().count();
    }
    println!("frames={frames}");
    Ok(())
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [_, "blazesym", path] => blazesym(path),
        [_, "kernel", spool, table] => resolve(spool, |b| b.kernel_symbols(KernelSymbolSource::File(table.into()))),
        [_, "maps", spool, folder] => resolve(spool, |b| b.perf_map_dir(folder)),
        _ => Err("usage: symbols-peer blazesym ELF | kernel SPOOL KALLSYMS | maps SPOOL FOLDER".into()),
    }
}
