//! Every fuzz target over its corpus and a bounded number of mutations of it, the same ones in every run.
//!
//! This keeps the targets alive and catches the shallow faults; depth is libFuzzer's (`cargo xtask fuzz TARGET`).
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use pinfold_fuzz::{Body, TARGETS};

const MUTATIONS: usize = 10_000;
const LONGEST: usize = 4096;

fn below(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = below("corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    files.sort();
    let mut seeds = Vec::new();
    for file in files {
        let bytes = fs::read(&file).expect("a seed can be read");
        // A file of lines is a seed a line, unless the target wants the lines together.
        if file.extension().is_some_and(|extension| extension == "lines") {
            seeds.extend(bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec));
        } else {
            seeds.push(bytes);
        }
    }
    seeds
}

fn check(target: &str, body: Body, input: &[u8]) {
    assert!(
        catch_unwind(|| body(input)).is_ok(),
        "{target} fails on \"{}\"",
        input.escape_ascii()
    );
}

#[test]
fn no_target_fails_on_its_corpus_or_on_mutations_of_it() {
    for (target, body) in TARGETS {
        let seeds = seeds(target);
        assert!(!seeds.is_empty(), "{target} has no corpus");
        seeds.iter().for_each(|seed| check(target, body, seed));
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        for _ in 0..MUTATIONS {
            let mut input = seeds[dice.below(seeds.len())].clone();
            for _ in 0..=dice.below(6) {
                let other = &seeds[dice.below(seeds.len())];
                mutate(&mut input, other, &mut dice);
            }
            input.truncate(LONGEST);
            check(target, body, &input);
        }
    }
}

#[test]
fn every_target_has_its_libfuzzer_program() {
    let programs: BTreeSet<String> = fs::read_dir(below("../../fuzz/fuzz_targets"))
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(programs, targets);
    let manifest = fs::read_to_string(below("../../fuzz/Cargo.toml")).unwrap();
    for target in targets {
        assert!(
            manifest.contains(&format!("name = \"{target}\"")),
            "{target} is not in fuzz/Cargo.toml"
        );
    }
}

fn mutate(input: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    const TELLING: [u8; 16] = *b"\0\r\n \t./\\:*[%@\xff\x80\x7f";
    let at = dice.below(input.len() + 1);
    let until = at + dice.below(input.len() - at + 1);
    match dice.below(7) {
        0 if at < input.len() => input[at] ^= 1 << dice.below(8),
        1 if at < input.len() => input[at] = TELLING[dice.below(TELLING.len())],
        2 => input.insert(at, TELLING[dice.below(TELLING.len())]),
        3 => drop(input.drain(at..until)),
        4 => {
            let copy = input[at..until].to_vec();
            input.splice(at..at, copy);
        }
        5 => {
            let from = dice.below(other.len() + 1);
            input.splice(at..until, other[from..].iter().copied());
        }
        _ => input.insert(at, dice.next() as u8),
    }
}

/// xorshift64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("it is below a usize")
    }
}
