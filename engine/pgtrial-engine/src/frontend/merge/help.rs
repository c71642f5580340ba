//! The text of `--help`.

/// What there is.
pub const TEXT: &str = "\
pgtrial-engine merge makes the events of one run from those of several machines.

Usage:
  pgtrial-engine merge [--machines=NAME,NAME...] FILE FILE...
  pgtrial-engine merge --machines=NAME,NAME...

Each machine ran its part of the load (--shard=I/N) and wrote events; what comes out on
standard output is what one engine with all clients would have written. Histograms and
counts add up exactly, and so do the moments; percentiles are of the sums.

With files, one of each machine, it reads them to their ends. Without, it reads lines of
standard input while the run goes on: the machine's number in the order of --machines, from
0, a tab, and an event. A line with nothing behind the tab says that the machine's events
are over.

  --machines=NAME,NAME...  names of the machines (default: of the files)

  -V, --version            output version information, then exit
  -?, --help               show this help, then exit

A machine whose events end before the run does is lost: that is told (event \"lost\"), and
the others go on. The exit status is the highest of the engines' own; 2 if a machine was
lost; 1 for what is refused, such as parts of different runs.
";
