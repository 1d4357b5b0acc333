use pinfold_model::wire::Failure;

use super::*;

fn host(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = Facts {
        kernel: "6.1.0".to_owned(),
        program: "/usr/bin/pinfold".to_owned(),
        max_user_namespaces: Some("15000".to_owned()),
        ..Facts::default()
    };
    change(&mut facts);
    facts
}

#[track_caller]
fn says(error: &StartError, facts: &Facts, expected: &str) {
    let hint = decide(error, facts).unwrap_or_default();
    assert!(hint.contains(expected), "{error}: {hint}");
}

#[test]
fn refused_namespaces_name_the_setting_that_refuses_them() {
    let refused = |errno| StartError::Namespaces { errno };
    for (errno, facts, expected) in [
        (
            Errno::PERM,
            host(|facts| facts.unprivileged_userns_clone = Some("0".to_owned())),
            "sysctl kernel.unprivileged_userns_clone=1",
        ),
        (
            Errno::NOSPC,
            host(|facts| facts.max_user_namespaces = Some("0".to_owned())),
            "sysctl user.max_user_namespaces=15000",
        ),
        (Errno::NOSPC, host(|_| {}), "nested too deeply"),
        (Errno::PERM, host(|facts| facts.in_chroot = true), "inside a chroot"),
        (
            Errno::PERM,
            host(|facts| facts.apparmor_restricts = true),
            "give /usr/bin/pinfold an AppArmor profile",
        ),
        (Errno::PERM, host(|facts| facts.is_filtered = true), "seccomp profile"),
        (
            Errno::PERM,
            host(|facts| facts.in_container = true),
            "inside a container",
        ),
        (Errno::PERM, host(|_| {}), "security module"),
        (Errno::NOSYS, host(|_| {}), "has no clone3"),
        (Errno::NOSYS, host(|facts| facts.is_filtered = true), "allow clone3"),
        (Errno::INVAL, host(|_| {}), "CONFIG_USER_NS"),
    ] {
        says(&refused(errno), &facts, expected);
    }
}

#[test]
fn refused_id_maps_name_the_capability_or_the_profile() {
    let refused = StartError::Init {
        step: InitStep::MapUser,
        errno: Errno::PERM,
    };
    says(&refused, &host(|facts| facts.is_root = true), "CAP_SETFCAP");
    says(&refused, &host(|facts| facts.apparmor_restricts = true), "AppArmor");
    says(&refused, &host(|_| {}), "security module");
}

#[test]
fn refused_layers_name_what_to_change() {
    let refused = |layer, errno: Errno| StartError::Layer {
        failure: Failure {
            layer,
            step: "do it".to_owned(),
            errno: errno.raw_os_error(),
        },
    };
    for (error, expected) in [
        (refused(Layer::Landlock, Errno::NOSYS), "CONFIG_SECURITY_LANDLOCK"),
        (refused(Layer::Landlock, Errno::OPNOTSUPP), "lsm="),
        (refused(Layer::Seccomp, Errno::NOSYS), "CONFIG_SECCOMP_FILTER"),
        (refused(Layer::Proc, Errno::PERM), "systempaths=unconfined"),
        (refused(Layer::Mounts, Errno::NOSYS), "Linux 5.12"),
        (refused(Layer::Mounts, Errno::NOSPC), "fs.mount-max"),
        (refused(Layer::Trace, Errno::PERM), "without --explain"),
        (refused(Layer::Proof, Errno::PERM), "pinfold doctor"),
    ] {
        says(&error, &host(|_| {}), expected);
    }
}

#[test]
fn no_first_advice_is_to_switch_the_sandbox_or_the_container_walls_off() {
    let container = host(|facts| facts.in_container = true);
    for errno in [Errno::PERM, Errno::NOSPC, Errno::NOSYS, Errno::INVAL] {
        let hint = decide(&StartError::Namespaces { errno }, &container).unwrap();
        assert!(!hint.contains("privileged"), "{hint}");
    }
}

#[test]
fn an_error_number_that_the_guest_made_up_does_no_harm() {
    for errno in [0, -1, 4096, i32::MIN, i32::MAX] {
        let failure = Failure {
            layer: Layer::Proof,
            step: "x".to_owned(),
            errno,
        };
        let error = StartError::Layer { failure };
        assert!(decide(&error, &host(|_| {})).is_some());
        assert!(!error.to_string().is_empty());
    }
}
