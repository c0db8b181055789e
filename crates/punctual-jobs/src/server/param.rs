//! The parameters of statements. The type of a value says which type of the server it has.

use std::time::SystemTime;

use tokio_postgres::types::{ToSql, Type};

pub(crate) type Param<'a> = &'a dyn Typed;

pub(crate) trait Typed: ToSql + Sync {
    fn ty(&self) -> Type;
    fn value(&self) -> &(dyn ToSql + Sync);
}

/// A type that the server has, and the one of its arrays.
pub(crate) trait Known: ToSql + Sync {
    const TYPE: Type;
    const ARRAY: Type;
}

impl<T: Known> Typed for T {
    fn ty(&self) -> Type {
        T::TYPE
    }

    fn value(&self) -> &(dyn ToSql + Sync) {
        self
    }
}

macro_rules! known {
    ($($rust:ty => $one:ident, $many:ident;)*) => {
        $(impl Known for $rust {
            const TYPE: Type = Type::$one;
            const ARRAY: Type = Type::$many;
        })*
    };
}

known! {
    i16 => INT2, INT2_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i64 => INT8, INT8_ARRAY;
    f64 => FLOAT8, FLOAT8_ARRAY;
    bool => BOOL, BOOL_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    String => TEXT, TEXT_ARRAY;
    SystemTime => TIMESTAMPTZ, TIMESTAMPTZ_ARRAY;
}

#[cfg(feature = "postgres")]
known! {
    crate::job::payload::Payload => TEXT, TEXT_ARRAY;
    &crate::job::payload::Payload => TEXT, TEXT_ARRAY;
}

impl<T: Known> Known for Option<T> {
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;
}

impl<T: Known> Known for Vec<T> {
    const TYPE: Type = T::ARRAY;
    // The server's arrays have any number of dimensions.
    const ARRAY: Type = T::ARRAY;
}

/// Returns the parameters as the driver takes them.
pub(crate) fn typed<'a>(params: &[Param<'a>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params.iter().map(|param| (param.value(), param.ty())).collect()
}
