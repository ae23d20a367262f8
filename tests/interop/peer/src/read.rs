// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
//! Reads a spool: `dump`, `dump-many` (many files, by any reader), `replay` (one pass), `frames` (one
//! pass over every frame), `open` (checks it only), `snapshot` (all in memory, for its peak),
//! `resolve` or `names`.
//! usage: peer-read dump-many, or peer-read dump|replay|frames|open|snapshot|resolve|names 3|4 FILE
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, at: *mut Timespec) -> i32;
}

/// CPU seconds of this process: wall time would count who else runs on the machine.
fn now() -> f64 {
    const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
    let mut at = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the call fills the one value that it is given.
    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut at) };
    at.seconds as f64 + at.nanoseconds as f64 / 1e9
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// One frame as a JSON object. Paths are bytes, so they are written in hexadecimal.
fn frame_json(out: &mut String, mode: &str, ip: u64, module: Option<(&[u8], u64)>) {
    if !out.ends_with('[') {
        out.push(',');
    }
    write!(out, "{{\"mode\":\"{mode}\",\"ip\":\"{ip:#x}\"").unwrap();
    if let Some((path, rel)) = module {
        out.push_str(",\"path_hex\":\"");
        for byte in path {
            write!(out, "{byte:02x}").unwrap();
        }
        write!(out, "\",\"rel\":\"{rel:#x}\"").unwrap();
    }
    out.push('}');
}

fn sample_json(time: u128, pid: i32, tid: i32, frames: impl FnOnce(&mut String)) -> Outcome {
    let mut line = format!("{{\"timestamp_ns\":{time},\"pid\":{pid},\"tid\":{tid},\"frames\":[");
    frames(&mut line);
    line.push_str("]}\n");
    std::io::stdout().lock().write_all(line.as_bytes())?;
    Ok(())
}

fn stack3(stack: format3::spool::SampleStack<'_>) -> Outcome {
    let time = stack.timestamp().as_nanos();
    sample_json(time, stack.pid().get(), stack.tid().get(), |line| {
        for context in stack.contexts() {
            if context.frame.is_truncated_stack_marker() {
                frame_json(line, "truncated", 0, None);
                continue;
            }
            let mode = match context.frame.mode {
                format3::spool::FrameMode::Kernel => "kernel",
                _ => "user",
            };
            let module = context.module.as_ref();
            let module = module.map(|m| (m.module.path().as_bytes(), m.file_relative_ip));
            frame_json(line, mode, context.frame.abs_ip, module);
        }
    })
}

fn dump3(reader: &str, path: &str) -> Outcome {
    match reader {
        "snapshot" => format3::Snapshot::open(path)?.stacks().try_for_each(stack3),
        "tail" => {
            let mut tail = format3::Tail::open(path)?;
            loop {
                let batch = tail.poll()?;
                batch.stacks().try_for_each(stack3)?;
                if !batch.has_more() {
                    return Ok(());
                }
            }
        }
        _ => format3::Replay::open(path)?.stacks().try_for_each(stack3),
    }
}

fn path_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}

fn sample4(sample: format4::spool::Sample<'_>) -> Outcome {
    use format4::spool::RawFrame;
    let time = sample.monotonic_timestamp().as_nanos();
    sample_json(time, sample.pid().get(), sample.tid().get(), |line| {
        for frame in sample.stack().frames() {
            match frame {
                RawFrame::TruncatedStack => frame_json(line, "truncated", 0, None),
                RawFrame::Native { address, address_space, mapping } => {
                    let mode = match address_space {
                        format4::profile::AddressSpace::Kernel => "kernel",
                        _ => "user",
                    };
                    let module = mapping.as_ref();
                    let module = module.map(|m| (path_bytes(m.path()), m.file_relative_address()));
                    frame_json(line, mode, address, module);
                }
            }
        }
    })
}

fn dump4(reader: &str, path: &str) -> Outcome {
    match reader {
        "snapshot" => format4::Snapshot::open(path)?.samples().try_for_each(sample4),
        "tail" => {
            let mut tail = format4::Tail::open(path)?;
            loop {
                let batch = tail.poll()?;
                batch.samples().try_for_each(sample4)?;
                if !batch.has_more() {
                    return Ok(());
                }
            }
        }
        _ => format4::Replay::open(path)?.samples().try_for_each(sample4),
    }
}

/// Each line of stdin is "READER VERSION FILE"; "end" or "error ..." follows a file's samples.
fn dump_many() -> Outcome {
    for line in std::io::stdin().lines() {
        let line = line?;
        let outcome = match line.splitn(3, ' ').collect::<Vec<_>>()[..] {
            [reader, "3", file] => dump3(reader, file),
            [reader, "4", file] => dump4(reader, file),
            _ => return Err(format!("not \"READER VERSION FILE\": {line}").into()),
        };
        match outcome {
            Ok(()) => println!("end"),
            Err(error) => println!("error {error}"),
        }
    }
    Ok(())
}

fn replay3(path: &str, frames: bool) -> Outcome {
    let begin = now();
    let reader = format3::Replay::open(path)?;
    let opened = now();
    let (mut samples, mut seen, mut sum) = (0u64, 0u64, 0u64);
    if frames {
        for stack in reader.stacks() {
            samples += 1;
            for context in stack.contexts() {
                seen += 1;
                sum = sum.wrapping_add(context.frame.abs_ip);
            }
        }
    } else {
        for sample in reader.samples() {
            samples += 1;
            sum = sum.wrapping_add(sample.timestamp_ns);
        }
    }
    println!("samples={samples} frames={seen} sum={sum:x}");
    print_times(begin, opened);
    Ok(())
}

fn replay4(path: &str, frames: bool) -> Outcome {
    use format4::spool::RawFrame;
    let begin = now();
    let reader = format4::Replay::open(path)?;
    let opened = now();
    let (mut samples, mut seen, mut sum) = (0u64, 0u64, 0u64);
    for sample in reader.samples() {
        samples += 1;
        if !frames {
            sum = sum.wrapping_add(sample.monotonic_timestamp().as_nanos() as u64);
            continue;
        }
        for frame in sample.stack().frames() {
            seen += 1;
            if let RawFrame::Native { address, .. } = frame {
                sum = sum.wrapping_add(address);
            }
        }
    }
    println!("samples={samples} frames={seen} sum={sum:x}");
    print_times(begin, opened);
    Ok(())
}

fn print_times(begin: f64, opened: f64) {
    println!("open_seconds={:.6} walk_seconds={:.6}", opened - begin, now() - opened);
    // Highest resident memory of this process alone.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("peak_kib={}", peak.trim().trim_end_matches(" kB"));
    }
}

/// Opens a spool and does nothing with it.
fn open(version: &str, path: &str, whole: bool) -> Outcome {
    let begin = now();
    match (version, whole) {
        ("3", false) => drop(format3::Replay::open(path)?),
        ("3", true) => drop(format3::Snapshot::open(path)?),
        (_, false) => drop(format4::Replay::open(path)?),
        (_, true) => drop(format4::Snapshot::open(path)?),
    }
    print_times(begin, now());
    Ok(())
}

#[cfg(feature = "names")]
fn resolve(version: &str, path: &str) -> Outcome {
    let mut frames = 0u64;
    if version == "3" {
        let reader = format3::Replay::open(path)?;
        let mut symbolizer = reader.symbolizer().build()?;
        for stack in reader.stacks() {
            frames += symbolizer.resolve(stack)?.into_iter().count() as u64;
        }
    } else {
        let reader = format4::Replay::open(path)?;
        let mut symbolizer = reader.symbolizer().build()?;
        for sample in reader.samples() {
            frames += symbolizer.resolve(sample.stack())?.frames().count() as u64;
        }
    }
    println!("frames={frames}");
    Ok(())
}

/// Every frame's name, a line each, and an empty line after each sample.
#[cfg(feature = "names")]
fn names(version: &str, path: &str) -> Outcome {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if version == "3" {
        let reader = format3::Replay::open(path)?;
        let mut symbolizer = reader.symbolizer().build()?;
        for stack in reader.stacks() {
            for frame in symbolizer.resolve(stack)? {
                writeln!(out, "{}", frame.display_name())?;
            }
            writeln!(out)?;
        }
    } else {
        let reader = format4::Replay::open(path)?;
        let mut symbolizer = reader.symbolizer().build()?;
        for sample in reader.samples() {
            for frame in symbolizer.resolve(sample.stack())?.frames() {
                writeln!(out, "{frame}")?;
            }
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}

#[cfg(not(feature = "names"))]
fn names(_: &str, _: &str) -> Outcome {
    Err("built without names".into())
}

#[cfg(not(feature = "names"))]
fn resolve(_: &str, _: &str) -> Outcome {
    Err("built without names".into())
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [_, "dump-many"] => dump_many(),
        [_, "dump", "3", file] => dump3("replay", file),
        [_, "dump", "4", file] => dump4("replay", file),
        [_, "replay", "3", file] => replay3(file, false),
        [_, "replay", "4", file] => replay4(file, false),
        [_, "frames", "3", file] => replay3(file, true),
        [_, "frames", "4", file] => replay4(file, true),
        [_, "open", version, file] => open(version, file, false),
        [_, "snapshot", version, file] => open(version, file, true),
        [_, "resolve", version, file] => resolve(version, file),
        [_, "names", version, file] => names(version, file),
        _ => Err("usage: peer-read dump|replay|frames|open|snapshot|resolve|names 3|4 FILE".into()),
    }
}
