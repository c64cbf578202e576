//! Quad tables as trees in PostgreSQL's pages. See README.md beside this file.

mod buffers;
pub mod bulk;
mod conflict;
mod error;
pub mod executor_depth;
pub mod inner_page_cache;
mod key_range;
mod locked_page;
mod maintenance;
pub mod options;
mod order_task;
pub mod pending;
pub mod pending_work;
mod reader;
pub mod rebuild;
mod relation;
mod run_files;
mod snapshot;
mod sorter;
pub mod stop_points;
mod table;
mod temp_file;
mod trees;
pub mod wal;
mod workers;

pub use buffers::RelationStore;
pub use error::fail;
pub use key_range::range_for;
pub use reader::LocalReader;
pub use relation::{options_of, replaced_options, with_open};
pub use run_files::RunFiles;
pub use snapshot::{is_serializable, PgSnapshot};
pub use sorter::{Sorted, Sorter};
pub use table::{leaf_sample, Deleted, Sampled, Table};
pub use temp_file::TempFile;
pub use trees::{forget_meta, tree_to_read};
