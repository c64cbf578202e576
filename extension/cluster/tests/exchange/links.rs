//! Links over streams that take and give little at once: greetings, damage, and joins over real sockets.

use super::toy::{Join, Part, Query};
use super::Random;
use pgquad_cluster::exchange::{
    Ends, Exchange, Greeting, Link, Lost, Refused, Settings, Transport, MESH_BYTES, NONCE_BYTES,
};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

const MESH: [u8; MESH_BYTES] = [7; MESH_BYTES];

/// A stream that blocks every now and then, and takes and gives few bytes otherwise.
struct Halting<S> {
    stream: S,
    random: Random,
    most: usize,
}

impl<S> Halting<S> {
    fn now(&mut self, len: usize) -> io::Result<usize> {
        match self.random.below(3) {
            0 => Err(ErrorKind::WouldBlock.into()),
            _ => Ok((1 + self.random.below(self.most)).min(len)),
        }
    }
}

impl<S: Read> Read for Halting<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.now(bytes.len())?;
        self.stream.read(&mut bytes[..count])
    }
}

impl<S: Write> Write for Halting<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.now(bytes.len())?;
        self.stream.write(&bytes[..count])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// One end of a pipe in memory, which damages one of the bytes that are written to it.
struct Pipe {
    read: Rc<RefCell<VecDeque<u8>>>,
    write: Rc<RefCell<VecDeque<u8>>>,
    written: usize,
    damage: Option<(usize, u8)>,
}

impl Read for Pipe {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut queue = self.read.borrow_mut();
        if queue.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = bytes.len().min(queue.len());
        for (to, from) in bytes.iter_mut().zip(queue.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            let damage = self.damage.filter(|(at, _)| *at == self.written);
            let damaged = byte ^ damage.map_or(0, |(_, bits)| bits);
            self.write.borrow_mut().push_back(damaged);
            self.written += 1;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type MemoryLink = Link<Halting<Pipe>>;

fn pair(seed: u64, damage: [Option<(usize, u8)>; 2]) -> [MemoryLink; 2] {
    let queues = [(); 2].map(|()| Rc::new(RefCell::new(VecDeque::new())));
    [0, 1].map(|end| {
        Link::new(Halting {
            stream: Pipe {
                read: queues[end].clone(),
                write: queues[1 - end].clone(),
                written: 0,
                damage: damage[end],
            },
            random: Random(seed + end as u64),
            most: 40,
        })
    })
}

/// What both ends make of each other.
fn greet(
    links: &mut [MemoryLink; 2],
    secrets: [&[u8]; 2],
    meshes: [[u8; MESH_BYTES]; 2],
    sealed: [bool; 2],
) -> [Result<Option<Ends>, Refused>; 2] {
    let ends = Ends {
        mesh: meshes[0],
        from: 1,
        to: 2,
        sealed: sealed[0],
    };
    let [connecting, accepting] = links;
    let mut connect = Greeting::connect(connecting, secrets[0], ends, [1; NONCE_BYTES]).unwrap();
    let mut accept = Greeting::accept(secrets[1], meshes[1], 2, sealed[1], [2; NONCE_BYTES]);
    let (mut connected, mut accepted) = (Ok(None), Ok(None));
    for _ in 0..1000 {
        if matches!(connected, Ok(None)) {
            connected = connect.advance(connecting);
        } else {
            let _ = connecting.flush();
        }
        if matches!(accepted, Ok(None)) {
            accepted = accept.advance(accepting);
        }
    }
    [connected, accepted]
}

#[test]
fn ends_that_know_the_secret_are_linked() {
    for seed in 0..50 {
        let mut links = pair(seed, [None; 2]);
        let [one, other] = greet(&mut links, [b"secret"; 2], [MESH; 2], [false; 2]);
        let ends = Ends {
            mesh: MESH,
            from: 1,
            to: 2,
            sealed: false,
        };
        assert_eq!(one.unwrap(), Some(ends));
        assert_eq!(other.unwrap(), Some(ends));
    }
}

#[test]
fn others_are_refused() {
    let secrets = [&b"secret"[..], b"other"];
    let [one, _] = greet(&mut pair(1, [None; 2]), secrets, [MESH; 2], [false; 2]);
    assert!(matches!(one, Err(Refused::Secret)));
    let (secrets, meshes) = ([&b"secret"[..]; 2], [MESH, [8; MESH_BYTES]]);
    let [one, other] = greet(&mut pair(1, [None; 2]), secrets, meshes, [false; 2]);
    assert!(matches!(one, Ok(None)));
    assert!(matches!(other, Err(Refused::Stranger)));
    // The byte of the version is the first behind the length.
    let mut links = pair(1, [Some((4, 0xff)), None]);
    let [_, other] = greet(&mut links, secrets, [MESH; 2], [false; 2]);
    assert!(matches!(other, Err(Refused::Version(0xfe))));
}

proptest! {
    /// Whatever byte of the greeting is damaged, no end takes the other for what it is not.
    #[test]
    fn damaged_greetings_are_refused(seed in any::<u32>(), end in 0usize..2, at in 0usize..200, bits in 1u8..=255, sealed in any::<[bool; 2]>()) {
        let mut damage = [None; 2];
        damage[end] = Some((at, bits));
        let mut links = pair(u64::from(seed), damage);
        let both = greet(&mut links, [b"secret"; 2], [MESH; 2], sealed);
        // The connecting end is done when it has sent its proof, damaged or not.
        let written = links.map(|link| link.stream().stream.written);
        if at < written[end] {
            prop_assert!(both.iter().any(|end| !matches!(end, Ok(Some(_)))));
        } else {
            prop_assert!(both.iter().all(|end| matches!(end, Ok(Some(_)))));
        }
    }
}

#[test]
fn frames_are_sealed_where_one_end_wants_it() {
    for sealed in [[true, false], [false, true], [true, true], [false, false]] {
        for end in greet(&mut pair(3, [None; 2]), [b"secret"; 2], [MESH; 2], sealed) {
            assert_eq!(end.unwrap().unwrap().sealed, sealed[0] || sealed[1]);
        }
    }
}

/// Sends a frame. Returns the frame that arrives and the bytes that were written.
fn send(links: &mut [MemoryLink; 2], frame: &[u8]) -> (io::Result<Option<Vec<u8>>>, Vec<u8>) {
    let [from, to] = links;
    from.send(frame.to_vec()).unwrap();
    while !from.flush().unwrap() {}
    let written = to.stream().stream.read.borrow().iter().copied().collect();
    let mut received = Ok(None);
    for _ in 0..1000 {
        received = to.receive();
        if !matches!(received, Ok(None)) {
            break;
        }
    }
    (received, written)
}

proptest! {
    /// Sealed frames come as they were sent, are not to be read on their way, and are refused when they were changed.
    #[test]
    fn sealed_frames(body in prop::collection::vec(any::<u8>(), 20..300), at in any::<prop::sample::Index>(), bits in 1u8..=255) {
        let mut links = pair(5, [None; 2]);
        for end in greet(&mut links, [b"secret"; 2], [MESH; 2], [true; 2]) {
            prop_assert!(end.unwrap().is_some());
        }
        let mut frame = (body.len() as u32).to_le_bytes().to_vec();
        frame.extend(&body);
        for _ in 0..2 {
            let (received, written) = send(&mut links, &frame);
            prop_assert_eq!(received.unwrap(), Some(frame.clone()));
            prop_assert!(!written.windows(body.len()).any(|window| window == body));
        }
        links[0].send(frame.clone()).unwrap();
        while !links[0].flush().unwrap() {}
        let mut changed: Vec<u8> = links[1].stream().stream.read.borrow_mut().drain(..).collect();
        // The length stays, so that the frame is taken for one.
        let at = 4 + at.index(changed.len() - 4);
        changed[at] ^= bits;
        let mut refused = None;
        let queue = links[1].stream().stream.read.clone();
        queue.borrow_mut().extend(changed);
        for _ in 0..1000 {
            if let Err(error) = links[1].receive() {
                refused = Some(error.kind());
                break;
            }
        }
        prop_assert_eq!(refused, Some(ErrorKind::InvalidData));
    }
}

/// The links of a participant over sockets.
struct Sockets {
    me: usize,
    query: u64,
    links: Vec<Option<Link<Halting<TcpStream>>>>,
    began: Instant,
}

impl Sockets {
    fn link(&mut self, peer: usize) -> &mut Link<Halting<TcpStream>> {
        self.links[peer].as_mut().unwrap()
    }
}

fn lost(peer: usize) -> impl Fn(io::Error) -> Lost {
    move |error| Lost::of(peer, &error)
}

impl Transport for Sockets {
    fn peers(&self) -> usize {
        self.links.len()
    }

    fn me(&self) -> usize {
        self.me
    }

    fn takes(&mut self, to: usize) -> Result<bool, Lost> {
        self.link(to).flush().map_err(lost(to))
    }

    fn send(&mut self, to: usize, frame: Vec<u8>) -> Result<(), Lost> {
        self.link(to).send(frame).map_err(lost(to))
    }

    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, Lost> {
        let query = self.query;
        for (from, link) in self.links.iter_mut().enumerate() {
            let Some(link) = link else {
                continue;
            };
            if let Some(frame) = link.receive_of(query).map_err(lost(from))? {
                return Ok(Some((from, frame)));
            }
        }
        Ok(None)
    }

    fn wait(&mut self, _writable: &[usize]) -> Result<(), Lost> {
        std::thread::sleep(Duration::from_micros(20));
        for link in self.links.iter_mut().flatten() {
            // A peer that is lost is found when it is read.
            let _ = link.flush();
        }
        Ok(())
    }

    fn close(&mut self, peer: usize) {
        let link = self.links[peer].as_ref().unwrap();
        let _ = link.stream().stream.shutdown(std::net::Shutdown::Both);
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

fn halting(stream: TcpStream, seed: usize) -> Halting<TcpStream> {
    stream.set_nonblocking(true).unwrap();
    Halting {
        stream,
        random: Random(seed as u64),
        most: 5000,
    }
}

/// Connects participant `me` with all others: it connects to those after it and accepts those before.
fn connect(me: usize, listener: &TcpListener, ports: &[u16], sealed: bool) -> Sockets {
    let mut begun = VecDeque::new();
    for (to, &port) in ports.iter().enumerate().skip(me + 1) {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut link = Link::new(halting(stream, to));
        let ends = Ends {
            mesh: MESH,
            from: me as u32,
            to: to as u32,
            sealed,
        };
        let greeting = Greeting::connect(&mut link, b"secret", ends, [me as u8; NONCE_BYTES]);
        begun.push_back((link, greeting.unwrap()));
    }
    for from in 0..me {
        let (stream, _) = listener.accept().unwrap();
        let greeting =
            Greeting::accept(b"secret", MESH, me as u32, sealed, [me as u8; NONCE_BYTES]);
        begun.push_back((Link::new(halting(stream, from)), greeting));
    }
    let mut links: Vec<_> = ports.iter().map(|_| None).collect();
    while let Some((mut link, mut greeting)) = begun.pop_front() {
        let Some(ends) = greeting.advance(&mut link).unwrap() else {
            begun.push_back((link, greeting));
            std::thread::yield_now();
            continue;
        };
        let peer = if ends.from as usize == me {
            ends.to
        } else {
            ends.from
        };
        links[peer as usize] = Some(link);
    }
    Sockets {
        me,
        query: 0,
        links,
        began: Instant::now(),
    }
}

/// Queries over the same links, one after the other; a participant may be a query ahead of its peers.
#[test]
fn joins_over_sockets() {
    join_over_sockets(false);
}

#[test]
fn joins_over_sealed_links() {
    join_over_sockets(true);
}

fn join_over_sockets(sealed: bool) {
    let nodes = 3;
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = listeners.each_ref().map(|l| l.local_addr().unwrap().port());
    let queries: Vec<Query> = (0..6).map(|seed| Query::random(seed, 40, 3, 100)).collect();
    let parts: Vec<Vec<Vec<Vec<u64>>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..nodes)
            .map(|me| {
                let (listener, ports, queries) = (&listeners[me], &ports, &queries);
                scope.spawn(move || {
                    let mut sockets = connect(me, listener, ports, sealed);
                    let mut answers = Vec::new();
                    for (number, query) in queries.iter().enumerate() {
                        sockets.query = number as u64 + 1;
                        let settings = Settings {
                            query: sockets.query,
                            batch_bytes: [0, 200, 100_000][number % 3],
                            most_rows: 100,
                            memory: 1 << 20,
                        };
                        let join = Join::new(query, Part { me, nodes }, 50);
                        let mut exchange = Exchange::new(&mut sockets, join, settings, None);
                        let mut rows = Vec::new();
                        while let Some(part) = exchange.next().unwrap() {
                            rows.extend(part);
                        }
                        answers.push(rows);
                    }
                    // The links stay until all are done, as those of sessions do.
                    (answers, sockets)
                })
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        let (parts, _sockets): (Vec<_>, Vec<_>) = ended.unzip();
        parts
    });
    for (number, query) in queries.iter().enumerate() {
        let mut rows: Vec<_> = parts.iter().flat_map(|part| part[number].clone()).collect();
        rows.sort_unstable();
        assert_eq!(rows, query.nested_loops());
    }
}
