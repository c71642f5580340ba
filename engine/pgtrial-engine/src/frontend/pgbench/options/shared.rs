//! Rows of options that pgbench and the tasks front end have in common: the server, pools of connections, and runs that
//! several engines share. Each front end has its own help text for them.

use super::fields::Options;
use super::pooling::{MAX_CONNECTIONS, MAX_TASKS, arrival, count, seconds};
use crate::event::Events;
use crate::frontend::pgbench::messages::Failure;
use crate::frontend::sharing;
use drive::plan::StartAt;
use ground::options::{OptionRow, set};

type Row<T, G> = OptionRow<T, Failure, G>;

pub const fn dbname<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::text("-d, --dbname=DBNAME", group, help, |o| &mut o.as_mut().server.dbname)
}

pub const fn host<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::text("-h, --host=HOSTNAME", group, help, |o| &mut o.as_mut().server.host)
}

pub const fn port<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::text("-p, --port=PORT", group, help, |o| &mut o.as_mut().server.port)
}

pub const fn username<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::text("-U, --username=USERNAME", group, help, |o| &mut o.as_mut().server.user)
}

pub const fn apps<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::value("--apps=NUM", group, help, |o, v| {
        set(&mut o.as_mut().pooling.apps, count(v, MAX_CONNECTIONS).map(|apps| apps as usize))
    })
}

pub const fn arrivals<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::value("--arrival=at-once|RATE|poisson:RATE", group, help, |o, v| {
        set(&mut o.as_mut().pooling.arrival, arrival(v.text))
    })
}

pub const fn pool<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::value("--pool=SIZE", group, help, |o, v| {
        set(&mut o.as_mut().pooling.size, count(v, MAX_CONNECTIONS).map(|size| size as usize))
    })
}

pub const fn pool_lifetime<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::value("--pool-lifetime=SECONDS", group, help, |o, v| set(&mut o.as_mut().pooling.lifetime, seconds(v)))
}

pub const fn pool_timeout<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::value("--pool-timeout=SECONDS", group, help, |o, v| set(&mut o.as_mut().pooling.timeout, seconds(v)))
}

pub const fn tasks<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::value("--tasks=NUM", group, help, |o, v| set(&mut o.as_mut().pooling.tasks, count(v, MAX_TASKS)))
}

pub const fn shard<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::value("--shard=I/N", group, help, |o, v| set(&mut o.as_mut().shard, sharing::shard(v.text)))
}

pub const fn start_at<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::value("--start-at=WHEN|-", group, help, |o, v| set(&mut o.as_mut().start, StartAt::read(v.text)))
}

pub const fn events<T: AsMut<Options>, G: Copy>(group: G, help: &'static str) -> Row<T, G> {
    Row::value("--events=FILE|-", group, help, |o, v| {
        o.as_mut().output.events = Some(Events::named(v.text));
        Ok(())
    })
}
