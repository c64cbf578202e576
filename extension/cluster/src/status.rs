//! What nodes are busy with over some seconds, and the lines that show it.

use std::fmt;
use std::ops::AddAssign;

/// Bytes of a KB in a line.
const KB: f64 = 1024.0;

/// What a node, or several of them, did over some seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct NodeStatus {
    /// Seconds that were watched.
    pub seconds: f64,
    /// Messages sent to other nodes, per second.
    pub messages: f64,
    /// Bytes sent to other nodes, per second.
    pub bytes: f64,
    /// Processors that the processes of the server kept busy; `None` where that cannot be told for each node.
    pub processors: Option<f64>,
    /// Sessions at work, on average.
    pub active: f64,
    /// Sessions waiting for a page from disk, on average.
    pub reading: f64,
    /// Sessions waiting for other nodes, on average.
    pub waiting: f64,
    /// Sessions now.
    pub sessions: Sessions,
    /// Shared buffers now.
    pub buffers: Buffers,
}

/// Sessions of clients and of other nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sessions {
    /// At work.
    pub running: u64,
    /// Within a statement, waiting for a lock, a disk, another node or the client.
    pub waiting: u64,
    /// Waiting for the next statement.
    pub idle: u64,
}

/// Shared buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Buffers {
    /// With a page in them.
    pub used: u64,
    /// With a page that has changed since it was written.
    pub dirty: u64,
    /// Being written.
    pub writing: u64,
}

impl AddAssign for NodeStatus {
    fn add_assign(&mut self, other: Self) {
        self.seconds = self.seconds.max(other.seconds);
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.processors = self.processors.zip(other.processors).map(|(a, b)| a + b);
        self.active += other.active;
        self.reading += other.reading;
        self.waiting += other.waiting;
        self.sessions.running += other.sessions.running;
        self.sessions.waiting += other.sessions.waiting;
        self.sessions.idle += other.sessions.idle;
        self.buffers.used += other.buffers.used;
        self.buffers.dirty += other.buffers.dirty;
        self.buffers.writing += other.buffers.writing;
    }
}

impl NodeStatus {
    /// Status of all of several nodes; `None` without nodes.
    pub fn sum(nodes: impl IntoIterator<Item = Self>) -> Option<Self> {
        nodes.into_iter().reduce(|mut sum, node| {
            sum += node;
            sum
        })
    }

    /// Percent of the time of sessions at work. Waits are timed, but sessions at work are sampled, so short ones may be
    /// missed. A session that waits counts as at work in any case.
    fn share(&self, part: f64) -> f64 {
        let whole = self.active.max(part);
        if whole > 0.0 {
            100.0 * part / whole
        } else {
            0.0
        }
    }
}

impl fmt::Display for NodeStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu = self
            .processors
            .map_or_else(|| "-".to_owned(), |busy| format!("{:.0}%", 100.0 * busy));
        let (sessions, buffers) = (&self.sessions, &self.buffers);
        write!(
            out,
            "{} m/s  {} KB/s  {cpu} cpu  {:.0}% read  {:.0}% clw  sessions {}r {}w {}i  buffers {}  {} d  {} w",
            grouped(self.messages.round() as u64),
            grouped((self.bytes / KB).round() as u64),
            self.share(self.reading),
            self.share(self.waiting),
            sessions.running,
            sessions.waiting,
            sessions.idle,
            grouped(buffers.used),
            grouped(buffers.dirty),
            grouped(buffers.writing),
        )
    }
}

/// The line of all nodes that have answered, of `nodes`.
pub fn summary(nodes: usize, sum: &NodeStatus) -> String {
    let plural = if nodes == 1 { "" } else { "s" };
    let seconds = format!("{:.1}", sum.seconds);
    let seconds = seconds.trim_end_matches(".0");
    format!("Cluster {nodes} node{plural}, {seconds} s.  {sum}")
}

/// What Linux tells of a process in `/proc/<pid>/stat` (`man proc`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessStat {
    /// Number of the parent process.
    pub parent: i32,
    /// Processor time in clock ticks, user and system.
    pub own: u64,
    /// The same of children that have ended and been waited for.
    pub ended_children: u64,
}

impl ProcessStat {
    /// Reads the line; `None` where it has another form.
    pub fn parse(line: &str) -> Option<Self> {
        // The second field is a name in parentheses, which may hold anything; the third field is the first after it.
        let (_, rest) = line.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3);
        let ticks = |number| field(number)?.parse::<u64>().ok();
        Some(Self {
            parent: field(4)?.parse().ok()?,
            own: ticks(14)? + ticks(15)?,
            ended_children: ticks(16)? + ticks(17)?,
        })
    }
}

/// A number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeStatus {
        NodeStatus {
            seconds: 5.0,
            messages: 937.0,
            bytes: 3144.0 * KB,
            processors: Some(0.57),
            active: 2.0,
            reading: 0.1,
            waiting: 0.24,
            sessions: Sessions {
                running: 8,
                waiting: 1,
                idle: 2,
            },
            buffers: Buffers {
                used: 48_811,
                dirty: 0,
                writing: 0,
            },
        }
    }

    #[test]
    fn a_line() {
        assert_eq!(
            node().to_string(),
            "937 m/s  3,144 KB/s  57% cpu  5% read  12% clw  sessions 8r 1w 2i  buffers 48,811  0 d  0 w"
        );
    }

    #[test]
    fn sums() {
        let sum = NodeStatus::sum([node(), node(), node()]).unwrap();
        assert_eq!(
            summary(3, &sum),
            "Cluster 3 nodes, 5 s.  2,811 m/s  9,432 KB/s  171% cpu  5% read  12% clw  sessions 24r 3w 6i  buffers 146,433  0 d  0 w"
        );
        assert!(NodeStatus::sum([]).is_none());
        let half = NodeStatus {
            seconds: 0.5,
            ..node()
        };
        assert!(summary(1, &half).starts_with("Cluster 1 node, 0.5 s.  "));
    }

    #[test]
    fn unknown_and_impossible_shares() {
        let mut odd = node();
        (odd.processors, odd.active) = (None, 0.0);
        assert!(odd.to_string().contains("  - cpu  100% read  100% clw  "));
        (odd.reading, odd.waiting) = (0.0, 0.0);
        assert!(odd.to_string().contains("  0% read  0% clw  "));
        odd += node();
        assert_eq!(odd.processors, None);
    }

    #[test]
    fn process_stat() {
        let line =
            "317 (postgres: a) b) S 300 317 317 0 -1 4194560 9 0 2 0 11 22 3 4 20 0 1 0 55 1 2\n";
        let expected = ProcessStat {
            parent: 300,
            own: 33,
            ended_children: 7,
        };
        assert_eq!(ProcessStat::parse(line), Some(expected));
        assert_eq!(ProcessStat::parse("317 (postgres) S 300 317"), None);
        assert_eq!(ProcessStat::parse(""), None);
    }

    #[test]
    fn groups_of_digits() {
        let expected = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, text) in expected {
            assert_eq!(grouped(number), text);
        }
    }
}
