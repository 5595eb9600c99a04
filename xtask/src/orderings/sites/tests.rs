//! The scanner on source that has bitten, or looks as if it could.

use super::*;

fn found(source: &str) -> Vec<String> {
    sites(source).unwrap().iter().map(Site::to_string).collect()
}

#[test]
fn sites_are_named_by_type_function_operation_and_number() {
    let source = "
        use machine::atomic::Ordering;
        impl<W: Fn() -> u8> RawMutex for RawTicket<W> where W: Copy {
            fn lock(&self) {
                let mine = self.next.fetch_add(1, Ordering::Relaxed);
                wait_until(&self.serving, Ordering::Acquire, |now| now == mine, &mut policy);
            }
            unsafe fn unlock(&self) { self.serving.store(1, machine::atomic::Ordering::Release) }
        }
        fn free(word: &AtomicU32) -> u32 { word.swap(0, Ordering::AcqRel) }
    ";
    assert_eq!(
        found(source),
        [
            "RawTicket::lock wait_until#1 Acquire",
            "RawTicket::unlock store#1 Release",
            "free swap#1 AcqRel",
        ]
    );
}

#[test]
fn both_orderings_of_a_compare_exchange_have_their_own_role() {
    let source = "fn f() {
        w.compare_exchange_weak(a, g(b, c), Ordering::AcqRel, Ordering::Acquire);
        w.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |a, b| x);
    }";
    let roles: Vec<_> = sites(source).unwrap().iter().map(|site| site.role).collect();
    assert_eq!(roles, [Role::ReadModifyWrite, Role::Load, Role::ReadModifyWrite, Role::Load]);
}

#[test]
fn bare_names_count_only_where_they_are_imported() {
    let imported =
        "use a::{b, Ordering::{self, Acquire, Relaxed}}; fn f() { x.load(Acquire); y(Release) }";
    assert_eq!(found(imported), ["f load#1 Acquire"]);
    assert_eq!(found("use a::Ordering::*; fn f() { x.load(SeqCst) }"), ["f load#1 SeqCst"]);
    assert!(found("use a::Ordering; fn f() { x.load(Acquire) }").is_empty());
    assert!(found("use Ordering::Acquire; struct Release; fn f() { Event::Acquire }").is_empty());
}

#[test]
fn what_a_type_captures_is_no_import() {
    let source = "fn f() -> impl Fn() + use<> { x.load(Ordering::Acquire); || () }
        fn g<T>() -> impl Fn() + use<T> { x.store(1, Ordering::Release); || () }";
    assert_eq!(found(source), ["f load#1 Acquire", "g store#1 Release"]);
}

#[test]
fn comments_examples_strings_and_tests_are_no_sites() {
    let source = r#"
        //! `x.load(Ordering::Acquire)`
        /// ```
        /// x.load(Ordering::Acquire);
        /// ```
        fn f() { let s = "Ordering::Acquire"; /* Ordering::Release */ }
        #[cfg(test)]
        use a::{b, c};
        #[cfg(all(test, not(stanchion_loom)))]
        #[allow(dead_code)]
        mod tests { fn g() { x.load(Ordering::Acquire) } }
        #[cfg(test)]
        fn h() -> [u8; 2] { x.load(Ordering::Acquire) }
        #[cfg(not(test))]
        fn i() { x.load(Ordering::Acquire) }
        #[cfg(any(test, feature = "std"))]
        fn j() { x.load(Ordering::Acquire) }
        fn k() { #[cfg(test)] { x.store(1, Ordering::Release) } x.store(1, Ordering::Release) }
    "#;
    assert_eq!(found(source), ["i load#1 Acquire", "j load#1 Acquire", "k store#1 Release"]);
}

#[test]
fn patterns_and_comparisons_ask_for_nothing() {
    let source = "fn f(order: Ordering) -> bool {
        match order { Ordering::Acquire | Ordering::AcqRel => 1, Ordering::Release if x => 2, _ => 3 };
        if let Ordering::SeqCst = order {}
        matches!(order, Ordering::Acquire) && order == Ordering::Release && order != Ordering::SeqCst
    }";
    assert!(found(source).is_empty(), "{:?}", found(source));
}

#[test]
fn an_ordering_in_an_expression_is_found_wherever_it_stands() {
    let source = "fn f() {
        let order = if x { Ordering::Acquire } else { Ordering::Relaxed };
        assert_eq!(x.load(Ordering::Acquire), 1);
        self.step(Ordering::Release).load(other);
        turn::<_, fn() -> Vec<W>>(&self.word, Ordering::Acquire, |now| now);
    }";
    assert_eq!(
        found(source),
        ["f value#1 Acquire", "f load#2 Acquire", "f step#3 Release", "f turn#4 Acquire"]
    );
}

#[test]
fn a_fence_is_the_whole_call() {
    let source = "fn f() { machine::atomic::fence(Ordering::SeqCst); }";
    let site = &sites(source).unwrap()[0];
    assert_eq!(&source[site.place.clone()], "machine::atomic::fence(Ordering::SeqCst)");
    assert_eq!(&source[site.value.clone()], "Ordering::SeqCst");
    assert_eq!(site.weaker(), ["AcqRel", "Acquire", "Release", "Removed"]);
}

#[test]
fn a_fence_of_a_handshake_is_a_site_with_a_number_of_its_own() {
    let source = "impl Forks { fn pop(&self) {
        self.bottom.store(at, Ordering::Release);
        super::STEAL.light();
        if slow { STEAL.light_while_free(); }
        self.top.load(Ordering::Acquire);
        Self::STEAL . heavy();
        IDLE_2.fence();
        self.top.load(Ordering::Acquire);
    } }";
    assert_eq!(
        found(source),
        [
            "Forks::pop store#1 Release",
            "Forks::pop STEAL.light#1 handshake",
            "Forks::pop STEAL.light_while_free#2 handshake",
            "Forks::pop load#2 Acquire",
            "Forks::pop STEAL.heavy#3 handshake",
            "Forks::pop IDLE_2.fence#3 SeqCst",
            "Forks::pop load#4 Acquire",
        ]
    );
    let sites = sites(source).unwrap();
    let calls = [1, 4].map(|at| &source[sites[at].place.clone()]);
    assert_eq!(calls, ["super::STEAL.light()", "Self::STEAL . heavy()"]);
    assert_eq!(sites[1].weaker(), ["Removed"]);
    assert_eq!(sites[5].weaker(), ["AcqRel", "Acquire", "Release", "Removed"]);
}

#[test]
fn other_functions_of_those_names_are_no_handshakes() {
    let source = "
        /// SLEEP.light();
        fn f() { self.fence(); asymmetric::light(); lamp.light(); S.light(1); S.light; _1.heavy() }
        #[cfg(test)] mod tests { fn g() { SLEEP.light() } }
    ";
    assert!(found(source).is_empty(), "{:?}", found(source));
}

#[test]
fn a_weaker_ordering_is_one_that_the_operation_can_have() {
    let weaker = |call: &str| {
        let source = format!("fn f() {{ x.{call} }}");
        sites(&source).unwrap()[0].weaker()
    };
    assert_eq!(weaker("load(Ordering::SeqCst)"), ["Acquire", "Relaxed"]);
    assert_eq!(weaker("store(1, Ordering::SeqCst)"), ["Release", "Relaxed"]);
    assert_eq!(weaker("swap(1, Ordering::AcqRel)"), ["Acquire", "Release", "Relaxed"]);
    assert_eq!(
        weaker("fetch_or(1, Ordering::SeqCst)"),
        ["AcqRel", "Acquire", "Release", "Relaxed"]
    );
    assert_eq!(weaker("whatever(Ordering::SeqCst)"), ["Relaxed"]);
}

#[test]
fn what_the_scanner_cannot_follow_is_an_error_with_its_line() {
    let constant = sites("\nconst ORDER: Ordering = Ordering::Acquire;").unwrap_err();
    assert!(constant.starts_with("line 2:"), "{constant}");
    let renamed = sites("use std::sync::atomic::Ordering as O;").unwrap_err();
    assert!(renamed.starts_with("line 1:"), "{renamed}");
}

#[test]
fn a_const_function_and_a_const_parameter_are_no_constants() {
    assert_eq!(
        found("impl<const N: usize> A<N> { const fn f() { x.load(Ordering::Acquire) } }"),
        ["A::f load#1 Acquire"]
    );
}

#[test]
fn functions_made_by_a_macro_are_named_by_its_parameter() {
    let source = "macro_rules! lock { ($name:ident) => { impl Lock for $name { fn lock(&self) { x.load(Ordering::Acquire) } } } }";
    assert_eq!(found(source), ["$name::lock load#1 Acquire"]);
}

#[test]
fn lines_count_from_one() {
    assert_eq!(sites("fn f() {\n x.load(Ordering::Acquire) }").unwrap()[0].line, 2);
}
