//! A client of the Debug Adapter Protocol that sends what VS Code and nvim-dap send.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A client of the protocol.
pub struct Client {
    pub child: Child,
    pub input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    sent: i64,
    /// Events that came while an answer was waited for.
    events: Vec<Value>,
}

impl Client {
    /// Of a debugger that has all of its arguments but `--dap`.
    pub fn new(mut command: Command) -> Client {
        let child = command
            .arg("--dap")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        Client {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            sent: 0,
            events: Vec::new(),
        }
    }

    pub fn write(&mut self, text: &str) {
        let input = self.input.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        input.flush().unwrap();
    }

    pub fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "the adapter has ended"
            );
            match line.trim().strip_prefix("Content-Length: ") {
                Some(text) => length = text.parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Sends a request, and waits for its answer.
    pub fn ask(&mut self, command: &str, arguments: Value) -> Value {
        self.sent += 1;
        let request = json!({"seq": self.sent, "type": "request", "command": command, "arguments": arguments});
        self.write(&request.to_string());
        loop {
            let message = self.read();
            if message["type"] == "event" {
                self.events.push(message);
            } else {
                assert_eq!(message["request_seq"], self.sent, "{message}");
                return message;
            }
        }
    }

    /// The body of an answer that has to be good.
    pub fn body(&mut self, command: &str, arguments: Value) -> Value {
        let answer = self.ask(command, arguments);
        assert_eq!(answer["success"], true, "{answer}");
        answer["body"].clone()
    }

    /// Waits for an event.
    pub fn event(&mut self, name: &str) -> Value {
        loop {
            if let Some(index) = self.events.iter().position(|event| event["event"] == name) {
                return self.events.remove(index)["body"].clone();
            }
            let message = self.read();
            assert_eq!(message["type"], "event", "{message}");
            self.events.push(message);
        }
    }

    /// Sends the first requests of VS Code.
    pub fn start(command: Command) -> Client {
        let mut client = Client::new(command);
        let capabilities = client.body(
            "initialize",
            json!({"adapterID": "thisgpu", "linesStartAt1": true}),
        );
        assert_eq!(capabilities["supportsStepBack"], true);
        client.event("initialized");
        client.body("launch", json!({"stopOnEntry": true}));
        client
    }

    /// Ends the session.
    pub fn end(mut self) {
        self.body("disconnect", json!({}));
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }
}
