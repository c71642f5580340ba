//! The general options: deprecated names, defaults that depend on others, and ranges, judged in sysbench's order before
//! the test is looked for.

use super::{CommandLine, Refusal};
use crate::frontend::sharing;
use crate::frontend::sysbench::options::table;
use crate::frontend::sysbench::options::table::Definition;
use drive::plan::StartAt;
use workload::settings::{OptionValue, Settings};

/// The most points in time that `--report-checkpoints` may have.
const MOST_CHECKPOINTS: usize = 256;

/// Checks the general options. `warn` is told what is deprecated and what is odd, in order and before any error.
pub fn check(line: &CommandLine, warn: &mut dyn FnMut(&str)) -> Result<Settings, Refusal> {
    let mut check = Check { line, settings: Settings::default() };
    check.limits(warn)?;
    check.random()?;
    check.reports(warn)?;
    check.log()?;
    Ok(check.settings)
}

struct Check<'a> {
    line: &'a CommandLine,
    settings: Settings,
}

impl Check<'_> {
    /// Evaluates an option and keeps its value.
    fn take(&mut self, name: &str) -> Result<OptionValue, Refusal> {
        let Some(known) = table::find(name) else { return Ok(OptionValue::Text(None)) };
        let value = self.line.value(known)?;
        self.settings.set(known.name, value.clone());
        Ok(value)
    }

    fn int(&mut self, name: &str) -> Result<i64, Refusal> {
        Ok(if let OptionValue::Int(number) = self.take(name)? { number } else { 0 })
    }

    /// A whole number that is not negative.
    fn count(&mut self, name: &str) -> Result<i64, Refusal> {
        match self.int(name)? {
            number if number < 0 => Err(invalid_number(name, number)),
            number => Ok(number),
        }
    }

    /// An option that has a deprecated name, which counts if it is above `least`.
    fn renamed(
        &mut self,
        name: &str,
        deprecated: &str,
        least: i64,
        warn: &mut dyn FnMut(&str),
    ) -> Result<i64, Refusal> {
        let number = self.count(deprecated)?;
        if number <= least {
            return self.count(name);
        }
        warn(&format!("--{deprecated} is deprecated, use --{name} instead"));
        self.settings.set(name, OptionValue::Int(number));
        Ok(number)
    }

    fn limits(&mut self, warn: &mut dyn FnMut(&str)) -> Result<(), Refusal> {
        let threads = self.renamed("threads", "num-threads", 1, warn)?;
        if threads == 0 {
            return Err(invalid_number("threads", threads));
        }
        let events = self.renamed("events", "max-requests", 0, warn)?;
        let time = self.renamed("time", "max-time", 0, warn)?;
        if events == 0 && time == 0 {
            warn("Both event and time limits are disabled, running an endless test");
        }
        let value = self.take("forced-shutdown")?;
        if let OptionValue::Text(Some(text)) = value
            && time > 0
            && !is_forced_shutdown(&text)
        {
            return Err(Refusal::fatal(format_args!("Invalid value for --forced-shutdown: '{text}'")));
        }
        // A size that is none is told as the original tells it.
        if !matches!(self.take("thread-stack-size"), Ok(OptionValue::Int(1..))) {
            return Err(Refusal::fatal("Invalid value for thread-stack-size: 0.\n"));
        }
        self.count("warmup-time")?;
        self.count("thread-init-timeout")?;
        self.settings.set("debug", OptionValue::Bool(self.line.is_on("debug")));
        self.settings.set("validate", OptionValue::Bool(self.line.is_on("validate")));
        Ok(())
    }

    fn random(&mut self) -> Result<(), Refusal> {
        self.int("rand-seed")?;
        let compat = self.take("compat")?;
        let default = match &compat {
            OptionValue::Text(Some(version)) if version == "1.0.20" => None,
            OptionValue::Text(Some(version)) if version == "master" => Some("uniform"),
            OptionValue::Text(version) => {
                let version = version.as_deref().unwrap_or("");
                return Err(Refusal::fatal(format_args!("Invalid value for --compat: '{version}'")));
            }
            _ => None,
        };
        self.take("rand-type")?;
        if let (Some(default), false) = (default, self.line.has("rand-type")) {
            self.settings.set("rand-type", OptionValue::Text(Some(default.to_owned())));
        }
        let name = self.settings.text("rand_type").unwrap_or("");
        if !["uniform", "gaussian", "special", "pareto", "zipfian"].contains(&name) {
            return Err(Refusal::fatal(format_args!("Invalid random numbers distribution: {name}.")));
        }
        for name in ["rand-spec-iter", "rand-spec-pct", "rand-spec-res"] {
            self.int(name)?;
        }
        self.take("rand-pareto-h")?;
        self.take("rand-zipfian-exp")?;
        if self.settings.double("rand_zipfian_exp") < 0.0 {
            return Err(Refusal::fatal("--rand-zipfian-exp must be >= 0"));
        }
        Ok(())
    }

    fn reports(&mut self, warn: &mut dyn FnMut(&str)) -> Result<(), Refusal> {
        self.renamed("rate", "tx-rate", 0, warn)?;
        self.count("report-interval")?;
        let OptionValue::List(points) = self.take("report-checkpoints")? else { return Ok(()) };
        for (index, point) in points.iter().enumerate() {
            if !point.parse::<i32>().is_ok_and(|seconds| seconds >= 0) {
                return Err(Refusal::fatal(format_args!("Invalid value for --report-checkpoints: '{point}'")));
            }
            if index >= MOST_CHECKPOINTS {
                return Err(Refusal::fatal(format_args!(
                    "Too many checkpoints in --report-checkpoints (up to {MOST_CHECKPOINTS} can be defined)"
                )));
            }
        }
        Ok(())
    }

    fn log(&mut self) -> Result<(), Refusal> {
        let mut verbosity = self.int("verbosity")?;
        if self.settings.is_on("debug") {
            verbosity = 5;
            self.settings.set("verbosity", OptionValue::Int(verbosity));
        }
        if !(0..=5).contains(&verbosity) {
            return Err(Refusal::Plain(format!("Invalid value for verbosity: {verbosity}")));
        }
        let percentile = self.int("percentile")?;
        if !(0..=100).contains(&percentile) {
            return Err(Refusal::fatal(format_args!("Invalid value for --percentile: {percentile}")));
        }
        let histogram = self.line.is_on("histogram");
        self.settings.set("histogram", OptionValue::Bool(histogram));
        if percentile == 0 && histogram {
            return Err(Refusal::fatal("--histogram cannot be used with --percentile=0"));
        }
        Ok(())
    }
}

fn invalid_number(name: &str, number: i64) -> Refusal {
    Refusal::fatal(format_args!("Invalid value for --{name}: {number}.\n"))
}

/// Whether `--forced-shutdown` may have this value: `off`, seconds, or a percentage of `--time`.
fn is_forced_shutdown(text: &str) -> bool {
    text.eq_ignore_ascii_case("off") || text.strip_suffix('%').unwrap_or(text).parse::<u32>().is_ok()
}

/// Checks what only pgtrial has, unless the test has options of the same names.
pub(super) fn check_own(known: &Definition, value: &OptionValue) -> Result<(), Refusal> {
    match (known.name, value) {
        ("jobs", OptionValue::Int(number)) if *number < 1 => Err(invalid_number("jobs", *number)),
        ("shard", OptionValue::Text(Some(text))) => sharing::shard(text).map(drop).map_err(Refusal::fatal),
        ("start-at", OptionValue::Text(Some(text))) => StartAt::read(text).map(drop).map_err(Refusal::fatal),
        ("percentiles", OptionValue::List(items)) => {
            let is_percentile = |item: &str| item.parse::<f64>().is_ok_and(|p| p > 0.0 && p <= 100.0);
            match items.iter().find(|item| !is_percentile(item)) {
                Some(item) => Err(Refusal::fatal(format_args!("Invalid value for --percentiles: '{item}'"))),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
