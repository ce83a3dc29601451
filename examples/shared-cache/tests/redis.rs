//! A server of Redis on the loopback, two processes that compile, and a server that dies. Without `redis-server`
//! (Debian: the package of that name) these tests say that they are skipped. `SHARED_CACHE_FUNCTIONS` says how many
//! functions.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A server that ends with the test.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// A server; none where it is not installed.
    fn start() -> Option<Self> {
        // A port that is free now.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let started = Command::new("redis-server")
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .stdout(Stdio::null())
            .spawn();
        let Ok(process) = started else {
            eprintln!("skipped: there is no redis-server");
            return None;
        };
        let server = Self { process, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "the server does not answer"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn functions() -> u32 {
    std::env::var("SHARED_CACHE_FUNCTIONS").map_or(400, |text| text.parse().unwrap())
}

fn compiler(port: u16, functions: u32) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shared-cache"));
    command
        .args([
            "--service",
            "redis",
            "--option",
            &format!("endpoint=redis://127.0.0.1:{port}"),
        ])
        .args(["--generated", &functions.to_string()])
        // What opendal says of a question that was given up is its own.
        .env("RUST_LOG", "cranelift_thisgpu=warn")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a run printed, and how many entries it took of how many.
fn printed(output: &Output) -> (String, u64, u64) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let line = text(&output.stdout);
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().rposition(|&word| word == "of").unwrap();
    let number = |word: &str| word.parse().unwrap();
    let (found, asked) = (number(words[at - 1]), number(words[at + 1]));
    // Files and bytes.
    (words[..6].join(" "), found, asked)
}

#[test]
fn two_processes_share_what_they_compile() {
    let Some(server) = Server::start() else {
        return;
    };
    let functions = functions();
    let run = || -> Vec<(String, u64, u64)> {
        let started: Vec<Child> = (0..2)
            .map(|_| compiler(server.port, functions).spawn().unwrap())
            .collect();
        let ended = started
            .into_iter()
            .map(|child| child.wait_with_output().unwrap());
        ended.map(|output| printed(&output)).collect()
    };
    let first = run();
    let second = run();
    assert_eq!(first[0].0, first[1].0, "the code is the same");
    for (code, found, asked) in &second {
        println!("second run: {found} of {asked} from the store");
        assert_eq!(*code, first[0].0);
        assert!(found * 100 >= asked * 95, "{found} of {asked}");
        assert_eq!(*asked, u64::from(functions));
    }
}

#[test]
fn a_server_that_dies_stops_nobody() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let functions = functions();
    let expected = printed(&compiler(server.port, functions).output().unwrap());
    let running = compiler(server.port, functions).spawn().unwrap();
    // In the middle of it, or before it begins: whenever it is, everything is compiled.
    std::thread::sleep(Duration::from_millis(100));
    server.kill();
    let output = running.wait_with_output().unwrap();
    let (code, found, _) = printed(&output);
    println!("{found} of {functions} before the server was gone");
    assert_eq!(code, expected.0);
    let warnings = String::from_utf8_lossy(&output.stderr);
    let warnings = warnings
        .lines()
        .filter(|line| line.contains("WARN"))
        .count();
    assert!(warnings <= 1, "{}", String::from_utf8_lossy(&output.stderr));
}

/// A server that takes the connection and never answers.
#[test]
fn a_server_that_hangs_costs_a_few_time_limits() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let start = Instant::now();
    let output = compiler(port, 50)
        .args(["--limit", "200"])
        .output()
        .unwrap();
    let (_, found, asked) = printed(&output);
    assert_eq!((found, asked <= 3), (0, true), "{asked}");
    println!("{:?} with a server that hangs", start.elapsed());
}
