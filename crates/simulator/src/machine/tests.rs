use super::*;
use crate::{Time, machines};

fn refused(machine: &Machine) -> String {
    machine.check().unwrap_err().to_string()
}

fn with(change: impl FnOnce(&mut Machine)) -> Machine {
    let mut machine = machines::modern(4);
    change(&mut machine);
    machine
}

fn processor(cycle: Time, cycles_per_instruction: f64, compiler: Option<f64>) -> Processor {
    Processor { cycle, cycles_per_instruction, compiler }
}

fn directory(change: impl FnOnce(&mut Directory)) -> Machine {
    with(|machine| {
        let Memory::Directory(times) = &mut machine.memory else { unreachable!("modern has one") };
        change(times);
    })
}

fn membarrier(change: impl FnOnce(&mut Membarrier)) -> Machine {
    with(|machine| change(machine.membarrier.as_mut().expect("modern has one")))
}

#[test]
fn impossible_machines_are_refused_by_field() {
    let cases = [
        (
            with(|m| m.name = " ".into()),
            r#"machine " ": name is " ": reports must call it something"#,
        ),
        (with(|m| m.processors = 0), "processors is 0: give it 1 to 1024"),
        (with(|m| m.processors = 4_096), "processors is 4096: give it 1 to 1024"),
        (with(|m| m.scale = 0.0), "scale is 0: it must be a number above 0"),
        (with(|m| m.scale = f64::NAN), "scale is NaN: it must be a number above 0"),
        (with(|m| m.scale = f64::INFINITY), "scale is inf: it must be a number above 0"),
        (
            with(|m| m.processor.cycle = Time::ZERO),
            "processor.cycle is 0 ns: give it a time from 1 ps to 10 us",
        ),
        (
            with(|m| m.processor.cycle = Time::millis(1_000)),
            "processor.cycle is 1 s: give it a time from 1 ps to 10 us",
        ),
        (
            with(|m| m.processor.compiler = Some(0.0)),
            "processor.compiler is 0: give it a number from 0.01 to 100",
        ),
        (
            with(|m| m.processor.cycles_per_instruction = f64::NAN),
            "processor.cycles_per_instruction is NaN: give it a number from 0.01 to 100",
        ),
        (
            with(|m| m.processor = processor(Time::picos(1), 0.1, None)),
            "processor is 0 ns: its fields multiply to the time of an instruction",
        ),
        (
            with(|m| m.processor = processor(Time::micros(10), 100.0, Some(100.0))),
            "processor is 100 ms: its fields multiply to the time of an instruction",
        ),
        (with(|m| m.pause = Time::NEVER), "pause is never: give it at most 1 s"),
        (
            with(|m| m.scheduling.quantum = Time::ZERO),
            "scheduling.quantum is 0 ns: a thread must run",
        ),
        (
            with(|m| m.scheduling.park = Time::NEVER),
            "scheduling.park is never: give it at most 1 s",
        ),
        (
            with(|m| m.scheduling.applications = 0),
            "scheduling.applications is 0: give it 1, for this",
        ),
        (directory(|d| d.line = 0), "memory.directory.line is 0: give it a power of two"),
        (directory(|d| d.line = 48), "memory.directory.line is 48: give it a power of two"),
        (directory(|d| d.line = 8_192), "memory.directory.line is 8192: give it a power of two"),
        (
            directory(|d| d.sockets = 0),
            "memory.directory.sockets is 0: 4 processors must be divided",
        ),
        (
            directory(|d| d.sockets = 3),
            "memory.directory.sockets is 3: 4 processors must be divided",
        ),
        (
            directory(|d| d.hit = Time::ZERO),
            "memory.directory.hit is 0 ns: an access must take some time",
        ),
        (
            directory(|d| d.far = Time::nanos(1)),
            "memory.directory.far is 1 ns: it cannot be faster than `near`",
        ),
        (
            directory(|d| d.near = Time::picos(1)),
            "memory.directory.near is 1 ps: it cannot be faster than `hit`",
        ),
        (
            directory(|d| d.link_busy = Time::micros(9)),
            "memory.directory.link_busy is 9 us: it is a part of `far`",
        ),
        (
            directory(|d| d.exchange = Time::millis(2_000)),
            "memory.directory.exchange is 2 s: give it at most 1 s",
        ),
        (
            membarrier(|times| times.interrupt = Time::millis(20)),
            "membarrier.interrupt is 20 ms: give it at most 1 ms",
        ),
        (
            membarrier(|times| times.interrupt = Time::ZERO),
            "membarrier.interrupt is 0 ns: an interrupted processor must lose some time",
        ),
        (
            membarrier(|times| times.acknowledgement = Time::NEVER),
            "membarrier.acknowledgement is never: give it at most 1 ms",
        ),
    ];
    for (machine, expected) in cases {
        let said = refused(&machine);
        assert!(said.contains(expected), "{said:?} does not say {expected:?}");
    }
}

#[test]
fn impossible_times_of_each_memory_system_are_refused() {
    let mut machine = machines::symmetry_a(20);
    let Memory::WriteThrough(times) = &mut machine.memory else { unreachable!("symmetry-a") };
    times.exchange_bus = times.exchange + Time::nanos(1);
    assert!(
        refused(&machine)
            .contains("memory.write-through.exchange_bus is 2.801 us: it is a part of")
    );

    let mut machine = machines::symmetry_b(20);
    let Memory::WriteBack(times) = &mut machine.memory else { unreachable!("symmetry-b") };
    times.miss = Time::nanos(1);
    times.miss_bus = Time::ZERO;
    assert!(
        refused(&machine)
            .contains("memory.write-back.miss is 1 ns: it cannot be faster than `hit`")
    );

    let mut machine = machines::firefly();
    let Memory::Update(times) = &mut machine.memory else { unreachable!("firefly") };
    times.write_bus = times.write * 2;
    assert!(refused(&machine).contains("memory.update.write_bus is"));

    let mut machine = machines::makbilan();
    let Memory::Uncached(times) = &mut machine.memory else { unreachable!("makbilan") };
    times.module = times.local * 2;
    assert!(refused(&machine).contains("memory.uncached.module is"));
}

#[test]
fn impossible_jitter_is_refused() {
    let with = |change: fn(&mut Jitter)| {
        let mut machine = machines::firefly();
        change(&mut machine.jitter);
        refused(&machine)
    };
    assert!(
        with(|jitter| jitter.arbitration = Time::nanos(201))
            .contains("jitter.arbitration is 201 ns: give it at most 200 ns")
    );
    assert!(
        with(|jitter| jitter.refresh = jitter.refresh_period)
            .contains("jitter.refresh is 15.6 us: it must be shorter than `refresh_period`")
    );
    assert!(
        with(|jitter| jitter.tick = Time::millis(11))
            .contains("jitter.tick is 11 ms: it must be shorter than `tick_period`")
    );
    assert!(
        with(|jitter| jitter.tick_period = Time::NEVER)
            .contains("jitter.tick_period is never: give it at most 1 s")
    );
}

#[test]
fn every_machine_comes_back_from_json() {
    for name in machines::NAMES {
        let machine = machines::by_name(name).unwrap();
        assert_eq!(Machine::from_json(&machine.to_json()).unwrap(), machine);
    }
    let odd = with(|machine| machine.name = "\"quantum\": 7,\n  \"switch\": 8".into());
    assert_eq!(Machine::from_json(&odd.to_json()).unwrap(), odd);
}

#[test]
fn a_description_of_interrupts_is_refused_with_its_place() {
    let good = machines::modern(4).to_json();
    let negative = good.replace("\"interrupt\": \"216 ns\"", "\"interrupt\": \"-216 ns\"");
    assert_ne!(good, negative);
    let said = Machine::from_json(&negative).unwrap_err().to_string();
    assert!(said.contains(r#""-216 ns" is no time: write"#) && said.contains("line"), "{said}");

    let absurd = good.replace("\"interrupt\": \"216 ns\"", "\"interrupt\": \"216 ms\"");
    let said = Machine::from_json(&absurd).unwrap_err().to_string();
    assert_eq!(said, r#"machine "modern": membarrier.interrupt is 216 ms: give it at most 1 ms"#);

    let missing = good.replace("\"send\": \"940 ns\",", "");
    let said = Machine::from_json(&missing).unwrap_err().to_string();
    assert!(said.contains("missing field `send`"), "{said}");

    let begin = good.find(",\n  \"membarrier\"").expect("it is the last field");
    let without = format!("{}\n}}\n", &good[..begin]);
    let symmetric = Machine::from_json(&without).unwrap();
    assert_eq!(symmetric, machines::modern(4).symmetric_fences());
}

#[test]
fn json_that_is_no_description_is_refused_with_its_place() {
    let good = machines::firefly().to_json();
    let unknown = good.replace("\"hit\"", "\"hitt\"");
    let said = Machine::from_json(&unknown).unwrap_err().to_string();
    assert!(said.contains("unknown field `hitt`") && said.contains("line 12"), "{said}");

    let missing = good.replace("\"quantum\": \"100 ms\",", "");
    let said = Machine::from_json(&missing).unwrap_err().to_string();
    assert!(said.contains("missing field `quantum`") && said.contains("line"), "{said}");

    let begin = good.find("  \"processor\": {").expect("a machine has a processor");
    let end = begin + good[begin..].find("},\n").expect("it is an object") + "},\n".len();
    let without = [&good[..begin], &good[end..]].concat();
    let said = Machine::from_json(&without).unwrap_err().to_string();
    assert!(said.contains("missing field `processor`") && said.contains("line"), "{said}");

    let slip = good.replace("\"100 ms\"", "\"100 parsecs\"");
    let said = Machine::from_json(&slip).unwrap_err().to_string();
    assert!(said.contains(r#""100 parsecs" is no time: write"#) && said.contains("line"), "{said}");

    let kind = good.replace("\"update\"", "\"updating\"");
    let said = Machine::from_json(&kind).unwrap_err().to_string();
    assert!(said.contains("unknown variant `updating`, expected one of `write-through`"), "{said}");

    let impossible = good.replace("\"processors\": 6", "\"processors\": 0");
    let said = Machine::from_json(&impossible).unwrap_err().to_string();
    assert_eq!(said, "machine \"firefly\": processors is 0: give it 1 to 1024");
}
