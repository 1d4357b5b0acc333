use super::*;

const PLAIN: Context = Context {
    head_only: false,
    websocket: false,
    minor: 1,
};

fn parsed(head: &str, context: Context) -> Result<(u16, Framing, bool), BadResponse> {
    Response::parse(head.as_bytes(), context).map(|response| (response.status, response.framing, response.stays))
}

fn rebuilt(head: &str, context: Context, after: After) -> String {
    String::from_utf8(
        Response::parse(head.as_bytes(), context)
            .unwrap()
            .rebuild(context, after),
    )
    .unwrap()
}

#[test]
fn the_framing_follows_status_method_and_fields() {
    let head = |status: &str, fields: &str| format!("HTTP/1.1 {status}\r\n{fields}\r\n");
    let head_only = Context {
        head_only: true,
        ..PLAIN
    };
    for (head, context, wanted) in [
        (
            head("200 OK", "Content-Length: 5\r\n"),
            PLAIN,
            (200, Framing::Length(5), true),
        ),
        (
            head("200", "Content-Length: 5\r\n"),
            PLAIN,
            (200, Framing::Length(5), true),
        ),
        (
            head("200 ", "Transfer-Encoding: chunked\r\n"),
            PLAIN,
            (200, Framing::Chunked, true),
        ),
        (head("200 OK", ""), PLAIN, (200, Framing::UntilClose, false)),
        (
            head("204 No Content", "Content-Length: 5\r\n"),
            PLAIN,
            (204, Framing::None, true),
        ),
        (
            head("304 Not Modified", "Content-Length: 5\r\n"),
            PLAIN,
            (304, Framing::None, true),
        ),
        (
            head("200 OK", "Content-Length: 5\r\n"),
            head_only,
            (200, Framing::None, true),
        ),
        (head("100 Continue", ""), PLAIN, (100, Framing::None, true)),
        (
            head("200 OK", "Content-Length: 5\r\nConnection: close\r\n"),
            PLAIN,
            (200, Framing::Length(5), false),
        ),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n".to_owned(),
            PLAIN,
            (200, Framing::Length(5), false),
        ),
    ] {
        assert_eq!(parsed(&head, context), Ok(wanted), "{head:?}");
    }
}

#[test]
fn malformed_and_ambiguous_responses_are_refused() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\nX: y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded: y\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n\r\n",
    ] {
        assert!(parsed(head, PLAIN).is_err(), "{head:?}");
    }
    let asked = Context {
        websocket: true,
        ..PLAIN
    };
    assert!(parsed("HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", asked).is_err());
    assert!(
        parsed(
            "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n",
            asked
        )
        .is_ok()
    );
}

#[test]
fn the_client_gets_end_to_end_fields_and_its_own_connection_state() {
    let head = "HTTP/1.1 200 Fine\r\nServer: x\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\
                Proxy-Authenticate: Basic\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n";
    assert_eq!(
        rebuilt(head, PLAIN, After::Stay),
        "HTTP/1.1 200 Fine\r\nServer: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    assert_eq!(
        rebuilt(head, Context { minor: 0, ..PLAIN }, After::Close),
        "HTTP/1.1 200 Fine\r\nServer: x\r\nConnection: close\r\n\r\n"
    );
    let head_only = Context {
        head_only: true,
        ..PLAIN
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(
        rebuilt(head, head_only, After::Stay),
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    );
    let head = "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: k\r\n\r\n";
    assert_eq!(
        rebuilt(
            head,
            Context {
                websocket: true,
                ..PLAIN
            },
            After::Switch
        ),
        "HTTP/1.1 101 S\r\nSec-WebSocket-Accept: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
}
