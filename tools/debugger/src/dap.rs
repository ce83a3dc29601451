//! The Debug Adapter Protocol, as VS Code and nvim-dap speak it.
//!
//! Messages are read by a thread of their own, so that a pause arrives while the launch goes on; everything else is
//! answered in order ([`server`], with [`breakpoints`], [`variables`] and [`memory`]). A thread of the protocol is a
//! warp, or a lane if `launch` asks for `"threads": "lanes"`; the number of a thread says which thread of which block
//! it is, in any case. What is malformed is answered with an error, and the next message is read. The end of the input
//! ends the session.

mod breakpoints;
mod memory;
mod server;
mod transport;
mod variables;

use crate::debugger::Debugger;
use anyhow::{Context, Result};
use server::Server;
use std::io::{Read, Write, stdin, stdout};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc;
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

fn serve(
    debugger: Debugger,
    input: impl Read + Send + 'static,
    mut output: impl Write,
) -> Result<()> {
    let pause = debugger.session.pause();
    let mut server = Server::new(debugger);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = Reader::new(std::io::BufReader::new(input));
        while let Some(message) = reader.message() {
            if let Incoming::Request(request) = &message
                && matches!(
                    request.command.as_str(),
                    "pause" | "disconnect" | "terminate"
                )
            {
                pause.ask();
            }
            if sender.send(message).is_err() {
                return;
            }
        }
        // Nobody is there any more.
        pause.ask();
    });
    for message in receiver {
        server.answer(message, &mut |answer| write_message(&mut output, answer))?;
        if server.is_over() {
            break;
        }
    }
    Ok(())
}
