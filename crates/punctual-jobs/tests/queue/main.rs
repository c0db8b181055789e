//! One suite for both queues: each case is written once, and holds on either.
//!
//! The in-memory queue runs on the manual clock, so a case is exact there and takes no time. On PostgreSQL
//! the same case runs in real time and waits for the events that it expects. What is compared is what a
//! program can see: which handler was called with what, and in which order.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests have threads of their own, and fail by panicking"
)]

mod attempts;
mod batches;
mod cancelling;
mod history;
mod in_memory_only;
#[cfg(feature = "postgres")]
mod in_tables;
mod keys;
mod limit_keys;
mod limits;
mod looking;
mod names;
mod ordering;
mod outcomes;
mod pausing;
mod periodic;
mod priorities;
mod rescheduling;
mod results;
mod sending;
mod shutdown;
mod stopping;
#[cfg(feature = "postgres")]
#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "postgres")]
use support::patience;
#[cfg(not(feature = "postgres"))]
#[path = "../../../../tests/behaviour/support/patience.rs"]
mod patience;
mod unique;
mod windows;
mod world;

/// Makes each case a test of each world.
macro_rules! suite {
    ($($module:ident :: { $($case:ident),* $(,)? }),* $(,)?) => {
        mod on_the_in_memory_queue {
            $($(#[test] fn $case() { crate::$module::$case::<crate::world::InProcess>(); })*)*
        }

        #[cfg(feature = "postgres")]
        mod on_postgres {
            $($(#[test] fn $case() { crate::$module::$case::<crate::in_tables::InTables>(); })*)*
        }
    };
}

suite! {
    sending::{
        a_job_runs_once_and_has_its_payload,
        jobs_run_in_the_order_of_their_moments,
        a_job_runs_at_an_instant,
        a_job_runs_at_a_wall_time,
        a_moment_that_has_passed_means_now,
        a_delay_without_end_never_runs,
        ids_rise,
        a_payload_that_is_no_json_is_refused,
        a_payload_that_no_run_could_read_is_refused,
        payloads_arrive_as_they_were,
        numbers_arrive_to_the_last_digit,
        a_payload_of_nothing_arrives,
        a_handler_sends_another_job,
        the_verbs_can_be_awaited,
        a_run_knows_its_key,
        fences_rise_from_run_to_run,
        each_run_has_the_trace_context_of_its_sender,
    },
    batches::{
        a_batch_is_stored_in_its_order,
        each_job_of_a_batch_is_stored_as_one_would_be,
        of_several_jobs_with_one_key_the_last_one_counts,
        a_batch_beside_running_jobs_takes_their_keys,
        a_batch_with_a_job_that_is_refused_stores_none,
        an_empty_batch_stores_nothing,
    },
    attempts::{
        a_failed_attempt_is_tried_again,
        the_id_is_the_same_in_every_attempt,
        a_job_is_discarded_after_its_attempts,
        a_job_has_as_many_attempts_as_it_was_sent_with,
        a_kind_says_its_attempts_and_its_time_limit,
        a_panic_fails_the_attempt,
        a_kind_says_its_backoff,
        a_payload_that_cannot_be_decoded_fails_with_its_name,
        a_waiting_job_shows_its_last_error,
        a_time_limit_raises_the_token_and_fails_the_attempt,
        success_after_the_time_limit_is_a_failure,
    },
    names::{
        a_key_that_no_job_can_have_is_refused,
        an_ordering_key_that_no_job_can_have_is_refused,
        a_limit_key_that_no_job_can_have_is_refused,
        a_name_that_no_kind_can_have_is_refused,
    },
    outcomes::{
        a_job_that_is_discarded_is_not_tried_again,
        a_retry_of_a_job_that_was_discarded_is_one_attempt,
        an_attempt_that_is_snoozed_is_not_counted,
        a_job_that_is_snoozed_has_its_key,
        a_job_that_is_snoozed_lets_the_others_go_first,
        a_job_that_was_cancelled_is_gone_whatever_it_says,
        a_job_that_lost_its_key_is_gone_whatever_it_says,
        after_its_time_limit_a_job_can_be_discarded_and_not_snoozed,
        a_job_can_be_discarded_during_a_shutdown,
        a_job_can_be_snoozed_during_a_shutdown,
        what_an_error_says_has_no_meaning,
        an_error_with_a_nul_is_kept_without_it,
        a_panic_that_panics_when_it_is_dropped_ends_the_attempt,
    },
    keys::{
        a_waiting_job_is_replaced,
        a_list_is_replaced_and_not_joined,
        replacing_sets_another_moment,
        replacing_can_keep_the_moment,
        a_replaced_job_has_all_its_attempts,
        beside_a_running_job_its_key_makes_a_second_one,
        a_job_that_lost_its_key_is_not_tried_again,
        a_key_is_free_when_its_job_has_ended,
        a_key_is_free_when_its_job_was_discarded,
    },
    unique::{
        a_unique_job_is_skipped_while_one_waits,
        a_unique_job_is_skipped_whichever_way_the_key_came,
        a_unique_job_is_skipped_while_one_runs,
        a_unique_job_is_skipped_between_two_attempts,
        a_unique_job_is_skipped_while_one_waits_for_its_turn,
        a_unique_job_is_not_skipped_beside_one_that_was_cancelled,
        of_unique_jobs_at_once_one_is_stored,
    },
    cancelling::{
        a_cancelled_job_is_not_discarded,
        a_waiting_job_is_removed,
        a_running_job_is_signalled,
        a_signalled_job_is_not_tried_again,
        a_signalled_job_may_still_succeed,
        a_job_between_two_attempts_is_removed,
        an_unknown_key_is_unknown,
    },
    history::{
        each_attempt_is_in_the_history,
        a_run_that_has_not_ended_is_not_in_the_history,
        the_history_says_how_a_run_has_ended,
        the_history_is_filtered_and_paged,
        a_removed_job_leaves_its_history,
        each_end_is_counted_as_the_history_has_it,
        what_a_shutdown_gives_back_is_counted_as_released,
    },
    looking::{
        a_list_says_how_each_job_stands,
        a_list_has_the_payload_that_was_sent,
        a_list_says_what_a_due_job_waits_for,
        a_job_of_a_paused_kind_waits_for_a_limit_that_is_reached,
        a_list_is_filtered_and_paged,
        a_discarded_job_that_is_retried_has_one_more_attempt,
        a_waiting_job_that_is_retried_is_due,
        a_running_job_is_neither_retried_nor_removed,
        a_retry_does_not_take_a_key_from_another_job,
        a_waiting_job_that_is_discarded_does_not_run,
        a_running_job_that_is_discarded_is_asked_to_stop,
        a_running_job_that_is_discarded_may_still_succeed,
        a_job_that_was_discarded_does_not_snooze,
        jobs_that_do_not_run_are_removed,
        a_discarded_job_leaves_the_line,
        a_queue_that_was_shut_down_shows_nothing,
        counts_say_how_many_jobs_stand_where,
    },
    rescheduling::{
        a_job_can_run_earlier,
        a_job_can_run_later,
        a_job_can_be_moved_to_a_wall_time,
        a_running_job_is_not_moved,
        a_job_between_two_attempts_can_be_moved,
        an_unknown_key_cannot_be_moved,
    },
    ordering::{
        jobs_of_one_key_run_one_at_a_time,
        jobs_of_one_key_run_in_order,
        a_job_with_an_ordering_key_that_is_due_later_runs,
        ordering_keys_do_not_wait_for_each_other,
        a_failed_job_lets_the_others_go_first,
        a_cancelled_job_leaves_the_line,
        a_panic_gives_the_turn_back,
    },
    limits::{
        of_a_limited_kind_so_many_run_at_once,
        a_limit_of_one_excludes,
        a_slot_is_used_while_another_is_taken,
        a_kind_that_is_full_holds_up_no_other,
        the_next_of_a_limit_is_the_first_by_priority_and_moment,
        a_waiting_job_of_a_limit_can_be_cancelled_moved_and_replaced,
        a_job_that_is_cancelled_or_fails_gives_its_slot_back,
        a_job_between_two_attempts_has_no_slot,
        a_limit_and_an_ordering_key_hold_together,
        a_shutdown_releases_what_waits_for_a_slot,
    },
    limit_keys::{
        of_each_limit_key_so_many_run_at_once,
        a_limit_of_the_kind_and_one_of_each_key_hold_together,
        a_limit_key_that_is_full_holds_up_no_other,
        limit_keys_take_turns,
        a_priority_is_before_the_turn_of_a_limit_key,
        a_waiting_job_of_a_limit_key_can_be_changed,
        a_job_that_is_cancelled_or_fails_gives_its_key_slot_back,
        a_job_between_two_attempts_has_no_key_slot,
        a_limit_key_and_an_ordering_key_hold_together,
        a_kind_without_a_limit_takes_no_notice_of_limit_keys,
        a_shutdown_releases_what_waits_for_a_key_slot,
    },
    pausing::{
        jobs_of_a_paused_kind_wait_until_it_is_resumed,
        counts_and_lists_say_what_is_paused,
        a_pause_ends_at_its_moment,
        a_pause_takes_the_place_of_another,
        a_job_of_a_paused_kind_can_be_changed,
        a_paused_kind_with_a_limit_waits_and_keeps_its_limit,
        a_paused_job_keeps_its_turn_of_an_ordering_key,
        a_name_that_no_kind_can_have_is_not_paused,
    },
    results::{
        a_result_is_stored_and_awaited,
        a_job_without_a_result_is_not_awaited_for_ever,
        a_result_goes_when_its_time_is_over,
        a_job_that_is_awaited_in_vain_times_out,
    },
    windows::{
        of_a_window_so_many_begin_and_then_one_each_part_of_it,
        each_limit_key_has_a_window_of_its_own,
        a_window_of_the_kind_and_one_of_each_key_hold_together,
        a_window_and_a_limit_at_once_hold_together,
        each_attempt_takes_a_token,
        a_kind_without_tokens_holds_up_no_other,
        a_job_that_waits_for_a_token_can_be_changed,
        a_window_and_ordering_keys_hold_together,
        a_shutdown_releases_what_waits_for_a_token,
    },
    priorities::{
        jobs_that_are_due_begin_by_priority,
        a_high_priority_does_not_begin_before_its_moment,
        a_priority_by_the_wall_clock_counts,
        a_job_that_is_replaced_has_the_new_priority,
        a_job_keeps_its_priority_when_it_is_moved,
        each_attempt_has_the_priority,
    },
    periodic::{
        a_tick_makes_the_next_attempt_due,
        a_tick_that_finds_a_job_waiting_enqueues_none,
        each_tick_sends_a_job,
        runs_of_a_periodic_job_do_not_overlap,
        a_failed_tick_is_tried_again,
    },
    stopping::{
        a_cancel_is_a_reason_to_stop,
        a_shutdown_is_a_reason_to_stop,
        a_time_limit_is_a_reason_to_stop,
        the_first_reason_to_stop_stays,
        an_executor_that_stops_at_once_is_a_reason_to_stop,
        what_a_program_raises_itself_has_no_reason,
    },
    shutdown::{
        a_job_that_ends_in_time_has_run,
        a_job_that_gives_up_when_asked_is_released,
        a_job_that_does_not_end_is_still_running,
        a_queue_that_was_shut_down_takes_no_jobs,
        a_second_shutdown_finds_nothing,
        a_job_that_was_cancelled_is_not_released,
        a_job_that_was_discarded_is_not_released,
        the_history_says_why_a_job_was_released,
        a_job_that_lost_its_key_is_not_released,
        a_job_can_be_cancelled_during_a_shutdown,
        a_queue_that_was_shut_down_answers_nothing,
    },
}
