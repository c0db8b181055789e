//! The verdict on a goal: whether it is met.

use super::goals::{Bound, Goal, Yardstick};
use crate::{
    results::{Results, Spread},
    roster::{ROSTER, is_yardstick},
};

/// The outcome for a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) ours: Spread,
    /// The peer and the figure that ours is compared with. `None` for a fixed value.
    pub(super) theirs: Option<(&'static str, Spread)>,
    /// Ours divided by theirs; for a fixed value, ours.
    pub(super) reached: f64,
    pub(super) is_met: bool,
}

/// `None` if something was not measured.
pub(super) fn judge(results: &Results, ours: &str, goal: &Goal) -> Option<Verdict> {
    let spread = results.get(ours, &goal.figure)?;
    let theirs = match &goal.measured_by {
        Yardstick::BestPeer => Some(best(results, goal, is_yardstick)?),
        Yardstick::BestOf(names) => Some(best(results, goal, |name| names.contains(&name))?),
        Yardstick::One(peer, figure) => Some((*peer, results.get(peer, figure)?)),
        Yardstick::Unit => None,
    };
    let reached = match theirs {
        Some((_, theirs)) => ratio(spread, theirs)?,
        None => spread.median,
    };
    let is_met = match goal.bound {
        Bound::AtMost(bound) => reached <= bound,
        Bound::AtLeast(bound) => reached >= bound,
    };
    Some(Verdict { ours: spread, theirs, reached, is_met })
}

/// The peer with the best median, among those that count.
fn best(
    results: &Results,
    goal: &Goal,
    counts: impl Fn(&'static str) -> bool,
) -> Option<(&'static str, Spread)> {
    let peers = ROSTER.iter().filter(|peer| counts(peer.name));
    let measured =
        peers.filter_map(|peer| Some((peer.name, results.get(peer.name, &goal.figure)?)));
    let by_median = |a: &(&str, Spread), b: &(&str, Spread)| a.1.median.total_cmp(&b.1.median);
    match goal.bound {
        Bound::AtMost(_) => measured.min_by(by_median),
        Bound::AtLeast(_) => measured.max_by(by_median),
    }
}

/// The ratio of the medians. `None` where it would mean nothing.
pub(super) fn ratio(ours: Spread, theirs: Spread) -> Option<f64> {
    (ours.median > 0.0 && theirs.median > 0.0).then(|| ours.median / theirs.median)
}

#[cfg(test)]
mod tests {
    use super::{Spread, judge, ratio};
    use crate::{
        report::goals::{Bound, Goal, Yardstick},
        results::{Figure, tests::results},
    };

    fn figure() -> Figure {
        Figure::new("w1", "ns_per_op", &[("T", 1)])
    }

    fn goal(measured_by: Yardstick, bound: Bound) -> Goal {
        Goal { figure: figure(), measured_by, bound }
    }

    #[test]
    fn the_best_peer_is_the_one_with_the_best_median() {
        let figure = figure();
        let results = results(&[
            ("punctual", &figure, &[80.0, 90.0, 70.0]),
            ("go", &figure, &[10.0, 200.0, 210.0]),
            ("tokio", &figure, &[100.0, 101.0, 99.0]),
        ]);
        let verdict = |bound| judge(&results, "punctual", &goal(Yardstick::BestPeer, bound));
        let cost = verdict(Bound::AtMost(0.8)).unwrap();
        assert_eq!(cost.theirs.map(|(name, spread)| (name, spread.median)), Some(("tokio", 100.0)));
        assert_eq!((cost.reached, cost.is_met), (0.8, true));
        assert!(!verdict(Bound::AtMost(0.79)).unwrap().is_met);
        let gain = verdict(Bound::AtLeast(0.5)).unwrap();
        assert_eq!(gain.theirs.map(|(name, _)| name), Some("go"));
        assert_eq!((gain.reached, gain.is_met), (0.4, false));
    }

    #[test]
    fn who_does_less_is_no_yardstick() {
        let figure = figure();
        let results = results(&[
            ("punctual", &figure, &[80.0]),
            ("hhwt", &figure, &[1.0]),
            ("jdk17-stpe", &figure, &[1.0]),
            ("machine", &figure, &[1.0]),
            ("naive", &figure, &[160.0]),
        ]);
        let goal = goal(Yardstick::BestPeer, Bound::AtMost(1.0));
        let verdict = judge(&results, "punctual", &goal).unwrap();
        assert_eq!(verdict.theirs.map(|(name, _)| name), Some("naive"));
        assert_eq!(verdict.reached, 0.5);
    }

    #[test]
    fn among_named_peers_only_those_count() {
        let figure = figure();
        let results = results(&[
            ("punctual", &figure, &[80.0]),
            ("jdk25-fjp", &figure, &[50.0]),
            ("jdk17-stpe-roc", &figure, &[200.0]),
            ("jdk25-stpe-roc", &figure, &[100.0]),
        ]);
        let stpe = Yardstick::BestOf(&["jdk17-stpe-roc", "jdk25-stpe-roc"]);
        let verdict = judge(&results, "punctual", &goal(stpe, Bound::AtMost(0.8))).unwrap();
        assert_eq!(verdict.theirs.map(|(name, _)| name), Some("jdk25-stpe-roc"));
        assert!(verdict.is_met);
    }

    #[test]
    fn a_named_figure_and_a_fixed_value_are_yardsticks_too() {
        let (figure, other) = (figure(), Figure::new("limits", "wait_1ns_p50", &[]));
        let results = results(&[("punctual", &figure, &[60.0]), ("machine", &other, &[50.0])]);
        let judge = |goal| judge(&results, "punctual", &goal);
        let wait = judge(goal(Yardstick::One("machine", other), Bound::AtMost(1.2))).unwrap();
        assert_eq!((wait.reached, wait.is_met), (1.2, true));
        let fixed = judge(goal(Yardstick::Unit, Bound::AtMost(59.0))).unwrap();
        assert_eq!((fixed.reached, fixed.is_met, fixed.theirs), (60.0, false, None));
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let figure = figure();
        let alone = results(&[("punctual", &figure, &[60.0])]);
        let best = goal(Yardstick::BestPeer, Bound::AtMost(1.0));
        assert_eq!(judge(&alone, "punctual", &best), None);
        let absent = results(&[("go", &figure, &[60.0])]);
        assert_eq!(judge(&absent, "punctual", &best), None);
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        let spread = |value| Spread { min: value, median: value, max: value };
        assert_eq!(ratio(spread(3.0), spread(2.0)), Some(1.5));
        assert_eq!(ratio(spread(3.0), spread(0.0)), None);
        assert_eq!(ratio(spread(3.0), spread(-1.0)), None);
    }
}
