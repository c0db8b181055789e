//! The settings of a group, before it is made.

use std::fmt;

use super::Group;
use crate::{ConfigError, Handle, sync::Arc};

/// Describes a [`Group`] before it is made; from [`Handle::group`]. Without further calls a group limits nothing, and is a
/// handle on its tasks.
#[derive(Clone)]
#[must_use = "no group is made until `build` is called"]
pub struct GroupBuilder<'a> {
    handle: &'a Handle,
    name: Arc<str>,
    limit: usize,
    reserved: usize,
}

impl<'a> GroupBuilder<'a> {
    pub(super) fn new(handle: &'a Handle, name: Arc<str>) -> Self {
        Self { handle, name, limit: usize::MAX, reserved: 0 }
    }

    /// Sets how many tasks of the group may run at once; with 1 they never overlap. The default is no limit.
    #[doc(alias("semaphore", "max_concurrency", "concurrency_limit", "buffer_unordered"))]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets how many workers stay free for other tasks: at most as many tasks of the group run at once as the core pool
    /// size leaves without these. One may always run, even if all workers are reserved. The default is zero. If the
    /// [core pool size](Handle::set_core_pool_size) is changed this counts from the new one.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(4);
    /// // Whatever the batch does, one worker is there for the others.
    /// let batch = executor.group("batch").reserve(1).build()?;
    /// assert_eq!((batch.reserved(), batch.limit()), (1, usize::MAX));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn reserve(mut self, workers: usize) -> Self {
        self.reserved = workers;
        self
    }

    /// Makes the group.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroLimit`] if the limit is zero.
    pub fn build(self) -> Result<Group, ConfigError> {
        if self.limit == 0 {
            return Err(ConfigError::ZeroLimit);
        }
        let state = self.handle.pool().new_group(self.name, self.limit, self.reserved);
        Ok(Group { handle: self.handle.clone(), state })
    }
}

impl fmt::Debug for GroupBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupBuilder")
            .field("name", &self.name)
            .field("limit", &self.limit)
            .field("reserved", &self.reserved)
            .finish_non_exhaustive()
    }
}
