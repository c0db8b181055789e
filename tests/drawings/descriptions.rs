//! What the pictures of boxes and arrows show. The names in boxes and in backticks are names from the sources that
//! each picture lists.

use crate::{
    diagram::{
        Arrow, Diagram,
        End::{At, Of},
        Node,
        Side::{Bottom, Left, Right, Top},
        node, says,
    },
    owner::OWNER_AND_HANDLES,
    svg::{Frame, Point},
};

pub(crate) const DIAGRAMS: [Diagram; 6] = [
    OWNER_AND_HANDLES,
    TASK_STATES,
    POOL_STATES,
    LEADER_DEPUTY_FOLLOWERS,
    PATH_OF_A_TASK,
    GATE_AND_LEASE,
];

/// A frame around other boxes.
const fn around(at: Point, size: Point) -> Node {
    node("", at, size, &[]).framed(Frame::Dashed)
}

/// A dot on a line.
const fn dot(x: f32, y: f32) -> Node {
    node("", (x - 6.0, y - 6.0), (12.0, 12.0), &[]).framed(Frame::Strong)
}

const TASK_STATES: Diagram = Diagram {
    file: "task-states",
    title: "The states of a task",
    description: "A task is submitted and is Scheduled. When a worker takes it, it is Running; after a run that is \
                  not the last it is Scheduled again. It can be Paused and resumed, and run once more meanwhile. From any of these three it can be \
                  Cancelled. From Running it becomes Completed or Failed.",
    sources: &["src/task/state.rs", "src/future/control.rs"],
    height: 416.0,
    boxes: &[
        around((12.0, 104.0), (348.0, 266.0)),
        node("Scheduled", (24.0, 150.0), (140.0, 64.0), &["waits to be due,", "or for a worker"]),
        node("Paused", (24.0, 270.0), (140.0, 64.0), &["waits to be", "resumed"]),
        node("Running", (244.0, 150.0), (104.0, 64.0), &["on a worker"]).framed(Frame::Strong),
        node(
            "Completed",
            (400.0, 56.0),
            (184.0, 72.0),
            &["the last run was fine,", "or the trigger ended"],
        ),
        node(
            "Failed",
            (400.0, 150.0),
            (184.0, 72.0),
            &["a panic, or an Err", "that ends the series"],
        ),
        node("Cancelled", (400.0, 318.0), (184.0, 64.0), &["for a reason that is", "told with it"]),
    ],
    arrows: &[
        Arrow {
            from: At(94.0, 62.0),
            via: &[],
            to: Of("Scheduled", Top, 0.0),
            says: &[says(104.0, 86.0, "submitted")],
            is_dashed: false,
        },
        Arrow {
            from: Of("Scheduled", Right, -14.0),
            via: &[],
            to: Of("Running", Left, -14.0),
            says: &[
                says(204.0, 144.0, "a worker").centred(),
                says(204.0, 160.0, "takes it").centred(),
            ],
            is_dashed: false,
        },
        Arrow {
            from: Of("Running", Left, 14.0),
            via: &[],
            to: Of("Scheduled", Right, 14.0),
            says: &[
                says(204.0, 214.0, "it is to").centred(),
                says(204.0, 230.0, "run again").centred(),
            ],
            is_dashed: false,
        },
        Arrow {
            from: Of("Scheduled", Bottom, -16.0),
            via: &[],
            to: Of("Paused", Top, -16.0),
            says: &[says(72.0, 247.0, "`pause`").ending()],
            is_dashed: false,
        },
        Arrow {
            from: Of("Paused", Top, 16.0),
            via: &[],
            to: Of("Scheduled", Bottom, 16.0),
            says: &[says(116.0, 247.0, "`resume`")],
            is_dashed: false,
        },
        Arrow {
            from: Of("Running", Top, 0.0),
            via: &[(296.0, 92.0)],
            to: Of("Completed", Left, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("Running", Right, 4.0),
            via: &[],
            to: Of("Failed", Left, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("Paused", Right, -10.0),
            via: &[(270.0, 292.0)],
            to: Of("Running", Bottom, -26.0),
            says: &[says(217.0, 284.0, "`run_now`").centred()],
            is_dashed: false,
        },
        Arrow {
            from: Of("Running", Bottom, 10.0),
            via: &[(306.0, 314.0)],
            to: Of("Paused", Right, 12.0),
            says: &[says(236.0, 331.0, "paused meanwhile").centred()],
            is_dashed: false,
        },
        Arrow {
            from: Of("", Right, 113.0),
            via: &[],
            to: Of("Cancelled", Left, 0.0),
            says: &[says(350.0, 358.0, "from each of these three").ending()],
            is_dashed: false,
        },
    ],
    remarks: &[says(20.0, 399.0, "A run that is under way goes on when its task is cancelled.")],
};

const POOL_STATES: Diagram = Diagram {
    file: "pool-states",
    title: "The states of an executor",
    description: "An executor is Running, then ShuttingDown, then Stopping, then Terminated. States may be left out, \
                  and there is no way back. shutdown_now leads to Stopping at once.",
    sources: &[
        "src/pool/statistics.rs",
        "src/pool/shutdown/lifecycle.rs",
        "src/executor/stopping.rs",
    ],
    height: 520.0,
    boxes: &[
        node("Running", (150.0, 60.0), (210.0, 52.0), &["tasks are admitted"]),
        node(
            "ShuttingDown",
            (150.0, 176.0),
            (210.0, 68.0),
            &["none is admitted; what", "the policies keep, runs"],
        ),
        node(
            "Stopping",
            (150.0, 308.0),
            (210.0, 68.0),
            &["waits for what runs, then", "calls the hook"],
        ),
        node("Terminated", (150.0, 428.0), (210.0, 52.0), &["everything has ended"]),
    ],
    arrows: &[
        Arrow {
            from: Of("Running", Bottom, 0.0),
            via: &[],
            to: Of("ShuttingDown", Top, 0.0),
            says: &[
                says(266.0, 138.0, "`shutdown, close`"),
                says(266.0, 156.0, "or the owner is dropped"),
            ],
            is_dashed: false,
        },
        Arrow {
            from: Of("ShuttingDown", Bottom, 0.0),
            via: &[],
            to: Of("Stopping", Top, 0.0),
            says: &[
                says(266.0, 270.0, "`shutdown_now`"),
                says(266.0, 288.0, "or nothing is left to be run"),
            ],
            is_dashed: false,
        },
        Arrow {
            from: Of("Stopping", Bottom, 0.0),
            via: &[],
            to: Of("Terminated", Top, 0.0),
            says: &[says(266.0, 406.0, "the hook has returned")],
            is_dashed: false,
        },
        Arrow {
            from: Of("Running", Left, 0.0),
            via: &[(126.0, 86.0), (126.0, 342.0)],
            to: Of("Stopping", Left, 0.0),
            says: &[says(120.0, 215.0, "`shutdown_now`").ending()],
            is_dashed: false,
        },
    ],
    remarks: &[
        says(384.0, 195.0, "its phases:"),
        says(384.0, 213.0, "`ShuttingDown`"),
        says(384.0, 231.0, "`OwnerDropped`"),
        says(384.0, 327.0, "its phases:"),
        says(384.0, 345.0, "`Stopping`"),
        says(384.0, 363.0, "`Tidying`"),
        says(20.0, 504.0, "States may be left out. There is no way back."),
    ],
};

const LEADER_DEPUTY_FOLLOWERS: Diagram = Diagram {
    file: "leader-deputy-followers",
    title: "Leader, deputy, followers",
    description: "Of the threads that wait, the leader sleeps until the first deadline in the queue, its deputy until \
                  the second, and the followers without a time limit. A thread whose moment has come, or that is \
                  notified, searches. A thread that searches takes an element, or waits again.",
    sources: &["src/queue/waiters.rs"],
    height: 494.0,
    boxes: &[
        around((12.0, 164.0), (576.0, 126.0)),
        dot(110.0, 106.0),
        dot(300.0, 106.0),
        dot(420.0, 106.0),
        dot(466.0, 106.0),
        dot(530.0, 106.0),
        node("leader", (24.0, 178.0), (176.0, 68.0), &["sleeps until the", "first deadline"])
            .framed(Frame::Strong),
        node("deputy", (212.0, 178.0), (176.0, 68.0), &["sleeps until the", "second deadline"])
            .framed(Frame::Strong),
        node("followers", (400.0, 178.0), (176.0, 68.0), &["sleep without a", "time limit"]),
        node("searching", (196.0, 356.0), (208.0, 52.0), &["awake, looks at the heads"]),
    ],
    arrows: &[
        Arrow {
            from: At(20.0, 118.0),
            via: &[],
            to: At(584.0, 118.0),
            says: &[says(584.0, 138.0, "deadlines in the queue").ending()],
            is_dashed: false,
        },
        Arrow {
            from: Of("leader", Top, -2.0),
            via: &[],
            to: At(110.0, 122.0),
            says: &[],
            is_dashed: true,
        },
        Arrow {
            from: Of("deputy", Top, 0.0),
            via: &[],
            to: At(300.0, 122.0),
            says: &[],
            is_dashed: true,
        },
        Arrow {
            from: Of("searching", Top, -60.0),
            via: &[],
            to: At(240.0, 290.0),
            says: &[says(232.0, 328.0, "`begin_wait`").ending()],
            is_dashed: false,
        },
        Arrow {
            from: At(360.0, 290.0),
            via: &[],
            to: Of("searching", Top, 60.0),
            says: &[says(368.0, 320.0, "its moment, or"), says(368.0, 338.0, "`notify`")],
            is_dashed: false,
        },
        Arrow {
            from: At(40.0, 382.0),
            via: &[],
            to: Of("searching", Left, 0.0),
            says: &[says(40.0, 372.0, "`begin_search`")],
            is_dashed: false,
        },
        Arrow {
            from: Of("searching", Right, 0.0),
            via: &[],
            to: At(572.0, 382.0),
            says: &[
                says(424.0, 372.0, "`end_search`"),
                says(424.0, 402.0, "with an element,"),
                says(424.0, 420.0, "or without"),
            ],
            is_dashed: false,
        },
    ],
    remarks: &[
        says(300.0, 276.0, "waiting").centred(),
        says(20.0, 456.0, "One deadline wakes one thread. A leader that leaves with its element"),
        says(20.0, 474.0, "wakes no thread: the deputy leads already."),
    ],
};

const PATH_OF_A_TASK: Diagram = Diagram {
    file: "path-of-a-task",
    title: "The path of a task",
    description: "The caller's thread works out the deadline and offers the task to the queue. A worker sleeps until \
                  the first deadline, takes the task, runs its closure with no lock held, and publishes the result \
                  to the future. A periodic task goes back to the queue. The future can cancel the task, which \
                  takes it out of the queue.",
    sources: &[
        "src/executor.rs",
        "src/executor/submitting.rs",
        "src/pool.rs",
        "src/pool/admission.rs",
        "src/queue/striped.rs",
        "src/queue/waiting.rs",
        "src/task.rs",
        "src/future.rs",
    ],
    height: 690.0,
    boxes: &[
        around((12.0, 56.0), (280.0, 616.0)),
        around((308.0, 56.0), (280.0, 616.0)),
        node("Handle::schedule", (28.0, 96.0), (248.0, 52.0), &["its deadline: now + delay"]),
        node(
            "Pool::offer",
            (28.0, 184.0),
            (248.0, 70.0),
            &["refuses it if there is no", "room, or after a shutdown"],
        ),
        node(
            "Search::begin_wait",
            (324.0, 184.0),
            (248.0, 70.0),
            &["sleeps until the first", "deadline, or is woken"],
        ),
        node(
            "DelayedWorkQueue",
            (28.0, 300.0),
            (544.0, 60.0),
            &["by deadline, and then in the order of submission"],
        )
        .framed(Frame::Strong),
        node("pop_first_due", (324.0, 412.0), (248.0, 52.0), &["never early"]),
        node("Task::run", (324.0, 500.0), (248.0, 52.0), &["the closure, with no lock held"]),
        node(
            "Task::finish",
            (324.0, 588.0),
            (248.0, 70.0),
            &["publishes the result, and", "wakes its waiters"],
        ),
        node("ScheduledFuture", (28.0, 588.0), (248.0, 70.0), &["to join, to await,", "to cancel"]),
    ],
    arrows: &[
        Arrow {
            from: Of("Handle::schedule", Bottom, 0.0),
            via: &[],
            to: Of("Pool::offer", Top, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("Pool::offer", Bottom, 0.0),
            via: &[],
            to: Of("DelayedWorkQueue", Top, -148.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("Search::begin_wait", Bottom, 0.0),
            via: &[],
            to: Of("DelayedWorkQueue", Top, 148.0),
            says: &[says(458.0, 282.0, "looks again")],
            is_dashed: false,
        },
        Arrow {
            from: Of("Pool::offer", Right, 0.0),
            via: &[],
            to: Of("Search::begin_wait", Left, 0.0),
            says: &[],
            is_dashed: true,
        },
        Arrow {
            from: Of("DelayedWorkQueue", Bottom, 148.0),
            via: &[],
            to: Of("pop_first_due", Top, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("pop_first_due", Bottom, 0.0),
            via: &[],
            to: Of("Task::run", Top, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("Task::run", Bottom, 0.0),
            via: &[],
            to: Of("Task::finish", Top, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("Task::finish", Left, 0.0),
            via: &[],
            to: Of("ScheduledFuture", Right, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("Task::run", Left, 0.0),
            via: &[(300.0, 526.0)],
            to: Of("DelayedWorkQueue", Bottom, 0.0),
            says: &[
                says(284.0, 426.0, "periodic:").ending(),
                says(284.0, 444.0, "`rearm`").ending(),
            ],
            is_dashed: false,
        },
        Arrow {
            from: Of("ScheduledFuture", Top, -60.0),
            via: &[],
            to: Of("DelayedWorkQueue", Bottom, -208.0),
            says: &[says(102.0, 506.0, "`cancel`"), says(102.0, 524.0, "takes it out")],
            is_dashed: true,
        },
    ],
    remarks: &[
        says(152.0, 82.0, "the caller's thread").centred(),
        says(448.0, 82.0, "a worker's thread").centred(),
    ],
};

const GATE_AND_LEASE: Diagram = Diagram {
    file: "gate-and-lease",
    title: "A gate, and the lease that it gives",
    description: "Before each run the gate is asked by enter. With Run the run takes place, and with Hold it takes \
                  place under a lease. With Skip it does not take place, and with Again the gate is asked once more \
                  later. After the answer the task is looked at again, its body runs, the lease is left, and then \
                  the outcome can be seen.",
    sources: &["src/gate.rs", "src/task/gated.rs", "src/task/job.rs", "src/task.rs"],
    height: 722.0,
    boxes: &[
        node(
            "RunGate::enter",
            (70.0, 60.0),
            (240.0, 70.0),
            &["asked on the worker, before", "each run; it may block"],
        )
        .framed(Frame::Strong),
        node(
            "Entry::Again",
            (368.0, 60.0),
            (216.0, 70.0),
            &["the same tick, later: it", "waits in the queue"],
        ),
        node(
            "Entry::Skip",
            (368.0, 172.0),
            (216.0, 88.0),
            &["no run, and no failure;", "a task that runs once", "ends as cancelled"],
        ),
        node(
            "Lease::watch",
            (70.0, 190.0),
            (240.0, 70.0),
            &["is given the token to raise", "when the lease is lost"],
        ),
        node(
            "look_again",
            (70.0, 310.0),
            (240.0, 70.0),
            &["has the task ended while", "the gate was asked?"],
        ),
        node(
            "RunEnd::NotRun",
            (368.0, 310.0),
            (216.0, 70.0),
            &["it has: the lease is left,", "and the body not called"],
        ),
        node("Job::run", (70.0, 430.0), (240.0, 52.0), &["the body"]),
        node(
            "Lease::leave",
            (70.0, 532.0),
            (240.0, 70.0),
            &["is told how the run ended,", "and when the next is due"],
        ),
        node("Task::finish", (70.0, 652.0), (240.0, 52.0), &["now others see the outcome"]),
    ],
    arrows: &[
        Arrow {
            from: Of("RunGate::enter", Right, 0.0),
            via: &[],
            to: Of("Entry::Again", Left, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("RunGate::enter", Right, 20.0),
            via: &[(338.0, 115.0), (338.0, 216.0)],
            to: Of("Entry::Skip", Left, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("RunGate::enter", Bottom, 0.0),
            via: &[],
            to: Of("Lease::watch", Top, 0.0),
            says: &[says(198.0, 164.0, "`Entry::Hold`")],
            is_dashed: false,
        },
        Arrow {
            from: Of("RunGate::enter", Left, 0.0),
            via: &[(36.0, 95.0), (36.0, 345.0)],
            to: Of("look_again", Left, 0.0),
            says: &[says(44.0, 164.0, "`Entry::Run`")],
            is_dashed: false,
        },
        Arrow {
            from: Of("Lease::watch", Bottom, 0.0),
            via: &[],
            to: Of("look_again", Top, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("look_again", Right, 0.0),
            via: &[],
            to: Of("RunEnd::NotRun", Left, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("look_again", Bottom, 0.0),
            via: &[],
            to: Of("Job::run", Top, 0.0),
            says: &[says(198.0, 410.0, "it has not")],
            is_dashed: false,
        },
        Arrow {
            from: Of("Job::run", Bottom, 0.0),
            via: &[],
            to: Of("Lease::leave", Top, 0.0),
            says: &[],
            is_dashed: false,
        },
        Arrow {
            from: Of("Lease::leave", Bottom, 0.0),
            via: &[],
            to: Of("Task::finish", Top, 0.0),
            says: &[],
            is_dashed: false,
        },
    ],
    remarks: &[],
};
