//! No way out but the proxy, and no way around its decisions.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, UdpSocket};

use crate::case::{Case, Live};

/// Asks the HTTP proxy for a tunnel: prints the status.
const TUNNEL: &str = "
def tunnel(target, headers=b''):
    s = socket.create_connection(('127.0.0.1', 312), 20)
    s.sendall(b'CONNECT ' + target.encode() + b' HTTP/1.1\\r\\nHost: ' + target.encode() + b'\\r\\n' + headers + b'\\r\\n')
    answer = s.recv(4096)
    return answer.split(b' ')[1].decode() if answer.startswith(b'HTTP/1.1 ') else 'closed'
def get(target):
    s = socket.create_connection(('127.0.0.1', 312), 20)
    s.sendall(b'GET http://' + target.encode() + b'/ HTTP/1.1\\r\\nHost: ' + target.encode() + b'\\r\\nConnection: close\\r\\n\\r\\n')
    answer = s.recv(4096)
    return answer.split(b' ')[1].decode() if answer.startswith(b'HTTP/1.1 ') else 'closed'
def socks(host, port):
    s = socket.create_connection(('127.0.0.1', 108), 20)
    s.sendall(b'\\x05\\x01\\x00')
    if s.recv(2) != b'\\x05\\x00':
        return 'closed'
    name = host.encode()
    s.sendall(b'\\x05\\x01\\x00\\x03' + bytes([len(name)]) + name + struct.pack('>H', port))
    answer = s.recv(64)
    return str(answer[1]) if len(answer) > 1 else 'closed'
";

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("the listener can be set");
    let port = listener.local_addr().expect("the listener has an address").port();
    (listener, port)
}

#[track_caller]
fn assert_untouched(listener: &TcpListener) {
    assert_eq!(
        listener.accept().expect_err("nobody has connected").kind(),
        ErrorKind::WouldBlock,
        "a connection reached the host"
    );
}

#[test]
fn a_direct_connection_has_no_route() {
    let case = Case::new();
    let (host, port) = listener();
    let ran = case.attack(&format!(
        "for address in ['192.0.2.1', '1.1.1.1', '8.8.8.8', '169.254.169.254', '10.0.0.1', '192.168.0.1', '224.0.0.1', '255.255.255.255']:
    s = socket.socket()
    s.settimeout(5)
    attempt('tcp ' + address, lambda: s.connect((address, 80)))
    d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    attempt('udp ' + address, lambda: d.sendto(b'x', (address, 53)))
for address in ['2001:db8::1', '2606:4700:4700::1111', 'fe80::1', 'fd00::1']:
    s = socket.socket(socket.AF_INET6)
    s.settimeout(5)
    attempt('tcp ' + address, lambda: s.connect((address, 80)))
    d = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    attempt('udp ' + address, lambda: d.sendto(b'x', (address, 53)))
def ping():
    p = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)
    p.sendto(b'\\x08\\x00' + bytes(6), ('192.0.2.1', 0))
attempt('ping', ping)
s = socket.socket()
attempt('loopback of the host', lambda: s.connect(('127.0.0.1', {port})))"
    ));
    ran.expect_all("ENETUNREACH|EACCES|EPERM|ECONNREFUSED|EINVAL|EHOSTUNREACH");
    ran.expect(&[
        ("tcp 192.0.2.1", "ENETUNREACH"),
        ("udp 192.0.2.1", "ENETUNREACH"),
        ("loopback of the host", "ECONNREFUSED"),
    ]);
    assert_untouched(&host);
}

#[test]
fn datagrams_do_not_reach_the_host() {
    let case = Case::new();
    let host = UdpSocket::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let port = host.local_addr().unwrap().port();
    case.attack(&format!(
        "d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for address in ['127.0.0.1', '127.0.0.53', '0.0.0.0']:
    try:
        d.sendto(b'x', (address, {port}))
    except OSError:
        pass"
    ));
    let mut buffer = [0; 8];
    assert_eq!(host.recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn the_proxy_denies_what_no_rule_allows() {
    let case = Case::new();
    let ran = case.attack(&format!(
        "{TUNNEL}
say('tunnel', tunnel('example.com:443'))
say('get', get('example.com'))
say('socks', socks('example.com', 443))"
    ));
    ran.expect(&[("tunnel", "403"), ("get", "403"), ("socks", "2")]);
    assert!(
        ran.stderr.contains("example.com:443"),
        "a denial is not visible: {}",
        ran.stderr
    );
    let log = case.pinfold().args(["policy", "log", "--denied"]).output().unwrap();
    assert!(String::from_utf8_lossy(&log.stdout).contains("example.com"), "{log:?}");
}

/// Ways to write an address of the host's own or of its network.
const SPELLINGS: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "2130706433",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[::127.0.0.1]",
    "[2002:7f00:1::]",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "ip6-localhost",
    "a.localhost",
    "127.0.0.1.",
    "%31%32%37.0.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "metadata.google.internal",
    "100.100.100.200",
    "192.0.0.192",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "[fc00::1]",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
];

#[test]
fn private_loopback_and_metadata_addresses_are_refused_in_every_spelling_even_when_every_host_is_allowed() {
    let case = Case::new();
    let (host, port) = listener();
    let list: Vec<String> = SPELLINGS.iter().map(|text| format!("{text:?}")).collect();
    let ran = case.attack_with(
        &["--allow-all"],
        &format!(
            "{TUNNEL}
for host in [{}]:
    say('tunnel ' + host, tunnel(host + ':{port}'))
    say('get ' + host, get(host + ':{port}'))
    if '[' not in host:
        say('socks ' + host, socks(host, {port}))",
            list.join(",")
        ),
    );
    assert_untouched(&host);
    for (name, outcome) in ran.outcomes() {
        let refused = if name.starts_with("socks") {
            outcome != "0"
        } else {
            ["400", "403", "502", "504", "closed"].contains(&outcome)
        };
        assert!(refused, "{name}: {outcome}");
    }
}

#[test]
fn an_address_that_a_rule_names_is_reached_which_shows_that_the_others_were_refused() {
    let case = Case::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let read = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
            .unwrap();
        String::from_utf8_lossy(&request[..read]).into_owned()
    });
    let rule = format!("127.0.0.1:{port}");
    let ran = case.attack_with(
        &["--allow", &rule],
        &format!("{TUNNEL}\nsay('get', get('127.0.0.1:{port}'))"),
    );
    if ran.outcome("get") != "200" {
        // Lets the server end.
        let _ = std::net::TcpStream::connect(("127.0.0.1", port)).map(|mut stream| stream.write_all(b"x"));
    }
    ran.expect(&[("get", "200")]);
    assert!(server.join().unwrap().starts_with("GET / "));
}

#[test]
fn the_proxys_listeners_cannot_be_taken_over_or_imitated() {
    let case = Case::new();
    let ran = case.attack(&format!(
        "{TUNNEL}
say('before', tunnel('example.com:443'))
for port in [312, 108]:
    for address in ['127.0.0.1', '0.0.0.0', '127.0.0.2']:
        for option in [None, socket.SO_REUSEADDR, socket.SO_REUSEPORT]:
            s = socket.socket()
            if option:
                s.setsockopt(socket.SOL_SOCKET, option, 1)
            attempt(f'bind {{address}}:{{port}} {{option}}', lambda: s.bind((address, port)))
    for address in ['::', '::1', '::ffff:127.0.0.1']:
        s = socket.socket(socket.AF_INET6)
        attempt(f'bind {{address}}:{{port}}', lambda: s.bind((address, port)))
attempt('low ports', lambda: write('/proc/sys/net/ipv4/ip_unprivileged_port_start'))
say('after', tunnel('example.com:443'))"
    ));
    for (name, outcome) in ran.outcomes() {
        match name {
            "before" | "after" => assert_eq!(outcome, "403"),
            _ => assert!(
                ["EACCES", "EADDRINUSE", "EADDRNOTAVAIL", "EROFS", "EPERM"].contains(&outcome),
                "{name}: {outcome}"
            ),
        }
    }
}

#[test]
fn ignoring_or_changing_the_proxy_variables_opens_nothing() {
    let case = Case::new();
    let (host, port) = listener();
    let ran = case.attack(&format!(
        "import urllib.request
for variables in [dict(), dict(NO_PROXY='*', no_proxy='*'), dict(http_proxy='http://127.0.0.1:{port}'), dict(http_proxy='http://192.0.2.1:3128')]:
    for name in list(os.environ):
        if name.lower().endswith('_proxy'):
            del os.environ[name]
    os.environ.update(variables)
    for url in ['http://127.0.0.1:{port}/', 'http://192.0.2.1/']:
        try:
            urllib.request.build_opener(urllib.request.ProxyHandler()).open(url, timeout=5)
            say(str(variables) + url, 'ok')
        except OSError:
            say(str(variables) + url, 'refused')"
    ));
    ran.expect_all("refused");
    assert_untouched(&host);
}

#[test]
fn a_name_in_the_greeting_that_is_not_the_asked_one_is_cut_off() {
    let case = Case::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let rule = format!("localhost:{port}");
    // Whether or not the tunnel is granted: the greeting for another host must not arrive.
    case.attack_with(
        &["--allow", &rule],
        &format!(
            "import ssl
s = socket.create_connection(('127.0.0.1', 312), 20)
s.sendall(b'CONNECT localhost:{port} HTTP/1.1\\r\\nHost: localhost:{port}\\r\\n\\r\\n')
print(s.recv(4096))
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
try:
    context.wrap_socket(s, server_hostname='other.example.com')
except (OSError, ValueError):
    pass"
        ),
    );
    if let Ok((mut stream, _)) = listener.accept() {
        let mut bytes = Vec::new();
        let _ = stream.set_nonblocking(false);
        let _ = stream.read_to_end(&mut bytes);
        assert!(
            !bytes.windows(17).any(|window| window == b"other.example.com"),
            "the greeting went out"
        );
    }
}

#[test]
fn no_listener_of_pinfolds_is_open_on_the_host() {
    let case = Case::new();
    let mut live: Live = case.start(&[] as &[&str], &["sh", "-c", "echo ready; read line; true"]);
    live.hear();
    for port in [312, 108] {
        let reached = std::net::TcpStream::connect(("127.0.0.1", port));
        assert!(reached.is_err(), "port {port} answers on the host");
    }
    live.end().expect_code(0);
}

#[test]
fn two_sandboxes_do_not_see_each_others_network() {
    let case = Case::new();
    let mut server = case.start_attack(
        &[] as &[&str],
        "s = socket.socket()
s.bind(('127.0.0.1', 4321))
s.listen()
a = socket.socket(socket.AF_UNIX)
a.bind('\\0escape-peer')
a.listen()
print('ready', flush=True)
sys.stdin.readline()
s.setblocking(False)
attempt('accept', lambda: s.accept())",
    );
    assert_eq!(server.hear(), "ready");
    let other = Case::new();
    let ran = other.attack(
        "s = socket.socket()
attempt('tcp', lambda: s.connect(('127.0.0.1', 4321)))
a = socket.socket(socket.AF_UNIX)
attempt('abstract', lambda: a.connect('\\0escape-peer'))",
    );
    ran.expect(&[("tcp", "ECONNREFUSED"), ("abstract", "ECONNREFUSED|EPERM")]);
    server.say("done");
    server.end().expect(&[("accept", "EAGAIN")]);
}
