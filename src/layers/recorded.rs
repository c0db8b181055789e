//! A task whose runs are recorded apart, and not in its worker's own recorder: it has a name, or is in a group.

use super::Order;
use crate::{
    histogram::Recorders,
    sync::Arc,
    task::{Call, Core, Layer, NotYet},
};

pub(crate) struct Recorded(pub(crate) Arc<Recorders>);

impl Layer for Recorded {
    fn place(&self) -> u8 {
        Order::Recorded as u8
    }

    fn before_run(&mut self, _: &mut Core<'_>, call: &mut Call<'_>) -> Result<(), NotYet> {
        call.run.record_in(&self.0);
        Ok(())
    }
}
