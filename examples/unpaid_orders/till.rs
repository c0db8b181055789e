//! The till: it hears what customers do, answers, and says which orders were cancelled.

use std::{
    error::Error,
    fmt,
    io::BufRead,
    ops::ControlFlow,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use punctual::ScheduledThreadPoolExecutor;

use crate::{
    common,
    shop::{Report, Shop},
};

/// The time it takes to put the goods of an order back on the shelf.
const RESTOCKING: Duration = Duration::from_millis(100);

/// The customers' actions in the demonstration, and when, in milliseconds.
const DEMO: [(u64, &str); 13] = [
    (0, "order A1 0.8"),
    (0, "order A2 0.5"),
    (0, "order A3 0.5"),
    (0, "order A4 0.5"),
    (0, "order A5 0.5"),
    (0, "order A6 60"),
    (100, "order A7 1.4"),
    (200, "pay A1"),
    (300, "pay A1"),
    (400, "order A8 0.9"),
    (900, "pay A2"),
    (1000, "pay A6"),
    (1000, "pay A9"),
];

/// Plays the customers of the demonstration, on an executor.
pub(crate) fn demonstrate(till: &Arc<Till>) -> Result<(), Box<dyn Error + Send + Sync>> {
    common::say(format_args!("A demonstration; --help says how to type orders.\n"));
    let customers = ScheduledThreadPoolExecutor::new(1);
    for (millis, line) in DEMO {
        let till = Arc::clone(till);
        customers.schedule(Duration::from_millis(millis), move || till.hear(line))?;
    }
    Ok(customers.close()?)
}

/// The till, which reads the customers' actions and answers.
pub(crate) struct Till {
    begun: Instant,
    shop: Shop,
}

impl Till {
    pub(crate) fn open() -> Self {
        Self { begun: Instant::now(), shop: Shop::new() }
    }

    /// Closes the shop: its workers end when the last order has been cancelled.
    pub(crate) fn close(&self) {
        self.shop.close();
    }

    pub(crate) fn report(&self) -> Report {
        self.shop.report()
    }

    /// Executes the lines until they end or one is `quit`.
    pub(crate) fn serve(
        &self,
        input: &mut dyn BufRead,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        for (number, line) in (1..).zip(input.split(b'\n')) {
            match common::typed(&line?, number) {
                Ok(line) if self.hear(line).is_break() => {
                    self.shop.close();
                    self.shop.forget_unpaid();
                    break;
                }
                Ok(_) => {}
                Err(error) => self.say(format_args!("error: {error}")),
            }
        }
        Ok(())
    }

    fn hear(&self, line: &str) -> ControlFlow<()> {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [word, ..] if word.starts_with('#') => {}
            ["quit"] => return ControlFlow::Break(()),
            ["order", id, seconds] => match parse_seconds(seconds) {
                Err(error) => self.say(format_args!("error: {error}")),
                Ok(time_to_pay) => match self.shop.order(id, time_to_pay) {
                    Ok(()) => self.say(format_args!("{id} ordered, to be paid in {seconds}s")),
                    Err(refusal) => self.say(format_args!("{id} not ordered: {refusal}")),
                },
            },
            ["pay", id] => match self.shop.pay(id) {
                Ok(order) => {
                    let after = order.placed.elapsed();
                    self.say(format_args!("{id} paid, {after:.1?} after it was ordered"));
                }
                Err(refusal) => self.say(format_args!("{id} not paid: {refusal}")),
            },
            _ => self.say(format_args!(
                "error: {line:?} is none of: order ID SECONDS, pay ID, quit",
                line = line.trim()
            )),
        }
        ControlFlow::Continue(())
    }

    /// Cancels orders, on a worker.
    pub(crate) fn cancel_overdue(&self, worker: u32) {
        for order in self.shop.overdue() {
            let (id, after) = (order.id, order.placed.elapsed());
            self.say(format_args!("{id} cancelled by worker {worker}, unpaid after {after:.1?}"));
            thread::sleep(RESTOCKING);
        }
    }

    /// Writes a line with the time since the start.
    fn say(&self, line: fmt::Arguments<'_>) {
        common::say(format_args!("{:8.3}  {line}", self.begun.elapsed().as_secs_f64()));
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| format!("SECONDS is a number, and not {text:?}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{text} seconds: {error}"))
}
