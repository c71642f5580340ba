//! Makes a capture from logs or from a server's statistics, from opening the first file to writing `capture.json`.

use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ground::output::could_not;

use crate::anonymize;
use crate::error::CaptureError;
use crate::format::{About, LeftOut, Origin, Source, Writer};
use crate::left_out::{LeftOuts, Reason};
use crate::log::{DetectedLog, LogItem, Prefix, ReadCounts};
use crate::mix::{self, Mix};
use crate::overlap::Overlap;
use crate::recorder::Recorder;
use crate::selection::Selection;
use crate::time::{Micros, SECOND, iso, now};
use crate::zones::Zones;

/// The settings of a capture: from which logs or statistics it is made, and which of their statements it contains.
#[derive(Debug, Clone, Default)]
pub struct CaptureOrder {
    /// The paths of the logs in the order of their times, or `-` for standard input.
    pub logs: Vec<String>,
    /// The log_line_prefix of the logs; `None` to guess it.
    pub prefix: Option<Prefix>,
    pub selection: Selection,
    /// The time zones of the times in the logs, as far as they are known.
    pub zones: Zones,
    /// The server's statistics from which the capture is made; `None` to make it from the logs.
    pub mix: Option<Mix>,
    pub anonymize: bool,
    /// The name and version of the program, which the capture records.
    pub made_by: String,
    /// Set to true when a signal asks to stop. The capture is then abandoned.
    pub interrupt: Arc<AtomicBool>,
}

/// The progress of reading the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadProgress {
    pub read: u64,
    /// The size of all logs in bytes; `None` if standard input is among them.
    pub total: Option<u64>,
}

/// The number of records after which progress is reported.
const STRIDE: u64 = 1024;

/// Reads the logs or statistics and writes the capture.
pub fn make(
    order: &CaptureOrder,
    directory: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<About, CaptureError> {
    if !order.anonymize {
        return read(order, directory, progress);
    }
    // This fails before the logs are read if the directory cannot be used.
    drop(Writer::create(directory)?);
    // Tokens can be chosen only when all values are known. So the capture is first written with its original values
    // into a second directory, which is removed later.
    let mut plain = directory.as_os_str().to_owned();
    plain.push(".plain");
    let plain = Path::new(&plain);
    DirBuilder::new().mode(0o700).create(plain).map_err(could_not(format_args!(
        "make the directory \"{}\" for the values until tokens replace them",
        plain.display()
    )))?;
    let made = read(order, plain, progress).and_then(|_| anonymize::rewrite(plain, directory, &order.interrupt));
    // The values must not stay on disk, even after an error.
    let removed = fs::remove_dir_all(plain);
    let about = made?;
    removed.map_err(could_not(format_args!(
        "remove the directory \"{}\", which contains the original values",
        plain.display()
    )))?;
    Ok(about)
}

fn read(order: &CaptureOrder, directory: &Path, progress: &mut dyn FnMut(ReadProgress)) -> Result<About, CaptureError> {
    if let Some(mix) = &order.mix {
        return write_mix(order, mix, directory);
    }
    let mut total = Some(0);
    let mut files = HashMap::new();
    for name in &order.logs {
        let file = fs::metadata(name).ok().filter(fs::Metadata::is_file);
        if let Some(other) = file.as_ref().and_then(|file| files.insert((file.dev(), file.ino()), name)) {
            return Err(overlapping(name, other));
        }
        total = total.zip(file).map(|(total, file)| total + file.len());
    }
    let writer = Writer::create(directory)?;
    let mut reading = Reading {
        recorder: Recorder::new(writer, order.selection.clone(), order.anonymize),
        zones: if order.selection.has_zone() { order.zones.clone().exact() } else { order.zones.clone() },
        sources: Vec::new(),
        read: 0,
        before: None,
        overlap: Overlap::default(),
        progress: &mut |read| progress(ReadProgress { read, total }),
        interrupt: &order.interrupt,
    };
    for (name, number) in order.logs.iter().zip(1..) {
        reading.overlap.next_log(number < order.logs.len());
        reading.read(name, order.prefix.as_ref())?;
    }
    let Reading { recorder, sources, .. } = reading;
    let finished = recorder.finish()?;
    let left_out = finished.left_out.list();
    let is_foreign = finished.left_out.count(Reason::OtherLanguage) > 0;
    let origin = Origin {
        made_at: iso(now()),
        made_by: order.made_by.clone(),
        sources,
        server_version: finished.server_version,
        anonymized: false,
        left_out,
    };
    if finished.writer.is_empty() {
        if let Some(outside) = finished.outside {
            return Err(CaptureError::Outside(outside));
        }
        return Err(nothing(origin.left_out, is_foreign));
    }
    Ok(finished.writer.finish(origin)?)
}

fn write_mix(order: &CaptureOrder, mix: &Mix, directory: &Path) -> Result<About, CaptureError> {
    let mut writer = Writer::create(directory)?;
    let mut left_out = LeftOuts::default();
    let sources = mix::write(mix, &mut writer, &mut left_out)?;
    if writer.is_empty() {
        return Err(match left_out.list().into_iter().max_by_key(|left_out| left_out.count) {
            Some(LeftOut { why, count, .. }) => CaptureError::NothingMade { count, why },
            None => CaptureError::NoCalls(mix.statements.clone()),
        });
    }
    let left_out = left_out.list();
    let origin = Origin { made_at: iso(now()), made_by: order.made_by.clone(), sources, left_out, ..Origin::default() };
    Ok(writer.finish(origin)?)
}

/// Returns the error for a log that has the same records as the log `other`, which may be the same one.
fn overlapping(log: &str, other: &str) -> CaptureError {
    match log == other {
        true => CaptureError::Twice(log.to_owned()),
        false => CaptureError::Overlapping { log: log.to_owned(), other: other.to_owned() },
    }
}

/// Returns an error that says why the logs contain no statement that can be used.
fn nothing(left_out: Vec<LeftOut>, is_foreign: bool) -> CaptureError {
    let Some(LeftOut { why, count, first, .. }) = left_out.into_iter().max_by_key(|left_out| left_out.count) else {
        return CaptureError::NoStatements;
    };
    let (line, log) = (first.line, first.source);
    if is_foreign {
        CaptureError::OtherLanguage { line, log }
    } else {
        CaptureError::NothingUsable { count, why, line, log }
    }
}

struct Reading<'a> {
    recorder: Recorder,
    zones: Zones,
    sources: Vec<Source>,
    /// The number of bytes of all logs that were read before the current log.
    read: u64,
    /// The first time in the previous log, and the name of that log.
    before: Option<(Micros, String)>,
    overlap: Overlap,
    progress: &'a mut dyn FnMut(u64),
    interrupt: &'a AtomicBool,
}

impl Reading<'_> {
    fn read(&mut self, name: &str, prefix: Option<&Prefix>) -> Result<(), CaptureError> {
        let Some(log) = DetectedLog::open(name, prefix)? else {
            let (name, format) = (name.to_owned(), "empty".to_owned());
            self.sources.push(Source { name, format, packing: None, prefix: None, zones: None, bytes: 0 });
            return Ok(());
        };
        let format = log.format().name().to_owned();
        let prefix = log.format().prefix().map(|prefix| prefix.text().to_owned());
        let counts: Rc<ReadCounts> = log.counts();
        let mut order = Chronology::default();
        log.read(&mut |found| {
            CaptureError::once_set(self.interrupt)?;
            match found {
                LogItem::Unreadable { line, why } => self.recorder.leave_out(Reason::from(why), name, line)?,
                LogItem::Record(record) => {
                    let placed = self.zones.place(record);
                    placed.map_err(|why| CaptureError::Zone { line: record.line, log: name.to_owned(), why })?;
                    if order.records == 0 {
                        self.check_order(name, record.time.utc)?;
                    }
                    if let Some(other) = self.overlap.take(record, name) {
                        return Err(overlapping(name, &other));
                    }
                    order.step(record.time.utc);
                    self.recorder.take(record, name)?;
                }
            }
            if order.records % STRIDE == 0 {
                (self.progress)(self.read + counts.read.get());
            }
            Ok(())
        })?;
        if order.is_backwards() {
            return Err(CaptureError::NewestFirst(name.to_owned()));
        }
        if let Some(other) = self.overlap.end_log() {
            return Err(overlapping(name, &other));
        }
        if counts.is_damaged.get() {
            self.recorder.leave_out(Reason::Damaged, name, counts.lines.get())?;
        }
        self.read += counts.read.get();
        let (zones, packing, bytes) = (self.zones.several(), counts.packing(), counts.bytes.get());
        self.sources.push(Source { name: name.to_owned(), format, packing, prefix, zones, bytes });
        Ok(())
    }

    /// Fails if a log begins before the log that was read before it. The order matters because a session may continue
    /// from one log to the next.
    fn check_order(&mut self, name: &str, time: Micros) -> Result<(), CaptureError> {
        if let Some((before, other)) = &self.before {
            // The time of a log with whole seconds is cut off.
            let is_cut = time.is_multiple_of(SECOND) && before.saturating_sub(time) < SECOND;
            if time < *before && !is_cut {
                return Err(CaptureError::OutOfOrder { log: name.to_owned(), before: other.clone() });
            }
        }
        self.before = Some((time, name.to_owned()));
        Ok(())
    }
}

/// Counts records to find out whether a log has its newest messages first.
#[derive(Default)]
struct Chronology {
    records: u64,
    backwards: u64,
    last: Micros,
}

impl Chronology {
    fn step(&mut self, time: Micros) {
        self.records += 1;
        self.backwards += u64::from(time < self.last);
        self.last = time;
    }

    fn is_backwards(&self) -> bool {
        self.backwards * 2 > self.records
    }
}
