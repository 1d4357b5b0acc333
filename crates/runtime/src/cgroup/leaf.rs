//! One cgroup of a sandbox in one hierarchy.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::error::{CgroupError, HINT_VALUE};
use super::hierarchy::Version;
use super::{Controller, Limits, write};

/// How long processes that were killed may take to leave.
const PATIENCE: Duration = Duration::from_secs(2);

/// The folder is removed by [`Leaf::remove`], or by a later start.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) version: Version,
    pub(super) directory: PathBuf,
    /// The limits it holds; none for a leaf that is there for killing.
    pub(super) controllers: Vec<Controller>,
}

impl Leaf {
    pub(super) fn limit(&self, limits: &Limits) -> Result<(), CgroupError> {
        for controller in &self.controllers {
            match (controller, self.version) {
                (Controller::Memory, version) => self.limit_memory(version, limits.memory.unwrap_or(u64::MAX))?,
                (Controller::Pids, _) => {
                    let value = limits.pids.unwrap_or(u32::MAX).to_string();
                    self.hold("pids.max", &value, &value)?;
                }
                (Controller::Cpu, version) => self.limit_cpu(version, limits.cpu_millis.unwrap_or(u32::MAX))?,
            }
        }
        Ok(())
    }

    fn limit_memory(&self, version: Version, bytes: u64) -> Result<(), CgroupError> {
        // The kernel counts whole pages and rounds down.
        let page = rustix::param::page_size() as u64;
        let (wanted, held) = (bytes.to_string(), (bytes / page * page).to_string());
        match version {
            Version::V2 => {
                self.hold("memory.max", &wanted, &held)?;
                // Absent without swap accounting in the kernel, where nothing is swapped on the cgroup's account.
                self.hold_if_there("memory.swap.max", "0", "0")?;
                self.hold_if_there("memory.oom.group", "1", "1")
            }
            Version::V1 => {
                self.hold("memory.limit_in_bytes", &wanted, &held)?;
                self.hold_if_there("memory.memsw.limit_in_bytes", &wanted, &held)
            }
        }
    }

    fn limit_cpu(&self, version: Version, millis: u32) -> Result<(), CgroupError> {
        let (quota, period) = cpu_quota(millis);
        match version {
            Version::V2 => {
                let value = format!("{quota} {period}");
                self.hold("cpu.max", &value, &value)
            }
            Version::V1 => {
                let (quota, period) = (quota.to_string(), period.to_string());
                self.hold("cpu.cfs_period_us", &period, &period)?;
                self.hold("cpu.cfs_quota_us", &quota, &quota)
            }
        }
    }

    fn hold(&self, name: &str, value: &str, expected: &str) -> Result<(), CgroupError> {
        let file = self.directory.join(name);
        let found = write(&file, value).and_then(|()| fs::read_to_string(&file));
        match found {
            Ok(found) if found.trim_end() == expected => Ok(()),
            Ok(found) => Err(CgroupError::NotHeld {
                file,
                wanted: expected.to_owned(),
                found: found.trim_end().to_owned(),
            }),
            Err(source) => Err(CgroupError::Refused {
                file,
                value: value.to_owned(),
                source,
                hint: HINT_VALUE,
            }),
        }
    }

    fn hold_if_there(&self, name: &str, value: &str, expected: &str) -> Result<(), CgroupError> {
        if self.directory.join(name).exists() {
            self.hold(name, value, expected)
        } else {
            Ok(())
        }
    }

    pub(super) fn add(&self, pid: Pid) -> Result<(), CgroupError> {
        let number = pid.as_raw_nonzero().get();
        write(&self.directory.join("cgroup.procs"), &number.to_string()).map_err(|source| CgroupError::NotJoined {
            pid: number,
            directory: self.directory.clone(),
            source,
        })
    }

    /// Processes that the memory limit has killed; none when this leaf does not hold memory or cannot tell.
    pub(super) fn oom_kills(&self) -> Option<u64> {
        if !self.controllers.contains(&Controller::Memory) {
            return None;
        }
        let name = match self.version {
            Version::V2 => "memory.events",
            Version::V1 => "memory.oom_control",
        };
        field(&fs::read_to_string(self.directory.join(name)).ok()?, "oom_kill")
    }

    /// Kills every process in it, whatever it does meanwhile, and waits until they are gone.
    pub(super) fn kill(&self) -> io::Result<()> {
        match self.version {
            // Linux 5.14.
            Version::V2 if write(&self.directory.join("cgroup.kill"), "1").is_ok() => {}
            Version::V2 => self.kill_frozen("cgroup.freeze", "1", "0")?,
            Version::V1 if self.directory.join("freezer.state").exists() => {
                self.kill_frozen("freezer.state", "FROZEN", "THAWED")?;
            }
            Version::V1 => {}
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let processes = self.processes()?;
            if processes.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(io::Error::new(ErrorKind::ResourceBusy, "its processes do not end"));
            }
            for pid in processes {
                let _ = kill_process(pid, Signal::KILL);
            }
            self.wait_until_empty(deadline)?;
            std::thread::yield_now();
        }
    }

    fn kill_frozen(&self, file: &str, frozen: &str, thawed: &str) -> io::Result<()> {
        let file = self.directory.join(file);
        // What forks while it freezes is found by the second round of `kill`; a frozen process cannot fork.
        write(&file, frozen)?;
        let processes = self.processes();
        for pid in processes.iter().flatten() {
            let _ = kill_process(*pid, Signal::KILL);
        }
        write(&file, thawed)?;
        processes.map(drop)
    }

    /// Its processes, as numbered here. Zero, a process of another namespace, cannot be signalled and is left out.
    fn processes(&self) -> io::Result<Vec<Pid>> {
        let list = fs::read_to_string(self.directory.join("cgroup.procs"))?;
        Ok(list
            .lines()
            .filter_map(|line| Pid::from_raw(line.trim().parse().ok()?))
            .collect())
    }

    /// Waits until no process is left that was there at the start of a round, or the deadline.
    fn wait_until_empty(&self, deadline: Instant) -> io::Result<()> {
        for pid in self.processes()? {
            // One that has ended meanwhile has no descriptor.
            let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            wait(&PollFd::new(&process, PollFlags::IN), deadline)?;
        }
        if self.version == Version::V2 {
            // A process leaves the cgroup a little after its descriptor tells of its end.
            let events = File::open(self.directory.join("cgroup.events"))?;
            // Reading through the descriptor that is polled arms it for the next change.
            while is_populated(&events)? && Instant::now() < deadline {
                wait(&PollFd::new(&events, PollFlags::PRI), deadline)?;
            }
        }
        Ok(())
    }

    /// Removes the folder once it is empty. One that is gone already is no failure.
    pub(super) fn remove(&self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match fs::remove_dir(&self.directory) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                    self.wait_until_empty(deadline)?;
                    // The last step of a process's end is not announced: let it have the processor.
                    std::thread::yield_now();
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                done => return done,
            }
        }
    }
}

fn wait(what: &PollFd<'_>, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).map_err(|_| ErrorKind::InvalidInput)?;
    match poll(&mut [what.clone()], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_populated(events: &File) -> io::Result<bool> {
    let mut text = [0; 256];
    let length = events.read_at(&mut text, 0)?;
    Ok(field(&String::from_utf8_lossy(&text[..length]), "populated") == Some(1))
}

/// The number behind a key in a file of `key value` lines.
pub(super) fn field(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Microseconds of processor time per period of microseconds. The kernel takes quotas from 1 ms and periods up to 1 s.
pub(super) fn cpu_quota(millis: u32) -> (u64, u64) {
    let millis = u64::from(millis.max(1));
    let period = if millis < 10 { 1_000_000 } else { 100_000 };
    (millis * period / 1000, period)
}
