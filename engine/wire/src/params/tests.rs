//! Tests of the resolution of connection parameters: the precedence of sources, files, lists of hosts, and error
//! messages.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

/// A simulated machine for one test, with a home directory and socket directories of its own.
struct Machine {
    variables: HashMap<&'static str, String>,
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self { variables: HashMap::new(), folder: tempfile::tempdir().unwrap() }
    }

    fn set(mut self, name: &'static str, value: &str) -> Self {
        self.variables.insert(name, value.to_owned());
        self
    }

    /// Writes a file below the home directory that only its owner can read.
    fn write(self, name: &str, content: &str) -> Self {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        self
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn resolve(&self, dbname: &str) -> Result<Params, ParamsError> {
        self.resolve_given(&given(&[("d", dbname)]))
    }

    fn resolve_given(&self, given: &Given) -> Result<Params, ParamsError> {
        resolve(given, self)
    }
}

impl Environment for Machine {
    fn var(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
    fn user_name(&self) -> Option<String> {
        Some("os_user".to_owned())
    }
    fn home(&self) -> Option<PathBuf> {
        Some(self.folder.path().to_owned())
    }
    fn socket_directories(&self) -> Vec<PathBuf> {
        vec![self.folder.path().join("run"), self.folder.path().join("tmp")]
    }
    fn system_directories(&self) -> Vec<PathBuf> {
        vec![self.folder.path().join("etc")]
    }
}

fn given(options: &[(&str, &str)]) -> Given {
    let option = |name| {
        let found = options.iter().find(|(option, _)| *option == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    Given {
        host: option("h"),
        port: option("p"),
        user: option("U"),
        dbname: option("d"),
        password: option("password").map(Password::new),
        sslmode: option("sslmode"),
        options_win: false,
        fallback_application_name: "pgbench".to_owned(),
    }
}

/// Returns the error in the parameters, in their first host, or in its socket.
fn message(machine: Machine, connection_string: &str) -> String {
    let params = match machine.resolve(connection_string) {
        Err(error) => return error.to_string(),
        Ok(params) => params,
    };
    params.endpoints[0].address.clone().err().or(params.tcp.err()).unwrap().to_string()
}

/// Returns the addresses and ports of the endpoints in a short form.
fn places(params: &Params) -> Vec<String> {
    let place = |endpoint: &Endpoint| match &endpoint.address {
        Err(reason) => reason.to_string(),
        Ok(Address::Unix(path)) => path.display().to_string(),
        Ok(Address::Tcp(host)) => format!("{host} {}", endpoint.port),
    };
    params.endpoints.iter().map(place).collect()
}

fn password(params: &Params) -> Option<&str> {
    params.endpoints[0].password.as_ref().map(Password::reveal)
}

#[test]
fn the_default_database_is_looked_for_as_pgbench_does() {
    let machine = Machine::new();
    let params = machine.resolve_given(&given(&[("U", "foo")])).unwrap();
    assert_eq!((params.user.as_str(), params.dbname.as_str()), ("foo", "os_user"));

    let machine = machine.set("PGUSER", "bar");
    let params = machine.resolve_given(&given(&[("U", "foo")])).unwrap();
    assert_eq!((params.user.as_str(), params.dbname.as_str()), ("foo", "bar"));

    let machine = machine.set("PGDATABASE", "base");
    let params = machine.resolve_given(&given(&[])).unwrap();
    assert_eq!((params.user.as_str(), params.dbname.as_str()), ("bar", "base"));

    let params = Machine::new().resolve_given(&given(&[("U", "foo"), ("d", "")]));
    assert_eq!(params.unwrap().dbname, "foo");
}

#[test]
fn connection_string_beats_options_beat_variables_beat_defaults() {
    let machine = Machine::new().set("PGHOST", "from_variable").set("PGPORT", "1").set("PGAPPNAME", "named");
    let options = given(&[("h", "a"), ("U", "b"), ("d", "host=c user=d dbname=e")]);
    let params = machine.resolve_given(&options).unwrap();
    assert_eq!(places(&params), ["c 1"]);
    assert_eq!((params.user.as_str(), params.dbname.as_str()), ("d", "e"));
    assert_eq!(params.application_name.as_deref(), Some("named"));

    let plain = Machine::new().resolve_given(&given(&[("h", "a")])).unwrap();
    assert_eq!(places(&plain), ["a 5432"]);
    assert_eq!(plain.application_name.as_deref(), Some("pgbench"));
    assert_eq!(plain.tls.mode, SslMode::Prefer);
    assert_eq!(plain.connect_timeout, Ok(None));
}

#[test]
fn options_may_override_a_connection_string() {
    let string = "host=c user=d dbname=e sslmode=disable connect_timeout=9 password=in_string";
    let of = |options: &[(&str, &str)]| {
        let given = Given { options_win: true, ..given(options) };
        Machine::new().resolve_given(&given).unwrap()
    };
    let params =
        of(&[("h", "a"), ("p", "7"), ("U", "b"), ("password", "given"), ("sslmode", "require"), ("d", string)]);
    assert_eq!((places(&params), params.user.as_str(), params.dbname.as_str()), (vec!["a 7".to_owned()], "b", "e"));
    assert_eq!((password(&params), params.tls.mode), (Some("given"), SslMode::Require));
    assert_eq!(params.connect_timeout, Ok(Some(Duration::from_secs(9))));
    let params = of(&[("h", ""), ("U", ""), ("password", ""), ("d", string)]);
    assert_eq!((places(&params), params.user.as_str()), (vec!["c 5432".to_owned()], "d"));
    assert_eq!((password(&params), params.tls.mode), (Some("in_string"), SslMode::Disable));
    let params = of(&[("h", "a"), ("U", "b"), ("d", "postgresql://d:p@c:8/e?application_name=n")]);
    assert_eq!((places(&params), params.user.as_str(), params.dbname.as_str()), (vec!["a 8".to_owned()], "b", "e"));
    assert_eq!((password(&params), params.application_name.as_deref()), (Some("p"), Some("n")));
}

#[test]
fn a_password_and_an_sslmode_may_be_given_beside_a_connection_string() {
    let machine = Machine::new().set("PGPASSWORD", "from_variable").set("PGSSLMODE", "disable");
    let options = given(&[("password", "given"), ("sslmode", "require")]);
    let params = machine.resolve_given(&options).unwrap();
    assert_eq!((password(&params), params.tls.mode), (Some("given"), SslMode::Require));
    let options = given(&[("password", ""), ("d", "sslmode=allow"), ("sslmode", "require")]);
    let params = machine.resolve_given(&options).unwrap();
    assert_eq!((password(&params), params.tls.mode), (Some("from_variable"), SslMode::Allow));
}

#[test]
fn a_variable_may_hold_a_whole_uri_as_the_database() {
    let machine = Machine::new().set("PGDATABASE", "postgresql://u@h:7/d");
    let params = machine.resolve_given(&given(&[])).unwrap();
    assert_eq!(places(&params), ["h 7"]);
    assert_eq!((params.user.as_str(), params.dbname.as_str()), ("u", "d"));
}

#[test]
fn a_service_is_found_at_home_then_on_the_machine() {
    let machine = Machine::new()
        .set("PGUSER", "env")
        .write(".pg_service.conf", "[one]\nhost=h1\nuser=u1\n")
        .write("etc/pg_service.conf", "[one]\nhost=no\n[two]\nhost=h2\n");
    let params = machine.resolve("service=one").unwrap();
    assert_eq!((places(&params), params.user.as_str()), (vec!["h1 5432".to_owned()], "u1"));
    let params = machine.resolve("service=two").unwrap();
    assert_eq!((places(&params), params.user.as_str()), (vec!["h2 5432".to_owned()], "env"));

    let machine = machine.set("PGSERVICE", "two");
    assert_eq!(places(&machine.resolve("d").unwrap()), ["h2 5432"]);
    assert_eq!(places(&machine.resolve("host=mine").unwrap()), ["mine 5432"]);
    let missing = message(machine, "service=three");
    assert_eq!(missing, "definition of service \"three\" not found");
    let absent = message(Machine::new().set("PGSERVICEFILE", "/none"), "service=x");
    assert_eq!(absent, "service file \"/none\" not found");
}

#[test]
fn the_password_file_serves_each_host_its_password() {
    let machine = Machine::new().write(".pgpass", "h1:*:*:*:p1\nh2:7:d:u:p2\nlocalhost:*:*:*:local\n");
    let params = machine.resolve("host=h1,h2,h3 port=7 user=u dbname=d").unwrap();
    let passwords: Vec<_> =
        params.endpoints.iter().map(|endpoint| endpoint.password.as_ref().map(Password::reveal)).collect();
    assert_eq!(passwords, [Some("p1"), Some("p2"), None]);
    let file = params.endpoints[0].password.as_ref().unwrap().file.as_deref();
    assert_eq!(file, Some(Path::new(&machine.path(".pgpass"))));

    assert_eq!(password(&machine.resolve("d").unwrap()), Some("local"));
    let elsewhere = machine.resolve("host=/elsewhere").unwrap();
    assert_eq!(password(&elsewhere), None);
    let given = machine.resolve("host=h1 password=mine").unwrap();
    assert_eq!(password(&given), Some("mine"));
    let machine = machine.set("PGPASSWORD", "variable");
    assert_eq!(password(&machine.resolve("host=h1").unwrap()), Some("variable"));
}

#[test]
fn a_password_file_that_others_can_read_is_ignored_with_a_warning() {
    let machine = Machine::new().write("pass", "*:*:*:*:p\n");
    let file = machine.path("pass");
    let machine = machine.set("PGPASSFILE", &file);
    assert_eq!(password(&machine.resolve("d").unwrap()), Some("p"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let params = machine.resolve("host=a,b").unwrap();
    assert_eq!(password(&params), None);
    assert_eq!(
        params.warnings,
        [format!(
            "WARNING: password file \"{file}\" has group or world access; permissions should be u=rw (0600) or less"
        )]
    );
}

#[test]
fn passwords_are_hidden_when_parameters_are_shown() {
    let params = Machine::new().resolve("password=secret").unwrap();
    assert!(!format!("{params:?}").contains("secret"));
    let shown = params.endpoints[0].password.as_ref().unwrap().to_string();
    assert_eq!(shown, "***");
}

#[test]
fn the_default_host_is_the_directory_with_the_socket_of_that_port() {
    let machine = Machine::new().write("run/.s.PGSQL.1", "").write("tmp/.s.PGSQL.2", "");
    for (port, folder) in [("1", "run"), ("2", "tmp"), ("3", "run")] {
        let params = machine.resolve(&format!("port={port}")).unwrap();
        let socket = machine.path(&format!("{folder}/.s.PGSQL.{port}"));
        assert_eq!(places(&params), [socket]);
    }
    let params = machine.resolve("host=,x port=2").unwrap();
    assert_eq!(places(&params), [machine.path("tmp/.s.PGSQL.2"), "x 2".to_owned()]);
}

#[test]
fn hosts_ports_and_addresses_are_matched_as_lists() {
    let machine = Machine::new();
    let resolved = |text: &str| places(&machine.resolve(text).unwrap());
    assert_eq!(resolved("host=a,b,/s,@t port=1,,3,4"), ["a 1", "b 5432", "/s/.s.PGSQL.3", "@t/.s.PGSQL.4"]);
    assert_eq!(resolved("host=a,b port=6"), ["a 6", "b 6"]);
    assert_eq!(resolved("postgres://a:1,[::1]:2,c/"), ["a 1", "::1 2", "c 5432"]);
    assert_eq!(resolved("host=a,b hostaddr=127.0.0.1,::1"), ["127.0.0.1 5432", "::1 5432"]);
    let params = machine.resolve("host=name hostaddr=127.0.0.1").unwrap();
    assert_eq!(params.endpoints[0].host_name, "name");
    assert_eq!(resolved("host=h port=' 7654 '"), ["h 7654"]);
}

#[test]
fn single_settings_are_understood() {
    let machine = Machine::new()
        .set("PGTZ", "UTC")
        .set("PGGEQO", "Default")
        .set("PGCLIENTENCODING", "auto")
        .set("LANG", "C.UTF-8")
        .set("PGAPPNAME", "");
    let text = "host=h connect_timeout=5 keepalives_idle=-1 keepalives_count=3 tcp_user_timeout=1500 \
                options='-c geqo=off' target_session_attrs=prefer-standby load_balance_hosts=random \
                channel_binding=require replication=database";
    let params = machine.resolve(text).unwrap();
    assert_eq!(params.connect_timeout, Ok(Some(Duration::from_secs(5))));
    let tcp = TcpOptions { keepalives: true, idle: Some(0), interval: None, count: Some(3), user_timeout: Some(1500) };
    assert_eq!(params.tcp, Ok(tcp));
    let none = machine.resolve("host=h keepalives=0 keepalives_idle=x tcp_user_timeout=x").unwrap().tcp;
    assert_eq!(none, Ok(TcpOptions::default()));
    assert_eq!(params.options.as_deref(), Some("-c geqo=off"));
    assert_eq!(params.target_session_attrs, TargetSessionAttrs::PreferStandby);
    assert!(params.load_balance_random);
    assert_eq!(params.channel_binding, ChannelBinding::Require);
    assert_eq!(params.client_encoding.as_deref(), Some("UTF8"));
    assert_eq!(params.application_name, None);
    let settings = [("replication", "database"), ("timezone", "UTC")];
    assert_eq!(params.settings, settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn encryption_follows_its_parameters_and_their_defaults() {
    let machine = Machine::new().set("PGSSLMINPROTOCOLVERSION", "tlsv1.3");
    let tls = machine.resolve("sslmode=require sslnegotiation=direct sslsni=0 sslcertmode=disable");
    let tls = tls.unwrap().tls;
    assert_eq!(
        tls,
        TlsParams {
            mode: SslMode::Require,
            root_cert: Some(RootCert::File(machine.path(".postgresql/root.crt").into())),
            cert: Some(machine.path(".postgresql/postgresql.crt").into()),
            key: Some(machine.path(".postgresql/postgresql.key").into()),
            crl: Some(machine.path(".postgresql/root.crl").into()),
            key_passphrase: None,
            crl_dir: None,
            key_log: None,
            cert_mode: CertMode::Disable,
            sni: false,
            direct: true,
            min_version: TlsVersion::V1_3,
            max_version: TlsVersion::V1_3,
        }
    );
    let mode = |machine: Machine, text| machine.resolve(text).unwrap().tls.mode;
    assert_eq!(mode(Machine::new(), "sslrootcert=system"), SslMode::VerifyFull);
    assert_eq!(mode(Machine::new().set("PGREQUIRESSL", "1"), "d"), SslMode::Require);
    let both = Machine::new().set("PGREQUIRESSL", "1").set("PGSSLMODE", "disable");
    assert_eq!(mode(both, "d"), SslMode::Disable);
    let directory = Machine::new().resolve("sslcrldir=/c").unwrap().tls;
    assert_eq!((directory.crl, directory.crl_dir), (None, Some("/c".into())));
}

#[test]
fn wrong_values_are_refused_in_libpq_words() {
    let long = format!("host=/{}", "a".repeat(110));
    let too_long =
        format!("Unix-domain socket path \"/{}/.s.PGSQL.5432\" is too long (maximum 107 bytes)", "a".repeat(110));
    for (text, expected) in [
        ("host=h port=abc", "invalid integer value \"abc\" for connection option \"port\""),
        ("host=h port=70000", "invalid port number: \"70000\""),
        ("host=h port=0", "invalid port number: \"0\""),
        ("host=a,b,c port=1,2", "could not match 2 port numbers to 3 hosts"),
        ("host=a,b,c hostaddr=1,2", "could not match 3 host names to 2 hostaddr values"),
        ("hostaddr=1.2.x", "could not parse network address \"1.2.x\": Name or service not known"),
        ("sslmode=x", "invalid sslmode value: \"x\""),
        ("sslmode=''", "invalid sslmode value: \"\""),
        ("sslnegotiation=x", "invalid sslnegotiation value: \"x\""),
        (
            "sslnegotiation=direct",
            "weak sslmode \"prefer\" may not be used with sslnegotiation=direct (use \"require\", \"verify-ca\", or \"verify-full\")",
        ),
        (
            "sslrootcert=system sslmode=verify-ca",
            "weak sslmode \"verify-ca\" may not be used with sslrootcert=system (use \"verify-full\")",
        ),
        ("ssl_min_protocol_version=x", "invalid \"ssl_min_protocol_version\" value: \"x\""),
        ("ssl_max_protocol_version=TLSv1.1", "invalid SSL protocol version range"),
        ("sslcertmode=x", "invalid sslcertmode value: \"x\""),
        ("scram_server_key=''", "scram_server_key value \"***\" is not supported by this client"),
        ("scram_client_key=x", "scram_client_key value \"***\" is not supported by this client"),
        ("gssencmode=require", "gssencmode value \"require\" invalid when GSSAPI support is not compiled in"),
        ("min_protocol_version=3.1", "invalid min_protocol_version value: \"3.1\""),
        ("max_protocol_version=''", "invalid max_protocol_version value: \"\""),
        (
            "min_protocol_version=latest max_protocol_version=3.0",
            "\"min_protocol_version\" is greater than \"max_protocol_version\"",
        ),
        ("target_session_attrs=x", "invalid target_session_attrs value: \"x\""),
        ("load_balance_hosts=''", "invalid load_balance_hosts value: \"\""),
        ("channel_binding=''", "invalid channel_binding value: \"\""),
        ("keepalives=x", "invalid integer value \"x\" for connection option \"keepalives\""),
        (long.as_str(), too_long.as_str()),
    ] {
        assert_eq!(message(Machine::new(), text), expected, "for {text}");
    }
}

#[test]
fn the_protocol_is_3_0_unless_a_newer_one_is_asked_for() {
    let range = |text: &str| Machine::new().resolve(text).unwrap().protocol;
    assert_eq!(range("host=h"), 0..=0);
    assert_eq!(range("min_protocol_version=3.2"), 2..=2);
    assert_eq!(range("min_protocol_version=latest"), 2..=2);
    assert_eq!(range("max_protocol_version=latest"), 0..=2);
    assert_eq!(range("max_protocol_version=3.0"), 0..=0);
}

#[test]
fn one_bad_host_spoils_no_list() {
    for text in
        ["host=good,x port=5432,0", "host=good,x port=5432,abc", "hostaddr=127.0.0.1,nope", "host=/tmp keepalives=x"]
    {
        let params = Machine::new().resolve(text).unwrap();
        assert!(params.endpoints[0].address.is_ok(), "{text}");
        assert!(params.endpoints.get(1).is_none_or(|endpoint| endpoint.address.is_err()), "{text}");
    }
}
