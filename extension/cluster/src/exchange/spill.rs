//! What came in and memory has no room for: runs of packed rows in a file whose blocks are used again.

/// A file that is read and written anywhere. Errors leave by the implementation's own way; a file that is dropped is
/// gone.
pub trait SpillFile {
    /// Writes at byte `at`, which is at most the end of what has been written.
    fn write(&mut self, at: u64, bytes: &[u8]);

    /// Reads what was written at byte `at`.
    fn read(&mut self, at: u64, bytes: &mut [u8]);
}

/// Bytes of a block: the unit in which room in the file is used again.
const BLOCK_BYTES: usize = 64 << 10;

/// Packed rows of one state, and who sent them.
pub struct Packed {
    /// The participant, for errors.
    pub from: usize,
    /// What [`super::Rows`] were written to.
    pub bytes: Vec<u8>,
}

/// Packed rows in the file, read once from the start to the end.
pub struct Run {
    /// Blocks in order, the last first.
    blocks: Vec<u32>,
    /// Where in the first block reading goes on.
    at: usize,
    /// Packed rows that are left.
    left: usize,
}

/// The file and its free blocks.
pub struct Spilled {
    file: Box<dyn SpillFile>,
    blocks: u32,
    free: Vec<u32>,
    /// Bytes written so far.
    pub bytes: u64,
}

impl Spilled {
    /// An empty file.
    pub fn new(file: Box<dyn SpillFile>) -> Self {
        Self {
            file,
            blocks: 0,
            free: Vec::new(),
            bytes: 0,
        }
    }

    /// Writes packed rows as a run.
    pub fn write(&mut self, list: impl ExactSizeIterator<Item = Packed>) -> Run {
        let mut run = Run {
            blocks: Vec::new(),
            at: 0,
            left: list.len(),
        };
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        for packed in list {
            let head = [packed.from as u32, packed.bytes.len() as u32];
            let head: Vec<u8> = head.iter().flat_map(|n| n.to_le_bytes()).collect();
            for mut bytes in [&head[..], &packed.bytes[..]] {
                while !bytes.is_empty() {
                    let (now, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - block.len()));
                    block.extend_from_slice(now);
                    bytes = rest;
                    if block.len() == BLOCK_BYTES {
                        run.blocks.push(self.write_block(&block));
                        block.clear();
                    }
                }
            }
        }
        if !block.is_empty() {
            // Blocks are whole, so that the next new one starts at the end of the file.
            block.resize(BLOCK_BYTES, 0);
            run.blocks.push(self.write_block(&block));
        }
        run.blocks.reverse();
        run
    }

    fn write_block(&mut self, block: &[u8]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.blocks += 1;
            self.blocks - 1
        });
        self.file
            .write(u64::from(number) * BLOCK_BYTES as u64, block);
        self.bytes += block.len() as u64;
        number
    }

    /// The next packed rows of a run; `None` at its end, when all of its blocks are free again.
    pub fn read(&mut self, run: &mut Run) -> Option<Packed> {
        if run.left == 0 {
            self.free.append(&mut run.blocks);
            return None;
        }
        run.left -= 1;
        let mut head = [0u8; 8];
        self.fill(run, &mut head);
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let mut bytes = vec![0; number(4) as usize];
        self.fill(run, &mut bytes);
        Some(Packed {
            from: number(0) as usize,
            bytes,
        })
    }

    fn fill(&mut self, run: &mut Run, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let Some(&block) = run.blocks.last() else {
                unreachable!("a run has the blocks that it was written to")
            };
            let (now, rest) = bytes.split_at_mut(bytes.len().min(BLOCK_BYTES - run.at));
            self.file
                .read(u64::from(block) * BLOCK_BYTES as u64 + run.at as u64, now);
            run.at += now.len();
            if run.at == BLOCK_BYTES {
                run.at = 0;
                self.free.extend(run.blocks.pop());
            }
            bytes = rest;
        }
    }
}
