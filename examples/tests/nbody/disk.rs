//! The blocks of `nbody` that are not in memory.

use examples::nbody::disk::{Miss, Reader};
use std::io;
use std::time::Duration;

#[test]
fn a_miss_is_a_time_or_a_file() {
    let ms = |ms| Ok(Miss::For(Duration::from_millis(ms)));
    assert_eq!("50ms".parse(), ms(50));
    assert_eq!("0.002s".parse(), ms(2));
    assert_eq!("1000us".parse(), ms(1));
    assert_eq!("file".parse(), Ok(Miss::File));
    for bad in ["", "50", "ms", "-1ms", "0ms", "11s", "NaNs", "disk"] {
        assert!(bad.parse::<Miss>().is_err(), "{bad}");
    }
}

#[test]
fn blocks_are_read_and_counted() {
    for miss in [Miss::File, Miss::For(Duration::from_micros(1))] {
        let reader = |reads| {
            let reader = Reader::new(miss, 3).expect("a file");
            (0..reads).for_each(|block| reader.read(block));
            assert_eq!(reader.reads(), reads as u64);
            reader.mean().expect("good reads")
        };
        assert_eq!((reader(0).is_some(), reader(3).is_some()), (false, true));
    }
}

#[cfg(unix)]
#[test]
fn a_block_that_is_not_there_is_told() {
    let reader = Reader::new(Miss::File, 1).expect("a file");
    reader.read(7);
    assert_eq!(reader.mean().expect_err("no block 7").kind(), io::ErrorKind::UnexpectedEof);
}
