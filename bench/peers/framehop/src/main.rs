// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
//! The same work as unwind_bench.c and unwind_miss.c, by framehop.
//! usage: framehop-peer CAPTURE [FRAMES_OUT] | framehop-peer --miss ELF_FILE ADDRESSES
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use object::{Object, ObjectSection, ObjectSegment};
use std::io::Write;

struct Sample {
    pc: u64,
    sp: u64,
    bp: u64,
    stack: Vec<u8>,
}

type Bytes = Vec<u8>;

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().unwrap())
}

fn module(start: u64, end: u64, offset: u64, path: &str) -> Option<Module<Bytes>> {
    let data = std::fs::read(path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let page = 4095u64;
    let segment = file.segments().find(|s| {
        let (o, n) = s.file_range();
        o & !page <= offset && offset < o + n
    })?;
    let bias = start.wrapping_sub(segment.address().wrapping_add(offset).wrapping_sub(segment.file_range().0));
    let base_svma = file.segments().map(|s| s.address()).min()?;
    let get = |name: &str| {
        let s = file.section_by_name(name)?;
        Some((s.address()..s.address() + s.size(), s.uncompressed_data().ok()?.into_owned()))
    };
    let text = get(".text");
    let eh = get(".eh_frame");
    let hdr = get(".eh_frame_hdr");
    let got = file.section_by_name(".got").map(|s| s.address()..s.address() + s.size());
    let info = ExplicitModuleSectionInfo {
        base_svma,
        text_svma: text.as_ref().map(|t| t.0.clone()),
        text: text.map(|t| t.1),
        got_svma: got,
        eh_frame_svma: eh.as_ref().map(|t| t.0.clone()),
        eh_frame: eh.map(|t| t.1),
        eh_frame_hdr_svma: hdr.as_ref().map(|t| t.0.clone()),
        eh_frame_hdr: hdr.map(|t| t.1),
        ..Default::default()
    };
    Some(Module::new(path.to_string(), start..end, base_svma.wrapping_add(bias), info))
}

fn walk(
    unwinder: &UnwinderX86_64<Bytes>,
    cache: &mut CacheX86_64,
    s: &Sample,
    mut each: impl FnMut(u64),
) -> (u64, bool) {
    let (sp, stack) = (s.sp, &s.stack[..]);
    let mut read = |address: u64| {
        let at = address.checked_sub(sp).ok_or(())? as usize;
        let end = at.checked_add(8).ok_or(())?;
        stack.get(at..end).map(|b| u64::from_le_bytes(b.try_into().unwrap())).ok_or(())
    };
    let mut frames = unwinder.iter_frames(s.pc, UnwindRegsX86_64::new(s.pc, s.sp, s.bp), cache, &mut read);
    let mut count = 0;
    loop {
        match frames.next() {
            Ok(Some(frame)) => {
                each(match frame {
                    FrameAddress::InstructionPointer(a) => a,
                    FrameAddress::ReturnAddress(a) => u64::from(a) - 1,
                });
                count += 1;
                if count == 1024 {
                    return (count, false);
                }
            }
            Ok(None) => return (count, true),
            Err(_) => return (count, false),
        }
    }
}

fn cpu_ns() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

fn best(unwinder: &UnwinderX86_64<Bytes>, cache: &mut CacheX86_64, samples: &[Sample], rounds: u32, passes: u32) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let start = cpu_ns();
        let mut frames = 0;
        let mut sum = 0u64;
        for _ in 0..passes {
            for s in samples {
                frames += walk(unwinder, cache, s, |a| sum ^= a).0;
            }
        }
        std::hint::black_box(sum);
        best = f64::min(best, (cpu_ns() - start) / frames as f64);
    }
    best
}

/// One visit of each file address with no stack, which leaves the lookup.
fn miss(path: &str, addresses: &str) {
    let list = std::fs::read(addresses).expect("addresses");
    let mut unwinder = UnwinderX86_64::new();
    let mut cache = CacheX86_64::new();
    // Segments of one file lie as the file says when it is mapped at its own addresses.
    let data = std::fs::read(path).expect("file");
    let file = object::File::parse(&*data).expect("ELF");
    let text = file.segments().find(|s| matches!(s.flags(), object::SegmentFlags::Elf { p_flags } if p_flags & 1 != 0));
    let text = text.expect("code");
    unwinder.add_module(module(text.address(), u64::MAX >> 8, text.file_range().0, path).expect("module"));
    let mut read = |_| Err(());
    for name in ["miss-ns", "again-ns"] {
        let start = cpu_ns();
        let mut known = 0;
        for i in 0..list.len() / 8 {
            let pc = u64_at(&list, i * 8);
            let mut frames =
                unwinder.iter_frames(pc, UnwindRegsX86_64::new(pc, 0x7ffc00000000, 0), &mut cache, &mut read);
            let _ = frames.next();
            known += usize::from(frames.next().is_err());
        }
        println!("{name} {:.0}\nread {known}", (cpu_ns() - start) * 8.0 / list.len() as f64);
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "--miss" {
        return miss(&args[2], &args[3]);
    }
    let bytes = std::fs::read(&args[1]).expect("capture");
    let mut samples = Vec::new();
    let mut unwinder = UnwinderX86_64::new();
    let mut at = 8;
    while at + 8 <= bytes.len() {
        let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let len = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        let p = &bytes[at + 8..at + 8 + len];
        at += 8 + len;
        if kind == 1 {
            let path = std::str::from_utf8(&p[24..]).unwrap();
            if let Some(m) = module(u64_at(p, 0), u64_at(p, 8), u64_at(p, 16), path) {
                unwinder.add_module(m);
            }
        } else {
            samples.push(Sample { pc: u64_at(p, 128), sp: u64_at(p, 56), bp: u64_at(p, 48), stack: p[136..].to_vec() });
        }
    }
    let mut cache = CacheX86_64::new();
    let start = cpu_ns();
    let frames: u64 = samples.iter().map(|s| walk(&unwinder, &mut cache, s, |_| ()).0).sum();
    let first = cpu_ns() - start;
    let mut cached = 0;
    let mut size = 0;
    while cached < samples.len() && cached < 40 && size < 1 << 20 {
        size += samples[cached].stack.len();
        cached += 1;
    }
    println!("samples {}\ndepth {:.1}", samples.len(), frames as f64 / samples.len() as f64);
    println!("streamed-ns {:.2}", best(&unwinder, &mut cache, &samples, 5, 1));
    println!("in-cache-ns {:.2}", best(&unwinder, &mut cache, &samples[..cached], 50, 20));
    println!("first-pass-ns {:.2}", first / frames as f64);
    if let Some(path) = args.get(2) {
        let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
        for s in &samples {
            let (_, complete) = walk(&unwinder, &mut cache, s, |a| write!(out, "{a:x} ").unwrap());
            writeln!(out, "{}", if complete { "complete" } else { "truncated" }).unwrap();
        }
    }
}
