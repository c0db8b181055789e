//! The tests whose executors have threads although one worker would do, and why.

/// The beginnings of paths, each of a test or of a room, below which all tests count.
const WITH_THREADS: &[(&str, &[&str])] = &[
    (
        "it is about threads: when they are started, how many there are, what they are told",
        &[
            "clock::punctuality::workers_ask_for_the_slack_they_are_told",
            "observation::statistics::workers_are_started_when_they_are_needed",
            "observation::tracing_events::the_end_of_an_executor_is_told",
            "periodic::fixed_delay::a_delay_of_zero_is_refused",
            "periodic::fixed_rate::a_period_of_zero_is_refused",
            "rejection::around_a_shutdown::an_executor_that_ended_unused_refuses",
            "shutdown::many_drained::",
            "submission::limits::the_default_is_a_worker_for_each_core",
            "workers::",
        ],
    ),
    (
        "a limit is to expire while the only worker runs something, or waits, which takes a timer thread",
        &[
            "control::extensions::a_limit_that_has_moved_is_kept",
            "control::moments::a_time_limit_moves_with_the_task",
            "gates::endings::a_time_limit_expires_while_a_gate_is_asked",
            "periodic::told_of_the_end::a_late_panic_is_reported_beside_the_end",
            "periodic::told_of_the_end::a_task_that_its_time_limit_ends_is_reported",
            "reentrancy::waits_that_end::a_taker_waits_for_a_task_with_a_time_limit",
            "reentrancy::waits_that_end::the_last_worker_waits_for_a_task_with_a_time_limit",
            "rejection::bound::the_place_of_a_timed_out_task_is_released",
            "timeouts::one_shot::a_running_task_times_out_at_its_limit",
            "timeouts::one_shot::a_task_that_cannot_be_claimed_is_timed_out",
            "timeouts::one_shot::a_waiting_task_is_struck",
            "timeouts::periodic::a_run_over_budget_ends_a_task_that_stops",
            "timeouts::periodic::so_many_runs_over_budget_end_the_task",
            "timeouts::timer_thread::",
        ],
    ),
    (
        "a task owns the executor that runs it, which a driven one does not permit: it is not `Send`",
        &[
            "group_limits::executor_end::the_capture_of_a_",
            "panics::processes::a_worker_may_own_its_executor_in_a_thread_local",
            "reentrancy::calls_from_inside::a_task_cannot_close_its_own_executor_unless",
            "reentrancy::places::anything_can_be_done_to_an_executor_from_anywhere",
            "shutdown::termination::a_task_cannot_wait_for_the_end_of_its_own_executor",
            "shutdown::ways_to_stop::no_drop_waits_on_an_own_worker",
        ],
    ),
    (
        "`close_within` is a method of the owner with threads",
        &[
            "cancellation::tokens::a_close_can_be_called_off",
            "hooks::terminated::a_hook_for_the_end_that_panics_is_reported",
            "shutdown::termination::closing_is_cut_short_by_a_token",
        ],
    ),
    (
        "a drop that does not wait is to have cancelled what it cancels; that of the stand-in is another thread's",
        &[
            "cancellation::drops::closure_and_result_are_dropped_once_and_at_once",
            "load::backlog::very_many_tasks_can_be_dropped_on_a_small_stack",
            "timers::stopping::a_drop_of_the_executor_wakes_it",
        ],
    ),
    (
        "a body that does not return keeps the one thread that drives, so nothing else runs, and the owner is not dropped",
        &[
            "control::extensions::what_was_put_off_ends_with_its_executor",
            "rejection::policies::the_oldest_may_wait_for_its_group",
            "shutdown::processes::",
            "shutdown::shutdown_within::what_comes_after_a_shutdown_that_gave_up",
        ],
    ),
    ("it counts the threads that wait, and that of the stand-in waits", &["clock::auto_advance::"]),
];

/// Returns `true` if the calling thread is that of such a test. The test runner calls its threads by the
/// names of the tests. A test that runs itself again as a program is the one that is asked for.
pub fn is_with_threads() -> bool {
    let thread = std::thread::current();
    let asked_for = std::env::args().skip_while(|arg| arg != "--exact").nth(1);
    let names = [thread.name().map(str::to_owned), asked_for];
    let paths = || WITH_THREADS.iter().flat_map(|(_, paths)| *paths);
    names.iter().flatten().any(|name| paths().any(|path| name.starts_with(path)))
}
