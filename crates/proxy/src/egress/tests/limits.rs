use super::*;

#[tokio::test]
async fn stalled_clients_do_not_stop_others() {
    let mut world = World::new(&[], &[], &[]).await;
    let mut stalled = Vec::new();
    for bytes in [&b""[..], b"GET http://a.exam", b"\x05", b"\x05\x01\0\x05\x01\0\x03\xff"] {
        for address in [world.http, world.socks] {
            let mut client = connect(address).await;
            client.write_all(bytes).await.unwrap();
            stalled.push(client);
        }
    }
    let answer = world.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "));
    while world.decided().await != "deny a.example:443 no rule" {}
    drop(stalled);
}

#[tokio::test]
async fn a_head_that_is_sent_too_slowly_is_dropped() {
    let options = Options {
        head_deadline: Duration::from_millis(50),
        ..Options::default()
    };
    let world = World::with(&[], &[], &[], options).await;
    for (address, bytes) in [
        (world.http, &b"GET http://a.example/ HTTP/1.1\r\n"[..]),
        (world.socks, b"\x05\x05"),
    ] {
        let mut client = connect(address).await;
        client.write_all(bytes).await.unwrap();
        assert_eq!(rest(&mut client).await, "");
    }
}

#[tokio::test]
async fn a_connection_on_which_nothing_moves_is_closed_after_the_idle_limit() {
    let server = Server::new().await;
    let rules = [
        format!("a.example:{}", server.port),
        format!("127.0.0.0/8:{}", server.port),
    ];
    let options = Options {
        idle_limit: Duration::from_millis(50),
        ..Options::default()
    };
    let mut world = World::with(&rules.each_ref().map(String::as_str), &[], &["a.example"], options).await;
    let mut client = connect(world.http).await;
    client
        .write_all(format!("CONNECT {} HTTP/1.1\r\n\r\n", rules[0]).as_bytes())
        .await
        .unwrap();
    let _upstream = server.accept().await;
    assert!(rest(&mut client).await.ends_with("[reset]"));
    assert!(world.decided().await.starts_with("allow "));
}

#[tokio::test]
async fn more_connections_than_allowed_wait_until_one_ends() {
    let options = Options {
        max_connections: 2,
        ..Options::default()
    };
    let world = World::with(&[], &[], &[], options).await;
    let first = connect(world.http).await;
    let second = connect(world.socks).await;
    let mut third = connect(world.http).await;
    third
        .write_all(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    drop(first);
    assert!(rest(&mut third).await.starts_with("HTTP/1.1 403 "));
    drop(second);
}

#[tokio::test]
async fn stopping_cuts_what_is_open_and_records_it_first() {
    let server = Server::new().await;
    let rules = [
        format!("a.example:{}", server.port),
        format!("127.0.0.0/8:{}", server.port),
    ];
    let mut world = World::new(&rules.each_ref().map(String::as_str), &[], &["a.example"]).await;
    let mut client = connect(world.http).await;
    client
        .write_all(format!("CONNECT {} HTTP/1.1\r\n\r\nabc", rules[0]).as_bytes())
        .await
        .unwrap();
    let mut upstream = server.accept().await;
    expect(&mut upstream, "abc").await;
    world.stop.take().unwrap().send(()).unwrap();
    patient(&mut world.served).await.unwrap().unwrap();
    assert_eq!(world.decided().await, format!("allow {} 3/0", rules[0]));
    assert!(world.decisions.recv().await.is_none(), "the sink is released");
}
