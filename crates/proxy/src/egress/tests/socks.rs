use super::*;
use crate::egress::hello::tests::client_hello;

fn request(kind: u8, address: &[u8], port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, kind];
    bytes.extend(address);
    bytes.extend(port.to_be_bytes());
    bytes
}

fn named(name: &str, port: u16) -> Vec<u8> {
    let mut address = vec![u8::try_from(name.len()).unwrap()];
    address.extend(name.as_bytes());
    request(3, &address, port)
}

/// Shakes hands and sends `bytes`; the reply code and the connection.
async fn reply(world: &World, bytes: &[u8]) -> (u8, TcpStream) {
    let mut client = connect(world.socks).await;
    client.write_all(&[5, 1, 0]).await.unwrap();
    expect(&mut client, [5, 0]).await;
    client.write_all(bytes).await.unwrap();
    let mut reply = [0; 10];
    patient(client.read_exact(&mut reply)).await.unwrap();
    assert_eq!((reply[0], &reply[2..]), (5, &[0, 1, 0, 0, 0, 0, 0, 0][..]));
    (reply[1], client)
}

#[tokio::test]
async fn a_name_is_resolved_by_the_proxy_and_relayed_under_the_same_rules_as_connect() {
    let server = Server::on(443).await;
    let mut world = World::new(&["api.example.com", "127.0.0.0/8"], &[], &["api.example.com"]).await;
    let (code, mut client) = reply(&world, &named("API.example.com", 443)).await;
    assert_eq!(code, 0);
    let hello = client_hello(Some(b"api.example.com"));
    client.write_all(&hello).await.unwrap();
    let mut upstream = server.accept().await;
    expect(&mut upstream, &hello).await;
    upstream.write_all(b"x").await.unwrap();
    expect(&mut client, "x").await;
    drop((client, upstream));
    assert_eq!(
        world.decided().await,
        format!("allow api.example.com:443 {}/1", hello.len())
    );
    assert_eq!(world.asked(), ["api.example.com"]);

    let (code, mut client) = reply(&world, &named("api.example.com", 443)).await;
    assert_eq!(code, 0);
    client
        .write_all(&client_hello(Some(b"evil.example.com")))
        .await
        .unwrap();
    assert_eq!(world.decided().await, "deny api.example.com:443 server name differs");
}

#[tokio::test]
async fn denials_and_unreachable_hosts_have_their_own_reply_codes() {
    let closed = Server::new().await;
    let port = closed.port;
    drop(closed);
    let rules = [
        format!("a.example:{port}"),
        "b.example".to_owned(),
        format!("127.0.0.0/8:{port}"),
    ];
    let mut world = World::new(&rules.each_ref().map(String::as_str), &[], &["a.example", "b.example"]).await;
    for (bytes, code, decided) in [
        (
            named("other.example", 443),
            2,
            "deny other.example:443 no rule".to_owned(),
        ),
        (
            named("b.example", 443),
            2,
            "deny b.example:443 private address".to_owned(),
        ),
        (
            named("b.example", 8443),
            2,
            "deny b.example:8443 no rule for this port".to_owned(),
        ),
        (
            named("a\0.example", 443),
            2,
            "deny a\\x00.example:443 malformed host".to_owned(),
        ),
        (
            named("2130706433", 443),
            2,
            "deny 2130706433:443 malformed host".to_owned(),
        ),
        (
            request(1, &[127, 0, 0, 1], 443),
            2,
            "deny 127.0.0.1:443 private address".to_owned(),
        ),
        (
            request(1, &[169, 254, 169, 254], 80),
            2,
            "deny 169.254.169.254:80 cloud metadata".to_owned(),
        ),
        (
            request(1, &[8, 8, 8, 8], 443),
            2,
            "deny 8.8.8.8:443 address literal".to_owned(),
        ),
        (
            request(4, &[0; 16], 443),
            2,
            "deny [::]:443 unspecified address".to_owned(),
        ),
        (named("a.example", port), 5, format!("fail a.example:{port}")),
        (
            vec![5, 2, 0, 1, 127, 0, 0, 1, 0, 80],
            7,
            "deny -:0 command not supported".to_owned(),
        ),
        (
            vec![5, 3, 0, 1, 0, 0, 0, 0, 0, 0],
            7,
            "deny -:0 command not supported".to_owned(),
        ),
        (vec![5, 1, 0, 9, 0, 0], 8, "deny -:0 address type not known".to_owned()),
    ] {
        let (got, mut client) = reply(&world, &bytes).await;
        assert_eq!(got, code, "{decided}");
        assert_eq!(rest(&mut client).await, "");
        assert_eq!(world.decided().await, decided);
    }
    assert_eq!(world.asked(), ["b.example", "a.example"]);
}

#[tokio::test]
async fn other_protocols_on_the_socks_port_are_refused() {
    let mut world = World::new(&["*.example.com"], &[], &[]).await;
    for (bytes, answer) in [
        (&b"\x04\x01\x01\xbb\x7f\0\0\x01\0"[..], &b"\0\x5b\0\0\0\0\0\0"[..]),
        (b"\x04\x01\x01\xbb\0\0\0\x01\0api.example.com\0", b"\0\x5b\0\0\0\0\0\0"),
        (b"\x05\x01\x02", b"\x05\xff"),
        (b"GET / HTTP/1.1\r\n\r\n", b""),
    ] {
        let mut client = connect(world.socks).await;
        client.write_all(bytes).await.unwrap();
        assert_eq!(
            rest(&mut client).await.as_bytes(),
            String::from_utf8_lossy(answer).as_bytes()
        );
        assert!(world.decided().await.starts_with("deny -:0 "));
    }
}

#[tokio::test]
async fn everything_sent_at_once_is_understood_and_port_80_is_read_as_http() {
    let server = Server::on(80).await;
    let world = World::new(&["a.example", "127.0.0.0/8"], &[], &["a.example"]).await;
    let mut client = connect(world.socks).await;
    let mut bytes = vec![5, 2, 2, 0];
    bytes.extend(named("a.example", 80));
    bytes.extend(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    client.write_all(&bytes).await.unwrap();
    let mut upstream = server.accept().await;
    assert_eq!(head(&mut upstream).await, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    upstream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    expect(&mut client, [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await;
    assert_eq!(head(&mut client).await, "HTTP/1.1 204 No Content\r\n\r\n");
    assert!(rest(&mut client).await.starts_with("HTTP/1.1 400 "));
    assert_eq!(rest(&mut upstream).await, "");
}
