//! The features that `lock_api` has, passed through.

#[cfg(feature = "serde")]
mod serde {
    use stanchion_competitive::{FairMutex, Mutex, ReentrantMutex, RwLock};

    type Locks = (Mutex<Vec<u32>>, RwLock<String>, FairMutex<Option<u32>>, ReentrantMutex<u32>);

    #[test]
    fn a_lock_is_serialized_as_what_it_protects() {
        let written = serde_json::to_string(&(
            Mutex::new(vec![1, 2]),
            RwLock::new("three"),
            FairMutex::new(Some(4)),
            ReentrantMutex::new(5),
        ));
        let written = written.expect("numbers and texts");
        assert_eq!(written, r#"[[1,2],"three",4,5]"#);
        let read: Locks = serde_json::from_str(&written).expect("written above");
        assert_eq!(*read.0.lock(), [1, 2]);
        assert_eq!(*read.1.read(), "three");
        assert_eq!(*read.2.lock(), Some(4));
        assert_eq!(*read.3.lock(), 5);
    }
}

#[cfg(feature = "arc_lock")]
mod arc_lock {
    use std::sync::Arc;

    use stanchion_competitive::{
        ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
        ArcRwLockWriteGuard, Mutex, RawMutex, RawRwLock, RawThreadId, ReentrantMutex, RwLock,
    };

    #[test]
    fn guards_keep_their_lock_alive() {
        let mut guard: ArcMutexGuard<RawMutex, u32> = Arc::new(Mutex::new(1)).lock_arc();
        *guard += 1;
        assert_eq!(*guard, 2);
        let guard: ArcReentrantMutexGuard<RawMutex, RawThreadId, u32> =
            Arc::new(ReentrantMutex::new(3)).lock_arc();
        assert_eq!(*guard, 3);
        let lock = Arc::new(RwLock::new(4));
        let guard: ArcRwLockReadGuard<RawRwLock, u32> = lock.read_arc();
        assert_eq!(*guard, 4);
        drop(guard);
        let guard: ArcRwLockUpgradableReadGuard<RawRwLock, u32> = lock.upgradable_read_arc();
        let mut guard: ArcRwLockWriteGuard<RawRwLock, u32> =
            ArcRwLockUpgradableReadGuard::upgrade(guard);
        *guard = 5;
        drop(guard);
        assert_eq!(*lock.read(), 5);
    }
}
