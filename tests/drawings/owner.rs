//! The first picture of the book: one owner, its handles, the queue and the workers.

use crate::{
    diagram::{
        Arrow, Diagram,
        End::{At, Of},
        Node,
        Side::{Bottom, Left, Right, Top},
        node, says,
    },
    svg::{Frame, Point},
};

/// A box behind another one, of which there are several.
const fn behind(at: Point, size: Point) -> Node {
    node("", at, size, &[])
}

pub(crate) const OWNER_AND_HANDLES: Diagram = Diagram {
    file: "owner-and-handles",
    title: "Owner, handles, queue, workers",
    description: "The program has one owner, a ScheduledThreadPoolExecutor, and gets any number of handles from it. A \
                  call of schedule puts a closure into the queue and returns a future. When the closure is due, a \
                  worker takes it, runs it, and completes the future. Cancelling takes it out of the queue. To close \
                  or drop the owner stops the pool.",
    sources: &[
        "src/executor.rs",
        "src/executor/stopping.rs",
        "src/executor/submitting.rs",
        "src/future.rs",
        "src/pool/worker.rs",
        "src/queue/striped.rs",
    ],
    height: 490.0,
    boxes: &[
        behind((36.0, 225.0), (264.0, 70.0)),
        behind((28.0, 217.0), (264.0, 70.0)),
        behind((416.0, 376.0), (168.0, 70.0)),
        behind((408.0, 368.0), (168.0, 70.0)),
        node(
            "ScheduledThreadPoolExecutor",
            (20.0, 60.0),
            (280.0, 70.0),
            &["the owner: one value;", "dropping it stops the pool"],
        )
        .framed(Frame::Strong),
        node("Handle", (20.0, 209.0), (264.0, 70.0), &["cheap to clone;", "keeps nothing alive"]),
        node(
            "DelayedWorkQueue",
            (400.0, 200.0),
            (184.0, 88.0),
            &["pending closures,", "by deadline, then by", "submission"],
        ),
        node("Worker", (400.0, 360.0), (168.0, 70.0), &["a thread: runs one", "closure at a time"]),
        node(
            "ScheduledFuture",
            (20.0, 368.0),
            (280.0, 70.0),
            &["join it, await it,", "or cancel the task"],
        ),
    ],
    arrows: &[
        Arrow {
            from: Of("ScheduledThreadPoolExecutor", Bottom, 0.0),
            via: &[],
            to: Of("Handle", Top, 8.0),
            says: &[says(172.0, 175.0, "`handle`")],
            is_dashed: false,
        },
        Arrow {
            from: Of("ScheduledThreadPoolExecutor", Right, 0.0),
            via: &[(492.0, 95.0)],
            to: Of("DelayedWorkQueue", Top, 0.0),
            says: &[says(316.0, 86.0, "`close`"), says(316.0, 116.0, "or a drop")],
            is_dashed: true,
        },
        Arrow {
            from: At(300.0, 252.0),
            via: &[],
            to: Of("DelayedWorkQueue", Left, 8.0),
            says: &[says(348.0, 243.0, "`schedule`").centred()],
            is_dashed: false,
        },
        Arrow {
            from: At(100.0, 295.0),
            via: &[],
            to: Of("ScheduledFuture", Top, -60.0),
            says: &[says(110.0, 340.0, "returns")],
            is_dashed: false,
        },
        Arrow {
            from: Of("DelayedWorkQueue", Bottom, -8.0),
            via: &[],
            to: Of("Worker", Top, 0.0),
            says: &[says(494.0, 330.0, "when due")],
            is_dashed: false,
        },
        Arrow {
            from: Of("Worker", Left, 0.0),
            via: &[],
            to: Of("ScheduledFuture", Right, -8.0),
            says: &[says(350.0, 386.0, "the result").centred()],
            is_dashed: false,
        },
        Arrow {
            from: Of("ScheduledFuture", Top, 60.0),
            via: &[(220.0, 324.0), (440.0, 324.0)],
            to: Of("DelayedWorkQueue", Bottom, -52.0),
            says: &[says(232.0, 345.0, "`cancel`")],
            is_dashed: true,
        },
    ],
    remarks: &[says(
        20.0,
        472.0,
        "One owner, many handles and futures, and a fixed number of workers.",
    )],
};
