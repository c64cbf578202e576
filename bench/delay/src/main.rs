//! A TCP proxy that adds latency and no bound on bandwidth: what an address receives arrives at another address a fixed
//! time later, both ways.
//!
//!     delay 500 127.0.0.12 127.0.0.1 5433
//!
//! listens on 127.0.0.12:5433 and forwards to 127.0.0.1:5433. Each direction takes 500 microseconds longer, so that a
//! round trip takes one millisecond longer. It prints `ready` when it listens, and runs until it is ended.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks on their way in one direction of a connection; a reader waits when there are more.
const CHUNKS_UNDER_WAY: usize = 1024;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("delay: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let [micros, host, target, port] = arguments else {
        return Err("usage: delay MICROSECONDS HOST TARGET PORT".into());
    };
    let micros: u64 = micros
        .parse()
        .map_err(|error| format!("microseconds {micros}: {error}"))?;
    let port: u16 = port
        .parse()
        .map_err(|error| format!("port {port}: {error}"))?;
    let listener = TcpListener::bind((host.as_str(), port))
        .map_err(|error| format!("{host}:{port}: {error}"))?;
    println!("ready");
    for client in listener.incoming() {
        let client = client.map_err(|error| format!("{host}:{port}: {error}"))?;
        // A client of a server that is not there is closed, as that server's host would.
        if let Ok(server) = TcpStream::connect((target.as_str(), port)) {
            carry(client, server, Duration::from_micros(micros))
                .map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Starts to forward both directions of a connection.
fn carry(client: TcpStream, server: TcpStream, delay: Duration) -> std::io::Result<()> {
    for end in [&client, &server] {
        end.set_nodelay(true)?;
    }
    forward(client.try_clone()?, server.try_clone()?, delay);
    forward(server, client, delay);
    Ok(())
}

/// Starts two threads for one direction: one reads and notes when, the other waits and writes. The end of either ends
/// the direction.
fn forward(mut source: TcpStream, mut target: TcpStream, delay: Duration) {
    let (sender, receiver) = mpsc::sync_channel::<(Instant, Vec<u8>)>(CHUNKS_UNDER_WAY);
    thread::spawn(move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = source.read(&mut chunk) {
            if sender
                .send((Instant::now() + delay, chunk[..length].to_vec()))
                .is_err()
            {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if target.write_all(&bytes).is_err() {
                break;
            }
        }
        // The other end may have gone already.
        let _ = target.shutdown(Shutdown::Write);
    });
}
