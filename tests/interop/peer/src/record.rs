// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
//! Records a running process. usage: peer-record 3|4 PID SECONDS FILE [HZ [STACK_BYTES [children]]]
//! Children are recorded in format 4 only.
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

struct Job {
    pid: i32,
    end: Instant,
    file: String,
    rate: u32,
    stack: u32,
    children: bool,
}

const STEP: Duration = Duration::from_millis(100);

fn record3(job: &Job) -> Outcome {
    use format3::{AttachMode, Pid, Recorder, RecorderOptions, SampleRate};
    let pid = Pid::try_from(job.pid)?;
    let options = RecorderOptions::new(SampleRate::hz(job.rate)?).stack_size(job.stack);
    let mut recorder = Recorder::attach(pid, &job.file, AttachMode::StopWhileAttaching, options)?;
    while Instant::now() < job.end && recorder.process_is_active(pid)? {
        recorder.poll(STEP)?;
    }
    recorder.finish()?;
    Ok(())
}

fn record4(job: &Job) -> Outcome {
    use format4::{Pid, Recorder, SampleRate, Spool};
    let spool = Spool::retained(std::fs::File::create(&job.file)?)?;
    let pid = Pid::try_from(job.pid)?;
    let mut builder = Recorder::builder(SampleRate::hz(job.rate)?).stack_size(job.stack);
    if job.children {
        builder = builder.scope(format4::record::ProcessScope::Descendants);
    }
    let mut recorder = builder.attach(pid, spool)?;
    while Instant::now() < job.end {
        let activity = recorder.poll(STEP)?;
        if activity.active_processes() == 0 && !activity.pending_events() {
            break;
        }
    }
    recorder.finish()?;
    Ok(())
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 5 {
        return Err("usage: peer-record 3|4 PID SECONDS FILE [HZ [STACK_BYTES [children]]]".into());
    }
    let number = |index: usize, default: u32| -> Result<u32, std::num::ParseIntError> {
        args.get(index).map_or(Ok(default), |s| s.parse())
    };
    let job = Job {
        pid: args[2].parse()?,
        end: Instant::now() + Duration::from_secs_f64(args[3].parse()?),
        file: args[4].clone(),
        rate: number(5, 499)?,
        stack: number(6, 32768)?,
        children: args.get(7).is_some_and(|s| s == "children"),
    };
    match args[1].as_str() {
        "3" => record3(&job),
        "4" => record4(&job),
        other => Err(format!("unknown format {other}").into()),
    }
}
