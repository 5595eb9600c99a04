//! Reads the files of `/proc/PID`. Nothing here writes, attaches or signals: each function opens a
//! file for reading and takes its text apart.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The bit of a kernel thread in the flags of `stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process, as its folder in `/proc` shows it.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) id: u32,
    /// Its folder.
    folder: PathBuf,
}

/// The content of `stat` that is used here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The name of the thread.
    pub(crate) name: String,
    /// The letter of its state, such as `S` for asleep.
    pub(crate) state: char,
    /// The time at which it began, in ticks since the computer did.
    pub(crate) began: u64,
    /// True if it is a thread of the kernel.
    pub(crate) of_kernel: bool,
}

/// The content of `schedstat`: times since the thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Time on a processor, in nanoseconds.
    pub(crate) running_ns: u64,
    /// Time ready to run without a processor, in nanoseconds.
    pub(crate) ready_ns: u64,
}

/// The content of `status` that is used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// The process of the thread.
    pub(crate) process: u32,
    /// Switches because the thread waited.
    pub(crate) voluntary: u64,
    /// Switches because another thread got the processor.
    pub(crate) involuntary: u64,
}

/// The content of `syscall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The thread runs, or is ready to.
    Running,
    /// The thread is blocked outside a system call, as in a page fault.
    Outside,
    /// The thread is blocked in a system call.
    Inside {
        /// The number of the call.
        number: i64,
        /// Its arguments.
        arguments: [u64; 6],
    },
}

impl Process {
    /// Names the process `id` below `root`, which is `/proc` outside tests.
    pub(crate) fn at(root: &Path, id: u32) -> Self {
        Self { id, folder: root.join(id.to_string()) }
    }

    /// Returns the numbers of its threads, the smallest first.
    pub(crate) fn threads(&self) -> io::Result<Vec<u32>> {
        let mut threads = Vec::new();
        for entry in fs::read_dir(self.folder.join("task"))? {
            threads.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        threads.sort_unstable();
        Ok(threads)
    }

    /// Reads a file of a thread. One that is not text is wrong in no way that matters here.
    pub(crate) fn read(&self, thread: u32, file: &str) -> io::Result<String> {
        let path = self.folder.join("task").join(thread.to_string()).join(file);
        let mut bytes = Vec::with_capacity(1024);
        File::open(path)?.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn stat(&self, thread: u32) -> io::Result<Stat> {
        stat(&self.read(thread, "stat")?).ok_or_else(|| unknown("stat"))
    }

    pub(crate) fn times(&self, thread: u32) -> io::Result<Times> {
        times(&self.read(thread, "schedstat")?).ok_or_else(|| unknown("schedstat"))
    }

    pub(crate) fn status(&self, thread: u32) -> io::Result<Status> {
        status(&self.read(thread, "status")?).ok_or_else(|| unknown("status"))
    }

    pub(crate) fn call(&self, thread: u32) -> io::Result<Call> {
        call(&self.read(thread, "syscall")?).ok_or_else(|| unknown("syscall"))
    }

    /// Returns the function of the kernel in which a thread sleeps, if the kernel says so.
    pub(crate) fn kernel_function(&self, thread: u32) -> Option<String> {
        let text = self.read(thread, "wchan").ok()?;
        let text = text.trim();
        let is_name = !text.is_empty() && text != "0" && text.chars().all(|c| !c.is_control());
        is_name.then(|| text.to_owned())
    }

    /// Returns the process's name, if there is a process of that number.
    pub(crate) fn name(&self) -> Option<String> {
        let name = fs::read(self.folder.join("comm")).ok()?;
        Some(printable(String::from_utf8_lossy(&name).trim_end()))
    }

    /// Returns the processes that it started and that have not been waited for, if the kernel tells
    /// them.
    pub(crate) fn children(&self) -> Vec<u32> {
        let threads = self.threads().unwrap_or_default();
        let lists = threads.iter().filter_map(|&thread| self.read(thread, "children").ok());
        lists.flat_map(|list| numbers(&list)).collect()
    }

    /// Returns the files that are mapped into it, as far as this command may see them.
    pub(crate) fn mapped_files(&self) -> BTreeSet<PathBuf> {
        let maps = fs::read(self.folder.join("maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        let path = |line: &str| line.find('/').map(|start| PathBuf::from(&line[start..]));
        maps.lines().filter_map(path).collect()
    }

    /// Returns the path of the descriptor that is this file, if there is one and this command may
    /// see it.
    pub(crate) fn descriptor(&self, file: &str) -> Option<PathBuf> {
        let descriptors = fs::read_dir(self.folder.join("fd")).ok()?;
        let mut paths = descriptors.flatten().map(|entry| entry.path());
        paths.find(|path| fs::read_link(path).is_ok_and(|link| link.as_os_str() == file))
    }

    /// Returns the process of a thread's number. A thread has a folder there as well, but is not
    /// listed.
    pub(crate) fn group(&self) -> Option<u32> {
        let text = fs::read(self.folder.join("status")).ok()?;
        status(&String::from_utf8_lossy(&text)).map(|status| status.process)
    }

    /// Returns false if the program is known to be of another kind than this command, such as one
    /// of 32 bits. Its system calls have other numbers.
    pub(crate) fn has_our_calls(&self) -> bool {
        let head = |path: &Path| {
            let mut head = [0; 20];
            File::open(path)?.read_exact(&mut head).map(|()| head)
        };
        match (head(&self.folder.join("exe")), head(Path::new("/proc/self/exe"))) {
            // The class, and the kind of processor.
            (Ok(its), Ok(ours)) => its[4] == ours[4] && its[18..] == ours[18..],
            _ => true,
        }
    }
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn unknown(file: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{file} has an unknown form"))
}

/// Returns a name without control characters.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Takes `stat` apart. The name is in parentheses, and may have parentheses and spaces in it.
fn stat(text: &str) -> Option<Stat> {
    let (before, after) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        name: printable(name),
        state: fields.first()?.chars().next()?,
        began: number(19)?,
        of_kernel: number(6)? & KERNEL_THREAD != 0,
    })
}

fn times(text: &str) -> Option<Times> {
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    Some(Times { running_ns: numbers.next()??, ready_ns: numbers.next()?? })
}

fn status(text: &str) -> Option<Status> {
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line?.trim().parse::<u64>().ok()
    };
    Some(Status {
        process: number("Tgid")?.try_into().ok()?,
        voluntary: number("voluntary_ctxt_switches").unwrap_or(0),
        involuntary: number("nonvoluntary_ctxt_switches").unwrap_or(0),
    })
}

fn call(text: &str) -> Option<Call> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Call::Running);
    }
    let number = first.parse::<i64>().ok()?;
    if number < 0 {
        return Some(Call::Outside);
    }
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(Call::Inside { number, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_fields_behind_it() {
        let text = "36 (a) R (b) S 1 36 36 0 -1 4194304 9 0 1 0 0 0 0 0 20 0 1 0 179330 29 4 1 2\n";
        let found = stat(text).unwrap();
        assert_eq!((found.name.as_str(), found.state), ("a) R (b", 'S'));
        assert_eq!((found.began, found.of_kernel), (179_330, false));
        let kernel = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 21 0 0";
        assert!(stat(kernel).unwrap().of_kernel);
        assert_eq!(stat("36 (cut"), None);
        assert_eq!(stat("36 (cut) S 1 2"), None);
    }

    #[test]
    fn calls_are_taken_apart() {
        assert_eq!(call("running\n"), Some(Call::Running));
        assert_eq!(call("-1 0x7ffc 0x7efe\n"), Some(Call::Outside));
        let inside = call("202 0x7f10 0x189 0x0 0x0 0x0 0xffffffff 0x7ffc 0x7efe\n");
        let arguments = [0x7f10, 0x189, 0, 0, 0, 0xFFFF_FFFF];
        assert_eq!(inside, Some(Call::Inside { number: 202, arguments }));
        for wrong in ["", "x", "202 0x7f10", "202 1 2 3 4 5 6"] {
            assert_eq!(call(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_and_switches_are_read() {
        let found = times("1267185 181823 4\n");
        assert_eq!(found, Some(Times { running_ns: 1_267_185, ready_ns: 181_823 }));
        assert_eq!(times("12"), None);
        let text =
            "Name:\tx\nTgid:\t7\nvoluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!(status(text), Some(Status { process: 7, voluntary: 4, involuntary: 5 }));
        assert_eq!(status("Name:\tx\n"), None);
    }
}
