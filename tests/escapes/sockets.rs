//! Socket families, and the sockets of the host.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use crate::case::Case;

/// Every family number that the kernel has, but those that are allowed.
#[test]
fn every_other_socket_family_is_refused() {
    let case = Case::new();
    let ran = case.attack(
        "for family in range(0, 64):
    if family in (1, 2, 10, 16):
        continue
    for kind in [1, 2, 3, 5]:
        attempt(f'family {family} type {kind}', lambda: raw(NR['socket'], family, kind, 0))
attempt('upper bits', lambda: raw(NR['socket'], 40 | (1 << 40), 1, 0))
attempt('vsock pair', lambda: socket.socketpair(40, 1))",
    );
    ran.expect_all("EPERM");
}

#[test]
fn raw_and_packet_sockets_and_rare_transports_are_refused() {
    let case = Case::new();
    let ran = case.attack(
        "for family in [2, 10]:
    for kind in [3, 4, 5, 6, 10]:
        for flags in [0, 0o4000, 0o2000000]:
            attempt(f'{family} {kind} {flags}', lambda: raw(NR['socket'], family, kind | flags, 1))
    for kind, protocol in [(1, 132), (2, 136), (1, 33), (2, 33), (1, 255), (2, 255), (2, 132)]:
        attempt(f'{family} {kind} protocol {protocol}', lambda: raw(NR['socket'], family, kind, protocol))
attempt('packet', lambda: raw(NR['socket'], 17, 3, 0x0300))
attempt('obsolete packet', lambda: raw(NR['socket'], 2, 10, 0x0300))",
    );
    ran.expect_all("EPERM");
}

#[test]
fn netlink_speaks_route_and_nothing_else() {
    let case = Case::new();
    let ran = case.attack(
        "for protocol in range(1, 32):
    attempt(f'protocol {protocol}', lambda: raw(NR['socket'], 16, 3, protocol))
attempt('upper bits', lambda: raw(NR['socket'], 16, 3, 9 | (1 << 40)))",
    );
    ran.expect_all("EPERM");
    let ran = case.attack(
        "attempt('route', lambda: socket.socket(16, 3, 0).close())
say('devices', ','.join(name for _, name in socket.if_nameindex()))
import fcntl
s = socket.socket()
attempt('new address', lambda: fcntl.ioctl(s, 0x8916, struct.pack('16sH2s4s8s', b'lo', 2, b'', bytes([10, 0, 0, 1]), b'')))
attempt('device up', lambda: fcntl.ioctl(s, 0x8914, struct.pack('16sH14s', b'lo', 0, b'')))",
    );
    ran.expect(&[
        ("route", "ok"),
        ("devices", "lo"),
        ("new address", "EPERM"),
        ("device up", "EPERM"),
    ]);
}

#[test]
fn abstract_sockets_of_the_host_are_not_reachable() {
    let case = Case::new();
    let name = format!("escape-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let ran = case.attack(&format!(
        "s = socket.socket(socket.AF_UNIX)
attempt('connect', lambda: s.connect('\\0{name}'))
d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
attempt('send', lambda: d.sendto(b'x', '\\0{name}'))
say('listed', '@{name}' in open('/proc/net/unix').read())"
    ));
    ran.expect(&[
        ("connect", "ECONNREFUSED|EPERM"),
        ("send", "ECONNREFUSED|EPERM"),
        ("listed", "False"),
    ]);
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_socket_of_the_host_in_the_workspace_cannot_be_reached() {
    let case = Case::new();
    std::fs::create_dir(case.workspace.join("sub")).unwrap();
    let stream = UnixListener::bind(case.workspace.join("agent.sock")).unwrap();
    let nested = UnixListener::bind(case.workspace.join("sub/agent.sock")).unwrap();
    let datagram = UnixDatagram::bind(case.workspace.join("log.sock")).unwrap();
    for socket in [&stream, &nested] {
        socket.set_nonblocking(true).unwrap();
    }
    datagram.set_nonblocking(true).unwrap();
    let ran = case.attack(
        "for name in ['agent.sock', 'sub/agent.sock', './/agent.sock', '/proc/self/cwd/agent.sock']:
    s = socket.socket(socket.AF_UNIX)
    attempt('connect ' + name, lambda: s.connect(name))
d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
attempt('send', lambda: d.sendto(b'x', 'log.sock'))
os.symlink('agent.sock', 'alias')
s = socket.socket(socket.AF_UNIX)
attempt('through a link', lambda: s.connect('alias'))
os.unlink('alias')
attempt('move', lambda: os.rename('agent.sock', 'moved.sock'))
attempt('link', lambda: os.link('agent.sock', 'linked.sock'))
for name in ['moved.sock', 'linked.sock']:
    s = socket.socket(socket.AF_UNIX)
    attempt('connect ' + name, lambda: s.connect(name))",
    );
    for socket in [&stream, &nested] {
        assert_eq!(
            socket.accept().err().map(|e| e.kind()),
            Some(ErrorKind::WouldBlock),
            "{ran:?}"
        );
    }
    let mut buffer = [0; 8];
    assert_eq!(
        datagram.recv(&mut buffer).unwrap_err().kind(),
        ErrorKind::WouldBlock,
        "{ran:?}"
    );
    ran.expect_all("EACCES|EPERM|ECONNREFUSED|EBUSY|EXDEV|ENOENT|EROFS");
}

#[test]
fn a_socket_of_the_host_in_a_readable_folder_cannot_be_reached() {
    let case = Case::new();
    let path = case.outside.join("engine.sock");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let outside = case.outside.display().to_string();
    let ran = case.attack_with(
        &["--read", &outside],
        &format!(
            "s = socket.socket(socket.AF_UNIX)\nattempt('connect', lambda: s.connect('{}'))",
            path.display()
        ),
    );
    assert_eq!(
        listener.accept().err().map(|e| e.kind()),
        Some(ErrorKind::WouldBlock),
        "{ran:?}"
    );
    ran.expect(&[("connect", "EACCES|EPERM|ECONNREFUSED")]);
}

#[test]
fn unix_sockets_of_the_sandbox_itself_work() {
    let case = Case::new();
    let ran = case.attack(
        "for name in ['\\0own', os.environ['TMPDIR'] + '/own', 'own.sock']:
    l = socket.socket(socket.AF_UNIX)
    l.bind(name)
    l.listen()
    s = socket.socket(socket.AF_UNIX)
    attempt('connect ' + name.strip('\\0'), lambda: s.connect(name))
os.unlink('own.sock')
attempt('pair', lambda: socket.socketpair())",
    );
    ran.expect_all("ok");
}
