//! Calls only at given hours of given days, by a fixed offset from UTC. Needs the grant `clock`.

use dlp_sdk::{Host, JsonSchema, Message, Plugin, Verdict, serde::Deserialize};

/// The plugin.
pub struct Hours(Config);

/// When calls are allowed.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// Minutes by which local time is ahead of UTC, -840 to 840. Summer time is not known here.
    #[serde(default)]
    pub utc_offset_minutes: i64,
    /// The days, 1 for Monday to 7 for Sunday. Default 1 to 5.
    #[serde(default = "weekdays")]
    pub days: Vec<u8>,
    /// First hour, 0 to 23.
    pub from_hour: u8,
    /// The hour at which it ends, 1 to 24; not above `from_hour`: over midnight. The hours after midnight
    /// belong to the day before.
    pub to_hour: u8,
}

fn weekdays() -> Vec<u8> {
    vec![1, 2, 3, 4, 5]
}

impl Plugin for Hours {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        if config.from_hour > 23 || config.to_hour == 0 || config.to_hour > 24 {
            return Err("from_hour is 0 to 23, to_hour 1 to 24".into());
        }
        if config.days.is_empty() || config.days.iter().any(|day| !(1..=7).contains(day)) {
            return Err("days: 1 (Monday) to 7 (Sunday), at least one".into());
        }
        if config.utc_offset_minutes.abs() > 840 {
            return Err("utc_offset_minutes: -840 to 840".into());
        }
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, host: &dyn Host) -> Verdict {
        if message.method() != "tools/call" || !message.to_server() {
            return Verdict::pass();
        }
        match host.now_ms() {
            Ok(now_ms) if self.is_open(now_ms) => Verdict::pass(),
            Ok(_) => Verdict::block("this tool is not available at this hour"),
            Err(_) => Verdict::block("the hour is not known: grant `clock`"),
        }
    }
}

impl Hours {
    fn is_open(&self, now_ms: u64) -> bool {
        let minutes =
            i64::try_from(now_ms / 60_000).unwrap_or(i64::MAX / 2) + self.0.utc_offset_minutes;
        let (day, hour) = (minutes.div_euclid(1440), minutes.rem_euclid(1440) / 60);
        let (from, to) = (i64::from(self.0.from_hour), i64::from(self.0.to_hour));
        // 1 January 1970 was a Thursday.
        let on = |day: i64| self.0.days.contains(&((day + 3).rem_euclid(7) as u8 + 1));
        if from < to {
            on(day) && (from..to).contains(&hour)
        } else {
            (on(day) && hour >= from) || (on(day - 1) && hour < to)
        }
    }
}

dlp_sdk::export!(Hours);
