//! The generated files of `/etc`: what a program needs to find its own user and loopback, and nothing of the host's.

use crate::host::Caller;

pub(super) fn passwd(caller: &Caller) -> String {
    let Caller {
        uid,
        gid,
        user,
        home,
        shell,
    } = caller;
    let home = home.display();
    let mut text = format!("{user}:x:{uid}:{gid}:{user}:{home}:{shell}\n");
    if *uid != 0 {
        text.push_str("root:x:0:0:root:/root:/bin/sh\n");
    }
    text.push_str("nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n");
    text
}

pub(super) fn group(caller: &Caller) -> String {
    let Caller { gid, user, .. } = caller;
    let mut text = format!("{user}:x:{gid}:\n");
    if *gid != 0 {
        text.push_str("root:x:0:\n");
    }
    // The owner of terminals, by the number every distribution uses.
    text.push_str("tty:x:5:\nnogroup:x:65534:\n");
    text
}

pub(super) fn hosts() -> &'static str {
    "127.0.0.1\tlocalhost pinfold\n::1\tlocalhost ip6-localhost ip6-loopback\n"
}

/// No resolver: names are resolved by the proxy on the host. A server on loopback that does not exist fails at once, where
/// an empty file would make some resolvers try others.
pub(super) fn resolv_conf() -> &'static str {
    "# Names are resolved by pinfold's proxy, outside of the sandbox.\nnameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
}
