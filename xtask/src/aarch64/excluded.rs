//! The tests that the emulator cannot run, by name.

/// The tests of a crate that need what the emulator does not do.
pub(super) struct Excluded {
    /// The folder of the crate.
    pub(super) of: &'static str,
    /// The act that the emulator does not do.
    pub(super) why: &'static str,
    /// The tests, with their modules.
    pub(super) tests: &'static [&'static str],
}

/// Why the crates of the experiments are left out.
const EXPERIMENTS: &str = "its tests run the experiments, which take an hour under the emulator";

/// Crates of which nothing is run, and why.
pub(super) const LEFT_OUT: &[(&str, &str)] = &[
    ("cli", EXPERIMENTS),
    ("paper-all89", EXPERIMENTS),
    ("paper-fr92", EXPERIMENTS),
    ("paper-klmo91", EXPERIMENTS),
    ("paper-ms97", EXPERIMENTS),
    ("paper-sa92", EXPERIMENTS),
    ("regret", EXPERIMENTS),
    ("simulated-locks", EXPERIMENTS),
    ("study-locks", EXPERIMENTS),
    ("study-programs", EXPERIMENTS),
    ("preload", "its tests load a library into programs of this machine"),
];

pub(super) const EXCLUDED: &[Excluded] = &[
    Excluded {
        of: "machine",
        why: "a child that was forked beside other threads cannot start threads",
        tests: &["a_place_is_free_in_a_child_of_fork"],
    },
    Excluded {
        of: "multiprogramming",
        why: "a child that was forked beside other threads cannot start threads",
        tests: &["a_forked_child_is_under_no_scheduler_and_may_start_its_own"],
    },
    Excluded {
        of: "machine",
        why: "no filter of system calls can be installed (prctl: EINVAL)",
        tests: &[
            "a_filtered_call_is_named_and_the_cpu_clock_stands_in",
            "a_kernel_without_perf_events_is_named_and_the_cpu_clock_stands_in",
            "examined::a_thread_without_records_is_examined_through_its_life",
            "watch::a_refused_watch_sees_nothing_and_is_called_all_the_same",
        ],
    },
    Excluded {
        of: "machine",
        why: "there are no perf events, and the CPU clock cannot tell whether a forked child runs",
        tests: &[
            "a_forked_child_knows_nobody_and_may_start_afresh",
            "a_registration_inherited_by_a_child_does_not_end_the_childs_own",
        ],
    },
    Excluded {
        of: "machine",
        why: "a limit of the address space is ignored (setrlimit)",
        tests: &["slabs::no_address_space_is_an_error_that_names_the_limit"],
    },
    Excluded {
        of: "machine",
        why: "the mappings that it shows are not those that the kernel counts",
        tests: &["slabs::when_mappings_run_out_the_error_names_the_setting_and_nothing_is_lost"],
    },
    Excluded {
        of: "competitive",
        why: "a child that was forked beside other threads cannot start threads",
        tests: &[
            "a_child_stands_in_line_for_permits_without_its_parents_threads",
            "a_condition_variable_that_threads_of_the_parent_wait_on_works_in_a_child",
            "a_lock_that_readers_of_the_parent_sleep_on_works_in_a_child",
            "a_mutex_that_threads_of_the_parent_sleep_on_works_in_a_child",
            "an_event_count_that_threads_of_the_parent_sleep_on_works_in_a_child",
            "children_of_a_program_that_contends_all_the_time_work",
            "what_another_thread_does_once_is_not_done_in_a_child",
        ],
    },
    Excluded {
        of: "competitive",
        why: "a thread also sleeps in the emulator's own locks, which passes for its sleep in ours",
        tests: &["fair_mutex::a_sleeper_is_not_overtaken"],
    },
    Excluded {
        of: "threadpool",
        why: "a limit of the address space is ignored (setrlimit)",
        tests: &[
            "a_pool_that_cannot_grow_any_more_says_how_far_it_came",
            "a_pool_that_cannot_have_all_its_threads_has_none",
        ],
    },
    Excluded {
        of: "activations",
        why: "a child that was forked beside other threads hangs in the emulator",
        tests: &["forked_child_panics_instead_of_waiting_for_workers"],
    },
    Excluded {
        of: "activations",
        why: "a limit of the address space is ignored (setrlimit)",
        tests: &["stacks_leave_address_space_to_the_rest_of_the_program"],
    },
    Excluded {
        of: "gang",
        why: "a limit of the address space is ignored (setrlimit)",
        tests: &["a_gang_that_cannot_have_all_its_threads_has_none"],
    },
    Excluded {
        of: "activations",
        why: "the mappings that it shows are not those that the kernel counts",
        tests: &[
            "thread::stacks::tests::when_protected_guards_run_out_the_error_says_why_and_nothing_is_lost",
        ],
    },
    Excluded {
        of: "simulator",
        why: "a limit of the address space is ignored (setrlimit)",
        tests: &[
            "arena::tests::life::less_address_space_gives_fewer_slots",
            "arena::tests::life::too_little_address_space_is_an_error",
        ],
    },
    Excluded {
        of: "simulator",
        why: "the resident memory is the emulator's",
        tests: &["arena::tests::life::a_free_slot_has_no_memory_and_is_zero"],
    },
    Excluded {
        of: "simulator",
        why: "each runs tens of thousands of machines, and mapping memory is slow under the emulator",
        tests: &[
            "delays::a_bug_of_one_stop_is_found_with_one_delay_and_not_without",
            "delays::a_bug_of_two_stops_is_found_with_two_delays_and_with_no_fewer",
        ],
    },
];
