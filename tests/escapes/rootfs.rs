//! A root file system of its own: the system comes from a folder, and nothing of the host's system shows.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::case::Case;

/// A folder with a shell and what it is linked against.
fn root_with_a_shell(folder: &Path) {
    let linked = Command::new("ldd")
        .arg("/bin/sh")
        .output()
        .expect("the rootfs test needs ldd");
    let text = String::from_utf8_lossy(&linked.stdout).into_owned();
    let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain(["/bin/sh"]) {
        let copy = folder.join(file.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().expect("a file lies in a folder")).expect("the folder can be made");
        fs::copy(file, &copy).expect("the file can be copied");
    }
    fs::create_dir_all(folder.join("etc")).expect("the folder can be made");
    fs::write(folder.join("etc/marker"), "from the folder\n").expect("the file can be written");
}

#[test]
fn the_system_comes_from_the_folder_and_stays_as_it_is() {
    let case = Case::new();
    let root = case.root().join("rootfs");
    root_with_a_shell(&root);
    let root = root.to_str().expect("the case's path is text");
    let ran = case.run(
        &["--rootfs", root],
        &[
            "/bin/sh",
            "-c",
            "while read -r line; do echo \"marker: $line\"; done < /etc/marker
             test -e /etc/debian_version && echo 'the host shows'
             test -e /usr/share && echo 'the host shows'
             echo x > /etc/marker || echo 'not writable'
             echo x > made && echo 'the workspace is writable'",
        ],
    );
    let said = &ran.stdout;
    assert!(said.contains("marker: from the folder"), "{ran:?}");
    assert!(
        said.contains("not writable") && said.contains("the workspace is writable"),
        "{ran:?}"
    );
    assert!(!said.contains("the host shows"), "{ran:?}");
    assert_eq!(
        fs::read_to_string(case.workspace.join("made")).ok().as_deref(),
        Some("x\n")
    );
    assert_eq!(
        fs::read_to_string(Path::new(root).join("etc/marker")).ok().as_deref(),
        Some("from the folder\n")
    );
}

#[test]
fn a_rule_about_the_hosts_system_is_refused_beside_another_root() {
    let case = Case::new();
    let root = case.root().join("rootfs");
    root_with_a_shell(&root);
    let root = root.to_str().expect("the case's path is text");
    let ran = case.run(&["--rootfs", root, "--hide", "/etc"], &["/bin/sh", "-c", "true"]);
    ran.expect_code(65);
}
