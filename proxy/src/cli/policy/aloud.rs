//! What a plugin logs and how it fails, for its author: on standard error, where a `weir serve` has its log.

use std::fmt;
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Does `work` and prints what plugins say meanwhile.
pub fn aloud<T>(work: impl FnOnce() -> T) -> T {
    let subscriber = tracing_subscriber::registry().with(Aloud);
    tracing::subscriber::with_default(subscriber, work)
}

struct Aloud;

impl<S: tracing::Subscriber> Layer<S> for Aloud {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let Some(plugin) = line.plugin else {
            return;
        };
        let level = event.metadata().level().as_str().to_lowercase();
        let (text, what) = (line.text, line.what);
        let what = what.map_or_else(String::new, |what| format!(": {what}"));
        // Nobody may read it.
        let _ = writeln!(std::io::stderr(), "{plugin}: {level}: {text}{what}");
    }
}

/// An event of a plugin: its fields that are for people.
#[derive(Default)]
struct Line {
    plugin: Option<String>,
    text: String,
    what: Option<String>,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "plugin" => self.plugin = Some(value.to_owned()),
            "what" => self.what = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        }
    }
}
