use super::*;

fn crew(core: usize, core_timeout: bool) -> Crew {
    Crew::new(core, core_timeout, Duration::from_secs(1))
}

fn hire(crew: &Crew) -> usize {
    let turn = crew.turn(|_| true).expect("nobody else starts a worker");
    turn.hire().0
}

/// So many workers that have looked for a task.
fn workers(crew: &Crew, count: usize) -> Vec<usize> {
    let numbers: Vec<_> = (0..count).map(|_| hire(crew)).collect();
    for number in &numbers {
        crew.settle(*number);
        crew.has_looked(*number);
    }
    numbers
}

/// What a worker sees beside which so many are idle, if so many tasks wait.
fn seen(idle: usize, pending: usize) -> Outlook {
    Outlook { joined: 0, idle, pending }
}

/// Whether a worker that has been idle for long enough goes.
fn goes(crew: &Crew, number: usize, look: impl FnOnce() -> Outlook) -> bool {
    crew.may_go(number, true, look, || ()) == Answer::Gone(())
}

/// Whether one that is idle may go later.
fn may_go(crew: &Crew, look: impl FnOnce() -> Outlook) -> bool {
    crew.may_go(1, false, look, || unreachable!("it is not over yet")) == Answer::<()>::Later
}

/// How many there are, how many can be relied on, and how many there were at most.
fn heads(crew: &Crew) -> [usize; 3] {
    assert_eq!((crew.settled(), crew.live()), (crew.size(), crew.worker_stats().len()));
    let (counted, ()) = crew.count(|_| ());
    assert_eq!((counted.settled, counted.largest), (crew.size(), crew.largest()));
    [crew.live(), crew.size(), crew.largest()]
}

#[test]
fn a_worker_lives_from_the_attempt_and_is_relied_on_from_its_beginning() {
    let crew = crew(2, false);
    assert_eq!(heads(&crew), [0, 0, 0]);
    let numbers = [hire(&crew), hire(&crew), hire(&crew)];
    assert_eq!(heads(&crew), [3, 0, 0]);
    crew.settle(numbers[0]);
    crew.settle(numbers[1]);
    assert_eq!(heads(&crew), [3, 2, 2]);
    crew.settle(numbers[1]);
    crew.dismiss(numbers[2]);
    assert_eq!(heads(&crew), [2, 2, 2]);
    crew.dismiss(numbers[0]);
    assert_eq!(heads(&crew), [1, 1, 2]);
    crew.dismiss(numbers[0]);
    crew.settle(numbers[2]);
    assert_eq!(heads(&crew), [1, 1, 2], "who has gone is gone");
}

/// Those who are idle look again if there are too many now, or if one has stayed because all others
/// waited for tasks.
#[test]
fn who_settles_says_whether_that_makes_a_difference_to_others() {
    let differences = |core, core_timeout| {
        let crew = crew(core, core_timeout);
        [(); 4].map(|()| crew.settle(hire(&crew)))
    };
    assert_eq!(differences(2, false), [false, false, true, true]);
    assert_eq!(differences(3, false), [false, false, false, true]);
    assert_eq!(differences(3, true), [false, false, false, true]);
    assert!(!crew(0, false).settle(1), "nobody has hired it");

    let crew = crew(3, true);
    workers(&crew, 2);
    assert!(!may_go(&crew, || Outlook { joined: 1, idle: 0, pending: 0 }));
    assert!(crew.settle(hire(&crew)));
    assert!(!crew.staying().ends_beside_joins(), "they have been told");
}

/// Who is too many goes, whatever waits. One that the pool may have looks for work when it no
/// longer counts, so that a submission that saw it has put its task where it looks.
#[test]
fn who_is_surplus_may_go_and_the_last_only_if_there_is_no_work() {
    let crew = crew(1, false);
    let numbers = workers(&crew, 2);
    assert!(crew.is_elastic());
    assert!(goes(&crew, numbers[0], || seen(0, 9)));
    assert_eq!(heads(&crew), [1, 1, 2]);
    assert!(!crew.is_elastic());
    assert!(!goes(&crew, numbers[1], || unreachable!("it is the core")));
    crew.set_core(0);
    let looks = |finds| {
        assert_eq!(crew.settled(), 0, "nobody relies on who may go");
        seen(0, finds)
    };
    assert!(!goes(&crew, numbers[1], || looks(1)));
    assert_eq!(heads(&crew), [1, 1, 2]);
    assert!(goes(&crew, numbers[1], || looks(0)));
    assert_eq!(heads(&crew), [0, 0, 2]);
}

/// For one task one worker stays idle, and for more two, however many are busy.
#[test]
fn who_may_time_out_leaves_a_leader_and_a_deputy() {
    let stays = |idle, pending| {
        let crew = crew(9, true);
        let numbers = workers(&crew, 5);
        let stays = !may_go(&crew, || seen(idle, pending));
        let has_gone = goes(&crew, numbers[0], || {
            assert_eq!(crew.settled(), 4);
            seen(idle, pending)
        });
        assert_eq!((stays, crew.size()), (!has_gone, if has_gone { 4 } else { 5 }));
        stays
    };
    assert_eq!([0, 1, 2, 9].map(|pending| stays(0, pending)), [false, true, true, true]);
    assert_eq!([0, 1, 2, 9].map(|pending| stays(1, pending)), [false, false, true, true]);
    assert_eq!([0, 1, 2, 9].map(|pending| stays(2, pending)), [false; 4]);
}

/// Who stays is told when there are fewer tasks than it stays for, once.
#[test]
fn who_stays_for_tasks_is_told_when_there_are_fewer() {
    let crew = crew(9, true);
    workers(&crew, 5);
    let is_told = |pending| crew.staying().ends_for_tasks(|least| pending >= least);
    assert!(!is_told(0), "nobody stays");
    assert!(!may_go(&crew, || seen(0, 5)));
    assert_eq!([5, 1, 0, 0].map(is_told), [false, false, true, false]);
    assert!(!may_go(&crew, || seen(1, 5)));
    assert!(!may_go(&crew, || seen(0, 5)));
    assert_eq!([2, 1, 0].map(is_told), [false, true, false]);
    assert!(!may_go(&crew, || {
        assert!(is_told(1), "as long as it looks it may stay for any reason");
        seen(0, 1)
    }));
    assert!(may_go(&crew, || seen(1, 1)));
    assert_eq!([1, 0].map(is_told), [false, true]);
}

/// A worker is started for tasks that are left if the pool may have one more, and nobody is coming.
#[test]
fn who_relieves_others_is_one_more_at_most() {
    let crew = crew(3, true);
    let may_start = |is_left| crew.turn_to_relieve(|| is_left).is_some();
    let numbers = workers(&crew, 2);
    assert_eq!([false, true].map(may_start), [false, true]);
    let turn = crew.turn(|_| true).expect("nobody else starts one");
    assert!(!may_start(true), "somebody starts one");
    let (new, _) = turn.hire();
    drop(turn);
    assert!(!may_start(true), "one is being started");
    crew.dismiss(numbers[0]);
    assert!(!may_start(true));
    crew.settle(new);
    assert!(!may_start(true), "one has not looked yet");
    crew.has_looked(new);
    assert!(may_start(true));
    crew.turn_back(new);
    crew.turn_back(new);
    assert!(!may_start(true), "one has turned back");
    crew.has_looked(new);
    crew.has_looked(new);
    assert!(may_start(true));
    crew.turn_back(new);
    crew.dismiss(new);
    assert!(may_start(true));
    workers(&crew, 2);
    assert!(!may_start(true), "there are as many as there may be");
}

/// Who waits for a task runs none meanwhile: one that does not wait has to stay.
#[test]
fn who_is_surplus_stays_if_all_others_wait_for_tasks() {
    let crew = crew(1, true);
    let numbers = workers(&crew, 3);
    let beside = |joined| move || Outlook { joined, idle: 0, pending: 0 };
    assert!(!goes(&crew, numbers[0], beside(2)));
    assert!(goes(&crew, numbers[0], beside(1)));
    assert!(!may_go(&crew, beside(1)));
    assert!(crew.staying().ends_beside_joins());
    assert!(!crew.staying().ends_beside_joins());
    assert!(!goes(&crew, numbers[1], beside(1)));
    assert!(goes(&crew, numbers[1], beside(0)));
}
