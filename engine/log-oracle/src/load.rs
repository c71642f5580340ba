//! Simulated sessions, their statements, and the messages that a server logs about them.

use capture::format::Protocol;

use crate::choices::Choices;
use crate::sql;

/// The time of the first message: 2026-11-23 08:00 UTC, in milliseconds since 1970.
pub const BEGIN_MS: u64 = 1_795_420_800_000;

/// The session of a client.
pub struct LoggedClient {
    pub pid: u32,
    pub user: &'static str,
    pub database: &'static str,
    pub application: &'static str,
}

impl LoggedClient {
    /// Returns the session's identifier, as `%c` in `log_line_prefix` writes it.
    pub fn session_id(&self) -> String {
        format!("{:x}.{:x}", BEGIN_MS / 1000, self.pid)
    }
}

/// A statement that a client sent.
pub struct SentStatement {
    pub client: usize,
    pub protocol: Protocol,
    pub text: String,
    /// The values of the statement's parameters. NULL is `None`.
    pub parameters: Vec<Option<String>>,
    pub has_failed: bool,
    /// The time that the statement took, in microseconds, as the log shows it. `None` if the statement failed.
    pub duration_us: Option<u64>,
}

/// A message of the server. A text that the message does not have is empty.
#[derive(Default)]
pub struct Message {
    pub time_ms: u64,
    /// The index of the client. `None` for messages of processes that serve no client.
    pub client: Option<usize>,
    pub severity: &'static str,
    pub sqlstate: &'static str,
    pub text: String,
    pub detail: String,
    pub hint: &'static str,
    pub context: String,
    pub statement: String,
    /// The index of the statement whose text the message contains, if it contains one.
    pub shows: Option<usize>,
}

/// The sessions, statements and messages of a server.
#[derive(Default)]
pub struct RecordedLoad {
    pub clients: Vec<LoggedClient>,
    pub statements: Vec<SentStatement>,
    /// The messages in the order of their times.
    pub messages: Vec<Message>,
}

/// Messages of processes that serve no client.
const OTHERS: [(&str, &str, &str); 4] = [
    ("LOG", "checkpoint complete: wrote 3 buffers (0.0%); write=0.003 s", ""),
    ("LOG", "automatic vacuum of table \"shop.public.t\": index scans: 0\npages: 0 removed\nsystem usage: CPU 0.1", ""),
    ("WARNING", "archiving write-ahead log file \"0001\" failed too many times", "will try again later"),
    ("LOG", "statement_timeout is not loaded", ""),
];

/// Names of prepared statements. One of them includes a portal.
const NAMES: [&str; 4] = ["S_1", "users: by id", "P0_1/C_2", "a \"b\""];

impl RecordedLoad {
    pub fn draw(choices: &mut Choices<'_>) -> Self {
        let mut load = Self::default();
        let mut queues = Vec::new();
        for number in 0..1 + choices.below(4) {
            load.clients.push(LoggedClient {
                pid: 101 + 17 * number as u32,
                user: choices.one_of(&["app", "owner", "first.last@example.com"]),
                database: choices.one_of(&["shop", "db-1"]),
                application: choices.one_of(&["psql", "my app", "", "PostgreSQL JDBC Driver"]),
            });
            queues.push(load.session(choices, number));
        }
        let mut time_ms = BEGIN_MS;
        while queues.iter().any(|queue| !queue.is_empty()) {
            let next = choices.below(queues.len());
            let queue = &mut queues[next];
            if queue.is_empty() {
                queues.remove(next);
                continue;
            }
            time_ms += choices.below(5) as u64;
            load.messages.push(Message { time_ms, ..queue.remove(0) });
            if choices.happens(12) {
                let (severity, text, detail) = choices.one_of(&OTHERS);
                let (text, detail) = (text.to_owned(), detail.to_owned());
                load.messages.push(Message { time_ms, severity, text, detail, ..Message::default() });
            }
        }
        load
    }

    /// Draws the messages of a client's session. Their times are set later.
    fn session(&mut self, choices: &mut Choices<'_>, client: usize) -> Vec<Message> {
        let LoggedClient { user, database, application, .. } = self.clients[client];
        let said = |text: String| Message { client: Some(client), severity: "LOG", text, ..Message::default() };
        let mut messages = Vec::new();
        if choices.happens(2) {
            messages.push(said("connection received: host=[local]".to_owned()));
            let application = if application.is_empty() { "" } else { &format!(" application_name={application}") };
            messages.push(said(format!("connection authorized: user={user} database={database}{application}")));
        }
        for _ in 0..choices.below(6) {
            self.statement(choices, client, &mut messages);
        }
        if choices.happens(3) {
            messages.push(said(format!(
                "disconnection: session time: 0:00:00.01 user={user} database={database} host=[local]"
            )));
        }
        messages
    }

    /// Draws another statement of a client, and the messages about it, in one of the ways in which servers log
    /// statements.
    fn statement(&mut self, choices: &mut Choices<'_>, client: usize, messages: &mut Vec<Message>) {
        let number = self.statements.len();
        let said = |text: String| Message { client: Some(client), severity: "LOG", text, ..Message::default() };
        let is_bound = choices.happens(2);
        let has_failed = choices.happens(4);
        let parameters: Vec<_> =
            (0..if is_bound { choices.below(3) } else { 0 }).map(|_| sql::value(choices)).collect();
        let text = sql::text(choices, number, parameters.len(), !is_bound);
        let name = if choices.happens(2) { choices.one_of(&NAMES) } else { "<unnamed>" };
        let (protocol, begin) = match (is_bound, name) {
            (false, _) => (Protocol::Simple, "statement".to_owned()),
            (true, "<unnamed>") => (Protocol::Extended, format!("execute {name}")),
            (true, _) => (Protocol::Prepared, format!("execute {name}")),
        };
        let detail = if parameters.is_empty() {
            String::new()
        } else {
            choices.one_of(&["parameters: ", "Parameters: "]).to_owned() + &list(&parameters)
        };
        let duration_us = 1 + choices.below(999) as u64;
        let took = format!("duration: 0.{duration_us:03} ms");
        let is_early = choices.happens(2);
        let with_detail = |text: String| Message { detail: detail.clone(), ..said(text) };
        if is_early {
            messages.push(Message { shows: Some(number), ..with_detail(format!("{begin}: {text}")) });
        } else if is_bound && !has_failed && choices.happens(2) {
            messages.push(said(format!("{took}  parse {name}: {text}")));
            messages.push(with_detail(format!("{took}  bind {name}: {text}")));
        }
        if has_failed {
            let context = if parameters.is_empty() {
                String::new()
            } else {
                format!("unnamed portal with parameters: {}", list(&parameters))
            };
            messages.push(Message {
                severity: "ERROR",
                sqlstate: "22012",
                detail: choices.one_of(&["", "Key (a)=(1)\nis there."]).to_owned(),
                hint: choices.one_of(&["", "Try again."]),
                context,
                statement: text.clone(),
                shows: Some(number),
                ..said("division by zero".to_owned())
            });
        } else if is_early {
            messages.push(said(took));
        } else {
            messages.push(Message { shows: Some(number), ..with_detail(format!("{took}  {begin}: {text}")) });
        }
        let duration_us = Some(duration_us).filter(|_| !has_failed);
        self.statements.push(SentStatement { client, protocol, text, parameters, has_failed, duration_us });
    }
}

/// Returns bound parameters as the server logs them.
fn list(parameters: &[Option<String>]) -> String {
    let logged = parameters.iter().zip(1..).map(|(value, number)| match value {
        None => format!("${number} = NULL"),
        Some(value) => format!("${number} = '{}'", value.replace('\'', "''")),
    });
    logged.collect::<Vec<_>>().join(", ")
}
