#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pinfold_fuzz::run("settings_file", bytes));
