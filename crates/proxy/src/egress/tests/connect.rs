use super::*;
use crate::egress::hello::tests::client_hello;

const ESTABLISHED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

async fn tunnel(world: &World, target: &str) -> TcpStream {
    let mut client = connect(world.http).await;
    client
        .write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    expect(&mut client, ESTABLISHED).await;
    client
}

#[tokio::test]
async fn a_tunnel_whose_server_name_is_its_host_passes_untouched() {
    let server = Server::on(443).await;
    let mut world = World::new(&["api.example.com", "127.0.0.0/8"], &[], &["api.example.com"]).await;
    let mut client = tunnel(&world, "API.example.com.:443").await;
    let mut upstream = server.accept().await;
    let hello = client_hello(Some(b"api.example.com"));
    client.write_all(&hello[..20]).await.unwrap();
    client.write_all(&hello[20..]).await.unwrap();
    client.write_all(b"early").await.unwrap();
    expect(&mut upstream, &hello).await;
    expect(&mut upstream, "early").await;
    upstream.write_all(b"answer").await.unwrap();
    drop(upstream);
    assert_eq!(rest(&mut client).await, "answer");
    drop(client);
    let wanted = format!("allow api.example.com:443 {}/6", hello.len() + 5);
    assert_eq!(world.decided().await, wanted);
}

#[tokio::test]
async fn bytes_sent_along_with_the_connect_request_are_part_of_the_tunnel() {
    let server = Server::on(443).await;
    let world = World::new(&["api.example.com", "127.0.0.0/8"], &[], &["api.example.com"]).await;
    let mut client = connect(world.http).await;
    let hello = client_hello(Some(b"api.example.com"));
    let mut bytes = b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n".to_vec();
    bytes.extend(&hello);
    client.write_all(&bytes).await.unwrap();
    expect(&mut client, ESTABLISHED).await;
    expect(&mut server.accept().await, &hello).await;
}

#[tokio::test]
async fn a_tunnel_for_another_server_name_none_or_no_tls_is_closed_and_nothing_of_it_passes() {
    for (bytes, reason) in [
        (client_hello(Some(b"evil.example.com")), "server name differs"),
        (client_hello(Some(b"example.com")), "server name differs"),
        (client_hello(None), "no server name"),
        (b"GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n".to_vec(), "not TLS"),
        (b"SSH-2.0-client\r\n".to_vec(), "not TLS"),
        (b"\x16\x03\x01\x00\x04\x02\x00\x00\x00".to_vec(), "not TLS"),
    ] {
        let server = Server::on(443).await;
        let mut world = World::new(&["api.example.com", "127.0.0.0/8"], &[], &["api.example.com"]).await;
        let mut client = tunnel(&world, "api.example.com:443").await;
        client.write_all(&bytes).await.unwrap();
        assert_eq!(world.decided().await, format!("deny api.example.com:443 {reason}"));
        assert_eq!(rest(&mut server.accept().await).await, "", "{reason}");
        let told = rest(&mut client).await;
        assert_eq!(told.is_empty(), reason == "not TLS", "{reason}: {told:?}");
    }
}

#[tokio::test]
async fn a_hello_that_never_ends_is_dropped_after_the_deadline() {
    let server = Server::on(443).await;
    let options = Options {
        head_deadline: Duration::from_millis(50),
        ..Options::default()
    };
    let mut world = World::with(&["api.example.com", "127.0.0.0/8"], &[], &["api.example.com"], options).await;
    let mut client = tunnel(&world, "api.example.com:443").await;
    client
        .write_all(&client_hello(Some(b"api.example.com"))[..30])
        .await
        .unwrap();
    assert_eq!(rest(&mut client).await, "");
    assert_eq!(world.decided().await, "deny api.example.com:443 not TLS");
    assert_eq!(rest(&mut server.accept().await).await, "");
}

#[tokio::test]
async fn a_denied_host_is_told_rule_and_hint_before_any_tls_and_is_never_resolved() {
    let mut world = World::new(
        &["*.example.org"],
        &["bad.example.org"],
        &["other.example", "bad.example.org"],
    )
    .await;
    let answer = world
        .ask("CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n")
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 403 Denied by pinfold: no rule\r\nX-Pinfold-Denied: no rule\r\n"),
        "{answer}"
    );
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    assert!(
        answer.ends_with("pinfold denied other.example:443: no rule.\nhint: pinfold run --allow other.example …\n")
    );
    assert_eq!(world.decided().await, "deny other.example:443 no rule");

    let answer = world.ask("CONNECT bad.example.org:443 HTTP/1.1\r\n\r\n").await;
    assert!(
        answer.contains("rule: bad.example.org, command line, --allow\nhint: remove the rule"),
        "{answer}"
    );
    let answer = world.ask("CONNECT example.org:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.contains("not for example.org itself"), "{answer}");
    let answer = world.ask("CONNECT a.example.org:22 HTTP/1.1\r\n\r\n").await;
    assert!(answer.contains("pinfold run --allow a.example.org:22"), "{answer}");
    assert_eq!(world.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn an_allowed_name_that_resolves_to_a_private_or_metadata_address_is_denied_and_not_dialled() {
    let server = Server::on(443).await;
    let names = [
        "a.example.com=127.0.0.1",
        "b.example.com=169.254.169.254",
        "c.example.com=93.184.216.34,10.0.0.1",
        "d.example.com=::ffff:127.0.0.1",
        "e.example.com=0.0.0.0",
        "f.example.com=::",
    ];
    let mut world = World::new(&["*.example.com"], &[], &names).await;
    for (host, reason) in [
        ("a.example.com", "private address"),
        ("b.example.com", "cloud metadata"),
        ("c.example.com", "private address"),
        ("d.example.com", "private address"),
        ("e.example.com", "unspecified address"),
        ("f.example.com", "unspecified address"),
    ] {
        let answer = world.ask(format!("CONNECT {host}:443 HTTP/1.1\r\n\r\n")).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 403 Denied by pinfold: {reason}\r\n")),
            "{answer}"
        );
        assert_eq!(world.decided().await, format!("deny {host}:443 {reason}"));
    }
    assert!(server.is_untouched());
}

#[tokio::test]
async fn address_literals_need_an_address_rule_and_no_server_name() {
    let server = Server::on(443).await;
    let mut world = World::new(&["127.0.0.2", "*.example.com"], &[], &[]).await;
    for literal in [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "8.8.8.8",
        "169.254.169.254",
        "0.0.0.0",
    ] {
        let answer = world.ask(format!("CONNECT {literal}:443 HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        world.decision().await;
    }
    let mut client = tunnel(&world, "[::ffff:127.0.0.2]:443").await;
    let hello = client_hello(None);
    client.write_all(&hello).await.unwrap();
    let mut upstream = server.accept().await;
    expect(&mut upstream, &hello).await;
    drop((client, upstream));
    assert_eq!(world.decided().await, format!("allow 127.0.0.2:443 {}/0", hello.len()));
}

#[tokio::test]
async fn a_rule_with_its_own_port_passes_any_bytes_and_half_closes_both_ways() {
    let server = Server::new().await;
    let rule = format!("db.example.com:{}", server.port);
    let mut world = World::new(
        &[&rule, &format!("127.0.0.0/8:{}", server.port)],
        &[],
        &["db.example.com"],
    )
    .await;
    let mut client = tunnel(&world, &rule).await;
    let mut upstream = server.accept().await;
    // The server speaks first.
    upstream.write_all(b"SSH-2.0-x\r\n").await.unwrap();
    expect(&mut client, "SSH-2.0-x\r\n").await;
    client.write_all(b"\0\xffquestion").await.unwrap();
    client.shutdown().await.unwrap();
    let mut question = Vec::new();
    patient(upstream.read_to_end(&mut question)).await.unwrap();
    assert_eq!(question, b"\0\xffquestion");
    upstream.write_all(b"a late answer").await.unwrap();
    drop(upstream);
    assert_eq!(rest(&mut client).await, "a late answer");
    assert_eq!(world.decided().await, format!("allow {rule} 10/24"));
}

#[tokio::test]
async fn the_servers_end_does_not_cut_what_the_client_still_sends() {
    let server = Server::new().await;
    let rule = format!("db.example.com:{}", server.port);
    let world = World::new(
        &[&rule, &format!("127.0.0.0/8:{}", server.port)],
        &[],
        &["db.example.com"],
    )
    .await;
    let mut client = tunnel(&world, &rule).await;
    let mut upstream = server.accept().await;
    upstream.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await, "");
    client.write_all(b"still talking").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut upstream).await, "still talking");
}

#[tokio::test]
async fn large_transfers_through_a_tunnel_arrive_byte_for_byte_both_ways() {
    let server = Server::new().await;
    let rule = format!("db.example.com:{}", server.port);
    let mut world = World::new(
        &[&rule, &format!("127.0.0.0/8:{}", server.port)],
        &[],
        &["db.example.com"],
    )
    .await;
    let client = tunnel(&world, &rule).await;
    let upstream = server.accept().await;
    let (out, back) = (filler(5_000_001), filler(3_000_007));
    let send = |stream: tokio::net::tcp::OwnedWriteHalf, bytes: Vec<u8>| async move {
        let mut stream = stream;
        stream.write_all(&bytes).await.unwrap();
        stream.shutdown().await.unwrap();
    };
    let receive = |stream: tokio::net::tcp::OwnedReadHalf| async move {
        let (mut stream, mut bytes) = (stream, Vec::new());
        stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    };
    let ((client_in, client_out), (server_in, server_out)) = (client.into_split(), upstream.into_split());
    let ((), (), at_server, at_client) = patient(async {
        tokio::join!(
            send(client_out, out.clone()),
            send(server_out, back.clone()),
            receive(server_in),
            receive(client_in)
        )
    })
    .await;
    assert!(at_server == out && at_client == back);
    assert_eq!(world.decided().await, format!("allow {rule} 5000001/3000007"));
}

#[tokio::test]
async fn a_reset_is_passed_on_as_a_reset() {
    let server = Server::new().await;
    let rule = format!("db.example.com:{}", server.port);
    let world = World::new(
        &[&rule, &format!("127.0.0.0/8:{}", server.port)],
        &[],
        &["db.example.com"],
    )
    .await;
    let mut client = tunnel(&world, &rule).await;
    let upstream = server.accept().await;
    upstream.set_zero_linger().unwrap();
    drop(upstream);
    assert_eq!(rest(&mut client).await, "[reset]");
}

#[tokio::test]
async fn a_tunnel_to_port_80_is_read_as_http_for_its_own_host_only() {
    let server = Server::on(80).await;
    let mut world = World::new(
        &["a.example", "b.example", "127.0.0.0/8"],
        &[],
        &["a.example", "b.example"],
    )
    .await;
    let mut client = tunnel(&world, "a.example:80").await;
    let mut upstream = server.accept().await;
    client
        .write_all(b"GET /x?y HTTP/1.1\r\nHost: a.example\r\nProxy-X: 1\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(
        head(&mut upstream).await,
        "GET /x?y HTTP/1.1\r\nHost: a.example\r\n\r\n"
    );
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        .await
        .unwrap();
    expect(&mut client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(world.decided().await, "allow a.example:80 0/2");
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n")
        .await
        .unwrap();
    assert!(rest(&mut client).await.starts_with("HTTP/1.1 400 "));
    assert_eq!(world.decided().await, "deny a.example:80 host differs");
    drop(client);
    assert_eq!(world.decided().await, "allow a.example:80 0/2");

    for bytes in [
        client_hello(Some(b"a.example")),
        b"SSH-2.0-x\r\n".to_vec(),
        b"CONNECT a.example:80 HTTP/1.1\r\n\r\n".to_vec(),
    ] {
        let mut client = tunnel(&world, "a.example:80").await;
        let mut upstream = server.accept().await;
        client.write_all(&bytes).await.unwrap();
        client.shutdown().await.unwrap();
        let told = rest(&mut client).await;
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 4"), "{told}");
        assert_eq!(rest(&mut upstream).await, "");
    }
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_or_resolved_gets_502() {
    let closed = Server::new().await;
    let port = closed.port;
    drop(closed);
    let rules = [
        format!("a.example:{port}"),
        format!("unknown.example:{port}"),
        format!("127.0.0.0/8:{port}"),
    ];
    let mut world = World::new(&rules.each_ref().map(String::as_str), &[], &["a.example"]).await;
    for host in ["a.example", "unknown.example"] {
        let answer = world.ask(format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
        assert_eq!(world.decided().await, format!("fail {host}:{port}"));
    }
}

#[tokio::test]
async fn a_dead_address_is_passed_over_for_the_next_checked_one() {
    let server = Server::new().await;
    let rules = [
        format!("a.example:{}", server.port),
        format!("127.0.0.0/8:{}", server.port),
    ];
    let world = World::new(
        &rules.each_ref().map(String::as_str),
        &[],
        &["a.example=127.9.9.9,127.0.0.1"],
    )
    .await;
    let _client = tunnel(&world, &rules[0]).await;
    server.accept().await;
}

#[tokio::test]
async fn every_spelling_of_a_host_is_resolved_and_logged_in_its_one_canonical_form() {
    let server = Server::on(443).await;
    let mut world = World::new(&["bücher.example", "127.0.0.0/8"], &[], &["xn--bcher-kva.example"]).await;
    for spelling in [
        "xn--bcher-kva.example",
        "XN--BCHER-KVA.Example.",
        "BÜCHER.example",
        "bücher。example",
    ] {
        let mut client = connect(world.http).await;
        client
            .write_all(format!("CONNECT {spelling}:443 HTTP/1.1\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let answer = head(&mut client).await;
        if spelling.is_ascii() {
            assert_eq!(answer, ESTABLISHED);
            drop(client);
            server.accept().await;
            assert_eq!(world.decided().await, "allow xn--bcher-kva.example:443 0/0");
        } else {
            // A request target is ASCII; anything else is refused rather than guessed at.
            assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
            world.decision().await;
        }
    }
    assert_eq!(world.asked(), ["xn--bcher-kva.example", "xn--bcher-kva.example"]);
}
