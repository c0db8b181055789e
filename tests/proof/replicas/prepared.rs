//! What a server says of a statement that is prepared, before it has any rows: its columns.

use std::{collections::BTreeMap, sync::LazyLock};

use super::wire::{Kind, Value};
use crate::postgres::{Schema, claiming, limiting, schedule_texts, statements};

use Kind::{Bool, Float8, Int4, Int8, Int8s, Text, Texts, Time};

/// The columns of each statement that the queue prepares.
const COLUMNS: [(&str, &[Kind]); 11] = [
    (statements::STORE, &[Int8, Text, Bool, Int4, Int8]),
    (claiming::CLAIM, &CLAIMED_FROM),
    (claiming::CLAIM_KEYED, &CLAIMED_FROM),
    (claiming::CLAIM_FIRST, &CLAIMED),
    (limiting::CLAIM_TURNS, &CLAIMED_BY_LIMIT),
    (limiting::CLAIM_FIRST_LIMITED, &CLAIMED_BY_LIMIT),
    (statements::MARK_DUE, &[Int8, Bool, Int8s]),
    (statements::NEXT, &[Int8, Int8]),
    (statements::TICK, &[Time, Bool, Bool, Float8, Float8, Int8]),
    (schedule_texts::SETTLE, &[Int8, Int8s, Int8]),
    (
        schedule_texts::DUE,
        &[
            Time, Text, Int8, Text, Text, Text, Text, Int8, Time, Time, Int8, Text, Int8, Text,
            Int4, Time, Time,
        ],
    ),
];

/// What each claim returns.
const CLAIMED: [Kind; 10] = [Int8, Int8, Text, Text, Int4, Int4, Text, Text, Time, Text];
const CLAIMED_FROM: [Kind; 12] =
    [Int8, Int8, Text, Text, Int4, Int4, Text, Text, Time, Text, Int8, Int8];
const CLAIMED_BY_LIMIT: [Kind; 21] = [
    Int8, Int8, Text, Text, Int4, Int4, Text, Text, Time, Text, Text, Int8, Int4, Int8, Int8,
    Int8s, Int8, Text, Texts, Bool, Texts,
];

/// The same, by the texts as they are sent.
static BY_TEXT: LazyLock<BTreeMap<String, &[Kind]>> = LazyLock::new(|| {
    let schema = Schema::default();
    COLUMNS.iter().map(|(template, columns)| (schema.name_in(template), *columns)).collect()
});

/// Returns the columns of a statement, as it is sent.
pub(super) fn columns(text: &str) -> &'static [Kind] {
    let Some(columns) = BY_TEXT.get(text) else {
        panic!("the simulated database does not know the columns of the statement {text}")
    };
    columns
}

/// Panics if rows are not what was said of their statement: the client would read something else.
pub(super) fn check(text: &str, rows: &[Vec<Value>]) {
    let said: Vec<_> = columns(text).iter().map(|column| column.oid()).collect();
    for row in rows {
        let are: Vec<_> = row.iter().map(Value::oid).collect();
        assert_eq!(are, said, "the columns of {text}");
    }
}
