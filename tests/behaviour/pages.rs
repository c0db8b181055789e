//! The examples of the README and of each page of the book that has some are run as tests. Some pages need features, and
//! one sends itself a signal.

macro_rules! pages {
    ($($(#[$feature:meta])? $page:ident: $path:literal;)+) => {
        $($(#[$feature])? #[doc = include_str!($path)] struct $page;)+
    };
}

pages! {
    Readme: "../../README.md";
    FirstTask: "../../docs/book/first-task.md";
    Series: "../../docs/book/series.md";
    #[cfg(feature = "cron")]
    Calendar: "../../docs/book/calendar.md";
    Cancelling: "../../docs/book/cancelling.md";
    Timers: "../../docs/book/timers.md";
    Groups: "../../docs/book/groups.md";
    TestingTime: "../../docs/book/testing-time.md";
    #[cfg(all(feature = "histograms", feature = "metrics", feature = "serde"))]
    Observability: "../../docs/book/observability.md";
    Driven: "../../docs/book/driven.md";
    Precision: "../../docs/book/precision.md";
    ComingFromTokio: "../../docs/book/coming-from-tokio.md";
    #[cfg(feature = "cron")]
    CookbookTimers: "../../docs/book/cookbook/timers.md";
    CookbookRequests: "../../docs/book/cookbook/requests.md";
    CookbookLoad: "../../docs/book/cookbook/load.md";
    CookbookAsyncCode: "../../docs/book/cookbook/async-code.md";
    #[cfg(unix)]
    CookbookStopping: "../../docs/book/cookbook/stopping.md";
    #[cfg(feature = "metrics")]
    CookbookWatching: "../../docs/book/cookbook/watching.md";
    CookbookTesting: "../../docs/book/cookbook/testing.md";
    ComingFromJava: "../../docs/coming-from-java.md";
}
