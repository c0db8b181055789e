//! The shop, with input.

use super::{demonstrates, typed};
use crate::support::program::Program;

#[test]
fn the_shop_demonstrates_itself() {
    demonstrates("unpaid_orders", |end| {
        let is_cancelled = |order: &&str| end.has_line(&[order, "cancelled by worker"]);
        ["A3", "A4", "A5", "A7", "A8"].iter().all(is_cancelled)
            && end.has_line(&["A6 paid"])
            && end.has_line(&["A9 not paid: there is no such order"])
            && end.has_line(&["8 orders: ", " paid, ", " cancelled, 0 left unpaid"])
    });
}

/// An order is either paid or cancelled; at the end of its input the program waits for the unpaid
/// orders.
#[test]
fn the_shop_cancels_unpaid_orders() {
    let mut shop = Program::start_with_input("unpaid_orders", ["-"]);
    shop.type_in("order A 3600\norder A 1\npay A\npay A\npay B\n\n# and now one that is late\n");
    shop.read_until("A ordered, to be paid in 3600s");
    shop.read_until("A not ordered: there was an order with this number already");
    shop.read_until("A paid, ");
    shop.read_until("A not paid: it was paid already");
    shop.read_until("B not paid: there is no such order");
    shop.type_in("order C 0.01\n");
    shop.read_until("C cancelled by worker");
    shop.type_in("pay C\n");
    shop.read_until("C not paid: too late");
    shop.type_in("order D 0.01\norder E 0\n");
    let end = shop.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(end.has_line(&["D cancelled"]) && end.has_line(&["E cancelled"]), "{end:?}");
    let report = "4 orders: 1 paid, 3 cancelled, 0 left unpaid";
    assert_eq!(end.stdout.last().map(String::as_str), Some(report), "{end:?}");
}

#[test]
fn quitting_the_shop_waits_for_nothing() {
    let end = typed("unpaid_orders", "order A 3600\norder B 1e19\npay A\nquit\npay B\n");
    let report = "2 orders: 1 paid, 0 cancelled, 1 left unpaid";
    assert_eq!(end.stdout.last().map(String::as_str), Some(report), "{end:?}");
}

#[test]
fn the_shop_reports_a_broken_line_and_continues() {
    let lines = b"order A\npay\norder A soon\norder A 1e30\nsteal A\n\npay \xc3\xa9\xc3(\norder A 3600\npay A\n";
    let end = typed("unpaid_orders", lines);
    let expected = [
        "\"order A\" is none of: ",
        "\"pay\" is none of: ",
        "SECONDS is a number, and not \"soon\"",
        "1e30 seconds: ",
        "\"steal A\" is none of: ",
        "line 7, column 6: it is not text in UTF-8, because of the byte 0xc3: ",
        "A paid",
        "1 orders: 1 paid",
    ];
    assert!(end.has_lines(&expected), "{end:?}");
}
