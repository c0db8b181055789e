//! What a program declares of a schedule: its name, and the parameters of the statement that writes its row.

use crate::{OpenError, postgres::connection::Boxed};

pub(in crate::postgres) struct Declared {
    pub(in crate::postgres) name: String,
    pub(super) params: Vec<Boxed>,
}

impl Declared {
    pub(in crate::postgres) fn of(
        schedules: Vec<super::Schedule>,
        max_attempts: impl Fn(&str, u32) -> u32,
    ) -> Result<Vec<Self>, OpenError> {
        let declared = |schedule| {
            let definition = super::row::Definition::new(schedule, &max_attempts)
                .map_err(|error| OpenError::Refused(Box::new(error)))?;
            Ok(Self { name: definition.name.clone(), params: definition.declared() })
        };
        schedules.into_iter().map(declared).collect()
    }
}
