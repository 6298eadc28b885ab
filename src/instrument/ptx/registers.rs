//! The registers that a kernel gets.

/// The most registers of a kernel that takes `plain` without counters, if its counters take `counters`.
///
/// Few counters get none, or what is left of the multiple of 8 that each thread gets: the compiler keeps those in
/// memory that it uses least. More would leave room for fewer blocks, so many counters get as many as they take, less
/// the part of a multiple. At most, blocks can have as many threads as before (CUDA C++ Programming Guide, "Compute
/// Capabilities": an SM has 65,536 registers).
///
/// A kernel that `takes_most` gets as many as it can have: ptxas rejects a limit below the registers of a function that it
/// calls, and these take counters, too.
pub(super) fn register_limit(plain: u32, counters: u32, takes_most: bool) -> u32 {
    /// With so many registers, an SM has all threads that it can have.
    const ALL_THREADS: u32 = 32;
    const FEW: u32 = 8;
    const THREADS: [u32; 8] = [1024, 896, 768, 640, 512, 448, 384, 320];
    const REGISTERS: u32 = 1 << 16;
    const MOST: u32 = 255;
    /// As many blocks of 256 threads fit with the number after each.
    const AS_ROOMY: [u32; 5] = [56, 72, 88, 104, 120];
    let as_roomy = |registers: u32| registers + 8 * u32::from(AS_ROOMY.contains(&registers));
    let wanted = match counters {
        _ if takes_most => MOST,
        0..=FEW => plain,
        _ => as_roomy((plain + counters) / 8 * 8),
    };
    let most = THREADS
        .into_iter()
        .map(|threads| REGISTERS / threads / 8 * 8);
    let most = most
        .into_iter()
        .find(|limit| *limit >= plain)
        .unwrap_or(MOST);
    wanted
        .max(plain.next_multiple_of(8))
        .max(ALL_THREADS)
        .min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_largest_size() {
        let few = [0, 32, 33, 64, 65, 81, 128, 129, 200, 255]
            .map(|registers| register_limit(registers, 8, false));
        assert_eq!(few, [32, 32, 40, 64, 72, 88, 128, 136, 200, 255]);
        let many =
            [0, 32, 64, 65, 81, 129, 255].map(|registers| register_limit(registers, 40, false));
        assert_eq!(many, [40, 64, 64, 72, 96, 144, 255]);
        // A few registers more leave room for fewer threads.
        let near = [register_limit(21, 12, false), register_limit(20, 20, false)];
        assert_eq!(near, [32, 40]);
        let calling = [0, 32, 64, 65, 255].map(|registers| register_limit(registers, 0, true));
        assert_eq!(calling, [64, 64, 64, 72, 255]);
    }
}
