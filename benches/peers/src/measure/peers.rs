//! The implementation for each peer.

mod async_io;
mod delay_queue;
mod hhwt;
mod naive;
mod punctual;
mod scheduled_thread_pool;
mod timer;
mod tokio;

pub(super) use self::{
    async_io::AsyncIo, delay_queue::DelayQueue, hhwt::Hhwt, naive::Naive, punctual::Punctual,
    scheduled_thread_pool::ScheduledThreadPool, timer::Timer, tokio::Tokio,
};
