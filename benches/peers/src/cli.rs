//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use lexopt::{Arg, Parser, ValueExt};

use crate::{
    plan::{Mode, STEPS, Step},
    roster::{Peer, ROSTER},
};

pub(crate) const USAGE: &str = "\
usage:
  punctual-peers full|quick [--rounds N] [--peers NAME,…] [--workloads NAME,…] [--out DIR]
      measures, stores the figures in DIR, and writes DIR/report.md
  punctual-peers report DIR
      writes DIR/report.md anew
  punctual-peers draw DIR OUTDIR
      draws pictures of what is in DIR
  punctual-peers measure PEER WORKLOAD [KEY=VALUE…]
      one measurement; prints its figures as lines of JSON
";

/// The command to execute.
#[derive(Debug)]
pub(crate) enum Command {
    Run(Run),
    Report { dir: PathBuf },
    Draw { dir: PathBuf, out: PathBuf },
    Measure { peer: String, workload: String, args: Vec<String> },
    Help,
}

/// A comparison.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) mode: Mode,
    pub(crate) rounds: u32,
    pub(crate) peers: Vec<Peer>,
    pub(crate) steps: Vec<Step>,
    pub(crate) out: PathBuf,
}

pub(crate) fn parse(mut parser: Parser) -> Result<Command> {
    let Some(Arg::Value(command)) = parser.next()? else { return Ok(Command::Help) };
    match command.string()?.as_str() {
        "full" => parse_run(Mode::Full, parser),
        "quick" => parse_run(Mode::Quick, parser),
        "report" => {
            let [dir] = values(parser)?;
            Ok(Command::Report { dir: dir.into() })
        }
        "draw" => {
            let [dir, out] = values(parser)?;
            Ok(Command::Draw { dir: dir.into(), out: out.into() })
        }
        "measure" => {
            let mut values = rest(parser)?.into_iter();
            let peer = values.next().context("measure needs a peer")?;
            let workload = values.next().context("measure needs a workload")?;
            Ok(Command::Measure { peer, workload, args: values.collect() })
        }
        "help" => Ok(Command::Help),
        other => bail!("no command is called {other}\n{USAGE}"),
    }
}

fn parse_run(mode: Mode, mut parser: Parser) -> Result<Command> {
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/results");
    let mut run = Run {
        mode,
        rounds: mode.rounds(),
        peers: ROSTER.to_vec(),
        steps: STEPS.to_vec(),
        out: PathBuf::from(results).join(mode.name()),
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("rounds") => run.rounds = parser.value()?.parse()?,
            Arg::Long("peers") => run.peers = peers(&parser.value()?.string()?)?,
            Arg::Long("workloads") => run.steps = steps(&parser.value()?.string()?)?,
            Arg::Long("out") => run.out = parser.value()?.into(),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Command::Run(run))
}

/// The peers are always in the order of the roster, whatever the order on the command line.
fn peers(wanted: &str) -> Result<Vec<Peer>> {
    let wanted: Vec<_> = wanted.split(',').collect();
    for name in &wanted {
        ensure!(ROSTER.iter().any(|peer| peer.name == *name), "no peer is called {name}");
    }
    Ok(ROSTER.into_iter().filter(|peer| wanted.contains(&peer.name)).collect())
}

fn steps(wanted: &str) -> Result<Vec<Step>> {
    let wanted: Vec<_> = wanted.split(',').collect();
    for name in &wanted {
        ensure!(STEPS.iter().any(|step| step.is_called(name)), "no workload is called {name}");
    }
    let is_wanted = |step: &Step| wanted.iter().any(|name| step.is_called(name));
    Ok(STEPS.into_iter().filter(is_wanted).collect())
}

fn values<const N: usize>(parser: Parser) -> Result<[String; N]> {
    rest(parser)?.try_into().map_err(|_| anyhow::anyhow!("{USAGE}"))
}

fn rest(mut parser: Parser) -> Result<Vec<String>> {
    let mut values = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Value(value) => values.push(value.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::{peers, steps};

    #[test]
    fn a_workload_stands_for_all_its_steps() {
        let names = |wanted| steps(wanted).unwrap().iter().map(|s| s.name).collect::<Vec<_>>();
        assert_eq!(names("w4,w8"), ["w4-idle", "w4-loaded", "w8", "w8-deep"]);
        assert_eq!(names("w3-zero"), ["w3-zero"]);
        assert_eq!(names("w9"), ["w9", "w9-mixed"]);
        assert_eq!(names("w10"), ["w10"]);
        assert_eq!(names("w11"), ["w11", "w11-extend", "w11-moved"]);
        assert_eq!(names("w12"), ["w12", "w12-deep"]);
        assert!(steps("w99").is_err());
    }

    #[test]
    fn peers_keep_the_order_of_the_roster() {
        let names: Vec<_> = peers("go,punctual").unwrap().iter().map(|peer| peer.name).collect();
        assert_eq!(names, ["punctual", "go"]);
        assert!(peers("gone").is_err());
    }
}
