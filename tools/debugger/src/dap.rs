//! The Debug Adapter Protocol, as VS Code and nvim-dap speak it.
//!
//! Messages are read by a thread of their own, so that a pause arrives while the launch goes on; everything else is
//! answered in order ([`server`], with [`breakpoints`], [`variables`] and [`memory`]). A thread of the protocol is a
//! warp, or a lane if `launch` asks for `"threads": "lanes"`; the number of a thread says which thread of which block
//! it is, in any case. What is malformed is answered with an error, and the next message is read. The end of the input
//! ends the session.

mod breakpoints;
mod memory;
mod origin;
mod server;
mod transport;
mod variables;

use crate::Launcher;
use crate::debugger::Debugger;
use anyhow::{Context, Result};
use cranelift_thisgpu::sim::debug::Pause;
use origin::Origin;
use serde_json::Value;
use server::Server;
use std::io::{Read, Write, stdin, stdout};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use transport::{Incoming, Reader, write_message};

/// Speaks on standard input and output.
pub fn on_standard_streams(debugger: Debugger) -> Result<()> {
    serve(debugger, stdin(), stdout())
}

/// Waits for one connection to a port of the loopback interface, and speaks on it.
pub fn on_port(debugger: Debugger, port: u16) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("cannot listen on port {port}"))?;
    eprintln!("listening on {}", listener.local_addr()?);
    let (stream, _) = listener.accept()?;
    serve(debugger, stream.try_clone()?, stream)
}

/// Speaks on standard input and output, and makes the session when the client asks for the launch.
pub fn as_adapter(launch: Launcher) -> Result<()> {
    let (mut messages, mut output) = (Messages::of(stdin()), stdout());
    let mut sent = 0;
    let mut origin = Origin::default();
    while let Some(message) = messages.next() {
        let (seq, command, answer) = match &message {
            Incoming::Malformed(seq, text) => (*seq, "", Err(text.clone())),
            Incoming::Request(request) => {
                let answer = match request.command.as_str() {
                    "initialize" => {
                        origin = Origin::asked(&request.arguments);
                        Ok(server::capabilities())
                    }
                    "disconnect" | "terminate" => Ok(Value::Null),
                    "launch" => match launch(&request.arguments) {
                        Ok(debugger) => {
                            let mut server = Server::new(debugger, origin, sent);
                            let send = &mut |answer: &Value| write_message(&mut output, answer);
                            server.answer(message, send)?;
                            server.is_launched(send)?;
                            return messages.serve(server, output);
                        }
                        Err(error) => Err(format!("{error:#}")),
                    },
                    other => Err(format!("unsupported before the launch: {other}")),
                };
                (request.seq, request.command.as_str(), answer)
            }
        };
        sent += 1;
        let is_over = matches!(command, "disconnect" | "terminate");
        write_message(&mut output, &server::response(sent, seq, command, answer))?;
        if is_over {
            break;
        }
    }
    Ok(())
}

fn serve(debugger: Debugger, input: impl Read + Send + 'static, output: impl Write) -> Result<()> {
    Messages::of(input).serve(Server::new(debugger, Origin::default(), 0), output)
}

/// Messages that a thread of their own reads.
struct Messages {
    receiver: mpsc::Receiver<Incoming>,
    /// What a pause is asked of, once there is a launch.
    pause: Arc<OnceLock<Pause>>,
}

impl Messages {
    fn of(input: impl Read + Send + 'static) -> Messages {
        let (sender, receiver) = mpsc::channel();
        let pause = Arc::new(OnceLock::<Pause>::new());
        let asked = pause.clone();
        thread::spawn(move || {
            let ask = || {
                if let Some(pause) = asked.get() {
                    pause.ask();
                }
            };
            let mut reader = Reader::new(std::io::BufReader::new(input));
            while let Some(message) = reader.message() {
                let stops = |command: &str| matches!(command, "pause" | "disconnect" | "terminate");
                if let Incoming::Request(request) = &message
                    && stops(&request.command)
                {
                    ask();
                }
                if sender.send(message).is_err() {
                    return;
                }
            }
            // Nobody is there any more.
            ask();
        });
        Messages { receiver, pause }
    }

    fn next(&mut self) -> Option<Incoming> {
        self.receiver.recv().ok()
    }

    /// Answers until the end.
    fn serve(mut self, mut server: Server, mut output: impl Write) -> Result<()> {
        let _ = self.pause.set(server.pause());
        while let Some(message) = self.next() {
            server.answer(message, &mut |answer| write_message(&mut output, answer))?;
            if server.is_over() {
                break;
            }
        }
        Ok(())
    }
}
