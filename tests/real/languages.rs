//! Interpreters, compilers and shells.

use crate::desk::{Desk, has};

#[test]
fn a_shell_has_process_substitution_here_documents_temporary_files_and_traps() {
    if !has("bash") {
        return;
    }
    let desk = Desk::new();
    desk.file(
        "t.bash",
        "set -e\ntrap 'echo trapped' EXIT\ncat <(echo substituted)\nfile=$(mktemp)\ncat > \"$file\" <<X\nhere\nX\n\
         cat \"$file\"\necho a | tee >(cat >/dev/null)\n[ -t 0 ] || echo no terminal\nsleep 0 & wait $!\n",
    );
    let out = desk.works(&[], "bash t.bash");
    assert_eq!(out, "substituted\nhere\na\nno terminal\ntrapped\n");
}

#[test]
fn make_builds_a_program_with_the_system_compiler() {
    if !has("make") || !has("cc") {
        return;
    }
    let desk = Desk::new();
    desk.file(
        "m.c",
        "#include <stdio.h>\nint main(void) { return puts(\"built\") < 0; }\n",
    );
    desk.file("Makefile", "m: m.c\n\tcc -o m m.c\n");
    assert_eq!(desk.works(&[], "make -s && ./m"), "built\n");
    assert!(desk.workspace().join("m").is_file());
}

#[test]
fn python_has_processes_shared_memory_an_event_loop_roots_and_a_data_base() {
    if !has("python3") {
        return;
    }
    let desk = Desk::new();
    desk.file(
        "t.py",
        r#"
import asyncio, multiprocessing as mp, socket, sqlite3, ssl
from multiprocessing import shared_memory

def square(x):
    return x * x

async def serve():
    def answer(_, writer):
        writer.write(b"hello")
        writer.close()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
    child = await asyncio.create_subprocess_exec("echo", "child", stdout=-1)
    return await reader.read(), (await child.communicate())[0]

if __name__ == "__main__":
    for method in "fork", "spawn":
        with mp.get_context(method).Pool(2) as pool:
            assert pool.map(square, [1, 2, 3]) == [1, 4, 9]
    memory = shared_memory.SharedMemory(create=True, size=64)
    memory.close()
    memory.unlink()
    assert asyncio.run(serve()) == (b"hello", b"child\n")
    ssl.create_default_context()
    base = sqlite3.connect("t.db")
    assert base.execute("pragma journal_mode=wal").fetchone() == ("wal",)
    base.execute("create table t(x)")
    assert socket.gethostbyname("localhost") == "127.0.0.1"
    print("done")
"#,
    );
    assert_eq!(desk.works(&[], "python3 t.py"), "done\n");
}

#[test]
fn a_python_environment_can_be_made_and_used() {
    if !has("python3") {
        return;
    }
    let desk = Desk::new();
    let script = "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'";
    let prefix = desk.workspace().join("v");
    assert_eq!(desk.works(&[], script).trim(), prefix.to_str().unwrap());
}

#[test]
fn node_has_workers_children_and_a_server_on_loopback() {
    if !has("node") {
        return;
    }
    let desk = Desk::new();
    desk.file(
        "t.js",
        r#"
const http = require("http"), { execSync } = require("child_process"), { Worker } = require("worker_threads");
const worker = new Worker("require('worker_threads').parentPort.postMessage('worker')", { eval: true });
worker.on("message", (text) => {
  console.log(text);
  console.log(execSync("echo child").toString().trim());
  const server = http.createServer((_, answer) => answer.end("served"));
  server.listen(3000, "127.0.0.1", async () => {
    console.log(await (await fetch("http://localhost:3000/")).text());
    server.close();
  });
});
"#,
    );
    assert_eq!(desk.works(&[], "node t.js"), "worker\nchild\nserved\n");
}

#[test]
fn java_runs_a_program_and_is_led_to_the_proxy() {
    if !has("java") || !has("javac") {
        return;
    }
    let desk = Desk::new();
    desk.file(
        "Hello.java",
        r#"
public class Hello {
    public static void main(String[] arguments) {
        System.out.println("hello");
        try {
            new java.net.URL("http://denied.invalid").openStream();
        } catch (java.io.IOException refused) {
            System.out.println(refused.getMessage().contains("403"));
        }
    }
}
"#,
    );
    assert_eq!(desk.works(&[], "javac Hello.java && java Hello"), "hello\ntrue\n");
}

#[test]
fn small_tools_find_what_they_need() {
    let desk = Desk::new();
    let table = [
        ("perl", "perl -e 'print `echo perl`'", "perl\n"),
        (
            "sqlite3",
            "sqlite3 t.db 'create table t(x); insert into t values (1); select * from t'",
            "1\n",
        ),
        ("flock", "flock lock echo locked", "locked\n"),
        ("ssh-keygen", "ssh-keygen -q -t ed25519 -N '' -f key && ls key", "key\n"),
        (
            "tmux",
            "tmux -L t new -d -s one 'sleep 60' && tmux -L t ls -F '#S' && tmux -L t kill-server",
            "one\n",
        ),
        ("tar", "echo x > x && tar cf x.tar x && tar tf x.tar", "x\n"),
        ("ps", "ps -o args= -p 1", "pinfold-guest\n"),
    ];
    for (program, script, expected) in table {
        if has(program) {
            assert_eq!(desk.works(&["--quiet"], script), expected, "{program}");
        }
    }
}
