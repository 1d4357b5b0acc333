use proptest::prelude::*;

use super::*;

fn proxy(head: &str) -> Result<Request, Fault> {
    parse(head.as_bytes(), Arrival::Proxy).map_err(|refused| refused.fault)
}

fn forwarded(head: &str) -> Forward {
    match proxy(head) {
        Ok(Request::Forward(forward)) => forward,
        other => panic!("{head:?}: {other:?}"),
    }
}

fn rebuilt(head: &str) -> String {
    String::from_utf8(forwarded(head).head).unwrap()
}

#[test]
fn a_request_is_rebuilt_from_the_canonical_host_and_the_fields_that_are_not_for_this_hop() {
    let head = "GET http://Api.Example.com./a/b?q=1 HTTP/1.1\r\nhost: API.example.COM:80\r\nAccept: */*\r\n\
                Connection: keep-alive, X-Hop\r\nProxy-Connection: keep-alive\r\nKeep-Alive: 5\r\nX-Hop: 1\r\n\
                Proxy-Authorization: Basic x\r\nTE: trailers\r\nTrailer: x\r\nX-End:  to end \t\r\n\r\n";
    assert_eq!(
        rebuilt(head),
        "GET /a/b?q=1 HTTP/1.1\r\nHost: api.example.com\r\nAccept: */*\r\nX-End: to end\r\n\r\n"
    );
    let forward = forwarded(head);
    assert_eq!((forward.path.as_str(), forward.port, forward.stays), ("/a/b", 80, true));
}

#[test]
fn targets_without_a_path_get_one() {
    for (target, line) in [
        ("GET http://a.example", "GET / HTTP/1.1"),
        ("GET HTTP://a.example/", "GET / HTTP/1.1"),
        ("GET http://a.example?x=1", "GET /?x=1 HTTP/1.1"),
        ("OPTIONS http://a.example", "OPTIONS * HTTP/1.1"),
    ] {
        let head = rebuilt(&format!("{target} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
        assert!(head.starts_with(&format!("{line}\r\nHost: a.example\r\n")), "{head}");
    }
    let head = rebuilt("GET http://a.example:8080/ HTTP/1.1\r\nHost: a.example:8080\r\n\r\n");
    assert!(head.contains("Host: a.example:8080\r\n"));
    let head = rebuilt("GET http://[::1]:8080/ HTTP/1.0\r\n\r\n");
    assert_eq!(head, "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n");
}

#[test]
fn bodies_keep_their_framing_and_expectations_pass() {
    let head =
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n";
    assert_eq!(forwarded(head).framing, Framing::Length(5));
    assert!(rebuilt(head).ends_with("Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"));
    let head = "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\ntransfer-encoding: Chunked\r\n\r\n";
    assert_eq!(forwarded(head).framing, Framing::Chunked);
    assert!(rebuilt(head).ends_with("Transfer-Encoding: chunked\r\n\r\n"));
}

#[test]
fn a_websocket_upgrade_passes_and_an_unannounced_one_is_dropped() {
    let fields = "Host: a.example\r\nSec-WebSocket-Key: k\r\nUpgrade: WebSocket\r\n";
    let head = format!("GET http://a.example/ws HTTP/1.1\r\n{fields}Connection: keep-alive, Upgrade\r\n\r\n");
    assert!(forwarded(&head).websocket);
    assert!(rebuilt(&head).ends_with("Sec-WebSocket-Key: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    let head = format!("GET http://a.example/ws HTTP/1.1\r\n{fields}\r\n");
    assert!(!forwarded(&head).websocket);
    assert!(!rebuilt(&head).contains("Upgrade"));
}

#[test]
fn a_connect_target_is_a_host_with_a_port() {
    for fields in [
        "",
        "Host: a.example:443\r\n",
        "Host: A.example\r\n",
        "Content-Length: 0\r\nUser-Agent: x\r\n",
    ] {
        let request = proxy(&format!("CONNECT A.Example.:443 HTTP/1.1\r\n{fields}\r\n")).unwrap();
        assert_eq!(
            request,
            Request::Tunnel {
                host: Host::parse(b"a.example").unwrap(),
                port: 443
            }
        );
    }
    for (head, fault) in [
        ("CONNECT a.example HTTP/1.1\r\n\r\n", Fault::NoPort),
        ("CONNECT a.example:0 HTTP/1.1\r\n\r\n", Fault::Host(HostError::BadPort)),
        (
            "CONNECT u@a.example:443 HTTP/1.1\r\n\r\n",
            Fault::Host(HostError::Userinfo),
        ),
        (
            "CONNECT 127.1:443 HTTP/1.1\r\n\r\n",
            Fault::Host(HostError::NumericSpelling),
        ),
        (
            "CONNECT [fe80::1%25e]:443 HTTP/1.1\r\n\r\n",
            Fault::Host(HostError::Zone),
        ),
        ("CONNECT ::1:443 HTTP/1.1\r\n\r\n", Fault::Host(HostError::BareIpv6)),
        (
            "CONNECT /x:443 HTTP/1.1\r\n\r\n",
            Fault::Host(HostError::ForbiddenByte { byte: b'/' }),
        ),
        (
            "CONNECT a.example:443 HTTP/1.1\r\nHost: b.example\r\n\r\n",
            Fault::HostDiffers,
        ),
        (
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:80\r\n\r\n",
            Fault::HostDiffers,
        ),
        (
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
            Fault::RepeatedHost,
        ),
        (
            "CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
            Fault::Body,
        ),
        (
            "CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            Fault::Body,
        ),
    ] {
        assert_eq!(proxy(head), Err(fault), "{head:?}");
    }
}

#[test]
fn ambiguous_and_malformed_requests_are_refused() {
    let with = |fields: &str| format!("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n");
    for (head, fault) in [
        (
            with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
            Fault::Fields(FieldError::TwoFramings),
        ),
        (
            with("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"),
            Fault::Fields(FieldError::TwoFramings),
        ),
        (
            with("Content-Length: 1\r\nContent-Length: 1\r\n"),
            Fault::Fields(FieldError::RepeatedLength),
        ),
        (
            with("Content-Length: 1\r\nContent-Length: 2\r\n"),
            Fault::Fields(FieldError::RepeatedLength),
        ),
        (with("Content-Length: 1, 1\r\n"), Fault::Fields(FieldError::BadLength)),
        (with("Content-Length: +1\r\n"), Fault::Fields(FieldError::BadLength)),
        (with("Content-Length: -1\r\n"), Fault::Fields(FieldError::BadLength)),
        (with("Content-Length: 0x1\r\n"), Fault::Fields(FieldError::BadLength)),
        (with("Content-Length:\r\n"), Fault::Fields(FieldError::BadLength)),
        (
            with("Content-Length: 9999999999999999999\r\n"),
            Fault::Fields(FieldError::BadLength),
        ),
        (
            with("Transfer-Encoding: gzip, chunked\r\n"),
            Fault::Fields(FieldError::BadCoding),
        ),
        (
            with("Transfer-Encoding: identity\r\n"),
            Fault::Fields(FieldError::BadCoding),
        ),
        (
            with("Transfer-Encoding: xchunked\r\n"),
            Fault::Fields(FieldError::BadCoding),
        ),
        (
            with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            Fault::Fields(FieldError::BadCoding),
        ),
        (
            with("Transfer-Encoding: \x0bchunked\r\n"),
            Fault::Head(HeadError::ControlByte),
        ),
        (
            with("Transfer-Encoding : chunked\r\n"),
            Fault::Head(HeadError::FieldName),
        ),
        (with("X: a\r\n b\r\n"), Fault::Head(HeadError::Folded)),
        (with("X: a\r\n\tb\r\n"), Fault::Head(HeadError::Folded)),
        (with("X: a\n"), Fault::Head(HeadError::LineEnd)),
        (with("X: a\rb\r\n"), Fault::Head(HeadError::LineEnd)),
        (with("X: a\0b\r\n"), Fault::Head(HeadError::ControlByte)),
        (with("X: a\x7f\r\n"), Fault::Head(HeadError::ControlByte)),
        (with(": a\r\n"), Fault::Head(HeadError::FieldName)),
        (with("nonsense\r\n"), Fault::Head(HeadError::FieldName)),
        (with("X(y): a\r\n"), Fault::Head(HeadError::FieldName)),
        (with("Host: a.example\r\n"), Fault::RepeatedHost),
        (with("host: b.example\r\n"), Fault::RepeatedHost),
        (with("Connection: a b\r\n"), Fault::Fields(FieldError::BadConnection)),
        (with("Upgrade: h2c\r\nConnection: Upgrade\r\n"), Fault::Upgrade),
        (with("Upgrade: websocket\r\nUpgrade: h2c\r\n"), Fault::Upgrade),
        (
            with("Upgrade: websocket, h2c\r\nConnection: Upgrade\r\n"),
            Fault::Upgrade,
        ),
        (with("Upgrade: websocket\r\nConnection: Upgrade\r\n"), Fault::Upgrade),
        (with("Expect: something\r\n"), Fault::Expectation),
        (
            with(&format!("X: {}\r\n", "a".repeat(40_000))),
            Fault::Head(HeadError::TooLong),
        ),
        (with(&"X: a\r\n".repeat(300)), Fault::Head(HeadError::TooManyFields)),
        (
            "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::OriginForm,
        ),
        (
            "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::OriginForm,
        ),
        (
            "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Scheme,
        ),
        (
            "GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Scheme,
        ),
        (
            "GET a.example HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Target,
        ),
        (
            "GET http://a.example/#f HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Target,
        ),
        (
            "GET http://a.example/ä HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Target,
        ),
        ("GET http://a.example/ HTTP/1.1\r\n\r\n".to_owned(), Fault::NoHost),
        (
            "GET http://a.example/ HTTP/1.1\r\nHost:\r\n\r\n".to_owned(),
            Fault::Host(HostError::Empty),
        ),
        (
            "GET http:/// HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Host(HostError::Empty),
        ),
        (
            "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n".to_owned(),
            Fault::HostDiffers,
        ),
        (
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example:8080\r\n\r\n".to_owned(),
            Fault::HostDiffers,
        ),
        (
            "GET http://a.example:8080/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::HostDiffers,
        ),
        (
            "GET http://a.example@b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Host(HostError::Userinfo),
        ),
        (
            "GET http://a.example\\@b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Host(HostError::Userinfo),
        ),
        (
            "GET http://2130706433/ HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            Fault::Host(HostError::NumericSpelling),
        ),
        (
            "GET  http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Head(HeadError::StartLine),
        ),
        (
            "GET http://a.example/ HTTP/1.1 \r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Head(HeadError::StartLine),
        ),
        (
            "GET http://a.example/\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Head(HeadError::StartLine),
        ),
        (
            "GET http://a.example/ HTTP/2.0\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Head(HeadError::Version),
        ),
        (
            "GET http://a.example/ http/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Head(HeadError::Version),
        ),
        (
            "\r\nGET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Head(HeadError::StartLine),
        ),
        ("PRI * HTTP/2.0\r\n\r\n".to_owned(), Fault::Head(HeadError::Version)),
        (
            "TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Method,
        ),
        (
            "trace http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Method,
        ),
        (
            "get http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Method,
        ),
        (
            "G\u{e9}T http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
            Fault::Head(HeadError::StartLine),
        ),
        (
            "POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            Fault::Fields(FieldError::BadCoding),
        ),
    ] {
        assert_eq!(proxy(&head), Err(fault), "{:?}", &head[..head.len().min(200)]);
    }
}

#[test]
fn inside_a_tunnel_only_its_own_host_may_be_named() {
    let host = Host::parse(b"a.example").unwrap();
    let tunnel = |head: &str| parse(head.as_bytes(), Arrival::Tunnel { host: &host, port: 80 });
    for head in [
        "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: A.example.:80\r\n\r\n",
        "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n",
    ] {
        assert!(tunnel(head).is_ok(), "{head:?}");
    }
    for (head, fault) in [
        ("GET /x HTTP/1.1\r\nHost: b.example\r\n\r\n", Fault::HostDiffers),
        ("GET /x HTTP/1.1\r\nHost: a.example:8080\r\n\r\n", Fault::HostDiffers),
        (
            "GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
            Fault::OtherHost,
        ),
        (
            "GET http://a.example:8080/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            Fault::OtherHost,
        ),
        (
            "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example\r\n\r\n",
            Fault::Method,
        ),
        ("TRACE / HTTP/1.1\r\nHost: a.example\r\n\r\n", Fault::Method),
    ] {
        let refused = tunnel(head).unwrap_err();
        assert_eq!(refused.fault, fault, "{head:?}");
        assert!(!refused.host.is_empty());
    }
}

#[test]
fn what_the_log_shows_of_a_refused_request_is_escaped_and_without_query() {
    let refused = parse(
        b"GET http://a\x01b/?token=secret HTTP/1.1\r\nHost: x\r\n\r\n",
        Arrival::Proxy,
    )
    .unwrap_err();
    assert_eq!(
        refused.host, "-",
        "a control byte ends the parsing before anything is known"
    );
    let refused = parse(b"GET /p?token=secret HTTP/1.1\r\nHost: x\r\n\r\n", Arrival::Proxy).unwrap_err();
    assert_eq!(refused.host, "/p");
    let refused = parse(b"CONNECT \xff.example:443 HTTP/1.1\r\n\r\n", Arrival::Proxy).unwrap_err();
    assert_eq!(refused.host, "\\xff.example:443");
}

proptest! {
    #[test]
    fn parsing_bytes_never_panics_and_rebuilt_heads_are_well_formed(
        fields in prop::collection::vec("[A-Za-z-]{0,12}:? ?[ -~\\t\\r\\n]{0,12}", 0..6),
        target in "(http://)?[a-z.:@/?%\\[\\]]{0,20}",
    ) {
        let head = format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n{}\r\n\r\n", fields.join("\r\n"));
        if let Ok(Request::Forward(forward)) = parse(head.as_bytes(), Arrival::Proxy) {
            let host = forward.host.clone();
            let again = parse(&forward.head, Arrival::Tunnel { host: &host, port: forward.port });
            match again {
                Ok(Request::Forward(again)) => prop_assert_eq!(again.head, forward.head),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn any_bytes_are_a_request_or_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, Arrival::Proxy);
    }
}
