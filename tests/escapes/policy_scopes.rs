//! Only trusted scopes loosen: what a hostile workspace can say about its own sandbox.

use std::fs;

use crate::case::{Case, SECRET};

#[test]
fn a_policy_file_of_the_workspace_cannot_loosen() {
    let case = Case::new();
    let outside = case.outside.display().to_string();
    for text in [
        format!("version = 1\n[filesystem]\nread = [\"{outside}\"]\n"),
        format!("version = 1\n[filesystem]\nwrite = [\"{outside}\"]\n"),
        "version = 1\n[filesystem]\nlift = [\"git-hooks\"]\n".to_owned(),
        "version = 1\n[network]\nallow = [\"example.com\"]\n".to_owned(),
        "version = 1\n[network]\nallow_all = true\n".to_owned(),
        "version = 1\n[environment]\npass = [\"AWS_SECRET_ACCESS_KEY\"]\n".to_owned(),
    ] {
        case.put("pinfold.toml", &text);
        let mut pinfold = case.pinfold();
        pinfold.env("AWS_SECRET_ACCESS_KEY", SECRET);
        pinfold.args(["run", "--", "sh", "-c", "echo started; env; cat ../../outside/file"]);
        let ran = crate::case::finish(&mut pinfold);
        ran.assert_never_says(SECRET);
        let refused = ran.code == 65 && !ran.stdout.contains("started");
        let ignored = ran.stderr.contains("pinfold.toml") || ran.stderr.contains("trust");
        assert!(refused || ignored, "{text}: {ran:?}");
    }
}

#[test]
fn a_policy_file_of_the_workspace_can_tighten() {
    let case = Case::new();
    case.put("secret", SECRET);
    case.put("pinfold.toml", "version = 1\n[filesystem]\nhide = [\"secret\"]\n");
    let ran = case.attack("attempt('read', lambda: print(read('secret')))");
    ran.expect(&[("read", "EACCES")]);
}

#[test]
fn the_policy_file_cannot_be_changed_made_or_replaced_from_inside() {
    let case = Case::new();
    let file = case.put("pinfold.toml", "version = 1\n");
    let ran = case.attack(
        "attempt('write', lambda: write('pinfold.toml'))
attempt('unlink', lambda: os.unlink('pinfold.toml'))
attempt('replace', lambda: os.rename('README', 'pinfold.toml'))
attempt('lift', lambda: os.rename('pinfold.toml', 'other'))",
    );
    ran.expect_all("EROFS|EBUSY|EACCES");
    let flags = ["--lift", "pinfold"];
    case.run(&flags, &["true"]).expect_code(64);
    fs::remove_file(&file).unwrap();
    case.sh("echo 'version = 1' >pinfold.toml").expect_code(0);
    assert!(!file.exists(), "a policy made inside is obeyed by the next run");
}

#[test]
fn the_policy_file_of_the_workspace_may_not_be_a_link_out_of_it() {
    let case = Case::new();
    case.write(&case.outside.join("policy.toml"), "version = 1\n");
    case.link(case.outside.join("policy.toml"), "pinfold.toml");
    case.run(&[] as &[&str], &["true"]).expect_code(65);
}

#[test]
fn pinfolds_own_state_is_out_of_reach_even_where_a_rule_shows_it() {
    let case = Case::new();
    case.sh("true").expect_code(0);
    let (data, config) = (case.data().display().to_string(), case.config().display().to_string());
    case.policy("version = 1\n# theirs\n");
    let ran = case.attack_with(
        &["--write", &data, "--write", &config],
        &format!(
            "for folder, _, names in os.walk('{data}/pinfold'):
    for name in names:
        say('seen', folder + name)
attempt('make', lambda: create('{data}/pinfold/x'))
attempt('remove', lambda: os.rename('{data}/pinfold', '{data}/moved'))
attempt('policy', lambda: write('{config}/pinfold/config.toml'))
attempt('other policy', lambda: create('{config}/pinfold/profiles'))
attempt('move policy', lambda: os.rename('{config}/pinfold', '{config}/moved'))"
        ),
    );
    ran.expect_all("EROFS|EBUSY|EACCES|ENOENT");
    assert_eq!(
        fs::read_to_string(case.config().join("pinfold/config.toml")).unwrap(),
        "version = 1\n# theirs\n"
    );
}

#[test]
fn a_policy_with_an_unknown_key_or_a_wrong_type_starts_nothing() {
    let case = Case::new();
    for text in [
        "version = 1\n[filesystem]\nhied = [\"x\"]\n",
        "version = 1\n[filesystem]\nhide = 7\n",
        "version = 1\nfilesystem",
        "\u{0}",
    ] {
        case.policy(text);
        let ran = case.run(&[] as &[&str], &["echo", "started"]);
        ran.expect_code(65);
        assert!(!ran.stdout.contains("started"));
    }
}

#[test]
fn a_rule_that_matches_nothing_is_mentioned() {
    let case = Case::new();
    let ran = case.run(&["--read", "no/such/path"], &["true"]);
    assert!(ran.stderr.contains("no/such/path"), "{ran:?}");
}

#[test]
fn the_working_directory_never_widens_what_may_be_written() {
    let case = Case::new();
    let mut pinfold = case.pinfold();
    pinfold.current_dir(&case.outside);
    pinfold.args(["run", "--workspace"]).arg(&case.workspace);
    pinfold.args(["--", "sh", "-c", "pwd; touch escaped ../outside/escaped; rm -f escaped"]);
    let ran = crate::case::finish(&mut pinfold);
    assert_eq!(ran.stdout.trim_end(), case.workspace.display().to_string(), "{ran:?}");
    assert!(!case.outside.join("escaped").exists());
    assert!(!case.workspace.join("escaped").exists());
}
