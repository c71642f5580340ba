//! The keywords with which a server begins the parts of a message: severities such as `ERROR`, and others such as
//! `DETAIL`.

/// The kind of a message part. The server writes a message as several parts, each with a keyword of its own, such as
/// `ERROR`, `DETAIL` and `STATEMENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The part is the message itself.
    Message(Severity),
    Detail,
    Context,
    /// The part is the text of the statement that failed.
    Statement,
    /// The part is a hint, an internal query, a location or a backtrace.
    Other,
    /// The part has a keyword in a language other than English.
    Foreign(Language),
}

/// The severity of a message, as far as captures distinguish severities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Severity {
    #[default]
    Log,
    /// The error of a statement.
    Error,
    /// An error that ends the session. It may occur between statements.
    Fatal,
    /// A warning, a notice or a debug message.
    Other,
}

/// A language, as its English name.
pub type Language = &'static str;

/// Splits the keyword off a line whose prefix has been removed. Returns the kind of message part and its text.
pub fn take_part(line: &str) -> Option<(Part, &str)> {
    let word_end = line.as_bytes().iter().take(LONGEST_WORD).position(|c| *c == b':')?;
    let text = line[word_end..].strip_prefix(":  ")?;
    Some((part(line[..word_end].trim_end())?, text))
}

/// Splits a word in capital letters and its colon off a line. It is taken for a keyword in an unknown language.
pub fn take_unknown_part(line: &str) -> Option<(Part, &str)> {
    let (word, text) = line.split_once(":  ").filter(|(word, _)| word.len() <= LONGEST_WORD)?;
    let is_word = word.chars().count() > 1 && word.chars().all(|c| c.is_alphabetic() && !c.is_lowercase());
    is_word.then_some((Part::Foreign("another language"), text))
}

/// The greatest length of a keyword in bytes. The longest keyword is Chinese.
const LONGEST_WORD: usize = 60;

/// True if a message part begins somewhere in a line: the line contains a keyword such as `LOG:` or `DETAIL:`.
pub fn has_part(line: &str) -> bool {
    part_ends(line, false).next().is_some()
}

/// Returns the offsets of the colons behind the keywords in a text, whatever prefix stands before them. The character
/// before a keyword must not be a letter, unless `may_follow_letter` is true.
pub fn part_ends(text: &str, may_follow_letter: bool) -> impl Iterator<Item = usize> + '_ {
    let colons = memchr::memmem::find_iter(text.as_bytes(), b":  ");
    colons.filter(move |colon| part_before(&text[..*colon], may_follow_letter).is_some())
}

/// True if a text, which was cut before a colon, ends with the keyword of a message, such as `LOG`.
pub fn is_message(text: &str) -> bool {
    matches!(part_before(text, true), Some(Part::Message(_) | Part::Foreign(_)))
}

/// Returns the kind of message part whose keyword, such as `ERROR` or `DETAIL`, stands at the end of a text.
fn part_before(text: &str, may_follow_letter: bool) -> Option<Part> {
    let before = text.trim_end();
    let mut from = before.len().saturating_sub(LONGEST_WORD);
    while !before.is_char_boundary(from) {
        from += 1;
    }
    let mut starts = before[from..].char_indices().filter(|(at, c)| {
        let follows_letter = || before[..from + at].chars().next_back().is_some_and(char::is_alphanumeric);
        c.is_alphabetic() && (may_follow_letter || !follows_letter())
    });
    starts.find_map(|(at, _)| part(&before[from + at..]))
}

/// Returns the kind of message part that has this keyword.
pub fn part(word: &str) -> Option<Part> {
    Some(match word {
        "LOG" => Part::Message(Severity::Log),
        "ERROR" => Part::Message(Severity::Error),
        "FATAL" | "PANIC" => Part::Message(Severity::Fatal),
        "WARNING" | "NOTICE" | "INFO" | "DEBUG" | "DEBUG1" | "DEBUG2" | "DEBUG3" | "DEBUG4" | "DEBUG5" => {
            Part::Message(Severity::Other)
        }
        "DETAIL" => Part::Detail,
        "CONTEXT" => Part::Context,
        "STATEMENT" => Part::Statement,
        "HINT" | "QUERY" | "LOCATION" | "BACKTRACE" => Part::Other,
        _ => Part::Foreign(LANGUAGES.iter().find(|language| language.words.contains(&word))?.name),
    })
}

/// Returns the language of a message that begins with translated words such as those for "statement: "; `None` for
/// English.
pub fn language_of(message: &str) -> Option<Language> {
    let is_its = |language: &&Translation| language.heads.iter().any(|head| message.starts_with(head));
    LANGUAGES.iter().find(is_its).map(|language| language.name)
}

/// The keywords of a language that differ from the English ones.
struct Translation {
    name: Language,
    /// The translated keywords: severities such as `ERROR`, and other message parts such as `DETAIL`.
    words: &'static [&'static str],
    /// The translated beginnings of the messages "statement: ", "duration: " and "connection received: ".
    heads: &'static [&'static str],
}

/// The supported languages. Their words are from the message catalogs of PostgreSQL 15 (`src/backend/po`).
#[rustfmt::skip]
const LANGUAGES: &[Translation] = &[
    Translation {
        name: "German",
        words: &["FEHLER", "PANIK", "WARNUNG", "HINWEIS", "TIPP", "ANFRAGE", "ZUSAMMENHANG", "ANWEISUNG"],
        heads: &["Anweisung: ", "Dauer: ", "Verbindung empfangen: "],
    },
    Translation {
        name: "Spanish",
        words: &["DETALLE", "CONSULTA", "CONTEXTO", "SENTENCIA"],
        heads: &["sentencia: ", "duración: ", "conexión recibida: "],
    },
    Translation {
        name: "French",
        words: &["ERREUR", "ATTENTION", "DÉTAIL", "ASTUCE", "REQUÊTE", "CONTEXTE", "INSTRUCTION"],
        heads: &["instruction : ", "durée : ", "connexion reçue : "],
    },
    Translation {
        name: "Italian",
        words: &["ERRORE", "FATALE", "PANICO", "ATTENZIONE", "NOTIFICA", "DETTAGLI", "SUGGERIMENTO", "CONTESTO", "ISTRUZIONE"],
        heads: &["istruzione: ", "durata: ", "connessione ricevuta: "],
    },
    Translation {
        name: "Japanese",
        words: &["詳細", "ヒント", "問い合わせ", "文脈", "文", "バックトレース"],
        heads: &["文: ", "期間: ", "接続を受け付けました: "],
    },
    Translation {
        name: "Georgian",
        words: &["ჟურნალი", "შეცდომა", "ფატალური", "პანიკა", "გაფრთხილება", "ინფორმაცია", "გამართვა", "დეტალები", "ოპერატორი"],
        heads: &["ოპერატორი: ", "ხანგრძლივობა: ", "შემოსული დაკავშირება: "],
    },
    Translation {
        name: "Korean",
        words: &["로그", "오류", "치명적오류", "손상", "경고", "알림", "정보", "디버그", "상세정보", "힌트", "내용", "명령 구문"],
        heads: &["명령 구문: ", "실행시간: ", "접속 수락: "],
    },
    Translation {
        name: "Portuguese",
        words: &["ERRO", "PÂNICO", "AVISO", "NOTA", "DETALHE", "DICA", "CONSULTA", "COMANDO"],
        heads: &["comando: ", "duração: ", "conexão recebida: "],
    },
    Translation {
        name: "Russian",
        words: &[
            "СООБЩЕНИЕ", "ОШИБКА", "ВАЖНО", "ПАНИКА", "ПРЕДУПРЕЖДЕНИЕ", "ЗАМЕЧАНИЕ", "ИНФОРМАЦИЯ", "ОТЛАДКА", "ПОДРОБНОСТИ",
            "ПОДСКАЗКА", "ЗАПРОС", "КОНТЕКСТ", "ОПЕРАТОР",
        ],
        heads: &["оператор: ", "продолжительность: ", "принято подключение: "],
    },
    Translation {
        name: "Swedish",
        words: &["LOGG", "FEL", "FATALT", "VARNING", "NOTIS", "DETALJ", "TIPS", "FRÅGA", "KONTEXT", "SATS"],
        heads: &["sats: ", "varaktighet", "ansluting mottagen: "],
    },
    Translation {
        name: "Ukrainian",
        words: &[
            "ЗАПИСУВАННЯ", "ПОМИЛКА", "ФАТАЛЬНО", "ПАНІКА", "ПОПЕРЕДЖЕННЯ", "ПОВІДОМЛЕННЯ", "ІНФОРМАЦІЯ", "НАЛАГОДЖЕННЯ",
            "ВІДОМОСТІ", "УКАЗІВКА", "ЗАПИТ", "ІНСТРУКЦІЯ",
        ],
        heads: &["тривалість: ", "параметри: ", "з'єднання отримано: "],
    },
    Translation {
        name: "Chinese",
        words: &["日志", "错误", "致命错误", "比致命错误还过分的错误", "警告", "注意", "信息", "调试", "详细信息", "提示", "查询", "上下文", "语句"],
        heads: &["语句: ", "执行时间: ", "已接收到连接: "],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_begin_with_their_words() {
        assert_eq!(take_part("LOG:  statement: a"), Some((Part::Message(Severity::Log), "statement: a")));
        assert_eq!(take_part("FATAL:  "), Some((Part::Message(Severity::Fatal), "")));
        assert_eq!(take_part("DEBUG2:  x"), Some((Part::Message(Severity::Other), "x")));
        assert_eq!(take_part("STATEMENT:  a:  b"), Some((Part::Statement, "a:  b")));
        for line in ["", "LOG: x", "log:  x", "select a::text", "x:  LOG:  y", "ä"] {
            assert_eq!(take_part(line), None, "{line}");
        }
    }

    #[test]
    fn other_languages_are_known_by_their_words() {
        for (line, language) in [
            ("FEHLER:  x", "German"),
            ("INSTRUCTION :  x", "French"),
            ("СООБЩЕНИЕ:  x", "Russian"),
            ("比致命错误还过分的错误:  x", "Chinese"),
        ] {
            assert_eq!(take_part(line), Some((Part::Foreign(language), "x")), "{line}");
        }
        assert_eq!(language_of("Dauer: 0.1 ms"), Some("German"));
        assert_eq!(language_of("文: select 1"), Some("Japanese"));
        assert_eq!(language_of("statement: select 1"), None);
    }
}
