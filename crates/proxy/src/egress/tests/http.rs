use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A proxy that lets `a.example` and `b.example` through to `server`.
async fn world() -> (World, Server) {
    let server = Server::on(80).await;
    let world = World::new(
        &["a.example", "b.example", "127.0.0.0/8"],
        &[],
        &["a.example", "b.example"],
    )
    .await;
    (world, server)
}

fn get(path: &str) -> String {
    format!("GET http://a.example{path} HTTP/1.1\r\nHost: a.example\r\n\r\n")
}

fn post(fields: &str, body: &str) -> String {
    format!("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n{body}")
}

#[tokio::test]
async fn requests_on_one_connection_share_one_upstream_connection_per_host() {
    let (mut world, server) = world().await;
    let mut client = connect(world.http).await;
    client.write_all(get("/1?secret=1").as_bytes()).await.unwrap();
    let mut upstream = server.accept().await;
    for path in ["/1?secret=1", "/2"] {
        assert_eq!(
            head(&mut upstream).await,
            format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n")
        );
        upstream.write_all(OK.as_bytes()).await.unwrap();
        expect(&mut client, OK).await;
        let decision = world.decision().await;
        assert_eq!(decision.path.as_deref(), path.split('?').next());
        assert_eq!(decision.method.as_deref(), Some("GET"));
        client.write_all(get("/2").as_bytes()).await.unwrap();
    }
    head(&mut upstream).await;
    upstream.write_all(OK.as_bytes()).await.unwrap();
    expect(&mut client, OK).await;
    client
        .write_all(b"GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n")
        .await
        .unwrap();
    let mut other = server.accept().await;
    assert_eq!(head(&mut other).await, "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n");
    assert_eq!(rest(&mut upstream).await, "");
    assert_eq!(world.asked(), ["a.example", "b.example"]);
}

#[tokio::test]
async fn each_request_on_a_connection_is_judged_anew() {
    let (mut world, server) = world().await;
    let mut client = connect(world.http).await;
    client.write_all(get("/").as_bytes()).await.unwrap();
    let mut upstream = server.accept().await;
    head(&mut upstream).await;
    upstream.write_all(OK.as_bytes()).await.unwrap();
    expect(&mut client, OK).await;
    client
        .write_all(b"GET http://c.example/ HTTP/1.1\r\nHost: c.example\r\n\r\n")
        .await
        .unwrap();
    let answer = rest(&mut client).await;
    assert!(
        answer.starts_with("HTTP/1.1 403 Denied by pinfold: no rule\r\nX-Pinfold-Denied: no rule\r\n"),
        "{answer}"
    );
    assert_eq!(world.decided().await, "allow a.example:80 0/2");
    assert_eq!(world.decided().await, "deny c.example:80 no rule");
    assert_eq!(world.asked(), ["a.example"]);
}

#[tokio::test]
async fn malformed_requests_get_400_and_a_closed_connection_and_reach_nobody() {
    let (mut world, server) = world().await;
    for bytes in [
        post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"),
        post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
        post("X : y\r\n", ""),
        post("X: y\r\n z\r\n", ""),
        post("X: y\n", ""),
        post("X: \0\r\n", ""),
        post("Host: a.example\r\n", ""),
        post("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n", ""),
        "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n".to_owned(),
        "GET http://a.example/ HTTP/1.1\r\n\r\n".to_owned(),
        "GET http://u:p@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
        "GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
        "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(),
        "GET http://a.example/\nHost: a.example\n\n".to_owned(),
        "CONNECT a.example HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT a.example:443:443 HTTP/1.1\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ] {
        let answer = world.ask(&bytes).await;
        assert!(
            answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
            "{bytes:?}: {answer}"
        );
        assert!(answer.contains("Connection: close\r\n"));
        assert!(world.decided().await.starts_with("deny "));
    }
    let answer = world
        .ask("TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    let answer = world.ask(post(&format!("X: {}\r\n", "y".repeat(100_000)), "")).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert!(server.is_untouched());
    assert_eq!(world.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_plain_request_to_port_443_is_refused() {
    let (mut world, _server) = world().await;
    let answer = world
        .ask("GET http://a.example:443/ HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(world.decided().await, "deny a.example:443 plain HTTP on port 443");
}

#[tokio::test]
async fn a_port_of_its_own_rule_serves_plain_requests_too() {
    let server = Server::new().await;
    let rules = [
        format!("a.example:{}", server.port),
        format!("127.0.0.0/8:{}", server.port),
    ];
    let world = World::new(&rules.each_ref().map(String::as_str), &[], &["a.example"]).await;
    let mut client = connect(world.http).await;
    client
        .write_all(format!("GET http://{0}/ HTTP/1.1\r\nHost: {0}\r\n\r\n", rules[0]).as_bytes())
        .await
        .unwrap();
    assert_eq!(
        head(&mut server.accept().await).await,
        format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", rules[0])
    );
}

#[tokio::test]
async fn chunked_bodies_stream_both_ways_and_are_framed_anew() {
    let (mut world, server) = world().await;
    let mut client = connect(world.http).await;
    client
        .write_all(post("Transfer-Encoding: chunked\r\n", "4;ext=1\r\nWiki\r\n").as_bytes())
        .await
        .unwrap();
    let mut upstream = server.accept().await;
    assert!(
        head(&mut upstream)
            .await
            .ends_with("Transfer-Encoding: chunked\r\n\r\n")
    );
    expect(&mut upstream, "4\r\nWiki\r\n").await;
    client
        .write_all(b"5\r\npedia\r\n0\r\nTrailer: dropped\r\n\r\n")
        .await
        .unwrap();
    expect(&mut upstream, "5\r\npedia\r\n0\r\n\r\n").await;
    // An event must not wait for the next one.
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nevent1\r\n")
        .await
        .unwrap();
    expect(
        &mut client,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nevent1\r\n",
    )
    .await;
    upstream.write_all(b"6\r\nevent2\r\n0\r\n\r\n").await.unwrap();
    expect(&mut client, "6\r\nevent2\r\n0\r\n\r\n").await;
    assert_eq!(world.decided().await, "allow a.example:80 9/12");
}

#[tokio::test]
async fn a_malformed_chunk_is_refused_and_the_request_is_never_finished() {
    let (mut world, server) = world().await;
    let mut client = connect(world.http).await;
    client
        .write_all(post("Transfer-Encoding: chunked\r\n", "4\r\nWiki\r\n").as_bytes())
        .await
        .unwrap();
    let mut upstream = server.accept().await;
    head(&mut upstream).await;
    expect(&mut upstream, "4\r\nWiki\r\n").await;
    client.write_all(b"4\nevil").await.unwrap();
    assert!(rest(&mut client).await.starts_with("HTTP/1.1 400 "));
    assert!(!rest(&mut upstream).await.contains("evil"));
    assert_eq!(world.decided().await, "deny a.example:80 malformed request");
}

#[tokio::test]
async fn a_client_that_expects_100_continue_is_asked_for_its_body_by_the_server_itself() {
    let (_world, server) = world().await;
    let mut client = connect(_world.http).await;
    client
        .write_all(post("Content-Length: 5\r\nExpect: 100-continue\r\n", "").as_bytes())
        .await
        .unwrap();
    let mut upstream = server.accept().await;
    assert!(head(&mut upstream).await.contains("Expect: 100-continue\r\n"));
    upstream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
    expect(&mut client, "HTTP/1.1 100 Continue\r\n\r\n").await;
    client.write_all(b"hello").await.unwrap();
    expect(&mut upstream, "hello").await;
    upstream.write_all(OK.as_bytes()).await.unwrap();
    expect(&mut client, OK).await;

    // Refused without its body: the connection cannot be used again, because the body may or may not come.
    client
        .write_all(post("Content-Length: 5\r\nExpect: 100-continue\r\n", "").as_bytes())
        .await
        .unwrap();
    head(&mut upstream).await;
    upstream
        .write_all(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(
        rest(&mut client).await,
        "HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
}

#[tokio::test]
async fn a_server_may_answer_before_it_has_read_the_whole_body() {
    let (world, server) = world().await;
    let mut client = connect(world.http).await;
    client
        .write_all(post("Content-Length: 1000000\r\n", "start").as_bytes())
        .await
        .unwrap();
    let mut upstream = server.accept().await;
    head(&mut upstream).await;
    expect(&mut upstream, "start").await;
    upstream
        .write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        .await
        .unwrap();
    assert_eq!(
        rest(&mut client).await,
        "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
    );
}

#[tokio::test]
async fn large_bodies_arrive_byte_for_byte_in_every_framing() {
    let body = filler(3_000_003);
    for framing in ["length", "chunked", "close"] {
        let (mut world, server) = world().await;
        let mut client = connect(world.http).await;
        let sent = body.clone();
        let origin = async {
            let mut upstream = server.accept().await;
            head(&mut upstream).await;
            let mut got = vec![0; sent.len()];
            upstream.read_exact(&mut got).await.unwrap();
            assert!(got == sent, "upload");
            match framing {
                "length" => {
                    upstream
                        .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", got.len()).as_bytes())
                        .await
                        .unwrap();
                    upstream.write_all(&got).await.unwrap();
                }
                "chunked" => {
                    upstream
                        .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                        .await
                        .unwrap();
                    for piece in got.chunks(77_777) {
                        upstream
                            .write_all(format!("{:X}\r\n", piece.len()).as_bytes())
                            .await
                            .unwrap();
                        upstream.write_all(piece).await.unwrap();
                        upstream.write_all(b"\r\n").await.unwrap();
                    }
                    upstream.write_all(b"0\r\n\r\n").await.unwrap();
                }
                _ => {
                    upstream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                    upstream.write_all(&got).await.unwrap();
                }
            }
        };
        let user = async {
            let minor = if framing == "chunked" { 0 } else { 1 };
            let head_sent = format!(
                "PUT http://a.example/ HTTP/1.{minor}\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            client.write_all(head_sent.as_bytes()).await.unwrap();
            client.write_all(&body).await.unwrap();
            let head_got = head(&mut client).await;
            assert_eq!(head_got.contains("Content-Length"), framing == "length", "{head_got}");
            assert!(
                !head_got.contains("Transfer-Encoding"),
                "a client of HTTP/1.0 knows no chunks: {head_got}"
            );
            let mut got = Vec::new();
            if framing == "length" {
                got = vec![0; body.len()];
                client.read_exact(&mut got).await.unwrap();
            } else {
                client.read_to_end(&mut got).await.unwrap();
            }
            assert!(got == body, "download, {framing}");
        };
        patient(async { tokio::join!(origin, user) }).await;
        assert_eq!(world.decided().await, "allow a.example:80 3000003/3000003");
    }
}

#[tokio::test]
async fn a_response_that_breaks_off_is_not_passed_off_as_whole() {
    for (sent, begins) in [
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"[..],
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding",
        ),
    ] {
        let (world, server) = world().await;
        let mut client = connect(world.http).await;
        client.write_all(get("/").as_bytes()).await.unwrap();
        let mut upstream = server.accept().await;
        head(&mut upstream).await;
        upstream.write_all(sent).await.unwrap();
        expect(&mut client, begins).await;
        drop(upstream);
        let told = rest(&mut client).await;
        assert!(told.ends_with("[reset]") && !told.contains("0\r\n\r\n"), "{told}");
    }
}

#[tokio::test]
async fn malformed_or_missing_answers_become_502() {
    for sent in [
        &b"HTTP/1.1 200 OK\nX: y\n\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
        b"",
    ] {
        let (mut world, server) = world().await;
        let mut client = connect(world.http).await;
        client.write_all(get("/").as_bytes()).await.unwrap();
        let mut upstream = server.accept().await;
        head(&mut upstream).await;
        upstream.write_all(sent).await.unwrap();
        drop(upstream);
        assert!(rest(&mut client).await.starts_with("HTTP/1.1 502 "), "{sent:?}");
        assert_eq!(world.decided().await, "fail a.example:80");
    }
}

#[tokio::test]
async fn an_idle_upstream_connection_that_was_closed_is_replaced() {
    let (world, server) = world().await;
    let mut client = connect(world.http).await;
    for _ in 0..3 {
        client.write_all(get("/").as_bytes()).await.unwrap();
        let mut upstream = server.accept().await;
        head(&mut upstream).await;
        upstream.write_all(OK.as_bytes()).await.unwrap();
        expect(&mut client, OK).await;
    }
}

#[tokio::test]
async fn a_websocket_is_spliced_after_101_with_what_was_sent_ahead_first() {
    let (mut world, server) = world().await;
    let mut client = connect(world.http).await;
    let upgrade =
        "GET http://a.example/ws HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    client.write_all(format!("{upgrade}ahead").as_bytes()).await.unwrap();
    let mut upstream = server.accept().await;
    assert!(
        head(&mut upstream)
            .await
            .ends_with("Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    );
    upstream
        .write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst")
        .await
        .unwrap();
    let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    expect(&mut client, switched).await;
    expect(&mut client, "first").await;
    expect(&mut upstream, "ahead").await;
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    expect(&mut upstream, "GET / HTTP/1.1\r\n\r\n").await;
    upstream.write_all(b"\x81\x00").await.unwrap();
    expect(&mut client, b"\x81\x00").await;
    drop(upstream);
    assert_eq!(rest(&mut client).await, "");
    drop(client);
    assert_eq!(world.decided().await, "allow a.example:80 23/7");
}

#[tokio::test]
async fn a_refused_upgrade_is_an_ordinary_response() {
    let (world, server) = world().await;
    let mut client = connect(world.http).await;
    let upgrade =
        "GET http://a.example/ws HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    client.write_all(upgrade.as_bytes()).await.unwrap();
    let mut upstream = server.accept().await;
    head(&mut upstream).await;
    upstream.write_all(OK.as_bytes()).await.unwrap();
    expect(&mut client, OK).await;
    client.write_all(get("/").as_bytes()).await.unwrap();
    head(&mut upstream).await;
}

#[tokio::test]
async fn a_client_that_ends_its_direction_still_gets_its_answer_and_the_server_hears_of_the_end() {
    let (world, server) = world().await;
    let mut client = connect(world.http).await;
    client.write_all(get("/").as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut upstream = server.accept().await;
    assert_eq!(rest(&mut upstream).await, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    upstream.write_all(OK.as_bytes()).await.unwrap();
    assert_eq!(rest(&mut client).await, OK);
}

#[tokio::test]
async fn responses_without_a_body_leave_the_connection_in_step() {
    let (world, server) = world().await;
    let mut client = connect(world.http).await;
    let mut upstream = None;
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n"),
        ("DELETE", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", OK),
    ] {
        client
            .write_all(format!("{method} http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n").as_bytes())
            .await
            .unwrap();
        if upstream.is_none() {
            upstream = Some(server.accept().await);
        }
        let upstream = upstream.as_mut().unwrap();
        head(upstream).await;
        upstream.write_all(answer.as_bytes()).await.unwrap();
        expect(&mut client, answer).await;
    }
}
