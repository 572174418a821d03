//! Structs that kernels share with the host: `repr(C)` here, and in CUDA C++ by the same fields.
//!
//! What Rust made of one is compared where the kernels are compiled ([`Shared::assertions`]): a size or
//! a field's offset that differs there is an error of the compiler, on any machine.

use std::fmt::Write;
use std::mem::size_of;

/// A struct that has the same layout on the host and in kernels.
pub trait Shared: Sized {
    /// The struct's name in CUDA C++.
    const CUDA: &'static str;
    /// The struct's fields by their names in CUDA C++, and the byte at which each begins.
    const FIELDS: &'static [(&'static str, usize)];

    /// CUDA C++ that compiles behind the struct only if it has this size and these fields.
    fn assertions() -> String {
        let (name, size) = (Self::CUDA, size_of::<Self>());
        let mut text = format!("static_assert(sizeof({name}) == {size}, \"{name} is Rust's\");\n");
        for (field, offset) in Self::FIELDS {
            let place = format!("OFFSET_OF({name}, {field}) == {offset}");
            // Writing to a string does not fail.
            let _ =
                writeln!(text, "static_assert({place}, \"{name}::{field} is where Rust's is\");");
        }
        text
    }
}

/// Defines a struct that CUDA C++ has under the name behind `as`, with the same fields.
macro_rules! shared {
    (
        $(#[$doc:meta])*
        $vis:vis struct $name:ident as $cuda:literal {
            $($(#[$field_doc:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, bytemuck::Zeroable)]
        #[repr(C)]
        $vis struct $name {
            $($(#[$field_doc])* $field_vis $field: $type),*
        }

        impl $crate::Shared for $name {
            const CUDA: &'static str = $cuda;
            const FIELDS: &'static [(&'static str, usize)] =
                &[$((stringify!($field), std::mem::offset_of!($name, $field))),*];
        }
    };
}

pub(crate) use shared;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DevicePtr;

    shared! {
        struct Given as "Taken" {
            values: DevicePtr<u8>,
            count: u32,
        }
    }

    #[test]
    fn the_layout_is_told_to_the_compiler() {
        assert_eq!(
            Given::assertions(),
            "static_assert(sizeof(Taken) == 16, \"Taken is Rust's\");\n\
             static_assert(OFFSET_OF(Taken, values) == 0, \
             \"Taken::values is where Rust's is\");\n\
             static_assert(OFFSET_OF(Taken, count) == 8, \
             \"Taken::count is where Rust's is\");\n"
        );
    }
}
