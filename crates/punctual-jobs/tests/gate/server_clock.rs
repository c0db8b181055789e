//! G7: the server's clock is set.

use std::{thread, time::Duration};

use punctual_jobs::gate::{Gate, is_stale_fencing_token};

use crate::{
    runner::{Plan, Run, runs},
    support::{block_on, opened, server::Server, times, wait_until},
};

const HOUR: i64 = 3600;
/// How far the server's clock is ahead, one after the other.
const STEPS: [i64; 5] = [0, HOUR, 0, -HOUR, 0];

/// G7
#[test]
fn a_server_whose_clock_is_set_has_one_live_fence_at_most() {
    let server = Server::start_with_clock();
    let (url, name) = (server.url(), "stepped".to_owned());
    // A tick is held when the clock is set.
    let plan = Plan { url, name, period: 500, lease: 1000, run: 400, more: String::new() };
    let mut replicas = plan.start_three([0; 3]);
    let gate = opened(|| Gate::postgres(server.url()).open());
    wait_until("the first tick is claimed", || {
        server.value("select count(*) from punctual.gate where name = 'stepped'") == "1"
    });
    for ahead in STEPS {
        server.set_clock(ahead);
        for _ in 0..8 * times(3) {
            thread::sleep(Duration::from_millis(50));
            let last: u64 = server
                .value("select fence from punctual.gate where name = 'stepped'")
                .parse()
                .unwrap();
            let passed = how_many_pass(&server, &gate, last);
            assert!(passed <= 1, "{passed} fences pass the guard");
        }
    }
    // A lease that was written an hour ahead is set right by the first that asks.
    let last = || {
        let fence = server.value("select fence from punctual.gate where name = 'stepped'");
        fence.parse::<u64>().unwrap()
    };
    let before = last();
    wait_until("ticks go on", || last() > before + 3);
    let said: Vec<_> = replicas.drain(..).flat_map(|replica| replica.end()).collect();
    let runs = runs(&said);
    // A lease that was held when the clock was set forward is over at once, and its tick is taken over. No
    // other tick is claimed twice.
    // Nor does one count whose holder has lost its lease, as it does when the machine stands still.
    let is_lost = |fence| said.iter().any(|it| it.word == "lost" && it.numbers[0] == fence);
    let is_again = |pair: &&[Run]| pair[0].tick == pair[1].tick && !is_lost(pair[0].fence);
    let again = runs.windows(2).filter(is_again).count();
    assert!(again <= STEPS.len(), "{again} ticks were claimed again: {runs:?}");
    assert!(runs.windows(2).all(|pair| pair[0].tick <= pair[1].tick), "in order: {runs:?}");
}

/// Returns how many of the fencing tokens around this one pass the guard, in transactions that are open at one time.
fn how_many_pass(server: &Server, gate: &Gate, fence: u64) -> usize {
    block_on(async {
        let mut passed = Vec::new();
        for fence in [fence - 1, fence, fence + 1] {
            let client = server.connect().await;
            client.batch_execute("begin").await.unwrap();
            match gate.guard(&client, "stepped", fence).await {
                Ok(()) => passed.push(client),
                Err(error) => assert!(is_stale_fencing_token(&error), "{error:?}"),
            }
        }
        passed.len()
    })
}
