//! A server on the loopback interface, for tests that observe a running process:
//! `server [hidden]`.
//!
//! It prints its port once one of its threads computes and all others sleep. Each line that a
//! client sends is a number, and the answer is its square. The line `interrupted` gets the number
//! of system calls that a signal interrupted. Three threads wait for a condition that never comes,
//! one thread computes, and one sleeps until a signal comes. With `hidden` other processes of the
//! user may not look into it. It ends with its standard input.

#[cfg(target_os = "linux")]
mod asleep;
#[cfg(target_os = "linux")]
#[path = "asleep/others.rs"]
mod others;

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, BufRead as _, BufReader, Read, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd as _, RawFd};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Condvar, Mutex};
    use std::thread;
    use std::time::Duration;

    use super::others::until_others_sleep;

    /// The number of system calls that a signal interrupted.
    static INTERRUPTED: AtomicU64 = AtomicU64::new(0);
    /// The steps of the computing thread.
    static STEPS: AtomicU64 = AtomicU64::new(0);
    /// The number of threads that wait for a condition. Each of them counts itself.
    static WAITING: Mutex<usize> = Mutex::new(0);
    /// The condition, which never comes.
    static NEVER: Condvar = Condvar::new();
    /// The number of threads that are to wait for the condition.
    const WAITERS: usize = 3;

    /// Reads from a socket, and counts the interruptions that the standard library hides.
    struct Counted(RawFd);

    impl Read for Counted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            // SAFETY: writes to the buffer.
            let read = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
            usize::try_from(read).map_err(|_| {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    INTERRUPTED.fetch_add(1, Ordering::Relaxed);
                }
                error
            })
        }
    }

    fn serve(mut client: TcpStream) -> io::Result<()> {
        for line in BufReader::new(Counted(client.as_raw_fd())).lines() {
            let line = line?;
            let answer = match line.parse::<u64>() {
                Ok(number) => number.wrapping_mul(number),
                Err(_) if line == "interrupted" => INTERRUPTED.load(Ordering::Relaxed),
                Err(error) => return Err(io::Error::other(error)),
            };
            writeln!(client, "{answer}")?;
        }
        Ok(())
    }

    fn named(name: &str, body: impl FnOnce() + Send + 'static) {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
        drop(thread.expect("there is room for a thread"));
    }

    pub(crate) fn main() {
        if std::env::args().nth(1).as_deref() == Some("hidden") {
            // SAFETY: takes a number.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        for _ in 0..WAITERS {
            named("waits", || {
                let mut waiting = WAITING.lock().unwrap();
                *waiting += 1;
                let _waiting = NEVER.wait_while(waiting, |_| true);
            });
        }
        named("computes", || {
            loop {
                STEPS.fetch_add(1, Ordering::Relaxed);
            }
        });
        named("pauses", || {
            loop {
                // SAFETY: sleeps until a handler of a signal has run.
                unsafe { libc::pause() };
                INTERRUPTED.fetch_add(1, Ordering::Relaxed);
            }
        });
        for worker in 0..2 {
            let listener = listener.try_clone().expect("there is a descriptor");
            named(&format!("worker-{worker}"), move || {
                // A client that goes away ends its connection only.
                listener.incoming().flatten().for_each(|client| drop(serve(client)));
            });
        }
        // A waiter that has counted itself gives the mutex back as a part of its wait.
        while *WAITING.lock().unwrap() < WAITERS || STEPS.load(Ordering::Relaxed) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        until_others_sleep("computes");
        println!("{}", listener.local_addr().expect("it is bound").port());
        let _ = io::stdin().read_to_end(&mut Vec::new());
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
