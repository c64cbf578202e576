//! Figures for Prometheus.

use std::time::Duration;

use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

use crate::nodes::NodeState;

/// The figures of this server.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    seconds: HistogramVec,
    /// Requests that are being answered, until the last byte of the answer.
    pub in_flight: IntGauge,
    /// Client connections.
    pub clients: IntGauge,
    /// Queries that were cancelled: their client was gone or their time was over.
    pub cancelled: IntCounter,
    /// Bytes of answers, before compression.
    pub sent_bytes: IntCounter,
    /// Bytes of documents that were uploaded, as they came: packed ones are.
    pub received_bytes: IntCounter,
    up: IntGaugeVec,
    connections: IntGaugeVec,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let requests = Opts::new("pgquad_requests_total", "Requests by endpoint and status.");
        let seconds = HistogramOpts::new(
            "pgquad_request_seconds",
            "Time until the head of the response, by endpoint.",
        )
        .buckets(vec![
            0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
        ]);
        let node = |name: &str, help: &str| IntGaugeVec::new(Opts::new(name, help), &["node"]);
        let valid = "names of metrics are constants";
        let metrics = Self {
            requests: IntCounterVec::new(requests, &["endpoint", "status"]).expect(valid),
            seconds: HistogramVec::new(seconds, &["endpoint"]).expect(valid),
            in_flight: IntGauge::new("pgquad_requests_in_flight", "Requests being answered.")
                .expect(valid),
            clients: IntGauge::new("pgquad_clients", "Client connections.").expect(valid),
            cancelled: IntCounter::new("pgquad_cancelled_total", "Queries that were cancelled.")
                .expect(valid),
            sent_bytes: IntCounter::new(
                "pgquad_sent_bytes_total",
                "Bytes of answers, before compression.",
            )
            .expect(valid),
            received_bytes: IntCounter::new(
                "pgquad_received_bytes_total",
                "Bytes of uploaded documents.",
            )
            .expect(valid),
            up: node("pgquad_node_up", "Whether a PostgreSQL node answers.").expect(valid),
            connections: node(
                "pgquad_node_connections",
                "Connections to a PostgreSQL node.",
            )
            .expect(valid),
            registry,
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&self) {
        let all: [Box<dyn prometheus::core::Collector>; 9] = [
            Box::new(self.requests.clone()),
            Box::new(self.seconds.clone()),
            Box::new(self.in_flight.clone()),
            Box::new(self.clients.clone()),
            Box::new(self.cancelled.clone()),
            Box::new(self.sent_bytes.clone()),
            Box::new(self.received_bytes.clone()),
            Box::new(self.up.clone()),
            Box::new(self.connections.clone()),
        ];
        for collector in all {
            let registered = self.registry.register(collector);
            registered.expect("names of metrics differ");
        }
    }

    /// Counts a request.
    pub fn request(&self, endpoint: &str, status: u16, time: Duration) {
        let status = status.to_string();
        self.requests.with_label_values(&[endpoint, &status]).inc();
        let seconds = self.seconds.with_label_values(&[endpoint]);
        seconds.observe(time.as_secs_f64());
    }

    /// All figures as text.
    pub fn text(&self, nodes: &[NodeState]) -> String {
        for node in nodes {
            let name = [node.name.as_str()];
            self.up.with_label_values(&name).set(node.up.into());
            let connections = self.connections.with_label_values(&name);
            connections.set(node.connections as i64);
        }
        let mut text = Vec::new();
        let encoded = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        encoded.expect("writing to memory does not fail");
        String::from_utf8_lossy(&text).into_owned()
    }
}
