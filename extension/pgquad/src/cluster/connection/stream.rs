//! Messages of a query: data of one long call (`cluster_serve`), which libpq takes in copy-both mode.

use std::ffi::{c_char, CString};

use pgquad_cluster::message::{self, Kind};
use pgrx::PgSqlErrorCode;
use pq_sys::ExecStatusType;

use super::session::Session;
use crate::catalog::names::role_name;
use crate::cluster::citus::SAME_VERSION_HINT;
use crate::cluster::secret;
use crate::pg::error::{raise, raise_hint};

impl Session {
    /// Begins the call; does not wait until the other node takes messages.
    pub(super) fn call_serve(&mut self) {
        let token = secret::token(&role_name(self.role));
        let version = CString::new(message::VERSION.to_string()).unwrap_or_default();
        let values = [version.as_ptr(), token.as_ptr().cast()];
        let lengths = [0, token.len() as i32];
        // SAFETY: a live connection; parameters outlive the call, which copies them.
        let sent = unsafe {
            pq_sys::PQsetnonblocking(self.conn, 1) == 0
                && pq_sys::PQsendQueryParams(
                    self.conn,
                    c"CALL quad.cluster_serve($1::pg_catalog.int4, $2::pg_catalog.bytea)".as_ptr(),
                    2,
                    std::ptr::null(),
                    values.as_ptr(),
                    lengths.as_ptr(),
                    [0, 1].as_ptr(),
                    1,
                ) == 1
        };
        if !sent {
            self.lost("lost the connection to");
        }
    }

    /// Waits until the other node takes messages.
    pub(super) fn is_served(&mut self) {
        match self.next_result() {
            Some(result) if result.status() == ExecStatusType::PGRES_COPY_BOTH => {}
            Some(result) if result.code() == Some(PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION) => {
                raise_hint(
                    PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!(
                        "node {} has no pgquad, or one of an older version",
                        self.node.name()
                    ),
                    SAME_VERSION_HINT,
                )
            }
            Some(result) => self.fail(&result),
            None => self.lost("lost the connection to"),
        }
    }

    /// Puts a message into the buffer of what is to be sent.
    pub(super) fn put(&mut self, message: &[u8]) {
        if self.ended {
            self.has_ended();
        }
        if !self.put_data(message) {
            self.lost("lost the connection to");
        }
        self.open = true;
    }

    /// Puts the end of the transaction there; false where the connection is of no further use.
    pub(super) fn put_end(&mut self) -> bool {
        self.open = false;
        self.put_data(&message::request(Kind::EndTransaction).finish())
    }

    fn put_data(&mut self, message: &[u8]) -> bool {
        // SAFETY: a live connection; the bytes are copied.
        unsafe {
            pq_sys::PQputCopyData(self.conn, message.as_ptr().cast(), message.len() as i32) == 1
        }
    }

    /// Whether nothing has come that nobody waits for: the end of the call, an error.
    pub(super) fn is_silent(&self) -> bool {
        let mut buffer: *mut c_char = std::ptr::null_mut();
        // SAFETY: a live connection; what has come is freed.
        unsafe {
            let length = pq_sys::PQgetCopyData(self.conn, &mut buffer, 1);
            if !buffer.is_null() {
                pq_sys::PQfreemem(buffer.cast());
            }
            length == 0
        }
    }

    /// The answer to the oldest message that is waited for.
    pub(super) fn take_answer(&mut self) -> Vec<u8> {
        loop {
            let answer = self.take_data();
            self.waiting -= 1;
            if self.abandoned == 0 {
                return answer;
            }
            self.abandoned -= 1;
        }
    }

    /// The next data of the other node. Waits.
    fn take_data(&mut self) -> Vec<u8> {
        if self.ended {
            self.has_ended();
        }
        let mut buffer: *mut c_char = std::ptr::null_mut();
        let mut length = 0;
        self.wait_until(|conn| {
            // SAFETY: a live connection; nothing has been taken so far.
            length = unsafe { pq_sys::PQgetCopyData(conn, &mut buffer, 1) };
            length != 0
        });
        let Ok(length) = usize::try_from(length) else {
            self.say_why();
        };
        // SAFETY: so many bytes, which libpq has allocated.
        unsafe {
            let data = std::slice::from_raw_parts(buffer.cast::<u8>(), length).to_vec();
            pq_sys::PQfreemem(buffer.cast());
            data
        }
    }

    /// Raises the error with which the other node has ended the call.
    fn say_why(&mut self) -> ! {
        self.ended = true;
        let was_abandoned = self.abandoned > 0;
        match self.next_result() {
            Some(_) if was_abandoned => self.has_ended(),
            Some(result) if result.status() == ExecStatusType::PGRES_FATAL_ERROR => {
                self.fail(&result)
            }
            None => self.lost("lost the connection to"),
            Some(_) => raise(
                PgSqlErrorCode::ERRCODE_PROTOCOL_VIOLATION,
                format!("node {} answers no more", self.node.name()),
            ),
        }
    }
}
