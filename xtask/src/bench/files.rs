//! File-heavy work inside and outside, on a fresh file system.
//!
//! Nothing is deleted between runs: after a mass deletion ext4 creates files many times slower for minutes, inside and
//! outside alike, and only the order of the runs would be measured.

use std::collections::BTreeMap;
use std::fs;
use std::io::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::report::{Good, Report, Samples};
use super::{Options, Places, fresh_folder};
use crate::{Outcome, invoke};

const ROUNDS: usize = 6;
const FOLDERS: usize = 200;
const FILES_PER_FOLDER: usize = 100;

/// Sparse size of the image: the tree, and per round the archives and copies of it that both sides make.
const BASE_MIB: usize = 2048;
const ROUND_MIB: usize = 1536;

/// The kinds of work in the order they are done, and how often in a row.
const WORK: [(&str, usize); 4] = [("find", 5), ("tar create", 3), ("tar extract", 2), ("git status", 5)];

pub(super) fn measure(places: &Places, options: &Options) -> Outcome<Report> {
    let rounds = options.runs.unwrap_or(ROUNDS);
    let disk = Disk::fresh(&places.scratch, BASE_MIB + ROUND_MIB * (rounds + 1))?;
    let root = disk.folder.join("work");
    make_tree(&root)?;
    let mut samples: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    // The first round fills the caches and does not count; the order turns, so that neither side is always first.
    for round in 0..=rounds {
        let mut sides = ["bare", "pinfold"];
        sides.rotate_left(round % 2);
        for side in sides {
            let measured = work_once(places, &root, side, round)?;
            for (kind, times) in measured.into_iter().filter(|_| round > 0) {
                samples.entry((kind, side)).or_default().extend(times);
            }
        }
    }
    let mut report = Report::new("files");
    for (kind, _) in WORK {
        for side in ["bare", "pinfold"] {
            report.row(
                format!("{kind}, {side}"),
                "ms",
                Samples::new(samples.remove(&(kind, side)).unwrap_or_default()),
            );
        }
    }
    for (kind, _) in WORK {
        report.ratio(
            &format!("{kind}, pinfold"),
            &format!("{kind}, bare"),
            Good::AtMost,
            1.05,
        );
    }
    report.note(format!("{} files on a fresh ext4 image", FOLDERS * FILES_PER_FOLDER));
    Ok(report)
}

/// Milliseconds of each kind of work.
fn work_once(places: &Places, root: &Path, side: &str, round: usize) -> Outcome<Vec<(&'static str, Vec<f64>)>> {
    let mut command = if side == "pinfold" {
        let mut command = places.pinfold_run(root);
        command.arg("--read").arg(&places.xtask).arg("--").arg(&places.xtask);
        command
    } else {
        let mut command = Command::new(&places.xtask);
        command.current_dir(root);
        command
    };
    command.args(["bench-files", &format!("{side}-{round}")]);
    let text = invoke::output(&mut command)?;
    let measured: Value =
        serde_json::from_str(&text).map_err(|error| format!("bench-files printed {text}: {error}"))?;
    let times = |kind: &str| {
        measured[kind]
            .as_array()
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .filter_map(Value::as_f64)
    };
    Ok(WORK.map(|(kind, _)| (kind, times(kind).collect())).into())
}

/// `bench-files LABEL`, in the folder with the tree: does the work, prints the milliseconds of each kind as JSON.
pub(crate) fn work(words: &[&str]) -> Outcome {
    let [label] = words else {
        return Err("bench-files LABEL".to_owned());
    };
    let folder = format!("out/{label}");
    fs::create_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut measured = serde_json::Map::new();
    for (kind, repeats) in WORK {
        let times = (0..repeats)
            .map(|repeat| time(kind, &folder, repeat))
            .collect::<Outcome<Vec<f64>>>()?;
        measured.insert(kind.to_owned(), times.into());
    }
    println!("{}", Value::from(measured));
    Ok(())
}

fn time(kind: &str, folder: &str, repeat: usize) -> Outcome<f64> {
    let (archive, copy) = (format!("{folder}/{repeat}.tar"), format!("{folder}/{repeat}"));
    let words: &[&str] = match kind {
        "find" => &["find", "tree", "-type", "f", "-size", "+3k"],
        "tar create" => &["tar", "--exclude=.git", "-cf", &archive, "tree"],
        "tar extract" => &["tar", "-xf", &archive, "-C", &copy],
        _ => &["git", "-C", "tree", "status", "--porcelain"],
    };
    if kind == "tar extract" {
        fs::create_dir(&copy).map_err(|error| format!("{copy}: {error}"))?;
    }
    // What earlier work left to be written would be counted here otherwise.
    invoke::output(Command::new("sync").args(["-f", "."]))?;
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status();
    let elapsed = start.elapsed().as_secs_f64() * 1e3;
    match status {
        Ok(status) if status.success() => Ok(elapsed),
        Ok(status) => Err(format!("{} failed ({status})", words.join(" "))),
        Err(error) => Err(format!("{} could not be started: {error}", words[0])),
    }
}

/// Files of 1 to 8 KiB, committed to a repository.
fn make_tree(root: &Path) -> Outcome {
    let failed = |error: Error| format!("{}: {error}", root.display());
    let tree = root.join("tree");
    fs::create_dir_all(root.join("out")).map_err(failed)?;
    let content = "0123456789abcde\n".repeat(512);
    for folder in 0..FOLDERS {
        let folder = tree.join(format!("part{:02}/folder{folder:03}", folder % 20));
        fs::create_dir_all(&folder).map_err(failed)?;
        for file in 0..FILES_PER_FOLDER {
            let length = 1024 + (file * 73 % 7168);
            fs::write(folder.join(format!("file{file:03}.txt")), &content[..length]).map_err(failed)?;
        }
    }
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(&tree)
            .args(["-c", "user.name=bench", "-c", "user.email=bench@example.com"]);
        invoke::output(command.args(words)).map(drop)
    };
    git(&["init", "--quiet"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", "the tree"])
}

/// A mounted loop image, gone when dropped.
struct Disk {
    image: PathBuf,
    folder: PathBuf,
}

impl Disk {
    fn fresh(scratch: &Path, mib: usize) -> Outcome<Self> {
        let folder = scratch.join("disk");
        if is_mounted(&folder) {
            // An earlier run was killed.
            invoke::output(Command::new("umount").arg(&folder))?;
        }
        let folder = fresh_folder(scratch, "disk")?;
        let disk = Self {
            image: scratch.join("disk.img"),
            folder,
        };
        let file = fs::File::create(&disk.image).map_err(|error| format!("{}: {error}", disk.image.display()))?;
        file.set_len((mib as u64) << 20)
            .map_err(|error| format!("{}: {error}", disk.image.display()))?;
        invoke::output(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&disk.image))?;
        invoke::output(
            Command::new("mount")
                .args(["-o", "loop"])
                .arg(&disk.image)
                .arg(&disk.folder),
        )
        .map_err(|error| format!("{error}\nhint: this benchmark mounts a loop image and needs root"))?;
        Ok(disk)
    }
}

fn is_mounted(folder: &Path) -> bool {
    invoke::output(Command::new("mountpoint").arg("-q").arg(folder)).is_ok()
}

impl Drop for Disk {
    fn drop(&mut self) {
        if is_mounted(&self.folder) {
            drop(invoke::output(Command::new("umount").arg(&self.folder)));
        }
        drop(fs::remove_file(&self.image));
    }
}
