//! Blanked tables: LLVM's own drain finds nothing in them, and rocov's still finds everything.

use rocov::drain::Session;
use rocov::format::bounds_table::TABLE_SYMBOL;

use crate::support::fake_device::FakeDevice;
use crate::{FIRST, SECOND, VECADD, counts, loaded, merged, output, vecadd};

/// The device's bytes at the place of a table.
fn table(device: &FakeDevice, symbol: &str) -> Vec<u8> {
    let (address, size) = device.find(FIRST, symbol);
    device.peek(address, size as usize)
}

fn is_blank(table: &[u8]) -> bool {
    table.iter().all(|byte| *byte == 0)
}

#[test]
fn drains_find_what_blank_tables_have_held() {
    let unit = format!("{TABLE_SYMBOL}_c0ffee");
    for (symbol, has_elf) in [(TABLE_SYMBOL, true), (TABLE_SYMBOL, false), (&unit, true)] {
        let (directory, name) = output();
        let mut device = loaded();
        if symbol != TABLE_SYMBOL {
            device.rename_symbol(FIRST, TABLE_SYMBOL, symbol);
        }
        device.images_gone = !has_elf;
        let mut session = Session::default();
        session.loaded(&device, FIRST).unwrap();
        assert!(!is_blank(&table(&device, symbol)));
        let outcome = session.blank_tables(&device);
        assert!(outcome.losses.is_empty(), "{symbol}: {:?}", outcome.losses);
        assert!(is_blank(&table(&device, symbol)), "{symbol}");

        device.count(FIRST, VECADD, &[64, 60]);
        let reads = device.reads.borrow().len();
        session.blank_tables(&device);
        assert_eq!(device.reads.borrow().len(), reads, "it is done already");
        let outcome = session.drain(&device, &name);
        assert!(outcome.losses.is_empty(), "{symbol}: {:?}", outcome.losses);
        assert_eq!(
            counts(&merged(directory.path()), VECADD),
            [64, 60],
            "{symbol}"
        );

        // A reset also finds the counters.
        session.zero(&device).unwrap();
        assert_eq!(session.loads(), 1);
        assert!(
            device
                .counters()
                .iter()
                .all(|(address, size)| { is_blank(&device.peek(*address, *size as usize)) })
        );
    }
}

#[test]
fn a_table_that_cannot_be_read_stays_and_is_told() {
    let mut device = loaded();
    device.load(SECOND, 0, &vecadd());
    let mut session = Session::default();
    for executable in [FIRST, SECOND] {
        session.loaded(&device, executable).unwrap();
    }
    device.break_reads(SECOND);
    // At each drain, because the next copy may work.
    for _ in 0..2 {
        let losses = session.blank_tables(&device).losses;
        assert_eq!(losses.len(), 1, "{losses:?}");
        let said = losses[0].to_string();
        let reason = "LLVM's own drain for HIP may write its counts, too: hsa_memory_copy failed";
        assert!(said.contains(reason), "{said}");
    }
    assert!(is_blank(&table(&device, TABLE_SYMBOL)));
    let (address, size) = device.find(SECOND, TABLE_SYMBOL);
    assert!(!is_blank(&device.peek(address, size as usize)));
}
