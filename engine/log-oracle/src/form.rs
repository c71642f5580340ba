//! Writes messages as the server writes them into its logs, with what other programs, such as Docker, put around each
//! line.

use serde_json::{Map, Value, json};

use crate::choices::Choices;
use crate::load::{BEGIN_MS, LoggedClient, Message, RecordedLoad};

/// The format of a log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LogForm {
    Stderr {
        prefix: &'static str,
        /// True if each message has its SQLSTATE before its text (`log_error_verbosity = verbose`).
        is_verbose: bool,
    },
    /// The log has the rows of `csvlog`, with this number of columns.
    Csv(usize),
    Json,
    Docker {
        prefix: &'static str,
    },
}

/// Values of `log_line_prefix`. The program that reads logs recognizes the first [`GUESSED`] of them by itself; the
/// user has to name the others. None of them begins with a name or a process number: if the message before it were cut
/// off within its name, the log would not show where the next message begins.
const PREFIXES: [&str; 15] = [
    "%m [%p] ",
    "%m [%p] %q%u@%d ",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%t:%r:%u@%d:[%p]:",
    "%t [%p-%l] %q%u@%d ",
    "%t-%c-",
    "%m [%p] %q[user=%u,db=%d,app=%a] ",
    "%m [%p]: [%l-1] db=%d,user=%u ",
    "%n %c %e ",
    "%m [%p-%l] %q%u@%d [%a] ",
    "<%m> %-8u %6p %s ",
    "db-1  | %m [%p] ",
    "%m %p %x/%v %d: ",
    "%c %b %m ",
    "%m [%p] %t",
];

/// The number of [`PREFIXES`], from the first one on, that the program that reads logs recognizes by itself.
const GUESSED: usize = 8;

impl LogForm {
    pub fn draw(choices: &mut Choices<'_>) -> Self {
        let prefix = choices.one_of(&PREFIXES);
        match choices.below(8) {
            0..=3 => Self::Stderr { prefix, is_verbose: choices.happens(4) },
            4 | 5 => Self::Csv(choices.one_of(&[26, 24, 23])),
            6 => Self::Json,
            _ => Self::Docker { prefix },
        }
    }

    /// Returns the prefix that the program that reads the log must be told, or `None` if it recognizes the form of the
    /// log by itself.
    pub fn needed_prefix(self) -> Option<&'static str> {
        self.prefix().filter(|prefix| !PREFIXES[..GUESSED].contains(prefix))
    }

    pub fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Stderr { prefix, .. } | Self::Docker { prefix } => Some(prefix),
            Self::Csv(_) | Self::Json => None,
        }
    }

    /// Returns true if the log has the plain lines of `stderr`, which do not show how many lines a message has.
    pub fn has_plain_lines(self) -> bool {
        self.prefix().is_some()
    }

    /// Returns the message with this index as the log contains it, with the line end after its last line.
    pub fn render(self, load: &RecordedLoad, index: usize) -> Vec<u8> {
        let message = &load.messages[index];
        let client = message.client.map(|client| &load.clients[client]);
        match self {
            Self::Stderr { prefix, is_verbose } => plain_lines(prefix, is_verbose, client, message, index),
            Self::Csv(columns) => csv(columns, client, message, index),
            Self::Json => object(client, message, index).to_string() + "\n",
            Self::Docker { prefix } => {
                let lines = plain_lines(prefix, false, client, message, index);
                let line = |line: &str| json!({"log": line, "stream": "stderr", "time": "2026-11-23T08:00:00.1Z"});
                lines.split_inclusive('\n').map(|text| line(text).to_string() + "\n").collect()
            }
        }
        .into_bytes()
    }
}

fn plain_lines(
    prefix: &str,
    is_verbose: bool,
    client: Option<&LoggedClient>,
    message: &Message,
    index: usize,
) -> String {
    let code = if is_verbose { &format!("{}: ", sqlstate(message)) } else { "" };
    let said = format!("{code}{}", message.text);
    let location = if is_verbose { "exec_simple_query, postgres.c:1" } else { "" };
    let parts = [
        (message.severity, said.as_str()),
        ("DETAIL", &message.detail),
        ("HINT", message.hint),
        ("CONTEXT", &message.context),
        ("LOCATION", location),
        ("STATEMENT", &message.statement),
    ];
    let begin = expand(prefix, client, message, index);
    let has_text = |(_, text): &(&str, &str)| !text.is_empty();
    parts
        .into_iter()
        .filter(has_text)
        .map(|(word, text)| format!("{begin}{word}:  {}\n", text.replace('\n', "\n\t")))
        .collect()
}

fn sqlstate(message: &Message) -> &str {
    if message.sqlstate.is_empty() { "00000" } else { message.sqlstate }
}

/// Returns the text that `log_line_prefix` produces for a message.
fn expand(prefix: &str, client: Option<&LoggedClient>, message: &Message, index: usize) -> String {
    let mut text = String::new();
    let mut rest = prefix;
    while let Some(at) = rest.find('%') {
        text += &rest[..at];
        let escape = &rest[at + 1..];
        let digits = escape.len() - escape.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit()).len();
        let width: isize = escape[..digits].parse().unwrap_or(0);
        let letter = escape.as_bytes()[digits];
        rest = &escape[digits + 1..];
        if letter == b'q' {
            if client.is_none() {
                return text;
            }
            continue;
        }
        let value = field(letter, client, message, index);
        let size = width.unsigned_abs();
        text += &if width < 0 { format!("{value:<size$}") } else { format!("{value:>size$}") };
    }
    text + rest
}

fn field(letter: u8, client: Option<&LoggedClient>, message: &Message, index: usize) -> String {
    let name = |name: fn(&LoggedClient) -> &'static str| client.map_or("", name).to_owned();
    match letter {
        b'm' => time(message.time_ms),
        b't' | b's' => seconds(if letter == b't' { message.time_ms } else { BEGIN_MS }),
        b'n' => format!("{}.{:03}", message.time_ms / 1000, message.time_ms % 1000),
        b'p' => pid(client).to_string(),
        b'c' => client.map_or_else(|| format!("{:x}.{:x}", BEGIN_MS / 1000, pid(None)), LoggedClient::session_id),
        b'u' => name(|client| client.user),
        b'd' => name(|client| client.database),
        b'a' => name(|client| if client.application.is_empty() { "[unknown]" } else { client.application }),
        b'h' => name(|_| "10.0.0.1"),
        b'r' => name(|_| "10.0.0.1(51314)"),
        b'b' => if client.is_some() { "client backend" } else { "checkpointer" }.to_owned(),
        b'e' => sqlstate(message).to_owned(),
        b'l' => (index + 1).to_string(),
        // In these logs each statement is a transaction of its own.
        b'v' => client.map_or_else(String::new, |_| format!("3/{}", index + 1)),
        b'x' => "0".to_owned(),
        other => unreachable!("%{}", char::from(other)),
    }
}

fn pid(client: Option<&LoggedClient>) -> u32 {
    client.map_or(7, |client| client.pid)
}

/// Returns a time in the format of a log. All times are within an hour after the beginning.
fn time(time_ms: u64) -> String {
    let (minute, second) = ((time_ms - BEGIN_MS) / 60_000, (time_ms - BEGIN_MS) / 1000 % 60);
    format!("2026-11-23 08:{minute:02}:{second:02}.{:03} UTC", time_ms % 1000)
}

fn seconds(time_ms: u64) -> String {
    time(time_ms)[..19].to_owned() + " UTC"
}

fn csv(columns: usize, client: Option<&LoggedClient>, message: &Message, index: usize) -> String {
    let quoted = |text: &str| match text {
        "" => String::new(),
        _ => format!("\"{}\"", text.replace('"', "\"\"")),
    };
    let mut row = vec![
        time(message.time_ms),
        quoted(&field(b'u', client, message, index)),
        quoted(&field(b'd', client, message, index)),
        pid(client).to_string(),
        client.map_or(String::new(), |_| quoted("10.0.0.1:51314")),
        field(b'c', client, message, index),
        (index + 1).to_string(),
        quoted("SELECT"),
        seconds(BEGIN_MS),
        field(b'v', client, message, index),
        "0".to_owned(),
        message.severity.to_owned(),
        sqlstate(message).to_owned(),
    ];
    let (nothing, application) = (String::new(), client.map_or("", |client| client.application));
    row.extend([&message.text, &message.detail].map(|text| quoted(text)));
    row.extend([quoted(message.hint), nothing.clone(), nothing.clone(), quoted(&message.context)]);
    row.extend([quoted(&message.statement), nothing.clone(), nothing, quoted(application)]);
    row.extend([quoted(&field(b'b', client, message, index)), String::new(), "0".to_owned()]);
    row[..columns].join(",") + "\n"
}

fn object(client: Option<&LoggedClient>, message: &Message, index: usize) -> Value {
    let texts = [
        ("timestamp", time(message.time_ms)),
        ("user", field(b'u', client, message, index)),
        ("dbname", field(b'd', client, message, index)),
        ("session_id", field(b'c', client, message, index)),
        ("session_start", seconds(BEGIN_MS)),
        ("error_severity", message.severity.to_owned()),
        ("state_code", message.sqlstate.to_owned()),
        ("message", message.text.clone()),
        ("detail", message.detail.clone()),
        ("hint", message.hint.to_owned()),
        ("context", message.context.clone()),
        ("statement", message.statement.clone()),
        ("application_name", client.map_or("", |client| client.application).to_owned()),
        ("backend_type", field(b'b', client, message, index)),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut object: Map<String, Value> = texts.map(|(key, text)| (key.to_owned(), text.into())).collect();
    object.insert("pid".to_owned(), pid(client).into());
    Value::Object(object)
}
