//! The driver's user interface, written by hand: numbers and structs, no behaviour.
//!
//! Assertions compare the sizes with the public headers (`linux/kfd_ioctl.h`, `drm/amdgpu_drm.h`).
//! A runtime built with older or newer headers passes shorter or longer structs; `user.rs` handles
//! these.

pub(crate) mod drm;
pub(crate) mod kfd;
#[cfg(test)]
mod tests;

/// A struct of the driver's interface.
///
/// # Safety
/// The type must be `repr(C)`, valid for every bit pattern and free of padding.
pub(crate) unsafe trait Abi: Copy {}

/// A struct with an array after it.
pub(crate) trait Counted: Abi {
    /// The array's length.
    fn count(&self) -> u32;
}

/// Declares structs of the interface with their sizes in the public header.
macro_rules! abi_structs {
    ($($(#[$meta:meta])* $name:ident: $size:literal { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            #[allow(dead_code, reason = "a mirror names every field, used or not")]
            pub(crate) struct $name {
                $($(#[$field_meta])* pub(crate) $field: $type,)*
            }
            const _: () = assert!(size_of::<$name>() == $size);
            // SAFETY: integers and arrays of integers without gaps: the fields' sizes add up to the
            // struct's.
            unsafe impl $crate::abi::Abi for $name {}
            const _: () = assert!(0 $(+ size_of::<$type>())* == $size);
        )*
    };
}
pub(crate) use abi_structs;

// SAFETY: plain integers.
unsafe impl Abi for u32 {}
// SAFETY: plain integers.
unsafe impl Abi for u64 {}
